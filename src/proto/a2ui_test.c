/* a2ui_test.c - recorded runs as A2UI messages, byte for byte, and what a recording lacks.
 *
 * fixtures/ag_ui has the events of real runs (x.jsonl), fixtures/a2ui what a stream of each
 * has to be (x.sse). With UAR_TEST_WRITE=1 the latter are written. */
#include "proto/a2ui.h"

#include "base/alloc.h"
#include "json/jw.h"
#include "recorded.h"
#include "test.h"

struct reader {
	void *state;
	struct uar_buf out;
	struct uar_arena arena;
	uint64_t number;
};

static void begin(struct reader *r)
{
	struct uar_dialect_options o = { 0 };

	*r = (struct reader){ .out = uar_buf_make(RECORDED_MOST) };
	r->state = uar_zalloc(uar_a2ui.state_size);
	CHECK_INT(uar_a2ui.begin(r->state, &o), UAR_OK);
}

static void fini(struct reader *r)
{
	uar_a2ui.end(r->state);
	uar_free(r->state);
	uar_buf_fini(&r->out);
	uar_arena_fini(&r->arena);
}

static uint32_t show(struct reader *r, const struct uar_event *ev)
{
	struct uar_frames frames = { .out = &r->out, .run_sequence = ev->run_sequence };

	CHECK_INT(uar_a2ui.encode(r->state, ev, &r->arena, &frames), UAR_OK);
	return frames.count;
}

/* An event that a recording does not have, so many milliseconds after the last one. */
static uint32_t add(struct reader *r, enum uar_event_class cls, const char *payload, int64_t ms)
{
	static int64_t now = 1;
	struct uar_event ev = { .cls = cls,
				.run_sequence = ++r->number,
				.time_us = now += ms * 1000,
				.payload = uar_str_c(payload) };

	ev.ids[UAR_ID_RUN] = UAR_STR("R");
	ev.ids[UAR_ID_THREAD] = UAR_STR("T");
	ev.ids[UAR_ID_ACTION] = UAR_STR("a1");
	uar_buf_clear(&r->out);
	return show(r, &ev);
}

static bool shows(const struct reader *r, const char *part)
{
	bool has = r->out.n && strstr(r->out.p, part);

	CHECK_MSG(has, "no %s in %s", part, r->out.n ? r->out.p : "nothing");
	return has;
}

/* --- golden files -------------------------------------------------------------------- */

static void check_recording(const char *name)
{
	struct recorded log;
	struct uar_event ev;
	struct reader r;

	begin(&r);
	recorded_open(&log, name);
	while (recorded_next(&log, &ev))
		show(&r, &ev);
	recorded_compare("a2ui", name, "sse", &r.out);
	fini(&r);
	recorded_close(&log);
}

TEST(recorded_runs_have_these_messages, "A2UI-04 A2UI-05")
{
	for (const char *const *name = recorded_names; *name; name++)
		check_recording(*name);
}

/* --- what no recording has ------------------------------------------------------------ */

TEST(text_is_sent_again_when_it_has_grown, "")
{
	struct reader r;
	size_t sent = 0, n = 0;

	begin(&r);
	add(&r, UAR_EV_TASK_QUEUED, "{}", 0);
	for (int i = 0; i < 4000; i++) {
		sent += add(&r, UAR_EV_MODEL_DELTA,
			    "{\"message_id\":\"m\",\"text\":\"0123456789\"}", 101)
				? r.out.n
				: 0;
		n += 10;
	}
	CHECK_MSG(sent < 40 * n, "%zu bytes for %zu", sent, n);
	CHECK_INT(add(&r, UAR_EV_MODEL_COMPLETED, "{}", 0), 1);
	CHECK(r.out.n > n);
	fini(&r);
}

