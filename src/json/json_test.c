/* json_test.c - the reader, look-ups, tables of fields, equality and pointers. */
#include "json/json.h"
#include "json/limits.h"
#include "test.h"

#include <math.h>

static struct uar_arena arena;

static const struct uar_json *parse(const char *text)
{
	const struct uar_json *j = NULL;

	if (uar_json_parse(uar_str_c(text), NULL, &arena, &j, NULL))
		return NULL;
	return j;
}

TEST(reads_every_kind, "")
{
	const struct uar_json *j = parse(" {\"n\":null,\"t\":true,\"f\":false,\"i\":-12,\"d\":2.5,"
					 "\"s\":\"x\\ny\",\"a\":[1,[],{}],\"o\":{\"k\":1}} ");

	REQUIRE(j);
	CHECK_INT(j->kind, UAR_JSON_OBJECT);
	CHECK_INT(j->count, 8);
	CHECK_INT(uar_json_get(j, UAR_STR("n"))->kind, UAR_JSON_NULL);
	CHECK(uar_json_bool(uar_json_get(j, UAR_STR("t")), false));
	CHECK(!uar_json_bool(uar_json_get(j, UAR_STR("f")), true));
	CHECK_INT(uar_json_int(uar_json_get(j, UAR_STR("i")), 0), -12);
	CHECK(uar_json_double(uar_json_get(j, UAR_STR("d")), 0) == 2.5);
	CHECK(uar_json_double(uar_json_get(j, UAR_STR("i")), 0) == -12);
	CHECK_STR(uar_json_str(uar_json_get(j, UAR_STR("s")), UAR_STR("")), "x\ny");
	CHECK_INT(uar_json_get(j, UAR_STR("a"))->count, 3);
	CHECK_INT(uar_json_int(uar_json_at(uar_json_get(j, UAR_STR("a")), 0), 0), 1);
	CHECK_STR(uar_json_get(uar_json_get(j, UAR_STR("o")), UAR_STR("k"))->key, "k");
	CHECK(!uar_json_get(uar_json_get(NULL, UAR_STR("o")), UAR_STR("k")));
	CHECK(!uar_json_at(j, 0));
	CHECK_STR(uar_json_str(j, UAR_STR("fallback")), "fallback");
	uar_arena_fini(&arena);
}

TEST(borrows_text_without_escapes, "")
{
	const char text[] = "[\"borrowed\",\"esc\\u0061ped\",\"\xC3\xA4\"]";
	const struct uar_json *j = parse(text);

	REQUIRE(j);
	CHECK(uar_json_at(j, 0)->text.p == text + 2);
	CHECK_STR(uar_json_at(j, 1)->text, "escaped");
	CHECK(uar_json_at(j, 2)->text.p > text && uar_json_at(j, 2)->text.p < text + sizeof text);
	uar_arena_fini(&arena);
}

/* The bytes before and behind the text would be refused or end it, were they read. */
TEST(strings_end_where_they_do_at_every_length, "")
{
	char around[64], *text = around + 16;
	const struct uar_json *j;

	for (size_t n = 2; n <= 36; n++) {
		memset(around, 31, sizeof around);
		memset(text, 'x', n);
		text[0] = text[n - 1] = '"';
		CHECK_INT(uar_json_parse(uar_str_n(text, n), NULL, &arena, &j, NULL), UAR_OK);
		CHECK_INT(j->text.n, n - 2);
		CHECK_INT(uar_json_parse(uar_str_n(text, n - 1), NULL, &arena, &j, NULL),
			  UAR_ESYNTAX);
		for (size_t at = 1; at + 1 < n; at++) {
			struct uar_error error = { 0 };
			char where[16];

			text[at] = '\n';
			CHECK_INT(uar_json_parse(uar_str_n(text, n), NULL, &arena, &j, &error),
				  UAR_ESYNTAX);
			snprintf(where, sizeof where, "1:%zu", at + 1);
			CHECK_STR(uar_str_c(error.where), where);
			text[at] = 'x';
		}
		uar_arena_reset(&arena);
	}
	uar_arena_fini(&arena);
}

