/* flow_test.c - which workflows are refused and where, and what runs of them do, call by call. */
#include "flow/flow.h"

#include "test.h"

#define IN	   "{\"id\":\"s\",\"type\":\"input\"},"
#define OUT	   "{\"id\":\"e\",\"type\":\"output\"}"
#define EDGE(A, B) "{\"from\":{\"node\":\"" A "\"},\"to\":{\"node\":\"" B "\"}}"
#define EDGE_OF(A, P, B)                                                                           \
	"{\"from\":{\"node\":\"" A "\",\"port\":\"" P "\"},\"to\":{\"node\":\"" B "\"}}"
#define NODE(ID, TYPE, CONFIG) "{\"id\":\"" ID "\",\"type\":\"" TYPE "\",\"config\":" CONFIG "},"
#define FLOW(NODES, EDGES)     "{\"workflow\":{\"nodes\":[" IN NODES OUT "],\"edges\":[" EDGES "]}}"

/* --- refusals ------------------------------------------------------------------------------- */

static const struct {
	const char *name, *text, *code, *pointer; /* code NULL: it is right */
} graphs[] = {
	{ "two nodes", FLOW("", EDGE("s", "e")), NULL, NULL },
	{ "no graph", "{}", "no_graph", "" },
	{ "no lists", "{\"workflow\":{\"nodes\":1}}", "no_graph", "/workflow" },
	{ "edges that are no list", "{\"workflow\":{\"nodes\":[],\"edges\":1}}", "no_graph",
	  "/workflow/edges" },
	{ "no input", "{\"workflow\":{\"nodes\":[" OUT "],\"edges\":[]}}", "no_input",
	  "/workflow/nodes" },
	{ "no output",
	  "{\"workflow\":{\"nodes\":[{\"id\":\"s\",\"type\":\"input\"}],\"edges\":[]}}",
	  "no_output", "/workflow/nodes" },
	{ "two inputs", FLOW("{\"id\":\"t\",\"type\":\"input\"},", EDGE("s", "e")), "input_twice",
	  "/workflow/nodes/1" },
	{ "an unknown type", FLOW(NODE("a", "agnt", "{}"), EDGE("s", "e")), "node_type",
	  "/workflow/nodes/1/type" },
	{ "an id that is none", FLOW(NODE("a b", "join", "{}"), EDGE("s", "e")), "node_id",
	  "/workflow/nodes/1/id" },
	{ "an id twice", FLOW(NODE("s", "join", "{}"), EDGE("s", "e")), "node_twice",
	  "/workflow/nodes/1/id" },
	{ "a missing setting", FLOW(NODE("a", "agent", "{}"), EDGE("s", "a") "," EDGE("a", "e")),
	  "settings", "/workflow/nodes/1/config" },
	{ "a setting of another type",
	  FLOW(NODE("a", "wait", "{\"seconds\":\"x\"}"), EDGE("s", "a") "," EDGE("a", "e")),
	  "settings", "/workflow/nodes/1/config/seconds" },
	{ "a setting of what a loop does",
	  FLOW(NODE("a", "loop", "{\"do\":\"tool\",\"with\":{}}"),
	       EDGE("s", "a") "," EDGE("a", "e")),
	  "settings", "/workflow/nodes/1/config/with" },
	{ "an edge from nowhere", FLOW("", EDGE("s", "e") "," EDGE("x", "e")), "dangling_edge",
	  "/workflow/edges/1/from/node" },
	{ "an edge to nowhere", FLOW("", EDGE("s", "e") "," EDGE("s", "x")), "dangling_edge",
	  "/workflow/edges/1/to/node" },
	{ "an edge twice", FLOW("", EDGE("s", "e") "," EDGE("s", "e")), "edge_twice",
	  "/workflow/edges/1" },
	{ "an output that is not there", FLOW("", EDGE_OF("s", "other", "e")), "no_such_port",
	  "/workflow/edges/0/from/port" },
	{ "an input that is not there",
	  FLOW("", EDGE("s",
			"e") ",{\"from\":{\"node\":\"s\"},\"to\":{\"node\":\"e\",\"port\":\"x\"}}"),
	  "no_such_port", "/workflow/edges/1/to/port" },
	{ "an edge to the beginning",
	  FLOW(NODE("a", "join", "{}"), EDGE("s", "a") "," EDGE("a", "s")), "no_such_port",
	  "/workflow/edges/1/to/port" },
	{ "a type that does not fit",
	  FLOW(NODE("l", "loop", "{\"do\":\"tool\",\"with\":{\"tool\":\"x\"}}"),
	       EDGE_OF("s", "message", "l") "," EDGE("l", "e")),
	  "wrong_type", "/workflow/edges/0" },
	{ "a cycle",
	  FLOW(NODE("a", "join", "{}") NODE("b", "join", "{}"),
	       EDGE("s", "a") "," EDGE("a", "b") "," EDGE("b", "a") "," EDGE("b", "e")),
	  "cycle", "/workflow/edges/" },
	{ "nothing leads in", FLOW(NODE("a", "join", "{}"), EDGE("s", "e") "," EDGE("a", "e")),
	  "no_edge_in", "/workflow/nodes/1" },
	{ "a value of no node",
	  FLOW(NODE("a", "transform", "{\"value\":\"{{/nodes/x/out}}\"}"),
	       EDGE("s", "a") "," EDGE("a", "e")),
	  "unknown_value", "/workflow/nodes/1/config/value" },
	{ "a value of a node behind",
	  FLOW(NODE("a", "transform", "{\"value\":[1,{\"x\":\"a {{/nodes/e/out}}\"}]}"),
	       EDGE("s", "a") "," EDGE("a", "e")),
	  "unknown_value", "/workflow/nodes/1/config/value/1/x" },
	{ "a test of nothing",
	  FLOW(NODE("a", "condition", "{\"any\":[{\"pointer\":\"/x\",\"op\":\"exists\"}]}"),
	       EDGE("s", "a") "," EDGE_OF("a", "yes", "e")),
	  "unknown_value", "/workflow/nodes/1/config/any/0/pointer" },
	{ "an item outside of a loop",
	  FLOW(NODE("a", "transform", "{\"value\":\"{{/item}}\"}"),
	       EDGE("s", "a") "," EDGE("a", "e")),
	  "unknown_value", "/workflow/nodes/1/config/value" },
	{ "a secret",
	  "{\"schemas\":{\"inputs\":{\"properties\":{\"key\":{\"writeOnly\":true}}}},"
	  "\"workflow\":{\"nodes\":[" IN OUT "],\"edges\":[" EDGE("s", "e") "]}}",
	  "secret_input", "/schemas/inputs/properties/key" },
};

