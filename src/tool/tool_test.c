/* tool_test.c - names, patterns and look-ups of any registry. */
#include "test.h"

#include "event/sizes.h"
#include "tool/tool.h"

/* --- names for models ------------------------------------------------------------- */

struct names {
	char at[4][UAR_LIMIT_TOOL_NAME + 1];
	size_t count;
};

static bool is_taken(void *ctx, uar_str name)
{
	const struct names *n = ctx;

	for (size_t i = 0; i < n->count; i++)
		if (uar_str_is(name, n->at[i]))
			return true;
	return false;
}

static const char *name_of(struct names *n, uar_str id)
{
	uar_tool_name_for_models(id, is_taken, n, n->at[n->count]);
	return n->at[n->count++];
}

static bool is_allowed(uar_str name)
{
	static const char other[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

	for (size_t i = 0; i < name.n; i++)
		if (!memchr(other, name.p[i], sizeof other - 1))
			return false;
	return name.n > 0 && name.n <= UAR_LIMIT_TOOL_NAME;
}

TEST(names_for_models_have_what_providers_allow, "MCP-10")
{
	static const struct {
		const char *id, *name;
	} cases[] = {
		{ "internal:time.now", "internal__time_now" },
		{ "mcp:some server:read file", "mcp__some_server__read_file" },
		{ "plain-name_1", "plain-name_1" },
		{ "\xc3\xbc:\"\n\x7f", "____"
				       "___" },
		{ "", "_" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct names n = { .count = 0 };

		CHECK_STR(uar_str_c(name_of(&n, uar_str_c(cases[i].id))), cases[i].name);
		CHECK(is_allowed(uar_str_c(n.at[0])));
	}
}

TEST(names_for_models_do_not_collide, "MCP-10")
{
	static char longest[200];
	struct names n = { .count = 0 };

	CHECK_STR(uar_str_c(name_of(&n, UAR_STR("a:b.c"))), "a__b_c");
	CHECK_STR(uar_str_c(name_of(&n, UAR_STR("a:b_c"))), "a__b_c_2");
	CHECK_STR(uar_str_c(name_of(&n, UAR_STR("a__b_c"))), "a__b_c_3");
	memset(longest, ':', sizeof longest);
	n.count = 0;
	for (int i = 0; i < 4; i++) {
		uar_str name = uar_str_c(name_of(&n, uar_str_n(longest, sizeof longest)));

		CHECK(is_allowed(name));
		for (size_t k = 0; k + 1 < n.count; k++)
			CHECK(!uar_str_is(name, n.at[k]));
	}
}

/* --- patterns ---------------------------------------------------------------------- */

TEST(patterns_name_tools, "")
{
	static const struct {
		const char *pattern, *id;
		bool matches;
	} cases[] = {
		{ "internal:fs.delete", "internal:fs.delete", true },
		{ "internal:fs.delete", "internal:fs.deleted", false },
		{ "internal:fs.delete", "internal:fs.delet", false },
		{ "internal:fs.*", "internal:fs.delete", true },
		{ "internal:fs.*", "internal:fs.", true },
		{ "internal:fs.*", "internal:math.evaluate", false },
		{ "internal:fs.*", "mcp:internal:fs.read", false },
		{ "mcp:*", "internal:fs.read", false },
		{ "*", "anything", true },
		{ "*", "", true },
		{ "**", "x", true },
		{ "", "", true },
		{ "", "x", false },
		{ "*.read", "internal:fs.read", true },
		{ "*.read", "internal:fs.read.read", true },
		{ "i*l:*s.*d", "internal:fs.read", true },
		{ "i*l:*s.*d", "internal:fs.write", false },
		{ "a?c", "abc", false }, /* no other sign means anything */
		{ "[a]", "a", false },
		{ "INTERNAL:*", "internal:x", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_tool tool = { .tool_id = uar_str_c(cases[i].id) };

		CHECK_MSG(uar_tool_matches(&tool, uar_str_c(cases[i].pattern)) == cases[i].matches,
			  "%s, %s", cases[i].pattern, cases[i].id);
	}
}

TEST(patterns_that_try_hard_take_no_longer, "")
{
	static char id[20000];
	static const char pattern[] = "*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b";
	struct uar_tool tool = { .tool_id = uar_str_n(id, sizeof id) };

	memset(id, 'a', sizeof id);
	CHECK(!uar_tool_matches(&tool, uar_str_c(pattern)));
}

TEST(no_registry_has_no_tools, "")
{
	CHECK(uar_tools_find(NULL, NULL, UAR_STR("internal:time.now")) == NULL);
	CHECK(uar_tools_by_model_name(NULL, NULL, UAR_STR("internal__time_now")) == NULL);
	uar_tools_destroy(NULL);
}
