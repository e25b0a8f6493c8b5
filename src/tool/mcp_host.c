/* mcp_host.c - the MCP servers that are used, by name. */
#include "tool/mcp_host.h"

#include "base/alloc.h"
#include "base/sha256.h"
#include "json/jw.h"
#include "mcp/settings.h"
#include "tool/limits.h"
#include "tool/mcp.h"
#include "tool/registry.h"

static const uar_str hidden = UAR_STR("<redacted>"); /* a value that may be a key */

struct uar_mcp_hosted {
	struct uar_list node;
	struct uar_mcp_host *h;
	struct uar_arena arena;
	enum uar_mcp_origin origin;
	bool from_file;
	uar_str text, agent_id;
	struct uar_owner owner;	     /* no tenant: for everybody */
	const struct uar_json *json; /* of the text */
	struct uar_mcp_setting setting;
	unsigned turns;		       /* times that its tools changed */
	struct uar_tools *source;      /* the registry's; NULL: it is disabled */
	char key[UAR_SHA256_TEXT + 1]; /* of its tokens */
};

struct uar_mcp_host {
	struct uar_mcp_host_options o;
	struct uar_list servers;
	size_t count;
	struct uar_buf redirect; /* empty: nobody can log in */
	struct uar_arena arena;
	char **env; /* what others than the operator may name */
};

/* --- connections ---------------------------------------------------------------------------- */

static struct uar_mcp_hosted *hosted_of(const struct uar_mcp_host *h, const struct uar_tools *t)
{
	UAR_LIST_EACH (it, &h->servers)
		if (UAR_OWNER(it, struct uar_mcp_hosted, node)->source == t)
			return UAR_OWNER(it, struct uar_mcp_hosted, node);
	return NULL;
}

static void on_changed(void *ctx, struct uar_tools *source)
{
	struct uar_mcp_host *h = ctx;
	struct uar_mcp_hosted *s = hosted_of(h, source);
	uar_err e = s ? uar_tool_registry_changed(h->o.registry, source, NULL) : UAR_OK;

	(void)e; /* the old list stays, and the next change tries again */
	if (s)
		h->o.changed(h->o.ctx, s);
}

static void on_turned(void *ctx, struct uar_tools *source, const struct uar_tool *const *tools,
		      size_t count)
{
	const struct uar_mcp_host *h = ctx;
	struct uar_mcp_hosted *s = hosted_of(h, source);

	if (s && h->o.turned && s->turns++ < UAR_LIMIT_MCP_TURNS)
		h->o.turned(h->o.ctx, s, tools, count);
}

static void on_tokens(void *ctx, struct uar_tools *source, uar_str tokens)
{
	struct uar_mcp_host *h = ctx;
	const struct uar_mcp_hosted *s = hosted_of(h, source);

	if (s && h->o.keep)
		h->o.keep(h->o.ctx, s->key, tokens);
}

static uar_err connect(struct uar_mcp_hosted *s, struct uar_error *error)
{
	struct uar_mcp_host *h = s->h;
	struct uar_buf tokens = uar_buf_make(UAR_LIMIT_MCP_OAUTH_KEPT);
	struct uar_mcp_tools_options o = { .loop = h->o.loop,
					   .http = h->o.http,
					   .setting = &s->setting,
					   .own_of = s->agent_id,
					   .owner = s->owner,
					   .redirect_url = h->redirect.n ? h->redirect.p : NULL,
					   .keep = on_tokens,
					   .turned = on_turned,
					   .changed = on_changed,
					   .ctx = h };
	struct uar_tools *source = NULL;
	uar_err e;

	if (s->setting.disabled)
		return UAR_OK;
	if (s->setting.server.url && h->o.load)
		h->o.load(h->o.ctx, s->key, &tokens);
	o.tokens = uar_buf_str(&tokens);
	e = uar_mcp_tools_create(&o, &source);
	if (tokens.p)
		explicit_bzero(tokens.p, tokens.n);
	uar_buf_fini(&tokens);
	if (!e)
		e = uar_tool_registry_add(h->o.registry, source, error);
	if (e)
		uar_tools_destroy(source);
	else
		s->source = source;
	return e;
}

