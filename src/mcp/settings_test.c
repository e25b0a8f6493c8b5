/* settings_test.c - the table of MCP servers: what is read, and what is refused where. */
#include "mcp/settings.h"

#include "test.h"

static char *const env[] = { "PATH=/bin", "KEY=secret", "OTHER=x", NULL };

TEST(tables_of_other_programs_are_read, "")
{
	static const char table[] =
		"{\"mcpServers\":{\"files\":{\"type\":\"stdio\",\"command\":\"run\",\"args\":[\"-"
		"y\",\"$x${KEY}\"],"
		"\"env\":{\"A\":\"${KEY}/${NONE}\"}},\"web\":{\"url\":\"https://a.example/mcp\","
		"\"headers\":{\"Authorization\":\"Bearer "
		"${KEY}\"},\"tools\":[\"get_*\"],\"read_only\":[\"get_a\"],"
		"\"ask\":false,\"timeout_seconds\":5}}}";
	struct uar_mcp_settings s;
	struct uar_error error = { 0 };
	struct uar_arena a;

	uar_arena_init(&a, 0);
	REQUIRE(uar_mcp_settings_read(uar_str_c(table), env, &a, &s, &error) == UAR_OK);
	REQUIRE(s.count == 2);
	CHECK_STR(uar_str_c(s.at[0].server.argv[2]), "$xsecret");
	CHECK_STR(uar_str_c(s.at[0].server.env[0]), "PATH=/bin");
	CHECK_STR(uar_str_c(s.at[0].server.env[1]), "A=secret/");
	CHECK(!s.at[0].server.env[2] && s.at[0].ask);
	CHECK(uar_mcp_setting_offers(&s.at[0], UAR_STR("anything")));
	CHECK_STR(uar_str_c(s.at[1].server.headers[0]), "Authorization: Bearer secret");
	CHECK(uar_mcp_setting_offers(&s.at[1], UAR_STR("get_b")));
	CHECK(!uar_mcp_setting_offers(&s.at[1], UAR_STR("put_b")));
	CHECK(uar_mcp_setting_is_read_only(&s.at[1], UAR_STR("get_a")));
	CHECK(!uar_mcp_setting_is_read_only(&s.at[1], UAR_STR("get_b")));
	CHECK_INT(s.at[1].server.timeout_us, 5000000);
	uar_arena_fini(&a);
}

TEST(faults_are_named_by_their_place, "")
{
	static const struct {
		const char *table, *where;
	} cases[] = {
		{ "{\"a\":{}}", "/a" },
		{ "{\"a b\":{\"command\":\"x\"}}", "/a b" },
		{ "{\"a\":{\"command\":\"x\",\"url\":\"http://x\"}}", "/a" },
		{ "{\"a\":{\"url\":\"ftp://x\"}}", "/a/url" },
		{ "{\"a\":{\"command\":\"x\",\"args\":[1]}}", "/a/args" },
		{ "{\"a\":{\"command\":\"x\",\"env\":{\"A=B\":\"\"}}}", "/a/env" },
		{ "{\"a\":{\"url\":\"http://x\",\"headers\":{\"X\":\"a\\nb\"}}}", "/a/headers" },
		{ "{\"a\":{\"url\":\"http://x\",\"headers\":{\"content-length\":\"5\"}}}",
		  "/a/headers" },
		{ "{\"a\":{\"url\":\"http://x\",\"headers\":{\"Expect:\":\"5\"}}}", "/a/headers" },
		{ "{\"a\":{\"url\":\"http://x\",\"era\":\"old\"}}", "/a/era" },
		{ "{\"a\":{\"command\":1}}", "/a/command" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_mcp_settings s;
		struct uar_error error = { 0 };
		struct uar_arena a;

		uar_arena_init(&a, 0);
		CHECK(uar_mcp_settings_read(uar_str_c(cases[i].table), env, &a, &s, &error) !=
		      UAR_OK);
		CHECK_STR(uar_str_c(error.where), cases[i].where);
		uar_arena_fini(&a);
	}
}
