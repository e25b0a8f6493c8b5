/* control.c - the walk of a command of the control plane. */
#include "engine/control.h"

#include "engine/engine_int.h"
#include "engine/limits.h"
#include "event/limits.h"

/* A command on its way. */
struct rt_control {
	struct rt_op under_way;
	struct uar_list node; /* in agg->controls */
	struct uar_runtime *rt;
	struct uar_control_op *op;
	struct uar_control in; /* with what the engine adds */
	struct agg *agg;       /* NULL: its session is not found yet */
	struct uar_control_update *update;
	struct uar_session s;	/* the copy that is decided on */
	struct uar_list loaded; /* of struct loading */
	size_t to_load;		/* rows that are asked for and not there yet */
	uar_err load_err;
	struct uar_error load_error;
	unsigned tries;
	char session_id[UAR_LIMIT_ID_BYTES + 1];
	struct uar_task later;
	struct uar_thread_query where;
	struct uar_rows_query row;
	struct uar_append append;
	struct uar_arena arena; /* of the decision */
	struct uar_arena rows;	/* of what was loaded */
	struct uar_buf buf;
};

/* Rows that were asked for. */
struct loading {
	struct uar_loaded loaded;
	struct rt_control *c;
	struct uar_rows_query query;
	bool asked;
};

static void decide(struct rt_control *c);

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

static void finish(struct rt_control *c, uar_err e, const struct uar_error *error)
{
	struct uar_control_op *op = c->op;

	op->err = e;
	if (error && error != &op->error)
		op->error = *error;
	op->error.code = e;
	op->session_id = uar_str_c(c->session_id);
	op->done(op); /* what it is shown lives in the session and in c */
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
	} else if (q->more && !c->load_err) {
		c->load_err = uar_error_set(&c->load_error, UAR_ETOOBIG,
					    "more than %d rows are concerned", UAR_LIMIT_LIST_PAGE);
	}
	if (--c->to_load)
		return;
	if (c->load_err)
		finish(c, c->load_err, &c->load_error);
	else
		decide(c);
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
	};
	l->query = (struct uar_rows_query){
		.owner = c->in.owner,
		.kind = need->kind,
		.id = l->loaded.need.id,
		.parent = l->loaded.need.parent,
		.tag = l->loaded.need.tag,
		.session_id = l->loaded.need.session_id,
		.limit = UAR_LIMIT_LIST_PAGE,
		.done = row_loaded,
	};
	uar_list_init(&l->loaded.node);
	uar_list_add_last(&c->loaded, &l->loaded.node);
	e = l->loaded.need.session_id.p ? store->ops->rows(store, &l->query) : UAR_ENOMEM;
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
		finish(c, e, NULL);
	else
		c->load_err = e;
}

/* --- decide and append ----------------------------------------------------------------------- */

static uar_err locate(struct rt_control *c);

/* The session is not what it was taken for: it is looked up anew. */
static void try_again(struct rt_control *c)
{
	uar_err e;

	forget_loaded(c);
	uar_arena_reset(&c->rows);
	leave_session(c);
	e = locate(c);
	if (e)
		finish(c, e, NULL);
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
	if (a->err) {
		finish(c, a->err, &a->error);
		return;
	}
	agg->state.sequence = c->s.sequence;
	c->rt->stats.events += a->event_count;
	uar_bus_publish(c->rt->bus, agg->key, a->events, a->event_count,
			a->events[a->event_count - 1].sequence);
	rt_session_advanced(agg, &a->events[0], &a->events[a->event_count - 1]);
	c->op->events = a->events;
	c->op->event_count = a->event_count;
	finish(c, UAR_OK, NULL);
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
	e = store->ops->append(store, &c->append);
	if (e == UAR_EINVALID || e == UAR_ESCHEMA) /* a member of the input became part of it */
		e = uar_error_set(&c->op->error, UAR_EINVALID, "%s: %s", c->append.error.where,
				  c->append.error.text);
	else if (e)
		c->op->error = c->append.error;
	if (e)
		finish(c, e, &c->op->error);
}

/* What core cannot know: the turn that is active in the named thread. */
static void add_facts(struct rt_control *c)
{
	uar_str thread_id = uar_control_str(&c->in, "thread_id");
	const struct live_run *r = thread_id.n ? rt_thread_active(c->agg, thread_id) : NULL;
	bool active = r && r->committed && r->state.status != UAR_STATUS_QUEUED;

	c->in.active_turn_id = active ? r->state.id.turn_id : UAR_STR_NONE;
}

static void decide(struct rt_control *c)
{
	struct uar_control_op *op = c->op;
	struct uar_core_env env = {
		.now_us = uar_clock_wall(c->rt->o.sched->clock),
		.ids = &c->rt->ids,
		.arena = &c->arena,
		.buf = &c->buf,
	};
	uar_err e;

	uar_arena_reset(&c->arena);
	c->update->d = (struct uar_decision){ 0 };
	c->s = c->agg->state;
	uar_error_clear(&op->error);
	add_facts(c);
	e = uar_core_control(&env, &c->s, &c->in, &c->loaded, c->update, &op->error);
	if (e == UAR_ENEEDS && c->update->need_count) {
		load_needs(c);
		return;
	}
	op->result = c->update->result;
	op->event_ids = c->update->event_ids;
	if (e || !c->update->d.event_count)
		finish(c, e, &op->error);
	else
		send_append(c);
}

