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

TEST(M01_M02_M03_M04_M05_results, "")
{
	uaa_mcp_request r = { .struct_size = sizeof r, .op = UAA_MCP_LIST, .timeout_ms = -1 };
	uaa_mcp_result *m = NULL;
	uaa_error *e = NULL;
	int code = 0;
	bool cut = false;

	CHECK(mcp(make(CODEX_APP, "part hello\nraw ff\nerr oops\nexit 3", (struct more){ 0 }),
		  "codex", &r, &m, &e) == UAA_OK);
	CHECK(uaa_mcp_result_exited(m, &code) && code == 3 && !uaa_mcp_result_signaled(m, NULL));
	CHECK_STR(uab_str(uaa_mcp_result_stdout(m, &cut)), "hello\xEF\xBF\xBD");
	CHECK(!cut);
	CHECK_STR(uab_str(uaa_mcp_result_stderr(m, &cut)), "oops\n");
	uaa_mcp_result_unref(m);
	CHECK(mcp(make(CODEX_APP, "junkline 65536", (struct more){ 0 }), "codex", &r, &m, &e) ==
	      UAA_OK);
	CHECK_INT(uaa_mcp_result_stdout(m, &cut).len, 65536);
	CHECK(cut && uar_str_ends(uab_str(uaa_mcp_result_stdout(m, NULL)), UAR_STR("(truncated)")));
	uaa_mcp_result_unref(m);
	r.timeout_ms = 0;
	CHECK(mcp(make(CODEX_APP, "", (struct more){ 0 }), "codex", &r, &m, &e) == UAA_E_BACKEND);
	uaa_error_unref(e);
	r.timeout_ms = 50;
	CHECK(mcp(make(CODEX_APP, "part SECRET\nescape\nhang", (struct more){ 0 }), "codex", &r, &m,
		  &e) == UAA_E_BACKEND);
	check_secret(uaa_error_display(e), "mcp error");
	uaa_error_unref(e);
	CHECK_INT(marked(mark()), 0);
}

TEST(M06_M07_M08_M09_M10_requests, "LIB-51")
{
	char record[600];
	uaa_str cmd[] = { uaa_str_c("prog"), uaa_str_c("-v") };
	uaa_env_pair env = { uaa_str_c("KEY"), uaa_str_c("v=1") };
	uaa_mcp_request r = { .struct_size = sizeof r,
			      .op = UAA_MCP_ADD,
			      .timeout_ms = -1,
			      .name = uaa_str_c(" srv "),
			      .command = cmd,
			      .command_count = 2,
			      .server_env = &env,
			      .server_env_count = 1 };
	uaa_mcp_result *m = NULL;
	uaa_error *e = NULL;

	snprintf(record, sizeof record, "%s", uar_test_dir());
	CHECK(mcp(make(CODEX_APP, "", (struct more){ 0 }), "codex", &r, &m, &e) ==
	      UAA_E_UNSUPPORTED_CAPABILITY); /* writing is opt-in */
	uaa_error_unref(e);
	CHECK(mcp(make(CODEX_APP, "", (struct more){ .write = true, .record = record }), "codex",
		  &r, &m, NULL) == UAA_OK);
	uaa_mcp_result_unref(m);
	CHECK(argv_has(record, "srv") && argv_has(record, "KEY=v=1") && argv_has(record, "--") &&
	      argv_has(record, "-v"));
	CHECK(mcp(make(CLAUDE, "", (struct more){ .write = true, .record = record }), "claude_code",
		  &r, &m, NULL) == UAA_OK);
	uaa_mcp_result_unref(m);
	CHECK(argv_has(record, "--transport") && argv_has(record, "stdio"));
	r.url = uaa_str_c("http://127.0.0.1/x"); /* both */
	CHECK(mcp(make(CODEX_APP, "", (struct more){ .write = true }), "codex", &r, &m, NULL) ==
	      UAA_E_INVALID_REQUEST);
	r.command_count = 0;
	r.url = uaa_str_c("ftp://x");
	CHECK(mcp(make(CODEX_APP, "", (struct more){ .write = true }), "codex", &r, &m, NULL) ==
	      UAA_E_INVALID_REQUEST);
	r.url = uaa_str_c("https://x/y");
	r.bearer_token_env_var = uaa_str_c("1BAD");
	CHECK(mcp(make(CODEX_APP, "", (struct more){ .write = true }), "codex", &r, &m, NULL) ==
	      UAA_E_INVALID_REQUEST);
	r.bearer_token_env_var = uaa_str_c("TOKEN");
	CHECK(mcp(make(CLAUDE, "", (struct more){ .write = true }), "claude_code", &r, &m, NULL) ==
	      UAA_E_INVALID_REQUEST);
	r.op = UAA_MCP_GET;
	r.name = uaa_str_c(" ");
	CHECK(mcp(make(CODEX_APP, "", (struct more){ 0 }), "codex", &r, &m, NULL) ==
	      UAA_E_INVALID_REQUEST);
	CHECK(mcp(make(CLAUDE, "", (struct more){ 0 }), "claude_code", &r, &m, NULL) ==
	      UAA_E_UNSUPPORTED_CAPABILITY);
}
