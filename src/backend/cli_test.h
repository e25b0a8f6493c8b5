/* cli_test.h - runs of the real backends against the fake CLI, collected whole. */
#ifndef UAR_BACKEND_CLI_TEST_H
#define UAR_BACKEND_CLI_TEST_H

#include "test.h"

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "backend/child.h"

static inline const char *fixture(const char *name)
{
	static char path[4][1400];
	static char cwd[1024];
	static int turn;

	if (!cwd[0] && !getcwd(cwd, sizeof cwd))
		cwd[0] = 0;
	turn = (turn + 1) % 4;
	snprintf(path[turn], sizeof path[turn], "%s/tests/fixtures/backend/%s", cwd, name);
	return path[turn];
}

static inline uaa_process_options *quick(void)
{
	static uaa_process_options o;

	o = (uaa_process_options){ .struct_size = sizeof o,
				   .supervisor = uaa_str_c(uar_test_built("agent-api-supervisor")),
				   .interrupt_ms = 200,
				   .terminate_ms = 300,
				   .kill_ms = 20000,
				   .after_result_ms = 20000 };
	return &o;
}

static inline const char *strcat_path(const char *dir, const char *name)
{
	static char path[1400];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	return path;
}

/* --- what a run gave --- */

struct seen {
	uaa_event *ev[4096];
	int n;
	uaa_status status;
	uaa_completion *completion;
	uaa_error *error;
};

static inline void see(void *ctx, const uaa_event *ev)
{
	struct seen *s = ctx;

	if (s->n < (int)ARRAY_LEN(s->ev))
		s->ev[s->n++] = uaa_event_ref((uaa_event *)ev);
}

static inline void seen_fini(struct seen *s)
{
	for (int i = 0; i < s->n; i++)
		uaa_event_unref(s->ev[i]);
	uaa_completion_unref(s->completion);
	uaa_error_unref(s->error);
	free(s);
}

static inline bool contains(uaa_str where, const char *what)
{
	return where.ptr && memmem(where.ptr, where.len, what, strlen(what)) != NULL;
}

/* Strings that must never come out: the canaries of fixtures and scripts. */
static inline void check_secret(uaa_str s, const char *where)
{
	static const char *const canaries[] = { "SECRET",	    "sk-dummy", "sk-ant",
						"http://127.0.0.1", "api_key",	"x-api-key",
						"/tmp/outside",	    "echo hi",	"hello file" };

	for (size_t i = 0; i < ARRAY_LEN(canaries); i++)
		CHECK_MSG(!contains(s, canaries[i]), "%s leaks %s: %.*s", where, canaries[i],
			  (int)s.len, s.ptr);
}

static inline bool one_of(uar_str s, const char *const *words)
{
	while (*words && !uar_str_is(s, *words))
		words++;
	return *words != NULL;
}

static inline bool null_or_text(const struct uar_json *v)
{
	return v && (v->kind == UAR_JSON_NULL || (v->kind == UAR_JSON_STRING && v->text.n));
}

static inline uar_str word_of(const struct uar_json *j, const char *key)
{
	return uar_json_str(uar_json_get(j, uar_str_c(key)), UAR_STR_NONE);
}

static inline bool tool_ok(const struct uar_json *tool, bool call)
{
	static const char *const texts[] = { "backend_item_id", "thread_id", "turn_id", "tool_name",
					     "tool_use_id" };
	static const char *const calls[] = { "start", "delta", NULL };
	static const char *const results[] = { "complete", "fail", NULL };
	static const char *const states[] = { "pending", "running", "completed",
					      "failed",	 "unknown", NULL };
	const struct uar_json *code = uar_json_get(tool, UAR_STR("exit_code"));
	bool ok = code && (code->kind == UAR_JSON_NULL || code->kind == UAR_JSON_INT);

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		ok = ok && null_or_text(uar_json_get(tool, uar_str_c(texts[i])));
	return ok && word_of(tool, "kind").n && one_of(word_of(tool, "status"), states) &&
	       one_of(word_of(tool, "phase"), call ? calls : results);
}

