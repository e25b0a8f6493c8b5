/* definitions.c - the agents of a directory, and those that need no definition. */
#include <dirent.h>
#include <errno.h>

#include "agent/limits.h"
#include "agent/source.h"
#include "base/file.h"
#include "bridge/bridge_int.h"

enum { ENV_PAIRS = 160, PATH_BYTES = 4096, AD_HOC_BYTES = 1024, NEVER_MS = 315360000 };

static void note(const struct uar_bridge *b, enum uar_log_level level, const char *what,
		 const char *file, uar_str text)
{
	struct uar_bridge_note n = { level, what, file, text };

	if (b->o.note)
		b->o.note(b->o.ctx, &n);
}

struct bridge_agent *bridge_find(const struct bridge_set *set, uar_str agent_id)
{
	for (size_t i = 0; set && i < set->count; i++)
		if (uar_str_eq(set->at[i]->def.info.agent_id, agent_id))
			return set->at[i];
	return NULL;
}

static struct bridge_agent *find_file(const struct bridge_set *set, const char *file)
{
	for (size_t i = 0; set && i < set->count; i++)
		if (*file && !strcmp(set->at[i]->file, file))
			return set->at[i];
	return NULL;
}

/* --- the backend of a definition ------------------------------------------------ */

static const char *variable(char **env, uar_str name)
{
	for (; env && *env; env++)
		if (uar_str_starts(uar_str_c(*env), name) && (*env)[name.n] == '=')
			return *env + name.n + 1;
	return NULL;
}

static size_t pairs_of(const struct uar_bridge *b, const struct uar_definition_backend *d,
		       uaa_env_pair *out)
{
	size_t n = 0;

	for (size_t i = 0; i < d->pass_env_count && n < ENV_PAIRS; i++) {
		const char *v = variable(b->o.env, d->pass_env[i]);

		if (v)
			out[n++] = (uaa_env_pair){ bridge_pub(d->pass_env[i]), uaa_str_c(v) };
	}
	for (size_t i = 0; i < d->env_count && n < ENV_PAIRS; i++)
		out[n++] = (uaa_env_pair){ bridge_pub(d->env[i][0]), bridge_pub(d->env[i][1]) };
	return n;
}

static uint32_t inherit_of(const struct uar_definition_backend *d)
{
	return uar_str_is(d->inherit_env, "all")    ? UAA_ENV_ALL
	       : uar_str_is(d->inherit_env, "none") ? UAA_ENV_NONE
						    : UAA_ENV_ALLOWLIST;
}

/* What absent means to the library is a NULL pointer. */
static uaa_str optional(uar_str s)
{
	return s.n ? bridge_pub(s) : (uaa_str){ NULL, 0 };
}

struct parts {
	uaa_env_pair env[ENV_PAIRS];
	size_t env_count;
	uaa_process_options process;
};

static uaa_backend *make_codex(const struct uar_definition_backend *d, const struct parts *p)
{
	uaa_codex_config c = {
		.struct_size = sizeof c,
		.binary = optional(d->program),
		.codex_home = optional(d->home),
		.default_working_dir = optional(d->working_dir),
		.env = p->env,
		.env_count = p->env_count,
		.inherit_env = inherit_of(d),
		.transport = uar_str_is(d->transport, "app-server") ? UAA_CODEX_APP_SERVER
			     : uar_str_is(d->transport, "exec")	    ? UAA_CODEX_EXEC
								    : UAA_CODEX_AUTO,
		.process = &p->process,
	};

	return uaa_codex_backend_new(&c);
}

static uaa_backend *make_claude(const struct uar_definition_backend *d, const struct parts *p)
{
	uaa_claude_code_config c = {
		.struct_size = sizeof c,
		.binary = optional(d->program),
		.claude_home = optional(d->home),
		.default_working_dir = optional(d->working_dir),
		.env = p->env,
		.env_count = p->env_count,
		.inherit_env = inherit_of(d),
		.process = &p->process,
		.report_hooks = d->report_hooks,
	};

	return uaa_claude_code_backend_new(&c);
}

