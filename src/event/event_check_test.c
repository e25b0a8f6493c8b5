/* event_check_test.c - nothing that breaks its contract passes the check.
 *
 * The payloads are made from the schemas: one with all members is valid, and
 * every single way of breaking it that the schema forbids must be refused. */
#include "test.h"

#include <pthread.h>

#include "event/event_int.h"
#include "event/event_sample.h"
#include "event/limits.h"

/* --- a payload from its schema --- */

struct maker {
	struct uar_jw w;
	const struct uar_json *common;
	bool full;	/* optional members too */
	int at, target; /* breaks the target-th thing that can be broken; -1: none */
};

/* Is this the thing to break? */
static bool breaks(struct maker *m)
{
	return m->at++ == m->target;
}

static void make_value(struct maker *m, const struct uar_json *s);

static bool is_required(const struct uar_json *s, uar_str name)
{
	const struct uar_json *list = uar_json_get(s, UAR_STR("required"));

	for (const struct uar_json *j = list ? list->first : NULL; j; j = j->next)
		if (uar_str_eq(j->text, name))
			return true;
	return false;
}

static void make_object(struct maker *m, const struct uar_json *s)
{
	const struct uar_json *props = uar_json_get(s, UAR_STR("properties"));
	const struct uar_json *rest = uar_json_get(s, UAR_STR("additionalProperties"));

	uar_jw_obj(&m->w, NULL);
	for (const struct uar_json *p = props ? props->first : NULL; p; p = p->next) {
		bool required = is_required(s, p->key);

		if ((!required && !m->full) || (required && breaks(m)))
			continue;
		uar_jw_key(&m->w, p->key);
		make_value(m, p);
	}
	if (rest && m->full) {
		uar_jw_key(&m->w, UAR_STR("anything"));
		make_value(m, rest);
	}
	uar_jw_close(&m->w);
}

static void make_string(struct maker *m, const struct uar_json *s)
{
	static char many[4096];
	int64_t min = uar_json_int(uar_json_get(s, UAR_STR("minLength")), 0);
	int64_t max = uar_json_int(uar_json_get(s, UAR_STR("maxLength")), -1);
	bool time = uar_str_is(uar_json_str(uar_json_get(s, UAR_STR("format")), UAR_STR_NONE),
			       "date-time");

	memset(many, 'a', sizeof many);
	if (min > 0 && breaks(m))
		uar_jw_str(&m->w, NULL, uar_str_n(many, (size_t)min - 1));
	else if (max >= 0 && breaks(m))
		uar_jw_str(&m->w, NULL, uar_str_n(many, (size_t)max + 1));
	else if (time)
		uar_jw_cstr(&m->w, NULL, breaks(m) ? "yesterday" : "2026-01-02T03:04:05.000006Z");
	else
		uar_jw_str(&m->w, NULL, uar_str_n(many, (size_t)min));
}

static void make_number(struct maker *m, const struct uar_json *s, bool integer)
{
	const struct uar_json *min = uar_json_get(s, UAR_STR("minimum"));
	const struct uar_json *max = uar_json_get(s, UAR_STR("maximum"));

	if (min && breaks(m))
		uar_jw_int(&m->w, NULL, min->i - 1);
	else if (max && breaks(m))
		uar_jw_double(&m->w, NULL, (double)max->i + 0.5);
	else if (integer && breaks(m))
		uar_jw_double(&m->w, NULL, 1.5);
	else
		uar_jw_int(&m->w, NULL, min ? min->i : INT64_MAX);
}

static void make_typed(struct maker *m, const struct uar_json *s, uar_str type)
{
	if (uar_str_is(type, "object")) {
		make_object(m, s);
	} else if (uar_str_is(type, "array")) {
		uar_jw_arr(&m->w, NULL);
		make_value(m, uar_json_get(s, UAR_STR("items")));
		uar_jw_close(&m->w);
	} else if (uar_str_is(type, "string")) {
		make_string(m, s);
	} else if (uar_str_is(type, "boolean")) {
		uar_jw_bool(&m->w, NULL, true);
	} else if (CHECK(uar_str_is(type, "integer") || uar_str_is(type, "number"))) {
		make_number(m, s, uar_str_is(type, "integer"));
	}
}

