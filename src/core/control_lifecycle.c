/* control_lifecycle.c - tasks are paused, resumed, cancelled, completed, failed.
 *
 * With `propagation` the same happens to the tasks below, level by level. Nothing starts
 * below a task whose cancel was asked for: the intent is in its row. */
#include "core/control_int.h"

enum { LISTED_TARGETS = 100 }; /* of one fact; all are stopped */

/* --- pause and resume ------------------------------------------------------------------------ */

/* Is it the edge to a job or an agent that works for the task? */
static bool is_delegation(const struct uar_row_edge *edge)
{
	return edge && uar_str_is(edge->edge_kind, "spawned_subagent") &&
	       uar_str_is(edge->row.status, "active") && edge->reason.n;
}

static void emit_paused(struct ctl *c, const struct uar_row_task *t, uar_str reason)
{
	struct uar_jw *w = uar_emit_begin(&c->e);

	uar_jw_cstr(w, "status", "paused");
	uar_jw_str(w, "reason", reason);
	ctl_put_who(w, "requested_by", c->in);
	uar_jw_arr(w, "propagated_to");
	uar_jw_close(w);
	ctl_emit_task(c, t, UAR_EV_TASK_PAUSED);
}

/* A model or a program at work cannot be suspended, so its task is not said to be paused. */
static void check_idle(struct ctl *c, const struct uar_row_task *t)
{
	if (ctl_at_work(t))
		ctl_refuse(c, UAR_ESTATE, "/task_id",
			   "an attempt of task %.*s is at work and cannot be paused: wait for its "
			   "end, or cancel the task",
			   UAR_FMT(t->row.id));
}

static bool is_at_work(struct ctl *c, const struct uar_row_edge *edge)
{
	const struct uar_row_subagent *s;
	const struct uar_row_job *j;

	if (uar_str_is(edge->reason, "job")) {
		j = ctl_row(c, UAR_ROW_JOB, edge->row.tag);
		return j && uar_str_is(j->row.status, "running");
	}
	s = ctl_row(c, UAR_ROW_SUBAGENT, edge->row.tag);
	return s && !uar_subagent_at_rest(s);
}

/* Nor can agents and jobs that work for it. */
static void check_delegated(struct ctl *c, const struct uar_row_task *t)
{
	const struct uar_need need = { .kind = UAR_ROW_EDGE, .parent = t->row.id };
	const struct uar_loaded *edges = ctl_load(c, &need);

	for (size_t i = 0; edges && i < edges->count && !c->e.err; i++) {
		const struct uar_row_edge *edge = ctl_row_of(c, &edges->rows[i]);

		if (is_delegation(edge) && is_at_work(c, edge))
			ctl_refuse(c, UAR_ESTATE, "/propagation",
				   "%.*s %.*s works for task %.*s and cannot be paused: wait for "
				   "its end, or cancel the task",
				   UAR_FMT(edge->reason), UAR_FMT(edge->row.tag),
				   UAR_FMT(t->row.id));
	}
}

static bool reaches_below(uar_str propagation)
{
	return propagation.n && !uar_str_is(propagation, "none");
}

/* A draft has nothing to pause: it starts when it is accepted. */
static void pause_one(struct ctl *c, struct uar_row_task *t, uar_str reason)
{
	if (ctl_task_over(t) || t->paused || t->cancel_requested || ctl_is_draft(t))
		return;
	check_idle(c, t);
	if (reaches_below(c->in->pause_task.propagation))
		check_delegated(c, t);
	emit_paused(c, t, reason);
	ctl_change(c, t);
	t->paused = true;
	ctl_settle_status(t);
	t->status_reason = reason;
}

static bool may_change(struct ctl *c, const struct uar_row_task *t)
{
	if (ctl_task_over(t))
		ctl_refuse(c, UAR_ESTATE, NULL, "the task is %.*s", UAR_FMT(t->row.status));
	else if (t->cancel_requested)
		ctl_refuse(c, UAR_ESTATE, NULL, "the task is being cancelled");
	return !c->e.err;
}