static uaa_backend *make_acp(const struct uar_definition *def, const struct parts *p)
{
	const struct uar_definition_backend *d = &def->backend;
	uaa_str args[64];
	uaa_acp_config c = {
		.struct_size = sizeof c,
		.kind = bridge_pub(def->info.kind),
		.binary = bridge_pub(d->program),
		.args = args,
		.default_working_dir = optional(d->working_dir),
		.env = p->env,
		.env_count = p->env_count,
		.inherit_env = inherit_of(d),
		.can_resume = d->can_resume,
		.can_fork = d->can_fork,
		.can_add_dirs = d->add_dir_count > 0,
		.process = &p->process,
	};

	while (c.arg_count < d->arg_count && c.arg_count < ARRAY_LEN(args)) {
		args[c.arg_count] = bridge_pub(d->args[c.arg_count]);
		c.arg_count++;
	}
	return uaa_acp_backend_new(&c);
}

/* Questions wait as long as the runtime lets them. */
static uaa_backend *make_backend(const struct uar_bridge *b, const struct uar_definition *def)
{
	struct parts p = { .process = {
				   .struct_size = sizeof p.process,
				   .start_ms = def->backend.start_us / 1000,
				   .idle_ms = def->backend.idle_us / 1000,
				   .approval_ms = (int64_t)NEVER_MS * 1000,
				   .keep_words = b->o.local,
			   } };

	p.env_count = pairs_of(b, &def->backend, p.env);
	if (uar_str_is(def->info.entry, "backend.codex"))
		return make_codex(&def->backend, &p);
	if (uar_str_is(def->info.entry, "backend.claude_code"))
		return make_claude(&def->backend, &p);
	return make_acp(def, &p);
}

static uar_err open_agent(const struct uar_bridge *b, struct bridge_agent *a,
			  struct uar_error *error)
{
	uaa_backend *backend;
	uaa_error *why = NULL;
	uar_err e = UAR_OK;

	if (!uaa_has_backend(bridge_pub(uar_str_from(a->def.info.entry, sizeof "backend." - 1))))
		return uar_error_set(error, UAR_ENOTIMPL, "this build has no %.*s",
				     UAR_FMT(a->def.info.entry));
	backend = make_backend(b, &a->def);
	a->gateway = uaa_gateway_new();
	if (!backend || !a->gateway || uaa_kind_new(uaa_backend_kind(backend), &a->kind, NULL))
		e = UAR_ENOMEM;
	if (!e && uaa_gateway_register(a->gateway, backend, &why))
		e = uar_error_set(error, UAR_EINVALID, "%s",
				  why ? uaa_error_display(why).ptr : "refused");
	if (!e)
		a->interactive = uaa_caps_contains(uaa_backend_caps(backend),
						   uaa_str_c("agent_api.control.respond.v1"));
	uaa_error_unref(why);
	uaa_backend_unref(backend);
	return e;
}

struct bridge_agent *bridge_agent_ref(struct bridge_agent *a)
{
	a->refs++;
	return a;
}

void bridge_agent_unref(struct bridge_agent *a)
{
	if (!a || --a->refs)
		return;
	uaa_gateway_unref(a->gateway);
	uaa_kind_unref(a->kind);
	uar_definition_fini(&a->def);
	uar_free(a);
}

void bridge_set_destroy(struct bridge_set *set)
{
	for (size_t i = 0; set && i < set->count; i++)
		bridge_agent_unref(set->at[i]);
	uar_free(set);
}

/* --- one set of them ------------------------------------------------------------------ */

struct loading {
	const struct uar_bridge *b;
	const struct bridge_set *old;
	struct bridge_set *set;
};

static uar_err fits(const struct loading *l, uar_str id, struct uar_error *error)
{
	if (l->set->count == UAR_LIMIT_AGENTS)
		return uar_error_set(error, UAR_ETOOBIG, "%d agents are loaded already",
				     UAR_LIMIT_AGENTS);
	if (bridge_find(l->set, id) || (l->b->o.taken && l->b->o.taken(id)))
		return uar_error_set(error, UAR_EEXISTS, "there is an agent %.*s already",
				     UAR_FMT(id));
	return UAR_OK;
}

