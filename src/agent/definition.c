/* definition.c - the schema decides what a definition may say, the rest is copying. */
#include "agent/definition.h"

#include "agent/limits.h"
#include "base/embed.h"
#include "base/file.h"
#include "json/schema.h"

#define TIMEOUT_US INT64_C(3600000000) /* such agents work long */

UAR_EMBED(uar_agent_schema, "src/agent/agent.schema.json");

uar_str uar_definition_schema(void)
{
	return UAR_EMBEDDED(uar_agent_schema);
}

/* --- copying; one failure of memory is remembered ------------------------------ */

struct copy {
	struct uar_arena *arena;
	bool failed;
};

static uar_str own(struct copy *c, uar_str s)
{
	uar_str out = uar_arena_str(c->arena, s);

	c->failed |= !out.p;
	return out;
}

static uar_str text(struct copy *c, const struct uar_json *j, const char *key)
{
	return own(c, uar_json_str(uar_json_get(j, uar_str_c(key)), UAR_STR("")));
}

static bool yes(const struct uar_json *j, const char *key)
{
	return uar_json_bool(uar_json_get(j, uar_str_c(key)), false);
}

static int64_t seconds(const struct uar_json *j, const char *key)
{
	return (int64_t)(uar_json_double(uar_json_get(j, uar_str_c(key)), 0) * 1e6);
}

static void *room(struct copy *c, const struct uar_json *list, size_t each)
{
	void *out = list && list->count ? uar_arena_alloc(c->arena, list->count * each) : NULL;

	c->failed |= list && list->count && !out;
	return out;
}

static size_t list(struct copy *c, const struct uar_json *j, const char *key, uar_str **out)
{
	const struct uar_json *from = uar_json_get(j, uar_str_c(key));
	size_t n = 0;

	*out = room(c, from, sizeof **out);
	for (const struct uar_json *s = uar_json_at(from, 0); s && *out; s = s->next)
		(*out)[n++] = own(c, s->text);
	return n;
}

static enum uar_verdict verdict(const struct uar_json *j, const char *key)
{
	uar_str s = uar_json_str(uar_json_get(j, uar_str_c(key)), UAR_STR("ask"));

	return uar_str_is(s, "allow")  ? UAR_VERDICT_ALLOW
	       : uar_str_is(s, "deny") ? UAR_VERDICT_DENY
				       : UAR_VERDICT_ASK;
}

static void read_policy(struct copy *c, const struct uar_json *j, struct uar_definition_policy *p)
{
	const struct uar_json *rules = uar_json_get(j, UAR_STR("rules"));

	p->fallback = verdict(j, "default");
	p->timeout_us = seconds(j, "timeout_seconds");
	p->rules = room(c, rules, sizeof *p->rules);
	for (const struct uar_json *r = uar_json_at(rules, 0); r && p->rules; r = r->next)
		p->rules[p->rule_count++] =
			(struct uar_definition_rule){ text(c, r, "kind"), text(c, r, "tool"),
						      verdict(r, "decision") };
}

static void read_env(struct copy *c, const struct uar_json *j, struct uar_definition_backend *b)
{
	b->env = room(c, j, sizeof *b->env);
	for (const struct uar_json *v = j ? j->first : NULL; v && b->env; v = v->next) {
		b->env[b->env_count][0] = own(c, v->key);
		b->env[b->env_count++][1] = own(c, v->text);
	}
}

static void read_backend(struct copy *c, const struct uar_json *j, struct uar_definition_backend *b)
{
	b->program = text(c, j, "program");
	b->model = text(c, j, "model");
	b->working_dir = text(c, j, "working_dir");
	b->home = text(c, j, "home");
	b->approval_policy = text(c, j, "approval_policy");
	b->sandbox_mode = text(c, j, "sandbox_mode");
	b->transport = text(c, j, "transport");
	b->inherit_env = text(c, j, "inherit_env");
	b->arg_count = list(c, j, "args", &b->args);
	b->add_dir_count = list(c, j, "add_dirs", &b->add_dirs);
	b->pass_env_count = list(c, j, "pass_env", &b->pass_env);
	read_env(c, uar_json_get(j, UAR_STR("env")), b);
	b->start_us = seconds(j, "start_timeout_seconds");
	b->idle_us = seconds(j, "idle_timeout_seconds");
	b->allow_working_dir = yes(j, "allow_working_dir");
	b->can_resume = yes(j, "can_resume");
	b->can_fork = yes(j, "can_fork");
	b->report_hooks = yes(j, "report_hooks");
}

