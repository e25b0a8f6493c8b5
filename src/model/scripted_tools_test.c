/* scripted_tools_test.c - the script that asks for tools, round by round. */
#include "test.h"
#include "heard.h"
#include "model_talk.h"
#include "model/limits.h"

#define USER(TEXT)	 SAYS(USER, TEXT)
#define RESULT(ID, TEXT) RESULT_OF(ID, TEXT)

static const struct uar_model_tool tools[] = {
	{ .name = { "internal__time_now", 18 } },
	{ .name = { "internal__fs_read", 17 } },
	{ .name = { "mcp__x__fs_read", 15 } },
};

struct turn {
	const struct uar_model_message *messages;
	size_t count;
	bool without_tools;
};

/* What it says in that place of a conversation, twice the same. */
static void hear(const struct turn *t, struct heard *h)
{
	struct uar_model_request r = { .model = UAR_STR("scripted-tools"),
				       .messages = t->messages,
				       .message_count = t->count,
				       .tools = tools,
				       .tool_count = t->without_tools ? 0 : ARRAY_LEN(tools) };
	struct uar_model_scripted_options o = { 0 };
	struct uar_loop *loop = NULL;
	struct uar_model *model = NULL;
	struct heard again;

	heard_init(h, NULL, NULL);
	heard_init(&again, NULL, NULL);
	if (CHECK(uar_loop_create(&uar_clock_system, &loop) == UAR_OK)) {
		o.sched = uar_loop_sched(loop);
		CHECK(uar_model_scripted_create(&o, &model) == UAR_OK);
		h->model = again.model = model;
		h->loop = again.loop = loop;
		if (CHECK(heard_start(h, &r) == UAR_OK))
			uar_loop_run(loop);
		if (CHECK(heard_start(&again, &r) == UAR_OK))
			uar_loop_run(loop);
	}
	CHECK_INT(h->dones, 1);
	CHECK_INT(h->result.failure, UAR_MODEL_FAIL_NONE);
	CHECK(uar_str_eq(uar_buf_str(&h->text), uar_buf_str(&again.text)));
	CHECK(uar_str_eq(uar_buf_str(&h->calls), uar_buf_str(&again.calls)));
	CHECK_STR(uar_str_c(h->stop), h->calls.n ? "tool_calls" : "stop");
	heard_fini(&again);
	uar_model_destroy(model);
	uar_loop_destroy(loop);
}

static void check_calls(const struct turn *t, const char *calls, const char *text)
{
	struct heard h;

	hear(t, &h);
	CHECK_STR(uar_buf_str(&h.calls), calls);
	CHECK_STR(uar_buf_str(&h.text), text);
	heard_fini(&h);
}

