/* process_plan.c - what a command is to run in, and what it says: before anything runs. */
#include "tool/process_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECONDS_RUN = 120, FILES = 1024, TASKS = 128 };

/* What a command needs to be one: programs, libraries, and the files that they look up. */
static const uar_str system_roots[] = {
	UAR_STR("/usr"),
	UAR_STR("/bin"),
	UAR_STR("/sbin"),
	UAR_STR("/lib"),
	UAR_STR("/lib32"),
	UAR_STR("/lib64"),
	UAR_STR("/opt"),
	UAR_STR("/proc"),
	UAR_STR("/etc/alternatives"),
	UAR_STR("/etc/ld.so.cache"),
	UAR_STR("/etc/ld.so.conf"),
	UAR_STR("/etc/ld.so.conf.d"),
	UAR_STR("/etc/ld.so.preload"),
	UAR_STR("/etc/passwd"),
	UAR_STR("/etc/group"),
	UAR_STR("/etc/nsswitch.conf"),
	UAR_STR("/etc/host.conf"),
	UAR_STR("/etc/hosts"),
	UAR_STR("/etc/gai.conf"),
	UAR_STR("/etc/resolv.conf"),
	UAR_STR("/etc/protocols"),
	UAR_STR("/etc/services"),
	UAR_STR("/etc/localtime"),
	UAR_STR("/etc/timezone"),
	UAR_STR("/etc/locale.alias"),
	UAR_STR("/etc/terminfo"),
	UAR_STR("/etc/inputrc"),
	UAR_STR("/etc/profile"),
	UAR_STR("/etc/bash.bashrc"),
	UAR_STR("/etc/gitconfig"),
	UAR_STR("/etc/python3"),
	UAR_STR("/etc/python3.11"),
	UAR_STR("/etc/python3.12"),
	UAR_STR("/etc/python3.13"),
	UAR_STR("/etc/perl"),
	UAR_STR("/etc/ssl"),
	UAR_STR("/etc/ca-certificates"),
	UAR_STR("/etc/fonts"),
	UAR_STR("/etc/magic"),
	UAR_STR("/etc/mime.types"),
	UAR_STR("/etc/os-release"),
};

struct planning {
	struct uar_processes *h;
	const struct uar_json *input, *policy;
	struct uar_arena arena;
	struct uar_sandbox s;
	struct uar_sandbox_gaps gaps;
	char dir[PATH_MAX]; /* the workspace without links */
	struct uar_error *error;
};

static const struct uar_json *of(const struct uar_json *j, const char *key)
{
	return uar_json_get(j, uar_str_c(key));
}

static uar_err outside(struct planning *p, uar_str path)
{
	return uar_error_set(p->error, UAR_EFORBIDDEN,
			     "\"%.*s\" is not a folder inside the workspace",
			     UAR_FMT(uar_str_utf8_prefix(path, 120)));
}

/* A folder of the workspace, without links; *out lives in the arena. */
static uar_err inside(struct planning *p, uar_str path, uar_str *out)
{
	uar_str root = uar_str_c(p->dir);
	char text[PATH_MAX], real[PATH_MAX];
	struct stat st;

	if (path.n >= UAR_LIMIT_TOOL_PATH || memchr(path.p, 0, path.n))
		return outside(p, path);
	if (path.n && path.p[0] == '/')
		snprintf(text, sizeof text, "%.*s", UAR_FMT(path));
	else
		snprintf(text, sizeof text, "%.2000s/%.*s", p->dir, UAR_FMT(path));
	if (!realpath(text, real) || !uar_sandbox_covers(&root, 1, uar_str_c(real)) ||
	    stat(real, &st) || !S_ISDIR(st.st_mode))
		return outside(p, path);
	*out = uar_arena_str(&p->arena, uar_str_c(real));
	return out->p ? UAR_OK : UAR_ENOMEM;
}

static uar_err put_roots(struct planning *p, const char *key, uar_str *roots, size_t *count)
{
	const struct uar_json *list = of(p->policy, key);
	uar_err e = UAR_OK;

	for (const struct uar_json *one = list ? list->first : NULL; one && !e; one = one->next) {
		if (*count == UAR_LIMIT_SANDBOX_ROOTS)
			return uar_error_set(p->error, UAR_EFORBIDDEN, "%s names too many folders",
					     key);
		e = inside(p, uar_json_str(one, UAR_STR("")), &roots[*count]);
		*count += !e;
	}
	if (!e && !list)
		roots[(*count)++] = uar_str_c(p->dir);
	return e;
}

