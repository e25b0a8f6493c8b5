/* toolrun.c - the facts of tools that UAR executes itself, the ledger of effects.
 *
 * That a call is executed is a fact before it is: tool.started, or a tool.progress
 * that says it is executed again. Whoever finds it open later knows that it may
 * have happened. What is refused begins and ends in one append. */
#include "core/emit.h"

/* --- it begins ------------------------------------------------------------------ */

static uar_str decision_of(struct emit *e, const struct uar_tool_begin *t)
{
	char id[UAR_ACTION_TEXT + 1];

	if (!t->action)
		return uar_emit_id(e);
	uar_action_id(e->r->id.run_id, t->action, id);
	return uar_emit_own(e, id);
}

/* What was decided about it. When somebody was asked that was said before, unless it is denied
 * all the same. */
static void evaluated(struct emit *e, const struct uar_tool_begin *t, uar_str decision_id)
{
	bool unavailable = strcmp(t->policy, "unavailable") == 0;
	struct permission p = {
		.decision_id = decision_id,
		.name = t->name,
		.resource = t->tool_id,
		.decision = unavailable ? "unavailable" : "deny",
		.reason = unavailable ? UAR_STR("there is no such tool")
				      : UAR_STR("the agent may not use it"),
		.destructive = t->destructive,
		.said = t->permission,
		.changed_blob = t->changed_blob,
	};

	if (!t->permission.n && strcmp(t->policy, "denied") && !unavailable) {
		p.decision = "allow";
		p.reason = UAR_STR("the agent may use it without asking");
	}
	if (!t->action || t->permission.n)
		uar_core_tool_permission(e, p, t->call_id);
}

static void refer_args(struct emit *e, const struct uar_tool_begin *t)
{
	if (t->args_blob.n)
		uar_emit_refer(e, "args_ref", t->args_blob);
}

static void started(struct emit *e, const struct uar_tool_begin *t, uar_str decision_id)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_str(w, "tool_id", t->tool_id);
	uar_jw_str(w, "tool_name", t->name);
	uar_jw_str(w, "tool_version", t->version);
	uar_jw_str(w, "transport", t->transport);
	uar_jw_str(w, "environment_id", e->s->runtime_id);
	uar_jw_int(w, "call_index", uar_run_rare(e->r)->tools.calls);
	if (t->args_json) {
		uar_jw_raw(w, "safe_args", t->args);
	} else {
		uar_jw_obj(w, "safe_args");
		uar_jw_close(w);
	}
	uar_jw_cstr(w, "policy", t->policy);
	uar_jw_str(w, "decision_id", decision_id);
	uar_jw_cstr(w, "effect", t->effect);
	uar_jw_bool(w, "is_read_only", strcmp(t->effect, "read_only") == 0);
	uar_jw_bool(w, "is_destructive", t->destructive);
	uar_jw_cstr(w, "status", "running");
	refer_args(e, t);
	uar_emit_name(e, UAR_ID_TOOL_CALL, t->call_id);
	uar_emit_name(e, UAR_ID_STEP, uar_emit_id(e));
	uar_emit(e, UAR_EV_TOOL_STARTED, EMIT_RUN);
}

static void args(struct emit *e, const struct uar_open_tool *tool, const struct uar_tool_begin *t)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_int(w, "index", tool->index);
	if (t->args_json)
		uar_jw_raw(w, "args", t->args);
	else
		uar_jw_str(w, "args", t->args);
	uar_jw_cstr(w, "tool_name", tool->name);
	uar_jw_bool(w, "final", true);
	uar_jw_bool(w, "valid", t->wrong.n == 0);
	if (t->wrong.n) {
		uar_jw_arr(w, "violations");
		uar_jw_obj(w, NULL);
		uar_jw_str(w, "path", t->wrong_at);
		uar_jw_str(w, "message", t->wrong);
		uar_jw_close(w);
		uar_jw_close(w);
	}
	uar_jw_int(w, "args_bytes", t->args_bytes);
	if (t->schema.n)
		uar_jw_str(w, "schema_sha256", t->schema);
	if (t->changed_by.n)
		uar_jw_str(w, "changed_by_hook", t->changed_by);
	refer_args(e, t);
	uar_core_name_tool(e, tool);
	uar_emit(e, UAR_EV_TOOL_ARGS, EMIT_RUN);
}

static void begins_again(struct emit *e, const struct uar_open_tool *tool)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_int(w, "index", tool->index);
	uar_jw_cstr(w, "message", "Executed again: it was cut off by a restart");
	uar_jw_bool(w, "again", true);
	uar_core_name_tool(e, tool);
	uar_emit(e, UAR_EV_TOOL_PROGRESS, EMIT_RUN);
}

/* How a call ends that ends for that reason. */
static const char *status_of(uar_str category)
{
	static const char *const words[][2] = {
		{ "timeout", "timed_out" },	      { "cancelled", "cancelled" },
		{ "sibling_cancelled", "cancelled" }, { "rejected", "denied" },
		{ "policy_denied", "denied" },	      { "hook_blocked", "denied" },
		{ "not_surfaced", "denied" }
	};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (uar_str_is(category, words[i][0]))
			return words[i][1];
	return "failed";
}

/* The category of a tool that knows none of the catalogue's is told as plain failure. */
static uar_str known_category(uar_str category)
{
	static const char *const known[] = {
		"unknown_tool", "not_surfaced",	     "schema_invalid", "value_invalid",
		"hook_blocked", "policy_denied",     "rejected",       "setup_missing",
		"execution",	"sandbox_violation", "dependency",     "sibling_cancelled",
		"timeout",	"result_too_large",  "cancelled",
	};

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (uar_str_is(category, known[i]))
			return category;
	return UAR_STR("execution");
}

