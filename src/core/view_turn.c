/* view_turn.c - folds turns, their queue, and the window of recent steps. */
#include "core/view_int.h"

/* --- turns ----------------------------------------------------------------------------------- */

static void submitted(struct fold_step *s, struct uar_sview_turn *t)
{
	const struct uar_json *part = uar_json_at(uar_json_get(s->p, UAR_STR("input_parts")), 0);

	VIEW_TAKE(s, turn, t, source);
	VIEW_TAKE(s, turn, t, status);
	VIEW_KEEP(s, turn, t, input,
		  uar_json_str(uar_json_get(part, UAR_STR("preview")), UAR_STR_NONE));
	t->submitted_at = s->ev->time_us;
	t->item.open = true;
	if (uar_str_is(t->status, "queued"))
		t->rank = (int64_t)s->ev->sequence; /* until queue.changed gives the order */
}

static void started(struct fold_step *s, struct uar_sview_turn *t)
{
	VIEW_TAKE(s, turn, t, status);
	VIEW_TAKE(s, turn, t, agent_id);
	VIEW_KEEP(s, turn, t, run_id, s->ev->ids[UAR_ID_RUN]);
	t->started_at = s->ev->time_us;
	t->rank = 0;
}

static void ended(struct fold_step *s, struct uar_sview_turn *t)
{
	/* An attempt that was lost stays so: the turn's own word for it is "failed". */
	if (!uar_str_is(t->status, "lost"))
		VIEW_TAKE(s, turn, t, status);
	VIEW_TAKE(s, turn, t, finish_reason);
	VIEW_TAKE_JSON(s, turn, t, error);
	VIEW_TAKE_JSON(s, turn, t, usage);
	t->ended_at = s->ev->time_us;
	t->item.open = false;
	t->rank = 0;
}

/* Usage of an attempt counts when the turn itself names none. */
static void attempt_ended(struct fold_step *s, struct uar_sview_turn *t)
{
	VIEW_TAKE_JSON(s, turn, t, usage);
	if (uar_str_is(view_str(s, "status"), "lost"))
		VIEW_KEEP(s, turn, t, status, UAR_STR("lost"));
}

/* A further attempt opens the turn again. */
static void requeued(struct fold_step *s, struct uar_sview_turn *t)
{
	VIEW_KEEP(s, turn, t, run_id, s->ev->ids[UAR_ID_RUN]);
	VIEW_KEEP(s, turn, t, task_id, s->ev->ids[UAR_ID_TASK]);
	VIEW_TAKE(s, turn, t, agent_id);
}

static void grow(struct fold_step *s, uar_str *text, size_t max)
{
	uar_str more = view_str(s, "text");
	size_t room = max - text->n;
	char *p;

	if (!room || !more.n || uar_str_utf8_prefix(more, room).n == 0 || s->v->err)
		return;
	more = uar_str_utf8_prefix(more, room);
	p = uar_arena_bytes(&s->v->arena, text->n + more.n);
	if (!p) {
		s->v->err = UAR_ENOMEM;
		return;
	}
	if (text->n)
		memcpy(p, text->p, text->n);
	memcpy(p + text->n, more.p, more.n);
	*text = uar_str_n(p, text->n + more.n);
}

static void mark_removed(struct fold_step *s)
{
	const struct uar_json *ids = uar_json_get(s->p, UAR_STR("removed_turn_ids"));

	if (!uar_str_is(view_str(s, "status"), "completed"))
		return;
	for (const struct uar_json *j = ids && ids->kind == UAR_JSON_ARRAY ? ids->first : NULL; j;
	     j = j->next) {
		struct uar_sview_turn *t =
			view_find(s->v, UAR_SVIEW_TURN, uar_json_str(j, UAR_STR_NONE));

		if (t)
			t->removed = true;
		for (size_t i = 0; i < s->v->lists[UAR_SVIEW_STEP].count; i++) {
			struct uar_sview_step *step =
				(struct uar_sview_step *)view_at(s->v, UAR_SVIEW_STEP, i);

			if (uar_str_eq(step->turn_id, uar_json_str(j, UAR_STR_NONE)))
				step->removed = true;
		}
	}
}

/* Turns that the log lists again after the view has let go of them: the queue has moved on. */
static void add_listed(struct fold_step *s, const struct uar_json *first)
{
	int64_t rank = 0;

	for (const struct uar_json *j = first; j; j = j->next) {
		uar_str id = uar_json_str(j, UAR_STR_NONE);
		struct uar_sview_turn *t;

		rank++;
		if (!id.n || view_find(s->v, UAR_SVIEW_TURN, id))
			continue;
		t = view_item(s, UAR_SVIEW_TURN, id);
		if (!t)
			return;
		t->item.open = true;
		t->rank = rank;
		VIEW_KEEP(s, turn, t, thread_id, s->ev->ids[UAR_ID_THREAD]);
		VIEW_KEEP(s, turn, t, status, UAR_STR("queued"));
	}
}

