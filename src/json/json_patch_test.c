/* json_patch_test.c - every operation, every refusal, and the bounds. */
#include "json/json.h"
#include "json/limits.h"
#include "test.h"

static struct uar_arena arena;

static const struct {
	const char *doc, *patch, *want; /* want NULL: refused with `code` */
	uar_err code;
} cases[] = {
	/* the examples of the standard's appendix, in other words */
	{ "{\"foo\":\"bar\"}", "[{\"op\":\"add\",\"path\":\"/baz\",\"value\":\"qux\"}]",
	  "{\"foo\":\"bar\",\"baz\":\"qux\"}", UAR_OK },
	{ "{\"foo\":[\"bar\",\"baz\"]}", "[{\"op\":\"add\",\"path\":\"/foo/1\",\"value\":\"qux\"}]",
	  "{\"foo\":[\"bar\",\"qux\",\"baz\"]}", UAR_OK },
	{ "{\"baz\":\"qux\",\"foo\":\"bar\"}", "[{\"op\":\"remove\",\"path\":\"/baz\"}]",
	  "{\"foo\":\"bar\"}", UAR_OK },
	{ "{\"foo\":[1,2,3]}", "[{\"op\":\"remove\",\"path\":\"/foo/1\"}]", "{\"foo\":[1,3]}",
	  UAR_OK },
	{ "{\"baz\":\"qux\",\"foo\":\"bar\"}",
	  "[{\"op\":\"replace\",\"path\":\"/baz\",\"value\":\"boo\"}]",
	  "{\"baz\":\"boo\",\"foo\":\"bar\"}", UAR_OK },
	{ "{\"foo\":{\"bar\":\"baz\",\"waldo\":\"fred\"},\"qux\":{\"corge\":\"grault\"}}",
	  "[{\"op\":\"move\",\"from\":\"/foo/waldo\",\"path\":\"/qux/thud\"}]",
	  "{\"foo\":{\"bar\":\"baz\"},\"qux\":{\"corge\":\"grault\",\"thud\":\"fred\"}}", UAR_OK },
	{ "{\"foo\":[1,2,3,4]}", "[{\"op\":\"move\",\"from\":\"/foo/1\",\"path\":\"/foo/3\"}]",
	  "{\"foo\":[1,3,4,2]}", UAR_OK },
	{ "{\"baz\":\"qux\",\"foo\":[\"a\",2,\"c\"]}",
	  "[{\"op\":\"test\",\"path\":\"/baz\",\"value\":\"qux\"},"
	  "{\"op\":\"test\",\"path\":\"/foo/1\",\"value\":2.0}]",
	  "{\"baz\":\"qux\",\"foo\":[\"a\",2,\"c\"]}", UAR_OK },
	{ "{\"baz\":\"qux\"}", "[{\"op\":\"test\",\"path\":\"/baz\",\"value\":\"bar\"}]", NULL,
	  UAR_ECONFLICT },
	{ "{\"foo\":\"bar\"}", "[{\"op\":\"add\",\"path\":\"/child\",\"value\":{\"g\":{}}}]",
	  "{\"foo\":\"bar\",\"child\":{\"g\":{}}}", UAR_OK },
	{ "{}", "[{\"op\":\"add\",\"path\":\"/a\",\"value\":1,\"xyz\":123}]", "{\"a\":1}", UAR_OK },
	{ "{\"foo\":\"bar\"}", "[{\"op\":\"add\",\"path\":\"/baz/bat\",\"value\":\"qux\"}]", NULL,
	  UAR_ENOTFOUND },
	{ "{\"/\":9,\"~1\":10}", "[{\"op\":\"test\",\"path\":\"/~01\",\"value\":10}]",
	  "{\"/\":9,\"~1\":10}", UAR_OK },
	{ "{\"/\":9,\"~1\":10}", "[{\"op\":\"test\",\"path\":\"/~01\",\"value\":\"10\"}]", NULL,
	  UAR_ECONFLICT },
	{ "{\"foo\":[\"bar\"]}",
	  "[{\"op\":\"add\",\"path\":\"/foo/-\",\"value\":[\"abc\",\"def\"]}]",
	  "{\"foo\":[\"bar\",[\"abc\",\"def\"]]}", UAR_OK },
	/* the whole document */
	{ "{\"a\":1}", "[]", "{\"a\":1}", UAR_OK },
	{ "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"\",\"value\":[1]}]", "[1]", UAR_OK },
	{ "{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"\",\"value\":null}]", "null", UAR_OK },
	{ "{\"a\":{\"b\":2}}", "[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"\"}]", "{\"b\":2}",
	  UAR_OK },
	{ "{\"a\":{\"b\":2}}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"\"}]", "{\"b\":2}",
	  UAR_OK },
	{ "{\"a\":1}", "[{\"op\":\"test\",\"path\":\"\",\"value\":{\"a\":1}}]", "{\"a\":1}",
	  UAR_OK },
	{ "{}", "[{\"op\":\"remove\",\"path\":\"\"}]", NULL, UAR_EINVALID },
	/* edges of arrays */
	{ "[]", "[{\"op\":\"add\",\"path\":\"/0\",\"value\":1}]", "[1]", UAR_OK },
	{ "[]", "[{\"op\":\"add\",\"path\":\"/1\",\"value\":1}]", NULL, UAR_ENOTFOUND },
	{ "[1]", "[{\"op\":\"add\",\"path\":\"/1\",\"value\":2}]", "[1,2]", UAR_OK },
	{ "[1]", "[{\"op\":\"remove\",\"path\":\"/1\"}]", NULL, UAR_ENOTFOUND },
	{ "[1]", "[{\"op\":\"remove\",\"path\":\"/-\"}]", NULL, UAR_ENOTFOUND },
	{ "[1]", "[{\"op\":\"replace\",\"path\":\"/-\",\"value\":1}]", NULL, UAR_ENOTFOUND },
	{ "[1]", "[{\"op\":\"add\",\"path\":\"/01\",\"value\":1}]", NULL, UAR_EINVALID },
	{ "[1]", "[{\"op\":\"add\",\"path\":\"/x\",\"value\":1}]", NULL, UAR_EINVALID },
	{ "[1]", "[{\"op\":\"add\",\"path\":\"/-1\",\"value\":1}]", NULL, UAR_EINVALID },
	{ "[1]",
	  "[{\"op\":\"remove\",\"path\":\"/0\"},{\"op\":\"add\",\"path\":\"/-\",\"value\":2}]",
	  "[2]", UAR_OK },
	/* keys */
	{ "{\"a\":1,\"b\":2}", "[{\"op\":\"add\",\"path\":\"/a\",\"value\":{\"x\":1}}]",
	  "{\"a\":{\"x\":1},\"b\":2}", UAR_OK },
	{ "{}", "[{\"op\":\"add\",\"path\":\"/a~1b~0c\",\"value\":1}]", "{\"a/b~c\":1}", UAR_OK },
	{ "{}", "[{\"op\":\"add\",\"path\":\"/\",\"value\":1}]", "{\"\":1}", UAR_OK },
	{ "{\"a\":null}", "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":null}]", "{\"a\":null}",
	  UAR_OK },
	/* a value brought in is edited by the next operation, not the patch itself */
	{ "{}",
	  "[{\"op\":\"add\",\"path\":\"/a\",\"value\":{\"x\":[]}},"
	  "{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/b\"},"
	  "{\"op\":\"add\",\"path\":\"/a/x/-\",\"value\":1},"
	  "{\"op\":\"copy\",\"from\":\"/b\",\"path\":\"/b/x/-\"}]",
	  "{\"a\":{\"x\":[1]},\"b\":{\"x\":[{\"x\":[]}]}}", UAR_OK },
	{ "{\"a\":1}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/a\"}]", "{\"a\":1}", UAR_OK },
	/* refusals */
	{ "{\"a\":{}}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/a/b\"}]", NULL,
	  UAR_EINVALID },
	{ "{\"a\":{},\"ab\":{}}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/ab/b\"}]",
	  "{\"ab\":{\"b\":{}}}", UAR_OK },
	{ "{\"a\":1}", "[{\"op\":\"move\",\"from\":\"/x\",\"path\":\"/y\"}]", NULL, UAR_ENOTFOUND },
	{ "{\"a\":1}", "[{\"op\":\"copy\",\"from\":\"/x\",\"path\":\"/y\"}]", NULL, UAR_ENOTFOUND },
	{ "{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"/x\",\"value\":1}]", NULL, UAR_ENOTFOUND },
	{ "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/a/b\",\"value\":1}]", NULL, UAR_ENOTFOUND },
	{ "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"a\",\"value\":1}]", NULL, UAR_EINVALID },
	{ "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/a~\",\"value\":1}]", NULL, UAR_EINVALID },
	{ "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/a~2\",\"value\":1}]", NULL, UAR_EINVALID },
	{ "{}", "[{\"op\":\"add\",\"path\":\"/a\"}]", NULL, UAR_EINVALID },
	{ "{}", "[{\"op\":\"copy\",\"path\":\"/a\"}]", NULL, UAR_EINVALID },
	{ "{}", "[{\"op\":\"frob\",\"path\":\"/a\"}]", NULL, UAR_EINVALID },
	{ "{}", "[{\"path\":\"/a\",\"value\":1}]", NULL, UAR_EINVALID },
	{ "{}", "[{\"op\":\"add\",\"value\":1}]", NULL, UAR_EINVALID },
	{ "{}", "[{\"op\":\"add\",\"path\":1,\"value\":1}]", NULL, UAR_EINVALID },
	{ "{}", "[1]", NULL, UAR_EINVALID },
	{ "{}", "{}", NULL, UAR_EINVALID },
};

