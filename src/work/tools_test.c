/* tools_test.c - the tool loop of llm.chat over a model and tools that the test plays:
 * what is recorded before what, what the model is told, what a restart repeats. */
#include "test.h"
#include "tool_world.h"
#include "core/limits.h"
#include "model/limits.h"
#include "work/limits.h"

#define HAS(TEXT, PART) CHECK_MSG(strstr(TEXT, PART) != NULL, "%s", TEXT)
#define ASKED                                                                                      \
	"model.requested model.delta model.completed tool.catalog.resolved run.status:tool_loop"
#define DONE                                                                                       \
	"model.requested model.delta model.completed run.status:tool_loop task.attempt.completed"

TEST(a_tool_is_executed_between_two_model_calls, "RUN-05 TOOL-03 TOOL-07")
{
	struct tool_world w;

	tool_world_open(&w);
	tool_world_ask(&w, "how many?");
	CHECK_INT(w.told_tools, 9);
	tool_world_says(&w, "let me see", "look {\"at\":1}");
	CHECK(!w.called);
	CHECK_INT(tool_world_busy(&w, "look"), 1);
	CHECK_STR(w.at[0].input, "{\"at\":1}");
	CHECK(strncmp(w.at[0].key, w.op.run_id, strlen(w.op.run_id)) == 0);
	tool_world_ends(&w, "look", true, "{\"n\":3}");
	CHECK_STR(uar_str_c(w.told), "S:You are the agent of UAR that shows its tools.\n"
				     "U:how many?\n"
				     "A:let me see [p0 look {\"at\":1}]\n"
				     "T:{\"n\":3} <p0>\n");
	tool_world_says(&w, "three", "");
	CHECK_STR(uar_str_c(tool_world_status(&w)), "succeeded");
	CHECK_STR(uar_str_c(tool_world_log(&w)),
		  ASKED " permission.evaluated:allow tool.started:look "
			"tool.args tool.result:look " DONE);
	HAS(tool_world_fact(&w, UAR_EV_MODEL_REQUESTED, 0), "\"tool_count\":9");
	HAS(tool_world_fact(&w, UAR_EV_TASK_ATTEMPT_COMPLETED, 0), "\"bytes\":5");
	tool_world_close(&w);
}

TEST(what_a_call_was_can_be_read_from_the_log, "")
{
	struct tool_world w;
	const char *p;

	tool_world_open(&w);
	tool_world_ask(&w, "x");
	tool_world_says(&w, "", "put {\"at\":1}");
	CHECK(tool_world_busy(&w, "put"));
	p = tool_world_fact(&w, UAR_EV_TOOL_STARTED, 0);
	HAS(p, "\"tool_id\":\"internal:put\"");
	HAS(p, "\"tool_version\":\"7\"");
	HAS(p, "\"environment_id\":\"");
	HAS(p, "\"safe_args\":{\"at\":1}");
	HAS(p, "\"effect\":\"idempotent\"");
	HAS(p, "\"is_read_only\":false");
	HAS(tool_world_fact(&w, UAR_EV_TOOL_ARGS, 0), "\"final\":true,\"valid\":true");
	w.at[0].events.progress(w.at[0].events.ctx, UAR_STR("{\"half\":true}"));
	w.at[0].events.progress(w.at[0].events.ctx, UAR_STR("no JSON"));
	tool_world_ends(&w, "put", true, "");
	HAS(tool_world_log(&w), "tool.args tool.progress tool.result:put");
	HAS(tool_world_fact(&w, UAR_EV_TOOL_PROGRESS, 0), "\"partial\":{\"half\":true}");
	p = tool_world_fact(&w, UAR_EV_TOOL_RESULT, 0);
	HAS(p, "\"preview\":null,\"empty\":true");
	HAS(w.told, "T:(no output) <p0>");
	tool_world_close(&w);
}

TEST(an_empty_result_is_marked_as_such, "TOOL-16")
{
	struct tool_world w;

	tool_world_open(&w);
	tool_world_ask(&w, "x");
	tool_world_says(&w, "", "look {}\npeek {}");
	tool_world_ends(&w, "look", true, "");
	tool_world_ends(&w, "peek", true, "null");
	HAS(tool_world_fact(&w, UAR_EV_TOOL_RESULT, 0), "\"empty\":true");
	HAS(tool_world_fact(&w, UAR_EV_TOOL_RESULT, 1), "\"empty\":false");
	tool_world_close(&w);
}

