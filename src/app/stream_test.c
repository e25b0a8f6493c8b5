/* stream_test.c - runs shown as they happen, through breaks and in both forms. */
#include "test.h"

#include <stdlib.h>

#include "app/limits.h"
#include "app/remote.h"
#include "app/render.h"
#include "cli_run.h"
#include "app/text.h"
#include "prepared.h"

#define FRAME(ID, TYPE, DATA)                                                                      \
	"event: event\nid: " ID "\ndata: {\"type\":\"" TYPE "\",\"data\":" DATA "}\n\n"
#define BEGIN FRAME("1", "RunStart", "{\"run_id\":\"r\",\"agent_id\":\"echo\"}")
#define HELLO FRAME("2", "ChatDelta", "{\"text_delta\":\"Hel\"}")
#define WORLD FRAME("3", "ChatDelta", "{\"text_delta\":\"lo\"}")
#define DONE  FRAME("4", "RunDone", "{\"run_id\":\"r\"}")
#define LIVE  OK("{\"run_id\":\"r\",\"status\":\"running\"}")
#define ENDED OK("{\"run_id\":\"r\",\"status\":\"succeeded\"}")
#define MADE  ANSWER("202 Accepted", "application/json", "{\"run_id\":\"r\",\"status\":\"queued\"}")

static const char whole[] = STREAM("retry: 1000\n\n: ping\n\n" BEGIN HELLO WORLD DONE);

TEST(logs_of_a_finished_run, "")
{
	for (size_t piece = 0; piece < 40; piece += 3) {
		struct uar_prepared *s = START({ ENDED, 0 }, { whole, piece });
		struct run r = RUN("logs", "r", "--url", s->url);

		CHECK_INT(r.status, 0);
		CHECK_STR(uar_str_c(r.out), "run r of echo\nHello\ndone\n");
		CHECK(uar_prepared_finish(s));
		CHECK(has(s->asked[1], "GET /api/runs/r/stream?meta=1 HTTP/1.1\r\n"));
		over(&r);
		uar_prepared_destroy(s);
	}
}

TEST(json_is_one_event_a_line, "")
{
	struct uar_prepared *s = START(
		{ ENDED, 0 }, { STREAM("id: 1\ndata: {\"type\":\ndata: \"RunDone\"}\n\n"), 0 });
	struct run r = RUN("logs", "r", "--url", s->url, "--json");

	CHECK_STR(uar_str_c(r.out), "{\"type\": \"RunDone\"}\n");
	CHECK(uar_prepared_finish(s));
	over(&r);
	uar_prepared_destroy(s);
}

/* Broken after each possible byte of the stream: the text is whole every time. */
TEST(following_survives_a_break_anywhere, "")
{
	static const char frames[] = BEGIN HELLO WORLD DONE;
	static char cut[sizeof frames + 200];

	for (size_t at = 0; at < sizeof frames - 1; at += 5) {
		bool shown = at >= strlen(BEGIN);
		struct uar_prepared *s;
		struct run r;

		snprintf(cut, sizeof cut, BROKEN("9999", "%.*s"), (int)at, frames);
		s = shown ? START({ cut, 0 }, { whole, 0 })
			  : START({ STREAM(BEGIN), 0 }, { LIVE, 0 }, { cut, 0 }, { whole, 0 });
		r = RUN("logs", "-f", "r", "--url", s->url);
		CHECK_INT(r.status, 0);
		CHECK_MSG(!strcmp(r.out, "run r of echo\nHello\ndone\n"), "cut at %zu: %s", at,
			  r.out);
		CHECK(uar_prepared_finish(s));
		over(&r);
		uar_prepared_destroy(s);
	}
}

TEST(reconnecting_names_the_last_event, "")
{
	struct uar_prepared *s =
		START({ BROKEN("9999", BEGIN HELLO), 0 }, { BROKEN("9999", ""), 0 },
		      { PROBLEM("503 Busy", "{\"code\":\"UNAVAILABLE\"}"), 0 },
		      { STREAM(HELLO WORLD), 0 }, { LIVE, 0 }, { STREAM(DONE), 0 });
	struct run r = RUN("logs", "-f", "r", "--url", s->url);

	CHECK_INT(r.status, 0);
	CHECK_STR(uar_str_c(r.out), "run r of echo\nHello\ndone\n");
	CHECK(uar_prepared_finish(s));
	CHECK(!strstr(s->asked[0], "Last-Event-ID"));
	for (int i = 1; i <= 3; i++) {
		CHECK(has(s->asked[i], "GET /api/runs/r/stream?meta=1&after=2 HTTP/1.1\r\n"));
		CHECK(has(s->asked[i], "Last-Event-ID: 2\r\n"));
	}
	CHECK(has(s->asked[5], "Last-Event-ID: 3\r\n"));
	over(&r);
	uar_prepared_destroy(s);
}

