/* definition.c - the schema decides what a definition may say, the rest is copying. */
#include "agent/definition_int.h"

#include "agent/limits.h"
#include "agent/source.h"
#include "base/embed.h"
#include "base/file.h"
#include "flow/flow.h"
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
	return own(c, uar_json_text(j, key));
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
	for (const struct uar_json *v = uar_json_first(j); v && b->env; v = v->next) {
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

/* --- of agents that are prompts ------------------------------------------------------ */

/* One text with a space between two of the list. */
static uar_str joined(struct copy *c, const struct uar_json *list)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_AGENT_DEFINITION);
	uar_str out;

	for (const struct uar_json *s = uar_json_at(list, 0); s; s = s->next) {
		if (b.n)
			uar_buf_add_char(&b, ' ');
		uar_buf_add_str(&b, s->text);
	}
	c->failed |= b.err != UAR_OK;
	out = own(c, uar_buf_str(&b));
	uar_buf_fini(&b);
	return out;
}

static struct uar_definition_model read_model(struct copy *c, const struct uar_json *j)
{
	return (struct uar_definition_model){ text(c, j, "provider"), text(c, j, "model") };
}

static void read_routing(struct copy *c, const struct uar_json *j,
			 struct uar_definition_routing *out)
{
	const struct uar_json *fallbacks = uar_json_get(j, UAR_STR("fallbacks"));

	out->rules = j;
	out->chosen = read_model(c, uar_json_get(j, UAR_STR("default")));
	out->fallbacks = room(c, fallbacks, sizeof *out->fallbacks);
	for (const struct uar_json *m = uar_json_at(fallbacks, 0); m && out->fallbacks; m = m->next)
		out->fallbacks[out->fallback_count++] = read_model(c, m);
}

/* The nodes of a workflow name its tools; what policy.tools allows besides narrows nothing. */
static uar_str tools_of_workflow(struct copy *c, const struct uar_json *definition)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_AGENT_DEFINITION);
	uar_str out;

	uar_flow_write_tools(definition, &b);
	c->failed |= b.err != UAR_OK;
	out = own(c, uar_buf_str(&b));
	uar_buf_fini(&b);
	return out;
}

static void read_tools(struct copy *c, const struct uar_json *j, struct uar_definition_tools *out)
{
	out->allow = joined(c, uar_json_get(j, UAR_STR("allow")));
	out->deny = joined(c, uar_json_get(j, UAR_STR("deny")));
	out->ask = joined(c, uar_json_get(j, UAR_STR("ask")));
	out->max_concurrent = uar_json_int(uar_json_get(j, UAR_STR("max_concurrent")), 1);
	out->linked = uar_str_is(uar_json_text(j, "on_failure"), "cancel_siblings");
}

static void read_prompt(struct copy *c, const struct uar_json *j, struct uar_definition_prompt *out)
{
	out->system = text(c, j, "system");
	out->template = text(c, j, "template");
	out->instruction_count = list(c, j, "instructions", &out->instructions);
	out->variables = uar_json_get(j, UAR_STR("variables"));
}

static void read_output(struct copy *c, const struct uar_json *j, struct uar_definition_output *out)
{
	out->format = text(c, j, "format");
	out->language = text(c, j, "language");
	out->max_characters = uar_json_int(uar_json_get(j, UAR_STR("max_characters")), 0);
}

static void read_protocols(const struct uar_json *j, struct uar_definition *d)
{
	static const char *const names[UAR_PROTOCOL_COUNT] = { "ag_ui", "a2ui", "a2a" };

	for (size_t i = 0; i < UAR_PROTOCOL_COUNT; i++) {
		const struct uar_json *p = uar_json_get(j, uar_str_c(names[i]));

		d->protocols_off[i] = !uar_json_bool(uar_json_get(p, UAR_STR("enabled")), true);
	}
}

