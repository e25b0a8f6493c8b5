/* normalized_test.c - event in, exact bytes out. */
#include "proto/normalized.h"

#include "event/event_sample.h"
#include "test.h"

#define ID	   "0190b4a0-0000-7000-8000-0000000000aa"
#define RUN	   "\"run_id\":\"" ID "\""
#define CALL	   "\"tool_call_id\":\"" ID "\""
#define D(T, REST) "{\"type\":\"" T "\",\"data\":{" RUN REST "}}"

enum { PLAIN, META, DONE };

static const struct row {
	enum uar_event_class cls;
	int options;
	const char *payload;
	const char *want; /* NULL: nothing is shown */
} rows[] = {
	{ UAR_EV_TASK_QUEUED, PLAIN, "{\"agent_id\":\"echo\",\"entry_id\":\"e\"}",
	  D("RunStart", ",\"agent_id\":\"echo\"") },
	{ UAR_EV_TASK_QUEUED, PLAIN, "{\"entry_id\":\"e\"}", D("RunStart", ",\"agent_id\":\"e\"") },
	{ UAR_EV_MODEL_DELTA, PLAIN, "{\"text\":\"a\\n\\u0001\xc3\xa4\\ud83d\\ude00\"}",
	  D("ChatDelta", ",\"text_delta\":\"a\\n\\u0001\xc3\xa4\xf0\x9f\x98\x80\"") },
	{ UAR_EV_MODEL_DELTA, PLAIN, "{\"text\":\"\"}", NULL },
	{ UAR_EV_MODEL_DELTA, PLAIN, "{\"value\":{}}", NULL },
	{ UAR_EV_REASONING_DELTA, PLAIN, "{\"text\":\"hm\"}",
	  D("ReasoningDelta", ",\"text_delta\":\"hm\"") },
	{ UAR_EV_CONTEXT_RESOLVED, PLAIN, "{\"citations\":[{\"title\":\"t\",\"url\":\"u\"}]}",
	  D("Citation", ",\"sources\":[{\"title\":\"t\",\"url\":\"u\"}]") },
	{ UAR_EV_CONTEXT_RESOLVED, PLAIN, "{\"recalled\":[]}", D("MemoryRecall", ",\"items\":[]") },
	{ UAR_EV_CONTEXT_RESOLVED, PLAIN, "{\"items\":[]}", NULL },
	{ UAR_EV_TOOL_STARTED, PLAIN, "{\"tool_name\":\"t\"}", NULL },
	{ UAR_EV_TOOL_ARGS, PLAIN, "{\"final\":false,\"delta\":\"x\"}", NULL },
	{ UAR_EV_TOOL_ARGS, PLAIN,
	  "{\"final\":true,\"tool_name\":\"t\",\"args\":{\"n\":12345678901234567890,\"f\":1.50}}",
	  D("ToolStart",
	    "," CALL ",\"tool\":\"t\",\"input\":{\"n\":12345678901234567890,\"f\":1.50}") },
	{ UAR_EV_TOOL_ARGS, PLAIN, "{\"final\":true}",
	  D("ToolStart", "," CALL ",\"tool\":\"\",\"input\":null") },
	{ UAR_EV_TOOL_PROGRESS, PLAIN, "{\"partial\":[1]}",
	  D("ToolDelta", "," CALL ",\"delta\":[1]") },
	{ UAR_EV_TOOL_PROGRESS, PLAIN, "{\"message\":\"half\"}",
	  D("ToolDelta", "," CALL ",\"delta\":\"half\"") },
	{ UAR_EV_TOOL_PROGRESS, PLAIN, "{}", D("ToolDelta", "," CALL ",\"delta\":null") },
	{ UAR_EV_TOOL_RESULT, PLAIN, "{\"preview\":{\"a\":-9223372036854775808}}",
	  D("ToolEnd", "," CALL ",\"output\":{\"a\":-9223372036854775808},\"ok\":true") },
	{ UAR_EV_TOOL_RESULT, PLAIN, "{}", D("ToolEnd", "," CALL ",\"output\":null,\"ok\":true") },
	{ UAR_EV_TOOL_FAILED, PLAIN, "{\"error\":{\"code\":\"X\"}}",
	  D("ToolEnd", "," CALL ",\"output\":{\"code\":\"X\"},\"ok\":false") },
	{ UAR_EV_ARTIFACT_CHANGED, PLAIN,
	  "{\"artifact_type\":\"html\",\"title\":\"T\",\"preview\":\"<b>\",\"language\":\"html\","
	  "\"metadata\":{\"a\":1}}",
	  D("Artifact", ",\"artifact\":{\"artifact_id\":\"" ID "\",\"artifact_type\":\"html\","
			"\"title\":\"T\",\"content\":\"<b>\",\"language\":\"html\","
			"\"metadata\":{\"a\":1}}") },
	{ UAR_EV_ARTIFACT_CHANGED, PLAIN, "{\"artifact_type\":\"x\",\"title\":\"\"}",
	  D("Artifact", ",\"artifact\":{\"artifact_id\":\"" ID "\",\"artifact_type\":\"x\","
			"\"title\":\"\",\"content\":\"\",\"metadata\":null}") },
	{ UAR_EV_RUNTIME_WARNING, PLAIN, "{\"code\":\"OTHER\",\"message\":\"m\"}", NULL },
	{ UAR_EV_RUNTIME_WARNING, PLAIN,
	  "{\"code\":\"ARTIFACT_PREVIEW_ERROR\",\"message\":\"m\",\"details\":{\"line\":3}}",
	  D("artifact.error",
	    ",\"artifact_id\":\"" ID "\",\"message\":\"m\",\"details\":{\"line\":3}") },
	{ UAR_EV_ACTION_REQUIRED, PLAIN,
	  "{\"action_type\":\"form\",\"prompt\":\"Who?\",\"schema\":{\"type\":\"object\"}}",
	  D("ui.form.request", ",\"form_id\":\"" ID "\",\"title\":\"Who?\","
			       "\"schema\":{\"type\":\"object\"}," CALL) },
	{ UAR_EV_ACTION_REQUIRED, PLAIN, "{\"action_type\":\"confirm\",\"prompt\":\"Sure?\"}",
	  D("meta",
	    ",\"action_id\":\"" ID "\",\"title\":\"Sure?\",\"action_type\":\"confirm\"," CALL) },
	{ UAR_EV_ACTION_REQUIRED, PLAIN,
	  "{\"action_type\":\"tool_permission\",\"prompt\":\"Bash: x\",\"status\":\"pending\","
	  "\"tool_name\":\"Bash\",\"decisions\":[\"allow\"],\"scope\":{\"input\":{}}}",
	  D("meta", ",\"action_id\":\"" ID "\",\"title\":\"Bash: x\","
		    "\"action_type\":\"tool_permission\",\"status\":\"pending\","
		    "\"tool_name\":\"Bash\",\"decisions\":[\"allow\"],"
		    "\"scope\":{\"input\":{}}," CALL) },
	{ UAR_EV_ACTION_RESOLVED, PLAIN,
	  "{\"decision\":\"allow\",\"result\":\"allow\",\"source\":\"policy\",\"status\":"
	  "\"resolved\"}",
	  D("meta", ",\"action_id\":\"" ID "\",\"status\":\"resolved\",\"decision\":\"allow\","
		    "\"result\":\"allow\",\"source\":\"policy\"") },
	{ UAR_EV_RUN_STATUS, PLAIN, "{\"phase\":\"p\",\"status\":\"running\",\"title\":\"t\"}",
	  NULL },
	{ UAR_EV_RUN_STATUS, META, "{\"phase\":\"p\",\"status\":\"running\",\"title\":\"t\"}",
	  D("meta", ",\"phase\":\"p\",\"status\":\"running\",\"title\":\"t\"") },
	{ UAR_EV_RUN_STATUS, PLAIN,
	  "{\"phase\":\"p\",\"status\":\"retrying\",\"title\":\"t\",\"metadata\":{\"x\":1}}",
	  D("meta", ",\"phase\":\"p\",\"status\":\"retrying\",\"title\":\"t\",\"metadata\":{\"x\":"
		    "1}") },
	{ UAR_EV_TASK_PROGRESS, PLAIN, "{\"progress\":0.5}", NULL },
	{ UAR_EV_TASK_PROGRESS, META, "{\"progress\":0.5}",
	  D("meta", ",\"kind\":\"progress\",\"progress\":{\"progress\":0.5}") },
	{ UAR_EV_TASK_CANCEL_REQUESTED, META, "{\"status\":\"cancelling\"}", NULL },
	{ UAR_EV_TASK_ATTEMPT_COMPLETED, PLAIN, "{}", D("RunDone", "") },
	{ UAR_EV_TASK_ATTEMPT_FAILED, PLAIN,
	  "{\"status\":\"failed\",\"message\":\"m\",\"error\":{\"code\":\"PROVIDER_ERROR\"}}",
	  D("Error", ",\"code\":\"PROVIDER_ERROR\",\"message\":\"m\"") },
	{ UAR_EV_TASK_ATTEMPT_FAILED, DONE,
	  "{\"status\":\"timed_out\",\"message\":\"m\",\"error\":{\"code\":\"TIMEOUT\"}}",
	  D("Error", ",\"code\":\"TIMEOUT\",\"message\":\"m\"") },
	{ UAR_EV_TASK_ATTEMPT_FAILED, PLAIN,
	  "{\"status\":\"cancelled\",\"message\":\"m\",\"error\":{\"code\":\"CANCELED\"}}",
	  D("Error", ",\"code\":\"CANCELED\",\"message\":\"m\"") },
	{ UAR_EV_TASK_ATTEMPT_FAILED, DONE,
	  "{\"status\":\"cancelled\",\"message\":\"m\",\"error\":{\"code\":\"CANCELED\"}}",
	  D("RunDone", "") },
	{ UAR_EV_TASK_ATTEMPT_FAILED, PLAIN, "{\"status\":\"failed\"}",
	  D("Error", ",\"code\":\"INTERNAL\",\"message\":\"\"") },
};

