/* mcp.c - the routes of the Model Context Protocol.
 *
 * /mcp takes both eras on one address. /api/mcp/sessions is the same protocol with the
 * session in the path: a message is answered with 200 and its answer, or with 202, and the
 * answer is an event of the session. */
#include "gate/cursor.h"
#include "gate/mcp_int.h"

static uar_str header(const struct call *c, const char *name)
{
	return uar_http_header(c->r, name);
}

static struct uar_mcp_head head_of(const struct call *c)
{
	return (struct uar_mcp_head){ header(c, "mcp-protocol-version"), header(c, "mcp-method"),
				      header(c, "mcp-name") };
}

static bool is_modern_head(const struct call *c)
{
	uar_str version = header(c, "mcp-protocol-version");

	return version.p && uar_str_cmp(version, UAR_STR(UAR_MCP_MODERN)) >= 0;
}

/* --- messages ------------------------------------------------------------------------------- */

/* NULL: it is answered. */
static struct mcp_exchange *read_message(struct call *c, bool hybrid)
{
	struct mcp_exchange *x = uar_arena_alloc(&c->arena, sizeof *x);
	struct uar_mcp_head head = head_of(c);
	struct uar_error error = { 0 };
	uar_str text = x ? uar_arena_str(&c->arena, c->r->body) : UAR_STR_NONE;
	uar_err e;

	if (!text.p) {
		gate_problem(c, UAR_ENOMEM, NULL);
		return NULL;
	}
	x->c = c;
	x->hybrid = hybrid;
	x->wants_json = mcp_accepts(c->r, "application/json");
	x->wants_stream = mcp_accepts(c->r, "text/event-stream");
	e = uar_mcp_message_read(text, &c->arena, &x->m, &error);
	if (e) {
		mcp_answer_error(x, 400,
				 e == UAR_EINVALID ? UAR_MCP_INVALID_REQUEST : UAR_MCP_PARSE_ERROR,
				 uar_error_text(&error), UAR_STR_NONE);
		return NULL;
	}
	if (x->m.kind == UAR_MCP_REQUEST || x->m.kind == UAR_MCP_NOTIFICATION)
		uar_mcp_judge(&x->m, &head, &c->arena, &x->v);
	return x;
}

static void take_notification(struct mcp_exchange *x)
{
	bool lsp = uar_str_is(x->m.method, "$/cancelRequest");
	const struct uar_json *id =
		uar_json_get(x->m.params, lsp ? UAR_STR("id") : UAR_STR("requestId"));
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_ID + 8);

	if ((lsp || uar_str_is(x->m.method, "notifications/cancelled")) && id && x->s) {
		uar_json_write(&b, id);
		if (!b.err)
			mcp_work_cancel(x->s, uar_buf_str(&b), lsp);
	}
	uar_buf_fini(&b);
}

static void take_message(void *ctx, struct mcp_session *s, uar_err e)
{
	struct mcp_exchange *x = ctx;

	x->s = s;
	if (e == UAR_ENOTFOUND) {
		mcp_answer_error(x, 404, UAR_MCP_INVALID_REQUEST,
				 "there is no such session: initialize again", UAR_STR_NONE);
	} else if (e) {
		mcp_answer_problem(x, e, NULL);
	} else if (x->m.kind == UAR_MCP_REQUEST && x->v.era == UAR_MCP_ERA_MODERN) {
		x->s = NULL; /* it stands for itself */
		mcp_session_release(s);
		mcp_dispatch(x);
	} else if (x->m.kind == UAR_MCP_REQUEST) {
		mcp_dispatch(x);
	} else {
		if (x->m.kind == UAR_MCP_NOTIFICATION)
			take_notification(x);
		else
			mcp_take_response(s, &x->m);
		mcp_answer_bare(x->c, 202);
		mcp_session_release(s);
	}
}

/* What the head of a legacy request must say; NULL: it does. */
static const char *legacy_fault(const struct mcp_exchange *x, int *status)
{
	uar_str version = header(x->c, "mcp-protocol-version");

	*status = 400;
	if (version.p && !uar_mcp_is_legacy_version(version))
		return "the header MCP-Protocol-Version names a revision that is not spoken here";
	*status = 406;
	if (!x->wants_json && !x->wants_stream)
		return "accept application/json and text/event-stream";
	return NULL;
}

static void initialize(struct mcp_exchange *x);