/* Every member of the facet, and nothing besides. */
static inline bool facet_ok(const struct uar_json *j, bool call)
{
	static const char *const sums[] = { "stdout", "stderr", "diff", "result" };
	const struct uar_json *tool = uar_json_get(j, UAR_STR("tool"));
	const struct uar_json *bytes = uar_json_get(tool, UAR_STR("bytes"));
	bool ok = bytes && j->count == 2 && tool->count == 10 && bytes->count == 4;

	for (size_t i = 0; i < ARRAY_LEN(sums); i++)
		ok = ok && uar_json_int(uar_json_get(bytes, uar_str_c(sums[i])), -1) >= 0;
	return ok && uar_str_is(word_of(j, "schema"), "agent_api.tools.structured.v1") &&
	       tool_ok(tool, call);
}

static inline void check_facet(uaa_str data, bool call)
{
	const struct uar_json *j = NULL;
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	CHECK_MSG(data.ptr && uar_json_parse(uab_str(data), NULL, &arena, &j, NULL) == UAR_OK &&
			  facet_ok(j, call),
		  "not a facet: %.*s", (int)data.len, data.ptr ? data.ptr : "");
	uar_arena_fini(&arena);
}

/* The rules that hold for every event of every backend. */
static inline void check_event(const uaa_event *ev)
{
	uaa_event_kind k = uaa_event_get_kind(ev);
	uaa_str text = uaa_event_text(ev), message = uaa_event_message(ev);
	uaa_str data = uaa_event_data_json(ev);

	CHECK((text.ptr != NULL) == (k == UAA_EV_TEXT_OUTPUT));
	CHECK(k != UAA_EV_TEXT_OUTPUT || !message.ptr);
	CHECK((k != UAA_EV_ERROR && k != UAA_EV_STATUS) || message.ptr);
	CHECK(text.len <= UAA_MAX_TEXT && message.len <= UAA_MAX_MESSAGE);
	CHECK(data.len <= UAA_MAX_DATA && uaa_event_channel(ev).len <= UAA_MAX_CHANNEL);
	CHECK(k != UAA_EV_UNKNOWN || !uaa_event_channel(ev).ptr);
	check_secret(message, "message");
	check_secret(data, "data");
	if (k == UAA_EV_TOOL_CALL || k == UAA_EV_TOOL_RESULT)
		check_facet(data, k == UAA_EV_TOOL_CALL);
}

static inline struct seen *collect(uaa_run *run)
{
	struct seen *s = calloc(1, sizeof *s);
	uaa_run_result r = { 0 };
	int errors = 0;

	s->status = uaa_run_collect(run, see, s, &r, &s->error);
	s->completion = r.completion;
	for (int i = 0; i < s->n; i++)
		check_event(s->ev[i]);
	for (int i = 0; s->error && i < s->n; i++) /* the error's text, once and last */
		errors += uaa_event_get_kind(s->ev[i]) == UAA_EV_ERROR &&
			  uar_str_eq(uab_str(uaa_event_message(s->ev[i])),
				     uab_str(uaa_error_message(s->error)));
	if (s->error && s->n < (int)ARRAY_LEN(s->ev) &&
	    !contains(uaa_error_message(s->error), "cancelled") &&
	    !contains(uaa_error_message(s->error), "termination failed"))
		CHECK_INT(errors, 1);
	if (s->error)
		check_secret(uaa_error_display(s->error), "error");
	if (s->completion) {
		check_secret(uaa_completion_data_json(s->completion), "completion");
	}
	uaa_run_unref(run);
	return s;
}

static inline int count(const struct seen *s, uaa_event_kind kind, const char *message)
{
	int n = 0;

	for (int i = 0; i < s->n; i++)
		n += uaa_event_get_kind(s->ev[i]) == kind &&
		     (!message || contains(uaa_event_message(s->ev[i]), message));
	return n;
}

