/* model_test.c - the OpenAI dialect over HTTP, against a scripted peer. */
#include "test.h"
#include "heard.h"
#include "leap.h"
#include "peer.h"

#include "loop/client.h"
#include "model/openai_int.h"
#include "openai_words.h"

#define HEAD	 "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
#define ERROR(S) "HTTP/1.1 " S "\r\nConnection: close\r\nContent-Type: application/json\r\n\r\n"

struct fixture {
	struct leap time;
	struct uar_loop *loop;
	struct uar_client *client;
	struct uar_model *model;
	struct peer *peer;
};

static bool set_up(struct fixture *f, const struct peer_script *scripts, size_t n)
{
	struct uar_model_openai_options o = { .api_key = KEY };
	struct uar_error error;
	char url[64];

	*f = (struct fixture){ .peer = peer_create(scripts, n) };
	snprintf(url, sizeof url, "http://127.0.0.1:%u/v1/", peer_port(f->peer));
	o.base_url = url;
	leap_init(&f->time);
	if (!CHECK(uar_loop_create(&f->time.clock, &f->loop) == UAR_OK) ||
	    !CHECK(uar_client_create(f->loop, NULL, &f->client) == UAR_OK))
		return false;
	o.client = f->client;
	return CHECK(uar_model_openai_create(&o, &f->model, &error) == UAR_OK);
}

static void tear_down(struct fixture *f)
{
	uar_model_destroy(f->model);
	uar_client_destroy(f->client);
	uar_loop_destroy(f->loop);
	if (f->peer)
		peer_destroy(f->peer);
}

/* --- what a provider may do --------------------------------------------------------- */

struct want {
	const char *text, *reasoning;
	enum uar_model_failure failure;
	bool retryable;
	int status;
	const char *message; /* a part of it */
	const char *calls;   /* "ID NAME ARGUMENTS" a line; NULL: none */
};

#define GOOD(T)                                                                                    \
	{                                                                                          \
		T, "", UAR_MODEL_FAIL_NONE, false, 200, "", NULL                                   \
	}
#define BAD(T, F, R, S, M)                                                                         \
	{                                                                                          \
		T, "", UAR_MODEL_FAIL_##F, R, S, M, NULL                                           \
	}

#define THINKS(T, R)                                                                               \
	{                                                                                          \
		T, R, UAR_MODEL_FAIL_NONE, false, 200, "", NULL                                    \
	}
#define ASKS(T, CALLS)                                                                             \
	{                                                                                          \
		T, "", UAR_MODEL_FAIL_NONE, false, 200, "", CALLS                                  \
	}
#define PLAY(...)                                                                                  \
	{                                                                                          \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}
#define SAY(BYTES)	 PLAY({ PEER_SEND, BYTES, 0 }, { PEER_CLOSE, NULL, 0 })
#define SAY_STALL(BYTES) PLAY({ PEER_SEND, BYTES, 0 }, { PEER_STALL, NULL, 0 })
#define SAY_RESET(BYTES) PLAY({ PEER_SEND, BYTES, 0 }, { PEER_RESET, NULL, 0 })
#define MUTE(OP)	 PLAY({ OP, NULL, 0 })

static const struct provider_case {
	const char *name;
	struct peer_script script;
	struct want want;
	bool waits; /* a minute passes once its text is there */
} cases[] = {
#define C(NAME, ANSWER, END, WAITS) { NAME, ANSWER, END, WAITS },
#include "model/openai_cases.def"
#undef C
};

static void check_want(const struct heard *s, const char *name, const struct want *w)
{
	uar_str message = uar_buf_str(&s->message);

	CHECK_MSG(s->dones == 1, "%s: done %u times", name, s->dones);
	CHECK_MSG(s->result.failure == w->failure, "%s: %s, %.*s", name,
		  uar_model_failure_name(s->result.failure), UAR_FMT(message));
	CHECK_MSG(s->result.retryable == w->retryable, "%s: retryable %d", name,
		  s->result.retryable);
	CHECK_MSG(s->result.http_status == w->status, "%s: status %d", name, s->result.http_status);
	CHECK_MSG(strstr(message.p, w->message) != NULL, "%s: message %s", name, message.p);
	CHECK_MSG(strstr(message.p, KEY) == NULL, "%s: the key is shown", name);
	CHECK_MSG((s->result.failure == UAR_MODEL_FAIL_NONE) == (s->stop[0] != 0),
		  "%s: stop \"%s\"", name, s->stop);
	CHECK_MSG(!w->calls || strcmp(s->stop, "tool_calls") == 0, "%s: stop \"%s\"", name,
		  s->stop);
	if (!CHECK_STR(uar_buf_str(&s->text), w->text) ||
	    !CHECK_STR(uar_buf_str(&s->calls), w->calls ? w->calls : "") ||
	    !CHECK_STR(uar_buf_str(&s->reasoning), w->reasoning))
		printf("  in %s\n", name);
}

