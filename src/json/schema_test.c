/* schema_test.c - what the public suite does not cover: messages, refusals of bad
 * schemas, bounds, older drafts, and lack of memory. */
#include "json/jw.h"
#include "json/schema.h"
#include "test.h"

static struct uar_arena arena, scratch;

static const struct uar_json *parse(const char *text)
{
	const struct uar_json *j = NULL;
	struct uar_json_limits l = { .depth = 1000 };

	return uar_json_parse(uar_str_c(text), &l, &arena, &j, NULL) ? NULL : j;
}

static uar_err validate(const char *schema, const char *value, struct uar_error *error)
{
	struct uar_schema *s = NULL;
	uar_err e = uar_schema_create(parse(schema), NULL, &s, error);

	if (!e)
		e = uar_schema_validate(s, parse(value), &scratch, error);
	uar_schema_destroy(s);
	uar_arena_fini(&scratch);
	return e;
}

static const struct {
	const char *schema, *value, *where, *text;
} failures[] = {
	{ "{\"type\":\"string\"}", "1", "", "type: must be a string, is integer" },
	{ "{\"type\":[\"string\",\"null\"]}", "1", "", "type: must be another type, is integer" },
	{ "{\"properties\":{\"a\":{\"items\":{\"type\":\"null\"}}}}", "{\"a\":[null,1]}", "/a/1",
	  "type: must be null, is integer" },
	{ "{\"required\":[\"x\",\"y\"]}", "{\"x\":1}", "", "required: 'y' is missing" },
	{ "{\"additionalProperties\":false}", "{\"x\":1}", "",
	  "additionalProperties: 'x' is not allowed" },
	{ "{\"properties\":{\"concurrency\":{},\"id\":{}},\"additionalProperties\":false}",
	  "{\"concurency\":1}", "",
	  "additionalProperties: 'concurency' is not allowed, did you mean 'concurrency'?" },
	{ "{\"properties\":{\"concurrency\":{}},\"additionalProperties\":false}", "{\"restart\":1}",
	  "", "additionalProperties: 'restart' is not allowed" },
	{ "{\"unevaluatedProperties\":false}", "{\"a/b\":1}", "/a~1b",
	  "false: no value is allowed here" },
	{ "{\"enum\":[1,2]}", "3", "", "enum: must be one of 1, 2" },
	{ "{\"const\":1}", "3", "", "const: another value than the one allowed" },
	{ "{\"minimum\":5}", "3", "", "minimum: 5" },
	{ "{\"multipleOf\":0.1}", "0.25", "", "multipleOf: 0.1" },
	{ "{\"maxLength\":2}", "\"\xC3\xA4\xC3\xA4\xC3\xA4\"", "",
	  "maxLength: longer than 2 characters" },
	{ "{\"pattern\":\"^a\"}", "\"b\"", "", "pattern: the text does not match ^a" },
	{ "{\"anyOf\":[{\"type\":\"null\"},{\"minimum\":5}]}", "3", "",
	  "anyOf: none of the schemas fits" },
	{ "{\"oneOf\":[{},{}]}", "3", "", "oneOf: more than one of the schemas fits" },
	{ "{\"not\":{}}", "3", "", "not: fits the schema that it must not fit" },
	{ "{\"propertyNames\":{\"maxLength\":1}}", "{\"ab\":1}", "/ab",
	  "maxLength: longer than 1 characters" },
	{ "{\"uniqueItems\":true}", "[1,2,1.0]", "", "uniqueItems: the same item twice" },
	{ "{\"dependentRequired\":{\"a\":[\"b\"]}}", "{\"a\":1}", "",
	  "dependentRequired: 'b' is missing" },
	{ "{\"contains\":{\"type\":\"null\"}}", "[1]", "", "contains: only 0 items fit" },
};

TEST(failures_name_the_place_and_the_keyword, "")
{
	for (size_t i = 0; i < ARRAY_LEN(failures); i++) {
		struct uar_error error = { 0 };

		CHECK_INT(validate(failures[i].schema, failures[i].value, &error), UAR_ESCHEMA);
		CHECK_STR(uar_str_c(error.where), failures[i].where);
		CHECK_STR(uar_str_c(error.text), failures[i].text);
	}
	uar_arena_fini(&arena);
}