void ctl_pause_task(struct ctl *c)
{
	const struct uar_ctl_pause_task *in = &c->in->pause_task;
	struct uar_row_task *t = ctl_task(c, in->task_id, "/task_id");

	if (!t || !may_change(c, t))
		return;
	if (ctl_is_draft(t))
		ctl_refuse(c, UAR_ESTATE, "/task_id", "the task is a draft: accept it first");
	pause_one(c, t, in->reason);
	/* All of them or none: one that is at work cannot be paused. */
	ctl_propagate(c, &(struct ctl_propagation){ .verb = "pause",
						    .task_id = in->task_id,
						    .propagation = in->propagation,
						    .reason = in->reason,
						    .change = pause_one,
						    .at_once = true });
	ctl_tell_task(c, t);
}

/* It is what it was before. */
static void resume_one(struct ctl *c, struct uar_row_task *t, uar_str reason)
{
	struct uar_jw *w;

	if (!t->paused)
		return;
	ctl_change(c, t);
	t->paused = false;
	t->status_reason = reason;
	ctl_settle_status(t);
	w = uar_emit_begin(&c->e);
	uar_jw_cstr(w, "status", ctl_at_work(t) ? "running" : "queued");
	uar_jw_cstr(w, "resumed_from", "paused");
	uar_jw_str(w, "reason", reason);
	ctl_put_who(w, "requested_by", c->in);
	ctl_emit_task(c, t, UAR_EV_TASK_RESUMED);
	ctl_emit_standing(c, t);
}

void ctl_resume_task(struct ctl *c)
{
	const struct uar_ctl_resume_task *in = &c->in->resume_task;
	struct uar_row_task *t = ctl_task(c, in->task_id, "/task_id");

	if (!t || !may_change(c, t))
		return;
	resume_one(c, t, in->reason);
	ctl_propagate(c, &(struct ctl_propagation){ .verb = "resume",
						    .task_id = in->task_id,
						    .propagation = in->propagation,
						    .reason = in->reason,
						    .change = resume_one });
	ctl_tell_task(c, t);
}

/* --- the end --------------------------------------------------------------------------------- */

/* The task is over: those that wait for it are told. */
static void release_dependents(struct ctl *c, const struct uar_row_task *t)
{
	const struct uar_need need = { .kind = UAR_ROW_EDGE, .parent = t->row.id };
	const struct uar_loaded *edges = ctl_load(c, &need);

	for (size_t i = 0; edges && i < edges->count && !c->e.err; i++) {
		const struct uar_row_edge *edge = ctl_row_of(c, &edges->rows[i]);

		if (edge && ctl_is_waited_for(t, edge))
			ctl_unblock(c, edge->row.tag);
	}
}

void ctl_end_task(struct ctl *c, struct uar_row_task *t, const char *status)
{
	ctl_change(c, t);
	t->row.status = t->base_status = uar_str_c(status);
	t->paused = t->run_live = false;
	t->ended_at = c->e.env->now_us;
	t->row.open = false;
	release_dependents(c, t);
	t->released = (int64_t)c->e.s->sequence;
}

static bool cancels_delegated(const struct ctl *c)
{
	return reaches_below(c->in->cancel_task.propagation);
}

static void put_target(struct uar_jw *w, uar_str kind, uar_str id)
{
	uar_jw_obj(w, NULL);
	uar_jw_str(w, "kind", kind);
	uar_jw_str(w, "id", id);
	uar_jw_close(w);
}

/* The agents and jobs that the cancel reaches. The shell stops them: what it still has to do is
 * in the rows, of the task and of them. */
static void put_targets(struct ctl *c, struct uar_jw *w, const struct uar_loaded *edges)
{
	uar_jw_arr(w, "targets");
	for (size_t i = 0, n = 0; edges && i < edges->count && n < LISTED_TARGETS; i++) {
		const struct uar_row_edge *edge = ctl_row_of(c, &edges->rows[i]);

		if (!is_delegation(edge))
			continue;
		put_target(w, edge->reason, edge->row.tag);
		n++;
	}
	uar_jw_close(w);
}

static void emit_cancel_requested(struct ctl *c, const struct uar_row_task *t, uar_str reason)
{
	const struct uar_need need = { .kind = UAR_ROW_EDGE, .parent = t->row.id };
	const struct uar_loaded *edges = cancels_delegated(c) ? ctl_load(c, &need) : NULL;
	struct uar_jw *w = uar_emit_begin(&c->e);
	uar_str how = c->in->cancel_task.propagation;

	uar_jw_cstr(w, "status", "cancelling");
	if (reason.n)
		uar_jw_str(w, "reason", reason);
	ctl_put_who(w, "requested_by", c->in);
	uar_jw_time(w, "requested_at", c->e.env->now_us);
	uar_jw_str(w, "propagation", how.n ? how : UAR_STR("none"));
	put_targets(c, w, edges);
	ctl_emit_task(c, t, UAR_EV_TASK_CANCEL_REQUESTED);
}

