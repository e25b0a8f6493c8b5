/* skill.c - the schema decides what a skill may say, the rest is copying. */
#include "skill/skill.h"

#include "base/embed.h"
#include "json/jw.h"
#include "json/schema.h"
#include "skill/skill_int.h"

UAR_EMBED(uar_skill_schema_json, "src/skill/skill.schema.json");
UAR_EMBED(uar_skill_strict, "src/skill/builtin/tool_calling_strict.md");
UAR_EMBED(uar_skill_citations, "src/skill/builtin/rag_citations.md");
UAR_EMBED(uar_skill_relations, "src/skill/builtin/relation_extraction.md");

uar_str uar_skill_schema(void)
{
	return UAR_EMBEDDED(uar_skill_schema_json);
}

const char *uar_skill_builtin(size_t index, uar_str *out_text)
{
	if (index == 0) {
		*out_text = UAR_EMBEDDED(uar_skill_strict);
		return "tool_calling_strict";
	}
	if (index == 1) {
		*out_text = UAR_EMBEDDED(uar_skill_citations);
		return "rag_citations";
	}
	if (index == 2) {
		*out_text = UAR_EMBEDDED(uar_skill_relations);
		return "relation_extraction";
	}
	return NULL;
}

const char *uar_skill_origin_text(enum uar_skill_origin o)
{
	static const char *const names[] = { [UAR_SKILL_BUILTIN] = "builtin",
					     [UAR_SKILL_FILE] = "file",
					     [UAR_SKILL_USER] = "user" };

	return names[o];
}

/* --- copying -------------------------------------------------------------------------- */

struct copy {
	struct uar_arena *arena;
	bool failed;
};

static uar_str own(struct copy *c, const struct uar_json *j, const char *key, uar_str missing)
{
	uar_str out =
		uar_arena_str(c->arena, uar_json_str(uar_json_get(j, uar_str_c(key)), missing));

	c->failed |= !out.p;
	return out;
}

static struct uar_words words(struct copy *c, const struct uar_json *j, const char *key)
{
	const struct uar_json *list = uar_json_get(j, uar_str_c(key));
	struct uar_words out = { NULL, 0 };
	uar_str *at;

	if (!list || !list->count)
		return out;
	at = uar_arena_alloc(c->arena, list->count * sizeof *at);
	c->failed |= !at;
	for (const struct uar_json *i = uar_json_at(list, 0); i && at; i = i->next) {
		at[out.n] = uar_arena_str(c->arena, i->text);
		c->failed |= !at[out.n++].p;
	}
	out.at = at;
	return out;
}

static void copy_members(struct copy *c, const struct uar_json *j, struct uar_skill *s)
{
	const struct uar_json *triggers = uar_json_get(j, UAR_STR("triggers"));
	const struct uar_json *limits = uar_json_get(j, UAR_STR("constraints"));
	const struct uar_json *needs = uar_json_get(j, UAR_STR("requires"));

	s->skill_id = own(c, j, "skill_id", UAR_STR(""));
	s->version = own(c, j, "version", UAR_STR("1"));
	s->title = own(c, j, "title", s->skill_id);
	s->description = own(c, j, "description", UAR_STR(""));
	s->overlay = own(c, j, "prompt_overlay", UAR_STR(""));
	s->enabled = uar_json_bool(uar_json_get(j, UAR_STR("enabled")), true);
	s->keywords = words(c, triggers, "keywords");
	s->patterns = words(c, triggers, "patterns");
	s->phrases = words(c, triggers, "semantic");
	s->preferred_tools = words(c, j, "preferred_tools");
	s->allow = words(c, limits, "allow");
	s->deny = words(c, limits, "deny");
	s->capabilities = words(c, needs, "capabilities");
	s->tools = words(c, needs, "tools");
	s->tenants = words(c, needs, "tenants");
	s->workspaces = words(c, needs, "workspaces");
	s->templates = uar_json_get(j, UAR_STR("tool_templates"));
	s->post = uar_json_get(j, UAR_STR("post_processing"));
	s->folder = own(c, uar_json_get(j, UAR_STR("metadata")), "folder", UAR_STR(""));
}

