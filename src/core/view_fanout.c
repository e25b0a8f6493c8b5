/* view_fanout.c - folds child agents, jobs and their items, and writes the summary of them. */
#include "core/view_int.h"

/* --- child agents ---------------------------------------------------------------------------- */

static void spawned(struct fold_step *s, struct uar_sview_subagent *a)
{
	const struct uar_json *parent = uar_json_get(s->p, UAR_STR("parent"));

	VIEW_KEEP(s, subagent, a, thread_id, s->ev->ids[UAR_ID_THREAD]);
	VIEW_KEEP(s, subagent, a, turn_id, s->ev->ids[UAR_ID_TURN]);
	VIEW_KEEP(s, subagent, a, run_id,
		  uar_json_str(uar_json_get(parent, UAR_STR("run_id")), UAR_STR_NONE));
	VIEW_TAKE(s, subagent, a, child_session_id);
	VIEW_TAKE(s, subagent, a, child_thread_id);
	VIEW_TAKE(s, subagent, a, agent_id);
	VIEW_TAKE(s, subagent, a, role);
	VIEW_TAKE(s, subagent, a, nickname);
	a->spawned_at = s->ev->time_us;
}

static bool is_at_work(const struct uar_sview_subagent *a)
{
	return uar_str_is(a->status, "spawned") || uar_str_is(a->status, "pending") ||
	       uar_str_is(a->status, "running") || uar_str_is(a->status, "waiting");
}

static void subagent_changed(struct fold_step *s)
{
	struct uar_sview_subagent *a = view_named(s, UAR_SVIEW_SUBAGENT, UAR_ID_SUBAGENT);
	uar_str ref = view_ref(s, s->ev->cls == UAR_EV_SUBAGENT_STATUS ? "last_message_ref"
								       : "output_ref");

	if (!a)
		return;
	if (s->ev->cls == UAR_EV_SUBAGENT_SPAWNED)
		spawned(s, a);
	VIEW_TAKE(s, subagent, a, status);
	VIEW_KEEP(s, subagent, a, reason, view_str(s, "reason"));
	VIEW_KEEP(s, subagent, a, failure_category, view_str(s, "failure_category"));
	if (s->ev->cls == UAR_EV_SUBAGENT_COMPLETED)
		VIEW_KEEP(s, subagent, a, summary, view_str(s, "summary_preview"));
	if (ref.n)
		VIEW_KEEP(s, subagent, a, last_message_ref, ref);
	a->item.open = is_at_work(a);
	a->ended_at = a->item.open ? 0 : s->ev->time_us;
}

static void subagent_input(struct fold_step *s)
{
	struct uar_sview_subagent *a = view_named(s, UAR_SVIEW_SUBAGENT, UAR_ID_SUBAGENT);

	if (a)
		a->inputs++;
}

/* --- jobs ------------------------------------------------------------------------------------ */

static void job_changed(struct fold_step *s)
{
	struct uar_sview_job *j = view_named(s, UAR_SVIEW_JOB, UAR_ID_JOB);

	if (!j)
		return;
	if (s->ev->cls == UAR_EV_JOB_CREATED) {
		VIEW_KEEP(s, job, j, thread_id, s->ev->ids[UAR_ID_THREAD]);
		VIEW_KEEP(s, job, j, task_id, s->ev->ids[UAR_ID_TASK]);
		VIEW_TAKE(s, job, j, agent_id);
		VIEW_TAKE(s, job, j, job_kind);
		j->item_count = view_int(s, "item_count", 0);
		j->created_at = s->ev->time_us;
	}
	VIEW_TAKE(s, job, j, status);
	VIEW_TAKE(s, job, j, cursor);
	VIEW_TAKE_JSON(s, job, j, counts);
	VIEW_KEEP(s, job, j, reason, view_str(s, "reason"));
	if (s->ev->cls == UAR_EV_JOB_PROGRESS)
		j->progress = uar_json_double(uar_json_get(s->p, UAR_STR("progress")), 0);
	j->item.open = uar_str_is(j->status, "created") || uar_str_is(j->status, "running");
	j->ended_at = j->item.open ? 0 : j->ended_at ? j->ended_at : s->ev->time_us;
}

static void item_changed(struct fold_step *s)
{
	struct uar_sview_job_item *i = view_named(s, UAR_SVIEW_JOB_ITEM, UAR_ID_JOB_ITEM);

	if (!i)
		return;
	VIEW_KEEP(s, job_item, i, job_id, s->ev->ids[UAR_ID_JOB]);
	VIEW_TAKE(s, job_item, i, status);
	VIEW_TAKE(s, job_item, i, assigned_thread_id);
	VIEW_KEEP(s, job_item, i, failure_category, view_str(s, "failure_category"));
	i->index = view_int(s, "index", 0);
	i->attempt = view_int(s, "attempt", 0);
	i->retryable = view_bool(s, "retryable");
	i->item.open = s->ev->cls == UAR_EV_JOB_ITEM_STARTED;
}

static view_fold_fn *const folds[UAR_EV_COUNT] = {
	[UAR_EV_SUBAGENT_SPAWNED] = subagent_changed,
	[UAR_EV_SUBAGENT_STATUS] = subagent_changed,
	[UAR_EV_SUBAGENT_COMPLETED] = subagent_changed,
	[UAR_EV_SUBAGENT_FAILED] = subagent_changed,
	[UAR_EV_SUBAGENT_CLOSED] = subagent_changed,
	[UAR_EV_SUBAGENT_INPUT] = subagent_input,
	[UAR_EV_JOB_CREATED] = job_changed,
	[UAR_EV_JOB_STARTED] = job_changed,
	[UAR_EV_JOB_PROGRESS] = job_changed,
	[UAR_EV_JOB_COMPLETED] = job_changed,
	[UAR_EV_JOB_FAILED] = job_changed,
	[UAR_EV_JOB_CANCELLED] = job_changed,
	[UAR_EV_JOB_ITEM_STARTED] = item_changed,
	[UAR_EV_JOB_ITEM_COMPLETED] = item_changed,
	[UAR_EV_JOB_ITEM_FAILED] = item_changed,
};

