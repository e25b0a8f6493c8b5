/* attempt.c - attempts at tasks that have a row: made from what the task says, and the task
 * follows their end.
 *
 * The end of a run and that of its task are two appends. The task's row says that an attempt is
 * alive until the second is durable, so the next start finds what is left to do. */
#include "engine/control_int.h"
#include "engine/limits.h"
#include "event/limits.h"

/* --- made ready ------------------------------------------------------------------------------ */

static uar_str first_of(uar_str a, uar_str b)
{
	return a.n ? a : b;
}

/* All members of the input but the message, as runs take them. */
static uar_err other_inputs(struct rt_control *c, const struct uar_json *input, uar_str *out)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_PREVIEW_BYTES);
	struct uar_jw w = uar_jw_begin(&text);
	size_t n = 0;
	uar_err e;

	uar_jw_obj(&w, NULL);
	for (const struct uar_json *m = input ? input->first : NULL; m; m = m->next) {
		if (uar_str_is(m->key, "message"))
			continue;
		uar_jw_key(&w, m->key);
		uar_jw_tree(&w, NULL, m);
		n++;
	}
	uar_jw_close(&w);
	e = uar_jw_end(&w);
	if (!e && n) {
		*out = uar_arena_str(&c->runs.kept, uar_buf_str(&text));
		e = out->p ? UAR_OK : UAR_ENOMEM;
	}
	uar_buf_fini(&text);
	return e;
}

static uar_err ready_attempt(struct rt_control *c, const struct uar_row_task *t)
{
	uar_str input = first_of(uar_control_str(&c->in, "input"), t->input);
	uar_str agent = first_of(uar_control_str(&c->in, "agent_id"), t->agent_id);
	struct uar_run_create *make = &c->runs.make;
	const struct uar_json *j = NULL;
	uar_err e = UAR_OK;

	if (!agent.n) {
		uar_error_where(&c->op->error, "/agent_id");
		return uar_error_set(&c->op->error, UAR_EINVALID,
				     "neither the command nor the task names an agent");
	}
	if (input.n)
		e = uar_json_parse(input, NULL, &c->runs.kept, &j, &c->op->error);
	*make = (struct uar_run_create){
		.agent_id = uar_arena_str(&c->runs.kept, agent),
		.message = uar_json_text(j, "message"),
		.conversation_id = uar_arena_str(&c->runs.kept, t->thread_id),
		.task_id = uar_arena_str(&c->runs.kept, t->row.id),
	};
	if (!make->message.n)
		make->message = uar_arena_str(&c->runs.kept, t->objective);
	else
		make->message = uar_arena_str(&c->runs.kept, make->message);
	snprintf(c->runs.thread_id, sizeof c->runs.thread_id, "%.*s", UAR_FMT(t->thread_id));
	if (!e)
		e = other_inputs(c, j, &make->inputs);
	return e ? e : rt_control_make_ready(c);
}

static void task_ready(struct uar_rows_query *q)
{
	struct rt_control *c = UAR_OWNER(q, struct rt_control, row);
	struct uar_row_task task;
	uar_err e = q->err;

	if (e == UAR_ENOTFOUND) {
		uar_error_where(&c->op->error, "/task_id");
		uar_error_set(&c->op->error, e, "there is no task %.*s", UAR_FMT(q->id));
	} else if (e) {
		c->op->error = q->error;
	}
	if (!e)
		e = uar_row_unpack(&q->rows[0], &q->arena, &task, sizeof task, &c->op->error);
	if (!e)
		e = ready_attempt(c, &task);
	uar_store_rows_fini(q);
	if (e)
		rt_control_finish(c, e, &c->op->error);
}

uar_err rt_control_prepare_attempt(struct rt_control *c)
{
	struct uar_store *store = c->rt->o.store;

	c->row = (struct uar_rows_query){
		.owner = c->in.owner,
		.kind = UAR_ROW_TASK,
		.id = uar_control_str(&c->in, "task_id"),
		.done = task_ready,
	};
	return store->ops->rows(store, &c->row);
}

/* --- commands of the engine itself ----------------------------------------------------------- */

