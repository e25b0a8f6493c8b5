/* form_test.c - values that a person or a client gives to a call, through the death of the process.
 */
#include "tool_world.h"

#include "test.h"

static bool has(uar_str text, const char *part)
{
	return memmem(text.p, text.n, part, strlen(part)) != NULL;
}

/* Nothing that is recorded has it. */
static void check_hidden(struct tool_world *w, const char *secret)
{
	static const enum uar_event_class classes[] = { UAR_EV_ACTION_REQUIRED,
							UAR_EV_ACTION_RESOLVED, UAR_EV_TOOL_STARTED,
							UAR_EV_TOOL_ARGS, UAR_EV_TOOL_RESULT };

	for (size_t i = 0; i < ARRAY_LEN(classes); i++)
		for (size_t n = 0; n < 4; n++)
			CHECK(!has(uar_str_c(tool_world_fact(w, classes[i], n)), secret));
	CHECK(!has(uar_str_c(w->told), secret));
}

TEST(a_secret_that_was_asked_for_reaches_the_call_also_after_a_crash, "")
{
	struct tool_world w;

	tool_world_open(&w);
	tool_world_ask(&w, "x");
	tool_world_says(&w, "", "login {\"user\":\"ann\"}");
	CHECK(has(uar_str_c(tool_world_fact(&w, UAR_EV_TASK_WAITING, 0)), "waiting_input"));
	CHECK_INT(w.started, 0);
	tool_world_die(&w);
	CHECK(has(uar_str_c(tool_world_fact(&w, UAR_EV_TASK_WAITING, 0)), "waiting_input"));
	CHECK_INT(tool_world_submit(&w, 1, "{}"), UAR_ESCHEMA);
	CHECK_INT(tool_world_submit(&w, 1, "{\"password\":\"hunter2\"}"), UAR_OK);
	CHECK_STR(tool_world_input(&w, "login"), "{\"user\":\"ann\",\"password\":\"hunter2\"}");
	CHECK(has(uar_str_c(tool_world_fact(&w, UAR_EV_TOOL_ARGS, 0)),
		  "\"password\":\"<redacted>\""));
	check_hidden(&w, "hunter2");
	tool_world_die(&w); /* it may have happened: somebody is asked, and it is the same call */
	CHECK(has(uar_str_c(tool_world_fact(&w, UAR_EV_TASK_WAITING, 1)), "waiting_permission"));
	CHECK_INT(tool_world_answer(&w, 2, UAR_VERDICT_ALLOW, ""), UAR_OK);
	CHECK_STR(tool_world_input(&w, "login"), "{\"user\":\"ann\",\"password\":\"hunter2\"}");
	tool_world_ends(&w, "login", true, "true");
	tool_world_says(&w, "done", "");
	check_hidden(&w, "hunter2");
	CHECK_STR(uar_str_c(tool_world_status(&w)), "succeeded");
	tool_world_close(&w);
}

TEST(a_secret_whose_key_is_gone_is_not_guessed, "")
{
	struct tool_world w;

	tool_world_open(&w);
	tool_world_ask(&w, "x");
	tool_world_says(&w, "", "login {\"user\":\"ann\"}");
	CHECK_INT(tool_world_submit(&w, 1, "{\"password\":\"hunter2\"}"), UAR_OK);
	CHECK_INT(w.started, 1);
	w.seal.bytes[0] ^= 1;
	tool_world_die(&w);
	CHECK_INT(w.started, 1);
	CHECK(has(uar_str_c(tool_world_fact(&w, UAR_EV_TOOL_FAILED, 0)), "cannot be read"));
	tool_world_says(&w, "done", "");
	CHECK_STR(uar_str_c(tool_world_status(&w)), "succeeded");
	tool_world_close(&w);
}

TEST(a_tool_of_the_client_waits_for_its_answer, "")
{
	struct tool_world w;

	tool_world_open(&w);
	tool_world_ask(&w, "x");
	tool_world_says(&w, "", "confirm {\"what\":\"it\"}");
	CHECK(has(uar_str_c(tool_world_fact(&w, UAR_EV_TASK_WAITING, 0)), "waiting_input"));
	CHECK(has(uar_str_c(tool_world_fact(&w, UAR_EV_ACTION_REQUIRED, 0)),
		  "\"action_type\":\"client_tool\""));
	CHECK(has(uar_str_c(tool_world_fact(&w, UAR_EV_ACTION_REQUIRED, 0)),
		  "\"input\":{\"what\":\"it\"}"));
	tool_world_die(&w);
	CHECK_INT(tool_world_submit(&w, 1, "[\"yes\",1]"), UAR_OK);
	CHECK_INT(w.started, 0);
	CHECK(has(uar_str_c(w.told), "[\"yes\",1]"));
	tool_world_says(&w, "done", "");
	CHECK_STR(uar_str_c(tool_world_status(&w)), "succeeded");
	tool_world_ask(&w, "y");
	tool_world_says(&w, "", "confirm {}");
	CHECK_INT(tool_world_answer(&w, 1, UAR_VERDICT_DECLINE, "no"), UAR_OK);
	CHECK(has(uar_str_c(w.told), "rejected"));
	tool_world_close(&w);
}
