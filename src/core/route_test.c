/* Routes, what follows a failed model call, costs and budgets. */
#include "core/budget.h"
#include "core/route.h"
#include "story.h"
#include "test.h"

static const struct uar_event *last_of(const struct story *t, enum uar_event_class cls)
{
	for (size_t i = t->count; i-- > 0;)
		if (t->log[i].cls == cls)
			return &t->log[i];
	return NULL;
}

static size_t count_of(const struct story *t, enum uar_event_class cls)
{
	size_t n = 0;

	for (size_t i = 0; i < t->count; i++)
		n += t->log[i].cls == cls;
	return n;
}

static const struct uar_json *at(struct story *t, const struct uar_event *ev, const char *pointer)
{
	const struct uar_json *p = NULL;

	CHECK(ev && uar_event_payload(ev, &t->arena, &p, NULL) == UAR_OK);
	return uar_json_pointer(p, uar_str_c(pointer));
}

#define TWO                                                                                        \
	"\"candidates\":[{\"provider\":\"a\",\"model\":\"m\",\"capabilities\":[\"tools\"],"        \
	"\"price\":{\"input\":1,\"output\":2}},"                                                   \
	"{\"provider\":\"b\",\"model\":\"n\",\"capabilities\":[\"tools\",\"reasoning\"],"          \
	"\"context_tokens\":1000,\"latency_ms\":9000,\"classes\":[\"code\"],"                      \
	"\"price\":{\"input\":10,\"output\":40}}]"

static const struct {
	const char *document, *first, *excluded[2];
} choices[] = {
	{ "{\"mode\":\"fallback\",\"kind\":\"code\"," TWO "}", "b", { NULL, NULL } },
	{ "{\"mode\":\"fallback\",\"kind\":\"chat\"," TWO "}", "a", { NULL, "task_class" } },
	{ "{\"kind\":\"code\",\"requires\":[\"reasoning\"]," TWO "}",
	  "b",
	  { "no_reasoning", NULL } },
	{ "{\"kind\":\"code\",\"requires\":[\"tools\",\"images\"]," TWO "}",
	  NULL,
	  { "no_images", "no_images" } },
	{ "{\"kind\":\"code\",\"context_tokens\":1001," TWO "}",
	  "a",
	  { NULL, "context_too_long" } },
	{ "{\"kind\":\"code\",\"max_cost\":30," TWO "}", "a", { NULL, "too_expensive" } },
	{ "{\"kind\":\"code\",\"max_latency_ms\":800," TWO "}", "a", { NULL, "too_slow" } },
	{ "{\"candidates\":[{\"provider\":\"a\",\"model\":\"m\",\"gap\":\"credentials\"}]}",
	  NULL,
	  { "credentials", NULL } },
};

TEST(a_route_is_chosen_by_each_criterion, "PROV-02")
{
	for (size_t i = 0; i < ARRAY_LEN(choices); i++) {
		struct uar_arena arena;
		struct uar_route r;

		uar_arena_init(&arena, 0);
		REQUIRE(uar_route_choose(uar_str_c(choices[i].document), &arena, &r) == UAR_OK);
		CHECK_INT(r.allowed > 0, choices[i].first != NULL);
		if (r.allowed)
			CHECK_STR(r.at[r.order[0]].provider, choices[i].first);
		for (size_t k = 0; k < r.count; k++)
			CHECK_STR(uar_str_c(r.at[k].excluded),
				  choices[i].excluded[k] ? choices[i].excluded[k] : "");
		uar_arena_fini(&arena);
	}
}

TEST(what_is_no_route_is_refused, "")
{
	static const char *const bad[] = { "", "[]", "{}", "{\"mode\":\"x\",\"candidates\":[]}",
					   "{\"candidates\":{}}" };
	struct uar_arena arena;
	struct uar_route r;

	uar_arena_init(&arena, 0);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_INT(uar_route_choose(uar_str_c(bad[i]), &arena, &r), UAR_EINVALID);
	uar_arena_fini(&arena);
}

TEST(prices_are_exact, "PROV-10")
{
	struct uar_price p = { 1250000000, 125000000, 10000000000 };

	CHECK_INT(uar_price_of(&p, 1000000, 0, 0), 1250000000);
	CHECK_INT(uar_price_of(&p, 1000, 400, 10), 750000 + 50000 + 100000);
	CHECK_INT(uar_price_of(&p, 1000, 4000, 0), 125000);
	CHECK_INT(uar_price_of(&p, 1, 0, 0), 1250);
}