/* A command to the task of a run; it frees itself. */
struct follow_up {
	struct rt_op under_way;
	struct uar_runtime *rt;
	struct uar_control in;
	struct uar_control_op op;
	struct uar_timer again;
	struct uar_runs_query row; /* of a run that ended before the last stop */
	struct uar_read read;
	struct uar_rows_query task;
	bool cancelled; /* the task is: its run is to be stopped, too */
	struct uar_run_cancel_op stop;
	struct uar_arena arena;
};

static void free_follow_up(struct follow_up *f)
{
	uar_timer_stop(f->rt->o.sched, &f->again);
	uar_arena_fini(&f->arena);
	uar_free(f);
}

static void drop_follow_up(struct rt_op *under_way)
{
	free_follow_up(UAR_OWNER(under_way, struct follow_up, under_way));
}

static void end_follow_up(struct follow_up *f)
{
	rt_op_end(&f->under_way);
	free_follow_up(f);
}

static void send_again(struct uar_timer *t);

/* What cannot be done now is done later, or by the next start. */
static void retry_or_leave(struct follow_up *f, void (*again)(struct uar_timer *), uar_err e)
{
	f->again.fn = again;
	if (!rt_worth_retrying(e) || f->rt->draining ||
	    uar_timer_set(f->rt->o.sched, &f->again, UAR_RETRY_US))
		end_follow_up(f);
}

static void followed(struct uar_control_op *op)
{
	struct follow_up *f = UAR_OWNER(op, struct follow_up, op);

	if (op->err && op->err != UAR_ESTATE && op->err != UAR_ENOTFOUND)
		retry_or_leave(f, send_again, op->err);
	else
		end_follow_up(f);
}

static void send_follow_up(struct follow_up *f)
{
	uar_err e;

	f->op = (struct uar_control_op){ .in = &f->in, .done = followed };
	e = uar_runtime_control(f->rt, &f->op);
	if (e)
		retry_or_leave(f, send_again, e);
}

static void send_again(struct uar_timer *t)
{
	send_follow_up(UAR_OWNER(t, struct follow_up, again));
}

static struct follow_up *make_follow_up(struct uar_runtime *rt, const struct uar_owner *owner)
{
	struct follow_up *f = uar_zalloc(sizeof *f);

	if (!f)
		return NULL;
	f->rt = rt;
	uar_arena_init(&f->arena, 0);
	if (!uar_owner_copy(&f->arena, owner, &f->in.owner)) {
		uar_arena_fini(&f->arena);
		uar_free(f);
		return NULL;
	}
	rt_op_begin(rt, &f->under_way, drop_follow_up);
	return f;
}

/* False: a string could not be kept, and f is gone. */
static bool own_strings(struct follow_up *f, uar_str *const *strings, size_t n)
{
	if (uar_arena_strs(&f->arena, strings, n))
		return true;
	end_follow_up(f);
	return false;
}

/* Without memory for it the next start does it. */
static void settle(struct follow_up *f, const struct uar_ctl_settle_task *end)
{
	struct uar_ctl_settle_task *s = &f->in.settle_task;
	uar_str *own[] = { &s->task_id, &s->run_id,	      &s->status,     &s->code,
			   &s->message, &s->failure_category, &s->result_refs };

	f->in.kind = UAR_CTL_SETTLE_TASK;
	*s = *end;
	if (own_strings(f, own, ARRAY_LEN(own)))
		send_follow_up(f);
}

void rt_attempt_ended(struct live_run *r)
{
	const struct uar_run *run = &r->state;
	const struct uar_run_end *end = &uar_run_rare(run)->end;
	struct follow_up *f = make_follow_up(r->agg->rt, &r->agg->state.owner);
	struct uar_ctl_settle_task how = {
		.task_id = run->id.task_id,
		.run_id = run->id.run_id,
		.status = uar_str_c(uar_status_text(run->status)),
		.code = uar_str_c(end->code),
		.message = uar_str_c(end->message),
		.retryable = end->retryable,
		.result_refs = run->result_refs.ids,
		.limit_ms = run->what.timeout_us / 1000,
		.last_seen = run->at.updated_us,
	};

	if (f)
		settle(f, &how);
	else
		uar_runtime_note_failure(r->agg->rt, UAR_ENOMEM);
}

