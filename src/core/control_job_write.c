/* control_job_write.c - the records of jobs and their items, and the ids of their threads. */
#include "core/control_int.h"
#include "core/view_int.h"

bool uar_thread_job(uar_str thread_id, uar_str *out_job_id, int64_t *out_index)
{
	uar_str prefix = UAR_STR(UAR_JOB_THREAD), rest, job;
	uint64_t index = 0;

	if (!uar_str_starts(thread_id, prefix))
		return false;
	job = uar_str_cut(uar_str_from(thread_id, prefix.n), '.', &rest);
	if (!job.n || uar_str_u64(uar_str_cut(rest, '.', &rest), &index))
		return false;
	*out_job_id = job;
	*out_index = (int64_t)index;
	return true;
}

int64_t ctl_items_done(const struct uar_row_job *j)
{
	return j->completed + j->failed + j->reported;
}

void ctl_put_counts(struct uar_jw *w, const struct uar_row_job *j)
{
	uar_jw_obj(w, "counts");
	uar_jw_int(w, "pending", j->item_count - ctl_items_done(j) - j->running);
	uar_jw_int(w, "running", j->running);
	uar_jw_int(w, "completed", j->completed);
	uar_jw_int(w, "failed", j->failed);
	uar_jw_int(w, "reported", j->reported);
	uar_jw_close(w);
}

static void put_ref(struct uar_jw *w, const char *key, const struct uar_row_job *j, bool is)
{
	char ref[80];

	snprintf(ref, sizeof ref, "blob://%.*s", UAR_FMT(j->document));
	uar_jw_cstr(w, key, is && j->document.n ? ref : NULL);
}

void uar_job_write(struct uar_jw *w, const struct uar_row_job *j)
{
	uar_jw_str(w, "job_id", j->row.id);
	uar_jw_str(w, "session_id", j->row.session_id);
	uar_jw_str_or_null(w, "thread_id", j->row.tag);
	uar_jw_str_or_null(w, "task_id", j->row.parent);
	uar_jw_str_or_null(w, "run_id", j->run_id);
	uar_jw_str(w, "on_parent_end", j->on_parent_end.n ? j->on_parent_end : UAR_STR("close"));
	uar_jw_str(w, "agent_id", j->agent_id);
	uar_jw_str(w, "job_kind", j->job_kind);
	uar_jw_str(w, "status", j->row.status);
	uar_jw_str_or_null(w, "status_reason", j->status_reason);
	uar_jw_str(w, "instruction", j->instruction);
	put_ref(w, "instruction_ref", j, true);
	put_ref(w, "input_ref", j, true);
	put_ref(w, "output_schema_ref", j, j->has_schema);
	uar_jw_int(w, "concurrency", j->concurrency);
	uar_jw_int(w, "max_runtime_ms", j->max_runtime_ms);
	uar_jw_int(w, "item_count", j->item_count);
	uar_jw_int(w, "item_cursor", j->cursor);
	ctl_put_counts(w, j);
	uar_jw_raw(w, "last_error", j->last_error.n ? j->last_error : UAR_STR("null"));
	uar_jw_time(w, "created_at", j->row.created_us);
	uar_jw_time(w, "updated_at", j->row.updated_us);
	uar_jw_time_or_null(w, "started_at", j->started_at);
	uar_jw_time_or_null(w, "ended_at", j->ended_at);
}

void uar_job_item_write(struct uar_jw *w, const struct uar_row_job_item *i)
{
	uar_jw_str(w, "job_item_id", i->row.id);
	uar_jw_int(w, "index", i->row.rank);
	uar_jw_str(w, "status", i->row.status);
	uar_jw_int(w, "attempt", i->attempt);
	uar_jw_str_or_null(w, "assigned_thread_id", i->thread_id);
	uar_jw_str_or_null(w, "run_id", i->run_id);
	uar_jw_str_or_null(w, "output", i->output);
	uar_jw_str_or_null(w, "output_ref", i->output_ref);
	uar_jw_raw(w, "last_error", i->last_error.n ? i->last_error : UAR_STR("null"));
	uar_jw_bool(w, "retryable", i->retryable);
	uar_jw_time_or_null(w, "started_at", i->started_at);
	uar_jw_time_or_null(w, "ended_at", i->ended_at);
}
