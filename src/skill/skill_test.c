/* skill_test.c - skills from JSON and from SKILL.md, and which of them apply to a request. */
#include "skill/skill.h"

#include "skill/embed.h"
#include "skill/match.h"
#include "test.h"

static struct uar_skill parsed(const char *json)
{
	struct uar_skill s = { .enabled = false };
	struct uar_error error = { 0 };

	if (uar_skill_read(uar_str_c(json), &s, &error))
		uar_test_fail(__FILE__, __LINE__, "%s: %s", error.where, error.text);
	return s;
}

static struct uar_skill builtin(const char *id)
{
	struct uar_skill s = { .enabled = false };
	uar_str text;

	for (size_t i = 0; uar_skill_builtin(i, &text); i++)
		if (!strcmp(uar_skill_builtin(i, &text), id))
			CHECK_INT(uar_skill_read_markdown(text, &s, NULL), UAR_OK);
	CHECK_STR(s.skill_id, id);
	return s;
}

TEST(a_skill_has_all_its_parts, "SKILL-02 BLD-06")
{
	struct uar_skill s = parsed(
		"{\"skill_id\":\"s\",\"version\":\"2\",\"title\":\"T\",\"description\":\"D\","
		"\"triggers\":{\"keywords\":[\"a\",\"b\"],\"patterns\":[\"x+\"],\"semantic\":[\"p "
		"q\"]},"
		"\"prompt_overlay\":\"# O\",\"preferred_tools\":[\"internal:calc\"],"
		"\"tool_templates\":{\"internal:calc\":{\"expression\":\"1+1\"}},"
		"\"constraints\":{\"allow\":[\"internal:*\"],\"deny\":[\"internal:fs.*\"]},"
		"\"post_processing\":[{\"rule\":\"max_characters\",\"value\":9}]}");

	CHECK_STR(s.version, "2");
	CHECK_INT(s.keywords.n, 2);
	CHECK_STR(s.patterns.at[0], "x+");
	CHECK_STR(s.phrases.at[0], "p q");
	CHECK_STR(s.overlay, "# O");
	CHECK_STR(s.allow.at[0], "internal:*");
	CHECK_STR(s.deny.at[0], "internal:fs.*");
	CHECK(s.templates && s.post && s.enabled);
	CHECK_INT(strlen(s.revision), 64);
	uar_skill_fini(&s);
}

