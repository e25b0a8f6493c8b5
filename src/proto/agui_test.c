/* agui_test.c - recorded runs as AG-UI frames, byte for byte, and what a recording lacks.
 *
 * fixtures/ag_ui has the events of real runs (x.jsonl) and what a stream of each has to
 * be (x.v1.sse, x.v0.sse, x.chunks.sse). With UAR_TEST_WRITE=1 the latter are written. */
#include "proto/agui.h"

#include "base/alloc.h"
#include "proto/agui_input.h"
#include "recorded.h"
#include "test.h"
#include "proto/limits.h"

struct reader {
	void *state;
	struct uar_buf out;
	struct uar_arena arena;
	uint64_t number;
};

static void begin(struct reader *r, struct uar_dialect_options o)
{
	*r = (struct reader){ .out = uar_buf_make(RECORDED_MOST) };
	r->state = uar_zalloc(uar_agui.state_size);
	CHECK_INT(uar_agui.begin(r->state, &o), UAR_OK);
}

static void fini(struct reader *r)
{
	uar_agui.end(r->state);
	uar_free(r->state);
	uar_buf_fini(&r->out);
	uar_arena_fini(&r->arena);
}

static uint32_t show(struct reader *r, const struct uar_event *ev)
{
	struct uar_frames frames = { .out = &r->out, .run_sequence = ev->run_sequence };

	CHECK_INT(uar_agui.encode(r->state, ev, &r->arena, &frames), UAR_OK);
	return frames.count;
}

