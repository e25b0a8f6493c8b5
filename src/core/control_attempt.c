/* control_attempt.c - attempts at tasks: an attempt is a run, and its end moves its task.
 *
 * A run of a task that has a row does not tell the task's end: settle_task does, with the row
 * and with what becomes of the tasks that wait for it, in one append behind the run's end. The
 * row says that an attempt is alive, so a start finds what was not settled. */
#include "core/control_int.h"
#include "core/limits.h"

/* --- may it begin? --------------------------------------------------------------------------- */

/* Nothing starts below a task that is being cancelled, or was. */
void ctl_check_ancestors(struct ctl *c, const struct uar_row_task *t)
{
	for (int i = 0; t && t->row.parent.n && i < UAR_LIMIT_TASK_DEPTH; i++) {
		t = ctl_row(c, UAR_ROW_TASK, t->row.parent);
		if (t && t->cancel_requested) {
			ctl_refuse(c, UAR_ESTATE, "/task_id",
				   "task %.*s above it is cancelled: nothing new starts below it",
				   UAR_FMT(t->row.id));
			return;
		}
	}
}

/* The same for what works for the task. */
void ctl_check_holds(struct ctl *c, uar_str task_id, const char *where)
{
	const struct uar_row_task *t = ctl_row(c, UAR_ROW_TASK, task_id);

	for (int i = 0; t && i < UAR_LIMIT_TASK_DEPTH; i++) {
		if (t->cancel_requested)
			ctl_refuse(c, UAR_ESTATE, where,
				   "task %.*s was cancelled: nothing new starts for it",
				   UAR_FMT(t->row.id));
		t = t->row.parent.n ? ctl_row(c, UAR_ROW_TASK, t->row.parent) : NULL;
	}
}

const char *ctl_why_not_begin(const struct uar_row_task *t)
{
	if (t->run_live)
		return "an attempt of the task is at work";
	if (t->cancel_requested)
		return "the task was cancelled: its cancel holds";
	if (ctl_is_draft(t))
		return "the task is a draft: accept it first";
	if (t->paused)
		return "the task is paused";
	return t->blockers ? "the task waits for others" : NULL;
}

static bool may_begin(struct ctl *c, const struct uar_row_task *t)
{
	const char *why = ctl_why_not_begin(t);

	if (why)
		ctl_refuse(c, UAR_ESTATE, "/task_id", "%s", why);
	ctl_check_ancestors(c, t);
	return !c->e.err && !c->waits;
}

/* --- begin ----------------------------------------------------------------------------------- */

static void end_attempt(struct ctl *c, struct uar_row_task *t,
			const struct uar_ctl_settle_task *end);

static void tell_attempt(struct ctl *c, struct uar_row_task *t, const struct uar_run *r)
{
	struct uar_jw *w;

	if (c->e.err || c->waits)
		return;
	if (!t->row.session_id.n)
		t->row.session_id = c->e.s->session_id;
	w = ctl_result(c);
	uar_jw_obj(w, "task");
	uar_task_write(w, t);
	uar_jw_close(w);
	uar_jw_obj(w, "attempt");
	uar_jw_str(w, "run_id", r->id.run_id);
	uar_jw_str(w, "turn_id", r->id.turn_id);
	uar_jw_str(w, "thread_id", r->id.thread_id);
	uar_jw_int(w, "attempt", r->what.attempt);
	uar_jw_cstr(w, "status", uar_status_text(r->status));
	uar_jw_close(w);
	ctl_result_end(c);
}

static void keep_attempt(struct ctl *c, struct uar_row_task *t, const struct uar_run *r)
{
	ctl_change(c, t);
	t->attempts = r->what.attempt;
	t->current_run_id = r->id.run_id;
	t->first_run_id = t->first_run_id.n ? t->first_run_id : r->id.run_id;
	t->turn_id = r->id.turn_id;
	t->run_live = t->row.open = true;
	t->started_at = r->at.started_us ? r->at.started_us : t->started_at;
	t->ended_at = 0;
	t->has_progress = false;
	t->progress = 0;
	t->status_reason = UAR_STR_NONE;
	t->base_status = r->status == UAR_STATUS_QUEUED ? UAR_STR("queued") : UAR_STR("running");
	ctl_settle_status(t);
}

/* Some runs are over with their first append. */
static struct uar_ctl_settle_task end_of(const struct uar_run *r)
{
	const struct uar_run_end *end = &uar_run_rare(r)->end;

	return (struct uar_ctl_settle_task){
		.run_id = r->id.run_id,
		.status = uar_str_c(uar_status_text(r->status)),
		.code = uar_str_c(end->code),
		.message = uar_str_c(end->message),
		.retryable = end->retryable,
		.result_refs = r->result_refs.ids,
	};
}