TEST(what_is_wrong_is_named, "")
{
	static const struct {
		const char *json, *where;
	} cases[] = {
		{ "{\"description\":\"d\"}", "" },
		{ "{\"skill_id\":\"Upper\",\"description\":\"d\"}", "/skill_id" },
		{ "{\"skill_id\":\"s\",\"description\":\"d\",\"keyword\":[]}", "" },
		{ "{\"skill_id\":\"s\",\"description\":\"d\",\"triggers\":{\"patterns\":[\"(\"]}}",
		  "/triggers/patterns/0" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_error error = { 0 };
		struct uar_skill s;

		CHECK(uar_skill_read(uar_str_c(cases[i].json), &s, &error) != UAR_OK);
		CHECK(error.text[0] != 0);
		if (cases[i].where[0])
			CHECK_STR(uar_str_c(error.where), cases[i].where);
	}
}

TEST(a_skill_file_of_another_program_loads, "SKILL-19")
{
	struct uar_skill s;
	struct uar_error error = { 0 };

	REQUIRE(uar_skill_read_markdown(UAR_STR("---\r\nname: PDF Tools\r\ndescription: Fill "
						"forms\r\nlicense: MIT\r\n"
						"version: 1.0\r\nallowed-tools: Read, "
						"Bash\r\ntriggers: [pdf, form]\r\n"
						"---\r\n\r\n# Use\r\nDo it.\r\n"),
					&s, &error) == UAR_OK);
	CHECK_STR(s.skill_id, "pdf_tools");
	CHECK_STR(s.version, "1.0");
	CHECK_INT(s.preferred_tools.n, 2);
	CHECK_STR(s.preferred_tools.at[1], "Bash");
	CHECK_INT(s.keywords.n, 2);
	CHECK(uar_str_starts(s.overlay, UAR_STR("# Use")) ||
	      uar_str_starts(s.overlay, UAR_STR("\r\n# Use")));
	CHECK(memmem(s.text.p, s.text.n, "MIT", 3) != NULL);
	uar_skill_fini(&s);
	CHECK_INT(uar_skill_read_markdown(UAR_STR("# no front matter"), &s, &error), UAR_EINVALID);
}

TEST(a_colon_in_a_description_is_no_error, "SKILL-19")
{
	struct uar_skill s;
	struct uar_error error = { 0 };

	REQUIRE(uar_skill_read_markdown(UAR_STR("---\nname: notes\ndescription: Write notes. Use "
						"when: it's asked for # or not\nallowed-tools:\n"
						"  - Read\n  - Bash(git log:*)\n---\nDo it.\n"),
					&s, &error) == UAR_OK);
	CHECK_STR(s.description, "Write notes. Use when: it's asked for # or not");
	CHECK_INT(s.preferred_tools.n, 2);
	uar_skill_fini(&s);
	CHECK_INT(uar_skill_read_markdown(UAR_STR("---\nname: w\ndescription: [\n---\nBAD"), &s,
					  &error),
		  UAR_ESYNTAX);
	CHECK(error.text[0] != 0);
}

TEST(a_folder_names_and_describes_a_skill_that_does_not, "")
{
	struct uar_skill s;
	struct uar_error error = { 0 };

	REQUIRE(uar_skill_read_folder(UAR_STR("brand-voice"),
				      UAR_STR("---\nmodel: sonnet\n---\n# Voice\n\nWrite like "
					      "we\ndo.\n\nMore."),
				      &s, &error) == UAR_OK);
	CHECK_STR(s.skill_id, "brand-voice");
	CHECK_STR(s.description, "Write like we do.");
	CHECK(uar_skill_embedding(&s) != NULL);
	uar_skill_fini(&s);
}

TEST(rules_judge_an_answer, "SKILL-15")
{
	static const struct {
		const char *rule, *good, *bad;
	} cases[] = {
		{ "{\"rule\":\"must_match\",\"pattern\":\"\\\\[[0-9]+\\\\]\"}", "yes [1]", "yes" },
		{ "{\"rule\":\"must_not_match\",\"pattern\":\"TODO\"}", "done", "a TODO" },
		{ "{\"rule\":\"max_characters\",\"value\":3}", "\u00e4\u00f6\u00fc", "four" },
		{ "{\"rule\":\"json\",\"schema\":{\"type\":\"array\"}}", " [1] ", "{}" },
		{ "{\"rule\":\"trim\"},{\"rule\":\"must_match\",\"pattern\":\"^x$\"}", "\n x \n",
		  "y" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_error error = { 0 };
		struct uar_skill s;
		char json[400];

		snprintf(json, sizeof json,
			 "{\"skill_id\":\"s\",\"description\":\"d\",\"post_processing\":[%s]}",
			 cases[i].rule);
		s = parsed(json);
		CHECK_INT(uar_skill_check_answer(&s, uar_str_c(cases[i].good), &error), UAR_OK);
		CHECK_INT(uar_skill_check_answer(&s, uar_str_c(cases[i].bad), &error), UAR_ESCHEMA);
		CHECK(uar_str_starts(uar_str_c(error.text), UAR_STR("skill s: ")));
		uar_skill_fini(&s);
	}
}

/* --- matching --------------------------------------------------------------------------- */

static struct uar_skill_offer known[2]; /* of the first and of the second skill */

static struct uar_skill_matches match(struct uar_skill_request *r, const struct uar_skill *a,
				      const struct uar_skill *b)
{
	const struct uar_skill_offer all[] = { { a, known[0].updated_us, known[0].successes, 0 },
					       { b, known[1].updated_us, known[1].successes, 0 } };
	static struct uar_skill_matches m;

	r->max_active = r->max_active ? r->max_active : 4;
	uar_skill_match(r, all, b ? 2 : 1, &m);
	return m;
}

TEST(search_docs_selects_citations, "SKILL-12 SKILL-14")
{
	struct uar_skill cite = builtin("rag_citations"), strict = builtin("tool_calling_strict");
	struct uar_skill_request r = { .message = UAR_STR("search docs") };
	struct uar_skill_matches m = match(&r, &strict, &cite);

	REQUIRE(m.active >= 1);
	CHECK_STR(m.at[0].skill->skill_id, "rag_citations");
	CHECK(m.at[0].keyword && m.at[0].pattern);
	CHECK(uar_skill_allows_tool(&m, UAR_STR("internal:kb.search")));
	CHECK(!uar_skill_allows_tool(&m, UAR_STR("internal:fs.write")));
	uar_skill_fini(&cite);
	uar_skill_fini(&strict);
}

TEST(meaning_alone_makes_a_candidate, "SKILL-05")
{
	struct uar_skill s =
		parsed("{\"skill_id\":\"s\",\"description\":\"Plans journeys by train\","
		       "\"triggers\":{\"semantic\":[\"railway timetable for a journey\"]}}");
	struct uar_skill_request r = { .message = UAR_STR("a railway timetable, please") };

	CHECK_INT(match(&r, &s, NULL).active, 1);
	r.message = UAR_STR("bake bread");
	CHECK_INT(match(&r, &s, NULL).n, 0);
	r.message = UAR_STR("...");
	CHECK_INT(match(&r, &s, NULL).n, 0);
	uar_skill_fini(&s);
}

static bool no_tool(void *ctx, uar_str tool)
{
	(void)ctx, (void)tool;
	return false;
}

TEST(each_gate_leaves_one_out, "SKILL-06")
{
	static const struct {
		const char *members;
		enum uar_skill_gate gate;
	} cases[] = {
		{ "\"enabled\":false", UAR_SKILL_GATE_DISABLED },
		{ "\"requires\":{\"tenants\":[\"other\"]}", UAR_SKILL_GATE_SCOPE },
		{ "\"requires\":{\"workspaces\":[\"other\"]}", UAR_SKILL_GATE_SCOPE },
		{ "\"requires\":{\"capabilities\":[\"images\"]}", UAR_SKILL_GATE_CAPABILITY },
		{ "\"requires\":{\"tools\":[\"internal:x\"]}", UAR_SKILL_GATE_TOOL },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char json[400];
		struct uar_skill s;
		struct uar_skill_request r = { .message = UAR_STR("hello"),
					       .tenant = UAR_STR("t"),
					       .workspace = UAR_STR("w"),
					       .has_tool = no_tool };
		struct uar_skill_matches m;

		snprintf(json, sizeof json,
			 "{\"skill_id\":\"s\",\"description\":\"d\",\"triggers\":{\"keywords\":"
			 "[\"hello\"]},%s}",
			 cases[i].members);
		s = parsed(json);
		m = match(&r, &s, NULL);
		REQUIRE(m.n == 1);
		CHECK_INT(m.active, 0);
		CHECK_INT(m.at[0].gate, cases[i].gate);
		uar_skill_fini(&s);
	}
}

static double half(void *ctx, uar_str message, const struct uar_skill *s)
{
	(void)message;
	return ctx && uar_str_is(s->skill_id, ctx) ? 0.9 : 0.5;
}

#define PLAIN(ID)                                                                                  \
	"{\"skill_id\":\"" ID "\",\"description\":\"d\",\"triggers\":{\"keywords\":[\"hello\"]}}"

TEST(each_factor_alone_flips_an_order, "SKILL-07 SKILL-09 SKILL-11")
{
	struct uar_skill a = parsed(PLAIN("a")), b = parsed(PLAIN("b"));
	uar_str prefer[] = { UAR_STR("skill:b") };
	struct uar_skill_request r = { .message = UAR_STR("hello"),
				       .now_us = INT64_C(86400000000) * 365,
				       .similarity = half };

	known[0].updated_us = known[1].updated_us = 1;
	CHECK_STR(match(&r, &b, &a).at[0].skill->skill_id, "a"); /* equal: by name */
	r.ctx = (void *)"b";
	CHECK_STR(match(&r, &a, &b).at[0].skill->skill_id, "b"); /* similarity, by a hook */
	r.ctx = NULL;
	known[1].updated_us = r.now_us;
	CHECK_STR(match(&r, &a, &b).at[0].skill->skill_id, "b"); /* freshness */
	known[1].updated_us = 1;
	known[1].successes = 5;
	CHECK_STR(match(&r, &a, &b).at[0].skill->skill_id, "b"); /* success rate */
	known[1].successes = 0;
	r.prefer = (struct uar_words){ prefer, 1 };
	CHECK_STR(match(&r, &a, &b).at[0].skill->skill_id, "b"); /* preference */
	uar_skill_fini(&a);
	uar_skill_fini(&b);
}

TEST(a_tool_remains_only_where_all_active_skills_allow_it, "SKILL-14")
{
	struct uar_skill a = parsed("{\"skill_id\":\"a\",\"description\":\"d\",\"triggers\":"
				    "{\"keywords\":[\"hello\"]},\"constraints\":{\"allow\":"
				    "[\"internal:math.*\",\"internal:time.now\"]}}");
	struct uar_skill b = parsed("{\"skill_id\":\"b\",\"description\":\"d\",\"triggers\":"
				    "{\"keywords\":[\"hello\"]},\"constraints\":{\"allow\":"
				    "[\"internal:time.*\",\"internal:fs.read\"]}}");
	struct uar_skill_request r = { .message = UAR_STR("hello"), .max_active = 4 };
	struct uar_skill_matches m = match(&r, &a, &b);

	REQUIRE(m.active == 2);
	CHECK(uar_skill_allows_tool(&m, UAR_STR("internal:time.now")));
	CHECK(!uar_skill_allows_tool(&m, UAR_STR("internal:math.evaluate")));
	CHECK(!uar_skill_allows_tool(&m, UAR_STR("internal:fs.read")));
	uar_skill_fini(&a);
	uar_skill_fini(&b);
}

TEST(no_more_than_max_active_are_selected, "SKILL-08")
{
	enum { SIX = 6 };
	struct uar_skill s[SIX];
	struct uar_skill_offer all[SIX] = { 0 };
	struct uar_skill_request r = { .message = UAR_STR("hello"), .max_active = 4 };
	static struct uar_skill_matches m, shuffled;

	for (int i = 0; i < SIX; i++) {
		char json[200];

		snprintf(json, sizeof json,
			 "{\"skill_id\":\"s%d\",\"description\":\"d\",\"triggers\":{\"keywords\":"
			 "[\"hello\"]}}",
			 i);
		s[i] = parsed(json);
		all[i].skill = &s[i];
	}
	uar_skill_match(&r, all, SIX, &m);
	CHECK_INT(m.active, 4);
	CHECK_INT(m.at[4].gate, UAR_SKILL_GATE_RANK);
	for (int i = 0; i < SIX; i++)
		all[i].skill = &s[SIX - 1 - i];
	uar_skill_match(&r, all, SIX, &shuffled);
	for (size_t i = 0; i < m.n; i++)
		CHECK(m.at[i].skill == shuffled.at[i].skill);
	for (int i = 0; i < SIX; i++)
		uar_skill_fini(&s[i]);
}

TEST(a_text_without_words_has_no_vector, "")
{
	float v[UAR_EMBED_DIMENSIONS], w[UAR_EMBED_DIMENSIONS];

	CHECK_INT(uar_embed_text(UAR_STR(" .,!"), v), UAR_EINVALID);
	CHECK_INT(uar_embed_text(UAR_STR("the"), v), UAR_OK);
	CHECK_INT(uar_embed_text(UAR_STR("Contracts of Acme"), v), UAR_OK);
	CHECK_INT(uar_embed_text(UAR_STR("contract acme"), w), UAR_OK);
	CHECK(uar_embed_similarity(v, w, UAR_EMBED_DIMENSIONS) > 0.5);
	CHECK_INT(uar_embed_text(UAR_STR("weather tomorrow"), w), UAR_OK);
	CHECK(uar_embed_similarity(v, w, UAR_EMBED_DIMENSIONS) < 0.2);
}