TEST(containers_keep_their_source, "")
{
	const struct uar_json *j = parse(" { \"a\" : [ 1, {} ] ,\"b\":{\"c\" : [] }} ");

	REQUIRE(j);
	CHECK_STR(j->text, "{ \"a\" : [ 1, {} ] ,\"b\":{\"c\" : [] }}");
	CHECK_STR(uar_json_get(j, UAR_STR("a"))->text, "[ 1, {} ]");
	CHECK_STR(uar_json_at(uar_json_get(j, UAR_STR("a")), 1)->text, "{}");
	CHECK_STR(uar_json_get(j, UAR_STR("b"))->text, "{\"c\" : [] }");
	uar_arena_fini(&arena);
}

static const struct {
	const char *text;
	enum uar_json_kind kind;
	int64_t i;
	double d;
} numbers[] = {
	{ "0", UAR_JSON_INT, 0, 0 },
	{ "-0", UAR_JSON_INT, 0, 0 },
	{ "9223372036854775807", UAR_JSON_INT, INT64_MAX, 0 },
	{ "-9223372036854775808", UAR_JSON_INT, INT64_MIN, 0 },
	{ "9007199254740993", UAR_JSON_INT, 9007199254740993, 0 },
	{ "9223372036854775808", UAR_JSON_DOUBLE, 0, 9223372036854775808.0 },
	{ "-9223372036854775809", UAR_JSON_DOUBLE, 0, -9223372036854775808.0 },
	{ "18446744073709551616", UAR_JSON_DOUBLE, 0, 18446744073709551616.0 },
	{ "1.0", UAR_JSON_DOUBLE, 0, 1 },
	{ "-0.0", UAR_JSON_DOUBLE, 0, -0.0 },
	{ "1e2", UAR_JSON_DOUBLE, 0, 100 },
	{ "1E-2", UAR_JSON_DOUBLE, 0, 0.01 },
	{ "0.1", UAR_JSON_DOUBLE, 0, 0.1 },
	{ "123456789.125e+3", UAR_JSON_DOUBLE, 0, 123456789125.0 },
	{ "1.7976931348623157e308", UAR_JSON_DOUBLE, 0, 1.7976931348623157e308 },
	{ "2.2250738585072011e-308", UAR_JSON_DOUBLE, 0, 2.2250738585072011e-308 },
	{ "5e-324", UAR_JSON_DOUBLE, 0, 5e-324 },
	{ "1e-999", UAR_JSON_DOUBLE, 0, 0 },
	{ "0e99999999999999999999", UAR_JSON_DOUBLE, 0, 0 },
	{ "0.000000000000000000000000000000000000000001e42", UAR_JSON_DOUBLE, 0, 1 },
	{ "9007199254740993.0", UAR_JSON_DOUBLE, 0, 9007199254740992.0 },
	/* Halfway between two doubles, and one digit far away that decides. */
	{ "9007199254740993.00000000000000000000000000000000001", UAR_JSON_DOUBLE, 0,
	  9007199254740994.0 },
};

TEST(numbers_are_exact_or_nearest, "")
{
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		const struct uar_json *j = parse(numbers[i].text);

		if (!CHECK_MSG(j, "%s refused", numbers[i].text))
			continue;
		CHECK_MSG(j->kind == numbers[i].kind, "%s is of kind %d", numbers[i].text, j->kind);
		CHECK_STR(j->text, numbers[i].text);
		if (j->kind == UAR_JSON_INT)
			CHECK_INT(j->i, numbers[i].i);
		else
			CHECK_MSG(j->d == numbers[i].d && signbit(j->d) == signbit(numbers[i].d),
				  "%s read as %.17g", numbers[i].text, j->d);
	}
	uar_arena_fini(&arena);
}

