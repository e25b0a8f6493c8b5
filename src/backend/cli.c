/* cli.c - instances, environments and jobs of the command-line backends. */
#include "backend/cli.h"
#include "backend/limits.h"

#include <unistd.h>

extern char **environ;

/* --- what a child inherits --- */

static const char *const common_names[] = {
	"PATH",
	"HOME",
	"USER",
	"LOGNAME",
	"SHELL",
	"LANG",
	"LC_*",
	"TZ",
	"TERM",
	"TMPDIR",
	"XDG_*",
	"SSL_CERT_*",
	"NODE_EXTRA_CA_CERTS",
	"HTTP_PROXY",
	"HTTPS_PROXY",
	"NO_PROXY",
	"ALL_PROXY",
	"http_proxy",
	"https_proxy",
	"no_proxy",
	"all_proxy",
	"IS_SANDBOX",
	NULL,
};

static bool listed(const char *const *names, uar_str name)
{
	for (; names && *names; names++) {
		uar_str want = uar_str_c(*names);

		if (uar_str_ends(want, UAR_STR("*"))
			    ? uar_str_starts(name, uar_str_n(want.p, want.n - 1))
			    : uar_str_eq(name, want))
			return true;
	}
	return false;
}

/* Does the name speak of a credential or of where a provider is? Only such are worth telling. */
static bool tells_a_way_in(uar_str name)
{
	static const char *const words[] = { "KEY",	   "TOKEN",    "SECRET",  "AUTH",
					     "CREDENTIAL", "BASE_URL", "ENDPOINT" };

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (memmem(name.p, name.n, words[i], strlen(words[i])))
			return true;
	return false;
}

static void withhold(struct uab_cli *cli, uar_str name)
{
	struct uar_buf *out = &cli->withheld;

	if (!tells_a_way_in(name) || !uar_utf8_valid(name) || out->n + name.n + 2 > out->max)
		return;
	uar_buf_printf(out, "%s%.*s", out->n ? ", " : "", UAR_FMT(name));
}

static uaa_status inherit(struct uab_cli *cli, const struct uab_cli_config *c)
{
	for (char **e = environ; c->inherit != UAA_ENV_NONE && e && *e; e++) {
		uar_str value = UAR_STR_NONE, name = uar_str_cut(uar_str_c(*e), '=', &value);
		uaa_status s;

		if (!name.n || !value.p)
			continue;
		if (c->inherit != UAA_ENV_ALL && !listed(common_names, name) &&
		    !listed(c->inherit_names, name)) {
			withhold(cli, name);
			continue;
		}
		s = uab_pairs_set(&cli->env, uab_pub(name), uab_pub(value));
		if (s)
			return s;
	}
	return UAA_OK;
}

static uaa_status configure_env(struct uab_cli *cli, const struct uab_cli_config *c)
{
	uaa_status s = UAA_OK;

	for (const char *const *d = c->env_defaults; d && d[0] && !s; d += 2)
		s = uab_pairs_set(&cli->env, uaa_str_c(d[0]), uaa_str_c(d[1]));
	if (!s)
		s = inherit(cli, c);
	if (!s && c->home_var && c->home.ptr)
		s = uab_pairs_set(&cli->env, uaa_str_c(c->home_var), c->home);
	for (size_t i = 0; i < c->env_count && !s; i++) {
		if (!uab_env_name_ok(uab_str(c->env[i].name)) || !c->env[i].value.ptr ||
		    uab_has_nul(uab_str(c->env[i].value)))
			return UAA_E_ARG;
		s = uab_pairs_set(&cli->env, c->env[i].name, c->env[i].value);
	}
	return s;
}

static char *env_entry(struct uar_arena *arena, const struct uab_pair *p)
{
	return (char *)uar_arena_printf(arena, "%s=%s", p->name.ptr, p->value.ptr).p;
}

char **uab_make_env(struct uar_arena *arena, const struct uab_pairs *base,
		    const struct uab_pairs *over)
{
	char **env = uar_arena_alloc(arena, (base->n + over->n + 1) * sizeof *env);
	size_t n = 0;

	if (!env)
		return NULL;
	for (size_t i = 0; i < base->n; i++)
		if (!uab_pairs_get(over, uab_str(base->at[i].name)).ptr &&
		    !(env[n++] = env_entry(arena, &base->at[i])))
			return NULL;
	for (size_t i = 0; i < over->n; i++)
		if (!(env[n++] = env_entry(arena, &over->at[i])))
			return NULL;
	return env;
}

/* --- instances --- */

void uab_cli_unref(struct uab_cli *cli)
{
	if (!cli || atomic_fetch_sub(&cli->refs, 1) != 1)
		return;
	uar_free((char *)cli->kind.ptr);
	uar_free((char *)cli->binary.ptr);
	uar_free((char *)cli->default_dir.ptr);
	uar_free((char *)cli->permission_mode.ptr);
	for (size_t i = 0; i < cli->arg_count; i++)
		uar_free((char *)cli->args[i].ptr);
	uaa_caps_unref(cli->caps);
	uab_pairs_fini(&cli->env);
	uab_pairs_fini(&cli->busy);
	uar_buf_fini(&cli->withheld);
	pthread_mutex_destroy(&cli->mu);
	uar_free(cli);
	uab_cgroup_tidy();
}

