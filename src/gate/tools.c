/* tools.c - what models may ask for: the registry, as it is. */
#include "gate/gate_int.h"
#include "tool/tool.h"

static const char *const effects[] = {
	[UAR_TOOL_READ_ONLY] = "read_only",
	[UAR_TOOL_IDEMPOTENT] = "idempotent",
	[UAR_TOOL_ONCE] = "once",
};

/* What is declared for each call, and what follows from it. */
static void put_rules(struct uar_jw *w, const struct uar_tool *t)
{
	uar_jw_cstr(w, "effect", effects[t->effect]);
	uar_jw_cstr(w, "policy", t->ask ? "ask" : "allowed");
	uar_jw_bool(w, "is_read_only", t->effect == UAR_TOOL_READ_ONLY);
	uar_jw_bool(w, "is_concurrency_safe", t->effect == UAR_TOOL_READ_ONLY);
	uar_jw_bool(w, "is_destructive", t->destructive);
	uar_jw_cstr(w, "interrupt_behavior", "cancel");
	uar_jw_int(w, "timeout_ms", t->timeout_us / 1000);
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
	uar_jw_cstr(w, "runtime_owner", "uar");
	uar_jw_null(w, "auth"); /* none of them wants any */
	uar_jw_raw(w, "tags", t->tags);
	put_rules(w, t);
	uar_jw_raw(w, "input_schema", t->input_schema);
	if (t->output_schema.n)
		uar_jw_raw(w, "output_schema", t->output_schema);
	else
		uar_jw_null(w, "output_schema");
	uar_jw_close(w);
}

void gate_list_tools(struct call *c)
{
	struct uar_tools *tools = uar_runtime_tools(c->g->o.runtime);
	struct uar_buf b = uar_buf_make(UAR_LIMIT_TOOLS_ANSWER);
	struct uar_jw w = uar_jw_begin(&b);
	const struct uar_tool *t;

	uar_jw_obj(&w, NULL);
	uar_jw_arr(&w, "tools");
	for (size_t i = 0; tools && (t = tools->ops->at(tools, i)); i++)
		put_tool(&w, t);
	uar_jw_close(&w);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	gate_answer(c, 200, &b);
	uar_buf_fini(&b);
}
