/* openai.c - chat completions of any server that speaks OpenAI's dialect.
 *
 * Deltas that arrive in one turn of the loop are handed over as one text. The
 * idle limit counts from the last token: pings and comments do not move it. */
#include "model/model.h"

#include "base/alloc.h"
#include "json/jw.h"
#include "loop/client.h"
#include "model/openai_int.h"

enum {
	IDLE_US = 60 * 1000 * 1000,
	/* After [DONE] only the end of the body can follow. Waiting for it keeps
	 * the connection for the next call; a server that never ends it does not
	 * hold up the run. */
	GRACE_US = 100 * 1000,
};

struct openai {
	struct uar_model base; /* first: the ops get it back by a cast */
	struct uar_client *client;
	struct uar_sched *sched;
	struct uar_list calls;
	struct uar_openai_scratch scratch;
	char *url, *authorization; /* a header, or NULL */
	uar_str key;		   /* inside authorization */
};

struct uar_model_call {
	struct uar_list node;
	struct openai *model;
	struct uar_call *transport; /* NULL: over */
	struct uar_model_events events;
	struct uar_openai_answer answer;
	struct uar_buf pending; /* what this turn brought */
	enum uar_openai_kind pending_kind;
	struct uar_task task;	  /* hands it over */
	struct uar_timer timer;	  /* idle limit, grace */
	int64_t idle_us, last_us; /* limit; when the last token came */
	int64_t retry_after_us;
	int status;
	unsigned depth; /* of our functions on the stack that hold it */
	bool dead;	/* cancelled meanwhile */
	bool paused, over;
};

static struct openai *openai_of(struct uar_model *m)
{
	return (struct openai *)(void *)m;
}

/* --- the life of a call ---------------------------------------------------------- */

static void call_destroy(struct uar_model_call *c)
{
	struct uar_sched *s = c->model->sched;

	uar_list_remove(&c->node);
	uar_unpost(s, &c->task);
	uar_timer_stop(s, &c->timer);
	uar_call_cancel(c->transport);
	uar_openai_answer_fini(&c->answer);
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
	if (c->pending_kind == UAR_OPENAI_TEXT)
		c->events.text(c->events.ctx, text);
	else
		c->events.reasoning(c->events.ctx, text);
	uar_buf_clear(&c->pending);
}