static uar_err choose_mode(struct planning *p)
{
	uar_str mode = uar_json_text(p->policy, "mode");
	uar_str network = uar_json_str(of(p->policy, "network"), UAR_STR("none"));
	enum uar_sandbox_mode usual = p->h->widest < UAR_SANDBOX_WORKSPACE_WRITE
					      ? p->h->widest
					      : UAR_SANDBOX_WORKSPACE_WRITE;

	p->s.mode = mode.n ? uar_sandbox_mode_parse(mode) : usual;
	p->s.network = uar_str_is(network, "full");
	if (p->s.mode > p->h->widest)
		return uar_error_set(p->error, UAR_EFORBIDDEN,
				     "the setting process_tools allows commands %s at most",
				     uar_sandbox_mode_name(p->h->widest));
	if (p->s.network && !p->h->network)
		return uar_error_set(p->error, UAR_EFORBIDDEN,
				     "the setting process_network does not allow commands the "
				     "network");
	return UAR_OK;
}

static uar_err choose_roots(struct planning *p)
{
	uar_err e = UAR_OK;

	if (p->s.mode == UAR_SANDBOX_FULL_ACCESS) {
		p->s.read_roots[p->s.read_count++] = UAR_STR("/");
		p->s.write_roots[p->s.write_count++] = UAR_STR("/");
		return UAR_OK;
	}
	if (p->s.mode == UAR_SANDBOX_WORKSPACE_WRITE)
		e = put_roots(p, "write_roots", p->s.write_roots, &p->s.write_count);
	if (!e)
		e = put_roots(p, "read_roots", p->s.read_roots, &p->s.read_count);
	for (size_t i = 0; i < ARRAY_LEN(system_roots) && !e; i++) {
		char path[64];

		snprintf(path, sizeof path, "%.*s", UAR_FMT(system_roots[i]));
		if (p->s.read_count < UAR_LIMIT_SANDBOX_ROOTS && access(path, F_OK) == 0)
			p->s.read_roots[p->s.read_count++] = system_roots[i];
	}
	return e;
}

static int64_t limit(const struct planning *p, const char *key, int64_t usual, int64_t most)
{
	int64_t value = uar_json_int(of(of(p->policy, "limits"), key), usual);

	return value <= 0 || value > most ? usual : value;
}

static void choose_limits(struct planning *p, bool starts)
{
	int64_t usual = starts ? UAR_LIMIT_PROCESS_SECONDS : SECONDS_RUN;
	double seconds = uar_json_double(of(p->input, "timeout_seconds"), (double)usual);
	int64_t most = limit(p, "wall_ms", (int64_t)UAR_LIMIT_PROCESS_SECONDS * 1000,
			     (int64_t)UAR_LIMIT_PROCESS_SECONDS * 1000);

	p->s.limits = (struct uar_sandbox_limits){
		.cpu_s = limit(p, "cpu_s", 0, UAR_LIMIT_PROCESS_SECONDS),
		.memory_bytes = limit(p, "memory_bytes", 0, INT64_MAX / 2),
		.files = limit(p, "files", FILES, FILES * 64),
		.processes = limit(p, "processes", TASKS, UAR_LIMIT_SANDBOX_TASKS),
		.wall_ms = (int64_t)(seconds * 1000),
	};
	if (p->s.limits.wall_ms > most)
		p->s.limits.wall_ms = most;
	most = p->h->memory_bytes;
	if (most && (!p->s.limits.memory_bytes || p->s.limits.memory_bytes > most))
		p->s.limits.memory_bytes = most;
}

static uar_err choose_place(struct planning *p)
{
	uar_err e;

	if (mkdir(p->h->dir, 0700) && errno != EEXIST)
		return uar_error_set(p->error, UAR_ENOTIMPL, "there is no workspace");
	if (!realpath(p->h->dir, p->dir))
		return uar_error_set(p->error, UAR_ENOTIMPL, "the workspace cannot be reached");
	e = inside(p, uar_json_text(p->input, "cwd"), &p->s.cwd);
	return e;
}

/* --- written --------------------------------------------------------------------------------- */

static uar_err write_sandbox(const struct planning *p, struct uar_buf *out)
{
	struct uar_jw w = uar_jw_begin(out);
	struct uar_sandbox_probe probe = uar_sandbox_probe();
	char id[UAR_SANDBOX_ID + 1], platform[64];
	uar_err e = uar_sandbox_id(&p->s, id);

	snprintf(platform, sizeof platform, "linux landlock/%d seccomp", probe.landlock);
	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "profile_id", id);
	uar_sandbox_write(&w, &p->s);
	uar_jw_cstr(&w, "platform", platform);
	uar_jw_bool(&w, "enforced", true);
	uar_jw_arr(&w, "gaps");
	for (size_t i = 0; i < p->gaps.count; i++)
		uar_jw_cstr(&w, NULL, p->gaps.at[i]);
	uar_jw_close(&w);
	uar_jw_close(&w);
	return e ? e : uar_jw_end(&w);
}