static void take_legacy(struct mcp_exchange *x)
{
	uar_str id = header(x->c, "mcp-session-id");
	int status;
	const char *fault = legacy_fault(x, &status);

	if (fault)
		mcp_answer_error(x, status, UAR_MCP_INVALID_REQUEST, fault, UAR_STR_NONE);
	else if (x->m.kind == UAR_MCP_REQUEST && x->v.method == UAR_MCP_M_INITIALIZE)
		initialize(x);
	else if (!id.p)
		mcp_answer_error(x, 400, UAR_MCP_INVALID_REQUEST,
				 "the header Mcp-Session-Id is missing: initialize first",
				 UAR_STR_NONE);
	else
		mcp_session_find(x->c, id, take_message, x);
}

void gate_mcp_post(struct call *c)
{
	struct mcp_exchange *x = read_message(c, false);

	if (!x)
		return;
	if (x->v.era == UAR_MCP_ERA_LEGACY)
		take_legacy(x);
	else if (x->m.kind == UAR_MCP_REQUEST)
		mcp_dispatch(x);
	else
		mcp_answer_bare(c, 202);
}

void gate_mcp_message(struct call *c)
{
	struct mcp_exchange *x = read_message(c, true);

	if (!x)
		return;
	if (x->m.kind == UAR_MCP_REQUEST && uar_mcp_era_of(&x->m, NULL) == UAR_MCP_ERA_MODERN) {
		uar_mcp_judge(&x->m, NULL, &c->arena, &x->v); /* of a client that has no headers */
		mcp_session_find(c, c->params[0], take_message, x);
		return;
	}
	x->v.era = UAR_MCP_ERA_LEGACY;
	x->v.method = uar_mcp_method_of(UAR_MCP_ERA_LEGACY, x->m.method);
	x->v.code = x->m.kind == UAR_MCP_REQUEST && x->v.method == UAR_MCP_M_COUNT
			    ? UAR_MCP_METHOD_NOT_FOUND
			    : 0;
	x->v.text = "there is no such method";
	x->v.status = 200;
	mcp_session_find(c, c->params[0], take_message, x);
}

/* --- sessions ------------------------------------------------------------------------------- */

struct opening {
	struct mcp_opening o;
	struct mcp_exchange *x; /* NULL: it came to /api/mcp/sessions */
};

static void answer_opened(struct mcp_opening *o)
{
	struct opening *at = UAR_OWNER(o, struct opening, o);
	struct call *c = o->c;
	struct mcp_session *s = o->s;
	struct uar_buf b = uar_buf_make(65536), result = uar_buf_make(65536);
	struct uar_jw w = uar_jw_begin(at->x ? &result : &b);

	if (!at->x) {
		uar_jw_obj(&w, NULL);
		uar_jw_str(&w, "session_id", s->id);
		uar_jw_str(&w, "events_url",
			   uar_arena_printf(&c->arena, "/api/mcp/sessions/%.*s/events",
					    UAR_FMT(s->id)));
		uar_jw_str(&w, "messages_url",
			   uar_arena_printf(&c->arena, "/api/mcp/sessions/%.*s/messages",
					    UAR_FMT(s->id)));
	}
	uar_jw_obj(&w, at->x ? NULL : "result");
	mcp_put_initialized(&w, s->version);
	uar_jw_close(&w);
	if (!at->x)
		uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	if (at->x && !b.err)
		b.err = uar_mcp_write_result(&b, at->x->m.id, uar_buf_str(&result));
	uar_buf_fini(&result);
	gate_answer_headers(c, at->x ? 200 : 201, &b,
			    &(struct uar_http_header){ UAR_STR("Mcp-Session-Id"), s->id }, 1);
	uar_buf_fini(&b);
	mcp_session_release(s);
}

static void session_opened(struct mcp_opening *o)
{
	struct opening *at = UAR_OWNER(o, struct opening, o);

	if (!o->err)
		answer_opened(o);
	else if (at->x)
		mcp_answer_problem(at->x, o->err, NULL);
	else
		gate_problem(o->c, o->err, NULL);
}

static uar_err open_session(struct call *c, struct mcp_exchange *x, const struct uar_json *params)
{
	struct opening *at = uar_arena_alloc(&c->arena, sizeof *at);

	if (!at)
		return UAR_ENOMEM;
	*at = (struct opening){ { .c = c, .params = params, .done = session_opened }, x };
	c->op = at;
	return mcp_session_open(&at->o);
}