TEST(names_in_the_message_become_calls, "")
{
	const struct {
		struct uar_model_message message;
		const char *calls, *text;
	} cases[] = {
		{ USER("what time is it?"), "call_1_1 internal__time_now {}\n",
		  "I will use internal__time_now. " },
		{ USER("please\n tool time.now  {\"utc_offset\":\"+01:00\"} \r\nthanks"),
		  "call_1_1 internal__time_now {\"utc_offset\":\"+01:00\"}\n",
		  "I will use internal__time_now. " },
		{ USER("tool internal:fs.read {\nthen\ntool time.now"),
		  "call_1_1 internal__fs_read {\n", "I will use internal__fs_read. " },
		{ USER("tool mcp__x__fs_read\ntool fs.read\ntool no.such [1]"),
		  "call_1_1 mcp__x__fs_read {}\ncall_1_2 internal__fs_read {}\ncall_1_3 no.such "
		  "[1]\n",
		  "I will use mcp__x__fs_read, internal__fs_read and no.such. " },
		{ USER("then\nthen\ntool now\ntool \ntool"), "call_1_1 now {}\n",
		  "I will use now. " },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		check_calls(&(struct turn){ &cases[i].message, 1, false }, cases[i].calls,
			    cases[i].text);
}

TEST(rounds_follow_from_the_conversation, "")
{
	const struct uar_model_message talk[] = {
		USER("tool time.now\ntool fs.read\nthen\ntool fs.read {\"path\":\"b\"}"),
		TALK(ASSISTANT, 2, TALK_CALL("call_1_1", "internal__time_now", "{}"),
		     TALK_CALL("call_1_2", "internal__fs_read", "{}")),
		RESULT("call_1_1", "noon"),
		RESULT("call_1_2", "a"),
		TALK(ASSISTANT, 1, TALK_CALL("call_2_1", "internal__fs_read", "{}")),
		RESULT("call_2_1", "b"),
		SAYS(ASSISTANT, "done"),
		USER("tool fs.read"),
	};

	check_calls(&(struct turn){ talk, 1, false },
		    "call_1_1 internal__time_now {}\ncall_1_2 internal__fs_read {}\n",
		    "I will use internal__time_now and internal__fs_read. ");
	check_calls(&(struct turn){ talk, 4, false },
		    "call_2_1 internal__fs_read {\"path\":\"b\"}\n",
		    "I will use internal__fs_read. ");
	check_calls(&(struct turn){ talk, 6, false }, "",
		    "internal__time_now said: noon\ninternal__fs_read said: a\n"
		    "internal__fs_read said: b\n");
	check_calls(&(struct turn){ talk, 8, false }, "call_3_1 internal__fs_read {}\n",
		    "I will use internal__fs_read. ");
}

TEST(it_thinks_once, "")
{
	const struct uar_model_message talk[] = {
		USER("tool x"), TALK(ASSISTANT, 1, TALK_CALL("call_1_1", "x", "{}")),
		RESULT("call_1_1", "y")
	};
	struct heard h;

	hear(&(struct turn){ talk, 1, false }, &h);
	CHECK(h.thoughts > 0);
	heard_fini(&h);
	hear(&(struct turn){ talk, 3, false }, &h);
	CHECK_INT(h.thoughts, 0);
	heard_fini(&h);
}

TEST(without_tools_it_says_so, "")
{
	const struct uar_model_message hello = USER("hello"), named = USER("tool time.now");

	check_calls(&(struct turn){ &hello, 1, true }, "", "I have no tool for that. ");
	check_calls(&(struct turn){ &named, 1, true }, "call_1_1 time.now {}\n",
		    "I will use time.now. ");
	check_calls(&(struct turn){ NULL, 0, true }, "", "I have no tool for that. ");
}

TEST(what_it_quotes_is_bounded, "")
{
	static char line[] = "tool x\n", many[sizeof line * 40], euros[3 * 300];
	struct uar_model_part asked = { .kind = UAR_PART_TEXT };
	struct uar_model_part said = { .kind = UAR_PART_RESULT, .id = { "?", 1 } };
	struct uar_model_message talk[3] = { USER("tool x"),
					     { UAR_MODEL_USER, &asked, 1 },
					     { UAR_MODEL_TOOL, &said, 1 } };
	struct heard h;

	for (size_t i = 0; i < 40; i++)
		memcpy(many + i * 7, line, 7);
	for (size_t i = 0; i < 300; i++)
		memcpy(euros + 3 * i, "\xe2\x82\xac", 3);
	asked.text = uar_str_n(many, 7 * 40);
	hear(&(struct turn){ talk, 2, false }, &h);
	CHECK_INT(h.result.call_count, UAR_LIMIT_MODEL_CALLS);
	heard_fini(&h);
	said.text = uar_str_n(euros, sizeof euros);
	talk[1].role = UAR_MODEL_ASSISTANT;
	asked = (struct uar_model_part){ .kind = UAR_PART_CALL, .name = { "x", 1 } };
	hear(&(struct turn){ talk, 3, false }, &h);
	CHECK(uar_str_starts(uar_buf_str(&h.text), UAR_STR("A tool said: \xe2\x82\xac")));
	CHECK(uar_str_ends(uar_buf_str(&h.text), UAR_STR("\xe2\x82\xac...\n")));
	heard_fini(&h);
}

TEST(no_memory_is_told_at_the_start, "")
{
	const struct uar_model_message m = USER("tool a\ntool b\nthen\ntool c");
	struct uar_model_request r = { .model = UAR_STR("scripted-tools"),
				       .messages = &m,
				       .message_count = 1 };
	struct uar_model_scripted_options o = { 0 };
	struct uar_loop *loop = NULL;
	struct uar_model *model = NULL;
	bool begun = false;

	REQUIRE(uar_loop_create(&uar_clock_system, &loop) == UAR_OK);
	o.sched = uar_loop_sched(loop);
	REQUIRE(uar_model_scripted_create(&o, &model) == UAR_OK);
	for (unsigned long n = 1; !begun; n++) {
		struct heard h;
		uar_err e;

		heard_init(&h, model, loop);
		uar_test_fail_alloc(n);
		e = heard_start(&h, &r);
		uar_test_fail_alloc(0);
		begun = e == UAR_OK;
		CHECK(begun || e == UAR_ENOMEM);
		if (begun)
			uar_loop_run(loop);
		heard_fini(&h);
	}
	uar_model_destroy(model);
	uar_loop_destroy(loop);
}
