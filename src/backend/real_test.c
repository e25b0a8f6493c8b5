/* real_test.c - the real agents, offline, against a toy model on loopback.
 *
 * tools/npm-get installs them once. Where that is impossible the tests are skipped
 * and say why; AGENT_API_REAL=0 turns them off.
 * time limit: 240 s, real agents take seconds to start and may have to be installed */
#include "backend/cli_test.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>

static struct {
	bool tried;
	char why[200]; /* not empty: skip */
	char modules[1100], node[1100];
	const char *arch;
	int port;
	pid_t model;
} rig;

/* --- installing --- */

/* Starts a program and reads what it prints. */
static FILE *start_and_read(const char *const argv[], pid_t *out_pid)
{
	FILE *f;
	int p[2];

	if (pipe2(p, O_CLOEXEC))
		return NULL;
	*out_pid = fork();
	if (*out_pid == 0) {
		dup2(p[1], 1);
		execvp(argv[0], (char *const *)argv);
		_exit(9);
	}
	close(p[1]);
	f = fdopen(p[0], "r");
	if (!f)
		close(p[0]);
	return f;
}

/* The path that a tool prints; false with its reason in rig.why. */
static bool find_path(const char *command, char *out, size_t size)
{
	const char *const argv[] = { "sh", "-c", command, NULL };
	char line[1000] = "it said nothing";
	pid_t pid = -1;
	int status = -1;
	FILE *f = start_and_read(argv, &pid);

	if (f && fgets(line, sizeof line, f))
		line[strcspn(line, "\n")] = 0;
	if (pid > 0)
		waitpid(pid, &status, 0);
	if (f)
		fclose(f);
	if (status)
		snprintf(rig.why, sizeof rig.why, "%.190s", line);
	else
		snprintf(out, size, "%s", line);
	return status == 0;
}

static bool install(void)
{
	return find_path("exec tools/npm-get agents 2>&1", rig.modules, sizeof rig.modules) &&
	       find_path("exec tools/node --where 2>&1", rig.node, sizeof rig.node);
}

static void start_model(void)
{
	const char *const argv[] = { rig.node, "tests/fixtures/toy_model_server.mjs", "0", NULL };
	FILE *f = start_and_read(argv, &rig.model);

	if (!f || fscanf(f, "listening %d", &rig.port) != 1)
		rig.port = 0;
	if (f)
		fclose(f);
}

static void stop_model(void)
{
	if (rig.model > 0)
		kill(rig.model, SIGKILL);
}

/* Why the agents cannot run here; NULL when they may. */
static const char *obstacle(void)
{
	const char *off = getenv("AGENT_API_REAL");
	struct utsname u;

	uname(&u);
	rig.arch = strcmp(u.machine, "x86_64") == 0 ? "x64" : NULL;
	if (!off && UAR_TEST_SANITIZED)
		return "they run in the plain build; AGENT_API_REAL=1 runs them in this one";
	if (off && strcmp(off, "0") == 0)
		return "turned off by AGENT_API_REAL=0";
	if (!rig.arch)
		return "no recorded agents for this processor";
	return getenv("XDG_CACHE_HOME") || getenv("HOME") ? NULL : "no HOME to keep the agents in";
}

static void prepare(void)
{
	const char *why = obstacle();

	rig.tried = true;
	if (!why && !install())
		why = rig.why;
	if (!why) {
		start_model();
		atexit(stop_model);
		why = rig.port ? NULL : "the toy model did not start";
	}
	if (why != rig.why)
		snprintf(rig.why, sizeof rig.why, "%s", why ? why : "");
}

static bool ready(void)
{
	if (!rig.tried)
		prepare();
	if (rig.why[0])
		uar_test_skip("%s", rig.why);
	return !rig.why[0];
}

/* --- agents --- */

enum agent { REAL_CLAUDE, REAL_CODEX, REAL_CODEX_EXEC, REAL_ACP };

struct place {
	char home[600], work[600], mark[640];
};

static struct place new_place(void)
{
	struct place p;

	snprintf(p.home, sizeof p.home, "%s", uar_test_dir());
	snprintf(p.work, sizeof p.work, "%s", uar_test_dir());
	snprintf(p.mark, sizeof p.mark, "HOME=%s", p.home);
	return p;
}