static uar_err read_command(struct planning *p, struct uar_command_line *line)
{
	const struct uar_json *argv = of(p->input, "argv");
	uar_str words[UAR_LIMIT_PROCESS_ARGS];
	size_t n = 0;

	if (!argv)
		return uar_command_read_line(uar_json_text(p->input, "command"), &p->arena, line);
	for (const struct uar_json *a = argv->first; a && n < ARRAY_LEN(words); a = a->next)
		words[n++] = uar_json_str(a, UAR_STR(""));
	return uar_command_read_words(words, n, &p->arena, line);
}

static uar_err write_process(struct planning *p, struct uar_buf *out)
{
	struct uar_jw w = uar_jw_begin(out);
	struct uar_command_line line;
	char id[UAR_SANDBOX_ID + 1];
	uar_err e = read_command(p, &line);

	if (!e)
		e = uar_sandbox_id(&p->s, id);
	if (e)
		return e;
	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "command_summary", line.summary);
	uar_jw_arr(&w, "subcommands");
	for (size_t i = 0; i < line.count; i++)
		uar_jw_str(&w, NULL, line.parts[i]);
	uar_jw_close(&w);
	uar_jw_bool(&w, "complex", line.complex);
	uar_jw_bool(&w, "destructive", line.destructive);
	uar_jw_str(&w, "cwd", p->s.cwd);
	uar_jw_obj(&w, "path_validation");
	uar_jw_cstr(&w, "cwd", "inside the workspace");
	uar_jw_bool(&w, "ok", true);
	uar_jw_close(&w);
	uar_jw_bool(&w, "tty", p->s.tty);
	uar_jw_cstr(&w, "profile_id", id);
	uar_jw_cstr(&w, "network", p->s.network ? "full" : "none");
	uar_jw_str(&w, "justification",
		   uar_str_utf8_prefix(uar_json_text(p->input, "justification"),
				       UAR_LIMIT_COMMAND_SUMMARY));
	uar_jw_close(&w);
	return uar_jw_end(&w);
}

static uar_err plan(struct planning *p, bool starts)
{
	struct uar_sandbox_probe probe = uar_sandbox_probe();
	uar_err e = choose_mode(p);

	p->s.tty = starts && uar_json_bool(of(p->input, "tty"), false);
	if (!e)
		e = choose_place(p);
	if (!e)
		e = choose_roots(p);
	if (e)
		return e;
	choose_limits(p, starts);
	return uar_sandbox_check(&p->s, &probe, &p->gaps, p->error);
}

uar_err uar_processes_plan(struct uar_processes *h, const struct uar_process_ask *ask,
			   struct uar_process_plan *out, struct uar_error *error)
{
	bool starts = uar_str_is(ask->tool->tool_id, "process:start");
	struct planning p = { .h = h, .policy = ask->policy, .error = error };
	uar_err e;

	if (!starts && !uar_str_is(ask->tool->tool_id, "process:run"))
		return UAR_ESKIP;
	uar_arena_init(&p.arena, 0);
	e = uar_json_parse(ask->input, NULL, &p.arena, &p.input, error);
	if (!e)
		e = plan(&p, starts);
	if (!e)
		e = write_sandbox(&p, &out->sandbox);
	if (!e)
		e = write_process(&p, &out->process);
	uar_arena_fini(&p.arena);
	return e;
}

uar_err uar_files_plan(const char *dir, struct uar_buf *out)
{
	struct uar_sandbox s = { .mode = UAR_SANDBOX_WORKSPACE_WRITE, .cwd = uar_str_c(dir) };
	struct uar_jw w = uar_jw_begin(out);
	char id[UAR_SANDBOX_ID + 1];
	uar_err e;

	s.read_roots[s.read_count++] = s.write_roots[s.write_count++] = s.cwd;
	e = uar_sandbox_id(&s, id);
	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "profile_id", id);
	uar_sandbox_write(&w, &s);
	uar_jw_cstr(&w, "platform", "linux openat2"); /* RESOLVE_BENEATH */
	uar_jw_bool(&w, "enforced", true);
	uar_jw_arr(&w, "gaps");
	uar_jw_close(&w);
	uar_jw_close(&w);
	return e ? e : uar_jw_end(&w);
}
