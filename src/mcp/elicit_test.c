/* elicit_test.c - answers to forms, and what settings say of roots and logins. */
#include "mcp/elicit.h"
#include "mcp/settings.h"
#include "test.h"

static void accept(const char *params, const char *values, const char *want)
{
	struct uar_buf out = uar_buf_make(4096);
	const struct uar_json *p = NULL, *v = NULL;
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	REQUIRE(!uar_json_parse(uar_str_c(params), NULL, &arena, &p, NULL));
	if (values)
		REQUIRE(!uar_json_parse(uar_str_c(values), NULL, &arena, &v, NULL));
	CHECK(!uar_mcp_elicit_accept(p, v, &out));
	CHECK_STR(uar_buf_str(&out), want);
	uar_buf_fini(&out);
	uar_arena_fini(&arena);
}

TEST(defaults_fill_what_a_person_left_out, "")
{
	const char *form = "{\"requestedSchema\":{\"properties\":{\"a\":{\"default\":1},"
			   "\"b\":{\"default\":\"x\"},\"c\":{}}}}";

	accept(form, NULL, "{\"action\":\"accept\",\"content\":{\"a\":1,\"b\":\"x\"}}");
	accept(form, "{\"a\":2,\"c\":true}",
	       "{\"action\":\"accept\",\"content\":{\"a\":2,\"c\":true,\"b\":\"x\"}}");
	accept("{}", "{}", "{\"action\":\"accept\",\"content\":{}}");
}

static uar_err read_table(const char *text, struct uar_arena *arena, struct uar_mcp_settings *out)
{
	struct uar_error error = { 0 };

	return uar_mcp_settings_read(uar_str_c(text), NULL, arena, out, &error);
}

TEST(roots_and_logins_are_read, "")
{
	struct uar_mcp_settings s = { 0 };
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	REQUIRE(!read_table("{\"a\":{\"url\":\"https://x/\",\"roots\":[\"/data\",\"file:///b\"],"
			    "\"oauth\":{\"client_id\":\"me\",\"scope\":\"read\"}}}",
			    &arena, &s));
	CHECK_STR(uar_str_c(s.at[0].server.roots[0]), "file:///data");
	CHECK_STR(uar_str_c(s.at[0].server.roots[1]), "file:///b");
	CHECK(!s.at[0].server.roots[2]);
	CHECK_STR(uar_str_c(s.at[0].server.oauth.client_id), "me");
	CHECK(!s.at[0].server.oauth.client_secret);
	CHECK(read_table("{\"a\":{\"url\":\"https://x/\",\"roots\":[1]}}", &arena, &s) ==
	      UAR_ECONFIG);
	CHECK(read_table("{\"a\":{\"url\":\"https://x/\",\"oauth\":{\"scope\":1}}}", &arena, &s) ==
	      UAR_ECONFIG);
	CHECK(read_table("{\"a\":{\"url\":\"https://x/\",\"oauth\":"
			 "{\"client_metadata_url\":\"http://x/\"}}}",
			 &arena, &s) == UAR_ECONFIG);
	uar_arena_fini(&arena);
}
