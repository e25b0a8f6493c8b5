/* backends_test.c - whole dialogues: approvals, interrupts, sessions, MCP calls.
 * The agents are recordings of real ones, replayed by the fake CLI. */
#include "backend/cli_test.h"

#include <ctype.h>
#include <fcntl.h>
#include <sys/stat.h>

#define RES "agent_api.session.resume.v1"
#define FRK "agent_api.session.fork.v1"
#define NI  "agent_api.exec.non_interactive"

static const char *replay(const char *file)
{
	static char script[3000];

	snprintf(script, sizeof script, "dialogue %s\nstdin", fixture(file));
	return script;
}

static uaa_request *interactive(const char *prompt)
{
	uaa_request *r = ask(prompt);

	with(r, NI, "false");
	return r;
}

/* Reads a run to its end and answers every approval. */
static struct seen *converse(uaa_backend *b, uaa_request *r, uaa_decision d, struct uar_buf *input)
{
	struct seen *s = calloc(1, sizeof *s);
	uaa_run *run = NULL;
	uaa_event *ev;
	uaa_run_result res = { 0 };

	CHECK(uaa_backend_run(b, r, &run, NULL) == UAA_OK);
	while (uaa_run_next(run, -1, &ev) == UAA_OK) {
		uaa_str data = uaa_event_data_json(ev);
		const char *at = data.ptr ? strstr(data.ptr, "\"approval\":{\"id\":\"") : NULL;

		check_event(ev);
		if (at) {
			uar_str id = uar_str_cut(uar_str_c(at + 18), '"', &(uar_str){ 0 });
			char *json = NULL;
			size_t n = 0;

			CHECK(uaa_run_approval_input(run, uab_pub(id), &json, &n, NULL) == UAA_OK);
			uar_buf_add(input, json, n);
			uaa_free(json);
			CHECK(uaa_run_respond(run, uab_pub(id), d, NULL) == UAA_OK);
			CHECK(uaa_run_respond(run, uaa_str_c("nope"), d, NULL) ==
			      UAA_E_INVALID_REQUEST);
		}
		see(s, ev);
		uaa_event_unref(ev);
	}
	s->status = uaa_run_collect(run, NULL, NULL, &res, &s->error);
	s->completion = res.completion;
	uaa_run_unref(run);
	uaa_request_unref(r);
	uaa_backend_unref(b);
	return s;
}

static void check_text(const struct seen *s, const char *want)
{
	struct uar_buf b = uar_buf_make(1 << 16);

	CHECK_STR(all_text(s, &b), want);
	uar_buf_fini(&b);
}

TEST(H02_codex_app_server_streams_and_ends, "LIB-06 LIB-21")
{
	struct seen *s = run_on(make(CODEX_APP, replay("codex/app_server_tool_call.dialogue.jsonl"),
				     (struct more){ 0 }),
				NULL);

	CHECK_INT(s->status, UAA_OK);
	check_text(s, "I will run a command.The command finished.");
	CHECK_INT(count(s, UAA_EV_TEXT_OUTPUT, NULL), 6); /* as deltas */
	CHECK_INT(count(s, UAA_EV_TOOL_CALL, NULL), 1);
	CHECK_INT(count(s, UAA_EV_TOOL_RESULT, NULL), 1);
	if (s->completion) {
		CHECK_STR(uab_str(uaa_completion_final_text(s->completion)),
			  "The command finished.");
		CHECK(contains(uaa_completion_data_json(s->completion),
			       "\"session\":{\"id\":\"01a1e071-ab40-7a80-9631-3edeb750003c\"}"));
		CHECK(contains(uaa_completion_data_json(s->completion), "\"input_tokens\":20"));
	}
	seen_fini(s);
}

