/* words_test.c - what of an agent's words may become part of the log. */
#include "bridge/bridge_int.h"

#include "test.h"

TEST(secrets_and_addresses_are_masked, "")
{
	static char *const env[] = { "HOME=/home/somebody", "ACME_API_KEY=hunter2!", "A_TOKEN=abc",
				     NULL };
	static const char *const cases[][2] = {
		{ "Please run /login", "Please run /login" },
		{ "error: unknown option '--x'\n\n  see --help\r\n",
		  "error: unknown option '--x' see --help " },
		{ "bad key sk-dummy-SECRET, sorry", "bad key ***, sorry" },
		{ "the key is hunter2!.", "the key is ***." },
		{ "too short to be one: abc", "too short to be one: abc" },
		{ "from /home/somebody", "from /home/somebody" },
		{ "at https://user:pw@host/v1?k=1 now", "at *** now" },
		{ "id 0123456789abcdef0", "id ***" },
		{ "averyveryverylongword stays", "averyveryverylongword stays" },
		{ "Authorization: Bearer abc.def.ghi.", "Authorization: Bearer ***." },
		{ "with bearer AbCd, sorry", "with bearer ***, sorry" },
		{ "Missing bearer or basic authentication",
		  "Missing bearer or basic authentication" },
		{ "Bearer", "Bearer" },
		{ "key=abcd1234", "key=***" },
		{ "at ?api_key=abcd&n=1", "at ?api_key=***&n=1" },
		{ "password = 'abcd' and", "password = '***' and" },
		{ "{\"x-api-key\":\"ab12\"}", "{\"x-api-key\":\"***\"}" },
		{ "token: ab12 or so", "token: *** or so" },
		{ "invalid token: it has expired", "invalid token: it has expired" },
		{ "Missing environment variable: `MY_CODEX_KEY`.",
		  "Missing environment variable: `MY_CODEX_KEY`." },
		{ "key=", "key=" },
		{ "\x1b[31mred\x07", "[31mred " },
		{ "", "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_buf out = uar_buf_make(1000);

		bridge_mask(env, uar_str_c(cases[i][0]), &out);
		CHECK_STR(out.n ? uar_buf_str(&out) : UAR_STR(""), cases[i][1]);
		uar_buf_fini(&out);
	}
}
