/* acp_run.c - the backend for any agent that speaks ACP. */
#include "backend/acp.h"
#include "backend/limits.h"

#include <stdlib.h>

#if AGENT_API_ACP

static const char *const base_caps[] = {
	"agent_api.run",
	"agent_api.events",
	"agent_api.events.live",
	"agent_api.tools.structured.v1",
	"agent_api.tools.results.v1",
	"agent_api.exec.non_interactive",
	"agent_api.control.cancel.v1",
	"agent_api.control.respond.v1",
	"agent_api.session.handle.v1",
	NULL,
};

static bool take(void *ctx, uar_str id)
{
	struct uab_cli_job *job = ctx;
	uar_str copy = uar_arena_str(&job->arena, id);

	return copy.p && uab_session_take(job, copy);
}

static struct uab_map *body(struct uab_drive *d, struct uab_cli_job *job)
{
	struct uab_map *m = uab_job_map(job, sizeof(struct uab_acp), uab_map_fini);
	struct uab_acp *c = (struct uab_acp *)(void *)m;
	char *real;

	if (!m)
		return NULL;
	uab_map_init(m, &uab_acp_dialect, &d->port, job->cli->kind.ptr);
	m->interactive = !job->opt.non_interactive;
	m->resume_by_id = job->opt.select == UAB_RESUME_ID || job->opt.select == UAB_FORK_ID;
	real = realpath(job->cwd, NULL);
	c->cwd = real ? uar_arena_str(&job->arena, uar_str_c(real)).p : job->cwd;
	free(real);
	c->opt = &job->opt;
	c->prompt = job->prompt;
	c->take = take;
	c->ctx = job;
	uab_arg(job, job->cli->binary.ptr);
	for (size_t i = 0; i < job->cli->arg_count; i++)
		uab_arg(job, job->cli->args[i].ptr);
	uab_job_process(d, job, m, UAR_STR(""));
	return m;
}

static uaa_status run(void *cli, const uaa_request *r, uaa_run **out, uaa_error **error)
{
	return uab_cli_run(cli, r, body, out, error);
}

static uaa_status configure(struct uab_cli *cli, const uaa_acp_config *c)
{
	const struct {
		bool on;
		const char *id;
	} optional[] = { { c->can_resume, "agent_api.session.resume.v1" },
			 { c->can_fork, "agent_api.session.fork.v1" },
			 { c->can_add_dirs, "agent_api.exec.add_dirs.v1" } };
	uaa_status s = UAA_OK;

	for (size_t i = 0; i < ARRAY_LEN(optional) && !s; i++)
		if (optional[i].on)
			s = uaa_caps_add(cli->caps, uaa_str_c(optional[i].id));
	for (size_t i = 0; i < c->arg_count && !s; i++) {
		if (!c->args[i].ptr || uab_has_nul(uab_str(c->args[i])))
			return UAA_E_ARG;
		s = uab_copy(c->args[i], &cli->args[i]);
		cli->arg_count = s ? i : i + 1;
	}
	return s;
}

uaa_backend *uaa_acp_backend_new(const uaa_acp_config *config)
{
	static const char *const names[] = { "ANTHROPIC_*", "CLAUDE_*", "CODEX_*",    "OPENAI_*",
					     "GEMINI_*",    "GOOGLE_*", "OPENCODE_*", NULL };
	char kind[160] = "acp";
	uaa_acp_config own;
	const uaa_acp_config *c = &own;
	struct uab_cli *cli;

	if (!config || !uab_take_struct(&own, sizeof own, config, sizeof own) || !c->binary.len ||
	    c->arg_count > UAR_LIMIT_AGENT_ARGS - 8 || (c->arg_count && !c->args))
		return NULL;
	if (c->kind.ptr)
		uab_put(kind, sizeof kind, uab_str(c->kind));
	cli = uab_cli_new(&(struct uab_cli_config){
		.kind = kind, UAB_CLI_COMMON(c), .inherit_names = names, .caps = base_caps });
	if (!cli)
		return NULL;
	if (configure(cli, c)) {
		uab_cli_unref(cli);
		return NULL;
	}
	return uab_cli_backend(cli, run, NULL);
}

#endif
