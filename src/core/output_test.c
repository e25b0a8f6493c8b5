/* output_test.c - reports, results, attempts: what runs of plugins bring. */
#include "core/core.h"

#include "test.h"

#include "event/event.h"
#include "event/sizes.h"

/* One run in memory: commands go in, events stay for inspection. */
struct bench {
	struct uar_session s;
	struct uar_run r;
	struct uar_decision d;
	struct uar_rand_seeded seeded;
	struct uar_rand rand;
	struct uar_uuid ids;
	struct uar_arena arena;
	struct uar_buf buf;
	struct uar_core_env env;
	char run_id[UAR_UUID_TEXT + 1];
};

static const struct uar_owner owner = { UAR_STR("t"), UAR_STR("w"), UAR_STR("u") };

static void bench_init(struct bench *b)
{
	*b = (struct bench){ .s = { .sequence = 0 } };
	uar_session_init(&b->s, &owner, UAR_STR("runtime"), UAR_STR("session"));
	uar_run_init(&b->r);
	b->rand = uar_rand_seed(&b->seeded, 7);
	uar_uuid_init(&b->ids, &uar_clock_system, &b->rand);
	uar_arena_init(&b->arena, 0);
	b->buf = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
	b->env = (struct uar_core_env){ 1800000000000000, &b->ids, &b->arena, &b->buf, NULL, NULL };
	uar_uuid_next(&b->ids, b->run_id);
}

static void bench_fini(struct bench *b)
{
	uar_run_fini(&b->r);
	uar_arena_fini(&b->arena);
	uar_buf_fini(&b->buf);
}

/* Each event is checked as the store would. */
static uar_err tell(struct bench *b, const struct uar_command *c)
{
	size_t before = b->d.event_count;
	struct uar_error error = { 0 };
	struct uar_arena scratch;
	uar_err e;

	b->env.now_us += 1000;
	b->d.effect_count = 0;
	e = uar_core_decide(&b->env, &b->s, &b->r, c, &b->d, &error);
	uar_arena_init(&scratch, 0);
	for (size_t i = before; i < b->d.event_count; i++)
		CHECK_MSG(uar_event_check(&b->d.events[i], &scratch, &error) == UAR_OK, "%s: %s",
			  error.where, error.text);
	uar_arena_fini(&scratch);
	return e;
}

static uar_err tell_kind(struct bench *b, enum uar_command_kind kind)
{
	return tell(b, &(struct uar_command){ .kind = kind });
}

static struct uar_command create_command(struct bench *b, enum uar_restart restart, bool wait)
{
	return (struct uar_command){
		.kind = UAR_CMD_CREATE,
		.create = {
			.run_id = uar_str_c(b->run_id),
			.turn_id = UAR_STR("turn"),
			.task_id = UAR_STR("task"),
			.thread_id = UAR_STR("thread"),
			.new_session = true,
			.new_thread = true,
			.wait = wait,
			.source = UAR_STR("plugin"),
			.what = {
				.entry = UAR_ENTRY_PLUGIN,
				.agent_id = UAR_STR("p:e"),
				.plugin_id = UAR_STR("p"),
				.entry_id = UAR_STR("e"),
				.message = UAR_STR("{}"),
				.message_bytes = 2,
				.restart = restart,
			},
		},
	};
}

static void begin(struct bench *b, enum uar_restart restart)
{
	struct uar_command c = create_command(b, restart, false);

	bench_init(b);
	c = create_command(b, restart, false);
	CHECK(tell(b, &c) == UAR_OK);
	CHECK_INT(b->r.status, UAR_STATUS_RUNNING);
}

static const struct uar_event *last_of(const struct bench *b, enum uar_event_class cls)
{
	for (size_t i = b->d.event_count; i > 0; i--)
		if (b->d.events[i - 1].cls == cls)
			return &b->d.events[i - 1];
	return NULL;
}

