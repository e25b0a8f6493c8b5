/* control.c - the walk of a command of the control plane. */
#include "engine/control_int.h"

#include "engine/limits.h"
#include "event/limits.h"

/* Rows that were asked for. */
struct loading {
	struct uar_loaded loaded;
	struct rt_control *c;
	struct uar_rows_query query;
	bool asked;
};

/* --- life ------------------------------------------------------------------------------------ */

static void forget_loaded(struct rt_control *c)
{
	UAR_LIST_EACH (it, &c->loaded) {
		struct loading *l = UAR_OWNER(it, struct loading, loaded.node);

		uar_list_remove(it);
		uar_store_rows_fini(&l->query);
		uar_free(l);
	}
}

static void free_control(struct rt_control *c)
{
	uar_unpost(c->rt->o.sched, &c->later);
	uar_list_remove(&c->node);
	forget_loaded(c);
	rt_control_turn_forget(c);
	rt_control_runs_free(c);
	uar_arena_fini(&c->arena);
	uar_arena_fini(&c->rows);
	uar_buf_fini(&c->buf);
	uar_free(c->update);
	uar_free(c);
}

static void drop(struct rt_op *under_way)
{
	free_control(UAR_OWNER(under_way, struct rt_control, under_way));
}

/* The session goes on without it. */
static void leave_session(struct rt_control *c)
{
	struct agg *a = c->agg;

	if (!a)
		return;
	if (a->control == c)
		a->control = NULL;
	a->control_count--;
	uar_list_remove(&c->node);
	c->agg = NULL;
	if (!uar_list_empty(&a->crowd)) /* it may have passed its turn meanwhile */
		uar_post(a->rt->o.sched, &a->task);
	rt_agg_kick(a);
	rt_agg_drop(a);
}

void rt_control_finish(struct rt_control *c, uar_err e, const struct uar_error *error)
{
	struct uar_control_op *op = c->op;

	op->err = e;
	if (error && error != &op->error)
		op->error = *error;
	op->error.code = e;
	op->session_id = uar_str_c(c->session_id);
	if (!e)
		rt_control_runs_order(
			c); /* its texts are the caller's, who may be gone afterwards */
	op->done(op);	    /* what it is shown lives in the session and in c */
	if (e)
		rt_control_runs_failed(c, e);
	else
		rt_control_runs_perform(c);
	leave_session(c);
	rt_op_end(&c->under_way);
	free_control(c);
}

/* --- rows ------------------------------------------------------------------------------------ */

static void row_loaded(struct uar_rows_query *q)
{
	struct loading *l = UAR_OWNER(q, struct loading, query);
	struct rt_control *c = l->c;

	l->loaded.rows = q->rows;
	l->loaded.count = q->row_count;
	if (q->err && q->err != UAR_ENOTFOUND && !c->load_err) {
		c->load_err = q->err;
		c->load_error = q->error;
	} else if (q->more && l->loaded.need.limit) {
		l->loaded.next = q->next;
	} else if (q->more && !c->load_err) {
		c->load_err = uar_error_set(&c->load_error, UAR_ETOOBIG,
					    "more than %d rows are concerned", UAR_LIMIT_LIST_PAGE);
	}
	if (--c->to_load)
		return;
	if (c->load_err)
		rt_control_finish(c, c->load_err, &c->load_error);
	else
		rt_control_decide(c);
}

