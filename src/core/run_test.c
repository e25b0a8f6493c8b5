/* run_test.c - single runs of the engine looked at closely: phases, usage, long
 * text, damaged logs, tools. */
#include "story.h"
#include "test.h"
#include "core/limits.h"

static const struct uar_json *payload(struct story *t, const struct uar_event *ev)
{
	const struct uar_json *j = NULL;

	CHECK_INT(uar_json_parse(ev->payload, NULL, &t->arena, &j, NULL), UAR_OK);
	return j;
}

static const struct uar_event *last_of(const struct story *t, enum uar_event_class cls)
{
	for (size_t i = t->count; i-- > 0;)
		if (t->log[i].cls == cls)
			return &t->log[i];
	return NULL;
}

static uar_str text_at(struct story *t, const struct uar_event *ev, const char *pointer)
{
	return uar_json_str(uar_json_pointer(payload(t, ev), uar_str_c(pointer)), UAR_STR("-"));
}

static int64_t int_at(struct story *t, const struct uar_event *ev, const char *pointer)
{
	return uar_json_int(uar_json_pointer(payload(t, ev), uar_str_c(pointer)), -1);
}

static void play(struct story *t, const enum uar_command_kind *script, size_t n)
{
	CHECK_INT(story_begin(t, UAR_ENTRY_LLM, false), UAR_OK);
	for (size_t i = 0; i < n; i++)
		CHECK_INT(story_do(t, script[i]), UAR_OK);
}
#define PLAY(T, ...)                                                                               \
	play(T, (const enum uar_command_kind[]){ __VA_ARGS__ },                                    \
	     ARRAY_LEN(((const enum uar_command_kind[]){ __VA_ARGS__ })))

TEST(phases_come_in_order, "RUN-03")
{
	static const char *const phases[] = { "start",		 "context_assembly",
					      "skill_selection", "model_selection",
					      "stream_start",	 "llm_streaming",
					      "tool_loop",	 "finalize" };
	struct story t;
	size_t n = 0;

	story_init(&t, 1);
	PLAY(&t, UAR_CMD_PREPARED, UAR_CMD_REASONING, UAR_CMD_TEXT, UAR_CMD_TEXT,
	     UAR_CMD_MODEL_DONE);
	for (size_t i = 0; i < t.count; i++)
		if (t.log[i].cls == UAR_EV_RUN_STATUS) {
			REQUIRE(n < ARRAY_LEN(phases));
			CHECK_STR(text_at(&t, &t.log[i], "/phase"), phases[n++]);
		}
	CHECK_INT(n, ARRAY_LEN(phases));
	CHECK_INT(t.r.status, UAR_STATUS_COMPLETED);
	story_fini(&t);
}

TEST(effects_follow_the_facts_they_belong_to, "")
{
	struct story t;

	story_init(&t, 1);
	CHECK_INT(story_begin(&t, UAR_ENTRY_LLM, true), UAR_OK);
	CHECK_INT(t.d.effect_count, 0);
	CHECK_INT(story_do(&t, UAR_CMD_START), UAR_OK);
	CHECK(t.d.effect_count == 1 && t.d.effects[0] == UAR_DO_START_ENTRY);
	CHECK_INT(story_do(&t, UAR_CMD_PREPARED), UAR_OK);
	CHECK(t.d.effect_count == 1 && t.d.effects[0] == UAR_DO_CALL_MODEL);
	CHECK_INT(story_do(&t, UAR_CMD_TEXT), UAR_OK);
	CHECK_INT(t.d.effect_count, 0);
	CHECK_INT(story_do(&t, UAR_CMD_CANCEL), UAR_OK);
	CHECK(t.d.effect_count == 1 && t.d.effects[0] == UAR_DO_STOP_ENTRY);
	CHECK_INT(story_do(&t, UAR_CMD_STOPPED), UAR_OK);
	CHECK_INT(t.d.effect_count, 0);
	story_fini(&t);
}