static const char *const bad_schemas[] = {
	"1",
	"null",
	"[]",
	"{\"type\":5}",
	"{\"type\":\"strin\"}",
	"{\"type\":[]}",
	"{\"properties\":[]}",
	"{\"properties\":{\"a\":1}}",
	"{\"required\":{}}",
	"{\"required\":[1]}",
	"{\"minLength\":-1}",
	"{\"minLength\":1.5}",
	"{\"maxItems\":\"x\"}",
	"{\"minimum\":\"1\"}",
	"{\"multipleOf\":0}",
	"{\"multipleOf\":-1}",
	"{\"pattern\":\"(\"}",
	"{\"pattern\":\"(a)\\\\1\"}",
	"{\"pattern\":1}",
	"{\"patternProperties\":{\"[\":{}}}",
	"{\"enum\":1}",
	"{\"allOf\":{}}",
	"{\"allOf\":[1]}",
	"{\"not\":1}",
	"{\"items\":[{}]}",
	"{\"$ref\":1}",
	"{\"$ref\":\"#/nowhere\"}",
	"{\"$ref\":\"#nowhere\"}",
	"{\"$ref\":\"other.json\"}",
	"{\"$ref\":\"http://example.com/never-fetched\"}",
	"{\"$dynamicRef\":\"#nowhere\"}",
	"{\"$ref\":\"#/enum/0\",\"enum\":[1]}",
	"{\"$id\":1}",
	"{\"$anchor\":\"\"}",
	"{\"$defs\":[]}",
	"{\"format\":1}",
	"{\"uniqueItems\":1}",
	"{\"dependentRequired\":{\"a\":[1]}}",
};

TEST(bad_schemas_are_refused_with_a_reason, "")
{
	for (size_t i = 0; i < ARRAY_LEN(bad_schemas); i++) {
		struct uar_error error = { 0 };
		struct uar_schema *s = NULL;
		uar_err e = uar_schema_create(parse(bad_schemas[i]), NULL, &s, &error);

		CHECK_MSG(e == UAR_EINVALID, "%s: %s", bad_schemas[i], uar_err_name(e));
		CHECK_MSG(error.text[0], "%s", bad_schemas[i]);
		uar_schema_destroy(s);
	}
	uar_arena_fini(&arena);
}

/* --- bounds --- */

TEST(references_without_end_end, "")
{
	static const char *const loops[] = {
		"{\"$ref\":\"#\"}",
		"{\"$dynamicRef\":\"#\"}",
		"{\"allOf\":[{\"$ref\":\"#\"}]}",
		"{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"$ref\":\"#/$defs/"
		"b\"},\"b\":{\"$ref\":\"#/"
		"$defs/a\"}}}",
		"{\"not\":{\"$ref\":\"#\"}}",
		"{\"if\":{\"$ref\":\"#\"},\"then\":true}",
	};

	for (size_t i = 0; i < ARRAY_LEN(loops); i++)
		CHECK_INT(validate(loops[i], "1", NULL), UAR_EDEPTH);
	uar_arena_fini(&arena);
}

/* Each level refers twice to the next: 2^40 applications without a bound. */
TEST(exponential_references_end, "")
{
	struct uar_buf b = uar_buf_make(65536);

	for (int flavour = 0; flavour < 2; flavour++) {
		uar_buf_clear(&b);
		uar_buf_printf(&b, "{\"$ref\":\"#/$defs/d0\",\"$defs\":{");
		for (int i = 0; i < 40; i++)
			uar_buf_printf(&b,
				       "\"d%d\":{\"%s\":[{\"$ref\":\"#/$defs/d%d\"},{\"$ref\":\"#/"
				       "$defs/d%d\"}]},",
				       i, flavour ? "anyOf" : "allOf", i + 1, i + 1);
		uar_buf_printf(&b, "\"d40\":%s}}",
			       flavour ? "{\"type\":\"null\"}" : "{\"type\":\"integer\"}");
		CHECK_INT(validate(b.p, "1", NULL), UAR_ETOOBIG);
	}
	uar_buf_fini(&b);
	uar_arena_fini(&arena);
}

TEST(costly_patterns_end, "")
{
	struct uar_buf b = uar_buf_make(1 << 22);

	uar_buf_add_char(&b, '"');
	for (int i = 0; i < 2000000; i++)
		uar_buf_add_char(&b, 'a');
	uar_buf_add_char(&b, '"');
	CHECK_INT(validate("{\"pattern\":\"^(([a-z])+.)+[A-Z]([a-z])+$\"}", b.p, NULL),
		  UAR_ESCHEMA);
	CHECK_INT(validate("{\"pattern\":\"(a?){100}a{100}b\"}", b.p, NULL), UAR_ETOOBIG);
	uar_buf_fini(&b);
	uar_arena_fini(&arena);
}

