/* agents.c - the agents that runs can name, and their definitions. */
#include "agent/registry.h"
#include "gate/kept.h"
#include "gate/limits.h"

size_t gate_broken_agents(const struct uar_gate *g)
{
	const struct uar_registry *r = uar_workers_registry(g->o.work);
	size_t n = 0;

	while (r && uar_registry_broken_at(r, n))
		n++;
	return n;
}

static void put_source(struct uar_jw *w, const struct uar_registered *entry)
{
	const struct uar_json *metadata = uar_json_get(entry->def.json, UAR_STR("metadata"));
	const struct uar_json *tags = uar_json_get(metadata, UAR_STR("tags"));

	uar_jw_cstr(w, "source", uar_agent_source_names[entry->source]);
	uar_jw_cstr(w, "revision", entry->def.revision);
	if (entry->file[0])
		uar_jw_cstr(w, "file", entry->file);
	if (entry->version)
		uar_jw_int(w, "version", entry->version);
	if (tags)
		uar_jw_tree(w, "tags", tags);
}

/* Why it cannot run, and what helps. */
static void put_able(struct uar_jw *w, const struct uar_workers *work, const struct uar_agent *a)
{
	struct uar_error error = { 0 };
	uar_err e = uar_workers_check_agent(work, a, &error);

	uar_jw_bool(w, "runnable", e == UAR_OK);
	if (!e)
		return;
	uar_jw_cstr(w, "reason", error.text[0] ? error.text : uar_err_text(e));
	uar_jw_cstr(w, "next_step",
		    "Install it, or name its path in a definition (runtime.backend.program).");
}

void gate_put_workflow(struct uar_jw *w, const struct uar_agent *a)
{
	uar_jw_cstr(w, "workflow_id", a->id);
	uar_jw_cstr(w, "title", a->title);
	uar_jw_cstr(w, "description", a->doc);
	put_source(w, a->definition);
	gate_put_workflow_facts(w, a);
}

static void put_agent(struct uar_jw *w, const struct uar_workers *work, const struct uar_agent *a)
{
	uar_jw_cstr(w, "agent_id", a->id);
	uar_jw_cstr(w, "title", a->title);
	uar_jw_cstr(w, "description", a->doc);
	uar_jw_cstr(w, "entry",
		    a->definition ? a->definition->def.info.entry.p : uar_entry_name(a->entry));
	if (a->entry == UAR_ENTRY_WORKFLOW)
		uar_jw_cstr(w, "kind", "workflow");
	if (a->info)
		uar_jw_bool(w, "takes_working_dir", a->info->takes_working_dir);
	put_able(w, work, a);
	if (a->definition)
		put_source(w, a->definition);
}

static void put_broken(struct uar_jw *w, const struct uar_registry *r)
{
	const struct uar_registry_broken *b;

	uar_jw_arr(w, "broken");
	for (size_t i = 0; r && (b = uar_registry_broken_at(r, i)); i++) {
		uar_jw_obj(w, NULL);
		uar_jw_cstr(w, "file", b->file);
		uar_jw_cstr(w, "error", b->text);
		uar_jw_cstr(w, "agent_id", b->agent_id[0] ? b->agent_id : NULL);
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

void gate_list_agents(struct call *c)
{
	const struct uar_workers *work = c->g->o.work;
	struct uar_buf b = uar_buf_make(UAR_LIMIT_SYSTEM_ANSWER_BYTES);
	struct uar_jw w = uar_jw_begin(&b);
	const struct uar_agent *a;

	uar_jw_obj(&w, NULL);
	uar_jw_arr(&w, "agents");
	for (size_t i = 0; (a = uar_workers_agent_at(work, i)); i++) {
		if (!uar_workers_shows(work, &c->owner, a))
			continue;
		uar_jw_obj(&w, NULL);
		put_agent(&w, c->g->o.work, a);
		uar_jw_close(&w);
	}
	uar_jw_close(&w);
	put_broken(&w, uar_workers_registry(work));
	uar_jw_close(&w);
	gate_answer_json(c, 200, &b, &w);
}

/* --- one of them ---------------------------------------------------------------------------- */

static void put_inactive(struct uar_jw *w, const struct uar_definition *d)
{
	struct uar_definition_inactive row;

	uar_jw_arr(w, "inactive");
	for (size_t i = 0; uar_definition_inactive(d, i, &row); i++) {
		uar_jw_obj(w, NULL);
		uar_jw_cstr(w, "pointer", row.pointer);
		uar_jw_cstr(w, "why", row.why);
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

static void answer_agent(struct call *c, const struct uar_agent *a)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_SYSTEM_ANSWER_BYTES);
	struct uar_jw w = uar_jw_begin(&b);

	uar_jw_obj(&w, NULL);
	put_agent(&w, c->g->o.work, a);
	uar_workers_write_choices(c->g->o.work, a, &w);
	if (a->definition) {
		put_inactive(&w, &a->definition->def);
		uar_jw_tree(&w, "definition", a->definition->def.json);
	}
	uar_jw_close(&w);
	gate_answer_json(c, 200, &b, &w);
}

void gate_list_agent_versions(struct call *c)
{
	gate_look_up_kept(c, GATE_KEPT_AGENT, 0);
}

void gate_get_agent(struct call *c)
{
	const struct uar_agent *a = uar_workers_agent(c->g->o.work, &c->owner, c->params[0]);
	struct uar_error error = { 0 };
	uint64_t version = 0;
	uar_err e = gate_query_u64(c, "version", 0, &version, &error);

	if (e)
		gate_problem(c, e, &error);
	else if (version)
		gate_look_up_kept(c, GATE_KEPT_AGENT, (int64_t)(version & INT64_MAX));
	else if (a)
		answer_agent(c, a);
	else
		gate_answer_not_kept(c, GATE_KEPT_AGENT);
}

void gate_put_agent(struct call *c)
{
	gate_put_kept(c, GATE_KEPT_AGENT, gate_answer_kept_change);
}

void gate_remove_agent(struct call *c)
{
	gate_remove_kept(c, GATE_KEPT_AGENT, gate_answer_kept_change);
}