TEST(applies_or_refuses_every_case, "")
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct uar_json *doc = NULL, *patch = NULL, *out = NULL;
		struct uar_buf before = uar_buf_make(4096), after = uar_buf_make(4096);
		uar_err e;

		REQUIRE(!uar_json_parse(uar_str_c(cases[i].doc), NULL, &arena, &doc, NULL));
		REQUIRE(!uar_json_parse(uar_str_c(cases[i].patch), NULL, &arena, &patch, NULL));
		e = uar_json_patch(doc, patch, &arena, &out, NULL);
		CHECK_MSG(e == cases[i].code, "%s: %s", cases[i].patch, uar_err_name(e));
		CHECK((e == UAR_OK) == (out != NULL));
		if (out && cases[i].want) {
			uar_json_write(&after, out);
			CHECK_STR(uar_buf_str(&after), cases[i].want);
		}
		uar_json_write(&before, doc); /* the old tree is untouched */
		CHECK_STR(uar_buf_str(&before), cases[i].doc);
		uar_buf_fini(&before);
		uar_buf_fini(&after);
	}
	uar_arena_fini(&arena);
}

TEST(a_failed_operation_is_named, "")
{
	const struct uar_json *doc, *patch, *out;
	struct uar_error error = { 0 };

	REQUIRE(!uar_json_parse(UAR_STR("{}"), NULL, &arena, &doc, NULL));
	REQUIRE(!uar_json_parse(UAR_STR("[{\"op\":\"add\",\"path\":\"/a\",\"value\":1},"
					"{\"op\":\"remove\",\"path\":\"/b\"}]"),
				NULL, &arena, &patch, NULL));
	CHECK_INT(uar_json_patch(doc, patch, &arena, &out, &error), UAR_ENOTFOUND);
	CHECK_STR(uar_str_c(error.where), "/1");
	uar_arena_fini(&arena);
}

