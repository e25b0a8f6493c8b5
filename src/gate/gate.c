/* gate.c - a request from its head to its handler. */
#include "event/limits.h"
#include "engine/staging.h"
#include "gate/gate_int.h"
#include "gate/limits.h"
#include "http/limits.h"
#include "mcp/limits.h"
#include "proto/a2a_wire.h"
#include "proto/openai.h"

void gate_call_free(struct call *c)
{
	if (!c)
		return;
	uar_list_remove(&c->node);
	if (c->counted)
		c->counted->under_way--;
	uar_arena_fini(&c->arena);
	uar_free(c);
}

static uar_err refuse(uar_err code, struct uar_error *error)
{
	return uar_error_set(error, code, "%s", uar_err_text(code));
}

static bool announces_body(const struct uar_http_request *r)
{
	uint64_t length = 0;

	return r->fields[UAR_HTTP_TRANSFER_ENCODING].p ||
	       (uar_str_u64(r->fields[UAR_HTTP_CONTENT_LENGTH], &length) == UAR_OK && length > 0);
}

/* JSON has no other charset, and needs no parameter to say so. */
static bool is_utf8(uar_str parameter)
{
	return !parameter.n || uar_str_eq_nocase(parameter, UAR_STR("charset=utf-8")) ||
	       uar_str_eq_nocase(parameter, UAR_STR("charset=\"utf-8\""));
}

static uar_err check_body(const struct route *route, const struct uar_http_request *r,
			  struct uar_error *error)
{
	uar_str type = r->fields[UAR_HTTP_CONTENT_TYPE], rest;

	if (route->body == GATE_BODY_NONE || route->body == GATE_BODY_BYTES ||
	    (route->body == GATE_BODY_MAYBE && !announces_body(r)))
		return UAR_OK;
	type = uar_str_trim(uar_str_cut(type, ';', &rest));
	if (uar_str_eq_nocase(type, UAR_STR("application/json")) && is_utf8(uar_str_trim(rest)))
		return UAR_OK;
	if (uar_str_starts(r->path, UAR_STR("/a2a/")) &&
	    uar_str_eq_nocase(type, UAR_STR("application/a2a+json")))
		return UAR_OK;
	if (!type.n && !announces_body(r))
		return UAR_OK; /* as an empty object: the answer then says what is missing */
	uar_error_where(error, "Content-Type");
	return uar_error_set(error, UAR_EMEDIATYPE, "send Content-Type: application/json");
}

static uar_err check_path(const struct uar_http_request *r, struct uar_error *error)
{
	uar_str ignored;

	if (uar_str_find(r->path, '%') == r->path.n ||
	    uar_http_decode(r->arena, r->path, &ignored) != UAR_EINVALID)
		return UAR_OK;
	return uar_error_set(error, UAR_EINVALID, "the path has a broken escape");
}

static uar_err refuse_method(const struct uar_gate *g, struct uar_http_request *r,
			     struct uar_error *error)
{
	struct uar_buf allow = uar_buf_make(256);

	gate_route_allow(&g->routes, r->path, &allow);
	r->allow = uar_arena_str(r->arena, uar_buf_str(&allow));
	uar_buf_fini(&allow);
	return refuse(UAR_EMETHOD, error);
}

/* What is asked for. OPTIONS has no route of its own. */
static uar_err check_request(struct call *c, struct uar_http_request *r, bool known,
			     struct uar_error *error)
{
	uar_err e = check_path(r, error);

	if (e)
		return e;
	if (!c->route && !known)
		return refuse(UAR_ENOTFOUND, error);
	if (!c->route)
		return r->method == UAR_HTTP_OPTIONS ? UAR_OK : refuse_method(c->g, r, error);
	e = gate_check_query(c->route, r, error);
	return e ? e : check_body(c->route, r, error);
}

/* A browser asks what a page of another origin may send; it shows no token yet. The answer
 * is the same for every path. */