void rt_attempt_start(struct live_run *r)
{
	struct uar_command start = { .kind = UAR_CMD_START };
	struct follow_up *f = make_follow_up(r->agg->rt, &r->agg->state.owner);
	struct uar_ctl_start_attempt *s = f ? &f->in.start_attempt : NULL;
	uar_str *own[] = { s ? &s->task_id : NULL, s ? &s->run_id : NULL };

	if (!f) {
		rt_send(r, &start); /* the task's row follows with its end */
		return;
	}
	f->in.kind = UAR_CTL_START_ATTEMPT;
	s->task_id = r->state.id.task_id;
	s->run_id = uar_str_c(r->run_id);
	if (own_strings(f, own, ARRAY_LEN(own)))
		send_follow_up(f);
	else
		rt_send(r, &start);
}

static bool is_waiting(enum uar_status s)
{
	return s == UAR_STATUS_WAITING_INPUT || s == UAR_STATUS_WAITING_PERMISSION ||
	       s == UAR_STATUS_WAITING_RESOURCE;
}

/* Without memory for it the row says "running" until the next change. */
void rt_attempt_follow(struct live_run *r)
{
	enum uar_status now = r->state.status;
	struct follow_up *f = make_follow_up(r->agg->rt, &r->agg->state.owner);
	struct uar_ctl_follow_attempt *s = f ? &f->in.follow_attempt : NULL;
	uar_str *own[] = { s ? &s->task_id : NULL, s ? &s->run_id : NULL };

	if (!f) {
		uar_runtime_note_failure(r->agg->rt, UAR_ENOMEM);
		return;
	}
	f->in.kind = UAR_CTL_FOLLOW_ATTEMPT;
	s->task_id = r->state.id.task_id;
	s->run_id = uar_str_c(r->run_id);
	s->status = uar_str_c(uar_status_text(is_waiting(now) ? now : UAR_STATUS_RUNNING));
	if (own_strings(f, own, ARRAY_LEN(own)))
		send_follow_up(f);
}

/* --- cancel ---------------------------------------------------------------------------------- */

static void stop_attempt(struct agg *a, const struct uar_row_task *t)
{
	struct live_run *r = rt_run_find(a->rt, &a->state.owner, t->current_run_id);
	struct uar_command cancel = { .kind = UAR_CMD_CANCEL, .text = t->cancel_reason };

	if (r && r->agg == a && r->committed)
		rt_send(r, &cancel);
}

/* An attempt whose task was paused or blocked when its turn came. */
static void start_held(struct agg *a, const struct uar_row_task *t)
{
	const struct live_run *r = rt_run_find(a->rt, &a->state.owner, t->current_run_id);

	if (!t->paused && !t->blockers && uar_str_is(t->base_status, "queued") && r && r->agg == a)
		rt_start_next(a, uar_str_c(r->thread_id));
}

void rt_attempt_learn(struct agg *a, const struct uar_row *row)
{
	struct uar_row_task t;
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	if (!uar_row_unpack(row, &arena, &t, sizeof t, NULL)) {
		if (t.cancel_delegated)
			rt_fanout_task_stopped(a, row->id);
		if (t.run_live && t.cancel_requested)
			stop_attempt(a, &t);
		else if (t.run_live)
			start_held(a, &t);
	}
	uar_arena_fini(&arena);
}

/* --- after a start --------------------------------------------------------------------------- */

static void settle_by_event(struct follow_up *f, const struct uar_event *ev)
{
	const struct uar_json *p = NULL, *refs, *error;
	struct uar_ctl_settle_task how = f->in.settle_task;

	if (uar_event_payload(ev, &f->arena, &p, NULL)) {
		end_follow_up(f);
		return;
	}
	refs = uar_json_get(p, UAR_STR("result_refs"));
	error = uar_json_get(p, UAR_STR("error"));
	how.status = uar_json_str(uar_json_get(p, UAR_STR("status")), UAR_STR("failed"));
	how.code = uar_json_text(error, "code");
	how.message = uar_json_text(p, "message");
	how.failure_category = uar_json_text(p, "failure_category");
	how.retryable = uar_json_bool(uar_json_get(p, UAR_STR("retryable")), false);
	how.result_refs = refs ? refs->text : UAR_STR_NONE;
	how.last_seen = ev->time_us;
	settle(f, &how);
}