/* A value that no type of the catalogue but its own takes. */
static void make_wrong_type(struct maker *m, uar_str type)
{
	if (uar_str_is(type, "array") || uar_str_is(type, "boolean")) {
		uar_jw_int(&m->w, NULL, 1);
	} else {
		uar_jw_arr(&m->w, NULL);
		uar_jw_close(&m->w);
	}
}

static const struct uar_json *resolve(struct maker *m, const struct uar_json *s)
{
	const struct uar_json *ref = uar_json_get(s, UAR_STR("$ref"));
	uar_str pointer;

	if (!ref)
		return s;
	uar_str_cut(ref->text, '#', &pointer);
	return uar_json_pointer(m->common, pointer);
}

static void make_value(struct maker *m, const struct uar_json *s)
{
	const struct uar_json *fixed, *type;
	uar_str name;

	s = resolve(m, s);
	fixed = uar_json_get(s, UAR_STR("const"));
	if (!fixed)
		fixed = uar_json_at(uar_json_get(s, UAR_STR("enum")), 0);
	type = uar_json_get(s, UAR_STR("type"));
	name = uar_json_str(type, uar_json_str(uar_json_at(type, 0), UAR_STR_NONE));
	if (fixed && breaks(m))
		uar_jw_cstr(&m->w, NULL, "none of those");
	else if (fixed)
		uar_jw_tree(&m->w, NULL, fixed);
	else if (!type)
		uar_jw_cstr(&m->w, NULL, "anything");
	else if (breaks(m))
		make_wrong_type(m, name);
	else
		make_typed(m, s, name);
}

struct bed {
	struct uar_arena schemas, scratch;
	struct uar_buf buf;
	struct maker m;
};

static bool bed_init(struct bed *b)
{
	memset(b, 0, sizeof *b);
	b->buf = uar_buf_make(65536);
	return CHECK(
		!uar_json_parse(uar_event_schema_common(), NULL, &b->schemas, &b->m.common, NULL));
}

static void bed_fini(struct bed *b)
{
	uar_arena_fini(&b->schemas);
	uar_arena_fini(&b->scratch);
	uar_buf_fini(&b->buf);
}

/* The payload of a class with its target-th thing broken; is there such a thing? */
static bool make_payload(struct bed *b, enum uar_event_class cls, bool full, int target)
{
	const struct uar_json *schema = NULL;

	uar_buf_clear(&b->buf);
	b->m.w = uar_jw_begin(&b->buf);
	b->m.full = full;
	b->m.at = 0;
	b->m.target = target;
	if (!CHECK(!uar_json_parse(uar_event_schema(cls), NULL, &b->schemas, &schema, NULL)))
		return false;
	make_value(&b->m, schema);
	CHECK_INT(uar_jw_end(&b->m.w), UAR_OK);
	return b->m.at > target;
}

static uar_err check(struct bed *b, const struct uar_event *ev, struct uar_error *error)
{
	uar_err e = uar_event_check(ev, &b->scratch, error);

	uar_arena_reset(&b->scratch);
	return e;
}

/* --- payloads --- */

TEST(payloads_are_typed, "EVT-009")
{
	struct bed b;

	REQUIRE(bed_init(&b));
	for (int cls = 0; cls < UAR_EV_VENDOR; cls++) {
		for (int full = 0; full < 2; full++) {
			struct uar_error error = { 0 };
			struct uar_event ev;

			make_payload(&b, cls, full, -1);
			ev = uar_event_sample(cls, uar_buf_str(&b.buf));
			CHECK_MSG(check(&b, &ev, &error) == UAR_OK, "%s: %s %s: %s",
				  uar_event_info[cls].type, error.where, error.text, b.buf.p);
		}
	}
	bed_fini(&b);
}

TEST(every_broken_payload_is_refused, "EVT-009")
{
	int broken = 0;
	struct bed b;

	REQUIRE(bed_init(&b));
	for (int cls = 0; cls < UAR_EV_VENDOR; cls++) {
		for (int target = 0; make_payload(&b, cls, true, target); target++, broken++) {
			struct uar_event ev = uar_event_sample(cls, uar_buf_str(&b.buf));
			struct uar_error error = { 0 };
			uar_err e = check(&b, &ev, &error);

			CHECK_MSG(e == UAR_ESCHEMA || (target == 0 && e == UAR_EINVALID),
				  "%s, breach %d: %s accepted as %s", uar_event_info[cls].type,
				  target, b.buf.p, uar_err_name(e));
			CHECK_MSG(uar_str_starts(uar_str_c(error.where),
						 uar_str_c(uar_event_info[cls].type)),
				  "%s", error.where);
		}
		uar_arena_reset(&b.schemas);
		REQUIRE(!uar_json_parse(uar_event_schema_common(), NULL, &b.schemas, &b.m.common,
					NULL));
	}
	CHECK_MSG(broken > 1500, "only %d breaches tried", broken);
	bed_fini(&b);
}

