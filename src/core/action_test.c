/* action_test.c - every type of action is asked and answered by every decision it offers. */
#include "story.h"
#include "test.h"

#define SCHEMA "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"}}}"

static void ask(struct story *t, enum uar_action_type type)
{
	struct uar_command c = { .kind = UAR_CMD_ASK };

	story_init(t, 1);
	CHECK_INT(story_begin(t, UAR_ENTRY_CODEX, false), UAR_OK);
	CHECK_INT(story_do(t, UAR_CMD_PREPARED), UAR_OK);
	c.ask = (struct uar_ask){ .number = 1,
				  .type = type,
				  .kind = UAR_STR("input"),
				  .prompt = UAR_STR("What?"),
				  .schema = UAR_STR(SCHEMA),
				  .timeout_us = 9000000 };
	CHECK_INT(story_tell(t, &c), UAR_OK);
}

static void check_events(const struct story *t)
{
	struct uar_arena scratch;
	struct uar_error error = { 0 };

	uar_arena_init(&scratch, 0);
	for (size_t i = t->last; i < t->count; i++)
		CHECK_MSG(uar_event_check(&t->log[i], &scratch, &error) == UAR_OK,
			  "event %zu at %s: %s", i, error.where, error.text);
	uar_arena_fini(&scratch);
}

/* The only row of the last command. */
static struct uar_row_action row_of(struct story *t)
{
	struct uar_row_action row = { .kind = UAR_STR("") };

	CHECK_INT(t->d.row_count, 1);
	if (t->d.row_count)
		CHECK_INT(uar_row_unpack(&t->d.rows[0], &t->arena, &row, sizeof row, NULL), UAR_OK);
	return row;
}

static void answer_by(enum uar_action_type type, enum uar_verdict v)
{
	struct uar_command c = { .kind = UAR_CMD_ANSWER };
	struct uar_row_action row;
	struct story t;

	ask(&t, type);
	c.answer = (struct uar_answer){ .number = 1,
					.verdict = v,
					.values = uar_verdict_info[v].values ? UAR_STR("{\"a\":1}")
									     : UAR_STR_NONE,
					.digest = UAR_STR("d") };
	CHECK_INT(story_tell(&t, &c), UAR_OK);
	check_events(&t);
	CHECK_INT(t.r.status, UAR_STATUS_RUNNING);
	row = row_of(&t);
	CHECK_STR(row.row.status, "resolved");
	CHECK(!row.row.open && !row.row.due_us);
	CHECK_STR(row.decision, uar_verdict_info[v].text);
	CHECK_STR(row.result, uar_verdict_info[v].result);
	CHECK_STR(row.payload, uar_verdict_info[v].values ? "{\"a\":1}" : "");
	CHECK_STR(row.answer_digest, "d");
	CHECK_INT(story_tell(&t, &c), UAR_ESTATE); /* once */
	story_fini(&t);
}

TEST(every_type_waits_as_it_says_and_takes_each_of_its_decisions, "")
{
	for (int type = 0; type < UAR_ACTION_TYPE_COUNT; type++) {
		const struct uar_action_info *info = &uar_action_info[type];
		struct uar_row_action row;
		struct story t;

		CHECK_INT(uar_action_type_parse(uar_str_c(info->text)), type);
		ask(&t, (enum uar_action_type)type);
		check_events(&t);
		CHECK_INT(t.r.status,
			  info->input ? UAR_STATUS_WAITING_INPUT : UAR_STATUS_WAITING_PERMISSION);
		row = row_of(&t);
		CHECK(row.row.open && row.row.due_us);
		CHECK_STR(row.row.tag, info->text);
		CHECK_STR(row.schema, SCHEMA);
		story_fini(&t);
		for (unsigned v = 1; v < UAR_VERDICT_COUNT; v++)
			if (info->offered & 1u << v)
				answer_by((enum uar_action_type)type, (enum uar_verdict)v);
	}
	CHECK_INT(uar_action_type_parse(UAR_STR("other")), UAR_ACTION_TYPE_COUNT);
	CHECK_INT(uar_verdict_parse(UAR_STR("ask")), UAR_VERDICT_ASK);
}

TEST(what_nobody_answers_and_what_is_withdrawn_is_closed_with_its_row, "")
{
	struct uar_command c = { .kind = UAR_CMD_ANSWER };
	struct uar_row_action row;
	struct story t;

	ask(&t, UAR_ACTION_FORM);
	c.answer = (struct uar_answer){ .number = 1,
					.verdict = UAR_VERDICT_DECLINE,
					.source = UAR_ANSWER_TIMEOUT };
	CHECK_INT(story_tell(&t, &c), UAR_OK);
	check_events(&t);
	row = row_of(&t);
	CHECK_STR(row.result, "timeout");
	CHECK_STR(row.decision, "decline");
	story_fini(&t);
	ask(&t, UAR_ACTION_CREDENTIAL);
	CHECK_INT(story_do(&t, UAR_CMD_CANCEL), UAR_OK);
	check_events(&t);
	row = row_of(&t);
	CHECK_STR(row.result, "cancel");
	CHECK(!row.row.open);
	story_fini(&t);
}