static void begin_attempt(struct ctl *c, struct uar_row_task *t, enum uar_cause cause,
			  uar_str reason)
{
	struct uar_command create = { .kind = UAR_CMD_CREATE, .create = *c->in->create };
	struct uar_create *cr = &create.create;
	const struct uar_run *r = c->in->fresh;

	cr->what.attempt = t->attempts + 1;
	cr->what.task_made = cr->task_given = true;
	cr->what.cause = cause;
	cr->task_id = t->row.id;
	cr->parent_run_id = t->current_run_id;
	cr->root_run_id = t->first_run_id;
	cr->reason = reason;
	ctl_decide_run(c, UAR_CONTROL_FRESH, &create);
	if (c->e.err)
		return;
	keep_attempt(c, t, r);
	if (uar_status_terminal(r->status)) {
		struct uar_ctl_settle_task end = end_of(r);

		end_attempt(c, t, &end);
	}
	tell_attempt(c, t, r);
}

/* A task that is over has another attempt when it is asked for by a run. */
static void retry(struct ctl *c, struct uar_row_task *t, enum uar_cause cause, uar_str reason)
{
	struct uar_jw *w;

	if (uar_str_is(t->row.status, "archived")) {
		ctl_refuse(c, UAR_ESTATE, "/task_id", "the task is archived");
		return;
	}
	if (!may_begin(c, t))
		return;
	if (!t->attempts) { /* else the attempt says so */
		w = uar_emit_begin(&c->e);
		uar_jw_cstr(w, "status", "retrying");
		uar_jw_int(w, "next_attempt", 1);
		uar_jw_str(w, "reason", reason.n ? reason : UAR_STR("requested"));
		uar_jw_bool(w, "fallback", false);
		ctl_emit_task(c, t, UAR_EV_TASK_RETRYING);
	}
	begin_attempt(c, t, cause, reason);
}

void ctl_start_task(struct ctl *c)
{
	struct uar_row_task *t = ctl_task(c, c->in->start_task.task_id, "/task_id");

	if (!t)
		return;
	if (ctl_task_over(t) && c->in->by_run)
		retry(c, t, UAR_CAUSE_RERUN, UAR_STR_NONE);
	else if (ctl_task_over(t))
		ctl_refuse(c, UAR_ESTATE, "/task_id",
			   "the task is %.*s: retry_task makes another attempt",
			   UAR_FMT(t->row.status));
	else if (may_begin(c, t))
		begin_attempt(c, t, t->attempts ? UAR_CAUSE_RERUN : UAR_CAUSE_FIRST, UAR_STR_NONE);
}

static enum uar_cause cause_of(uar_str word)
{
	if (uar_str_is(word, "recovery"))
		return UAR_CAUSE_RESUME;
	return word.n ? uar_cause_parse(word) : UAR_CAUSE_RETRY;
}

void ctl_retry_task(struct ctl *c)
{
	const struct uar_ctl_retry_task *in = &c->in->retry_task;
	struct uar_row_task *t = ctl_task(c, in->task_id, "/task_id");

	if (!t)
		return;
	if (!ctl_task_over(t))
		ctl_refuse(c, UAR_ESTATE, "/task_id",
			   "the task is %.*s: only one that is over is retried",
			   UAR_FMT(t->row.status));
	else
		retry(c, t, cause_of(in->cause), in->reason.n ? in->reason : in->cause);
}

/* Its turn has come. The attempt of a task that is paused or blocked stays queued; the shell
 * asks again when the task goes on. */
void ctl_start_attempt(struct ctl *c)
{
	const struct uar_ctl_start_attempt *in = &c->in->start_attempt;
	struct uar_row_task *t = ctl_task(c, in->task_id, "/task_id");
	struct uar_command start = { .kind = UAR_CMD_START };

	if (!t || !c->in->target || t->paused || t->blockers)
		return;
	ctl_decide_run(c, UAR_CONTROL_TARGET, &start);
	if (c->e.err || !uar_str_eq(t->current_run_id, in->run_id))
		return;
	keep_attempt(c, t, c->in->target);
	if (uar_status_terminal(c->in->target->status)) {
		struct uar_ctl_settle_task end = end_of(c->in->target);

		end_attempt(c, t, &end);
	}
}

/* The run has said that it waits, or goes on; the row of its task follows in an append of its
 * own, as a run does not know the row. */
void ctl_follow_attempt(struct ctl *c)
{
	const struct uar_ctl_follow_attempt *in = &c->in->follow_attempt;
	struct uar_row_task *t = ctl_task(c, in->task_id, "/task_id");
	struct uar_jw *w;

	if (!t || !uar_str_eq(t->current_run_id, in->run_id) || !ctl_at_work(t) ||
	    t->cancel_requested || uar_str_eq(t->base_status, in->status))
		return;
	ctl_change(c, t);
	t->base_status = in->status;
	ctl_settle_status(t);
	w = uar_emit_begin(&c->e);
	uar_jw_str(w, "status", t->row.status);
	uar_emit_name(&c->e, UAR_ID_TASK, t->row.id);
	uar_emit_name(&c->e, UAR_ID_THREAD, t->thread_id);
	uar_emit_vendor(&c->e, "vendor.uar.task.followed", EMIT_SESSION);
}

