/* sandbox.h - the boundary in which a command runs, and what of it this machine enforces.
 *
 * A profile says what a command may reach. The helper (helper.h) applies it between fork and
 * exec: Landlock for files, seccomp for system calls, resource limits, no new privileges. What
 * the kernel cannot enforce is listed as a gap; where the profile depends on it the command
 * does not run. Nothing here falls back to a weaker boundary. */
#ifndef UAR_SANDBOX_SANDBOX_H
#define UAR_SANDBOX_SANDBOX_H

#include "base/arena.h"
#include "base/buf.h"
#include "sandbox/limits.h"

struct uar_json;
struct uar_jw;

enum uar_sandbox_mode {
	UAR_SANDBOX_READ_ONLY,	     /* reads its roots, writes nothing */
	UAR_SANDBOX_WORKSPACE_WRITE, /* writes below its write roots, too */
	UAR_SANDBOX_FULL_ACCESS,     /* files as the server sees them */
	UAR_SANDBOX_MODE_COUNT
};
const char *uar_sandbox_mode_name(enum uar_sandbox_mode m); /* "read_only" */
enum uar_sandbox_mode uar_sandbox_mode_parse(uar_str name); /* UAR_SANDBOX_MODE_COUNT: none */

struct uar_sandbox_limits { /* 0: none */
	int64_t cpu_s, memory_bytes, files, processes, wall_ms;
};

struct uar_sandbox {
	enum uar_sandbox_mode mode;
	bool network; /* else it can open no socket */
	bool tty;
	uar_str cwd; /* absolute, as all paths here */
	uar_str read_roots[UAR_LIMIT_SANDBOX_ROOTS];
	size_t read_count;
	uar_str write_roots[UAR_LIMIT_SANDBOX_ROOTS];
	size_t write_count;
	struct uar_sandbox_limits limits;
};

/* What the kernel offers. */
struct uar_sandbox_probe {
	int landlock; /* its ABI; 0: there is none */
	bool seccomp; /* filters */
	bool notify;  /* the helper can be told of system calls */
};
struct uar_sandbox_probe uar_sandbox_probe(void);

/* What the profile asks for and this kernel does not enforce; ends with NULL. */
enum { UAR_SANDBOX_GAPS = 8 };
struct uar_sandbox_gaps {
	const char *at[UAR_SANDBOX_GAPS];
	size_t count;
};
/* UAR_ENOTIMPL: the profile depends on something that is missing; nothing may run in it. */
UAR_MUST_CHECK uar_err uar_sandbox_check(const struct uar_sandbox *s,
					 const struct uar_sandbox_probe *p,
					 struct uar_sandbox_gaps *out, struct uar_error *error);

/* The name of the profile: the same profile, the same name. */
enum { UAR_SANDBOX_ID = 20 };
UAR_MUST_CHECK uar_err uar_sandbox_id(const struct uar_sandbox *s, char out[UAR_SANDBOX_ID + 1]);
/* Its members, as sandbox.applied has them. */
void uar_sandbox_write(struct uar_jw *w, const struct uar_sandbox *s);
/* Strings are borrowed from the tree. */
UAR_MUST_CHECK uar_err uar_sandbox_read(const struct uar_json *j, struct uar_sandbox *out,
					struct uar_error *error);
/* Is the path one of the roots or below it? Both as realpath gives them. */
bool uar_sandbox_covers(const uar_str *roots, size_t count, uar_str path);

#endif
