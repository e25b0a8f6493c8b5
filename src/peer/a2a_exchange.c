/* a2a_exchange.c - one operation of an A2A client: the request, and the answer that is folded into
 * a task. */
#include <stdio.h>

#include "event/limits.h"
#include "peer/a2a_remote.h"

/* --- the end of an operation ----------------------------------------------------------------- */

void a2a_exchange_release(struct uar_remote *r)
{
	if (!r->busy)
		return;
	r->busy = false;
	uar_timer_stop(uar_client_sched(r->host->client), &r->quiet.timer);
	uar_buf_fini(&r->body);
	uar_buf_fini(&r->etag);
	uar_sse_parser_fini(&r->sse);
	a2a_task_fini(&r->task);
	uar_arena_fini(&r->scratch);
}

void a2a_exchange_drop(struct uar_remote *r)
{
	if (r->call)
		uar_call_cancel(r->call);
	r->call = NULL;
	a2a_exchange_release(r);
}

void a2a_exchange_finish(struct uar_remote *r, enum uar_remote_how how, const char *reason,
			 int64_t retry_after_us)
{
	struct uar_remote_end end = { .how = how,
				      .reason = reason,
				      .retry_after_us = retry_after_us };
	struct uar_remote_events events = r->events;
	char text[256];

	snprintf(text, sizeof text, "%s", reason ? reason : "");
	end.reason = text;
	r->call = NULL;
	a2a_exchange_release(r);
	events.end(events.ctx, &end);
}

void a2a_exchange_begin(struct uar_remote *r, enum a2a_op op)
{
	a2a_exchange_release(r);
	r->busy = true;
	r->op = op;
	r->stopped = r->is_stream = r->quiet.rests = r->quiet.rested = false;
	r->events_seen = 0;
	memset(&r->sse, 0, sizeof r->sse);
	r->body = uar_buf_make(UAR_LIMIT_PEER_ANSWER);
	r->etag = uar_buf_make(256);
	a2a_task_init(&r->task);
	uar_arena_init(&r->scratch, 0);
}

/* --- streams without events ------------------------------------------------------------------ */

static uar_err await_event(struct uar_remote *r)
{
	struct uar_sched *sched = uar_client_sched(r->host->client);

	/* The callback of the last event may have called leave(). */
	return r->call ? uar_timer_set(sched, &r->quiet.timer, r->host->quiet_us) : UAR_OK;
}

void a2a_exchange_quiet(struct uar_timer *t)
{
	struct uar_remote *r = UAR_OWNER(t, struct uar_remote, quiet.timer);

	if (r->quiet.rested) {
		r->quiet.rested = r->quiet.rests;
		if (!await_event(r))
			return;
	}
	uar_call_cancel(r->call);
	a2a_exchange_finish(r, UAR_REMOTE_QUIET, "the stream of the peer brought no event", 0);
}

void a2a_exchange_rest(struct uar_remote *r, bool rests)
{
	r->quiet.rests = rests;
	r->quiet.rested = true;
}

/* --- answers --------------------------------------------------------------------------------- */

static void show(struct uar_remote *r)
{
	struct uar_remote_view view;

	if (a2a_task_view(&r->task, &view) == UAR_OK)
		r->events.update(r->events.ctx, &view);
}

/* *out NULL: it is an error, and the operation has to end as *how says. */
static uar_err open_answer(struct uar_remote *r, uar_str text, const struct uar_json **out,
			   enum uar_remote_how *how, const char **why)
{
	struct uar_json_limits limits = { .foreign = true, .bytes = UAR_LIMIT_PEER_ANSWER };
	const struct uar_json *j = NULL, *error;
	uar_err e = uar_json_parse(text, &limits, &r->scratch, &j, NULL);

	if (e)
		return e == UAR_ENOMEM ? e : UAR_EINVALID;
	error = uar_json_get(j, UAR_STR("error"));
	*out = NULL;
	if (error && error->kind == UAR_JSON_OBJECT) {
		*how = a2a_error_of(error, why, &r->scratch);
		return UAR_OK;
	}
	if (r->card.rest) {
		*out = j;
		return UAR_OK;
	}
	if (uar_json_int(uar_json_get(j, UAR_STR("id")), -1) != (int64_t)r->asked)
		return UAR_EINVALID;
	*out = uar_json_get(j, UAR_STR("result"));
	return *out ? UAR_OK : UAR_EINVALID;
}

/* One event of a stream. */
static uar_err on_event(void *ctx, const struct uar_sse_event *ev)
{
	struct uar_remote *r = ctx;
	const struct uar_json *j = NULL;
	const char *why = "";
	uar_err e;

	if (!ev->data.n)
		return UAR_OK;
	uar_arena_reset(&r->scratch);
	if (++r->events_seen > UAR_LIMIT_PEER_EVENTS)
		return UAR_ETOOBIG;
	e = open_answer(r, ev->data, &j, &r->stop.how, &why);
	if (!e && !j) {
		r->stopped = true;
		r->stop.reason = why;
		return UAR_ESKIP;
	}
	r->task.has_strays = false;
	if (!e)
		e = a2a_task_take(&r->task, j, r->find.message_id);
	if (e || r->task.has_strays)
		return e;
	show(r);
	if (!uar_remote_over(r->task.state) && !uar_remote_asks(r->task.state))
		return await_event(r);
	r->stopped = true; /* nothing that matters follows */
	r->stop = (struct uar_remote_end){ .how = UAR_REMOTE_DONE, .reason = "" };
	return UAR_ESKIP;
}

