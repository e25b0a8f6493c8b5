/* model_test.c - the OpenAI dialect over HTTP, against a scripted peer. */
#include "model/wire_test.h"
#include "openai_words.h"

static bool set_up(struct fixture *f, const struct peer_script *scripts, size_t n)
{
	return set_up_dialect(f, UAR_DIALECT_OPENAI_CHAT, scripts, n);
}

static const struct provider_case cases[] = {
#define C(NAME, ANSWER, END, WAITS) { NAME, ANSWER, END, WAITS },
#include "model/limits.h"
#include "model/openai_cases.def"
#undef C
};

TEST(every_answer_ends_in_a_known_way, "")
{
	run_cases(UAR_DIALECT_OPENAI_CHAT, cases, ARRAY_LEN(cases));
}

TEST(request_is_a_streaming_chat_completion, "")
{
	static const struct peer_script script = {
		{ { PEER_SEND, HEAD DELTA("a") STOP USAGE DONE, 0 }, { PEER_CLOSE, NULL, 0 } }
	};
	const struct uar_model_message talk[] = {
		SAYS(SYSTEM, "Be \"kind\"."),
		SAYS(USER, "Hi"),
		SAYS(ASSISTANT, "Yes?"),
	};
	struct uar_model_request r = { .model = UAR_STR("m-1"),
				       .messages = talk,
				       .message_count = 3 };
	struct fixture f;
	struct heard s;
	const char *body;

	REQUIRE(set_up(&f, &script, 1));
	heard_init(&s, f.model, f.loop);
	REQUIRE(heard_start(&s, &r) == UAR_OK);
	uar_loop_run(f.loop);
	CHECK(strncmp(peer_request(f.peer), "POST /v1/chat/completions HTTP/1.1\r\n", 36) == 0);
	CHECK(strstr(peer_request(f.peer), "\r\nAuthorization: Bearer " KEY "\r\n") != NULL);
	CHECK(strstr(peer_request(f.peer), "\r\nContent-Type: application/json\r\n") != NULL);
	body = strstr(peer_request(f.peer), "\r\n\r\n");
	REQUIRE(body != NULL);
	CHECK_STR(uar_str_c(body + 4),
		  "{\"model\":\"m-1\",\"messages\":[{\"role\":\"system\",\"content\":\"Be "
		  "\\\"kind\\\".\"},{\"role\":\"user\",\"content\":\"Hi\"},{\"role\":"
		  "\"assistant\",\"content\":\"Yes?\"}],\"stream\":true,"
		  "\"stream_options\":{\"include_usage\":true}}");
	CHECK_INT(s.result.usage.input_tokens, 7);
	CHECK_INT(s.result.usage.output_tokens, 2);
	CHECK_INT(s.result.usage.total_tokens, 9);
	heard_fini(&s);
	tear_down(&f);
}

