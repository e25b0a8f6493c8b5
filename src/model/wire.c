/* wire.c - the life of a call to a provider over HTTP, in any dialect.
 *
 * Deltas that arrive in one turn of the loop are handed over as one text. Before
 * the first byte of an answer one limit holds, then that of tokens: pings and comments do not
 * move it. */
#include "model/model.h"

#include "base/alloc.h"
#include "json/jw.h"
#include "loop/client.h"
#include "model/limits.h"
#include "model/reply_int.h"
#include "model/wire_int.h"

enum {
	IDLE_US = 60 * 1000 * 1000,
	/* After [DONE] only the end of the body can follow. Waiting for it keeps
	 * the connection for the next call; a server that never ends it does not
	 * hold up the run. */
	GRACE_US = 100 * 1000,
	RETRY_AFTER_MS_MAX = 24 * 3600 * 1000,
};

struct uar_model_call {
	struct uar_list node;
	struct uar_wire *model;
	struct uar_call *transport; /* NULL: over */
	struct uar_model_events events;
	struct uar_reply answer;
	struct uar_buf pending; /* what this turn brought */
	enum uar_reply_kind pending_kind;
	struct uar_task task;	/* hands it over */
	struct uar_timer timer; /* idle limit, grace */
	struct {
		int64_t first_us, idle_us; /* limits */
		int64_t last_us;	   /* when the last token came, or it began */
		bool answered;		   /* a byte came */
	} patience;
	struct { /* what header lines say */
		int64_t retry_after_us;
		int retry; /* 1: it shall be tried again, -1: not, 0: they do not say */
		size_t request_id_n;
		char request_id[UAR_LIMIT_ID_BYTES];
	} head;
	int status;
	unsigned depth; /* of our functions on the stack that hold it */
	bool dead;	/* cancelled meanwhile */
	bool paused, over;
	char output_tool[UAR_LIMIT_ID_BYTES]; /* whose input is the answer */
};

static struct uar_wire *wire_of(struct uar_model *m)
{
	return (struct uar_wire *)(void *)m;
}

/* --- the life of a call ---------------------------------------------------------- */

static void call_destroy(struct uar_model_call *c)
{
	struct uar_sched *s = c->model->sched;

	uar_list_remove(&c->node);
	uar_unpost(s, &c->task);
	uar_timer_stop(s, &c->timer);
	uar_call_cancel(c->transport);
	uar_reply_fini(&c->answer);
	uar_buf_fini(&c->pending);
	uar_free(c);
}

/* Callbacks of ours may cancel the call that makes them: it is freed when the
 * last of our functions lets go. False: it is gone. */
static bool let_go(struct uar_model_call *c)
{
	if (--c->depth > 0 || !c->dead)
		return !c->dead;
	call_destroy(c);
	return false;
}

static void cancel(struct uar_model *m, struct uar_model_call *c)
{
	(void)m;
	if (c->depth == 0) {
		call_destroy(c);
		return;
	}
	c->dead = true;
	uar_call_cancel(c->transport);
	c->transport = NULL;
}

static void hand_over(struct uar_model_call *c)
{
	uar_str text = uar_buf_str(&c->pending);

	if (text.n == 0 || c->paused || c->dead)
		return;
	if (c->pending_kind == UAR_REPLY_TEXT)
		c->events.text(c->events.ctx, text);
	else
		c->events.reasoning(c->events.ctx, text);
	uar_buf_clear(&c->pending);
}

static void report(struct uar_model_call *c)
{
	const struct uar_reply *a = &c->answer;
	bool good = a->verdict.failure == UAR_MODEL_FAIL_NONE;
	struct uar_model_result r = {
		.failure = a->verdict.failure,
		.retryable = a->verdict.retryable,
		.http_status = c->status,
		.message = uar_str_n(a->verdict.message, a->verdict.message_n),
		.actual_model = uar_str_n(a->model, a->model_n),
		.usage = a->usage,
		.retry_after_us = c->head.retry_after_us,
		.request_id = uar_str_n(c->head.request_id, c->head.request_id_n),
	};

	if (good && a->calls) {
		r.stop_reason = UAR_STR("tool_calls");
		r.calls = a->calls->list;
		r.call_count = a->calls->count;
	} else if (good) {
		r.stop_reason = a->stop_reason_n ? uar_str_n(a->stop_reason, a->stop_reason_n)
						 : UAR_STR("stop");
	}
	if (good && a->blocks.parts) {
		r.parts = a->blocks.parts;
		r.part_count = a->blocks.count;
	}
	c->events.done(c->events.ctx, &r);
}

/* The verdict stands and the transport is over: say so, now or when resumed. */
static void finish(struct uar_model_call *c)
{
	c->over = true;
	uar_timer_stop(c->model->sched, &c->timer);
	if (c->paused)
		return;
	c->depth++;
	hand_over(c);
	if (!let_go(c))
		return;
	if (c->paused) /* by the text it was just given */
		return;
	c->depth++;
	report(c);
	c->dead = true;
	let_go(c);
}

