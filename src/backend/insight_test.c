/* insight_test.c - a failed run can be explained: how its program ended, why, what it said, and
 * what it was not given; the last two only to who asks for them. */
#include "backend/cli_test.h"

static uaa_process_options *with_words(void)
{
	static uaa_process_options o;

	o = *quick();
	o.keep_words = true;
	return &o;
}

/* --- how and why --- */

TEST(an_error_has_the_exit_code_or_the_signal, "")
{
	struct seen *s = claude("env A\nexit 7");
	int n = 0;

	check_error(s, "claude_code exited non-zero: code=7 (output redacted)");
	CHECK_INT(uaa_error_cause(s->error), UAA_CAUSE_CRASH);
	CHECK(uaa_error_exited(s->error, &n) && n == 7);
	CHECK(!uaa_error_signaled(s->error, &n));
	seen_fini(s);
	s = claude("env A\nsignal 11");
	CHECK_INT(uaa_error_cause(s->error), UAA_CAUSE_CRASH);
	CHECK(uaa_error_signaled(s->error, &n) && n == 11);
	CHECK(!uaa_error_exited(s->error, &n));
	seen_fini(s);
	s = claude("env A");
	check_error(s, "stream ended without result");
	CHECK(uaa_error_exited(s->error, &n) && n == 0);
	seen_fini(s);
	CHECK(!uaa_error_exited(NULL, &n) && !uaa_error_signaled(NULL, &n));
}

/* However an agent is talked to. */
TEST(every_backend_reports_a_crash, "")
{
	static const struct {
		enum which who;
		const char *before;
	} cases[] = {
		{ CODEX_APP,
		  "expect initialize\nline {\"id\":1,\"result\":{\"userAgent\":\"x/1.0.0 "
		  "(y)\"}}\n" },
		{ CODEX_EXEC, "" },
		{ ACP, "expect initialize\n" },
		{ CLAUDE, "" },
	};

	for (size_t i = 0; i < 2 * ARRAY_LEN(cases); i++) {
		char script[200];
		struct seen *s;
		int n = 0;

		snprintf(script, sizeof script, "%s%s", cases[i / 2].before,
			 i % 2 ? "signal 11" : "exit 7");
		s = run_on(make(cases[i / 2].who, script, (struct more){ 0 }), NULL);
		CHECK_INT(s->status, UAA_E_BACKEND);
		CHECK_INT(uaa_error_cause(s->error), UAA_CAUSE_CRASH);
		CHECK(uaa_error_exited(s->error, &n) == !(i % 2));
		CHECK(uaa_error_signaled(s->error, &n) == (i % 2));
		CHECK_INT(n, i % 2 ? 11 : 7);
		seen_fini(s);
	}
}

/* Stops a run when its agent has begun, by a cancel (0) or by its time; NULL: it had not begun. */
static struct seen *stopped(const char *script, int64_t timeout_ms)
{
	uaa_backend *b = claude_doing(script, NULL, NULL);
	uaa_request *r = ask("hi");
	uaa_run *run = NULL;
	uaa_event *ev = NULL;
	struct seen *s = NULL;

	uaa_request_set_timeout_ms(r, timeout_ms);
	CHECK_INT(uaa_backend_run(b, r, &run, NULL), UAA_OK);
	CHECK_INT(uaa_run_next(run, -1, &ev), UAA_OK);
	if (contains(uaa_event_text(ev), "A=")) {
		if (!timeout_ms)
			uab_cancel(run);
		s = collect(run);
	} else {
		uaa_run_unref(run);
	}
	uaa_event_unref(ev);
	uaa_request_unref(r);
	uaa_backend_unref(b);
	return s;
}

/* The error of a stopped run has the exit status of its program. */
TEST(a_stopped_run_reports_its_signal, "")
{
	static const struct {
		const char *script;
		int sig;
		int64_t timeout_ms;
		uaa_cause cause;
	} cases[] = { { "env A\nhang", SIGTERM, 0, UAA_CAUSE_CANCELLED },
		      { "ignoreterm\nenv A\nhang", SIGKILL, 0, UAA_CAUSE_CANCELLED },
		      { "env A\nhang", SIGTERM, 300, UAA_CAUSE_TIMEOUT },
		      { "ignoreterm\nenv A\nhang", SIGKILL, 300, UAA_CAUSE_TIMEOUT } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct seen *s = NULL;
		int n = 0;

		for (int64_t ms = cases[i].timeout_ms; !s && ms <= 30000;
		     ms = ms ? ms * 8 : INT64_MAX)
			s = stopped(cases[i].script, ms);
		REQUIRE(s != NULL);
		CHECK_INT(uaa_error_cause(s->error), cases[i].cause);
		CHECK(uaa_error_signaled(s->error, &n) && !uaa_error_exited(s->error, NULL));
		CHECK_INT(n, cases[i].sig);
		seen_fini(s);
	}
}

