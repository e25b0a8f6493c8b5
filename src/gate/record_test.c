/* record_test.c - what the record of a run says, from its creation to its end. */
#include "proto/runs.h"
#include "story.h"
#include "test.h"

/* The record of the run as it stands, in the story's arena. */
static const struct uar_json *record(struct story *t)
{
	struct uar_buf b = uar_buf_make(65536);
	struct uar_jw w = uar_jw_begin(&b);
	const struct uar_json *j = NULL;
	struct uar_run_row row;

	CHECK_INT(uar_core_row(&t->s, &t->r, &t->buf, &t->arena, &row), UAR_OK);
	uar_runs_write(&w, NULL, &row);
	CHECK_INT(uar_jw_end(&w), UAR_OK);
	CHECK_INT(uar_json_parse(uar_arena_str(&t->arena, uar_buf_str(&b)), NULL, &t->arena, &j,
				 NULL),
		  UAR_OK);
	uar_buf_fini(&b);
	return j;
}

enum { STR = 1, NUM = 2, BOOL = 4, OBJ = 8, ARR = 16, NUL = 32 };

static const struct {
	const char *key;
	int kinds;
} fields[] = {
	{ "run_id", STR },
	{ "plugin_id", STR },
	{ "entry_id", STR },
	{ "status", STR },
	{ "created_at", NUM },
	{ "updated_at", NUM },
	{ "task_id", STR | NUL },
	{ "trace_id", STR | NUL },
	{ "idempotency_key", STR | NUL },
	{ "root_run_id", STR },
	{ "parent_run_id", STR | NUL },
	{ "attempt", NUM },
	{ "started_at", NUM | NUL },
	{ "finished_at", NUM | NUL },
	{ "progress", NUM | NUL },
	{ "cancel_requested", BOOL },
	{ "cancel_reason", STR | NUL },
	{ "cancel_requested_at", NUM | NUL },
	{ "error", OBJ | NUL },
	{ "result_refs", ARR },
};

static int kind_of(const struct uar_json *j)
{
	static const int kinds[] = { NUL, BOOL, NUM, NUM, STR, ARR, OBJ };

	return j ? kinds[j->kind] : 0;
}

static int at(const struct uar_json *j, const char *key)
{
	return kind_of(uar_json_get(j, uar_str_c(key)));
}

static void check_shape(const struct uar_json *j)
{
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		CHECK_MSG(at(j, fields[i].key) & fields[i].kinds, "%s", fields[i].key);
}

static uar_str word(const struct uar_json *j, const char *pointer)
{
	return uar_json_str(uar_json_pointer(j, uar_str_c(pointer)), UAR_STR("-"));
}

TEST(a_record_has_every_field_from_the_first_moment, "RUN-23 RUN-24 RUN-25 RUN-27")
{
	const struct uar_json *j;
	struct story t;

	story_init(&t, 1);
	CHECK_INT(story_begin(&t, UAR_ENTRY_LLM, true), UAR_OK);
	j = record(&t);
	check_shape(j);
	CHECK_STR(word(j, "/status"), "queued");
	CHECK(uar_str_eq(word(j, "/root_run_id"), word(j, "/run_id")));
	CHECK(at(j, "started_at") == NUL && at(j, "finished_at") == NUL);
	CHECK(at(j, "task_id") == NUL); /* the caller gave none */
	CHECK_STR(word(j, "/idempotency_key"), "key-1");
	CHECK_STR(word(j, "/trace_id"), "0123456789abcdef0123456789abcdef");
	CHECK_INT(story_do(&t, UAR_CMD_START), UAR_OK);
	j = record(&t);
	check_shape(j);
	CHECK_STR(word(j, "/status"), "running");
	CHECK(at(j, "started_at") == NUM && at(j, "finished_at") == NUL);
	CHECK(at(j, "progress") == NUL);
	story_fini(&t);
}

TEST(a_record_of_success, "RUN-29 RUN-44")
{
	const struct uar_json *j;
	struct story t;

	story_init(&t, 1);
	CHECK_INT(story_begin(&t, UAR_ENTRY_LLM, false), UAR_OK);
	CHECK_INT(story_do(&t, UAR_CMD_PREPARED), UAR_OK);
	CHECK(at(record(&t), "progress") == NUL);
	CHECK_INT(story_do(&t, UAR_CMD_MODEL_DONE), UAR_OK);
	j = record(&t);
	check_shape(j);
	CHECK_STR(word(j, "/status"), "succeeded");
	CHECK(at(j, "progress") == NUL); /* none was reported */
	CHECK(at(j, "finished_at") == NUM && at(j, "error") == NUL);
	CHECK_INT(uar_json_get(j, UAR_STR("result_refs"))->count, 0);
	story_fini(&t);
}

TEST(a_record_of_a_cancel, "RUN-15 RUN-28 RUN-53")
{
	const struct uar_json *j;
	struct story t;

	story_init(&t, 1);
	CHECK_INT(story_begin(&t, UAR_ENTRY_LLM, false), UAR_OK);
	CHECK_INT(story_do(&t, UAR_CMD_PREPARED), UAR_OK);
	j = record(&t);
	CHECK(at(j, "cancel_reason") == NUL && at(j, "cancel_requested_at") == NUL);
	CHECK(!uar_json_bool(uar_json_get(j, UAR_STR("cancel_requested")), true));
	CHECK_INT(story_do(&t, UAR_CMD_CANCEL), UAR_OK);
	j = record(&t);
	check_shape(j);
	CHECK_STR(word(j, "/status"), "cancel_requested");
	CHECK_STR(word(j, "/cancel_reason"), "enough");
	CHECK(uar_json_bool(uar_json_get(j, UAR_STR("cancel_requested")), false));
	CHECK(at(j, "cancel_requested_at") == NUM);
	CHECK_INT(story_do(&t, UAR_CMD_MODEL_DONE), UAR_OK);
	j = record(&t);
	CHECK_STR(word(j, "/status"), "canceled");
	CHECK_STR(word(j, "/error/code"), "CANCELED");
	CHECK_INT(uar_json_int(uar_json_pointer(j, UAR_STR("/usage/output_tokens")), 0), 20);
	story_fini(&t);
}

TEST(a_record_of_failure_and_of_a_timeout, "RUN-14 RUN-29")
{
	static const struct {
		enum uar_command_kind by;
		const char *status, *code;
		bool retriable;
	} ends[] = {
		{ UAR_CMD_FAIL, "failed", "INTERNAL", false },
		{ UAR_CMD_TIMEOUT, "timeout", "TIMEOUT", true },
	};

	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		const struct uar_json *j;
		struct story t;

		story_init(&t, 1);
		CHECK_INT(story_begin(&t, UAR_ENTRY_FIXTURE, false), UAR_OK);
		CHECK_INT(story_do(&t, ends[i].by), UAR_OK);
		j = record(&t);
		check_shape(j);
		CHECK_STR(word(j, "/status"), ends[i].status);
		CHECK_STR(word(j, "/error/code"), ends[i].code);
		CHECK(uar_json_bool(uar_json_pointer(j, UAR_STR("/error/details/retriable")),
				    !ends[i].retriable) == ends[i].retriable);
		CHECK(at(j, "progress") == NUL);
		story_fini(&t);
	}
}
