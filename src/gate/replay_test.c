/* replay_test.c - recorded events that go through the engine and are shown again
 * are the events they were. */
#include "proto/normalized.h"
#include "story.h"
#include "test.h"

#define RUN "\"run_id\":\"0190b4a0-0000-7000-8000-000000000003\""
#define TOOL                                                                                       \
	"{\"type\":\"ToolStart\",\"data\":{" RUN                                                   \
	",\"tool_call_id\":\"c-1\",\"tool\":\"look\",\"input\":{}}}"
#define LINE(TYPE, REST) "{\"type\":\"" TYPE "\",\"data\":{" RUN REST "}}"

/* Everything that the events of the last command show, joined. */
static uar_str shown(struct story *t, bool meta, struct uar_buf *out)
{
	struct uar_normalized_options o = { .meta = meta };
	struct uar_error error = { 0 };

	uar_buf_clear(out);
	for (size_t i = t->last; i < t->count; i++) {
		uar_err e = uar_normalized_encode(&t->log[i], &o, &t->arena, out);

		CHECK(e == UAR_OK || e == UAR_ESKIP);
		CHECK_MSG(uar_event_check(&t->log[i], &t->arena, &error) == UAR_OK, "%s: %s",
			  error.where, error.text);
	}
	return uar_buf_str(out);
}

static void round_trip(const char *before, const char *line)
{
	struct uar_buf out = uar_buf_make(1 << 20);
	struct story t;

	story_init(&t, 1);
	CHECK_INT(story_begin(&t, UAR_ENTRY_FIXTURE, false), UAR_OK);
	if (before)
		CHECK_INT(story_replay(&t, uar_str_c(before), 1), UAR_OK);
	CHECK_MSG(story_replay(&t, uar_str_c(line), 2) == UAR_OK, "%s: %s", line, t.error.text);
	CHECK_STR(shown(&t, false, &out), line);
	story_fini(&t);
	uar_buf_fini(&out);
}

TEST(text_and_reasoning_come_back, "NEV-01 NEV-03 NEV-04 NEV-17")
{
	round_trip(NULL, LINE("ChatDelta", ",\"text_delta\":\"Hello\""));
	round_trip(NULL, LINE("ChatDelta", ",\"text_delta\":\" \\n\\t\\\"\\\\/\""));
	round_trip(NULL, LINE("ChatDelta", ",\"text_delta\":\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"
					   "\xe2\x80\xa8\""));
	round_trip(NULL, LINE("ReasoningDelta", ",\"text_delta\":\"hm\""));
}

TEST(sources_and_memories_come_back, "NEV-05 NEV-06 NEV-17")
{
	round_trip(NULL, LINE("Citation", ",\"sources\":[]"));
	round_trip(NULL,
		   LINE("Citation", ",\"sources\":[{\"title\":\"A\",\"url\":\"https://a/\","
				    "\"snippet\":\"\xc3\xa9\"},{\"title\":\"\",\"url\":\"u\"}]"));
	round_trip(NULL, LINE("MemoryRecall", ",\"items\":[{\"key\":\"k\",\"value\":\"v\","
					      "\"source\":\"s\"}]"));
}

TEST(tool_calls_come_back, "NEV-07 NEV-08 NEV-09 NEV-17")
{
	static const char *const values[] = {
		"null",
		"true",
		"0",
		"-9223372036854775808",
		"9223372036854775807",
		"18446744073709551616",
		"1.7976931348623157e308",
		"0.1",
		"\"\"",
		"\"\\u0001\"",
		"[]",
		"[1,[2,{\"a\":null}]]",
		"{\"\":1,\"k \xc3\xa4\":[true]}",
	};
	char line[512];

	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		snprintf(line, sizeof line,
			 LINE("ToolStart", ",\"tool_call_id\":\"c\",\"tool\":\"t\",\"input\":%s"),
			 values[i]);
		round_trip(NULL, line);
		snprintf(line, sizeof line,
			 LINE("ToolDelta", ",\"tool_call_id\":\"c-1\",\"delta\":%s"), values[i]);
		round_trip(TOOL, line);
		snprintf(line, sizeof line,
			 LINE("ToolEnd", ",\"tool_call_id\":\"c-1\",\"output\":%s,\"ok\":true"),
			 values[i]);
		round_trip(TOOL, line);
		snprintf(line, sizeof line,
			 LINE("ToolEnd", ",\"tool_call_id\":\"c-1\",\"output\":%s,\"ok\":false"),
			 values[i]);
		round_trip(TOOL, line);
	}
}