static uar_err ask_row(struct rt_control *c, const struct uar_need *need)
{
	struct uar_store *store = c->rt->o.store;
	struct loading *l = uar_zalloc(sizeof *l);
	uar_err e;

	if (!l)
		return UAR_ENOMEM;
	l->c = c;
	l->loaded.need = (struct uar_need){
		.kind = need->kind,
		.id = uar_arena_str(&c->rows, need->id),
		.parent = uar_arena_str(&c->rows, need->parent),
		.tag = uar_arena_str(&c->rows, need->tag),
		.session_id = uar_arena_str(&c->rows, need->session_id),
		.after = uar_arena_str(&c->rows, need->after),
		.open = need->open,
		.limit = need->limit,
	};
	l->query = (struct uar_rows_query){
		.owner = c->in.owner,
		.kind = need->kind,
		.id = l->loaded.need.id,
		.parent = l->loaded.need.parent,
		.tag = l->loaded.need.tag,
		.session_id = l->loaded.need.session_id,
		.open = need->open ? UAR_ROWS_OPEN : UAR_ROWS_ANY,
		.order = need->limit ? UAR_ROWS_RANK : UAR_ROWS_NEWEST,
		.after = l->loaded.need.after,
		.limit = need->limit ? need->limit : UAR_LIMIT_LIST_PAGE,
		.done = row_loaded,
	};
	uar_list_init(&l->loaded.node);
	uar_list_add_last(&c->loaded, &l->loaded.node);
	e = l->loaded.need.after.p ? store->ops->rows(store, &l->query) : UAR_ENOMEM;
	if (!e)
		c->to_load++;
	return e;
}

/* What could not be asked for ends the command, once what was asked for is there. */
static void load_needs(struct rt_control *c)
{
	const struct uar_control_update *u = c->update;
	uar_err e = UAR_OK;

	for (size_t i = 0; i < u->need_count && !e; i++)
		e = ask_row(c, &u->needs[i]);
	if (!e)
		return;
	if (!c->to_load)
		rt_control_finish(c, e, NULL);
	else
		c->load_err = e;
}

/* --- decide and append ----------------------------------------------------------------------- */

/* The session is not what it was taken for: it is looked up anew. */
static void try_again(struct rt_control *c)
{
	struct agg *a = c->agg;
	uar_err e;

	rt_agg_hold(a);
	forget_loaded(c);
	uar_arena_reset(&c->rows);
	rt_control_runs_failed(c, UAR_ECONFLICT);
	rt_control_turn_forget(c);
	leave_session(c);
	if (a->control_count) { /* others wait for it */
		a->unsure = true;
		a->threads_known = false;
		rt_threads_need(a);
	}
	rt_agg_drop(a);
	e = rt_control_locate(c);
	if (e)
		rt_control_finish(c, e, NULL);
}

/* What the engine keeps in memory of rows follows them. */
static void learn_rows(struct agg *agg, const struct uar_append *a)
{
	for (size_t i = 0; i < a->row_count; i++)
		if (a->rows[i].kind == UAR_ROW_THREAD)
			rt_threads_learn(agg, &a->rows[i]);
		else if (a->rows[i].kind == UAR_ROW_TASK)
			rt_attempt_learn(agg, &a->rows[i]);
		else
			rt_fanout_learn(agg, &a->rows[i]);
}

/* A first step is durable; the session stays this command's. */
static void next_step(struct rt_control *c)
{
	rt_control_runs_perform(c);
	forget_loaded(c);
	uar_arena_reset(&c->rows);
	rt_control_decide(c);
}

static void appended(struct uar_append *a)
{
	struct rt_control *c = UAR_OWNER(a, struct rt_control, append);
	struct agg *agg = c->agg;

	uar_runtime_note_failure(c->rt, a->err);
	if (a->err == UAR_ECONFLICT && ++c->tries < UAR_LIMIT_CREATE_TRIES) {
		try_again(c);
		return;
	}
	if (a->err == UAR_EEXISTS && c->runs.lent) {
		rt_creation_taken(c->runs.creation, &a->taken);
		rt_control_finish(c, a->err, &a->error);
		return;
	}
	if (a->err == UAR_EEXISTS) {
		rt_control_taken(c, a->taken.made);
		return;
	}
	if (a->err) {
		rt_control_finish(c, a->err, &a->error);
		return;
	}
	learn_rows(agg, a);
	if (c->update->moved) {
		rt_control_runs_told(c);
	} else {
		agg->state.sequence = c->s.sequence;
		c->rt->stats.events += a->event_count;
		uar_bus_publish(c->rt->bus, agg->key, a->events, a->event_count,
				a->events[a->event_count - 1].sequence);
		rt_session_advanced(agg, &a->events[0], &a->events[a->event_count - 1]);
	}
	if (c->update->again) {
		next_step(c);
		return;
	}
	c->op->events = a->events;
	c->op->event_count = a->event_count;
	rt_control_finish(c, UAR_OK, NULL);
}

