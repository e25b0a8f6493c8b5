/* options_test.c - extensions, precedence and absence: what reaches the process,
 * and what never starts one. */
#include "backend/cli.h"
#include "backend/cli_test.h"

#include <sys/stat.h>

#define NI   "agent_api.exec.non_interactive"
#define EXT  "agent_api.exec.external_sandbox.v1"
#define MOD  "agent_api.config.model.v1"
#define DIR_ "agent_api.exec.add_dirs.v1"
#define RES  "agent_api.session.resume.v1"
#define FRK  "agent_api.session.fork.v1"
#define POL  "backend.codex.exec.approval_policy"
#define BOX  "backend.codex.exec.sandbox_mode"

static uaa_backend *recorder(enum which w, const char *todo, const char *record)
{
	uaa_env_pair env[] = { { uaa_str_c("FAKE_DO"), uaa_str_c(todo) },
			       { uaa_str_c("FAKE_RECORD"), uaa_str_c(record) },
			       { uaa_str_c("BOTH"), uaa_str_c("config") },
			       { uaa_str_c("MINE"), uaa_str_c("config") } };
	uaa_claude_code_config cc = { .struct_size = sizeof cc,
				      .binary = uaa_str_c(uar_test_built("fake-cli")),
				      .env = env,
				      .env_count = ARRAY_LEN(env),
				      .allow_external_sandbox_exec = true,
				      .process = quick() };
	uaa_codex_config cx = { .struct_size = sizeof cx,
				.binary = uaa_str_c(uar_test_built("fake-cli")),
				.env = env,
				.env_count = ARRAY_LEN(env),
				.transport = w == CODEX_EXEC ? UAA_CODEX_EXEC : UAA_CODEX_AUTO,
				.allow_external_sandbox_exec = true,
				.process = quick() };

	return w == CLAUDE ? uaa_claude_code_backend_new(&cc) : uaa_codex_backend_new(&cx);
}

/* What the fake wrote down; empty when it was never started. */
static uar_str recorded(const char *dir, const char *name, struct uar_buf *b)
{
	char path[700], part[4096];
	FILE *f;
	size_t n;

	uar_buf_clear(b);
	snprintf(path, sizeof path, "%s/%s", dir, name);
	f = fopen(path, "r");
	while (f && (n = fread(part, 1, sizeof part, f)))
		uar_buf_add(b, part, n);
	if (f)
		fclose(f);
	return uar_buf_str(b);
}

static bool has_line(uar_str text, const char *want)
{
	while (text.n)
		if (uar_str_is(uar_str_cut(text, '\n', &text), want))
			return true;
	return false;
}

/* Both lines, the second right behind the first. */
static bool has_pair(uar_str text, const char *a, const char *b)
{
	while (text.n)
		if (uar_str_is(uar_str_cut(text, '\n', &text), a)) {
			uar_str rest;

			if (uar_str_is(uar_str_cut(text, '\n', &rest), b))
				return true;
		}
	return false;
}