static void write_codex_config(const struct place *p, const char *scenario)
{
	FILE *f = fopen(strcat_path(p->home, "config.toml"), "w");

	fprintf(f,
		"model = \"toy-model\"\nmodel_provider = \"toy\"\n"
		"check_for_update_on_startup = false\n[analytics]\nenabled = false\n"
		"[features]\nplugins = false\napps = false\n[model_providers.toy]\nname = \"toy\"\n"
		"base_url = \"http://127.0.0.1:%d/%s/v1\"\nenv_key = \"TOY_API_KEY\"\n"
		"wire_api = \"responses\"\nrequest_max_retries = 0\nstream_max_retries = 0\n"
		"[shell_environment_policy]\ninherit = \"core\"\n",
		rig.port, scenario);
	fclose(f);
}

static uaa_backend *agent(enum agent who, const struct place *p, const char *scenario,
			  const char *mode)
{
	static char url[100], path[4][1300];
	uaa_env_pair env[] = {
		{ uaa_str_c("HOME"), uaa_str_c(p->home) },
		{ uaa_str_c("CLAUDE_CONFIG_DIR"), uaa_str_c(p->home) },
		{ uaa_str_c("CODEX_HOME"), uaa_str_c(p->home) },
		{ uaa_str_c("ANTHROPIC_BASE_URL"), uaa_str_c(url) },
		{ uaa_str_c("ANTHROPIC_API_KEY"), uaa_str_c("sk-ant-dummy-0000") },
		{ uaa_str_c("TOY_API_KEY"), uaa_str_c("sk-dummy-0000") },
		{ uaa_str_c("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"), uaa_str_c("1") },
		{ uaa_str_c("DISABLE_AUTOUPDATER"), uaa_str_c("1") },
		{ uaa_str_c("CLAUDE_CODE_MAX_RETRIES"), uaa_str_c("0") },
		{ uaa_str_c("IS_SANDBOX"), uaa_str_c("1") },
	};
	uaa_process_options o = { .struct_size = sizeof o,
				  .supervisor = uaa_str_c(uar_test_built("agent-api-supervisor")) };
	uaa_str args[] = { uaa_str_c(path[2]) };
	uaa_claude_code_config cc = { .struct_size = sizeof cc,
				      .binary = uaa_str_c(path[0]),
				      .env = env,
				      .env_count = ARRAY_LEN(env),
				      .default_working_dir = uaa_str_c(p->work),
				      .permission_mode = uaa_str_c(mode),
				      .process = &o,
				      .report_hooks = true };
	uaa_codex_config cx = { .struct_size = sizeof cx,
				.binary = uaa_str_c(path[1]),
				.env = env,
				.env_count = ARRAY_LEN(env),
				.default_working_dir = uaa_str_c(p->work),
				.transport =
					who == REAL_CODEX_EXEC ? UAA_CODEX_EXEC : UAA_CODEX_AUTO,
				.allow_mcp_write = true,
				.process = &o };
	uaa_acp_config ac = { .struct_size = sizeof ac,
			      .binary = uaa_str_c(rig.node),
			      .args = args,
			      .arg_count = 1,
			      .env = env,
			      .env_count = ARRAY_LEN(env),
			      .default_working_dir = uaa_str_c(p->work),
			      .can_resume = true,
			      .can_fork = true,
			      .process = &o };

	snprintf(url, sizeof url, "http://127.0.0.1:%d/%s", rig.port, scenario);
	env[3].value = uaa_str_c(url);
	snprintf(path[0], sizeof path[0], "%s/@anthropic-ai/claude-code-linux-%s/claude",
		 rig.modules, rig.arch);
	snprintf(path[1], sizeof path[1],
		 "%s/@openai/codex-linux-%s/vendor/x86_64-unknown-linux-musl/bin/codex",
		 rig.modules, rig.arch);
	snprintf(path[2], sizeof path[2], "%s/@agentclientprotocol/claude-agent-acp/dist/index.js",
		 rig.modules);
	cc.binary = uaa_str_c(path[0]);
	cx.binary = uaa_str_c(path[1]);
	args[0] = uaa_str_c(path[2]);
	write_codex_config(p, scenario);
	return who == REAL_CLAUDE ? uaa_claude_code_backend_new(&cc)
	       : who == REAL_ACP  ? uaa_acp_backend_new(&ac)
				  : uaa_codex_backend_new(&cx);
}

