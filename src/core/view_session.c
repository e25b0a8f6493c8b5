/* view_session.c - folds the shell of a session and its threads. */
#include "core/view_int.h"

static void created(struct fold_step *s, struct uar_sview_shell *shell)
{
	VIEW_TAKE(s, shell, shell, source);
	VIEW_TAKE(s, shell, shell, title);
	VIEW_TAKE(s, shell, shell, agent_id);
	VIEW_TAKE_JSON(s, shell, shell, metadata);
	VIEW_KEEP(s, shell, shell, status, UAR_STR("active"));
	shell->created_at = s->ev->time_us;
}

static void updated(struct fold_step *s, struct uar_sview_shell *shell)
{
	VIEW_TAKE(s, shell, shell, title);
	VIEW_TAKE(s, shell, shell, status);
	VIEW_TAKE_JSON(s, shell, shell, metadata);
}

/* Only what counts as a new thing changes a number. */
static void count(struct fold_step *s, struct uar_sview_shell *shell)
{
	switch (s->ev->cls) {
	case UAR_EV_THREAD_STARTED: shell->threads++; break;
	case UAR_EV_TURN_SUBMITTED: shell->turns++; break;
	case UAR_EV_TASK_CREATED: shell->tasks++; break;
	case UAR_EV_TASK_QUEUED: shell->runs += s->ev->ids[UAR_ID_RUN].n != 0; break;
	case UAR_EV_ARTIFACT_CHANGED:
		shell->artifacts += uar_str_is(view_str(s, "op"), "created");
		break;
	case UAR_EV_RUNTIME_WARNING:
	case UAR_EV_RUNTIME_ERROR:
	case UAR_EV_MODEL_FAILED:
	case UAR_EV_TOOL_FAILED:
	case UAR_EV_TASK_ATTEMPT_FAILED: shell->incidents++; break;
	default: break;
	}
}

void view_fold_session(struct fold_step *s)
{
	struct uar_sview_shell *shell = view_shell(s);

	if (!shell)
		return;
	if (!shell->created_at)
		shell->created_at = s->ev->time_us;
	shell->updated_at = s->ev->time_us;
	if (s->ev->cls == UAR_EV_SESSION_CREATED)
		created(s, shell);
	else if (s->ev->cls == UAR_EV_SESSION_UPDATED)
		updated(s, shell);
	else
		count(s, shell);
}

/* --- threads --------------------------------------------------------------------------------- */

static void thread_started(struct fold_step *s, struct uar_sview_thread *t)
{
	VIEW_TAKE(s, thread, t, origin);
	VIEW_TAKE(s, thread, t, title);
	VIEW_TAKE(s, thread, t, parent_thread_id);
	VIEW_TAKE(s, thread, t, forked_turn_id);
	t->created_at = s->ev->time_us;
}

static void thread_updated(struct fold_step *s, struct uar_sview_thread *t)
{
	const struct uar_json *archived = uar_json_get(s->p, UAR_STR("archived"));

	VIEW_TAKE(s, thread, t, title);
	if (archived)
		t->archived = uar_json_bool(archived, false);
}

static void queue_changed(struct fold_step *s, struct uar_sview_thread *t)
{
	uar_str op = view_str(s, "op");
	const struct uar_json *paused =
		uar_json_get(uar_json_get(s->p, UAR_STR("policy")), UAR_STR("paused"));

	if (uar_str_is(op, "paused")) {
		t->queue_paused = true;
		VIEW_KEEP(s, thread, t, pause_reason, view_str(s, "reason"));
	} else if (uar_str_is(op, "resumed")) {
		t->queue_paused = false;
		VIEW_KEEP(s, thread, t, pause_reason, UAR_STR_NONE);
	}
	if (paused)
		t->queue_paused = uar_json_bool(paused, false);
	t->queue_length = view_int(s, "length", t->queue_length);
	VIEW_KEEP(s, thread, t, queue_source, view_str(s, "source"));
	view_take_json(s, &t->queue_policy, "policy", VIEW_MAX_thread_queue_policy);
}

static void turn_began(struct fold_step *s, struct uar_sview_thread *t)
{
	VIEW_KEEP(s, thread, t, active_turn_id, s->ev->ids[UAR_ID_TURN]);
	t->item.open = true;
}

static void turn_ended(struct fold_step *s, struct uar_sview_thread *t)
{
	uar_str turn_id = s->ev->ids[UAR_ID_TURN];

	if (uar_str_eq(t->active_turn_id, turn_id)) {
		VIEW_KEEP(s, thread, t, active_turn_id, UAR_STR_NONE);
		t->item.open = false;
	}
	VIEW_KEEP(s, thread, t, last_turn_id, turn_id);
}

static void rolled_back(struct fold_step *s, struct uar_sview_thread *t)
{
	const struct uar_json *left = uar_json_get(s->p, UAR_STR("surviving_baseline"));

	if (uar_str_is(view_str(s, "status"), "completed"))
		VIEW_KEEP(s, thread, t, baseline_turn_id,
			  uar_json_str(uar_json_get(left, UAR_STR("turn_id")), UAR_STR_NONE));
}

void view_fold_thread(struct fold_step *s)
{
	struct uar_sview_thread *t = view_named(s, UAR_SVIEW_THREAD, UAR_ID_THREAD);

	if (!t)
		return;
	t->updated_at = s->ev->time_us;
	switch (s->ev->cls) {
	case UAR_EV_THREAD_STARTED: thread_started(s, t); break;
	case UAR_EV_THREAD_UPDATED: thread_updated(s, t); break;
	case UAR_EV_QUEUE_CHANGED: queue_changed(s, t); break;
	case UAR_EV_TURN_SUBMITTED: t->turns++; break;
	case UAR_EV_TURN_STARTED: turn_began(s, t); break;
	case UAR_EV_TURN_COMPLETED:
	case UAR_EV_TURN_FAILED: turn_ended(s, t); break;
	case UAR_EV_HISTORY_ROLLBACK_COMPLETED: rolled_back(s, t); break;
	default: break;
	}
}