/* --- reading ---------------------------------------------------------------------------- */

static uar_err check_pattern(uar_str pattern, size_t index, struct uar_error *error)
{
	struct uar_error why = { 0 };
	struct uar_regex *re;
	uar_err e = uar_regex_create(pattern, &re, &why);

	if (!e) {
		uar_regex_destroy(re);
		return UAR_OK;
	}
	uar_error_where(error, "/post_processing/%zu", index);
	return uar_error_set(error, e, "this is no regular expression: %s", why.text);
}

/* A rule that lacks what it needs would never reject anything. */
static uar_err check_rule(const struct uar_json *rule, size_t index, struct uar_error *error)
{
	uar_str name = uar_json_text(rule, "rule");
	uar_str pattern = uar_json_text(rule, "pattern");

	if (uar_str_starts(name, UAR_STR("must_")))
		return pattern.n ? check_pattern(pattern, index, error)
				 : uar_error_set(error, UAR_EINVALID,
						 "rule %zu of post_processing needs a pattern",
						 index);
	if (uar_str_is(name, "max_characters") && !uar_json_get(rule, UAR_STR("value")))
		return uar_error_set(error, UAR_EINVALID,
				     "rule %zu of post_processing needs a value", index);
	return UAR_OK;
}

static uar_err check_contents(struct uar_skill *s, struct uar_error *error)
{
	size_t index = 0;
	uar_err e = skill_index_make(s, error);

	for (const struct uar_json *r = uar_json_at(s->post, 0); r && !e; r = r->next)
		e = check_rule(r, index++, error);
	return e;
}

/* The compact text, which is found by its digest, and its tree, whose subtrees the skill keeps. */
static uar_err keep_text(struct uar_skill *s, const struct uar_json *j, const struct uar_json **out,
			 struct uar_error *error)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_SKILL_BYTES);
	uar_err e;

	uar_json_write(&text, j);
	uar_sha256_hex(uar_buf_str(&text), s->revision);
	e = text.err;
	s->text = e ? UAR_STR_NONE : uar_arena_str(&s->arena, uar_buf_str(&text));
	if (!e && !s->text.p)
		e = UAR_ENOMEM;
	uar_buf_fini(&text);
	if (!e)
		e = uar_json_parse(s->text, NULL, &s->arena, out, error);
	return e;
}

static uar_err fill(struct uar_skill *s, const struct uar_json *given, struct uar_error *error)
{
	struct copy c = { .arena = &s->arena };
	const struct uar_json *j = NULL;
	uar_err e = uar_schema_check_text(uar_skill_schema(), given, error);

	if (!e)
		e = keep_text(s, given, &j, error);
	if (e)
		return e;
	copy_members(&c, j, s);
	return c.failed ? UAR_ENOMEM : check_contents(s, error);
}

uar_err uar_skill_read(uar_str text, struct uar_skill *out, struct uar_error *error)
{
	struct uar_skill s = { .origin = UAR_SKILL_USER };
	const struct uar_json *j;
	struct uar_arena arena;
	uar_err e;

	if (text.n > UAR_LIMIT_SKILL_BYTES)
		return uar_error_set(error, UAR_ETOOBIG, "a skill has at most %d bytes",
				     UAR_LIMIT_SKILL_BYTES);
	uar_arena_init(&arena, 0);
	uar_arena_init(&s.arena, 0);
	e = uar_json_parse(text, NULL, &arena, &j, error);
	if (!e)
		e = fill(&s, j, error);
	uar_arena_fini(&arena);
	if (e)
		uar_skill_fini(&s);
	else
		*out = s;
	return e;
}

void uar_skill_fini(struct uar_skill *s)
{
	skill_index_free(s);
	uar_arena_fini(&s->arena);
}