static const struct uar_json *parse(struct uar_arena *a, const char *text)
{
	const struct uar_json *j = NULL;

	CHECK_MSG(!uar_json_parse(uar_str_c(text), NULL, a, &j, NULL), "%s", text);
	return j;
}

TEST(refuses_wrong_graphs, "WF-04")
{
	static struct uar_flow_problems all;
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	for (size_t i = 0; i < ARRAY_LEN(graphs); i++) {
		const struct uar_flow_problem *first = NULL;

		uar_flow_check(parse(&arena, graphs[i].text), NULL, &all);
		for (size_t k = 0; k < all.count && !first; k++)
			first = all.at[k].warning ? NULL : &all.at[k];
		CHECK_MSG((graphs[i].code == NULL) == (first == NULL), "%s", graphs[i].name);
		if (!first || !graphs[i].code)
			continue;
		CHECK_STR(uar_str_c(first->code), graphs[i].code);
		CHECK_MSG(uar_str_starts(uar_str_c(first->pointer), uar_str_c(graphs[i].pointer)),
			  "%s", first->pointer);
		CHECK_MSG(first->message[0] && first->next_step[0], "%s", graphs[i].name);
	}
	uar_arena_fini(&arena);
}

TEST(an_error_is_told_however_many_warnings_there_are, "WF-04")
{
	static struct uar_flow_problems all;
	struct uar_buf text = uar_buf_make(65536);
	struct uar_arena arena;
	bool found = false;

	uar_arena_init(&arena, 0);
	uar_buf_printf(&text, "{\"workflow\":{\"nodes\":[" IN);
	for (int i = 0; i < UAR_LIMIT_FLOW_PROBLEMS + 1; i++)
		uar_buf_printf(&text, "{\"id\":\"n%d\",\"type\":\"join\"},", i);
	uar_buf_printf(&text, NODE("t", "transform", "{\"value\":\"{{/item}}\"}") OUT
		       "],\"edges\":[" EDGE("s", "t") "," EDGE("t", "e"));
	for (int i = 0; i < UAR_LIMIT_FLOW_PROBLEMS + 1; i++)
		uar_buf_printf(&text, "," EDGE("s", "n%d"), i);
	uar_buf_printf(&text, "]}}");
	uar_flow_check(parse(&arena, text.p), NULL, &all);
	CHECK_INT(all.count, UAR_LIMIT_FLOW_PROBLEMS);
	CHECK_INT(all.errors, 1);
	for (size_t i = 0; i < all.count; i++)
		found |= !all.at[i].warning && strcmp(all.at[i].code, "unknown_value") == 0;
	CHECK(found);
	uar_buf_fini(&text);
	uar_arena_fini(&arena);
}

