/* client_ask.c - what a server asks while it works on a call: a person, a model, for a login.
 *
 * A legacy server sends a request of its own; a modern one answers the call with the questions
 * and gets their answers with the next request. */
#include "base/alloc.h"
#include "mcp/client_int.h"

static struct ask *ask_of(struct uar_mcp_ask *a)
{
	return (struct ask *)(void *)a;
}

static void free_ask(struct ask *a)
{
	uar_list_remove(&a->node);
	a->call->open_asks--;
	uar_arena_fini(&a->arena);
	uar_free(a);
}

void client_drop_asks(struct uar_mcp_call *call)
{
	while (!uar_list_empty(&call->asks))
		free_ask(UAR_OWNER(call->asks.next, struct ask, node));
}

static void refuse_request(struct uar_mcp_client *c, uar_str id, int code, const char *why)
{
	struct uar_buf b = uar_buf_make(4096);

	if (!uar_mcp_write_error(&b, id, code, uar_str_c(why), UAR_STR_NONE))
		client_respond(c, uar_buf_str(&b));
	uar_buf_fini(&b);
}

static void answer_request(struct uar_mcp_client *c, uar_str id, uar_str result)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);

	if (!uar_mcp_write_result(&b, id, result))
		client_respond(c, uar_buf_str(&b));
	uar_buf_fini(&b);
}

/* The roots that the settings name. */
static uar_err write_roots(const struct uar_mcp_client *c, struct uar_buf *b)
{
	struct uar_jw w = uar_jw_begin(b);

	uar_jw_obj(&w, NULL);
	uar_jw_arr(&w, "roots");
	for (size_t i = 0; c->o.server.roots && c->o.server.roots[i]; i++) {
		uar_jw_obj(&w, NULL);
		uar_jw_cstr(&w, "uri", c->o.server.roots[i]);
		uar_jw_close(&w);
	}
	uar_jw_close(&w);
	uar_jw_close(&w);
	return uar_jw_end(&w);
}

/* --- answers -------------------------------------------------------------------------------- */

static void add_response(struct uar_mcp_call *call, uar_str key, uar_str result)
{
	struct uar_buf all = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	struct uar_jw w = uar_jw_begin(&all);

	uar_jw_obj(&w, NULL);
	if (call->responses.n)
		uar_jw_members(&w, uar_buf_str(&call->responses));
	uar_jw_put_raw(&w, key, result);
	uar_jw_close(&w);
	all.err = uar_jw_end(&w);
	uar_buf_fini(&call->responses);
	call->responses = all;
}

static void go_on(struct uar_mcp_call *call)
{
	if (call->open_asks)
		return;
	if (call->responses.err)
		client_fail_call(call, call->responses.err, uar_err_text(call->responses.err));
	else if (call->task.n)
		client_task_update(call);
	else if (call->responses.n)
		client_call_again(call);
	else
		client_keep_waiting(call);
}

void uar_mcp_ask_answer(struct uar_mcp_ask *base, uar_str result)
{
	struct ask *a = ask_of(base);
	struct uar_mcp_call *call = a->call;

	if (a->id.n)
		answer_request(call->c, a->id, result);
	else if (a->key.p)
		add_response(call, a->key, result);
	free_ask(a);
	go_on(call);
}

void uar_mcp_ask_refuse(struct uar_mcp_ask *base, const char *why)
{
	struct ask *a = ask_of(base);
	struct uar_mcp_call *call = a->call;

	if (base->kind == UAR_MCP_ELICIT) {
		uar_mcp_ask_answer(base, UAR_STR("{\"action\":\"decline\"}"));
	} else if (a->id.n) {
		refuse_request(call->c, a->id, -1, why ? why : "the user has not allowed it");
		free_ask(a);
		go_on(call);
	} else {
		client_fail_call(call, UAR_EFORBIDDEN,
				 why ? why
				 : base->kind == UAR_MCP_LOGIN
					 ? "the login that the server wants was declined"
					 : "what the server asked for was not allowed");
	}
}

/* --- questions ------------------------------------------------------------------------------ */

static struct ask *make_ask(struct uar_mcp_call *call, enum uar_mcp_ask_kind kind)
{
	struct ask *a = call->events.asked ? uar_zalloc(sizeof *a) : NULL;

	if (!a)
		return NULL;
	a->base.kind = kind;
	a->call = call;
	uar_arena_init(&a->arena, 0);
	uar_list_add_last(&call->asks, &a->node);
	call->open_asks++;
	return a;
}

static bool copy_params(struct ask *a, const struct uar_json *params)
{
	struct uar_json_limits limits = { .depth = UAR_LIMIT_MCP_DEPTH };
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	uar_str own = UAR_STR_NONE;

	if (params)
		uar_json_write(&b, params);
	if (!b.err)
		own = uar_arena_str(&a->arena, b.n ? uar_buf_str(&b) : UAR_STR("{}"));
	uar_buf_fini(&b);
	return own.p && !uar_json_parse(own, &limits, &a->arena, &a->base.params, NULL);
}

static void ask_now(struct ask *a)
{
	struct uar_mcp_call *call = a->call;

	client_rest_call(call);
	call->events.asked(call->events.ctx, &a->base);
}

static bool kind_of(const struct uar_mcp_client *c, uar_str method, enum uar_mcp_ask_kind *out)
{
	*out = uar_str_is(method, "elicitation/create") ? UAR_MCP_ELICIT : UAR_MCP_SAMPLE;
	return *out == UAR_MCP_ELICIT
		       ? c->o.asks
		       : c->o.samples && uar_str_is(method, "sampling/createMessage");
}

