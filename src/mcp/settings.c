/* settings.c - reads the table of MCP servers. */
#include "mcp/settings.h"

#include "base/header.h"

struct reader {
	struct uar_arena *a;
	char *const *env;
	struct uar_error *error;
	uar_str server; /* at hand */
};

struct members {
	uar_str command, cwd, url, era;
	const struct uar_json *args, *env, *headers, *tools, *read_only, *roots, *oauth;
	bool ask, disabled, offer;
	int64_t timeout_seconds, login_seconds;
};

static uar_err refuse(struct reader *r, const char *member, const char *why)
{
	uar_error_where(r->error, "/%.*s%s%s", UAR_FMT(uar_str_utf8_prefix(r->server, 40)),
			member[0] ? "/" : "", member);
	return uar_error_set(r->error, UAR_ECONFIG, "mcp_servers: /%.*s%s%s: %s",
			     UAR_FMT(uar_str_utf8_prefix(r->server, 40)), member[0] ? "/" : "",
			     member, why);
}

/* --- values ----------------------------------------------------------------------------------- */

static const char *find_variable(char *const *env, uar_str name)
{
	for (size_t i = 0; env && env[i]; i++)
		if (strncmp(env[i], name.p, name.n) == 0 && env[i][name.n] == '=')
			return env[i] + name.n + 1;
	return NULL;
}

/* Puts the values of ${NAME} in place; one that is not set is empty. */
static void expand(struct reader *r, uar_str s, struct uar_buf *out)
{
	while (s.n) {
		size_t at = uar_str_find(s, '$'), end;
		const char *value;

		uar_buf_add_str(out, uar_str_n(s.p, at));
		s = uar_str_from(s, at);
		end = uar_str_find(s, '}');
		if (!s.n)
			return;
		if (s.n < 3 || s.p[1] != '{' || end == s.n || end == 2) {
			uar_buf_add_char(out, '$');
			s = uar_str_from(s, 1);
			continue;
		}
		value = find_variable(r->env, uar_str_n(s.p + 2, end - 2));
		uar_buf_add_str(out, uar_str_c(value));
		s = uar_str_from(s, end + 1);
	}
}

/* NULL: out of memory, or a byte that no value may have. */
static const char *text_of(struct reader *r, const char *before, uar_str s)
{
	struct uar_buf b = uar_buf_make(65536);
	uar_str copy = UAR_STR_NONE;

	uar_buf_add_str(&b, uar_str_c(before));
	expand(r, s, &b);
	if (!b.err && !(b.n && memchr(b.p, 0, b.n)))
		copy = uar_arena_str(r->a, uar_buf_str(&b));
	uar_buf_fini(&b);
	return copy.p;
}

static const char **list_of(struct reader *r, size_t n)
{
	return uar_arena_alloc(r->a, (n + 1) * sizeof(const char *));
}

static uar_err read_argv(struct reader *r, const struct members *m, struct uar_mcp_server *out)
{
	const struct uar_json *arg = m->args ? m->args->first : NULL;
	const char **argv = list_of(r, 1 + (m->args ? m->args->count : 0));
	size_t n = 0;

	if (!argv || !(argv[n++] = text_of(r, "", m->command)))
		return UAR_ENOMEM;
	if (m->args && m->args->count > UAR_LIMIT_MCP_ARGUMENTS)
		return refuse(r, "args", "these are too many");
	for (; arg; arg = arg->next) {
		if (arg->kind != UAR_JSON_STRING)
			return refuse(r, "args", "an argument is not a string");
		argv[n] = text_of(r, "", arg->text);
		if (!argv[n++])
			return refuse(r, "args", "an argument cannot be used");
	}
	out->argv = argv;
	return UAR_OK;
}

static bool is_set(const struct uar_json *env, const char *name)
{
	return uar_json_get(env, uar_str_c(name)) != NULL;
}

static uar_err read_env(struct reader *r, const struct members *m, struct uar_mcp_server *out)
{
	static const char *const usual[] = { "PATH", "HOME",   "LANG", "LC_ALL",
					     "TZ",   "TMPDIR", "USER" };
	const char **env = list_of(r, ARRAY_LEN(usual) + (m->env ? m->env->count : 0));
	size_t n = 0;

	if (!env)
		return UAR_ENOMEM;
	if (m->env && m->env->count > UAR_LIMIT_MCP_ARGUMENTS)
		return refuse(r, "env", "these are too many");
	for (size_t i = 0; i < ARRAY_LEN(usual); i++) {
		const char *value = find_variable(r->env, uar_str_c(usual[i]));

		if (value && !is_set(m->env, usual[i]))
			env[n++] = uar_arena_printf(r->a, "%s=%s", usual[i], value).p;
	}
	for (const struct uar_json *j = m->env ? m->env->first : NULL; j; j = j->next) {
		uar_str name = uar_arena_printf(r->a, "%.*s=", UAR_FMT(j->key));

		if (j->kind != UAR_JSON_STRING || !j->key.n ||
		    uar_str_find(j->key, '=') < j->key.n || !name.p)
			return refuse(r, "env", "a variable has a name and a string as its value");
		env[n] = text_of(r, name.p, j->text);
		if (!env[n++])
			return refuse(r, "env", "a value cannot be used");
	}
	out->env = env;
	return UAR_OK;
}