/* `codex exec` has no typed cause, and the app-server says "other" of what it does not know; typed
 * ones are in backends_test.c. */
TEST(a_status_in_the_words_of_codex_is_a_cause, "")
{
	static const char turn[] =
		"expect initialize\nline {\"id\":1,\"result\":{\"userAgent\":\"x/1.0.0 (y)\"}}\n"
		"expect initialized\nexpect thread/start\n"
		"line {\"id\":2,\"result\":{\"thread\":{\"id\":\"t\"}}}\n"
		"expect turn/start\nline {\"id\":3,\"result\":{\"turn\":{\"id\":\"t\"}}}\n"
		"line {\"method\":\"turn/completed\",\"params\":{\"turn\":{\"status\":\"failed\","
		"\"error\":{\"codexErrorInfo\":\"other\",\"message\":\"%s\"}}}}\nstdin";
	static const struct {
		const char *message;
		uaa_cause cause;
	} cases[] = {
		{ "unexpected status 401 Unauthorized: no", UAA_CAUSE_AUTH },
		{ "exceeded retry limit, last status: 429 Too Many Requests", UAA_CAUSE_RATE },
		{ "unexpected status 500 Internal Server Error: x", UAA_CAUSE_PROVIDER },
		{ "the model said: unexpected status 401 here", UAA_CAUSE_TURN },
		{ "unexpected status 4010 x", UAA_CAUSE_TURN },
		{ "unexpected status ", UAA_CAUSE_TURN },
	};

	for (size_t k = 0; k < 2 * ARRAY_LEN(cases); k++) {
		const size_t i = k / 2;
		char script[1000];
		struct seen *s;

		if (k % 2)
			snprintf(script, sizeof script, turn, cases[i].message);
		else
			snprintf(script, sizeof script,
				 "line {\"type\":\"turn.failed\",\"error\":{\"message\":\"%s\"}}\n"
				 "exit 1",
				 cases[i].message);
		s = run_on(make(k % 2 ? CODEX_APP : CODEX_EXEC, script, (struct more){ 0 }), NULL);
		CHECK_INT(s->status, UAA_E_BACKEND);
		CHECK_INT(uaa_error_cause(s->error), cases[i].cause);
		CHECK(!uaa_error_words(s->error).ptr);
		seen_fini(s);
	}
}

/* --- what it said --- */