static size_t count_of(const struct bench *b, enum uar_event_class cls)
{
	size_t n = 0;

	for (size_t i = 0; i < b->d.event_count; i++)
		n += b->d.events[i].cls == cls;
	return n;
}

/* The record as a tree; text and tree live in the bench's arena. */
static const struct uar_json *record(struct bench *b, struct uar_run_row *row)
{
	const struct uar_json *j = NULL;

	CHECK(uar_core_row(&b->s, &b->r, &b->buf, &b->arena, row) == UAR_OK);
	CHECK(uar_json_parse(row->detail, NULL, &b->arena, &j, NULL) == UAR_OK);
	return j;
}

static struct uar_export text_item(const char *id, const char *text)
{
	return (struct uar_export){
		.id = uar_str_c(id),
		.type = UAR_STR("text"),
		.content = uar_str_c(text),
		.sha256 = UAR_STR("00"),
		.bytes = (int64_t)strlen(text),
		.description = UAR_STR("said"),
		.metadata = UAR_STR("{\"k\":1}"),
	};
}

/* --- the table ------------------------------------------------------------------- */

/* Every pair of record statuses that some move of the table connects. */
static bool connected(const char *from, const char *to)
{
	for (int f = 0; f < UAR_STATUS_COUNT; f++)
		for (int on = 0; on < UAR_IN_COUNT; on++) {
			struct uar_move m =
				uar_run_move((enum uar_status)f, (enum uar_run_input)on);

			if (m.legal && strcmp(uar_status_record((enum uar_status)f), from) == 0 &&
			    strcmp(uar_status_record(m.to), to) == 0)
				return true;
		}
	return false;
}

TEST(only_the_named_moves_exist, "RUN-14 RUN-16 RUN-17")
{
	static const char *const words[] = { "queued", "running",  "cancel_requested", "succeeded",
					     "failed", "canceled", "timeout" };
	static const char *const allowed[][2] = {
		{ "queued", "running" },
		{ "queued", "canceled" },
		{ "running", "succeeded" },
		{ "running", "failed" },
		{ "running", "timeout" },
		{ "running", "cancel_requested" },
		{ "cancel_requested", "canceled" },
		{ "cancel_requested", "timeout" },
	};

	for (size_t f = 0; f < ARRAY_LEN(words); f++)
		for (size_t t = 0; t < ARRAY_LEN(words); t++) {
			bool want = false;

			for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
				want |= strcmp(allowed[i][0], words[f]) == 0 &&
					strcmp(allowed[i][1], words[t]) == 0;
			if (f == t)
				continue;
			CHECK_MSG(connected(words[f], words[t]) == want, "%s -> %s", words[f],
				  words[t]);
		}
}

TEST(an_ended_run_takes_nothing_more, "RUN-17 RUN-21")
{
	static const enum uar_command_kind ends[] = { UAR_CMD_FINISH, UAR_CMD_FAIL,
						      UAR_CMD_TIMEOUT };

	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		struct uar_command end = { .kind = ends[i] };
		struct bench b;
		size_t events;

		end.fail.code = end.fail.category = end.fail.message = UAR_STR("X");
		if (ends[i] != UAR_CMD_FAIL)
			end = (struct uar_command){ .kind = ends[i] };
		begin(&b, UAR_RESTART_RETRY);
		CHECK(tell(&b, &end) == UAR_OK);
		CHECK(uar_status_terminal(b.r.status));
		events = b.d.event_count;
		for (int k = 0; k < UAR_CMD_COUNT; k++)
			CHECK_MSG(tell_kind(&b, (enum uar_command_kind)k) == UAR_ESTATE,
				  "command %d", k);
		CHECK_INT(b.d.event_count, events);
		bench_fini(&b);
	}
}

/* --- reports ------------------------------------------------------------------------ */