/* --- runs ----------------------------------------------------------------------------------- */

struct story {
	struct uar_arena arena;
	struct uar_flow flow;
	const struct uar_json *inputs;
	struct uar_flow_call calls[16];
	size_t count;
	struct uar_flow_step *step;
};

static void look(struct story *t, int64_t now)
{
	struct uar_flow_ask ask = { &t->flow, t->inputs, { t->calls, t->count, t->count }, now, 0 };

	CHECK(!uar_flow_step(&ask, &t->arena, &t->step));
}

static void story_begin(struct story *t, const char *flow, const char *inputs)
{
	struct uar_error error = { 0 };

	*t = (struct story){ .count = 0 };
	uar_arena_init(&t->arena, 0);
	CHECK_MSG(!uar_flow_read(parse(&t->arena, flow), &t->flow, &error), "%s",
		  uar_error_text(&error));
	t->inputs = parse(&t->arena, inputs);
	look(t, 0);
}

/* The only call that is wanted is made, and ends so. */
static void answer(struct story *t, const char *key, const char *told, bool failed)
{
	CHECK_INT(t->step->want_count, 1);
	CHECK_MSG(uar_str_is(t->step->wants[0].key, key), "%s", t->step->wants[0].key.p);
	t->calls[t->count++] =
		(struct uar_flow_call){ t->step->wants[0].key, true, failed, uar_str_c(told) };
	look(t, 0);
}

static const char *written(struct story *t, const struct uar_json *j)
{
	struct uar_buf b = uar_buf_make(4096);
	uar_str s;

	if (j)
		uar_json_write(&b, j);
	s = uar_arena_str(&t->arena, uar_buf_str(&b));
	uar_buf_fini(&b);
	return s.p;
}

#define CHILD(STATUS, REST)                                                                        \
	"{\"subagents\":[{\"subagent_id\":\"c1\",\"status\":\"" STATUS "\"," REST "}]}"

TEST(runs_an_agent_and_waits_for_it, "WF-03")
{
	struct story t;

	story_begin(&t,
		    FLOW(NODE("a", "agent", "{\"agent\":\"echo\",\"message\":\"Say {{/in}}\"}"),
			 EDGE_OF("s", "message", "a") "," EDGE("a", "e")),
		    "{\"message\":\"hi\"}");
	CHECK_INT(t.step->verdict, UAR_FLOW_GOES_ON);
	CHECK_MSG(strstr(t.step->wants[0].args.p, "\"message\":\"Say hi\""), "%s",
		  t.step->wants[0].args.p);
	answer(&t, "spawn:a", "{\"subagent\":{\"subagent_id\":\"c1\"}}", false);
	answer(&t, "wait", CHILD("running", "\"recoverable\":false"), false);
	answer(&t, "wait", CHILD("completed", "\"recoverable\":true,\"answer\":\"hello\""), false);
	CHECK_INT(t.step->verdict, UAR_FLOW_DONE);
	CHECK_STR(uar_str_c(written(&t, t.step->answer)), "\"hello\"");
	uar_arena_fini(&t.arena);
}

#define REST(ID, BYTES)                                                                            \
	"{\"subagent_id\":\"" ID "\",\"status\":\"completed\",\"recoverable\":true,"               \
	"\"answer\":\"hello\",\"answer_bytes\":" BYTES "}"

static void two_agents_end(struct story *t, const char *waited)
{
	story_begin(t,
		    FLOW(NODE("a", "agent", "{\"agent\":\"echo\"}")
				 NODE("b", "agent", "{\"agent\":\"echo\"}") NODE("j", "join", "{}"),
			 EDGE("s", "a") "," EDGE("s", "b") "," EDGE("a", "j") "," EDGE(
				 "b", "j") "," EDGE("j", "e")),
		    "{\"message\":\"hi\"}");
	CHECK_INT(t->step->want_count, 2);
	t->calls[0] = (struct uar_flow_call){ UAR_STR("spawn:a"), true, false,
					      UAR_STR("{\"subagent\":{\"subagent_id\":\"c1\"}}") };
	t->calls[1] = (struct uar_flow_call){ UAR_STR("spawn:b"), true, false,
					      UAR_STR("{\"subagent\":{\"subagent_id\":\"c2\"}}") };
	t->count = 2;
	look(t, 0);
	answer(t, "wait", waited, false);
}

