/* dialogue_test.c - agents that answer, played line by line: what is asked of them, what of
 * their words comes out, and what happens when they refuse. */
#include "backend/record_test.h"

#include <sys/stat.h>

#define UUID  "01a1e071-ab40-7a80-9631-3edeb750003c"
#define OTHER "11111111-2222-4333-8444-555555555555"

/* The app-server up to its thread and its turn. */
#define CX_HELLO                                                                                   \
	"expect \"initialize\"\nline {\"id\":1,\"result\":{\"userAgent\":\"x/0.166.0 (y)\"}}\n"    \
	"expect initialized\n"
#define CX_OPEN	 "line {\"id\":2,\"result\":{\"thread\":{\"id\":\"" UUID "\"}}}\n"
#define CX_BEGIN "expect turn/start\nline {\"id\":3,\"result\":{\"turn\":{\"id\":\"t\"}}}\n"
#define CX_DONE                                                                                    \
	"line {\"method\":\"turn/completed\",\"params\":{\"turn\":{\"status\":\"completed\"}}}\n"  \
	"stdin"

/* The same of an ACP agent. */
#define ACP_HELLO                                                                                  \
	"expect initialize\nline {\"id\":1,\"result\":{\"protocolVersion\":1,"                     \
	"\"agentCapabilities\":{\"loadSession\":true,\"sessionCapabilities\":{\"list\":{},"        \
	"\"fork\":{},\"resume\":{},\"additionalDirectories\":{}}}}}\n"
#define ACP_OPEN  "line {\"id\":2,\"result\":{\"sessionId\":\"s1\"}}\n"
#define ACP_BEGIN "expect session/prompt\n"
#define ACP_DONE  "line {\"id\":3,\"result\":{\"stopReason\":\"end_turn\"}}\nstdin"

#define NO(ID, CODE)                                                                               \
	"line {\"id\":" #ID ",\"error\":{\"code\":" #CODE                                          \
	",\"message\":\"SECRET\",\"data\":{\"x\":\"SECRET\"}}}\nerr SECRET\nstdin"

static struct seen *play(enum which who, const char *script, uaa_request *r)
{
	return run_on(make(who, script, (struct more){ 0 }), r);
}

static void check_ok(const struct seen *s, const char *what)
{
	CHECK_MSG(s->status == UAA_OK, "%s: %.*s", what, (int)uaa_error_display(s->error).len,
		  uaa_error_display(s->error).ptr);
}

static uaa_request *with_key(const char *key, const char *json)
{
	uaa_request *r = ask("again");

	with(r, key, json);
	return r;
}

/* --- what comes out --- */

/* A whole turn in which the agent says these lines. */
static struct seen *turn(enum which who, const char *lines)
{
	static char script[16000];

	snprintf(script, sizeof script, "%s%serr SECRET\n%s",
		 who == ACP ? ACP_HELLO "expect session/new\n" ACP_OPEN ACP_BEGIN
			    : CX_HELLO "expect thread/start\n" CX_OPEN CX_BEGIN,
		 lines, who == ACP ? ACP_DONE : CX_DONE);
	return play(who, script, NULL);
}

static const char codex_unknown[] =
	"line {\"method\":\"from/the/future\",\"params\":{\"x\":\"SECRET\"}}\n"
	"line "
	"{\"method\":\"item/"
	"completed\",\"params\":{\"item\":{\"type\":\"hologram\",\"text\":\"SECRET\"}}}\n"
	"line {\"method\":\"item/started\",\"params\":{\"item\":{\"type\":7}}}\n";

static const char acp_unknown[] =
	"line {\"method\":\"from/the/future\",\"params\":{\"x\":\"SECRET\"}}\n"
	"line "
	"{\"method\":\"session/"
	"update\",\"params\":{\"sessionId\":\"s1\",\"update\":{\"sessionUpdate\":\"hologram\","
	"\"content\":{\"text\":\"SECRET\"}}}}\n"
	"line "
	"{\"method\":\"session/"
	"update\",\"params\":{\"sessionId\":\"s1\",\"update\":{\"content\":{\"text\":\"SECRET\"}}}}"
	"\n";