static bool is_preflight(const struct uar_http_request *r)
{
	return r->method == UAR_HTTP_OPTIONS && r->allow_origin.n &&
	       uar_http_header(r, "access-control-request-method").p;
}

/* A browser asks for something to be shown; programs ask for JSON, or for anything. */
static bool wants_page(const struct uar_http_request *r)
{
	uar_str accept = uar_http_header(r, "accept");

	return r->method == UAR_HTTP_GET && uar_str_starts(accept, UAR_STR("text/html"));
}

/* Names and origins first, then the token, then what the path says: somebody
 * without a token learns nothing about paths. */
static uar_err admit(struct uar_gate *g, struct uar_http_request *r, struct call *c,
		     struct uar_error *error)
{
	bool known = false;
	uar_err e = gate_check_host(g, r, error);

	if (e && wants_page(r)) {
		r->problem = gate_host_page;
		r->problem_type = "text/html; charset=utf-8";
	}
	if (!e)
		e = gate_check_origin(g, r, error);
	if (e)
		return e;
	if (gate_allows_origin(g, r->fields[UAR_HTTP_ORIGIN]))
		r->allow_origin = r->fields[UAR_HTTP_ORIGIN];
	if (is_preflight(r))
		return UAR_OK;
	c->route = gate_route(&g->routes, r->method, r->path, c->params, &known);
	e = gate_identify(c, r, error);
	return e ? e : check_request(c, r, known || uar_str_is(r->path, "*"), error);
}

static uar_err decode_params(struct call *c, struct uar_error *error)
{
	for (size_t i = 0; i < ROUTE_PARAMS; i++) {
		if (!c->params[i].n)
			continue;
		if (uar_http_decode(&c->arena, c->params[i], &c->params[i]) ||
		    !uar_str_is_id(c->params[i]))
			return uar_error_set(error, UAR_ENOTFOUND,
					     "ids are 1 to %d visible ASCII characters",
					     UAR_LIMIT_ID_BYTES);
	}
	return UAR_OK;
}

/* Nobody's bytes are kept or parsed at length before they are somebody's. */
static size_t body_max(const struct uar_gate *g, const struct route *route)
{
	if (!route || route->body == GATE_BODY_NONE)
		return 0;
	if (route->body == GATE_BODY_BYTES)
		return (size_t)uar_staging_max(g->o.runtime);
	if (route->body == GATE_BODY_TEXT && g->o.max.body > UAR_LIMIT_MCP_MESSAGE)
		return UAR_LIMIT_MCP_MESSAGE;
	return route->open ? UAR_LIMIT_HTTP_OPEN_BODY : g->o.max.body;
}

static struct call *make_call(struct uar_gate *g, struct uar_http_request *r)
{
	struct call *c = uar_zalloc(sizeof *c);

	if (!c)
		return NULL;
	c->g = g;
	c->r = r;
	uar_list_add_last(&g->calls, &c->node);
	uar_arena_init(&c->arena, UAR_LIMIT_HTTP_ARENA);
	return c;
}

/* "/a2a/AGENT", or with a slash behind it */
static bool is_a2a_rpc(uar_str path)
{
	uar_str rest = uar_str_from(path, sizeof "/a2a/" - 1);

	return uar_str_find(rest, '/') + 1 >= rest.n;
}

static uar_err on_head(void *ctx, struct uar_http_request *r, size_t *out_body_max,
		       struct uar_error *error)
{
	struct uar_gate *g = ctx;
	struct call *c = make_call(g, r);
	uar_err e;

	if (!c)
		return UAR_ENOMEM;
	if (uar_str_starts(r->path, UAR_STR("/v1/")))
		r->problem = uar_openai_error;
	if (uar_str_starts(r->path, UAR_STR("/a2a/")))
		r->problem =
			is_a2a_rpc(r->path) ? uar_a2a_early_rpc_problem : uar_a2a_early_problem;
	e = admit(g, r, c, error);
	if (!e)
		e = decode_params(c, error);
	if (e) {
		gate_call_free(c);
		return e;
	}
	r->user = c;
	r->streamed = c->route && c->route->body == GATE_BODY_BYTES;
	*out_body_max = body_max(g, c->route);
	return UAR_OK;
}