static void explain(const struct seen *s)
{
	if (s->error)
		printf("  %.*s\n", (int)uaa_error_display(s->error).len,
		       uaa_error_display(s->error).ptr);
}

static void ends_ok(struct seen *s, const char *text)
{
	struct uar_buf b = uar_buf_make(1 << 20);

	CHECK_INT(s->status, UAA_OK);
	explain(s);
	if (text)
		CHECK_STR(all_text(s, &b), text);
	uar_buf_fini(&b);
}

/* --- one run each --- */

static void hello(enum agent who)
{
	struct place p = new_place();
	struct seen *s;

	if (!ready())
		return;
	s = run_on(agent(who, &p, "hello", NULL), NULL);
	ends_ok(s, "hello");
	CHECK(s->completion &&
	      contains(uaa_completion_data_json(s->completion), "agent_api.session.handle.v1"));
	CHECK_INT(marked(p.mark), 0);
	seen_fini(s);
}

static void tool(enum agent who)
{
	struct place p = new_place();
	struct seen *s;

	if (!ready())
		return;
	s = run_on(agent(who, &p, "tool", "bypassPermissions"), NULL);
	ends_ok(s, "I will run a command.The command finished.");
	CHECK_INT(count(s, UAA_EV_TOOL_CALL, NULL) >= 1, 1);
	CHECK_INT(count(s, UAA_EV_TOOL_RESULT, NULL), 1);
	seen_fini(s);
}

static void errors(enum agent who, const char *e401, const char *e500)
{
	struct place p = new_place();
	struct seen *s;

	if (!ready())
		return;
	s = run_on(agent(who, &p, "err401", NULL), NULL);
	check_error(s, e401);
	seen_fini(s);
	s = run_on(agent(who, &p, "err500", NULL), NULL);
	check_error(s, e500);
	seen_fini(s);
}

/* In a tool that needs a permission: allow it, then cancel. */
static void cancel_allowed(enum agent who, const char *scenario)
{
	struct place p = new_place();
	uaa_backend *b;
	uaa_request *r;
	uaa_run *run = NULL;
	uaa_event *ev;
	bool granted = false;
	struct seen *s;

	if (!ready())
		return;
	r = ask("hi");
	b = agent(who, &p, scenario, NULL);
	with(r, "agent_api.exec.non_interactive", "false");
	CHECK(uaa_backend_run(b, r, &run, NULL) == UAA_OK);
	while (!granted && uaa_run_next(run, -1, &ev) == UAA_OK) {
		uaa_str data = uaa_event_data_json(ev);
		const char *at = data.ptr ? strstr(data.ptr, "\"approval\":{\"id\":\"") : NULL;

		if (at)
			uaa_run_respond(
				run, uab_pub(uar_str_cut(uar_str_c(at + 18), '"', &(uar_str){ 0 })),
				UAA_DECISION_ALLOW, NULL);
		granted = contains(uaa_event_message(ev), "permission granted");
		uaa_event_unref(ev);
	}
	CHECK(granted);
	uab_cancel(run);
	s = collect(run);
	check_error(s, "cancelled");
	CHECK_INT(marked(p.mark), 0);
	seen_fini(s);
	uaa_request_unref(r);
	uaa_backend_unref(b);
}

static void cancel(enum agent who, const char *scenario, uaa_event_kind until)
{
	struct place p = new_place();
	uaa_backend *b;
	uaa_request *r;
	uaa_run *run = NULL;
	uaa_event *ev;
	uaa_event_kind k = UAA_EV_UNKNOWN;
	struct seen *s;

	if (!ready())
		return;
	r = ask("hi");
	b = agent(who, &p, scenario, "bypassPermissions");
	CHECK(uaa_backend_run(b, r, &run, NULL) == UAA_OK);
	while (k != until && uaa_run_next(run, -1, &ev) == UAA_OK) {
		k = uaa_event_get_kind(ev);
		uaa_event_unref(ev);
	}
	CHECK_INT(k, until);
	uab_cancel(run);
	s = collect(run);
	check_error(s, "cancelled");
	CHECK_INT(marked(p.mark), 0);
	seen_fini(s);
	uaa_request_unref(r);
	uaa_backend_unref(b);
}