static const struct {
	const char *text;
	uar_err code;
	const char *where;
} refused[] = {
	{ "", UAR_ESYNTAX, "1:1" },
	{ "  \n ", UAR_ESYNTAX, "2:2" },
	{ "{\"a\":1,\n \"a\":2}", UAR_EDUPKEY, "2:2" },
	{ "{\"a\":1,\"\\u0061\":2}", UAR_EDUPKEY, "1:8" },
	{ "[1 2]", UAR_ESYNTAX, "1:4" },
	{ "[1,]", UAR_ESYNTAX, "1:4" },
	{ "{\"a\"}", UAR_ESYNTAX, "1:5" },
	{ "{\"a\":1,}", UAR_ESYNTAX, "1:8" },
	{ "{a:1}", UAR_ESYNTAX, "1:2" },
	{ "[1]x", UAR_ESYNTAX, "1:4" },
	{ "1e400", UAR_ENUMBER, "1:1" },
	{ "-1e400", UAR_ENUMBER, "1:1" },
	{ "NaN", UAR_ESYNTAX, "1:1" },
	{ "Infinity", UAR_ESYNTAX, "1:1" },
	{ "01", UAR_ESYNTAX, "1:1" },
	{ "1.", UAR_ESYNTAX, "1:1" },
	{ "+1", UAR_ESYNTAX, "1:1" },
	{ "\"\\ud800\"", UAR_EUTF8, NULL },
	{ "\"\\ud800\\u0041\"", UAR_EUTF8, NULL },
	{ "\"\\udc00\"", UAR_EUTF8, NULL },
	{ "\"\\u0000\"", UAR_EINVALID, NULL },
	{ "\"\xC0\x80\"", UAR_EUTF8, "1:2" },
	{ "\"\xED\xA0\x80\"", UAR_EUTF8, "1:2" },
	{ "\"a\tb\"", UAR_ESYNTAX, "1:3" },
	{ "\"abc", UAR_ESYNTAX, "1:5" },
	{ "\"abc\\", UAR_ESYNTAX, "1:6" },
	{ "\"\\x\"", UAR_ESYNTAX, "1:3" },
	{ "\xEF\xBB\xBF{}", UAR_ESYNTAX, "1:1" },
	{ "truth", UAR_ESYNTAX, "1:1" },
	{ "[\"\\u12g4\"]", UAR_ESYNTAX, "1:5" },
};

TEST(refuses_what_is_not_json, "")
{
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		const struct uar_json *j = NULL;
		struct uar_error error = { 0 };
		uar_err e = uar_json_parse(uar_str_c(refused[i].text), NULL, &arena, &j, &error);

		CHECK_MSG(e == refused[i].code, "%s: %s", refused[i].text, uar_err_name(e));
		CHECK_INT(error.code, e);
		CHECK(error.text[0] && !j);
		if (refused[i].where)
			CHECK_STR(uar_str_c(error.where), refused[i].where);
	}
	uar_arena_fini(&arena);
}

TEST(limits_hold, "")
{
	const struct uar_json *j;
	struct uar_json_limits depth = { .depth = 2 }, nodes = { .nodes = 3 },
			       bytes = { .bytes = 4 };

	CHECK_INT(uar_json_parse(UAR_STR("[[1]]"), &depth, &arena, &j, NULL), UAR_OK);
	CHECK_INT(uar_json_parse(UAR_STR("[[[]]]"), &depth, &arena, &j, NULL), UAR_EDEPTH);
	CHECK_INT(uar_json_parse(UAR_STR("[1,2]"), &nodes, &arena, &j, NULL), UAR_OK);
	CHECK_INT(uar_json_parse(UAR_STR("[1,2,3]"), &nodes, &arena, &j, NULL), UAR_ETOOBIG);
	CHECK_INT(uar_json_parse(UAR_STR("1234"), &bytes, &arena, &j, NULL), UAR_OK);
	CHECK_INT(uar_json_parse(UAR_STR("12345"), &bytes, &arena, &j, NULL), UAR_ETOOBIG);
	uar_arena_fini(&arena);
}