TEST(a_cancelled_run_keeps_its_usage, "RUN-53")
{
	static const enum uar_event_class ends[] = { UAR_EV_TASK_ATTEMPT_FAILED };
	struct story t;

	story_init(&t, 1);
	PLAY(&t, UAR_CMD_PREPARED, UAR_CMD_TEXT, UAR_CMD_CANCEL, UAR_CMD_MODEL_DONE);
	CHECK_INT(t.r.status, UAR_STATUS_CANCELLED);
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		const struct uar_event *ev = last_of(&t, ends[i]);

		REQUIRE(ev != NULL);
		CHECK_STR(text_at(&t, ev, "/status"), "cancelled");
		CHECK_STR(text_at(&t, ev, "/error/code"), "CANCELED");
		CHECK_STR(text_at(&t, ev, "/message"), "enough");
		CHECK_INT(int_at(&t, ev, "/usage/input_tokens"), 10);
		CHECK_INT(int_at(&t, ev, "/usage/output_tokens"), 20);
	}
	CHECK_INT(t.r.call.input_tokens, 10);
	CHECK_INT(t.r.call.output_tokens, 20);
	story_fini(&t);
}

/* Nobody told what the cut calls cost: an estimate stands for it, and says so. */
TEST(a_call_that_was_cut_off_counts_by_estimate, "RUN-53")
{
	static const struct {
		enum uar_command_kind script[5];
		int64_t input, output;
	} cuts[] = {
		{ { UAR_CMD_PREPARED, UAR_CMD_TEXT, UAR_CMD_CANCEL, UAR_CMD_STOPPED }, 13, 3 },
		{ { UAR_CMD_PREPARED, UAR_CMD_TEXT, UAR_CMD_REASONING, UAR_CMD_TIMEOUT }, 13, 5 },
		{ { UAR_CMD_PREPARED, UAR_CMD_TEXT, UAR_CMD_RECOVER, UAR_CMD_PREPARED,
		    UAR_CMD_MODEL_DONE },
		  13 + 10,
		  3 + 20 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cuts); i++) {
		const struct uar_event *ev;
		struct story t;

		story_init(&t, 1);
		CHECK_INT(story_begin(&t, UAR_ENTRY_LLM, false), UAR_OK);
		for (size_t k = 0; k < ARRAY_LEN(cuts[i].script) && cuts[i].script[k]; k++)
			CHECK_INT(story_do(&t, cuts[i].script[k]), UAR_OK);
		ev = last_of(&t,
			     i < 2 ? UAR_EV_TASK_ATTEMPT_FAILED : UAR_EV_TASK_ATTEMPT_COMPLETED);
		REQUIRE(ev != NULL);
		CHECK_INT(int_at(&t, ev, "/usage/input_tokens"), cuts[i].input);
		CHECK_INT(int_at(&t, ev, "/usage/output_tokens"), cuts[i].output);
		CHECK(uar_json_bool(uar_json_pointer(payload(&t, ev), UAR_STR("/usage/estimated")),
				    false));
		ev = last_of(&t, UAR_EV_MODEL_FAILED);
		CHECK_INT(int_at(&t, ev, "/usage/input_tokens"), 13);
		story_fini(&t);
	}
}

TEST(a_request_that_was_refused_used_nothing, "RUN-53")
{
	struct uar_command c = story_command(UAR_CMD_MODEL_FAILED);
	struct story t;

	story_init(&t, 1);
	PLAY(&t, UAR_CMD_PREPARED);
	CHECK_INT(story_tell(&t, &c), UAR_OK);
	CHECK_INT(int_at(&t, last_of(&t, UAR_EV_MODEL_FAILED), "/usage/input_tokens"), -1);
	CHECK_INT(int_at(&t, last_of(&t, UAR_EV_TASK_ATTEMPT_FAILED), "/usage/total_tokens"), 0);
	CHECK(!t.r.call.estimated);
	story_fini(&t);
}

