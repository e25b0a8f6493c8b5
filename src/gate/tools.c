/* tools.c - what models may ask for: the registry as it is, and calls without a run.
 *
 * A call that changes something belongs into a run, where it is written down before it
 * happens; without one only what changes nothing is done. */
#include "gate/gate_int.h"
#include "gate/limits.h"
#include "json/jw.h"
#include "tool/tool.h"
#include "tool/toolbox.h"

/* What is so for every agent: a policy may forbid more. */
static const char *policy_of(const struct uar_tool *t)
{
	switch (t->state) {
	case UAR_TOOL_UNAVAILABLE: return "unavailable";
	case UAR_TOOL_DENIED: return "denied";
	case UAR_TOOL_SANDBOXED: return t->ask ? "ask" : "sandboxed";
	case UAR_TOOL_AVAILABLE: return t->ask ? "ask" : "allowed";
	}
	return "unavailable";
}

static void put_tool(struct uar_jw *w, const struct uar_tool *t)
{
	uar_jw_obj(w, NULL);
	uar_jw_str(w, "tool_id", t->tool_id);
	uar_jw_str(w, "name", t->name);
	uar_jw_str(w, "model_name", t->model_name);
	uar_jw_str(w, "description", t->description);
	uar_jw_str(w, "version", t->version);
	uar_jw_str(w, "transport", t->transport);
	if (t->auth.n)
		uar_jw_raw(w, "auth", t->auth);
	else
		uar_jw_null(w, "auth");
	uar_tool_write_rules(w, t, policy_of(t));
	uar_jw_int(w, "timeout_ms", t->timeout_us / 1000);
	uar_jw_raw(w, "input_schema", t->input_schema);
	if (t->output_schema.n)
		uar_jw_raw(w, "output_schema", t->output_schema);
	else
		uar_jw_null(w, "output_schema");
	uar_jw_close(w);
}

void gate_list_tools(struct call *c)
{
	struct uar_tools *tools = uar_workers_tools(c->g->o.work);
	struct uar_buf b = uar_buf_make(UAR_LIMIT_TOOLS_ANSWER);
	struct uar_jw w = uar_jw_begin(&b);
	const struct uar_tool *t;

	uar_jw_obj(&w, NULL);
	uar_jw_int(&w, "generation", (int64_t)uar_tools_generation(tools));
	uar_jw_arr(&w, "tools");
	for (size_t i = 0; tools && (t = tools->ops->at(tools, i)); i++)
		if (uar_tool_is_for(t, &c->owner))
			put_tool(&w, t);
	uar_jw_close(&w);
	uar_jw_close(&w);
	gate_answer_json(c, 200, &b, &w);
}

/* --- a call without a run ---------------------------------------------------------- */

struct calling {
	struct call *c;
	struct uar_tools *tools;
	struct uar_toolbox *box; /* of a definition; NULL: none was named */
	const struct uar_tool *tool;
	struct uar_tool_call *at_work;
};

struct call_body {
	uar_str tool_id;
	const struct uar_json *arguments;
	uar_str agent_id, revision; /* whose own tools are meant, too; empty: nobody's */
};

static void put_failure(struct uar_jw *w, const struct uar_tool_result *r)
{
	uar_jw_obj(w, "error");
	uar_jw_str(w, "failure_category", r->category);
	uar_jw_str(w, "message", r->message);
	uar_jw_bool(w, "retryable", r->retryable);
	uar_jw_close(w);
}

static void let_go(struct calling *k)
{
	uar_tools_let_go(k->tools, k->tool);
	uar_toolbox_unref(k->box);
}

/* A tool that failed was called all the same. */
static void on_done(void *ctx, const struct uar_tool_result *r)
{
	struct calling *k = ctx;
	struct uar_buf b = uar_buf_make(UAR_LIMIT_TOOLS_ANSWER);
	struct uar_jw w = uar_jw_begin(&b);

	k->c->gone = NULL;
	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "tool_id", k->tool->tool_id);
	uar_jw_str(&w, "version", k->tool->version);
	uar_jw_bool(&w, "ok", r->ok);
	if (!r->ok)
		put_failure(&w, r);
	else if (r->output.n)
		uar_jw_raw(&w, "output", r->output);
	else
		uar_jw_null(&w, "output");
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	let_go(k);
	gate_answer(k->c, 200, &b);
	uar_buf_fini(&b);
}

