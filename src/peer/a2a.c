/* a2a.c - the operations of an A2A client. Each one is a request whose answer, one object or a
 * stream of events, is folded into a task.
 *
 * Cards are kept in memory and requested again with their ETag. */
#include "peer/a2a.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/list.h"
#include "base/sse.h"
#include "event/limits.h"
#include "peer/a2a_int.h"

enum { CONNECT_US = 10000000, IDLE_US = 60000000 };

struct host {
	struct uar_remotes base;
	struct uar_client *client;
	struct a2a_cards cards;
	struct uar_list open; /* of struct uar_remote */
};

struct uar_remote {
	struct uar_list node;
	struct host *host;
	struct uar_remote_events events;
	struct uar_arena arena; /* of its card and headers */
	struct a2a_card card;
	uar_str card_url;
	const struct uar_json *hosts;
	const char **headers; /* of the definition */
	struct uar_task kept; /* the card is in memory: told by the next turn */
	/* The operation under way. */
	struct uar_call *call;
	struct uar_buf body, etag;
	struct uar_sse_parser sse;
	struct a2a_task task;
	struct uar_arena scratch; /* of one answer */
	struct {
		uar_str message_id, page;
		char id[160];
		int64_t since_us;
		size_t pages;
		bool on, all_remember;
	} find;		/* the task of a message */
	uint64_t asked; /* requests so far: the id of the last */
	size_t events_seen;
	enum a2a_op op;
	bool busy, streaming, is_stream;
	struct uar_remote_end stop; /* why the stream was left */
	bool stopped;
};

static struct host *of(struct uar_remotes *base)
{
	return UAR_OWNER(base, struct host, base);
}

/* --- the end of an operation ----------------------------------------------------------------- */

static void release(struct uar_remote *r)
{
	if (!r->busy)
		return;
	r->busy = false;
	uar_buf_fini(&r->body);
	uar_buf_fini(&r->etag);
	uar_sse_parser_fini(&r->sse);
	a2a_task_fini(&r->task);
	uar_arena_fini(&r->scratch);
}

static void finish(struct uar_remote *r, enum uar_remote_how how, const char *reason,
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
	release(r);
	events.end(events.ctx, &end);
}

static void begin(struct uar_remote *r, enum a2a_op op)
{
	release(r);
	r->busy = true;
	r->op = op;
	r->stopped = r->is_stream = false;
	r->events_seen = 0;
	memset(&r->sse, 0, sizeof r->sse);
	r->body = uar_buf_make(UAR_LIMIT_PEER_ANSWER);
	r->etag = uar_buf_make(256);
	a2a_task_init(&r->task);
	uar_arena_init(&r->scratch, 0);
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
		return UAR_OK;
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
	if (uar_str_eq_nocase(name, UAR_STR("etag"))) {
		uar_buf_clear(&r->etag);
		uar_buf_add_str(&r->etag, value);
	}
}

static bool is_good(int status)
{
	return status >= 200 && status < 300;
}

static void end_stream(struct uar_remote *r, uar_err e, const char *reason)
{
	if (r->stopped)
		finish(r, r->stop.how, r->stop.reason, 0);
	else if (e == UAR_EINVALID || e == UAR_ETOOBIG || e == UAR_ENOMEM)
		finish(r, a2a_how_of_error(e), a2a_why_broken(e), 0);
	else if (r->events_seen)
		finish(r, UAR_REMOTE_CUT, "the connection to the peer ended", 0);
	else
		finish(r, UAR_REMOTE_UNREACHABLE, e ? reason : "the peer ended the stream", 0);
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
	uar_str next = uar_json_str(uar_json_get(j, UAR_STR("nextPageToken")), UAR_STR(""));
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
	finish(r, UAR_REMOTE_DONE, "", 0);
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
	bool more = false, good = is_good(status);
	uar_err e;

	snprintf(text, sizeof text, "the peer answered with status %d", status);
	uar_arena_reset(&r->scratch);
	e = open_answer(r, good ? uar_buf_str(&r->body) : body, &j, &how, &why);
	if (!good && (e || j))
		finish(r, how, text, retry_after_us);
	else if (!e && !j)
		finish(r, how, why, retry_after_us);
	else {
		if (!e)
			e = take_answer(r, j, &more);
		if (e)
			finish(r, a2a_how_of_error(e), a2a_why_broken(e), 0);
		else if (!more && r->find.on)
			end_find(r);
		else if (!more) {
			show(r);
			finish(r, UAR_REMOTE_DONE, "", 0);
		}
	}
}

static void on_done(void *ctx, uar_err e, int status, uar_str body, const char *reason)
{
	struct uar_remote *r = ctx;
	int64_t retry_after_us = uar_call_retry_after_us(r->call);

	r->call = NULL;
	if (r->is_stream && is_good(status))
		end_stream(r, e, reason);
	else if (e)
		finish(r, a2a_how_of_error(e), reason, 0);
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
		.connect_timeout_us = CONNECT_US,
		.idle_timeout_us = IDLE_US,
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
	return e;
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

	begin(r, a->op);
	r->find.on = false;
	r->find.message_id = keep_id(r, message_id);
	e = a2a_task_expect(&r->task, a->message ? a->message->task_id : a->task_id);
	if (!e)
		e = ask(r, a);
	if (e)
		release(r);
	return e;
}

