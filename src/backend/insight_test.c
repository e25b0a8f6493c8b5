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

/* Of `codex exec`, which has no typed cause; the other ways are in backends_test.c. */
TEST(a_status_in_the_words_of_codex_is_a_cause, "")
{
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

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char script[300];
		struct seen *s;

		snprintf(script, sizeof script,
			 "line {\"type\":\"turn.failed\",\"error\":{\"message\":\"%s\"}}\nexit 1",
			 cases[i].message);
		s = run_on(make(CODEX_EXEC, script, (struct more){ 0 }), NULL);
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
	for (int i = 0; i < 400; i++)
		uar_buf_printf(&script, "err \xC3\xA9 line %d of many\n", i);
	uar_buf_printf(&script, "exit 1");
	s = run_on(make(CLAUDE, script.p, (struct more){ .process = with_words() }), NULL);
	words = uaa_error_words(s->error);
	CHECK(words.len > 0 && words.len <= UAA_MAX_MESSAGE && uar_utf8_valid(uab_str(words)));
	CHECK(contains(words, "line 399 of many") && !contains(words, "line 0 of many"));
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
	const uaa_run *run;
	bool mixed;
};

static void hear(void *ctx, const uaa_trace *t)
{
	struct heard *h = ctx;

	h->mixed |= h->run && h->run != t->run;
	h->run = t->run;
	CHECK_INT(t->struct_size, sizeof *t);
	CHECK_STR(uab_str(t->agent_kind), "claude_code");
	uar_buf_add_str(&h->text[t->kind], uab_str(t->bytes));
	if (t->kind == UAA_TRACE_START)
		uar_buf_add(&h->text[t->kind], " ", 1);
}

TEST(a_trace_hears_all_that_passes, "")
{
	uaa_process_options o = *quick();
	struct heard h = { 0 };
	struct seen *s;

	for (size_t i = 0; i < ARRAY_LEN(h.text); i++)
		h.text[i] = uar_buf_make(1 << 20);
	o.trace = hear;
	o.trace_ctx = &h;
	s = run_on(claude_doing("stdin\nerr first words\nline {\"x\":1}\nexit 3", NULL, &o),
		   ask("the prompt"));
	CHECK_INT(s->status, UAA_E_BACKEND);
	CHECK(!h.mixed && h.run);
	CHECK(strstr(h.text[UAA_TRACE_START].p, "fake-cli --print "));
	CHECK(strstr(h.text[UAA_TRACE_STDIN].p, "the prompt"));
	CHECK_STR(uar_buf_str(&h.text[UAA_TRACE_STDERR]), "first words\n");
	CHECK_STR(uar_buf_str(&h.text[UAA_TRACE_STDOUT]), "{\"x\":1}\n");
	CHECK_STR(uar_buf_str(&h.text[UAA_TRACE_END]), "exit 3");
	for (size_t i = 0; i < ARRAY_LEN(h.text); i++)
		uar_buf_fini(&h.text[i]);
	seen_fini(s);
}
