/* agui_capabilities.c - what an agent can do, as AG-UI and CopilotKit clients ask it. */
#include "agent/registry.h"
#include "gate/gate_int.h"
#include "gate/limits.h"
#include "work/work.h"

static void put_flags(struct uar_jw *w, const char *group, const char *const *names)
{
	uar_jw_obj(w, group);
	for (; *names; names++)
		uar_jw_bool(w, *names, true);
	uar_jw_close(w);
}

static void put_identity(struct uar_jw *w, const struct uar_agent *a)
{
	uar_jw_obj(w, "identity");
	uar_jw_cstr(w, "name", a->title ? a->title : a->id);
	uar_jw_cstr(w, "type", "uar");
	if (a->doc)
		uar_jw_cstr(w, "description", a->doc);
	if (a->definition)
		uar_jw_cstr(w, "version", a->definition->def.revision);
	uar_jw_close(w);
}

/* A model takes tools of the client and may use those of the server. */
static void put_tools(struct uar_jw *w, const struct call *c, const struct uar_agent *a)
{
	struct uar_inventory_ask ask = { .owner = &c->owner, .agent_id = uar_str_c(a->id) };
	struct uar_buf b = uar_buf_make(UAR_LIMIT_TOOLS_ANSWER);
	struct uar_arena arena;
	const struct uar_json *json = NULL;

	uar_arena_init(&arena, UAR_LIMIT_TOOLS_ANSWER * 4);
	if (uar_workers_inventory(c->g->o.work, &ask, &b, NULL) ||
	    uar_json_parse(uar_buf_str(&b), NULL, &arena, &json, NULL))
		json = NULL;
	uar_jw_obj(w, "tools");
	uar_jw_bool(w, "supported", true);
	uar_jw_arr(w, "items");
	for (const struct uar_json *t = uar_json_first(uar_json_get(json, UAR_STR("tools"))); t;
	     t = t->next) {
		uar_jw_obj(w, NULL);
		uar_jw_str(w, "name", uar_json_text(t, "name"));
		uar_jw_str(w, "description", uar_json_text(t, "description"));
		uar_jw_close(w);
	}
	uar_jw_close(w);
	uar_jw_bool(w, "parallelCalls", true);
	uar_jw_bool(w, "clientProvided", true);
	uar_jw_close(w);
	uar_arena_fini(&arena);
	uar_buf_fini(&b);
}

void gate_put_capabilities(struct uar_jw *w, const char *key, const struct call *c,
			   const struct uar_agent *a)
{
	static const char *const transport[] = { "streaming", "resumable", "httpBinary", NULL };
	static const char *const state[] = { "snapshots", "deltas", "memory", "persistentState",
					     NULL };
	static const char *const parts[] = { "image", "pdf", "file", NULL };
	static const char *const reasoning[] = { "supported", "streaming", NULL };
	static const char *const people[] = { "supported", "approvals", "interrupts", NULL };

	uar_jw_obj(w, key);
	put_identity(w, a);
	put_flags(w, "transport", transport);
	if (a->entry == UAR_ENTRY_LLM) {
		put_tools(w, c, a);
		put_flags(w, "reasoning", reasoning);
		uar_jw_obj(w, "multimodal");
		put_flags(w, "input", parts);
		uar_jw_close(w);
	}
	put_flags(w, "state", state);
	put_flags(w, "humanInTheLoop", people);
	uar_jw_close(w);
}

void gate_agui_capabilities(struct call *c)
{
	const struct uar_agent *a = uar_workers_agent(c->g->o.work, &c->owner, c->params[0]);
	struct uar_buf b = uar_buf_make(UAR_LIMIT_SYSTEM_ANSWER_BYTES);
	struct uar_jw w = uar_jw_begin(&b);
	struct uar_error error = { 0 };
	uar_err e = a ? gate_check_protocol(c, c->params[0], UAR_PROTOCOL_AG_UI, &error)
		      : uar_error_set(&error, UAR_ENOTFOUND, "no agent is named \"%.*s\"",
				      UAR_FMT(c->params[0]));

	if (e) {
		gate_problem(c, e, &error);
		return;
	}
	gate_put_capabilities(&w, NULL, c, a);
	gate_answer_json(c, 200, &b, &w);
}