static void failed(struct emit *e, const struct uar_open_tool *tool, uar_str category,
		   uar_str message, bool retryable)
{
	const char *status = status_of(category);
	bool denied = strcmp(status, "denied") == 0;
	struct uar_failure f = { denied ? UAR_STR("TOOL_DENIED") : UAR_STR("TOOL_ERROR"),
				 uar_str_utf8_prefix(message, UAR_TEXT_MESSAGE),
				 known_category(category), retryable };

	uar_core_tool_failed(e, tool, status, &f, NULL);
}

void uar_core_tool_begin(struct emit *e, const struct uar_tool_begin *t)
{
	const struct uar_open_tool *tool;
	uar_str decision_id;

	decision_id = decision_of(e, t);
	if (t->again) {
		uar_core_sandbox_applied(e, t);
		begins_again(e, uar_core_open_tool(e, t->call_id));
		uar_core_process_started(e, t, decision_id);
		return;
	}
	evaluated(e, t, decision_id);
	uar_core_sandbox_applied(e, t);
	started(e, t, decision_id);
	tool = e->err ? NULL : uar_core_open_tool(e, t->call_id);
	if (!tool)
		return;
	args(e, tool, t);
	uar_core_process_started(e, t, decision_id);
	if (t->category.n && !e->err)
		failed(e, uar_core_open_tool(e, t->call_id), t->category, t->message, false);
}

/* --- it goes on, it ends ---------------------------------------------------------- */

void uar_core_tool_news(struct emit *e, const struct uar_tool_news *t)
{
	const struct uar_open_tool *tool = uar_core_open_tool(e, t->call_id);
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_int(w, "index", tool->index);
	uar_jw_raw(w, "partial", t->partial);
	uar_core_name_tool(e, tool);
	uar_emit(e, UAR_EV_TOOL_PROGRESS, EMIT_RUN);
}

static void refer_result(struct emit *e, const struct uar_tool_over *t)
{
	if (t->blob.n && t->parts_blob.n)
		uar_emit_refs(e, uar_arena_printf(e->env->arena,
						  "{\"output_ref\":\"blob://%.*s\","
						  "\"parts_ref\":\"blob://%.*s\"}",
						  UAR_FMT(t->blob), UAR_FMT(t->parts_blob)));
	else if (t->parts_blob.n)
		uar_emit_refer(e, "parts_ref", t->parts_blob);
	else if (t->blob.n)
		uar_emit_refer(e, "output_ref", t->blob);
	else if (t->process_id.n)
		uar_core_refer_process(e, t->process_id);
}

static void result(struct emit *e, const struct uar_open_tool *tool, const struct uar_tool_over *t)
{
	bool whole = !t->blob.n && !t->lost;
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "tool_name", tool->name);
	uar_jw_bool(w, "ok", true);
	uar_jw_cstr(w, "status", "completed");
	if (!t->output_bytes)
		uar_jw_null(w, "preview");
	else if (whole)
		uar_jw_raw(w, "preview", t->output);
	else
		uar_jw_str(w, "preview", t->output);
	uar_jw_bool(w, "empty", t->output_bytes == 0);
	uar_jw_bool(w, "truncated", !whole);
	uar_jw_int(w, "output_bytes", t->output_bytes);
	uar_jw_int(w, "duration_ms", uar_core_tool_ms(e, tool));
	uar_jw_cstr(w, "persistence",
		    whole     ? "inline"
		    : t->lost ? "drop_with_reason"
			      : "preview_and_persist");
	if (t->lost)
		uar_jw_str(w, "reason", t->message);
	refer_result(e, t);
	uar_core_name_tool(e, tool);
	uar_emit(e, UAR_EV_TOOL_RESULT, EMIT_RUN);
}

static void count_hidden(struct uar_jw *w, const char *kind, size_t count)
{
	if (!count)
		return;
	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "kind", kind);
	uar_jw_int(w, "count", (int64_t)count);
	uar_jw_close(w);
}

/* Said before the end that shows what is left. */
static void redacted(struct emit *e, const struct uar_tool_over *t)
{
	struct uar_jw *w;

	if (!t->hidden.secrets && !t->hidden.arguments)
		return;
	w = uar_emit_begin(e);
	uar_core_put_owner(w, "tool", t->call_id);
	uar_jw_arr(w, "redactions");
	count_hidden(w, "secret", t->hidden.secrets);
	count_hidden(w, "argument", t->hidden.arguments);
	uar_jw_close(w);
	uar_jw_cstr(w, "reason", "the tool gave back what must not be recorded");
	if (t->blob.n)
		uar_emit_refer(e, "output_ref", t->blob);
	uar_emit(e, UAR_EV_OUTPUT_REDACTED, EMIT_RUN);
}

void uar_core_tool_over(struct emit *e, const struct uar_tool_over *t)
{
	if (!t->ok) {
		redacted(e, t);
		if (t->process_id.n)
			uar_core_refer_process(e, t->process_id);
		if (!e->err)
			failed(e, uar_core_open_tool(e, t->call_id), t->category, t->message,
			       t->retryable);
		return;
	}
	if (t->artifact.n)
		uar_core_tool_made(e, t->call_id, t->artifact);
	if (t->blob.n)
		uar_core_spilled(e, &(struct spilled){ .owner = "tool",
						       .id = t->call_id,
						       .media_type = "application/json",
						       .kept = t->output,
						       .tail = t->tail,
						       .blob = t->blob,
						       .bytes = t->output_bytes });
	redacted(e, t);
	if (!e->err)
		result(e, uar_core_open_tool(e, t->call_id), t);
}