static uar_err repeat(const char *doc_text, const char *op, unsigned times, uar_err *out_last)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	const struct uar_json *doc, *patch, *out;
	uar_err e;

	uar_buf_add_char(&b, '[');
	for (unsigned i = 0; i < times; i++)
		uar_buf_printf(&b, "%s%s", i ? "," : "", op);
	uar_buf_add_char(&b, ']');
	e = uar_json_parse(uar_str_c(doc_text), NULL, &arena, &doc, NULL);
	if (!e)
		e = uar_json_parse(uar_buf_str(&b), NULL, &arena, &patch, NULL);
	if (!e)
		*out_last = uar_json_patch(doc, patch, &arena, &out, NULL);
	uar_buf_fini(&b);
	uar_arena_fini(&arena);
	return e;
}

TEST(growth_is_bounded, "")
{
	uar_err last = UAR_OK;

	/* each copy doubles the document */
	CHECK_INT(repeat("[[1]]", "{\"op\":\"copy\",\"from\":\"\",\"path\":\"/-\"}", 60, &last),
		  UAR_OK);
	CHECK_INT(last, UAR_ETOOBIG);
	/* each copy nests it one deeper */
	CHECK_INT(repeat("{\"a\":{}}", "{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/a/a\"}", 100,
			 &last),
		  UAR_OK);
	CHECK(last == UAR_EDEPTH || last == UAR_ETOOBIG);
	CHECK_INT(repeat("[]", "{\"op\":\"add\",\"path\":\"/-\",\"value\":1}", 10000, &last),
		  UAR_OK);
	CHECK(last == UAR_OK || last == UAR_ETOOBIG);
	CHECK_INT(repeat("[]", "{\"op\":\"add\",\"path\":\"/-\",\"value\":1}", 10001, &last),
		  UAR_OK);
	CHECK_INT(last, UAR_ETOOBIG);
}

/* Reader with many keys and escapes, patch, equality and writer, each allocation
 * failing once. */
TEST(survives_every_failed_allocation, "")
{
	static const char ops[] = "[{\"op\":\"add\",\"path\":\"/n~1ew\",\"value\":{\"x\":[1,2]}},"
				  "{\"op\":\"move\",\"from\":\"/k1\",\"path\":\"/k2\"}]";
	struct uar_buf text = uar_buf_make(65536);
	bool failed = true;

	for (unsigned i = 0; i < 100; i++)
		uar_buf_printf(&text, "%s\"k%u\":\"\\u00e4 %u\"", i ? "," : "{", i, i);
	uar_buf_add_char(&text, '}');
	for (unsigned long n = 1; failed; n++) {
		const struct uar_json *doc = NULL, *patch = NULL, *out = NULL, *again = NULL;
		struct uar_buf written = uar_buf_make(65536);
		uar_err e;

		uar_test_fail_alloc(n);
		e = uar_json_parse(uar_buf_str(&text), NULL, &arena, &doc, NULL);
		if (!e)
			e = uar_json_parse(uar_str_c(ops), NULL, &arena, &patch, NULL);
		if (!e)
			e = uar_json_patch(doc, patch, &arena, &out, NULL);
		if (!e) {
			uar_json_write(&written, out);
			e = written.err;
		}
		if (!e)
			e = uar_json_parse(uar_buf_str(&written), NULL, &arena, &again, NULL);
		failed = uar_test_alloc_failed();
		uar_test_fail_alloc(0);
		CHECK_MSG(e == (failed ? UAR_ENOMEM : UAR_OK), "allocation %lu: %s", n,
			  uar_err_name(e));
		CHECK(e || uar_json_equal(out, again));
		uar_buf_fini(&written);
		uar_arena_fini(&arena);
	}
	uar_buf_fini(&text);
}
