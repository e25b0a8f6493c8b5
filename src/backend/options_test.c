/* options_test.c - extensions, precedence and absence: what reaches the process,
 * and what never starts one. */
#include "backend/cli.h"
#include "backend/record_test.h"

/* What it lists it either takes as a key, and then looks at the value, or it is none. */
static void every_key_is_known(uaa_backend *b)
{
	const uaa_caps *caps = uaa_backend_caps(b);

	for (size_t i = 0; i < uaa_caps_count(caps); i++) {
		uar_str id = uab_str(uaa_caps_at(caps, i));
		uaa_request *r = ask("hi");
		uaa_error *e = NULL;
		uaa_run *run = NULL;
		uaa_status s;

		uaa_request_set_extension_json(r, uab_pub(id), uaa_str_c("[7]")); /* fits none */
		s = uaa_backend_run(b, r, &run, &e);
		CHECK_MSG(s == (uab_is_option(id) ? UAA_E_INVALID_REQUEST
						  : UAA_E_UNSUPPORTED_CAPABILITY),
			  "%.*s: %d", UAR_FMT(id), (int)s);
		uaa_error_unref(e);
		uaa_request_unref(r);
	}
}

TEST(U20_every_option_is_a_capability, "CAP-01")
{
	static const char *const common[] = { NI, MOD, DIR_, RES, FRK, EXT };
	uaa_backend *c = recorder(CLAUDE, "", ""), *x = recorder(CODEX_APP, "", "");
	uaa_backend *a = make(ACP, "", (struct more){ 0 });

	for (size_t i = 0; i < ARRAY_LEN(common); i++) {
		CHECK(uaa_caps_contains(uaa_backend_caps(c), uaa_str_c(common[i])));
		CHECK(uaa_caps_contains(uaa_backend_caps(x), uaa_str_c(common[i])));
	}
	CHECK(uaa_caps_contains(uaa_backend_caps(x), uaa_str_c(POL)));
	CHECK(uaa_caps_contains(uaa_backend_caps(x), uaa_str_c(BOX)));
	CHECK(!uaa_caps_contains(uaa_backend_caps(c), uaa_str_c(POL)));
	every_key_is_known(c);
	every_key_is_known(x);
	every_key_is_known(a);
	uaa_backend_unref(a);
	uaa_backend_unref(c);
	uaa_backend_unref(x);
}

TEST(S10_every_backend_can_run_and_tell, "CAP-01")
{
	uaa_acp_config a = { .struct_size = sizeof a, .binary = uaa_str_c("x") };
	uaa_backend *all[] = { uaa_claude_code_backend_new(NULL), uaa_codex_backend_new(NULL),
			       uaa_acp_backend_new(&a) };
	static const char *const must[] = { "agent_api.run", "agent_api.events",
					    "agent_api.events.live" };

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		for (size_t k = 0; k < ARRAY_LEN(must); k++)
			CHECK_MSG(uaa_caps_contains(uaa_backend_caps(all[i]), uaa_str_c(must[k])),
				  "%zu lacks %s", i, must[k]);
		uaa_backend_unref(all[i]);
	}
}

TEST(X01_external_sandbox_is_opt_in, "")
{
	uaa_backend *c = uaa_claude_code_backend_new(NULL), *x = uaa_codex_backend_new(NULL);

	CHECK(!uaa_caps_contains(uaa_backend_caps(c), uaa_str_c(EXT)));
	CHECK(!uaa_caps_contains(uaa_backend_caps(x), uaa_str_c(EXT)));
	for (int i = 0; i < 2; i++) { /* nor does it run */
		uaa_request *r = ask("hi");
		struct seen *s;

		with(r, EXT, "true");
		s = run_on(i ? c : x, r);
		CHECK_INT(s->status, UAA_E_UNSUPPORTED_CAPABILITY);
		CHECK_STR(uab_str(uaa_error_capability(s->error)), EXT);
		seen_fini(s);
	}
}