/* What the model gets wrong it is told, and nothing is executed. */
TEST(calls_that_cannot_be_are_told_apart_and_the_run_goes_on, "TOOL-06 RUN-05")
{
	struct tool_world w;

	tool_world_open(&w);
	tool_world_ask(&w, "x");
	tool_world_says(&w, "", "fly {}\nsecret {}\nlook nonsense\nlook {\"bad\":1}");
	CHECK_INT(w.started, 0);
	CHECK(w.called);
	HAS(w.told, "T:{\"error\":{\"category\":\"unknown_tool\",\"message\":\"there is no tool "
		    "named \\\"fly\\\"\",\"retryable\":false}} <p0>");
	HAS(w.told, "T:{\"error\":{\"category\":\"not_surfaced\"");
	HAS(w.told, "\"category\":\"schema_invalid\",\"message\":\"not an object\"");
	HAS(w.told, "\"category\":\"schema_invalid\",\"message\":\"at /bad: must not be there\"");
	HAS(tool_world_log(&w),
	    "permission.evaluated:unavailable tool.started:fly tool.args tool.failed:unknown_tool "
	    "permission.evaluated:deny tool.started:secret tool.args tool.failed:not_surfaced ");
	HAS(tool_world_fact(&w, UAR_EV_TOOL_ARGS, 3),
	    "\"valid\":false,\"violations\":[{\"path\":\"/bad\",\"message\":\"must not be "
	    "there\"}]");
	tool_world_says(&w, "sorry", "");
	CHECK_STR(uar_str_c(tool_world_status(&w)), "succeeded");
	tool_world_close(&w);
}

