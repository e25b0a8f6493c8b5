/* view_lists.c - writes tasks, artifacts, context and tools as clients are shown them. */
#include "core/view_int.h"

/* --- tasks ----------------------------------------------------------------------------------- */

/* The groups of a task snapshot: the first whose words hold the status. */
static const struct {
	const char *name;
	const char *words; /* " word " each */
} task_groups[] = {
	{ "waiting", " waiting_input waiting_permission waiting_resource blocked paused " },
	{ "failed", " failed timed_out " },
	{ "lost", " lost " },
	{ "terminal", " completed cancelled archived " },
	{ "active", "" },
};

static size_t group_of(const struct uar_sview_task *t)
{
	char word[40];
	size_t i = 0;

	snprintf(word, sizeof word, " %.*s ", (int)(t->status.n < 32 ? t->status.n : 32),
		 t->status.n ? t->status.p : "");
	while (i + 1 < ARRAY_LEN(task_groups) && !strstr(task_groups[i].words, word))
		i++;
	return i;
}

static void write_attempt(struct uar_jw *w, const struct uar_sview_task *t)
{
	if (!t->run_id.n) {
		uar_jw_null(w, "current_attempt");
		return;
	}
	uar_jw_obj(w, "current_attempt");
	uar_jw_str(w, "run_id", t->run_id);
	uar_jw_int(w, "attempt", t->attempt);
	uar_jw_str(w, "status", t->attempt_status.n ? t->attempt_status : UAR_STR("unknown"));
	uar_jw_close(w);
}

static void write_task(struct uar_jw *w, const struct uar_sview_task *t)
{
	uar_jw_obj(w, NULL);
	uar_jw_str(w, "task_id", t->item.key);
	uar_jw_str_or_null(w, "parent_task_id", t->parent_task_id);
	uar_jw_str_or_null(w, "root_task_id", t->root_task_id);
	uar_jw_str_or_null(w, "thread_id", t->thread_id);
	uar_jw_str_or_null(w, "title", t->title);
	uar_jw_str_or_null(w, "objective", t->objective);
	uar_jw_str(w, "status", t->status.n ? t->status : UAR_STR("unknown"));
	uar_jw_str_or_null(w, "native_status", t->native_status);
	if (t->remote.n)
		uar_jw_raw(w, "remote", t->remote);
	uar_jw_bool(w, "implicit", t->implicit);
	uar_jw_str_or_null(w, "visibility", t->visibility);
	write_attempt(w, t);
	uar_jw_str(w, "delivery_state",
		   t->delivery_state.n ? t->delivery_state : UAR_STR("pending"));
	view_put_json(w, "reconciled", t->reconciled, "null");
	if (t->has_progress)
		uar_jw_double(w, "progress", t->progress);
	else
		uar_jw_null(w, "progress");
	uar_jw_str_or_null(w, "phase", t->phase);
	view_put_json(w, "waiting_on", t->waiting_on, "null");
	view_put_json(w, "blockers", t->blockers, "[]");
	view_put_json(w, "last_error", t->error, "null");
	uar_jw_time_or_null(w, "created_at", t->created_at);
	uar_jw_time_or_null(w, "ended_at", t->ended_at);
	uar_jw_close(w);
}

