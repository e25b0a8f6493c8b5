/* http.c - an MCP server behind one address: a request is a POST, its answer JSON or a stream.
 *
 * A stream of a session that ends before the answer is resumed where it ended, if its
 * events had ids. What the server says without being asked comes on a stream of its own. */
#include "base/alloc.h"
#include "base/list.h"
#include "base/sse.h"
#include "mcp/era.h"
#include "mcp/link.h"

enum { HEADER_LINES = 2 * UAR_LIMIT_MCP_ARGUMENTS + 10, RESUME_US = 1000000, RESUMES = 8 };

struct http {
	struct uar_mcp_link base; /* first */
	struct uar_mcp_http_options o;
	struct uar_list exchanges;
	struct uar_buf session, challenge;
};

/* One POST, or the GET that goes on where a stream ended. */
struct exchange {
	struct uar_list node;
	struct http *h;
	struct uar_call *call;
	struct uar_arena arena;
	uar_str id, version;	/* id empty: no answer is waited for */
	struct uar_buf last_id; /* of its stream */
	struct uar_sse_parser sse;
	struct uar_buf body;
	struct uar_timer resume;
	unsigned resumes;
	bool streams, answered, listens, in_session;
};

static struct http *http_of(struct uar_mcp_link *l)
{
	return (struct http *)(void *)l;
}

static void free_exchange(struct exchange *x)
{
	uar_list_remove(&x->node);
	uar_timer_stop(x->h->o.sched, &x->resume);
	uar_sse_parser_fini(&x->sse);
	uar_buf_fini(&x->body);
	uar_buf_fini(&x->last_id);
	uar_arena_fini(&x->arena);
	uar_free(x);
}

/* --- in ------------------------------------------------------------------------------------- */

/* Is that the answer which the exchange is for? */
static bool answers(const struct exchange *x, uar_str text)
{
	struct uar_mcp_message m = { 0 };
	struct uar_arena arena;
	bool yes;

	uar_arena_init(&arena, 0);
	yes = !uar_mcp_message_read(text, &arena, &m, NULL) &&
	      (m.kind == UAR_MCP_RESULT || m.kind == UAR_MCP_ERROR) && uar_str_eq(m.id, x->id);
	uar_arena_fini(&arena);
	return yes;
}

/* An answer may also come on the stream that resumed another one. */
static void note_answered(struct exchange *from, uar_str text)
{
	UAR_LIST_EACH (it, &from->h->exchanges) {
		struct exchange *x = UAR_OWNER(it, struct exchange, node);

		if (x->id.n && (x == from || !from->id.n) && answers(x, text))
			x->answered = true;
	}
}

static void hand_over(struct exchange *x, uar_str text)
{
	note_answered(x, text);
	x->h->o.events.message(x->h->o.events.ctx, text, x->id);
}

static uar_err on_event(void *ctx, const struct uar_sse_event *ev)
{
	struct exchange *x = ctx;

	x->resumes = 0; /* the server is there: attempts are counted anew */
	if (ev->id.n) {
		uar_buf_clear(&x->last_id);
		uar_buf_add_str(&x->last_id, ev->id);
	}
	if (ev->data.n && (!ev->event.n || uar_str_is(ev->event, "message")))
		hand_over(x, ev->data);
	return UAR_OK;
}

static void on_header(void *ctx, uar_str name, uar_str value)
{
	struct exchange *x = ctx;

	if (uar_str_eq_nocase(name, UAR_STR("content-type")))
		x->streams = uar_str_starts(value, UAR_STR("text/event-stream"));
	if (uar_str_eq_nocase(name, UAR_STR("www-authenticate"))) {
		uar_buf_clear(&x->h->challenge);
		uar_buf_add_str(&x->h->challenge, value);
	}
	if (!uar_str_eq_nocase(name, UAR_STR("mcp-session-id")) || !uar_str_is_visible(value))
		return;
	uar_buf_clear(&x->h->session);
	uar_buf_add_str(&x->h->session, value);
}

static uar_err on_data(void *ctx, uar_str bytes)
{
	struct exchange *x = ctx;

	if (x->streams)
		return uar_sse_parser_feed(&x->sse, bytes);
	uar_buf_add_str(&x->body, bytes);
	return x->body.err;
}

static void resume(struct uar_timer *t);

