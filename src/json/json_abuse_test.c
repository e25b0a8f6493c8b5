/* json_abuse_test.c - hostile JSON: more than a thousand cases, generated from
 * tables. Every one must end in its named error, quickly and without a second
 * opinion. Work is asserted by counts and codes, never by the clock. */
#include "json/json.h"
#include "json/limits.h"
#include "test.h"

static unsigned cases;

static uar_err parse(uar_str text, const struct uar_json_limits *limits)
{
	const struct uar_json *j = NULL;
	struct uar_error error = { 0 };
	struct uar_arena arena;
	uar_err e;

	uar_arena_init(&arena, 0);
	e = uar_json_parse(text, limits, &arena, &j, &error);
	CHECK((e == UAR_OK) == (j != NULL));
	CHECK(!e || (error.code == e && error.text[0] && error.where[0]));
	uar_arena_fini(&arena);
	cases++;
	return e;
}

/* `text` alone, in an array, as a member, and with space around. */
static void everywhere(uar_str text, uar_err want)
{
	static const char *const frames[][2] = {
		{ "", "" }, { "[", "]" }, { "{\"k\":", "}" }, { " \n", " \t" }, { "[1,", ",null]" },
	};

	for (size_t i = 0; i < ARRAY_LEN(frames); i++) {
		struct uar_buf b = uar_buf_make(1 << 20);
		uar_err e;

		uar_buf_printf(&b, "%s", frames[i][0]);
		uar_buf_add_str(&b, text);
		uar_buf_printf(&b, "%s", frames[i][1]);
		e = parse(uar_buf_str(&b), NULL);
		CHECK_MSG(e == want, "%.*s: %s, wanted %s", UAR_FMT(uar_buf_str(&b)),
			  uar_err_name(e), uar_err_name(want));
		uar_buf_fini(&b);
	}
}

TEST(numbers_of_every_bad_shape, "")
{
	static const char *const bad[] = {
		"NaN",	 "nan",	  "Infinity", "-Infinity",    "inf",	  "+1",	 ".5",	  "5.",
		"-",	 "--1",	  "01",	      "-01",	      "1e",	  "1e+", "1E-",	  "1.e1",
		"0x10",	 "1_000", "1 000",    "1,5,",	      "1a",	  "00",	 "-.5",	  "1..2",
		"1e1.5", "0b1",	  "1f",	      "\xEF\xBC\x91", "\xD9\xA1", "-a",	 "1e++1", "2.e3",
		"0e",	 "0.e",	  "1.0.0",    "\xC2\xB2",
	};
	static const char *const huge[] = { "1e309",	"-1e309",
					    "1e400",	"1e99999999999999999999",
					    "123e999",	"1.8e308",
					    "-1.8e308", "10e308" };
	static const char *const fine[] = { "1e308",   "1e-400", "0e999999999999",	  "-0",
					    "1E+0005", "0.0e-0", "1.7976931348623157e308" };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		everywhere(uar_str_c(bad[i]), UAR_ESYNTAX);
	for (size_t i = 0; i < ARRAY_LEN(huge); i++)
		everywhere(uar_str_c(huge[i]), UAR_ENUMBER);
	for (size_t i = 0; i < ARRAY_LEN(fine); i++)
		everywhere(uar_str_c(fine[i]), UAR_OK);
}

TEST(numbers_with_a_million_digits, "")
{
	static const struct {
		const char *before, *after;
		char digit;
		uar_err want;
	} rows[] = {
		{ "", "", '9', UAR_ENUMBER },	   { "0.", "", '0', UAR_OK },
		{ "0.", "1", '3', UAR_OK },	   { "1e", "", '9', UAR_ENUMBER },
		{ "1e-", "", '9', UAR_OK },	   { "", "e-999999", '9', UAR_OK },
		{ "0.", "e1000000", '0', UAR_OK }, { "0.", "1e1000001", '0', UAR_OK },
		{ "-", ".5", '1', UAR_ENUMBER },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct uar_buf b = uar_buf_make(2 << 20);
		char *at;
		uar_err e;

		uar_buf_printf(&b, "%s", rows[i].before);
		at = uar_buf_reserve(&b, 1000000);
		memset(at, rows[i].digit, 1000000);
		b.n += 1000000;
		uar_buf_printf(&b, "%s", rows[i].after);
		e = parse(uar_buf_str(&b), NULL);
		CHECK_MSG(e == rows[i].want, "row %zu: %s", i, uar_err_name(e));
		uar_buf_fini(&b);
	}
}