TEST(U15_U16_U17_constructors, "LIB-46 LIB-47 LIB-48")
{
	uaa_codex_config cx = { .struct_size = sizeof cx,
				.binary = uaa_str_c("codex"),
				.codex_home = uaa_str_c("/tmp"),
				.default_timeout_ms = 5,
				.default_working_dir = uaa_str_c("/tmp") };
	uaa_claude_code_config cc = { .struct_size = sizeof cc };
	uaa_acp_config ac = { .struct_size = sizeof ac, .binary = uaa_str_c("x") };
	uaa_backend *x = uaa_codex_backend_new(&cx), *c = uaa_claude_code_backend_new(&cc);
	uaa_backend *a = uaa_acp_backend_new(&ac);

	CHECK_STR(uab_str(uaa_backend_kind(x)), "codex");
	CHECK_STR(uab_str(uaa_backend_kind(c)), "claude_code");
	CHECK_STR(uab_str(uaa_backend_kind(a)), "acp");
	uaa_backend_unref(x);
	uaa_backend_unref(c);
	uaa_backend_unref(a);
	ac.kind = uaa_str_c("gemini_cli");
	a = uaa_acp_backend_new(&ac);
	CHECK_STR(uab_str(uaa_backend_kind(a)), "gemini_cli");
	uaa_backend_unref(a);
	ac.kind = uaa_str_c("Bad-Kind");
	CHECK(!uaa_acp_backend_new(&ac));
	cx.struct_size = 3;
	CHECK(!uaa_codex_backend_new(&cx));
	cc.permission_mode = uaa_str_c("root");
	CHECK(!uaa_claude_code_backend_new(&cc));
	CHECK(!uaa_acp_backend_new(NULL));
	CHECK(uaa_has_backend(uaa_str_c("codex")) && !uaa_has_backend(uaa_str_c("nobody")));
}

/* Each member of a config, seen from the process that it starts. */
static void check_config(enum which who, const char *home_var)
{
	char record[600], home[600], home_line[700];
	struct uar_buf b = uar_buf_make(1 << 20);
	const char *script =
		who == CLAUDE ? "stdin\nresult" : "stdin\nline {\"type\":\"turn.completed\"}";
	uaa_env_pair env[] = { { uaa_str_c("FAKE_DO"), uaa_str_c(script) },
			       { uaa_str_c("FAKE_RECORD"), uaa_str_c(record) },
			       mark_pair() };
	uaa_codex_config cx = { .struct_size = sizeof cx,
				.binary = uaa_str_c(uar_test_built("fake-cli")),
				.env = env,
				.env_count = ARRAY_LEN(env),
				.transport = UAA_CODEX_EXEC,
				.process = quick() };
	uaa_claude_code_config cc = { .struct_size = sizeof cc,
				      .binary = cx.binary,
				      .env = env,
				      .env_count = ARRAY_LEN(env),
				      .process = cx.process };
	struct seen *s;

	snprintf(record, sizeof record, "%s", uar_test_dir());
	snprintf(home, sizeof home, "%s", uar_test_dir());
	snprintf(home_line, sizeof home_line, "%s=%s", home_var, home);
	env[1].value = cx.default_working_dir = cc.default_working_dir = uaa_str_c(record);
	cx.codex_home = cc.claude_home = uaa_str_c(home);
	s = run_on(who == CLAUDE ? uaa_claude_code_backend_new(&cc) : uaa_codex_backend_new(&cx),
		   NULL);
	CHECK_INT(s->status, UAA_OK);
	seen_fini(s);
	CHECK(has_line(recorded(record, "env", &b), home_line));
	CHECK(has_line(recorded(record, "env", &b), mark()));
	CHECK(has_line(recorded(record, "cwd", &b), record));
	env[0].value = uaa_str_c("hang");
	cx.default_timeout_ms = cc.default_timeout_ms = 50;
	s = run_on(who == CLAUDE ? uaa_claude_code_backend_new(&cc) : uaa_codex_backend_new(&cx),
		   NULL);
	CHECK(s->error && contains(uaa_error_message(s->error), " backend error: timeout"));
	seen_fini(s);
	uar_buf_fini(&b);
}

TEST(U17_what_is_configured_takes_effect, "LIB-47 LIB-48 LIB-49")
{
	check_config(CODEX_EXEC, "CODEX_HOME");
	check_config(CLAUDE, "CLAUDE_CONFIG_DIR");
}

