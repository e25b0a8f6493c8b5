/* definitions.c - programs that the registry defines, and those that need no definition. */
#include "bridge/bridge_int.h"

enum { ENV_PAIRS = 160, AD_HOC_BYTES = 1024, NEVER_MS = 315360000 };

struct bridge_agent *bridge_find(const struct bridge_set *set, uar_str agent_id)
{
	for (size_t i = 0; set && i < set->count; i++)
		if (uar_str_eq(set->at[i]->entry->def.info.agent_id, agent_id))
			return set->at[i];
	return NULL;
}

static struct bridge_agent *find_entry(const struct bridge_set *set,
				       const struct uar_registered *entry)
{
	for (size_t i = 0; set && i < set->count; i++)
		if (set->at[i]->entry == entry)
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

	if (!uaa_has_backend(
		    bridge_pub(uar_str_from(a->entry->def.info.entry, sizeof "backend." - 1))))
		return uar_error_set(error, UAR_ENOTIMPL, "this build has no %.*s",
				     UAR_FMT(a->entry->def.info.entry));
	backend = make_backend(b, &a->entry->def);
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
	uar_registered_unref(a->entry);
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

static uar_err take(struct loading *l, struct bridge_agent *a)
{
	if (l->set->count == ARRAY_LEN(l->set->at))
		return UAR_ETOOBIG;
	l->set->at[l->set->count++] = bridge_agent_ref(a);
	return UAR_OK;
}

static uar_err add(struct loading *l, struct uar_registered *entry, struct uar_error *error)
{
	struct bridge_agent *a = uar_zalloc(sizeof *a);
	uar_err e;

	if (!a)
		return UAR_ENOMEM;
	a->refs = 1;
	a->entry = uar_registered_ref(entry);
	e = open_agent(l->b, a, error);
	if (!e)
		e = take(l, a);
	bridge_agent_unref(a);
	return e;
}

static void load_entry(struct loading *l, struct uar_registered *entry)
{
	struct bridge_agent *before = find_entry(l->old, entry);
	struct uar_error error = { 0 };

	error.code = before ? take(l, before) : add(l, entry, &error);
	if (error.code && l->b->o.note) {
		struct uar_registry_note n = { UAR_LOG_WARN, "agent.refused", entry->file,
					       uar_str_c(uar_error_text(&error)) };

		l->b->o.note(l->b->o.ctx, &n);
	}
}

static void load_registry(struct loading *l)
{
	struct uar_registered *entry;

	for (size_t i = 0; l->b->o.registry && (entry = uar_registry_at(l->b->o.registry, i)); i++)
		if (entry->source == UAR_AGENT_FROM_FILE &&
		    uar_str_starts(entry->def.info.entry, UAR_STR("backend.")))
			load_entry(l, entry);
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

static uar_err make_ad_hoc(struct loading *l, size_t i)
{
	struct uar_buf text = uar_buf_make(AD_HOC_BYTES);
	struct uar_jw w = uar_jw_begin(&text);
	struct uar_registered *entry;
	struct uar_error error = { 0 };
	struct uar_definition def;
	uar_err e;

	put_ad_hoc(&w, i);
	e = uar_jw_end(&w);
	if (!e)
		e = uar_definition_read(uar_buf_str(&text), &def, &error);
	uar_buf_fini(&text);
	if (!e)
		e = uar_registered_take(&def, &entry);
	if (e)
		return e;
	e = add(l, entry, &error);
	uar_registered_unref(entry);
	return e;
}

/* A definition of the registry says more. */
static uar_err load_ad_hoc(struct loading *l, size_t i)
{
	uar_str id = uar_str_c(ad_hoc[i].id);
	struct bridge_agent *before = bridge_find(l->old, id);

	if (bridge_find(l->set, id) ||
	    (l->b->o.registry && uar_registry_find(l->b->o.registry, NULL, id)))
		return UAR_OK;
	return before && !before->entry->file[0] ? take(l, before) : make_ad_hoc(l, i);
}

uar_err bridge_load(const struct uar_bridge *b, const struct bridge_set *old,
		    struct bridge_set **out)
{
	struct loading l = { b, old, uar_zalloc(sizeof *l.set) };
	uar_err e = UAR_OK;

	if (!l.set)
		return UAR_ENOMEM;
	load_registry(&l);
	for (size_t i = 0; !e && i < ARRAY_LEN(ad_hoc) && b->o.ad_hoc; i++) {
		e = load_ad_hoc(&l, i);
		e = e == UAR_ENOMEM ? e : UAR_OK; /* a build without that backend is fine */
	}
	if (e) {
		bridge_set_destroy(l.set);
		return e;
	}
	*out = l.set;
	return UAR_OK;
}