static uar_err take(struct loading *l, struct bridge_agent *a, struct uar_error *error)
{
	uar_err e = fits(l, a->def.info.agent_id, error);

	if (!e)
		l->set->at[l->set->count++] = bridge_agent_ref(a);
	return e;
}

static uar_err add(struct loading *l, uar_str text, const char *file, struct uar_error *error)
{
	struct bridge_agent *a = uar_zalloc(sizeof *a);
	uar_err e;

	if (!a)
		return UAR_ENOMEM;
	a->refs = 1;
	snprintf(a->file, sizeof a->file, "%s", file);
	uar_sha256_hex(text, a->sha256);
	e = file[0] ? uar_definition_read_file(file, text, &a->def, error)
		    : uar_definition_read(text, &a->def, error);
	if (e) {
		uar_free(a); /* there is nothing in it */
		return e;
	}
	e = uar_str_starts(a->def.info.entry, UAR_STR("backend.")) ? UAR_OK : UAR_ESKIP;
	if (!e)
		e = fits(l, a->def.info.agent_id, error);
	if (!e)
		e = open_agent(l->b, a, error);
	if (!e)
		e = take(l, a, error);
	bridge_agent_unref(a);
	return e;
}

/* --- the directory ------------------------------------------------------------------ */

static void refuse(const struct loading *l, const char *file, const struct uar_error *error,
		   bool stays)
{
	struct uar_buf why = uar_buf_make(UAR_LIMIT_LOG_LINE);

	uar_buf_printf(&why, "%s%s%s%s", error->where, error->where[0] ? ": " : "",
		       uar_error_text(error), stays ? "; the earlier definition stays" : "");
	note(l->b, UAR_LOG_WARN, "agent.refused", file, uar_buf_str(&why));
	uar_buf_fini(&why);
}

/* `text` is the file's, unless `error` says why not. */
static void load_text(struct loading *l, const char *file, uar_str text, struct uar_error *error)
{
	struct bridge_agent *before = find_file(l->old, file);
	struct uar_error unheard = { 0 };
	char sha256[UAR_SHA256_TEXT + 1] = "";
	uar_err e = error->code;

	if (!e)
		uar_sha256_hex(text, sha256);
	if (!e && before && !strcmp(before->sha256, sha256)) {
		e = take(l, before, error);
		error->code = e;
		if (e)
			refuse(l, file, error, false);
		return;
	}
	if (!e)
		e = add(l, text, file, error);
	error->code = e;
	if (e == UAR_ESKIP) /* no program: its registry has it */
		return;
	if (e)
		refuse(l, file, error, before && take(l, before, &unheard) == UAR_OK);
	else
		note(l->b, UAR_LOG_INFO, "agent.loaded", file,
		     l->set->at[l->set->count - 1]->def.info.agent_id);
}

static void load_file(struct loading *l, const char *name)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_AGENT_DEFINITION);
	struct uar_error error = { 0 };
	char path[PATH_BYTES];

	snprintf(path, sizeof path, "%s/%s", l->b->o.dir, name);
	error.code = uar_file_read(path, &text, &error);
	if (error.code != UAR_ENOTFOUND) /* else it was removed just now */
		load_text(l, name, uar_buf_str(&text), &error);
	uar_buf_fini(&text);
}

static int wanted(const struct dirent *d)
{
	return d->d_name[0] != '.' && uar_source_is_named(uar_str_c(d->d_name));
}

/* In order of their names, so that of two with one id the same one stays. A directory
 * that cannot be read is not an empty one. */
static uar_err load_dir(struct loading *l, struct uar_error *error)
{
	struct dirent **names = NULL;
	int n = l->b->o.dir ? scandir(l->b->o.dir, &names, wanted, alphasort) : 0;

	if (n < 0 && errno != ENOENT)
		return uar_error_set(error, UAR_EIO, "%.200s: %s", l->b->o.dir, strerror(errno));
	for (int i = 0; i < n; i++) {
		load_file(l, names[i]->d_name);
		free(names[i]); /* scandir's */
	}
	free(names);
	return UAR_OK;
}

