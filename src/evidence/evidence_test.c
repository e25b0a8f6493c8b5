/* evidence_test.c - a document is a fold of events and nothing else; its verifier names the
 * event that was changed. */
#include "evidence/evidence.h"

#include "evidence/limits.h"
#include "json/schema.h"
#include "test.h"

enum { DOCUMENT = 1 << 20 };

/* A call that a person denied, and a task whose first attempt failed. */
static const struct {
	enum uar_event_class cls;
	const char *call;
	const char *payload;
} story[] = {
	{ UAR_EV_SESSION_CREATED, "",
	  "{\"source\":\"api\",\"created_at\":\"2027-01-15T08:00:00Z\",\"metadata\":{}}" },
	{ UAR_EV_THREAD_STARTED, "", "{\"origin\":\"new\",\"conversation_id\":\"c\"}" },
	{ UAR_EV_TURN_SUBMITTED, "",
	  "{\"status\":\"queued\",\"source\":\"api\",\"input_parts\":[{\"type\":\"text\","
	  "\"preview\":\"do it\",\"bytes\":5}],\"options\":{\"api_key\":\"canary-71\"}}" },
	{ UAR_EV_TASK_CREATED, "",
	  "{\"objective\":\"o\",\"status\":\"accepted\",\"implicit\":true}" },
	{ UAR_EV_TASK_ATTEMPT_STARTED, "", "{\"attempt\":1,\"status\":\"running\"}" },
	{ UAR_EV_TOOL_STARTED, "call-a", "{\"tool_name\":\"rm\",\"status\":\"running\"}" },
	{ UAR_EV_ACTION_REQUIRED, "call-a",
	  "{\"action_type\":\"approval\",\"prompt\":\"p\",\"decisions\":[\"allow\",\"deny\"]}" },
	{ UAR_EV_ACTION_RESOLVED, "call-a",
	  "{\"decision\":\"deny\",\"result\":\"deny\",\"source\":\"respond_action\","
	  "\"waited_ms\":1,\"status\":\"resolved\"}" },
	{ UAR_EV_TOOL_RESULT, "call-a", "{\"tool_name\":\"rm\",\"status\":\"completed\"}" },
	{ UAR_EV_TASK_ATTEMPT_FAILED, "",
	  "{\"attempt\":1,\"status\":\"failed\",\"failure_category\":\"provider\","
	  "\"error\":{\"code\":\"x\",\"message\":\"m\"}}" },
	{ UAR_EV_TASK_RETRYING, "", "{\"attempt\":2,\"reason\":\"provider\"}" },
	{ UAR_EV_TASK_ATTEMPT_STARTED, "", "{\"attempt\":2,\"status\":\"running\"}" },
	{ UAR_EV_TASK_ATTEMPT_COMPLETED, "", "{\"attempt\":2,\"status\":\"completed\"}" },
	{ UAR_EV_TASK_COMPLETED, "", "{\"status\":\"completed\",\"attempt\":2}" },
	{ UAR_EV_EVIDENCE_CHANGED, "", "{\"kind\":\"evidence\",\"status\":\"ready\"}" },
};

static struct uar_event event_at(size_t i, char id[32])
{
	struct uar_event ev = {
		.cls = story[i].cls,
		.time_us = 1800000000000000 + (int64_t)i,
		.sequence = i + 1,
		.payload = uar_str_c(story[i].payload),
	};

	snprintf(id, 32, "event-%zu", i + 1);
	ev.event_id = uar_str_c(id);
	ev.ids[UAR_ID_RUNTIME] = UAR_STR("runtime-1");
	ev.ids[UAR_ID_SESSION] = UAR_STR("session-1");
	if (i) {
		ev.ids[UAR_ID_THREAD] = UAR_STR("thread-1");
		ev.ids[UAR_ID_TURN] = UAR_STR("turn-1");
		ev.ids[UAR_ID_TASK] = UAR_STR("task-1");
		ev.ids[UAR_ID_RUN] = UAR_STR("run-1");
	}
	ev.ids[UAR_ID_TOOL_CALL] = uar_str_c(story[i].call);
	return ev;
}

/* The document of the whole session. */
static struct uar_buf document(enum uar_evidence_kind kind, struct uar_evidence_facts *facts)
{
	const struct uar_evidence_scope scope = { .session_id = UAR_STR("session-1") };
	struct uar_buf out = uar_buf_make(DOCUMENT);
	struct uar_evidence *x = NULL;
	char id[32];