static void send_append(struct rt_control *c)
{
	const struct uar_control_update *u = c->update;
	struct uar_store *store = c->rt->o.store;
	uar_err e;

	c->append = (struct uar_append){
		.owner = c->agg->state.owner,
		.session_id = c->agg->state.session_id,
		.after = c->agg->state.sequence,
		.events = u->d.events,
		.event_count = u->d.event_count,
		.rows = u->rows,
		.row_count = u->row_count,
		.done = appended,
	};
	e = rt_control_add_run(c);
	if (!e)
		e = store->ops->append(store, &c->append);
	if (e == UAR_EINVALID || e == UAR_ESCHEMA) /* a member of the input became part of it */
		e = uar_error_set(&c->op->error, UAR_EINVALID, "%s: %s", c->append.error.where,
				  c->append.error.text);
	else if (e)
		c->op->error = c->append.error;
	if (e)
		rt_control_finish(c, e, &c->op->error);
}

void rt_control_decide(struct rt_control *c)
{
	struct uar_control_op *op = c->op;
	struct uar_core_env env = {
		.now_us = uar_clock_wall(c->rt->o.sched->clock),
		.ids = &c->rt->ids,
		.arena = &c->arena,
		.buf = &c->buf,
	};
	uar_err e;

	if (rt_control_turn_load(c))
		return;
	uar_arena_reset(&c->arena);
	c->update->d = (struct uar_decision){ 0 };
	c->s = c->agg->state;
	uar_error_clear(&op->error);
	e = rt_control_bring(c, &env);
	if (e) {
		rt_control_finish(c, e, NULL);
		return;
	}
	e = uar_core_control(&env, &c->s, &c->in, &c->loaded, c->update, &op->error);
	if (e == UAR_ENEEDS && c->update->need_count) {
		load_needs(c);
		return;
	}
	op->result = c->update->result;
	op->event_ids = c->update->event_ids;
	if (e || !c->update->d.event_count)
		rt_control_finish(c, e, &op->error);
	else
		send_append(c);
}

/* The session has nothing under way, and this command is the first that waits. */
void rt_control_begin(struct agg *a)
{
	struct rt_control *c = UAR_OWNER(a->controls.next, struct rt_control, node);

	a->control = c;
	rt_control_decide(c);
}

void rt_control_refuse(struct agg *a, uar_err e)
{
	while (!uar_list_empty(&a->controls))
		rt_control_finish(UAR_OWNER(a->controls.next, struct rt_control, node), e, NULL);
}

uar_err uar_runtime_control(struct uar_runtime *rt, struct uar_control_op *op)
{
	uar_err e = rt_takes_new(rt);
	struct rt_control *c = e ? NULL : uar_zalloc(sizeof *c);

	if (!c)
		return e ? e : UAR_ENOMEM;
	c->rt = rt;
	c->op = op;
	c->in = *op->in;
	c->buf = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
	uar_list_init(&c->node);
	uar_list_init(&c->loaded);
	uar_arena_init(&c->arena, 0);
	uar_arena_init(&c->rows, 0);
	uar_arena_init(&c->runs.kept, 0);
	uar_run_init(&c->runs.fresh);
	uar_run_init(&c->runs.target);
	c->update = uar_zalloc(sizeof *c->update);
	if (!c->update)
		e = UAR_ENOMEM;
	else if (op->creation)
		e = rt_control_lend(c);
	else if (c->in.kind == UAR_CTL_EDIT_QUEUED_TURN)
		e = rt_control_prepare_edit(c);
	else if (c->in.kind == UAR_CTL_CREATE_JOB)
		e = rt_control_prepare_job(c);
	else
		e = rt_control_makes_run(c->in.kind) ? rt_control_prepare(c) : rt_control_locate(c);
	if (e)
		free_control(c);
	else
		rt_op_begin(rt, &c->under_way, drop);
	return e;
}