static void disconnect(struct uar_mcp_hosted *s)
{
	struct uar_tools *source = s->source;

	s->source = NULL;
	if (source)
		uar_tool_registry_remove(s->h->o.registry, source);
}

static void connect_anew(struct uar_mcp_hosted *s)
{
	disconnect(s);
	if (connect(s, NULL))
		s->h->o.changed(s->h->o.ctx, s); /* it has no client: that says so */
}

static void free_hosted(struct uar_mcp_hosted *s)
{
	if (!s)
		return;
	disconnect(s);
	if (!uar_list_empty(&s->node)) {
		uar_list_remove(&s->node);
		s->h->count--;
	}
	uar_arena_fini(&s->arena);
	uar_free(s);
}

/* --- reading -------------------------------------------------------------------------------- */

/* May it start programs and see variables? */
static bool is_trusted(const struct uar_mcp_hosted *s)
{
	const struct uar_owner *own = &s->h->o.owner;

	if (s->origin == UAR_MCP_OF_SETTINGS || s->from_file)
		return true;
	return s->h->o.commands &&
	       (!own->tenant.n || !s->owner.tenant.n || uar_owner_eq(&s->owner, own));
}

static bool names_variable(uar_str text)
{
	for (size_t i = 0; i + 1 < text.n; i++)
		if (text.p[i] == '$' && text.p[i + 1] == '{')
			return true;
	return false;
}

/* The text as a table of one server. */
static uar_err read_setting(struct uar_mcp_hosted *s, const struct uar_mcp_put *p,
			    struct uar_error *error)
{
	static char *const nothing[] = { NULL };
	struct uar_buf table = uar_buf_make(2 * (size_t)UAR_LIMIT_MCP_SERVER_TEXT);
	struct uar_jw w = uar_jw_begin(&table);
	struct uar_mcp_settings all = { 0 };
	uar_err e;

	if (p->text.n > UAR_LIMIT_MCP_SERVER_TEXT)
		return uar_error_set(error, UAR_ETOOBIG,
				     "a server is written with at most %d bytes",
				     UAR_LIMIT_MCP_SERVER_TEXT);
	s->text = uar_arena_str(&s->arena, p->text);
	s->agent_id = uar_arena_str(&s->arena, p->agent_id.n ? p->agent_id : UAR_STR(""));
	s->owner = (struct uar_owner){ UAR_STR(""), UAR_STR(""), UAR_STR("") };
	if (p->owner.tenant.n && !uar_owner_copy(&s->arena, &p->owner, &s->owner))
		return UAR_ENOMEM;
	if (!s->text.p || !s->agent_id.p)
		return UAR_ENOMEM;
	e = uar_json_parse(s->text, NULL, &s->arena, &s->json, error);
	if (e)
		return e;
	uar_jw_obj(&w, NULL);
	uar_jw_key(&w, p->name);
	uar_jw_tree(&w, NULL, s->json);
	uar_jw_close(&w);
	e = uar_jw_end(&w);
	if (!e && !is_trusted(s) && names_variable(uar_buf_str(&table)))
		e = uar_error_set(error, UAR_EFORBIDDEN,
				  "only the setting mcp_servers and agents from files name "
				  "variables (${NAME}); write it there, or set mcp_commands");
	if (!e)
		e = uar_mcp_settings_read(uar_buf_str(&table),
					  p->origin == UAR_MCP_OF_SETTINGS ? s->h->o.env
					  : is_trusted(s)		   ? s->h->env
									   : nothing,
					  &s->arena, &all, error);
	uar_buf_fini(&table);
	if (!e)
		s->setting = all.at[0];
	return e;
}

/* What is shown in place of a value is no value: it comes from a list that was written back. */
static uar_err check_values(const struct uar_mcp_hosted *s, struct uar_error *error)
{
	static const char *const members[] = { "env", "headers", "oauth" };

	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		const struct uar_json *j = uar_json_get(s->json, uar_str_c(members[i]));

		for (const struct uar_json *m = uar_json_first(j); m; m = m->next) {
			if (!uar_str_eq(uar_json_str(m, UAR_STR("")), hidden))
				continue;
			uar_error_where(error, "/%s/%.*s", members[i],
					UAR_FMT(uar_str_utf8_prefix(m->key, 64)));
			return uar_error_set(
				error, UAR_EINVALID,
				"<redacted> stands for a value that is not shown: write the "
				"value itself");
		}
	}
	return UAR_OK;
}