static void write_graph(struct uar_jw *w, const struct uar_sview *v)
{
	uar_jw_arr(w, "graph");
	for (size_t i = 0; i < v->lists[UAR_SVIEW_EDGE].count; i++) {
		const struct uar_sview_edge *e = view_at(v, UAR_SVIEW_EDGE, i);

		uar_jw_obj(w, NULL);
		uar_jw_str(w, "kind", e->edge_kind);
		uar_jw_str(w, "source_id", e->source_id);
		uar_jw_str(w, "target_id", e->target_id);
		uar_jw_str(w, "status", e->status);
		uar_jw_str_or_null(w, "reason", e->reason);
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

void uar_sview_write_tasks(struct uar_jw *w, const char *key, const struct uar_sview_show *s)
{
	const struct uar_sview_list *l = &s->view->lists[UAR_SVIEW_TASK];

	uar_jw_obj(w, key);
	for (size_t g = 0; g < ARRAY_LEN(task_groups); g++) {
		uar_jw_arr(w, task_groups[g].name);
		for (size_t i = 0; i < l->count; i++) {
			const struct uar_sview_task *t = view_at(s->view, UAR_SVIEW_TASK, i);

			if (group_of(t) == g)
				write_task(w, t);
		}
		uar_jw_close(w);
	}
	write_graph(w, s->view);
	uar_jw_int(w, "omitted", l->omitted);
	uar_jw_close(w);
}

/* --- artifacts ------------------------------------------------------------------------------- */

static bool is_latest(const struct uar_sview *v, const struct uar_sview_artifact *a)
{
	for (size_t i = 0; i < v->lists[UAR_SVIEW_ARTIFACT].count; i++) {
		const struct uar_sview_artifact *b = view_at(v, UAR_SVIEW_ARTIFACT, i);

		if (b->version > a->version && uar_str_eq(a->artifact_id, b->artifact_id))
			return false;
	}
	return true;
}

static void write_versions(struct uar_jw *w, const struct uar_sview *v, uar_str artifact_id)
{
	uar_jw_arr(w, "versions");
	for (size_t i = 0; i < v->lists[UAR_SVIEW_ARTIFACT].count; i++) {
		const struct uar_sview_artifact *a = view_at(v, UAR_SVIEW_ARTIFACT, i);

		if (!uar_str_eq(a->artifact_id, artifact_id))
			continue;
		uar_jw_obj(w, NULL);
		uar_jw_int(w, "version", a->version);
		uar_jw_str_or_null(w, "status", a->status);
		uar_jw_int(w, "bytes", a->bytes);
		uar_jw_str_or_null(w, "sha256", a->sha256);
		uar_jw_str_or_null(w, "read_ref", a->read_ref);
		uar_jw_str_or_null(w, "diff_ref", a->diff_ref);
		uar_jw_int(w, "issue_count", a->issue_count);
		uar_jw_time_or_null(w, "at", a->at);
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

static void write_artifact(struct uar_jw *w, const struct uar_sview *v,
			   const struct uar_sview_artifact *a)
{
	uar_jw_obj(w, NULL);
	uar_jw_str(w, "artifact_id", a->artifact_id);
	uar_jw_str_or_null(w, "artifact_type", a->artifact_type);
	uar_jw_str_or_null(w, "title", a->title);
	uar_jw_str_or_null(w, "mime", a->mime);
	uar_jw_str_or_null(w, "status", a->status);
	uar_jw_int(w, "version", a->version);
	uar_jw_str(w, "preview", a->preview);
	uar_jw_int(w, "issue_count", a->issue_count);
	uar_jw_str_or_null(w, "thread_id", a->thread_id);
	uar_jw_str_or_null(w, "run_id", a->run_id);
	write_versions(w, v, a->artifact_id);
	uar_jw_close(w);
}

void uar_sview_write_artifacts(struct uar_jw *w, const char *key, const struct uar_sview_show *s)
{
	const struct uar_sview_list *l = &s->view->lists[UAR_SVIEW_ARTIFACT];

	uar_jw_obj(w, key);
	uar_jw_arr(w, "artifacts");
	for (size_t i = 0; i < l->count; i++) {
		const struct uar_sview_artifact *a = view_at(s->view, UAR_SVIEW_ARTIFACT, i);

		if (is_latest(s->view, a))
			write_artifact(w, s->view, a);
	}
	uar_jw_close(w);
	uar_jw_int(w, "omitted", l->omitted);
	uar_jw_close(w);
}

/* --- context and tools ----------------------------------------------------------------------- */

/* A list that is kept whole, or only counted. */
static void write_counted(struct uar_jw *w, const char *key, uar_str json, int64_t count)
{
	uar_jw_obj(w, key);
	uar_jw_int(w, "count", count);
	uar_jw_cstr(w, "state", json.n || !count ? "available" : "unavailable");
	view_put_json(w, "items", json, "[]");
	uar_jw_close(w);
}

void uar_sview_write_context(struct uar_jw *w, const char *key, const struct uar_sview_show *s,
			     uar_str thread_id)
{
	const struct uar_sview_context *c = view_find(s->view, UAR_SVIEW_CONTEXT, thread_id);

	uar_jw_obj(w, key);
	uar_jw_cstr(w, "state", !c ? "not_applicable" : s->stale ? "stale" : "available");
	if (!c) {
		uar_jw_cstr(w, "reason", "no context was resolved for the thread");
		uar_jw_close(w);
		return;
	}
	uar_jw_str_or_null(w, "turn_id", c->turn_id);
	write_counted(w, "selected", c->items, c->item_count);
	write_counted(w, "citations", c->citations, c->citation_count);
	write_counted(w, "recalled", c->recalled, c->recalled_count);
	write_counted(w, "omitted", c->omissions, c->omission_count);
	write_counted(w, "missing_facts", c->missing, c->missing_count);
	view_put_json(w, "budget", c->budget, "null");
	view_put_json(w, "refs", c->refs, "{}");
	uar_jw_obj(w, "compaction");
	uar_jw_str(w, "state", c->compaction.n ? c->compaction : UAR_STR("not_applicable"));
	uar_jw_str_or_null(w, "summary", c->summary);
	uar_jw_str_or_null(w, "summary_ref", c->summary_ref);
	uar_jw_close(w);
	uar_jw_arr(w, "warnings");
	if (c->warning.n)
		uar_jw_str(w, NULL, c->warning);
	uar_jw_close(w);
	uar_jw_int(w, "sequence", c->item.sequence);
	uar_jw_close(w);
}

void uar_sview_write_inventory(struct uar_jw *w, const char *key, const struct uar_sview_show *s,
			       uar_str thread_id)
{
	const struct uar_sview_inventory *i = view_find(s->view, UAR_SVIEW_INVENTORY, thread_id);

	uar_jw_obj(w, key);
	uar_jw_cstr(w, "state", !i ? "not_applicable" : s->stale ? "stale" : "available");
	if (!i) {
		uar_jw_cstr(w, "reason", "no model of the thread was offered tools");
		uar_jw_close(w);
		return;
	}
	uar_jw_str_or_null(w, "inventory_id", i->inventory_id);
	uar_jw_str_or_null(w, "turn_id", i->turn_id);
	uar_jw_str_or_null(w, "caller", i->caller);
	uar_jw_str_or_null(w, "mode", i->mode);
	write_counted(w, "tools", i->tools, i->count);
	view_put_json(w, "excluded", i->excluded, "[]");
	view_put_json(w, "narrowed_by", i->narrowed_by, "[]");
	uar_jw_int(w, "sequence", i->item.sequence);
	uar_jw_close(w);
}
