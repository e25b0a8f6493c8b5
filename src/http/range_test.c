/* range_test.c - which bytes a Range header means. */
#include "http/http.h"
#include "test.h"

TEST(ranges_by_table, "EXP-21")
{
	static const struct {
		const char *header;
		uint64_t total;
		uar_err want;
		uint64_t first, count;
	} cases[] = {
		{ "bytes=0-0", 10, UAR_OK, 0, 1 },
		{ "bytes=2-5", 10, UAR_OK, 2, 4 },
		{ "bytes=2-", 10, UAR_OK, 2, 8 },
		{ "bytes=2-99", 10, UAR_OK, 2, 8 },
		{ "bytes=-3", 10, UAR_OK, 7, 3 },
		{ "bytes=-30", 10, UAR_OK, 0, 10 },
		{ "bytes=9-", 10, UAR_OK, 9, 1 },
		{ "bytes= 1-2 ", 10, UAR_OK, 1, 2 },
		{ "bytes=10-", 10, UAR_ERANGE, 0, 0 },
		{ "bytes=10-20", 10, UAR_ERANGE, 0, 0 },
		{ "bytes=-0", 10, UAR_ERANGE, 0, 0 },
		{ "bytes=0-", 0, UAR_ERANGE, 0, 0 },
		{ "bytes=-1", 0, UAR_ERANGE, 0, 0 },
		/* whoever does not understand a range sends the whole */
		{ "", 10, UAR_ESKIP, 0, 0 },
		{ "bytes", 10, UAR_ESKIP, 0, 0 },
		{ "bytes=", 10, UAR_ESKIP, 0, 0 },
		{ "bytes=-", 10, UAR_ESKIP, 0, 0 },
		{ "bytes=5", 10, UAR_ESKIP, 0, 0 },
		{ "bytes=5-2", 10, UAR_ESKIP, 0, 0 },
		{ "bytes=1-2,4-5", 10, UAR_ESKIP, 0, 0 },
		{ "bytes=a-2", 10, UAR_ESKIP, 0, 0 },
		{ "bytes=1--2", 10, UAR_ESKIP, 0, 0 },
		{ "bytes=+1-2", 10, UAR_ESKIP, 0, 0 },
		{ "lines=1-2", 10, UAR_ESKIP, 0, 0 },
		{ "bytes=99999999999999999999-", 10, UAR_ERANGE, 0, 0 },
		{ "bytes=2-99999999999999999999", 10, UAR_OK, 2, 8 },
		{ "bytes=-99999999999999999999", 10, UAR_OK, 0, 10 },
		{ "bytes=9x-", 10, UAR_ESKIP, 0, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_http_range r = { 0, 0 };
		uar_err e = uar_http_range(uar_str_c(cases[i].header), cases[i].total, &r);

		CHECK_INT(e, cases[i].want);
		CHECK_INT(r.first, cases[i].first);
		CHECK_INT(r.count, cases[i].count);
	}
}