/* With those that the clients of OpenAI send. */
#define ALLOWED_HEADERS                                                                            \
	"Authorization, Content-Type, Accept, Last-Event-ID, A2A-Version, A2A-Extensions, "        \
	"Idempotency-Key, X-Stainless-Arch, X-Stainless-Async, "                                   \
	"X-Stainless-Custom-Poll-Interval, X-Stainless-Helper-Method, "                            \
	"X-Stainless-Lang, X-Stainless-OS, X-Stainless-Package-Version, "                          \
	"X-Stainless-Poll-Helper, X-Stainless-Retry-Count, "                                       \
	"X-Stainless-Runtime, X-Stainless-Runtime-Version, "                                       \
	"X-Stainless-Timeout, OpenAI-Organization, OpenAI-Project, "                               \
	"OpenAI-Beta"

static void answer_preflight(struct call *c)
{
	static const struct uar_http_header headers[] = {
		{ { "Access-Control-Allow-Methods", 28 }, { "GET, POST, PUT, DELETE", 22 } },
		{ { "Access-Control-Allow-Headers", 28 },
		  { ALLOWED_HEADERS, sizeof ALLOWED_HEADERS - 1 } },
		{ { "Access-Control-Max-Age", 22 }, { "600", 3 } },
	};
	struct uar_http_request *r = c->r;

	gate_call_free(c);
	uar_http_respond(r, &(struct uar_http_response){ .status = 204,
							 .headers = headers,
							 .header_count = ARRAY_LEN(headers) });
}

static void answer_options(struct call *c)
{
	struct uar_buf allow = uar_buf_make(256);
	struct uar_http_header header = { UAR_STR("Allow"), UAR_STR("") };
	struct uar_http_request *r = c->r;

	gate_route_allow(&c->g->routes, r->path, &allow);
	header.value = uar_buf_str(&allow);
	gate_call_free(c);
	uar_http_respond(r, &(struct uar_http_response){
				    .status = 204, .headers = &header, .header_count = 1 });
	uar_buf_fini(&allow);
}

/* The text is kept with the call: operations borrow from it after the peer has left. */
static uar_err parse_body(struct call *c, struct uar_error *error)
{
	struct uar_json_limits limits = { .nodes = UAR_LIMIT_HTTP_VALUES };
	uar_str text = c->r->body.n ? c->r->body : UAR_STR("{}");

	return uar_json_parse_copy(text, &limits, &c->arena, &c->body, error);
}

static void on_request(void *ctx, struct uar_http_request *r)
{
	struct call *c = r->user;
	struct uar_error error;
	uar_err e = UAR_OK;

	(void)ctx;
	uar_error_clear(&error);
	if (!c->route && is_preflight(r)) {
		answer_preflight(c);
		return;
	}
	if (!c->route) {
		answer_options(c);
		return;
	}
	if (c->route->body == GATE_BODY_JSON || c->route->body == GATE_BODY_MAYBE)
		e = parse_body(c, &error);
	if (!e && c->body && c->body->kind != UAR_JSON_OBJECT) {
		uar_error_where(&error, "1:1");
		e = uar_error_set(&error, UAR_EINVALID, "the body must be a JSON object");
	}
	if (e)
		gate_problem(c, e, &error);
	else
		c->route->fn(c);
}

static void on_gone(void *ctx, struct uar_http_request *r)
{
	struct call *c = r->user;

	(void)ctx;
	c->r = NULL;
	if (c->gone)
		c->gone(c);
	else if (!c->op)
		gate_call_free(c);
}

static void on_piece(void *ctx, struct uar_http_request *r, bool last)
{
	(void)ctx;
	gate_upload_piece(r->user, last);
}

