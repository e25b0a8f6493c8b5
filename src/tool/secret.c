/* secret.c - names in texts, and where their values are. */
#include "tool/secret.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/file.h"
#include "json/json.h"
#include "tool/limits.h"
#include "tool/tool.h"

static const uar_str mark = UAR_STR("${secret:");

struct uar_secrets {
	char *dir;
	const char *tenant; /* NULL: there is one only */
	struct uar_arena arena;
	const struct uar_json *grants; /* NULL: none */
};

static uar_err check_list(const struct uar_json *grant, const struct uar_json *list,
			  struct uar_error *error)
{
	bool fine = list->kind == UAR_JSON_ARRAY;

	for (const struct uar_json *m = uar_json_first(list); m && fine; m = m->next)
		fine = m->kind == UAR_JSON_STRING && m->text.n > 0;
	if (fine && (uar_str_is(list->key, "hosts") || uar_str_is(list->key, "agents") ||
		     uar_str_is(list->key, "tenants")))
		return UAR_OK;
	uar_error_where(error, "/%.*s/%.*s", UAR_FMT(grant->key), UAR_FMT(list->key));
	return uar_error_set(error, UAR_EINVALID,
			     "write a list of texts, of hosts, agents or tenants");
}

static uar_err read_grants(struct uar_secrets *s, uar_str text, struct uar_error *error)
{
	uar_err e = uar_json_parse(text, NULL, &s->arena, &s->grants, error);

	if (!e && s->grants->kind != UAR_JSON_OBJECT)
		return uar_error_set(error, UAR_EINVALID, "write an object, a member a secret");
	for (const struct uar_json *g = e ? NULL : uar_json_first(s->grants); g && !e;
	     g = g->next) {
		if (g->kind != UAR_JSON_OBJECT) {
			uar_error_where(error, "/%.*s", UAR_FMT(g->key));
			return uar_error_set(error, UAR_EINVALID,
					     "write an object with hosts or agents");
		}
		for (const struct uar_json *m = uar_json_first(g); m && !e; m = m->next)
			e = check_list(g, m, error);
	}
	return e;
}

uar_err uar_secrets_create(const char *dir, uar_str grants, struct uar_secrets **out,
			   struct uar_error *error)
{
	struct uar_secrets *s = uar_zalloc(sizeof *s);
	uar_err e = s ? UAR_OK : UAR_ENOMEM;

	if (s) {
		uar_arena_init(&s->arena, 0);
		s->dir = dir ? uar_strdup_n(dir, strlen(dir)) : NULL;
		e = dir && !s->dir ? UAR_ENOMEM : UAR_OK;
	}
	if (!e && grants.n)
		e = read_grants(s, grants, error);
	if (e) {
		uar_secrets_destroy(s);
		return e;
	}
	*out = s;
	return UAR_OK;
}

void uar_secrets_set_tenant(struct uar_secrets *s, const char *tenant)
{
	s->tenant = tenant;
}

void uar_secrets_destroy(struct uar_secrets *s)
{
	if (!s)
		return;
	uar_free(s->dir);
	uar_arena_fini(&s->arena);
	uar_free(s);
}

void uar_secrets_used_fini(struct uar_secrets_used *u)
{
	if (u->values.p)
		explicit_bzero(u->values.p, u->values.cap);
	uar_buf_fini(&u->values);
}

/* --- names ---------------------------------------------------------------------------- */

static bool is_name(uar_str s)
{
	if (!s.n || s.n > UAR_LIMIT_SECRET_NAME || s.p[0] == '.')
		return false;
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      c == '_' || c == '-' || c == '.'))
			return false;
	}
	return true;
}

/* Where the mark begins, or the end of the text. */
static size_t find_mark(uar_str text, size_t at)
{
	while (at < text.n && !uar_str_starts(uar_str_from(text, at), mark))
		at++;
	return at;
}

uar_str uar_secrets_next(uar_str text, size_t *at)
{
	size_t begin = find_mark(text, *at);
	uar_str rest = uar_str_from(text, begin + mark.n);

	*at = begin < text.n ? begin + mark.n + uar_str_find(rest, '}') : text.n;
	return begin < text.n ? uar_str_n(rest.p, uar_str_find(rest, '}')) : UAR_STR("");
}

/* --- grants --------------------------------------------------------------------------- */

static bool is_in(const struct uar_json *patterns, uar_str text)
{
	struct uar_tool named = { .tool_id = text };

	for (const struct uar_json *p = uar_json_first(patterns); p; p = p->next)
		if (uar_tool_matches(&named, p->text))
			return true;
	return false;
}

/* HOST:PORT of an address in small letters; the part before it names nobody. */
static uar_str host_of(uar_str url, char *out, size_t size)
{
	size_t n = 0, from = 0;

	for (size_t i = 0; i + 3 <= url.n && !from; i++)
		if (memcmp(url.p + i, "://", 3) == 0)
			from = i + 3;
	for (size_t i = from; i < url.n && !strchr("/?#", url.p[i]); i++) {
		char c = url.p[i];

		if (c == '\\')
			return UAR_STR(""); /* not everybody reads it alike */
		if (c == '@')
			n = 0;
		else if (n + 1 < size)
			out[n++] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
		else
			return UAR_STR("");
	}
	return uar_str_n(out, n);
}

static uar_str without_port(uar_str host)
{
	size_t n = host.n;

	while (n && host.p[n - 1] >= '0' && host.p[n - 1] <= '9')
		n--;
	return n && n < host.n && host.p[n - 1] == ':' ? uar_str_n(host.p, n - 1) : host;
}

