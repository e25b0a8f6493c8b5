/* flow_view_test.c - units of a workflow are found by their calls, agents and questions. */
#include "proto/flow_view.h"

#include "test.h"

struct told {
	enum uar_event_class cls;
	const char *call_id, *action_id, *payload;
};

/* A loop of two items, each with an agent; the second asks. */
static const struct told loop[] = {
	{ UAR_EV_RUN_STATUS, "", "",
	  "{\"metadata\":{\"workflow_node\":{\"id\":\"each\",\"status\":\"running\",\"items\":2},"
	  "\"workflow\":{\"calls\":[{\"id\":\"c1\",\"node\":\"each\",\"item\":0,\"stage\":"
	  "\"spawn\"},{\"id\":\"c2\",\"node\":\"each\",\"item\":1,\"stage\":\"spawn\"}]}}}" },
	{ UAR_EV_TOOL_RESULT, "c1", "",
	  "{\"preview\":{\"subagent\":{\"subagent_id\":\"s1\",\"child_session_id\":\"x1\"}}}" },
	{ UAR_EV_TOOL_RESULT, "c2", "",
	  "{\"preview\":{\"subagent\":{\"subagent_id\":\"s2\",\"child_session_id\":\"x2\"}}}" },
	{ UAR_EV_ACTION_REQUIRED, "", "q1", "{\"scope\":{\"tool_call_id\":\"c2\"}}" },
	{ UAR_EV_TOOL_RESULT, "wait", "",
	  "{\"preview\":{\"subagents\":[{\"subagent_id\":\"s1\",\"run_id\":\"r1\",\"status\":"
	  "\"completed\",\"recoverable\":true}]}}" },
};
static const struct told answered = { UAR_EV_ACTION_RESOLVED, "", "q1", "{}" };

static uar_err tell(struct uar_flow_view *v, const struct told *t)
{
	struct uar_event ev = { .cls = t->cls,
				.run_sequence = v->through + 1,
				.payload = uar_str_c(t->payload) };

	ev.ids[UAR_ID_TOOL_CALL] = uar_str_c(t->call_id);
	ev.ids[UAR_ID_ACTION] = uar_str_c(t->action_id);
	return uar_flow_view_take(v, &ev);
}

static uar_err tell_loop(struct uar_flow_view *v)
{
	uar_err e = UAR_OK;

	for (size_t i = 0; i < ARRAY_LEN(loop) && !e; i++)
		e = tell(v, &loop[i]);
	return e;
}

TEST(an_event_finds_the_unit_that_it_is_about, "")
{
	const struct uar_flow_unit *first, *second;
	struct uar_flow_view v;
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	uar_flow_view_init(&v, &arena);
	CHECK_INT(tell_loop(&v), UAR_OK);
	first = v.nodes[0].units;
	second = first ? first->next : NULL;
	if (CHECK(v.count == 1 && second && !second->next)) {
		CHECK(first->ended && !first->failed && !second->ended);
		CHECK_STR(first->run_id, "r1");
		CHECK_STR(second->session_id, "x2");
		CHECK_STR(second->action_id, "q1");
		CHECK_INT(tell(&v, &answered), UAR_OK);
		CHECK_STR(second->action_id, "");
	}
	uar_flow_view_fini(&v);
	uar_arena_fini(&arena);
}

TEST(a_failed_allocation_is_told, "")
{
	bool failed = true;

	for (unsigned long n = 1; failed; n++) {
		struct uar_flow_view v;
		struct uar_arena arena;
		uar_err e;

		uar_arena_init(&arena, 0);
		uar_flow_view_init(&v, &arena);
		uar_test_fail_alloc(n);
		e = tell_loop(&v);
		failed = uar_test_alloc_failed();
		uar_test_fail_alloc(0);
		CHECK_INT(e, failed ? UAR_ENOMEM : UAR_OK);
		uar_flow_view_fini(&v);
		uar_arena_fini(&arena);
	}
}
