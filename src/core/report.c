/* report.c - what an agent that is a program tells on the way: its tool calls, its
 * own conversation, and news that change nothing.
 *
 * Such a program keeps inputs and outputs of its tools to itself; the facts hold
 * sizes and exit codes. */
#include "core/emit.h"

/* --- tools --------------------------------------------------------------------- */

static void tool_started(struct emit *e, const struct uar_tool_report *t, uar_str name)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_str(w, "tool_id", name);
	uar_jw_str(w, "tool_name", name);
	uar_jw_cstr(w, "tool_version", "unknown");
	uar_jw_cstr(w, "transport", "backend");
	uar_jw_str(w, "environment_id", e->r->what.provider);
	uar_jw_str(w, "tool_kind", t->kind);
	uar_jw_int(w, "call_index", uar_run_rare(e->r)->tools.calls);
	uar_jw_obj(w, "safe_args");
	uar_jw_close(w);
	uar_jw_cstr(w, "policy", "backend");
	uar_jw_bool(w, "is_read_only", false);
	uar_jw_bool(w, "is_destructive", false);
	uar_jw_cstr(w, "status", "running");
	uar_emit_name(e, UAR_ID_TOOL_CALL, t->call_id);
	uar_emit_name(e, UAR_ID_STEP, uar_emit_id(e));
	uar_emit(e, UAR_EV_TOOL_STARTED, EMIT_RUN);
}

static void tool_args(struct emit *e, const struct uar_open_tool *tool)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_int(w, "index", 0);
	uar_jw_obj(w, "args");
	uar_jw_close(w);
	uar_jw_cstr(w, "tool_name", tool->name);
	uar_jw_bool(w, "final", true);
	uar_core_name_tool(e, tool);
	uar_emit(e, UAR_EV_TOOL_ARGS, EMIT_RUN);
}

/* NULL: nobody can keep track of so many at once; that is said. */
static const struct uar_open_tool *begin(struct emit *e, const struct uar_tool_report *t)
{
	uar_str name = t->name.n ? t->name : t->kind;
	struct uar_note lost = { .kind = UAR_NOTE_WARNING,
				 .code = UAR_STR("TOOL_NOT_TRACKED"),
				 .text = UAR_STR("more tool calls at once than are followed") };
	const struct uar_open_tool *tool;

	if (uar_run_rare(e->r)->tools.open_count == UAR_OPEN_TOOLS) {
		uar_core_note(e, &lost);
		return NULL;
	}
	tool_started(e, t, name.n ? name : UAR_STR("tool"));
	tool = e->err ? NULL : uar_core_open_tool(e, t->call_id);
	if (tool)
		tool_args(e, tool);
	return e->err ? NULL : tool;
}

static int64_t all_bytes(const struct uar_tool_report *t)
{
	return t->stdout_bytes + t->stderr_bytes + t->diff_bytes + t->result_bytes;
}

static void put_measures(struct uar_jw *w, const char *key, const struct uar_tool_report *t)
{
	uar_jw_obj(w, key);
	if (t->has_exit)
		uar_jw_int(w, "exit_code", t->exit_code);
	uar_jw_int(w, "stdout_bytes", t->stdout_bytes);
	uar_jw_int(w, "stderr_bytes", t->stderr_bytes);
	uar_jw_int(w, "diff_bytes", t->diff_bytes);
	uar_jw_int(w, "result_bytes", t->result_bytes);
	uar_jw_close(w);
}

static void goes_on(struct emit *e, const struct uar_open_tool *tool,
		    const struct uar_tool_report *t)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_int(w, "index", tool->index);
	uar_jw_cstr(w, "message", "running");
	uar_jw_int(w, "bytes_read", all_bytes(t));
	uar_core_name_tool(e, tool);
	uar_emit(e, UAR_EV_TOOL_PROGRESS, EMIT_RUN);
}

