/* mcp_test.c - management calls: bounded output, checked requests, no leftovers. */
#include "backend/cli_test.h"

static uaa_status mcp(uaa_backend *b, const char *kind, uaa_mcp_request *r, uaa_mcp_result **out,
		      uaa_error **e)
{
	uaa_gateway *gw = uaa_gateway_new();
	uaa_kind *k;
	uaa_status s;

	uaa_kind_new(uaa_str_c(kind), &k, NULL);
	uaa_gateway_register(gw, b, NULL);
	s = uaa_gateway_mcp(gw, k, r, out, e);
	uaa_kind_unref(k);
	uaa_gateway_unref(gw);
	uaa_backend_unref(b);
	return s;
}

/* A file with `n` times this byte, as a command of the fake. */
static const char *cat_of(int byte, size_t n)
{
	static char script[700];
	char path[600];
	FILE *f;

	snprintf(path, sizeof path, "%s/out", uar_test_dir());
	snprintf(script, sizeof script, "cat %s", path);
	f = fopen(path, "w");
	while (n--)
		fputc(byte, f);
	fclose(f);
	return script;
}

TEST(M01_M02_M03_M04_M05_results, "")
{
	uaa_mcp_request r = { .struct_size = sizeof r, .op = UAA_MCP_LIST, .timeout_ms = -1 };
	uaa_mcp_result *m = NULL;
	uaa_error *e = NULL;
	int code = 0;
	bool cut = true;

	CHECK(mcp(make(CODEX_APP, "part hello\nraw ff\nerr oops\nexit 3", (struct more){ 0 }),
		  "codex", &r, &m, &e) == UAA_OK);
	CHECK(uaa_mcp_result_exited(m, &code) && code == 3 && !uaa_mcp_result_signaled(m, NULL));
	CHECK_STR(uab_str(uaa_mcp_result_stdout(m, &cut)), "hello\xEF\xBF\xBD");
	CHECK(!cut);
	CHECK_STR(uab_str(uaa_mcp_result_stderr(m, &cut)), "oops\n");
	CHECK(!cut);
	uaa_mcp_result_unref(m);
	CHECK(mcp(make(CODEX_APP, "signal 9", (struct more){ 0 }), "codex", &r, &m, &e) == UAA_OK);
	CHECK(uaa_mcp_result_signaled(m, &code) && code == 9 && !uaa_mcp_result_exited(m, NULL));
	uaa_mcp_result_unref(m);
}

/* Faults of the call itself: an error, no output, nothing left behind. */
TEST(M05_faults_are_errors_without_output, "LIB-52")
{
	uaa_mcp_request r = { .struct_size = sizeof r, .op = UAA_MCP_LIST };
	uaa_codex_config none = { .struct_size = sizeof none,
				  .binary = uaa_str_c("/nonexistent/SECRET"),
				  .process = quick() };
	static const int64_t limits[] = { 0, 50, -1 };
	static const char *const causes[] = { "timeout", "timeout", "spawn" };
	static const uaa_cause known[] = { UAA_CAUSE_TIMEOUT, UAA_CAUSE_TIMEOUT,
					   UAA_CAUSE_NO_PROGRAM };

	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		uaa_mcp_result *m = NULL;
		uaa_error *e = NULL;
		char want[100];

		r.timeout_ms = limits[i];
		snprintf(want, sizeof want, "codex mcp command failed: %s (output redacted)",
			 causes[i]);
		CHECK(mcp(i == 2 ? uaa_codex_backend_new(&none)
				 : make(CODEX_APP, i ? "part SECRET\nerr SECRET\nescape\nhang" : "",
					(struct more){ 0 }),
			  "codex", &r, &m, &e) == UAA_E_BACKEND);
		CHECK_STR(uab_str(uaa_error_message(e)), want);
		CHECK_INT(uaa_error_cause(e), known[i]);
		CHECK(!m);
		uaa_error_unref(e);
		CHECK_INT(marked(mark()), 0);
	}
}