/* What its row tells is enough to end a run, and the record keeps what it knew. */
TEST(a_run_that_cannot_be_read_is_ended_by_its_row, "RUN-16")
{
	static const struct {
		bool wait;
		enum uar_command_kind script[2];
		enum uar_status end;
	} rows[] = {
		{ true, { 0 }, UAR_STATUS_LOST },
		{ false, { UAR_CMD_PREPARED, UAR_CMD_TEXT }, UAR_STATUS_LOST },
		{ false, { UAR_CMD_PREPARED, UAR_CMD_CANCEL }, UAR_STATUS_CANCELLED },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct uar_run_row row, last;
		struct uar_run r, before;
		struct story t;

		story_init(&t, 1);
		CHECK_INT(story_begin(&t, UAR_ENTRY_LLM, rows[i].wait), UAR_OK);
		for (size_t k = 0; k < 2 && rows[i].script[k]; k++)
			CHECK_INT(story_do(&t, rows[i].script[k]), UAR_OK);
		CHECK_INT(uar_core_row(&t.s, &t.r, &t.buf, &t.arena, &row), UAR_OK);
		uar_run_init(&r);
		CHECK_INT(uar_core_from_row(&row, t.r.run_sequence, &t.arena, &r), UAR_OK);
		before = t.r; /* its strings are the row's */
		t.r = r;
		CHECK_INT(story_do(&t, UAR_CMD_LOST), UAR_OK);
		CHECK_INT(t.r.status, rows[i].end);
		CHECK_INT(uar_core_row(&t.s, &t.r, &t.buf, &t.arena, &last), UAR_OK);
		CHECK(last.terminal && uar_str_eq(last.turn_id, row.turn_id));
		CHECK(uar_str_eq(last.agent_id, row.agent_id));
		CHECK(t.r.id.trace_id.n == 32 && t.r.what.idempotency_key.n);
		uar_run_fini(&before);
		story_fini(&t);
	}
}

/* The text of one member of a JSON object. */
static uar_str member_of(struct story *t, uar_str object, const char *key)
{
	const struct uar_json *j = NULL;

	CHECK_INT(uar_json_parse(object, NULL, &t->arena, &j, NULL), UAR_OK);
	j = uar_json_get(j, uar_str_c(key));
	return j ? j->text : UAR_STR_NONE;
}

/* The end of a run that is known by its row alone denies nothing that the row told. */
static void keeps(struct story *t, const char *const *keys, size_t n)
{
	struct uar_run_row row, last;
	struct uar_run r, before;

	CHECK_INT(uar_core_row(&t->s, &t->r, &t->buf, &t->arena, &row), UAR_OK);
	uar_run_init(&r);
	CHECK_INT(uar_core_from_row(&row, t->r.run_sequence, &t->arena, &r), UAR_OK);
	before = t->r; /* its strings are the row's */
	t->r = r;
	CHECK_INT(story_do(t, UAR_CMD_LOST), UAR_OK);
	CHECK_INT(uar_core_row(&t->s, &t->r, &t->buf, &t->arena, &last), UAR_OK);
	for (size_t i = 0; i < n; i++) {
		uar_str was = member_of(t, row.detail, keys[i]);
		uar_str is = member_of(t, last.detail, keys[i]);

		CHECK_MSG(was.n && !uar_str_is(was, "null") && uar_str_eq(was, is),
			  "%s: %.*s, then %.*s", keys[i], UAR_FMT(was), UAR_FMT(is));
	}
	uar_run_fini(&before);
}