/* Ends the exchange; who waits for an answer is told that there is none. */
static void end(struct exchange *x, uar_err e, int status, const char *reason)
{
	struct http *h = x->h;
	bool lost = x->id.n && !x->answered;
	struct uar_arena arena = x->arena; /* the id lives in it */
	uar_str id = x->id;

	x->arena = (struct uar_arena){ 0 };
	free_exchange(x);
	if (lost)
		h->o.events.lost(h->o.events.ctx, id, e, status, reason);
	uar_arena_fini(&arena);
}

static bool may_resume(struct exchange *x, int status)
{
	if (x->answered || x->resumes >= RESUMES || (status && status / 100 != 2))
		return false;
	if (!x->listens && !(x->streams && x->last_id.n))
		return false;
	x->resumes++;
	x->resume.fn = resume;
	return uar_timer_set(x->h->o.sched, &x->resume,
			     x->sse.retry_ms ? x->sse.retry_ms * 1000 : RESUME_US) == UAR_OK;
}

/* Does the server not know the session of the request any more? It may say so in an error that
 * carries the request's id; the codes of JSON-RPC itself are about the request instead. */
static bool refuses_session(const struct exchange *x, int status, uar_str text)
{
	struct uar_mcp_message m = { 0 };
	struct uar_arena arena;
	bool yes;

	if (!x->in_session || (status != 404 && status != 400))
		return false;
	uar_arena_init(&arena, 0);
	yes = !uar_mcp_message_read(text, &arena, &m, NULL) && m.kind == UAR_MCP_ERROR &&
	      (m.error.code < -32700 || m.error.code > -32600);
	uar_arena_fini(&arena);
	return yes;
}

/* What came in one piece: the answer, or a refusal in the words of the protocol. */
static void take_body(struct exchange *x, int status, uar_str refusal)
{
	if (status / 100 == 2) {
		if (!x->streams && x->body.n)
			hand_over(x, uar_buf_str(&x->body));
	} else if (status != 401 && status != 403 && x->id.n && answers(x, refusal) &&
		   !refuses_session(x, status, refusal)) {
		hand_over(x, refusal);
	}
}

static void on_done(void *ctx, uar_err e, int status, uar_str body, const char *reason)
{
	struct exchange *x = ctx;

	x->call = NULL;
	if (!e)
		take_body(x, status, body);
	if (status / 100 == 2 && may_resume(x, status))
		return;
	end(x, e ? e : UAR_EEOF, status,
	    reason && reason[0] ? reason : "the server gave no answer");
}

/* --- out ------------------------------------------------------------------------------------ */

struct lines {
	const char *at[HEADER_LINES + 1];
	size_t n;
	struct uar_arena *arena;
	bool failed;
};

static void add_line(struct lines *l, const char *name, uar_str value)
{
	uar_str line = uar_arena_printf(l->arena, "%s: %.*s", name, UAR_FMT(value));

	if (!line.p || l->n >= HEADER_LINES)
		l->failed = true;
	else
		l->at[l->n++] = line.p;
}

static void add_list(struct lines *l, const char *const *list)
{
	for (; list && *list && l->n < HEADER_LINES; list++)
		l->at[l->n++] = *list;
}

static void add_modern(struct lines *l, const struct uar_mcp_sending *m)
{
	add_line(l, "Mcp-Method", m->method);
	if (m->name.n)
		add_line(l, "Mcp-Name", uar_mcp_header_encode(m->name, l->arena));
}

static void add_lines(struct lines *l, const struct exchange *x, const struct uar_mcp_sending *m)
{
	const struct http *h = x->h;
	bool modern = m && m->modern;
	const char *token[2] = { h->o.authorization ? h->o.authorization(h->o.events.ctx) : NULL,
				 NULL };

	add_list(l, h->o.headers);
	add_list(l, m ? m->headers : NULL);
	add_list(l, token);
	add_line(l, "Accept",
		 m ? UAR_STR("application/json, text/event-stream") : UAR_STR("text/event-stream"));
	if (m)
		add_line(l, "Content-Type", UAR_STR("application/json"));
	if (x->version.n)
		add_line(l, "MCP-Protocol-Version", x->version);
	if (x->in_session)
		add_line(l, "Mcp-Session-Id", uar_buf_str(&h->session));
	if (!m && x->last_id.n)
		add_line(l, "Last-Event-ID", uar_buf_str(&x->last_id));
	if (modern)
		add_modern(l, m);
}