/* An event that a recording does not have. */
static uint32_t add(struct reader *r, enum uar_event_class cls, const char *payload)
{
	struct uar_event ev = { .cls = cls,
				.run_sequence = ++r->number,
				.payload = uar_str_c(payload) };

	ev.ids[UAR_ID_RUN] = UAR_STR("R");
	ev.ids[UAR_ID_THREAD] = UAR_STR("T");
	ev.ids[UAR_ID_TURN] = UAR_STR("U");
	ev.ids[UAR_ID_TOOL_CALL] = UAR_STR("c1");
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

static void check_version(const char *name, const char *ending, bool old_peer)
{
	struct recorded log;
	struct uar_event ev;
	struct reader r;

	begin(&r, (struct uar_dialect_options){ .old_peer = old_peer });
	recorded_open(&log, name);
	while (recorded_next(&log, &ev))
		show(&r, &ev);
	recorded_compare("ag_ui", name, ending, &r.out);
	fini(&r);
	recorded_close(&log);
}

static void check_chunks(const char *name)
{
	struct uar_buf out = uar_buf_make(RECORDED_MOST);
	struct recorded log;
	struct uar_event ev;

	recorded_open(&log, name);
	while (recorded_next(&log, &ev)) {
		uar_err e = uar_chunk_encode(&ev, 1, &log.arena, &out);

		CHECK(e == UAR_OK || e == UAR_ESKIP);
	}
	recorded_compare("ag_ui", name, "chunks.sse", &out);
	recorded_close(&log);
	uar_buf_fini(&out);
}

TEST(recorded_runs_have_these_frames, "AGUI-11 AGUI-13 AGUI-14")
{
	for (const char *const *name = recorded_names; *name; name++) {
		check_version(*name, "v1.sse", false);
		check_version(*name, "v0.sse", true);
		check_chunks(*name);
	}
}

/* --- what no recording has ------------------------------------------------------------ */

TEST(arguments_that_come_in_pieces_are_told_in_pieces, "AGUI-16")
{
	struct reader r;

	begin(&r, (struct uar_dialect_options){ 0 });
	add(&r, UAR_EV_TASK_QUEUED, "{}");
	CHECK_INT(add(&r, UAR_EV_TOOL_STARTED, "{\"tool_name\":\"t\"}"), 1);
	CHECK_INT(add(&r, UAR_EV_TOOL_ARGS, "{\"delta\":\"{\\\"a\\\":\",\"final\":false}"), 1);
	shows(&r, "\"delta\":\"{\\\"a\\\":\"");
	CHECK_INT(add(&r, UAR_EV_TOOL_ARGS, "{\"delta\":\"\",\"final\":false}"), 0);
	CHECK_INT(add(&r, UAR_EV_TOOL_ARGS, "{\"delta\":\"1}\",\"final\":true,\"args\":{\"a\":1}}"),
		  2);
	shows(&r, "TOOL_CALL_END");
	CHECK_INT(add(&r, UAR_EV_TOOL_RESULT, "{\"preview\":null}"), 1);
	shows(&r, "\"content\":\"\"");
	fini(&r);
}

TEST(empty_text_shows_nothing, "AGUI-16")
{
	struct reader r;

	begin(&r, (struct uar_dialect_options){ 0 });
	add(&r, UAR_EV_TASK_QUEUED, "{}");
	CHECK_INT(add(&r, UAR_EV_MODEL_DELTA, "{\"message_id\":\"m\",\"text\":\"\"}"), 0);
	CHECK_INT(add(&r, UAR_EV_REASONING_DELTA, "{\"message_id\":\"m\"}"), 0);
	CHECK_INT(add(&r, UAR_EV_MODEL_DELTA, "{\"message_id\":\"m\",\"text\":\"a\"}"), 2);
	fini(&r);
}

TEST(unknown_classes_are_dropped, "AGUI-10")
{
	struct reader r;

	begin(&r, (struct uar_dialect_options){ 0 });
	add(&r, UAR_EV_TASK_QUEUED, "{}");
	CHECK_INT(add(&r, UAR_EV_VENDOR, "{\"a\":1}"), 0);
	CHECK_INT(add(&r, UAR_EV_THREAD_UPDATED, "{}"), 0);
	fini(&r);
}

TEST(a_form_and_an_approval_wait_together, "")
{
	struct reader r;

	begin(&r, (struct uar_dialect_options){ 0 });
	add(&r, UAR_EV_TASK_QUEUED, "{}");
	add(&r, UAR_EV_ACTION_REQUIRED,
	    "{\"action_type\":\"form\",\"prompt\":\"Who?\",\"schema\":{\"type\":\"object\"},"
	    "\"timeout_at\":\"2026-01-01T00:00:00Z\"}");
	add(&r, UAR_EV_TASK_WAITING, "{\"status\":\"waiting_input\"}");
	shows(&r, "\"reason\":\"input_required\",\"message\":\"Who?\"");
	shows(&r,
	      "\"responseSchema\":{\"type\":\"object\"},\"expiresAt\":\"2026-01-01T00:00:00Z\"");
	shows(&r, "event: ui.form.request");
	add(&r, UAR_EV_ACTION_REQUIRED, "{\"action_type\":\"policy\",\"prompt\":\"Sure?\"}");
	shows(&r, "\"runId\":\"R.2\"");
	shows(&r, "Who?");
	shows(&r, "Sure?");
	CHECK_INT(add(&r, UAR_EV_ACTION_RESOLVED, "{}"), 0);
	add(&r, UAR_EV_TASK_RESUMED, "{}");
	shows(&r, "\"runId\":\"R.3\"");
	CHECK_INT(add(&r, UAR_EV_TASK_ATTEMPT_COMPLETED, "{}"), 1);
	CHECK_INT(add(&r, UAR_EV_TASK_ATTEMPT_COMPLETED, "{}"), 0);
	fini(&r);
}

TEST(usage_is_summed_for_each_model, "")
{
	static const char used[] =
		"{\"provider\":\"p\",\"model\":\"m\",\"usage\":{\"input_tokens\":1,"
		"\"output_tokens\":2,\"total_tokens\":3,\"cached_tokens\":1}}";
	struct reader r;

	begin(&r, (struct uar_dialect_options){ 0 });
	add(&r, UAR_EV_TASK_QUEUED, "{}");
	add(&r, UAR_EV_MODEL_COMPLETED, used);
	add(&r, UAR_EV_MODEL_COMPLETED, used);
	add(&r, UAR_EV_TASK_ATTEMPT_FAILED,
	    "{\"status\":\"failed\",\"error\":{\"code\":\"X\"},\"message\":\"why\"}");
	shows(&r,
	      "\"message\":\"why\",\"code\":\"X\",\"usage\":[{\"provider\":\"p\",\"model\":\"m\","
	      "\"inputTokens\":2,\"outputTokens\":4,\"totalTokens\":6,\"cachedInputTokens\":2}]");
	fini(&r);
}

TEST(more_text_than_is_kept_still_streams, "")
{
	struct uar_buf payload = uar_buf_make(1 << 20);
	struct uar_frames frames;
	struct reader r;

	begin(&r, (struct uar_dialect_options){ 0 });
	add(&r, UAR_EV_TASK_QUEUED, "{}");
	uar_buf_printf(&payload, "{\"message_id\":\"m\",\"text\":\"%08000d\"}", 0);
	for (size_t n = 0; n <= UAR_LIMIT_VIEW_TEXT; n += 8000)
		CHECK(add(&r, UAR_EV_MODEL_DELTA, payload.p) > 0);
	frames = (struct uar_frames){ .out = &r.out };
	CHECK_INT(uar_agui.join(r.state, &frames), UAR_ETOOBIG);
	CHECK_INT(add(&r, UAR_EV_TASK_ATTEMPT_COMPLETED, "{}"), 2);
	uar_buf_fini(&payload);
	fini(&r);
}

/* --- cursors and inputs ------------------------------------------------------------------ */

TEST(cursors_are_numbers, "")
{
	static const char *const bad[] = { "",
					   ".",
					   "1.",
					   ".1",
					   "x",
					   "1.x",
					   "-1",
					   "1.2.3",
					   "1. 2",
					   "1.4294967296",
					   "99999999999999999999" };
	struct uar_cursor c;

	CHECK(!uar_cursor_read(UAR_STR("17.2"), &c) && c.run_sequence == 17 && c.k == 2);
	CHECK(!uar_cursor_read(UAR_STR("17"), &c) && c.run_sequence == 17 && c.k == UINT32_MAX);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_MSG(uar_cursor_read(uar_str_c(bad[i]), &c) == UAR_ECURSOR, "%s", bad[i]);
}

TEST(the_last_message_of_the_user_is_the_one, "")
{
	static const char body[] =
		"{\"threadId\":\"t\",\"runId\":null,\"protocolVersion\":\"1.7\",\"state\":{\"a\":"
		"null},"
		"\"messages\":[{\"id\":\"1\",\"role\":\"user\",\"content\":\"a\"},"
		"{\"id\":\"2\",\"role\":\"assistant\",\"content\":null},{\"id\":\"3\",\"role\":"
		"\"user\","
		"\"content\":[{\"type\":\"text\",\"text\":\"b\"},{\"type\":\"image\"},"
		"{\"type\":\"text\",\"text\":\"c\"}]},{\"id\":\"4\",\"role\":\"assistant\"}]}";
	struct uar_arena arena = { 0 };
	const struct uar_json *j = NULL;
	struct uar_agui_input in;

	CHECK(!uar_json_parse(uar_str_c(body), NULL, &arena, &j, NULL));
	CHECK(uar_agui_is_input(j) && !uar_agui_input_read(j, &arena, &in, NULL));
	CHECK_STR(in.message, "b\nc");
	CHECK_STR(in.thread_id, "t");
	CHECK(!in.old_peer && !in.run_id.n);
	CHECK_STR(in.state, "{\"a\":null}");
	CHECK(uar_str_ends(in.history, UAR_STR("\"text\":\"c\"}]}")));
	CHECK(memmem(in.history.p, in.history.n, "null", 4) == NULL);
	uar_arena_fini(&arena);
}