TEST(tools_and_their_results_are_told, "")
{
	static const struct peer_script script = { { { PEER_SEND, HEAD DELTA("a") STOP DONE, 0 },
						     { PEER_CLOSE, NULL, 0 } } };
	const struct uar_model_message talk[] = {
		TALK(ASSISTANT, 2, TALK_CALL("a", "f", "{\"x\":1}"), TALK_CALL("b", "g", "{")),
		RESULT_OF("a", "one"),
		RESULT_OF("b", ""),
		TALK(ASSISTANT, 2, TALK_TEXT("So"), TALK_CALL("a", "f", "{\"x\":1}")),
	};
	static const struct uar_model_tool tools[] = {
		{ { "f", 1 }, { "does \"f\"", 8 }, { "{\"type\":\"object\"}", 17 } },
		{ .name = { "g", 1 } },
	};
	struct uar_model_request r = { .model = UAR_STR("m"),
				       .messages = talk,
				       .message_count = ARRAY_LEN(talk),
				       .tools = tools,
				       .tool_count = ARRAY_LEN(tools) };
	struct fixture f;
	struct heard s;
	const char *body;

	REQUIRE(set_up(&f, &script, 1));
	heard_init(&s, f.model, f.loop);
	REQUIRE(heard_start(&s, &r) == UAR_OK);
	uar_loop_run(f.loop);
	body = strstr(peer_request(f.peer), "\r\n\r\n");
	REQUIRE(body != NULL);
	CHECK_STR(uar_str_c(body + 4),
		  "{\"model\":\"m\",\"messages\":[{\"role\":\"assistant\",\"content\":null,"
		  "\"tool_calls\":[{\"id\":\"a\",\"type\":\"function\",\"function\":{\"name\":"
		  "\"f\",\"arguments\":\"{\\\"x\\\":1}\"}},{\"id\":\"b\",\"type\":\"function\","
		  "\"function\":{\"name\":\"g\",\"arguments\":\"{\"}}]},{\"role\":\"tool\","
		  "\"tool_call_id\":\"a\",\"content\":\"one\"},{\"role\":\"tool\","
		  "\"tool_call_id\":\"b\",\"content\":\"\"},{\"role\":\"assistant\",\"content\":"
		  "\"So\",\"tool_calls\":[{\"id\":\"a\",\"type\":\"function\",\"function\":{"
		  "\"name\":\"f\",\"arguments\":\"{\\\"x\\\":1}\"}}]}],\"tools\":[{\"type\":"
		  "\"function\",\"function\":{\"name\":\"f\",\"description\":\"does \\\"f\\\"\","
		  "\"parameters\":{\"type\":\"object\"}}},{\"type\":\"function\",\"function\":{"
		  "\"name\":\"g\",\"description\":\"\"}}],\"stream\":true,"
		  "\"stream_options\":{\"include_usage\":true}}");
	heard_fini(&s);
	tear_down(&f);
}

TEST(usage_and_name_are_what_was_reported, "")
{
	static const struct peer_script scripts[] = {
		{ { { PEER_SEND, HEAD DELTA("a") STOP DONE, 0 }, { PEER_CLOSE, NULL, 0 } } },
		{ { { PEER_SEND,
		      HEAD
		      "data: {\"model\":\"real-1\",\"choices\":[{\"delta\":{\"content\":\"a\"},"
		      "\"finish_reason\":\"length\"}],\"usage\":null}\n\n" DONE,
		      0 },
		    { PEER_CLOSE, NULL, 0 } } },
	};
	struct fixture f;
	struct heard a, b;

	REQUIRE(set_up(&f, scripts, 2));
	heard_init(&a, f.model, f.loop);
	heard_init(&b, f.model, f.loop);
	REQUIRE(heard_hello(&a, "m", 0));
	uar_loop_run(f.loop);
	CHECK_INT(a.result.usage.input_tokens, -1);
	CHECK_INT(a.result.usage.total_tokens, -1);
	CHECK_STR(uar_str_c(a.stop), "stop");
	CHECK_STR(uar_str_c(a.name), "");
	REQUIRE(heard_hello(&b, "m", 0));
	uar_loop_run(f.loop);
	CHECK_STR(uar_str_c(b.stop), "length");
	CHECK_STR(uar_str_c(b.name), "real-1");
	heard_fini(&a);
	heard_fini(&b);
	tear_down(&f);
}

static void check_retry_after(const struct peer_script *script, int64_t want_us)
{
	struct fixture f;
	struct heard s;

	REQUIRE(set_up(&f, script, 1));
	heard_init(&s, f.model, f.loop);
	REQUIRE(heard_hello(&s, "m", 0));
	uar_loop_run(f.loop);
	CHECK_INT(s.result.failure, UAR_MODEL_FAIL_LIMIT);
	CHECK_INT(s.result.retry_after_us, want_us);
	heard_fini(&s);
	tear_down(&f);
}

