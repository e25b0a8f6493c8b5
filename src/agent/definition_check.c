/* definition_check.c - rules between the members of a definition. */
#include "agent/definition_int.h"
#include "agent/limits.h"
#include "agent/prompt.h"
#include "base/header.h"
#include "flow/flow.h"
#include "json/schema.h"

/* --- what an entry does not use --------------------------------------------------------- */

static const struct {
	const char *pointer;
	const char *entry; /* those that take it, a space between two; a '.' at the end of one: all
			    * that begin so */
	const char *instead;
} only[] = {
	{ "/runtime/backend/args", "backend.acp", "" },
	{ "/runtime/backend/kind", "backend.acp", "" },
	{ "/runtime/backend/can_resume", "backend.acp", "" },
	{ "/runtime/backend/can_fork", "backend.acp", "" },
	{ "/runtime/backend/approval_policy", "backend.codex", "" },
	{ "/runtime/backend/sandbox_mode", "backend.codex", "" },
	{ "/runtime/backend/transport", "backend.codex", "" },
	{ "/runtime/backend/report_hooks", "backend.claude_code", "" },
	{ "/runtime/backend", "backend.", "" },
	{ "/runtime/peer", "peer.a2a", "" },
	{ "/policy/approvals", "backend.", ": use policy.tools.ask" },
	{ "/workflow", "workflow.run", "" },
	{ "/prompt", "llm.chat", "" },
	{ "/memory", "llm.chat", "" },
	{ "/tools", "llm.chat workflow.run", "" },
	{ "/ui", "llm.chat", "" },
	{ "/schemas/outputs", "llm.chat workflow.run", "" },
	{ "/policy/provider", "llm.chat", ": use runtime.backend.model" },
	{ "/policy/tools", "llm.chat workflow.run", ": use policy.approvals" },
	{ "/policy/tools/allow", "llm.chat", ": its nodes name its tools" },
	{ "/policy/permissions", "llm.chat workflow.run", ": use policy.approvals" },
	{ "/policy/skills", "llm.chat", "" },
	{ "/policy/hooks", "llm.chat", "" },
	{ "/policy/sandbox", "llm.chat workflow.run", ": use runtime.backend.sandbox_mode" },
	{ "/policy/output", "llm.chat", "" },
};

static bool takes(uar_str entry, const char *who)
{
	uar_str w, rest = uar_str_c(who);

	while (rest.n) {
		w = uar_str_cut(rest, ' ', &rest);
		if (uar_str_ends(w, UAR_STR(".")) ? uar_str_starts(entry, w) : uar_str_eq(entry, w))
			return true;
	}
	return false;
}

static uar_err check_entry(const struct uar_definition *d, struct uar_error *error)
{
	uar_str entry = d->info.entry;

	for (size_t i = 0; i < ARRAY_LEN(only); i++)
		if (!takes(entry, only[i].entry) &&
		    uar_json_pointer(d->json, uar_str_c(only[i].pointer))) {
			uar_error_where(error, "%s", only[i].pointer);
			return uar_error_set(error, UAR_ESCHEMA, "%.*s does not take it%s",
					     UAR_FMT(entry), only[i].instead);
		}
	if (uar_str_is(entry, "peer.a2a") && !uar_json_pointer(d->json, UAR_STR("/runtime/peer"))) {
		uar_error_where(error, "/runtime");
		return uar_error_set(error, UAR_ESCHEMA, "required: 'peer' is missing");
	}
	return UAR_OK;
}

static uar_err check_peer(const struct uar_definition *d, struct uar_error *error)
{
	const struct uar_json *headers =
		uar_json_pointer(d->json, UAR_STR("/runtime/peer/headers"));

	for (const struct uar_json *h = uar_json_first(headers); h; h = h->next)
		if (uar_header_is_of_connection(h->key)) {
			uar_error_where(error, "/runtime/peer/headers/%.*s", UAR_FMT(h->key));
			return uar_error_set(error, UAR_ESCHEMA, UAR_HEADER_OF_CONNECTION);
		}
	return UAR_OK;
}

static uar_err check_workflow(const struct uar_definition *d, struct uar_error *error)
{
	struct uar_arena arena;
	struct uar_flow *flow;
	uar_err e;

	if (!uar_str_is(d->info.entry, "workflow.run"))
		return UAR_OK;
	uar_arena_init(&arena, 0);
	flow = uar_arena_alloc(&arena, sizeof *flow);
	e = flow ? uar_flow_read(d->json, flow, error) : UAR_ENOMEM;
	uar_arena_fini(&arena);
	return e;
}