static void report(struct uar_model_call *c)
{
	const struct uar_openai_answer *a = &c->answer;
	bool good = a->verdict.failure == UAR_MODEL_FAIL_NONE;
	struct uar_model_result r = {
		.failure = a->verdict.failure,
		.retryable = a->verdict.retryable,
		.http_status = c->status,
		.message = uar_str_n(a->verdict.message, a->verdict.message_n),
		.actual_model = uar_str_n(a->model, a->model_n),
		.usage = a->usage,
		.retry_after_us = c->retry_after_us,
	};

	if (good && a->calls) {
		r.stop_reason = UAR_STR("tool_calls");
		r.calls = a->calls->list;
		r.call_count = a->calls->count;
	} else if (good) {
		r.stop_reason = a->stop_reason_n ? uar_str_n(a->stop_reason, a->stop_reason_n)
						 : UAR_STR("stop");
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
static void on_piece(void *ctx, enum uar_openai_kind kind, uar_str text)
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

static uar_err on_data(void *ctx, uar_str bytes)
{
	struct uar_model_call *c = ctx;
	struct uar_sched *s = c->model->sched;
	size_t before = c->answer.output;
	uar_err e;

	c->depth++;
	e = uar_openai_answer_feed(&c->answer, bytes);
	if (!e && c->pending.err)
		e = c->pending.err;
	if (!let_go(c))
		return UAR_ECANCELED;
	if (c->answer.output != before)
		c->last_us = uar_clock_mono(s->clock);
	if (c->answer.closed && uar_timer_set(s, &c->timer, GRACE_US))
		e = UAR_ENOMEM;
	return e;
}

static void on_done(void *ctx, uar_err e, int status, uar_str body, const char *reason)
{
	struct uar_model_call *c = ctx;
	struct uar_openai_answer *a = &c->answer;
	const struct uar_json *j = NULL;

	c->status = status;
	c->retry_after_us = uar_call_retry_after_us(c->transport);
	c->transport = NULL;
	c->depth++;
	if (status == 0 || (status >= 200 && status < 300)) {
		uar_openai_answer_end(a, e, reason);
	} else {
		if (uar_openai_parse(a->scratch, body, &a->halves, &j))
			j = NULL;
		uar_openai_fail_json(&a->verdict, j, status, a->secret);
	}
	if (let_go(c))
		finish(c);
}

static void on_timer(struct uar_timer *t)
{
	struct uar_model_call *c = UAR_OWNER(t, struct uar_model_call, timer);
	struct uar_sched *s = c->model->sched;
	int64_t left = c->last_us + c->idle_us - uar_clock_mono(s->clock);
	uar_err e = c->answer.closed ? UAR_OK : UAR_ETIMEOUT;
	char reason[80];

	if (c->paused)
		left = c->idle_us;
	if (e && left > 0 && uar_timer_set(s, t, left) == UAR_OK)
		return;
	snprintf(reason, sizeof reason, "no token for %lld ms", (long long)(c->idle_us / 1000));
	c->status = uar_call_status(c->transport);
	uar_call_cancel(c->transport);
	c->transport = NULL;
	c->depth++;
	uar_openai_answer_end(&c->answer, e, reason);
	if (let_go(c))
		finish(c);
}

static void pause_call(struct uar_model *m, struct uar_model_call *c, bool paused)
{
	(void)m;
	c->paused = paused;
	c->last_us = uar_clock_mono(c->model->sched->clock);
	if (c->transport)
		uar_call_pause(c->transport, paused);
	if (!paused && (c->pending.n || c->over))
		uar_post(c->model->sched, &c->task);
}

/* --- the request ---------------------------------------------------------------------- */

static const char *const roles[] = {
	[UAR_MODEL_SYSTEM] = "system",
	[UAR_MODEL_USER] = "user",
	[UAR_MODEL_ASSISTANT] = "assistant",
	[UAR_MODEL_TOOL] = "tool",
};

static void write_calls(struct uar_jw *w, const struct uar_model_message *m)
{
	uar_jw_arr(w, "tool_calls");
	for (size_t i = 0; i < m->call_count; i++) {
		uar_jw_obj(w, NULL);
		uar_jw_str(w, "id", m->calls[i].id);
		uar_jw_cstr(w, "type", "function");
		uar_jw_obj(w, "function");
		uar_jw_str(w, "name", m->calls[i].name);
		uar_jw_str(w, "arguments", m->calls[i].arguments);
		uar_jw_close(w);
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

/* A turn that only asks has no content: servers tell null from an empty answer. */
static void write_message(struct uar_jw *w, const struct uar_model_message *m)
{
	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "role", roles[m->role]);
	if (m->role == UAR_MODEL_TOOL)
		uar_jw_str(w, "tool_call_id", m->call_id);
	if (m->call_count && m->text.n == 0)
		uar_jw_null(w, "content");
	else
		uar_jw_str(w, "content", m->text);
	if (m->call_count)
		write_calls(w, m);
	uar_jw_close(w);
}

static void write_tools(struct uar_jw *w, const struct uar_model_request *r)
{
	uar_jw_arr(w, "tools");
	for (size_t i = 0; i < r->tool_count; i++) {
		uar_jw_obj(w, NULL);
		uar_jw_cstr(w, "type", "function");
		uar_jw_obj(w, "function");
		uar_jw_str(w, "name", r->tools[i].name);
		uar_jw_str(w, "description", r->tools[i].description);
		if (r->tools[i].parameters.n)
			uar_jw_raw(w, "parameters", r->tools[i].parameters);
		uar_jw_close(w);
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

static uar_err write_request(struct uar_buf *out, const struct uar_model_request *r)
{
	struct uar_jw w = uar_jw_begin(out);

	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "model", r->model);
	uar_jw_arr(&w, "messages");
	for (size_t i = 0; i < r->message_count; i++)
		write_message(&w, &r->messages[i]);
	uar_jw_close(&w);
	if (r->tool_count) /* servers refuse an empty list */
		write_tools(&w, r);
	uar_jw_bool(&w, "stream", true);
	uar_jw_obj(&w, "stream_options");
	uar_jw_bool(&w, "include_usage", true);
	uar_jw_close(&w);
	uar_jw_close(&w);
	return uar_jw_end(&w);
}

static uar_err send_request(struct uar_model_call *c, uar_str body, struct uar_error *error)
{
	struct openai *m = c->model;
	const char *headers[] = { "Content-Type: application/json",
				  "Accept: text/event-stream, application/json", m->authorization,
				  NULL };
	struct uar_call_options o = {
		.method = "POST",
		.url = m->url,
		.headers = headers,
		.body = body,
		.idle_timeout_us = -1, /* ours is stricter */
		.data = on_data,
		.done = on_done,
		.ctx = c,
	};

	return uar_client_call(m->client, &o, &c->transport, error);
}

static struct uar_model_call *call_create(struct openai *m, const struct uar_model_request *r,
					  const struct uar_model_events *events)
{
	struct uar_model_call *c = uar_zalloc(sizeof *c);

	if (!c)
		return NULL;
	c->model = m;
	c->events = *events;
	c->task.fn = on_task;
	c->timer.fn = on_timer;
	c->idle_us = r->idle_timeout_us ? r->idle_timeout_us : IDLE_US;
	c->last_us = uar_clock_mono(m->sched->clock);
	c->pending = uar_buf_make(UAR_LIMIT_MODEL_OUTPUT);
	c->answer.scratch = &m->scratch;
	c->answer.secret = m->key;
	c->answer.asked = r->message_count;
	c->answer.piece = on_piece;
	c->answer.ctx = c;
	uar_openai_answer_init(&c->answer);
	uar_list_add_last(&m->calls, &c->node);
	return c;
}

static uar_err start(struct uar_model *model, const struct uar_model_request *r,
		     const struct uar_model_events *events, struct uar_model_call **out,
		     struct uar_error *error)
{
	struct openai *m = openai_of(model);
	struct uar_buf body = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	struct uar_model_call *c = call_create(m, r, events);
	uar_err e = c ? write_request(&body, r) : UAR_ENOMEM;

	if (e)
		uar_error_set(error, e, "the request cannot be made: %s", uar_err_text(e));
	else
		e = send_request(c, uar_buf_str(&body), error);
	uar_buf_fini(&body);
	if (!e && uar_timer_set(m->sched, &c->timer, c->idle_us))
		e = uar_error_set(error, UAR_ENOMEM, "out of memory");
	if (e) {
		if (c)
			call_destroy(c);
		return e;
	}
	*out = c;
	return UAR_OK;
}

/* --- the model -------------------------------------------------------------------------- */

static void destroy(struct uar_model *model)
{
	struct openai *m = openai_of(model);

	while (!uar_list_empty(&m->calls))
		call_destroy(UAR_OWNER(m->calls.next, struct uar_model_call, node));
	uar_openai_scratch_fini(&m->scratch);
	uar_free(m->url);
	uar_free(m->authorization);
	uar_free(m);
}

static const struct uar_model_ops openai_ops = {
	.abi = 1,
	.size = sizeof(struct uar_model_ops),
	.provider = "openai",
	.destroy = destroy,
	.start = start,
	.cancel = cancel,
	.pause = pause_call,
};

static char *join(const char *a, uar_str b, const char *c)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_CLIENT_URL);
	char *out = NULL;
	size_t n;

	uar_buf_add_str(&text, uar_str_c(a));
	uar_buf_add_str(&text, b);
	uar_buf_add_str(&text, uar_str_c(c));
	if (!text.err)
		out = uar_buf_take(&text, &n);
	uar_buf_fini(&text);
	return out;
}

static uar_err check(uar_str url, uar_str key, struct uar_error *error)
{
	if (!uar_str_starts(url, UAR_STR("http://")) && !uar_str_starts(url, UAR_STR("https://")))
		return uar_error_set(error, UAR_ECONFIG,
				     "the provider's address is neither http nor https");
	if (url.n + key.n > UAR_LIMIT_CLIENT_URL / 2)
		return uar_error_set(error, UAR_ECONFIG, "the address or key is too long");
	for (size_t i = 0; i < key.n; i++)
		if (key.p[i] <= ' ' || key.p[i] > '~')
			return uar_error_set(error, UAR_ECONFIG,
					     "the provider's key has a character that no key has");
	return UAR_OK;
}

uar_err uar_model_openai_create(const struct uar_model_openai_options *o, struct uar_model **out,
				struct uar_error *error)
{
	uar_str url = uar_str_c(o->base_url), key = uar_str_c(o->api_key);
	struct openai *m;
	uar_err e = check(url, key, error);

	if (e)
		return e;
	m = uar_zalloc(sizeof *m);
	if (!m)
		return uar_error_set(error, UAR_ENOMEM, "out of memory");
	m->base.ops = &openai_ops;
	m->client = o->client;
	m->sched = uar_client_sched(o->client);
	uar_list_init(&m->calls);
	uar_openai_scratch_init(&m->scratch);
	while (uar_str_ends(url, UAR_STR("/")))
		url.n--;
	m->url = join("", url, "/chat/completions");
	if (key.n)
		m->authorization = join("Authorization: Bearer ", key, "");
	if (!m->url || (key.n && !m->authorization)) {
		destroy(&m->base);
		return uar_error_set(error, UAR_ENOMEM, "out of memory");
	}
	if (key.n)
		m->key = uar_str_n(m->authorization + strlen("Authorization: Bearer "), key.n);
	*out = &m->base;
	return UAR_OK;
}
