/* http.c - an MCP server behind one address: a request is a POST, its answer JSON or a stream.
 *
 * A stream of a session that ends before the answer is resumed where it ended, if its
 * events had ids. What the server says without being asked comes on a stream of its own.
 *
 * The transport of 2024-11-05 has two addresses: the first event of a GET says where messages
 * go, and all answers come on that stream. When it ends the connection does. */
#include "base/alloc.h"
#include "base/list.h"
#include "base/sse.h"
#include "mcp/era.h"
#include "mcp/link.h"
#include "mcp/oauth_int.h"

enum { HEADER_LINES = 2 * UAR_LIMIT_MCP_ARGUMENTS + 10, RESUME_US = 1000000, RESUMES = 8 };

struct http {
	struct uar_mcp_link base; /* first */
	struct uar_mcp_http_options o;
	struct uar_list exchanges;
	struct uar_buf session, challenge;
	struct uar_buf endpoint; /* of two addresses: where messages go; empty: not told yet */
};

/* One POST, or the GET that goes on where a stream ended. */
struct exchange {
	struct uar_list node;
	struct http *h;
	struct uar_call *call;
	struct uar_arena arena;
	uar_str id, version;	/* id empty: no answer is waited for */
	uar_str held;		/* a message that goes once there is an endpoint; .p NULL: none */
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

static uar_err take_endpoint(struct http *h, uar_str said);

static uar_err on_event(void *ctx, const struct uar_sse_event *ev)
{
	struct exchange *x = ctx;

	if (x->h->o.two_addresses && !x->h->endpoint.n)
		return uar_str_is(ev->event, "endpoint") ? take_endpoint(x->h, ev->data) : UAR_OK;
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

	if (x->h->o.two_addresses && !x->listens)
		return UAR_OK; /* the answer comes on the stream */
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

/* Of two addresses. Without its stream a server can say nothing more. */
static void stream_ended(struct exchange *x, int status, const char *reason)
{
	struct http *h = x->h;
	bool token = status == 401 || status == 403;
	char text[200];

	if (status && status / 100 != 2)
		snprintf(text, sizeof text, "the server answered with HTTP status %d", status);
	else if (!h->endpoint.n)
		snprintf(text, sizeof text, "the server does not say where messages go");
	else
		snprintf(text, sizeof text, "%s", reason);
	free_exchange(x);
	UAR_LIST_EACH (it, &h->exchanges) {
		struct exchange *w = UAR_OWNER(it, struct exchange, node);

		if (token && w->held.p) /* which asks for a login */
			end(w, UAR_EFORBIDDEN, status, text);
	}
	if (!token)
		h->o.events.down(h->o.events.ctx, text);
}

static void on_done(void *ctx, uar_err e, int status, uar_str body, const char *reason)
{
	struct exchange *x = ctx;

	x->call = NULL;
	if (!reason || !reason[0])
		reason = "the server gave no answer";
	if (x->h->o.two_addresses && x->listens) {
		stream_ended(x, status, reason);
		return;
	}
	if (x->h->o.two_addresses && !e && status / 100 == 2)
		x->answered = true; /* as far as this exchange goes */
	if (!e)
		take_body(x, status, body);
	if (status / 100 == 2 && may_resume(x, status))
		return;
	end(x, e ? e : UAR_EEOF, status, reason);
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
				      .url = m && x->h->o.two_addresses ? x->h->endpoint.p
									: x->h->o.url,
				      .headers = l.at,
				      .body = m ? m->text : UAR_STR_NONE,
				      .idle_timeout_us = -1,
				      .total_timeout_us = -1, /* limits are of the calls */
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

static uar_err listen_on(struct http *h, uar_str version)
{
	struct exchange *x = make_exchange(h, UAR_STR_NONE, version);
	uar_err e = x ? UAR_OK : UAR_ENOMEM;

	if (e)
		return e;
	x->listens = true;
	e = begin(x, NULL);
	if (e)
		free_exchange(x);
	return e;
}

/* --- two addresses --------------------------------------------------------------------------- */

bool uar_mcp_endpoint(uar_str url, uar_str said, struct uar_buf *out)
{
	uar_str origin = oauth_origin(url), path = uar_str_from(url, origin.n);
	bool whole = uar_str_starts(said, UAR_STR("http://")) ||
		     uar_str_starts(said, UAR_STR("https://"));

	if (!said.n || said.n > UAR_LIMIT_MCP_URI || !uar_str_is_visible(said) ||
	    uar_str_starts(said, UAR_STR("//")))
		return false;
	if (whole && !uar_str_eq_nocase(oauth_origin(said), origin))
		return false;
	path.n = uar_str_find(path, '?');
	path.n = uar_str_find(path, '#');
	while (path.n && path.p[path.n - 1] != '/' && said.p[0] != '?')
		path.n--;
	if (!whole)
		uar_buf_add_str(out, origin);
	if (!whole && said.p[0] != '/')
		uar_buf_add_str(out, path.n ? path : UAR_STR("/"));
	uar_buf_add_str(out, said);
	return !out->err;
}

/* What waited for it goes out. */
static uar_err take_endpoint(struct http *h, uar_str said)
{
	if (!uar_mcp_endpoint(uar_str_c(h->o.url), said, &h->endpoint))
		return UAR_EINVALID;
	UAR_LIST_EACH (it, &h->exchanges) {
		struct exchange *x = UAR_OWNER(it, struct exchange, node);
		struct uar_mcp_sending m = { .text = x->held, .id = x->id, .version = x->version };
		uar_err e = UAR_OK;

		x->held = UAR_STR_NONE;
		if (m.text.p)
			e = begin(x, &m);
		if (e)
			end(x, e, 0, "a message could not be sent");
	}
	return UAR_OK;
}

static uar_err hold(struct exchange *x, const struct uar_mcp_sending *m)
{
	bool listens = false;

	UAR_LIST_EACH (it, &x->h->exchanges)
		listens |= UAR_OWNER(it, struct exchange, node)->listens;
	x->held = uar_arena_str(&x->arena, m->text);
	if (!x->held.p)
		return UAR_ENOMEM;
	return listens ? UAR_OK : listen_on(x->h, m->version);
}

/* --- the link -------------------------------------------------------------------------------- */

static uar_err send_post(struct uar_mcp_link *l, const struct uar_mcp_sending *m)
{
	struct http *h = http_of(l);
	struct exchange *x = make_exchange(h, m->id, m->version);
	uar_err e = UAR_ENOMEM;

	if (x)
		e = h->o.two_addresses && !h->endpoint.n ? hold(x, m) : begin(x, m);
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
	uar_err e = http_of(l)->o.two_addresses ? UAR_OK : listen_on(http_of(l), version);

	(void)e;
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
	uar_buf_fini(&h->endpoint);
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
	h->endpoint = uar_buf_make(2 * UAR_LIMIT_MCP_URI);
	uar_list_init(&h->exchanges);
	*out = &h->base;
	return UAR_OK;
}