static uar_err may_be(const struct uar_mcp_hosted *s, struct uar_error *error)
{
	if (s->origin == UAR_MCP_OF_SETTINGS)
		return UAR_OK;
	if (s->setting.offer)
		return uar_error_set(error, UAR_EFORBIDDEN,
				     "a server that is passed on (`offer`) is written in the "
				     "setting mcp_servers");
	if (s->setting.server.argv && !is_trusted(s))
		return uar_error_set(error, UAR_EFORBIDDEN,
				     "only the setting mcp_servers and agents from files start "
				     "programs (`command`); write it there, or set mcp_commands");
	return UAR_OK;
}

static uar_err read_hosted(struct uar_mcp_host *h, const struct uar_mcp_put *p,
			   struct uar_mcp_hosted **out, struct uar_error *error)
{
	struct uar_mcp_hosted *s = uar_zalloc(sizeof *s);
	struct uar_buf about = uar_buf_make(UAR_LIMIT_MCP_SERVER_TEXT * 2);
	uar_err e;

	if (!s)
		return UAR_ENOMEM;
	s->h = h;
	s->origin = p->origin;
	s->from_file = p->from_file;
	uar_list_init(&s->node);
	uar_arena_init(&s->arena, 0);
	e = read_setting(s, p, error);
	if (!e && p->origin == UAR_MCP_OF_DATABASE)
		e = check_values(s, error);
	if (!e)
		e = may_be(s, error);
	if (!e) {
		/* What is not the operator's own goes through the guard. */
		s->setting.server.guarded = p->origin != UAR_MCP_OF_SETTINGS;
		/* Tokens are for this address and this owner alone. */
		uar_buf_printf(&about, "%s\n%s", s->setting.server.name,
			       s->setting.server.url ? s->setting.server.url : "");
		if (s->owner.tenant.n)
			uar_buf_printf(&about, "\n%.*s\n%.*s\n%.*s", UAR_FMT(s->owner.tenant),
				       UAR_FMT(s->owner.workspace), UAR_FMT(s->owner.user));
		uar_sha256_hex(uar_buf_str(&about), s->key);
		e = about.err;
	}
	uar_buf_fini(&about);
	if (e)
		free_hosted(s);
	else
		*out = s;
	return e;
}

/* The one that this one takes the place of; NULL: none. */
static struct uar_mcp_hosted *former_of(const struct uar_mcp_host *h, const struct uar_mcp_put *p)
{
	UAR_LIST_EACH (it, &h->servers) {
		struct uar_mcp_hosted *s = UAR_OWNER(it, struct uar_mcp_hosted, node);

		if (uar_str_is(p->name, s->setting.server.name) && s->origin == p->origin &&
		    uar_str_eq(s->agent_id, p->agent_id) && uar_owner_eq(&s->owner, &p->owner))
			return s;
	}
	return NULL;
}

/* Another one of that name that stays, and that somebody would see beside it; NULL: none. */
static struct uar_mcp_hosted *rival_of(const struct uar_mcp_host *h, const struct uar_mcp_put *p)
{
	const struct uar_mcp_hosted *former = former_of(h, p);

	UAR_LIST_EACH (it, &h->servers) {
		struct uar_mcp_hosted *s = UAR_OWNER(it, struct uar_mcp_hosted, node);

		if (s != former && uar_str_is(p->name, s->setting.server.name) &&
		    (!p->owner.tenant.n || uar_mcp_hosted_is_for(s, &p->owner)))
			return s;
	}
	return NULL;
}

/* Servers that are for the same ones. */
static size_t count_of(const struct uar_mcp_host *h, const struct uar_owner *owner)
{
	size_t n = 0;

	UAR_LIST_EACH (it, &h->servers)
		n += uar_owner_eq(&UAR_OWNER(it, struct uar_mcp_hosted, node)->owner, owner);
	return n;
}

