/* toolcall.c - the open tool calls of a run, and how they end without a result. */
#include "core/emit.h"

size_t uar_tool_find(const struct uar_run_tools *t, uar_str call_id)
{
	size_t i = 0;

	while (i < t->open_count && !uar_str_is(call_id, t->open[i].call_id))
		i++;
	return i;
}

const struct uar_open_tool *uar_tool_open(const struct uar_run_tools *t, uar_str call_id)
{
	size_t i = uar_tool_find(t, call_id);

	return i < t->open_count ? &t->open[i] : NULL;
}

const struct uar_open_tool *uar_core_open_tool(const struct emit *e, uar_str call_id)
{
	return uar_tool_open(&uar_run_rare(e->r)->tools, call_id);
}

void uar_core_name_tool(struct emit *e, const struct uar_open_tool *tool)
{
	uar_emit_name(e, UAR_ID_TOOL_CALL, uar_emit_own(e, tool->call_id));
	uar_emit_name(e, UAR_ID_STEP, uar_emit_own(e, tool->step_id));
}

int64_t uar_core_tool_ms(const struct emit *e, const struct uar_open_tool *tool)
{
	int64_t took = e->env->now_us - tool->started_us;

	return took > 0 ? took / 1000 : 0; /* clocks jump */
}

void uar_core_tool_failed(struct emit *e, const struct uar_open_tool *tool, const char *status,
			  const struct uar_failure *f, const struct uar_json *output)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "tool_name", tool->name);
	uar_jw_bool(w, "ok", false);
	uar_jw_cstr(w, "status", status);
	uar_jw_str(w, "failure_category", f->category);
	uar_jw_str(w, "message", f->message);
	uar_emit_error(w, "error", f, UAR_STR_NONE);
	uar_jw_bool(w, "retryable", f->retryable);
	uar_jw_int(w, "duration_ms", uar_core_tool_ms(e, tool));
	if (output)
		uar_jw_tree(w, "preview", output);
	if (output && e->replay && e->replay->blob.n)
		uar_emit_refer(e, "output_ref", e->replay->blob);
	uar_core_name_tool(e, tool);
	uar_emit(e, UAR_EV_TOOL_FAILED, EMIT_RUN);
}

/* It is not known whether what changes the world has done so, and must not be denied. */
void uar_core_close_tools(struct emit *e, const struct uar_failure *f)
{
	bool timed_out = uar_str_is(f->category, "timeout");

	while (uar_run_rare(e->r)->tools.open_count && !e->err) {
		const struct uar_open_tool *tool = &uar_run_rare(e->r)->tools.open[0];
		struct uar_failure cut = {
			UAR_STR("TOOL_ERROR"),
			tool->changes ? UAR_STR("the run ended before the tool, which had begun: "
						"it may have taken effect, or still do")
				      : UAR_STR("the run ended before the tool"),
			timed_out ? UAR_STR("timeout") : UAR_STR("cancelled"), false
		};

		uar_core_tool_failed(e, tool, timed_out ? "timed_out" : "cancelled", &cut, NULL);
	}
}