static void ends(struct emit *e, const struct uar_open_tool *tool, const struct uar_tool_report *t)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "tool_name", tool->name);
	uar_jw_bool(w, "ok", true);
	uar_jw_cstr(w, "status", "completed");
	put_measures(w, "preview", t);
	uar_jw_bool(w, "empty", all_bytes(t) == 0);
	uar_jw_bool(w, "truncated", false);
	uar_jw_int(w, "output_bytes", all_bytes(t));
	uar_jw_int(w, "duration_ms", uar_core_tool_ms(e, tool));
	uar_jw_cstr(w, "persistence", "drop_with_reason");
	uar_jw_cstr(w, "reason", "the agent keeps the output of its tools to itself");
	uar_core_name_tool(e, tool);
	uar_emit(e, UAR_EV_TOOL_RESULT, EMIT_RUN);
}

static void breaks(struct emit *e, const struct uar_open_tool *tool,
		   const struct uar_tool_report *t)
{
	static const struct uar_failure failed = { UAR_STR("TOOL_ERROR"),
						   UAR_STR("the tool failed"), UAR_STR("execution"),
						   false };
	static const struct uar_failure denied = { UAR_STR("TOOL_DENIED"),
						   UAR_STR("the tool was not allowed"),
						   UAR_STR("rejected"), false };

	uar_core_tool_failed(e, tool, t->denied ? "denied" : "failed",
			     t->denied ? &denied : &failed, NULL);
}

/* Which files changed the program does not say, but that some did. */
static void files_changed(struct emit *e, const struct uar_open_tool *tool,
			  const struct uar_tool_report *t)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "op", "updated");
	uar_jw_cstr(w, "artifact_type", "workspace.file_change");
	uar_jw_cstr(w, "title", "Files of the working directory changed");
	uar_jw_int(w, "version", 1);
	uar_jw_cstr(w, "status", "ready");
	uar_jw_int(w, "bytes", 0);
	uar_jw_cstr(w, "sha256", "");
	uar_jw_int(w, "issue_count", 0);
	uar_jw_obj(w, "metadata");
	uar_jw_int(w, "diff_bytes", t->diff_bytes);
	uar_jw_close(w);
	uar_emit_name(e, UAR_ID_ARTIFACT, uar_emit_id(e));
	uar_core_name_tool(e, tool);
	uar_emit(e, UAR_EV_ARTIFACT_CHANGED, EMIT_RUN);
}

/* A step of a call that nobody saw begin begins it. */
void uar_core_tool(struct emit *e, const struct uar_tool_report *t)
{
	const struct uar_open_tool *tool = uar_core_open_tool(e, t->call_id);
	bool fresh = !tool;

	if (fresh)
		tool = begin(e, t);
	if (!tool)
		return;
	switch (t->step) {
	case UAR_TOOL_BEGINS: break;
	case UAR_TOOL_GOES_ON:
		if (!fresh)
			goes_on(e, tool, t);
		break;
	case UAR_TOOL_ENDS:
		if (uar_str_is(t->kind, "file_change"))
			files_changed(e, tool, t);
		ends(e, tool, t);
		break;
	case UAR_TOOL_BREAKS: breaks(e, tool, t); break;
	}
}

/* --- news ------------------------------------------------------------------------ */

static void note_phase(struct emit *e, const struct uar_note *n)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_str(w, "phase", n->code.n ? n->code : UAR_STR("backend"));
	uar_jw_cstr(w, "status", uar_status_text(e->r->status));
	uar_jw_str(w, "title", n->text);
	if (n->metadata.n)
		uar_jw_raw(w, "metadata", n->metadata);
	uar_emit(e, UAR_EV_RUN_STATUS, EMIT_RUN);
}

static void note_plan(struct emit *e, const struct uar_note *n)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "phase", "planning");
	uar_jw_str(w, "message", n->text);
	uar_jw_int(w, "coalesced", 0);
	uar_emit(e, UAR_EV_TASK_PROGRESS, EMIT_RUN);
}

