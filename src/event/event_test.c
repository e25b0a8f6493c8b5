/* event_test.c - the catalogue and the codec; the check is in event_check_test.c. */
#include "test.h"

#include "event/event_int.h"
#include "event/event_sample.h"
#include "json/limits.h"

TEST(every_class_has_a_row, "EVT-001")
{
	CHECK_INT(UAR_EV_VENDOR, 113);
	for (int i = 0; i < UAR_EV_COUNT; i++) {
		const struct uar_event_info *info = &uar_event_info[i];

		REQUIRE(info->type && info->read_models && info->doc);
		CHECK_MSG(strlen(info->doc) > 10, "%s has no doc", info->type);
		CHECK_MSG((info->ids & UAR_IDS_RUNTIME) == UAR_IDS_RUNTIME, "%s", info->type);
		if (i > 0 && i < UAR_EV_VENDOR)
			CHECK_MSG(strcmp(uar_event_info[i - 1].type, info->type) < 0,
				  "%s is out of order", info->type);
	}
}

TEST(names_lead_to_classes, "EVT-012 EVT-126")
{
	static const char *const bad[] = {
		"",	   "session",	      "session.create", "vendor.",
		"vendor",  "vendor.acme",     "vendor.acme.",	"vendor..x",
		"zebra.a", "vendor.acme.a b", "Session.created"
	};
	static const char *const vendor[] = { "vendor.acme.x", "vendor.acme.subagent.output",
					      "vendor.acme.channel.peer_task.linked",
					      "vendor.acme.item.added",
					      "vendor.acme.benchmark.started" };

	for (int i = 0; i < UAR_EV_VENDOR; i++)
		CHECK_INT(uar_event_class_of(uar_str_c(uar_event_info[i].type)), i);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_INT(uar_event_class_of(uar_str_c(bad[i])), UAR_EV_COUNT);
	for (size_t i = 0; i < ARRAY_LEN(vendor); i++)
		CHECK_INT(uar_event_class_of(uar_str_c(vendor[i])), UAR_EV_VENDOR);
}

struct round {
	struct uar_buf buf;
	struct uar_arena arena;
	struct uar_event back;
};

static uar_err round_trip(struct round *r, const struct uar_event *ev, bool stored, uint32_t omit)
{
	struct uar_jw w = uar_jw_begin(&r->buf);
	const struct uar_json *j;
	uar_err e;

	if (stored)
		uar_event_write_stored(&w, ev, omit);
	else
		uar_event_write(&w, NULL, ev, omit);
	e = uar_jw_end(&w);
	if (!e)
		e = uar_json_parse(uar_buf_str(&r->buf), NULL, &r->arena, &j, NULL);
	return e ? e : uar_event_read(j, stored || omit ? ev : NULL, &r->arena, &r->back, NULL);
}

static void round_init(struct round *r)
{
	r->buf = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	uar_arena_init(&r->arena, 0);
}

static void round_fini(struct round *r)
{
	uar_buf_fini(&r->buf);
	uar_arena_fini(&r->arena);
}

static void check_same(const struct uar_event *a, const struct uar_event *b)
{
	CHECK_INT(a->cls, b->cls);
	CHECK(uar_str_eq(a->event_id, b->event_id));
	CHECK_INT(a->time_us, b->time_us);
	for (size_t i = 0; i < UAR_ID_COUNT; i++)
		CHECK_MSG(uar_str_eq(a->ids[i], b->ids[i]), "%s differs", uar_id_field(i));
	CHECK(uar_str_eq(a->payload, b->payload));
	CHECK(uar_str_eq(a->refs, b->refs));
}

TEST(codec_returns_every_class, "ID-16")
{
	for (int cls = 0; cls < UAR_EV_COUNT; cls++) {
		struct uar_event ev = uar_event_sample(
			cls, UAR_STR("{\"text\":\"\xc3\xa9\\u0001\xf0\x9f\x98\x80 \\\"q\\\"\","
				     "\"n\":9223372036854775807,\"big\":1e300,\"deep\":[[{}]]}"));
		struct round r;

		ev.refs = UAR_STR("{\"output_ref\":\"blob://x\",\"input_refs\":[]}");
		for (int stored = 0; stored < 2; stored++) {
			round_init(&r);
			CHECK_INT(round_trip(&r, &ev, stored, 0), UAR_OK);
			check_same(&ev, &r.back);
			CHECK_INT(r.back.sequence, stored ? 0 : 7);
			CHECK_INT(r.back.run_sequence, stored ? 0 : 3);
			round_fini(&r);
		}
	}
}

