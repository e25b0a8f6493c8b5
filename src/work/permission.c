/* permission.c - collects what every source says about a call. */
#include "work/permission.h"

#include "json/limits.h"
#include "work/definitions.h"
#include "work/tool_form.h"

enum { SUBJECT = 60 };

/* --- the configuration ------------------------------------------------------------------------ */

struct settings {
	uar_str mode;
	const struct uar_json *allow_modes, *rules;
	bool interactive;
};
static const struct uar_json_field fields[] = {
	{ "mode", UAR_FIELD_STR, false, offsetof(struct settings, mode) },
	{ "allow_modes", UAR_FIELD_ARRAY, false, offsetof(struct settings, allow_modes) },
	{ "interactive", UAR_FIELD_BOOL, false, offsetof(struct settings, interactive) },
	{ "rules", UAR_FIELD_ARRAY, false, offsetof(struct settings, rules) },
};

static uar_err refuse(struct uar_error *error, const char *where, const char *why)
{
	uar_error_where(error, "%s", where);
	return uar_error_set(error, UAR_EINVALID, "%s", why);
}

static uar_err read_modes(const struct settings *s, struct uar_host_policy *h,
			  struct uar_error *error)
{
	for (const struct uar_json *m = uar_json_at(s->allow_modes, 0); m; m = m->next) {
		enum uar_permission_mode mode = uar_permission_mode_parse(
			m->kind == UAR_JSON_STRING ? m->text : UAR_STR(""));

		if (!uar_permission_mode_loosens(mode))
			return refuse(error, "/allow_modes", "modes that loosen: bypass, auto");
		h->allowed |= 1u << mode;
	}
	h->mode = uar_permission_mode_parse(s->mode);
	if (s->mode.n && !h->mode)
		return refuse(error, "/mode",
			      "one of default, untrusted, on_request, on_failure, never, plan, "
			      "bypass, auto");
	if (h->mode)
		h->allowed |= 1u << h->mode; /* what the operator sets is allowed */
	return UAR_OK;
}

static uar_err read_settings(uar_str json, struct uar_host_policy *h, struct uar_error *error)
{
	struct settings s = { .mode = UAR_STR(""), .interactive = true };
	const struct uar_json *j = NULL;
	struct uar_error own = { 0 };
	uar_err e = uar_json_parse(json, NULL, &h->arena, &j, error);

	if (!e)
		e = uar_json_read(j, fields, ARRAY_LEN(fields), true, &s, error);
	if (!e)
		e = read_modes(&s, h, error);
	if (e)
		return e;
	h->root = j;
	h->unattended = !s.interactive;
	h->rules = s.rules;
	e = uar_permission_check_rules(s.rules, &own);
	if (!e)
		return UAR_OK;
	uar_error_where(error, "/rules%.100s", own.where);
	return uar_error_set(error, e, "%s", uar_error_text(&own));
}

uar_err uar_host_policy_read(uar_str json, struct uar_host_policy **out, struct uar_error *error)
{
	struct uar_host_policy *h = uar_zalloc(sizeof *h);
	uar_str copy;
	uar_err e = UAR_ENOMEM;

	if (!h)
		return UAR_ENOMEM;
	uar_arena_init(&h->arena, 0);
	copy = uar_arena_str(&h->arena, json.n ? json : UAR_STR("{}"));
	if (copy.p)
		e = read_settings(copy, h, error);
	if (e)
		uar_host_policy_destroy(h);
	else
		*out = h;
	return e;
}

void uar_host_policy_destroy(struct uar_host_policy *h)
{
	if (!h)
		return;
	uar_arena_fini(&h->arena);
	uar_free(h);
}

/* --- the call --------------------------------------------------------------------------------- */

static bool has_word(uar_str list, const char *word)
{
	return list.n && memmem(list.p, list.n, word, strlen(word));
}

static struct uar_permission_call call_of(const struct permission_ask *a)
{
	const struct uar_tool *t = a->tool;

