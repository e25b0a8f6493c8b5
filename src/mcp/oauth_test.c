/* oauth_test.c - what a refusal asks for, and whose metadata count. */
#include "mcp/oauth_int.h"

#include "test.h"

TEST(parameters_of_a_challenge_are_found, "")
{
	static const struct {
		const char *header, *name, *value; /* value NULL: it is not there */
	} cases[] = {
		{ "Bearer resource_metadata=\"https://a/x\", scope=\"a b\"", "scope", "a b" },
		{ "Bearer scope=a,resource_metadata=\"https://a/x\"", "resource_metadata",
		  "https://a/x" },
		{ "bearer error=\"insufficient_scope\" , scope=\"q\\\"r\"", "scope", "q\"r" },
		{ "Basic realm=\"x\", Bearer scope=\"s\"", "scope", "s" },
		{ "Bearer", "scope", NULL },
		{ "", "scope", NULL },
		{ "Bearer my_scope=\"no\"", "scope", NULL },
		{ "Bearer scope=\"never ends", "scope", NULL },
	};
	struct uar_arena a;

	uar_arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uar_str v = uar_mcp_challenge_param(uar_str_c(cases[i].header), cases[i].name, &a);

		if (cases[i].value)
			CHECK_STR(v, cases[i].value);
		else
			CHECK_INT((int64_t)v.n, 0);
	}
	uar_arena_fini(&a);
}

TEST(metadata_of_another_resource_do_not_count, "")
{
	static const struct {
		const char *resource, *url;
		bool yes;
	} cases[] = {
		{ "https://a.example/mcp", "https://a.example/mcp", true },
		{ "https://a.example", "https://a.example/mcp", true },
		{ "https://A.example/", "https://a.example/mcp?x=1", true },
		{ "https://a.example/mc", "https://a.example/mcp", false },
		{ "https://b.example/mcp", "https://a.example/mcp", false },
		{ "http://a.example/mcp", "https://a.example/mcp", false },
		{ "https://a.example:1/mcp", "https://a.example/mcp", false },
		{ "", "https://a.example/mcp", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		CHECK(uar_mcp_resource_matches(uar_str_c(cases[i].resource),
					       uar_str_c(cases[i].url)) == cases[i].yes);
}

/* What is not https is only for this machine. */
TEST(loopback_is_a_host_not_a_beginning, "")
{
	static const struct {
		const char *url;
		bool yes;
	} cases[] = {
		{ "http://127.0.0.1:80/token", true },
		{ "http://127.0.0.1", true },
		{ "http://localhost:1?x", true },
		{ "http://[::1]:80/", true },
		{ "http://[::1]", true },
		{ "http://127.0.0.1.evil.example/", false },
		{ "http://localhost.evil.example/", false },
		{ "http://127.0.0.1:80@evil.example/", false },
		{ "http://127.0.0.1#@evil.example/", false },
		{ "http://evil.example/", false },
		{ "javascript:127.0.0.1", false },
		{ "https://127.0.0.1/", false },
		{ "", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		CHECK_MSG(oauth_is_loopback(uar_str_c(cases[i].url)) == cases[i].yes, "%s",
			  cases[i].url);
}