/* Events that carry the session; nothing but a Status may. */
static inline int with_session(const struct seen *s, const char *id)
{
	char want[1200];
	int n = 0;

	snprintf(want, sizeof want,
		 "{\"schema\":\"agent_api.session.handle.v1\",\"session\":{\"id\":\"%s\"}}",
		 id ? id : "");
	for (int i = 0; i < s->n; i++) {
		uaa_str data = uaa_event_data_json(s->ev[i]);

		if (!contains(data, "agent_api.session.handle"))
			continue;
		n++;
		CHECK_INT(uaa_event_get_kind(s->ev[i]), UAA_EV_STATUS);
		if (id)
			CHECK_STR(uab_str(data), want);
	}
	return n;
}

/* All text in order, into one buffer. */
static inline uar_str all_text(const struct seen *s, struct uar_buf *b)
{
	uar_buf_clear(b);
	for (int i = 0; i < s->n; i++)
		uar_buf_add_str(b, uab_str(uaa_event_text(s->ev[i])));
	return uar_buf_str(b);
}

/* What the words of a failure mean to a program. */
static inline uaa_cause cause_in(const char *message)
{
	static const struct {
		const char *part;
		uaa_cause cause;
	} rows[] = {
		{ "cancelled", UAA_CAUSE_CANCELLED },
		{ "timeout", UAA_CAUSE_TIMEOUT },
		{ "authentication failed", UAA_CAUSE_AUTH },
		{ "rate limited", UAA_CAUSE_RATE },
		{ "model rejected", UAA_CAUSE_MODEL },
		{ "context window", UAA_CAUSE_CONTEXT },
		{ "max turns", UAA_CAUSE_TURNS },
		{ "provider error", UAA_CAUSE_PROVIDER },
		{ "turn failed", UAA_CAUSE_TURN },
		{ "session not found", UAA_CAUSE_NO_SESSION },
		{ "no session found", UAA_CAUSE_NO_SESSION },
		{ "session in use", UAA_CAUSE_SESSION_IN_USE },
		{ "program not found", UAA_CAUSE_NO_PROGRAM },
		{ "spawn failed: working directory", UAA_CAUSE_NO_DIRECTORY },
		{ "exited non-zero", UAA_CAUSE_CRASH },
		{ "ended by signal", UAA_CAUSE_CRASH },
		{ "stream ended without result", UAA_CAUSE_CRASH },
		{ "termination failed", UAA_CAUSE_TERMINATION },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (strstr(message, rows[i].part))
			return rows[i].cause;
	return UAA_CAUSE_UNKNOWN;
}

static inline void check_error(const struct seen *s, const char *message)
{
	CHECK_INT(s->status, UAA_E_BACKEND);
	if (s->error)
		CHECK_STR(uab_str(uaa_error_message(s->error)), message);
	CHECK_INT(uaa_error_cause(s->error), cause_in(message));
}

/* Until the agent is gone, whoever reads or does not. */
static inline void wait_done(uaa_run *run)
{
	bool done = false;

	while (!done) {
		sched_yield();
		pthread_mutex_lock(&run->mu);
		done = run->done;
		pthread_mutex_unlock(&run->mu);
	}
}

/* --- processes and descriptors --- */

static inline int open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* What the fakes of this test program carry in their environment. */
static inline const char *mark(void)
{
	static char text[40];
	const char *given = getenv("TEST_MARK"); /* of the program that started this one */

	if (!text[0] && given)
		snprintf(text, sizeof text, "FAKE_MARK=%.20s", given);
	else if (!text[0])
		snprintf(text, sizeof text, "FAKE_MARK=%ld", (long)getpid());
	return text;
}

static inline uaa_env_pair mark_pair(void)
{
	return (uaa_env_pair){ uaa_str_c("FAKE_MARK"), uaa_str_c(mark() + 10) };
}

/* Processes of this user that carry the mark in their environment. */
static inline int marked(const char *what)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	int n = 0;

	while ((e = readdir(d))) {
		char path[300];
		static char env[65536];
		FILE *f;
		size_t k;

		if (e->d_name[0] < '1' || e->d_name[0] > '9')
			continue;
		snprintf(path, sizeof path, "/proc/%s/environ", e->d_name);
		f = fopen(path, "r");
		if (!f)
			continue;
		k = fread(env, 1, sizeof env, f);
		fclose(f);
		n += memmem(env, k, what, strlen(what) + 1) != NULL;
	}
	closedir(d);
	return n;
}