static void note_warning(struct emit *e, const struct uar_note *n)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_str(w, "code", n->code);
	uar_jw_str(w, "message", n->text);
	uar_jw_cstr(w, "component", uar_entry_name(e->r->what.entry));
	if (n->metadata.n)
		uar_jw_raw(w, "details", n->metadata);
	uar_emit(e, UAR_EV_RUNTIME_WARNING, EMIT_RUN);
}

/* Somebody who shows an artifact saw it fail. */
struct uar_jw *uar_core_artifact_error(struct emit *e, uar_str artifact_id, uar_str message,
				       uar_str details)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "code", "ARTIFACT_PREVIEW_ERROR");
	uar_jw_str(w, "message", message);
	uar_jw_cstr(w, "component", "artifact_preview");
	if (details.n)
		uar_jw_raw(w, "details", details);
	uar_emit_name(e, UAR_ID_ARTIFACT, artifact_id);
	return w;
}

static void note_artifact_error(struct emit *e, const struct uar_note *n)
{
	uar_core_artifact_error(e, n->artifact_id, n->text, n->metadata);
	uar_emit(e, UAR_EV_RUNTIME_WARNING, EMIT_RUN);
}

static void note_limit(struct emit *e, const struct uar_note *n)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "limit_kind", "rate");
	uar_jw_str(w, "name", e->r->what.provider);
	uar_jw_cstr(w, "state", "unknown");
	uar_jw_cstr(w, "unit", "requests");
	uar_jw_str(w, "message", n->text);
	uar_emit(e, UAR_EV_LIMIT_CHANGED, EMIT_RUN);
}

static void note_denied(struct emit *e, const struct uar_note *n)
{
	struct permission p = {
		.decision_id = uar_emit_id(e),
		.type = UAR_STR("tool"),
		.name = UAR_STR("unknown"),
		.decision = "deny",
		.source = "mode",
		.mode = "default",
		.reason = n->text,
	};
	struct uar_jw *w = uar_core_permission(e, &p);

	uar_jw_obj(w, "scope");
	uar_jw_close(w);
	uar_emit(e, UAR_EV_PERMISSION_EVALUATED, EMIT_RUN);
}

static void note_truncated(struct emit *e, const struct uar_note *n)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_obj(w, "owner");
	uar_jw_str(w, "run_id", e->r->id.run_id);
	uar_jw_close(w);
	uar_jw_int(w, "original_bytes", n->bytes);
	uar_jw_int(w, "kept_bytes", 0);
	uar_jw_cstr(w, "policy", "head");
	uar_jw_str(w, "reason", n->text);
	uar_emit(e, UAR_EV_OUTPUT_TRUNCATED, EMIT_RUN);
}

void uar_core_note(struct emit *e, const struct uar_note *n)
{
	static void (*const put[UAR_NOTE_COUNT])(struct emit *, const struct uar_note *) = {
		[UAR_NOTE_PHASE] = note_phase,
		[UAR_NOTE_PLAN] = note_plan,
		[UAR_NOTE_WARNING] = note_warning,
		[UAR_NOTE_LIMIT] = note_limit,
		[UAR_NOTE_DENIED] = note_denied,
		[UAR_NOTE_TRUNCATED] = note_truncated,
		[UAR_NOTE_HOOK_STARTED] = uar_core_hook_started,
		[UAR_NOTE_HOOK_ENDED] = uar_core_hook_ended,
		[UAR_NOTE_HOOK_FAILED] = uar_core_hook_failed,
		[UAR_NOTE_ARTIFACT_ERROR] = note_artifact_error,
	};

	put[n->kind](e, n);
}

/* A fact of the thread: its next run goes on there. */
void uar_core_agent_session(struct emit *e, uar_str session_id)
{
	struct uar_jw *w = uar_emit_thread_change(e, "backend_session", NULL);

	uar_jw_obj(w, "backend_session");
	uar_jw_str(w, "kind", e->r->what.provider);
	uar_jw_str(w, "agent_id", e->r->what.agent_id);
	uar_jw_str(w, "id", session_id);
	uar_jw_close(w);
	uar_emit(e, UAR_EV_THREAD_UPDATED, EMIT_RUN);
}
