/* cursor_test.c - cursors of this incarnation are places; those of another say so. */
#include "gate/cursor.h"

#include "test.h"

TEST(cursors_by_table, "")
{
	static const struct {
		const char *text;
		uint64_t incarnation;
		uar_err want;
		uint64_t number;
	} rows[] = {
		{ "0", 1, UAR_OK, 0 },
		{ "42", 1, UAR_OK, 42 },
		{ "42", 7, UAR_ERESYNC, 0 },
		{ "0", 7, UAR_OK, 0 },
		{ "7-42", 7, UAR_OK, 42 },
		{ "7-0", 8, UAR_OK, 0 },
		{ "7-42", 1, UAR_ERESYNC, 0 },
		{ "7-42", 1763431200, UAR_ERESYNC, 0 },
		{ "1763431200-42", 1763431200, UAR_OK, 42 },
		{ "1-42", 1, UAR_ECURSOR, 0 },
		{ "0-42", 7, UAR_ECURSOR, 0 },
		{ "", 1, UAR_ECURSOR, 0 },
		{ "-", 1, UAR_ECURSOR, 0 },
		{ "7-", 7, UAR_ECURSOR, 0 },
		{ "-42", 7, UAR_ECURSOR, 0 },
		{ "7-4-2", 7, UAR_ECURSOR, 0 },
		{ "7--42", 7, UAR_ECURSOR, 0 },
		{ "+7-42", 7, UAR_ECURSOR, 0 },
		{ "7-42 ", 7, UAR_ECURSOR, 0 },
		{ "x", 1, UAR_ECURSOR, 0 },
		{ "18446744073709551616", 1, UAR_ECURSOR, 0 },
		{ "01a1e306-9a89-73f5-bf0d-9ac5dfbfe286", 1, UAR_ECURSOR, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint64_t got = 0;
		uar_err e = gate_cursor_parse(uar_str_c(rows[i].text), rows[i].incarnation, &got);

		CHECK_MSG(e == rows[i].want && got == rows[i].number, "\"%s\": %s, %llu",
			  rows[i].text, uar_err_text(e), (unsigned long long)got);
	}
}

TEST(cursors_of_frames_by_table, "")
{
	static const struct {
		const char *text;
		uint64_t incarnation;
		uar_err want;
		struct uar_cursor at;
	} rows[] = {
		{ "17.2", 1, UAR_OK, { 17, 2 } },
		{ "17", 1, UAR_OK, { 17, UINT32_MAX } },
		{ "9-17.2", 9, UAR_OK, { 17, 2 } },
		{ "9-17", 9, UAR_OK, { 17, UINT32_MAX } },
		{ "0.0", 9, UAR_OK, { 0, 0 } },
		{ "17.2", 9, UAR_ERESYNC, { 0 } },
		{ "9-17.2", 1, UAR_ERESYNC, { 0 } },
		{ "9-17.2", 8, UAR_ERESYNC, { 0 } },
		{ "1-17.2", 1, UAR_ECURSOR, { 0 } },
		{ "9-17.", 9, UAR_ECURSOR, { 0 } },
		{ "9-.2", 9, UAR_ECURSOR, { 0 } },
		{ "9-17.2.1", 9, UAR_ECURSOR, { 0 } },
		{ "9-17.4294967296", 9, UAR_ECURSOR, { 0 } },
		{ "9-8-17.2", 9, UAR_ECURSOR, { 0 } },
		{ "9.17-2", 9, UAR_ECURSOR, { 0 } },
		{ "", 1, UAR_ECURSOR, { 0 } },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct uar_cursor got = { 0 };
		uar_err e =
			gate_cursor_parse_frame(uar_str_c(rows[i].text), rows[i].incarnation, &got);

		CHECK_MSG(e == rows[i].want && got.run_sequence == rows[i].at.run_sequence &&
				  got.k == rows[i].at.k,
			  "\"%s\": %s", rows[i].text, uar_err_text(e));
	}
}

TEST(what_is_written_is_read_again, "")
{
	static const uint64_t of[] = { 1, 2, 1763431200 };

	for (size_t i = 0; i < ARRAY_LEN(of); i++) {
		struct uar_buf b = uar_buf_make(64);
		uint64_t got = 0;

		gate_cursor_put(&b, of[i], 42);
		CHECK_INT(gate_cursor_parse(uar_buf_str(&b), of[i], &got), UAR_OK);
		CHECK_INT(got, 42);
		if (i == 0)
			CHECK_STR(uar_buf_str(&b), "42");
		uar_buf_fini(&b);
	}
}