static void end_read(struct uar_read *read)
{
	struct follow_up *f = UAR_OWNER(read, struct follow_up, read);
	const struct uar_event *end = NULL;

	for (size_t i = 0; i < read->event_count && !read->err; i++)
		if (read->events[i].cls == UAR_EV_TASK_ATTEMPT_COMPLETED ||
		    read->events[i].cls == UAR_EV_TASK_ATTEMPT_FAILED)
			end = &read->events[i];
	if (end) {
		settle_by_event(f, end);
		uar_store_read_fini(read);
		return;
	}
	uar_store_read_fini(read);
	end_follow_up(f);
}

static void asked_to_stop(struct uar_run_cancel_op *op);

static void stop_run(struct uar_timer *t)
{
	struct follow_up *f = UAR_OWNER(t, struct follow_up, again);
	uar_err e;

	f->stop.owner = f->in.owner;
	f->stop.run_id = f->in.settle_task.run_id;
	f->stop.done = asked_to_stop;
	e = uar_runtime_cancel_run(f->rt, &f->stop);
	if (e)
		retry_or_leave(f, stop_run, e);
}

/* Its end is told like any other. One that ended meanwhile has told it. */
static void asked_to_stop(struct uar_run_cancel_op *op)
{
	struct follow_up *f = UAR_OWNER(op, struct follow_up, stop);

	retry_or_leave(f, stop_run, op->err);
}

enum { LAST_EVENTS = 8 }; /* of a run: its end is among them */

static void run_found(struct uar_runs_query *q)
{
	struct follow_up *f = UAR_OWNER(q, struct follow_up, row);
	struct uar_store *store = f->rt->o.store;
	bool over = !q->err && q->rows[0].terminal;
	uint64_t last = over ? q->rows[0].last_run_sequence : 0;
	uar_err e = q->err;

	uar_store_query_fini(q);
	if (over) {
		f->read = (struct uar_read){
			.owner = f->in.owner,
			.run_id = f->in.settle_task.run_id,
			.after = last > LAST_EVENTS ? last - LAST_EVENTS : 0,
			.limit = LAST_EVENTS,
			.done = end_read,
		};
		e = store->ops->read(store, &f->read);
	}
	if (!e && !over && f->cancelled)
		stop_run(&f->again); /* it waits outside of memory, and heard of no cancel */
	else if (e || !over)
		end_follow_up(f); /* it is alive, and its end will be told */
}

/* The run of the task is not in memory: it ended, or it waits. */
static void settle_from_store(struct uar_runtime *rt, const struct uar_owner *owner,
			      const struct uar_row_task *t)
{
	struct follow_up *f = make_follow_up(rt, owner);
	struct uar_ctl_settle_task *s = f ? &f->in.settle_task : NULL;
	uar_str *own[] = { s ? &s->task_id : NULL, s ? &s->run_id : NULL,
			   f ? &f->stop.reason : NULL };
	uar_err e;

	if (!f)
		return;
	f->in.kind = UAR_CTL_SETTLE_TASK;
	s->task_id = t->row.id;
	s->run_id = t->current_run_id;
	f->cancelled = t->cancel_requested;
	f->stop.reason = t->cancel_reason;
	if (!own_strings(f, own, ARRAY_LEN(own)))
		return;
	f->row = (struct uar_runs_query){
		.owner = f->in.owner,
		.run_id = s->run_id,
		.limit = 1,
		.done = run_found,
	};
	e = rt->o.store->ops->runs(rt->o.store, &f->row);
	if (e)
		end_follow_up(f);
}

/* Whether its run is to be stopped; the reason goes to f. */
static bool is_cancelled(struct follow_up *f, const struct uar_row *row)
{
	uar_str *reason = &f->stop.reason;
	struct uar_row_task t;

	if (uar_row_unpack(row, &f->arena, &t, sizeof t, NULL) || !t.run_live ||
	    !t.cancel_requested)
		return false;
	*reason = t.cancel_reason;
	return uar_arena_strs(&f->arena, &reason, 1);
}