void ctl_emit_cancelled(struct ctl *c, const struct uar_row_task *t, const char *by, uar_str reason)
{
	struct uar_jw *w = uar_emit_begin(&c->e);

	uar_jw_cstr(w, "status", "cancelled");
	uar_jw_cstr(w, "cancelled_by", by);
	if (reason.n)
		uar_jw_str(w, "reason", reason);
	uar_jw_raw(w, "result_refs", t->result_refs.n ? t->result_refs : UAR_STR("[]"));
	ctl_emit_task(c, t, UAR_EV_TASK_CANCELLED);
}

/* A task whose attempt is at work is cancelled when that is over: the shell asks it to stop,
 * and settle_task follows. */
static void cancel_one(struct ctl *c, struct uar_row_task *t, uar_str reason)
{
	bool root = uar_str_eq(t->row.id, c->in->cancel_task.task_id);

	if (ctl_task_over(t) || t->cancel_requested)
		return;
	emit_cancel_requested(c, t, reason);
	ctl_change(c, t);
	t->cancel_requested = true;
	t->cancel_delegated = cancels_delegated(c);
	t->cancel_reason = t->status_reason = reason;
	if (t->run_live) {
		t->row.status = t->base_status = UAR_STR("cancelling");
		return;
	}
	ctl_emit_cancelled(c, t, root ? "user" : "parent", reason);
	ctl_end_task(c, t, "cancelled");
}

void ctl_cancel_task(struct ctl *c)
{
	const struct uar_ctl_cancel_task *in = &c->in->cancel_task;
	struct uar_row_task *t = ctl_task(c, in->task_id, "/task_id");

	if (!t)
		return;
	cancel_one(c, t, in->reason); /* one that is over stays what it is */
	ctl_propagate(c, &(struct ctl_propagation){ .verb = "cancel",
						    .task_id = in->task_id,
						    .propagation = in->propagation,
						    .reason = in->reason,
						    .change = cancel_one });
	ctl_tell_task(c, t);
}

/* The status of the required fact in what the caller brings; empty: it is not there. */
static uar_str fact_status(const struct uar_json *facts, uar_str id)
{
	const struct uar_json *j = facts ? facts->first : NULL;

	for (; j; j = j->next)
		if (uar_str_eq(uar_json_str(uar_json_get(j, UAR_STR("id")), UAR_STR_NONE), id))
			return uar_json_str(uar_json_get(j, UAR_STR("status")), UAR_STR_NONE);
	return UAR_STR_NONE;
}

static const struct uar_json *parse(struct ctl *c, uar_str text)
{
	const struct uar_json *j = NULL;

	if (text.n && !c->e.err)
		c->e.err = uar_json_parse(text, NULL, c->e.env->arena, &j, c->e.error);
	return j;
}

/* Completion is refused while a fact that it requires is missing. */
static void check_acceptance(struct ctl *c, const struct uar_row_task *t)
{
	const struct uar_json *want = parse(c, t->acceptance);
	const struct uar_json *have = parse(c, c->in->complete_task.acceptance);

	for (const struct uar_json *j = want ? want->first : NULL; j && !c->e.err; j = j->next) {
		uar_str id = uar_json_str(uar_json_get(j, UAR_STR("id")), UAR_STR_NONE);
		uar_str status = fact_status(have, id);

		if (!uar_str_is(status, "met") && !uar_str_is(status, "not_applicable"))
			ctl_refuse(c, UAR_ESTATE, "/acceptance",
				   "the task requires \"%.*s\", which is %.*s", UAR_FMT(id),
				   UAR_FMT(status.n ? status : UAR_STR("missing")));
	}
}