	return (struct uar_permission_call){
		.read_only = t->effect == UAR_TOOL_READ_ONLY,
		.network = uar_str_is(t->transport, "http") || uar_str_is(t->transport, "mcp") ||
			   has_word(t->capabilities, "\"network\""),
		.destructive = t->destructive,
		.cautious = t->ask || uar_toolbox_unpinned(a->set->box, t),
		.failed = a->failed,
	};
}

static const struct uar_json *own_policy(const struct permission_ask *a)
{
	return a->definition ? uar_json_pointer(a->definition->json, UAR_STR("/policy/permissions"))
			     : NULL;
}

static enum uar_permission_mode mode_of(const struct permission_ask *a)
{
	const struct grants *g = a->stored;
	uar_str defined = uar_json_text(own_policy(a), "mode");
	struct uar_permission_modes m = {
		.run = a->own.mode,
		.thread = g ? g->thread.mode : UAR_MODE_NONE,
		.session = g ? g->session.mode : UAR_MODE_NONE,
		.definition = uar_permission_mode_parse(defined),
		.host = a->host ? a->host->mode : UAR_MODE_NONE,
		.allowed = a->host ? a->host->allowed : 0,
	};

	return uar_permission_effective(&m);
}

bool rt_permission_allows(const struct uar_workers *w, enum uar_permission_mode mode)
{
	const struct uar_host_policy *h = w->o.permissions;

	return !uar_permission_mode_loosens(mode) || (h && h->allowed & 1u << mode);
}

bool rt_permission_unattended(const struct permission_ask *a)
{
	const struct grants *g = a->stored;

	return a->own.unattended || (a->host && a->host->unattended) ||
	       (g && (g->thread.unattended || g->session.unattended));
}

bool rt_permission_is_governed(const struct live_run *r)
{
	const struct uar_host_policy *host = rt_work(r)->o.permissions;
	const struct uar_definition *d = rt_definition(r);
	const struct permission_ask a = { .definition = d };

	return rt_state(r)->what.permit.mode || own_policy(&a) ||
	       (host && (host->mode || host->rules));
}

static bool names_tool(void *ctx, uar_str pattern)
{
	return uar_tool_matches(((const struct permission_ask *)ctx)->tool, pattern);
}

static bool names_agent(void *ctx, uar_str pattern)
{
	return uar_pattern_fits(pattern, ((const struct permission_ask *)ctx)->agent_id);
}

static uar_err add_rails(const struct permission_ask *a, struct uar_arena *arena,
			 struct uar_permission_facts *f)
{
	uar_str why = UAR_STR("a guardrail of the agent forbids it");

	if (!a->bare && rt_toolset_asks_by_policy(a->set, a->tool))
		uar_permission_add(f, (struct uar_permission_say){
					      .source = UAR_PERMIT_BY_DEFINITION,
					      .verdict = UAR_SAYS_ASK,
					      .rule = UAR_STR("definition:tools.ask"),
					      .reason = UAR_STR("each call has to be allowed") });
	if (!a->rail)
		return UAR_OK;
	if (a->rail == UAR_RAIL_ASK)
		why = UAR_STR("a guardrail of the agent asks");
	if (a->rail_reason.n)
		why = uar_arena_printf(arena, "%.*s: %.*s", UAR_FMT(why), UAR_FMT(a->rail_reason));
	if (!why.p)
		return UAR_ENOMEM;
	uar_permission_add(
		f, (struct uar_permission_say){ .source = UAR_PERMIT_BY_DEFINITION,
						.verdict = a->rail == UAR_RAIL_DENY ? UAR_SAYS_DENY
										    : UAR_SAYS_ASK,
						.rule = UAR_STR("definition:tools.guardrails"),
						.reason = why });
	return UAR_OK;
}