TEST(U22_U23_P13_S12_R01_R02_D01_D02_D03_D04_bad_values_start_nothing, "LIB-18 CAP-02 CAP-03")
{
	static const struct {
		enum which who;
		const char *key, *value, *key2, *value2;
		uaa_status status;
		const char *message; /* or the capability */
	} cases[] = {
		{ CLAUDE, NI, "1", NULL, NULL, UAA_E_INVALID_REQUEST, NI " must be a boolean" },
		{ CLAUDE, EXT, "\"x\"", NULL, NULL, UAA_E_INVALID_REQUEST,
		  EXT " must be a boolean" },
		{ CLAUDE, MOD, "\"  \"", NULL, NULL, UAA_E_INVALID_REQUEST, "invalid " MOD },
		{ CLAUDE, MOD, "7", NULL, NULL, UAA_E_INVALID_REQUEST, "invalid " MOD },
		{ CLAUDE, MOD, "\"\"", NI, "7", UAA_E_INVALID_REQUEST, "invalid " MOD },
		{ CLAUDE, DIR_, "[]", NULL, NULL, UAA_E_INVALID_REQUEST, "invalid " DIR_ },
		{ CLAUDE, DIR_, "{}", NULL, NULL, UAA_E_INVALID_REQUEST, "invalid " DIR_ ".dirs" },
		{ CLAUDE, DIR_, "{\"dirs\":[]}", NULL, NULL, UAA_E_INVALID_REQUEST,
		  "invalid " DIR_ ".dirs" },
		{ CLAUDE, DIR_, "{\"dirs\":[\"/\"],\"x\":1}", NULL, NULL, UAA_E_INVALID_REQUEST,
		  "invalid " DIR_ },
		{ CLAUDE, DIR_, "{\"dirs\":[\"/\",\"/no/such/SECRET\"]}", NULL, NULL,
		  UAA_E_INVALID_REQUEST, "invalid " DIR_ ".dirs[1]" },
		{ CLAUDE, DIR_, "{\"dirs\":[\"/etc/passwd\"]}", NULL, NULL, UAA_E_INVALID_REQUEST,
		  "invalid " DIR_ ".dirs[0]" },
		{ CLAUDE, DIR_, "{\"dirs\":[\" \"]}", NULL, NULL, UAA_E_INVALID_REQUEST,
		  "invalid " DIR_ ".dirs[0]" },
		{ CLAUDE, DIR_, "{\"dirs\":[\"~\"]}", NULL, NULL, UAA_E_INVALID_REQUEST,
		  "invalid " DIR_ ".dirs[0]" },
		{ CLAUDE, RES, "{\"selector\":\"first\"}", NULL, NULL, UAA_E_INVALID_REQUEST,
		  "invalid " RES },
		{ CLAUDE, RES, "{\"selector\":\"last\",\"id\":\"x\"}", NULL, NULL,
		  UAA_E_INVALID_REQUEST, "invalid " RES },
		{ CLAUDE, RES, "{\"selector\":\"id\"}", NULL, NULL, UAA_E_INVALID_REQUEST,
		  "invalid " RES },
		{ CLAUDE, FRK, "{\"selector\":\"id\",\"id\":\" \"}", NULL, NULL,
		  UAA_E_INVALID_REQUEST, "invalid " FRK },
		{ CLAUDE, RES, "{\"selector\":\"last\"}", FRK, "{\"selector\":\"last\"}",
		  UAA_E_INVALID_REQUEST, RES " excludes " FRK },
		{ CLAUDE, EXT, "true", NI, "false", UAA_E_INVALID_REQUEST, EXT " requires " NI },
		{ CODEX_APP, EXT, "true", BOX, "\"read-only\"", UAA_E_INVALID_REQUEST,
		  EXT " excludes backend exec options" },
		{ CODEX_APP, POL, "\"sometimes\"", NULL, NULL, UAA_E_INVALID_REQUEST,
		  "invalid " POL },
		{ CODEX_APP, POL, "\"on-request\"", NULL, NULL, UAA_E_INVALID_REQUEST,
		  POL " must be never when non-interactive" },
		{ CODEX_APP, BOX, "\"none\"", NULL, NULL, UAA_E_INVALID_REQUEST, "invalid " BOX },
		{ CLAUDE, POL, "\"never\"", NULL, NULL, UAA_E_UNSUPPORTED_CAPABILITY, POL },
		{ CLAUDE, NI, "7", "agent_api.nope", "1", UAA_E_UNSUPPORTED_CAPABILITY,
		  "agent_api.nope" },
		{ CODEX_APP, "agent_api.run", "1", NULL, NULL, UAA_E_UNSUPPORTED_CAPABILITY,
		  "agent_api.run" },
		{ CODEX_APP, "backend.claude_code.x", "1", NULL, NULL, UAA_E_UNSUPPORTED_CAPABILITY,
		  "backend.claude_code.x" },
	};
	struct uar_buf b = uar_buf_make(65536);

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char record[600];
		uaa_request *r = ask("hi");
		struct seen *s;

		snprintf(record, sizeof record, "%s", uar_test_dir());
		with(r, cases[i].key, cases[i].value);
		if (cases[i].key2)
			with(r, cases[i].key2, cases[i].value2);
		s = run_on(recorder(cases[i].who, "result", record), r);
		CHECK_MSG(s->status == cases[i].status, "case %zu: status %d", i, (int)s->status);
		CHECK_STR(uab_str(cases[i].status == UAA_E_INVALID_REQUEST
					  ? uaa_error_message(s->error)
					  : uaa_error_capability(s->error)),
			  cases[i].message);
		CHECK_INT(recorded(record, "argv", &b).n, 0);
		seen_fini(s);
	}
	uar_buf_fini(&b);
}

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

	for (size_t i = 0; i < ARRAY_LEN(common); i++) {
		CHECK(uaa_caps_contains(uaa_backend_caps(c), uaa_str_c(common[i])));
		CHECK(uaa_caps_contains(uaa_backend_caps(x), uaa_str_c(common[i])));
	}
	CHECK(uaa_caps_contains(uaa_backend_caps(x), uaa_str_c(POL)));
	CHECK(uaa_caps_contains(uaa_backend_caps(x), uaa_str_c(BOX)));
	CHECK(!uaa_caps_contains(uaa_backend_caps(c), uaa_str_c(POL)));
	every_key_is_known(c);
	every_key_is_known(x);
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
	uaa_backend_unref(c);
	uaa_backend_unref(x);
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