TEST(progress_shows_in_the_record, "RUN-27 RUN-44 RUN-47")
{
	struct uar_command c = { .kind = UAR_CMD_PROGRESS,
				 .progress = { .value = 0.25,
					       .eta_seconds = 4.5,
					       .step = 1,
					       .step_total = 4,
					       .stage = UAR_STR("reading"),
					       .message = UAR_STR("page 1"),
					       .metrics = UAR_STR("{\"pages\":1}") } };
	struct uar_command later = { .kind = UAR_CMD_PROGRESS,
				     .progress = { .value = -1,
						   .eta_seconds = -1,
						   .step = 2,
						   .step_total = -1,
						   .coalesced = 3 } };
	const struct uar_json *j;
	struct uar_run_row row;
	struct bench b;

	begin(&b, UAR_RESTART_RETRY);
	j = record(&b, &row);
	CHECK(uar_json_get(j, UAR_STR("progress"))->kind == UAR_JSON_NULL);
	CHECK(uar_json_get(j, UAR_STR("stage"))->kind == UAR_JSON_NULL);
	CHECK(tell(&b, &c) == UAR_OK);
	CHECK(tell(&b, &later) == UAR_OK);
	CHECK_INT(b.r.status, UAR_STATUS_RUNNING);
	j = record(&b, &row);
	CHECK(uar_json_double(uar_json_get(j, UAR_STR("progress")), 0) == 0.25);
	CHECK(uar_json_double(uar_json_get(j, UAR_STR("eta_seconds")), 0) == 4.5);
	CHECK_INT(uar_json_int(uar_json_get(j, UAR_STR("step")), 0), 2);
	CHECK_INT(uar_json_int(uar_json_get(j, UAR_STR("step_total")), 0), 4);
	CHECK_STR(uar_json_str(uar_json_get(j, UAR_STR("stage")), UAR_STR("")), "reading");
	CHECK_STR(uar_json_str(uar_json_get(j, UAR_STR("message")), UAR_STR("")), "page 1");
	CHECK_STR(uar_json_get(j, UAR_STR("metrics"))->text, "{\"pages\":1}");
	bench_fini(&b);
}

TEST(success_is_all_of_what_was_reported, "")
{
	struct uar_command half = {
		.kind = UAR_CMD_PROGRESS,
		.progress = { .value = 0.5, .eta_seconds = 3, .step = 1, .step_total = 2 }
	};
	const struct uar_json *j;
	struct uar_run_row row;
	struct bench b;

	begin(&b, UAR_RESTART_RETRY);
	CHECK(tell(&b, &half) == UAR_OK);
	CHECK(tell_kind(&b, UAR_CMD_FINISH) == UAR_OK);
	j = record(&b, &row);
	CHECK(uar_json_double(uar_json_get(j, UAR_STR("progress")), 0) == 1);
	CHECK_INT(uar_json_int(uar_json_get(j, UAR_STR("step")), 0), 1);
	CHECK_INT(uar_json_int(uar_json_get(j, UAR_STR("step_total")), 0), 2);
	CHECK(uar_json_double(uar_json_get(j, UAR_STR("eta_seconds")), 0) == 3);
	CHECK_STR(row.status, "succeeded");
	bench_fini(&b);
}

TEST(without_reports_there_is_no_progress, "RUN-44")
{
	const struct uar_json *j;
	struct uar_run_row row;
	struct bench b;

	begin(&b, UAR_RESTART_RETRY);
	CHECK(tell_kind(&b, UAR_CMD_FINISH) == UAR_OK);
	j = record(&b, &row);
	CHECK_STR(row.status, "succeeded");
	CHECK(uar_json_get(j, UAR_STR("progress"))->kind == UAR_JSON_NULL);
	bench_fini(&b);
}