static uar_err check_place(const struct uar_mcp_host *h, const struct uar_mcp_put *p,
			   struct uar_error *error)
{
	static const char *const places[] = { [UAR_MCP_OF_SETTINGS] = "the settings",
					      [UAR_MCP_OF_DATABASE] = "the database",
					      [UAR_MCP_OF_AGENT] = "an agent's definition" };
	const struct uar_mcp_hosted *rival = rival_of(h, p);

	if (rival)
		return uar_error_set(error, UAR_EEXISTS,
				     "%s has a server named \"%.*s\": take another name",
				     places[rival->origin], UAR_FMT(p->name));
	if (!former_of(h, p) && (count_of(h, &p->owner) >= UAR_LIMIT_MCP_SERVERS ||
				 h->count >= UAR_LIMIT_MCP_SERVERS_ALL))
		return uar_error_set(error, UAR_ETOOBIG, "there are %d MCP servers already",
				     UAR_LIMIT_MCP_SERVERS);
	return UAR_OK;
}

uar_err uar_mcp_host_check(struct uar_mcp_host *h, const struct uar_mcp_put *p,
			   struct uar_error *error)
{
	struct uar_mcp_hosted *s = NULL;
	uar_err e = check_place(h, p, error);

	if (!e)
		e = read_hosted(h, p, &s, error);
	free_hosted(s);
	return e;
}

uar_err uar_mcp_host_put(struct uar_mcp_host *h, const struct uar_mcp_put *p,
			 struct uar_error *error)
{
	struct uar_mcp_hosted *old = former_of(h, p), *s = NULL;
	uar_err e = check_place(h, p, error);

	if (!e && old && uar_str_eq(old->text, p->text) && old->from_file == p->from_file)
		return UAR_OK;
	if (!e)
		e = read_hosted(h, p, &s, error);
	if (e)
		return e;
	free_hosted(old);
	uar_list_add_last(&h->servers, &s->node);
	h->count++;
	e = connect(s, error);
	if (e)
		free_hosted(s);
	return e;
}

void uar_mcp_host_drop(struct uar_mcp_host *h, enum uar_mcp_origin origin,
		       const struct uar_owner *owner, uar_str name)
{
	struct uar_mcp_hosted *s = uar_mcp_host_find(h, owner, name);

	if (!s || s->origin != origin)
		return;
	if (h->o.keep && s->setting.server.url)
		h->o.keep(h->o.ctx, s->key, UAR_STR_NONE);
	free_hosted(s);
}

/* --- looking -------------------------------------------------------------------------------- */

const struct uar_mcp_hosted *uar_mcp_host_at(const struct uar_mcp_host *h, size_t index)
{
	UAR_LIST_EACH (it, &h->servers)
		if (!index--)
			return UAR_OWNER(it, struct uar_mcp_hosted, node);
	return NULL;
}

bool uar_mcp_hosted_is_for(const struct uar_mcp_hosted *s, const struct uar_owner *owner)
{
	return !s->owner.tenant.n || (owner && uar_owner_eq(&s->owner, owner));
}

const struct uar_owner *uar_mcp_hosted_owner(const struct uar_mcp_hosted *s)
{
	return &s->owner;
}

struct uar_mcp_hosted *uar_mcp_host_find(const struct uar_mcp_host *h,
					 const struct uar_owner *owner, uar_str name)
{
	UAR_LIST_EACH (it, &h->servers) {
		struct uar_mcp_hosted *s = UAR_OWNER(it, struct uar_mcp_hosted, node);

		if (uar_str_is(name, s->setting.server.name) && uar_mcp_hosted_is_for(s, owner))
			return s;
	}
	return NULL;
}

const char *uar_mcp_hosted_name(const struct uar_mcp_hosted *s)
{
	return s->setting.server.name;
}

enum uar_mcp_origin uar_mcp_hosted_origin(const struct uar_mcp_hosted *s)
{
	return s->origin;
}

uar_str uar_mcp_hosted_agent(const struct uar_mcp_hosted *s)
{
	return s->agent_id;
}

