/* tool_echo_test.c - sensitive arguments that come back. */
#include "work/tool_echo.h"

#include "test.h"

TEST(arguments_that_are_sensitive_are_hidden_in_results, "SEC-06")
{
	static const char schema[] =
		"{\"properties\":{\"a\":{\"writeOnly\":true},\"n\":{\"writeOnly\":true}}}";
	static const char args[] =
		"{\"a\":{\"deep\":[\"s3cr\\\"et\"]},\"n\":4711,\"api_token\":\"abcd-9\",\"user\":"
		"\"visible\",\"pin\":\"12\"}";
	static const struct {
		const char *told, *want;
		size_t count;
	} cases[] = {
		{ "{\"x\":\"s3cr\\\"et!\",\"\":\"\",\"l\":[4711,4712,true,null,{}]}",
		  "{\"x\":\"<redacted>!\",\"\":\"\",\"l\":[\"<redacted>\",4712,true,null,{}]}", 2 },
		{ "{\"abcd-9\":\"visible 12\"}", "{\"<redacted>\":\"visible 12\"}", 1 },
		{ "\"abcd%2D9\"", "\"<redacted>\"", 1 },
		{ "no abcd-9 here", "no <redacted> here", 1 },
		{ "", "", 0 },
	};
	struct uar_secrets_used used = { 0 };

	CHECK_INT(rt_echo_note(uar_str_c(schema), uar_str_c(args), &used), UAR_OK);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_buf out = uar_buf_make(4096);
		size_t count = 0;

		CHECK_INT(rt_echo_hide(&used, uar_str_c(cases[i].told), &out, &count), UAR_OK);
		CHECK_INT(count, cases[i].count);
		CHECK_STR(uar_buf_str(&out), cases[i].want);
		uar_buf_fini(&out);
	}
	uar_secrets_used_fini(&used);
	CHECK_INT(rt_echo_note(UAR_STR(""), UAR_STR("{\"user\":\"visible\"}"), &used), UAR_OK);
	CHECK_INT(used.values.n, 0);
	uar_secrets_used_fini(&used);
}