TEST(retry_after_is_passed_on, "")
{
	static const struct peer_script scripts[] = {
		{ { { PEER_SEND, "HTTP/1.1 429 No\r\nRetry-After: 3\r\nContent-Length: 2\r\n\r\n{}",
		      0 } } },
		{ { { PEER_SEND,
		      "HTTP/1.1 429 No\r\nRetry-After-Ms: 1500\r\nRetry-After: 2\r\n"
		      "Content-Length: 2\r\n\r\n{}",
		      0 } } },
		{ { { PEER_SEND,
		      "HTTP/1.1 429 No\r\nretry-after-ms: soon\r\nContent-Length: 2\r\n\r\n{}",
		      0 } } },
	};

	check_retry_after(&scripts[0], 3000000);
	check_retry_after(&scripts[1], 1500000);
	check_retry_after(&scripts[2], 0);
}

/* The limit of the first byte is its own; tokens may take longer after it. */
TEST(the_first_byte_has_a_limit_of_its_own, "")
{
	static const struct peer_script script = { { { PEER_STALL, NULL, 0 } } };
	const struct uar_model_message hello = SAYS(USER, "Hello");
	struct uar_model_request r = { .model = UAR_STR("m"),
				       .messages = &hello,
				       .message_count = 1,
				       .first_timeout_us = 1000000 };
	struct fixture f;
	struct heard s;

	REQUIRE(set_up(&f, &script, 1));
	heard_init(&s, f.model, f.loop);
	leap_hold(&f.time);
	REQUIRE(heard_start(&s, &r) == UAR_OK);
	peer_wait(f.peer, (struct peer_counts){ .stalled = 1 });
	leap_ahead(&f.time, uar_loop_sched(f.loop), 1100000);
	uar_loop_run(f.loop);
	CHECK_INT(s.result.failure, UAR_MODEL_FAIL_TIMEOUT);
	CHECK_STR(uar_buf_str(&s.message), "no answer for 1000 ms");
	heard_fini(&s);
	tear_down(&f);
}

struct hour {
	struct uar_task task;
	struct fixture *f;
};

static void on_hour(struct uar_task *t)
{
	struct hour *h = UAR_OWNER(t, struct hour, task);

	leap_ahead(&h->f->time, uar_loop_sched(h->f->loop), 3600000000);
	peer_open_gate(h->f->peer);
}

/* Other calls have a limit in all. */
TEST(an_answer_of_a_model_may_take_as_long_as_it_likes, "")
{
	static const struct peer_script script = { { { PEER_SEND, HEAD DELTA("a"), 0 },
						     { PEER_GATE, NULL, 0 },
						     { PEER_SEND, DELTA("b") STOP DONE, 0 },
						     { PEER_CLOSE, NULL, 0 } } };
	struct fixture f;
	struct hour hour = { .task.fn = on_hour, .f = &f };
	struct heard s;

	REQUIRE(set_up(&f, &script, 1));
	heard_init(&s, f.model, f.loop);
	s.awaited = "a";
	s.then = &hour.task;
	REQUIRE(heard_hello(&s, "m", 7200000000));
	uar_loop_run(f.loop);
	CHECK_INT(s.result.failure, UAR_MODEL_FAIL_NONE);
	CHECK_STR(uar_buf_str(&s.text), "ab");
	heard_fini(&s);
	tear_down(&f);
}

TEST(cached_and_reasoning_tokens_are_counted, "")
{
	static const struct peer_script script = {
		{ { PEER_SEND,
		    HEAD DELTA("a") STOP
		    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":5,"
		    "\"total_tokens\":14,\"prompt_tokens_details\":{\"cached_tokens\":4},"
		    "\"completion_tokens_details\":{\"reasoning_tokens\":3}}}\n\n" DONE,
		    0 },
		  { PEER_CLOSE, NULL, 0 } }
	};
	struct fixture f;
	struct heard s;

	REQUIRE(set_up(&f, &script, 1));
	heard_init(&s, f.model, f.loop);
	REQUIRE(heard_hello(&s, "m", 0));
	uar_loop_run(f.loop);
	CHECK_INT(s.result.usage.cached_tokens, 4);
	CHECK_INT(s.result.usage.reasoning_tokens, 3);
	CHECK_INT(s.result.usage.cache_write_tokens, -1);
	heard_fini(&s);
	tear_down(&f);
}