static void recovered_task_ready(struct uar_rows_query *q)
{
	struct follow_up *f = UAR_OWNER(q, struct follow_up, task);
	struct live_run *r = rt_run_find(f->rt, &f->in.owner, f->in.settle_task.run_id);

	if (!q->err && r)
		rt_attempt_learn(r->agg, &q->rows[0]);
	if (!q->err && r && r->committed && is_waiting(r->state.status))
		rt_attempt_follow(r); /* a kill may have come between its fact and the row */
	f->cancelled = !q->err && !r && is_cancelled(f, &q->rows[0]); /* it left memory meanwhile */
	uar_store_rows_fini(q);
	if (f->cancelled)
		stop_run(&f->again);
	else
		end_follow_up(f);
}

void rt_attempt_recovered(struct live_run *r)
{
	struct uar_store *store = r->agg->rt->o.store;
	struct follow_up *f = make_follow_up(r->agg->rt, &r->agg->state.owner);
	struct uar_ctl_settle_task *s = f ? &f->in.settle_task : NULL;
	uar_str *own[] = { s ? &s->task_id : NULL, s ? &s->run_id : NULL };

	if (!f)
		return;
	s->task_id = r->state.id.task_id;
	s->run_id = uar_str_c(r->run_id);
	if (!own_strings(f, own, ARRAY_LEN(own)))
		return;
	f->task = (struct uar_rows_query){
		.owner = f->in.owner,
		.kind = UAR_ROW_TASK,
		.id = s->task_id,
		.done = recovered_task_ready,
	};
	if (store->ops->rows(store, &f->task))
		end_follow_up(f);
}

/* What a start looks for below each owner that has open sessions. */
static const enum uar_row_kind open_kinds[] = { UAR_ROW_TASK,	       UAR_ROW_SUBAGENT,
						UAR_ROW_SUBAGENT_TURN, UAR_ROW_JOB,
						UAR_ROW_JOB_ITEM,      UAR_ROW_INTENT };

struct task_scan {
	struct rt_op under_way;
	struct uar_runtime *rt;
	struct uar_sessions_query sessions;
	struct uar_rows_query rows;
	struct uar_owner *owners; /* seen so far */
	size_t owner_count, owner_at, kind_at;
	struct uar_arena arena;
	uar_str after; /* cursor */
};

static void free_scan(struct task_scan *s)
{
	uar_free(s->owners);
	uar_arena_fini(&s->arena);
	uar_free(s);
}

static void drop_scan(struct rt_op *under_way)
{
	free_scan(UAR_OWNER(under_way, struct task_scan, under_way));
}

static void end_scan(struct task_scan *s)
{
	rt_op_end(&s->under_way);
	free_scan(s);
}

static void tasks_listed(struct uar_rows_query *q);

static void ask_tasks(struct task_scan *s)
{
	struct uar_store *store = s->rt->o.store;

	if (s->owner_at == s->owner_count || s->rt->draining) {
		end_scan(s);
		return;
	}
	s->rows = (struct uar_rows_query){
		.owner = s->owners[s->owner_at],
		.kind = open_kinds[s->kind_at],
		.open = UAR_ROWS_OPEN,
		.after = s->after,
		.limit = UAR_LIMIT_LIST_PAGE,
		.done = tasks_listed,
	};
	if (store->ops->rows(store, &s->rows))
		end_scan(s);
}

static void recover_task(struct task_scan *s, struct uar_rows_query *q, const struct uar_row *row)
{
	const struct uar_owner *owner = &s->owners[s->owner_at];
	struct uar_row_task t;

	if (!uar_row_unpack(row, &q->arena, &t, sizeof t, NULL) && t.run_live &&
	    (t.cancel_requested || !rt_run_find(s->rt, owner, t.current_run_id)))
		settle_from_store(s->rt, owner, &t);
}

