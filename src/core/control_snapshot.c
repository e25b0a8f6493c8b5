/* control_snapshot.c - what the runtime itself records about read models: snapshots that were
 * stored or repaired, pages of history that were read. */
#include "core/control_int.h"

/* The read models that a view holds. */
static void put_models(struct uar_jw *w)
{
	static const char *const names[] = { "session_snapshot",
					     "thread_read_model",
					     "tool_inventory_snapshot",
					     "queue_snapshot",
					     "task_snapshot",
					     "context_boundary_snapshot",
					     "artifact_checkpoint_summary" };

	uar_jw_arr(w, "read_models");
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		uar_jw_cstr(w, NULL, names[i]);
	uar_jw_close(w);
}

static void put_ref(struct ctl *c, const struct uar_ctl_record_snapshot *in)
{
	uar_str ref = uar_arena_printf(
		c->e.env->arena, "{\"snapshot_ref\":\"snapshot://session_snapshot/%.*s@%lld\"}",
		UAR_FMT(in->session_id), (long long)in->through);

	uar_emit_refs(&c->e, ref);
}

static void tell_updated(struct ctl *c, const struct uar_ctl_record_snapshot *in)
{
	struct uar_jw *w = uar_emit_begin(&c->e);

	put_models(w);
	uar_jw_int(w, "through_sequence", in->through);
	uar_jw_cstr(w, "status", "updated");
	uar_jw_cstr(w, "source", "log");
	put_ref(c, in);
	uar_emit(&c->e, UAR_EV_SNAPSHOT_UPDATED, EMIT_SESSION);
}

static void tell_repaired(struct ctl *c, const struct uar_ctl_record_snapshot *in)
{
	struct uar_jw *w = uar_emit_begin(&c->e);

	put_models(w);
	uar_jw_str(w, "reason", in->repair_reason);
	uar_jw_bool(w, "stale", false);
	uar_jw_cstr(w, "repair_status", "repaired");
	put_ref(c, in);
	uar_emit(&c->e, UAR_EV_SNAPSHOT_REPAIRED, EMIT_SESSION);
}

/* The row is replaced without a look at the one that is there, which may be damaged. */
void ctl_record_snapshot(struct ctl *c)
{
	const struct uar_ctl_record_snapshot *in = &c->in->record_snapshot;
	struct uar_row_snapshot *row = ctl_new_row(c, UAR_ROW_SNAPSHOT, in->session_id);

	if (!row)
		return;
	row->row.fresh = false;
	row->row.status = UAR_STR("current");
	row->row.parent = in->session_id;
	row->row.tag = UAR_STR("session_view");
	row->through = in->through;
	row->sha256 = in->sha256;
	row->model = in->model;
	if (in->repair_reason.n)
		tell_repaired(c, in);
	else
		tell_updated(c, in);
	ctl_result(c);
	ctl_result_end(c);
}

void ctl_record_window(struct ctl *c)
{
	const struct uar_ctl_record_window *in = &c->in->record_window;
	struct uar_jw *w = uar_emit_begin(&c->e);

	if (in->cursor.n)
		uar_jw_str(w, "cursor", in->cursor);
	uar_jw_str_or_null(w, "next_cursor", in->next_cursor);
	uar_jw_int(w, "from_sequence", in->from_sequence);
	uar_jw_int(w, "to_sequence", in->to_sequence);
	uar_jw_int(w, "count", in->count);
	uar_jw_bool(w, "truncated", in->next_cursor.n != 0);
	uar_jw_bool(w, "stale", in->stale);
	uar_emit_name(&c->e, UAR_ID_THREAD, in->thread_id);
	uar_emit(&c->e, UAR_EV_HISTORY_WINDOW_LOADED, EMIT_SESSION);
	ctl_result(c);
	ctl_result_end(c);
}

/* The stream of the run has ended: the session's alone shows it. */
void ctl_record_artifact_error(struct ctl *c)
{
	const struct uar_ctl_record_artifact_error *in = &c->in->record_artifact_error;
	struct uar_jw *w =
		uar_core_artifact_error(&c->e, in->artifact_id, in->message, in->details);

	uar_jw_str(w, "run_id", in->run_id);
	uar_emit(&c->e, UAR_EV_RUNTIME_WARNING, EMIT_SESSION);
	ctl_result(c);
	ctl_result_end(c);
}
