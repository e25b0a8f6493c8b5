/* runs.c - columns and detail of a run row become its record. */
#include "proto/runs.h"

static void put_time(struct uar_jw *w, const char *key, int64_t us)
{
	if (us)
		uar_jw_seconds(w, key, us);
	else
		uar_jw_null(w, key);
}

/* The detail is a JSON object of further members and is spliced as it is: our own
 * writer made it, and the store sums up a row before it hands it out. */
static void put_detail(struct uar_jw *w, uar_str detail)
{
	if (uar_str_starts(detail, UAR_STR("{\"")) && uar_str_ends(detail, UAR_STR("}")))
		uar_jw_members(w, detail);
}

/* What lists are sorted by. */
static void put_listed(struct uar_jw *w, const struct uar_run_row *row)
{
	bool took_time = row->started_us && row->finished_us;

	uar_jw_str_or_null(w, "title", row->listed.title);
	if (took_time)
		uar_jw_double(w, "duration", (double)(row->finished_us - row->started_us) / 1e6);
	else
		uar_jw_null(w, "duration");
	uar_jw_double(w, "cost", (double)row->listed.cost_micros / 1e6);
	uar_jw_int(w, "tokens", row->listed.input_tokens + row->listed.output_tokens);
}

void uar_runs_write(struct uar_jw *w, const char *key, const struct uar_run_row *row)
{
	uar_jw_obj(w, key);
	uar_jw_str(w, "run_id", row->run_id);
	uar_jw_str(w, "plugin_id", row->plugin_id);
	uar_jw_str(w, "entry_id", row->entry_id);
	uar_jw_str_or_null(w, "agent_id", row->agent_id);
	uar_jw_str(w, "status", row->status);
	uar_jw_str(w, "session_id", row->session_id);
	uar_jw_str(w, "conversation_id", row->thread_id);
	uar_jw_str_or_null(w, "turn_id", row->turn_id);
	uar_jw_str(w, "root_run_id", row->root_run_id.n ? row->root_run_id : row->run_id);
	uar_jw_str_or_null(w, "parent_run_id", row->parent_run_id);
	uar_jw_int(w, "attempt", row->attempt);
	uar_jw_seconds(w, "created_at", row->created_us);
	uar_jw_seconds(w, "updated_at", row->updated_us);
	put_time(w, "started_at", row->started_us);
	put_time(w, "finished_at", row->finished_us);
	put_listed(w, row);
	put_detail(w, row->detail);
	uar_jw_close(w);
}
