/* responses_test.c - OpenAI's Responses over HTTP, against a scripted peer. */
#include "model/wire_test.h"
#include "responses_words.h"

static const struct provider_case cases[] = {
#define C(NAME, SCRIPT, WANT, WAITS) { NAME, SCRIPT, WANT, WAITS },
#include "model/responses_cases.def"
#undef C
};

TEST(every_response_ends_in_a_known_way, "")
{
	run_cases(UAR_DIALECT_OPENAI_RESPONSES, cases, ARRAY_LEN(cases));
}

TEST(a_response_reports_its_usage, "")
{
	static const struct peer_script script = {
		{ { PEER_SEND,
		    "HTTP/1.1 200 OK\r\nx-request-id: req_8\r\nConnection: close\r\n\r\n" CREATED
			    SAID("0", "a") COMPLETED,
		    0 },
		  { PEER_CLOSE, NULL, 0 } }
	};
	struct fixture f;
	struct heard s;

	REQUIRE(set_up_dialect(&f, UAR_DIALECT_OPENAI_RESPONSES, &script, 1));
	heard_init(&s, f.model, f.loop);
	REQUIRE(heard_hello(&s, "m", 0));
	uar_loop_run(f.loop);
	CHECK(strncmp(peer_request(f.peer), "POST /v1/responses HTTP/1.1\r\n", 29) == 0);
	CHECK(strstr(peer_request(f.peer), "\r\nAuthorization: Bearer " KEY "\r\n") != NULL);
	CHECK_INT(s.result.usage.input_tokens, 10);
	CHECK_INT(s.result.usage.cached_tokens, 4);
	CHECK_INT(s.result.usage.output_tokens, 5);
	CHECK_INT(s.result.usage.reasoning_tokens, 2);
	CHECK_INT(s.result.usage.total_tokens, 15);
	CHECK_STR(uar_str_c(s.stop), "stop");
	CHECK_STR(uar_str_c(s.name), "real-1");
	CHECK_STR(uar_str_c(s.request_id), "req_8");
	heard_fini(&s);
	tear_down(&f);
}

TEST(out_of_memory_ends_a_response, "")
{
	static const struct peer_script script = {
		{ { PEER_SEND,
		    HEAD CREATED ITEM_END("0", SEALED) TEXT("1") SAID("1", "a")
			    ITEM("2", CALL("a", "f", "")) INPUT("2", "{}") COMPLETED,
		    0 },
		  { PEER_CLOSE, NULL, 0 } }
	};

	check_out_of_memory(UAR_DIALECT_OPENAI_RESPONSES, &script);
}
