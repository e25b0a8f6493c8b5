/* jw_test.c - the writer: commas, escapes, numbers, misuse, and that everything
 * written reads back. */
#include "json/jw.h"
#include "test.h"

#include <float.h>
#include <locale.h>
#include <math.h>

#include "base/rand.h"
#include "json/json_int.h"

static struct uar_arena arena;

TEST(writes_nested_values, "")
{
	struct uar_buf b = uar_buf_make(4096);
	struct uar_jw w = uar_jw_begin(&b);

	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "s", UAR_STR("x"));
	uar_jw_cstr(&w, "c", NULL);
	uar_jw_arr(&w, "a");
	uar_jw_int(&w, NULL, INT64_MIN);
	uar_jw_u64(&w, NULL, UINT64_MAX);
	uar_jw_double(&w, NULL, 0.5);
	uar_jw_double(&w, NULL, NAN);
	uar_jw_bool(&w, NULL, true);
	uar_jw_obj(&w, NULL);
	uar_jw_close(&w);
	uar_jw_close(&w);
	uar_jw_key(&w, UAR_STR("k\n"));
	uar_jw_null(&w, NULL);
	uar_jw_raw(&w, "r", UAR_STR("[1]"));
	uar_jw_time(&w, "t", 0);
	uar_jw_seconds(&w, "u", 1731700000123456);
	uar_jw_seconds(&w, "v", -1500000);
	uar_jw_close(&w);
	CHECK_INT(uar_jw_end(&w), UAR_OK);
	CHECK_STR(uar_buf_str(&b),
		  "{\"s\":\"x\",\"c\":null,\"a\":[-9223372036854775808,18446744073709551615,0.5,"
		  "null,true,{}],\"k\\n\":null,\"r\":[1],\"t\":\"1970-01-01T00:00:00.000000Z\","
		  "\"u\":1731700000.123456,\"v\":-1.500000}");
	uar_buf_fini(&b);
}

TEST(what_is_spliced_stays_on_one_line, "")
{
	struct uar_buf b = uar_buf_make(256);
	struct uar_jw w = uar_jw_begin(&b);

	uar_jw_obj(&w, NULL);
	uar_jw_raw(&w, "r", UAR_STR("{\r\n\n\t\"a\":\n\"\\n\"}"));
	uar_jw_close(&w);
	CHECK_INT(uar_jw_end(&w), UAR_OK);
	CHECK_STR(uar_buf_str(&b), "{\"r\":{    \"a\": \"\\n\"}}");
	uar_buf_fini(&b);
}

/* A line end at every place of short and long texts. */
TEST(no_line_end_is_spliced, "")
{
	struct uar_buf b = uar_buf_make(256);
	char text[40], want[40];

	for (size_t n = 2; n <= sizeof text; n++) {
		for (size_t at = 0; at + 1 < n; at++) {
			struct uar_jw w = uar_jw_begin(&b);

			memset(text, ' ', sizeof text);
			text[n - 1] = '7';
			memcpy(want, text, sizeof want);
			text[at] = '\n';
			uar_buf_clear(&b);
			uar_jw_raw(&w, NULL, uar_str_n(text, n));
			CHECK_INT(uar_jw_end(&w), UAR_OK);
			CHECK(uar_str_eq(uar_buf_str(&b), uar_str_n(want, n)));
		}
	}
	uar_buf_fini(&b);
}

TEST(splices_the_members_of_an_object, "")
{
	struct uar_buf b = uar_buf_make(4096);
	struct uar_jw w = uar_jw_begin(&b);

	uar_jw_obj(&w, NULL);
	uar_jw_members(&w, UAR_STR("{\"a\":1,\"b\":[2]}"));
	uar_jw_members(&w, UAR_STR("{ \"c\" : {} }"));
	uar_jw_bool(&w, "d", true);
	uar_jw_close(&w);
	CHECK_INT(uar_jw_end(&w), UAR_OK);
	CHECK_STR(uar_buf_str(&b), "{\"a\":1,\"b\":[2], \"c\" : {} ,\"d\":true}");
	uar_buf_clear(&b);
	w = uar_jw_begin(&b);
	uar_jw_arr(&w, NULL);
	uar_jw_members(&w, UAR_STR("{\"a\":1}")); /* an array has none */
	CHECK_INT(uar_jw_end(&w), UAR_EINVALID);
	uar_buf_fini(&b);
}