TEST(the_end_by_the_row_denies_nothing_that_the_row_knew, "")
{
	static const char *const cancel[] = { "entry", "cancel_requested_at", "cancel_reason" };
	static const char *const progress[] = { "entry",      "progress", "stage",  "message",
						"step_total", "step",	  "metrics" };
	static const char *const used[] = { "entry", "usage", "action_count" };
	static const char *const session[] = { "entry", "backend_session", "action_count" };
	static const struct {
		enum uar_entry entry;
		enum uar_command_kind script[5];
		const char *const *keys;
		size_t n;
		const char *worker; /* as task.lost names it; NULL: the run is cancelled */
	} rows[] = {
		{ UAR_ENTRY_LLM, { UAR_CMD_PREPARED, UAR_CMD_CANCEL }, cancel, 3, NULL },
		{ UAR_ENTRY_PLUGIN, { UAR_CMD_PROGRESS }, progress, 7, "uar.agent" },
		{ UAR_ENTRY_LLM,
		  { UAR_CMD_PREPARED, UAR_CMD_MODEL_CALLS, UAR_CMD_ASK },
		  used,
		  3,
		  "llm.chat" },
		{ UAR_ENTRY_CODEX,
		  { UAR_CMD_PREPARED, UAR_CMD_SESSION, UAR_CMD_ASK },
		  session,
		  3,
		  "backend.codex" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct story t;

		story_init(&t, 1);
		CHECK_INT(story_begin(&t, rows[i].entry, false), UAR_OK);
		for (size_t k = 0; rows[i].script[k]; k++)
			CHECK_INT(story_do(&t, rows[i].script[k]), UAR_OK);
		keeps(&t, rows[i].keys, rows[i].n);
		if (rows[i].worker) {
			const struct uar_event *lost = last_of(&t, UAR_EV_TASK_LOST);

			CHECK_STR(text_at(&t, lost, "/worker/id"), rows[i].worker);
			CHECK_STR(text_at(&t, lost, "/cause"), "process_unknown");
		}
		if (rows[i].keys != cancel && rows[i].keys != progress)
			CHECK_STR(text_at(&t, last_of(&t, UAR_EV_ACTION_RESOLVED), "/result"),
				  "cancel");
		story_fini(&t);
	}
}

TEST(a_clock_that_went_back_stops_nothing, "")
{
	struct uar_error error = { 0 };
	struct story t;

	story_init(&t, 1);
	CHECK_INT(story_begin(&t, UAR_ENTRY_LLM, true), UAR_OK);
	t.now_us -= 5000000;
	CHECK_INT(story_do(&t, UAR_CMD_START), UAR_OK);
	CHECK_INT(story_do(&t, UAR_CMD_PREPARED), UAR_OK);
	t.now_us -= 5000000;
	CHECK_INT(story_do(&t, UAR_CMD_TEXT), UAR_OK);
	CHECK_INT(story_do(&t, UAR_CMD_MODEL_DONE), UAR_OK);
	for (size_t i = 0; i < t.count; i++)
		CHECK_MSG(uar_event_check(&t.log[i], &t.arena, &error) == UAR_OK, "%s: %s",
			  error.where, error.text);
	story_fini(&t);
}

TEST(a_call_under_way_is_closed_whatever_ends_the_run, "")
{
	static const struct {
		enum uar_command_kind by;
		const char *category;
	} ends[] = {
		{ UAR_CMD_FAIL, "cancelled" },
		{ UAR_CMD_TIMEOUT, "timeout" },
		{ UAR_CMD_MODEL_FAILED, "network" },
	};

	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		struct story t;

		story_init(&t, 1);
		PLAY(&t, UAR_CMD_PREPARED, UAR_CMD_TEXT, ends[i].by);
		CHECK(!t.r.call.open && uar_status_terminal(t.r.status));
		CHECK_STR(text_at(&t, last_of(&t, UAR_EV_MODEL_FAILED), "/failure_category"),
			  ends[i].category);
		story_fini(&t);
	}
}