TEST(an_answer_that_a_wait_has_cut_is_waited_for_alone, "WF-03")
{
	struct story t;

	two_agents_end(&t, "{\"subagents\":[" REST("c1", "5") "," REST("c2", "9") "]}");
	CHECK_STR(uar_str_c(t.step->wants[0].args.p),
		  "{\"subagent_ids\":[\"c2\"],\"mode\":\"any\",\"timeout_seconds\":600}");
	answer(&t, "wait",
	       "{\"subagents\":[{\"subagent_id\":\"c2\",\"status\":\"completed\","
	       "\"recoverable\":true,\"answer\":\"hello you\"}]}",
	       false);
	CHECK_INT(t.step->verdict, UAR_FLOW_DONE);
	CHECK_STR(uar_str_c(written(&t, t.step->answer)), "[\"hello\",\"hello you\"]");
	uar_arena_fini(&t.arena);
}

TEST(an_answer_that_is_not_kept_whole_fails_its_node, "WF-03")
{
	struct story t;

	two_agents_end(&t, "{\"subagents\":[" REST("c1", "5") "," REST("c2", "9") "]}");
	answer(&t, "wait", "{\"subagents\":[" REST("c2", "9") "]}", false);
	CHECK_INT(t.step->verdict, UAR_FLOW_BROKE);
	CHECK_INT(t.step->culprit, 2);
	CHECK_STR(t.step->nodes[2].category, "result_too_large");
	uar_arena_fini(&t.arena);
}

TEST(a_branch_that_is_not_taken_is_skipped, "WF-03")
{
	static const char *const test = FLOW(
		NODE("c", "condition",
		     "{\"all\":[{\"pointer\":\"/inputs/n\",\"op\":\"greater\",\"value\":2}]}")
			NODE("y", "transform", "{\"value\":\"big {{/inputs/n}}\"}")
				NODE("n", "transform", "{\"value\":{\"small\":\"{{/inputs/n}}\"}}"),
		EDGE("s", "c") "," EDGE_OF("c", "yes", "y") "," EDGE_OF("c", "no", "n") "," EDGE(
			"y", "e") "," EDGE("n", "e"));
	struct story t;

	story_begin(&t, test, "{\"n\":3}");
	CHECK_INT(t.step->verdict, UAR_FLOW_DONE);
	CHECK_STR(uar_str_c(written(&t, t.step->answer)), "\"big 3\"");
	CHECK_INT(t.step->nodes[3].status, UAR_FLOW_SKIPPED);
	uar_arena_fini(&t.arena);
	story_begin(&t, test, "{\"n\":1}");
	CHECK_STR(uar_str_c(written(&t, t.step->answer)), "{\"small\":1}");
	uar_arena_fini(&t.arena);
}

#define ERROR "{\"error\":{\"category\":\"execution\",\"message\":\"broken\"}}"

TEST(a_failure_is_the_node_s_unless_it_is_handled, "WF-03")
{
	struct story t;

	story_begin(
		&t,
		FLOW(NODE("a", "tool", "{\"tool\":\"x:y\"}"), EDGE("s", "a") "," EDGE("a", "e")),
		"{}");
	answer(&t, "call:a", ERROR, true);
	CHECK_INT(t.step->verdict, UAR_FLOW_BROKE);
	CHECK_INT(t.step->culprit, 1);
	uar_arena_fini(&t.arena);
	story_begin(&t,
		    FLOW(NODE("a", "tool", "{\"tool\":\"x:y\",\"on_error\":\"port\"}"),
			 EDGE("s", "a") "," EDGE_OF("a", "error", "e")),
		    "{}");
	answer(&t, "call:a", ERROR, true);
	CHECK_INT(t.step->verdict, UAR_FLOW_DONE);
	CHECK_STR(uar_str_c(written(&t, t.step->answer)),
		  "{\"category\":\"execution\",\"message\":\"broken\"}");
	uar_arena_fini(&t.arena);
}