static void in_string(uar_str bytes, uar_err want)
{
	struct uar_buf b = uar_buf_make(4096);

	for (size_t pad = 0; pad < 20; pad += 3) { /* before, inside and behind a 16-byte block */
		uar_buf_clear(&b);
		uar_buf_printf(&b, "\"%.*s", (int)pad, "xxxxxxxxxxxxxxxxxxxxxxx");
		uar_buf_add_str(&b, bytes);
		uar_buf_printf(&b, "%.*s\"", (int)(20 - pad), "yyyyyyyyyyyyyyyyyyyyyyy");
		CHECK_MSG(parse(uar_buf_str(&b), NULL) == want, "%.*s, pad %zu", UAR_FMT(bytes),
			  pad);
		uar_buf_clear(&b);
		uar_buf_printf(&b, "{\"%.*s", (int)pad, "xxxxxxxxxxxxxxxxxxxxxxx");
		uar_buf_add_str(&b, bytes);
		uar_buf_add_str(&b, UAR_STR("\":1}"));
		CHECK_MSG(parse(uar_buf_str(&b), NULL) == want, "key %.*s, pad %zu", UAR_FMT(bytes),
			  pad);
	}
	uar_buf_fini(&b);
}

TEST(text_of_every_bad_shape, "")
{
	static const struct {
		uar_str bytes;
		uar_err want;
	} rows[] = {
		{ UAR_STR("\xC0\x80"), UAR_EUTF8 }, /* overlong */
		{ UAR_STR("\xC0\xAF"), UAR_EUTF8 },
		{ UAR_STR("\xC1\xBF"), UAR_EUTF8 },
		{ UAR_STR("\xE0\x80\xAF"), UAR_EUTF8 },
		{ UAR_STR("\xE0\x9F\xBF"), UAR_EUTF8 },
		{ UAR_STR("\xF0\x80\x80\xAF"), UAR_EUTF8 },
		{ UAR_STR("\xF0\x8F\xBF\xBF"), UAR_EUTF8 },
		{ UAR_STR("\xF8\x88\x80\x80\x80"), UAR_EUTF8 },
		{ UAR_STR("\xFC\x84\x80\x80\x80\x80"), UAR_EUTF8 },
		{ UAR_STR("\xF4\x90\x80\x80"), UAR_EUTF8 }, /* beyond U+10FFFF */
		{ UAR_STR("\xF5\x80\x80\x80"), UAR_EUTF8 },
		{ UAR_STR("\xED\xA0\x80"), UAR_EUTF8 }, /* surrogates */
		{ UAR_STR("\xED\xBF\xBF"), UAR_EUTF8 },
		{ UAR_STR("\xED\xA0\xBD\xED\xB8\x80"), UAR_EUTF8 },
		{ UAR_STR("\x80"), UAR_EUTF8 }, /* stray */
		{ UAR_STR("\xBF"), UAR_EUTF8 },
		{ UAR_STR("\xFE"), UAR_EUTF8 },
		{ UAR_STR("\xFF"), UAR_EUTF8 },
		{ UAR_STR("\xC3("), UAR_EUTF8 }, /* cut short */
		{ UAR_STR("\xE2\x82("), UAR_EUTF8 },
		{ UAR_STR("\xF0\x9F\x98("), UAR_EUTF8 },
		{ UAR_STR("\\ud800"), UAR_EUTF8 }, /* lone, escaped */
		{ UAR_STR("\\udfff"), UAR_EUTF8 },
		{ UAR_STR("\\ud800\\ud800"), UAR_EUTF8 },
		{ UAR_STR("\\ud800\\n"), UAR_EUTF8 },
		{ UAR_STR("\\ud800x"), UAR_EUTF8 },
		{ UAR_STR("\\ud83d\\u"), UAR_EUTF8 },
		{ UAR_STR("\\ude00\\ud83d"), UAR_EUTF8 },
		{ UAR_STR("\\u0000"), UAR_EINVALID },
		{ UAR_STR("\\u00"), UAR_ESYNTAX },
		{ UAR_STR("\\u00g0"), UAR_ESYNTAX },
		{ UAR_STR("\\u 123"), UAR_ESYNTAX },
		{ UAR_STR("\\U0041"), UAR_ESYNTAX },
		{ UAR_STR("\\x41"), UAR_ESYNTAX },
		{ UAR_STR("\\'"), UAR_ESYNTAX },
		{ UAR_STR("\\a"), UAR_ESYNTAX },
		{ UAR_STR("\\0"), UAR_ESYNTAX },
		{ UAR_STR("\\\n"), UAR_ESYNTAX },
		{ UAR_STR("\\\xC3\xA4"), UAR_ESYNTAX },
		{ UAR_STR("\0"), UAR_ESYNTAX },
		{ UAR_STR("\\n\0"), UAR_ESYNTAX },
		{ UAR_STR("\\n\xC3("), UAR_EUTF8 },
		{ UAR_STR("\\n\xFF"), UAR_EUTF8 },
		{ UAR_STR("\x7f"), UAR_OK },
		{ UAR_STR("\xC2\x80"), UAR_OK },
		{ UAR_STR("\xEF\xBF\xBE"), UAR_OK }, /* noncharacters are characters */
		{ UAR_STR("\xF4\x8F\xBF\xBF"), UAR_OK },
		{ UAR_STR("\\uD83D\\uDE00"), UAR_OK },
		{ UAR_STR("\\uFFFF"), UAR_OK },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		in_string(rows[i].bytes, rows[i].want);
	for (char c = 1; c < 0x20; c++)
		in_string(uar_str_n(&c, 1), UAR_ESYNTAX);
}

static const char *const bad_structures[] = {
	"",
	"[",
	"]",
	"{",
	"}",
	"[,]",
	"[1,",
	"[1,]",
	"[1;2]",
	"[1 2]",
	"[[]",
	"[]]",
	"{]",
	"[}",
	"{,}",
	"{\"a\"}",
	"{\"a\":}",
	"{\"a\":1,}",
	"{\"a\" 1}",
	"{\"a\"::1}",
	"{1:1}",
	"{a:1}",
	"{'a':1}",
	"{null:1}",
	"{\"a\":1 \"b\":2}",
	"{\"a\":1,,\"b\":2}",
	",",
	":",
	"\"",
	"'a'",
	"tru",
	"True",
	"nul",
	"nulll",
	"falsee",
	"true false",
	"[true false]",
	"// c\n1",
	"/* c */1",
	"1 // c",
	"#1",
	"\\u0031",
	"\f1",
	"\v1",
	"\xC2\xA0"
	"1",
	"\xE2\x80\x8B"
	"1",
	"{}{}",
	"[][]",
	"1 2",
	"\"a\" \"b\"",
	"{\"a\":1}]",
	"[1]}",
	"\xEF\xBB\xBF",
	"\xEF\xBB\xBF[]",
	"\xFE\xFF[]",
	"\xFF\xFE[\0]",
	"[\xEF\xBB\xBF]",
	"undefined",
	"[undefined]",
	"[1,\f2]",
	"=1",
	"(1)",
	"<a/>",
	"---\na: 1",
};

TEST(structure_of_every_bad_shape, "")
{
	for (size_t i = 0; i < ARRAY_LEN(bad_structures); i++) {
		CHECK_MSG(parse(uar_str_c(bad_structures[i]), NULL) == UAR_ESYNTAX, "%s",
			  bad_structures[i]);
		/* every prefix, too, ends in an error or is a number or word that stands alone */
		for (size_t n = 0; n < strlen(bad_structures[i]); n++)
			parse(uar_str_n(bad_structures[i], n), NULL);
	}
	CHECK_INT(parse(UAR_STR("[1]\0"), NULL), UAR_ESYNTAX);
	CHECK_INT(parse(UAR_STR("\0[1]"), NULL), UAR_ESYNTAX);
	CHECK_INT(parse(UAR_STR("[1,\0 2]"), NULL), UAR_ESYNTAX);
}

TEST(every_prefix_of_a_document_is_refused, "")
{
	static const char text[] = "{\"a\":[1,2.5e3,\"x\\u20ac\xC3\xA4\",null,true,false,{}],"
				   "\"b\":{\"c\":[[[]]],\"d\":\"0123456789abcdef\"}}";

	CHECK_INT(parse(uar_str_c(text), NULL), UAR_OK);
	for (size_t n = 0; n < sizeof text - 1; n++)
		CHECK_MSG(parse(uar_str_n(text, n), NULL) != UAR_OK, "%zu bytes", n);
}

static uar_err nested(size_t depth, const char *open, const char *close, uint32_t limit)
{
	struct uar_json_limits l = { .depth = limit };
	struct uar_buf b = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	uar_err e;

	for (size_t i = 0; i < depth; i++)
		uar_buf_add_str(&b, uar_str_c(open));
	uar_buf_add_char(&b, '1');
	for (size_t i = 0; i < depth; i++)
		uar_buf_add_str(&b, uar_str_c(close));
	e = parse(uar_buf_str(&b), &l);
	uar_buf_fini(&b);
	return e;
}

TEST(depth_is_bounded, "")
{
	static const struct {
		const char *open, *close;
	} shapes[] = { { "[", "]" }, { "{\"a\":", "}" }, { " [ ", " ] " }, { "[1,", ",2]" } };

	for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
		const char *open = shapes[i].open, *close = shapes[i].close;

		CHECK_INT(nested(64, open, close, 0), UAR_OK);
		CHECK_INT(nested(65, open, close, 0), UAR_EDEPTH);
		CHECK_INT(nested(100000, open, close, 0), UAR_EDEPTH);
		CHECK_INT(nested(100000, open, "", 0), UAR_EDEPTH);
		CHECK_INT(nested(1024, open, close, UINT32_MAX), UAR_OK); /* the hard bound */
		CHECK_INT(nested(1025, open, close, UINT32_MAX), UAR_EDEPTH);
	}
}