TEST(a_restart_tells_readers_what_no_longer_counts, "")
{
	const struct uar_event *ev;
	struct story t;
	char message_id[UAR_UUID_TEXT + 1];

	story_init(&t, 1);
	PLAY(&t, UAR_CMD_PREPARED, UAR_CMD_TEXT);
	memcpy(message_id, t.r.call.message_id, sizeof message_id);
	CHECK_INT(story_do(&t, UAR_CMD_RECOVER), UAR_OK);
	ev = last_of(&t, UAR_EV_RUN_STATUS);
	CHECK_STR(text_at(&t, ev, "/metadata/superseded_message_id"), message_id);
	CHECK_INT(int_at(&t, ev, "/metadata/superseded_bytes"), 9);
	CHECK(last_of(&t, UAR_EV_HISTORY_RECONSTRUCTED) != NULL);
	CHECK_INT(story_do(&t, UAR_CMD_PREPARED), UAR_OK);
	CHECK_INT(story_do(&t, UAR_CMD_TEXT), UAR_OK);
	CHECK(strcmp(t.r.call.message_id, message_id) != 0);
	story_fini(&t);
}

TEST(a_model_call_is_not_made_again_for_ever, "")
{
	struct story t;

	story_init(&t, 1);
	PLAY(&t, UAR_CMD_PREPARED, UAR_CMD_TEXT);
	for (int i = 0; i < UAR_LIMIT_MODEL_RESTARTS; i++) {
		CHECK_INT(story_do(&t, UAR_CMD_RECOVER), UAR_OK);
		CHECK_INT(story_do(&t, UAR_CMD_RECOVER),
			  UAR_OK); /* no call was open: it is not counted */
		CHECK_INT(t.r.status, UAR_STATUS_RETRYING);
		CHECK_INT(story_do(&t, UAR_CMD_PREPARED), UAR_OK);
		CHECK_INT(t.r.call.restarts, i + 1);
	}
	CHECK_INT(story_do(&t, UAR_CMD_RECOVER), UAR_OK);
	CHECK_INT(t.r.status, UAR_STATUS_FAILED);
	CHECK(!t.r.call.open);
	CHECK_STR(uar_str_c(uar_run_rare(&t.r)->end.code), "RESTART_LIMIT");
	CHECK(uar_run_rare(&t.r)->end.retryable);
	story_fini(&t);
}

TEST(a_model_call_that_ends_lets_the_next_one_be_cut_off_as_often, "")
{
	struct story t;

	story_init(&t, 1);
	PLAY(&t, UAR_CMD_PREPARED, UAR_CMD_RECOVER, UAR_CMD_PREPARED);
	CHECK_INT(t.r.call.restarts, 1);
	CHECK_INT(story_do(&t, UAR_CMD_MODEL_CALLS), UAR_OK);
	CHECK_INT(t.r.call.restarts, 0);
	story_fini(&t);
}

/* Two tools in one batch: each event keeps the step of its own call. */
TEST(events_keep_their_ids_when_the_run_goes_on, "")
{
	static const char start[] = "{\"type\":\"ToolStart\",\"data\":{\"tool_call_id\":\"c%d\","
				    "\"tool\":\"t\",\"input\":{}}}";
	struct uar_command c = { .kind = UAR_CMD_REPLAY };
	struct uar_session s;
	struct uar_run r;
	struct story t;

	story_init(&t, 1);
	CHECK_INT(story_begin(&t, UAR_ENTRY_FIXTURE, false), UAR_OK);
	s = t.s;
	uar_run_init(&r);
	CHECK_INT(uar_run_copy(&r, &t.r), UAR_OK);
	t.d = (struct uar_decision){ 0 };
	for (int i = 0; i < 2; i++) {
		struct uar_core_env env = { t.now_us, &t.ids, &t.arena, &t.buf, NULL, NULL };
		uar_str line = uar_arena_printf(&t.arena, start, i);

		CHECK_INT(uar_json_parse(line, NULL, &t.arena, &c.replay.event, NULL), UAR_OK);
		c.replay.line = i + 1;
		CHECK_INT(uar_core_decide(&env, &s, &r, &c, &t.d, NULL), UAR_OK);
	}
	REQUIRE(t.d.event_count == 4);
	CHECK(uar_str_eq(t.d.events[0].ids[UAR_ID_STEP], t.d.events[1].ids[UAR_ID_STEP]));
	CHECK(uar_str_eq(t.d.events[2].ids[UAR_ID_STEP], t.d.events[3].ids[UAR_ID_STEP]));
	CHECK(!uar_str_eq(t.d.events[0].ids[UAR_ID_STEP], t.d.events[2].ids[UAR_ID_STEP]));
	uar_run_copy_fini(&r);
	story_fini(&t);
}

