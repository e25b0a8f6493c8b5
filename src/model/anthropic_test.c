/* anthropic_test.c - Anthropic's dialect over HTTP, against a scripted peer. */
#include "model/wire_test.h"
#include "anthropic_words.h"

static const struct provider_case cases[] = {
#define C(NAME, SCRIPT, WANT, WAITS) { NAME, SCRIPT, WANT, WAITS },
#include "model/anthropic_cases.def"
#undef C
};

TEST(every_answer_of_anthropic_ends_in_a_known_way, "")
{
	run_cases(UAR_DIALECT_ANTHROPIC, cases, ARRAY_LEN(cases));
}

static bool start_with(struct fixture *f, struct heard *s, const struct peer_script *script,
		       const struct uar_model_request *r)
{
	if (!set_up_dialect(f, UAR_DIALECT_ANTHROPIC, script, 1))
		return false;
	heard_init(s, f->model, f->loop);
	if (!CHECK(heard_start(s, r) == UAR_OK))
		return false;
	uar_loop_run(f->loop);
	return true;
}

static void end_with(struct fixture *f, struct heard *s)
{
	heard_fini(s);
	tear_down(f);
}

TEST(usage_of_anthropic_counts_what_was_cached, "")
{
	static const struct peer_script script = {
		{ { PEER_SEND,
		    "HTTP/1.1 200 OK\r\nrequest-id: req_7\r\nConnection: close\r\n\r\n" MESSAGE
			    TEXT("0") SAID("0", "a")
				    EVENT("message_delta",
					  ",\"delta\":{\"stop_reason\":\"max_tokens\"},\"usage\":{"
					  "\"output_tokens\":12,\"output_tokens_details\":{"
					  "\"thinking_tokens\":5}}") END,
		    0 },
		  { PEER_CLOSE, NULL, 0 } }
	};
	const struct uar_model_message hello = SAYS(USER, "Hello");
	struct uar_model_request r = { .model = UAR_STR("m"),
				       .messages = &hello,
				       .message_count = 1 };
	struct fixture f;
	struct heard s;

	REQUIRE(start_with(&f, &s, &script, &r));
	CHECK_INT(s.result.usage.input_tokens, 17);
	CHECK_INT(s.result.usage.cached_tokens, 4);
	CHECK_INT(s.result.usage.cache_write_tokens, 3);
	CHECK_INT(s.result.usage.output_tokens, 12);
	CHECK_INT(s.result.usage.reasoning_tokens, 5);
	CHECK_INT(s.result.usage.total_tokens, 29);
	CHECK_STR(uar_str_c(s.stop), "length");
	CHECK_STR(uar_str_c(s.name), "real-1");
	CHECK_STR(uar_str_c(s.request_id), "req_7");
	end_with(&f, &s);
}

TEST(request_to_anthropic_has_its_path_and_headers, "")
{
	static const struct peer_script script = {
		{ { PEER_SEND, HEAD MESSAGE TEXT("0") SAID("0", "a") STOP("end_turn") END, 0 },
		  { PEER_CLOSE, NULL, 0 } }
	};
	const struct uar_model_message hello = SAYS(USER, "Hello");
	struct uar_model_request r = { .model = UAR_STR("m"),
				       .messages = &hello,
				       .message_count = 1 };
	struct fixture f;
	struct heard s;

	REQUIRE(start_with(&f, &s, &script, &r));
	CHECK(strncmp(peer_request(f.peer), "POST /v1/messages HTTP/1.1\r\n", 28) == 0);
	CHECK(strstr(peer_request(f.peer), "\r\nx-api-key: " KEY "\r\n") != NULL);
	CHECK(strstr(peer_request(f.peer), "\r\nanthropic-version: 2023-06-01\r\n") != NULL);
	CHECK(strstr(peer_request(f.peer), "Authorization") == NULL);
	end_with(&f, &s);
}

/* A model that has no structured output gives the answer as the input of a tool. */
TEST(an_answer_may_be_the_input_of_a_tool, "")
{
	static const struct peer_script script = {
		{ { PEER_SEND,
		    HEAD MESSAGE USE("0", "t", "answer") INPUT("0", "{\\\"x\\\":") INPUT("0", "1}")
			    UNBLOCK("0") STOP("tool_use") END,
		    0 },
		  { PEER_CLOSE, NULL, 0 } }
	};
	const struct uar_model_message hello = SAYS(USER, "Hello");
	struct uar_model_request r = { .model = UAR_STR("m"),
				       .messages = &hello,
				       .message_count = 1,
				       .output = { .schema = UAR_STR("{\"type\":\"object\"}"),
						   .by_tool = true } };
	struct fixture f;
	struct heard s;

	REQUIRE(start_with(&f, &s, &script, &r));
	CHECK_STR(uar_buf_str(&s.text), "{\"x\":1}");
	CHECK_STR(uar_buf_str(&s.calls), "");
	CHECK_STR(uar_str_c(s.stop), "stop");
	end_with(&f, &s);
}

TEST(out_of_memory_ends_a_call_of_anthropic, "")
{
	static const struct peer_script script = {
		{ { PEER_SEND,
		    HEAD MESSAGE THINKING("0") THOUGHT("0", "h\\ud83d") SIGNED("0", "s")
			    UNBLOCK("0") TEXT("1") SAID("1", "a") UNBLOCK("1") USE("2", "t", "f")
				    INPUT("2", "{}") UNBLOCK("2") STOP("tool_use") END,
		    0 },
		  { PEER_CLOSE, NULL, 0 } }
	};

	check_out_of_memory(UAR_DIALECT_ANTHROPIC, &script);
}