TEST(U27_typed_causes_make_safe_errors, "LIB-52")
{
	static const struct {
		enum which who;
		const char *file, *error;
	} cases[] = {
		{ CODEX_APP, "codex/app_server_error_401.dialogue.jsonl", "authentication failed" },
		{ ACP, "acp/claude_error_401.dialogue.jsonl", "authentication failed" },
		{ ACP, "acp/codex_error_401.dialogue.jsonl", "authentication failed" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct seen *s =
			run_on(make(cases[i].who, replay(cases[i].file), (struct more){ 0 }), NULL);

		check_error(s, cases[i].error);
		seen_fini(s);
	}
}

TEST(acp_agents_all_speak_the_same, "LIB-06")
{
	static const char *const files[] = { "acp/claude_tool_call.dialogue.jsonl",
					     "acp/codex_tool_call.dialogue.jsonl",
					     "acp/gemini_tool_call.dialogue.jsonl",
					     "acp/opencode_tool_call.dialogue.jsonl" };

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		struct seen *s = run_on(make(ACP, replay(files[i]), (struct more){ 0 }), NULL);

		CHECK_MSG(s->status == UAA_OK, "%s: %.*s", files[i],
			  (int)uaa_error_display(s->error).len, uaa_error_display(s->error).ptr);
		CHECK(count(s, UAA_EV_TEXT_OUTPUT, NULL) > 0);
		CHECK_INT(count(s, UAA_EV_TOOL_CALL, NULL), 1);
		CHECK_INT(count(s, UAA_EV_TOOL_RESULT, NULL), 1);
		seen_fini(s);
	}
}

