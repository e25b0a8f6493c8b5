/* fanout_check.c - may a child agent or a job still be at work?
 *
 * What has started it may have been stopped just before the server was: then a start stops it,
 * too. The same is asked when an agent in a session of its own starts another one, as the agent
 * may be closed at the same moment, in its parent's session. */
#include "engine/fanout_int.h"

struct check {
	struct rt_op under_way;
	struct uar_runtime *rt;
	struct uar_arena arena;
	struct uar_owner owner;
	bool job;   /* it is a job; else a child agent */
	uar_str id; /* of it */
	/* What is looked at, of it and then of the agents above it. */
	uar_str task_id, run_id, session_id;
	bool detached; /* neither the run nor the agent above concern it */
	struct uar_rows_query row;
	struct uar_runs_query run;
};

static void free_check(struct check *c)
{
	uar_store_rows_fini(&c->row);
	uar_store_query_fini(&c->run);
	uar_arena_fini(&c->arena);
	uar_free(c);
}

static void drop(struct rt_op *under_way)
{
	free_check(UAR_OWNER(under_way, struct check, under_way));
}

static void finish(struct check *c, bool stop)
{
	if (stop && c->job)
		rt_fanout_cancel_job(c->rt, &c->owner, c->id);
	else if (stop)
		rt_fanout_close_child(c->rt, &c->owner, c->id);
	rt_op_end(&c->under_way);
	free_check(c);
}

static void ask_row(struct check *c, enum uar_row_kind kind, uar_str id,
		    void (*done)(struct uar_rows_query *q))
{
	struct uar_store *store = c->rt->o.store;

	uar_store_rows_fini(&c->row);
	c->row = (struct uar_rows_query){ .owner = c->owner, .kind = kind, .id = id, .done = done };
	if (store->ops->rows(store, &c->row))
		finish(c, false);
}

static void check_run(struct check *c);

/* --- the agent above it ---------------------------------------------------------------------- */

static void above_found(struct uar_rows_query *q)
{
	struct check *c = UAR_OWNER(q, struct check, row);
	struct uar_row_subagent s;

	if (q->err || uar_row_unpack(&q->rows[0], &c->arena, &s, sizeof s, NULL)) {
		finish(c, false);
		return;
	}
	if (uar_str_is(q->rows[0].status, "closed") || s.resumed) {
		finish(c, !s.resumed);
		return;
	}
	c->run_id = uar_arena_str(&c->arena, q->rows[0].parent);
	c->session_id = uar_arena_str(&c->arena, q->rows[0].session_id);
	c->detached = uar_str_is(s.on_parent_end, "detach");
	if (c->session_id.p)
		check_run(c);
	else
		finish(c, false);
}

static void check_above(struct check *c)
{
	uar_str id;

	if (!c->detached && uar_thread_subagent(c->session_id, &id))
		ask_row(c, UAR_ROW_SUBAGENT, id, above_found);
	else
		finish(c, false);
}

/* --- the run that has started it ------------------------------------------------------------- */

static bool was_stopped(uar_str status)
{
	static const char *const words[] = { "cancelled", "canceled", "timeout", "timed_out" };

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (uar_str_is(status, words[i]))
			return true;
	return false;
}

/* The agents of a workflow are parts of it. */
static bool has_failed_workflow(const struct uar_run_row *row)
{
	const struct uar_json *detail = NULL;
	struct uar_arena arena;
	bool is = false;

	uar_arena_init(&arena, 0);
	if (uar_str_is(row->status, "failed") &&
	    !uar_json_parse(row->detail, NULL, &arena, &detail, NULL))
		is = uar_str_is(uar_json_text(detail, "entry"), uar_entry_name(UAR_ENTRY_WORKFLOW));
	uar_arena_fini(&arena);
	return is;
}

static void run_found(struct uar_runs_query *q)
{
	struct check *c = UAR_OWNER(q, struct check, run);

	if (!q->err && (was_stopped(q->rows[0].status) || has_failed_workflow(&q->rows[0])))
		finish(c, true);
	else
		check_above(c);
}

static void check_run(struct check *c)
{
	struct uar_store *store = c->rt->o.store;

	if (c->detached || !c->run_id.n) {
		check_above(c);
		return;
	}
	uar_store_query_fini(&c->run);
	c->run = (struct uar_runs_query){
		.owner = c->owner, .run_id = c->run_id, .limit = 1, .done = run_found
	};
	if (store->ops->runs(store, &c->run))
		finish(c, false);
}

/* --- the task that it works for -------------------------------------------------------------- */

static void task_found(struct uar_rows_query *q)
{
	struct check *c = UAR_OWNER(q, struct check, row);
	struct uar_row_task t;

	if (!q->err && !uar_row_unpack(&q->rows[0], &c->arena, &t, sizeof t, NULL) &&
	    t.cancel_delegated)
		finish(c, true);
	else
		check_run(c);
}

static void begin_check(struct uar_runtime *rt, const struct check *what)
{
	struct check *c = uar_zalloc(sizeof *c);
	uar_str *own[] = { c ? &c->id : NULL, c ? &c->task_id : NULL, c ? &c->run_id : NULL,
			   c ? &c->session_id : NULL };

	if (!c)
		return;
	*c = *what;
	c->rt = rt;
	uar_arena_init(&c->arena, 0);
	if (!uar_owner_copy(&c->arena, &what->owner, &c->owner) ||
	    !uar_arena_strs(&c->arena, own, ARRAY_LEN(own))) {
		uar_arena_fini(&c->arena);
		uar_free(c);
		return;
	}
	rt_op_begin(rt, &c->under_way, drop);
	if (c->task_id.n)
		ask_row(c, UAR_ROW_TASK, c->task_id, task_found);
	else
		check_run(c);
}

void rt_fanout_check_child(struct uar_runtime *rt, const struct uar_owner *owner,
			   const struct uar_row *row, const struct uar_row_subagent *s)
{
	const struct check what = { .owner = *owner,
				    .id = row->id,
				    .task_id = s->task_id,
				    .run_id = row->parent,
				    .session_id = row->session_id,
				    .detached = uar_str_is(s->on_parent_end, "detach") };

	if (!s->resumed && !uar_str_is(row->status, "closed"))
		begin_check(rt, &what);
}

void rt_fanout_check_job(struct uar_runtime *rt, const struct uar_owner *owner,
			 const struct uar_row *row, const struct uar_row_job *j)
{
	const struct check what = { .job = true,
				    .owner = *owner,
				    .id = row->id,
				    .task_id = row->parent,
				    .run_id = j->run_id,
				    .session_id = row->session_id,
				    .detached = uar_str_is(j->on_parent_end, "detach") };

	if (uar_str_is(row->status, "running"))
		begin_check(rt, &what);
}