/* The session has nothing under way, and this command is the first that waits. */
void rt_control_begin(struct agg *a)
{
	struct rt_control *c = UAR_OWNER(a->controls.next, struct rt_control, node);

	a->control = c;
	decide(c);
}

void rt_control_refuse(struct agg *a, uar_err e)
{
	while (!uar_list_empty(&a->controls))
		finish(UAR_OWNER(a->controls.next, struct rt_control, node), e, NULL);
}

/* --- where its session is -------------------------------------------------------------------- */

static void join(struct rt_control *c, uint64_t sequence)
{
	const struct uar_owner *owner = &c->in.owner;
	struct agg *a = rt_agg_find(c->rt, owner, uar_str_c(c->session_id));
	uar_err e = a ? UAR_OK : rt_agg_make(c->rt, owner, uar_str_c(c->session_id), sequence, &a);

	if (e) {
		finish(c, e, NULL);
		return;
	}
	if (a->control_count == UAR_LIMIT_SESSION_COMMANDS) {
		finish(c, UAR_EBUSY, NULL);
		return;
	}
	c->agg = a;
	a->control_count++;
	rt_agg_hold(a);
	uar_list_add_last(&a->controls, &c->node);
	rt_agg_kick(a);
}

static void session_found(struct uar_thread_query *q)
{
	struct rt_control *c = UAR_OWNER(q, struct rt_control, where);

	uar_str named = uar_control_str(&c->in, "session_id");

	if (q->err) {
		finish(c, q->err, &q->error);
		return;
	}
	if (named.n && !uar_str_is(named, q->found_session)) {
		uar_error_where(&c->op->error, "/session_id");
		uar_error_set(&c->op->error, UAR_EINVALID, "the thread or task is of session %s",
			      q->found_session);
		finish(c, UAR_EINVALID, &c->op->error);
		return;
	}
	snprintf(c->session_id, sizeof c->session_id, "%s", q->found_session);
	join(c, q->last_sequence);
}

static uar_err find_session(struct rt_control *c, uar_str thread_id, uar_str session_id)
{
	struct uar_store *store = c->rt->o.store;

	c->where = (struct uar_thread_query){
		.owner = c->in.owner,
		.thread_id = thread_id,
		.session_id = session_id,
		.done = session_found,
	};
	return store->ops->thread(store, &c->where);
}

static void task_found(struct uar_rows_query *q)
{
	struct rt_control *c = UAR_OWNER(q, struct rt_control, row);
	uar_err e = q->err;

	if (!e) {
		snprintf(c->session_id, sizeof c->session_id, "%.*s",
			 UAR_FMT(q->rows[0].session_id));
		e = find_session(c, UAR_STR_NONE, uar_str_c(c->session_id));
	}
	uar_store_rows_fini(q);
	if (e)
		finish(c, e, &q->error);
}

static uar_err find_task(struct rt_control *c, uar_str task_id)
{
	struct uar_store *store = c->rt->o.store;

	c->row = (struct uar_rows_query){
		.owner = c->in.owner,
		.kind = UAR_ROW_TASK,
		.id = task_id,
		.done = task_found,
	};
	return store->ops->rows(store, &c->row);
}

/* A command that names nothing that exists begins a session of its own. */
static uar_err begin_session(struct rt_control *c)
{
	uar_uuid_next(&c->rt->ids, c->session_id);
	uar_post(c->rt->o.sched, &c->later);
	return UAR_OK;
}

static void join_later(struct uar_task *t)
{
	join(UAR_OWNER(t, struct rt_control, later), 0);
}

static uar_err find_by_members(struct rt_control *c)
{
	const struct uar_control *in = &c->in;
	uar_str session = uar_control_str(in, "session_id");
	uar_str thread = uar_control_str(in, "thread_id");
	uar_str parent = uar_control_str(in, "parent_task_id");

	if (thread.n)
		return find_session(c, thread, UAR_STR_NONE);
	if (session.n)
		return find_session(c, UAR_STR_NONE, session);
	return parent.n ? find_task(c, parent) : begin_session(c);
}

static uar_err locate(struct rt_control *c)
{
	const struct uar_control *in = &c->in;

	switch (uar_control_info[in->kind].scope) {
	case UAR_CTL_SCOPE_TASK: return find_task(c, uar_control_str(in, "task_id"));
	case UAR_CTL_SCOPE_EDGE: return find_task(c, uar_control_str(in, "from"));
	case UAR_CTL_SCOPE_THREAD:
		return find_session(c, uar_control_str(in, "thread_id"), UAR_STR_NONE);
	case UAR_CTL_SCOPE_SESSION:
		return find_session(c, UAR_STR_NONE, uar_control_str(in, "session_id"));
	case UAR_CTL_SCOPE_OWNER: return find_by_members(c);
	case UAR_CTL_SCOPE_ACTION: break;
	}
	return UAR_ENOTIMPL;
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
	c->later.fn = join_later;
	c->buf = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
	uar_list_init(&c->node);
	uar_list_init(&c->loaded);
	uar_arena_init(&c->arena, 0);
	uar_arena_init(&c->rows, 0);
	c->update = uar_zalloc(sizeof *c->update);
	e = c->update ? locate(c) : UAR_ENOMEM;
	if (e)
		free_control(c);
	else
		rt_op_begin(rt, &c->under_way, drop);
	return e;
}