TEST(schemas_agree_with_their_rows, "")
{
	struct bed b;

	REQUIRE(bed_init(&b));
	for (int cls = 0; cls < UAR_EV_VENDOR; cls++) {
		const struct uar_json *schema, *models, *refs;
		uar_str rest = uar_str_c(uar_event_info[cls].read_models);

		REQUIRE(!uar_json_parse(uar_event_schema(cls), NULL, &b.schemas, &schema, NULL));
		CHECK_STR(uar_json_str(uar_json_get(schema, UAR_STR("title")), UAR_STR_NONE),
			  uar_event_info[cls].type);
		models = uar_json_get(schema, UAR_STR("x-read-models"));
		REQUIRE(models);
		for (const struct uar_json *j = models->first; j; j = j->next)
			CHECK(uar_str_eq(uar_str_cut(rest, ' ', &rest), j->text));
		CHECK_INT(rest.n, 0);
		refs = uar_json_get(schema, UAR_STR("x-refs"));
		for (const struct uar_json *j = refs ? refs->first : NULL; j; j = j->next)
			CHECK(uar_str_ends(j->key, UAR_STR("_ref")) ||
			      uar_str_ends(j->key, UAR_STR("_refs")));
	}
	bed_fini(&b);
}

TEST(payloads_must_be_objects, "EVT-009")
{
	static const char *const bad[] = {
		"", "null", "[]", "1", "\"x\"", "{", "{}{}", "{\"a\":1,}"
	};
	struct bed b;

	REQUIRE(bed_init(&b));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct uar_event ev = uar_event_sample(UAR_EV_VENDOR, uar_str_c(bad[i]));
		struct uar_error error = { 0 };

		CHECK_MSG(check(&b, &ev, &error) != UAR_OK, "%s", bad[i]);
		CHECK_STR(uar_str_c(error.where), "vendor.acme.benchmark.started#/payload");
	}
	bed_fini(&b);
}

/* --- ids --- */

TEST(every_required_id_is_required, "EVT-006 EVT-007 ID-15")
{
	struct bed b;

	REQUIRE(bed_init(&b));
	for (int cls = 0; cls < UAR_EV_VENDOR; cls++) {
		uint32_t ids = uar_event_info[cls].ids;
		struct uar_event full, ev;

		make_payload(&b, cls, false, -1);
		full = uar_event_sample(cls, uar_buf_str(&b.buf));
		full.run_sequence = ids & UAR_ID_BIT(UAR_ID_RUN) ? 1 : 0;
		for (unsigned i = 0; i < UAR_ID_COUNT; i++)
			if (!(ids & UAR_ID_BIT(i)))
				full.ids[i] = UAR_STR_NONE;
		CHECK_MSG(check(&b, &full, NULL) == UAR_OK, "%s", uar_event_info[cls].type);
		for (unsigned i = 0; i < UAR_ID_COUNT; i++) {
			if (!(ids & UAR_ID_BIT(i)))
				continue;
			ev = full;
			ev.ids[i] = UAR_STR_NONE;
			CHECK_MSG(check(&b, &ev, NULL) == UAR_EINVALID, "%s without %s",
				  uar_event_info[cls].type, uar_id_field(i));
		}
	}
	bed_fini(&b);
}