TEST(nul_of_a_model_becomes_fffd, "")
{
	const struct uar_json *j = NULL;
	struct uar_json_limits l = { .foreign = true };

	CHECK_INT(uar_json_parse(UAR_STR("\"a\\u0000b\""), &l, &arena, &j, NULL), UAR_OK);
	REQUIRE(j);
	CHECK_STR(j->text, "a\xEF\xBF\xBD"
			   "b");
	CHECK_INT(uar_json_parse(UAR_STR("\"a\0b\""), &l, &arena, &j, NULL), UAR_ESYNTAX);
	uar_arena_fini(&arena);
}

static uint32_t count_foreign(const char *text)
{
	const struct uar_json *j = NULL;
	struct uar_json_limits l = { .foreign = true };

	CHECK_INT(uar_json_parse(uar_str_c(text), &l, &arena, &j, NULL), UAR_OK);
	CHECK_INT(uar_json_int(uar_json_get(j, UAR_STR("a")), -1), 7);
	return j ? j->count : 0;
}

TEST(of_a_models_repeated_keys_the_last_counts, "")
{
	struct uar_buf b = uar_buf_make(65536);

	CHECK_INT(count_foreign("{\"a\":1,\"a\":7}"), 1);
	CHECK_INT(count_foreign(
			  "{\"\":0,\"a\":1,\"\":0,\"b\":{\"a\":3,\"a\":4},\"\\u0061\":7,\"c\":1}"),
		  4);
	uar_buf_add(&b, "{", 1);
	for (int i = 0; i < 100; i++)
		uar_buf_printf(&b, "\"k%d\":%d,\"a\":%d,", i % 50, i, i);
	uar_buf_printf(&b, "\"a\":7}");
	uar_buf_add(&b, "", 1);
	CHECK_INT(count_foreign(b.p), 51);
	uar_buf_fini(&b);
	uar_arena_fini(&arena);
}

TEST(equality_is_mathematical, "")
{
	static const struct {
		const char *a, *b;
		bool same;
	} cases[] = {
		{ "1", "1.0", true },
		{ "100", "1e2", true },
		{ "0", "-0.0", true },
		{ "0.1", "1e-1", true },
		{ "-1", "1", false },
		{ "9007199254740993", "9007199254740993.0", true },
		{ "9007199254740993", "9007199254740992.0", false },
		{ "100000000000000000000", "100000000000000000001", false },
		{ "100000000000000000000", "1e20", true },
		{ "12.50", "12.5", true },
		{ "12.05", "12.5", false },
		{ "1", "true", false },
		{ "null", "false", false },
		{ "\"a\"", "\"\\u0061\"", true },
		{ "[1,2]", "[1.0,2]", true },
		{ "[1,2]", "[2,1]", false },
		{ "[1]", "[1,1]", false },
		{ "{\"a\":1,\"b\":[]}", "{\"b\":[],\"a\":1.0}", true },
		{ "{\"a\":1}", "{\"b\":1}", false },
		{ "{\"a\":1}", "{\"a\":1,\"b\":1}", false },
		{ "{}", "[]", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct uar_json *a = parse(cases[i].a), *b = parse(cases[i].b);

		REQUIRE(a && b);
		CHECK_MSG(uar_json_equal(a, b) == cases[i].same, "%s, %s", cases[i].a, cases[i].b);
		CHECK_MSG(uar_json_equal(b, a) == cases[i].same, "%s, %s", cases[i].b, cases[i].a);
	}
	CHECK(!uar_json_equal(NULL, parse("1")));
	uar_arena_fini(&arena);
}

TEST(pointers_as_the_standard_shows, "")
{
	static const struct {
		const char *pointer, *want; /* NULL: nothing there */
	} cases[] = {
		{ "/foo/0", "bar" },  { "/", "empty" },
		{ "/a~1b", "slash" }, { "/m~0n", "tilde" },
		{ "/k\"l", "quote" }, { "/ ", "space" },
		{ "/foo/01", NULL },  { "/foo/-", NULL },
		{ "/foo/2", NULL },   { "foo", NULL },
		{ "/m~n", NULL },     { "/foo/0/x", NULL },
		{ "/m~2n", NULL },    { "/foo/99999999999999999999", NULL },
		{ "/o//x", "deep" },
	};
	const struct uar_json *j =
		parse("{\"foo\":[\"bar\",\"baz\"],\"\":\"empty\",\"a/b\":\"slash\","
		      "\"m~n\":\"tilde\",\"k\\\"l\":\"quote\",\" \":\"space\","
		      "\"o\":{\"\":{\"x\":\"deep\"}}}");

	REQUIRE(j);
	CHECK(uar_json_pointer(j, UAR_STR("")) == j);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct uar_json *hit = uar_json_pointer(j, uar_str_c(cases[i].pointer));

		if (!cases[i].want)
			CHECK_MSG(!hit, "%s found", cases[i].pointer);
		else if (CHECK_MSG(hit, "%s not found", cases[i].pointer))
			CHECK_STR(uar_json_str(hit, UAR_STR("?")), cases[i].want);
	}
	uar_arena_fini(&arena);
}