TEST(who_declines_stops_the_run_or_leads_it_elsewhere, "WF-03")
{
	struct story t;

	story_begin(&t,
		    FLOW(NODE("a", "approval", "{\"title\":\"Send {{/inputs/n}}?\"}"),
			 EDGE("s", "a") "," EDGE("a", "e")),
		    "{\"n\":3}");
	CHECK_MSG(strstr(t.step->wants[0].args.p, "Send 3?"), "%s", t.step->wants[0].args.p);
	answer(&t, "call:a", "{\"decision\":\"decline\"}", false);
	CHECK_INT(t.step->verdict, UAR_FLOW_BROKE);
	uar_arena_fini(&t.arena);
	story_begin(&t,
		    FLOW(NODE("a", "approval", "{\"title\":\"Send?\"}"),
			 EDGE("s", "a") "," EDGE_OF("a", "declined", "e")),
		    "{\"n\":3}");
	answer(&t, "call:a", "{\"error\":{\"category\":\"rejected\",\"message\":\"no\"}}", true);
	CHECK_INT(t.step->verdict, UAR_FLOW_DONE);
	CHECK_STR(uar_str_c(written(&t, t.step->answer)), "{\"n\":3}");
	uar_arena_fini(&t.arena);
}

TEST(a_loop_begins_as_many_as_it_may_and_keeps_their_order, "WF-03")
{
	struct story t;

	story_begin(&t,
		    FLOW(NODE("t", "transform", "{\"value\":\"{{/inputs/list}}\"}")
				 NODE("l", "loop",
				      "{\"do\":\"tool\",\"at_once\":2,\"with\":{\"tool\":"
				      "\"x:y\",\"arguments\":{\"n\":\"{{/item}}\",\"i\":"
				      "\"{{/index}}\"}}}"),
			 EDGE("s", "t") "," EDGE("t", "l") "," EDGE("l", "e")),
		    "{\"list\":[\"a\",\"b\",\"c\"]}");
	CHECK_INT(t.step->want_count, 2);
	CHECK_STR(t.step->wants[1].args, "{\"n\":\"b\",\"i\":1}");
	t.calls[0] = (struct uar_flow_call){ UAR_STR("call:l#1"), true, false, UAR_STR("\"B\"") };
	t.calls[1] = (struct uar_flow_call){ UAR_STR("call:l#0"), true, false, UAR_STR("\"A\"") };
	t.count = 2;
	look(&t, 0);
	answer(&t, "call:l#2", "\"C\"", false);
	CHECK_INT(t.step->verdict, UAR_FLOW_DONE);
	CHECK_STR(uar_str_c(written(&t, t.step->answer)), "[\"A\",\"B\",\"C\"]");
	uar_arena_fini(&t.arena);
}

TEST(a_wait_rests_until_its_time, "WF-03")
{
	struct story t;

	story_begin(&t,
		    FLOW(NODE("w", "wait", "{\"seconds\":2}"), EDGE("s", "w") "," EDGE("w", "e")),
		    "{}");
	answer(&t, "sleep:w", "{\"until_us\":2000000}", false);
	CHECK_INT(t.step->verdict, UAR_FLOW_RESTS);
	CHECK_INT(t.step->until_us, 2000000);
	look(&t, 2000000);
	CHECK_INT(t.step->verdict, UAR_FLOW_DONE);
	uar_arena_fini(&t.arena);
}

/* What is counted as not ended is what was told when the calls were begun: each change once. */
TEST(changes_are_told_once, "WF-03")
{
	struct uar_flow_ask before = { .calls = { NULL, 1, 0 } };
	struct uar_buf b = uar_buf_make(4096);
	struct uar_flow_step *old = NULL;
	struct story t;
	size_t count;

	story_begin(
		&t,
		FLOW(NODE("a", "tool", "{\"tool\":\"x:y\"}"), EDGE("s", "a") "," EDGE("a", "e")),
		"{}");
	CHECK_MSG(!uar_flow_write_changes(&t.flow, NULL, t.step, &b, &count), "%s", "changes");
	CHECK_INT(count, 2);
	answer(&t, "call:a", "7", false);
	before.flow = &t.flow;
	before.inputs = t.inputs;
	before.calls.at = t.calls;
	CHECK(!uar_flow_step(&before, &t.arena, &old));
	uar_buf_clear(&b);
	CHECK_MSG(!uar_flow_write_changes(&t.flow, old, t.step, &b, &count), "%s", "changes");
	CHECK_INT(count, 2);
	CHECK_MSG(strstr(b.p,
			 "\"id\":\"a\",\"type\":\"tool\",\"status\":\"completed\",\"took\":\"out\","
			 "\"output\":7"),
		  "%s", b.p);
	uar_buf_fini(&b);
	uar_arena_fini(&t.arena);
}