static uar_err remote_send(struct uar_remote *r, const struct uar_remote_message *m, bool stream)
{
	struct a2a_ask a = { .op = stream ? A2A_STREAM : A2A_SEND, .message = m };

	return start(r, &a, UAR_STR(""));
}

static uar_err remote_get(struct uar_remote *r, uar_str task_id, uar_str message_id)
{
	struct a2a_ask a = { .op = A2A_GET, .task_id = task_id };

	return start(r, &a, message_id);
}

static uar_err remote_follow(struct uar_remote *r, uar_str task_id)
{
	struct a2a_ask a = { .op = A2A_FOLLOW, .task_id = task_id };

	return start(r, &a, UAR_STR(""));
}

static uar_err remote_cancel(struct uar_remote *r, uar_str task_id)
{
	struct a2a_ask a = { .op = A2A_CANCEL, .task_id = task_id };

	return start(r, &a, UAR_STR(""));
}

static uar_err remote_find(struct uar_remote *r, uar_str message_id, int64_t since_us)
{
	uar_err e;

	begin(r, A2A_LIST);
	r->find.on = r->find.all_remember = true;
	r->find.message_id = keep_id(r, message_id);
	r->find.page = UAR_STR("");
	r->find.pages = 0;
	r->find.since_us = since_us;
	e = next_page(r);
	if (e)
		release(r);
	return e;
}

static void remote_pause(struct uar_remote *r, bool paused)
{
	if (r->call)
		uar_call_pause(r->call, paused);
}

static void remote_leave(struct uar_remote *r)
{
	uar_unpost(uar_client_sched(r->host->client), &r->kept);
	if (r->call)
		uar_call_cancel(r->call);
	r->call = NULL;
	release(r);
}

/* --- the card -------------------------------------------------------------------------------- */

static void read_card(struct uar_remote *r, uar_str text)
{
	struct uar_remote_events events = r->events;
	struct uar_error error = { 0 };
	struct uar_remote_card told;
	uar_err e = a2a_card_read(text, r->card_url, r->hosts, &r->arena, &r->card, &error);

	if (e) {
		a2a_cards_forget(&r->host->cards, r->card_url); /* it may be mended at once */
		finish(r, e == UAR_ENOMEM ? UAR_REMOTE_NO_MEMORY : UAR_REMOTE_BROKEN,
		       uar_error_text(&error), 0);
		return;
	}
	told = (struct uar_remote_card){ .card_url = r->card_url,
					 .url = r->card.url,
					 .version = r->card.old ? "0.3" : "1.0",
					 .streams = r->card.streams,
					 .lists = !r->card.old,
					 .idempotent = r->card.idempotent };
	r->call = NULL;
	release(r);
	events.opened(events.ctx, &told);
}

static int64_t now_of(const struct uar_remote *r)
{
	return uar_clock_mono(uar_client_sched(r->host->client)->clock);
}

static void card_done(void *ctx, uar_err e, int status, uar_str body, const char *reason)
{
	struct uar_remote *r = ctx;
	struct a2a_kept_card *kept = a2a_cards_find(&r->host->cards, r->card_url);
	char text[80];

	(void)body;
	r->call = NULL;
	if (e) {
		finish(r, a2a_how_of_error(e), e == UAR_ETOOBIG ? "the card is too long" : reason,
		       0);
	} else if (status == 304 && kept) {
		kept->checked_us = now_of(r);
		read_card(r, uar_str_c(kept->text));
	} else if (!is_good(status)) {
		snprintf(text, sizeof text, "the card was answered with status %d", status);
		finish(r, a2a_how_of_status(status), text, 0);
	} else {
		struct a2a_kept_card read = { r->card_url.p, uar_buf_str(&r->etag).p,
					      uar_buf_str(&r->body).p, now_of(r) };

		a2a_cards_keep(&r->host->cards, &read);
		read_card(r, uar_buf_str(&r->body));
	}
}

static uar_err card_data(void *ctx, uar_str bytes)
{
	struct uar_remote *r = ctx;

	if (r->body.n + bytes.n > UAR_LIMIT_PEER_CARD_BYTES)
		return UAR_ETOOBIG;
	uar_buf_add_str(&r->body, bytes);
	return r->body.err;
}

static void card_kept(struct uar_task *t)
{
	struct uar_remote *r = UAR_OWNER(t, struct uar_remote, kept);
	struct a2a_kept_card *kept = a2a_cards_find(&r->host->cards, r->card_url);

	if (kept)
		read_card(r, uar_str_c(kept->text));
	else
		finish(r, UAR_REMOTE_NO_MEMORY, "the card is gone", 0);
}

