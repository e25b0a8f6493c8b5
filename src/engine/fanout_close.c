/* fanout_close.c - what ends child agents besides a command: the end of their parent, or of the
 * session that they belong to; and the time of a job. */
#include "engine/fanout_int.h"

static void closed(struct uar_control_op *op)
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
	e->op = (struct uar_control_op){ .in = &e->in, .done = closed };
	err = uar_runtime_control(e->rt, &e->op);
	if (err)
		rt_errand_again(e, err);
}

static void close_child(struct uar_runtime *rt, const struct uar_owner *owner, uar_str id)
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

/* --- lists of children ----------------------------------------------------------------------- */

static bool goes_with_parent(const struct uar_row *row)
{
	struct uar_row_subagent s;
	struct uar_arena arena;
	bool goes;

	uar_arena_init(&arena, 0);
	goes = !uar_row_unpack(row, &arena, &s, sizeof s, NULL) &&
	       !uar_str_is(s.on_parent_end, "detach") && !uar_str_is(row->status, "closed");
	uar_arena_fini(&arena);
	return goes;
}

static void children_listed(struct uar_rows_query *q)
{
	struct errand *e = UAR_OWNER(q, struct errand, rows);

	for (size_t i = 0; i < q->row_count && !q->err; i++)
		if (goes_with_parent(&q->rows[i]))
			close_child(e->rt, &e->in.owner, q->rows[i].id);
	rt_errand_end(e);
}

static void list_children(struct errand *e)
{
	struct uar_store *store = e->rt->o.store;

	e->rows = (struct uar_rows_query){
		.owner = e->in.owner,
		.kind = UAR_ROW_SUBAGENT,
		.parent = e->run_id,
		.session_id = e->thread_id,
		.open = UAR_ROWS_OPEN,
		.limit = UAR_LIMIT_LIST_PAGE,
		.done = children_listed,
	};
	if (store->ops->rows(store, &e->rows))
		rt_errand_end(e);
}

void rt_fanout_close_below(struct uar_runtime *rt, const struct uar_owner *owner,
			   uar_str child_session_id)
{
	struct errand *e = rt_errand_make(rt, owner);
	uar_str *own[] = { e ? &e->thread_id : NULL };

	if (!e)
		return;
	e->thread_id = child_session_id;
	if (rt_errand_keep(e, own, 1))
		list_children(e);
}

void rt_fanout_parent_stopped(struct live_run *r)
{
	struct errand *e = rt_errand_make(r->agg->rt, &r->agg->state.owner);
	uar_str *own[] = { e ? &e->run_id : NULL };

	if (!e)
		return;
	e->run_id = uar_str_c(r->run_id);
	if (rt_errand_keep(e, own, 1))
		list_children(e);
}

/* --- after a start --------------------------------------------------------------------------- */

static void parent_found(struct uar_runs_query *q)
{
	struct errand *e = UAR_OWNER(q, struct errand, run);
	bool stopped = !q->err && (uar_str_is(q->rows[0].status, "cancelled") ||
				   uar_str_is(q->rows[0].status, "canceled") ||
				   uar_str_is(q->rows[0].status, "timeout") ||
				   uar_str_is(q->rows[0].status, "timed_out"));

	uar_store_query_fini(q);
	if (stopped)
		list_children(e);
	else
		rt_errand_end(e);
}

void rt_fanout_check_parent(struct uar_runtime *rt, const struct uar_owner *owner,
			    const struct uar_row *row)
{
	struct errand *e = row->parent.n ? rt_errand_make(rt, owner) : NULL;
	uar_str *own[] = { e ? &e->run_id : NULL };

	if (!e)
		return;
	e->run_id = row->parent;
	if (!rt_errand_keep(e, own, 1))
		return;
	e->run = (struct uar_runs_query){
		.owner = e->in.owner, .run_id = e->run_id, .limit = 1, .done = parent_found
	};
	if (rt->o.store->ops->runs(rt->o.store, &e->run))
		rt_errand_end(e);
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