static void approval(enum agent who, uaa_decision d, const char *policy)
{
	struct place p = new_place();
	uaa_backend *b;
	uaa_request *r;
	uaa_run *run = NULL;
	uaa_event *ev;
	int asked = 0, granted = 0, failed = 0;
	uaa_status st;
	uaa_error *e = NULL;

	if (!ready())
		return;
	r = ask("hi");
	b = agent(who, &p, policy ? "tool" : "write", NULL);
	with(r, "agent_api.exec.non_interactive", "false");
	if (policy)
		with(r, "backend.codex.exec.approval_policy", policy);
	CHECK(uaa_backend_run(b, r, &run, NULL) == UAA_OK);
	while (uaa_run_next(run, -1, &ev) == UAA_OK) {
		uaa_str data = uaa_event_data_json(ev);
		const char *at = data.ptr ? strstr(data.ptr, "\"approval\":{\"id\":\"") : NULL;

		if (at) {
			uar_str id = uar_str_cut(uar_str_c(at + 18), '"', &(uar_str){ 0 });

			asked++;
			CHECK(uaa_run_respond(run, uab_pub(id), d, NULL) == UAA_OK);
		}
		granted += contains(uaa_event_message(ev), "permission granted");
		failed += contains(data, "\"phase\":\"fail\"");
		uaa_event_unref(ev);
	}
	st = uaa_run_collect(run, NULL, NULL, NULL, &e);
	CHECK_INT(st, UAA_OK);
	CHECK_INT(asked, 1);
	CHECK_INT(granted, d == UAA_DECISION_ALLOW);
	CHECK_INT(failed, d == UAA_DECISION_DENY);
	if (e)
		printf("  %s\n", uaa_error_display(e).ptr);
	uaa_error_unref(e);
	uaa_run_unref(run);
	uaa_request_unref(r);
	uaa_backend_unref(b);
}

static void session_of(const struct seen *s, char out[100])
{
	uaa_str data = s->completion ? uaa_completion_data_json(s->completion) : UAB_NONE;
	const char *at = data.ptr ? strstr(data.ptr, "\"session\":{\"id\":\"") : NULL;
	uar_str id = at ? uar_str_cut(uar_str_c(at + 17), '"', &(uar_str){ 0 }) : UAR_STR("none");

	snprintf(out, 100, "%.*s", UAR_FMT(id));
}

static struct seen *again(enum agent who, const struct place *p, const char *key, const char *id)
{
	uaa_request *r = ask("again");
	char json[200];

	if (id)
		snprintf(json, sizeof json, "{\"selector\":\"id\",\"id\":\"%s\"}", id);
	else
		snprintf(json, sizeof json, "{\"selector\":\"last\"}");
	with(r, key, json);
	return run_on(agent(who, p, "hello", NULL), r);
}

static void sessions(enum agent who)
{
	static const char resume[] = "agent_api.session.resume.v1";
	static const char fork_[] = "agent_api.session.fork.v1";
	struct place p = new_place();
	char first[100], id[100];
	struct seen *s;

	if (!ready())
		return;
	s = again(who, &p, resume, NULL);
	check_error(s, "no session found");
	seen_fini(s);
	s = again(who, &p, resume, "00000000-0000-7000-8000-000000000000");
	check_error(s, "session not found");
	seen_fini(s);
	s = run_on(agent(who, &p, "hello", NULL), NULL);
	ends_ok(s, "hello");
	session_of(s, first);
	seen_fini(s);
	s = again(who, &p, resume, first);
	ends_ok(s, "hello");
	session_of(s, id);
	CHECK_STR(uar_str_c(id), first);
	seen_fini(s);
	s = again(who, &p, fork_, first);
	ends_ok(s, "hello");
	session_of(s, id);
	CHECK(strcmp(id, first) != 0);
	seen_fini(s);
	s = again(who, &p, resume, NULL);
	ends_ok(s, "hello");
	seen_fini(s);
}