void view_fold_fanout(struct fold_step *s)
{
	if (s->ev->cls < UAR_EV_COUNT && folds[s->ev->cls])
		folds[s->ev->cls](s);
}

/* --- the summary ----------------------------------------------------------------------------- */

/* Nothing of it is lost with the process: it goes on by itself, or when it is asked to. */
static const char *recoverability(const struct uar_sview_subagent *a)
{
	return a->item.open ? "goes_on" : "resume_subagent";
}

static void put_subagent(struct uar_jw *w, const struct uar_sview_subagent *a)
{
	uar_jw_obj(w, NULL);
	uar_jw_str(w, "subagent_id", a->item.key);
	uar_jw_obj(w, "parent");
	uar_jw_str_or_null(w, "thread_id", a->thread_id);
	uar_jw_str_or_null(w, "turn_id", a->turn_id);
	uar_jw_str_or_null(w, "run_id", a->run_id);
	uar_jw_close(w);
	uar_jw_str_or_null(w, "child_session_id", a->child_session_id);
	uar_jw_str_or_null(w, "child_thread_id", a->child_thread_id);
	uar_jw_str_or_null(w, "agent_id", a->agent_id);
	uar_jw_str_or_null(w, "role", a->role);
	uar_jw_str_or_null(w, "nickname", a->nickname);
	uar_jw_str_or_null(w, "status", a->status);
	uar_jw_str_or_null(w, "reason", a->reason);
	uar_jw_str_or_null(w, "summary", a->summary);
	uar_jw_str_or_null(w, "last_message_ref", a->last_message_ref);
	uar_jw_str_or_null(w, "failure_category", a->failure_category);
	uar_jw_int(w, "inputs", a->inputs);
	uar_jw_cstr(w, "recoverability", recoverability(a));
	uar_jw_time_or_null(w, "spawned_at", a->spawned_at);
	uar_jw_time_or_null(w, "ended_at", a->ended_at);
	uar_jw_close(w);
}

/* The items that are kept: those at work, and the last ones. */
static void put_items(struct uar_jw *w, const struct uar_sview *v, uar_str job_id)
{
	uar_jw_arr(w, "items");
	for (size_t k = 0; k < v->lists[UAR_SVIEW_JOB_ITEM].count; k++) {
		const struct uar_sview_job_item *i = view_at(v, UAR_SVIEW_JOB_ITEM, k);

		if (!uar_str_eq(i->job_id, job_id))
			continue;
		uar_jw_obj(w, NULL);
		uar_jw_str(w, "job_item_id", i->item.key);
		uar_jw_int(w, "index", i->index);
		uar_jw_int(w, "attempt", i->attempt);
		uar_jw_str_or_null(w, "status", i->status);
		uar_jw_str_or_null(w, "assigned_thread_id", i->assigned_thread_id);
		uar_jw_str_or_null(w, "failure_category", i->failure_category);
		uar_jw_bool(w, "retryable", i->retryable);
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

static void put_job(struct uar_jw *w, const struct uar_sview *v, const struct uar_sview_job *j)
{
	uar_jw_obj(w, NULL);
	uar_jw_str(w, "job_id", j->item.key);
	uar_jw_str_or_null(w, "thread_id", j->thread_id);
	uar_jw_str_or_null(w, "task_id", j->task_id);
	uar_jw_str_or_null(w, "agent_id", j->agent_id);
	uar_jw_str_or_null(w, "job_kind", j->job_kind);
	uar_jw_str_or_null(w, "status", j->status);
	uar_jw_str_or_null(w, "reason", j->reason);
	uar_jw_int(w, "item_count", j->item_count);
	uar_jw_str_or_null(w, "cursor", j->cursor);
	view_put_json(w, "counts", j->counts, "{}");
	uar_jw_double(w, "progress", j->progress);
	uar_jw_cstr(w, "recoverability", j->item.open ? "goes_on" : "retry_job_item");
	put_items(w, v, j->item.key);
	uar_jw_time_or_null(w, "created_at", j->created_at);
	uar_jw_time_or_null(w, "ended_at", j->ended_at);
	uar_jw_close(w);
}

void uar_sview_write_fanout(struct uar_jw *w, const char *key, const struct uar_sview_show *s)
{
	const struct uar_sview_list *l = s->view->lists;

	uar_jw_obj(w, key);
	uar_jw_arr(w, "subagents");
	for (size_t i = 0; i < l[UAR_SVIEW_SUBAGENT].count; i++)
		put_subagent(w, view_at(s->view, UAR_SVIEW_SUBAGENT, i));
	uar_jw_close(w);
	uar_jw_arr(w, "jobs");
	for (size_t i = 0; i < l[UAR_SVIEW_JOB].count; i++)
		put_job(w, s->view, view_at(s->view, UAR_SVIEW_JOB, i));
	uar_jw_close(w);
	uar_jw_obj(w, "omitted");
	uar_jw_int(w, "subagents", l[UAR_SVIEW_SUBAGENT].omitted);
	uar_jw_int(w, "jobs", l[UAR_SVIEW_JOB].omitted);
	uar_jw_int(w, "items", l[UAR_SVIEW_JOB_ITEM].omitted);
	uar_jw_close(w);
	uar_jw_close(w);
}