/* --- those that need none --------------------------------------------------------------- */

static const struct {
	const char *id, *title, *entry, *kind, *program, *arg;
} ad_hoc[] = {
	{ "codex", "Codex", "backend.codex", NULL, NULL, NULL },
	{ "claude_code", "Claude Code", "backend.claude_code", NULL, NULL, NULL },
	{ "acp:claude", "Claude Code by ACP", "backend.acp", "acp_claude", "claude-agent-acp",
	  NULL },
	{ "acp:codex", "Codex by ACP", "backend.acp", "acp_codex", "codex-acp", NULL },
	{ "acp:gemini", "Gemini by ACP", "backend.acp", "acp_gemini", "gemini", "--acp" },
	{ "acp:opencode", "OpenCode by ACP", "backend.acp", "acp_opencode", "opencode", "acp" },
};

static void put_ad_hoc(struct uar_jw *w, size_t i)
{
	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "version", "1.0");
	uar_jw_cstr(w, "kind", "agent");
	uar_jw_cstr(w, "id", ad_hoc[i].id);
	uar_jw_obj(w, "metadata");
	uar_jw_cstr(w, "title", ad_hoc[i].title);
	uar_jw_cstr(w, "description", "A program of this machine; inputs.working_dir says where.");
	uar_jw_close(w);
	uar_jw_obj(w, "runtime");
	uar_jw_cstr(w, "entry", ad_hoc[i].entry);
	uar_jw_obj(w, "backend");
	if (ad_hoc[i].kind) {
		uar_jw_cstr(w, "kind", ad_hoc[i].kind);
		uar_jw_cstr(w, "program", ad_hoc[i].program);
	}
	if (ad_hoc[i].arg) {
		uar_jw_arr(w, "args");
		uar_jw_cstr(w, NULL, ad_hoc[i].arg);
		uar_jw_close(w);
	}
	uar_jw_close(w);
	uar_jw_close(w);
	uar_jw_close(w);
}

static uar_err load_ad_hoc(struct loading *l, size_t i, struct uar_error *error)
{
	struct bridge_agent *before = bridge_find(l->old, uar_str_c(ad_hoc[i].id));
	struct uar_buf text = uar_buf_make(AD_HOC_BYTES);
	struct uar_jw w = uar_jw_begin(&text);
	uar_err e;

	if (before && !before->file[0])
		return take(l, before, error);
	put_ad_hoc(&w, i);
	e = uar_jw_end(&w);
	if (!e)
		e = add(l, uar_buf_str(&text), "", error);
	uar_buf_fini(&text);
	return e;
}

static void tell_removed(const struct loading *l)
{
	for (size_t i = 0; l->old && i < l->old->count; i++) {
		const struct bridge_agent *a = l->old->at[i];

		if (a->file[0] && !bridge_find(l->set, a->def.info.agent_id))
			note(l->b, UAR_LOG_INFO, "agent.removed", a->file, a->def.info.agent_id);
	}
}

uar_err bridge_load(const struct uar_bridge *b, const struct bridge_set *old,
		    struct bridge_set **out, struct uar_error *error)
{
	struct loading l = { b, old, uar_zalloc(sizeof *l.set) };
	uar_err e;

	if (!l.set)
		return UAR_ENOMEM;
	e = load_dir(&l, error);
	for (size_t i = 0; !e && i < ARRAY_LEN(ad_hoc) && b->o.ad_hoc; i++) {
		if (bridge_find(l.set, uar_str_c(ad_hoc[i].id)))
			continue; /* a definition says more */
		e = load_ad_hoc(&l, i, error);
		e = e == UAR_ENOMEM ? e : UAR_OK; /* a build without that backend is fine */
	}
	if (e) {
		bridge_set_destroy(l.set);
		return e;
	}
	tell_removed(&l);
	*out = l.set;
	return UAR_OK;
}
