/* row_test.c - rows and their members: packed, read back, copied, described. */
#include "event/row.h"
#include "test.h"

static struct uar_row_task sample(void)
{
	return (struct uar_row_task){
		.row = { .kind = UAR_ROW_TASK,
			 .id = UAR_STR("t1"),
			 .status = UAR_STR("running"),
			 .open = true },
		.title = UAR_STR("write \"the\" report"),
		.visibility = UAR_STR("foreground"),
		.acceptance = UAR_STR("[{\"id\":\"a\",\"text\":\"b\"}]"),
		.attempts = 3,
		.progress = 0.25,
		.has_progress = true,
		.started_at = 1700000000123456,
	};
}

TEST(a_row_is_packed_and_read_back, "")
{
	struct uar_row_task in = sample(), out;
	struct uar_error error = { 0 };
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	REQUIRE(uar_row_pack(&in, &arena, &error) == UAR_OK);
	CHECK_STR(in.row.body,
		  "{\"title\":\"write \\\"the\\\" report\",\"visibility\":\"foreground\","
		  "\"acceptance\":[{\"id\":\"a\",\"text\":\"b\"}],\"attempts\":3,\"progress\":0.25,"
		  "\"has_progress\":true,\"started_at\":\"2023-11-14T22:13:20.123456Z\"}");
	REQUIRE(uar_row_unpack(&in.row, &arena, &out, sizeof out, &error) == UAR_OK);
	CHECK_STR(out.row.id, "t1");
	CHECK(out.row.open);
	CHECK_STR(out.title, "write \"the\" report");
	CHECK_STR(out.acceptance, "[{\"id\":\"a\",\"text\":\"b\"}]");
	CHECK_INT(out.attempts, 3);
	CHECK(out.progress == 0.25);
	CHECK_INT(out.started_at, 1700000000123456);
	CHECK_INT(out.title.n, in.title.n);
	CHECK_INT(out.objective.n, 0);
	CHECK_INT(uar_row_unpack(&in.row, &arena, &out, sizeof out - 1, &error), UAR_EINTERNAL);
	uar_arena_fini(&arena);
}

TEST(a_copy_owns_its_strings, "")
{
	struct uar_row_task in = sample(), out;
	char title[] = "mine";
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	in.title = uar_str_c(title);
	REQUIRE(uar_row_copy_typed(&arena, &in, &out));
	title[0] = 'x';
	CHECK_STR(out.title, "mine");
	CHECK_INT(out.attempts, 3);
	CHECK_STR(out.row.status, "running");
	uar_arena_fini(&arena);
}

TEST(a_body_that_is_not_of_its_kind_is_damage, "")
{
	static const char *const bodies[] = {
		"{",
		"[]",
		"{\"colour\":1}",
		"{\"attempts\":\"3\"}",
		"{\"visibility\":\"loud\"}",
		"{\"acceptance\":{}}",
		"{\"started_at\":\"yesterday\"}",
		"{\"has_progress\":1}",
		"{\"root_task_id\":\"two words\"}",
	};
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
		struct uar_row row = { .kind = UAR_ROW_TASK, .body = uar_str_c(bodies[i]) };
		struct uar_row_task out;
		struct uar_error error = { 0 };

		CHECK_MSG(uar_row_unpack(&row, &arena, &out, sizeof out, &error) == UAR_ECORRUPT,
			  "%s", bodies[i]);
	}
	uar_arena_fini(&arena);
}

/* --- members by themselves -------------------------------------------------------------- */

struct order {
	uar_str name, size, extra;
	int64_t count;
	bool fast;
};
static const struct uar_field order_fields[] = {
	{ "name", UAR_F_ID, true, offsetof(struct order, name), 0, NULL, "what" },
	{ "size", UAR_F_WORD, false, offsetof(struct order, size), 0, "small large", NULL },
	{ "extra", UAR_F_ANY, false, offsetof(struct order, extra), 16, NULL, NULL },
	{ "count", UAR_F_INT, false, offsetof(struct order, count), 0, NULL, NULL },
	{ "fast", UAR_F_BOOL, false, offsetof(struct order, fast), 0, NULL, NULL },
};
static const struct uar_fields order_table = { order_fields, ARRAY_LEN(order_fields) };

static uar_err read_order(const char *text, struct uar_arena *arena, struct order *out,
			  uint64_t *given, struct uar_error *error)
{
	const struct uar_json *j;
	uar_err e = uar_json_parse(uar_str_c(text), NULL, arena, &j, error);

	*out = (struct order){ 0 };
	return e ? e : uar_fields_read(&order_table, j, arena, out, given, error);
}

TEST(members_say_what_was_given_and_what_is_wrong, "")
{
	static const struct {
		const char *text, *where, *says;
		uar_err err;
	} bad[] = {
		{ "{}", "/name", "\"name\" must be given", UAR_EINVALID },
		{ "{\"name\":null}", "/name", "\"name\" must be given", UAR_EINVALID },
		{ "{\"name\":\"\"}", "/name", NULL, UAR_EINVALID },
		{ "{\"name\":\"x\",\"size\":\"huge\"}", "/size",
		  "\"size\" must be one of: small large", UAR_EINVALID },
		{ "{\"name\":\"x\",\"count\":1.5}", "/count", "\"count\" must be a whole number",
		  UAR_EINVALID },
		{ "{\"name\":\"x\",\"nmae\":1}", "/nmae", "there is no member \"nmae\"",
		  UAR_EINVALID },
		{ "{\"name\":\"x\",\"extra\":\"0123456789abcdef\"}", "/extra",
		  "\"extra\" must be at most 16 bytes long", UAR_ETOOBIG },
	};
	struct uar_arena arena;
	struct order out;
	uint64_t given;

	uar_arena_init(&arena, 0);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct uar_error error = { 0 };

		CHECK_MSG(read_order(bad[i].text, &arena, &out, &given, &error) == bad[i].err, "%s",
			  bad[i].text);
		CHECK_STR(uar_str_c(error.where), bad[i].where);
		if (bad[i].says)
			CHECK_STR(uar_str_c(error.text), bad[i].says);
	}
	CHECK_INT(read_order("{\"name\":\"x\",\"fast\":false,\"extra\":null}", &arena, &out, &given,
			     NULL),
		  UAR_OK);
	CHECK_INT(given, 1 | 4 | 16);
	CHECK_STR(out.extra, "null");
	CHECK_INT(read_order("{\"name\":\"x\",\"count\":7,\"size\":\"small\"}", &arena, &out,
			     &given, NULL),
		  UAR_OK);
	CHECK_INT(out.count, 7);
	CHECK_INT(given, 1 | 2 | 8);
	uar_arena_fini(&arena);
}

TEST(members_describe_themselves_as_a_schema, "")
{
	struct uar_buf text = uar_buf_make(4096);
	struct uar_jw w = uar_jw_begin(&text);

	uar_fields_schema(&w, NULL, &order_table);
	CHECK_INT(uar_jw_end(&w), UAR_OK);
	CHECK_STR(uar_buf_str(&text),
		  "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\","
		  "\"minLength\":1,"
		  "\"maxLength\":128,\"description\":\"what\"},\"size\":{\"type\":\"string\","
		  "\"enum\":[\"small\",\"large\"]},\"extra\":{},\"count\":{\"type\":\"integer\"},"
		  "\"fast\":{\"type\":\"boolean\"}},\"required\":[\"name\"],"
		  "\"additionalProperties\":false}");
	uar_buf_fini(&text);
}