/* --- text ----------------------------------------------------------------------------- */

/* All text of the run, as a reader would put it together. */
static uar_str told(struct story *t, struct uar_buf *out)
{
	struct uar_error error = { 0 };
	int64_t index = 0;

	for (size_t i = 0; i < t->count; i++)
		if (t->log[i].cls == UAR_EV_MODEL_DELTA) {
			CHECK_MSG(uar_event_check(&t->log[i], &t->arena, &error) == UAR_OK, "%s",
				  error.text);
			CHECK_INT(int_at(t, &t->log[i], "/index"), index++);
			uar_buf_add_str(out, text_at(t, &t->log[i], "/text"));
		}
	return uar_buf_str(out);
}

static void check_text(const char *unit, const char *end)
{
	struct uar_buf text = uar_buf_make(1 << 20), got = uar_buf_make(1 << 20);
	struct uar_command c = { .kind = UAR_CMD_TEXT };
	struct story t;

	while (text.n < UAR_LIMIT_DELTA_COMMAND)
		uar_buf_add_str(&text, uar_str_c(unit));
	uar_buf_add_str(&text, uar_str_c(end));
	story_init(&t, 1);
	CHECK_INT(story_begin(&t, UAR_ENTRY_FIXTURE, false), UAR_OK);
	c.text = uar_buf_str(&text);
	CHECK_INT(story_tell(&t, &c), UAR_OK);
	CHECK(uar_str_eq(told(&t, &got), uar_buf_str(&text)));
	CHECK_INT(t.r.call.chars, text.n);
	story_fini(&t);
	uar_buf_fini(&text);
	uar_buf_fini(&got);
}

TEST(long_text_is_cut_between_code_points_and_put_together_again, "")
{
	check_text("a", "");
	check_text("\xc3\xa4", "z");
	check_text("x\xe2\x82\xac", "");
	check_text("\xf0\x9f\x98\x80", "");
	check_text("\x01\"\\\n", "\xf0\x9f\x98\x80");
}

TEST(ill_formed_text_ends_all_the_same, "")
{
	struct uar_buf text = uar_buf_make(1 << 20);
	struct uar_command c = { .kind = UAR_CMD_TEXT };
	struct story t;

	for (int i = 0; i < 20000; i++)
		uar_buf_add_char(&text, (char)0x80);
	story_init(&t, 1);
	CHECK_INT(story_begin(&t, UAR_ENTRY_FIXTURE, false), UAR_OK);
	c.text = uar_buf_str(&text);
	/* Each byte becomes three: too large for an event, but nothing hangs. */
	CHECK(story_tell(&t, &c) != UAR_ETOOBIG);
	story_fini(&t);
	uar_buf_fini(&text);
}

TEST(an_echo_is_one_decision, "")
{
	static const char sha[] =
		"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
	struct uar_buf got = uar_buf_make(1 << 20);
	struct uar_command c = story_create(UAR_ENTRY_ECHO, false);
	struct story t;

	story_init(&t, 1);
	CHECK_INT(story_tell(&t, &c), UAR_OK);
	CHECK_INT(t.r.status, UAR_STATUS_COMPLETED);
	CHECK(uar_str_eq(told(&t, &got), c.create.what.message));
	story_fini(&t);
	/* But not when its text has to be fetched, and not before its turn. */
	c.create.what.message_blob = uar_str_c(sha);
	story_init(&t, 1);
	CHECK_INT(story_tell(&t, &c), UAR_OK);
	CHECK_INT(t.r.status, UAR_STATUS_RUNNING);
	story_fini(&t);
	story_init(&t, 1);
	CHECK_INT(story_begin(&t, UAR_ENTRY_ECHO, true), UAR_OK);
	CHECK_INT(t.r.status, UAR_STATUS_QUEUED);
	CHECK_INT(story_do(&t, UAR_CMD_START), UAR_OK);
	CHECK_INT(t.r.status, UAR_STATUS_COMPLETED);
	story_fini(&t);
	uar_buf_fini(&got);
}