static void read_chat(struct copy *c, const struct uar_json *j, struct uar_definition *d)
{
	const struct uar_json *policy = uar_json_get(j, UAR_STR("policy"));
	const struct uar_json *schemas = uar_json_get(j, UAR_STR("schemas"));
	const struct uar_json *memory = uar_json_get(j, UAR_STR("memory"));
	const struct uar_json *talk = uar_json_get(memory, UAR_STR("conversation"));

	read_routing(c, uar_json_get(policy, UAR_STR("provider")), &d->routing);
	read_tools(c, uar_json_get(policy, UAR_STR("tools")), &d->tools);
	if (uar_json_get(j, UAR_STR("workflow")))
		d->tools.allow = tools_of_workflow(c, j);
	read_prompt(c, uar_json_get(j, UAR_STR("prompt")), &d->prompt);
	read_output(c, uar_json_get(policy, UAR_STR("output")), &d->output);
	d->schemas = (struct uar_definition_schemas){
		uar_json_get(schemas, UAR_STR("inputs")),
		uar_json_get(schemas, UAR_STR("outputs")),
		uar_json_get(schemas, UAR_STR("state")),
	};
	d->memory.conversation = uar_json_bool(uar_json_get(talk, UAR_STR("enabled")), true);
	d->memory.max_turns = uar_json_int(uar_json_get(talk, UAR_STR("max_turns")), 0);
}

/* --- the whole ----------------------------------------------------------------------------- */

static bool is_backend(uar_str entry)
{
	return uar_str_starts(entry, UAR_STR("backend."));
}

/* What concerns programs alone. */
static void read_program(struct copy *c, const struct uar_json *backend, struct uar_definition *d)
{
	struct uar_agent_info *info = &d->info;
	bool acp = uar_str_is(info->entry, "backend.acp");
	uar_str kind = uar_json_str(uar_json_get(backend, UAR_STR("kind")), UAR_STR("acp"));

	info->kind = acp ? own(c, kind) : uar_str_from(info->entry, sizeof "backend." - 1);
	if (!info->timeout_us)
		info->timeout_us = TIMEOUT_US;
	info->model = d->backend.model;
	info->needs_working_dir = !d->backend.working_dir.n;
	info->takes_working_dir = info->needs_working_dir || d->backend.allow_working_dir;
	info->can_resume = !acp || d->backend.can_resume;
	info->can_fork = !acp || d->backend.can_fork;
}

static void read_info(struct copy *c, const struct uar_json *j, struct uar_definition *d)
{
	const struct uar_json *metadata = uar_json_get(j, UAR_STR("metadata"));
	const struct uar_json *runtime = uar_json_get(j, UAR_STR("runtime"));
	struct uar_agent_info *info = &d->info;

	info->agent_id = text(c, j, "id");
	info->title = text(c, metadata, "title");
	if (!info->title.n)
		info->title = info->agent_id;
	info->description = text(c, metadata, "description");
	info->entry = text(c, runtime, "entry");
	info->timeout_us = seconds(runtime, "timeout_seconds");
	info->model = d->routing.chosen.model;
	info->kind = info->entry;
	if (is_backend(info->entry))
		read_program(c, uar_json_get(runtime, UAR_STR("backend")), d);
}

static uar_err read_all(const struct uar_json *j, struct uar_definition *d, struct uar_error *error)
{
	const struct uar_json *runtime = uar_json_get(j, UAR_STR("runtime"));
	const struct uar_json *policy = uar_json_get(j, UAR_STR("policy"));
	struct copy c = { &d->arena, false };

	read_backend(&c, uar_json_get(runtime, UAR_STR("backend")), &d->backend);
	read_policy(&c, uar_json_get(policy, UAR_STR("approvals")), &d->policy);
	read_chat(&c, j, d);
	read_protocols(uar_json_get(runtime, UAR_STR("protocols")), d);
	read_info(&c, j, d);
	return c.failed ? UAR_ENOMEM : uar_definition_check(d, error);
}

/* The definition keeps its canonical text: what refers to it is found there by anyone. */
static uar_err keep_text(const struct uar_json *j, struct uar_definition *d,
			 struct uar_error *error)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_AGENT_DEFINITION);
	uar_err e = uar_definition_canonical(j, &b);

	if (!e) {
		d->text = uar_arena_str(&d->arena, uar_buf_str(&b));
		e = d->text.p ? UAR_OK : UAR_ENOMEM;
	}
	uar_buf_fini(&b);
	if (e == UAR_ETOOBIG)
		return uar_error_set(error, e, "a definition may have %d bytes",
				     UAR_LIMIT_AGENT_DEFINITION);
	if (e)
		return e;
	uar_sha256_hex(d->text, d->revision);
	return uar_json_parse(d->text, NULL, &d->arena, &d->json, error);
}