/* --- failures ------------------------------------------------------------------------------- */

static void begin_routed(struct story *t, const char *document)
{
	struct uar_command c = story_command(UAR_CMD_PREPARED);

	story_init(t, 1);
	CHECK_INT(story_begin(t, UAR_ENTRY_LLM, false), UAR_OK);
	c.prepared.route = uar_str_c(document);
	CHECK_INT(story_tell(t, &c), UAR_OK);
}

static uar_err fail_call(struct story *t, const char *category, bool retryable, int64_t after_us)
{
	struct uar_command c = story_command(UAR_CMD_MODEL_FAILED);

	c.model.category = uar_str_c(category);
	c.model.retryable = retryable;
	c.model.retries = 2;
	c.model.backoff_us = 1000000;
	c.model.retry_after_us = after_us;
	return story_tell(t, &c);
}

static const char fallback_route[] =
	"{\"mode\":\"fallback\",\"kind\":\"code\",\"candidates\":["
	"{\"provider\":\"a\",\"model\":\"m\",\"price\":{\"input\":1,\"output\":2}},"
	"{\"provider\":\"b\",\"model\":\"n\"}]}";

static void repeat_call(struct story *t)
{
	CHECK_INT(t->d.effects[0], UAR_DO_WAIT);
	CHECK(t->r.call.due_us > t->now_us);
	CHECK_INT(story_do(t, UAR_CMD_RECOVER), UAR_OK); /* a kill changes nothing of the wait */
	CHECK_INT(t->d.effects[0], UAR_DO_WAIT);
	CHECK_INT(story_do(t, UAR_CMD_DUE), UAR_OK);
	CHECK_INT(t->d.effects[0], UAR_DO_START_ENTRY);
	CHECK_INT(t->r.call.due_us, 0);
	CHECK_INT(story_do(t, UAR_CMD_DUE), UAR_ESTATE);
	CHECK_INT(story_do(t, UAR_CMD_PREPARED), UAR_OK);
}

TEST(a_failed_call_is_repeated_twice_then_another_model_takes_over, "")
{
	struct story t;

	begin_routed(&t, fallback_route);
	CHECK_STR(uar_run_provider(&t.r), "a");
	CHECK_INT(fail_call(&t, "network", true, 0), UAR_OK);
	CHECK_INT(t.r.status, UAR_STATUS_WAITING_RESOURCE);
	repeat_call(&t);
	CHECK_INT(story_do(&t, UAR_CMD_TEXT), UAR_OK);
	CHECK_INT(fail_call(&t, "provider_error", true, 0), UAR_OK);
	CHECK_INT(t.r.status, UAR_STATUS_RETRYING);
	CHECK_INT(uar_json_int(at(&t, last_of(&t, UAR_EV_RUN_STATUS), "/metadata/superseded_bytes"),
			       0),
		  9);
	repeat_call(&t);
	CHECK_INT(fail_call(&t, "network", true, 0), UAR_OK);
	CHECK_INT(t.d.effects[0], UAR_DO_NEXT_ROUND);
	CHECK_STR(uar_run_provider(&t.r), "b");
	CHECK_STR(uar_run_model(&t.r), "n");
	CHECK_STR(
		uar_json_str(at(&t, last_of(&t, UAR_EV_ROUTING_FALLBACK_APPLIED), "/from/provider"),
			     UAR_STR("")),
		"a");
	CHECK_INT(story_do(&t, UAR_CMD_PREPARED), UAR_OK);
	CHECK_INT(story_do(&t, UAR_CMD_MODEL_DONE), UAR_OK);
	CHECK_INT(t.r.status, UAR_STATUS_COMPLETED);
	CHECK_INT(count_of(&t, UAR_EV_MODEL_REQUESTED), 4);
	CHECK_INT(count_of(&t, UAR_EV_COST_RECORDED), 1); /* those that said nothing cost nothing */
	story_fini(&t);
}

TEST(what_repeating_cannot_mend_is_not_repeated, "")
{
	static const struct {
		const char *category;
		bool retryable;
		int64_t after_us;
	} cases[] = { { "auth", false, 0 },
		      { "invalid_request", false, 0 },
		      { "limit", true, 61000000 } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct story t;

		begin_routed(&t, fallback_route);
		CHECK_INT(fail_call(&t, cases[i].category, cases[i].retryable, cases[i].after_us),
			  UAR_OK);
		CHECK_STR(uar_run_provider(&t.r), "b");
		CHECK_INT(story_do(&t, UAR_CMD_PREPARED), UAR_OK);
		CHECK_INT(fail_call(&t, cases[i].category, cases[i].retryable, cases[i].after_us),
			  UAR_OK);
		CHECK_INT(t.r.status, UAR_STATUS_FAILED);
		story_fini(&t);
	}
}