/* `m` NULL: a GET. */
static uar_err begin(struct exchange *x, const struct uar_mcp_sending *m)
{
	struct uar_arena
		arena; /* of the lines, which the call copies: a stream may be resumed often */
	struct lines l = { .arena = &arena };
	struct uar_call_options o = { .method = m ? "POST" : "GET",
				      .url = x->h->o.url,
				      .headers = l.at,
				      .body = m ? m->text : UAR_STR_NONE,
				      .idle_timeout_us = -1,
				      .guarded = x->h->o.guarded,
				      .header = on_header,
				      .data = on_data,
				      .done = on_done,
				      .ctx = x };
	uar_err e;

	uar_arena_init(&arena, 0);
	x->in_session = x->h->session.n && !(m && m->modern);
	add_lines(&l, x, m);
	uar_buf_clear(&x->h->challenge);
	x->streams = false;
	uar_sse_parser_fini(&x->sse);
	uar_sse_parser_init(&x->sse, UAR_LIMIT_MCP_MESSAGE, on_event, x);
	e = l.failed ? UAR_ENOMEM : uar_client_call(x->h->o.client, &o, &x->call, NULL);
	uar_arena_fini(&arena);
	return e;
}

static void resume(struct uar_timer *t)
{
	struct exchange *x = UAR_OWNER(t, struct exchange, resume);
	uar_err e = x->answered ? UAR_EEOF : begin(x, NULL); /* on another stream */

	if (e)
		end(x, e, 0, "the stream of the answer could not be resumed");
}

static struct exchange *make_exchange(struct http *h, uar_str id, uar_str version)
{
	struct exchange *x = uar_zalloc(sizeof *x);

	if (!x)
		return NULL;
	x->h = h;
	x->body = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	x->last_id = uar_buf_make(1024);
	uar_list_add_last(&h->exchanges, &x->node);
	x->id = id.n ? uar_arena_str(&x->arena, id) : UAR_STR_NONE;
	x->version = uar_arena_str(&x->arena, version);
	if ((id.n && !x->id.p) || !x->version.p) {
		free_exchange(x);
		return NULL;
	}
	return x;
}

static uar_err send_post(struct uar_mcp_link *l, const struct uar_mcp_sending *m)
{
	struct exchange *x = make_exchange(http_of(l), m->id, m->version);
	uar_err e = x ? begin(x, m) : UAR_ENOMEM;

	if (e && x)
		free_exchange(x);
	return e;
}

static void forget(struct uar_mcp_link *l, uar_str id)
{
	struct http *h = http_of(l);

	UAR_LIST_EACH (it, &h->exchanges) {
		struct exchange *x = UAR_OWNER(it, struct exchange, node);

		if (!x->id.n || !uar_str_eq(x->id, id))
			continue;
		if (x->call)
			uar_call_cancel(x->call);
		free_exchange(x);
		return;
	}
}

/* Servers that have nothing to say refuse it, which is fine. */
static void start_listening(struct uar_mcp_link *l, uar_str version)
{
	struct exchange *x = make_exchange(http_of(l), UAR_STR_NONE, version);

	if (!x)
		return;
	x->listens = true;
	if (begin(x, NULL))
		free_exchange(x);
}

static uar_str no_errors(struct uar_mcp_link *l)
{
	(void)l;
	return UAR_STR_NONE;
}

static uar_str last_challenge(struct uar_mcp_link *l)
{
	return uar_buf_str(&http_of(l)->challenge);
}

static void destroy(struct uar_mcp_link *l)
{
	struct http *h = http_of(l);

	UAR_LIST_EACH (it, &h->exchanges) {
		struct exchange *x = UAR_OWNER(it, struct exchange, node);

		if (x->call)
			uar_call_cancel(x->call);
		free_exchange(x);
	}
	uar_buf_fini(&h->session);
	uar_buf_fini(&h->challenge);
	uar_free(h);
}

uar_err uar_mcp_http_open(const struct uar_mcp_http_options *o, struct uar_mcp_link **out)
{
	static const struct uar_mcp_link_ops ops = { send_post, forget,		start_listening,
						     no_errors, last_challenge, destroy };
	struct http *h = uar_zalloc(sizeof *h);

	if (!h)
		return UAR_ENOMEM;
	h->base.ops = &ops;
	h->o = *o;
	h->session = uar_buf_make(1024);
	h->challenge = uar_buf_make(8192);
	uar_list_init(&h->exchanges);
	*out = &h->base;
	return UAR_OK;
}