/* A member that acts nowhere is refused. */
static uar_err check_ensemble(const struct uar_definition *d, struct uar_error *error)
{
	static const char *const tools[] = { "/tools", "/policy/tools" };
	uar_str pattern = uar_json_str(
		uar_json_pointer(d->json, UAR_STR("/policy/provider/pattern")), UAR_STR(""));

	for (size_t i = 0; i < ARRAY_LEN(tools) && uar_str_is(pattern, "ensemble"); i++)
		if (uar_json_pointer(d->json, uar_str_c(tools[i]))) {
			uar_error_where(error, "%s", tools[i]);
			return uar_error_set(error, UAR_ESCHEMA,
					     "the candidates of an ensemble get no tools: leave it "
					     "out, or write another pattern");
		}
	return UAR_OK;
}

/* --- schemas inside ---------------------------------------------------------------------- */

static uar_err check_schema(const struct uar_json *schema, const char *where,
			    struct uar_error *error)
{
	struct uar_schema *s = NULL;
	uar_err e = schema ? uar_schema_create(schema, NULL, &s, error) : UAR_OK;

	uar_schema_destroy(s);
	if (!e || e == UAR_ENOMEM)
		return e;
	uar_error_where(error, "%s", where);
	return UAR_ESCHEMA;
}

static uar_err check_tool_schemas(const struct uar_json *tools, struct uar_error *error)
{
	const struct uar_json *overrides = uar_json_get(tools, UAR_STR("overrides"));
	const struct uar_json *rails = uar_json_get(tools, UAR_STR("guardrails"));
	uar_err e = UAR_OK;

	for (const struct uar_json *o = uar_json_first(overrides); o && !e; o = o->next)
		e = check_schema(uar_json_get(o, UAR_STR("input_schema")), "/tools/overrides",
				 error);
	for (const struct uar_json *g = uar_json_at(rails, 0); g && !e; g = g->next) {
		e = check_schema(uar_json_get(g, UAR_STR("deny_if")), "/tools/guardrails", error);
		if (!e)
			e = check_schema(uar_json_get(g, UAR_STR("ask_if")), "/tools/guardrails",
					 error);
	}
	return e;
}

/* --- texts with variables ---------------------------------------------------------------- */

struct known {
	const struct uar_definition *d;
	bool message;
};

static uar_err is_known(void *ctx, uar_str name, struct uar_buf *out)
{
	const struct known *k = ctx;

	(void)out;
	if (uar_json_get(k->d->prompt.variables, name) || uar_str_is(name, "agent.id") ||
	    uar_str_is(name, "agent.title") || (k->message && uar_str_is(name, "message")))
		return UAR_OK;
	return UAR_ENOTFOUND;
}

static uar_err check_text(const struct uar_definition *d, uar_str text, const char *where,
			  struct uar_error *error)
{
	struct uar_buf sink = uar_buf_make(UAR_LIMIT_AGENT_DEFINITION);
	struct known k = { d, uar_str_is(uar_str_c(where), "/prompt/template") };
	uar_err e = uar_template_render(text, is_known, &k, &sink, error);

	uar_buf_fini(&sink);
	if (e == UAR_ESCHEMA)
		uar_error_where(error, "%s", where);
	return e;
}

static uar_err check_prompt(const struct uar_definition *d, struct uar_error *error)
{
	const struct uar_definition_prompt *p = &d->prompt;
	uar_err e = check_text(d, p->system, "/prompt/system", error);
	char where[64];

	if (!e)
		e = check_text(d, p->template, "/prompt/template", error);
	for (size_t i = 0; i < p->instruction_count && !e; i++) {
		snprintf(where, sizeof where, "/prompt/instructions/%zu", i);
		e = check_text(d, p->instructions[i], where, error);
	}
	return e;
}

uar_err uar_definition_check(const struct uar_definition *d, struct uar_error *error)
{
	uar_err e = check_entry(d, error);

	if (!e)
		e = check_peer(d, error);
	if (!e)
		e = check_workflow(d, error);
	if (!e)
		e = check_ensemble(d, error);
	if (!e)
		e = check_schema(d->schemas.inputs, "/schemas/inputs", error);
	if (!e)
		e = check_schema(d->schemas.outputs, "/schemas/outputs", error);
	if (!e)
		e = check_schema(d->schemas.state, "/schemas/state", error);
	if (!e)
		e = check_tool_schemas(uar_json_get(d->json, UAR_STR("tools")), error);
	return e ? e : check_prompt(d, error);
}