TEST(the_wait_is_what_the_provider_asks_for, "")
{
	struct story t;

	begin_routed(&t, fallback_route);
	CHECK_INT(fail_call(&t, "limit", true, 30000000), UAR_OK);
	CHECK_INT(t.r.call.due_us, t.now_us + 30000000);
	CHECK_INT(count_of(&t, UAR_EV_RATE_LIMIT_HIT), 1);
	story_fini(&t);
}

TEST(a_run_that_waits_for_a_model_is_cancelled_and_timed_out, "")
{
	struct story t;

	begin_routed(&t, fallback_route);
	CHECK_INT(fail_call(&t, "network", true, 0), UAR_OK);
	CHECK_INT(story_do(&t, UAR_CMD_CANCEL), UAR_OK);
	CHECK_INT(story_do(&t, UAR_CMD_DUE), UAR_ESTATE);
	CHECK_INT(story_do(&t, UAR_CMD_STOPPED), UAR_OK);
	CHECK_INT(t.r.status, UAR_STATUS_CANCELLED);
	story_fini(&t);
	begin_routed(&t, fallback_route);
	CHECK_INT(fail_call(&t, "network", true, 0), UAR_OK);
	CHECK_INT(story_do(&t, UAR_CMD_TIMEOUT), UAR_OK);
	CHECK_INT(t.r.status, UAR_STATUS_TIMED_OUT);
	story_fini(&t);
}

TEST(no_model_is_possible, "EVT-090")
{
	struct uar_command c = story_command(UAR_CMD_PREPARED);
	struct story t;

	story_init(&t, 1);
	CHECK_INT(story_begin(&t, UAR_ENTRY_LLM, false), UAR_OK);
	c.prepared.route = UAR_STR("{\"candidates\":[{\"provider\":\"a\",\"model\":\"m\",\"gap\":"
				   "\"credentials\"}]}");
	c.prepared.not_possible = true;
	CHECK_INT(story_tell(&t, &c), UAR_OK);
	CHECK_INT(t.r.status, UAR_STATUS_FAILED);
	CHECK_STR(uar_json_str(
			  at(&t, last_of(&t, UAR_EV_ROUTING_NOT_POSSIBLE), "/gaps/credentials/0"),
			  UAR_STR("")),
		  "a");
	CHECK_INT(count_of(&t, UAR_EV_MODEL_REQUESTED), 0);
	story_fini(&t);
}

/* --- budgets -------------------------------------------------------------------------------- */

TEST(a_budget_stops_before_the_call, "EVT-101")
{
	static const char *const budgets[] = {
		"\"model_calls\":1",
		"\"tokens\":35",
		"\"cost_usd\":0.00005",
	};

	for (size_t i = 0; i < ARRAY_LEN(budgets); i++) {
		char document[400];
		struct story t;

		snprintf(document, sizeof document,
			 "{\"budget\":{%s},\"candidates\":[{\"provider\":\"a\",\"model\":\"m\","
			 "\"price\":{\"input\":1,\"output\":2}}]}",
			 budgets[i]);
		begin_routed(&t, document);
		CHECK_INT(count_of(&t, UAR_EV_ROUTING_SINGLE_CANDIDATE), 1);
		CHECK_INT(story_do(&t, UAR_CMD_MODEL_CALLS), UAR_OK);
		CHECK_INT(count_of(&t, UAR_EV_QUOTA_LOW), 1);
		CHECK_INT(story_do(&t, UAR_CMD_PREPARED), UAR_OK);
		CHECK_INT(t.r.status, UAR_STATUS_FAILED);
		CHECK_INT(count_of(&t, UAR_EV_MODEL_REQUESTED), 1);
		CHECK_INT(count_of(&t, UAR_EV_QUOTA_BLOCKED), 1);
		story_fini(&t);
	}
}