static void initialize(struct mcp_exchange *x)
{
	uar_err e;

	if (!uar_json_text(x->m.params, "protocolVersion").n) {
		mcp_answer_error(x, 200, UAR_MCP_INVALID_PARAMS,
				 "params.protocolVersion names the revision of the client",
				 UAR_STR_NONE);
		return;
	}
	e = open_session(x->c, x, x->m.params);
	if (e)
		mcp_answer_problem(x, e, NULL);
}

void gate_mcp_open(struct call *c)
{
	uar_err e = open_session(c, NULL, c->body);

	if (e)
		gate_problem(c, e, NULL);
}

/* --- streams -------------------------------------------------------------------------------- */

/* A session that the path or the header names, for a stream or its end. */
struct naming {
	struct call *c;
	bool hybrid;
	struct mcp_session *s; /* of one that is being closed */
};

static void refuse_session(struct call *c, uar_err e)
{
	struct uar_error error = { 0 };

	if (e == UAR_ENOTFOUND)
		uar_error_set(&error, e, "there is no such session: open one");
	gate_problem(c, e, &error);
}

static void open_stream(void *ctx, struct mcp_session *s, uar_err e)
{
	struct naming *n = ctx;
	struct call *c = n->c;
	struct mcp_reading r = { 0 };
	uar_str last = UAR_STR_NONE;

	if (!e) {
		last = c->r ? c->r->fields[UAR_HTTP_LAST_EVENT_ID] : UAR_STR_NONE;
		if (!last.n && n->hybrid)
			e = gate_query_str(c, "last_event_id", &last);
		if (!e && !last.n && n->hybrid)
			e = gate_query_str(c, "after", &last);
	}
	if (!e && last.n)
		e = mcp_cursor_parse(c->g, last, &r.stream, &r.after);
	if (e) {
		refuse_session(c, e);
		mcp_session_release(s);
		return;
	}
	if (n->hybrid)
		r.stream = UAR_STR_NONE;
	else if (!last.n)
		r = (struct mcp_reading){ .stream = UAR_STR(MCP_STREAM_OWN), .after = s->sequence };
	mcp_reader_open(c, s, &r);
	mcp_session_release(s);
}

static void name_session(struct call *c, bool hybrid, mcp_found_fn *then)
{
	struct naming *n = uar_arena_alloc(&c->arena, sizeof *n);
	uar_str id = hybrid ? c->params[0] : header(c, "mcp-session-id");
	struct uar_error error = { 0 };

	if (!n) {
		gate_problem(c, UAR_ENOMEM, NULL);
		return;
	}
	*n = (struct naming){ .c = c, .hybrid = hybrid };
	if (id.p) {
		mcp_session_find(c, id, then, n);
		return;
	}
	uar_error_where(&error, "Mcp-Session-Id");
	gate_problem(c, UAR_EINVALID, &error);
}

/* The modern era knows POST alone. */
static bool refuse_modern(struct call *c)
{
	if (!is_modern_head(c))
		return false;
	c->r->allow = UAR_STR("POST");
	gate_problem(c, UAR_EMETHOD, NULL);
	return true;
}

void gate_mcp_get(struct call *c)
{
	if (refuse_modern(c))
		return;
	if (!mcp_accepts(c->r, "text/event-stream"))
		mcp_answer_bare(c, 406);
	else
		name_session(c, false, open_stream);
}

void gate_mcp_events(struct call *c)
{
	name_session(c, true, open_stream);
}

static void closed(void *ctx, uar_err e, uint64_t sequence)
{
	struct naming *n = ctx;
	struct mcp_session *s = n->s;

	(void)sequence;
	if (e) {
		s->closed = false; /* it goes on */
		gate_problem(n->c, e, NULL);
	} else {
		mcp_works_end(s);
		mcp_answer_bare(n->c, 204);
	}
	mcp_session_release(s);
}

static void close_session(void *ctx, struct mcp_session *s, uar_err e)
{
	struct naming *n = ctx;
	struct mcp_record r = { .kind = "close", .done = closed, .ctx = n };

	if (!e) {
		n->s = s;
		n->c->op = n;
		e = mcp_record_add(s, &r);
		s->closed = !e;
	}
	if (e) {
		refuse_session(n->c, e);
		mcp_session_release(s);
	}
}

void gate_mcp_delete(struct call *c)
{
	if (!refuse_modern(c))
		name_session(c, false, close_session);
}

void gate_mcp_close(struct call *c)
{
	name_session(c, true, close_session);
}
