/* validate_test.c - a good log passes; each kind of damage is named by its rule. */
#include "core/validate.h"

#include "story.h"
#include "test.h"

struct found {
	struct uar_violation first;
	size_t count;
};

static void keep(void *ctx, const struct uar_violation *v)
{
	struct found *f = ctx;

	if (!f->count++)
		f->first = *v;
}

/* A run with an answer. */
static void tell_run(struct story *t)
{
	static const enum uar_command_kind script[] = { UAR_CMD_PREPARED, UAR_CMD_TEXT,
							UAR_CMD_TEXT, UAR_CMD_MODEL_DONE };

	story_init(t, 7);
	CHECK_INT(story_begin(t, UAR_ENTRY_LLM, false), UAR_OK);
	for (size_t i = 0; i < ARRAY_LEN(script); i++)
		CHECK_INT(story_do(t, script[i]), UAR_OK);
}

static struct found judge(const struct uar_event *log, size_t n)
{
	struct found f = { .count = 0 };
	struct uar_validator *v = NULL;

	if (!CHECK(uar_validator_create(keep, &f, &v) == UAR_OK))
		return f;
	for (size_t i = 0; i < n; i++)
		CHECK_INT(uar_validator_event(v, &log[i]), UAR_OK);
	CHECK_INT(uar_validator_counts(v).events, n);
	CHECK_INT(uar_validator_counts(v).violations, f.count);
	uar_validator_destroy(v);
	return f;
}

static size_t index_of(const struct story *t, enum uar_event_class cls)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->log[i].cls == cls)
			return i;
	uar_test_fail(__FILE__, __LINE__, "%s is not in the log", uar_event_info[cls].type);
	return 0;
}

TEST(a_good_log_passes, "")
{
	struct story t;
	struct found f;

	tell_run(&t);
	f = judge(t.log, t.count);
	CHECK_INT(f.count, 0);
	story_fini(&t);
}

TEST(a_gap_is_found, "")
{
	struct story t;
	struct found f;
	size_t at;

	tell_run(&t);
	at = index_of(&t, UAR_EV_MODEL_DELTA);
	memmove(&t.log[at], &t.log[at + 1], (t.count - at - 1) * sizeof *t.log);
	f = judge(t.log, t.count - 1);
	CHECK_STR(uar_str_c(f.first.rule), "sequence");
	CHECK_INT(f.first.sequence, at + 2);
	CHECK(uar_str_is(t.log[at].ids[UAR_ID_RUN], f.first.run_id));
	story_fini(&t);
}

TEST(an_id_that_comes_twice_is_found, "")
{
	struct story t;
	struct found f;

	tell_run(&t);
	t.log[3].event_id = t.log[1].event_id;
	f = judge(t.log, t.count);
	CHECK_STR(uar_str_c(f.first.rule), "event-id");
	CHECK_INT(f.first.sequence, 4);
	story_fini(&t);
}

/* Puts a copy of the event at `from` in the place of the one at `to`. */
static void repeat(struct story *t, size_t from, size_t to)
{
	struct uar_event copy = t->log[from];

	copy.sequence = t->log[to].sequence;
	copy.run_sequence = t->log[to].run_sequence;
	copy.event_id = t->log[to].event_id;
	t->log[to] = copy;
}

TEST(an_attempt_that_ends_twice_is_found, "")
{
	struct story t;
	struct found f;
	size_t end;

	tell_run(&t);
	end = index_of(&t, UAR_EV_TASK_ATTEMPT_COMPLETED);
	REQUIRE(end + 1 < t.count);
	repeat(&t, end, end + 1);
	f = judge(t.log, t.count);
	CHECK_STR(uar_str_c(f.first.rule), "attempt");
	CHECK_INT(f.first.sequence, end + 2);
	story_fini(&t);
}

TEST(what_follows_the_end_of_a_run_is_found, "")
{
	struct story t;
	struct found f;
	size_t end;

	tell_run(&t);
	end = index_of(&t, UAR_EV_TASK_ATTEMPT_COMPLETED);
	repeat(&t, index_of(&t, UAR_EV_MODEL_DELTA), end + 1);
	f = judge(t.log, t.count);
	CHECK_STR(uar_str_c(f.first.rule), "attempt");
	story_fini(&t);
}

TEST(an_answer_before_its_request_is_found, "")
{
	struct story t;
	struct found f;

	tell_run(&t);
	repeat(&t, index_of(&t, UAR_EV_MODEL_COMPLETED), index_of(&t, UAR_EV_MODEL_REQUESTED));
	f = judge(t.log, t.count);
	CHECK_STR(uar_str_c(f.first.rule), "model");
	story_fini(&t);
}

TEST(a_payload_that_breaks_its_schema_is_found, "")
{
	struct story t;
	struct found f;

	tell_run(&t);
	t.log[index_of(&t, UAR_EV_MODEL_DELTA)].payload = UAR_STR("{\"text\":7}");
	f = judge(t.log, t.count);
	CHECK_STR(uar_str_c(f.first.rule), "schema");
	story_fini(&t);
}

static void tell_tool(struct story *t)
{
	static const enum uar_command_kind script[] = { UAR_CMD_PREPARED, UAR_CMD_TEXT,
							UAR_CMD_MODEL_CALLS, UAR_CMD_TOOL_BEGIN,
							UAR_CMD_TOOL_OVER };

	story_init(t, 8);
	CHECK_INT(story_begin(t, UAR_ENTRY_LLM, false), UAR_OK);
	for (size_t i = 0; i < ARRAY_LEN(script); i++)
		CHECK_INT(story_do(t, script[i]), UAR_OK);
}