TEST(U18_U19_U29_precedence, "LIB-49 LIB-50 LIB-54")
{
	char record[600], other[600], here[4096];
	struct uar_buf b = uar_buf_make(1 << 20);
	uaa_env_pair env[] = { { uaa_str_c("FAKE_DO"), uaa_str_c("stdin\nresult") },
			       { uaa_str_c("FAKE_RECORD"), UAB_NONE },
			       { uaa_str_c("BOTH"), uaa_str_c("config") },
			       { uaa_str_c("MINE"), uaa_str_c("config") } };
	uaa_claude_code_config c = { .struct_size = sizeof c,
				     .binary = uaa_str_c(uar_test_built("fake-cli")),
				     .env = env,
				     .env_count = ARRAY_LEN(env),
				     .process = quick() };
	uaa_backend *be;
	uaa_request *r;
	uar_str text;

	snprintf(record, sizeof record, "%s", uar_test_dir());
	snprintf(other, sizeof other, "%s", uar_test_dir());
	env[1].value = uaa_str_c(record);
	c.default_working_dir = uaa_str_c(record);
	be = uaa_claude_code_backend_new(&c);
	r = ask("hi"); /* request over config */
	uaa_request_set_working_dir(r, uaa_str_c(other));
	uaa_request_set_env(r, uaa_str_c("BOTH"), uaa_str_c("request"));
	uaa_request_set_env(r, uaa_str_c("THEIRS"), uaa_str_c("request"));
	seen_fini(run_on(uaa_backend_ref(be), r));
	text = recorded(record, "env", &b);
	CHECK(has_line(text, "BOTH=request") && has_line(text, "MINE=config") &&
	      has_line(text, "THEIRS=request") && !has_line(text, "BOTH=config"));
	CHECK(has_line(recorded(record, "cwd", &b), other));
	unlink(strcat_path(record, "env"));
	unlink(strcat_path(record, "cwd"));
	seen_fini(run_on(be, NULL)); /* the next run is not affected */
	text = recorded(record, "env", &b);
	CHECK(has_line(text, "BOTH=config") && !has_line(text, "THEIRS=request"));
	CHECK(has_line(recorded(record, "cwd", &b), record));
	unlink(strcat_path(record, "cwd"));
	c.default_working_dir = UAB_NONE; /* none at all: the host's own */
	seen_fini(run_on(uaa_claude_code_backend_new(&c), NULL));
	CHECK(getcwd(here, sizeof here) && has_line(recorded(record, "cwd", &b), here));
	uar_buf_fini(&b);
}

TEST(the_environment_is_an_allow_list, "")
{
	char record[600];
	struct uar_buf b = uar_buf_make(1 << 20);
	uar_str text;

	snprintf(record, sizeof record, "%s", uar_test_dir());
	setenv("HOST_SECRET_TOKEN", "x", 1);
	setenv("ANTHROPIC_TEST", "y", 1);
	seen_fini(run_on(recorder(CLAUDE, "stdin\nresult", record), NULL));
	text = recorded(record, "env", &b);
	CHECK(!has_line(text, "HOST_SECRET_TOKEN=x") && has_line(text, "ANTHROPIC_TEST=y"));
	CHECK(memmem(text.p, text.n, "\nPATH=", 6) != NULL);
	CHECK(has_line(text, "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1"));
	unsetenv("HOST_SECRET_TOKEN");
	unsetenv("ANTHROPIC_TEST");
	uar_buf_fini(&b);
}

TEST(U28_no_timeout_is_invented, "LIB-53")
{
	/* nothing is armed: the driver has no deadline to wait for */
	uaa_backend *b = claude_doing("env A\nhang", NULL, NULL);
	uaa_request *r = ask("hi");
	uaa_run *run = NULL;
	uaa_event *ev;

	CHECK(uaa_backend_run(b, r, &run, NULL) == UAA_OK);
	CHECK_INT(run->give_up_us, 0);
	CHECK(uaa_run_next(run, -1, &ev) == UAA_OK);
	uaa_event_unref(ev);
	uaa_run_unref(run);
	uaa_request_unref(r);
	uaa_backend_unref(b);
}

TEST(zero_in_the_request_means_no_timeout, "LIB-49")
{
	uaa_claude_code_config c = { .struct_size = sizeof c,
				     .binary = uaa_str_c(uar_test_built("fake-cli")),
				     .default_timeout_ms = 1,
				     .process = quick() };
	uaa_request *r = ask("hi");
	uaa_env_pair env = { uaa_str_c("FAKE_DO"), uaa_str_c("stdin\nresult") };
	struct seen *s;

	c.env = &env;
	c.env_count = 1;
	uaa_request_set_timeout_ms(r, 0);
	s = run_on(uaa_claude_code_backend_new(&c), r);
	CHECK_INT(s->status, UAA_OK);
	seen_fini(s);
}

/* --- command lines --- */