/* What the operator has written is for every tenant that may use it. */
static bool is_for_tenant(const struct uar_secrets_ask *ask, const struct uar_json *grant)
{
	const char *own = ask->secrets->tenant;

	return !ask->only_granted || !own || !ask->tenant.n || uar_str_is(ask->tenant, own) ||
	       is_in(uar_json_get(grant, UAR_STR("tenants")), ask->tenant);
}

static uar_err check_grant(const struct uar_secrets_ask *ask, uar_str name, struct uar_error *error)
{
	const struct uar_json *grants = ask->secrets->grants;
	const struct uar_json *g = uar_json_get(grants, name);
	const struct uar_json *hosts, *agents;
	char text[256];
	uar_str host = host_of(ask->url, text, sizeof text);

	if (!g)
		g = uar_json_get(grants, UAR_STR("*"));
	if (!g && ask->only_granted)
		return uar_error_set(
			error, UAR_EFORBIDDEN,
			"the agent is not from a file, and the secret %.*s has no "
			"entry: name it and the host %.*s in the setting secret_grants",
			UAR_FMT(name), UAR_FMT(host));
	if (!is_for_tenant(ask, g))
		return uar_error_set(error, UAR_EFORBIDDEN,
				     "the secret %.*s is not granted to this tenant",
				     UAR_FMT(name));
	if (!g)
		return UAR_OK;
	hosts = uar_json_get(g, UAR_STR("hosts"));
	agents = uar_json_get(g, UAR_STR("agents"));
	if ((!hosts && !agents) ||
	    (hosts && !is_in(hosts, host) && !is_in(hosts, without_port(host))))
		return uar_error_set(error, UAR_EFORBIDDEN,
				     "the secret %.*s is not granted to the host %.*s: name it in "
				     "the setting secret_grants",
				     UAR_FMT(name), UAR_FMT(host));
	if (agents && !is_in(agents, ask->agent))
		return uar_error_set(error, UAR_EFORBIDDEN,
				     "the secret %.*s is not granted to the agent %.*s: name it in "
				     "the setting secret_grants",
				     UAR_FMT(name), UAR_FMT(ask->agent));
	return UAR_OK;
}

/* --- values --------------------------------------------------------------------------- */

static uar_err from_file(const char *dir, uar_str name, struct uar_buf *out,
			 struct uar_error *error)
{
	char path[4096];

	if (!dir || !dir[0] ||
	    (size_t)snprintf(path, sizeof path, "%s/%.*s", dir, UAR_FMT(name)) >= sizeof path)
		return UAR_ENOTFOUND;
	return uar_file_read(path, out, error);
}

static bool from_env(uar_str name, struct uar_buf *out)
{
	char variable[UAR_LIMIT_SECRET_NAME + 16] = "UAR_SECRET_";
	size_t n = strlen(variable);
	const char *value;

	for (size_t i = 0; i < name.n; i++)
		variable[n++] = name.p[i] == '-' || name.p[i] == '.' ? '_' : name.p[i];
	variable[n] = 0;
	value = getenv(variable);
	if (value)
		uar_buf_add_str(out, uar_str_c(value));
	return value != NULL;
}

/* Without the line end that editors leave. */
static uar_err look_up(const struct uar_secrets *s, uar_str name, struct uar_buf *out,
		       struct uar_error *error)
{
	uar_err e = UAR_OK;

	if (!is_name(name))
		return uar_error_set(error, UAR_EINVALID, "\"%.*s\" is no name of a secret",
				     UAR_FMT(uar_str_utf8_prefix(name, 64)));
	if (!from_env(name, out)) {
		e = from_file(getenv("CREDENTIALS_DIRECTORY"), name, out, error);
		if (e == UAR_ENOTFOUND)
			e = from_file(s->dir, name, out, error);
	}
	if (!e)
		e = out->err;
	if (e)
		return uar_error_set(error, e,
				     "the secret %.*s cannot be read: set UAR_SECRET_%.*s or write "
				     "the file %.*s of the secrets directory",
				     UAR_FMT(name), UAR_FMT(name), UAR_FMT(name));
	while (out->n && (out->p[out->n - 1] == '\n' || out->p[out->n - 1] == '\r'))
		out->p[--out->n] = 0;
	return UAR_OK;
}

static uar_err put_value(const struct uar_secrets_ask *ask, uar_str name, struct uar_buf *out,
			 struct uar_secrets_used *used, struct uar_error *error)
{
	struct uar_buf value = uar_buf_make(UAR_LIMIT_SECRET_BYTES);
	uar_err e = check_grant(ask, name, error);

	if (!e)
		e = look_up(ask->secrets, name, &value, error);
	if (!e) {
		uar_buf_add_str(out, uar_buf_str(&value));
		if (used)
			uar_secrets_note(used, uar_buf_str(&value));
		e = used && used->values.err ? used->values.err : UAR_OK;
	}
	if (value.p)
		explicit_bzero(value.p, value.cap);
	uar_buf_fini(&value);
	return e;
}

uar_err uar_secrets_expand(const struct uar_secrets_ask *ask, uar_str text, struct uar_buf *out,
			   struct uar_secrets_used *used, struct uar_error *error)
{
	size_t at = 0;
	uar_err e = UAR_OK;

	while (!e && at < text.n) {
		size_t begin = find_mark(text, at);
		uar_str name;

		uar_buf_add(out, text.p + at, begin - at);
		at = begin;
		if (begin == text.n)
			break;
		name = uar_secrets_next(text, &at);
		at++; /* the brace */
		e = ask->secrets ? put_value(ask, name, out, used, error)
				 : uar_error_set(error, UAR_ENOTFOUND, "there are no secrets here");
	}
	return e ? e : out->err;
}