TEST(a_call_has_one_start_and_one_end, "")
{
	struct story t;
	struct found f;
	size_t start, end;

	tell_tool(&t);
	CHECK_INT(judge(t.log, t.count).count, 0);
	start = index_of(&t, UAR_EV_TOOL_STARTED);
	end = index_of(&t, UAR_EV_TOOL_RESULT);
	REQUIRE(end > start);
	repeat(&t, end, start);
	f = judge(t.log, t.count);
	CHECK_STR(uar_str_c(f.first.rule), "tool");
	story_fini(&t);
	tell_tool(&t);
	repeat(&t, start, end);
	f = judge(t.log, t.count);
	CHECK_STR(uar_str_c(f.first.rule), "tool");
	story_fini(&t);
}

TEST(a_record_that_disagrees_is_found, "")
{
	struct story t;
	struct found f = { .count = 0 };
	struct uar_validator *v = NULL;
	struct uar_run_row row = { .status = UAR_STR("succeeded") };

	tell_run(&t);
	REQUIRE(uar_validator_create(keep, &f, &v) == UAR_OK);
	for (size_t i = 0; i < t.count; i++)
		CHECK_INT(uar_validator_event(v, &t.log[i]), UAR_OK);
	row.run_id = t.r.id.run_id;
	row.session_id = t.s.session_id;
	uar_validator_row(v, &row);
	CHECK_INT(f.count, 0);
	row.status = UAR_STR("failed");
	uar_validator_row(v, &row);
	CHECK_INT(f.count, 1);
	CHECK_STR(uar_str_c(f.first.rule), "row");
	row.run_id = UAR_STR("another");
	uar_validator_row(v, &row);
	CHECK_INT(f.count, 2);
	uar_validator_destroy(v);
	story_fini(&t);
}

TEST(the_record_of_a_question_that_disagrees_is_found, "")
{
	struct story t;
	struct found f = { .count = 0 };
	struct uar_validator *v = NULL;
	struct uar_row row = { .kind = UAR_ROW_ACTION, .status = UAR_STR("pending"), .open = true };

	story_init(&t, 7);
	CHECK_INT(story_begin(&t, UAR_ENTRY_CODEX, false), UAR_OK);
	CHECK_INT(story_do(&t, UAR_CMD_PREPARED), UAR_OK);
	CHECK_INT(story_do(&t, UAR_CMD_TOOL), UAR_OK);
	CHECK_INT(story_do(&t, UAR_CMD_ASK), UAR_OK);
	CHECK_INT(story_do(&t, UAR_CMD_ANSWER), UAR_OK);
	REQUIRE(uar_validator_create(keep, &f, &v) == UAR_OK);
	row.id = t.log[index_of(&t, UAR_EV_ACTION_REQUIRED)].ids[UAR_ID_ACTION];
	row.parent = t.r.id.run_id;
	row.session_id = t.s.session_id;
	uar_validator_question(v, &row); /* nothing is known about its run */
	for (size_t i = 0; i < index_of(&t, UAR_EV_ACTION_RESOLVED); i++)
		CHECK_INT(uar_validator_event(v, &t.log[i]), UAR_OK);
	uar_validator_question(v, &row);
	CHECK_INT(f.count, 0);
	for (size_t i = index_of(&t, UAR_EV_ACTION_RESOLVED); i < t.count; i++)
		CHECK_INT(uar_validator_event(v, &t.log[i]), UAR_OK);
	row.open = false;
	uar_validator_question(v, &row);
	CHECK_INT(f.count, 0);
	row.open = true;
	uar_validator_question(v, &row);
	CHECK_INT(f.count, 1);
	CHECK_STR(uar_str_c(f.first.rule), "row");
	uar_validator_destroy(v);
	story_fini(&t);
}

/* Two owners have a task of the same id; the events of one say nothing about the other's. */
TEST(the_record_of_a_task_that_disagrees_is_found, "VAL-10")
{
	struct found f = { .count = 0 };
	struct uar_validator *v = NULL;
	struct uar_event ev = { .cls = UAR_EV_TASK_CREATED,
				.sequence = 1,
				.payload = UAR_STR("{\"status\":\"accepted\"}") };
	struct uar_row row = { .kind = UAR_ROW_TASK,
			       .id = UAR_STR("t"),
			       .status = UAR_STR("accepted"),
			       .owner = { UAR_STR("a"), UAR_STR("b"), UAR_STR("c") } };
	size_t told;

	ev.ids[UAR_ID_TENANT] = row.owner.tenant;
	ev.ids[UAR_ID_WORKSPACE] = row.owner.workspace;
	ev.ids[UAR_ID_USER] = row.owner.user;
	ev.ids[UAR_ID_SESSION] = UAR_STR("s");
	ev.ids[UAR_ID_TASK] = row.id;
	REQUIRE(uar_validator_create(keep, &f, &v) == UAR_OK);
	CHECK_INT(uar_validator_event(v, &ev), UAR_OK);
	told = f.count; /* that the event lacks members */
	uar_validator_task(v, &row);
	CHECK_INT(f.count, told);
	row.status = UAR_STR("failed");
	uar_validator_task(v, &row);
	CHECK_INT(f.count, told + 1);
	row.open = true;
	uar_validator_task(v, &row);
	CHECK_INT(f.count, told + 1);
	row.open = false;
	row.owner.user = UAR_STR("d");
	uar_validator_task(v, &row);
	CHECK_INT(f.count, told + 1);
	uar_validator_destroy(v);
}
