/* mcp.c - management calls: one process, its output bounded, no events.
 *
 * They run on the caller's thread through the same supervisor as runs do. */
#include "backend/cli.h"
#include "backend/limits.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

enum { READ_BYTES = 65536 };

struct uaa_mcp_result {
	int wait_status;
	struct uar_buf out, err;
	bool out_cut, err_cut;
};

bool uaa_mcp_result_exited(const uaa_mcp_result *r, int *out_code)
{
	if (!r || r->wait_status & 0x7f)
		return false;
	if (out_code)
		*out_code = (r->wait_status >> 8) & 0xff;
	return true;
}

bool uaa_mcp_result_signaled(const uaa_mcp_result *r, int *out_signal)
{
	if (!r || !(r->wait_status & 0x7f))
		return false;
	if (out_signal)
		*out_signal = r->wait_status & 0x7f;
	return true;
}

uaa_str uaa_mcp_result_stdout(const uaa_mcp_result *r, bool *out_truncated)
{
	if (out_truncated)
		*out_truncated = r && r->out_cut;
	return r ? uab_pub(uar_buf_str(&r->out)) : UAB_NONE;
}

uaa_str uaa_mcp_result_stderr(const uaa_mcp_result *r, bool *out_truncated)
{
	if (out_truncated)
		*out_truncated = r && r->err_cut;
	return r ? uab_pub(uar_buf_str(&r->err)) : UAB_NONE;
}

void uaa_mcp_result_unref(uaa_mcp_result *r)
{
	if (!r)
		return;
	uar_buf_fini(&r->out);
	uar_buf_fini(&r->err);
	uar_free(r);
}

/* --- checks --- */

static bool blank(uaa_str s)
{
	return uab_trim(uab_str(s)).n == 0;
}

static bool arg_ok(uaa_str s)
{
	return s.ptr && uar_utf8_valid(uab_str(s)) && !uab_has_nul(uab_str(s)) && !blank(s);
}

static bool url_ok(uaa_str s)
{
	uar_str u = uab_str(s), rest = UAR_STR_NONE;

	if (!arg_ok(s))
		return false;
	if (uar_str_starts(u, UAR_STR("http://")))
		rest = uar_str_from(u, 7);
	else if (uar_str_starts(u, UAR_STR("https://")))
		rest = uar_str_from(u, 8);
	return rest.n && rest.p[0] != '/' && !memchr(u.p, ' ', u.n);
}

static bool var_ok(uaa_str s)
{
	for (size_t i = 0; s.ptr && i < s.len; i++) {
		char c = s.ptr[i];
		bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';

		if (!letter && !(i && c >= '0' && c <= '9'))
			return false;
	}
	return s.ptr && s.len > 0;
}

static uaa_status check_add(const uaa_mcp_request *r, uaa_error **error)
{
	if ((r->command_count > 0) == (r->url.ptr != NULL))
		return uab_invalid(error, "either command or url");
	for (size_t i = 0; i < r->command_count; i++)
		if (!arg_ok(r->command[i]))
			return uab_invalid(error, "command must not have blank items");
	if (r->url.ptr && !url_ok(r->url))
		return uab_invalid(error, "url must be absolute http or https");
	if (r->bearer_token_env_var.ptr && (!r->url.ptr || !var_ok(r->bearer_token_env_var)))
		return uab_invalid(error, "bearer_token_env_var must be a variable name for a url");
	for (size_t i = 0; i < r->server_env_count; i++)
		if (!var_ok(r->server_env[i].name) || uab_has_nul(uab_str(r->server_env[i].value)))
			return uab_invalid(error, "env names must be variable names");
	return UAA_OK;
}

static uaa_status check(const uaa_mcp_request *r, uaa_error **error)
{
	if (r->op != UAA_MCP_LIST && (!arg_ok(r->name) || uab_trim(uab_str(r->name)).p[0] == '-'))
		return uab_invalid(error, "name must not be blank or start with a dash");
	for (size_t i = 0; i < r->env_count; i++)
		if (!uab_env_name_ok(uab_str(r->env[i].name)) || !r->env[i].value.ptr ||
		    uab_has_nul(uab_str(r->env[i].value)))
			return uab_invalid(error, "env is not valid");
	return r->op == UAA_MCP_ADD ? check_add(r, error) : UAA_OK;
}

