/* end.c - how a run ends: attempt, task, turn, thread, in one append. */
#include "core/emit.h"

#include "event/sizes.h"
#include "event/row.h"

/* A set that is too large for an event is in a blob, which the event refers to. */
static void put_refs(struct emit *e, struct uar_jw *w)
{
	const struct uar_result_refs *r = &e->results;

	uar_jw_raw(w, "result_refs", r->ids.n ? r->ids : UAR_STR("[]"));
	if (!r->blob.n)
		return;
	uar_jw_int(w, "result_ref_count", r->count);
	uar_emit_refer(e, "output_ref", r->blob);
}

static int64_t duration_ms(const struct emit *e)
{
	int64_t from = e->r->at.started_us ? e->r->at.started_us : e->r->at.created_us;

	return e->env->now_us > from ? (e->env->now_us - from) / 1000 : 0;
}

/* What an agent said is its result. It is in the log already: the end names the
 * message, and who reads the run's items is given its text. */
static bool has_answer(const struct uar_run *r)
{
	return r->what.entry != UAR_ENTRY_PLUGIN && r->call.message_id[0] && r->call.chars;
}

static void name_answer(struct emit *e)
{
	if (e->results.ids.n || !has_answer(e->r))
		return;
	e->results.ids =
		uar_emit_wrap(e, UAR_STR("[\""), uar_str_c(e->r->call.message_id), UAR_STR("\"]"));
}

static void attempt_completed(struct emit *e)
{
	struct uar_jw *w;

	name_answer(e);
	w = uar_emit_begin(e);
	uar_jw_int(w, "attempt", e->r->what.attempt);
	uar_jw_cstr(w, "status", "completed");
	put_refs(e, w);
	if (has_answer(e->r)) {
		uar_jw_obj(w, "answer");
		uar_jw_cstr(w, "message_id", e->r->call.message_id);
		uar_jw_int(w, "bytes", e->r->call.chars);
		uar_emit_trace(w, e->r->id.trace_id);
		uar_jw_close(w);
	}
	if (uar_run_rare(e->r)->finish_reason[0])
		uar_jw_cstr(w, "finish_reason", uar_run_rare(e->r)->finish_reason);
	uar_emit_usage(w, e->r);
	uar_jw_int(w, "duration_ms", duration_ms(e));
	uar_emit(e, UAR_EV_TASK_ATTEMPT_COMPLETED, EMIT_RUN);
}

static void task_completed(struct emit *e)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "status", "completed");
	uar_jw_int(w, "attempt", e->r->what.attempt);
	uar_jw_arr(w, "acceptance");
	uar_jw_close(w);
	put_refs(e, w);
	uar_jw_cstr(w, "delivery_state", "delivered");
	uar_jw_obj(w, "reconciled");
	uar_jw_bool(w, "artifacts", true);
	uar_jw_bool(w, "evidence", true);
	uar_jw_bool(w, "delivery", true);
	uar_jw_close(w);
	uar_emit(e, UAR_EV_TASK_COMPLETED, EMIT_RUN);
}

static void turn_completed(struct emit *e)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "status", "completed");
	uar_jw_cstr(w, "finish_reason", uar_run_finish_reason(e->r));
	uar_emit_usage(w, e->r);
	uar_jw_int(w, "duration_ms", duration_ms(e));
	uar_emit(e, UAR_EV_TURN_COMPLETED, EMIT_RUN);
}

static void attempt_failed(struct emit *e, enum uar_status status, const struct uar_failure *f)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_int(w, "attempt", e->r->what.attempt);
	uar_jw_cstr(w, "status", uar_status_text(status));
	uar_jw_str(w, "failure_category", f->category);
	uar_jw_str(w, "message", f->message);
	uar_emit_error(w, "error", f, e->details);
	uar_jw_bool(w, "retryable", f->retryable);
	put_refs(e, w);
	uar_emit_usage(w, e->r);
	uar_jw_cstr(w, "next_attempt_policy", "manual_or_policy_retry");
	uar_emit(e, UAR_EV_TASK_ATTEMPT_FAILED, EMIT_RUN);
}

static void task_failed(struct emit *e, const struct uar_failure *f)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "status", "failed");
	uar_jw_int(w, "attempt", e->r->what.attempt);
	uar_emit_error(w, "error", f, e->details);
	uar_jw_str(w, "failure_category", f->category);
	uar_jw_str(w, "message", f->message);
	uar_jw_bool(w, "retryable", f->retryable);
	put_refs(e, w);
	uar_emit(e, UAR_EV_TASK_FAILED, EMIT_RUN);
}

