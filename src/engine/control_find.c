/* control_find.c - the session of a command of the control plane. */
#include "engine/control_int.h"
#include "engine/limits.h"

static void open_session(struct rt_control *c, const struct rt_looked *looked);

static void session_awake(struct rt_waker *w, uar_err e)
{
	struct rt_control *c = UAR_OWNER(w, struct rt_control, waker);

	if (!e && rt_agg_find(c->rt, &c->in.owner, uar_str_c(c->session_id))) {
		open_session(c, &c->looked); /* it is in memory */
		return;
	}
	if (!e)
		e = rt_control_locate(c); /* nothing waits there any more */
	if (e)
		rt_control_finish(c, e, NULL);
}

static void join(struct rt_control *c, uint64_t sequence)
{
	const struct uar_owner *owner = &c->in.owner;
	uar_err asleep;

	c->looked.sequence = sequence;
	c->waker.fn = session_awake;
	if (rt_wake(c->rt, owner, uar_str_c(c->session_id), &c->waker, &asleep))
		return;
	if (asleep) {
		rt_control_finish(c, asleep, NULL);
		return;
	}
	open_session(c, &c->looked);
}

static void open_session(struct rt_control *c, const struct rt_looked *looked)
{
	const struct uar_owner *owner = &c->in.owner;
	struct agg *a = rt_agg_find(c->rt, owner, uar_str_c(c->session_id));
	uar_err e = UAR_OK;

	/* That the thread is new may be outdated likewise: then the append is refused, and all of
	 * it is looked up again. */
	if (!a && c->runs.new_thread)
		e = rt_agg_make(c->rt, owner, uar_str_c(c->session_id), looked->sequence, &a);
	else if (!a)
		e = rt_agg_open(c->rt, owner, uar_str_c(c->session_id), looked, &a);

	if (e) {
		rt_control_finish(c, e, NULL);
		return;
	}
	if (a->control_count == UAR_LIMIT_SESSION_COMMANDS) {
		rt_control_finish(c, UAR_EBUSY, NULL);
		return;
	}
	c->agg = a;
	a->control_count++;
	rt_agg_hold(a);
	rt_threads_need(a);
	uar_list_add_last(&a->controls, &c->node);
	rt_agg_kick(a);
}

static void join_later(struct uar_task *t)
{
	join(UAR_OWNER(t, struct rt_control, later), 0);
}

static uar_err find_session(struct rt_control *c, uar_str thread_id, uar_str session_id);
static uar_err begin_session(struct rt_control *c);

/* The thread is made with its first turn, in the named session or in one of its own. */
static void begin_thread(struct rt_control *c, uar_str session_id)
{
	uar_err e;

	c->runs.new_thread = true;
	e = session_id.n ? find_session(c, UAR_STR_NONE, session_id) : begin_session(c);
	if (e)
		rt_control_finish(c, e, NULL);
}

/* A run of that thread is in memory, perhaps its first, which the store does not know yet. */
static bool join_live(struct rt_control *c, uar_str thread_id)
{
	struct rt_key k;
	struct live_run *r = uar_map_get(&c->rt->threads, rt_key(&k, &c->in.owner, thread_id));
	uar_str named = uar_control_str(&c->in, "session_id");

	if (!r || !rt_control_makes_run(c->in.kind) ||
	    (named.n && !uar_str_eq(named, r->agg->state.session_id)))
		return false;
	snprintf(c->session_id, sizeof c->session_id, "%.*s", UAR_FMT(r->agg->state.session_id));
	c->later.fn = join_later;
	uar_post(c->rt->o.sched, &c->later);
	return true;
}

/* What the member names is not there, or is somebody else's. */
static void refuse_missing(struct rt_control *c, const char *member, const char *what)
{
	uar_str id = uar_control_str(&c->in, member);

	uar_error_where(&c->op->error, "/%s", member);
	uar_error_set(&c->op->error, UAR_ENOTFOUND, "there is no %s %.*s", what, UAR_FMT(id));
	rt_control_finish(c, UAR_ENOTFOUND, &c->op->error);
}

/* A thread lives in one session: an attempt at a task runs in a thread of the task's. */
static bool is_elsewhere(struct rt_control *c, const char *session_id)
{
	const char *of_thread = c->op->thread_session;

	if (!of_thread || !of_thread[0] || !strcmp(of_thread, session_id))
		return false;
	uar_error_where(&c->op->error, "/conversation_id");
	uar_error_set(&c->op->error, UAR_ESTATE,
		      "the conversation is of session %s and the task of session %s: name one of "
		      "the task's, or none",
		      of_thread, session_id);
	rt_control_finish(c, UAR_ESTATE, &c->op->error);
	return true;
}