TEST(artifacts_come_back, "NEV-10 NEV-17")
{
	round_trip(NULL,
		   LINE("Artifact",
			",\"artifact\":{\"artifact_id\":\"a-1\",\"artifact_type\":\"html\","
			"\"title\":\"T\",\"content\":\"<p>\xc3\xa4</p>\",\"language\":\"html\","
			"\"metadata\":{\"n\":[1.50,2e3]}}"));
	round_trip(NULL, LINE("Artifact",
			      ",\"artifact\":{\"artifact_id\":\"a-1\",\"artifact_type\":\"text\","
			      "\"title\":\"\",\"content\":\"\",\"metadata\":{}}"));
}

TEST(ends_come_back_and_end_the_run, "NEV-11 NEV-12 NEV-17")
{
	round_trip(NULL, LINE("RunDone", ""));
	round_trip(NULL, LINE("Error", ",\"code\":\"PROVIDER_ERROR\",\"message\":\"no \xc3\xa4\""));
}

/* The start of a recording is the run's own start: it is not told twice. */
TEST(a_recorded_start_adds_nothing, "NEV-02")
{
	struct uar_buf out = uar_buf_make(4096);
	struct story t;

	story_init(&t, 1);
	CHECK_INT(story_begin(&t, UAR_ENTRY_FIXTURE, false), UAR_OK);
	CHECK_STR(shown(&t, false, &out), LINE("RunStart", ",\"agent_id\":\"helper\""));
	CHECK_INT(story_replay(&t, UAR_STR(LINE("RunStart", ",\"agent_id\":\"other\"")), 1),
		  UAR_OK);
	CHECK_INT(t.d.event_count, 0);
	story_fini(&t);
	uar_buf_fini(&out);
}

TEST(notes_come_back, "")
{
	round_trip(NULL, LINE("meta", ",\"phase\":\"tool_loop\",\"status\":\"running\","
				      "\"title\":\"T\",\"metadata\":{\"a\":1}"));
}

/* A recorded phase tells of the run that was recorded: it moves none that replays it. */
TEST(a_note_moves_no_run_where_its_worker_is_not, "")
{
	static const char *const odd[] = { "queued", "completed", "waiting_input",
					   "lost",   "preparing", "x" };
	char line[256];

	for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
		struct story t;

		snprintf(line, sizeof line,
			 LINE("meta", ",\"phase\":\"p\",\"status\":\"%s\",\"title\":\"\""), odd[i]);
		story_init(&t, 1);
		CHECK_INT(story_begin(&t, UAR_ENTRY_FIXTURE, false), UAR_OK);
		CHECK_INT(story_replay(&t, uar_str_c(line), 1), UAR_OK);
		CHECK_INT(t.r.status, UAR_STATUS_RUNNING);
		story_fini(&t);
	}
}

TEST(lines_that_are_no_event_are_refused_by_line, "")
{
	static const char *const lines[] = {
		"{\"type\":\"Unheard\",\"data\":{}}",
		"{\"type\":1,\"data\":{}}",
		"{\"data\":{}}",
		"{\"type\":\"Citation\",\"data\":{}}",
		"{\"type\":\"MemoryRecall\",\"data\":{}}",
		"[]",
	};

	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		struct story t;

		story_init(&t, 1);
		CHECK_INT(story_begin(&t, UAR_ENTRY_FIXTURE, false), UAR_OK);
		CHECK_INT(story_replay(&t, uar_str_c(lines[i]), 7), UAR_EINVALID);
		CHECK(uar_str_starts(uar_str_c(t.error.text), UAR_STR("line 7")));
		CHECK_INT(t.d.event_count, 0);
		story_fini(&t);
	}
}
