#include "model/policy.h"

#include "base/arena.h"
#include "test.h"

static uar_err read_text(const char *text, struct uar_arena *a, struct uar_model_policy *out,
			 struct uar_error *error)
{
	const struct uar_json *root = NULL;
	uar_err e = uar_json_parse(uar_str_c(text), NULL, a, &root, error);

	return e ? e : uar_model_policy_read(root, out, error);
}

#define M(P, N) "{\"provider\":\"" P "\",\"model\":\"" N "\"}"

TEST(patterns_name_their_models_and_roles, "")
{
	static const struct {
		const char *text;
		enum uar_model_pattern pattern;
		const char *roles[4];
	} cases[] = {
		{ "{\"default\":" M("a", "m") ",\"fallbacks\":[" M("b", "n") "]}",
		  UAR_PATTERN_FALLBACK,
		  { "execute", "execute" } },
		{ "{\"pattern\":\"direct\"}", UAR_PATTERN_DIRECT, { "execute" } },
		{ "{\"pattern\":\"split\",\"plan\":" M("a", "m") ",\"execute\":" M("b", "n") "}",
		  UAR_PATTERN_SPLIT,
		  { "plan", "execute" } },
		{ "{\"pattern\":\"ensemble\",\"candidates\":[" M("a", "m") "," M(
			  "b", "n") "],"
				    "\"ranker\":" M("c", "o") "}",
		  UAR_PATTERN_ENSEMBLE,
		  { "candidate", "candidate", "rank" } },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_error error = { 0 };
		struct uar_model_policy p;
		struct uar_arena a;

		uar_arena_init(&a, 0);
		CHECK_INT(read_text(cases[i].text, &a, &p, &error), UAR_OK);
		CHECK_INT(p.pattern, cases[i].pattern);
		for (size_t k = 0; k < p.count; k++)
			CHECK_STR(uar_str_c(p.at[k].role), cases[i].roles[k]);
		uar_arena_fini(&a);
	}
}

TEST(mistakes_are_named_by_their_place, "")
{
	static const struct {
		const char *text, *where;
	} cases[] = {
		{ "{\"defaults\":1}", "/defaults" },
		{ "{\"default\":{\"provider\":\"a\"}}", "/default" },
		{ "{\"fallbacks\":{}}", "/fallbacks" },
		{ "{\"fallbacks\":[" M("a", "m") ",1]}", "/fallbacks/1" },
		{ "{\"pattern\":\"x\"}", "/pattern" },
		{ "{\"pattern\":\"split\"}", "/plan" },
		{ "{\"pattern\":\"ensemble\"}", "/ranker" },
		{ "{\"reasoning\":\"much\"}", "/reasoning" },
		{ "{\"max_tokens\":-1}", "/max_tokens" },
		{ "{\"budget\":{\"usd\":1}}", "/budget/usd" },
		{ "{\"budget\":{\"cost_usd\":0}}", "/budget/cost_usd" },
		{ "{\"budget\":{\"tokens\":\"many\"}}", "/budget/tokens" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_error error = { 0 };
		struct uar_model_policy p;
		struct uar_arena a;

		uar_arena_init(&a, 0);
		CHECK_INT(read_text(cases[i].text, &a, &p, &error), UAR_EINVALID);
		CHECK_STR(uar_str_c(error.where), cases[i].where);
		uar_arena_fini(&a);
	}
}