/* A turn behind others that the view does not keep has no place that it could be shown at. */
static void drop_beyond(struct fold_step *s, const struct uar_sview_turn *added)
{
	int64_t kept = 0;

	for (size_t i = 0; i < s->v->lists[UAR_SVIEW_TURN].count; i++) {
		const struct uar_sview_turn *t = view_at(s->v, UAR_SVIEW_TURN, i);

		kept += t->item.open && !t->started_at &&
			uar_str_eq(t->thread_id, added->thread_id);
	}
	if (kept < view_int(s, "length", 0))
		view_drop(s->v, UAR_SVIEW_TURN, added);
}

/* Turns that wait at the places of those that the log lists stand behind them, until it says
 * otherwise. */
static void free_places(struct fold_step *s, int64_t places)
{
	for (size_t i = 0; i < s->v->lists[UAR_SVIEW_TURN].count; i++) {
		struct uar_sview_turn *t =
			(struct uar_sview_turn *)view_at(s->v, UAR_SVIEW_TURN, i);

		if (t->item.open && !t->started_at && t->rank <= places &&
		    uar_str_eq(t->thread_id, s->ev->ids[UAR_ID_THREAD]))
			t->rank = places + 1;
	}
}

/* The order of the queue, as the log names it: turns that are not in it wait no more, or behind
 * those that it lists. */
static void order_queue(struct fold_step *s)
{
	const struct uar_json *order = uar_json_get(s->p, UAR_STR("order"));
	const struct uar_json *first = order && order->kind == UAR_JSON_ARRAY ? order->first : NULL;
	uar_str op = view_str(s, "op"), id = view_str(s, "queued_turn_id");
	bool listed = false;
	struct uar_sview_turn *t;
	int64_t rank = 0;

	free_places(s, first ? order->count : 0);
	for (const struct uar_json *j = first; j; j = j->next) {
		listed |= uar_str_eq(uar_json_str(j, UAR_STR_NONE), id);
		t = view_find(s->v, UAR_SVIEW_TURN, uar_json_str(j, UAR_STR_NONE));
		rank++;
		if (t)
			t->rank = rank;
	}
	t = view_find(s->v, UAR_SVIEW_TURN, id);
	if (t && uar_str_is(op, "removed")) {
		t->rank = 0;
		t->item.open = false;
		VIEW_KEEP(s, turn, t, status, UAR_STR("cancelled"));
	} else if (t && !listed && !t->started_at && uar_str_is(op, "added")) {
		drop_beyond(s, t);
	}
	add_listed(s, first);
}

/* A turn that waits was given another message. */
static void edited(struct fold_step *s, struct uar_sview_turn *t)
{
	const struct uar_json *part = uar_json_at(uar_json_get(s->p, UAR_STR("input_parts")), 0);
	uar_str text = uar_json_str(uar_json_get(part, UAR_STR("preview")), UAR_STR_NONE);

	if (!uar_event_is_turn_input(s->ev) || !uar_str_is(view_str(s, "op"), "replaced"))
		return;
	VIEW_KEEP(s, turn, t, input, text);
	for (size_t i = 0; i < s->v->lists[UAR_SVIEW_STEP].count; i++) {
		struct uar_sview_step *step =
			(struct uar_sview_step *)view_at(s->v, UAR_SVIEW_STEP, i);

		if (!uar_str_is(step->role, "user") || !uar_str_eq(step->turn_id, t->item.key))
			continue;
		VIEW_KEEP(s, step, step, text, text);
		VIEW_KEEP(s, step, step, ref, view_ref(s, "input_ref"));
	}
}

static void fold_turn_event(struct fold_step *s, struct uar_sview_turn *t)
{
	switch (s->ev->cls) {
	case UAR_EV_TURN_SUBMITTED: submitted(s, t); break;
	case UAR_EV_TURN_STARTED: started(s, t); break;
	case UAR_EV_TURN_COMPLETED:
	case UAR_EV_TURN_FAILED: ended(s, t); break;
	case UAR_EV_TASK_QUEUED: requeued(s, t); break;
	case UAR_EV_TASK_ATTEMPT_COMPLETED:
	case UAR_EV_TASK_ATTEMPT_FAILED: attempt_ended(s, t); break;
	case UAR_EV_VENDOR: edited(s, t); break;
	case UAR_EV_MODEL_REQUESTED: VIEW_KEEP(s, turn, t, output, UAR_STR_NONE); break;
	case UAR_EV_MODEL_DELTA: grow(s, &t->output, VIEW_MAX_turn_output); break;
	default: break;
	}
}