	CHECK_INT(uar_evidence_create(kind, &scope, &x), UAR_OK);
	for (size_t i = 0; x && i < ARRAY_LEN(story); i++) {
		const struct uar_event ev = event_at(i, id);

		CHECK_INT(uar_evidence_add(x, &ev, &out), UAR_OK);
	}
	if (x)
		CHECK_INT(uar_evidence_end(x, &out, facts), UAR_OK);
	uar_evidence_destroy(x);
	return out;
}

static uar_str member(const struct uar_json *j, const char *key)
{
	return uar_json_str(uar_json_get(j, uar_str_c(key)), UAR_STR(""));
}

/* The one row of a list that has the type and, when it is not 0, the attempt. */
static const struct uar_json *row_of(const struct uar_json *list, const char *type, int attempt)
{
	const struct uar_json *r = uar_json_first(list);

	while (r && (!uar_str_is(member(r, "type"), type) ||
		     (attempt && uar_json_int(uar_json_get(r, UAR_STR("attempt")), 0) != attempt)))
		r = r->next;
	return r;
}

static const struct uar_json *content_of(uar_str text, struct uar_arena *arena)
{
	const struct uar_json *root = NULL;

	CHECK_INT(uar_json_parse(text, NULL, arena, &root, NULL), UAR_OK);
	return uar_json_get(root, UAR_STR("content"));
}

TEST(the_same_events_are_the_same_bytes_and_digest, "CTL-31 EVID-01")
{
	for (int kind = UAR_EVIDENCE_PACK; kind <= UAR_EVIDENCE_REVIEW; kind++) {
		struct uar_evidence_facts a, b;
		struct uar_buf one = document((enum uar_evidence_kind)kind, &a);
		struct uar_buf two = document((enum uar_evidence_kind)kind, &b);
		struct uar_evidence_report report;
		struct uar_error error;

		CHECK(one.n && uar_str_eq(uar_buf_str(&one), uar_buf_str(&two)));
		CHECK_STR(uar_str_c(a.sha256), b.sha256);
		CHECK_STR(uar_str_c(a.evidence_id), b.evidence_id);
		CHECK_INT(a.events, ARRAY_LEN(story) - 1); /* without the fact of an export */
		CHECK_INT(uar_evidence_verify(uar_buf_str(&one), &report, &error), UAR_OK);
		CHECK_STR(uar_str_c(report.sha256), a.sha256);
		CHECK_STR(uar_str_c(report.kind),
			  uar_evidence_kind_name((enum uar_evidence_kind)kind));
		uar_buf_fini(&one);
		uar_buf_fini(&two);
	}
}

TEST(a_document_is_what_its_schema_says, "EVID-02 EVID-03 EVID-04")
{
	struct uar_buf schema = uar_buf_make(DOCUMENT);
	FILE *f = fopen("docs/evidence.schema.json", "r");
	char part[4096];
	size_t n;

	REQUIRE(f);
	while ((n = fread(part, 1, sizeof part, f)) > 0)
		uar_buf_add(&schema, part, n);
	fclose(f);
	for (int kind = UAR_EVIDENCE_PACK; kind <= UAR_EVIDENCE_REVIEW; kind++) {
		struct uar_evidence_facts facts;
		struct uar_buf b = document((enum uar_evidence_kind)kind, &facts);
		const struct uar_json *root = NULL;
		struct uar_error error = { .code = UAR_OK };
		struct uar_arena arena;

		uar_arena_init(&arena, 0);
		CHECK_INT(uar_json_parse(uar_buf_str(&b), NULL, &arena, &root, NULL), UAR_OK);
		CHECK_MSG(!uar_schema_check_text(uar_buf_str(&schema), root, &error), "%s: %s",
			  uar_evidence_kind_name((enum uar_evidence_kind)kind), error.text);
		uar_arena_fini(&arena);
		uar_buf_fini(&b);
	}
	uar_buf_fini(&schema);
}