TEST(families_ask_for_their_scope, "ID-15")
{
	static const struct {
		const char *prefix;
		uint32_t ids;
	} scopes[] = {
		{ "session.", UAR_IDS_SESSION },
		{ "thread.", UAR_IDS_THREAD },
		{ "turn.", UAR_IDS_TURN },
		{ "model.", UAR_IDS_TURN },
		{ "reasoning.", UAR_IDS_TURN },
		{ "context.", UAR_IDS_TURN },
		{ "permission.", UAR_IDS_TURN },
		{ "sandbox.", UAR_IDS_TURN },
		{ "action.", UAR_IDS_TURN | UAR_ID_BIT(UAR_ID_ACTION) },
		{ "task.", UAR_IDS_TASK },
		{ "task.attempt.", UAR_IDS_RUN },
		{ "run.", UAR_IDS_RUN },
		{ "tool.catalog.", UAR_IDS_TURN },
		{ "tool.started", UAR_IDS_CALL },
		{ "tool.args", UAR_IDS_CALL },
		{ "tool.progress", UAR_IDS_CALL },
		{ "tool.result", UAR_IDS_CALL },
		{ "tool.failed", UAR_IDS_CALL },
		{ "subagent.", UAR_IDS_THREAD | UAR_ID_BIT(UAR_ID_SUBAGENT) },
		{ "evidence.", UAR_IDS_RUNTIME | UAR_ID_BIT(UAR_ID_EVIDENCE) },
		{ "process.", UAR_IDS_RUN | UAR_ID_BIT(UAR_ID_PROCESS) },
		{ "channel.", UAR_IDS_RUNTIME | UAR_ID_BIT(UAR_ID_CHANNEL) },
		{ "job.", UAR_IDS_SESSION | UAR_ID_BIT(UAR_ID_JOB) },
		{ "job.item.", UAR_IDS_SESSION | UAR_ID_BIT(UAR_ID_JOB_ITEM) },
	};

	for (size_t i = 0; i < ARRAY_LEN(scopes); i++) {
		int found = 0;

		for (int cls = 0; cls < UAR_EV_VENDOR; cls++) {
			uar_str type = uar_str_c(uar_event_info[cls].type);

			if (!uar_str_starts(type, uar_str_c(scopes[i].prefix)))
				continue;
			found++;
			CHECK_MSG((uar_event_info[cls].ids & scopes[i].ids) == scopes[i].ids, "%s",
				  type.p);
		}
		CHECK(found > 0);
	}
	CHECK(!(uar_event_info[UAR_EV_TOOL_CATALOG_RESOLVED].ids & UAR_ID_BIT(UAR_ID_STEP)));
}

TEST(ids_hang_together, "EVT-006 EVT-007")
{
	static const struct {
		enum uar_id without, named;
	} cases[] = {
		{ UAR_ID_SESSION, UAR_ID_SESSION }, { UAR_ID_THREAD, UAR_ID_THREAD },
		{ UAR_ID_TASK, UAR_ID_TASK },	    { UAR_ID_RUN, UAR_ID_RUN },
		{ UAR_ID_ATTEMPT, UAR_ID_ATTEMPT }, { UAR_ID_STEP, UAR_ID_STEP },
		{ UAR_ID_JOB, UAR_ID_JOB },	    { UAR_ID_TRACE, UAR_ID_TRACE },
		{ UAR_ID_RUNTIME, UAR_ID_RUNTIME }, { UAR_ID_TENANT, UAR_ID_TENANT },
		{ UAR_ID_USER, UAR_ID_USER },	    { UAR_ID_WORKSPACE, UAR_ID_WORKSPACE },
	};
	struct uar_event ev;
	struct bed b;

	REQUIRE(bed_init(&b));
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_error error = { 0 };

		ev = uar_event_sample(UAR_EV_VENDOR, UAR_STR("{}"));
		ev.ids[cases[i].without] = UAR_STR_NONE;
		CHECK_INT(check(&b, &ev, &error), UAR_EINVALID);
		CHECK(uar_str_ends(uar_str_c(error.where),
				   uar_str_c(uar_id_field(cases[i].named))));
	}
	ev = uar_event_sample(UAR_EV_VENDOR, UAR_STR("{}"));
	ev.ids[UAR_ID_RUN] = ev.ids[UAR_ID_ATTEMPT] = UAR_STR_NONE;
	CHECK_INT(check(&b, &ev, NULL), UAR_EINVALID); /* has a run_sequence */
	ev.run_sequence = 0;
	CHECK_INT(check(&b, &ev, NULL), UAR_OK);
	bed_fini(&b);
}