/* --- end ------------------------------------------------------------------------------------- */

void ctl_emit_waiting(struct ctl *c, const struct uar_row_task *t)
{
	struct uar_jw *w = uar_emit_begin(&c->e);

	uar_jw_cstr(w, "status", "waiting_input");
	uar_jw_obj(w, "waiting_on");
	uar_jw_cstr(w, "kind", "input");
	uar_jw_cstr(w, "description", "complete_task with the facts of its acceptance");
	uar_jw_close(w);
	uar_jw_time(w, "since", c->e.env->now_us);
	ctl_emit_task(c, t, UAR_EV_TASK_WAITING);
}

static void end_well(struct ctl *c, struct uar_row_task *t)
{
	if (t->acceptance.n && !uar_str_is(t->acceptance, "[]")) {
		ctl_emit_waiting(c, t);
		t->base_status = UAR_STR("waiting_input");
		t->status_reason = UAR_STR("its acceptance has to be declared");
		ctl_settle_status(t);
		if (uar_str_is(t->row.status, "blocked"))
			ctl_emit_blocked(c, t, UAR_STR_NONE);
		return;
	}
	if (uar_str_is(t->delivery_state, "not_applicable"))
		t->delivery_state = UAR_STR("delivered");
	ctl_emit_completed(c, t);
	ctl_end_task(c, t, "completed");
}

static void emit_timed_out(struct ctl *c, const struct uar_row_task *t,
			   const struct uar_ctl_settle_task *end)
{
	struct uar_jw *w = uar_emit_begin(&c->e);
	int64_t took = c->e.env->now_us - t->started_at;

	uar_jw_cstr(w, "status", "timed_out");
	uar_jw_cstr(w, "limit", "time");
	uar_jw_int(w, "limit_ms", end->limit_ms);
	uar_jw_int(w, "elapsed_ms", took > 0 ? took / 1000 : 0);
	uar_jw_raw(w, "result_refs", t->result_refs.n ? t->result_refs : UAR_STR("[]"));
	ctl_emit_task(c, t, UAR_EV_TASK_TIMED_OUT);
}

static void emit_lost(struct ctl *c, const struct uar_row_task *t,
		      const struct uar_ctl_settle_task *end)
{
	struct uar_jw *w = uar_emit_begin(&c->e);

	uar_jw_cstr(w, "status", "lost");
	uar_jw_obj(w, "worker");
	uar_jw_cstr(w, "kind", "in_process");
	uar_jw_str(w, "id", end->run_id);
	uar_jw_close(w);
	uar_jw_time(w, "last_seen_at", end->last_seen ? end->last_seen : c->e.env->now_us);
	uar_jw_cstr(w, "cause", "restart");
	uar_jw_bool(w, "recoverable", true);
	ctl_emit_task(c, t, UAR_EV_TASK_LOST);
}

static void end_badly(struct ctl *c, struct uar_row_task *t, const struct uar_ctl_settle_task *end)
{
	struct uar_failure f = {
		.code = end->code.n ? end->code : UAR_STR("FAILED"),
		.message = end->message,
		.category = end->failure_category.n ? end->failure_category : UAR_STR("execution"),
		.retryable = end->retryable,
	};

	t->last_error = ctl_error_text(c, &f);
	t->status_reason = end->message;
	if (uar_str_is(end->status, "timed_out"))
		emit_timed_out(c, t, end);
	else if (uar_str_is(end->status, "lost"))
		emit_lost(c, t, end);
	else
		ctl_emit_failed(c, t, &f);
	ctl_end_task(c, t,
		     uar_str_is(end->status, "timed_out") ? "timed_out"
		     : uar_str_is(end->status, "lost")	  ? "lost"
							  : "failed");
}

static void end_attempt(struct ctl *c, struct uar_row_task *t,
			const struct uar_ctl_settle_task *end)
{
	ctl_change(c, t);
	t->run_live = t->row.open = false;
	t->result_refs = end->result_refs.n ? end->result_refs : t->result_refs;
	if (t->cancel_requested || uar_str_is(end->status, "cancelled")) {
		uar_str reason = t->cancel_reason.n ? t->cancel_reason : end->message;

		t->status_reason = reason;
		ctl_emit_cancelled(c, t, "user", reason);
		ctl_end_task(c, t, "cancelled");
	} else if (uar_str_is(end->status, "completed")) {
		end_well(c, t);
	} else {
		end_badly(c, t, end);
	}
}

/* It may have been settled before: then nothing is left to do. */
void ctl_settle_task(struct ctl *c)
{
	const struct uar_ctl_settle_task *in = &c->in->settle_task;
	struct uar_row_task *t = ctl_task(c, in->task_id, "/task_id");

	if (t && t->run_live && uar_str_eq(t->current_run_id, in->run_id))
		end_attempt(c, t, in);
}