static uar_err admit_own(struct call *c, struct uar_http_request *r, struct uar_error *error)
{
	bool known = false;
	uar_err e;

	c->route = gate_route(&c->g->routes, r->method, r->path, c->params, &known);
	gate_identify_own(c);
	e = check_request(c, r, known, error);
	if (!e)
		e = decode_params(c, error);
	if (!e && r->body.n > body_max(c->g, c->route))
		e = uar_error_set(error, UAR_ETOOBIG, "the input has more than %zu bytes",
				  body_max(c->g, c->route));
	return e;
}

void uar_gate_request(struct uar_gate *g, struct uar_http_request *r)
{
	struct uar_error error = { 0 };
	struct call *c = make_call(g, r);
	uar_err e = c ? admit_own(c, r, &error) : UAR_ENOMEM;

	if (e) {
		gate_call_free(c);
		uar_http_problem(r, e, &error);
		return;
	}
	r->user = c;
	on_request(g, r);
}

struct uar_http_handler uar_gate_handler(struct uar_gate *g)
{
	return (struct uar_http_handler){
		.head = on_head, .request = on_request, .gone = on_gone, .piece = on_piece, .ctx = g
	};
}

/* --- answers ------------------------------------------------------------------ */

/* What is said here concerns one caller at one moment: nobody keeps a copy. */
static void respond(struct uar_http_request *r, struct uar_http_response o)
{
	o.no_store = true;
	if (r)
		uar_http_respond(r, &o);
}

void gate_answer_headers(struct call *c, int status, struct uar_buf *json,
			 const struct uar_http_header *headers, size_t n)
{
	struct uar_http_request *r = c->r;

	if (json->err) {
		gate_problem(c, json->err, NULL);
		return;
	}
	gate_call_free(c);
	respond(r, (struct uar_http_response){
			   .status = status,
			   .content_type = "application/json",
			   .body = uar_buf_str(json),
			   .headers = headers,
			   .header_count = n,
		   });
}

void gate_answer(struct call *c, int status, struct uar_buf *json)
{
	gate_answer_headers(c, status, json, NULL, 0);
}

void gate_answer_json(struct call *c, int status, struct uar_buf *json, struct uar_jw *w)
{
	json->err = uar_jw_end(w);
	gate_answer(c, status, json);
	uar_buf_fini(json);
}

void gate_answer_read(struct call *c, uar_err e, const struct uar_error *error,
		      struct uar_buf *json)
{
	struct uar_buf own = *json; /* it is in the memory of the call */

	if (e)
		gate_problem(c, e, error);
	else
		gate_answer(c, 200, &own);
	uar_buf_fini(&own);
}

void gate_answer_type(struct call *c, int status, const char *type, uar_str body)
{
	struct uar_http_request *r = c->r;

	gate_call_free(c);
	respond(r,
		(struct uar_http_response){ .status = status, .content_type = type, .body = body });
}

/* "class#/payload": a place in an event of ours, which the caller never wrote. */
static bool names_our_event(const char *where)
{
	return where[0] != '/' && where[0] != '?' && strchr(where, '#');
}

void gate_problem(struct call *c, uar_err e, const struct uar_error *error)
{
	struct uar_http_request *r = c->r;
	struct uar_error copy = { 0 }; /* the call's own memory often holds it */

	if (error)
		copy = *error;
	if ((e == UAR_ECURSOR || e == UAR_ERESYNC) && r && !copy.where[0])
		uar_error_where(&copy, "%s", gate_cursor_source(r));
	if (names_our_event(copy.where))
		copy.where[0] = 0;
	uar_runtime_note_failure(c->g->o.runtime, e);
	if (r && c->a2a) {
		gate_a2a_refuse(c, e, &copy);
		return;
	}
	gate_call_free(c);
	if (r)
		uar_http_problem(r, e, &copy);
}

