/* cli.h - what the backends that drive a command-line agent have in common. */
#ifndef UAR_BACKEND_CLI_H
#define UAR_BACKEND_CLI_H

#include "backend/drive.h"
#include "backend/limits.h"

/* A backend instance. Immutable after its constructor, except for `busy`. */
struct uab_cli {
	atomic_int refs; /* the backend and its runs */
	uaa_str kind, binary;
	uaa_caps *caps;
	int64_t default_timeout_ms;
	uaa_str default_dir;
	struct uab_pairs env; /* inherited, then configured */
	struct uab_times times;
	struct uab_insight insight;
	struct uar_buf withheld;      /* names, ", " between */
	char supervisor[1024];	      /* empty: not found */
	char cgroup[UAB_CGROUP_PATH]; /* where groups of runs are made; empty: nowhere */
	bool allow_external, allow_mcp_write;
	uint32_t transport;		    /* codex */
	uaa_str permission_mode;	    /* claude_code */
	bool report_hooks;		    /* likewise */
	uaa_str args[UAR_LIMIT_AGENT_ARGS]; /* acp */
	size_t arg_count;
	pthread_mutex_t mu;
	struct uab_pairs busy; /* sessions that a run has resumed and not left */
};

struct uab_cli_config {
	const char *kind, *program;
	uaa_str binary;
	int64_t default_timeout_ms;
	uaa_str default_dir;
	const uaa_env_pair *env;
	size_t env_count;
	uint32_t inherit;
	const char *const *inherit_names; /* besides the common ones; a trailing * matches */
	const char *const *env_defaults;  /* name, value, ..., NULL; the weakest */
	const char *home_var;
	uaa_str home;
	const uaa_process_options *process;
	const char *const *caps;
};
/* Members that the public settings of every such backend name alike. */
#define UAB_CLI_COMMON(C)                                                                          \
	.binary = (C)->binary, .default_timeout_ms = (C)->default_timeout_ms,                      \
	.default_dir = (C)->default_working_dir, .env = (C)->env, .env_count = (C)->env_count,     \
	.inherit = (C)->inherit_env, .process = (C)->process
struct uab_cli *uab_cli_new(const struct uab_cli_config *config);
void uab_cli_unref(struct uab_cli *cli);
/* What is there only for who asked for it. */
uaa_status uab_cli_opt_in(struct uab_cli *cli, bool external_sandbox, bool mcp_write);
/* The ops all of them share; `run` differs. */
uaa_backend *uab_cli_backend(struct uab_cli *cli,
			     uaa_status (*run)(void *, const uaa_request *, uaa_run **,
					       uaa_error **),
			     uaa_status (*mcp)(void *, const uaa_mcp_request *, uaa_mcp_result **,
					       uaa_error **));

enum uab_select { UAB_NEW, UAB_RESUME_LAST, UAB_RESUME_ID, UAB_FORK_LAST, UAB_FORK_ID };

/* The extensions of a request after all checks. */
struct uab_options {
	bool non_interactive, external_sandbox;
	uar_str model; /* empty: no override */
	const char *dirs[UAR_LIMIT_AGENT_DIRS];
	size_t dir_count;
	enum uab_select select;
	uar_str session_id;
	uar_str approval_policy, sandbox_mode; /* empty: default */
};
/* Is it an option of ours, as opposed to a capability that is none? */
bool uab_is_option(uar_str key);

/* One run of such a backend: everything it needs, in one arena. */
struct uab_cli_job {
	struct uar_arena arena;
	struct uab_cli *cli;
	struct uab_options opt;
	uar_str prompt;
	const char *cwd;
	char **envp;
	char *argv[UAR_LIMIT_AGENT_ARGS];
	size_t argc;
	bool holds_session;
	struct uab_map *map; /* the last one used */
	void (*map_free)(struct uab_map *m);
	bool nomem;
};
/* Fills job->opt; cli, arena and cwd of the job are there already. */
uaa_status uab_options_parse(struct uab_cli_job *job, const uaa_request *r, uaa_error **error);
typedef struct uab_map *uab_cli_body(struct uab_drive *d, struct uab_cli_job *job);
/* Checks values, builds the job and starts it. */
uaa_status uab_cli_run(struct uab_cli *cli, const uaa_request *r, uab_cli_body *body, uaa_run **out,
		       uaa_error **error);
void uab_arg(struct uab_cli_job *job, const char *arg);
void uab_arg_str(struct uab_cli_job *job, uar_str arg);
/* A zeroed map of that size, owned by the job (replacing an earlier one). */
struct uab_map *uab_job_map(struct uab_cli_job *job, size_t size,
			    void (*map_free)(struct uab_map *m));
/* Starts argv in the job's directory and environment. */
void uab_job_process(struct uab_drive *d, struct uab_cli_job *job, struct uab_map *m,
		     uar_str input);
/* The one dangerous Status, before anything else, when it applies. */
void uab_warn_external(struct uab_cli_job *job, struct uab_map *m);
/* One owner per session: false when another run of this backend has it. */
bool uab_session_take(struct uab_cli_job *job, uar_str id);
/* Absolute path of `path` seen from `cwd`, without "." and "..". */
uar_str uab_path_resolve(struct uar_arena *arena, uar_str cwd, uar_str path);
/* The environment of a child: config below request. NULL: out of memory. */
char **uab_make_env(struct uar_arena *arena, const struct uab_pairs *base,
		    const struct uab_pairs *over);

/* mcp.c */
struct uab_mcp_argv {
	char *v[UAR_LIMIT_AGENT_ARGS + 1];
	size_t n;
	struct uar_arena *arena;
	bool nomem;
};
void uab_mcp_arg(struct uab_mcp_argv *a, uaa_str s);
void uab_mcp_verb(const uaa_mcp_request *r, struct uab_mcp_argv *a); /* "mcp add" */
void uab_mcp_env(const uaa_mcp_request *r, struct uab_mcp_argv *a);  /* --env NAME=VALUE ... */
typedef uaa_status uab_mcp_build(const uaa_mcp_request *r, struct uab_mcp_argv *a,
				 uaa_error **error);
uaa_status uab_mcp_call(struct uab_cli *cli, const uaa_mcp_request *r, uab_mcp_build *build,
			uaa_mcp_result **out, uaa_error **error);

#endif