TEST(big_arrays_of_unlike_items_are_quick, "")
{
	struct uar_buf b = uar_buf_make(1 << 23);

	for (int i = 0; i < 100000; i++)
		uar_buf_printf(&b, "%s{\"k\":%d}", i ? "," : "[", i);
	uar_buf_add_char(&b, ']');
	CHECK_INT(validate("{\"uniqueItems\":true}", b.p, NULL), UAR_OK);
	b.p[b.n - 1] = ',';
	uar_buf_printf(&b, "{\"k\":5.0}]");
	CHECK_INT(validate("{\"uniqueItems\":true}", b.p, NULL), UAR_ESCHEMA);
	uar_buf_fini(&b);
	uar_arena_fini(&arena);
}

/* Numbers that share one double: equal hashes, all unlike. */
TEST(chosen_collisions_end, "")
{
	struct uar_buf b = uar_buf_make(1 << 23);

	for (int i = 0; i < 100000; i++)
		uar_buf_printf(&b, "%s1000000000000000000000000000000000000%06d", i ? "," : "[", i);
	uar_buf_add_char(&b, ']');
	CHECK_INT(validate("{\"uniqueItems\":true}", b.p, NULL), UAR_ETOOBIG);
	uar_buf_fini(&b);
	uar_arena_fini(&arena);
}

TEST(many_properties_and_choices, "")
{
	struct uar_buf s = uar_buf_make(1 << 20), v = uar_buf_make(1 << 20);
	struct uar_error error = { 0 };

	uar_buf_printf(&s, "{\"additionalProperties\":false,\"required\":[");
	for (int i = 0; i < 200; i++)
		uar_buf_printf(&s, "%s\"p%d\"", i ? "," : "", i);
	uar_buf_printf(&s, "],\"properties\":{\"x\":{\"enum\":[");
	for (int i = 0; i < 100; i++)
		uar_buf_printf(&s, "%s\"c%d\"", i ? "," : "", i);
	uar_buf_printf(&s, "]}");
	for (int i = 0; i < 200; i++)
		uar_buf_printf(&s, ",\"p%d\":{\"type\":\"integer\"}", i);
	uar_buf_printf(&s, "}}");
	for (int i = 0; i < 200; i++)
		uar_buf_printf(&v, "%s\"p%d\":%d", i ? "," : "{", 199 - i, i);
	uar_buf_printf(&v, ",\"x\":\"c77\"}");
	CHECK_INT(validate(s.p, v.p, &error), UAR_OK);
	v.n -= 4;
	uar_buf_printf(&v, "d\"}");
	CHECK_INT(validate(s.p, v.p, &error), UAR_ESCHEMA);
	CHECK_STR(uar_str_c(error.where), "/x");
	uar_buf_clear(&v);
	for (int i = 0; i < 199; i++)
		uar_buf_printf(&v, "%s\"p%d\":%d", i ? "," : "{", i, i);
	uar_buf_add_char(&v, '}');
	CHECK_INT(validate(s.p, v.p, &error), UAR_ESCHEMA);
	CHECK_STR(uar_str_c(error.text), "required: 'p199' is missing");
	uar_buf_fini(&s);
	uar_buf_fini(&v);
	uar_arena_fini(&arena);
}

/* --- resources and dialects --- */

TEST(references_resolve_through_the_map_only, "")
{
	const struct uar_schema_resource map[] = {
		{ "https://a.example/dir/types.json",
		  parse("{\"$defs\":{\"id\":{\"type\":\"string\",\"minLength\":1},\"list\":{"
			"\"items\":{\"$ref\":"
			"\"#/$defs/id\"}}}}") },
	};
	struct uar_schema_options o = { map, 1, "https://a.example/dir/root.json", false };
	struct uar_schema *s = NULL;

	REQUIRE(!uar_schema_create(
		parse("{\"properties\":{\"ids\":{\"$ref\":\"types.json#/$defs/list\"}}}"), &o, &s,
		NULL));
	CHECK_INT(uar_schema_validate(s, parse("{\"ids\":[\"a\",\"b\"]}"), &scratch, NULL), UAR_OK);
	CHECK_INT(uar_schema_validate(s, parse("{\"ids\":[\"a\",\"\"]}"), &scratch, NULL),
		  UAR_ESCHEMA);
	uar_schema_destroy(s);
	uar_arena_fini(&arena);
	uar_arena_fini(&scratch);
}

