/* fanout_close.c - what ends child agents and jobs besides a command to them: the end of the run
 * that has started them, the close of the agent above, the cancel of the task that they work for;
 * and the time of a job.
 *
 * That it has ended is in a row, so a start finds what is still to be done (fanout_check.c). */
#include "engine/fanout_int.h"
#include "event/limits.h"

/* --- commands -------------------------------------------------------------------------------- */

static void commanded(struct uar_control_op *op)
{
	struct errand *e = UAR_OWNER(op, struct errand, op);

	if (op->err)
		rt_errand_again(e, op->err);
	else
		rt_errand_end(e);
}

static void send_command(struct errand *e)
{
	uar_err err;

	e->step = send_command;
	e->op = (struct uar_control_op){ .in = &e->in, .done = commanded };
	err = uar_runtime_control(e->rt, &e->op);
	if (err)
		rt_errand_again(e, err);
}

void rt_fanout_close_child(struct uar_runtime *rt, const struct uar_owner *owner, uar_str id)
{
	struct errand *e = rt_errand_make(rt, owner);
	struct uar_ctl_close_subagent *in = e ? &e->in.close_subagent : NULL;
	uar_str *own[] = { in ? &in->subagent_id : NULL };

	if (!e)
		return;
	e->in.kind = UAR_CTL_CLOSE_SUBAGENT;
	in->subagent_id = id;
	in->reason = UAR_STR("its parent was stopped");
	if (rt_errand_keep(e, own, 1))
		send_command(e);
}

void rt_fanout_cancel_job(struct uar_runtime *rt, const struct uar_owner *owner, uar_str id)
{
	struct errand *e = rt_errand_make(rt, owner);
	struct uar_ctl_cancel_job *in = e ? &e->in.cancel_job : NULL;
	uar_str *own[] = { in ? &in->job_id : NULL };

	if (!e)
		return;
	e->in.kind = UAR_CTL_CANCEL_JOB;
	in->job_id = id;
	in->reason = UAR_STR("what has started it was stopped");
	if (rt_errand_keep(e, own, 1))
		send_command(e);
}

/* --- lists ----------------------------------------------------------------------------------- */

/* A list of rows that is gone through, page by page. */
struct walk {
	struct rt_op under_way;
	struct uar_runtime *rt;
	struct uar_arena arena;
	struct uar_rows_query what, rows;
	void (*each)(struct walk *w, const struct uar_row *row);
	uar_str run_id; /* jobs: those of that run alone; or empty */
};

static void free_walk(struct walk *w)
{
	uar_store_rows_fini(&w->rows);
	uar_arena_fini(&w->arena);
	uar_free(w);
}

static void drop_walk(struct rt_op *under_way)
{
	free_walk(UAR_OWNER(under_way, struct walk, under_way));
}

static void end_walk(struct walk *w)
{
	rt_op_end(&w->under_way);
	free_walk(w);
}

static uar_err next_page(struct walk *w)
{
	struct uar_store *store = w->rt->o.store;

	w->rows = w->what;
	return store->ops->rows(store, &w->rows);
}

static void page_listed(struct uar_rows_query *q)
{
	struct walk *w = UAR_OWNER(q, struct walk, rows);
	bool more = !q->err && q->more && !w->rt->draining;

	for (size_t i = 0; i < q->row_count && !q->err; i++)
		w->each(w, &q->rows[i]);
	w->what.after = more ? uar_arena_str(&w->arena, q->next) : UAR_STR_NONE;
	uar_store_rows_fini(q);
	if (!more || !w->what.after.p || next_page(w))
		end_walk(w);
}

/* Without memory for it the next start finds what was to be done. */
static void begin_walk(struct uar_runtime *rt, const struct uar_rows_query *what, uar_str run_id,
		       void (*each)(struct walk *w, const struct uar_row *row))
{
	struct walk *w = uar_zalloc(sizeof *w);
	uar_str *own[] = { w ? &w->what.session_id : NULL, w ? &w->what.parent : NULL,
			   w ? &w->what.tag : NULL, w ? &w->run_id : NULL };

	if (!w)
		return;
	w->rt = rt;
	w->each = each;
	w->what = *what;
	w->what.limit = UAR_LIMIT_LIST_PAGE;
	w->what.done = page_listed;
	w->run_id = run_id;
	uar_arena_init(&w->arena, 0);
	if (!uar_owner_copy(&w->arena, &what->owner, &w->what.owner) ||
	    !uar_arena_strs(&w->arena, own, ARRAY_LEN(own)) || next_page(w)) {
		uar_arena_fini(&w->arena);
		uar_free(w);
		return;
	}
	rt_op_begin(rt, &w->under_way, drop_walk);
}

