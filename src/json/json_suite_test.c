/* json_suite_test.c - the public JSON parsing suite, read from a folder that is
 * not part of the tree: $UAR_JSON_TEST_SUITE, by default ../shared/json-test-suite.
 *
 * y_ files must be accepted, n_ files refused; what the standard leaves open
 * (i_ files) is decided in the table below. Four y_ files hold an escaped NUL or
 * a key twice, which is accepted only in text that is marked as foreign. */
#include "json/json.h"
#include "test.h"

#include <dirent.h>

#include "base/alloc.h"
#include "json/limits.h"

static const struct {
	const char *name;
	uar_err code;
} open_cases[] = {
	{ "i_number_double_huge_neg_exp.json", UAR_OK },
	{ "i_number_huge_exp.json", UAR_ENUMBER },
	{ "i_number_neg_int_huge_exp.json", UAR_ENUMBER },
	{ "i_number_pos_double_huge_exp.json", UAR_ENUMBER },
	{ "i_number_real_neg_overflow.json", UAR_ENUMBER },
	{ "i_number_real_pos_overflow.json", UAR_ENUMBER },
	{ "i_number_real_underflow.json", UAR_OK },
	{ "i_number_too_big_neg_int.json", UAR_OK },
	{ "i_number_too_big_pos_int.json", UAR_OK },
	{ "i_number_very_big_negative_int.json", UAR_OK },
	{ "i_object_key_lone_2nd_surrogate.json", UAR_EUTF8 },
	{ "i_string_1st_surrogate_but_2nd_missing.json", UAR_EUTF8 },
	{ "i_string_1st_valid_surrogate_2nd_invalid.json", UAR_EUTF8 },
	{ "i_string_UTF-16LE_with_BOM.json", UAR_ESYNTAX },
	{ "i_string_UTF-8_invalid_sequence.json", UAR_EUTF8 },
	{ "i_string_UTF8_surrogate_U+D800.json", UAR_EUTF8 },
	{ "i_string_incomplete_surrogate_and_escape_valid.json", UAR_EUTF8 },
	{ "i_string_incomplete_surrogate_pair.json", UAR_EUTF8 },
	{ "i_string_incomplete_surrogates_escape_valid.json", UAR_EUTF8 },
	{ "i_string_invalid_lonely_surrogate.json", UAR_EUTF8 },
	{ "i_string_invalid_surrogate.json", UAR_EUTF8 },
	{ "i_string_invalid_utf-8.json", UAR_EUTF8 },
	{ "i_string_inverted_surrogates_U+1D11E.json", UAR_EUTF8 },
	{ "i_string_iso_latin_1.json", UAR_EUTF8 },
	{ "i_string_lone_second_surrogate.json", UAR_EUTF8 },
	{ "i_string_lone_utf8_continuation_byte.json", UAR_EUTF8 },
	{ "i_string_not_in_unicode_range.json", UAR_EUTF8 },
	{ "i_string_overlong_sequence_2_bytes.json", UAR_EUTF8 },
	{ "i_string_overlong_sequence_6_bytes.json", UAR_EUTF8 },
	{ "i_string_overlong_sequence_6_bytes_null.json", UAR_EUTF8 },
	{ "i_string_truncated-utf-8.json", UAR_EUTF8 },
	{ "i_string_utf16BE_no_BOM.json", UAR_ESYNTAX },
	{ "i_string_utf16LE_no_BOM.json", UAR_ESYNTAX },
	{ "i_structure_500_nested_arrays.json", UAR_EDEPTH },
	{ "i_structure_UTF-8_BOM_empty_object.json", UAR_ESYNTAX },
};

static const char *const holds_nul[] = { "y_object_escaped_null_in_key.json",
					 "y_string_null_escape.json" };
/* Refused where two readers could take two meanings from one text. */
static const char *const holds_twice[] = { "y_object_duplicated_key.json",
					   "y_object_duplicated_key_and_value.json" };

static const char *folder(void)
{
	const char *env = getenv("UAR_JSON_TEST_SUITE");

	return env ? env : "../shared/json-test-suite";
}

static bool read_file(const char *dir, const char *name, struct uar_buf *out)
{
	char path[2048];
	FILE *f;
	size_t n;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	f = fopen(path, "rb");
	if (!f)
		return false;
	do {
		char *at = uar_buf_reserve(out, 65536);

		n = at ? fread(at, 1, 65536, f) : 0;
		out->n += n;
	} while (n);
	fclose(f);
	return true;
}

static bool listed(const char *const *list, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i], name) == 0)
			return true;
	return false;
}

static uar_err expected(const char *name, bool foreign)
{
	if (name[0] == 'y' && foreign)
		return UAR_OK;
	if (name[0] == 'y' && listed(holds_twice, ARRAY_LEN(holds_twice), name))
		return UAR_EDUPKEY;
	if (name[0] == 'y' && listed(holds_nul, ARRAY_LEN(holds_nul), name))
		return UAR_EINVALID;
	for (size_t i = 0; i < ARRAY_LEN(open_cases); i++)
		if (strcmp(open_cases[i].name, name) == 0)
			return open_cases[i].code;
	return UAR_OK;
}

static void judge(const char *name, uar_str text, bool foreign)
{
	struct uar_json_limits l = { .foreign = foreign };
	const struct uar_json *j = NULL;
	struct uar_arena arena;
	uar_err e;

	uar_arena_init(&arena, 0);
	e = uar_json_parse(text, &l, &arena, &j, NULL);
	if (name[0] == 'n')
		CHECK_MSG(e != UAR_OK, "%s was accepted", name);
	else
		CHECK_MSG(e == expected(name, foreign), "%s: %s", name, uar_err_name(e));
	uar_arena_fini(&arena);
}

static unsigned run_folder(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	unsigned n = 0;

	while (dir && (entry = readdir(dir))) {
		struct uar_buf b = uar_buf_make(UAR_LIMIT_JSON_BYTES);

		if (!strchr("yni", entry->d_name[0]) || entry->d_name[1] != '_')
			continue;
		if (CHECK(read_file(path, entry->d_name, &b))) {
			judge(entry->d_name, uar_buf_str(&b), false);
			judge(entry->d_name, uar_buf_str(&b), true);
			n++;
		}
		uar_buf_fini(&b);
	}
	if (dir)
		closedir(dir);
	return n;
}

TEST(parsing_suite_of_the_world, "BLD-09")
{
	char path[900];
	unsigned n;

	snprintf(path, sizeof path, "%s/test_parsing", folder());
	n = run_folder(path);
	if (n == 0) {
		uar_test_skip("no suite in %s", folder());
		return;
	}
	CHECK_MSG(n > 300, "only %u files", n);
}