static uar_err show(const struct uar_event *ev, const struct uar_normalized_options *o,
		    struct uar_buf *out)
{
	struct uar_arena scratch;
	uar_err e;

	uar_arena_init(&scratch, 0);
	e = uar_normalized_encode(ev, o, &scratch, out);
	uar_arena_fini(&scratch);
	return e;
}

static uar_err encode(const struct row *row, struct uar_buf *out)
{
	struct uar_normalized_options o = { .cancel_as_done = row->options == DONE,
					    .meta = row->options == META };
	struct uar_event ev = uar_event_sample(row->cls, uar_str_c(row->payload));

	return show(&ev, &o, out);
}

TEST(each_event_gives_exactly_its_bytes,
     "NEV-01 NEV-02 NEV-03 NEV-04 NEV-05 NEV-06 NEV-07 NEV-08 NEV-09 NEV-10 NEV-11 NEV-12")
{
	struct uar_buf out = uar_buf_make(65536);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *row = &rows[i];
		uar_err e;

		uar_buf_clear(&out);
		e = encode(row, &out);
		CHECK_MSG(e == (row->want ? UAR_OK : UAR_ESKIP), "row %zu: %s", i, uar_err_name(e));
		CHECK_STR(uar_buf_str(&out), row->want ? row->want : "");
	}
	uar_buf_fini(&out);
}

