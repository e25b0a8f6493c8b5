/* plan.c - the facts of a workflow run: how the state of its nodes changed, and the calls that
 * follow.
 *
 * Each node that changed has a run.status of its own. The last run.status of a plan has the calls:
 * the next worker reads them there, also after an answer or a restart. */
#include "core/emit.h"

static const char *const phase = "workflow";

static void begin_status(struct emit *e, struct uar_jw *w, uar_str title)
{
	uar_jw_cstr(w, "phase", phase);
	uar_jw_cstr(w, "status", uar_status_text(e->move.to));
	uar_jw_str(w, "title", title);
	uar_jw_obj(w, "metadata");
}

static void node_changed(struct emit *e, const struct uar_json *node)
{
	uar_str name = uar_json_text(node, "title");
	uar_str title = uar_arena_printf(e->env->arena, "%.*s: %.*s",
					 UAR_FMT(name.n ? name : uar_json_text(node, "id")),
					 UAR_FMT(uar_json_text(node, "status")));
	struct uar_jw *w = uar_emit_begin(e);

	begin_status(e, w, title.p ? title : UAR_STR("Node"));
	uar_jw_tree(w, "workflow_node", node);
	uar_jw_close(w);
	uar_emit(e, UAR_EV_RUN_STATUS, EMIT_RUN);
}

static void planned(struct emit *e, const struct uar_plan *p)
{
	struct uar_jw *w = uar_emit_begin(e);

	begin_status(e, w, p->calls.n || p->blob.n ? UAR_STR("Making calls") : UAR_STR("Going on"));
	uar_jw_obj(w, "workflow");
	uar_jw_int(w, "made_us", p->made_us);
	uar_jw_raw(w, "calls", p->index.n ? p->index : UAR_STR("[]"));
	if (!p->blob.n)
		uar_jw_raw(w, "tool_calls", p->calls.n ? p->calls : UAR_STR("[]"));
	uar_jw_close(w);
	uar_jw_close(w);
	if (p->blob.n)
		uar_emit_refer(e, "tool_calls_ref", p->blob);
	uar_emit(e, UAR_EV_RUN_STATUS, EMIT_RUN);
}

static void waiting(struct emit *e, int64_t due_us)
{
	int64_t wait_ms = due_us > e->env->now_us ? (due_us - e->env->now_us) / 1000 + 1 : 1;
	struct uar_jw *w;

	uar_core_wait_for(e, e->r->what.agent_id, "a node of the workflow waits for its time",
			  due_us);
	w = uar_emit_begin(e);
	begin_status(e, w, UAR_STR("Waiting for a time"));
	uar_jw_int(w, "retry", 1);
	uar_jw_int(w, "wait_ms", wait_ms);
	uar_jw_time(w, "due_at", e->env->now_us + wait_ms * 1000);
	uar_jw_close(w);
	uar_emit(e, UAR_EV_RUN_STATUS, EMIT_RUN);
}

void uar_core_plan(struct emit *e, const struct uar_plan *p)
{
	const struct uar_json *nodes = NULL;

	if (p->due_us) {
		waiting(e, p->due_us);
		return;
	}
	if (p->nodes.n && !e->err)
		e->err = uar_json_parse(p->nodes, NULL, e->env->arena, &nodes, e->error);
	for (const struct uar_json *n = uar_json_first(nodes); n && !e->err; n = n->next)
		node_changed(e, n);
	if (!e->err)
		planned(e, p);
}

uar_err uar_core_fold_plan(struct uar_run *r, const struct uar_json *p)
{
	const struct uar_json *more = uar_json_get(p, UAR_STR("metadata"));
	struct uar_run_rare *rare;

	r->row_changed |= uar_json_get(more, UAR_STR("due_at")) != NULL;
	if (!uar_json_get(more, UAR_STR("workflow")))
		return UAR_OK;
	rare = uar_core_change_rare(r);
	if (!rare)
		return UAR_ENOMEM;
	rare->tools.rounds++;
	return UAR_OK;
}