/* --- damage --------------------------------------------------------------------------- */

static uar_err fold_with(const struct story *t, size_t skip, size_t twice)
{
	struct uar_session s = { .owner = t->s.owner };
	struct uar_arena scratch;
	struct uar_run r;
	uar_err e = UAR_OK;

	uar_run_init(&r);
	uar_arena_init(&scratch, 0);
	for (size_t i = 0; i < t->count && !e; i++) {
		if (i != skip)
			e = uar_core_fold(&s, &r, &t->log[i], &scratch, NULL);
		if (i == twice && !e)
			e = uar_core_fold(&s, &r, &t->log[i], &scratch, NULL);
	}
	uar_arena_fini(&scratch);
	uar_run_fini(&r);
	return e;
}

/* What does not fit into a decision never will: to try the same again is no way out. */
static uar_err fill(struct story *t, const enum uar_command_kind *cycle, size_t n)
{
	struct uar_core_env env = { t->now_us, &t->ids, &t->arena, &t->buf, NULL, NULL };
	struct uar_session s = t->s;
	struct uar_decision d = { 0 };
	struct uar_run r;
	uar_err e;

	uar_run_init(&r);
	e = uar_run_copy(&r, &t->r);
	for (size_t i = 0; !e && i <= UAR_DECISION_EVENTS; i++) {
		struct uar_command c = story_command(cycle[i % n]);

		e = uar_core_decide(&env, &s, &r, &c, &d, NULL);
	}
	uar_run_copy_fini(&r);
	return e;
}

TEST(a_full_decision_is_too_big_and_not_worth_another_try, "")
{
	static const enum uar_command_kind texts[] = { UAR_CMD_TEXT };
	static const enum uar_command_kind rounds[] = { UAR_CMD_MODEL_CALLS, UAR_CMD_PREPARED };
	struct story t;

	story_init(&t, 1);
	PLAY(&t, UAR_CMD_PREPARED);
	CHECK_INT(fill(&t, texts, ARRAY_LEN(texts)), UAR_ETOOBIG);
	CHECK_INT(fill(&t, rounds, ARRAY_LEN(rounds)), UAR_ETOOBIG);
	story_fini(&t);
}

TEST(a_log_with_a_missing_or_doubled_event_is_refused, "")
{
	struct story t;

	story_init(&t, 1);
	PLAY(&t, UAR_CMD_PREPARED, UAR_CMD_TEXT, UAR_CMD_CANCEL, UAR_CMD_STOPPED);
	CHECK_INT(fold_with(&t, t.count, t.count), UAR_OK);
	for (size_t i = 0; i < t.count; i++) {
		bool last = t.log[i].run_sequence == t.r.run_sequence;

		CHECK_INT(fold_with(&t, t.count, i), UAR_ECORRUPT);
		if (t.log[i].run_sequence && !last)
			CHECK_INT(fold_with(&t, i, t.count), UAR_ECORRUPT);
	}
	story_fini(&t);
}

static uar_err fold_as(struct story *t, enum uar_event_class cls, const char *json)
{
	struct uar_event ev = t->log[t->count - 1];
	struct uar_session s = t->s;
	struct uar_run r;
	struct uar_arena scratch;
	uar_err e;

	uar_run_init(&r);
	CHECK_INT(uar_run_copy(&r, &t->r), UAR_OK);
	for (int i = 0; i < UAR_ID_COUNT; i++)
		ev.ids[i] = t->log[t->last].ids[i];
	ev.cls = cls;
	ev.payload = uar_str_c(json);
	ev.sequence = s.sequence + 1;
	ev.run_sequence = r.run_sequence + 1;
	uar_arena_init(&scratch, 0);
	e = uar_core_fold(&s, &r, &ev, &scratch, NULL);
	uar_arena_fini(&scratch);
	uar_run_copy_fini(&r);
	return e;
}