void view_fold_turn(struct fold_step *s)
{
	struct uar_sview_turn *t;

	if (s->ev->cls == UAR_EV_HISTORY_ROLLBACK_COMPLETED)
		mark_removed(s);
	else if (s->ev->cls == UAR_EV_QUEUE_CHANGED)
		order_queue(s);
	if (!s->ev->ids[UAR_ID_TURN].n)
		return;
	t = s->ev->cls == UAR_EV_TURN_SUBMITTED
		    ? view_named(s, UAR_SVIEW_TURN, UAR_ID_TURN)
		    : view_find(s->v, UAR_SVIEW_TURN, s->ev->ids[UAR_ID_TURN]);
	if (!t)
		return;
	t->item.sequence = (int64_t)s->ev->sequence;
	VIEW_KEEP(s, turn, t, thread_id, s->ev->ids[UAR_ID_THREAD]);
	fold_turn_event(s, t);
}

/* --- steps ----------------------------------------------------------------------------------- */

static struct uar_sview_step *step_of(struct fold_step *s, uar_str key, const char *kind)
{
	struct uar_sview_step *step = view_item(s, UAR_SVIEW_STEP, key);

	if (!step)
		return NULL;
	VIEW_KEEP(s, step, step, step_kind, uar_str_c(kind));
	if (s->ev->ids[UAR_ID_STEP].n)
		VIEW_KEEP(s, step, step, step_id, s->ev->ids[UAR_ID_STEP]);
	view_place(s, &step->thread_id, &step->turn_id, &step->run_id);
	if (!step->first) {
		step->first = (int64_t)s->ev->sequence;
		step->at = s->ev->time_us;
	}
	return step;
}

static void user_message(struct fold_step *s)
{
	const struct uar_json *part = uar_json_at(uar_json_get(s->p, UAR_STR("input_parts")), 0);
	struct uar_sview_step *step = step_of(s, s->ev->event_id, "message");

	if (!step)
		return;
	VIEW_KEEP(s, step, step, role, UAR_STR("user"));
	VIEW_KEEP(s, step, step, text,
		  uar_json_str(uar_json_get(part, UAR_STR("preview")), UAR_STR_NONE));
	VIEW_KEEP(s, step, step, ref, view_ref(s, "input_ref"));
}

static void assistant_message(struct fold_step *s)
{
	uar_str message_id = view_str(s, "message_id");
	struct uar_sview_step *step = message_id.n ? step_of(s, message_id, "message") : NULL;

	if (!step)
		return;
	VIEW_KEEP(s, step, step, role, UAR_STR("assistant"));
	grow(s, &step->text, VIEW_MAX_step_text);
}

static void tool_step(struct fold_step *s)
{
	struct uar_sview_step *step = step_of(s, s->ev->ids[UAR_ID_TOOL_CALL], "tool");

	if (!step)
		return;
	VIEW_KEEP(s, step, step, name, view_str(s, "tool_name"));
	VIEW_TAKE(s, step, step, status);
	VIEW_KEEP(s, step, step, ref, view_ref(s, "output_ref"));
	if (s->ev->cls == UAR_EV_TOOL_FAILED)
		VIEW_KEEP(s, step, step, text, view_str(s, "message"));
}

static void artifact_step(struct fold_step *s)
{
	struct uar_sview_step *step = step_of(s, s->ev->event_id, "artifact");

	if (!step)
		return;
	VIEW_KEEP(s, step, step, name, view_str(s, "title"));
	VIEW_TAKE(s, step, step, status);
	VIEW_KEEP(s, step, step, text, view_str(s, "preview"));
	VIEW_KEEP(s, step, step, ref, view_ref(s, "read_ref"));
}

static void action_step(struct fold_step *s)
{
	struct uar_sview_step *step = step_of(s, s->ev->ids[UAR_ID_ACTION], "action");

	if (!step)
		return;
	if (s->ev->cls == UAR_EV_ACTION_REQUIRED) {
		VIEW_KEEP(s, step, step, name, view_str(s, "action_type"));
		VIEW_KEEP(s, step, step, text, view_str(s, "prompt"));
	}
	VIEW_TAKE(s, step, step, status);
}

static void failure_step(struct fold_step *s)
{
	struct uar_sview_step *step = step_of(s, s->ev->event_id, "failure");

	if (!step)
		return;
	VIEW_TAKE(s, step, step, status);
	VIEW_KEEP(s, step, step, name, view_str(s, "failure_category"));
	VIEW_KEEP(s, step, step, text, view_str(s, "message"));
}

void view_fold_step(struct fold_step *s)
{
	switch (s->ev->cls) {
	case UAR_EV_TURN_SUBMITTED: user_message(s); break;
	case UAR_EV_VENDOR:
		if (uar_event_is_turn_input(s->ev) && uar_str_is(view_str(s, "op"), "added"))
			user_message(s);
		break;
	case UAR_EV_MODEL_DELTA: assistant_message(s); break;
	case UAR_EV_TOOL_STARTED:
	case UAR_EV_TOOL_RESULT:
	case UAR_EV_TOOL_FAILED: tool_step(s); break;
	case UAR_EV_ARTIFACT_CHANGED: artifact_step(s); break;
	case UAR_EV_ACTION_REQUIRED:
	case UAR_EV_ACTION_RESOLVED: action_step(s); break;
	case UAR_EV_TURN_FAILED: failure_step(s); break;
	default: break;
	}
}
