/* view_task.c - folds tasks, their current attempts and the graph between them. */
#include "core/view_int.h"

static const struct {
	enum uar_event_class cls;
	bool over; /* nothing follows without another attempt */
} task_events[] = {
	{ UAR_EV_TASK_CREATED, false },	 { UAR_EV_TASK_ACCEPTED, false },
	{ UAR_EV_TASK_QUEUED, false },	 { UAR_EV_TASK_STARTED, false },
	{ UAR_EV_TASK_WAITING, false },	 { UAR_EV_TASK_BLOCKED, false },
	{ UAR_EV_TASK_PAUSED, false },	 { UAR_EV_TASK_RESUMED, false },
	{ UAR_EV_TASK_RETRYING, false }, { UAR_EV_TASK_CANCEL_REQUESTED, false },
	{ UAR_EV_TASK_CANCELLED, true }, { UAR_EV_TASK_TIMED_OUT, true },
	{ UAR_EV_TASK_FAILED, true },	 { UAR_EV_TASK_LOST, true },
	{ UAR_EV_TASK_COMPLETED, true }, { UAR_EV_TASK_ARCHIVED, true },
};

static void created(struct fold_step *s, struct uar_sview_task *t)
{
	VIEW_KEEP(s, task, t, thread_id, s->ev->ids[UAR_ID_THREAD]);
	VIEW_KEEP(s, task, t, turn_id, s->ev->ids[UAR_ID_TURN]);
	VIEW_TAKE(s, task, t, parent_task_id);
	VIEW_TAKE(s, task, t, root_task_id);
	VIEW_TAKE(s, task, t, title);
	VIEW_TAKE(s, task, t, objective);
	VIEW_TAKE(s, task, t, visibility);
	t->implicit = view_bool(s, "implicit");
	t->created_at = s->ev->time_us;
}

static void status_changed(struct fold_step *s, struct uar_sview_task *t, bool over)
{
	VIEW_TAKE(s, task, t, status);
	VIEW_TAKE(s, task, t, delivery_state);
	VIEW_TAKE_JSON(s, task, t, reconciled);
	VIEW_TAKE_JSON(s, task, t, error);
	VIEW_KEEP(s, task, t, waiting_on, UAR_STR_NONE);
	VIEW_KEEP(s, task, t, blockers, UAR_STR_NONE);
	VIEW_TAKE_JSON(s, task, t, waiting_on);
	VIEW_TAKE_JSON(s, task, t, blockers);
	t->item.open = !over;
	t->ended_at = over ? s->ev->time_us : 0;
}

/* Members of update_task: {"title": {"from", "to"}}. */
static void updated(struct fold_step *s, struct uar_sview_task *t)
{
	const struct uar_json *changed = uar_json_get(s->p, UAR_STR("changed"));
	const struct uar_json *title = uar_json_get(changed, UAR_STR("title"));
	const struct uar_json *objective = uar_json_get(changed, UAR_STR("objective"));

	if (title)
		VIEW_KEEP(s, task, t, title,
			  uar_json_str(uar_json_get(title, UAR_STR("to")), UAR_STR_NONE));
	if (objective)
		VIEW_KEEP(s, task, t, objective,
			  uar_json_str(uar_json_get(objective, UAR_STR("to")), UAR_STR_NONE));
}

static void progressed(struct fold_step *s, struct uar_sview_task *t)
{
	const struct uar_json *progress = uar_json_get(s->p, UAR_STR("progress"));

	VIEW_TAKE(s, task, t, phase);
	VIEW_TAKE(s, task, t, delivery_state);
	VIEW_TAKE(s, task, t, native_status);
	if (progress) {
		t->progress = uar_json_double(progress, 0);
		t->has_progress = true;
	}
}

static void attempt_changed(struct fold_step *s, struct uar_sview_task *t)
{
	VIEW_KEEP(s, task, t, run_id, s->ev->ids[UAR_ID_RUN]);
	VIEW_KEEP(s, task, t, attempt_status, view_str(s, "status"));
	t->attempt = view_int(s, "attempt", t->attempt);
}

static void fold_task_event(struct fold_step *s, struct uar_sview_task *t)
{
	switch (s->ev->cls) {
	case UAR_EV_TASK_CREATED: created(s, t); break;
	case UAR_EV_TASK_UPDATED: updated(s, t); break;
	case UAR_EV_TASK_PROGRESS: progressed(s, t); break;
	case UAR_EV_TASK_DELEGATED: VIEW_TAKE_JSON(s, task, t, remote); break;
	case UAR_EV_TASK_QUEUED:
		if (s->ev->ids[UAR_ID_RUN].n)
			attempt_changed(s, t);
		break;
	case UAR_EV_TASK_ATTEMPT_STARTED:
	case UAR_EV_TASK_ATTEMPT_COMPLETED:
	case UAR_EV_TASK_ATTEMPT_FAILED: attempt_changed(s, t); break;
	default: break;
	}
	for (size_t i = 0; i < ARRAY_LEN(task_events); i++)
		if (task_events[i].cls == s->ev->cls)
			status_changed(s, t, task_events[i].over);
}

static void fold_edge(struct fold_step *s)
{
	const struct uar_json *e = uar_json_get(s->p, UAR_STR("edge"));
	uar_str kind = uar_json_str(uar_json_get(e, UAR_STR("kind")), UAR_STR_NONE);
	uar_str from = uar_json_str(uar_json_get(e, UAR_STR("source_id")), UAR_STR_NONE);
	uar_str to = uar_json_str(uar_json_get(e, UAR_STR("target_id")), UAR_STR_NONE);
	uar_str key = uar_arena_printf(&s->v->scratch, "%.*s %.*s %.*s", UAR_FMT(kind),
				       UAR_FMT(from), UAR_FMT(to));
	struct uar_sview_edge *edge = key.p ? view_item(s, UAR_SVIEW_EDGE, key) : NULL;

	if (!edge) {
		s->v->err = UAR_ENOMEM;
		return;
	}
	VIEW_KEEP(s, edge, edge, edge_kind, kind);
	VIEW_KEEP(s, edge, edge, source_id, from);
	VIEW_KEEP(s, edge, edge, target_id, to);
	VIEW_KEEP(s, edge, edge, status,
		  uar_json_str(uar_json_get(e, UAR_STR("status")), UAR_STR_NONE));
	VIEW_KEEP(s, edge, edge, reason,
		  uar_json_str(uar_json_get(e, UAR_STR("reason")), UAR_STR_NONE));
	edge->item.open = uar_str_is(edge->status, "active");
}

void view_fold_task(struct fold_step *s)
{
	uar_str type = uar_event_type(s->ev);
	struct uar_sview_task *t;

	if (!uar_str_starts(type, UAR_STR("task.")))
		return;
	if (s->ev->cls == UAR_EV_TASK_DEPENDENCY_UPDATED)
		fold_edge(s);
	t = view_named(s, UAR_SVIEW_TASK, UAR_ID_TASK);
	if (t)
		fold_task_event(s, t);
}
