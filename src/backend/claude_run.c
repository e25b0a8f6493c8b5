/* claude_run.c - the claude_code backend: command lines, sessions on disk, MCP. */
#include "backend/cli.h"
#include "backend/claude.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#if AGENT_API_CLAUDE_CODE

static const char *const base_caps[] = {
	"agent_api.run",
	"agent_api.events",
	"agent_api.events.live",
	"agent_api.tools.structured.v1",
	"agent_api.tools.results.v1",
	"agent_api.artifacts.final_text.v1",
	"agent_api.exec.non_interactive",
	"agent_api.control.cancel.v1",
	"agent_api.control.respond.v1",
	"agent_api.session.handle.v1",
	"agent_api.session.resume.v1",
	"agent_api.session.fork.v1",
	"agent_api.config.model.v1",
	"agent_api.exec.add_dirs.v1",
	"agent_api.tools.mcp.list.v1",
	"backend.claude_code.print_stream_json",
	NULL,
};

/* --- sessions on disk --- */

static const char *env_of(const struct uab_cli_job *job, const char *name)
{
	size_t n = strlen(name);

	for (char **e = job->envp; *e; e++)
		if (strncmp(*e, name, n) == 0 && (*e)[n] == '=')
			return *e + n + 1;
	return NULL;
}

/* The directory in which the CLI keeps the sessions of a working directory: one
 * dash for every UTF-16 unit that is not alphanumeric. */
