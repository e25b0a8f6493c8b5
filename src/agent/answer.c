/* answer.c - whether a final text is what its definition asks for. */
#include "agent/prompt.h"
#include "json/schema.h"

bool uar_prompt_checks_answer(const struct uar_definition *def)
{
	return def->schemas.outputs || def->output.max_characters ||
	       uar_str_is(def->output.format, "json");
}

static int64_t count_characters(uar_str s)
{
	int64_t n = 0;

	for (size_t i = 0; i < s.n; i++)
		n += (s.p[i] & 0xc0) != 0x80;
	return n;
}

/* Models like to put JSON between fences. */
static uar_str inside_fence(uar_str s)
{
	size_t line;

	while (s.n && strchr(" \t\r\n", s.p[s.n - 1]))
		s.n--;
	while (s.n && strchr(" \t\r\n", s.p[0]))
		s = uar_str_from(s, 1);
	if (!uar_str_starts(s, UAR_STR("```")) || !uar_str_ends(s, UAR_STR("```")) || s.n < 7)
		return s;
	line = uar_str_find(s, '\n');
	s = uar_str_from(s, line < s.n ? line + 1 : 3);
	s.n = s.n >= 3 ? s.n - 3 : 0;
	return s;
}

static uar_err check_json(const struct uar_definition *def, uar_str answer, struct uar_error *error)
{
	const struct uar_json *j;
	struct uar_schema *schema = NULL;
	struct uar_arena arena;
	uar_err e;

	uar_arena_init(&arena, 0);
	e = uar_json_parse(inside_fence(answer), NULL, &arena, &j, error);
	if (!e && def->schemas.outputs)
		e = uar_schema_create(def->schemas.outputs, NULL, &schema, error);
	if (!e && schema)
		e = uar_schema_validate(schema, j, &arena, error);
	uar_schema_destroy(schema);
	uar_arena_fini(&arena);
	return e && e != UAR_ENOMEM ? UAR_ESCHEMA : e;
}

uar_err uar_prompt_check_answer(const struct uar_definition *def, uar_str answer,
				struct uar_error *error)
{
	int64_t most = def->output.max_characters;

	if (most && count_characters(answer) > most)
		return uar_error_set(error, UAR_ESCHEMA, "it has more than %lld characters",
				     (long long)most);
	if (def->schemas.outputs || uar_str_is(def->output.format, "json"))
		return check_json(def, answer, error);
	return UAR_OK;
}