/* Children of this process, dead or alive. */
static inline int children(void)
{
	char path[64];
	FILE *f;
	int n = 0;
	long pid;
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;

	while ((e = readdir(d))) {
		snprintf(path, sizeof path, "/proc/self/task/%.20s/children", e->d_name);
		f = fopen(path, "r");
		while (f && fscanf(f, "%ld", &pid) == 1)
			n++;
		if (f)
			fclose(f);
	}
	closedir(d);
	return n;
}

/* The first of them: the supervisor of the only run. */
static inline pid_t only_child(void)
{
	char path[64];
	long pid = 0;
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;

	while ((e = readdir(d)) && !pid) {
		FILE *f;

		snprintf(path, sizeof path, "/proc/self/task/%.20s/children", e->d_name);
		f = fopen(path, "r");
		if (f && fscanf(f, "%ld", &pid) != 1)
			pid = 0;
		if (f)
			fclose(f);
	}
	closedir(d);
	return (pid_t)pid;
}

/* How many children the process has. */
static inline int children_of(pid_t pid)
{
	char path[64];
	long child;
	int n = 0;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
	f = fopen(path, "r");
	while (f && fscanf(f, "%ld", &child) == 1)
		n++;
	if (f)
		fclose(f);
	return n;
}

static inline void kill_marked(const char *what)
{
	DIR *d = opendir("/proc");
	struct dirent *e;

	while ((e = readdir(d))) {
		char path[300];
		static char env[65536];
		FILE *f;
		size_t k;

		snprintf(path, sizeof path, "/proc/%s/environ", e->d_name);
		f = e->d_name[0] >= '1' && e->d_name[0] <= '9' ? fopen(path, "r") : NULL;
		k = f ? fread(env, 1, sizeof env, f) : 0;
		if (f)
			fclose(f);
		if (memmem(env, k, what, strlen(what) + 1))
			kill((pid_t)strtol(e->d_name, NULL, 10), SIGKILL);
	}
	closedir(d);
}

/* Again and again: a process that was just forking is missed. */
static inline void until_none_is_marked(const char *what)
{
	while (marked(what)) {
		kill_marked(what);
		sched_yield();
	}
}

/* May control groups be made here? */
static inline bool has_groups(void)
{
	char parent[UAB_CGROUP_PATH], group[UAB_CGROUP_PATH];
	bool has;

	uab_cgroup_parent(UAB_NONE, parent);
	uab_cgroup_make(parent, group);
	has = group[0] != 0;
	uab_cgroup_remove(group);
	return has;
}

static inline int rounds(int usual)
{
	const char *n = getenv("AGENT_API_ROUNDS");
	uint64_t v;

	return n && uar_str_u64(uar_str_c(n), &v) == UAR_OK ? (int)v : usual;
}

/* --- requests --- */

static inline uaa_request *ask(const char *prompt)
{
	uaa_request *r = uaa_request_new();

	uaa_request_set_prompt(r, uaa_str_c(prompt));
	return r;
}

static inline void with(uaa_request *r, const char *key, const char *json)
{
	CHECK(uaa_request_set_extension_json(r, uaa_str_c(key), uaa_str_c(json)) == UAA_OK);
}