/* Options that only one kind of agent has. */
static uar_err check_kind(uar_str entry, const struct uar_json *backend, struct uar_error *error)
{
	static const struct {
		const char *key, *entry;
	} only[] = {
		{ "args", "backend.acp" },
		{ "kind", "backend.acp" },
		{ "can_resume", "backend.acp" },
		{ "can_fork", "backend.acp" },
		{ "approval_policy", "backend.codex" },
		{ "sandbox_mode", "backend.codex" },
		{ "transport", "backend.codex" },
		{ "report_hooks", "backend.claude_code" },
	};

	for (size_t i = 0; i < ARRAY_LEN(only); i++)
		if (uar_json_get(backend, uar_str_c(only[i].key)) &&
		    !uar_str_is(entry, only[i].entry)) {
			uar_error_where(error, "/runtime/backend/%s", only[i].key);
			return uar_error_set(error, UAR_ESCHEMA, "%.*s does not take it",
					     UAR_FMT(entry));
		}
	return UAR_OK;
}

static void read_info(struct copy *c, const struct uar_json *j, struct uar_definition *d)
{
	const struct uar_json *metadata = uar_json_get(j, UAR_STR("metadata"));
	const struct uar_json *runtime = uar_json_get(j, UAR_STR("runtime"));
	const struct uar_json *backend = uar_json_get(runtime, UAR_STR("backend"));
	struct uar_agent_info *info = &d->info;
	bool acp;

	info->agent_id = text(c, j, "id");
	info->title = text(c, metadata, "title");
	if (!info->title.n)
		info->title = info->agent_id;
	info->description = text(c, metadata, "description");
	info->entry = text(c, runtime, "entry");
	acp = uar_str_is(info->entry, "backend.acp");
	info->kind =
		acp ? own(c, uar_json_str(uar_json_get(backend, UAR_STR("kind")), UAR_STR("acp")))
		    : uar_str_from(info->entry, sizeof "backend." - 1);
	info->timeout_us = seconds(runtime, "timeout_seconds");
	if (!info->timeout_us)
		info->timeout_us = TIMEOUT_US;
	info->model = d->backend.model;
	info->needs_working_dir = !d->backend.working_dir.n;
	info->takes_working_dir = info->needs_working_dir || d->backend.allow_working_dir;
	info->can_resume = !acp || d->backend.can_resume;
	info->can_fork = !acp || d->backend.can_fork;
}

static uar_err read_all(const struct uar_json *j, struct uar_definition *d, struct uar_error *error)
{
	const struct uar_json *runtime = uar_json_get(j, UAR_STR("runtime"));
	const struct uar_json *backend = uar_json_get(runtime, UAR_STR("backend"));
	const struct uar_json *policy = uar_json_get(j, UAR_STR("policy"));
	struct copy c = { &d->arena, false };

	read_backend(&c, backend, &d->backend);
	read_policy(&c, uar_json_get(policy, UAR_STR("approvals")), &d->policy);
	read_info(&c, j, d);
	if (c.failed)
		return UAR_ENOMEM;
	return check_kind(d->info.entry, backend, error);
}

uar_err uar_definition_read(uar_str text_of, struct uar_definition *out, struct uar_error *error)
{
	struct uar_definition d = { .policy.fallback = UAR_VERDICT_ASK };
	const struct uar_json *j;
	struct uar_arena scratch;
	uar_err e;

	uar_arena_init(&scratch, 0);
	uar_arena_init(&d.arena, 0);
	e = uar_json_parse(text_of, NULL, &scratch, &j, error);
	if (!e)
		e = uar_schema_check_text(uar_definition_schema(), j, error);
	if (!e)
		e = read_all(j, &d, error);
	uar_arena_fini(&scratch);
	if (e)
		uar_arena_fini(&d.arena);
	else
		*out = d;
	return e;
}

uar_err uar_definition_load(const char *path, struct uar_definition *out, struct uar_error *error)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_AGENT_DEFINITION);
	uar_err e = uar_file_read(path, &b, error);

	if (!e)
		e = uar_definition_read(uar_buf_str(&b), out, error);
	uar_buf_fini(&b);
	return e;
}

void uar_definition_fini(struct uar_definition *d)
{
	if (d)
		uar_arena_fini(&d->arena);
}

/* --- the policy ------------------------------------------------------------------ */

/* '*' stands for any number of characters. Only the last one is tried again. */
static bool fits(uar_str pattern, uar_str s)
{
	size_t p = 0, i = 0, star = SIZE_MAX, mark = 0;

	while (i < s.n) {
		if (p < pattern.n && pattern.p[p] == '*') {
			star = p++;
			mark = i;
		} else if (p < pattern.n && pattern.p[p] == s.p[i]) {
			p++;
			i++;
		} else if (star != SIZE_MAX) {
			p = star + 1;
			i = ++mark;
		} else {
			return false;
		}
	}
	while (p < pattern.n && pattern.p[p] == '*')
		p++;
	return p == pattern.n;
}

enum uar_verdict uar_definition_judge(const struct uar_definition_policy *p, uar_str kind,
				      uar_str tool, int *out_rule)
{
	for (size_t i = 0; i < p->rule_count; i++) {
		const struct uar_definition_rule *r = &p->rules[i];

		if ((r->kind.n && !uar_str_eq(r->kind, kind)) ||
		    (r->tool.n && !fits(r->tool, tool)))
			continue;
		*out_rule = (int)i;
		return r->verdict;
	}
	*out_rule = -1;
	return p->fallback;
}