static uar_err ask_card(struct uar_remote *r, struct uar_error *error)
{
	const struct a2a_kept_card *kept = a2a_cards_find(&r->host->cards, r->card_url);
	struct uar_buf match = uar_buf_make(512);
	const char *headers[] = { "Accept: application/json", "A2A-Version: 1.0", NULL, NULL };
	struct uar_call_options o = {
		.method = "GET",
		.url = r->card_url.p,
		.headers = headers,
		.connect_timeout_us = CONNECT_US,
		.idle_timeout_us = IDLE_US,
		.guarded = true,
		.header = on_header,
		.data = card_data,
		.done = card_done,
		.ctx = r,
	};
	uar_err e;

	begin(r, A2A_GET);
	if (kept && now_of(r) - kept->checked_us < (int64_t)UAR_LIMIT_PEER_CARD_SECONDS * 1000000) {
		uar_post(uar_client_sched(r->host->client), &r->kept);
		return UAR_OK;
	}
	if (kept && kept->etag[0]) {
		uar_buf_printf(&match, "If-None-Match: %s", kept->etag);
		headers[2] = match.err ? NULL : match.p;
	}
	r->streaming = false;
	e = uar_client_call(r->host->client, &o, &r->call, error);
	uar_buf_fini(&match);
	return e;
}

/* --- life ------------------------------------------------------------------------------------ */

static void remote_close(struct uar_remote *r)
{
	if (!r)
		return;
	remote_leave(r);
	uar_list_remove(&r->node);
	uar_arena_fini(&r->arena);
	uar_free(r);
}

static void ignore_update(void *ctx, const struct uar_remote_view *view)
{
	(void)ctx;
	(void)view;
}

static void close_abandoned(void *ctx, const struct uar_remote_end *end)
{
	(void)end;
	remote_close(ctx);
}

static void remote_abandon(struct uar_remote *r, uar_str task_id)
{
	remote_leave(r);
	r->events = (struct uar_remote_events){ NULL, ignore_update, close_abandoned, r };
	if (remote_cancel(r, task_id))
		remote_close(r);
}

static uar_err copy_hosts(struct uar_remote *r, const struct uar_json *hosts)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_PEER_CARD_BYTES);
	uar_str text;
	uar_err e;

	if (!hosts)
		return UAR_OK;
	uar_json_write(&b, hosts);
	text = b.err ? UAR_STR_NONE : uar_arena_str(&r->arena, uar_buf_str(&b));
	e = text.p ? uar_json_parse(text, NULL, &r->arena, &r->hosts, NULL) : UAR_ENOMEM;
	uar_buf_fini(&b);
	return e;
}

static uar_err remote_open(struct uar_remotes *base, uar_str card_url, const struct uar_json *hosts,
			   const struct uar_remote_events *events, struct uar_remote **out,
			   struct uar_error *error)
{
	struct host *h = of(base);
	struct uar_remote *r = uar_zalloc(sizeof *r);
	uar_err e;

	if (!r)
		return UAR_ENOMEM;
	r->host = h;
	r->events = *events;
	r->kept.fn = card_kept;
	uar_arena_init(&r->arena, 0);
	uar_list_add_last(&h->open, &r->node);
	r->card_url = a2a_card_address(card_url, &r->arena);
	e = r->card_url.p ? copy_hosts(r, hosts) : UAR_ENOMEM;
	if (!e)
		e = ask_card(r, error);
	if (e)
		remote_close(r);
	else
		*out = r;
	return e;
}

static uar_err remote_set_headers(struct uar_remote *r, const char *const *headers)
{
	size_t n = 0;

	while (headers[n])
		n++;
	r->headers = uar_arena_alloc(&r->arena, (n + 1) * sizeof *r->headers);
	for (size_t i = 0; r->headers && i < n; i++)
		if (!(r->headers[i] = uar_arena_str(&r->arena, uar_str_c(headers[i])).p))
			return UAR_ENOMEM;
	return r->headers ? UAR_OK : UAR_ENOMEM;
}

static void destroy(struct uar_remotes *base)
{
	struct host *h = of(base);

	while (!uar_list_empty(&h->open))
		remote_close(UAR_OWNER(h->open.next, struct uar_remote, node));
	a2a_cards_fini(&h->cards);
	uar_free(h);
}

static const struct uar_remotes_ops ops = {
	.abi = 1,
	.size = sizeof ops,
	.destroy = destroy,
	.open = remote_open,
	.set_headers = remote_set_headers,
	.send = remote_send,
	.get = remote_get,
	.find = remote_find,
	.follow = remote_follow,
	.cancel = remote_cancel,
	.pause = remote_pause,
	.leave = remote_leave,
	.close = remote_close,
	.abandon = remote_abandon,
};

uar_err uar_remotes_create(struct uar_client *client, struct uar_remotes **out)
{
	struct host *h = uar_zalloc(sizeof *h);

	if (!h)
		return UAR_ENOMEM;
	h->base.ops = &ops;
	h->client = client;
	uar_list_init(&h->open);
	*out = &h->base;
	return UAR_OK;
}

void uar_remotes_destroy(struct uar_remotes *h)
{
	if (h)
		h->ops->destroy(h);
}
