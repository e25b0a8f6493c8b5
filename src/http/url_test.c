/* url_test.c - percent-decoding, query parameters, header lookup. */
#include "test.h"

#include "http/http.h"

TEST(decodes_escapes_and_refuses_broken_ones, "")
{
	static const struct {
		const char *in, *want; /* NULL: refused */
	} rows[] = {
		{ "", "" },
		{ "abc", "abc" },
		{ "a%20b", "a b" },
		{ "%41%6a%6A", "Ajj" },
		{ "a+b", "a+b" },
		{ "%2F..%2f", "/../" },
		{ "%25", "%" },
		{ "%2525", "%25" },
		{ "%c3%A9", "\xc3\xa9" },
		{ "%ff", "\xff" },
		{ "%", NULL },
		{ "a%", NULL },
		{ "a%2", NULL },
		{ "%g0", NULL },
		{ "%0g", NULL },
		{ "%00", NULL },
		{ "a%00b", NULL },
		{ "% 1", NULL },
		{ "%-1", NULL },
		{ "%u0041", NULL },
	};
	struct uar_arena a;

	uar_arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uar_str out = UAR_STR("untouched");
		uar_err e = uar_http_decode(&a, uar_str_c(rows[i].in), &out);

		CHECK_INT(e, rows[i].want ? UAR_OK : UAR_EINVALID);
		CHECK_STR(out, rows[i].want ? rows[i].want : "untouched");
	}
	uar_str out;
	CHECK(uar_http_decode(&a, UAR_STR("a\0b"), &out) == UAR_EINVALID);
	uar_arena_fini(&a);
}

TEST(finds_query_parameters, "")
{
	static const struct {
		const char *query, *name, *want; /* "-": absent, NULL: refused */
	} rows[] = {
		{ "a=1&b=2", "a", "1" }, { "a=1&b=2", "b", "2" },    { "a=1&b=2", "c", "-" },
		{ "", "a", "-" },	 { "a", "a", "" },	     { "a=", "a", "" },
		{ "a=1&a=2", "a", "1" }, { "&&a=1", "a", "1" },	     { "=x&a=1", "a", "1" },
		{ "a=b=c", "a", "b=c" }, { "%61=1", "a", "1" },	     { "a%3d=1", "a=", "1" },
		{ "a=%26", "a", "&" },	 { "A=1", "a", "-" },	     { "ab=1", "a", "-" },
		{ "a=%zz", "a", NULL },	 { "%zz=1&a=2", "a", NULL }, { "b=%zz&a=2", "a", "2" },
		{ "a=x+y", "a", "x+y" }, { "a=?", "a", "?" },
	};
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct uar_http_request r = { .query = uar_str_c(rows[i].query), .arena = &arena };
		uar_str out = UAR_STR("untouched");
		uar_err e = uar_http_query(&r, rows[i].name, &out);

		if (!rows[i].want)
			CHECK_INT(e, UAR_EINVALID);
		else if (!CHECK(e == UAR_OK))
			continue;
		else if (strcmp(rows[i].want, "-") == 0)
			CHECK(out.p == NULL);
		else
			CHECK_STR(out, rows[i].want);
	}
	uar_arena_fini(&arena);
}

TEST(finds_headers_in_any_case, "")
{
	static const struct uar_http_header headers[] = { { { "Accept", 6 }, { "x", 1 } },
							  { { "ACCEPT", 6 }, { "y", 1 } } };
	struct uar_http_request r = { .headers = headers, .header_count = 2 };

	CHECK_STR(uar_http_header(&r, "accept"), "x");
	CHECK(uar_http_header(&r, "host").p == NULL);
}

TEST(decoding_reports_no_memory, "")
{
	struct uar_arena a;
	uar_str out;

	uar_arena_init(&a, 0);
	uar_test_fail_alloc(1);
	CHECK(uar_http_decode(&a, UAR_STR("x"), &out) == UAR_ENOMEM);
	uar_test_fail_alloc(0);
	uar_arena_fini(&a);
}