/* Keys that collide in well-known hashes, or share all but one byte. */
static void add_hostile_key(struct uar_buf *b, unsigned shape, unsigned i)
{
	if (shape == 0) /* "Aa" and "BB" have one Java hash: 2^16 such keys */
		for (int bit = 0; bit < 16; bit++)
			uar_buf_add_str(b, i >> bit & 1 ? UAR_STR("Aa") : UAR_STR("BB"));
	else if (shape == 1) /* same length, same ends */
		uar_buf_printf(b, "kkkkkkkkkkkkkkkk%05xkkkkkkkkkkkkkkkk", i);
	else if (shape == 2) /* zeros in front */
		uar_buf_printf(b, "%0*x", 8 + (int)(i % 50), i / 50);
	else /* written as escapes */
		uar_buf_printf(b, "\\u%04x\\u%04x", 0x100 + i / 4096, 0x1000 + i % 4096);
}

TEST(many_keys_cost_linear_work, "")
{
	for (unsigned shape = 0; shape < 4; shape++) {
		for (int twice = 0; twice < 2; twice++) {
			struct uar_buf b = uar_buf_make(UAR_LIMIT_JSON_BYTES);

			uar_buf_add_char(&b, '{');
			for (unsigned i = 0; i < 60000; i++) {
				uar_buf_printf(&b, "%s\"", i ? "," : "");
				add_hostile_key(&b, shape, i);
				uar_buf_add_str(&b, UAR_STR("\":0"));
			}
			if (twice) {
				uar_buf_add_str(&b, UAR_STR(",\""));
				add_hostile_key(&b, shape, 31000);
				uar_buf_add_str(&b, UAR_STR("\":0"));
			}
			uar_buf_add_char(&b, '}');
			CHECK_INT(parse(uar_buf_str(&b), NULL), twice ? UAR_EDUPKEY : UAR_OK);
			uar_buf_fini(&b);
		}
	}
}