TEST(bad_ids_are_refused, "EVT-001 EVT-003")
{
	struct uar_event ev, good = uar_event_sample(UAR_EV_VENDOR, UAR_STR("{}"));
	char longest[UAR_LIMIT_ID_BYTES + 1];
	struct bed b;

	REQUIRE(bed_init(&b));
	memset(longest, 'x', sizeof longest);
#define REFUSED(CHANGE)                                                                            \
	(ev = good, (CHANGE), CHECK_MSG(check(&b, &ev, NULL) == UAR_EINVALID, "%s", #CHANGE),      \
	 CHECK_MSG(uar_event_check_next(&ev, &good, &b.scratch, NULL) == UAR_EINVALID,             \
		   "%s, behind a good one", #CHANGE))
	CHECK_INT(check(&b, &good, NULL), UAR_OK);
	REFUSED(ev.ids[UAR_ID_REQUEST] = UAR_STR("two words"));
	REFUSED(ev.ids[UAR_ID_REQUEST] = UAR_STR("caf\xc3\xa9"));
	REFUSED(ev.ids[UAR_ID_REQUEST] = uar_str_n(longest, sizeof longest));
	REFUSED(ev.ids[UAR_ID_TRACE] = UAR_STR("0123456789ABCDEF0123456789ABCDEF"));
	REFUSED(ev.ids[UAR_ID_TRACE] = UAR_STR("0123456789abcdef"));
	REFUSED(ev.ids[UAR_ID_SPAN] = UAR_STR("0123456789abcdeg"));
	REFUSED(ev.event_id = UAR_STR_NONE);
	REFUSED(ev.event_id = UAR_STR("e1"));
	REFUSED(ev.event_id = UAR_STR("0190b4a0-0000-4000-8000-000000000001"));
	REFUSED(ev.time_us = -1);
	REFUSED(ev.time_us = INT64_MAX);
	REFUSED(ev.type = UAR_STR("vendor.acme"));
	REFUSED(ev.type = UAR_STR("session.created"));
	REFUSED(ev.type = UAR_STR_NONE);
	REFUSED(ev.cls = UAR_EV_COUNT);
	REFUSED(ev.cls = (enum uar_event_class) - 1);
	REFUSED(ev.cls = UAR_EV_SESSION_CREATED); /* with a vendor's type */
#undef REFUSED
	ev = good;
	ev.ids[UAR_ID_REQUEST] = uar_str_n(longest, UAR_LIMIT_ID_BYTES);
	CHECK_INT(check(&b, &ev, NULL), UAR_OK);
	bed_fini(&b);
}

/* --- refs and size --- */

TEST(refs_have_their_form, "")
{
	static const struct {
		const char *refs;
		bool good;
	} cases[] = {
		{ "{}", true },
		{ "{\"output_ref\":\"blob://ab\",\"artifact_refs\":[]}", true },
		{ "{\"artifact_refs\":[\"artifact://a@1\",\"artifact://b@1\"]}", true },
		{ "[]", false },
		{ "{", false },
		{ "{\"output\":\"blob://ab\"}", false },
		{ "{\"output_ref\":[\"blob://ab\"]}", false },
		{ "{\"output_refs\":\"blob://ab\"}", false },
		{ "{\"output_refs\":[\"blob://ab\",1]}", false },
		{ "{\"output_ref\":\"ab\"}", false },
		{ "{\"output_ref\":\"://ab\"}", false },
		{ "{\"output_ref\":\"\"}", false },
		{ "{\"output_ref\":null}", false },
	};
	struct bed b;

	REQUIRE(bed_init(&b));
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_event ev = uar_event_sample(UAR_EV_VENDOR, UAR_STR("{}"));

		ev.refs = uar_str_c(cases[i].refs);
		CHECK_MSG((check(&b, &ev, NULL) == UAR_OK) == cases[i].good, "%s", cases[i].refs);
	}
	bed_fini(&b);
}

/* The limit holds for the bytes as written, whatever they are made of. */
TEST(oversized_events_are_refused, "EVT-011")
{
	static char text[UAR_LIMIT_EVENT_BYTES + 1];
	struct uar_event ev = uar_event_sample(UAR_EV_VENDOR, UAR_STR_NONE);
	size_t written = 0;
	struct bed b;

	REQUIRE(bed_init(&b));
	ev.sequence = ev.run_sequence = UINT64_MAX;
	ev.refs = UAR_STR("{\"output_ref\":\"blob://ab\"}");
	ev.ids[UAR_ID_REQUEST] = UAR_STR("\"quoted\\\"");
	memset(text, 'a', sizeof text);
	memcpy(text, "{\"a\":\"", 6);
	for (size_t n = UAR_LIMIT_EVENT_BYTES - 3000; n <= sizeof text; n++) {
		struct uar_jw w;

		memcpy(text + n - 2, "\"}", 2);
		ev.payload = uar_str_n(text, n);
		uar_buf_clear(&b.buf);
		w = uar_jw_begin(&b.buf);
		uar_event_write(&w, NULL, &ev, 0);
		CHECK_INT(uar_jw_end(&w), UAR_OK);
		CHECK_INT(check(&b, &ev, NULL),
			  b.buf.n <= UAR_LIMIT_EVENT_BYTES ? UAR_OK : UAR_ETOOBIG);
		written += b.buf.n == UAR_LIMIT_EVENT_BYTES;
		memset(text + n - 2, 'a', 2);
	}
	CHECK_INT(written, 1);
	bed_fini(&b);
}

TEST(deep_payloads_are_refused, "")
{
	struct uar_event ev = uar_event_sample(UAR_EV_VENDOR, UAR_STR_NONE);
	struct bed b;

	REQUIRE(bed_init(&b));
	for (size_t depth = 2; depth < 100; depth++) {
		uar_buf_clear(&b.buf);
		uar_buf_add_str(&b.buf, UAR_STR("{\"a\":"));
		for (size_t i = 1; i < depth; i++)
			uar_buf_add_char(&b.buf, '[');
		for (size_t i = 1; i < depth; i++)
			uar_buf_add_char(&b.buf, ']');
		uar_buf_add_char(&b.buf, '}');
		ev.payload = uar_buf_str(&b.buf);
		CHECK_INT(check(&b, &ev, NULL),
			  depth <= UAR_LIMIT_EVENT_DEPTH ? UAR_OK : UAR_EDEPTH);
	}
	bed_fini(&b);
}

/* --- memory and threads --- */

TEST(check_survives_a_failing_heap, "")
{
	static const enum uar_event_class classes[] = { UAR_EV_MODEL_DELTA, UAR_EV_TASK_CREATED,
							UAR_EV_VENDOR };
	struct bed b;

	REQUIRE(bed_init(&b));
	for (size_t i = 0; i < ARRAY_LEN(classes); i++) {
		struct uar_event ev = uar_event_sample(classes[i], UAR_STR("{}"));
		unsigned long n = 0;
		uar_err e;

		if (classes[i] != UAR_EV_VENDOR) {
			make_payload(&b, classes[i], true, -1);
			ev.payload = uar_buf_str(&b.buf);
		}
		ev.refs = UAR_STR("{\"output_ref\":\"blob://ab\"}");
		do {
			uar_event_schema_forget();
			uar_arena_fini(&b.scratch);
			uar_test_fail_alloc(++n);
			e = uar_event_check(&ev, &b.scratch, NULL);
			uar_test_fail_alloc(0);
			CHECK(e == UAR_OK || e == UAR_ENOMEM);
			CHECK_INT(uar_event_check(&ev, &b.scratch, NULL), UAR_OK);
		} while (e && n < 10000);
		CHECK_INT(e, UAR_OK);
		CHECK(n > 1);
	}
	bed_fini(&b);
}

enum { THREADS = 4 };
static pthread_barrier_t together;

static void *check_all(void *ctx)
{
	struct uar_arena scratch = { 0 };
	int *wrong = ctx;

	pthread_barrier_wait(&together);
	for (int i = 0; i < UAR_EV_VENDOR; i++) {
		struct uar_event ev = uar_event_sample(i, UAR_STR("{\"unknown\":1}"));
		const struct uar_schema *schema = NULL;
		uar_err e = uar_event_check(&ev, &scratch, NULL);

		*wrong += e != UAR_OK && e != UAR_ESCHEMA;
		*wrong += uar_event_schema_get(i, &schema, NULL) != UAR_OK || !schema;
		uar_arena_reset(&scratch);
	}
	uar_arena_fini(&scratch);
	return NULL;
}

TEST(threads_may_meet_at_the_first_use, "")
{
	pthread_t threads[THREADS];
	int wrong[THREADS] = { 0 };

	uar_event_schema_forget();
	REQUIRE(!pthread_barrier_init(&together, NULL, THREADS));
	for (int i = 0; i < THREADS; i++)
		REQUIRE(!pthread_create(&threads[i], NULL, check_all, &wrong[i]));
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		CHECK_INT(wrong[i], 0);
	}
	pthread_barrier_destroy(&together);
	uar_event_schema_forget();
}