TEST(a_form_has_a_field_for_each_property, "A2UI-03")
{
	static const char asked[] =
		"{\"action_type\":\"form\",\"prompt\":\"Who?\",\"schema\":{\"type\":\"object\","
		"\"required\":[\"name\",\"age\"],\"properties\":{"
		"\"name\":{\"type\":\"string\",\"title\":\"Name\",\"minLength\":2,"
		"\"description\":\"As in the passport\"},"
		"\"mail\":{\"type\":\"string\",\"format\":\"email\"},"
		"\"age\":{\"type\":\"integer\",\"minimum\":0},"
		"\"level\":{\"type\":\"number\",\"minimum\":0,\"maximum\":10,\"default\":3},"
		"\"terms\":{\"type\":\"boolean\",\"const\":true},"
		"\"color\":{\"enum\":[\"red\",\"green\"],\"default\":\"red\"},"
		"\"days\":{\"type\":\"array\",\"items\":{\"enum\":[\"mon\",\"tue\"]}},"
		"\"born\":{\"type\":\"string\",\"format\":\"date\"},"
		"\"secret\":{\"type\":\"string\",\"writeOnly\":true},"
		"\"tags\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
		"\"any\":{},\"a/b\":{\"type\":\"object\",\"properties\":{\"c\":{\"type\":"
		"\"string\"}}}}}}";
	struct uar_buf all = uar_buf_make(RECORDED_MOST);
	struct reader r;

	begin(&r);
	add(&r, UAR_EV_TASK_QUEUED, "{}", 0);
	uar_buf_add_str(&all, uar_buf_str(&r.out));
	CHECK_INT(add(&r, UAR_EV_ACTION_REQUIRED, asked, 0), 3);
	uar_buf_add_str(&all, uar_buf_str(&r.out));
	shows(&r, "\"surfaceId\":\"form-a1\"");
	shows(&r, "\"sendDataModel\":true");
	shows(&r, "\"level\":3,\"terms\":false,\"color\":[\"red\"],\"days\":[]");
	shows(&r,
	      "{\"id\":\"f_a_b_c\",\"component\":\"TextField\",\"label\":\"c\",\"value\":{\"path\":"
	      "\"/form/a~1b/c\"}");
	recorded_compare("a2ui", "form", "sse", &all);
	uar_buf_fini(&all);
	CHECK_INT(add(&r, UAR_EV_ACTION_RESOLVED, "{}", 0), 1);
	shows(&r, "\"deleteSurface\":{\"surfaceId\":\"form-a1\"}");
	fini(&r);
}

static void coerced(const char *schema, const char *values, const char *want)
{
	struct uar_arena arena = { 0 };
	struct uar_buf out = uar_buf_make(RECORDED_MOST);
	struct uar_jw w = uar_jw_begin(&out);
	const struct uar_json *s = NULL, *v = NULL;

	CHECK(!uar_json_parse(uar_str_c(schema), NULL, &arena, &s, NULL));
	CHECK(!uar_json_parse(uar_str_c(values), NULL, &arena, &v, NULL));
	uar_a2ui_coerce(s, v, &w);
	CHECK(!uar_jw_end(&w));
	CHECK_STR(uar_buf_str(&out), want);
	uar_buf_fini(&out);
	uar_arena_fini(&arena);
}

TEST(values_of_fields_become_values_of_the_schema, "")
{
	coerced("{\"properties\":{\"n\":{\"type\":\"integer\"},\"e\":{\"type\":\"integer\"}}}",
		"{\"n\":\"36\",\"e\":\"\"}", "{\"n\":36}");
	coerced("{\"properties\":{\"c\":{\"enum\":[\"a\"]},\"d\":{\"enum\":[\"a\"]}}}",
		"{\"c\":[\"a\"],\"d\":[]}", "{\"c\":\"a\"}");
	coerced("{\"properties\":{\"t\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}}}",
		"{\"t\":\"a\\n b \\n\"}", "{\"t\":[\"a\",\"b\"]}");
	coerced("{\"properties\":{\"w\":{\"type\":\"string\",\"format\":\"date-time\"},\"j\":{}}}",
		"{\"w\":\"2026-01-15T12:00\",\"j\":\"{\\\"a\\\":1}\"}",
		"{\"w\":\"2026-01-15T12:00:00Z\",\"j\":{\"a\":1}}");
	coerced("{\"properties\":{\"o\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":"
		"\"number\"}}}}}",
		"{\"o\":{\"n\":\"1.5\"},\"x\":true}", "{\"o\":{\"n\":1.5},\"x\":true}");
}