TEST(S09_unknown_words_of_dialogues, "")
{
	for (int acp = 0; acp < 2; acp++) {
		struct seen *s = acp ? turn(ACP, acp_unknown) : turn(CODEX_APP, codex_unknown);

		check_ok(s, acp ? "acp" : "codex");
		CHECK_INT(count(s, UAA_EV_UNKNOWN, NULL), 3);
		CHECK_INT(count(s, UAA_EV_TEXT_OUTPUT, NULL), 0);
		seen_fini(s);
	}
}

/* All that a tool was given or gave, all thoughts, plans and remarks. */
static const char codex_payload[] =
	"line "
	"{\"method\":\"item/"
	"started\",\"params\":{\"item\":{\"id\":\"a\",\"type\":\"commandExecution\",\"command\":"
	"\"SECRET\"}}}\n"
	"line "
	"{\"method\":\"item/commandExecution/"
	"outputDelta\",\"params\":{\"itemId\":\"a\",\"delta\":\"SECRET\"}}\n"
	"line "
	"{\"method\":\"item/"
	"completed\",\"params\":{\"item\":{\"id\":\"a\",\"type\":\"commandExecution\",\"command\":"
	"\"SECRET\",\"aggregatedOutput\":\"SECRET\",\"exitCode\":1,\"status\":\"failed\"}}}\n"
	"line "
	"{\"method\":\"item/"
	"started\",\"params\":{\"item\":{\"id\":\"b\",\"type\":\"fileChange\",\"changes\":[{"
	"\"path\":\"SECRET\",\"diff\":\"SECRET\"}]}}}\n"
	"line "
	"{\"method\":\"item/"
	"completed\",\"params\":{\"item\":{\"id\":\"b\",\"type\":\"fileChange\",\"changes\":[{"
	"\"path\":\"SECRET\",\"diff\":\"SECRET\"}]}}}\n"
	"line "
	"{\"method\":\"item/"
	"completed\",\"params\":{\"item\":{\"id\":\"c\",\"type\":\"mcpToolCall\",\"tool\":\"t\","
	"\"arguments\":{\"a\":\"SECRET\"},\"result\":{\"content\":[{\"text\":\"SECRET\"}]}}}}\n"
	"line "
	"{\"method\":\"item/"
	"started\",\"params\":{\"item\":{\"id\":\"d\",\"type\":\"reasoning\",\"summary\":["
	"\"SECRET\"]}}}\n"
	"line {\"method\":\"turn/plan/updated\",\"params\":{\"plan\":[{\"step\":\"SECRET\"}]}}\n"
	"line {\"method\":\"warning\",\"params\":{\"message\":\"SECRET\"}}\n"
	"line "
	"{\"method\":\"error\",\"params\":{\"willRetry\":true,\"error\":{\"message\":\"SECRET\"}}}"
	"\n";

static const char acp_payload[] =
	"line "
	"{\"method\":\"session/"
	"update\",\"params\":{\"sessionId\":\"s1\",\"update\":{\"sessionUpdate\":\"tool_call\","
	"\"toolCallId\":\"a\",\"title\":\"SECRET\",\"kind\":\"SECRET\",\"rawInput\":{\"command\":"
	"\"SECRET\"},\"locations\":[{\"path\":\"SECRET\"}]}}}\n"
	"line "
	"{\"method\":\"session/"
	"update\",\"params\":{\"sessionId\":\"s1\",\"update\":{\"sessionUpdate\":\"tool_call_"
	"update\",\"toolCallId\":\"a\",\"status\":\"completed\",\"title\":\"SECRET\",\"rawOutput\":"
	"\"SECRET\",\"content\":[{\"content\":{\"text\":\"SECRET\"}},{\"path\":\"SECRET\","
	"\"newText\":\"SECRET\"}]}}}\n"
	"line "
	"{\"method\":\"session/"
	"update\",\"params\":{\"sessionId\":\"s1\",\"update\":{\"sessionUpdate\":\"agent_thought_"
	"chunk\",\"content\":{\"text\":\"SECRET\"}}}}\n"
	"line "
	"{\"method\":\"session/"
	"update\",\"params\":{\"sessionId\":\"s1\",\"update\":{\"sessionUpdate\":\"plan\","
	"\"entries\":[{\"content\":\"SECRET\"}]}}}\n";