static uar_err on_data(void *ctx, uar_str bytes)
{
	struct uar_remote *r = ctx;

	if (r->is_stream)
		return uar_sse_parser_feed(&r->sse, bytes);
	uar_buf_add_str(&r->body, bytes);
	return r->body.err;
}

static bool starts_nocase(uar_str s, uar_str prefix)
{
	return s.n >= prefix.n && uar_str_eq_nocase(uar_str_n(s.p, prefix.n), prefix);
}

static void on_header(void *ctx, uar_str name, uar_str value)
{
	struct uar_remote *r = ctx;

	if (uar_str_eq_nocase(name, UAR_STR("content-type")) && r->streaming)
		r->is_stream = starts_nocase(value, UAR_STR("text/event-stream"));
}

static void end_stream(struct uar_remote *r, uar_err e, const char *reason)
{
	if (r->stopped)
		a2a_exchange_finish(r, r->stop.how, r->stop.reason, 0);
	else if (e == UAR_EINVALID || e == UAR_ETOOBIG || e == UAR_ENOMEM)
		a2a_exchange_finish(r, a2a_how_of_error(e), a2a_why_broken(e), 0);
	else if (r->events_seen)
		a2a_exchange_finish(r, UAR_REMOTE_CUT, "the connection to the peer ended", 0);
	else
		a2a_exchange_finish(r, UAR_REMOTE_UNREACHABLE,
				    e ? reason : "the peer ended the stream", 0);
}

static uar_err ask(struct uar_remote *r, const struct a2a_ask *a);

static uar_err next_page(struct uar_remote *r)
{
	struct a2a_ask a = { .op = A2A_LIST, .page = r->find.page, .since_us = r->find.since_us };

	uar_buf_clear(&r->body);
	return ask(r, &a);
}

/* True: it is there, or a page follows. */
static uar_err look_at_page(struct uar_remote *r, const struct uar_json *j, bool *out_more)
{
	const struct uar_json *list = uar_json_get(j, UAR_STR("tasks"));
	uar_str next = uar_json_text(j, "nextPageToken");
	uar_err e = list && list->kind == UAR_JSON_ARRAY ? UAR_OK : UAR_EINVALID;

	*out_more = false;
	for (const struct uar_json *t = uar_json_first(list); t && !e; t = t->next) {
		a2a_task_fini(&r->task);
		a2a_task_init(&r->task);
		e = a2a_task_take_task(&r->task, t, r->find.message_id);
		r->find.all_remember &= r->task.has_history;
		if (!e && r->task.knows)
			return UAR_OK;
	}
	if (e || !next.n)
		return e;
	if (++r->find.pages >= UAR_LIMIT_PEER_PAGES) {
		r->find.all_remember = false; /* not all were seen */
		return UAR_OK;
	}
	r->find.page = uar_arena_str(&r->arena, next);
	*out_more = r->find.page.p != NULL;
	return r->find.page.p ? next_page(r) : UAR_ENOMEM;
}

static void end_find(struct uar_remote *r)
{
	if (!r->task.knows) {
		a2a_task_fini(&r->task);
		a2a_task_init(&r->task);
		r->task.has_history = r->find.all_remember;
	}
	show(r);
	a2a_exchange_finish(r, UAR_REMOTE_DONE, "", 0);
}

/* The answer is one object. Another task than that which was asked for is no answer. */
static uar_err take_answer(struct uar_remote *r, const struct uar_json *j, bool *out_more)
{
	uar_err e;

	*out_more = false;
	switch (r->op) {
	case A2A_LIST: return look_at_page(r, j, out_more);
	case A2A_SEND:
	case A2A_STREAM:
	case A2A_FOLLOW: e = a2a_task_take(&r->task, j, r->find.message_id); break;
	default: e = a2a_task_take_task(&r->task, j, r->find.message_id);
	}
	return e ? e : r->task.has_strays ? UAR_EINVALID : UAR_OK;
}

static void end_object(struct uar_remote *r, int status, uar_str body, int64_t retry_after_us)
{
	enum uar_remote_how how = a2a_how_of_status(status);
	const struct uar_json *j = NULL;
	const char *why = "the peer refused";
	char text[64];
	bool more = false, good = a2a_is_good(status);
	uar_err e;

	snprintf(text, sizeof text, "the peer answered with status %d", status);
	uar_arena_reset(&r->scratch);
	e = open_answer(r, good ? uar_buf_str(&r->body) : body, &j, &how, &why);
	if (!good && (e || j))
		a2a_exchange_finish(r, how, text, retry_after_us);
	else if (!e && !j)
		a2a_exchange_finish(r, how, why, retry_after_us);
	else {
		if (!e)
			e = take_answer(r, j, &more);
		if (e)
			a2a_exchange_finish(r, a2a_how_of_error(e), a2a_why_broken(e), 0);
		else if (!more && r->find.on)
			end_find(r);
		else if (!more) {
			show(r);
			a2a_exchange_finish(r, UAR_REMOTE_DONE, "", 0);
		}
	}
}