static void on_gone(struct call *c)
{
	struct calling *k = c->op;

	k->tools->ops->cancel(k->tools, k->at_work);
	let_go(k);
	gate_call_free(c);
}

/* The place in the request, not in the arguments; a column of JSON stays what it is. */
static void name_place(struct uar_error *error)
{
	struct uar_error as = *error;

	if (error->where[0] == '/' || error->where[0] == 0)
		uar_error_where(error, "/arguments%.120s", as.where);
}

static uar_err find_tool(struct calling *k, const struct call_body *b, struct uar_error *error)
{
	const struct uar_inventory_ask ask = { .owner = &k->c->owner, .agent_id = b->agent_id };
	struct uar_workers *work = k->c->g->o.work;
	uar_err e = b->agent_id.n ? uar_workers_toolbox(work, &ask, b->revision, &k->box, error)
				  : UAR_OK;

	if (e)
		return e;
	k->tools = k->box ? uar_toolbox_tools(k->box) : uar_workers_tools(work);
	k->tool = uar_tools_find(k->tools, &k->c->owner, b->tool_id);
	if (!k->tool)
		e = uar_error_set(error, UAR_ENOTFOUND, "there is no such tool");
	else if (k->tool->state == UAR_TOOL_UNAVAILABLE || k->tool->state == UAR_TOOL_DENIED)
		e = uar_error_set(error, UAR_EFORBIDDEN, "it cannot be used: %.*s",
				  UAR_FMT(k->tool->state_reason));
	else if (k->tool->effect != UAR_TOOL_READ_ONLY)
		e = uar_error_set(error, UAR_EFORBIDDEN,
				  "a tool that changes something is called by a run");
	if (e)
		uar_error_where(error, "/tool_id");
	return e;
}

static uar_err begin(struct calling *k, struct uar_error *error)
{
	static const struct uar_json_field fields[] = {
		{ "tool_id", UAR_FIELD_STR, true, offsetof(struct call_body, tool_id) },
		{ "arguments", UAR_FIELD_OBJECT, false, offsetof(struct call_body, arguments) },
		{ "agent_id", UAR_FIELD_STR, false, offsetof(struct call_body, agent_id) },
		{ "revision", UAR_FIELD_STR, false, offsetof(struct call_body, revision) },
	};
	struct uar_tool_events events = { .done = on_done, .ctx = k };
	struct uar_tool_caller caller = { .owner = k->c->owner };
	struct uar_tool_request r = { .input = UAR_STR("{}"), .caller = &caller };
	struct call_body body = { 0 };
	uar_err e = uar_json_read(k->c->body, fields, ARRAY_LEN(fields), true, &body, error);

	if (!e)
		e = find_tool(k, &body, error);
	if (e)
		return e;
	r.tool = k->tool;
	caller.agent_id = body.agent_id;
	if (body.arguments)
		r.input = body.arguments->text;
	uar_tools_hold(k->tools, k->tool);
	e = k->tools->ops->start(k->tools, &r, &events, &k->at_work, error);
	if (e) {
		uar_tools_let_go(k->tools, k->tool);
		name_place(error);
	}
	return e;
}

void gate_call_tool(struct call *c)
{
	struct calling *k = uar_arena_alloc(&c->arena, sizeof *k);
	struct uar_error error = { 0 };
	uar_err e = UAR_ENOMEM;

	if (k) {
		k->c = c;
		e = begin(k, &error);
	}
	if (e) {
		if (k)
			uar_toolbox_unref(k->box);
		gate_problem(c, e, &error);
		return;
	}
	c->op = k;
	c->gone = on_gone;
}