TEST(S06_S07_S08_payload_of_dialogues_stays_out, "LIB-41 LIB-43")
{
	for (int acp = 0; acp < 2; acp++) {
		struct seen *s = acp ? turn(ACP, acp_payload) : turn(CODEX_APP, codex_payload);

		check_ok(s, acp ? "acp" : "codex"); /* the canaries are looked for in there */
		CHECK(count(s, UAA_EV_TOOL_CALL, NULL) >= 1);
		CHECK_INT(count(s, UAA_EV_TOOL_RESULT, NULL), acp ? 1 : 3);
		CHECK_INT(count(s, UAA_EV_TEXT_OUTPUT, NULL), 0);
		CHECK_INT(count(s, UAA_EV_UNKNOWN, NULL), 0);
		seen_fini(s);
	}
}

/* Wherever a backend fails, its last word is ours. */
TEST(U27_refusals_are_told_without_their_text, "LIB-52")
{
	static const struct {
		enum which who;
		const char *script, *error;
	} cases[] = {
		{ CODEX_APP, "expect initialize\n" NO(1, -5),
		  "codex app-server rpc error: code=-5 (details redacted)" },
		{ CODEX_APP, CX_HELLO "expect thread/start\n" NO(2, -6),
		  "codex app-server rpc error: code=-6 (details redacted)" },
		{ CODEX_APP,
		  CX_HELLO "expect thread/start\n" CX_OPEN "expect turn/start\n" NO(3, -7),
		  "codex app-server rpc error: code=-7 (details redacted)" },
		{ CODEX_APP,
		  CX_HELLO "expect thread/start\n" CX_OPEN CX_BEGIN
			   "line {\"method\":\"turn/completed\",\"params\":{\"turn\":{\"status\":"
			   "\"failed\",\"error\":{\"message\":\"SECRET\",\"additionalDetails\":"
			   "\"SECRET\"}}}}\nstdin",
		  "codex backend error: turn failed (details redacted)" },
		{ CODEX_APP, CX_HELLO "line SECRET\nerr SECRET\nexit 4",
		  "codex exited non-zero: code=4 (output redacted)" },
		{ CODEX_EXEC,
		  "stdin\nline {\"type\":\"turn.failed\",\"error\":{\"message\":\"SECRET\"}}",
		  "codex backend error: turn failed (details redacted)" },
		{ ACP, "expect initialize\n" NO(1, -5),
		  "acp backend error: rpc error: code=-5 (details redacted)" },
		{ ACP, ACP_HELLO "expect session/new\n" NO(2, -6),
		  "acp backend error: rpc error: code=-6 (details redacted)" },
		{ ACP, ACP_HELLO "expect session/new\n" ACP_OPEN ACP_BEGIN NO(3, -7),
		  "acp backend error: rpc error: code=-7 (details redacted)" },
		{ ACP,
		  ACP_HELLO "expect session/new\n" ACP_OPEN ACP_BEGIN
			    "line {\"id\":3,\"result\":{\"stopReason\":\"SECRET\"}}\nstdin",
		  "acp backend error: turn interrupted" },
		{ ACP, ACP_HELLO "line SECRET\nerr SECRET\nexit 4",
		  "acp exited non-zero: code=4 (output redacted)" },
		{ CLAUDE,
		  "stdin\nline "
		  "{\"type\":\"result\",\"is_error\":true,\"subtype\":\"SECRET\",\"result\":"
		  "\"SECRET\",\"errors\":[\"SECRET\"]}\nerr SECRET\nexit 1",
		  "claude_code backend error: turn failed (details redacted)" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct seen *s = play(cases[i].who, cases[i].script, NULL);

		check_error(s, cases[i].error);
		seen_fini(s);
	}
}

/* One Status early, and the completion, of every backend. */
TEST(H01_H02_every_backend_tells_its_session, "LIB-06")
{
	static const struct {
		enum which who;
		const char *script, *id;
	} cases[] = {
		{ CODEX_APP,
		  CX_HELLO
		  "expect thread/start\n" CX_OPEN
		  "line {\"method\":\"thread/started\",\"params\":{\"thread\":{\"id\":\"" UUID
		  "\"}}}\n" CX_BEGIN CX_DONE,
		  UUID },
		{ CODEX_EXEC,
		  "stdin\nline {\"type\":\"thread.started\",\"thread_id\":\"" UUID "\"}\n"
		  "line {\"type\":\"thread.started\",\"thread_id\":\"" OTHER "\"}\n"
		  "line {\"type\":\"turn.completed\"}",
		  UUID },
		{ ACP, ACP_HELLO "expect session/new\n" ACP_OPEN ACP_BEGIN ACP_DONE, "s1" },
		{ CLAUDE,
		  "stdin\nline {\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"" UUID
		  "\"}\n"
		  "line {\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"" UUID
		  "\"}\nresult",
		  UUID },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct seen *s = play(cases[i].who, cases[i].script, NULL);
		char want[200];

		snprintf(want, sizeof want,
			 "{\"schema\":\"agent_api.session.handle.v1\",\"session\":{\"id\":\"%s\"}",
			 cases[i].id);
		check_ok(s, cases[i].script);
		CHECK_INT(with_session(s, cases[i].id), 1);
		if (s->completion)
			CHECK_MSG(contains(uaa_completion_data_json(s->completion), want),
				  "%zu: %.*s", i, (int)uaa_completion_data_json(s->completion).len,
				  uaa_completion_data_json(s->completion).ptr);
		seen_fini(s);
	}
}

/* Too long to be told, it is told nowhere, and the run goes on. */
TEST(H03_a_long_id_does_not_stop_a_dialogue, "")
{
	static char id[1026], script[8000];

	for (size_t n = 1024; n <= 1025; n++) {
		struct seen *s;

		memset(id, 'i', n);
		snprintf(script, sizeof script,
			 ACP_HELLO "expect session/new\nline {\"id\":2,\"result\":{\"sessionId\":"
				   "\"%s\"}}\nexpect \"sessionId\":\"%s\"\n"
				   "line {\"method\":\"session/update\",\"params\":{\"sessionId\":"
				   "\"%s\",\"update\":{\"sessionUpdate\":\"agent_message_chunk\","
				   "\"content\":{\"text\":\"hello\"}}}}\n" ACP_DONE,
			 id, id, id);
		s = play(ACP, script, NULL);
		check_ok(s, "acp");
		CHECK_INT(with_session(s, NULL), n == 1024);
		CHECK_INT(count(s, UAA_EV_STATUS, "session id too long"), n == 1025);
		CHECK_INT(count(s, UAA_EV_TEXT_OUTPUT, NULL), 1);
		if (s->completion)
			CHECK(contains(uaa_completion_data_json(s->completion), id) == (n == 1024));
		seen_fini(s);
	}
}

/* The agent waits for a file that is made only after its word was read. */
TEST(P04_every_backend_is_live, "LIB-05 LIB-06")
{
	static const struct {
		enum which who;
		const char *before, *after;
	} cases[] = {
		{ CODEX_APP,
		  CX_HELLO "expect thread/start\n" CX_OPEN CX_BEGIN
			   "line {\"method\":\"item/agentMessage/delta\",\"params\":{\"itemId\":"
			   "\"a\",\"delta\":\"now\"}}\n",
		  CX_DONE },
		{ CODEX_EXEC,
		  "stdin\nline {\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\","
		  "\"text\":\"now\"}}\n",
		  "line {\"type\":\"turn.completed\"}" },
		{ ACP,
		  ACP_HELLO "expect session/new\n" ACP_OPEN ACP_BEGIN
			    "line {\"method\":\"session/update\",\"params\":{\"sessionId\":\"s1\","
			    "\"update\":{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{"
			    "\"text\":\"now\"}}}}\n",
		  ACP_DONE },
		{ CLAUDE,
		  "stdin\nline {\"type\":\"assistant\",\"message\":{\"id\":\"m\",\"content\":[{"
		  "\"type\":\"text\",\"text\":\"now\"}]}}\n",
		  "result" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char go[600], script[4000];
		uaa_request *r = ask("hi");
		uaa_run *run = NULL;
		bool heard = false;
		uaa_event *ev;
		uaa_backend *b;
		struct seen *s;

		snprintf(go, sizeof go, "%s/go", uar_test_dir());
		snprintf(script, sizeof script, "%swait %s\n%s", cases[i].before, go,
			 cases[i].after);
		b = make(cases[i].who, script, (struct more){ 0 });
		CHECK(uaa_caps_contains(uaa_backend_caps(b), uaa_str_c("agent_api.events.live")));
		REQUIRE(uaa_backend_run(b, r, &run, NULL) == UAA_OK);
		while (!heard && uaa_run_next(run, -1, &ev) == UAA_OK) {
			heard = uar_str_is(uab_str(uaa_event_text(ev)), "now");
			uaa_event_unref(ev);
		}
		CHECK(heard);
		fclose(fopen(go, "w"));
		s = collect(run);
		check_ok(s, script);
		seen_fini(s);
		uaa_request_unref(r);
		uaa_backend_unref(b);
	}
}

/* --- what is asked --- */

TEST(D08_directories_reach_dialogues, "")
{
	struct seen *s =
		play(CODEX_APP,
		     CX_HELLO "expect writable_roots\":[\"/\",\"/tmp\"]\n" CX_OPEN CX_BEGIN CX_DONE,
		     with_key(DIR_, "{\"dirs\":[\"/\",\"/tmp\",\"/tmp/.\"]}"));

	check_ok(s, "codex");
	seen_fini(s);
	s = play(ACP,
		 ACP_HELLO
		 "expect \"additionalDirectories\":[\"/\",\"/tmp\"]\n" ACP_OPEN ACP_BEGIN ACP_DONE,
		 with_key(DIR_, "{\"dirs\":[\"/\",\"/tmp\",\"/tmp/.\"]}"));
	check_ok(s, "acp");
	seen_fini(s);
}

/* What is set reaches the server as it is; what is not set is not mentioned. */
TEST(U22_options_reach_the_app_server, "")
{
	static const struct {
		const char *key, *value, *want;
		bool interactive;
	} cases[] = {
		{ MOD, "\" m \"", ",\"model\":\"m\"}", false },
		{ BOX, "\"read-only\"", "\"approvalPolicy\":\"never\",\"sandbox\":\"read-only\"}",
		  false },
		{ POL, "\"never\"", "\"approvalPolicy\":\"never\",\"sandbox\":\"workspace-write\"}",
		  false },
		{ POL, "\"on-request\"",
		  "\"approvalPolicy\":\"on-request\",\"sandbox\":\"workspace-write\"}", true },
		{ NI, "false", "\"cwd\":\"/\",\"sandbox\":\"workspace-write\"}", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uaa_request *r = with_key(cases[i].key, cases[i].value);
		char script[2000];
		struct seen *s;

		if (cases[i].interactive)
			with(r, NI, "false");
		uaa_request_set_working_dir(r, uaa_str_c("/"));
		snprintf(script, sizeof script, CX_HELLO "expect %s\n" CX_OPEN CX_BEGIN CX_DONE,
			 cases[i].want);
		s = play(CODEX_APP, script, r);
		check_ok(s, cases[i].want);
		seen_fini(s);
	}
}

/* A model that was accepted and is refused later: one text, in the error and the event. */
TEST(P12_a_refused_model_is_told, "LIB-17")
{
	char script[1500];
	struct seen *s;

	s = play(CODEX_APP,
		 CX_HELLO "expect thread/start\n" CX_OPEN CX_BEGIN
			  "line {\"method\":\"turn/completed\",\"params\":{\"turn\":{\"status\":"
			  "\"failed\",\"error\":{\"message\":\"SECRET\",\"codexErrorInfo\":"
			  "\"modelNotFound\"}}}}\nstdin",
		 with_key(MOD, "\"SECRET\""));
	check_error(s, "codex backend error: model rejected by runtime (details redacted)");
	CHECK_INT(count(s, UAA_EV_ERROR, NULL), 1);
	seen_fini(s);
	snprintf(script, sizeof script, "stdin\ncat %s\nexit 1",
		 fixture("claude_code/error_404_model.jsonl"));
	s = play(CLAUDE, script, with_key(MOD, "\"SECRET\""));
	check_error(s, "claude_code backend error: model rejected by runtime (details redacted)");
	CHECK_INT(count(s, UAA_EV_ERROR, NULL), 1);
	seen_fini(s);
}

TEST(X02_X03_the_app_server_is_warned_of_too, "")
{
	char d[600];
	uaa_request *r = with_key(EXT, "true");
	struct seen *s;

	snprintf(d, sizeof d, "%s", uar_test_dir());
	s = run_on(recorder(CODEX_APP,
			    CX_HELLO "expect \"approvalPolicy\":\"never\",\"sandbox\":"
				     "\"danger-full-access\"\n" CX_OPEN CX_BEGIN CX_DONE,
			    d),
		   r);
	check_ok(s, "codex");
	CHECK_INT(count(s, UAA_EV_STATUS, "DANGEROUS"), 1);
	REQUIRE(s->n > 0);
	CHECK_STR(uab_str(uaa_event_message(s->ev[0])),
		  "DANGEROUS: external sandbox exec policy enabled "
		  "(agent_api.exec.external_sandbox.v1=true)");
	CHECK(!uaa_event_data_json(s->ev[0]).ptr);
	seen_fini(s);
	s = run_on(recorder(CODEX_APP,
			    CX_HELLO "expect \"approvalPolicy\":\"never\",\"sandbox\":"
				     "\"workspace-write\"\n" CX_OPEN CX_BEGIN CX_DONE,
			    d),
		   NULL);
	check_ok(s, "codex");
	CHECK_INT(count(s, UAA_EV_STATUS, "DANGEROUS"), 0);
	seen_fini(s);
}

/* --- sessions --- */

#define BY_ID "{\"selector\":\"id\",\"id\":\"" UUID "\"}"
#define LAST  "{\"selector\":\"last\"}"

/* Only its own sign means that a session is not there. */
TEST(R03_other_failures_are_not_taken_for_absence, "")
{
	static const struct {
		enum which who;
		const char *key, *value, *script, *error;
	} cases[] = {
		{ CODEX_APP, RES, BY_ID, CX_HELLO "expect thread/resume\n" NO(2, -6),
		  "codex app-server rpc error: code=-6 (details redacted)" },
		{ CODEX_APP, FRK, BY_ID, CX_HELLO "expect thread/fork\n" NO(2, -6),
		  "codex app-server rpc error: code=-6 (details redacted)" },
		{ CODEX_EXEC, FRK, BY_ID, "stdin\nexit 1",
		  "codex exited non-zero: code=1 (output redacted)" },
		{ CLAUDE, RES, BY_ID,
		  "stdin\nline "
		  "{\"type\":\"result\",\"is_error\":true,\"errors\":[\"SECRET\"]}\nexit 1",
		  "claude_code backend error: turn failed (details redacted)" },
		{ CLAUDE, FRK, BY_ID, "stdin\nexit 1",
		  "claude_code exited non-zero: code=1 (output redacted)" },
		{ ACP, RES, BY_ID, ACP_HELLO "expect session/resume\n" NO(2, -6),
		  "acp backend error: rpc error: code=-6 (details redacted)" },
		/* a look-up that cannot be trusted opens nothing */
		{ CODEX_APP, RES, LAST,
		  CX_HELLO "expect thread/list\nline {\"id\":2,\"result\":{}}\nstdin",
		  "codex backend error: session lookup failed" },
		{ CODEX_EXEC, RES, LAST,
		  CX_HELLO "expect thread/list\nline {\"id\":2,\"result\":{\"data\":7}}\nstdin",
		  "codex backend error: session lookup failed" },
		{ ACP, RES, LAST,
		  ACP_HELLO "expect session/list\nline {\"id\":2,\"result\":{}}\nstdin",
		  "acp backend error: session lookup failed" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct seen *s =
			play(cases[i].who, cases[i].script, with_key(cases[i].key, cases[i].value));

		check_error(s, cases[i].error);
		seen_fini(s);
	}
}

/* "last" is that of the working directory: it is asked for, and others are passed over. */
TEST(R04_R05_last_is_of_the_working_directory, "")
{
	char dir[600], script[3000];

	for (int acp = 0; acp < 2; acp++)
		for (int there = 0; there < 2; there++) {
			uaa_request *r = with_key(RES, LAST);
			struct seen *s;

			snprintf(dir, sizeof dir, "%s", uar_test_dir());
			uaa_request_set_working_dir(r, uaa_str_c(dir));
			if (acp)
				snprintf(
					script, sizeof script,
					ACP_HELLO
					"expect \"cwd\":\"%s\"\n"
					"line "
					"{\"id\":2,\"result\":{\"sessions\":[{\"sessionId\":\"s2\","
					"\"cwd\":\"/"
					"other\",\"updatedAt\":\"2026-02-01\"},{\"sessionId\":"
					"\"s1\",\"cwd\":\"%s\",\"updatedAt\":\"2026-01-01\"}]}}\n"
					"expect \"sessionId\":\"s1\"\nline "
					"{\"id\":3,\"result\":{}}\n"
					"expect session/prompt\n"
					"line "
					"{\"id\":4,\"result\":{\"stopReason\":\"end_turn\"}}"
					"\nstdin",
					dir, there ? dir : "/elsewhere");
			else
				snprintf(script, sizeof script,
					 CX_HELLO
					 "expect \"cwd\":\"%s\"\nline {\"id\":2,\"result\":"
					 "{\"data\":[%s]}}\nexpect thread/resume\nline {\"id\":3,"
					 "\"result\":{\"thread\":{\"id\":\"" UUID "\"}}}\n"
					 "expect turn/start\n" CX_DONE,
					 dir, there ? "{\"id\":\"" UUID "\"}" : "");
			s = play(acp ? ACP : CODEX_APP, script, r);
			if (there)
				check_ok(s, script);
			else
				check_error(s, "no session found");
			seen_fini(s);
		}
}

/* A codex whose server says this; as exec it succeeds. Its starts are recorded. */
static uaa_backend *codex_of_two(const char *server, const char *record)
{
	static const char exec[] = "stdin\nline {\"type\":\"turn.completed\"}";
	char path[700];
	uaa_env_pair env[] = { { uaa_str_c("SERVER"), uaa_str_c(server) },
			       { uaa_str_c("EXEC"), uaa_str_c(exec) },
			       { uaa_str_c("FAKE_RECORD"), uaa_str_c(record) } };
	uaa_codex_config c = { .struct_size = sizeof c,
			       .env = env,
			       .env_count = ARRAY_LEN(env),
			       .transport = UAA_CODEX_EXEC,
			       .process = quick() };
	FILE *f;

	snprintf(path, sizeof path, "%s/codex", record);
	f = fopen(path, "w");
	fprintf(f,
		"#!/bin/sh\nFAKE_DO=$EXEC\n[ \"$1\" = app-server ] && FAKE_DO=$SERVER\n"
		"export FAKE_DO\nexec '%s' \"$@\"\n",
		uar_test_built("fake-cli"));
	fclose(f);
	chmod(path, 0755);
	c.binary = uaa_str_c(path);
	return uaa_codex_backend_new(&c);
}

/* Which session it is stands on the command line, also when it had to be looked up. */
TEST(R01_R05_exec_goes_on_with_that_session, "")
{
	static const char server[] =
		CX_HELLO "expect thread/list\nline {\"id\":2,\"result\":{\"data\":[{\"id\":\"" UUID
			 "\"}]}}\nstdin";
	static const struct {
		const char *key, *value, *verb;
	} cases[] = { { RES, BY_ID, "resume" },
		      { FRK, BY_ID, "fork" },
		      { RES, LAST, "resume" },
		      { FRK, LAST, "fork" } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_buf b = uar_buf_make(1 << 16);
		char record[600];
		struct seen *s;
		uar_str argv;

		snprintf(record, sizeof record, "%s", uar_test_dir());
		s = run_on(codex_of_two(server, record), with_key(cases[i].key, cases[i].value));
		check_ok(s, cases[i].value);
		argv = recorded(record, "argv", &b);
		CHECK(has_pair(argv, cases[i].verb, UUID) && has_pair(argv, UUID, "-"));
		CHECK(has_line(argv, "app-server") == (i > 1)); /* no look-up for an id */
		seen_fini(s);
		uar_buf_fini(&b);
	}
}