static void on_task(struct uar_task *t)
{
	struct uar_model_call *c = UAR_OWNER(t, struct uar_model_call, task);

	if (c->over) {
		finish(c);
		return;
	}
	c->depth++;
	hand_over(c);
	let_go(c);
}

/* A pause in the middle of a turn leaves text of one kind waiting while the
 * other kind arrives: the order must stay, so it is handed over all the same. */
static void on_piece(void *ctx, enum uar_reply_kind kind, uar_str text)
{
	struct uar_model_call *c = ctx;

	if (c->pending.n && c->pending_kind != kind) {
		bool paused = c->paused;

		c->paused = false;
		hand_over(c);
		c->paused |= paused;
	}
	if (c->dead)
		return;
	c->pending_kind = kind;
	uar_buf_add_str(&c->pending, text);
	uar_post(c->model->sched, &c->task);
}

/* --- the transport ------------------------------------------------------------------ */

/* The limit of tokens counts from here. */
static void note_answer(struct uar_model_call *c)
{
	if (c->patience.answered)
		return;
	c->patience.answered = true;
	c->patience.last_us = uar_clock_mono(c->model->sched->clock);
}

/* Providers say how long to wait in milliseconds, too, and whether another try may help. */
static void on_header(void *ctx, uar_str name, uar_str value)
{
	struct uar_model_call *c = ctx;
	uint64_t ms;

	note_answer(c);
	if (uar_str_eq_nocase(name, UAR_STR("retry-after-ms")) &&
	    uar_str_u64(value, &ms) == UAR_OK && ms <= RETRY_AFTER_MS_MAX) {
		c->head.retry_after_us = (int64_t)ms * 1000;
	} else if (uar_str_eq_nocase(name, UAR_STR("x-should-retry"))) {
		c->head.retry = uar_str_is(value, "true") ? 1 : uar_str_is(value, "false") ? -1 : 0;
	} else if ((uar_str_eq_nocase(name, UAR_STR("request-id")) ||
		    uar_str_eq_nocase(name, UAR_STR("x-request-id"))) &&
		   uar_str_is_id(value)) {
		memcpy(c->head.request_id, value.p, value.n);
		c->head.request_id_n = value.n;
	}
}

static uar_err on_data(void *ctx, uar_str bytes)
{
	struct uar_model_call *c = ctx;
	struct uar_sched *s = c->model->sched;
	size_t before = c->answer.output;
	uar_err e;

	note_answer(c);
	c->depth++;
	e = uar_reply_feed(&c->answer, bytes);
	if (!e && c->pending.err)
		e = c->pending.err;
	if (!let_go(c))
		return UAR_ECANCELED;
	if (c->answer.output != before)
		c->patience.last_us = uar_clock_mono(s->clock);
	if (c->answer.closed && uar_timer_set(s, &c->timer, GRACE_US))
		e = UAR_ENOMEM;
	return e;
}

static void on_done(void *ctx, uar_err e, int status, uar_str body, const char *reason)
{
	struct uar_model_call *c = ctx;
	struct uar_reply *a = &c->answer;
	const struct uar_json *j = NULL;

	c->status = status;
	if (!c->head.retry_after_us)
		c->head.retry_after_us = uar_call_retry_after_us(c->transport);
	c->transport = NULL;
	c->depth++;
	if (status == 0 || (status >= 200 && status < 300)) {
		uar_reply_end(a, e, reason);
	} else {
		if (uar_reply_parse(a->scratch, body, &a->text.halves, &j))
			j = NULL;
		uar_reply_fail_json(&a->verdict, j, status, a->secret);
		if (c->head.retry)
			a->verdict.retryable = c->head.retry > 0;
	}
	if (let_go(c))
		finish(c);
}

static void on_timer(struct uar_timer *t)
{
	struct uar_model_call *c = UAR_OWNER(t, struct uar_model_call, timer);
	struct uar_sched *s = c->model->sched;
	bool answered = c->patience.answered;
	int64_t limit = answered ? c->patience.idle_us : c->patience.first_us;
	int64_t left = c->patience.last_us + limit - uar_clock_mono(s->clock);
	uar_err e = c->answer.closed ? UAR_OK : UAR_ETIMEOUT;
	char reason[80];

	if (c->paused)
		left = limit;
	if (e && left > 0 && uar_timer_set(s, t, left) == UAR_OK)
		return;
	snprintf(reason, sizeof reason, "no %s for %lld ms", answered ? "token" : "answer",
		 (long long)(limit / 1000));
	c->status = uar_call_status(c->transport);
	uar_call_cancel(c->transport);
	c->transport = NULL;
	c->depth++;
	uar_reply_end(&c->answer, e, reason);
	if (let_go(c))
		finish(c);
}