struct uar_mcp_client *uar_mcp_hosted_client(const struct uar_mcp_hosted *s)
{
	return s->source ? uar_mcp_tools_client(s->source) : NULL;
}

const struct uar_mcp_setting *uar_mcp_hosted_setting(const struct uar_mcp_hosted *s)
{
	return &s->setting;
}

/* Values of these members may be keys: whether there is one is shown, not which. */
static bool hides(const struct uar_json *member)
{
	return uar_str_is(member->key, "env") || uar_str_is(member->key, "headers");
}

/* ${NAME} or ${secret:NAME} and nothing else: a name is no secret. */
static bool is_reference(uar_str text)
{
	return uar_str_starts(text, UAR_STR("${")) && uar_str_find(text, '}') + 1 == text.n;
}

static void put_hidden(struct uar_jw *w, const struct uar_json *j)
{
	uar_jw_put_obj(w, j->key);
	for (const struct uar_json *m = uar_json_first(j); m; m = m->next) {
		uar_str text = uar_json_str(m, UAR_STR(""));

		uar_jw_put_str(w, m->key, is_reference(text) ? text : hidden);
	}
	uar_jw_close(w);
}

static bool has_literal(const struct uar_json *j)
{
	for (const struct uar_json *m = uar_json_first(j); m; m = m->next)
		if (!is_reference(uar_json_str(m, UAR_STR(""))))
			return true;
	return false;
}

bool uar_mcp_hides(const struct uar_json *server)
{
	const struct uar_json *oauth = uar_json_get(server, UAR_STR("oauth"));
	const struct uar_json *secret = uar_json_get(oauth, UAR_STR("client_secret"));

	for (const struct uar_json *m = uar_json_first(server); m; m = m->next)
		if (hides(m) && has_literal(m))
			return true;
	return secret && !is_reference(uar_json_str(secret, UAR_STR("")));
}

static void put_oauth(struct uar_jw *w, const struct uar_json *j)
{
	uar_jw_put_obj(w, j->key);
	for (const struct uar_json *m = uar_json_first(j); m; m = m->next)
		uar_jw_put_str(w, m->key,
			       uar_str_is(m->key, "client_secret") ? hidden
								   : uar_json_str(m, UAR_STR("")));
	uar_jw_close(w);
}

static void put_server(struct uar_jw *w, const struct uar_mcp_hosted *s)
{
	uar_jw_obj(w, "server");
	for (const struct uar_json *m = uar_json_first(s->json); m; m = m->next) {
		if (hides(m) && m->kind == UAR_JSON_OBJECT) {
			put_hidden(w, m);
		} else if (uar_str_is(m->key, "oauth") && m->kind == UAR_JSON_OBJECT) {
			put_oauth(w, m);
		} else {
			uar_jw_key(w, m->key);
			uar_jw_tree(w, NULL, m);
		}
	}
	uar_jw_close(w);
}

static const char *state_of(const struct uar_mcp_client *c, uar_str *reason)
{
	if (!c)
		return "disabled";
	if (uar_mcp_client_ready(c, reason))
		return "connected";
	if (uar_mcp_client_login(c))
		return "login_required";
	return uar_mcp_client_failed(c) ? "failed" : "connecting";
}

void uar_mcp_hosted_write(struct uar_jw *w, const struct uar_mcp_hosted *s)
{
	static const char *const origins[] = { [UAR_MCP_OF_SETTINGS] = "settings",
					       [UAR_MCP_OF_DATABASE] = "database",
					       [UAR_MCP_OF_AGENT] = "agent" };
	const struct uar_mcp_client *c = uar_mcp_hosted_client(s);
	uar_str reason = UAR_STR_NONE;
	int64_t tools = 0;

	uar_jw_cstr(w, "name", s->setting.server.name);
	uar_jw_cstr(w, "origin", origins[s->origin]);
	if (s->agent_id.n)
		uar_jw_str(w, "agent_id", s->agent_id);
	uar_jw_cstr(w, "state", state_of(c, &reason));
	if (c && reason.n)
		uar_jw_str(w, "reason", reason);
	if (c && uar_mcp_client_version(c).n)
		uar_jw_str(w, "revision", uar_mcp_client_version(c));
	while (c && uar_mcp_client_tool(c, (size_t)tools))
		tools++;
	uar_jw_int(w, "tools", tools);
	if (c && uar_mcp_client_login(c))
		uar_jw_cstr(w, "login_url", uar_mcp_client_login(c));
	if (c && uar_mcp_client_errors(c).n)
		uar_jw_str(w, "stderr",
			   uar_jw_fitting(uar_mcp_client_errors(c), UAR_LIMIT_MCP_STDERR));
	put_server(w, s);
}