static bool has_row(int cls)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if ((int)rows[i].cls == cls && rows[i].want)
			return true;
	return false;
}

TEST(classes_without_a_row_show_nothing, "")
{
	struct uar_buf out = uar_buf_make(65536);
	struct uar_normalized_options o = { .meta = true };

	for (int cls = 0; cls < UAR_EV_COUNT; cls++) {
		struct uar_event ev = uar_event_sample((enum uar_event_class)cls, UAR_STR("{}"));

		if (!has_row(cls))
			CHECK_INT(show(&ev, &o, &out), UAR_ESKIP);
	}
	CHECK_INT(out.n, 0);
	uar_buf_fini(&out);
}

TEST(an_event_that_is_of_no_run_shows_nothing, "")
{
	struct uar_normalized_options o = { .meta = true };
	struct uar_buf out = uar_buf_make(65536);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct uar_event ev = uar_event_sample(rows[i].cls, uar_str_c(rows[i].payload));

		ev.run_sequence = 0;
		CHECK_INT(show(&ev, &o, &out), UAR_ESKIP);
	}
	uar_buf_fini(&out);
}

TEST(what_is_shown_parses_and_appends_to_what_is_there, "NEV-17")
{
	struct uar_buf out = uar_buf_make(65536);
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct uar_json *j;

		uar_buf_clear(&out);
		uar_buf_add_str(&out, UAR_STR("data: "));
		if (encode(&rows[i], &out))
			continue;
		CHECK(uar_str_starts(uar_buf_str(&out), UAR_STR("data: {\"type\":")));
		CHECK_INT(
			uar_json_parse(uar_str_from(uar_buf_str(&out), 6), NULL, &arena, &j, NULL),
			UAR_OK);
	}
	uar_arena_fini(&arena);
	uar_buf_fini(&out);
}

TEST(a_full_buffer_and_a_broken_payload_are_errors, "")
{
	struct uar_normalized_options o = { 0 };
	struct uar_event ev = uar_event_sample(UAR_EV_MODEL_DELTA, UAR_STR("{\"text\":"));
	struct uar_buf small = uar_buf_make(40), out = uar_buf_make(4096);

	CHECK_INT(show(&ev, &o, &out), UAR_ESYNTAX);
	ev.payload = UAR_STR("{\"text\":\"hello\"}");
	CHECK_INT(show(&ev, &o, &small), UAR_ETOOBIG);
	uar_buf_fini(&small);
	uar_buf_fini(&out);
}

TEST(every_failed_allocation_is_an_error_or_nothing, "")
{
	bool failed = true;

	for (unsigned long n = 1; failed; n++) {
		failed = false;
		for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
			struct uar_buf out = uar_buf_make(65536);
			uar_err e;

			uar_test_fail_alloc(n);
			e = encode(&rows[i], &out);
			CHECK(e == UAR_ENOMEM || e == (rows[i].want ? UAR_OK : UAR_ESKIP));
			CHECK(e != UAR_OK || !uar_test_alloc_failed());
			failed |= uar_test_alloc_failed();
			uar_test_fail_alloc(0);
			uar_buf_fini(&out);
		}
	}
}
