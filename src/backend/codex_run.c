/* codex_run.c - the codex backend: app-server where there is one, exec otherwise. */
#include "backend/codex.h"

#include <stdlib.h>

#if AGENT_API_CODEX

static const char *const base_caps[] = {
	"agent_api.run",
	"agent_api.events",
	"agent_api.events.live",
	"agent_api.tools.structured.v1",
	"agent_api.tools.results.v1",
	"agent_api.artifacts.final_text.v1",
	"agent_api.exec.non_interactive",
	"agent_api.control.cancel.v1",
	"agent_api.session.handle.v1",
	"agent_api.session.resume.v1",
	"agent_api.session.fork.v1",
	"agent_api.config.model.v1",
	"agent_api.exec.add_dirs.v1",
	"agent_api.tools.mcp.list.v1",
	"agent_api.tools.mcp.get.v1",
	"backend.codex.exec_stream",
	"backend.codex.exec.approval_policy",
	"backend.codex.exec.sandbox_mode",
	NULL,
};

static bool by_id(const struct uab_cli_job *job)
{
	return job->opt.select == UAB_RESUME_ID || job->opt.select == UAB_FORK_ID;
}

static void init_map(struct uab_drive *d, struct uab_cli_job *job, struct uab_map *m,
		     const struct uab_dialect *dialect)
{
	uab_map_init(m, dialect, &d->port, job->cli->kind.ptr);
	m->interactive = !job->opt.non_interactive;
	m->model_given = job->opt.model.n > 0;
	m->resume_by_id = by_id(job);
}

static bool take(void *ctx, uar_str id)
{
	struct uab_cli_job *job = ctx;
	uar_str copy = uar_arena_str(&job->arena, id);

	return copy.p && uab_session_take(job, copy);
}

/* --- app-server --- */

static struct uab_map *run_app(struct uab_drive *d, struct uab_cli_job *job, bool list_only)
{
	struct uab_map *m = uab_job_map(job, sizeof(struct uab_codex_app), uab_map_fini);
	struct uab_codex_app *c = (struct uab_codex_app *)(void *)m;
	char *real;

	if (!m)
		return NULL;
	init_map(d, job, m, &uab_codex_app_dialect);
	real = realpath(job->cwd, NULL);
	c->cwd = real ? uar_arena_str(&job->arena, uar_str_c(real)).p : job->cwd;
	free(real);
	c->opt = &job->opt;
	c->prompt = job->prompt;
	c->list_only = list_only;
	c->may_fall_back =
		!list_only && job->cli->transport == UAA_CODEX_AUTO && !job->opt.external_sandbox;
	c->take = take;
	c->ctx = job;
	if (!list_only)
		uab_warn_external(job, m);
	job->argc = 0;
	uab_arg(job, job->cli->binary.ptr);
	uab_arg(job, "app-server");
	uab_job_process(d, job, m, UAR_STR(""));
	return m;
}

/* --- exec --- */

static void exec_args(struct uab_cli_job *job)
{
	const struct uab_options *o = &job->opt;

	job->argc = 0;
	uab_arg(job, job->cli->binary.ptr);
	uab_arg(job, "exec");
	uab_arg(job, "--json");
	uab_arg(job, "--skip-git-repo-check");
	uab_arg(job, "--color");
	uab_arg(job, "never");
	if (o->external_sandbox) {
		uab_arg(job, "--dangerously-bypass-approvals-and-sandbox");
	} else {
		uab_arg(job, "--sandbox");
		uab_arg_str(job, o->sandbox_mode.n ? o->sandbox_mode : UAR_STR("workspace-write"));
	}
	if (o->model.n) {
		uab_arg(job, "--model");
		uab_arg_str(job, o->model);
	}
	for (size_t i = 0; i < o->dir_count; i++) {
		uab_arg(job, "--add-dir");
		uab_arg(job, o->dirs[i]);
	}
	if (o->select != UAB_NEW) {
		bool fork = o->select == UAB_FORK_ID || o->select == UAB_FORK_LAST;

		uab_arg(job, fork ? "fork" : "resume");
		uab_arg_str(job, o->session_id);
	}
	uab_arg(job, "-"); /* the prompt comes on stdin */
}

static bool resuming(const struct uab_cli_job *job)
{
	return job->opt.select == UAB_RESUME_ID || job->opt.select == UAB_RESUME_LAST;
}

/* exec would silently open a new thread for "last": look first. NULL: found. */
static struct uab_map *look_for_last(struct uab_drive *d, struct uab_cli_job *job)
{
	struct uab_map *m = run_app(d, job, true);

