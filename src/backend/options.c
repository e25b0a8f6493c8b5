/* options.c - the extension values, checked in the fixed order before any process
 * exists. Messages name keys, never values. */
#include "backend/cli.h"
#include "backend/limits.h"
#include "json/sizes.h"

#include <sys/stat.h>

#define K_NON_INTERACTIVE "agent_api.exec.non_interactive"
#define K_EXTERNAL	  "agent_api.exec.external_sandbox.v1"
#define K_MODEL		  "agent_api.config.model.v1"
#define K_DIRS		  "agent_api.exec.add_dirs.v1"
#define K_RESUME	  "agent_api.session.resume.v1"
#define K_FORK		  "agent_api.session.fork.v1"
#define K_APPROVAL	  "backend.codex.exec.approval_policy"
#define K_SANDBOX	  "backend.codex.exec.sandbox_mode"

struct parse {
	const uaa_request *request;
	uar_str cwd;
	struct uar_arena *arena;
	struct uab_options *out;
	uaa_error **error;
};

static uaa_status invalid(struct parse *p, const char *key, const char *rest)
{
	char text[160];

	snprintf(text, sizeof text, "invalid %s%s", key, rest);
	return uab_invalid(p->error, text);
}

static uaa_status parse_bool(struct parse *p, const char *key, const struct uar_json *v, bool *out)
{
	char text[160];

	if (v->kind == UAR_JSON_BOOL) {
		*out = v->b;
		return UAA_OK;
	}
	snprintf(text, sizeof text, "%s must be a boolean", key);
	return uab_invalid(p->error, text);
}

static uaa_status on_non_interactive(struct parse *p, const char *key, const struct uar_json *v)
{
	return parse_bool(p, key, v, &p->out->non_interactive);
}

static uaa_status on_external(struct parse *p, const char *key, const struct uar_json *v)
{
	return parse_bool(p, key, v, &p->out->external_sandbox);
}

static uaa_status on_model(struct parse *p, const char *key, const struct uar_json *v)
{
	uar_str model = v->kind == UAR_JSON_STRING ? uab_trim(v->text) : UAR_STR_NONE;

	if (model.n == 0 || model.n > UAR_LIMIT_AGENT_MODEL || uab_has_nul(model))
		return invalid(p, key, "");
	p->out->model = model;
	return UAA_OK;
}

/* --- directories --- */

uar_str uab_path_resolve(struct uar_arena *arena, uar_str cwd, uar_str path)
{
	size_t room = cwd.n + path.n + 3, n = 0;
	char *out = uar_arena_bytes(arena, room);
	uar_str parts[2] = { path.p && path.n && path.p[0] == '/' ? UAR_STR("") : cwd, path };

	if (!out)
		return UAR_STR_NONE;
	for (int i = 0; i < 2; i++) {
		uar_str rest = parts[i];

		while (rest.n) {
			uar_str part = uar_str_cut(rest, '/', &rest);

			if (part.n == 0 || uar_str_is(part, "."))
				continue;
			if (uar_str_is(part, "..")) {
				while (n && out[n - 1] != '/')
					n--;
				n -= n > 0;
				continue;
			}
			out[n++] = '/';
			memcpy(out + n, part.p, part.n);
			n += part.n;
		}
	}
	if (n == 0)
		out[n++] = '/';
	out[n] = 0;
	return uar_str_n(out, n);
}

static bool known_dir(const struct uab_options *o, uar_str path)
{
	for (size_t i = 0; i < o->dir_count; i++)
		if (uar_str_is(path, o->dirs[i]))
			return true;
	return false;
}

static uaa_status one_dir(struct parse *p, const struct uar_json *v, size_t index)
{
	uar_str dir = v->kind == UAR_JSON_STRING ? uab_trim(v->text) : UAR_STR_NONE;
	uar_str path = UAR_STR_NONE;
	struct stat st;
	char rest[40];

	if (dir.n && dir.n <= UAR_LIMIT_AGENT_DIR && !uab_has_nul(dir)) {
		path = uab_path_resolve(p->arena, p->cwd, dir);
		if (!path.p)
			return UAA_E_NOMEM;
	}
	if (!path.n || stat(path.p, &st) || !S_ISDIR(st.st_mode)) {
		snprintf(rest, sizeof rest, ".dirs[%zu]", index);
		return invalid(p, K_DIRS, rest);
	}
	if (!known_dir(p->out, path))
		p->out->dirs[p->out->dir_count++] = path.p;
	return UAA_OK;
}

static uaa_status on_dirs(struct parse *p, const char *key, const struct uar_json *v)
{
	const struct uar_json *dirs = uab_get(v, "dirs");
	size_t i = 0;

	if (v->kind != UAR_JSON_OBJECT)
		return invalid(p, key, "");
	if (!dirs || dirs->kind != UAR_JSON_ARRAY || dirs->count < 1 ||
	    dirs->count > UAR_LIMIT_AGENT_DIRS)
		return invalid(p, key, ".dirs");
	if (v->count != 1)
		return invalid(p, key, "");
	for (const struct uar_json *d = dirs->first; d; d = d->next) {
		uaa_status s = one_dir(p, d, i++);

		if (s)
			return s;
	}
	return UAA_OK;
}

/* --- sessions --- */