/* --- the call --- */

static void add_arg(struct uab_mcp_argv *a, uar_str s)
{
	uar_str copy = uar_arena_str(a->arena, s);

	if (copy.p && a->n < UAR_LIMIT_AGENT_ARGS)
		a->v[a->n++] = (char *)copy.p;
	else
		a->nomem = true;
}

void uab_mcp_arg(struct uab_mcp_argv *a, uaa_str s)
{
	add_arg(a, uab_trim(uab_str(s)));
}

void uab_mcp_verb(const uaa_mcp_request *r, struct uab_mcp_argv *a)
{
	static const char *const verbs[] = { "list", "get", "add", "remove" };

	uab_mcp_arg(a, UAB_STR("mcp"));
	uab_mcp_arg(a, uaa_str_c(verbs[r->op]));
}

void uab_mcp_env(const uaa_mcp_request *r, struct uab_mcp_argv *a)
{
	char pair[4096];

	for (size_t i = 0; i < r->server_env_count; i++) {
		int n = snprintf(pair, sizeof pair, "%.*s=%.*s",
				 UAR_FMT(uab_str(r->server_env[i].name)),
				 UAR_FMT(uab_str(r->server_env[i].value)));

		uab_mcp_arg(a, UAB_STR("--env"));
		a->nomem |= n < 0 || (size_t)n >= sizeof pair;
		add_arg(a, uar_str_c(pair)); /* space at the end of a value is the value's */
	}
}

static void read_some(int *fd, struct uar_buf *keep, char *buf)
{
	ssize_t n = read(*fd, buf, READ_BYTES);
	size_t room = keep->max - keep->n;

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0)
		uab_close(fd);
	else
		uar_buf_add(keep, buf, (size_t)n < room ? (size_t)n : room);
}

/* True: the program ended by itself in time. `buf` has READ_BYTES. */
static bool watch(struct uab_child *c, struct uar_buf *out, struct uar_buf *err, char *buf,
		  int64_t until)
{
	bool in_time = true;

	while (!(c->empty && c->out < 0 && c->err < 0) && !c->lost) {
		struct pollfd f[3] = { { .fd = c->control, .events = POLLIN },
				       { .fd = c->out, .events = POLLIN },
				       { .fd = c->err, .events = POLLIN } };
		int64_t left = until ? (until - uab_now_us() + 999) / 1000 : 1000;

		if (left <= 0) {
			in_time = false;
			break; /* closing the control socket kills everything */
		}
		if (poll(f, 3, left > 1000 ? 1000 : (int)left) < 0)
			continue;
		if (f[0].revents)
			uab_child_control(c);
		if (f[1].revents)
			read_some(&c->out, out, buf);
		if (f[2].revents)
			read_some(&c->err, err, buf);
	}
	return in_time && c->exited && !c->lost;
}

static void finish_text(struct uar_buf *raw, struct uar_buf *out, bool *cut)
{
	struct uar_buf clean = uar_buf_make(3 * raw->n + 1);

	uab_lossy(uar_buf_str(raw), &clean);
	*out = uar_buf_make(UAR_LIMIT_AGENT_COMMAND_OUTPUT);
	*cut = clean.n > UAR_LIMIT_AGENT_COMMAND_OUTPUT;
	uab_truncate(uar_buf_str(&clean), UAR_LIMIT_AGENT_COMMAND_OUTPUT, out);
	uar_buf_fini(&clean);
	uar_buf_fini(raw);
}

static uaa_status failed(const struct uab_cli *cli, uaa_cause cause, const char *why,
			 uaa_error **error)
{
	char text[200];

	if (!error)
		return UAA_E_BACKEND;
	snprintf(text, sizeof text, "%s mcp command failed: %s (output redacted)", cli->kind.ptr,
		 why);
	*error = uab_error_caused(cause, uaa_str_c(text));
	return *error ? UAA_E_BACKEND : UAA_E_NOMEM;
}