static uar_str args_of(enum which who, uaa_request *r, const char *record, struct uar_buf *b)
{
	const char *todo =
		who == CODEX_EXEC ? "stdin\nline {\"type\":\"turn.completed\"}" : "stdin\nresult";
	struct seen *s = run_on(recorder(who, todo, record), r);

	CHECK_INT(s->status, UAA_OK);
	seen_fini(s);
	return recorded(record, "argv", b);
}

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

TEST(D05_D06_D07_D08_options_reach_the_command_line, "")
{
	char d[600], sub[700], json[2000];
	struct uar_buf b = uar_buf_make(1 << 16);
	uaa_request *r = ask("hi");
	uar_str argv;

	snprintf(d, sizeof d, "%s", uar_test_dir());
	snprintf(sub, sizeof sub, "%s/sub", d);
	mkdir(sub, 0755);
	uaa_request_set_working_dir(r, uaa_str_c(d));
	snprintf(json, sizeof json, "{\"dirs\":[\"sub\",\"./sub/../sub/.\",\" / \",\"%s\"]}", sub);
	with(r, DIR_, json);
	with(r, MOD, "\"\xE2\x80\x83 some-model \"");
	argv = args_of(CLAUDE, r, d, &b);
	CHECK(has_pair(argv, "--model", "some-model"));
	CHECK(has_pair(argv, "--add-dir", sub) && has_pair(argv, sub, "/") &&
	      has_pair(argv, "/", "--verbose")); /* duplicates are gone, order is kept */
	CHECK(!has_line(argv, "hi"));		 /* the prompt goes by stdin */

	snprintf(d, sizeof d, "%s", uar_test_dir());
	r = ask("hi");
	with(r, DIR_, "{\"dirs\":[\"/\",\"/tmp\"]}");
	with(r, MOD, "\"m\"");
	with(r, BOX, "\"read-only\"");
	argv = args_of(CODEX_EXEC, r, d, &b);
	CHECK(has_pair(argv, "--add-dir", "/") && has_pair(argv, "--add-dir", "/tmp"));
	CHECK(has_pair(argv, "--model", "m") && has_pair(argv, "--sandbox", "read-only"));
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
	const char *todo[] = { "cat ", "line {\"type\":\"turn.completed\"}" };

	for (int i = 0; i < 2; i++) {
		char d[600], text[2000];
		struct uar_buf b = uar_buf_make(1 << 16);
		uaa_request *r = ask("hi");
		struct seen *s;

		snprintf(d, sizeof d, "%s", uar_test_dir());
		snprintf(text, sizeof text, "stdin\n%s%s", todo[i],
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
		r = ask("hi");
		with(r, EXT, "false");
		s = run_on(recorder(i ? CODEX_EXEC : CLAUDE, text, d), r);
		CHECK_INT(count(s, UAA_EV_STATUS, "DANGEROUS"), 0);
		seen_fini(s);
		uar_buf_fini(&b);
	}
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