TEST(written_form_is_the_envelope, "EVT-001 EVT-003 EVT-005")
{
	struct uar_event ev = { .cls = UAR_EV_MODEL_DELTA,
				.event_id = UAR_STR("0190b4a0-0000-7000-8000-000000000001"),
				.time_us = 1700000000123456,
				.sequence = 7,
				.run_sequence = 3,
				.payload = UAR_STR("{\"index\":0}"),
				.refs = UAR_STR("{\"raw_ref\":\"raw://1\"}") };
	struct round r;

	ev.ids[UAR_ID_RUNTIME] = UAR_STR("rt");
	ev.ids[UAR_ID_SESSION] = UAR_STR("s\"1");
	ev.ids[UAR_ID_RUN] = UAR_STR("r1");
	round_init(&r);
	CHECK_INT(round_trip(&r, &ev, false, 0), UAR_OK);
	CHECK_STR(uar_buf_str(&r.buf),
		  "{\"type\":\"model.delta\",\"event_id\":\"0190b4a0-0000-7000-8000-000000000001\","
		  "\"timestamp\":\"2023-11-14T22:13:20.123456Z\",\"sequence\":7,"
		  "\"run_sequence\":3,\"schema_version\":\"1.0\",\"runtime_id\":\"rt\","
		  "\"session_id\":\"s\\\"1\",\"run_id\":\"r1\",\"payload\":{\"index\":0},"
		  "\"refs\":{\"raw_ref\":\"raw://1\"}}");
	uar_buf_clear(&r.buf);
	CHECK_INT(round_trip(&r, &ev, true, UAR_ID_BIT(UAR_ID_SESSION)), UAR_OK);
	CHECK_STR(uar_buf_str(&r.buf),
		  "{\"type\":\"model.delta\",\"event_id\":\"0190b4a0-0000-7000-8000-000000000001\","
		  "\"timestamp\":\"2023-11-14T22:13:20.123456Z\",\"run_id\":\"r1\","
		  "\"payload\":{\"index\":0},\"refs\":{\"raw_ref\":\"raw://1\"}}");
	check_same(&ev, &r.back);
	uar_buf_clear(&r.buf);
	CHECK_INT(round_trip(&r, &ev, true, UAR_ID_BIT(UAR_ID_SESSION) | UAR_OMIT_TIME), UAR_OK);
	CHECK_STR(uar_buf_str(&r.buf),
		  "{\"type\":\"model.delta\",\"event_id\":\"0190b4a0-0000-7000-8000-000000000001\","
		  "\"run_id\":\"r1\",\"payload\":{\"index\":0},"
		  "\"refs\":{\"raw_ref\":\"raw://1\"}}");
	check_same(&ev, &r.back);
	round_fini(&r);
}

static uar_err read_text(struct round *r, const char *text, struct uar_error *error)
{
	const struct uar_json *j;
	uar_err e = uar_json_parse(uar_str_c(text), NULL, &r->arena, &j, NULL);

	return e ? e : uar_event_read(j, NULL, &r->arena, &r->back, error);
}

#define HEAD "\"type\":\"model.delta\",\"event_id\":\"e1\",\"timestamp\":\"2026-01-02T03:04:05Z\""