static inline uaa_backend *claude_doing(const char *script, const char *record,
					uaa_process_options *o)
{
	uaa_env_pair env[] = { { uaa_str_c("FAKE_DO"), uaa_str_c(script) },
			       mark_pair(),
			       { uaa_str_c("FAKE_RECORD"), uaa_str_c(record ? record : "") } };
	uaa_claude_code_config c = { .struct_size = sizeof c,
				     .binary = uaa_str_c(uar_test_built("fake-cli")),
				     .env = env,
				     .env_count = record ? 3 : 2,
				     .process = o ? o : quick() };
	uaa_backend *b = uaa_claude_code_backend_new(&c);

	CHECK(b != NULL);
	return b;
}

/* Runs the request (or "hi") on the backend, gives both back. */
static inline struct seen *run_on(uaa_backend *b, uaa_request *r)
{
	uaa_run *run = NULL;
	uaa_error *e = NULL;
	struct seen *s;

	if (!r)
		r = ask("hi");
	if (b && uaa_backend_run(b, r, &run, &e) == UAA_OK) {
		s = collect(run);
	} else {
		s = calloc(1, sizeof *s);
		s->error = e;
		s->status = uaa_error_code(e);
	}
	uaa_request_unref(r);
	uaa_backend_unref(b);
	return s;
}

static inline struct seen *claude(const char *script)
{
	return run_on(claude_doing(script, NULL, NULL), NULL);
}

/* --- any backend, with a script --- */

enum which { CODEX_APP, CODEX_EXEC, ACP, CLAUDE };

struct more {
	const char *home, *record;
	bool write; /* MCP writes */
	uaa_process_options *process;
};

static inline uaa_backend *make(enum which who, const char *script, struct more m)
{
	uaa_env_pair env[] = { { uaa_str_c("FAKE_DO"), uaa_str_c(script) },
			       mark_pair(),
			       { uaa_str_c("FAKE_RECORD"), uaa_str_c(m.record ? m.record : "") } };
	uaa_str binary = uaa_str_c(uar_test_built("fake-cli"));
	uaa_process_options *o = m.process ? m.process : quick();
	size_t n = m.record ? 3 : 2;
	uaa_codex_config cx = { .struct_size = sizeof cx,
				.binary = binary,
				.env = env,
				.env_count = n,
				.transport = who == CODEX_EXEC ? UAA_CODEX_EXEC : UAA_CODEX_AUTO,
				.allow_mcp_write = m.write,
				.process = o };
	uaa_claude_code_config cc = { .struct_size = sizeof cc,
				      .binary = binary,
				      .env = env,
				      .env_count = n,
				      .claude_home = uaa_str_c(m.home),
				      .allow_mcp_write = m.write,
				      .process = o };
	uaa_acp_config ac = { .struct_size = sizeof ac,
			      .binary = binary,
			      .env = env,
			      .env_count = n,
			      .can_resume = true,
			      .can_fork = true,
			      .can_add_dirs = true,
			      .process = o };

	return who == ACP      ? uaa_acp_backend_new(&ac)
	       : who == CLAUDE ? uaa_claude_code_backend_new(&cc)
			       : uaa_codex_backend_new(&cx);
}

static inline int argv_has(const char *record, const char *want)
{
	FILE *f = fopen(strcat_path(record, "argv"), "r");
	char line[2000];
	int n = 0;

	while (f && fgets(line, sizeof line, f)) {
		line[strcspn(line, "\n")] = 0;
		n += strcmp(line, want) == 0;
	}
	if (f)
		fclose(f);
	return n;
}

static inline uaa_run *start_run(const char *script, uaa_process_options *o, int64_t timeout_ms)
{
	uaa_backend *b = claude_doing(script, NULL, o);
	uaa_request *r = ask("hi");
	uaa_run *run = NULL;

	if (timeout_ms)
		uaa_request_set_timeout_ms(r, timeout_ms);
	CHECK(uaa_backend_run(b, r, &run, NULL) == UAA_OK);
	uaa_request_unref(r);
	uaa_backend_unref(b);
	return run;
}

static inline void first_event(uaa_run *run)
{
	uaa_event *ev;

	CHECK(uaa_run_next(run, -1, &ev) == UAA_OK);
	uaa_event_unref(ev);
}

#endif