TEST(a_server_that_goes_and_comes_back_is_told_once, "")
{
	static const char gone[] = "uar: the server is gone; trying again ...\n";
	struct uar_prepared *s =
		START({ BROKEN("9999", BEGIN), 0 }, { "", 0 }, { "HTTP/1.1 200", 0 },
		      { STREAM(HELLO), 0 }, { LIVE, 0 }, { STREAM(WORLD DONE), 0 });
	struct run r = RUN("logs", "-f", "r", "--url", s->url);
	char said[200];

	snprintf(said, sizeof said, "%suar: the server is back\n", gone);
	CHECK_STR(uar_str_c(r.err), said);
	CHECK_STR(uar_str_c(r.out), "run r of echo\nHello\ndone\n");
	CHECK(uar_prepared_finish(s));
	over(&r);
	uar_prepared_destroy(s);
}

/* It may have ended between the two; so it is asked for once more. */
TEST(a_log_without_its_end_is_not_taken_for_whole, "")
{
	struct uar_prepared *s =
		START({ STREAM(BEGIN), 0 }, { ENDED, 0 }, { STREAM(""), 0 }, { ENDED, 0 });
	struct run r = RUN("logs", "-f", "r", "--url", s->url);

	CHECK_INT(r.status, 1);
	CHECK_STR(uar_str_c(r.err), "uar: the stream lacks the run's end\n");
	CHECK(uar_prepared_finish(s));
	over(&r);
	uar_prepared_destroy(s);
}

TEST(without_follow_a_live_run_is_left, "")
{
	struct uar_prepared *s = START({ LIVE, 0 }, { STREAM(BEGIN HELLO), UAR_PREPARED_HOLD });
	struct run r = RUN("logs", "r", "--url", s->url, "--after", "1");

	CHECK_INT(r.status, 0);
	CHECK_STR(uar_str_c(r.out), "Hel\n");
	CHECK(uar_prepared_finish(s));
	CHECK(has(s->asked[1], "&after=1 "));
	over(&r);
	uar_prepared_destroy(s);
}

TEST(refusals_are_not_repeated, "")
{
	struct uar_prepared *s = START(
		{ PROBLEM("404 No", "{\"code\":\"NOT_FOUND\",\"detail\":\"no such run\"}"), 0 });
	struct run r = RUN("logs", "-f", "r", "--url", s->url);

	CHECK_INT(r.status, 1);
	CHECK_STR(uar_str_c(r.err), "uar: NOT_FOUND: no such run\n");
	CHECK_INT(r.pauses, 0);
	CHECK(uar_prepared_finish(s));
	over(&r);
	uar_prepared_destroy(s);
}

TEST(a_server_that_stays_away_is_given_up, "")
{
	struct uar_prepared *s = START({ MADE, 0 }, { BROKEN("9999", BEGIN), 0 });
	struct run r = RUN("run", "echo", "hi", "--url", s->url);

	CHECK_INT(r.status, 1);
	CHECK(!strncmp(r.err, "uar: the server is gone; trying again ...\n", 42));
	CHECK(has(r.err, "no server is running at "));
	CHECK(has(r.err, "the run goes on, see `uar logs -f r`"));
	CHECK_INT(r.pauses, UAR_LIMIT_CLI_RECONNECTS);
	CHECK(uar_prepared_finish(s));
	over(&r);
	uar_prepared_destroy(s);
}