static bool is_header(const char *line)
{
	return line && !strchr(line, '\n') && !strchr(line, '\r');
}

static uar_err read_headers(struct reader *r, const struct members *m, struct uar_mcp_server *out)
{
	const char **lines = list_of(r, m->headers ? m->headers->count : 0);
	size_t n = 0;

	if (!lines)
		return UAR_ENOMEM;
	if (m->headers && m->headers->count > UAR_LIMIT_MCP_ARGUMENTS)
		return refuse(r, "headers", "these are too many");
	for (const struct uar_json *j = m->headers ? m->headers->first : NULL; j; j = j->next) {
		uar_str name = uar_arena_printf(r->a, "%.*s: ", UAR_FMT(j->key));

		if (j->kind != UAR_JSON_STRING || !uar_header_name_valid(j->key) || !name.p)
			return refuse(r, "headers",
				      "a header has a name and a string as its value");
		if (uar_header_is_of_connection(j->key))
			return refuse(r, "headers", UAR_HEADER_OF_CONNECTION);
		lines[n] = text_of(r, name.p, j->text);
		if (!is_header(lines[n++]))
			return refuse(r, "headers", "a value cannot be used");
	}
	out->headers = lines;
	return UAR_OK;
}

/* --- one server ------------------------------------------------------------------------------- */

static uar_err read_era(struct reader *r, uar_str era, enum uar_mcp_choice *out)
{
	static const char *const words[] = { [UAR_MCP_AUTO] = "auto",
					     [UAR_MCP_CHOOSE_LEGACY] = "legacy",
					     [UAR_MCP_CHOOSE_MODERN] = UAR_MCP_MODERN };

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (!era.n || uar_str_is(era, words[i])) {
			*out = (enum uar_mcp_choice)i;
			return UAR_OK;
		}
	return refuse(r, "era", "write auto, legacy or " UAR_MCP_MODERN);
}

static uar_err read_address(struct reader *r, const struct members *m, struct uar_mcp_server *out)
{
	uar_err e;

	if (!m->command.n == !m->url.n)
		return refuse(r, "", "a server has either a command or a url");
	if (m->url.n) {
		out->url = text_of(r, "", m->url);
		if (!out->url ||
		    (strncmp(out->url, "http://", 7) && strncmp(out->url, "https://", 8)))
			return refuse(r, "url", "write an http or https address");
		return read_headers(r, m, out);
	}
	e = read_argv(r, m, out);
	if (!e && m->cwd.n)
		out->cwd = text_of(r, "", m->cwd);
	return e ? e : read_env(r, m, out);
}

/* What the server may know of: URIs, or paths, which become such. */
static uar_err read_roots(struct reader *r, const struct members *m, struct uar_mcp_server *out)
{
	const char **roots = m->roots ? list_of(r, m->roots->count) : NULL;
	size_t n = 0;

	if (!m->roots)
		return UAR_OK;
	if (!roots)
		return UAR_ENOMEM;
	if (m->roots->count > UAR_LIMIT_MCP_ARGUMENTS)
		return refuse(r, "roots", "these are too many");
	for (const struct uar_json *j = m->roots->first; j; j = j->next) {
		bool path = j->kind == UAR_JSON_STRING && j->text.n && j->text.p[0] == '/';

		roots[n] = j->kind == UAR_JSON_STRING && j->text.n
				   ? text_of(r, path ? "file://" : "", j->text)
				   : NULL;
		if (!roots[n++])
			return refuse(r, "roots", "a root is a path or a URI");
	}
	out->roots = roots;
	return UAR_OK;
}

static uar_err read_oauth(struct reader *r, const struct members *m, struct uar_mcp_server *out)
{
	struct {
		const char *name, **to;
	} all[] = { { "client_id", &out->oauth.client_id },
		    { "client_secret", &out->oauth.client_secret },
		    { "issuer", &out->oauth.issuer },
		    { "client_metadata_url", &out->oauth.client_metadata_url },
		    { "scope", &out->oauth.scope } };

	for (size_t i = 0; m->oauth && i < ARRAY_LEN(all); i++) {
		const struct uar_json *j = uar_json_get(m->oauth, uar_str_c(all[i].name));

		if (!j)
			continue;
		*all[i].to =
			j->kind == UAR_JSON_STRING && j->text.n ? text_of(r, "", j->text) : NULL;
		if (!*all[i].to)
			return refuse(r, "oauth",
				      "its members are strings: client_id, "
				      "client_secret, issuer, client_metadata_url, scope");
	}
	if (out->oauth.client_metadata_url &&
	    strncmp(out->oauth.client_metadata_url, "https://", 8) != 0)
		return refuse(r, "oauth", "client_metadata_url is an https address");
	return UAR_OK;
}