TEST(an_export_is_an_artifact, "EXP-03")
{
	struct uar_command c = { .kind = UAR_CMD_EXPORT };
	const struct uar_event *ev;
	struct bench b;

	begin(&b, UAR_RESTART_RETRY);
	c.export = text_item("item-1", "hello");
	CHECK(tell(&b, &c) == UAR_OK);
	ev = last_of(&b, UAR_EV_ARTIFACT_CHANGED);
	REQUIRE(ev);
	CHECK_STR(ev->ids[UAR_ID_ARTIFACT], "item-1");
	CHECK_STR(ev->ids[UAR_ID_RUN], b.run_id);
	CHECK_STR(ev->refs, "{\"read_ref\":\"artifact://item-1@1\"}");
	bench_fini(&b);
}

/* --- ends ------------------------------------------------------------------------------ */

TEST(result_and_refs_come_with_the_end, "RUN-19 RUN-29 RUN-30 RUN-31")
{
	struct uar_command item = { .kind = UAR_CMD_EXPORT };
	struct uar_command end = { .kind = UAR_CMD_FINISH,
				   .result_refs.ids = UAR_STR("[\"item-2\",\"item-1\"]") };
	const struct uar_json *j;
	struct uar_run_row row;
	struct bench b;
	size_t before;

	begin(&b, UAR_RESTART_RETRY);
	item.export = text_item("item-1", "on the way");
	CHECK(tell(&b, &item) == UAR_OK);
	j = record(&b, &row);
	CHECK_INT(uar_json_get(j, UAR_STR("result_refs"))->count, 0);
	before = b.d.event_count;
	end.export = text_item("item-2", "returned");
	end.export.role = UAR_STR("result");
	CHECK(tell(&b, &end) == UAR_OK);
	CHECK(b.d.events[before].cls == UAR_EV_ARTIFACT_CHANGED);
	CHECK(b.d.events[before + 1].cls == UAR_EV_TASK_ATTEMPT_COMPLETED);
	j = record(&b, &row);
	CHECK_STR(row.status, "succeeded");
	CHECK_STR(uar_json_get(j, UAR_STR("result_refs"))->text, "[\"item-2\",\"item-1\"]");
	bench_fini(&b);
}

TEST(a_result_after_the_cancel_is_kept, "RUN-18 RUN-33 RUN-35 RUN-54")
{
	struct uar_command cancel = { .kind = UAR_CMD_CANCEL, .text = UAR_STR("enough") };
	struct uar_command item = { .kind = UAR_CMD_EXPORT };
	struct uar_command end = { .kind = UAR_CMD_FINISH,
				   .result_refs.ids = UAR_STR("[\"late\"]") };
	const struct uar_json *j;
	struct uar_run_row row;
	struct bench b;

	begin(&b, UAR_RESTART_RETRY);
	CHECK(tell(&b, &cancel) == UAR_OK);
	CHECK_INT(b.d.effect_count, 1);
	CHECK_INT(b.d.effects[0], UAR_DO_STOP_ENTRY);
	j = record(&b, &row);
	CHECK_STR(row.status, "cancel_requested");
	CHECK(uar_json_bool(uar_json_get(j, UAR_STR("cancel_requested")), false));
	CHECK_STR(uar_json_str(uar_json_get(j, UAR_STR("cancel_reason")), UAR_STR("")), "enough");
	item.export = text_item("late", "partial");
	CHECK(tell(&b, &item) == UAR_OK);
	CHECK(tell(&b, &end) == UAR_OK);
	j = record(&b, &row);
	CHECK_STR(row.status, "canceled");
	CHECK_STR(uar_json_get(j, UAR_STR("result_refs"))->text, "[\"late\"]");
	CHECK_STR(uar_json_str(uar_json_pointer(j, UAR_STR("/error/code")), UAR_STR("")),
		  "CANCELED");
	bench_fini(&b);
}