static uaa_status on_select(struct parse *p, const char *key, const struct uar_json *v, bool fork)
{
	uar_str selector = uab_get_str(v, "selector"), id = uab_get_str(v, "id");
	const struct uar_json *has_id = uab_get(v, "id");

	if (v->kind != UAR_JSON_OBJECT)
		return invalid(p, key, "");
	if (uar_str_is(selector, "last") && v->count == 1) {
		p->out->select = fork ? UAB_FORK_LAST : UAB_RESUME_LAST;
		return UAA_OK;
	}
	id = uab_trim(id);
	if (!uar_str_is(selector, "id") || v->count != 2 || !has_id || id.n == 0 ||
	    id.n > UAA_MAX_SESSION_ID || uab_has_nul(id))
		return invalid(p, key, "");
	p->out->select = fork ? UAB_FORK_ID : UAB_RESUME_ID;
	p->out->session_id = id;
	return UAA_OK;
}

static uaa_status on_resume(struct parse *p, const char *key, const struct uar_json *v)
{
	return on_select(p, key, v, false);
}

static uaa_status on_fork(struct parse *p, const char *key, const struct uar_json *v)
{
	return on_select(p, key, v, true);
}

/* --- words out of a list --- */

static uaa_status word(struct parse *p, const char *key, const struct uar_json *v,
		       const char *const *words, uar_str *out)
{
	for (; *words; words++)
		if (v->kind == UAR_JSON_STRING && uar_str_is(v->text, *words)) {
			*out = v->text;
			return UAA_OK;
		}
	return invalid(p, key, "");
}

static uaa_status on_approval(struct parse *p, const char *key, const struct uar_json *v)
{
	static const char *const words[] = { "untrusted", "on-failure", "on-request", "never",
					     NULL };

	return word(p, key, v, words, &p->out->approval_policy);
}

static uaa_status on_sandbox(struct parse *p, const char *key, const struct uar_json *v)
{
	static const char *const words[] = { "read-only", "workspace-write", "danger-full-access",
					     NULL };

	return word(p, key, v, words, &p->out->sandbox_mode);
}

/* The model comes first, then the others in the order of their names. */
static const struct {
	const char *key;
	uaa_status (*parse)(struct parse *p, const char *key, const struct uar_json *v);
} options[] = {
	{ K_MODEL, on_model },	     { K_DIRS, on_dirs },
	{ K_EXTERNAL, on_external }, { K_NON_INTERACTIVE, on_non_interactive },
	{ K_FORK, on_fork },	     { K_RESUME, on_resume },
	{ K_APPROVAL, on_approval }, { K_SANDBOX, on_sandbox },
};

bool uab_is_option(uar_str key)
{
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		if (uar_str_is(key, options[i].key))
			return true;
	return false;
}

static bool given(const uaa_request *r, const char *key)
{
	return uaa_request_extension(r, uaa_str_c(key)).ptr != NULL;
}

static uaa_status contradictions(struct parse *p, const struct uab_cli *cli)
{
	const struct uab_options *o = p->out;
	char prefix[160];

	if (given(p->request, K_RESUME) && given(p->request, K_FORK))
		return uab_invalid(p->error, K_RESUME " excludes " K_FORK);
	if (o->external_sandbox && !o->non_interactive)
		return uab_invalid(p->error, K_EXTERNAL " requires " K_NON_INTERACTIVE);
	snprintf(prefix, sizeof prefix, "backend.%.*s.exec.", UAR_FMT(uab_str(cli->kind)));
	for (size_t i = 0; o->external_sandbox && i < p->request->extensions.n; i++)
		if (uar_str_starts(uab_str(p->request->extensions.at[i].name), uar_str_c(prefix)))
			return uab_invalid(p->error, K_EXTERNAL " excludes backend exec options");
	if (o->non_interactive && o->approval_policy.n && !uar_str_is(o->approval_policy, "never"))
		return uab_invalid(p->error, K_APPROVAL " must be never when non-interactive");
	return UAA_OK;
}

/* A capability that is no option is not something a request can set. */
static uaa_status only_options(struct parse *p, const struct uab_cli *cli)
{
	for (size_t i = 0; i < p->request->extensions.n; i++) {
		uar_str key = uab_str(p->request->extensions.at[i].name);

		if (!uab_is_option(key))
			return uab_fail(p->error, UAA_E_UNSUPPORTED_CAPABILITY, uab_str(cli->kind),
					key);
	}
	return UAA_OK;
}

uaa_status uab_options_parse(struct uab_cli_job *job, const uaa_request *r, uaa_error **error)
{
	struct uar_arena *arena = &job->arena;
	struct parse p = { r, uar_str_c(job->cwd), arena, &job->opt, error };
	uaa_status s;

	job->opt = (struct uab_options){ .non_interactive = true };
	s = only_options(&p, job->cli);
	for (size_t i = 0; i < ARRAY_LEN(options) && !s; i++) {
		uaa_str json = uaa_request_extension(r, uaa_str_c(options[i].key));
		uar_str copy = json.ptr ? uar_arena_str(arena, uab_str(json)) : UAR_STR_NONE;
		const struct uar_json *v;

		if (!json.ptr)
			continue;
		if (!copy.p || uar_json_parse(copy, NULL, arena, &v, NULL))
			return UAA_E_NOMEM; /* it was JSON when it was set */
		s = options[i].parse(&p, options[i].key, v);
	}
	return s ? s : contradictions(&p, job->cli);
}