struct target {
	uar_str s, id;
	int64_t i;
	double d;
	bool b;
	const struct uar_json *o, *a, *any;
};
static const struct uar_json_field fields[] = {
	{ "s", UAR_FIELD_STR, true, offsetof(struct target, s) },
	{ "id", UAR_FIELD_ID, false, offsetof(struct target, id) },
	{ "i", UAR_FIELD_INT, false, offsetof(struct target, i) },
	{ "d", UAR_FIELD_DOUBLE, false, offsetof(struct target, d) },
	{ "b", UAR_FIELD_BOOL, false, offsetof(struct target, b) },
	{ "o", UAR_FIELD_OBJECT, false, offsetof(struct target, o) },
	{ "a", UAR_FIELD_ARRAY, false, offsetof(struct target, a) },
	{ "any", UAR_FIELD_ANY, false, offsetof(struct target, any) },
};

static uar_err read_fields(const char *text, bool strict, struct target *t, struct uar_error *error)
{
	return uar_json_read(parse(text), fields, ARRAY_LEN(fields), strict, t, error);
}

TEST(fields_are_read_into_a_struct, "")
{
	struct target t = { .i = 7 };

	CHECK_INT(read_fields("{\"any\":3,\"s\":\"x\",\"id\":\"a-1\",\"d\":2,\"b\":true,\"o\":{},"
			      "\"a\":[1],\"i\":null}",
			      true, &t, NULL),
		  UAR_OK);
	CHECK_STR(t.s, "x");
	CHECK_STR(t.id, "a-1");
	CHECK_INT(t.i, 7);
	CHECK(t.d == 2 && t.b && t.o && t.a);
	CHECK_INT(uar_json_int(t.any, 0), 3);
	uar_arena_fini(&arena);
}

TEST(bad_fields_are_named, "")
{
	static const struct {
		const char *text, *where;
	} cases[] = {
		{ "{\"i\":1}", "/s" },
		{ "{\"s\":null}", "/s" },
		{ "{\"s\":1}", "/s" },
		{ "{\"s\":\"\",\"i\":1.5}", "/i" },
		{ "{\"s\":\"\",\"x/y\":1}", "/x~1y" },
		{ "{\"s\":\"\",\"id\":\"a b\"}", "/id" },
		{ "{\"s\":\"\",\"id\":\"\"}", "/id" },
		{ "{\"s\":\"\",\"b\":0}", "/b" },
		{ "{\"s\":\"\",\"o\":[]}", "/o" },
		{ "{\"s\":\"\",\"a\":{}}", "/a" },
		{ "{\"s\":\"\",\"d\":\"1\"}", "/d" },
		{ "[]", "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_error error = { 0 };
		struct target t;

		CHECK_INT(read_fields(cases[i].text, true, &t, &error), UAR_EINVALID);
		CHECK_STR(uar_str_c(error.where), cases[i].where);
	}
	CHECK_INT(read_fields("{\"s\":\"\",\"other\":1}", false, &(struct target){ 0 }, NULL),
		  UAR_OK);
	uar_arena_fini(&arena);
}

/* n members k0..kn-1; the last key is repeated when `twice`. */
static uar_err parse_many(unsigned n, bool twice, const struct uar_json **out)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	uar_err e;

	uar_buf_add_char(&b, '{');
	for (unsigned i = 0; i < n; i++)
		uar_buf_printf(&b, "%s\"k%u\":%u", i ? "," : "", i, i);
	if (twice)
		uar_buf_printf(&b, ",\"k%u\":0", n / 2);
	uar_buf_add_char(&b, '}');
	e = uar_json_parse(uar_buf_str(&b), NULL, &arena, out, NULL);
	uar_buf_fini(&b);
	return e;
}

