/* record_test.h - backends whose agent writes down how it was started, and how to read that. */
#ifndef UAR_BACKEND_RECORD_TEST_H
#define UAR_BACKEND_RECORD_TEST_H

#include "backend/cli_test.h"

#define NI   "agent_api.exec.non_interactive"
#define EXT  "agent_api.exec.external_sandbox.v1"
#define MOD  "agent_api.config.model.v1"
#define DIR_ "agent_api.exec.add_dirs.v1"
#define RES  "agent_api.session.resume.v1"
#define FRK  "agent_api.session.fork.v1"
#define POL  "backend.codex.exec.approval_policy"
#define BOX  "backend.codex.exec.sandbox_mode"

static inline uaa_backend *recorder(enum which w, const char *script, const char *record)
{
	uaa_env_pair env[] = { { uaa_str_c("FAKE_DO"), uaa_str_c(script) },
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
static inline uar_str recorded(const char *dir, const char *name, struct uar_buf *b)
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

static inline bool has_line(uar_str text, const char *want)
{
	while (text.n)
		if (uar_str_is(uar_str_cut(text, '\n', &text), want))
			return true;
	return false;
}

/* Both lines, the second right behind the first. */
static inline bool has_pair(uar_str text, const char *a, const char *b)
{
	while (text.n)
		if (uar_str_is(uar_str_cut(text, '\n', &text), a)) {
			uar_str rest;

			if (uar_str_is(uar_str_cut(text, '\n', &rest), b))
				return true;
		}
	return false;
}

/* The command line of a good run. */
static inline uar_str args_of(enum which who, uaa_request *r, const char *record, struct uar_buf *b)
{
	const char *script =
		who == CODEX_EXEC ? "stdin\nline {\"type\":\"turn.completed\"}" : "stdin\nresult";
	struct seen *s = run_on(recorder(who, script, record), r);

	CHECK_INT(s->status, UAA_OK);
	seen_fini(s);
	return recorded(record, "argv", b);
}

#endif