static uar_err read_json(uar_str json, struct uar_definition *d, struct uar_error *error)
{
	const struct uar_json *j;
	struct uar_arena scratch;
	uar_err e;

	uar_arena_init(&scratch, 0);
	e = uar_json_parse(json, NULL, &scratch, &j, error);
	if (!e) {
		e = uar_schema_check_text(uar_definition_schema(), j, error);
		if (e == UAR_ESCHEMA)
			uar_definition_hint(error);
	}
	if (!e)
		e = keep_text(j, d, error);
	uar_arena_fini(&scratch);
	return e ? e : read_all(d->json, d, error);
}

static _Atomic(uar_definition_check_fn *) also_check;

void uar_definition_also_check(uar_definition_check_fn *check)
{
	also_check = check;
}

uar_err uar_definition_read(uar_str json, struct uar_definition *out, struct uar_error *error)
{
	struct uar_definition d = { .policy.fallback = UAR_VERDICT_ASK };
	uar_definition_check_fn *also = also_check;
	uar_err e;

	uar_arena_init(&d.arena, 0);
	e = read_json(json, &d, error);
	if (!e && also)
		e = also(&d, error);
	if (e)
		uar_arena_fini(&d.arena);
	else
		*out = d;
	return e;
}

/* Of an unknown member the schema names the object that has it: the line is the member's. */
static size_t line_of(uar_str json, uar_str at, const struct uar_error *error)
{
	uar_str rest, name, text = uar_str_c(error->text);
	char pointer[2 * UAR_LIMIT_ERROR_WHERE];

	if (!uar_str_starts(text, UAR_STR("additionalProperties: '")))
		return uar_source_line(json, at);
	uar_str_cut(text, '\'', &rest);
	name = uar_str_cut(rest, '\'', &rest);
	snprintf(pointer, sizeof pointer, "%.*s/%.*s", UAR_FMT(at), UAR_FMT(name));
	return uar_source_line(json, uar_str_c(pointer));
}

/* The JSON reader says "line:column", the YAML reader "line N", the schema a pointer. */
static void name_line(const char *file, uar_str json, struct uar_error *error)
{
	char where[UAR_LIMIT_ERROR_WHERE];
	uar_str at;

	if (!error)
		return;
	memcpy(where, error->where, sizeof where);
	at = uar_str_c(where);
	if (uar_str_starts(at, UAR_STR("line ")))
		uar_error_where(error, "%.90s:%s", file, where + sizeof "line");
	else if (at.n && at.p[0] != '/')
		uar_error_where(error, "%.90s:%s", file, where);
	else
		uar_error_where(error, "%.90s:%zu%s%s", file, line_of(json, at, error),
				at.n ? " " : "", where);
}

uar_err uar_definition_read_file(const char *file, uar_str source, struct uar_definition *out,
				 struct uar_error *error)
{
	struct uar_buf json = uar_buf_make(2 * UAR_LIMIT_AGENT_DEFINITION);
	uar_err e = uar_source_read(uar_str_c(file), source, &json, error);

	if (!e)
		e = uar_definition_read(uar_buf_str(&json), out, error);
	if (e && e != UAR_ENOMEM)
		name_line(file, uar_buf_str(&json), error);
	uar_buf_fini(&json);
	return e;
}

uar_err uar_definition_load(const char *path, struct uar_definition *out, struct uar_error *error)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_AGENT_DEFINITION);
	const char *slash = strrchr(path, '/');
	uar_err e = uar_file_read(path, &b, error);

	if (!e)
		e = uar_definition_read_file(slash ? slash + 1 : path, uar_buf_str(&b), out, error);
	uar_buf_fini(&b);
	return e;
}

void uar_definition_fini(struct uar_definition *d)
{
	if (d)
		uar_arena_fini(&d->arena);
}

bool uar_definition_allows(const struct uar_definition *d, enum uar_protocol p)
{
	return !d->protocols_off[p];
}

bool uar_definition_inactive(const struct uar_definition *d, size_t index,
			     struct uar_definition_inactive *out)
{
	static const struct uar_definition_inactive rows[] = {
#define I(POINTER, WHY) { POINTER, WHY },
#include "agent/inactive.def"
#undef I
		{ NULL, NULL },
	};

	for (size_t i = 0; rows[i].pointer; i++)
		if (uar_json_pointer(d->json, uar_str_c(rows[i].pointer)) && index-- == 0) {
			*out = rows[i];
			return true;
		}
	return false;
}