/* What arrives in one read is handed over in one piece. */
TEST(tokens_of_one_read_are_one_text, "")
{
	static const struct peer_script script = {
		{ { PEER_SEND,
		    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		    "3b\r\ndata: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\n\r\n"
		    "30\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n\r\n"
		    "30\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"b\"}}]}\n\n\r\n"
		    "30\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"c\"}}]}\n\n\r\n"
		    "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n",
		    0 } }
	};
	struct fixture f;
	struct heard s;

	REQUIRE(set_up(&f, &script, 1));
	heard_init(&s, f.model, f.loop);
	REQUIRE(heard_hello(&s, "m", 0));
	uar_loop_run(f.loop);
	CHECK_STR(uar_buf_str(&s.text), "abc");
	CHECK_STR(uar_buf_str(&s.reasoning), "hm");
	CHECK_INT(s.texts, 1);
	CHECK_INT(s.thoughts, 1);
	heard_fini(&s);
	tear_down(&f);
}

/* Pings keep coming, tokens do not: the limit counts tokens. */
TEST(pings_do_not_count_as_tokens, "")
{
	static const struct peer_script script = {
		{ { PEER_SEND, HEAD DELTA("a"), 0 }, { PEER_FILL, ": ping\n\n", (size_t)1 << 40 } }
	};
	struct fixture f;
	struct heard s;

	REQUIRE(set_up(&f, &script, 1));
	heard_init(&s, f.model, f.loop);
	run_with_a_minute(&f, &s, "a");
	CHECK_INT(s.result.failure, UAR_MODEL_FAIL_TIMEOUT);
	CHECK(s.result.retryable);
	CHECK_STR(uar_buf_str(&s.text), "a");
	peer_wait(f.peer, (struct peer_counts){ .gone_early = 1 });
	heard_fini(&s);
	tear_down(&f);
}

TEST(output_is_bounded, "")
{
	static const struct peer_script script = {
		{ { PEER_SEND, HEAD, 0 },
		  { PEER_FILL,
		    DELTA("0123456789012345678901234567890123456789012345678901234567890123456789"),
		    UAR_LIMIT_MODEL_OUTPUT / 70 + 2 },
		  { PEER_STALL, NULL, 0 } }
	};
	struct fixture f;
	struct heard s;

	REQUIRE(set_up(&f, &script, 1));
	heard_init(&s, f.model, f.loop);
	REQUIRE(heard_hello(&s, "m", 0));
	uar_loop_run(f.loop);
	CHECK_INT(s.result.failure, UAR_MODEL_FAIL_LIMIT);
	CHECK(!s.result.retryable);
	CHECK(s.text.n <= UAR_LIMIT_MODEL_OUTPUT && s.text.n > UAR_LIMIT_MODEL_OUTPUT - 100);
	heard_fini(&s);
	tear_down(&f);
}

TEST(cancel_closes_upstream_at_once, "")
{
	static const struct peer_script script = { { { PEER_SEND, HEAD DELTA("a") DELTA("b"), 0 },
						     { PEER_STALL, NULL, 0 } } };
	struct fixture f;
	struct heard s;

	REQUIRE(set_up(&f, &script, 1));
	heard_init(&s, f.model, f.loop);
	s.cancel_on_text = true;
	REQUIRE(heard_hello(&s, "m", 0));
	uar_loop_run(f.loop);
	peer_wait(f.peer, (struct peer_counts){ .gone_early = 1 });
	CHECK_INT(s.texts, 1);
	CHECK_INT(s.dones, 0);
	heard_fini(&s);
	tear_down(&f);
}

/* The order of reasoning and text makes the first callback fire while the
 * parser is still on the stack. */