/* --- run ------------------------------------------------------------------------- */
TEST(run_prints_the_answer_and_exits_by_outcome, "")
{
	static const struct {
		const char *record;
		int exit;
	} cases[] = {
		{ OK("{\"status\":\"succeeded\"}"), 0 },
		{ OK("{\"status\":\"failed\"}"), 1 },
		{ OK("{\"status\":\"canceled\"}"), 3 },
		{ OK("{\"status\":\"timeout\"}"), 4 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_prepared *s = START({ MADE, 0 }, { whole, 0 }, { cases[i].record, 0 });
		struct run r = RUN("run", "--url", s->url, "--timeout", "1.5m", "echo", "say",
				   "\"hi\"", "--conversation=c1");

		CHECK_INT(r.status, cases[i].exit);
		CHECK_STR(uar_str_c(r.out), "Hello\n");
		CHECK_STR(uar_str_c(r.err), "");
		CHECK(uar_prepared_finish(s));
		CHECK(has(s->asked[0], "POST /api/runs HTTP/1.1\r\n"));
		CHECK(has(s->asked[0], "{\"agent_id\":\"echo\",\"inputs\":{\"message\":\"say "
				       "\\\"hi\\\"\"},\"conversation_id\":\"c1\","
				       "\"idempotency_key\":\""));
		CHECK(has(s->asked[0], "\",\"timeout\":90}"));
		over(&r);
		uar_prepared_destroy(s);
	}
}

TEST(a_lost_answer_is_asked_for_again_with_the_same_key, "RUN-43")
{
	struct uar_prepared *s =
		START({ "HTTP/1.1 202 Acc", 0 }, { MADE, 0 }, { whole, 0 }, { ENDED, 0 });
	struct run r = RUN("run", "echo", "hi", "--url", s->url);

	CHECK_INT(r.status, 0);
	CHECK(uar_prepared_finish(s));
	CHECK_STR(uar_str_c(s->asked[0]), s->asked[1]);
	CHECK(has(s->asked[0], "idempotency_key"));
	over(&r);
	uar_prepared_destroy(s);
}

TEST(the_message_may_come_from_standard_input, "")
{
	struct uar_prepared *s = START({ MADE, 0 }, { whole, 0 }, { ENDED, 0 });
	char text[] = "first\nsecond\n";
	FILE *in = fmemopen(text, sizeof text - 1, "r");
	struct run r = uar_with((struct uar_cli){ .in = in },
				(char *[]){ "uar", "run", "echo", "-", "--idempotency-key", "k",
					    "--url", s->url, NULL });

	CHECK_INT(r.status, 0);
	CHECK(uar_prepared_finish(s));
	CHECK(has(s->asked[0], "{\"message\":\"first\\nsecond\"},\"idempotency_key\":\"k\"}"));
	over(&r);
	fclose(in);
	uar_prepared_destroy(s);
	r = uar_with((struct uar_cli){ .in_tty = true }, (char *[]){ "uar", "run", "echo", NULL });
	CHECK_INT(r.status, 2);
	CHECK(has(r.err, "what shall echo do?"));
	over(&r);
}

TEST(run_proposes_the_agent_that_was_meant, "")
{
#define AGENTS OK("{\"agents\":[{\"agent_id\":\"echo\"},{\"agent_id\":\"demo\"}]}")
	struct uar_prepared *s = START(
		{ PROBLEM("404 No", "{\"code\":\"NOT_FOUND\",\"detail\":\"no agent\"}"), 0 },
		{ AGENTS, 0 },
		{ PROBLEM("404 No", "{\"code\":\"NOT_FOUND\",\"detail\":\"no session\"}"), 0 },
		{ AGENTS, 0 });
	struct run r = RUN("run", "dmo", "hi", "--url", s->url);

	CHECK_STR(uar_str_c(r.err), "uar: NOT_FOUND: no agent, did you mean demo?\n");
	over(&r);
	r = RUN("run", "demo", "hi", "--url", s->url); /* it is something else that is not there */
	CHECK_STR(uar_str_c(r.err), "uar: NOT_FOUND: no session\n");
	CHECK(uar_prepared_finish(s));
	over(&r);
	uar_prepared_destroy(s);
}

TEST(run_refuses_before_asking_and_reports_refusals, "")
{
	struct uar_prepared *s = START(
		{ PROBLEM("404 No", "{\"code\":\"NOT_FOUND\",\"detail\":\"no such agent\"}"), 0 });
	struct run r = RUN("run", "nobody", "hi", "--url", s->url);

	CHECK_INT(r.status, 1);
	CHECK_STR(uar_str_c(r.err), "uar: NOT_FOUND: no such agent\n");
	CHECK(uar_prepared_finish(s));
	over(&r);
	uar_prepared_destroy(s);
	r = RUN("run", "echo", "hi", "--timeout", "1e9");
	CHECK_INT(r.status, 2);
	CHECK(has(r.err, "\"1e9\" is neither"));
	over(&r);
	r = RUN("exec", "codex", "hi", "--timeout", "0");
	CHECK_INT(r.status, 2);
	CHECK(has(r.err, "--timeout takes seconds in plain digits"));
	over(&r);
	r = RUN("run");
	CHECK_INT(r.status, 2);
	CHECK(has(r.err, "usage: uar run AGENT [MESSAGE...]"));
	over(&r);
}

TEST(notes_go_to_the_error_stream_in_run, "")
{
	struct uar_prepared *s = START(
		{ MADE, 0 },
		{ STREAM(BEGIN FRAME("2", "ReasoningDelta", "{\"text_delta\":\"hm\"}")
				 FRAME("3", "ToolStart", "{\"tool\":\"add\",\"input\":{\"a\":1}}")
					 FRAME("4", "ToolDelta", "{}") FRAME(
						 "5", "ToolEnd", "{\"ok\":false,\"output\":\"no\"}")
						 FRAME("6", "ChatDelta", "{\"text_delta\":\"42\"}")
							 FRAME("7", "Error",
							       "{\"code\":\"CANCELED\",\"message\":"
							       "\"stop\"}")),
		  0 },
		{ ENDED, 0 });
	struct run r = RUN("run", "echo", "hi", "--url", s->url);

	CHECK_STR(uar_str_c(r.out), "42\n");
	CHECK_STR(uar_str_c(r.err), "[thinking] hm\n> add {\"a\":1}\n< failed no\n"
				    "error: CANCELED: stop\n");
	CHECK(uar_prepared_finish(s));
	over(&r);
	uar_prepared_destroy(s);
}

TEST(running_out_of_memory_ends_a_verb_in_order, "")
{
	static const struct {
		char *argv[3];
		struct uar_prepared_answer answers[3];
	} cases[] = {
		{ { "logs", "r" }, { { ENDED, 0 }, { whole, 0 } } },
		{ { "run", "a", "hi" }, { { MADE, 0 }, { whole, 0 }, { ENDED, 0 } } },
		{ { "show", "r" }, { { ENDED, 0 } } },
		{ { "runs" }, { { OK("{\"runs\":[{\"run_id\":\"r\"}]}"), 0 } } },
		{ { "cancel", "r" }, { { ENDED, 0 } } },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		for (unsigned long n = 1;; n++) {
			struct uar_prepared *s = uar_prepared_start(cases[i].answers, 3, false);
			struct run r;
			bool hit;

			uar_test_fail_alloc(n);
			r = uar_with((struct uar_cli){ .in = NULL },
				     (char *[]){ "uar", cases[i].argv[0], "--url", s->url,
						 cases[i].argv[1], cases[i].argv[2], NULL });
			hit = uar_test_alloc_failed();
			uar_test_fail_alloc(0);
			CHECK_MSG(hit || r.status == 0, "%s: %s", cases[i].argv[0], r.err);
			over(&r);
			uar_prepared_destroy(s);
			if (!hit)
				break;
		}
}

/* --- rendering ------------------------------------------------------------------------ */
static void render(const char *json, bool colour, struct run *r)
{
	struct uar_render render = { .text_colour = colour, .notes_colour = colour };
	struct uar_arena a;
	const struct uar_json *event;

	uar_arena_init(&a, 0);
	render.text = render.notes = open_memstream(&r->out, &r->out_n);
	if (CHECK(uar_json_parse(uar_str_c(json), NULL, &a, &event, NULL) == UAR_OK))
		uar_render_event(&render, event);
	uar_render_rest(&render);
	fclose(render.text);
	uar_arena_fini(&a);
}

TEST(every_kind_of_event_is_shown, "")
{
	static const struct {
		const char *json, *plain;
	} cases[] = {
		{ "{\"type\":\"ChatDelta\",\"data\":{\"text_delta\":\"a\\u001b]0;"
		  "x\\u0007b\\tc\\nd\"}}",
		  "a?]0;x?b\tc\nd\n" },
		{ "{\"type\":\"ChatDelta\",\"data\":{\"text_delta\":\"\\u009b31m\xc3\xa9\"}}",
		  "?31m\xc3\xa9\n" },
		{ "{\"type\":\"ChatDelta\",\"data\":{}}", "" },
		{ "{\"type\":\"ReasoningDelta\",\"data\":{\"text_delta\":\"hm\\n\"}}",
		  "[thinking] hm\n" },
		{ "{\"type\":\"Citation\",\"data\":{\"sources\":[{\"title\":\"T\",\"url\":\"U\"}]}"
		  "}",
		  "[source] T U\n" },
		{ "{\"type\":\"MemoryRecall\",\"data\":{\"items\":[{},{}]}}",
		  "[memory] 2 recalled\n" },
		{ "{\"type\":\"Artifact\",\"data\":{\"artifact\":{\"artifact_type\":\"html\","
		  "\"title\":\"Page\"}}}",
		  "[artifact] html Page\n" },
		{ "{\"type\":\"ToolEnd\",\"data\":{\"ok\":true,\"output\":{\"x\":[1]}}}",
		  "< ok {\"x\":[1]}\n" },
		{ "{\"type\":\"Error\",\"data\":{\"code\":\"C\",\"message\":\"m\\nn\"}}",
		  "error: C: m n\n" },
		{ "{\"type\":\"meta\",\"data\":{}}", "" },
		{ "{\"type\":\"meta\",\"data\":{\"metadata\":{\"superseded_bytes\":7}}}",
		  "[restarted] the answer begins again\n" },
		{ "{\"type\":\"Novel\",\"data\":{\"k\":1}}", "[Novel] {\"k\":1}\n" },
		{ "[1]", "[event] [1]\n" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct run r = { 0 };

		render(cases[i].json, false, &r);
		CHECK_STR(uar_str_c(r.out), cases[i].plain);
		over(&r);
	}
	struct run r = { 0 };
	render("{\"type\":\"ReasoningDelta\",\"data\":{\"text_delta\":\"hm\"}}", true, &r);
	CHECK_STR(uar_str_c(r.out), "\033[2mhm\033[0m\n");
	over(&r);
}

TEST(spans_of_time_are_short, "")
{
	static const struct {
		double seconds;
		const char *text;
	} cases[] = { { -5, "0.0s" }, { 0.25, "0.2s" },	 { 42, "42s" },		{ 600, "10m" },
		      { 7300, "2h" }, { 864000, "10d" }, { 1e300, "10000000d" } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_buf b = uar_buf_make(100);

		uar_text_span(&b, cases[i].seconds);
		CHECK_STR(uar_buf_str(&b), cases[i].text);
		uar_buf_fini(&b);
	}
}

TEST(words_are_quoted_where_a_shell_needs_it, "")
{
	static const struct {
		const char *word, *text;
	} cases[] = {
		{ "/tmp/da-ta_1.x", "/tmp/da-ta_1.x" },
		{ "", "''" },
		{ "/tmp/da ta", "'/tmp/da ta'" },
		{ "~/x", "'~/x'" },
		{ "$HOME`x`\\\"*", "'$HOME`x`\\\"*'" },
		{ "d\xc3\xa4", "'d\xc3\xa4'" },
		{ "a'b", "'a'\\''b'" },
		{ "'", "''\\'''" },
		{ "\x1b[1m'\\\xa0\xc3\xa4\n", "$'\\033[1m\\'\\\\\\240\xc3\xa4\\012'" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_buf b = uar_buf_make(100);

		uar_text_shell(&b, uar_str_c(cases[i].word));
		CHECK_STR(uar_buf_str(&b), cases[i].text);
		uar_buf_fini(&b);
	}
}

TEST(cleaned_text_steers_no_terminal, "")
{
	struct uar_buf b = uar_buf_make(1000);

	uar_text_clean(&b, UAR_STR("a\0b\x7f\xff\xc2\x9b\xe2\x82\xac\r\n\xf0\x9f"), true);
	CHECK_STR(uar_buf_str(&b), "a?b??"
				   "?"
				   "\xe2\x82\xac?\n?");
	uar_buf_clear(&b); /* nor a reader: marks that turn the text around */
	uar_text_clean(&b, UAR_STR("x\xe2\x80\xae\xe2\x81\xa6y\xe2\x80\x94"), true);
	CHECK_STR(uar_buf_str(&b), "x?"
				   "?y\xe2\x80\x94");
	uar_buf_clear(&b);
	uar_text_brief(&b, UAR_STR("abc\xe2\x82\xac"), 4);
	CHECK_STR(uar_buf_str(&b), "abc...");
	uar_buf_fini(&b);
}