void gate_problem_more(struct call *c, uar_err e, const struct uar_error *error, const char *key,
		       uar_str json)
{
	struct uar_http_request *r = c->r;
	struct uar_buf more = uar_buf_make(UAR_LIMIT_LIST_BYTES);

	uar_buf_printf(&more, ",\"%s\":", key);
	uar_buf_add_str(&more, json);
	uar_runtime_note_failure(c->g->o.runtime, e);
	if (r)
		uar_http_problem_more(r, e, error, more.err ? UAR_STR_NONE : uar_buf_str(&more));
	gate_call_free(c);
	uar_buf_fini(&more);
}

/* --- life ----------------------------------------------------------------------- */

uar_err uar_gate_create(const struct uar_gate_options *o, struct uar_gate **out)
{
	struct uar_gate *g = uar_zalloc(sizeof *g);

	if (!g)
		return UAR_ENOMEM;
	g->o = *o;
	uar_list_init(&g->calls);
	uar_list_init(&g->streams);
	uar_list_init(&g->downloads.list);
	uar_list_init(&g->fetches);
	g->buf = uar_buf_make(UAR_LIMIT_READ_PAGE_BYTES * 4);
	g->tick.fn = gate_streams_tick;
	g->ping = uar_frame_create(UAR_STR(": ping\n\n"));
	g->own.started_us = uar_clock_mono(o->sched->clock);
	g->numbers = gate_numbers_create();
	g->mcp = gate_mcp_create(g);
	g->own.book = gate_book_create(g);
	if (!g->own.book || gate_book_load(g->own.book) || !g->numbers || !g->mcp ||
	    gate_routes_init(&g->routes) || gate_channels_init(g) || !g->ping ||
	    uar_timer_set(o->sched, &g->tick, 1000000)) {
		uar_gate_destroy(g);
		return UAR_ENOMEM;
	}
	*out = g;
	return UAR_OK;
}

/* Nobody is there to be answered, and nothing under way will end any more. */
static void drop_call(struct call *c)
{
	c->r = NULL;
	if (c->gone) {
		c->gone(c);
		return;
	}
	if (c->drop)
		c->drop(c);
	gate_call_free(c);
}

void uar_gate_destroy(struct uar_gate *g)
{
	if (!g)
		return;
	g->draining = true;
	while (!uar_list_empty(&g->calls))
		drop_call(UAR_OWNER(g->calls.next, struct call, node));
	while (!uar_list_empty(&g->streams)) {
		struct gate_stream *s = UAR_OWNER(g->streams.next, struct gate_stream, node);

		s->drop(s);
	}
	uar_timer_stop(g->o.sched, &g->tick);
	gate_routes_fini(&g->routes);
	gate_channels_fini(g);
	gate_downloads_fini(g);
	gate_a2a_fini(g);
	gate_mcp_destroy(g->mcp);
	gate_log_destroy(g->log);
	gate_page_destroy(g->downloads.page);
	gate_numbers_destroy(g->numbers);
	gate_book_destroy(g->own.book);
	gate_cache_clear(g);
	uar_frame_unref(g->ping);
	uar_buf_fini(&g->buf);
	uar_arena_fini(&g->scratch);
	uar_free(g);
}

void uar_gate_set_http(struct uar_gate *g, struct uar_http *http)
{
	g->http = http;
	gate_bound_read(&g->bound, uar_str_c(uar_http_address(http)));
}

void uar_gate_reload(struct uar_gate *g, int64_t heartbeat_us, bool cancel_as_done)
{
	g->o.heartbeat_us = heartbeat_us;
	g->o.cancel_as_done = cancel_as_done;
	gate_cache_clear(g);
}

void uar_gate_drain(struct uar_gate *g)
{
	g->draining = true;
	gate_streams_end(g);
	gate_downloads_end(g);
	UAR_LIST_EACH (it, &g->calls) {
		struct call *c = UAR_OWNER(it, struct call, node);

		if (c->hurry)
			c->hurry(c);
	}
}
