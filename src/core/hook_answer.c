/* hook_answer.c - reads the JSON object that a hook answers with. */
#include "core/hook_answer.h"
#include "core/limits.h"

static const char *const outcomes[UAR_HOOK_OUTCOME_COUNT] = {
	[UAR_HOOK_CONTINUE] = "continue", [UAR_HOOK_ALLOW] = "allow", [UAR_HOOK_ASK] = "ask",
	[UAR_HOOK_DENY] = "deny",	  [UAR_HOOK_BLOCK] = "block",
};

const char *uar_hook_outcome_name(enum uar_hook_outcome o)
{
	return outcomes[o];
}

enum uar_hook_outcome uar_hook_outcome_parse(uar_str name)
{
	int o = 0;

	while (o < UAR_HOOK_OUTCOME_COUNT && !uar_str_is(name, outcomes[o]))
		o++;
	return (enum uar_hook_outcome)o;
}

enum uar_permission_verdict uar_hook_says(enum uar_hook_outcome o)
{
	static const enum uar_permission_verdict says[UAR_HOOK_OUTCOME_COUNT] = {
		[UAR_HOOK_ALLOW] = UAR_SAYS_ALLOW,
		[UAR_HOOK_ASK] = UAR_SAYS_ASK,
		[UAR_HOOK_DENY] = UAR_SAYS_DENY,
		[UAR_HOOK_BLOCK] = UAR_SAYS_DENY,
	};

	return says[o];
}

struct written {
	uar_str outcome, reason;
	const struct uar_json *input, *output, *context, *audit;
	bool suppress;
};
static const struct uar_json_field fields[] = {
	{ "outcome", UAR_FIELD_STR, false, offsetof(struct written, outcome) },
	{ "reason", UAR_FIELD_STR, false, offsetof(struct written, reason) },
	{ "updated_input", UAR_FIELD_ANY, false, offsetof(struct written, input) },
	{ "updated_tool_output", UAR_FIELD_ANY, false, offsetof(struct written, output) },
	{ "additional_context", UAR_FIELD_ANY, false, offsetof(struct written, context) },
	{ "audit", UAR_FIELD_ANY, false, offsetof(struct written, audit) },
	{ "suppress_output", UAR_FIELD_BOOL, false, offsetof(struct written, suppress) },
};

static uar_err refuse(struct uar_error *error, const char *where, const char *why)
{
	uar_error_where(error, "%s", where);
	return uar_error_set(error, UAR_EINVALID, "%s", why);
}

/* A text, or a list of them. */
static uar_err read_context(const struct uar_json *j, struct uar_arena *arena, uar_str *out,
			    struct uar_error *error)
{
	static const char why[] = "a text, or a list of texts";

	if (!j || j->kind == UAR_JSON_STRING) {
		*out = j ? j->text : UAR_STR("");
		return UAR_OK;
	}
	if (j->kind != UAR_JSON_ARRAY)
		return refuse(error, "/additional_context", why);
	for (const struct uar_json *c = j->first; c; c = c->next) {
		if (c->kind != UAR_JSON_STRING)
			return refuse(error, "/additional_context", why);
		*out = uar_arena_printf(arena, "%.*s%s%.*s", UAR_FMT(*out), out->n ? "\n" : "",
					UAR_FMT(c->text));
		if (!out->p)
			return UAR_ENOMEM;
	}
	return UAR_OK;
}

static uar_err read_audit(const struct uar_json *j, struct uar_arena *arena, uar_str *out)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_HOOK_ANSWER * 2);
	uar_err e;

	if (j)
		uar_json_write(&text, j);
	e = text.err;
	*out = UAR_STR("");
	if (!e && text.n) {
		*out = uar_arena_str(arena, uar_buf_str(&text));
		e = out->p ? UAR_OK : UAR_ENOMEM;
	}
	uar_buf_fini(&text);
	return e;
}

static uar_err take(const struct written *w, struct uar_arena *arena, struct uar_hook_answer *out,
		    struct uar_error *error)
{
	struct uar_hook_answer a = { .reason = uar_str_utf8_prefix(w->reason, 256),
				     .suppress = w->suppress,
				     .input = w->input,
				     .output = w->output,
				     .context = UAR_STR("") };
	uar_err e;

	a.outcome = w->outcome.n ? uar_hook_outcome_parse(w->outcome) : UAR_HOOK_CONTINUE;
	if (a.outcome == UAR_HOOK_OUTCOME_COUNT)
		return refuse(error, "/outcome", "one of continue, block, allow, deny, ask");
	e = read_context(w->context, arena, &a.context, error);
	if (!e)
		e = read_audit(w->audit, arena, &a.audit);
	if (!e)
		*out = a;
	return e;
}

uar_err uar_hook_answer_read(uar_str text, struct uar_arena *arena, struct uar_hook_answer *out,
			     struct uar_error *error)
{
	static const struct uar_json_limits limits = { .depth = 40 };
	struct written w = { .outcome = UAR_STR(""), .reason = UAR_STR("") };
	const struct uar_json *j = NULL;
	uar_err e;

	text = uar_str_trim(text);
	if (text.n > UAR_LIMIT_HOOK_ANSWER)
		return refuse(error, "", "the answer is too long");
	if (!text.n)
		return take(&w, arena, out, error);
	e = uar_json_parse(text, &limits, arena, &j, error);
	if (!e)
		e = uar_json_read(j, fields, ARRAY_LEN(fields), true, &w, error);
	if (e && e != UAR_ENOMEM)
		return UAR_EINVALID;
	return e ? e : take(&w, arena, out, error);
}
