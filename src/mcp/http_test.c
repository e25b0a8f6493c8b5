/* http_test.c - where messages go by what a server of 2024-11-05 says. */
#include "mcp/link.h"

#include "test.h"

TEST(messages_go_to_the_origin_of_their_stream_alone, "")
{
	static const struct {
		const char *url, *said, *to; /* to NULL: refused */
	} cases[] = {
		{ "http://a:1/x/sse", "/m?s=1", "http://a:1/m?s=1" },
		{ "http://a:1/x/sse", "m?s=1", "http://a:1/x/m?s=1" },
		{ "http://a:1/x/sse?key=2/3", "?s=1", "http://a:1/x/sse?s=1" },
		{ "http://a:1", "m", "http://a:1/m" },
		{ "http://a:1/sse", "http://A:1/m", "http://A:1/m" },
		{ "http://a:1/sse", "http://a:2/m", NULL },
		{ "http://a:1/sse", "https://a:1/m", NULL },
		{ "http://a:1/sse", "http://a:1@b/m", NULL },
		{ "http://a:1/sse", "http://a:1\\@b/m", NULL },
		{ "http://a:1/sse", "//b/m", NULL },
		{ "http://a:1/sse", "/m\r\nX: y", NULL },
		{ "http://a:1/sse", "/m m", NULL },
		{ "http://a:1/sse", "", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_buf b = uar_buf_make(256);
		bool good = uar_mcp_endpoint(uar_str_c(cases[i].url), uar_str_c(cases[i].said), &b);

		CHECK(good == (cases[i].to != NULL));
		if (good)
			CHECK_STR(uar_buf_str(&b), cases[i].to);
		uar_buf_fini(&b);
	}
}