static bool project_dir(const struct uab_cli_job *job, struct uar_buf *out)
{
	const char *config = env_of(job, "CLAUDE_CONFIG_DIR"), *home = env_of(job, "HOME");
	char real[4096];

	if ((!config && !home) || !realpath(job->cwd, real) || strlen(real) > 200)
		return false;
	if (config)
		uar_buf_printf(out, "%s/projects/", config);
	else
		uar_buf_printf(out, "%s/.claude/projects/", home);
	for (const char *p = real; *p; p++) {
		unsigned char c = (unsigned char)*p;

		if ((c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z'))
			uar_buf_add_char(out, (char)c);
		else if (c < 0x80 || c >= 0xC0)
			uar_buf_printf(out, c >= 0xF0 ? "--" : "-");
	}
	return !out->err;
}

/* The newest session of the directory; empty when there is none. */
static void newest_session(DIR *d, char out[40])
{
	struct timespec best = { 0, 0 };
	struct dirent *e;

	out[0] = 0;
	while ((e = readdir(d))) {
		uar_str name = uar_str_c(e->d_name);
		struct stat st;

		if (!uar_str_ends(name, UAR_STR(".jsonl")) ||
		    !uab_is_uuid(uar_str_n(name.p, name.n - 6)) ||
		    fstatat(dirfd(d), e->d_name, &st, 0) || !S_ISREG(st.st_mode))
			continue;
		if (out[0] &&
		    (st.st_mtim.tv_sec < best.tv_sec ||
		     (st.st_mtim.tv_sec == best.tv_sec && st.st_mtim.tv_nsec <= best.tv_nsec)))
			continue;
		best = st.st_mtim;
		uab_put(out, 40, uar_str_n(name.p, name.n - 6));
	}
}

/* "last" means a session that exists; without one nothing is started. */
static bool find_last(struct uab_cli_job *job)
{
	struct uar_buf path = uar_buf_make(8192);
	DIR *d = project_dir(job, &path) ? opendir(path.p) : NULL;
	char id[40] = "";

	if (d) {
		newest_session(d, id);
		closedir(d);
	}
	uar_buf_fini(&path);
	job->opt.session_id = uar_arena_str(&job->arena, uar_str_c(id));
	return job->opt.session_id.n > 0;
}

static bool choose_session(struct uab_cli_job *job, struct uab_map *m)
{
	enum uab_select s = job->opt.select;

	m->resume_by_id = s == UAB_RESUME_ID || s == UAB_FORK_ID;
	if (s == UAB_NEW)
		return true;
	if (m->resume_by_id ? job->opt.session_id.p[0] == '-' : !find_last(job)) {
		uab_not_found(m);
		return false;
	}
	if ((s == UAB_RESUME_ID || s == UAB_RESUME_LAST) &&
	    !uab_session_take(job, job->opt.session_id)) {
		uab_failed_as(m, UAA_CAUSE_SESSION_IN_USE, "session in use");
		return false;
	}
	return true;
}

/* --- the command line --- */

static void permission_args(struct uab_cli_job *job)
{
	uaa_str mode = job->cli->permission_mode;

	uab_arg(job, "--permission-mode");
	if (job->opt.external_sandbox)
		uab_arg(job, "bypassPermissions");
	else if (job->opt.non_interactive && mode.ptr)
		uab_arg(job, mode.ptr);
	else
		uab_arg(job, "default");
	if (job->opt.non_interactive)
		return;
	uab_arg(job, "--input-format");
	uab_arg(job, "stream-json");
	uab_arg(job, "--permission-prompt-tool");
	uab_arg(job, "stdio");
}

static void build_args(struct uab_cli_job *job)
{
	uab_arg(job, job->cli->binary.ptr);
	uab_arg(job, "--print");
	uab_arg(job, "--output-format");
	uab_arg(job, "stream-json");
	uab_arg(job, "--include-partial-messages");
	if (job->cli->report_hooks)
		uab_arg(job, "--include-hook-events");
	permission_args(job);
	if (job->opt.model.n) {
		uab_arg(job, "--model");
		uab_arg_str(job, job->opt.model);
	}
	if (job->opt.select != UAB_NEW) {
		uab_arg(job, "--resume");
		uab_arg_str(job, job->opt.session_id);
	}
	if (job->opt.select == UAB_FORK_ID || job->opt.select == UAB_FORK_LAST)
		uab_arg(job, "--fork-session");
	if (job->opt.dir_count)
		uab_arg(job, "--add-dir");
	for (size_t i = 0; i < job->opt.dir_count; i++)
		uab_arg(job, job->opt.dirs[i]);
	uab_arg(job, "--verbose");
}

static struct uab_map *body(struct uab_drive *d, struct uab_cli_job *job)
{
	bool one_shot = job->opt.non_interactive;
	struct uab_map *m = uab_job_map(job, sizeof(struct uab_claude), uab_map_fini);

	if (!m)
		return NULL;
	uab_map_init(m, one_shot ? &uab_claude_oneshot : &uab_claude_dialogue, &d->port,
		     job->cli->kind.ptr);
	m->interactive = !one_shot;
	m->model_given = job->opt.model.n > 0;
	((struct uab_claude *)(void *)m)->prompt = job->prompt;
	uab_warn_external(job, m);
	if (choose_session(job, m)) {
		build_args(job);
		uab_job_process(d, job, m, one_shot ? job->prompt : UAR_STR(""));
	}
	return m;
}

static uaa_status run(void *cli, const uaa_request *r, uaa_run **out, uaa_error **error)
{
	return uab_cli_run(cli, r, body, out, error);
}

/* --- MCP --- */

static void add_args(const uaa_mcp_request *r, struct uab_mcp_argv *a)
{
	uab_mcp_arg(a, UAB_STR("--transport"));
	uab_mcp_arg(a, r->url.ptr ? UAB_STR("http") : UAB_STR("stdio"));
	uab_mcp_env(r, a);
	uab_mcp_arg(a, UAB_STR("--"));
	uab_mcp_arg(a, r->name);
	if (r->url.ptr)
		uab_mcp_arg(a, r->url);
	for (size_t i = 0; i < r->command_count; i++)
		uab_mcp_arg(a, r->command[i]);
}

static uaa_status build_mcp(const uaa_mcp_request *r, struct uab_mcp_argv *a, uaa_error **error)
{
	if (r->bearer_token_env_var.ptr)
		return uab_invalid(error, "bearer_token_env_var is not supported by claude_code");
	uab_mcp_verb(r, a);
	if (r->op == UAA_MCP_ADD)
		add_args(r, a);
	else if (r->op != UAA_MCP_LIST)
		uab_mcp_arg(a, r->name);
	return UAA_OK;
}

static uaa_status mcp(void *cli, const uaa_mcp_request *r, uaa_mcp_result **out, uaa_error **error)
{
	return uab_mcp_call(cli, r, build_mcp, out, error);
}

/* --- the constructor --- */

static bool known_mode(uaa_str mode)
{
	static const char *const modes[] = { "default", "acceptEdits", "dontAsk",
					     "plan",	"auto",	       "bypassPermissions" };

	for (size_t i = 0; i < ARRAY_LEN(modes); i++)
		if (uar_str_is(uab_str(mode), modes[i]))
			return true;
	return !mode.ptr;
}

static bool take_config(const uaa_claude_code_config *from, uaa_claude_code_config *to)
{
	return !from || (uab_take_struct(to, sizeof *to, from,
					 offsetof(uaa_claude_code_config, report_hooks)) &&
			 known_mode(to->permission_mode));
}

uaa_backend *uaa_claude_code_backend_new(const uaa_claude_code_config *config)
{
	static const char *const names[] = { "ANTHROPIC_*", "CLAUDE_*", "DISABLE_AUTOUPDATER",
					     "AWS_*",	    "GOOGLE_*", NULL };
	static const char *const defaults[] = { "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1", NULL };
	uaa_claude_code_config own = { 0 };
	const uaa_claude_code_config *c = &own;
	struct uab_cli *cli;

	if (!take_config(config, &own))
		return NULL;
	cli = uab_cli_new(&(struct uab_cli_config){ .kind = "claude_code",
						    .program = "claude",
						    UAB_CLI_COMMON(c),
						    .inherit_names = names,
						    .env_defaults = defaults,
						    .home_var = "CLAUDE_CONFIG_DIR",
						    .home = c->claude_home,
						    .caps = base_caps });
	if (!cli)
		return NULL;
	if (uab_copy(c->permission_mode, &cli->permission_mode) ||
	    uab_cli_opt_in(cli, c->allow_external_sandbox_exec, c->allow_mcp_write)) {
		uab_cli_unref(cli);
		return NULL;
	}
	cli->report_hooks = c->report_hooks;
	return uab_cli_backend(cli, run, mcp);
}

#endif