	if (!m || m->outcome != UAB_DONE)
		return m;
	job->opt.session_id =
		uar_arena_str(&job->arena, uar_str_c(((struct uab_codex_app *)(void *)m)->target));
	return job->opt.session_id.n ? NULL : m;
}

static struct uab_map *run_exec(struct uab_drive *d, struct uab_cli_job *job)
{
	struct uab_map *m;

	if (job->opt.select == UAB_RESUME_LAST || job->opt.select == UAB_FORK_LAST) {
		m = look_for_last(d, job);
		if (m || uab_drive_over(d))
			return m ? m : job->map;
	}
	m = uab_job_map(job, sizeof(struct uab_codex_exec), uab_map_fini);
	if (!m)
		return NULL;
	init_map(d, job, m, &uab_codex_exec_dialect);
	((struct uab_codex_exec *)(void *)m)->fresh = job->opt.select == UAB_NEW;
	uab_warn_external(job, m);
	if (resuming(job) && !uab_session_take(job, job->opt.session_id)) {
		uab_failed_as(m, UAA_CAUSE_SESSION_IN_USE, "session in use");
		return m;
	}
	exec_args(job);
	uab_job_process(d, job, m, job->prompt);
	return m;
}

/* --- which one --- */

/* Ids that are no thread ids would be taken for names, and a new thread opened. */
static struct uab_map *refuse_id(struct uab_drive *d, struct uab_cli_job *job)
{
	struct uab_map *m = uab_job_map(job, sizeof(struct uab_codex_exec), uab_map_fini);

	if (m) {
		init_map(d, job, m, &uab_codex_exec_dialect);
		uab_warn_external(job, m);
		uab_not_found(m);
	}
	return m;
}

static struct uab_map *body(struct uab_drive *d, struct uab_cli_job *job)
{
	struct uab_map *m;

	if (by_id(job) && !uab_is_uuid(job->opt.session_id))
		return refuse_id(d, job);
	if (job->cli->transport != UAA_CODEX_EXEC) {
		m = run_app(d, job, false);
		if (!m || !((struct uab_codex_app *)(void *)m)->unavailable)
			return m;
	}
	return run_exec(d, job);
}

static uaa_status run(void *cli, const uaa_request *r, uaa_run **out, uaa_error **error)
{
	return uab_cli_run(cli, r, body, out, error);
}

/* --- MCP --- */

static void add_args(const uaa_mcp_request *r, struct uab_mcp_argv *a)
{
	uab_mcp_arg(a, r->name);
	uab_mcp_env(r, a);
	if (r->url.ptr) {
		uab_mcp_arg(a, UAB_STR("--url"));
		uab_mcp_arg(a, r->url);
	}
	if (r->bearer_token_env_var.ptr) {
		uab_mcp_arg(a, UAB_STR("--bearer-token-env-var"));
		uab_mcp_arg(a, r->bearer_token_env_var);
	}
	if (r->command_count)
		uab_mcp_arg(a, UAB_STR("--"));
	for (size_t i = 0; i < r->command_count; i++)
		uab_mcp_arg(a, r->command[i]);
}

static uaa_status build_mcp(const uaa_mcp_request *r, struct uab_mcp_argv *a, uaa_error **error)
{
	(void)error;
	uab_mcp_verb(r, a);
	if (r->op == UAA_MCP_LIST || r->op == UAA_MCP_GET)
		uab_mcp_arg(a, UAB_STR("--json"));
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

static uaa_status more_caps(struct uab_cli *cli, const uaa_codex_config *c)
{
	uaa_status s = UAA_OK;

	if (c->transport != UAA_CODEX_EXEC)
		s = uaa_caps_add(cli->caps, UAB_STR("agent_api.control.respond.v1"));
	return s ? s : uab_cli_opt_in(cli, c->allow_external_sandbox_exec, c->allow_mcp_write);
}

uaa_backend *uaa_codex_backend_new(const uaa_codex_config *config)
{
	static const char *const names[] = { "CODEX_*", "OPENAI_*", NULL };
	uaa_codex_config own = { 0 };
	const uaa_codex_config *c = &own;
	struct uab_cli *cli;

	if ((config && !uab_take_struct(&own, sizeof own, config, sizeof own)) ||
	    c->transport > UAA_CODEX_EXEC)
		return NULL;
	cli = uab_cli_new(&(struct uab_cli_config){ .kind = "codex",
						    .program = "codex",
						    UAB_CLI_COMMON(c),
						    .inherit_names = names,
						    .home_var = "CODEX_HOME",
						    .home = c->codex_home,
						    .caps = base_caps });
	if (!cli)
		return NULL;
	cli->transport = c->transport;
	if (more_caps(cli, c)) {
		uab_cli_unref(cli);
		return NULL;
	}
	return uab_cli_backend(cli, run, mcp);
}

#endif