TEST(a_tool_that_fails_is_told_and_the_run_goes_on, "TOOL-03 RUN-05")
{
	static const char *const cases[][3] = {
		{ "execution: it broke", "execution", "\"status\":\"failed\"" },
		{ "timeout: too slow", "timeout", "\"status\":\"timed_out\"" },
		{ "value_invalid: no such day", "value_invalid", "\"status\":\"failed\"" },
		{ "result_too_large: 1 GB", "result_too_large", "\"status\":\"failed\"" },
		{ "its own word: hm", "execution", "\"status\":\"failed\"" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct tool_world w;
		const char *p;

		tool_world_open(&w);
		tool_world_ask(&w, "x");
		tool_world_says(&w, "", "send {}");
		tool_world_ends(&w, "send", false, cases[i][0]);
		p = tool_world_fact(&w, UAR_EV_TOOL_FAILED, 0);
		HAS(p, cases[i][1]);
		HAS(p, cases[i][2]);
		HAS(w.told, cases[i][1]);
		tool_world_says(&w, "sorry", "");
		CHECK_STR(uar_str_c(tool_world_status(&w)), "succeeded");
		tool_world_close(&w);
	}
}

TEST(a_tool_that_does_not_begin_has_failed, "")
{
	struct tool_world w;

	tool_world_open(&w);
	w.refuse = true;
	tool_world_ask(&w, "x");
	tool_world_says(&w, "", "look {}");
	HAS(w.told, "\"category\":\"execution\",\"message\":\"too much to do\",\"retryable\":true");
	tool_world_close(&w);
}

/* --- together and alone ------------------------------------------------------------------ */

TEST(read_only_tools_run_together_up_to_a_bound, "TOOL-14")
{
	struct tool_world w;

	tool_world_open(&w);
	tool_world_ask(&w, "x");
	tool_world_says(&w, "", "look {}\npeek {}\nsee {}\nstare {}\nput {}\nlook {}");
	CHECK_INT(w.started, 3);
	tool_world_ends(&w, "peek", true, "2");
	CHECK_INT(w.started, 4);
	CHECK(tool_world_busy(&w, "stare"));
	tool_world_ends(&w, "stare", true, "4");
	tool_world_ends(&w, "look", true, "1");
	CHECK_INT(w.started, 4);
	tool_world_ends(&w, "see", true, "3");
	CHECK(tool_world_busy(&w, "put")); /* alone */
	CHECK_INT(w.started, 5);
	tool_world_ends(&w, "put", true, "5");
	CHECK_INT(w.started, 6);
	tool_world_ends(&w, "look", true, "6");
	HAS(w.told, "T:1 <p0>\nT:2 <p1>\nT:3 <p2>\nT:4 <p3>\nT:5 <p4>\nT:6 <p5>\n");
	tool_world_close(&w);
}

TEST(tools_that_change_something_run_in_the_models_order, "TOOL-14")
{
	struct tool_world w;

	tool_world_open(&w);
	tool_world_ask(&w, "x");
	tool_world_says(&w, "", "put {\"n\":1}\nsend {}\nput {\"n\":2}");
	CHECK_INT(w.started, 1);
	CHECK(tool_world_busy(&w, "put"));
	tool_world_ends(&w, "put", true, "1");
	CHECK(tool_world_busy(&w, "send") && w.started == 2);
	tool_world_ends(&w, "send", true, "2");
	CHECK(tool_world_busy(&w, "put") && w.started == 3);
	tool_world_close(&w);
}

/* --- questions --------------------------------------------------------------------------- */

TEST(a_tool_that_has_to_be_allowed_waits_for_somebody, "")
{
	struct tool_world w;

	tool_world_open(&w);
	tool_world_ask(&w, "x");
	tool_world_says(&w, "", "write {\"to\":\"a\"}");
	CHECK_INT(w.started, 0);
	HAS(tool_world_fact(&w, UAR_EV_ACTION_REQUIRED, 0),
	    "\"decisions\":[\"allow\",\"allow_for_session\",\"allow_always\",\"deny\"],"
	    "\"default_decision\":\"deny\",\"tool_name\":\"write\"");
	HAS(tool_world_fact(&w, UAR_EV_ACTION_REQUIRED, 0), "\"input\":{\"to\":\"a\"}");
	CHECK_INT(tool_world_answer(&w, 1, UAR_VERDICT_ALLOW, ""), UAR_OK);
	CHECK(tool_world_busy(&w, "write"));
	tool_world_ends(&w, "write", true, "true");
	tool_world_says(&w, "done", "");
	CHECK_STR(uar_str_c(tool_world_log(&w)),
		  "model.requested model.completed tool.catalog.resolved run.status:tool_loop "
		  "permission.evaluated:ask action.required action.resolved:allow "
		  "tool.started:write tool.args tool.result:write " DONE);
	tool_world_close(&w);
}

TEST(a_tool_that_is_not_allowed_is_not_executed, "")
{
	struct tool_world w;

	tool_world_open(&w);
	tool_world_ask(&w, "x");
	tool_world_says(&w, "", "write {}\nlook {}");
	CHECK_INT(tool_world_answer(&w, 1, UAR_VERDICT_DENY, "not today"), UAR_OK);
	CHECK_INT(w.started, 1);
	tool_world_ends(&w, "look", true, "1");
	HAS(w.told,
	    "\"category\":\"rejected\",\"message\":\"somebody did not allow it: not today\"");
	HAS(tool_world_fact(&w, UAR_EV_TOOL_FAILED, 0), "\"status\":\"denied\"");
	HAS(tool_world_log(&w),
	    "action.resolved:deny tool.started:write tool.args "
	    "tool.failed:rejected permission.evaluated:allow tool.started:look");
	tool_world_close(&w);
}

TEST(a_question_survives_restarts_and_costs_nothing, "")
{
	struct tool_world w;

	tool_world_open(&w);
	tool_world_ask(&w, "x");
	tool_world_says(&w, "", "look {}\nwrite {}");
	tool_world_ends(&w, "look", true, "1");
	tool_world_die(&w);
	tool_world_restart(&w);
	CHECK_INT(w.started, 1);
	CHECK_INT(w.calls, 1);
	CHECK_INT(tool_world_answer(&w, 1, UAR_VERDICT_ALLOW, ""), UAR_OK);
	tool_world_ends(&w, "write", true, "2");
	CHECK_INT(w.started, 2);
	HAS(w.told, "T:1 <p0>\nT:2 <p1>\n");
	tool_world_says(&w, "done", "");
	CHECK_STR(uar_str_c(tool_world_status(&w)), "succeeded");
	tool_world_close(&w);
}

/* --- restarts ----------------------------------------------------------------------------- */

TEST(what_may_be_repeated_is_repeated_with_the_same_key, "")
{
	static const char *const tools[] = { "look", "put" };

	for (size_t i = 0; i < ARRAY_LEN(tools); i++) {
		struct tool_world w;
		char key[300], call[40];

		tool_world_open(&w);
		tool_world_ask(&w, "x");
		snprintf(call, sizeof call, "peek {}\n%s {}", tools[i]);
		tool_world_says(&w, "", call);
		tool_world_ends(&w, "peek", true, "1");
		CHECK(tool_world_busy(&w, tools[i]));
		snprintf(key, sizeof key, "%s", w.at[i == 0 ? 1 : 0].key);
		tool_world_die(&w);
		CHECK_INT(w.started, 3); /* peek is not repeated */
		CHECK(tool_world_busy(&w, tools[i]));
		for (size_t k = 0; k < TOOL_WORLD_CALLS; k++)
			if (w.at[k].at_work)
				CHECK_STR(uar_str_c(w.at[k].key), key);
		tool_world_ends(&w, tools[i], true, "2");
		HAS(tool_world_log(&w), "tool.progress tool.result");
		HAS(tool_world_fact(&w, UAR_EV_TOOL_PROGRESS, 0), "\"again\":true");
		tool_world_says(&w, "done", "");
		CHECK_STR(uar_str_c(tool_world_status(&w)), "succeeded");
		CHECK_INT(w.calls, 2);
		tool_world_close(&w);
	}
}

TEST(a_tool_that_is_cut_off_each_time_is_asked_for_in_the_end, "")
{
	struct tool_world w;

	tool_world_open(&w);
	tool_world_ask(&w, "x");
	tool_world_says(&w, "", "look {}");
	for (int i = 1; i <= UAR_LIMIT_TOOL_RESTARTS; i++) {
		tool_world_restart(&w);
		CHECK_INT(w.started, 1 + i);
	}
	tool_world_restart(&w);
	CHECK_INT(w.started, 1 + UAR_LIMIT_TOOL_RESTARTS);
	HAS(tool_world_fact(&w, UAR_EV_ACTION_REQUIRED, 0),
	    "\"look had begun when the server stopped and may have happened: repeat it?\"");
	CHECK_INT(tool_world_answer(&w, 1, UAR_VERDICT_ALLOW, ""), UAR_OK);
	tool_world_restart(&w); /* somebody looks after it: it begins to count anew */
	CHECK_INT(w.started, 3 + UAR_LIMIT_TOOL_RESTARTS);
	tool_world_ends(&w, "look", true, "1");
	tool_world_says(&w, "done", "");
	CHECK_STR(uar_str_c(tool_world_status(&w)), "succeeded");
	tool_world_close(&w);
}

TEST(what_must_not_be_repeated_is_asked_for_each_time, "")
{
	struct tool_world w;

	tool_world_open(&w);
	tool_world_ask(&w, "x");
	tool_world_says(&w, "", "send {\"path\":\"a\\nb\"}");
	CHECK_INT(w.started, 1);
	tool_world_die(&w);
	CHECK_INT(w.started, 1);
	HAS(tool_world_fact(&w, UAR_EV_ACTION_REQUIRED, 0),
	    "\"send: a b had begun when the server stopped and may have happened: repeat it?\"");
	HAS(tool_world_fact(&w, UAR_EV_PERMISSION_REQUESTED, 0), "\"label\":\"Repeat it\"");
	tool_world_die(&w);
	CHECK_INT(tool_world_answer(&w, 1, UAR_VERDICT_ALLOW, ""), UAR_OK);
	CHECK_INT(w.started, 2);
	tool_world_restart(&w); /* cut off a second time: that permission is used up */
	CHECK_INT(w.started, 2);
	CHECK_INT(tool_world_answer(&w, 2, UAR_VERDICT_DENY, ""), UAR_OK);
	CHECK_INT(w.started, 2);
	HAS(w.told, "it may have happened, and was not repeated");
	HAS(tool_world_log(&w),
	    "tool.started:send tool.args permission.evaluated:ask action.required "
	    "action.resolved:allow tool.progress permission.evaluated:ask action.required "
	    "action.resolved:deny tool.failed:rejected model.requested");
	tool_world_says(&w, "done", "");
	CHECK_STR(uar_str_c(tool_world_status(&w)), "succeeded");
	tool_world_close(&w);
}

TEST(an_allowed_tool_that_was_cut_off_is_asked_for_again, "")
{
	struct tool_world w;

	tool_world_open(&w);
	tool_world_ask(&w, "x");
	tool_world_says(&w, "", "write {}");
	CHECK_INT(tool_world_answer(&w, 1, UAR_VERDICT_ALLOW, ""), UAR_OK);
	CHECK_INT(w.started, 1);
	tool_world_die(&w);
	CHECK_INT(w.started, 1);
	CHECK_INT(tool_world_answer(&w, 2, UAR_VERDICT_ALLOW, ""), UAR_OK);
	CHECK_INT(w.started, 2);
	tool_world_ends(&w, "write", true, "1");
	tool_world_says(&w, "done", "");
	CHECK_STR(uar_str_c(tool_world_status(&w)), "succeeded");
	tool_world_close(&w);
}

TEST(a_model_call_that_was_cut_off_is_told_the_same_rounds, "RUN-05")
{
	struct tool_world w;
	static char told[TOOL_WORLD_TEXT];

	tool_world_open(&w);
	tool_world_ask(&w, "x");
	tool_world_says(&w, "one", "look {}");
	tool_world_ends(&w, "look", true, "{\"a\": [1, 2.50, \"\\u00e9\"]}");
	tool_world_says(&w, "two", "look {}\nfly {}");
	tool_world_ends(&w, "look", true, "\"text\"");
	CHECK_INT(w.calls, 3);
	w.says.text(w.says.ctx, UAR_STR("half a senten"));
	uar_stage_settle(&w.pump);
	snprintf(told, sizeof told, "%s", w.told);
	tool_world_die(&w);
	CHECK_INT(w.calls, 4);
	CHECK_STR(uar_str_c(w.told), told);
	CHECK_INT(w.started, 2);
	tool_world_says(&w, "three", "");
	CHECK_STR(uar_str_c(tool_world_status(&w)), "succeeded");
	tool_world_close(&w);
}

/* --- long values ---------------------------------------------------------------------------- */

/* Blocks that a provider wants back, once as they are and once with a long list of calls. */
static void check_parts(const char *call)
{
	static const struct uar_model_part parts[] = {
		{ .kind = UAR_PART_OPAQUE, .name = { "x", 1 }, .text = { "{\"s\":\"1/+\"}", 11 } },
		{ .kind = UAR_PART_TEXT, .text = { "So.", 3 } },
		{ .kind = UAR_PART_CALL,
		  .id = { "id1", 3 },
		  .name = { "look", 4 },
		  .text = { "{}", 2 } },
	};
	struct tool_world w;

	tool_world_open(&w);
	tool_world_ask(&w, "x");
	w.parts = parts;
	w.part_count = ARRAY_LEN(parts);
	tool_world_says(&w, "So.", call);
	HAS(tool_world_refs(&w, UAR_EV_MODEL_COMPLETED, 0), "\"raw_ref\":\"blob://");
	tool_world_die(&w);
	tool_world_ends(&w, "look", true, "1");
	CHECK(w.called);
	HAS(w.told, "A:So. {x {\"s\":\"1/+\"}} [id1 look {}]\n");
	tool_world_says(&w, "Done.", "");
	CHECK(strstr(tool_world_refs(&w, UAR_EV_MODEL_COMPLETED, 1), "raw_ref") == NULL);
	tool_world_close(&w);
}

TEST(blocks_of_a_provider_are_given_back_after_a_death, "")
{
	static char call[20100];

	check_parts("look {}");
	snprintf(call, sizeof call, "look {\"at\":\"%0*d\"}", 20000, 7);
	check_parts(call);
}

TEST(long_values_are_kept_beside_the_log, "")
{
	static char call[200100], output[200100];
	struct tool_world w;

	snprintf(call, sizeof call, "look {\"at\":\"%0*d\"}", 20000, 7);
	snprintf(output, sizeof output, "\"%0*d\"", 150000, 8);
	tool_world_open(&w);
	tool_world_ask(&w, "x");
	tool_world_says(&w, "", call);
	CHECK(tool_world_busy(&w, "look"));
	CHECK_INT(w.at[0].input.n, 20009);
	HAS(tool_world_refs(&w, UAR_EV_MODEL_COMPLETED, 0), "\"tool_calls_ref\":\"blob://");
	HAS(tool_world_refs(&w, UAR_EV_TOOL_STARTED, 0), "\"args_ref\":\"blob://");
	tool_world_die(&w); /* all of it is found again */
	CHECK_INT(w.started, 2);
	CHECK(tool_world_busy(&w, "look"));
	CHECK_INT(w.at[0].input.n, 20009);
	tool_world_ends(&w, "look", true, output);
	HAS(tool_world_log(&w), "output.spilled tool.result:look");
	HAS(tool_world_refs(&w, UAR_EV_TOOL_RESULT, 0), "\"output_ref\":\"blob://");
	HAS(tool_world_fact(&w, UAR_EV_TOOL_RESULT, 0), "\"persistence\":\"preview_and_persist\"");
	CHECK(w.called);
	HAS(w.told, "\nT:\"0000"); /* the test's memory of it ends before the note does */
	tool_world_says(&w, "done", "");
	CHECK_STR(uar_str_c(tool_world_status(&w)), "succeeded");
	tool_world_close(&w);
}

/* --- ends --------------------------------------------------------------------------------- */

TEST(cancelling_stops_the_tools_and_says_so, "TOOL-14")
{
	struct tool_world w;

	tool_world_open(&w);
	tool_world_ask(&w, "x");
	tool_world_says(&w, "", "look {}\npeek {}\nput {}");
	tool_world_ends(&w, "peek", true, "1");
	tool_world_cancel(&w);
	CHECK_STR(uar_str_c(tool_world_status(&w)), "canceled");
	CHECK(!tool_world_busy(&w, "look") && w.at[0].cancelled);
	CHECK_INT(w.started, 2);
	HAS(tool_world_log(&w),
	    "tool.result:peek tool.failed:cancelled task.attempt.failed:cancelled");
	HAS(tool_world_fact(&w, UAR_EV_TOOL_FAILED, 0), "\"status\":\"cancelled\"");
	tool_world_close(&w);
}

TEST(cancelling_waits_for_what_changes_the_world, "TOOL-14")
{
	struct tool_world w;

	tool_world_open(&w);
	tool_world_ask(&w, "x");
	tool_world_says(&w, "", "put {}\nlook {}");
	tool_world_cancel(&w);
	CHECK_INT(tool_world_busy(&w, "put"), 1);
	CHECK(strcmp(tool_world_status(&w), "canceled") != 0);
	tool_world_cancel(&w); /* twice is once */
	tool_world_ends(&w, "put", true, "1");
	CHECK_STR(uar_str_c(tool_world_status(&w)), "canceled");
	CHECK_INT(w.started, 1);
	HAS(tool_world_log(&w), "tool.result:put task.attempt.failed:cancelled");

	tool_world_ask(&w, "x");
	tool_world_says(&w, "", "send {}");
	tool_world_cancel(&w);
	tool_world_ends(&w, "send", false, "execution: it broke");
	CHECK_STR(uar_str_c(tool_world_status(&w)), "canceled");
	HAS(tool_world_log(&w), "tool.failed:execution task.attempt.failed:cancelled");
	tool_world_close(&w);
}

TEST(cancelling_withdraws_what_has_not_begun, "TOOL-14")
{
	struct tool_world w;

	tool_world_open(&w);
	tool_world_ask(&w, "x");
	tool_world_says(&w, "", "send {}");
	w.waits = true;
	tool_world_cancel(&w);
	CHECK_STR(uar_str_c(tool_world_status(&w)), "canceled");
	CHECK(!tool_world_busy(&w, "send") && w.at[0].cancelled);
	HAS(tool_world_fact(&w, UAR_EV_TOOL_FAILED, 0), "cancelled before it changed anything");
	tool_world_close(&w);
}

TEST(what_is_not_known_of_a_cancelled_tool_is_not_denied, "TOOL-14")
{
	struct tool_world w;

	tool_world_open(&w);
	tool_world_ask(&w, "x");
	tool_world_says(&w, "", "send {}");
	tool_world_cancel(&w);
	tool_world_die(&w);
	CHECK_STR(uar_str_c(tool_world_status(&w)), "canceled");
	CHECK_INT(w.started, 1);
	HAS(tool_world_fact(&w, UAR_EV_TOOL_FAILED, 0), "it may have taken effect");
	HAS(tool_world_fact(&w, UAR_EV_TOOL_FAILED, 0), "\"retryable\":false");
	tool_world_close(&w);
}

TEST(a_run_that_waits_can_be_cancelled, "")
{
	struct tool_world w;

	tool_world_open(&w);
	tool_world_ask(&w, "x");
	tool_world_says(&w, "", "write {}");
	tool_world_cancel(&w);
	CHECK_STR(uar_str_c(tool_world_status(&w)), "canceled");
	HAS(tool_world_log(&w),
	    "action.required action.resolved:cancel task.attempt.failed:cancelled");
	CHECK_INT(tool_world_answer(&w, 1, UAR_VERDICT_ALLOW, ""), UAR_ERESOLVED);
	CHECK_INT(w.started, 0);
	tool_world_close(&w);
}

TEST(old_arguments_are_left_out_when_outputs_do_not_suffice, "")
{
	enum { LONG = 60000, ROUNDS = UAR_LIMIT_ROUNDS_TOLD / LONG + 2 };
	static char call[LONG + 1];
	struct tool_world w;

	memset(call, '0', LONG);
	memcpy(call, "look {\"a\":\"", 11);
	memcpy(call + LONG - 2, "\"}", 2);
	tool_world_open(&w);
	tool_world_ask(&w, "x");
	for (int i = 0; i < ROUNDS; i++) {
		tool_world_says(&w, "", call);
		tool_world_ends(&w, "look", true, "1");
		REQUIRE(w.called);
	}
	HAS(w.told, "look {\"left_out\":\"59995 bytes of arguments\"}]\nT:1 <p0>");
	tool_world_says(&w, "done", "");
	CHECK_STR(uar_str_c(tool_world_status(&w)), "succeeded");
	tool_world_close(&w);
}

TEST(rounds_end_at_their_limit, "")
{
	struct tool_world w;

	tool_world_open(&w);
	tool_world_ask(&w, "x");
	for (int i = 0; i < UAR_LIMIT_TOOL_ROUNDS; i++) {
		tool_world_says(&w, "", "look {}");
		tool_world_ends(&w, "look", true, "1");
	}
	CHECK(w.called);
	tool_world_says(&w, "", "look {}");
	CHECK_STR(uar_str_c(tool_world_status(&w)), "failed");
	CHECK_INT(w.started, UAR_LIMIT_TOOL_ROUNDS);
	HAS(tool_world_fact(&w, UAR_EV_TASK_ATTEMPT_FAILED, 0), "\"code\":\"TOOL_LIMIT\"");
	tool_world_close(&w);
}

TEST(too_many_calls_at_once_fail_the_run, "")
{
	char calls[8 * (UAR_LIMIT_MODEL_CALLS + 1) + 1];
	struct tool_world w;

	for (int i = 0; i <= UAR_LIMIT_MODEL_CALLS; i++)
		memcpy(calls + 8 * i, "look {}\n", 9);
	tool_world_open(&w);
	tool_world_ask(&w, "x");
	tool_world_says(&w, "", calls);
	CHECK_STR(uar_str_c(tool_world_status(&w)), "failed");
	CHECK_INT(w.started, 0);
	tool_world_close(&w);
}

TEST(the_next_turn_is_told_what_was_said_and_not_how, "RUN-05")
{
	struct tool_world w;

	tool_world_open(&w);
	tool_world_ask(&w, "how many?");
	tool_world_says(&w, "let me see", "look {}");
	tool_world_ends(&w, "look", true, "3");
	tool_world_says(&w, "three", "");
	tool_world_ask(&w, "and now?");
	CHECK_STR(uar_str_c(w.told), "S:You are the agent of UAR that shows its tools.\n"
				     "U:how many?\nA:three\nU:and now?\n");
	HAS(tool_world_fact(&w, UAR_EV_CONTEXT_RESOLVED, 0),
	    "1 tool calls that led to its answer are not told");
	tool_world_says(&w, "four", "");
	tool_world_close(&w);
}