TEST(an_agents_own_words_are_there_for_who_asked, "")
{
	static const struct {
		enum which who;
		const char *script, *words;
	} cases[] = {
		{ CODEX_EXEC,
		  "line {\"type\":\"turn.failed\",\"error\":{\"message\":\"not logged in\"}}\nexit "
		  "1",
		  "not logged in" },
		{ CLAUDE,
		  "line {\"type\":\"result\",\"subtype\":\"success\",\"is_error\":true,"
		  "\"result\":\"Please run /login\"}\nexit 1",
		  "Please run /login" },
		{ CLAUDE, "env A\nerr error: unknown option --x\nexit 1",
		  "error: unknown option --x\n" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct more m = { .process = with_words() };
		struct seen *s = run_on(make(cases[i].who, cases[i].script, m), NULL);

		CHECK_INT(s->status, UAA_E_BACKEND);
		CHECK_STR(uab_str(uaa_error_words(s->error)), cases[i].words);
		CHECK(!contains(uaa_error_message(s->error), cases[i].words));
		seen_fini(s);
		s = run_on(make(cases[i].who, cases[i].script, (struct more){ 0 }), NULL);
		CHECK(!uaa_error_words(s->error).ptr);
		seen_fini(s);
	}
	CHECK(!uaa_error_words(NULL).ptr);
}

TEST(of_much_stderr_the_end_is_kept, "")
{
	struct uar_buf script = uar_buf_make(1 << 20);
	struct seen *s;
	uaa_str words;

	uar_buf_printf(&script, "env A\n");
	for (int i = 0; i < 3500; i++) /* more than is kept on the way to the end */
		uar_buf_printf(&script, "err \xC3\xA9 line %d of many\n", i);
	uar_buf_printf(&script, "exit 1");
	s = run_on(make(CLAUDE, script.p, (struct more){ .process = with_words() }), NULL);
	words = uaa_error_words(s->error);
	CHECK(words.len > 0 && words.len <= UAA_MAX_MESSAGE && uar_utf8_valid(uab_str(words)));
	CHECK(contains(words, "line 3499 of many\n") && !contains(words, "line 0 of many"));
	seen_fini(s);
	uar_buf_fini(&script);
}

/* --- what it was not given --- */

TEST(names_of_withheld_variables_are_told_and_no_values, "")
{
	struct seen *s;

	setenv("ACME_API_KEY", "value-of-it", 1);
	setenv("ACME_COLOUR", "red", 1);
	setenv("OPENAI_API_KEY", "passed-on", 1);
	s = run_on(make(CODEX_EXEC, "exit 1", (struct more){ 0 }), NULL);
	CHECK(contains(uaa_error_withheld(s->error), "ACME_API_KEY"));
	CHECK(!contains(uaa_error_withheld(s->error), "ACME_COLOUR"));
	CHECK(!contains(uaa_error_withheld(s->error), "OPENAI_API_KEY"));
	CHECK(!contains(uaa_error_withheld(s->error), "value-of-it"));
	seen_fini(s);
	unsetenv("ACME_API_KEY");
	unsetenv("ACME_COLOUR");
	unsetenv("OPENAI_API_KEY");
	CHECK(!uaa_error_withheld(NULL).ptr);
}

/* --- what passes --- */

struct heard {
	struct uar_buf text[UAA_TRACE_END + 1];
	const char *kind;
	const uaa_run *run;
	bool mixed;
};

static void hear(void *ctx, const uaa_trace *t)
{
	struct heard *h = ctx;

	h->mixed |= h->run && h->run != t->run;
	h->run = t->run;
	CHECK_INT(t->struct_size, sizeof *t);
	CHECK_STR(uab_str(t->agent_kind), h->kind);
	uar_buf_add_str(&h->text[t->kind], uab_str(t->bytes));
	if (t->kind == UAA_TRACE_START)
		uar_buf_add(&h->text[t->kind], " ", 1);
}

static uaa_process_options listen_with(struct heard *h, const char *kind)
{
	uaa_process_options o = *quick();

	*h = (struct heard){ .kind = kind };
	for (size_t i = 0; i < ARRAY_LEN(h->text); i++)
		h->text[i] = uar_buf_make(1 << 20);
	o.trace = hear;
	o.trace_ctx = h;
	return o;
}

static void heard_fini(struct heard *h)
{
	for (size_t i = 0; i < ARRAY_LEN(h->text); i++)
		uar_buf_fini(&h->text[i]);
}

TEST(a_trace_hears_all_that_passes, "")
{
	struct heard h;
	uaa_process_options o = listen_with(&h, "claude_code");
	struct seen *s;

	s = run_on(claude_doing("stdin\nerr first words\nline {\"x\":1}\nexit 3", NULL, &o),
		   ask("the prompt"));
	CHECK_INT(s->status, UAA_E_BACKEND);
	CHECK(!h.mixed && h.run);
	CHECK(strstr(h.text[UAA_TRACE_START].p, "fake-cli --print "));
	CHECK(strstr(h.text[UAA_TRACE_STDIN].p, "the prompt"));
	CHECK_STR(uar_buf_str(&h.text[UAA_TRACE_STDERR]), "first words\n");
	CHECK_STR(uar_buf_str(&h.text[UAA_TRACE_STDOUT]), "{\"x\":1}\n");
	CHECK_STR(uar_buf_str(&h.text[UAA_TRACE_END]), "exit 3");
	heard_fini(&h);
	seen_fini(s);
}

TEST(a_trace_hears_dialogues_and_every_end, "")
{
	static const struct {
		enum which who;
		const char *kind, *script, *end;
	} cases[] = {
		{ ACP, "acp", "expect initialize\nsignal 11", "signal 11" },
		{ CODEX_APP, "codex",
		  "expect initialize\nline {\"id\":1,\"result\":{\"userAgent\":\"x/1.0.0 (y)\"}}\n"
		  "exit 5",
		  "exit 5" },
	};
	struct heard h;
	uaa_process_options o;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		o = listen_with(&h, cases[i].kind);
		seen_fini(run_on(
			make(cases[i].who, cases[i].script, (struct more){ .process = &o }), NULL));
		CHECK(strstr(uar_buf_str(&h.text[UAA_TRACE_STDIN]).p, "\"initialize\""));
		CHECK_STR(uar_buf_str(&h.text[UAA_TRACE_END]), cases[i].end);
		heard_fini(&h);
	}
	o = listen_with(&h, "claude_code");
	seen_fini(run_on(uaa_claude_code_backend_new(&(uaa_claude_code_config){
				 .struct_size = sizeof(uaa_claude_code_config),
				 .binary = uaa_str_c("/nonexistent/claude"),
				 .process = &o }),
			 NULL));
	CHECK(strstr(uar_buf_str(&h.text[UAA_TRACE_START]).p, "/nonexistent/claude "));
	CHECK_STR(uar_buf_str(&h.text[UAA_TRACE_END]), "spawn failed");
	heard_fini(&h);
}