TEST(approvals_are_answered, "")
{
	static const struct {
		enum which who;
		const char *file;
		uaa_decision d;
		const char *input;
	} cases[] = {
		{ CODEX_APP, "codex/app_server_approval_accept.dialogue.jsonl", UAA_DECISION_ALLOW,
		  "echo hi" },
		{ CODEX_APP, "codex/app_server_approval_decline.dialogue.jsonl", UAA_DECISION_DENY,
		  "echo hi" },
		{ ACP, "acp/claude_permission_allow.dialogue.jsonl", UAA_DECISION_ALLOW,
		  "hello file" },
		{ CLAUDE, "claude_code/dialogue_permission_allow.dialogue.jsonl",
		  UAA_DECISION_ALLOW, "hello file" },
		{ CLAUDE, "claude_code/dialogue_permission_deny.dialogue.jsonl", UAA_DECISION_DENY,
		  "hello file" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_buf input = uar_buf_make(1 << 16);
		struct seen *s =
			converse(make(cases[i].who, replay(cases[i].file), (struct more){ 0 }),
				 interactive("hi"), cases[i].d, &input);
		bool allow = cases[i].d == UAA_DECISION_ALLOW;

		CHECK_MSG(s->status == UAA_OK, "%s: %.*s", cases[i].file,
			  (int)uaa_error_display(s->error).len, uaa_error_display(s->error).ptr);
		CHECK_INT(count(s, UAA_EV_STATUS, "approval required"), 1);
		CHECK_INT(count(s, UAA_EV_STATUS, "permission granted"), allow);
		CHECK(memmem(input.p, input.n, cases[i].input, strlen(cases[i].input)) != NULL);
		uar_buf_fini(&input);
		seen_fini(s);
	}
}

TEST(without_anybody_to_ask_the_answer_is_no, "")
{
	/* the recording wants a decline; the run is not interactive */
	struct seen *s =
		run_on(make(CODEX_APP, replay("codex/app_server_approval_decline.dialogue.jsonl"),
			    (struct more){ 0 }),
		       NULL);

	CHECK_INT(s->status, UAA_OK);
	CHECK(count(s, UAA_EV_STATUS, "permission denied") >= 1);
	seen_fini(s);
}

TEST(an_approval_nobody_answers_is_denied_in_time, "")
{
	uaa_process_options o = *quick();
	struct seen *s;

	o.approval_ms = 50;
	s = run_on(make(CODEX_APP, replay("codex/app_server_approval_decline.dialogue.jsonl"),
			(struct more){ .process = &o }),
		   interactive("hi"));
	CHECK_INT(s->status, UAA_OK);
	seen_fini(s);
}

TEST(cancel_speaks_politely_first, "")
{
	static const struct {
		enum which who;
		const char *file;
		int events; /* seen before the cancel */
	} cases[] = {
		{ CODEX_APP, "codex/app_server_interrupt.dialogue.jsonl", 6 },
		{ CODEX_APP, "codex/app_server_interrupt_tool.dialogue.jsonl", 6 },
		{ ACP, "acp/claude_cancel.dialogue.jsonl", 5 },
		{ ACP, "acp/codex_cancel.dialogue.jsonl", 3 },
		{ CLAUDE, "claude_code/dialogue_interrupt.dialogue.jsonl", 3 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char done[700], script[4000];
		uaa_process_options o = *quick();
		uaa_backend *b;
		uaa_request *r = cases[i].who == ACP ? ask("hi") : interactive("hi");
		uaa_run *run = NULL;
		uaa_event *ev;
		struct seen *s;

		o.interrupt_ms = 20000;
		snprintf(done, sizeof done, "%s/done", uar_test_dir());
		snprintf(script, sizeof script, "%s\ntouch %s", replay(cases[i].file), done);
		b = make(cases[i].who, script, (struct more){ .process = &o });
		CHECK(uaa_backend_run(b, r, &run, NULL) == UAA_OK);
		for (int k = 0; k < cases[i].events; k++)
			if (uaa_run_next(run, -1, &ev) == UAA_OK)
				uaa_event_unref(ev);
		uab_cancel(run);
		s = collect(run);
		check_error(s, "cancelled");
		/* it heard the interrupt, answered, and left by itself */
		CHECK_MSG(access(done, F_OK) == 0, "%s: was not asked politely", cases[i].file);
		seen_fini(s);
		uaa_request_unref(r);
		uaa_backend_unref(b);
	}
}

/* --- sessions --- */

#define HELLO                                                                                      \
	"expect \"initialize\"\nline {\"id\":1,\"result\":{\"userAgent\":\"x/0.166.0 (y)\"}}\n"    \
	"expect initialized\n"
#define UUID "01a1e071-ab40-7a80-9631-3edeb750003c"
#define TURN                                                                                       \
	"expect turn/start\nline {\"id\":9,\"result\":{\"turn\":{\"id\":\"t\"}}}\n"                \
	"line "                                                                                    \
	"{\"method\":\"turn/completed\",\"params\":{\"turn\":{\"status\":\"completed\"}}}\nstdin"

TEST(R01_R03_R04_R05_R06_codex_sessions, "")
{
	static const struct {
		const char *key, *value, *script, *error;
	} cases[] = {
		{ RES, "{\"selector\":\"id\",\"id\":\"" UUID "\"}",
		  HELLO
		  "expect thread/resume\nline {\"id\":2,\"result\":{\"thread\":{\"id\":\"" UUID
		  "\"}}}\n" TURN,
		  NULL },
		{ RES, "{\"selector\":\"id\",\"id\":\"" UUID "\"}",
		  HELLO
		  "expect thread/resume\nline {\"id\":2,\"error\":{\"code\":-32600,\"message\":"
		  "\"no rollout found for thread id x\"}}\nstdin",
		  "session not found" },
		{ RES, "{\"selector\":\"id\",\"id\":\"a name\"}", "exit 55", "session not found" },
		{ FRK, "{\"selector\":\"id\",\"id\":\"" UUID "\"}",
		  HELLO "expect thread/fork\nline "
			"{\"id\":2,\"result\":{\"thread\":{\"id\":\"new\"}}}\n" TURN,
		  NULL },
		{ RES, "{\"selector\":\"last\"}",
		  HELLO "expect thread/list\nline {\"id\":2,\"result\":{\"data\":[]}}\nstdin",
		  "no session found" },
		{ FRK, "{\"selector\":\"last\"}",
		  HELLO "expect thread/list\nline {\"id\":2,\"result\":{\"data\":[]}}\nstdin",
		  "no session found" },
		{ RES, "{\"selector\":\"last\"}",
		  HELLO "expect thread/list\nline {\"id\":2,\"result\":{\"data\":[{\"id\":\"" UUID
			"\"}]}}\nexpect " UUID
			"\nline {\"id\":3,\"result\":{\"thread\":{\"id\":\"" UUID "\"}}}\n" TURN,
		  NULL },
		{ RES, "{\"selector\":\"last\"}",
		  HELLO "expect thread/list\nline {\"id\":2,\"error\":{\"code\":-1,\"message\":"
			"\"SECRET\"}}\nstdin",
		  "codex app-server rpc error: code=-1 (details redacted)" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uaa_request *r = ask("again");
		struct seen *s;

		with(r, cases[i].key, cases[i].value);
		s = run_on(make(CODEX_APP, cases[i].script, (struct more){ 0 }), r);
		if (cases[i].error)
			check_error(s, cases[i].error);
		else
			CHECK_MSG(s->status == UAA_OK, "case %zu: %.*s", i,
				  (int)uaa_error_display(s->error).len,
				  uaa_error_display(s->error).ptr);
		seen_fini(s);
	}
}

TEST(R03_codex_exec_not_found, "")
{
	uaa_request *r = ask("again");
	struct seen *s;

	with(r, RES, "{\"selector\":\"id\",\"id\":\"" UUID "\"}");
	s = run_on(make(CODEX_EXEC,
			"stdin\nerr Error: no rollout found for thread id SECRET (code "
			"-32600)\nexit 1",
			(struct more){ 0 }),
		   r);
	check_error(s, "session not found");
	seen_fini(s);
	r = ask("again"); /* any other failure is not taken for it */
	with(r, RES, "{\"selector\":\"id\",\"id\":\"" UUID "\"}");
	s = run_on(make(CODEX_EXEC, "stdin\nerr something else\nexit 1", (struct more){ 0 }), r);
	check_error(s, "codex exited non-zero: code=1 (output redacted)");
	seen_fini(s);
}

TEST(R05_codex_exec_looks_before_it_resumes_last, "")
{
	uaa_request *r = ask("again");
	char record[600];
	struct seen *s;
	struct stat st;

	snprintf(record, sizeof record, "%s", uar_test_dir());
	with(r, RES, "{\"selector\":\"last\"}");
	s = run_on(make(CODEX_EXEC,
			HELLO "expect thread/list\nline {\"id\":2,\"result\":{\"data\":[]}}\nstdin",
			(struct more){ .record = record }),
		   r);
	check_error(s, "no session found");
	CHECK(stat(strcat_path(record, "argv"), &st) == 0); /* the look-up, and nothing else */
	seen_fini(s);
}

TEST(codex_without_app_server_falls_back_to_exec, "")
{
	/* the first start fails before any message, the second is exec */
	char dir[600], script[2000];
	struct seen *s;

	snprintf(dir, sizeof dir, "%s", uar_test_dir());
	snprintf(script, sizeof script, "%s", "exit 2");
	s = run_on(make(CODEX_APP, script, (struct more){ .record = dir }), NULL);
	check_error(s, "codex exited non-zero: code=2 (output redacted)");
	{
		FILE *f = fopen(strcat_path(dir, "argv"), "r");
		char line[1000];
		int app = 0, exec = 0;

		while (f && fgets(line, sizeof line, f)) {
			app += strcmp(line, "app-server\n") == 0;
			exec += strcmp(line, "--json\n") == 0;
		}
		if (f)
			fclose(f);
		CHECK_INT(app, 1);
		CHECK_INT(exec, 1);
	}
	seen_fini(s);
}

/* The directory in which Claude Code keeps the sessions of `cwd`. */
static void make_session(const char *home, const char *cwd, const char *id, int age)
{
	char path[4000], slug[2000];
	struct timespec t[2] = { { 1700000000 - age, 0 }, { 1700000000 - age, 0 } };
	size_t n = 0;
	int fd;

	for (; cwd[n]; n++)
		slug[n] = (char)(isalnum((unsigned char)cwd[n]) ? cwd[n] : '-');
	slug[n] = 0;
	snprintf(path, sizeof path, "%s/projects", home);
	mkdir(path, 0755);
	snprintf(path, sizeof path, "%s/projects/%s", home, slug);
	mkdir(path, 0755);
	snprintf(path, sizeof path, "%s/projects/%s/%s.jsonl", home, slug, id);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	CHECK(fd >= 0);
	close(fd);
	utimensat(AT_FDCWD, path, t, 0);
}

TEST(R04_R05_claude_last_is_looked_up_first, "")
{
	char home[600], cwd[600], record[600];
	static const char old[] = "11111111-2222-4333-8444-555555555555";
	uaa_request *r = ask("again");
	struct seen *s;

	snprintf(home, sizeof home, "%s", uar_test_dir());
	snprintf(cwd, sizeof cwd, "%s", uar_test_dir());
	snprintf(record, sizeof record, "%s", uar_test_dir());
	uaa_request_set_working_dir(r, uaa_str_c(cwd));
	with(r, RES, "{\"selector\":\"last\"}");
	s = run_on(make(CLAUDE, "stdin\nresult", (struct more){ .home = home, .record = record }),
		   r);
	check_error(s, "no session found");
	CHECK_INT(argv_has(record, "--print"), 0); /* nothing was started */
	seen_fini(s);

	make_session(home, cwd, old, 100);
	make_session(home, cwd, UUID, 10);
	make_session(home, cwd, "agent-123", 1);
	for (int fork = 0; fork < 2; fork++) {
		r = ask("again");
		uaa_request_set_working_dir(r, uaa_str_c(cwd));
		with(r, fork ? FRK : RES, "{\"selector\":\"last\"}");
		s = run_on(make(CLAUDE, "stdin\nresult",
				(struct more){ .home = home, .record = record }),
			   r);
		CHECK_INT(s->status, UAA_OK);
		CHECK_INT(argv_has(record, UUID), fork + 1);
		CHECK_INT(argv_has(record, "--fork-session"), fork);
		CHECK_INT(argv_has(record, old), 0);
		seen_fini(s);
	}
}

TEST(R03_R06_claude_id_not_found, "")
{
	char script[2000];
	uaa_request *r = ask("again");
	struct seen *s;

	snprintf(script, sizeof script, "stdin\ncat %s\nerr No conversation SECRET\nexit 1",
		 fixture("claude_code/resume_id_not_found.jsonl"));
	with(r, RES, "{\"selector\":\"id\",\"id\":\"" UUID "\"}");
	s = run_on(make(CLAUDE, script, (struct more){ 0 }), r);
	check_error(s, "session not found");
	CHECK_INT(s->n, 1); /* the one Error */
	seen_fini(s);
	r = ask("again");
	with(r, RES, "{\"selector\":\"id\",\"id\":\"--version\"}");
	s = run_on(make(CLAUDE, "exit 55", (struct more){ 0 }), r);
	check_error(s, "session not found");
	seen_fini(s);
}

TEST(a_session_has_one_owner, "")
{
	uaa_backend *b = make(CLAUDE, "env A\nhang", (struct more){ 0 });
	uaa_request *r = ask("one");
	uaa_run *run = NULL;
	uaa_event *ev;
	struct seen *s;

	with(r, RES, "{\"selector\":\"id\",\"id\":\"" UUID "\"}");
	CHECK(uaa_backend_run(b, r, &run, NULL) == UAA_OK);
	CHECK(uaa_run_next(run, -1, &ev) == UAA_OK);
	uaa_event_unref(ev);
	s = run_on(uaa_backend_ref(b), r); /* frees r */
	check_error(s, "session in use");
	seen_fini(s);
	uab_cancel(run);
	seen_fini(collect(run));
	uaa_backend_unref(b);
}

#define ACP_HELLO                                                                                  \
	"expect initialize\nline {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":1," \
	"\"agentCapabilities\":{\"loadSession\":%s,\"sessionCapabilities\":{%s}}}}\n"

TEST(acp_sessions, "LIB-17")
{
	static const struct {
		const char *key, *value, *load, *caps, *script, *error;
	} cases[] = {
		{ RES, "{\"selector\":\"id\",\"id\":\"s1\"}", "true", "",
		  "expect session/load\nline "
		  "{\"method\":\"session/update\",\"params\":{\"sessionId\":"
		  "\"s1\",\"update\":{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{"
		  "\"text\":"
		  "\"history\"}}}}\nline {\"id\":2,\"result\":{}}\nexpect session/prompt\n"
		  "line {\"id\":3,\"result\":{\"stopReason\":\"end_turn\"}}\nstdin",
		  NULL },
		{ RES, "{\"selector\":\"id\",\"id\":\"s1\"}", "true", "\"resume\":{}",
		  "expect session/resume\nline "
		  "{\"id\":2,\"error\":{\"code\":-32002,\"message\":\"x\"}}"
		  "\nstdin",
		  "session not found" },
		{ FRK, "{\"selector\":\"id\",\"id\":\"s1\"}", "true", "", "stdin",
		  "acp backend error: agent does not support session fork" },
		{ RES, "{\"selector\":\"last\"}", "true", "", "stdin",
		  "acp backend error: agent does not support session list" },
		{ RES, "{\"selector\":\"last\"}", "true", "\"list\":{}",
		  "expect session/list\nline {\"id\":2,\"result\":{\"sessions\":[]}}\nstdin",
		  "no session found" },
		{ FRK, "{\"selector\":\"last\"}", "true", "\"list\":{},\"fork\":{}",
		  "expect session/list\nline "
		  "{\"id\":2,\"result\":{\"sessions\":[{\"sessionId\":\"a\","
		  "\"updatedAt\":\"2026-01-01\"},{\"sessionId\":\"b\",\"updatedAt\":\"2026-01-02\"}"
		  "]}}\n"
		  "expect \"b\"\nline {\"id\":3,\"result\":{\"sessionId\":\"c\"}}\nexpect "
		  "session/prompt"
		  "\nline {\"id\":4,\"result\":{\"stopReason\":\"end_turn\"}}\nstdin",
		  NULL },
		{ "agent_api.exec.add_dirs.v1", "{\"dirs\":[\"/\"]}", "true", "", "stdin",
		  "acp backend error: agent does not support additional directories" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		static char script[8000];
		uaa_request *r = ask("again");
		struct seen *s;
		int n = snprintf(script, sizeof script, ACP_HELLO, cases[i].load, cases[i].caps);

		snprintf(script + n, sizeof script - (size_t)n, "%s", cases[i].script);
		with(r, cases[i].key, cases[i].value);
		s = run_on(make(ACP, script, (struct more){ 0 }), r);
		if (cases[i].error)
			check_error(s, cases[i].error);
		else
			CHECK_MSG(s->status == UAA_OK, "case %zu: %.*s", i,
				  (int)uaa_error_display(s->error).len,
				  uaa_error_display(s->error).ptr);
		CHECK_INT(count(s, UAA_EV_TEXT_OUTPUT, NULL), 0); /* history is not output */
		seen_fini(s);
	}
}

TEST(P12_a_refused_flag_ends_the_run_with_one_error, "LIB-17")
{
	struct seen *s = run_on(
		make(CLAUDE, "err error: unknown option SECRET\nexit 1", (struct more){ 0 }), NULL);

	check_error(s, "claude_code exited non-zero: code=1 (output redacted)");
	CHECK_INT(count(s, UAA_EV_ERROR, NULL), 1);
	seen_fini(s);
}

TEST(a_dialogue_that_never_answers_ends_in_time, "")
{
	uaa_process_options o = *quick();
	struct seen *s;

	o.start_ms = 50;
	s = run_on(make(ACP, "hang", (struct more){ .process = &o }), NULL);
	check_error(s, "acp backend error: start timeout (details redacted when unsafe)");
	seen_fini(s);
}

TEST(byte_by_byte_is_the_same, "LIB-12")
{
	static const char *const files[] = { "claude_code/tool_call_partial.jsonl",
					     "claude_code/unicode.jsonl",
					     "claude_code/error_401.jsonl" };

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		struct uar_buf a = uar_buf_make(1 << 20), b = uar_buf_make(1 << 20);
		char script[2000];
		struct seen *whole, *slow;

		snprintf(script, sizeof script, "stdin\ncat %s", fixture(files[i]));
		whole = claude(script);
		snprintf(script, sizeof script, "stdin\ncat %s|1", fixture(files[i]));
		slow = claude(script);
		CHECK_INT(slow->status, whole->status);
		CHECK_INT(slow->n, whole->n);
		CHECK(uar_str_eq(all_text(whole, &a), all_text(slow, &b)));
		seen_fini(whole);
		seen_fini(slow);
		uar_buf_fini(&a);
		uar_buf_fini(&b);
	}
}