TEST(a_budget_stops_before_the_tool, "EVT-101")
{
	struct uar_command c = story_command(UAR_CMD_TOOL_BEGIN);
	struct story t;

	begin_routed(&t, "{\"budget\":{\"tool_calls\":1},\"candidates\":[{\"provider\":\"a\","
			 "\"model\":\"m\"}]}");
	CHECK_INT(story_do(&t, UAR_CMD_MODEL_CALLS), UAR_OK);
	CHECK_INT(story_do(&t, UAR_CMD_TOOL_BEGIN), UAR_OK);
	CHECK_INT(story_do(&t, UAR_CMD_TOOL_OVER), UAR_OK);
	c.begin.call_id = UAR_STR("own-2");
	CHECK_INT(story_tell(&t, &c), UAR_OK);
	CHECK_INT(t.r.status, UAR_STATUS_FAILED);
	CHECK_STR(uar_json_str(at(&t, last_of(&t, UAR_EV_QUOTA_BLOCKED), "/blocked_operation"),
			       UAR_STR("")),
		  "tool_call");
	story_fini(&t);
}

TEST(a_budget_of_a_run_above_stops_before_the_call, "EVT-101")
{
	static const struct {
		struct uar_budget budget;
		struct uar_spending spent;
		const char *name;
	} cases[] = {
		{ { .model_calls = 3 }, { .model_calls = 2 }, "run.model_calls" },
		{ { .tokens = 100 }, { .tokens = 75 }, "run.tokens" },
		{ { .nanos = 100000 }, { .nanos = 90000 }, "run.money" },
		{ { .time_us = 5000000 }, { 0 }, "run.time" },
		{ { .model_calls = 4, .tokens = 500, .nanos = 1000000, .time_us = 6000000 },
		  { .model_calls = 2, .tokens = 75, .nanos = 90000 },
		  NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_command c = story_command(UAR_CMD_PREPARED);
		struct uar_shared shared = {
			.at = { { UAR_STR("above"), cases[i].budget, 1000000, cases[i].spent,
				  2000000 } },
			.count = 1,
		};
		struct story t;

		begin_routed(&t, "{\"candidates\":[{\"provider\":\"a\",\"model\":\"m\","
				 "\"price\":{\"input\":1,\"output\":2}}]}");
		CHECK_INT(story_do(&t, UAR_CMD_MODEL_CALLS), UAR_OK);
		c.shared = &shared;
		c.prepared.now_us = 8000001;
		CHECK_INT(story_tell(&t, &c), UAR_OK);
		CHECK_INT(count_of(&t, UAR_EV_MODEL_REQUESTED), cases[i].name ? 1 : 2);
		CHECK_INT(count_of(&t, UAR_EV_QUOTA_BLOCKED), cases[i].name ? 1 : 0);
		if (cases[i].name) {
			const struct uar_event *ev = last_of(&t, UAR_EV_QUOTA_BLOCKED);

			CHECK_STR(uar_json_str(at(&t, ev, "/quota_name"), UAR_STR("")),
				  cases[i].name);
			CHECK_STR(uar_json_str(at(&t, ev, "/budget_run_id"), UAR_STR("")), "above");
		}
		story_fini(&t);
	}
}

TEST(what_a_run_has_started_counts_against_its_budget, "EVT-101")
{
	struct uar_command c = story_command(UAR_CMD_PREPARED);
	struct uar_shared shared = { .below = { .model_calls = 2 } };
	struct story t;

	begin_routed(&t, "{\"budget\":{\"model_calls\":3},\"candidates\":[{\"provider\":\"a\","
			 "\"model\":\"m\"}]}");
	CHECK_INT(story_do(&t, UAR_CMD_MODEL_CALLS), UAR_OK);
	c.shared = &shared;
	CHECK_INT(story_tell(&t, &c), UAR_OK);
	CHECK_INT(t.r.status, UAR_STATUS_FAILED);
	CHECK_INT(count_of(&t, UAR_EV_MODEL_REQUESTED), 1);
	story_fini(&t);
}

TEST(the_time_of_a_budget_stops_before_the_tool, "EVT-101")
{
	struct uar_command c = story_command(UAR_CMD_TOOL_BEGIN);
	struct story t;

	begin_routed(&t, "{\"budget\":{\"seconds\":5},\"candidates\":[{\"provider\":\"a\","
			 "\"model\":\"m\"}]}");
	CHECK_INT(story_do(&t, UAR_CMD_MODEL_CALLS), UAR_OK);
	c.begin.now_us = t.r.at.started_us + 5000001;
	CHECK_INT(story_tell(&t, &c), UAR_OK);
	CHECK_INT(t.r.status, UAR_STATUS_FAILED);
	CHECK_INT(count_of(&t, UAR_EV_QUOTA_BLOCKED), 1);
	story_fini(&t);
}