/* Reports why a call has no result. Call after uab_child_reap, which keeps what this reads. */
static uaa_status explain(const struct uab_cli *cli, const struct uab_child *c, uaa_error **error)
{
	if (c->failed)
		return failed(cli,
			      c->phase == UAB_PHASE_EXEC && c->failed_errno == ENOENT
				      ? UAA_CAUSE_NO_PROGRAM
			      : c->phase == UAB_PHASE_CHDIR ? UAA_CAUSE_NO_DIRECTORY
							    : UAA_CAUSE_UNKNOWN,
			      "spawn", error);
	if (c->lost && !c->empty)
		return failed(cli, UAA_CAUSE_TERMINATION, UAB_LOST, error);
	if (c->lost)
		return failed(cli, UAA_CAUSE_CRASH, "the supervisor was killed", error);
	return failed(cli, UAA_CAUSE_TIMEOUT, "timeout", error);
}

static uaa_status execute(struct uab_cli *cli, const struct uab_spawn *spec, int64_t timeout_ms,
			  uaa_mcp_result **result, uaa_error **error)
{
	struct uar_buf out = uar_buf_make(UAR_LIMIT_AGENT_COMMAND_OUTPUT + 1), err = out;
	int64_t until = timeout_ms > 0 ? uab_now_us() + timeout_ms * 1000 : 0;
	struct uab_child c;
	struct uaa_mcp_result *r;
	char *buf = uar_alloc(READ_BYTES);
	bool ended;

	if (!buf)
		return UAA_E_NOMEM;
	if (uab_child_spawn(&c, spec)) {
		uar_free(buf);
		return failed(cli, UAA_CAUSE_UNKNOWN, "spawn", error);
	}
	uab_close(&c.in);
	ended = watch(&c, &out, &err, buf, until);
	uar_free(buf);
	if (c.lost)
		uab_child_sweep(&c, uab_now_us() + cli->times.kill_us);
	uab_child_reap(&c);
	r = ended ? uar_zalloc(sizeof *r) : NULL;
	if (!r) {
		uar_buf_fini(&out);
		uar_buf_fini(&err);
		return ended ? UAA_E_NOMEM : explain(cli, &c, error);
	}
	r->wait_status = c.status;
	finish_text(&out, &r->out, &r->out_cut);
	finish_text(&err, &r->err, &r->err_cut);
	*result = r;
	return UAA_OK;
}

static uaa_status call(struct uab_cli *cli, const uaa_mcp_request *r, struct uab_mcp_argv *a,
		       uaa_mcp_result **out, uaa_error **error)
{
	struct uab_pairs env = { 0 };
	struct uab_spawn spec = {
		.supervisor = cli->supervisor, .cgroup = cli->cgroup, .argv = a->v, .grace_ms = 250
	};
	uaa_str dir = r->working_dir.ptr ? r->working_dir : cli->default_dir;
	uaa_status s = UAA_OK;

	for (size_t i = 0; i < r->env_count && !s; i++)
		s = uab_pairs_set(&env, r->env[i].name, r->env[i].value);
	spec.envp = s ? NULL : uab_make_env(a->arena, &cli->env, &env);
	spec.cwd = dir.ptr ? uar_arena_str(a->arena, uab_str(dir)).p : NULL;
	uab_pairs_fini(&env);
	if (!spec.envp || a->nomem || (dir.ptr && !spec.cwd))
		return UAA_E_NOMEM;
	if (r->timeout_ms == 0)
		return failed(cli, UAA_CAUSE_TIMEOUT, "timeout", error);
	if (!cli->supervisor[0])
		return failed(cli, UAA_CAUSE_UNKNOWN, "supervisor not found", error);
	return execute(cli, &spec, r->timeout_ms, out, error);
}

uaa_status uab_mcp_call(struct uab_cli *cli, const uaa_mcp_request *r, uab_mcp_build *build,
			uaa_mcp_result **out, uaa_error **error)
{
	struct uar_arena arena;
	struct uab_mcp_argv a = { .arena = &arena };
	uaa_status s = check(r, error);

	if (s)
		return s;
	uar_arena_init(&arena, 0);
	uab_mcp_arg(&a, cli->binary);
	s = build(r, &a, error);
	if (!s)
		s = call(cli, r, &a, out, error);
	uar_arena_fini(&arena);
	return s;
}