TEST(S11_non_interactive_is_the_default, "")
{
	char d1[600], d2[600];
	struct uar_buf a = uar_buf_make(1 << 16), b = uar_buf_make(1 << 16);
	uaa_request *r = ask("hi");

	snprintf(d1, sizeof d1, "%s", uar_test_dir());
	snprintf(d2, sizeof d2, "%s", uar_test_dir());
	with(r, NI, "true");
	CHECK(uar_str_eq(args_of(CLAUDE, ask("hi"), d1, &a), args_of(CLAUDE, r, d2, &b)));
	CHECK(has_pair(uar_buf_str(&a), "--permission-mode", "default"));
	CHECK(!has_line(uar_buf_str(&a), "--permission-prompt-tool"));
	CHECK(!has_line(uar_buf_str(&a), "--model") && !has_line(uar_buf_str(&a), "--resume") &&
	      !has_line(uar_buf_str(&a), "--add-dir"));
	r = ask("hi");
	with(r, NI, "true");
	CHECK(uar_str_eq(args_of(CODEX_EXEC, ask("hi"), d1, &a), args_of(CODEX_EXEC, r, d2, &b)));
	uar_buf_fini(&a);
	uar_buf_fini(&b);
}

TEST(codex_sandbox_defaults_to_workspace_write, "")
{
	char d[600];
	struct uar_buf b = uar_buf_make(1 << 16);

	snprintf(d, sizeof d, "%s", uar_test_dir());
	CHECK(has_pair(args_of(CODEX_EXEC, ask("hi"), d, &b), "--sandbox", "workspace-write"));
	uar_buf_fini(&b);
}

TEST(X02_X03_X04_external_sandbox_warns_first, "")
{
	static const char warning[] = "DANGEROUS: external sandbox exec policy enabled "
				      "(agent_api.exec.external_sandbox.v1=true)";
	const char *script[] = { "cat ", "line {\"type\":\"turn.completed\"}" };

	for (int i = 0; i < 2; i++) {
		char d[600], text[2000];
		struct uar_buf b = uar_buf_make(1 << 16);
		uaa_request *r = ask("hi");
		struct seen *s;

		snprintf(d, sizeof d, "%s", uar_test_dir());
		snprintf(text, sizeof text, "stdin\n%s%s", script[i],
			 i ? "" : fixture("claude_code/hello.jsonl"));
		with(r, EXT, "true");
		s = run_on(recorder(i ? CODEX_EXEC : CLAUDE, text, d), r);
		CHECK_INT(s->status, UAA_OK);
		CHECK_STR(uab_str(uaa_event_message(s->ev[0])), warning);
		CHECK_STR(uab_str(uaa_event_channel(s->ev[0])), "status");
		CHECK(!uaa_event_data_json(s->ev[0]).ptr);
		CHECK_INT(count(s, UAA_EV_STATUS, "DANGEROUS"), 1);
		CHECK(i ? has_line(recorded(d, "argv", &b),
				   "--dangerously-bypass-approvals-and-sandbox")
			: has_pair(recorded(d, "argv", &b), "--permission-mode",
				   "bypassPermissions"));
		seen_fini(s);
		for (int absent = 0; absent < 2; absent++) {
			r = ask("hi");
			if (!absent)
				with(r, EXT, "false");
			snprintf(d, sizeof d, "%s", uar_test_dir());
			s = run_on(recorder(i ? CODEX_EXEC : CLAUDE, text, d), r);
			CHECK_INT(s->status, UAA_OK);
			CHECK_INT(count(s, UAA_EV_STATUS, "DANGEROUS"), 0);
			CHECK(!has_line(recorded(d, "argv", &b),
					"--dangerously-bypass-approvals-and-sandbox") &&
			      !has_line(recorded(d, "argv", &b), "bypassPermissions"));
			seen_fini(s);
		}
		uar_buf_fini(&b);
	}
}

/* What was accepted with one set of flags is not tried again with another. */
TEST(X04_no_second_try_outside_the_sandbox, "")
{
	char d[600];
	struct uar_buf b = uar_buf_make(1 << 16);
	uaa_request *r = ask("hi");
	struct seen *s;

	snprintf(d, sizeof d, "%s", uar_test_dir());
	with(r, EXT, "true");
	s = run_on(recorder(CODEX_APP, "exit 2", d), r); /* a codex without that server */
	check_error(s, "codex exited non-zero: code=2 (output redacted)");
	CHECK_INT(count(s, UAA_EV_STATUS, "DANGEROUS"), 1);
	CHECK(has_line(recorded(d, "argv", &b), "app-server") &&
	      !has_line(recorded(d, "argv", &b), "exec"));
	seen_fini(s);
	uar_buf_fini(&b);
}

TEST(a_large_prompt_arrives_whole, "")
{
	static char big[3000001];
	struct uar_buf b = uar_buf_make(64);
	struct seen *s;

	memset(big, 'p', sizeof big - 1);
	s = run_on(claude_doing("count\nresult", NULL, NULL), ask(big));
	CHECK_STR(all_text(s, &b), "3000000");
	seen_fini(s);
	uar_buf_fini(&b);
}