void ctl_emit_completed(struct ctl *c, const struct uar_row_task *t)
{
	struct uar_jw *w = uar_emit_begin(&c->e);
	uar_str refs = t->artifact_refs.n ? t->artifact_refs : UAR_STR("[]");

	uar_jw_cstr(w, "status", "completed");
	uar_jw_int(w, "attempt", t->attempts);
	uar_jw_raw(w, "acceptance", t->accepted_facts.n ? t->accepted_facts : UAR_STR("[]"));
	uar_jw_raw(w, "result_refs", t->result_refs.n ? t->result_refs : UAR_STR("[]"));
	uar_jw_str(w, "delivery_state", t->delivery_state);
	uar_jw_obj(w, "reconciled");
	uar_jw_bool(w, "artifacts", true);
	uar_jw_bool(w, "evidence", t->evidence_refs.n > 0);
	uar_jw_bool(w, "delivery", !uar_str_is(t->delivery_state, "pending"));
	uar_jw_close(w);
	uar_emit_refs(&c->e, uar_arena_printf(c->e.env->arena,
					      "{\"output_refs\":[],\"artifact_refs\":%.*s}",
					      UAR_FMT(refs)));
	ctl_emit_task(c, t, UAR_EV_TASK_COMPLETED);
}

static bool may_end(struct ctl *c, const struct uar_row_task *t)
{
	if (t->run_live)
		ctl_refuse(c, UAR_ESTATE, NULL, "an attempt of the task is at work");
	return may_change(c, t);
}

void ctl_complete_task(struct ctl *c)
{
	const struct uar_ctl_complete_task *in = &c->in->complete_task;
	struct uar_row_task *t = ctl_task(c, in->task_id, "/task_id");

	if (!t || !may_end(c, t))
		return;
	if (t->blockers)
		ctl_refuse(c, UAR_ESTATE, NULL, "the task waits for %lld others",
			   (long long)t->blockers);
	check_acceptance(c, t);
	if (c->e.err)
		return;
	ctl_change(c, t);
	t->accepted_facts = in->acceptance;
	t->artifact_refs = in->artifact_refs.n ? in->artifact_refs : t->artifact_refs;
	t->evidence_refs = in->evidence_refs.n ? in->evidence_refs : t->evidence_refs;
	t->result_refs = in->result_refs.n ? in->result_refs : t->result_refs;
	t->delivery_state = in->delivery_state.n ? in->delivery_state : t->delivery_state;
	ctl_emit_completed(c, t);
	ctl_end_task(c, t, "completed");
	ctl_tell_task(c, t);
}

uar_str ctl_error_text(struct ctl *c, const struct uar_failure *f)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
	struct uar_jw w = uar_jw_begin(&text);
	uar_str out = UAR_STR_NONE;

	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "code", f->code);
	uar_jw_str(&w, "message", f->message);
	uar_jw_str(&w, "failure_category", f->category);
	uar_jw_bool(&w, "retryable", f->retryable);
	uar_jw_close(&w);
	if (!uar_jw_end(&w))
		out = uar_arena_str(c->e.env->arena, uar_buf_str(&text));
	if (!out.p)
		ctl_fail(c, UAR_ENOMEM);
	uar_buf_fini(&text);
	return out;
}

void ctl_emit_failed(struct ctl *c, const struct uar_row_task *t, const struct uar_failure *f)
{
	struct uar_jw *w = uar_emit_begin(&c->e);

	uar_jw_cstr(w, "status", "failed");
	uar_jw_int(w, "attempt", t->attempts);
	uar_emit_error(w, "error", f, UAR_STR_NONE);
	uar_jw_str(w, "failure_category", f->category);
	uar_jw_str(w, "message", f->message);
	uar_jw_bool(w, "retryable", f->retryable);
	uar_jw_raw(w, "result_refs", t->result_refs.n ? t->result_refs : UAR_STR("[]"));
	ctl_emit_task(c, t, UAR_EV_TASK_FAILED);
}

void ctl_fail_task(struct ctl *c)
{
	const struct uar_ctl_fail_task *in = &c->in->fail_task;
	struct uar_row_task *t = ctl_task(c, in->task_id, "/task_id");
	struct uar_failure f = {
		.code = in->code.n ? in->code : UAR_STR("FAILED"),
		.message = in->message,
		.category = in->failure_category.n ? in->failure_category : UAR_STR("execution"),
		.retryable = in->retryable,
	};
	if (!t || !may_end(c, t))
		return;
	ctl_emit_failed(c, t, &f);
	ctl_change(c, t);
	t->last_error = ctl_error_text(c, &f);
	t->status_reason = in->message;
	ctl_end_task(c, t, "failed");
	ctl_tell_task(c, t);
}