static void task_cancelled(struct emit *e)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "status", "cancelled");
	uar_jw_cstr(w, "cancelled_by", "user");
	if (uar_run_rare(e->r)->cancel.reason[0])
		uar_jw_cstr(w, "reason", uar_run_rare(e->r)->cancel.reason);
	put_refs(e, w);
	uar_emit(e, UAR_EV_TASK_CANCELLED, EMIT_RUN);
}

static void task_timed_out(struct emit *e)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "status", "timed_out");
	uar_jw_cstr(w, "limit", "time");
	uar_jw_int(w, "limit_ms", e->r->what.timeout_us / 1000);
	uar_jw_int(w, "elapsed_ms", duration_ms(e));
	put_refs(e, w);
	uar_emit(e, UAR_EV_TASK_TIMED_OUT, EMIT_RUN);
}

static void task_lost(struct emit *e)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "status", "lost");
	uar_emit_worker(w, e->r);
	uar_jw_time(w, "last_seen_at", e->r->at.updated_us);
	uar_jw_cstr(w, "cause", e->lost_by ? e->lost_by : "restart");
	uar_jw_bool(w, "recoverable", false);
	uar_emit(e, UAR_EV_TASK_LOST, EMIT_RUN);
}

static void turn_failed(struct emit *e, enum uar_status status, const struct uar_failure *f)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "status", uar_status_text(status));
	uar_jw_str(w, "failure_category", f->category);
	uar_jw_str(w, "message", f->message);
	uar_emit_error(w, "error", f, e->details);
	uar_jw_bool(w, "retryable", f->retryable);
	uar_jw_int(w, "duration_ms", duration_ms(e));
	uar_emit(e, UAR_EV_TURN_FAILED, EMIT_RUN);
}

/* Without the run's id: nothing of a run follows its end but its task and turn. */
static void thread_idle(struct emit *e)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "status", "idle");
	uar_jw_cstr(w, "previous_status", "running");
	uar_jw_null(w, "active_turn_id");
	uar_jw_arr(w, "changed");
	uar_jw_cstr(w, NULL, "status");
	uar_jw_cstr(w, NULL, "active_turn_id");
	uar_jw_close(w);
	uar_emit(e, UAR_EV_THREAD_UPDATED, EMIT_THREAD);
}

/* A task that has a row ends with its row (control_attempt.c). */
static void end_task_badly(struct emit *e, enum uar_status status, const struct uar_failure *f)
{
	if (status == UAR_STATUS_CANCELLED)
		task_cancelled(e);
	else if (status == UAR_STATUS_TIMED_OUT)
		task_timed_out(e);
	else if (status == UAR_STATUS_LOST)
		task_lost(e);
	else
		task_failed(e, f);
}

static void end_badly(struct emit *e, enum uar_status status, const struct uar_failure *f)
{
	attempt_failed(e, status, f);
	if (!e->r->what.task_made)
		end_task_badly(e, status, f);
	turn_failed(e, status == UAR_STATUS_LOST ? UAR_STATUS_FAILED : status, f);
}

/* Skills are counted in a session of their own: until then the row says what is to be counted. A
 * cancelled run says nothing of its skills. */
static void note_skills(struct emit *e, enum uar_status status)
{
	const struct uar_run_skills *used = &uar_run_rare(e->r)->skills;
	struct uar_buf ids = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
	struct uar_jw w = uar_jw_begin(&ids);
	struct uar_row_skill_use row = {
		.row = { .kind = UAR_ROW_SKILL_USE,
			 .id = e->r->id.run_id,
			 .status = UAR_STR("active"),
			 .created_us = e->env->now_us,
			 .updated_us = e->env->now_us },
		.succeeded = status == UAR_STATUS_COMPLETED,
	};

	if (!used->count || status == UAR_STATUS_CANCELLED)
		return;
	uar_jw_arr(&w, NULL);
	for (size_t i = 0; i < used->count; i++)
		uar_jw_cstr(&w, NULL, used->at[i].skill_id);
	uar_jw_close(&w);
	if (!e->err)
		e->err = uar_jw_end(&w);
	row.skills = uar_buf_str(&ids);
	uar_emit_row(e, &row);
	uar_buf_fini(&ids);
}

void uar_core_end(struct emit *e, enum uar_status status, const struct uar_failure *f)
{
	bool started = e->r->at.started_us != 0;

	if (status == UAR_STATUS_COMPLETED) {
		attempt_completed(e);
		if (!e->r->what.task_made)
			task_completed(e);
		turn_completed(e);
	} else {
		end_badly(e, status, f);
	}
	if (started)
		thread_idle(e);
	note_skills(e, status);
}