/* The call that the server asks about: that of the stream. Without one it is the only call that is
 * open; of several nobody can tell, and another owner's run must not be asked. */
static struct uar_mcp_call *call_meant(struct uar_mcp_client *c, uar_str of)
{
	struct uar_mcp_call *call = of.n ? client_find_call(c, of) : NULL;

	if (!call && !uar_list_empty(&c->calls) && c->calls.next == c->calls.prev)
		call = UAR_OWNER(c->calls.next, struct uar_mcp_call, node);
	return call;
}

static void ask_about_call(struct uar_mcp_client *c, const struct uar_mcp_message *m, uar_str of)
{
	struct uar_mcp_call *call = call_meant(c, of);
	enum uar_mcp_ask_kind kind;
	struct ask *a;

	if (!kind_of(c, m->method, &kind)) {
		refuse_request(c, m->id, UAR_MCP_METHOD_NOT_FOUND,
			       "this client does not offer that");
		return;
	}
	a = call && call->open_asks < UAR_LIMIT_MCP_ASKS ? make_ask(call, kind) : NULL;
	if (a) {
		a->id = uar_arena_str(&a->arena, m->id);
		if (a->id.p && copy_params(a, m->params)) {
			ask_now(a);
			return;
		}
		free_ask(a);
	}
	refuse_request(c, m->id, UAR_MCP_INTERNAL_ERROR,
		       kind == UAR_MCP_SAMPLE ? "a model is asked in calls of runs alone, and only "
						"where the call that asks is known"
					      : "nobody can be asked now");
}

void client_asked(struct uar_mcp_client *c, const struct uar_mcp_message *m, uar_str of)
{
	struct uar_buf b = uar_buf_make(65536);

	if (uar_str_is(m->method, "ping"))
		answer_request(c, m->id, UAR_STR("{}"));
	else if (uar_str_is(m->method, "roots/list") && !write_roots(c, &b))
		answer_request(c, m->id, uar_buf_str(&b));
	else
		ask_about_call(c, m, of);
	uar_buf_fini(&b);
}

void client_ask_cancelled(struct uar_mcp_client *c, uar_str id)
{
	UAR_LIST_EACH (it, &c->calls) {
		struct uar_mcp_call *call = UAR_OWNER(it, struct uar_mcp_call, node);

		UAR_LIST_EACH (at, &call->asks) {
			struct ask *a = UAR_OWNER(at, struct ask, node);

			if (!a->id.n || !uar_str_eq(a->id, id))
				continue;
			if (call->events.unasked)
				call->events.unasked(call->events.ctx, &a->base);
			free_ask(a);
			go_on(call);
			return;
		}
	}
}

/* A question that needs nobody is answered at once. */
static bool ask_one(struct uar_mcp_call *call, const struct uar_json *request)
{
	uar_str method = uar_json_text(request, "method");
	struct uar_buf roots = uar_buf_make(65536);
	enum uar_mcp_ask_kind kind;
	struct ask *a;
	bool ok = false;

	if (uar_str_is(method, "roots/list")) {
		ok = !write_roots(call->c, &roots);
		add_response(call, request->key, uar_buf_str(&roots));
	} else if (kind_of(call->c, method, &kind) && (a = make_ask(call, kind))) {
		a->key = uar_arena_str(&a->arena, request->key);
		ok = a->key.p && copy_params(a, uar_json_get(request, UAR_STR("params")));
	}
	uar_buf_fini(&roots);
	return ok;
}

bool client_ask_all(struct uar_mcp_call *call, const struct uar_json *requests)
{
	struct uar_list *it;
	size_t n = 0;

	if (requests->kind != UAR_JSON_OBJECT ||
	    requests->count + call->open_asks > UAR_LIMIT_MCP_ASKS)
		return false;
	for (const struct uar_json *r = uar_json_first(requests); r; r = r->next)
		if (!ask_one(call, r))
			return false;
	if (!call->open_asks) {
		go_on(call);
		return true;
	}
	/* An answer follows later, never from inside. */
	for (it = call->asks.next; n < call->open_asks && it != &call->asks; n++) {
		struct ask *a = UAR_OWNER(it, struct ask, node);

		it = it->next;
		ask_now(a);
	}
	return true;
}

/* --- logins --------------------------------------------------------------------------------- */

void client_ask_login(struct uar_mcp_call *call, const char *url)
{
	struct ask *a = make_ask(call, UAR_MCP_LOGIN);
	uar_str own = a ? uar_arena_str(&a->arena, uar_str_c(url)) : UAR_STR_NONE;

	if (!own.p) {
		client_fail_call(call, UAR_EFORBIDDEN,
				 "the server wants a login, and nobody can be asked for it");
		return;
	}
	a->base.url = own.p;
	ask_now(a);
}

static void end_login(struct uar_mcp_call *call, bool ok, const char *reason)
{
	UAR_LIST_EACH (it, &call->asks) {
		struct ask *a = UAR_OWNER(it, struct ask, node);

		if (a->base.kind != UAR_MCP_LOGIN)
			continue;
		a->base.failed = !ok;
		if (call->events.unasked)
			call->events.unasked(call->events.ctx, &a->base);
		free_ask(a);
	}
	call->parked = false;
	if (ok)
		client_call_again(call);
	else
		client_fail_call(call, UAR_EFORBIDDEN, reason);
}

void client_login_over(struct uar_mcp_client *c, bool ok, const char *reason)
{
	UAR_LIST_EACH (it, &c->calls) {
		struct uar_mcp_call *call = UAR_OWNER(it, struct uar_mcp_call, node);

		if (call->parked)
			end_login(call, ok, reason);
	}
}