/* One at rest stays what it is, but those that it has started may be at work. */
static void stop_child(struct walk *w, const struct uar_row *row)
{
	struct uar_row_subagent s;
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	if (!uar_row_unpack(row, &arena, &s, sizeof s, NULL) &&
	    !uar_str_is(s.on_parent_end, "detach") && !uar_str_is(row->status, "closed")) {
		if (row->open)
			rt_fanout_close_child(w->rt, &w->what.owner, row->id);
		else
			rt_fanout_close_below(w->rt, &w->what.owner, s.child_session_id);
	}
	uar_arena_fini(&arena);
}

static void stop_job(struct walk *w, const struct uar_row *row)
{
	struct uar_row_job j;
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	if (!uar_row_unpack(row, &arena, &j, sizeof j, NULL) &&
	    !uar_str_is(j.on_parent_end, "detach") && uar_str_is(row->status, "running") &&
	    (!w->run_id.n || uar_str_eq(j.run_id, w->run_id)))
		rt_fanout_cancel_job(w->rt, &w->what.owner, row->id);
	uar_arena_fini(&arena);
}

static void stop_delegated(struct walk *w, const struct uar_row *row)
{
	struct uar_row_edge edge;
	struct uar_arena arena;
	bool delegated;

	uar_arena_init(&arena, 0);
	delegated = !uar_row_unpack(row, &arena, &edge, sizeof edge, NULL) &&
		    uar_str_is(edge.edge_kind, "spawned_subagent") &&
		    uar_str_is(row->status, "active");
	if (delegated && uar_str_is(edge.reason, "subagent"))
		rt_fanout_close_child(w->rt, &w->what.owner, row->tag);
	else if (delegated && uar_str_is(edge.reason, "job"))
		rt_fanout_cancel_job(w->rt, &w->what.owner, row->tag);
	uar_arena_fini(&arena);
}

/* --- what has stopped ------------------------------------------------------------------------ */

void rt_fanout_close_below(struct uar_runtime *rt, const struct uar_owner *owner,
			   uar_str child_session_id)
{
	struct uar_rows_query what = { .owner = *owner,
				       .kind = UAR_ROW_SUBAGENT,
				       .session_id = child_session_id };

	begin_walk(rt, &what, UAR_STR_NONE, stop_child);
	what.kind = UAR_ROW_JOB;
	what.open = UAR_ROWS_OPEN;
	begin_walk(rt, &what, UAR_STR_NONE, stop_job);
}

void rt_fanout_parent_stopped(struct live_run *r)
{
	struct uar_rows_query children = { .owner = r->agg->state.owner,
					   .kind = UAR_ROW_SUBAGENT,
					   .parent = uar_str_c(r->run_id) };
	struct uar_rows_query jobs = { .owner = r->agg->state.owner,
				       .kind = UAR_ROW_JOB,
				       .tag = uar_str_c(r->thread_id),
				       .open = UAR_ROWS_OPEN };

	begin_walk(r->agg->rt, &children, UAR_STR_NONE, stop_child);
	begin_walk(r->agg->rt, &jobs, uar_str_c(r->run_id), stop_job);
}

void rt_fanout_task_stopped(struct agg *a, uar_str task_id)
{
	struct uar_rows_query what = { .owner = a->state.owner,
				       .kind = UAR_ROW_EDGE,
				       .parent = task_id };

	begin_walk(a->rt, &what, UAR_STR_NONE, stop_delegated);
}

/* --- time ------------------------------------------------------------------------------------ */

bool rt_fanout_expire(struct uar_runtime *rt, const struct uar_row *row)
{
	struct errand *e = rt_errand_make(rt, &row->owner);
	struct uar_ctl_expire_job *in = e ? &e->in.expire_job : NULL;
	uar_str *own[] = { in ? &in->job_id : NULL };

	if (!e)
		return false;
	e->in.kind = UAR_CTL_EXPIRE_JOB;
	in->job_id = row->id;
	if (!rt_errand_keep(e, own, 1))
		return false;
	send_command(e);
	return true;
}