/* A command that reaches the tasks below one was not finished. */
static void recover_intent(struct task_scan *s, struct uar_rows_query *q, const struct uar_row *row)
{
	struct follow_up *f = make_follow_up(s->rt, &s->owners[s->owner_at]);
	struct uar_ctl_cancel_task *in = f ? &f->in.cancel_task : NULL;
	uar_str *own[] = { in ? &in->task_id : NULL, in ? &in->reason : NULL,
			   in ? &in->propagation : NULL };
	struct uar_row_intent i;

	if (!f)
		return;
	if (uar_row_unpack(row, &q->arena, &i, sizeof i, NULL)) {
		end_follow_up(f);
		return;
	}
	f->in.kind = uar_str_is(i.verb, "cancel") ? UAR_CTL_CANCEL_TASK : UAR_CTL_RESUME_TASK;
	_Static_assert(offsetof(struct uar_ctl_cancel_task, propagation) ==
			       offsetof(struct uar_ctl_resume_task, propagation),
		       "both have the same members");
	in->task_id = row->id;
	in->reason = i.reason;
	in->propagation = i.propagation;
	if (own_strings(f, own, ARRAY_LEN(own)))
		send_follow_up(f);
}

/* The next page, kind or owner. */
static void move_on(struct task_scan *s, uar_str next)
{
	s->after = next;
	if (next.n)
		return;
	s->kind_at = (s->kind_at + 1) % ARRAY_LEN(open_kinds);
	s->owner_at += !s->kind_at;
}

static void tasks_listed(struct uar_rows_query *q)
{
	struct task_scan *s = UAR_OWNER(q, struct task_scan, rows);

	for (size_t i = 0; i < q->row_count && !q->err; i++)
		if (q->kind == UAR_ROW_TASK)
			recover_task(s, q, &q->rows[i]);
		else if (q->kind == UAR_ROW_INTENT)
			recover_intent(s, q, &q->rows[i]);
		else
			rt_fanout_recovered(s->rt, &s->owners[s->owner_at], &q->rows[i]);
	move_on(s, !q->err && q->more ? uar_arena_str(&s->arena, q->next) : UAR_STR_NONE);
	uar_store_rows_fini(q);
	ask_tasks(s);
}

bool rt_same_owner(const struct uar_owner *a, const struct uar_owner *b)
{
	return uar_str_eq(a->tenant, b->tenant) && uar_str_eq(a->workspace, b->workspace) &&
	       uar_str_eq(a->user, b->user);
}

static void note_owner(struct task_scan *s, const struct uar_owner *owner)
{
	struct uar_owner *grown;

	for (size_t i = 0; i < s->owner_count; i++)
		if (rt_same_owner(&s->owners[i], owner))
			return;
	grown = uar_realloc(s->owners, (s->owner_count + 1) * sizeof *grown);
	if (!grown)
		return;
	s->owners = grown;
	if (uar_owner_copy(&s->arena, owner, &s->owners[s->owner_count]))
		s->owner_count++;
}

static void sessions_listed(struct uar_sessions_query *q);

static uar_err ask_sessions(struct task_scan *s)
{
	struct uar_store *store = s->rt->o.store;

	s->sessions = (struct uar_sessions_query){
		.which = UAR_SESSIONS_OPEN,
		.after = s->after,
		.limit = UAR_LIMIT_LIST_PAGE,
		.done = sessions_listed,
	};
	return store->ops->sessions(store, &s->sessions);
}

static void sessions_listed(struct uar_sessions_query *q)
{
	struct task_scan *s = UAR_OWNER(q, struct task_scan, sessions);
	bool more = !q->err && q->more && !s->rt->draining;

	for (size_t i = 0; i < q->count && !q->err; i++)
		note_owner(s, &q->sessions[i].owner);
	s->after = more ? uar_arena_str(&s->arena, q->next) : UAR_STR_NONE;
	uar_store_sessions_fini(q);
	if (more && s->after.p && !ask_sessions(s))
		return;
	s->after = UAR_STR_NONE;
	ask_tasks(s);
}

void rt_attempts_recover(struct uar_runtime *rt)
{
	struct task_scan *s = rt->o.store->ops->sessions ? uar_zalloc(sizeof *s) : NULL;

	if (!s)
		return;
	s->rt = rt;
	uar_arena_init(&s->arena, 0);
	if (ask_sessions(s)) {
		free_scan(s);
		return;
	}
	rt_op_begin(rt, &s->under_way, drop_scan);
}