static uar_err read_members(struct reader *r, const struct uar_json *j, struct members *m)
{
#define F(NAME, TYPE)                                                                              \
	{                                                                                          \
#NAME, UAR_FIELD_##TYPE, false, offsetof(struct members, NAME)                     \
	}
	static const struct uar_json_field fields[] = {
		F(command, STR),       F(cwd, STR),    F(url, STR),	   F(era, STR),
		F(args, ARRAY),	       F(env, OBJECT), F(headers, OBJECT), F(tools, ARRAY),
		F(read_only, ARRAY),   F(ask, BOOL),   F(disabled, BOOL),  F(timeout_seconds, INT),
		F(login_seconds, INT), F(offer, BOOL), F(roots, ARRAY),	   F(oauth, OBJECT),
	};
#undef F
	struct uar_error found = { 0 };
	uar_err e = uar_json_read(j, fields, ARRAY_LEN(fields), false, m, &found);

	if (e)
		return refuse(r, found.where[0] == '/' ? found.where + 1 : found.where,
			      uar_error_text(&found));
	if (m->timeout_seconds < 0 || m->timeout_seconds > UAR_LIMIT_MCP_CALL_MAX_MS / 1000)
		return refuse(r, "timeout_seconds", "write a number up to 3600");
	if (m->login_seconds < 0 || m->login_seconds > UAR_LIMIT_MCP_LOGIN_MAX_S)
		return refuse(r, "login_seconds", "write a number up to 86400");
	return UAR_OK;
}

/* A name is part of the ids of tools: letters, digits, '-', '_' and '.'. */
static bool is_name(uar_str s)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      c == '-' || c == '_' || c == '.'))
			return false;
	}
	return s.n > 0 && s.n <= UAR_LIMIT_MCP_SERVER_NAME;
}

static uar_err read_server(struct reader *r, const struct uar_json *j, struct uar_mcp_setting *out)
{
	struct members m = { .ask = true };
	uar_err e;

	r->server = j->key;
	if (!is_name(j->key))
		return refuse(r, "", "a name has letters, digits, '-', '_' and '.', at most 64");
	if (j->kind != UAR_JSON_OBJECT)
		return refuse(r, "", "a server is an object");
	e = read_members(r, j, &m);
	if (!e)
		e = read_era(r, m.era, &out->server.era);
	if (!e)
		e = read_address(r, &m, &out->server);
	if (!e)
		e = read_roots(r, &m, &out->server);
	if (!e)
		e = read_oauth(r, &m, &out->server);
	if (e)
		return e;
	out->server.name = uar_arena_str(r->a, j->key).p;
	out->server.timeout_us = m.timeout_seconds * 1000000;
	out->server.oauth.login_us =
		(m.login_seconds ? m.login_seconds : UAR_LIMIT_MCP_LOGIN_S) * 1000000;
	out->tools = m.tools;
	out->read_only = m.read_only;
	out->ask = m.ask;
	out->disabled = m.disabled;
	out->offer = m.offer;
	return out->server.name ? UAR_OK : UAR_ENOMEM;
}

uar_err uar_mcp_settings_read(uar_str json, char *const *env, struct uar_arena *a,
			      struct uar_mcp_settings *out, struct uar_error *error)
{
	struct reader r = { .a = a, .env = env, .error = error };
	const struct uar_json *root, *table;
	struct uar_mcp_setting *all;
	size_t n = 0;
	uar_err e;

	*out = (struct uar_mcp_settings){ 0 };
	if (!uar_str_trim(json).n)
		return UAR_OK;
	e = uar_json_parse_copy(json, NULL, a, &root, error);
	if (e)
		return e;
	table = uar_json_get(root, UAR_STR("mcpServers"));
	table = table && table->kind == UAR_JSON_OBJECT ? table : root;
	if (table->kind != UAR_JSON_OBJECT || table->count > UAR_LIMIT_MCP_SERVERS)
		return refuse(&r, "", "this is a table of at most 64 servers by name");
	all = uar_arena_alloc(a, (table->count + 1) * sizeof *all);
	if (!all)
		return UAR_ENOMEM;
	for (const struct uar_json *j = table->first; j && !e; j = j->next)
		e = read_server(&r, j, &all[n++]);
	if (!e)
		*out = (struct uar_mcp_settings){ all, n };
	return e;
}

/* --- which tools ------------------------------------------------------------------------------ */

bool uar_mcp_names(const struct uar_json *patterns, uar_str tool)
{
	for (const struct uar_json *p = patterns ? patterns->first : NULL; p; p = p->next) {
		uar_str s = uar_json_str(p, UAR_STR_NONE);

		if (s.n && s.p[s.n - 1] == '*' && uar_str_starts(tool, uar_str_n(s.p, s.n - 1)))
			return true;
		if (s.p && uar_str_eq(s, tool))
			return true;
	}
	return false;
}

bool uar_mcp_setting_offers(const struct uar_mcp_setting *s, uar_str tool)
{
	return !s->tools || uar_mcp_names(s->tools, tool);
}

bool uar_mcp_setting_is_read_only(const struct uar_mcp_setting *s, uar_str tool)
{
	return uar_mcp_names(s->read_only, tool);
}