TEST(repeated_keys_are_found_at_every_size, "")
{
	static const unsigned sizes[] = { 1, 2, 15, 31, 32, 33, 34, 63, 64, 65, 1000, 100000 };
	const struct uar_json *j = NULL;

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		CHECK_INT(parse_many(sizes[i], false, &j), UAR_OK);
		CHECK_INT(j->count, sizes[i]);
		CHECK_INT(parse_many(sizes[i], true, &j), UAR_EDUPKEY);
	}
	uar_arena_fini(&arena);
}

/* Equal values have one text, others do not. */
TEST(canonical_text_is_that_of_the_value, "")
{
	static const struct {
		const char *a, *b;
	} same[] = {
		{ "{\"b\":1,\"a\":[2,{\"y\":null,\"x\":true}]}",
		  "{\"a\":[2.0,{\"x\":true,\"y\":null}],\"b\":10e-1}" },
		{ "[0,-0,0.0,0e9]", "[-0.0,0,0,0]" },
		{ "12500", "1.25e4" },
		{ "-0.00125", "-125E-5" },
		{ "1.5e-9999999999999", "15e-10000000000000" }, /* too small to tell apart */
		{ "0.1e-99999999999999999999", "10e-1000000000000000" },
		{ "{\"\\u0061\":\"\\u0062\"}", "{\"a\":\"b\"}" },
	};
	static const char *const differ[] = { "1",	   "10",   "0.1",  "-1", "[1]", "\"1\"",
					      "{\"1\":1}", "null", "true", "{}", "[]" };
	struct uar_buf x = uar_buf_make(4096), y = uar_buf_make(4096);

	for (size_t i = 0; i < ARRAY_LEN(same); i++) {
		uar_buf_clear(&x), uar_buf_clear(&y);
		uar_json_write_canonical(&x, parse(same[i].a));
		uar_json_write_canonical(&y, parse(same[i].b));
		CHECK_MSG(uar_str_eq(uar_buf_str(&x), uar_buf_str(&y)), "%s, %s", x.p, y.p);
	}
	for (size_t i = 0; i < ARRAY_LEN(differ); i++)
		for (size_t k = 0; k < i; k++) {
			uar_buf_clear(&x), uar_buf_clear(&y);
			uar_json_write_canonical(&x, parse(differ[i]));
			uar_json_write_canonical(&y, parse(differ[k]));
			CHECK_MSG(!uar_str_eq(uar_buf_str(&x), uar_buf_str(&y)), "%s", x.p);
		}
	uar_buf_fini(&x);
	uar_buf_fini(&y);
}

TEST(big_objects_in_another_order_are_equal, "")
{
	struct uar_buf b[2] = { uar_buf_make(1 << 22), uar_buf_make(1 << 22) };
	const struct uar_json *x, *y;

	for (unsigned side = 0; side < 2; side++) {
		for (unsigned i = 0; i < 50000; i++)
			uar_buf_printf(&b[side], "%s\"k%u\":%u", i ? "," : "{",
				       side ? 49999 - i : i, side ? 49999 - i : i);
		uar_buf_add_char(&b[side], '}');
	}
	REQUIRE(!uar_json_parse(uar_buf_str(&b[0]), NULL, &arena, &x, NULL));
	REQUIRE(!uar_json_parse(uar_buf_str(&b[1]), NULL, &arena, &y, NULL));
	CHECK(uar_json_equal(x, y));
	uar_buf_fini(&b[0]);
	uar_buf_fini(&b[1]);
	uar_arena_fini(&arena);
}