TEST(cancel_inside_the_parser, "")
{
	static const struct peer_script script = {
		{ { PEER_SEND, HEAD THOUGHT("hm") DELTA("b"), 0 }, { PEER_STALL, NULL, 0 } }
	};
	struct fixture f;
	struct heard s;

	REQUIRE(set_up(&f, &script, 1));
	heard_init(&s, f.model, f.loop);
	s.cancel_on_reasoning = true;
	REQUIRE(heard_hello(&s, "m", 0));
	uar_loop_run(f.loop);
	peer_wait(f.peer, (struct peer_counts){ .gone_early = 1 });
	CHECK_INT(s.thoughts, 1);
	CHECK_INT(s.texts + s.dones, 0);
	heard_fini(&s);
	tear_down(&f);
}

TEST(pause_holds_text_and_end_back, "")
{
	static const struct peer_script script = { { { PEER_SEND, HEAD DELTA("a"), 0 },
						     { PEER_GATE, NULL, 0 },
						     { PEER_SEND, DELTA("b") STOP DONE, 0 },
						     { PEER_CLOSE, NULL, 0 } } };
	struct fixture f;
	struct heard s;

	REQUIRE(set_up(&f, &script, 1));
	heard_init(&s, f.model, f.loop);
	s.pause_on_text = true;
	REQUIRE(heard_hello(&s, "m", 10000000));
	peer_open_gate(f.peer);
	heard_resume_after(&s, 50000);
	uar_loop_run(f.loop);
	CHECK_STR(uar_buf_str(&s.text), "ab");
	CHECK_INT(s.result.failure, UAR_MODEL_FAIL_NONE);
	CHECK_INT(s.dones, 1);
	heard_fini(&s);
	tear_down(&f);
}

TEST(bad_settings_are_refused, "")
{
	static const struct {
		const char *url, *key;
	} bad[] = {
		{ "", NULL },		{ "api.example.com", NULL }, { "file:///x", NULL },
		{ "http://x", "a\nb" }, { "http://x", "a b" },	     { NULL, NULL },
	};
	struct uar_loop *loop;
	struct uar_client *client;
	struct uar_model *m;

	REQUIRE(uar_loop_create(&uar_clock_system, &loop) == UAR_OK);
	REQUIRE(uar_client_create(loop, NULL, &client) == UAR_OK);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct uar_model_wire_options o = { .client = client,
						    .provider = "x",
						    .base_url = bad[i].url,
						    .api_key = bad[i].key };
		struct uar_error error = { 0 };

		CHECK(uar_model_wire_create(&o, &m, &error) == UAR_ECONFIG);
		CHECK(error.text[0] != 0);
	}
	uar_client_destroy(client);
	uar_loop_destroy(loop);
}

TEST(out_of_memory_ends_the_call, "")
{
	static const struct peer_script script = {
		{ { PEER_SEND, HEAD THOUGHT("hm") DELTA("a\\ud83d") DELTA("\\ude00b") STOP DONE,
		    0 },
		  { PEER_CLOSE, NULL, 0 } }
	};

	check_out_of_memory(UAR_DIALECT_OPENAI_CHAT, &script);
}

TEST(failures_have_the_names_of_the_event, "")
{
	CHECK_STR(uar_str_c(uar_model_failure_name(UAR_MODEL_FAIL_PROVIDER)), "provider_error");
	CHECK_STR(uar_str_c(uar_model_failure_name(UAR_MODEL_FAIL_LIMIT)), "limit");
	CHECK_STR(uar_str_c(uar_model_failure_name(UAR_MODEL_FAIL_TIMEOUT)), "timeout");
	CHECK_STR(uar_str_c(uar_model_failure_name(UAR_MODEL_FAIL_NETWORK)), "network");
	CHECK_STR(uar_str_c(uar_model_failure_name(UAR_MODEL_FAIL_AUTH)), "auth");
	CHECK_STR(uar_str_c(uar_model_failure_name(UAR_MODEL_FAIL_INVALID)), "invalid_request");
	uar_model_destroy(NULL);
}
