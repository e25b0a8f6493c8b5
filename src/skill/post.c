/* post.c - whether an answer keeps to the rules of a skill. */
#include "json/schema.h"
#include "skill/skill_int.h"

static uar_str trim_all(uar_str s)
{
	while (s.n && strchr(" \t\r\n", s.p[s.n - 1]))
		s.n--;
	while (s.n && strchr(" \t\r\n", s.p[0]))
		s = uar_str_from(s, 1);
	return s;
}

/* A pattern that takes too long is one that does not match. */
static bool matches(uar_str pattern, uar_str answer)
{
	uint64_t steps = UAR_LIMIT_SKILL_POST_STEPS;
	struct uar_regex *re;
	bool found = false;

	if (uar_regex_create(pattern, &re, NULL))
		return false;
	if (uar_regex_match(re, answer, &steps, &found))
		found = false;
	uar_regex_destroy(re);
	return found;
}

static int64_t count_characters(uar_str s)
{
	int64_t n = 0;

	for (size_t i = 0; i < s.n; i++)
		n += (s.p[i] & 0xc0) != 0x80;
	return n;
}

static bool is_json(const struct uar_json *rule, uar_str answer, struct uar_error *why)
{
	const struct uar_json *schema = uar_json_get(rule, UAR_STR("schema")), *j = NULL;
	struct uar_schema *s = NULL;
	struct uar_arena arena;
	uar_err e;

	uar_arena_init(&arena, 0);
	e = uar_json_parse(trim_all(answer), NULL, &arena, &j, why);
	if (!e && schema)
		e = uar_schema_create(schema, NULL, &s, why);
	if (!e && s)
		e = uar_schema_validate(s, j, &arena, why);
	uar_schema_destroy(s);
	uar_arena_fini(&arena);
	return e == UAR_OK;
}

/* Formatting alone (trim) never rejects: it says what the others look at. */
static bool keeps_to(const struct uar_json *rule, uar_str answer, struct uar_error *why)
{
	uar_str name = uar_json_text(rule, "rule");
	int64_t most = uar_json_int(uar_json_get(rule, UAR_STR("value")), 0);

	if (uar_str_is(name, "must_match") && !matches(uar_json_text(rule, "pattern"), answer)) {
		uar_error_set(why, UAR_ESCHEMA, "it does not match %.*s",
			      UAR_FMT(uar_json_text(rule, "pattern")));
		return false;
	}
	if (uar_str_is(name, "must_not_match") && matches(uar_json_text(rule, "pattern"), answer)) {
		uar_error_set(why, UAR_ESCHEMA, "it matches %.*s",
			      UAR_FMT(uar_json_text(rule, "pattern")));
		return false;
	}
	if (uar_str_is(name, "max_characters") && count_characters(answer) > most) {
		uar_error_set(why, UAR_ESCHEMA, "it has more than %lld characters",
			      (long long)most);
		return false;
	}
	return !uar_str_is(name, "json") || is_json(rule, answer, why);
}

uar_err uar_skill_check_answer(const struct uar_skill *s, uar_str answer, struct uar_error *error)
{
	for (const struct uar_json *r = uar_json_at(s->post, 0); r; r = r->next) {
		uar_str message = uar_json_text(r, "message");
		struct uar_error why = { 0 };

		if (uar_str_is(uar_json_text(r, "rule"), "trim"))
			answer = trim_all(answer);
		if (keeps_to(r, answer, &why))
			continue;
		return uar_error_set(
			error, UAR_ESCHEMA, "skill %.*s: %.*s", UAR_FMT(s->skill_id),
			UAR_FMT(message.n ? message : uar_str_c(uar_error_text(&why))));
	}
	return UAR_OK;
}
