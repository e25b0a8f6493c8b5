/* hook.c - the facts of hooks: those of programs, which tell of them, and those that UAR calls. A
 * hook reaches a run through these facts alone. */
#include "core/emit.h"
#include "event/hook.h"

/* At these points the program waits for a yes or no. */
static bool decides(uar_str point)
{
	static const enum uar_hook_point all[] = { UAR_HOOK_USER_PROMPT_SUBMIT,
						   UAR_HOOK_PRE_TOOL_USE,
						   UAR_HOOK_PERMISSION_REQUEST, UAR_HOOK_STOP };

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (uar_str_is(point, uar_hook_point_name(all[i])))
			return true;
	return false;
}

static struct uar_jw *begin_hook(struct emit *e, const struct uar_note *n)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_str(w, "hook_id", n->hook.id);
	uar_jw_str(w, "hook_point", n->code);
	if (n->hook.call_id.n) /* it has no step before it begins */
		uar_jw_str(w, "tool_call_id", n->hook.call_id);
	return w;
}

static void emit_hook(struct emit *e, const struct uar_note *n, enum uar_event_class cls)
{
	uar_emit_name(e, UAR_ID_MODEL_REQUEST, n->hook.model_request);
	uar_emit(e, cls, EMIT_RUN);
}

void uar_core_hook_started(struct emit *e, const struct uar_note *n)
{
	struct uar_jw *w = begin_hook(e, n);
	bool high = n->hook.own ? !n->hook.read_only : decides(n->code);

	uar_jw_str(w, "handler_ref", n->hook.own ? n->hook.handler : e->r->what.provider);
	uar_jw_int(w, "timeout_ms", n->hook.timeout_ms); /* 0: the program's own affair */
	uar_jw_cstr(w, "risk", high ? "high" : "read_only");
	emit_hook(e, n, UAR_EV_HOOK_STARTED);
}

void uar_core_hook_ended(struct emit *e, const struct uar_note *n)
{
	struct uar_jw *w = begin_hook(e, n);

	uar_jw_str(w, "outcome", n->hook.outcome);
	if (n->hook.own && n->text.n)
		uar_jw_str(w, "reason", n->text);
	uar_jw_bool(w, "suppress_output", !n->hook.own || n->hook.suppress);
	if (n->hook.changed.n)
		uar_jw_raw(w, "changed_fields", n->hook.changed);
	uar_jw_int(w, "duration_ms", n->hook.duration_ms);
	if (n->hook.refs.n)
		uar_emit_refs(e, n->hook.refs);
	emit_hook(e, n, UAR_EV_HOOK_COMPLETED);
}

/* What fails open is a warning besides. */
static void warn(struct emit *e, const struct uar_note *n)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "code", "HOOK_FAILED");
	uar_jw_str(w, "message",
		   uar_arena_printf(e->env->arena, "the hook %.*s failed and was left out: %.*s",
				    UAR_FMT(n->hook.id), UAR_FMT(n->text)));
	uar_jw_cstr(w, "component", "hooks");
	uar_emit(e, UAR_EV_RUNTIME_WARNING, EMIT_RUN);
}

/* Programs go on without a hook that broke. */
void uar_core_hook_failed(struct emit *e, const struct uar_note *n)
{
	bool open = !n->hook.own || n->hook.fail_open;
	struct uar_failure f = { UAR_STR("HOOK_FAILED"),
				 n->hook.own ? n->text : UAR_STR("a hook of the agent failed"),
				 UAR_STR("execution"), false };
	struct uar_jw *w = begin_hook(e, n);

	uar_emit_error(w, "error", &f, UAR_STR_NONE);
	uar_jw_cstr(w, "failure_behavior", open ? "fail_open" : "fail_closed");
	uar_jw_int(w, "duration_ms", n->hook.duration_ms);
	emit_hook(e, n, UAR_EV_HOOK_FAILED);
	if (n->hook.own && open && !e->err)
		warn(e, n);
}