TEST(real_claude_hello, "LIB-06 LIB-48")
{
	hello(REAL_CLAUDE);
}
TEST(real_claude_tool, "")
{
	tool(REAL_CLAUDE);
}
/* One that says go on, and one that breaks. */
TEST(real_claude_hooks, "")
{
	struct place p = new_place();
	struct seen *s;
	FILE *f;

	if (!ready())
		return;
	f = fopen(strcat_path(p.home, "settings.json"), "w");
	fputs("{\"hooks\":{\"PreToolUse\":[{\"matcher\":\"Bash\",\"hooks\":[{\"type\":"
	      "\"command\",\"command\":\"true\"}]}],\"Stop\":[{\"hooks\":[{\"type\":"
	      "\"command\",\"command\":\"exit 1\"}]}]}}",
	      f);
	fclose(f);
	s = run_on(agent(REAL_CLAUDE, &p, "tool", "bypassPermissions"), NULL);
	ends_ok(s, "I will run a command.The command finished.");
	CHECK_INT(count(s, UAA_EV_STATUS, "hook started"), 2);
	CHECK_INT(count(s, UAA_EV_STATUS, "hook completed"), 1);
	CHECK_INT(count(s, UAA_EV_STATUS, "hook failed"), 1);
	seen_fini(s);
}

TEST(real_claude_errors, "LIB-52")
{
	errors(REAL_CLAUDE, "authentication failed", "provider error: http=500");
}
TEST(real_claude_cancel_in_stream, "LIB-15")
{
	cancel(REAL_CLAUDE, "slow", UAA_EV_TEXT_OUTPUT);
}
TEST(real_claude_cancel_in_tool, "LIB-15")
{
	cancel(REAL_CLAUDE, "sleeptool", UAA_EV_TOOL_CALL);
}
TEST(real_claude_approval_allow, "")
{
	approval(REAL_CLAUDE, UAA_DECISION_ALLOW, NULL);
}
TEST(real_claude_approval_deny, "")
{
	approval(REAL_CLAUDE, UAA_DECISION_DENY, NULL);
}
TEST(real_claude_sessions, "")
{
	sessions(REAL_CLAUDE);
}
TEST(real_codex_hello, "LIB-06 LIB-47")
{
	hello(REAL_CODEX);
	hello(REAL_CODEX_EXEC);
}
TEST(real_codex_tool, "")
{
	tool(REAL_CODEX);
	tool(REAL_CODEX_EXEC);
}
TEST(real_codex_errors, "LIB-52")
{
	errors(REAL_CODEX, "authentication failed", "provider error: server failure");
}
TEST(real_codex_cancel_in_stream, "LIB-15")
{
	cancel(REAL_CODEX, "slow", UAA_EV_TEXT_OUTPUT);
}
TEST(real_codex_cancel_in_tool, "LIB-15")
{
	cancel(REAL_CODEX, "sleeptool", UAA_EV_TOOL_CALL);
	cancel(REAL_CODEX_EXEC, "sleeptool", UAA_EV_TOOL_CALL);
}
TEST(real_codex_approval_allow, "")
{
	approval(REAL_CODEX, UAA_DECISION_ALLOW, "\"untrusted\"");
}
TEST(real_codex_approval_deny, "")
{
	approval(REAL_CODEX, UAA_DECISION_DENY, "\"untrusted\"");
}
TEST(real_codex_sessions, "")
{
	sessions(REAL_CODEX);
	sessions(REAL_CODEX_EXEC);
}
TEST(real_acp_hello, "LIB-06")
{
	hello(REAL_ACP);
}
TEST(real_acp_tool, "")
{
	tool(REAL_ACP);
}
TEST(real_acp_sessions, "")
{
	sessions(REAL_ACP);
}
TEST(real_acp_cancel_in_stream, "LIB-15")
{
	cancel(REAL_ACP, "slow", UAA_EV_TEXT_OUTPUT);
}
TEST(real_acp_cancel_in_tool, "LIB-15")
{
	cancel_allowed(REAL_ACP, "sleeptool");
}
TEST(real_acp_approval_allow, "")
{
	approval(REAL_ACP, UAA_DECISION_ALLOW, NULL);
}
TEST(real_acp_approval_deny, "")
{
	approval(REAL_ACP, UAA_DECISION_DENY, NULL);
}
TEST(real_acp_errors, "LIB-52")
{
	errors(REAL_ACP, "authentication failed",
	       "acp backend error: rpc error: code=-32603 (details redacted)");
}