static bool text_ok(uaa_str s)
{
	return !s.ptr || (uar_utf8_valid(uab_str(s)) && !uab_has_nul(uab_str(s)));
}

static bool values_ok(const struct uab_cli_config *c)
{
	return text_ok(c->binary) && text_ok(c->default_dir) && text_ok(c->home) &&
	       (c->env || !c->env_count) && c->inherit <= UAA_ENV_NONE;
}

static bool fill(struct uab_cli *cli, const struct uab_cli_config *c)
{
	uaa_str binary = c->binary.ptr && c->binary.len ? c->binary : uaa_str_c(c->program);
	uaa_process_options o = { .struct_size = sizeof o };

	if ((c->process &&
	     !uab_take_struct(&o, sizeof o, c->process, offsetof(uaa_process_options, trace))) ||
	    !binary.ptr || !values_ok(c))
		return false;
	cli->caps = uaa_caps_new();
	cli->default_timeout_ms = c->default_timeout_ms;
	cli->times = uab_times_of(&o);
	cli->withheld = uar_buf_make(UAR_LIMIT_AGENT_WITHHELD);
	cli->insight = (struct uab_insight){ .trace = o.trace,
					     .trace_ctx = o.trace_ctx,
					     .keep_words = o.keep_words };
	if (!uab_supervisor_path(o.supervisor, cli->supervisor, sizeof cli->supervisor))
		cli->supervisor[0] = 0;
	uab_cgroup_parent(o.cgroup, cli->cgroup);
	return cli->caps && !uab_copy(uaa_str_c(c->kind), &cli->kind) &&
	       !uab_copy(binary, &cli->binary) && !uab_copy(c->default_dir, &cli->default_dir) &&
	       !uab_caps_add_all(cli->caps, c->caps) && !configure_env(cli, c) &&
	       !cli->withheld.err;
}

struct uab_cli *uab_cli_new(const struct uab_cli_config *c)
{
	struct uab_cli *cli = uar_zalloc(sizeof *cli);

	if (!cli)
		return NULL;
	cli->refs = 1;
	pthread_mutex_init(&cli->mu, NULL);
	if (fill(cli, c))
		return cli;
	uab_cli_unref(cli);
	return NULL;
}

static uaa_str op_kind(void *self)
{
	return ((struct uab_cli *)self)->kind;
}

static const uaa_caps *op_caps(void *self)
{
	return ((struct uab_cli *)self)->caps;
}

static void op_destroy(void *self)
{
	uab_cli_unref(self);
}

uaa_status uab_cli_opt_in(struct uab_cli *cli, bool external_sandbox, bool mcp_write)
{
	uaa_status s = UAA_OK;

	if (external_sandbox)
		s = uaa_caps_add(cli->caps, UAB_STR("agent_api.exec.external_sandbox.v1"));
	if (!s && mcp_write)
		s = uaa_caps_add(cli->caps, UAB_STR("agent_api.tools.mcp.add.v1"));
	if (!s && mcp_write)
		s = uaa_caps_add(cli->caps, UAB_STR("agent_api.tools.mcp.remove.v1"));
	return s;
}

uaa_backend *
uab_cli_backend(struct uab_cli *cli,
		uaa_status (*run)(void *, const uaa_request *, uaa_run **, uaa_error **),
		uaa_status (*mcp)(void *, const uaa_mcp_request *, uaa_mcp_result **, uaa_error **))
{
	uaa_backend_ops ops = { .struct_size = sizeof ops,
				.abi = uaa_abi_version(),
				.kind = op_kind,
				.caps = op_caps,
				.run = run,
				.mcp = mcp,
				.destroy = op_destroy };
	uaa_backend *b = cli ? uaa_backend_new(&ops, cli) : NULL;

	if (!b)
		uab_cli_unref(cli);
	return b;
}

/* --- jobs --- */

static void session_release(struct uab_cli_job *job)
{
	struct uab_cli *cli = job->cli;

	if (!job->holds_session)
		return;
	pthread_mutex_lock(&cli->mu);
	for (size_t i = 0; i < cli->busy.n; i++) {
		struct uab_pair *p = &cli->busy.at[i];

		if (!uar_str_eq(uab_str(p->name), job->opt.session_id))
			continue;
		uar_free((char *)p->name.ptr);
		uar_free((char *)p->value.ptr);
		memmove(p, p + 1, (cli->busy.n - i - 1) * sizeof *p);
		cli->busy.n--;
		break;
	}
	pthread_mutex_unlock(&cli->mu);
}

bool uab_session_take(struct uab_cli_job *job, uar_str id)
{
	struct uab_cli *cli = job->cli;
	bool mine;

	if (job->holds_session)
		return true;
	job->opt.session_id = id;
	pthread_mutex_lock(&cli->mu);
	mine = !uab_pairs_get(&cli->busy, id).ptr &&
	       uab_pairs_set(&cli->busy, uab_pub(id), UAB_STR("")) == UAA_OK;
	pthread_mutex_unlock(&cli->mu);
	job->holds_session = mine;
	return mine;
}