/* --- logins --------------------------------------------------------------------------------- */

void uar_mcp_host_set_redirect(struct uar_mcp_host *h, const char *url)
{
	uar_str reason;

	uar_buf_clear(&h->redirect);
	uar_buf_add_str(&h->redirect, uar_str_c(url));
	UAR_LIST_EACH (it, &h->servers) {
		struct uar_mcp_hosted *s = UAR_OWNER(it, struct uar_mcp_hosted, node);

		if (s->source && s->setting.server.url &&
		    !uar_mcp_client_ready(uar_mcp_tools_client(s->source), &reason))
			connect_anew(s);
	}
}

void uar_mcp_hosted_log_out(struct uar_mcp_hosted *s)
{
	if (s->h->o.keep)
		s->h->o.keep(s->h->o.ctx, s->key, UAR_STR_NONE);
	connect_anew(s);
}

uar_err uar_mcp_host_redirected(struct uar_mcp_host *h, const struct uar_mcp_returned *back,
				const char **out_name)
{
	struct uar_mcp_redirect r = { back->state, back->code, back->iss, back->error };

	UAR_LIST_EACH (it, &h->servers) {
		struct uar_mcp_hosted *s = UAR_OWNER(it, struct uar_mcp_hosted, node);
		uar_err e = s->source
				    ? uar_mcp_client_logged_in(uar_mcp_tools_client(s->source), &r)
				    : UAR_ENOTFOUND;

		if (e == UAR_ENOTFOUND)
			continue;
		*out_name = s->setting.server.name;
		return e;
	}
	return UAR_ENOTFOUND;
}

/* --- life ----------------------------------------------------------------------------------- */

/* What a child inherits, and variables that are meant for MCP servers: no other key of the
 * operator leaves through a server that somebody else wrote down. */
static uar_err choose_env(struct uar_mcp_host *h)
{
	static const char *const usual[] = { "PATH=", "HOME=",	 "LANG=", "LC_ALL=",
					     "TZ=",   "TMPDIR=", "USER=", "MCP_" };
	size_t n = 0, count = 0;

	while (h->o.env && h->o.env[count])
		count++;
	h->env = uar_arena_alloc(&h->arena, (count + 1) * sizeof *h->env);
	if (!h->env)
		return UAR_ENOMEM;
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < ARRAY_LEN(usual); k++)
			if (strncmp(h->o.env[i], usual[k], strlen(usual[k])) == 0) {
				h->env[n++] = h->o.env[i];
				break;
			}
	h->env[n] = NULL;
	return UAR_OK;
}

uar_err uar_mcp_host_create(const struct uar_mcp_host_options *o, struct uar_mcp_host **out)
{
	struct uar_mcp_host *h = uar_zalloc(sizeof *h);

	if (!h)
		return UAR_ENOMEM;
	h->o = *o;
	uar_list_init(&h->servers);
	h->redirect = uar_buf_make(UAR_LIMIT_MCP_OAUTH_TEXT);
	uar_arena_init(&h->arena, 0);
	if (choose_env(h)) {
		uar_mcp_host_destroy(h);
		return UAR_ENOMEM;
	}
	*out = h;
	return UAR_OK;
}

void uar_mcp_host_destroy(struct uar_mcp_host *h)
{
	if (!h)
		return;
	while (!uar_list_empty(&h->servers))
		free_hosted(UAR_OWNER(h->servers.next, struct uar_mcp_hosted, node));
	uar_buf_fini(&h->redirect);
	uar_arena_fini(&h->arena);
	uar_free(h);
}