/* Bytes of decoded text: kept up to the bound, cut with the suffix beyond it. */
TEST(M03_output_is_bounded, "")
{
	static const struct {
		int byte;
		size_t n, len;
		bool cut;
	} cases[] = { { 'x', 65536, 65536, false },
		      { 'x', 65537, 65536, true },
		      { 0xFF, 21845, 65535, false },
		      { 0xFF, 30000, 65520 + 14, true } };
	static char big[70100] = "err ";
	uaa_mcp_request r = { .struct_size = sizeof r, .op = UAA_MCP_LIST, .timeout_ms = -1 };
	uaa_mcp_result *m = NULL;
	bool cut = false;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uar_str out;

		REQUIRE(mcp(make(CODEX_APP, cat_of(cases[i].byte, cases[i].n), (struct more){ 0 }),
			    "codex", &r, &m, NULL) == UAA_OK);
		out = uab_str(uaa_mcp_result_stdout(m, &cut));
		CHECK_INT(out.n, cases[i].len);
		CHECK(cut == cases[i].cut && uar_utf8_valid(out) &&
		      uar_str_ends(out, UAR_STR("\xE2\x80\xA6(truncated)")) == cut);
		CHECK(uaa_mcp_result_stderr(m, &cut).len == 0 && !cut);
		uaa_mcp_result_unref(m);
	}
	memset(big + 4, 'x', 70000);
	REQUIRE(mcp(make(CODEX_APP, big, (struct more){ 0 }), "codex", &r, &m, NULL) == UAA_OK);
	CHECK_INT(uaa_mcp_result_stderr(m, &cut).len, 65536);
	CHECK(cut && uar_str_ends(uab_str(uaa_mcp_result_stderr(m, NULL)), UAR_STR("(truncated)")));
	CHECK(uaa_mcp_result_stdout(m, &cut).len == 0 && !cut);
	uaa_mcp_result_unref(m);
}

/* --- requests --- */

static uaa_str prog[] = { { "prog", 4 }, { " -v ", 4 } };
static uaa_env_pair server_env[] = { { { "KEY", 3 }, { "v=1 ", 4 } } };

static uaa_mcp_request request(uaa_mcp_op op)
{
	uaa_mcp_request r = { .struct_size = sizeof r, .op = op, .timeout_ms = -1 };

	if (op != UAA_MCP_LIST)
		r.name = uaa_str_c(" srv ");
	if (op == UAA_MCP_ADD) {
		r.command = prog;
		r.command_count = 2;
		r.server_env = server_env;
		r.server_env_count = 1;
	}
	return r;
}

static uaa_mcp_request add_url(const char *url, const char *var)
{
	uaa_mcp_request r = request(UAA_MCP_ADD);

	r.command_count = r.server_env_count = 0;
	r.url = uaa_str_c(url);
	r.bearer_token_env_var = uaa_str_c(var);
	return r;
}

/* What the program was started with, a line each, after its own name. */
static void check_argv(const char *record, const char *want)
{
	struct uar_buf b = uar_buf_make(1 << 16);
	FILE *f = fopen(strcat_path(record, "argv"), "r");
	char line[2000];

	for (int i = 0; f && fgets(line, sizeof line, f); i++)
		if (i)
			uar_buf_printf(&b, "%s", line);
	CHECK_STR(uar_buf_str(&b), want);
	if (f)
		fclose(f);
	uar_buf_fini(&b);
}