static void pause_call(struct uar_model *m, struct uar_model_call *c, bool paused)
{
	(void)m;
	c->paused = paused;
	c->patience.last_us = uar_clock_mono(c->model->sched->clock);
	if (c->transport)
		uar_call_pause(c->transport, paused);
	if (!paused && (c->pending.n || c->over))
		uar_post(c->model->sched, &c->task);
}

/* --- the request ---------------------------------------------------------------------- */

static uar_err write_request(const struct uar_wire *m, struct uar_buf *out,
			     const struct uar_model_request *r)
{
	struct uar_jw w = uar_jw_begin(out);

	uar_jw_obj(&w, NULL);
	m->dialect->write(&w, r, m->legacy);
	uar_jw_close(&w);
	return uar_jw_end(&w);
}

static uar_err send_request(struct uar_model_call *c, uar_str body, int64_t connect_us,
			    struct uar_error *error)
{
	struct uar_wire *m = c->model;
	struct uar_call_options o = {
		.method = "POST",
		.url = m->url,
		.headers = (const char *const *)m->headers,
		.body = body,
		.connect_timeout_us = connect_us,
		.idle_timeout_us = -1,	/* ours is stricter */
		.total_timeout_us = -1, /* a stream, of a run with a time limit */
		.header = on_header,
		.data = on_data,
		.done = on_done,
		.ctx = c,
	};

	return uar_client_call(m->client, &o, &c->transport, error);
}

static void set_limits(struct uar_model_call *c, const struct uar_model_request *r)
{
	c->patience.idle_us = r->idle_timeout_us ? r->idle_timeout_us : IDLE_US;
	c->patience.first_us = r->first_timeout_us ? r->first_timeout_us : c->patience.idle_us;
	c->patience.last_us = uar_clock_mono(c->model->sched->clock);
}

/* The name outlives the request, which is borrowed. */
static void set_output_tool(struct uar_model_call *c, const struct uar_model_output *o)
{
	uar_str name = o->name.n ? o->name : UAR_STR("answer");

	if (!o->schema.n || !o->by_tool || name.n > sizeof c->output_tool)
		return;
	memcpy(c->output_tool, name.p, name.n);
	c->answer.asked.output_tool = uar_str_n(c->output_tool, name.n);
}

static struct uar_model_call *call_create(struct uar_wire *m, const struct uar_model_request *r,
					  const struct uar_model_events *events)
{
	struct uar_model_call *c = uar_zalloc(sizeof *c);

	if (!c)
		return NULL;
	c->model = m;
	c->events = *events;
	c->task.fn = on_task;
	c->timer.fn = on_timer;
	set_limits(c, r);
	c->pending = uar_buf_make(UAR_LIMIT_MODEL_OUTPUT);
	c->answer.dialect = m->dialect;
	c->answer.scratch = &m->scratch;
	c->answer.secret = m->key;
	c->answer.asked.messages = r->message_count;
	set_output_tool(c, &r->output);
	c->answer.piece = on_piece;
	c->answer.ctx = c;
	uar_reply_init(&c->answer);
	uar_list_add_last(&m->calls, &c->node);
	return c;
}

static uar_err start(struct uar_model *model, const struct uar_model_request *r,
		     const struct uar_model_events *events, struct uar_model_call **out,
		     struct uar_error *error)
{
	struct uar_wire *m = wire_of(model);
	struct uar_buf body = uar_buf_make(UAR_LIMIT_MODEL_REQUEST);
	struct uar_model_call *c = call_create(m, r, events);
	uar_err e = c ? write_request(m, &body, r) : UAR_ENOMEM;

	if (e)
		uar_error_set(error, e, "the request cannot be made: %s", uar_err_text(e));
	else
		e = send_request(c, uar_buf_str(&body), r->connect_timeout_us, error);
	uar_buf_fini(&body);
	if (!e && uar_timer_set(m->sched, &c->timer,
				c->patience.first_us < c->patience.idle_us ? c->patience.first_us
									   : c->patience.idle_us))
		e = uar_error_set(error, UAR_ENOMEM, "out of memory");
	if (e) {
		if (c)
			call_destroy(c);
		return e;
	}
	*out = c;
	return UAR_OK;
}

static void destroy(struct uar_model *model)
{
	struct uar_wire *m = wire_of(model);

	while (!uar_list_empty(&m->calls))
		call_destroy(UAR_OWNER(m->calls.next, struct uar_model_call, node));
	uar_wire_end_embeddings(m);
	uar_wire_end_listings(m);
	uar_wire_free(m);
}

const struct uar_model_ops uar_wire_ops = {
	.abi = 2,
	.size = sizeof(struct uar_model_ops),
	.destroy = destroy,
	.start = start,
	.cancel = cancel,
	.pause = pause_call,
	.embed = uar_wire_embed,
};