TEST(a_denied_call_is_no_success_and_a_failed_attempt_stays, "EVID-05")
{
	struct uar_evidence_facts facts;
	struct uar_buf b = document(UAR_EVIDENCE_PACK, &facts);
	struct uar_arena arena;
	const struct uar_json *c, *calls, *row;

	uar_arena_init(&arena, 0);
	c = content_of(uar_buf_str(&b), &arena);
	calls = uar_json_get(uar_json_get(c, UAR_STR("runtime_summary")), UAR_STR("tool_calls"));
	CHECK_INT(uar_json_int(uar_json_get(calls, UAR_STR("succeeded")), -1), 0);
	CHECK_INT(uar_json_int(uar_json_get(calls, UAR_STR("denied")), -1), 1);
	row = row_of(uar_json_get(c, UAR_STR("tool_calls")), "tool.result", 0);
	CHECK_STR(member(row, "outcome"), "denied");
	row = row_of(uar_json_get(c, UAR_STR("attempts")), "task.attempt.failed", 1);
	CHECK_INT(uar_json_int(uar_json_get(row, UAR_STR("sequence")), 0), 10);
	CHECK(row_of(uar_json_get(c, UAR_STR("attempts")), "task.attempt.completed", 2));
	CHECK(row_of(uar_json_get(c, UAR_STR("failures")), "task.attempt.failed", 1));
	uar_arena_fini(&arena);
	uar_buf_fini(&b);
}

TEST(a_secret_member_is_in_no_document, "SEC-06")
{
	for (int kind = UAR_EVIDENCE_PACK; kind <= UAR_EVIDENCE_REVIEW; kind++) {
		struct uar_evidence_facts facts;
		struct uar_buf b = document((enum uar_evidence_kind)kind, &facts);

		CHECK(!memmem(b.p, b.n, "canary-71", 9));
		CHECK(kind == UAR_EVIDENCE_REVIEW || memmem(b.p, b.n, "<redacted>", 10));
		uar_buf_fini(&b);
	}
}

TEST(a_scope_without_events_and_one_event_too_many_are_refused, "")
{
	const struct uar_evidence_scope scope = { .session_id = UAR_STR("session-1"),
						  .task_id = UAR_STR("task-1") };
	struct uar_buf out = uar_buf_make(DOCUMENT);
	struct uar_evidence_facts facts;
	struct uar_evidence *x = NULL;
	char id[32];
	struct uar_event ev = event_at(0, id);
	uar_err e = UAR_OK;

	REQUIRE(!uar_evidence_create(UAR_EVIDENCE_REVIEW, &scope, &x));
	CHECK_INT(uar_evidence_add(x, &ev, &out), UAR_OK); /* of the session, not of the task */
	CHECK_INT(uar_evidence_end(x, &out, &facts), UAR_ENOTFOUND);
	ev.ids[UAR_ID_TASK] = UAR_STR("task-1");
	for (uint64_t i = 1; i <= UAR_LIMIT_EVIDENCE_EVENTS && !e; i++) {
		ev.sequence = i;
		e = uar_evidence_add(x, &ev, &out);
		uar_buf_clear(&out);
	}
	CHECK_INT(e, UAR_OK);
	ev.sequence = UAR_LIMIT_EVIDENCE_EVENTS + 1;
	CHECK_INT(uar_evidence_add(x, &ev, &out), UAR_ETOOBIG);
	uar_evidence_destroy(x);
	uar_buf_fini(&out);
}

/* Verifies the document with one word put in place of another of the same length. */
static uar_err verify_changed(const struct uar_buf *b, const char *word, const char *other,
			      struct uar_error *error)
{
	struct uar_buf copy = uar_buf_make(DOCUMENT);
	struct uar_evidence_report report;
	char *at;
	uar_err e;

	uar_buf_add_str(&copy, uar_buf_str(b));
	at = memmem(copy.p, copy.n, word, strlen(word));
	if (CHECK(at && strlen(word) == strlen(other)))
		memcpy(at, other, strlen(other));
	e = uar_evidence_verify(uar_buf_str(&copy), &report, error);
	uar_buf_fini(&copy);
	return e;
}

TEST(the_verifier_names_the_event_that_was_changed, "EVID-01")
{
	static const struct {
		const char *word, *other, *said;
	} cases[] = {
		{ "\"result\":\"deny\"", "\"result\":\"edit\"", "event 8 of the timeline differs" },
		{ "\"waited_ms\":1", "\"waited_ms\":2", "sequence 8, action.resolved, event-8" },
		{ "\"level\":\"session\"", "\"level\":\"sessioN\"", "the content differs" },
		{ "\"chain_head\":\"", "\"chain_heaf\":\"", "the content differs" },
		{ "uar.evidence/1", "uar.evidence/2", "no document of the format" },
	};
	struct uar_evidence_facts facts;
	struct uar_buf b = document(UAR_EVIDENCE_REPLAY, &facts);

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_error error = { .code = UAR_OK };

		CHECK_INT(verify_changed(&b, cases[i].word, cases[i].other, &error), UAR_ECORRUPT);
		CHECK_MSG(strstr(error.text, cases[i].said), "%s: %s", cases[i].word, error.text);
	}
	uar_buf_fini(&b);
}