TEST(M06_M07_M10_command_lines, "")
{
	const struct {
		enum which who;
		uaa_mcp_request r;
		const char *want;
	} cases[] = {
		{ CODEX_APP, request(UAA_MCP_LIST), "mcp\nlist\n--json\n" },
		{ CODEX_APP, request(UAA_MCP_GET), "mcp\nget\n--json\nsrv\n" },
		{ CODEX_APP, request(UAA_MCP_ADD),
		  "mcp\nadd\nsrv\n--env\nKEY=v=1 \n--\nprog\n-v\n" },
		{ CODEX_APP, add_url("https://x/y", NULL), "mcp\nadd\nsrv\n--url\nhttps://x/y\n" },
		{ CODEX_APP, add_url("http://x", "HOME"),
		  "mcp\nadd\nsrv\n--url\nhttp://x\n--bearer-token-env-var\nHOME\n" },
		{ CODEX_APP, request(UAA_MCP_REMOVE), "mcp\nremove\nsrv\n" },
		{ CLAUDE, request(UAA_MCP_LIST), "mcp\nlist\n" },
		{ CLAUDE, request(UAA_MCP_ADD),
		  "mcp\nadd\n--transport\nstdio\n--env\nKEY=v=1 \n--\nsrv\nprog\n-v\n" },
		{ CLAUDE, add_url("https://x/y", NULL),
		  "mcp\nadd\n--transport\nhttp\n--\nsrv\nhttps://x/y\n" },
		{ CLAUDE, request(UAA_MCP_REMOVE), "mcp\nremove\nsrv\n" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uaa_mcp_request r = cases[i].r;
		uaa_mcp_result *m = NULL;
		char record[600];

		snprintf(record, sizeof record, "%s", uar_test_dir());
		CHECK(mcp(make(cases[i].who, "", (struct more){ .write = true, .record = record }),
			  cases[i].who == CLAUDE ? "claude_code" : "codex", &r, &m,
			  NULL) == UAA_OK);
		check_argv(record, cases[i].want);
		uaa_mcp_result_unref(m);
	}
}

TEST(M06_writing_is_opt_in, "LIB-51")
{
	static const char *const ids[] = { "agent_api.tools.mcp.add.v1",
					   "agent_api.tools.mcp.remove.v1" };
	char record[600];

	snprintf(record, sizeof record, "%s", uar_test_dir());
	for (int claude = 0; claude < 2; claude++)
		for (int i = 0; i < 2; i++) {
			uaa_mcp_request r = request(i ? UAA_MCP_REMOVE : UAA_MCP_ADD);
			uaa_mcp_result *m = NULL;
			uaa_error *e = NULL;

			r.name = UAB_NONE; /* the capability is asked for before the values */
			CHECK(mcp(make(claude ? CLAUDE : CODEX_APP, "",
				       (struct more){ .record = record }),
				  claude ? "claude_code" : "codex", &r, &m,
				  &e) == UAA_E_UNSUPPORTED_CAPABILITY);
			CHECK_STR(uab_str(uaa_error_capability(e)), ids[i]);
			uaa_error_unref(e);
		}
	check_argv(record, "");
}

TEST(M07_M08_M09_bad_requests_start_nothing, "")
{
	static uaa_str blank[] = { { "prog", 4 }, { " ", 1 } };
	static uaa_env_pair names[] = { { { "1A", 2 }, { "", 0 } },
					{ { "A-B", 3 }, { "", 0 } },
					{ { "", 0 }, { "", 0 } },
					{ { "A", 1 }, { "a\0b", 3 } } };
	uaa_mcp_request bad[24];
	size_t n = 0;
	char record[600];

	bad[n] = request(UAA_MCP_GET), bad[n++].name = uaa_str_c(" ");
	bad[n] = request(UAA_MCP_REMOVE), bad[n++].name = UAB_NONE;
	bad[n] = request(UAA_MCP_GET), bad[n++].name = uaa_str_c(" --SECRET");
	bad[n] = request(UAA_MCP_ADD), bad[n++].command_count = 0;
	bad[n] = request(UAA_MCP_ADD), bad[n++].url = uaa_str_c("http://SECRET");
	bad[n] = request(UAA_MCP_ADD), bad[n++].command = blank;
	bad[n] = request(UAA_MCP_ADD), bad[n++].bearer_token_env_var = uaa_str_c("TOKEN");
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		bad[n] = request(UAA_MCP_ADD), bad[n++].server_env = &names[i];
	bad[n++] = add_url("ftp://SECRET", NULL);
	bad[n++] = add_url("/SECRET", NULL);
	bad[n++] = add_url("SECRET", NULL);
	bad[n++] = add_url("http://", NULL);
	bad[n++] = add_url("https:///SECRET", NULL);
	bad[n++] = add_url("http://x SECRET", NULL);
	bad[n++] = add_url("http://x", "1SECRET");
	bad[n++] = add_url("http://x", "SECRET-X");
	bad[n++] = add_url("http://x", "$SECRET");
	bad[n++] = add_url("http://x", "");
	snprintf(record, sizeof record, "%s", uar_test_dir());
	for (size_t i = 0; i < n; i++) {
		uaa_mcp_result *m = NULL;
		uaa_error *e = NULL;

		CHECK_MSG(mcp(make(CODEX_APP, "", (struct more){ .write = true, .record = record }),
			      "codex", &bad[i], &m, &e) == UAA_E_INVALID_REQUEST,
			  "case %zu", i);
		check_secret(uaa_error_display(e), "mcp error");
		uaa_error_unref(e);
	}
	bad[0] = add_url("http://x", "TOKEN"); /* it has no such option */
	CHECK(mcp(make(CLAUDE, "", (struct more){ .write = true, .record = record }), "claude_code",
		  &bad[0], &(uaa_mcp_result *){ NULL }, NULL) == UAA_E_INVALID_REQUEST);
	bad[0] = request(UAA_MCP_GET);
	CHECK(mcp(make(CLAUDE, "", (struct more){ .record = record }), "claude_code", &bad[0],
		  &(uaa_mcp_result *){ NULL }, NULL) == UAA_E_UNSUPPORTED_CAPABILITY);
	check_argv(record, "");
}

TEST(M10_the_call_has_its_own_directory_and_variables, "")
{
	uaa_env_pair env[] = { { uaa_str_c("MINE"), uaa_str_c("call") },
			       { uaa_str_c("FAKE_DO"), uaa_str_c("exit 4") } };
	uaa_mcp_request r = request(UAA_MCP_LIST);
	uaa_mcp_result *m = NULL;
	char record[600], dir[600], line[4096], want[700];
	bool mine = false;
	int code = 0;
	FILE *f;

	snprintf(record, sizeof record, "%s", uar_test_dir());
	snprintf(dir, sizeof dir, "%s", uar_test_dir());
	snprintf(want, sizeof want, "%s\n", dir);
	r.working_dir = uaa_str_c(dir);
	r.env = env;
	r.env_count = ARRAY_LEN(env);
	REQUIRE(mcp(make(CODEX_APP, "exit 3", (struct more){ .record = record }), "codex", &r, &m,
		    NULL) == UAA_OK);
	CHECK(uaa_mcp_result_exited(m, &code) && code == 4); /* over what the backend has */
	uaa_mcp_result_unref(m);
	f = fopen(strcat_path(record, "cwd"), "r");
	CHECK(f && fgets(line, sizeof line, f) && strcmp(line, want) == 0);
	if (f)
		fclose(f);
	f = fopen(strcat_path(record, "env"), "r");
	while (f && fgets(line, sizeof line, f))
		mine |= strcmp(line, "MINE=call\n") == 0;
	CHECK(mine);
	if (f)
		fclose(f);
}

/* --- a supervisor that is killed --- */

static void *kill_supervisor(void *ctx)
{
	pid_t pid = 0;

	(void)ctx;
	while (!marked(mark()) || (pid = only_child()) <= 0)
		sched_yield();
	while (children_of(pid) < 2) /* the program, and what it has detached and left to it */
		sched_yield();
	kill(pid, SIGKILL);
	return NULL;
}

/* The error of a call whose supervisor is killed. */
static uaa_error *lose(uaa_process_options *o)
{
	uaa_mcp_request r = UAA_MCP_REQUEST_INIT;
	uaa_mcp_result *m = NULL;
	uaa_error *e = NULL;
	pthread_t thread;

	r.timeout_ms = -1;
	if (!CHECK(pthread_create(&thread, NULL, kill_supervisor, NULL) == 0))
		return NULL;
	CHECK_INT(mcp(make(CODEX_APP, "escape\nhang", (struct more){ .process = o }), "codex", &r,
		      &m, &e),
		  UAA_E_BACKEND);
	pthread_join(thread, NULL);
	CHECK(!m);
	return e;
}

TEST(a_call_whose_supervisor_is_killed_says_what_may_survive, "")
{
	uaa_process_options o = *quick();
	uaa_error *e;

	o.cgroup = uaa_str_c("");
	e = lose(&o);
	CHECK_STR(uab_str(uaa_error_message(e)),
		  "codex mcp command failed: " UAB_LOST " (output redacted)");
	CHECK_INT(uaa_error_cause(e), UAA_CAUSE_TERMINATION);
	CHECK(marked(mark()) > 0); /* and that is true */
	uaa_error_unref(e);
	until_none_is_marked(mark());
	if (!has_groups())
		return;
	e = lose(NULL);
	CHECK_INT(marked(mark()), 0);
	CHECK_STR(uab_str(uaa_error_message(e)),
		  "codex mcp command failed: the supervisor was killed (output redacted)");
	CHECK_INT(uaa_error_cause(e), UAA_CAUSE_CRASH);
	uaa_error_unref(e);
}