uar_err rt_permission_decide(const struct permission_ask *a, struct uar_arena *arena,
			     struct uar_permission *out)
{
	struct uar_permission_facts f = { .mode = mode_of(a),
					  .unattended = rt_permission_unattended(a),
					  .call = call_of(a),
					  .grant = a->grant,
					  .allowed = a->allowed };
	const struct uar_permission_match match = { names_tool, names_agent, (void *)(uintptr_t)a,
						    f.call };
	const struct grants *g = a->stored;
	const struct uar_permission_list lists[] = {
		{ UAR_PERMIT_BY_HOST_POLICY, a->host ? a->host->rules : NULL, "host:rules" },
		{ UAR_PERMIT_BY_DEFINITION, uar_json_get(own_policy(a), UAR_STR("rules")),
		  "definition:rules" },
		{ UAR_PERMIT_BY_SESSION, g ? g->session.rules : NULL, "session:rules" },
		{ UAR_PERMIT_BY_SESSION, g ? g->thread.rules : NULL, "thread:rules" },
	};
	uar_err e = UAR_OK;

	for (size_t i = 0; i < ARRAY_LEN(lists) && !e; i++)
		e = uar_permission_add_rules(&f, &lists[i], &match, arena);
	if (e)
		return e;
	if (a->bare) {
		f.call = (struct uar_permission_call){ .read_only = true };
		f.unattended = false;
	}
	e = add_rails(a, arena, &f);
	if (a->hook)
		uar_permission_add(&f, *a->hook);
	if (!e)
		uar_permission_decide(&f, out);
	return e;
}

/* --- as events show it ------------------------------------------------------------------------ */

void rt_call_subject(uar_str args, bool in_folder, size_t size, char *out)
{
	static const char *const keys[] = { "path", "url", "command" };
	const struct uar_json *j = NULL;
	struct uar_arena arena;
	uar_str said = UAR_STR(""), folder;

	uar_arena_init(&arena, 0);
	if (uar_json_parse(args, NULL, &arena, &j, NULL))
		j = NULL;
	for (size_t i = 0; j && i < ARRAY_LEN(keys) && !said.n; i++)
		said = uar_json_text(j, keys[i]);
	folder = uar_json_text(j, "folder");
	if (in_folder && folder.n) {
		uar_str both =
			uar_arena_printf(&arena, "%.*s/%.*s", UAR_FMT(folder), UAR_FMT(said));

		said = both.p ? both : said;
	}
	snprintf(out, size, "%s%.*s%s", said.n ? ": " : "",
		 UAR_FMT(uar_str_utf8_prefix(said, size - 6)), said.n > size - 6 ? "..." : "");
	uar_arena_fini(&arena);
	for (; *out; out++)
		if ((unsigned char)*out < 0x20 || *out == 0x7f)
			*out = ' ';
}

static const char *advice_for(const struct uar_tool *t)
{
	if (uar_str_is(t->transport, "mcp"))
		return "The runtime cannot undo it: look first whether the MCP server can.";
	if (uar_str_is(t->transport, "http"))
		return "The runtime cannot undo it: look first whether the service can.";
	return "The runtime cannot undo it: keep a copy of what it names first.";
}

uar_err rt_permission_write(const struct permission_ask *a, const struct uar_permission *p,
			    struct uar_buf *out)
{
	struct uar_buf hidden = uar_buf_make(2 * (size_t)UAR_LIMIT_JSON_BYTES);
	struct uar_buf impact = uar_buf_make(UAR_LIMIT_ID_BYTES + 2 * SUBJECT);
	char subject[SUBJECT] = "";
	struct uar_jw w = uar_jw_begin(out);
	uar_err e = UAR_OK, end;

	if (a->tool->destructive) {
		e = rt_form_hides(a->tool->input_schema, a->input, &hidden);
		rt_call_subject(e ? a->input : uar_buf_str(&hidden), false, sizeof subject,
				subject);
		e = e == UAR_ESKIP ? UAR_OK : e;
	}
	uar_buf_printf(&impact, "%.*s%s", UAR_FMT(a->tool->tool_id), subject);
	uar_jw_obj(&w, NULL);
	uar_permission_write(&w, p,
			     &(struct uar_permission_about){ uar_buf_str(&impact),
							     uar_str_c(advice_for(a->tool)) });
	uar_jw_close(&w);
	uar_buf_fini(&hidden);
	uar_buf_fini(&impact);
	end = uar_jw_end(&w);
	return e ? e : end;
}
