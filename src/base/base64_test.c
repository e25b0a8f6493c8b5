/* base64_test.c - the vectors of RFC 4648, and what is refused. */
#include "base/base64.h"

#include "test.h"

TEST(base64_vectors, "")
{
	static const char *const pairs[][2] = { { "", "" },
						{ "f", "Zg==" },
						{ "fo", "Zm8=" },
						{ "foo", "Zm9v" },
						{ "foob", "Zm9vYg==" },
						{ "fooba", "Zm9vYmE=" },
						{ "foobar", "Zm9vYmFy" } };

	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		struct uar_buf b = uar_buf_make(64);
		struct uar_arena a;
		uar_str back;

		uar_arena_init(&a, 0);
		uar_base64_encode(&b, uar_str_c(pairs[i][0]));
		CHECK_STR(uar_buf_str(&b), pairs[i][1]);
		CHECK(uar_base64_decode(&a, uar_str_c(pairs[i][1]), &back) == UAR_OK);
		CHECK_STR(back, pairs[i][0]);
		uar_buf_fini(&b);
		uar_arena_fini(&a);
	}
}

TEST(base64_is_strict, "")
{
	static const char *const bad[] = { "Z",	       "Zg=",  "Zg",	 "Zh==", "Zm9=", "Z===",
					   "Zg==Zg==", "Zm 9", "Zm9v\n", "Zm-_", "====" };
	struct uar_arena a;
	uar_str out;

	uar_arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_MSG(uar_base64_decode(&a, uar_str_c(bad[i]), &out) == UAR_EINVALID, "%s",
			  bad[i]);
	uar_arena_fini(&a);
}