TEST(reading_is_tolerant_and_strict, "EVT-001 EVT-003")
{
	static const struct {
		const char *text;
		uar_err want;
		const char *where;
	} cases[] = {
		{ "{" HEAD ",\"payload\":{}}", UAR_OK, "" },
		{ "{\"new\":[1],\"payload\":{}," HEAD ",\"x\":null}", UAR_OK, "" },
		{ "{" HEAD ",\"payload\":{},\"schema_version\":\"1.7\"}", UAR_OK, "" },
		{ "{" HEAD ",\"payload\":{},\"schema_version\":\"2.0\"}", UAR_ENEWER,
		  "/schema_version" },
		{ "{" HEAD ",\"payload\":{},\"schema_version\":1}", UAR_ECORRUPT,
		  "/schema_version" },
		{ "[]", UAR_ECORRUPT, "" },
		{ "null", UAR_ECORRUPT, "" },
		{ "{}", UAR_ECORRUPT, "/type" },
		{ "{" HEAD "}", UAR_ECORRUPT, "/payload" },
		{ "{" HEAD ",\"payload\":[]}", UAR_ECORRUPT, "/payload" },
		{ "{" HEAD ",\"payload\":null}", UAR_ECORRUPT, "/payload" },
		{ "{" HEAD ",\"payload\":{},\"refs\":\"x\"}", UAR_ECORRUPT, "/refs" },
		{ "{" HEAD ",\"payload\":{},\"sequence\":0}", UAR_ECORRUPT, "/sequence" },
		{ "{" HEAD ",\"payload\":{},\"sequence\":\"1\"}", UAR_ECORRUPT, "/sequence" },
		{ "{" HEAD ",\"payload\":{},\"run_sequence\":1.5}", UAR_ECORRUPT, "/run_sequence" },
		{ "{" HEAD ",\"payload\":{},\"sequence\":18446744073709551615}", UAR_ECORRUPT,
		  "/sequence" },
		{ "{" HEAD ",\"payload\":{},\"run_id\":1}", UAR_ECORRUPT, "/run_id" },
		{ "{" HEAD ",\"payload\":{},\"run_id\":null}", UAR_ECORRUPT, "/run_id" },
		{ "{" HEAD ",\"payload\":{},\"run_id\":\"\"}", UAR_ECORRUPT, "/run_id" },
		{ "{\"type\":\"model.delta\",\"event_id\":\"e1\",\"timestamp\":\"yesterday\","
		  "\"payload\":{}}",
		  UAR_ECORRUPT, "/timestamp" },
		{ "{\"type\":\"model.delta\",\"event_id\":\"e1\",\"timestamp\":17,\"payload\":{}}",
		  UAR_ECORRUPT, "/timestamp" },
		{ "{\"type\":\"model.epsilon\",\"event_id\":\"e1\","
		  "\"timestamp\":\"2026-01-02T03:04:05Z\",\"payload\":{}}",
		  UAR_ECORRUPT, "/type" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_error error = { 0 };
		struct round r;

		round_init(&r);
		CHECK_MSG(read_text(&r, cases[i].text, &error) == cases[i].want, "%s",
			  cases[i].text);
		CHECK_STR(uar_str_c(error.where), cases[i].where);
		round_fini(&r);
	}
}

TEST(reading_leaves_the_target_alone_on_failure, "")
{
	struct round r;

	round_init(&r);
	r.back = uar_event_sample(UAR_EV_VENDOR, UAR_STR("{}"));
	CHECK_INT(read_text(&r, "{" HEAD "}", NULL), UAR_ECORRUPT);
	CHECK_INT(r.back.cls, UAR_EV_VENDOR);
	round_fini(&r);
}

#define SHA "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

TEST(a_ref_names_its_blob, "")
{
	static const struct {
		uar_str refs;
		uar_err want;
		const char *sha256;
	} cases[] = {
		{ UAR_STR("{\"a_ref\":\"x\",\"read_ref\":\"blob://" SHA "\"}"), UAR_OK, SHA },
		{ UAR_STR("{\"a_ref\":\"blob://" SHA "\"}"), UAR_OK, "" },
		{ UAR_STR("{\"read_ref\":\"blob://" SHA "0\"}"), UAR_ECORRUPT, "" },
		{ UAR_STR("{\"read_ref\":\"blob://x\"}"), UAR_ECORRUPT, "" },
		{ UAR_STR("{\"read_ref\":\"file://" SHA "\"}"), UAR_OK, "" },
		{ UAR_STR("{\"read_ref\":7}"), UAR_OK, "" },
		{ UAR_STR("{\"read_ref\":"), UAR_ECORRUPT, "" },
		{ UAR_STR(""), UAR_OK, "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_event ev = { .refs = cases[i].refs };
		struct uar_arena arena = { 0 };
		uar_str sha256 = UAR_STR_NONE;

		CHECK_INT(uar_event_blob(&ev, "read_ref", &arena, &sha256), cases[i].want);
		CHECK_STR(sha256, cases[i].sha256);
		uar_arena_fini(&arena);
	}
}

TEST(a_payload_is_read_once, "")
{
	struct round r;
	const struct uar_json *first = NULL, *again = NULL;

	round_init(&r);
	CHECK_INT(read_text(&r, "{" HEAD ",\"payload\":{\"text\":\"a\"}}", NULL), UAR_OK);
	CHECK_INT(uar_event_payload(&r.back, &r.arena, &first, NULL), UAR_OK);
	CHECK(first == r.back.tree);
	r.back.payload = UAR_STR("{\"text\":\"b\"}"); /* which the tree is not of */
	CHECK_INT(uar_event_payload(&r.back, &r.arena, &again, NULL), UAR_OK);
	CHECK_STR(uar_json_str(uar_json_get(again, UAR_STR("text")), UAR_STR_NONE), "b");
	r.back.payload = UAR_STR("{\"text\":");
	CHECK_INT(uar_event_payload(&r.back, &r.arena, &again, NULL), UAR_ESYNTAX);
	round_fini(&r);
}

TEST(codec_survives_a_failing_heap, "")
{
	struct uar_event ev = uar_event_sample(UAR_EV_MODEL_DELTA, UAR_STR("{\"a\":[1,{}]}"));
	unsigned long n = 0;
	uar_err e;

	do {
		struct round r;

		round_init(&r);
		uar_test_fail_alloc(++n);
		e = round_trip(&r, &ev, false, 0);
		uar_test_fail_alloc(0);
		CHECK(e == UAR_OK || e == UAR_ENOMEM);
		round_fini(&r);
	} while (e && n < 1000);
	CHECK_INT(e, UAR_OK);
	CHECK(n > 1);
}