static void session_found(struct uar_thread_query *q)
{
	struct rt_control *c = UAR_OWNER(q, struct rt_control, where);

	uar_str named = uar_control_str(&c->in, "session_id");

	if (q->err == UAR_ENOTFOUND && q->thread_id.n && rt_control_makes_run(c->in.kind)) {
		begin_thread(c, named);
		return;
	}
	if (q->err == UAR_ENOTFOUND) {
		if (q->thread_id.n)
			refuse_missing(c, "thread_id", "thread");
		else
			refuse_missing(c, "session_id", "session");
		return;
	}
	if (q->err) {
		rt_control_finish(c, q->err, &q->error);
		return;
	}
	if (named.n && !uar_str_is(named, q->found_session)) {
		uar_error_where(&c->op->error, "/session_id");
		uar_error_set(&c->op->error, UAR_EINVALID, "the thread or task is of session %s",
			      q->found_session);
		rt_control_finish(c, UAR_EINVALID, &c->op->error);
		return;
	}
	if (is_elsewhere(c, q->found_session))
		return;
	snprintf(c->session_id, sizeof c->session_id, "%s", q->found_session);
	join(c, q->last_sequence);
}

static uar_err find_session(struct rt_control *c, uar_str thread_id, uar_str session_id)
{
	struct uar_store *store = c->rt->o.store;

	c->looked.since = c->rt->left.count;
	c->where = (struct uar_thread_query){
		.owner = c->in.owner,
		.thread_id = thread_id,
		.session_id = session_id,
		.done = session_found,
	};
	return store->ops->thread(store, &c->where);
}

/* Nobody knows it, or it is somebody else's: there is no session for a warning. */
static void refuse_process(struct rt_control *c)
{
	uar_str id = uar_control_str(&c->in, "process_id");

	uar_log(rt_log(c->rt), UAR_LOG_WARN, "process.unknown", { "process_id", id });
	uar_error_where(&c->op->error, "/process_id");
	uar_error_set(&c->op->error, UAR_ENOTFOUND,
		      "unavailable: there is no process %.*s; get_execution_environment lists "
		      "those of a session",
		      UAR_FMT(id));
	rt_control_finish(c, UAR_ENOTFOUND, &c->op->error);
}

static void refuse_row(struct rt_control *c)
{
	switch (uar_control_info[c->in.kind].scope) {
	case UAR_CTL_SCOPE_TASK: refuse_missing(c, "task_id", "task"); break;
	case UAR_CTL_SCOPE_EDGE: refuse_missing(c, "from", "task"); break;
	case UAR_CTL_SCOPE_PROCESS: refuse_process(c); break;
	case UAR_CTL_SCOPE_GRANT: refuse_missing(c, "grant_id", "grant"); break;
	case UAR_CTL_SCOPE_CHANNEL: refuse_missing(c, "channel_id", "channel"); break;
	case UAR_CTL_SCOPE_SUBAGENT: refuse_missing(c, "subagent_id", "subagent"); break;
	case UAR_CTL_SCOPE_JOB: refuse_missing(c, "job_id", "job"); break;
	case UAR_CTL_SCOPE_OWNER:
		refuse_missing(c,
			       uar_control_str(&c->in, "parent_task_id").n ? "parent_task_id"
									   : "task_id",
			       "task");
		break;
	case UAR_CTL_SCOPE_SESSION:
	case UAR_CTL_SCOPE_THREAD:
	case UAR_CTL_SCOPE_ACTION: rt_control_finish(c, UAR_ENOTFOUND, NULL); break;
	}
}

static void row_found(struct uar_rows_query *q)
{
	struct rt_control *c = UAR_OWNER(q, struct rt_control, row);
	uar_err e = q->err;

	if (!e) {
		snprintf(c->session_id, sizeof c->session_id, "%.*s",
			 UAR_FMT(q->rows[0].session_id));
		snprintf(c->runs.of_row, sizeof c->runs.of_row, "%.*s", UAR_FMT(q->rows[0].parent));
		e = find_session(c, UAR_STR_NONE, uar_str_c(c->session_id));
	}
	uar_store_rows_fini(q);
	if (e == UAR_ENOTFOUND)
		refuse_row(c);
	else if (e)
		rt_control_finish(c, e, &q->error);
}

