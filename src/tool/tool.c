/* tool.c - what every registry of tools shares: look-ups, patterns, names. */
#include "event/sizes.h"
#include "json/jw.h"
#include "tool/tool.h"

#include <stdio.h>

void uar_tools_destroy(struct uar_tools *t)
{
	if (t)
		t->ops->destroy(t);
}

uint64_t uar_tools_generation(struct uar_tools *t)
{
	return t && t->ops->generation ? t->ops->generation(t) : 0;
}

void uar_tools_hold(struct uar_tools *t, const struct uar_tool *tool)
{
	if (t && tool && t->ops->hold)
		t->ops->hold(t, tool);
}

void uar_tools_let_go(struct uar_tools *t, const struct uar_tool *tool)
{
	if (t && tool && t->ops->let_go)
		t->ops->let_go(t, tool);
}

bool uar_tool_is_for(const struct uar_tool *t, const struct uar_owner *owner)
{
	return !t->owner.tenant.n || (owner && uar_owner_eq(&t->owner, owner));
}

const struct uar_tool *uar_tools_find(struct uar_tools *t, const struct uar_owner *owner,
				      uar_str tool_id)
{
	const struct uar_tool *tool = NULL;

	for (size_t i = 0; t && (tool = t->ops->at(t, i)); i++)
		if (uar_str_eq(tool->tool_id, tool_id) && uar_tool_is_for(tool, owner))
			break;
	return tool;
}

const struct uar_tool *uar_tools_by_model_name(struct uar_tools *t, const struct uar_owner *owner,
					       uar_str name)
{
	const struct uar_tool *tool = NULL;

	for (size_t i = 0; t && (tool = t->ops->at(t, i)); i++)
		if (uar_str_eq(tool->model_name, name) && uar_tool_is_for(tool, owner))
			break;
	return tool;
}

static const char *const effects[] = {
	[UAR_TOOL_READ_ONLY] = "read_only",
	[UAR_TOOL_IDEMPOTENT] = "idempotent",
	[UAR_TOOL_ONCE] = "once",
};

const char *uar_tool_effect_name(enum uar_tool_effect e)
{
	return effects[e];
}

enum uar_tool_effect uar_tool_effect_parse(uar_str name)
{
	for (size_t i = 0; i < ARRAY_LEN(effects); i++)
		if (uar_str_is(name, effects[i]))
			return (enum uar_tool_effect)i;
	return UAR_TOOL_ONCE;
}

void uar_tool_write_rules(struct uar_jw *w, const struct uar_tool *t, const char *policy)
{
	bool read_only = t->effect == UAR_TOOL_READ_ONLY;

	uar_jw_cstr(w, "policy", policy);
	if (t->state_reason.n)
		uar_jw_str(w, "policy_reason", t->state_reason);
	uar_jw_str(w, "runtime_owner", t->runtime_owner.n ? t->runtime_owner : UAR_STR("uar"));
	uar_jw_raw(w, "capabilities", t->capabilities.n ? t->capabilities : UAR_STR("[]"));
	uar_jw_cstr(w, "effect", effects[t->effect]);
	uar_jw_bool(w, "is_read_only", read_only);
	uar_jw_bool(w, "is_concurrency_safe", read_only);
	uar_jw_bool(w, "is_destructive", t->destructive);
	uar_jw_cstr(w, "interrupt_behavior", read_only ? "cancel" : "block");
	uar_jw_raw(w, "tags", t->tags.n ? t->tags : UAR_STR("[]"));
}

/* After a mismatch only the last '*' can still take more, so time is bounded by the
 * product of both lengths. */
bool uar_tool_matches(const struct uar_tool *tool, uar_str pattern)
{
	uar_str id = tool->tool_id;
	size_t i = 0, p = 0, star = pattern.n, taken = 0;

	while (i < id.n) {
		if (p < pattern.n && pattern.p[p] == '*') {
			star = p++;
			taken = i;
		} else if (p < pattern.n && pattern.p[p] == id.p[i]) {
			p++;
			i++;
		} else if (star < pattern.n) {
			p = star + 1;
			i = ++taken;
		} else {
			return false;
		}
	}
	while (p < pattern.n && pattern.p[p] == '*')
		p++;
	return p == pattern.n;
}

static bool may_stay(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-';
}

void uar_tool_name_for_models(uar_str tool_id, bool (*taken)(void *ctx, uar_str name), void *ctx,
			      char out[UAR_LIMIT_TOOL_NAME + 1])
{
	enum { NUMBER = 12 }; /* room for "_4294967295" */
	size_t n = 0, end;

	for (size_t i = 0; i < tool_id.n && n < UAR_LIMIT_TOOL_NAME; i++) {
		char c = tool_id.p[i];

		out[n++] = may_stay(c) ? c : '_';
		if (c == ':' && n < UAR_LIMIT_TOOL_NAME)
			out[n++] = '_';
	}
	if (n == 0)
		out[n++] = '_';
	out[n] = 0;
	end = n < UAR_LIMIT_TOOL_NAME - NUMBER ? n : UAR_LIMIT_TOOL_NAME - NUMBER;
	for (unsigned number = 2; taken(ctx, uar_str_c(out)); number++)
		snprintf(out + end, NUMBER, "_%u", number);
}