TEST(the_metaschema_judges_schemas, "")
{
	static const char meta[] = "{\"$ref\":\"https://json-schema.org/draft/2020-12/schema\"}";

	CHECK_INT(validate(meta, "{\"type\":\"object\",\"properties\":{\"a\":{\"minLength\":1}}}",
			   NULL),
		  UAR_OK);
	CHECK_INT(validate(meta, "{\"properties\":{\"a\":{\"minLength\":-1}}}", NULL), UAR_ESCHEMA);
	CHECK_INT(validate(meta, meta, NULL), UAR_OK);
	uar_arena_fini(&arena);
}

/* What tools written for older drafts send. */
TEST(older_drafts_are_understood, "")
{
	static const char old[] =
		"{\"$schema\":\"http://json-schema.org/draft-07/"
		"schema#\",\"type\":\"object\",\"properties\":"
		"{\"t\":{\"items\":[{\"type\":\"string\"},{\"type\":\"number\"}],"
		"\"additionalItems\":false},\"r\":"
		"{\"$ref\":\"#/definitions/d\"}},\"definitions\":{\"d\":{\"type\":\"null\"}}}";

	CHECK_INT(validate(old, "{\"t\":[\"a\",1],\"r\":null}", NULL), UAR_OK);
	CHECK_INT(validate(old, "{\"t\":[1,1]}", NULL), UAR_ESCHEMA);
	CHECK_INT(validate(old, "{\"t\":[\"a\",1,2]}", NULL), UAR_ESCHEMA);
	CHECK_INT(validate(old, "{\"r\":1}", NULL), UAR_ESCHEMA);
	uar_arena_fini(&arena);
}

TEST(formats_are_asserted_on_demand, "")
{
	struct uar_schema_options o = { .check_formats = true };
	struct uar_schema *s = NULL;
	struct uar_error error = { 0 };

	CHECK_INT(validate("{\"format\":\"date\"}", "\"never\"", NULL), UAR_OK);
	REQUIRE(!uar_schema_create(parse("{\"format\":\"date\"}"), &o, &s, NULL));
	CHECK_INT(uar_schema_validate(s, parse("\"2024-02-29\""), &scratch, NULL), UAR_OK);
	CHECK_INT(uar_schema_validate(s, parse("\"2023-02-29\""), &scratch, &error), UAR_ESCHEMA);
	CHECK_STR(uar_str_c(error.text), "format: not a valid date");
	uar_schema_destroy(s);
	uar_arena_fini(&arena);
	uar_arena_fini(&scratch);
}

TEST(numbers_are_exact, "")
{
	CHECK_INT(validate("{\"maximum\":18446744073709551615}", "18446744073709551616", NULL),
		  UAR_ESCHEMA);
	CHECK_INT(validate("{\"multipleOf\":0.01}", "19.99", NULL), UAR_OK);
	CHECK_INT(validate("{\"multipleOf\":1e-8}", "12391239123", NULL), UAR_OK);
	CHECK_INT(validate("{\"multipleOf\":3}", "9007199254740993", NULL), UAR_OK);
	CHECK_INT(validate("{\"multipleOf\":3}", "9007199254740992", NULL), UAR_ESCHEMA);
	CHECK_INT(validate("{\"multipleOf\":1e300}", "5", NULL), UAR_ESCHEMA);
	CHECK_INT(validate("{\"multipleOf\":5e-1}", "1e308", NULL), UAR_OK);
	CHECK_INT(validate("{\"type\":\"integer\"}", "1e300", NULL), UAR_OK);
	CHECK_INT(validate("{\"type\":\"integer\"}", "1.5", NULL), UAR_ESCHEMA);
	uar_arena_fini(&arena);
}

/* --- lack of memory --- */

static const char rich[] =
	"{\"$id\":\"http://x.example/"
	"r\",\"$defs\":{\"a\":{\"$anchor\":\"a\",\"type\":\"string\",\"pattern\":"
	"\"^[\\\\p{L}]+$\"},\"n\":{\"$dynamicAnchor\":\"n\",\"$ref\":"
	"\"https://json-schema.org/draft/2020-12/meta/"
	"content\"}},\"properties\":{\"p\":{\"$ref\":\"#a\"},"
	"\"q\":{\"$dynamicRef\":\"#n\"},\"r\":{\"enum\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\","
	"\"8\",\"9\",\"10\","
	"\"11\",\"12\",\"13\",\"14\",\"15\",\"16\",\"17\"]},\"u\":{\"uniqueItems\":true}},"
	"\"patternProperties\":"
	"{\"^x\":{\"format\":\"email\"}},\"dependentSchemas\":{\"p\":{\"required\":[\"q\"]}},"
	"\"anyOf\":[{\"properties\":{\"y\":{}}},{\"required\":[\"z\"]}],\"unevaluatedProperties\":"
	"false}";