/* A minute in which the peer says nothing. The clock stands still until the text is
 * what it is to be, or, where there is none, until the peer has read the request. */
struct minute {
	struct uar_task task;
	struct fixture *f;
};

static void on_minute(struct uar_task *t)
{
	struct minute *m = UAR_OWNER(t, struct minute, task);

	leap_ahead(&m->f->time, uar_loop_sched(m->f->loop), 61000000);
}

static void run_with_a_minute(struct fixture *f, struct heard *s, const char *after)
{
	struct minute minute = { .task.fn = on_minute, .f = f };

	leap_hold(&f->time);
	if (*after) {
		s->awaited = after;
		s->then = &minute.task;
	}
	if (!heard_hello(s, "m", 0))
		return;
	if (!*after) {
		peer_wait(f->peer, (struct peer_counts){ .stalled = 1 });
		on_minute(&minute.task);
	}
	uar_loop_run(f->loop);
}

TEST(every_answer_ends_in_a_known_way, "")
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct fixture f;
		struct heard s;

		REQUIRE(set_up(&f, &cases[i].script, 1));
		heard_init(&s, f.model, f.loop);
		if (cases[i].waits)
			run_with_a_minute(&f, &s, cases[i].want.text);
		else if (heard_hello(&s, "m", 0))
			uar_loop_run(f.loop);
		check_want(&s, cases[i].name, &cases[i].want);
		heard_fini(&s);
		tear_down(&f);
	}
}

TEST(request_is_a_streaming_chat_completion, "")
{
	static const struct peer_script script = {
		{ { PEER_SEND, HEAD DELTA("a") STOP USAGE DONE, 0 }, { PEER_CLOSE, NULL, 0 } }
	};
	static const struct uar_model_message talk[] = {
		{ .role = UAR_MODEL_SYSTEM, .text = { "Be \"kind\".", 10 } },
		{ .role = UAR_MODEL_USER, .text = { "Hi", 2 } },
		{ .role = UAR_MODEL_ASSISTANT, .text = { "Yes?", 4 } },
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
	static const struct uar_model_tool_call calls[] = {
		{ { "a", 1 }, { "f", 1 }, { "{\"x\":1}", 7 } },
		{ { "b", 1 }, { "g", 1 }, { "{", 1 } },
	};
	static const struct uar_model_message talk[] = {
		{ .role = UAR_MODEL_ASSISTANT, .calls = calls, .call_count = 2 },
		{ .role = UAR_MODEL_TOOL, .call_id = { "a", 1 }, .text = { "one", 3 } },
		{ .role = UAR_MODEL_TOOL, .call_id = { "b", 1 } },
		{ .role = UAR_MODEL_ASSISTANT,
		  .text = { "So", 2 },
		  .calls = calls,
		  .call_count = 1 },
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

TEST(retry_after_is_passed_on, "")
{
	static const struct peer_script script = {
		{ { PEER_SEND, "HTTP/1.1 429 No\r\nRetry-After: 3\r\nContent-Length: 2\r\n\r\n{}",
		    0 } }
	};
	struct fixture f;
	struct heard s;

	REQUIRE(set_up(&f, &script, 1));
	heard_init(&s, f.model, f.loop);
	REQUIRE(heard_hello(&s, "m", 0));
	uar_loop_run(f.loop);
	CHECK_INT(s.result.failure, UAR_MODEL_FAIL_LIMIT);
	CHECK_INT(s.result.retry_after_us, 3000000);
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
		struct uar_model_openai_options o = { client, bad[i].url, bad[i].key };
		struct uar_error error = { 0 };

		CHECK(uar_model_openai_create(&o, &m, &error) == UAR_ECONFIG);
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
	struct uar_model_message hello = { .role = UAR_MODEL_USER, .text = UAR_STR("Hello") };
	struct uar_model_request r = { .model = UAR_STR("m"),
				       .messages = &hello,
				       .message_count = 1,
				       .idle_timeout_us = 200000 };
	bool failed = true;

	for (unsigned long n = 1; failed && n < 100; n++) {
		struct fixture f;
		struct heard s;
		uar_err e;

		REQUIRE(set_up(&f, &script, 1));
		heard_init(&s, f.model, f.loop);
		uar_buf_reserve(&s.text, 100);
		uar_buf_reserve(&s.reasoning, 100);
		uar_buf_reserve(&s.message, 400);
		uar_test_fail_alloc(n);
		e = heard_start(&s, &r);
		CHECK(e == UAR_OK || e == UAR_ENOMEM);
		if (e == UAR_OK)
			uar_loop_run(f.loop);
		tear_down(&f); /* first: its thread allocates too */
		failed = uar_test_alloc_failed();
		uar_test_fail_alloc(0);
		CHECK_INT(s.dones, e == UAR_OK);
		heard_fini(&s);
	}
	CHECK(!failed);
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