TEST(an_event_that_cannot_follow_is_refused, "RUN-17 RUN-21")
{
	struct story t;

	story_init(&t, 1);
	PLAY(&t, UAR_CMD_PREPARED, UAR_CMD_TEXT);
	CHECK_INT(fold_as(&t, UAR_EV_TASK_ATTEMPT_FAILED, "{\"status\":\"running\"}"),
		  UAR_ECORRUPT);
	CHECK_INT(fold_as(&t, UAR_EV_TASK_ATTEMPT_FAILED, "{\"status\":\"odd\"}"), UAR_ECORRUPT);
	CHECK_INT(fold_as(&t, UAR_EV_TURN_SUBMITTED, "{}"), UAR_ECORRUPT);
	CHECK_INT(fold_as(&t, UAR_EV_TASK_CREATED, "{}"), UAR_ECORRUPT);
	CHECK(fold_as(&t, UAR_EV_MODEL_DELTA, "{\"text\":") != UAR_OK);
	CHECK_INT(story_do(&t, UAR_CMD_TIMEOUT), UAR_OK);
	for (int cls = 0; cls < UAR_EV_VENDOR; cls++)
		CHECK_MSG(fold_as(&t, (enum uar_event_class)cls, "{\"status\":\"running\"}") ==
				  UAR_ECORRUPT,
			  "%s follows the end", uar_event_info[cls].type);
	story_fini(&t);
}

/* --- tools of ours ------------------------------------------------------------------------ */

static size_t count_class(const struct story *t, enum uar_event_class cls)
{
	size_t n = 0;

	for (size_t i = 0; i < t->count; i++)
		n += t->log[i].cls == cls;
	return n;
}

TEST(a_run_that_ends_ends_its_tools, "TOOL-14")
{
	static const struct {
		enum uar_command_kind end[2];
		const char *status;
	} cases[] = {
		{ { UAR_CMD_TIMEOUT }, "\"status\":\"timed_out\"" },
		{ { UAR_CMD_CANCEL, UAR_CMD_STOPPED }, "\"status\":\"cancelled\"" },
		{ { UAR_CMD_FAIL }, "\"status\":\"cancelled\"" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct story t;
		bool said = false;

		story_init(&t, 1);
		PLAY(&t, UAR_CMD_PREPARED, UAR_CMD_MODEL_CALLS, UAR_CMD_TOOL_BEGIN);
		CHECK_INT(t.r.status, UAR_STATUS_RUNNING);
		for (size_t k = 0; k < 2 && cases[i].end[k]; k++)
			CHECK_INT(story_do(&t, cases[i].end[k]), UAR_OK);
		CHECK(uar_status_terminal(t.r.status));
		CHECK_INT(count_class(&t, UAR_EV_TOOL_FAILED), 1);
		for (size_t k = 0; k < t.count; k++)
			said |= t.log[k].cls == UAR_EV_TOOL_FAILED &&
				strstr(t.log[k].payload.p, cases[i].status);
		CHECK(said);
		story_fini(&t);
	}
}

TEST(a_catalogue_is_resolved_once_in_a_run, "")
{
	struct story t;

	story_init(&t, 1);
	PLAY(&t, UAR_CMD_PREPARED, UAR_CMD_TEXT, UAR_CMD_RECOVER, UAR_CMD_PREPARED,
	     UAR_CMD_MODEL_CALLS, UAR_CMD_TOOL_BEGIN, UAR_CMD_TOOL_OVER, UAR_CMD_PREPARED);
	CHECK_INT(count_class(&t, UAR_EV_TOOL_CATALOG_RESOLVED), 1);
	CHECK_INT(t.r.rare->tools.rounds, 1);
	story_fini(&t);
}
