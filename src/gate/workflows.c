/* workflows.c - the agents that are workflows, the types of their nodes, and the check of a graph
 * while it is drawn. Definitions are kept as those of all agents are (agents.c). */
#include "agent/definition.h"
#include "agent/registry.h"
#include "flow/flow.h"
#include "gate/kept.h"
#include "gate/limits.h"
#include "json/limits.h"
#include "work/work.h"

static bool is_workflow(const struct uar_agent *a)
{
	return a && a->definition && a->entry == UAR_ENTRY_WORKFLOW;
}

void gate_put_workflow_facts(struct uar_jw *w, const struct uar_agent *a)
{
	const struct uar_json *workflow =
		uar_json_get(a->definition->def.json, UAR_STR("workflow"));
	const struct uar_json *nodes = uar_json_get(workflow, UAR_STR("nodes"));
	const struct uar_json *edges = uar_json_get(workflow, UAR_STR("edges"));

	uar_jw_int(w, "nodes", nodes ? nodes->count : 0);
	uar_jw_int(w, "edges", edges ? edges->count : 0);
}

void gate_list_workflows(struct call *c)
{
	const struct uar_workers *work = c->g->o.work;
	struct uar_buf b = uar_buf_make(UAR_LIMIT_SYSTEM_ANSWER_BYTES);
	struct uar_jw w = uar_jw_begin(&b);
	const struct uar_agent *a;

	uar_jw_obj(&w, NULL);
	uar_jw_arr(&w, "workflows");
	for (size_t i = 0; (a = uar_workers_agent_at(work, i)); i++) {
		if (!is_workflow(a) || !uar_workers_shows(work, &c->owner, a))
			continue;
		uar_jw_obj(&w, NULL);
		gate_put_workflow(&w, a);
		uar_jw_close(&w);
	}
	uar_jw_close(&w);
	uar_jw_close(&w);
	gate_answer_json(c, 200, &b, &w);
}

void gate_get_workflow(struct call *c)
{
	const struct uar_agent *a = uar_workers_agent(c->g->o.work, &c->owner, c->params[0]);
	struct uar_buf b = uar_buf_make(UAR_LIMIT_SYSTEM_ANSWER_BYTES);
	struct uar_jw w = uar_jw_begin(&b);
	struct uar_error error = { 0 };
	uint64_t version = 0;
	uar_err e = gate_query_u64(c, "version", 0, &version, &error);

	if (e) {
		gate_problem(c, e, &error);
	} else if (version) {
		gate_look_up_kept(c, GATE_KEPT_WORKFLOW, (int64_t)(version & INT64_MAX));
	} else if (!is_workflow(a)) {
		gate_answer_not_kept(c, GATE_KEPT_WORKFLOW);
	} else {
		uar_jw_obj(&w, NULL);
		gate_put_workflow(&w, a);
		uar_jw_tree(&w, "definition", a->definition->def.json);
		uar_jw_close(&w);
		b.err = uar_jw_end(&w);
		gate_answer(c, 200, &b);
	}
	uar_buf_fini(&b);
}

void gate_list_workflow_versions(struct call *c)
{
	gate_look_up_kept(c, GATE_KEPT_WORKFLOW, 0);
}

void gate_put_workflow_definition(struct call *c)
{
	uar_str entry =
		uar_json_str(uar_json_pointer(c->body, UAR_STR("/runtime/entry")), UAR_STR(""));
	struct uar_error error = { 0 };

	if (uar_str_is(entry, "workflow.run")) {
		gate_put_kept(c, GATE_KEPT_WORKFLOW, gate_answer_kept_change);
		return;
	}
	uar_error_where(&error, "/runtime/entry");
	gate_problem(c,
		     uar_error_set(&error, UAR_ESCHEMA,
				   "a workflow has the entry workflow.run; other agents are kept "
				   "with PUT /api/agents/:agent_id"),
		     &error);
}

void gate_remove_workflow(struct call *c)
{
	if (is_workflow(uar_workers_agent(c->g->o.work, &c->owner, c->params[0])))
		gate_remove_kept(c, GATE_KEPT_WORKFLOW, gate_answer_kept_change);
	else
		gate_answer_not_kept(c, GATE_KEPT_WORKFLOW);
}

void gate_workflow_types(struct call *c)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_SYSTEM_ANSWER_BYTES);
	struct uar_jw w = uar_jw_begin(&b);

	uar_jw_obj(&w, NULL);
	uar_flow_write_types(&w);
	uar_jw_close(&w);
	gate_answer_json(c, 200, &b, &w);
}

/* --- the check ------------------------------------------------------------------------------ */

/* What is wrong besides the graph: the first of it. */
static void check_definition(const struct uar_json *definition, struct uar_flow_problems *all)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	struct uar_flow_problem *p;
	struct uar_error error = { 0 };
	struct uar_definition d;
	uar_err e;

	uar_json_write(&text, definition);
	e = text.err ? text.err : uar_definition_read(uar_buf_str(&text), &d, &error);
	uar_buf_fini(&text);
	if (!e) {
		uar_definition_fini(&d);
		return;
	}
	p = uar_flow_problem_add(all, "definition", false);
	if (!p)
		return;
	snprintf(p->pointer, sizeof p->pointer, "%s", error.where);
	snprintf(p->message, sizeof p->message, "%.230s",
		 error.text[0] ? error.text : uar_err_text(e));
}

static void warn_agent(struct call *c, struct uar_flow_problems *all, const struct uar_flow *f,
		       size_t node)
{
	const struct uar_flow_node *n = &f->nodes[node];
	uar_str name = uar_json_text(n->config, "agent");
	struct uar_flow_problem *p;

	if (n->type != UAR_FLOW_AGENT || uar_workers_agent(c->g->o.work, &c->owner, name))
		return;
	p = uar_flow_problem_add(all, "unknown_agent", true);
	if (!p)
		return;
	p->node = n->id;
	snprintf(p->pointer, sizeof p->pointer, "/workflow/nodes/%zu/config/agent", node);
	snprintf(p->message, sizeof p->message, "no agent is named \"%.*s\"",
		 UAR_FMT(uar_str_utf8_prefix(name, 100)));
	snprintf(p->next_step, sizeof p->next_step, "GET /api/agents lists those that there are.");
}

void gate_check_workflow(struct call *c)
{
	const struct uar_json *definition = uar_json_get(c->body, UAR_STR("definition"));
	struct uar_flow_problems *all = uar_arena_alloc(&c->arena, sizeof *all);
	struct uar_flow *f = uar_arena_alloc(&c->arena, sizeof *f);
	struct uar_buf b = uar_buf_make(UAR_LIMIT_SYSTEM_ANSWER_BYTES);
	struct uar_jw w = uar_jw_begin(&b);
	struct uar_error error = { 0 };

	if (!definition || definition->kind != UAR_JSON_OBJECT || !all || !f) {
		uar_error_where(&error, "/definition");
		gate_problem(c,
			     all && f ? uar_error_set(&error, UAR_EINVALID, "must be an object")
				      : UAR_ENOMEM,
			     &error);
		return;
	}
	uar_flow_check(definition, f, all);
	if (all->no_memory) {
		gate_problem(c, UAR_ENOMEM, &error);
		return;
	}
	if (!all->errors)
		check_definition(definition, all);
	for (size_t i = 0; !all->errors && i < f->node_count; i++)
		warn_agent(c, all, f, i);
	uar_jw_obj(&w, NULL);
	uar_flow_write_problems(&w, all);
	uar_jw_close(&w);
	gate_answer_json(c, 200, &b, &w);
}
