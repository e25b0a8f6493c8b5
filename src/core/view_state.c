/* view_state.c - what a view says about itself: statuses, freshness, which read models there
 * are. States are stated, never inferred. */
#include "core/view_int.h"

void view_put_json(struct uar_jw *w, const char *key, uar_str json, const char *otherwise)
{
	uar_jw_raw(w, key, json.n ? json : uar_str_c(otherwise));
}

size_t view_count_open(const struct uar_sview *v, enum uar_sview_kind kind)
{
	size_t n = 0;

	for (size_t i = 0; i < v->lists[kind].count; i++)
		n += ((const struct uar_sview_item *)view_at(v, kind, i))->open;
	return n;
}

const struct uar_sview_thread *uar_sview_thread(const struct uar_sview *v, uar_str thread_id)
{
	return view_find(v, UAR_SVIEW_THREAD, thread_id);
}

const struct uar_sview_thread *uar_sview_active(const struct uar_sview *v)
{
	const struct uar_sview_thread *best = NULL;

	for (size_t i = 0; i < v->lists[UAR_SVIEW_THREAD].count; i++) {
		const struct uar_sview_thread *t = view_at(v, UAR_SVIEW_THREAD, i);

		if (!best || t->item.open > best->item.open ||
		    (t->item.open == best->item.open && t->item.sequence > best->item.sequence))
			best = t;
	}
	return best;
}

static bool has_question(const struct uar_sview *v, uar_str thread_id)
{
	for (size_t i = 0; i < v->lists[UAR_SVIEW_ACTION].count; i++) {
		const struct uar_sview_action *a = view_at(v, UAR_SVIEW_ACTION, i);

		if (a->item.open && uar_str_eq(a->thread_id, thread_id))
			return true;
	}
	return false;
}

static bool has_waiting_turn(const struct uar_sview *v, uar_str thread_id)
{
	for (size_t i = 0; i < v->lists[UAR_SVIEW_TURN].count; i++) {
		const struct uar_sview_turn *t = view_at(v, UAR_SVIEW_TURN, i);

		if (t->item.open && !t->started_at && uar_str_eq(t->thread_id, thread_id))
			return true;
	}
	return false;
}

/* Of a thread that has nothing to do: how its last turn ended. */
static const char *status_at_rest(const struct uar_sview *v, const struct uar_sview_thread *t)
{
	const struct uar_sview_turn *last = view_find(v, UAR_SVIEW_TURN, t->last_turn_id);

	if (!t->last_turn_id.n)
		return "idle";
	if (!last || uar_str_is(last->status, "lost"))
		return "unknown";
	if (uar_str_is(last->status, "completed"))
		return "completed";
	return uar_str_is(last->status, "cancelled") ? "cancelled" : "failed";
}

const char *view_thread_status(const struct uar_sview_show *s, const struct uar_sview_thread *t)
{
	const struct uar_sview *v = s->view;
	bool works = t->active_turn_id.n != 0;
	bool waits = has_waiting_turn(v, t->item.key);

	if (s->stale && (works || waits))
		return "stale";
	if (works)
		return has_question(v, t->item.key) ? "blocked" : "running";
	return waits ? "queued" : status_at_rest(v, t);
}

/* --- freshness ------------------------------------------------------------------------------- */

void uar_sview_write_freshness(struct uar_jw *w, const char *key, const struct uar_sview_show *s)
{
	uar_jw_obj(w, key);
	uar_jw_cstr(w, "state", s->stale ? "stale" : "current");
	uar_jw_u64(w, "through_sequence", s->view->through);
	uar_jw_u64(w, "last_sequence", s->stale ? s->last_sequence : s->view->through);
	uar_jw_str_or_null(w, "reason", s->stale ? s->stale_reason : UAR_STR_NONE);
	uar_jw_close(w);
}

/* A read model of seed 001: the items that it is made of, or what is missing for it. */
static const struct {
	const char *name;
	enum uar_sview_kind kind;
	const char *unavailable; /* why there is none; NULL: it is folded */
	const char *nothing;	 /* why it does not apply to a session without items */
} models[] = {
	{ "session_snapshot", UAR_SVIEW_SHELL, NULL, NULL },
	{ "thread_read_model", UAR_SVIEW_THREAD, NULL, "the session has no thread" },
	{ "tool_inventory_snapshot", UAR_SVIEW_INVENTORY, NULL, "no model was offered tools" },
	{ "queue_snapshot", UAR_SVIEW_TURN, NULL, "no turn was submitted" },
	{ "task_snapshot", UAR_SVIEW_TASK, NULL, "no task was made" },
	{ "context_boundary_snapshot", UAR_SVIEW_CONTEXT, NULL, "no context was resolved" },
	{ "artifact_checkpoint_summary", UAR_SVIEW_ARTIFACT, NULL, "no artifact was made" },
	{ "evidence_summary", UAR_SVIEW_EVIDENCE, NULL, "no evidence was exported" },
	{ "permission_sandbox_summary", UAR_SVIEW_DECISION, NULL, "nothing was decided" },
	{ "execution_environment_snapshot", UAR_SVIEW_SANDBOX, NULL, "nothing ran in a sandbox" },
	{ "routing_limit_summary", UAR_SVIEW_ROUTING, NULL,
	  "no run was routed, priced or limited" },
	{ "subagent_job_summary", UAR_SVIEW_COUNT, NULL, "no child agent and no job was started" },
	{ "channel_summary", UAR_SVIEW_CHANNEL, NULL, "no peer has a channel to the session" },
};

/* One of them is made of two kinds of items. */
static size_t count_of(const struct uar_sview *v, size_t i)
{
	if (models[i].kind == UAR_SVIEW_COUNT)
		return v->lists[UAR_SVIEW_SUBAGENT].count + v->lists[UAR_SVIEW_JOB].count;
	return v->lists[models[i].kind].count;
}

static void write_state(struct uar_jw *w, const struct uar_sview_show *s, size_t i)
{
	bool empty = !models[i].unavailable && models[i].nothing && count_of(s->view, i) == 0;

	uar_jw_obj(w, models[i].name);
	if (models[i].unavailable)
		uar_jw_cstr(w, "state", "unavailable");
	else if (s->stale)
		uar_jw_cstr(w, "state", "stale");
	else
		uar_jw_cstr(w, "state", empty ? "not_applicable" : "available");
	if (models[i].unavailable)
		uar_jw_cstr(w, "reason", models[i].unavailable);
	else if (s->stale)
		uar_jw_str(w, "reason", s->stale_reason);
	else if (empty)
		uar_jw_cstr(w, "reason", models[i].nothing);
	uar_jw_close(w);
}

void uar_sview_write_states(struct uar_jw *w, const char *key, const struct uar_sview_show *s)
{
	uar_jw_obj(w, key);
	for (size_t i = 0; i < ARRAY_LEN(models); i++)
		write_state(w, s, i);
	uar_jw_close(w);
}