TEST(a_failure_keeps_what_the_plugin_said, "ERR-01 ERR-06 ERR-07")
{
	struct uar_command end = { .kind = UAR_CMD_FAIL,
				   .fail = { UAR_STR("QUOTA"), UAR_STR("no more"),
					     UAR_STR("execution"), true },
				   .details = UAR_STR("{\"left\":0}") };
	const struct uar_json *j;
	struct uar_run_row row;
	struct bench b;

	begin(&b, UAR_RESTART_RETRY);
	CHECK(tell(&b, &end) == UAR_OK);
	j = record(&b, &row);
	CHECK_STR(row.status, "failed");
	CHECK_STR(uar_json_pointer(j, UAR_STR("/error"))->text,
		  "{\"code\":\"QUOTA\",\"message\":\"no more\",\"details\":{\"retriable\":true,"
		  "\"plugin\":{\"left\":0}}}");
	bench_fini(&b);
}

TEST(a_queued_run_is_cancelled_at_once, "RUN-34")
{
	struct uar_command cancel = { .kind = UAR_CMD_CANCEL, .text = UAR_STR("") };
	struct uar_command c;
	struct bench b;

	bench_init(&b);
	c = create_command(&b, UAR_RESTART_RETRY, true);
	CHECK(tell(&b, &c) == UAR_OK);
	CHECK_INT(b.r.status, UAR_STATUS_QUEUED);
	CHECK(tell(&b, &cancel) == UAR_OK);
	CHECK_INT(b.r.status, UAR_STATUS_CANCELLED);
	CHECK_INT(count_of(&b, UAR_EV_TASK_ATTEMPT_STARTED), 0);
	bench_fini(&b);
}

/* --- after a restart, and again ---------------------------------------------------------- */

TEST(after_a_restart_the_policy_decides, "")
{
	const struct uar_json *j;
	struct uar_run_row row;
	struct bench b;

	begin(&b, UAR_RESTART_RETRY);
	CHECK(tell_kind(&b, UAR_CMD_RECOVER) == UAR_OK);
	CHECK_INT(b.r.status, UAR_STATUS_RUNNING);
	CHECK_INT(b.d.effects[0], UAR_DO_START_ENTRY);
	bench_fini(&b);

	begin(&b, UAR_RESTART_FAIL);
	CHECK(tell_kind(&b, UAR_CMD_RECOVER) == UAR_OK);
	CHECK_INT(b.r.status, UAR_STATUS_LOST);
	CHECK_INT(count_of(&b, UAR_EV_TASK_LOST), 1);
	CHECK_INT(count_of(&b, UAR_EV_TASK_ATTEMPT_FAILED), 1);
	j = record(&b, &row);
	CHECK_STR(row.status, "failed");
	CHECK(row.terminal);
	CHECK_STR(uar_json_str(uar_json_pointer(j, UAR_STR("/error/code")), UAR_STR("")), "LOST");
	bench_fini(&b);
}

TEST(a_retry_names_its_parents, "RUN-25 RUN-26 RUN-38 RUN-39")
{
	struct uar_run_row row;
	struct uar_command c;
	struct bench b;

	begin(&b, UAR_RESTART_RETRY);
	record(&b, &row);
	CHECK_STR(row.root_run_id, b.run_id);
	CHECK_INT(row.parent_run_id.n, 0);
	CHECK_INT(row.attempt, 1);
	bench_fini(&b);

	bench_init(&b);
	c = create_command(&b, UAR_RESTART_RETRY, false);
	c.create.new_session = c.create.new_thread = false;
	c.create.root_run_id = UAR_STR("first");
	c.create.parent_run_id = UAR_STR("second");
	c.create.what.attempt = 3;
	CHECK(tell(&b, &c) == UAR_OK);
	record(&b, &row);
	CHECK_STR(row.root_run_id, "first");
	CHECK_STR(row.parent_run_id, "second");
	CHECK_INT(row.attempt, 3);
	CHECK_INT(count_of(&b, UAR_EV_TASK_RETRYING), 1);
	CHECK_INT(count_of(&b, UAR_EV_TASK_CREATED), 0);
	CHECK(tell_kind(&b, UAR_CMD_FINISH) == UAR_OK);
	bench_fini(&b);
}