static uar_err ask_row(struct rt_control *c, enum uar_row_kind kind, uar_str id,
		       void (*done)(struct uar_rows_query *q))
{
	struct uar_store *store = c->rt->o.store;

	c->row = (struct uar_rows_query){
		.owner = c->in.owner,
		.kind = kind,
		.id = id,
		.done = done,
	};
	return store->ops->rows(store, &c->row);
}

static uar_err find_row(struct rt_control *c, enum uar_row_kind kind, uar_str id)
{
	return ask_row(c, kind, id, row_found);
}

/* A command that names nothing that exists begins a session of its own. */
static uar_err begin_session(struct rt_control *c)
{
	if (c->op->make_session.n)
		snprintf(c->session_id, sizeof c->session_id, "%.*s", UAR_FMT(c->op->make_session));
	else
		uar_uuid_next(&c->rt->ids, c->session_id);
	c->later.fn = join_later;
	uar_post(c->rt->o.sched, &c->later);
	return UAR_OK;
}

static uar_err find_by_members(struct rt_control *c)
{
	const struct uar_control *in = &c->in;
	uar_str session = uar_control_str(in, "session_id");
	uar_str thread = uar_control_str(in, "thread_id");
	uar_str parent = uar_control_str(in, "parent_task_id");

	if (in->kind == UAR_CTL_CREATE_JOB)
		parent = in->create_job.task_id;
	if (thread.n && join_live(c, thread))
		return UAR_OK;
	if (thread.n)
		return find_session(c, thread, UAR_STR_NONE);
	c->runs.new_thread = true;
	if (session.n)
		return find_session(c, UAR_STR_NONE, session);
	return parent.n ? find_row(c, UAR_ROW_TASK, parent) : begin_session(c);
}

static void named_found(struct uar_rows_query *q)
{
	struct rt_control *c = UAR_OWNER(q, struct rt_control, row);
	uar_err e;

	if (q->err != UAR_ENOTFOUND) {
		row_found(q);
		return;
	}
	uar_store_rows_fini(q);
	e = find_by_members(c);
	if (e)
		rt_control_finish(c, e, NULL);
}

/* A task or a job with the id that the caller gives may be there: in the session that it has. */
static uar_err find_named(struct rt_control *c)
{
	const struct uar_control *in = &c->in;

	if (in->kind == UAR_CTL_CREATE_TASK && in->create_task.task_id.n)
		return ask_row(c, UAR_ROW_TASK, in->create_task.task_id, named_found);
	if (in->kind == UAR_CTL_CREATE_JOB)
		return ask_row(c, UAR_ROW_JOB, in->create_job.job_id, named_found);
	return find_by_members(c);
}

uar_err rt_control_locate(struct rt_control *c)
{
	const struct uar_control *in = &c->in;

	c->runs.new_thread = false;
	switch (uar_control_info[in->kind].scope) {
	case UAR_CTL_SCOPE_TASK: return find_row(c, UAR_ROW_TASK, uar_control_str(in, "task_id"));
	case UAR_CTL_SCOPE_EDGE: return find_row(c, UAR_ROW_TASK, uar_control_str(in, "from"));
	case UAR_CTL_SCOPE_PROCESS:
		return find_row(c, UAR_ROW_PROCESS, uar_control_str(in, "process_id"));
	case UAR_CTL_SCOPE_GRANT:
		return find_row(c, UAR_ROW_GRANT, uar_control_str(in, "grant_id"));
	case UAR_CTL_SCOPE_CHANNEL:
		return find_row(c, UAR_ROW_CHANNEL, uar_control_str(in, "channel_id"));
	case UAR_CTL_SCOPE_SUBAGENT:
		return find_row(c, UAR_ROW_SUBAGENT, uar_control_str(in, "subagent_id"));
	case UAR_CTL_SCOPE_JOB: return find_row(c, UAR_ROW_JOB, uar_control_str(in, "job_id"));
	case UAR_CTL_SCOPE_THREAD:
		return find_session(c, uar_control_str(in, "thread_id"), UAR_STR_NONE);
	case UAR_CTL_SCOPE_SESSION:
		return find_session(c, UAR_STR_NONE, uar_control_str(in, "session_id"));
	case UAR_CTL_SCOPE_OWNER: return find_named(c);
	case UAR_CTL_SCOPE_ACTION: break;
	}
	return UAR_ENOTIMPL;
}