static const char rich_value[] = "{\"p\":\"abc\",\"q\":{\"contentEncoding\":\"x\"},\"r\":\"12\","
				 "\"x1\":\"a@b.c\",\"y\":1,\"u\":[1,2,3,4,5,6,"
				 "7,8,9,10,11,12,13,14,15,16,17,18]}";

TEST(survives_every_failed_allocation, "")
{
	struct uar_schema_options o = { .check_formats = true };
	bool failed = true;
	unsigned long n = 1;

	for (; failed; n++) {
		const struct uar_json *schema = NULL, *value = NULL;
		struct uar_buf out = uar_buf_make(65536);
		struct uar_schema *s = NULL;
		struct uar_error error = { 0 };
		uar_err e;

		uar_test_fail_alloc(n);
		e = uar_json_parse(uar_str_c(rich), NULL, &arena, &schema, &error);
		if (!e)
			e = uar_json_parse(uar_str_c(rich_value), NULL, &arena, &value, &error);
		if (!e)
			e = uar_schema_create(schema, &o, &s, &error);
		if (!e)
			e = uar_schema_validate(s, value, &scratch, &error);
		if (!e) {
			uar_json_write(&out, schema);
			e = out.err;
		}
		failed = uar_test_alloc_failed();
		uar_test_fail_alloc(0);
		CHECK_MSG(e == (failed ? UAR_ENOMEM : UAR_OK), "allocation %lu: %s %s", n,
			  uar_err_name(e), error.text);
		uar_schema_destroy(s);
		uar_buf_fini(&out);
		uar_arena_fini(&arena);
		uar_arena_fini(&scratch);
	}
	CHECK(n > 40);
}

/* One long string compared again and again: the bytes are paid for, not the calls. */
TEST(long_values_cost_their_length, "")
{
	struct uar_buf s = uar_buf_make(1 << 22), v = uar_buf_make(1 << 22);

	uar_buf_add_char(&v, '"');
	for (int i = 0; i < 1000000; i++)
		uar_buf_add_char(&v, 'x');
	uar_buf_add_char(&v, '"');
	uar_buf_printf(&s, "{\"$ref\":\"#/$defs/d0\",\"$defs\":{\"d20\":{\"const\":%s}", v.p);
	for (int i = 0; i < 20; i++)
		uar_buf_printf(&s,
			       ",\"d%d\":{\"allOf\":[{\"$ref\":\"#/$defs/d%d\"},{\"$ref\":\"#/"
			       "$defs/d%d\"}]}",
			       i, i + 1, i + 1);
	uar_buf_printf(&s, "}}");
	CHECK_INT(validate(s.p, v.p, NULL), UAR_ETOOBIG);
	uar_buf_fini(&s);
	uar_buf_fini(&v);
	uar_arena_fini(&arena);
}

/* Annotations of a big array over and over: bounded in memory as in time. */
TEST(annotations_are_bounded, "")
{
	struct uar_buf s = uar_buf_make(1 << 20), v = uar_buf_make(1 << 22);

	for (int i = 0; i < 500000; i++)
		uar_buf_add_str(&v, i ? UAR_STR(",1") : UAR_STR("[1"));
	uar_buf_add_char(&v, ']');
	uar_buf_printf(&s, "{\"unevaluatedItems\":false,\"allOf\":[{\"items\":true}");
	for (int i = 0; i < 3000; i++)
		uar_buf_printf(&s, ",{\"prefixItems\":[true]}");
	uar_buf_printf(&s, "]}");
	CHECK_INT(validate(s.p, v.p, NULL), UAR_ETOOBIG);
	uar_buf_fini(&s);
	uar_buf_fini(&v);
	uar_arena_fini(&arena);
}

TEST(a_schema_that_is_used_once, "")
{
	struct uar_error error = { 0 };
	const struct uar_json *j;
	struct uar_arena a;

	uar_arena_init(&a, 0);
	REQUIRE(uar_json_parse(UAR_STR("{\"a\":1}"), NULL, &a, &j, &error) == UAR_OK);
	CHECK_INT(uar_schema_check_text(UAR_STR("{\"type\":\"object\"}"), j, &error), UAR_OK);
	CHECK_INT(uar_schema_check_text(UAR_STR("{\"properties\":{\"a\":{\"type\":\"string\"}}}"),
					j, &error),
		  UAR_ESCHEMA);
	CHECK_STR(uar_str_c(error.where), "/a");
	CHECK_INT(uar_schema_check_text(UAR_STR("{"), j, &error), UAR_ESYNTAX);
	uar_arena_fini(&a);
}