static void job_destroy(void *ctx)
{
	struct uab_cli_job *job = ctx;

	session_release(job);
	if (job->map)
		job->map_free(job->map);
	uar_free(job->map);
	uab_cli_unref(job->cli);
	uar_arena_fini(&job->arena);
	uar_free(job);
}

struct uab_map *uab_job_map(struct uab_cli_job *job, size_t size,
			    void (*map_free)(struct uab_map *m))
{
	if (job->map)
		job->map_free(job->map);
	uar_free(job->map);
	job->map = uar_zalloc(size);
	job->map_free = map_free;
	return job->map;
}

void uab_arg(struct uab_cli_job *job, const char *arg)
{
	if (job->argc + 1 < UAR_LIMIT_AGENT_ARGS)
		job->argv[job->argc++] = (char *)arg;
	else
		job->nomem = true;
}

void uab_arg_str(struct uab_cli_job *job, uar_str arg)
{
	uar_str copy = uar_arena_str(&job->arena, arg);

	if (copy.p)
		uab_arg(job, copy.p);
	else
		job->nomem = true;
}

void uab_job_process(struct uab_drive *d, struct uab_cli_job *job, struct uab_map *m, uar_str input)
{
	struct uab_spawn spec = { .cwd = job->cwd, .envp = job->envp };

	job->argv[job->argc] = NULL;
	spec.argv = job->argv;
	if (job->nomem)
		uab_failed(m, "%s backend error: too many arguments", m->kind);
	else
		uab_drive_process(d, &spec, m, input);
}

void uab_warn_external(struct uab_cli_job *job, struct uab_map *m)
{
	if (job->opt.external_sandbox)
		uab_status(m, "DANGEROUS: external sandbox exec policy enabled "
			      "(agent_api.exec.external_sandbox.v1=true)");
}

struct start {
	uab_cli_body *body;
	struct uab_cli_job *job;
};

static struct uab_map *run_body(struct uab_drive *d, void *ctx)
{
	struct start *s = ctx;

	return s->body(d, s->job);
}

static void start_destroy(void *ctx)
{
	struct start *s = ctx;

	job_destroy(s->job);
	uar_free(s);
}

static uaa_status fill_job(struct uab_cli_job *job, const uaa_request *r, uaa_error **error)
{
	struct uab_cli *cli = job->cli;
	uaa_str dir = r->working_dir.ptr ? r->working_dir : cli->default_dir;
	char here[4096];
	uaa_status s;
	uar_str cwd;

	if (!getcwd(here, sizeof here))
		return uab_fail(error, UAA_E_BACKEND, UAR_STR_NONE,
				UAR_STR("working directory of the host is not readable"));
	if (!dir.ptr)
		cwd = uar_arena_str(&job->arena, uar_str_c(here));
	else if (dir.ptr[0] == '/')
		cwd = uar_arena_str(&job->arena, uab_str(dir));
	else
		cwd = uar_arena_printf(&job->arena, "%s/%s", here, dir.ptr);
	if (!cwd.p)
		return UAA_E_NOMEM;
	job->cwd = cwd.p;
	s = uab_options_parse(job, r, error);
	if (s)
		return s;
	job->prompt = uar_arena_str(&job->arena, uab_str(r->prompt));
	job->envp = uab_make_env(&job->arena, &cli->env, &r->env);
	return job->prompt.p && job->envp ? UAA_OK : UAA_E_NOMEM;
}

uaa_status uab_cli_run(struct uab_cli *cli, const uaa_request *r, uab_cli_body *body, uaa_run **out,
		       uaa_error **error)
{
	struct uab_cli_job *job = uar_zalloc(sizeof *job);
	struct start *start = uar_zalloc(sizeof *start);
	struct uab_job spec = { .kind = cli->kind,
				.t = cli->times,
				.insight = cli->insight,
				.supervisor = cli->supervisor[0] ? cli->supervisor : NULL,
				.cgroup = cli->cgroup,
				.timeout_ms =
					r->has_timeout ? r->timeout_ms : cli->default_timeout_ms,
				.body = run_body,
				.destroy = start_destroy,
				.ctx = start };
	uaa_status s;

	spec.insight.withheld = uar_buf_str(&cli->withheld);
	if (!job || !start) {
		uar_free(job);
		uar_free(start);
		return UAA_E_NOMEM;
	}
	*start = (struct start){ body, job };
	uar_arena_init(&job->arena, 0);
	atomic_fetch_add(&cli->refs, 1);
	job->cli = cli;
	s = fill_job(job, r, error);
	if (s) {
		start_destroy(start);
		return s;
	}
	spec.respond = !job->opt.non_interactive &&
		       uaa_caps_contains(cli->caps, UAB_STR("agent_api.control.respond.v1"));
	return uab_drive_start(&spec, out, error);
}