static void on_done(void *ctx, uar_err e, int status, uar_str body, const char *reason)
{
	struct uar_remote *r = ctx;
	int64_t retry_after_us = uar_call_retry_after_us(r->call);

	r->call = NULL;
	if (r->is_stream && a2a_is_good(status))
		end_stream(r, e, reason);
	else if (e)
		a2a_exchange_finish(r, a2a_how_of_error(e), reason, 0);
	else
		end_object(r, status, body, retry_after_us);
}

/* --- requests -------------------------------------------------------------------------------- */

enum { OWN_HEADERS = 3 };

static uar_err call(struct uar_remote *r, const struct a2a_request *q)
{
	const char *headers[OWN_HEADERS + UAR_LIMIT_PEER_HEADERS + 1];
	struct uar_call_options o = {
		.method = q->method,
		.url = q->url.p,
		.headers = headers,
		.body = uar_buf_str(&q->body),
		.connect_timeout_us = A2A_CONNECT_US,
		.idle_timeout_us = A2A_IDLE_US,
		.total_timeout_us = r->streaming ? -1 : 0,
		.guarded = true,
		.once = r->op == A2A_SEND || r->op == A2A_STREAM,
		.header = on_header,
		.data = on_data,
		.done = on_done,
		.ctx = r,
	};
	size_t n = 0;

	headers[n++] = "Content-Type: application/json";
	headers[n++] = r->streaming ? "Accept: text/event-stream, application/json"
				    : "Accept: application/json";
	headers[n++] = r->card.old ? "A2A-Version: 0.3" : "A2A-Version: 1.0";
	for (size_t i = 0; r->headers && r->headers[i] && i < UAR_LIMIT_PEER_HEADERS; i++)
		headers[n++] = r->headers[i];
	headers[n] = NULL;
	return uar_client_call(r->host->client, &o, &r->call, NULL);
}

static uar_err ask(struct uar_remote *r, const struct a2a_ask *a)
{
	struct a2a_ask own = *a;
	struct a2a_request q;
	uar_err e;

	own.id = ++r->asked;
	r->streaming = a->op == A2A_STREAM || a->op == A2A_FOLLOW;
	if (r->streaming)
		uar_sse_parser_init(&r->sse, UAR_LIMIT_PEER_ANSWER, on_event, r);
	e = a2a_request_write(&r->card, &own, &q);
	if (e)
		return e;
	e = call(r, &q);
	a2a_request_fini(&q);
	return e || !r->streaming ? e : await_event(r);
}

static uar_str keep_id(struct uar_remote *r, uar_str id)
{
	id = uar_str_n(id.p, id.n < sizeof r->find.id ? id.n : sizeof r->find.id);
	if (id.n)
		memcpy(r->find.id, id.p, id.n);
	return uar_str_n(r->find.id, id.n);
}

static uar_err start(struct uar_remote *r, const struct a2a_ask *a, uar_str message_id)
{
	uar_err e;

	a2a_exchange_begin(r, a->op);
	r->find.on = false;
	r->find.message_id = keep_id(r, message_id);
	e = a2a_task_expect(&r->task, a->message ? a->message->task_id : a->task_id);
	if (!e)
		e = ask(r, a);
	if (e)
		a2a_exchange_drop(r);
	return e;
}

uar_err a2a_exchange_send(struct uar_remote *r, const struct uar_remote_message *m, bool stream)
{
	struct a2a_ask a = { .op = stream ? A2A_STREAM : A2A_SEND, .message = m };

	return start(r, &a, UAR_STR(""));
}

uar_err a2a_exchange_get(struct uar_remote *r, uar_str task_id, uar_str message_id)
{
	struct a2a_ask a = { .op = A2A_GET, .task_id = task_id };

	return start(r, &a, message_id);
}

uar_err a2a_exchange_follow(struct uar_remote *r, uar_str task_id)
{
	struct a2a_ask a = { .op = A2A_FOLLOW, .task_id = task_id };

	return start(r, &a, UAR_STR(""));
}

uar_err a2a_exchange_cancel(struct uar_remote *r, uar_str task_id)
{
	struct a2a_ask a = { .op = A2A_CANCEL, .task_id = task_id };

	return start(r, &a, UAR_STR(""));
}

uar_err a2a_exchange_find(struct uar_remote *r, uar_str message_id, int64_t since_us)
{
	uar_err e;

	a2a_exchange_begin(r, A2A_LIST);
	r->find.on = r->find.all_remember = true;
	r->find.message_id = keep_id(r, message_id);
	r->find.page = UAR_STR("");
	r->find.pages = 0;
	r->find.since_us = since_us;
	e = next_page(r);
	if (e)
		a2a_exchange_drop(r);
	return e;
}