TEST(escapes_what_must_be, "NEV-17")
{
	static const struct {
		uar_str in;
		const char *out;
	} cases[] = {
		{ UAR_STR(""), "\"\"" },
		{ UAR_STR("\"\\/"), "\"\\\"\\\\/\"" },
		{ UAR_STR("\b\f\n\r\t\v\x1f\x7f"), "\"\\b\\f\\n\\r\\t\\u000b\\u001f\x7f\"" },
		{ UAR_STR("a\0b"), "\"a\xEF\xBF\xBD"
				   "b\"" },
		{ UAR_STR("\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80"),
		  "\"\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80\"" },
		{ UAR_STR("\xC3"), "\"\xEF\xBF\xBD\"" },
		{ UAR_STR("a\xED\xA0\x80"), "\"a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"" },
		{ UAR_STR("0123456789abcdef0123456789\n"), "\"0123456789abcdef0123456789\\n\"" },
		{ UAR_STR("0123456\""), "\"0123456\\\"\"" },
		{ UAR_STR("01234\n"), "\"01234\\n\"" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_buf b = uar_buf_make(4096);
		struct uar_jw w = uar_jw_begin(&b);

		uar_jw_str(&w, NULL, cases[i].in);
		CHECK_INT(uar_jw_end(&w), UAR_OK);
		CHECK_STR(uar_buf_str(&b), cases[i].out);
		uar_buf_fini(&b);
	}
}

/* Bytes between the quotes. */
static size_t written(uar_str s)
{
	struct uar_buf b = uar_buf_make(4096);
	struct uar_jw w = uar_jw_begin(&b);
	size_t n;

	uar_jw_str(&w, NULL, s);
	CHECK_INT(uar_jw_end(&w), UAR_OK);
	n = b.n - 2;
	uar_buf_fini(&b);
	return n;
}

TEST(what_fits_is_what_the_writer_makes_of_it, "")
{
	static const uar_str cases[] = {
		UAR_STR(""),
		UAR_STR("plain text that is longer than sixteen bytes"),
		UAR_STR("a\"b\\c\nd\x01 e\x7f f\0g"),
		UAR_STR("\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80\n\xE2\x82\xAC"),
		UAR_STR("a\xED\xA0\x80z\xC3"),
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		size_t whole = written(cases[i]), before = 0;

		for (size_t room = 0; room <= whole + 2; room++) {
			uar_str s = uar_jw_fitting(cases[i], room);

			CHECK(s.p == cases[i].p && written(s) <= room);
			CHECK(s.n >= before && (s.n == cases[i].n) == (room >= whole));
			before = s.n;
		}
	}
	CHECK_INT(uar_jw_fitting(UAR_STR_NONE, 1).n, 0);
}

/* As the value and as the key of a member. */
static void check_written(struct uar_buf *b, uar_str text, bool same)
{
	struct uar_jw w = uar_jw_begin(b);
	const struct uar_json *j = NULL;

	uar_buf_clear(b);
	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "", text);
	uar_jw_key(&w, text);
	uar_jw_null(&w, NULL);
	uar_jw_close(&w);
	CHECK_INT(uar_jw_end(&w), UAR_OK);
	CHECK_INT(uar_json_parse(uar_buf_str(b), NULL, &arena, &j, NULL), UAR_OK);
	if (j && same) {
		CHECK(uar_str_eq(j->first->text, text));
		CHECK(uar_str_eq(j->first->next->key, text));
	}
	uar_arena_reset(&arena);
}

/* Every byte value at every place of short and long strings. */
TEST(whatever_is_written_parses, "NEV-17")
{
	struct uar_buf b = uar_buf_make(4096);
	char text[36];

	memset(text, 'x', sizeof text);
	for (size_t n = 1; n <= sizeof text; n++) {
		for (size_t i = 0; i < n * 256; i++) {
			unsigned c = i % 256;

			text[i / 256] = (char)c;
			check_written(&b, uar_str_n(text, n), c && c < 128);
			text[i / 256] = 'x';
		}
	}
	uar_buf_fini(&b);
	uar_arena_fini(&arena);
}

/* The text between quotes as the writer and the reader have it. */
static bool is_left_alone(uar_str text, uar_str quoted)
{
	struct uar_buf b = uar_buf_make(4096);
	struct uar_jw w = uar_jw_begin(&b);
	const struct uar_json *j = NULL;
	bool written, read;

	uar_jw_str(&w, NULL, text);
	CHECK_INT(uar_jw_end(&w), UAR_OK);
	written = uar_str_eq(uar_buf_str(&b), quoted);
	read = !uar_json_parse(quoted, NULL, &arena, &j, NULL) && j->text.p == text.p &&
	       uar_str_eq(j->text, text);
	CHECK_INT(written, read);
	uar_buf_fini(&b);
	uar_arena_reset(&arena);
	return written;
}

/* Every pair of bytes, in a short string and at the seam of a long one. */
TEST(plain_text_is_what_reader_and_writer_leave_alone, "")
{
	static const size_t before[] = { 0, 15 }, after[] = { 0, 9 };

	for (size_t i = 0; i < ARRAY_LEN(before); i++) {
		size_t n = before[i] + 2 + after[i];
		char bytes[32];

		memset(bytes, 'x', sizeof bytes);
		bytes[0] = bytes[n + 1] = '"';
		for (unsigned c = 0; c < 65536; c++) {
			uar_str text = uar_str_n(bytes + 1, n);

			bytes[1 + before[i]] = (char)(c >> 8);
			bytes[2 + before[i]] = (char)c;
			CHECK_INT(uar_json_is_plain(text),
				  is_left_alone(text, uar_str_n(bytes, n + 2)));
		}
	}
	CHECK(uar_json_is_plain(UAR_STR("")));
	CHECK(uar_json_is_plain((uar_str){ 0 }));
	uar_arena_fini(&arena);
}

static const struct {
	double v;
	const char *want;
} doubles[] = {
	{ 0, "0" },
	{ -0.0, "-0.0" },
	{ 1, "1" },
	{ -1.5, "-1.5" },
	{ 0.1, "0.1" },
	{ 0.3, "0.3" },
	{ 0.1 + 0.2, "0.30000000000000004" },
	{ 123456789, "123456789" },
	{ 100, "100" },
	{ 0.000001, "0.000001" },
	{ 1e-7, "1e-7" },
	{ 1e21, "1e+21" },
	{ 1e20, "100000000000000000000" },
	{ 123456789012345680000.0, "123456789012345680000" },
	{ 5e-324, "5e-324" },
	{ DBL_MAX, "1.7976931348623157e+308" },
	{ DBL_MIN, "2.2250738585072014e-308" },
	{ 1.0 / 3, "0.3333333333333333" },
	{ 9007199254740993.0, "9007199254740992" },
	{ 4.35, "4.35" },
	{ 1731700000.123456, "1731700000.123456" },
};

TEST(doubles_are_short_and_read_back, "NEV-17")
{
	for (size_t i = 0; i < ARRAY_LEN(doubles); i++) {
		char text[UAR_JSON_NUMBER_TEXT];
		size_t n = uar_json_double_format(doubles[i].v, text);

		CHECK_STR(uar_str_n(text, n), doubles[i].want);
	}
}

TEST(random_doubles_read_back, "NEV-17")
{
	struct uar_rand_seeded seeded;
	struct uar_rand rand = uar_rand_seed(&seeded, 1);

	for (int i = 0; i < 50000; i++) {
		uint64_t bits = uar_rand_u64(&rand);
		char text[UAR_JSON_NUMBER_TEXT];
		const struct uar_json *j = NULL;
		double v;
		size_t n;

		memcpy(&v, &bits, sizeof v);
		if (i % 4 == 0)
			v = (double)(int64_t)(bits >> 30) / 1000;
		if (!isfinite(v))
			continue;
		n = uar_json_double_format(v, text);
		CHECK_INT(uar_json_parse(uar_str_n(text, n), NULL, &arena, &j, NULL), UAR_OK);
		CHECK_MSG(uar_json_double(j, NAN) == v, "%.17g written as %.*s", v, (int)n, text);
		uar_arena_reset(&arena);
	}
	uar_arena_fini(&arena);
}

TEST(misuse_is_reported_once, "")
{
	struct uar_buf b = uar_buf_make(4096);
	struct uar_jw w = uar_jw_begin(&b);

	CHECK_INT(uar_jw_end(&w), UAR_EINVALID); /* nothing written */
	uar_jw_obj(&w, NULL);
	CHECK_INT(uar_jw_end(&w), UAR_EINVALID); /* open */
	uar_jw_int(&w, NULL, 1);		 /* no key */
	uar_jw_close(&w);
	CHECK_INT(uar_jw_end(&w), UAR_EINVALID);
	w = uar_jw_begin(&b);
	uar_jw_int(&w, "key", 1);
	CHECK_INT(uar_jw_end(&w), UAR_EINVALID);
	w = uar_jw_begin(&b);
	uar_jw_close(&w);
	CHECK_INT(uar_jw_end(&w), UAR_EINVALID);
	w = uar_jw_begin(&b);
	uar_jw_int(&w, NULL, 1);
	uar_jw_int(&w, NULL, 2);
	CHECK_INT(uar_jw_end(&w), UAR_EINVALID);
	w = uar_jw_begin(&b);
	uar_jw_raw(&w, NULL, UAR_STR(""));
	CHECK_INT(uar_jw_end(&w), UAR_EINVALID);
	w = uar_jw_begin(&b);
	uar_jw_obj(&w, NULL);
	uar_jw_key(&w, UAR_STR("k"));
	uar_jw_close(&w);
	CHECK_INT(w.depth, 0);
	CHECK_INT(uar_jw_end(&w), UAR_EINVALID);
	uar_buf_fini(&b);
}

TEST(levels_are_bounded, "")
{
	struct uar_buf b = uar_buf_make(4096);

	for (int levels = 64; levels <= 65; levels++) {
		struct uar_jw w = uar_jw_begin(&b);

		uar_buf_clear(&b);
		for (int i = 0; i < levels; i++)
			uar_jw_arr(&w, NULL);
		for (int i = 0; i < levels; i++)
			uar_jw_close(&w);
		CHECK_INT(uar_jw_end(&w), levels == 64 ? UAR_OK : UAR_EDEPTH);
	}
	uar_buf_fini(&b);
}

TEST(a_full_buffer_is_reported, "")
{
	static const char want[] = "{\"key\":\"value\",\"n\":12}";

	for (size_t max = 0; max < sizeof want + 2; max++) {
		struct uar_buf b = uar_buf_make(max);
		struct uar_jw w = uar_jw_begin(&b);

		uar_jw_obj(&w, NULL);
		uar_jw_str(&w, "key", UAR_STR("value"));
		uar_jw_int(&w, "n", 12);
		while (w.depth) /* it ends whatever went wrong */
			uar_jw_close(&w);
		CHECK_INT(uar_jw_end(&w), max < sizeof want - 1 ? UAR_ETOOBIG : UAR_OK);
		CHECK(b.n <= max);
		uar_buf_fini(&b);
	}
}

TEST(trees_come_out_as_they_went_in, "NEV-17")
{
	static const char text[] =
		"{\"big\":123456789012345678901234567890,\"exact\":9007199254740993,"
		"\"d\":1.50,\"e\":1E+2,\"s\":\"\\u20ac \xF0\x9F\x98\x80 "
		"\\\"q\\\"\",\"a\":[null,true,"
		"false,[],{}],\"\":{\"k\":-0}}";
	static const char want[] =
		"{\"big\":123456789012345678901234567890,\"exact\":9007199254740993,"
		"\"d\":1.50,\"e\":1E+2,\"s\":\"\xE2\x82\xAC \xF0\x9F\x98\x80 "
		"\\\"q\\\"\",\"a\":[null,true,"
		"false,[],{}],\"\":{\"k\":-0}}";
	struct uar_buf b = uar_buf_make(4096);
	struct uar_jw w = uar_jw_begin(&b);
	const struct uar_json *j = NULL;

	REQUIRE(!uar_json_parse(uar_str_c(text), NULL, &arena, &j, NULL));
	uar_json_write(&b, j);
	CHECK_STR(uar_buf_str(&b), want);
	uar_buf_clear(&b);
	uar_jw_obj(&w, NULL);
	uar_jw_tree(&w, "t", uar_json_get(j, UAR_STR("a")));
	uar_jw_tree(&w, "n", NULL);
	uar_jw_close(&w);
	CHECK_INT(uar_jw_end(&w), UAR_OK);
	CHECK_STR(uar_buf_str(&b), "{\"t\":[null,true,false,[],{}],\"n\":null}");
	uar_buf_clear(&b);
	uar_json_write(&b, &(struct uar_json){ .kind = UAR_JSON_INT, .i = -5 });
	uar_json_write(&b, &(struct uar_json){ .kind = UAR_JSON_DOUBLE, .d = 2.5 });
	CHECK_STR(uar_buf_str(&b), "-52.5");
	uar_buf_fini(&b);
	uar_arena_fini(&arena);
}

TEST(a_foreign_locale_changes_nothing, "")
{
	const char *set = setlocale(LC_NUMERIC, "de_DE.UTF-8");
	char text[UAR_JSON_NUMBER_TEXT];
	const struct uar_json *j = NULL;

	if (!set) {
		uar_test_skip("no locale de_DE.UTF-8 here");
		return;
	}
	CHECK_STR(uar_str_n(text, uar_json_double_format(1.0 / 3, text)), "0.3333333333333333");
	CHECK_INT(uar_json_parse(UAR_STR("0.33333333333333331"), NULL, &arena, &j, NULL), UAR_OK);
	CHECK(uar_json_double(j, 0) == 1.0 / 3);
	setlocale(LC_NUMERIC, "C");
	uar_arena_fini(&arena);
}