TEST(repeated_keys_in_every_disguise, "")
{
	static const char *const pairs[][2] = {
		{ "a", "a" },
		{ "", "" },
		{ "a", "\\u0061" },
		{ "\\u0061", "\\u0061" },
		{ "/", "\\/" },
		{ "\\n", "\\u000a" },
		{ "\xC3\xA4", "\\u00e4" },
		{ "\xF0\x9F\x98\x80", "\\ud83d\\ude00" },
		{ "__proto__", "__proto__" },
		{ "0123456789abcdefXYZ", "0123456789abcdefXY\\u005a" },
	};

	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		for (unsigned between = 0; between < 80; between += 13) {
			struct uar_buf b = uar_buf_make(65536);

			uar_buf_printf(&b, "[{\"%s\":1", pairs[i][0]);
			for (unsigned k = 0; k < between; k++)
				uar_buf_printf(&b, ",\"key%u\":{\"a\":1}", k);
			uar_buf_printf(&b, ",\"%s\":2}]", pairs[i][1]);
			CHECK_INT(parse(uar_buf_str(&b), NULL), UAR_EDUPKEY);
			uar_buf_fini(&b);
		}
	}
	CHECK_INT(parse(UAR_STR("{\"a\":1,\"A\":2,\"a \":3,\"\xC3\xA4\":4,\"a\xCC\x88\":5}"), NULL),
		  UAR_OK); /* no case folding, no normalisation */
}

TEST(big_documents_meet_their_limits, "")
{
	size_t n = 100u << 20;
	struct uar_buf b = uar_buf_make(n + 16);
	char *at = uar_buf_reserve(&b, n);
	struct uar_json_limits all = { .bytes = n + 16 }, few = { .nodes = 1000 };

	REQUIRE(at);
	memset(at, 'x', n);
	at[0] = at[n - 1] = '"';
	b.n = n;
	CHECK_INT(parse(uar_buf_str(&b), NULL), UAR_ETOOBIG);
	CHECK_INT(parse(uar_buf_str(&b), &all), UAR_OK); /* borrowed, not copied */
	at[n / 2] = '\x01';
	CHECK_INT(parse(uar_buf_str(&b), &all), UAR_ESYNTAX);
	uar_buf_clear(&b);
	for (unsigned i = 0; i < 1100000; i++)
		uar_buf_add_str(&b, i ? UAR_STR(",0") : UAR_STR("[0"));
	uar_buf_add_char(&b, ']');
	CHECK_INT(parse(uar_buf_str(&b), NULL), UAR_ETOOBIG); /* values, not bytes */
	CHECK_INT(parse(uar_buf_str(&b), &few), UAR_ETOOBIG);
	uar_buf_fini(&b);
}

TEST(a_thousand_cases_were_tried, "")
{
	CHECK_MSG(cases >= 1000, "only %u", cases);
}
