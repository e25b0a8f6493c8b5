/* providers.c - reads the table of providers, and their keys. */
#include "app/providers.h"

#include <stdio.h>
#include <stdlib.h>

#include "app/limits.h"
#include "base/file.h"
#include "json/json.h"
#include "model/limits.h"

static const char *const default_urls[UAR_DIALECT_COUNT] = {
	[UAR_DIALECT_OPENAI_CHAT] = "https://api.openai.com/v1",
	[UAR_DIALECT_OPENAI_RESPONSES] = "https://api.openai.com/v1",
	[UAR_DIALECT_ANTHROPIC] = "https://api.anthropic.com",
};

struct reader {
	struct uar_arena *arena;
	struct uar_error *error;
	uar_str provider; /* at hand */
};

/* --- errors ------------------------------------------------------------------------- */

static uar_err refuse(struct reader *r, const char *member, const char *why)
{
	return uar_error_set(r->error, UAR_ECONFIG, "providers: /%.*s%s%s: %s",
			     UAR_FMT(uar_str_utf8_prefix(r->provider, 40)), member ? "/" : "",
			     member ? member : "", why);
}

/* What uar_json_read found, with the provider's name before. */
static uar_err refuse_member(struct reader *r, const struct uar_error *found)
{
	char why[UAR_LIMIT_ERROR_TEXT];

	snprintf(why, sizeof why, "%s", uar_error_text(found));
	return refuse(r, found->where[0] == '/' ? found->where + 1 : found->where, why);
}

/* --- members -------------------------------------------------------------------------- */

static uar_err copy_text(struct reader *r, uar_str s, const char **out)
{
	uar_str copy = s.n ? uar_arena_str(r->arena, s) : UAR_STR_NONE;

	if (s.n && !copy.p)
		return uar_error_set(r->error, UAR_ENOMEM, "out of memory");
	if (s.n && memchr(s.p, 0, s.n))
		return refuse(r, NULL, "a value has a zero byte in it");
	*out = copy.p;
	return UAR_OK;
}

static uar_err read_dialect(struct reader *r, uar_str name, enum uar_model_dialect *out)
{
	for (int i = 0; i < UAR_DIALECT_COUNT; i++)
		if (uar_str_is(name, uar_model_dialect_names[i])) {
			*out = (enum uar_model_dialect)i;
			return UAR_OK;
		}
	return refuse(r, "dialect", "write openai_chat, openai_responses or anthropic");
}

/* Headers are shown with the other settings. */
static bool carries_key(uar_str name)
{
	static const char *const names[] = { "Authorization", "Proxy-Authorization", "x-api-key",
					     "api-key", "Cookie" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (uar_str_eq_nocase(name, uar_str_c(names[i])))
			return true;
	return false;
}

static uar_err read_headers(struct reader *r, const struct uar_json *j, const char *const **out)
{
	const char **lines = uar_arena_alloc(r->arena, (j->count + 1) * sizeof *lines);
	size_t n = 0;

	if (!lines)
		return uar_error_set(r->error, UAR_ENOMEM, "out of memory");
	if (j->count > UAR_LIMIT_MODEL_HEADERS)
		return refuse(r, "headers", "these are too many");
	for (const struct uar_json *h = j->first; h; h = h->next) {
		if (h->kind != UAR_JSON_STRING)
			return refuse(r, "headers", "a value is not a string");
		if (carries_key(h->key))
			return refuse(r, "headers",
				      "a key does not belong here: name it by key_env, key_file or "
				      "credential, and its header by key_header");
		lines[n] =
			uar_arena_printf(r->arena, "%.*s: %.*s", UAR_FMT(h->key), UAR_FMT(h->text))
				.p;
		if (!lines[n++])
			return uar_error_set(r->error, UAR_ENOMEM, "out of memory");
	}
	*out = lines;
	return UAR_OK;
}

struct model_members {
	bool tools, images, files, reasoning, citations, cache, thinking_budget;
	uar_str structured;
	int64_t context_tokens, max_output_tokens, latency_ms;
	const struct uar_json *classes;
};

static uar_err read_row(struct reader *r, const struct uar_json *j, struct uar_model_row *out)
{
#define F(NAME, TYPE)                                                                              \
	{                                                                                          \
#NAME, UAR_FIELD_##TYPE, false, offsetof(struct model_members, NAME)               \
	}
	static const struct uar_json_field fields[] = {
		F(tools, BOOL),		  F(images, BOOL),
		F(files, BOOL),		  F(reasoning, BOOL),
		F(citations, BOOL),	  F(cache, BOOL),
		F(thinking_budget, BOOL), F(structured, STR),
		F(context_tokens, INT),	  F(max_output_tokens, INT),
		F(latency_ms, INT),	  F(classes, ARRAY)
	};
	static const char *const structured[] = { "none", "native", "tool" };
	struct model_members m = { .tools = true, .structured = UAR_STR("native") };
	struct uar_error found = { 0 };
	size_t kind = 0;

	if (uar_json_read(j, fields, ARRAY_LEN(fields), true, &m, &found))
		return refuse_member(r, &found);
	while (kind < ARRAY_LEN(structured) && !uar_str_is(m.structured, structured[kind]))
		kind++;
	if (kind == ARRAY_LEN(structured))
		return refuse(r, "models", "structured is none, native or tool");
	if (m.context_tokens < 0 || m.max_output_tokens < 0 || m.latency_ms < 0)
		return refuse(r, "models", "a number is negative");
	*out = (struct uar_model_row){ .name = uar_arena_str(r->arena, j->key),
				       .tools = m.tools,
				       .images = m.images,
				       .files = m.files,
				       .reasoning = m.reasoning,
				       .citations = m.citations,
				       .cache = m.cache,
				       .thinking_budget = m.thinking_budget,
				       .structured = (enum uar_model_structured)kind,
				       .context_tokens = m.context_tokens,
				       .max_output_tokens = m.max_output_tokens,
				       .latency_ms = m.latency_ms,
				       .classes = m.classes
							  ? uar_arena_str(r->arena, m.classes->text)
							  : UAR_STR("") };
	return out->name.p && out->classes.p ? UAR_OK
					     : uar_error_set(r->error, UAR_ENOMEM, "out of memory");
}

static uar_err read_rows(struct reader *r, const struct uar_json *j,
			 struct uar_provider_setting *out)
{
	struct uar_model_row *rows;
	uar_err e = UAR_OK;

	if (j->count > UAR_LIMIT_MODEL_ROWS)
		return refuse(r, "models", "these are too many");
	rows = uar_arena_alloc(r->arena, (j->count + 1) * sizeof *rows);
	if (!rows)
		return uar_error_set(r->error, UAR_ENOMEM, "out of memory");
	out->rows = rows;
	for (const struct uar_json *m = j->first; m && !e; m = m->next) {
		if (m->kind != UAR_JSON_OBJECT)
			return refuse(r, "models", "what a model can do is an object");
		e = read_row(r, m, &rows[out->row_count++]);
	}
	return e;
}

/* --- a provider --------------------------------------------------------------------------- */

struct members {
	uar_str dialect, base_url, key_env, key_file, credential, key_header;
	const struct uar_json *headers, *models;
};

static uar_err copy_members(struct reader *r, const struct members *m,
			    struct uar_provider_setting *out)
{
	uar_err e = read_dialect(r, m->dialect, &out->dialect);

	if (!e)
		e = copy_text(r, m->base_url, &out->base_url);
	if (!e)
		e = copy_text(r, m->key_env, &out->key_env);
	if (!e)
		e = copy_text(r, m->key_file, &out->key_file);
	if (!e)
		e = copy_text(r, m->credential, &out->credential);
	if (!e)
		e = copy_text(r, m->key_header, &out->key_header);
	if (!e && m->headers)
		e = read_headers(r, m->headers, &out->headers);
	if (!e && m->models)
		e = read_rows(r, m->models, out);
	if (!e && !out->base_url)
		out->base_url = default_urls[out->dialect];
	return e;
}

static uar_err check_provider(struct reader *r, const struct uar_provider_setting *p)
{
	uar_str url = uar_str_c(p->base_url);

	if (!uar_str_starts(url, UAR_STR("http://")) && !uar_str_starts(url, UAR_STR("https://")))
		return refuse(r, "base_url", "write http://... or https://...");
	if (!!p->key_env + !!p->key_file + !!p->credential > 1)
		return refuse(r, NULL, "give one of key_env, key_file and credential");
	if (p->credential && strchr(p->credential, '/'))
		return refuse(r, "credential", "a credential is a name, not a path");
	return UAR_OK;
}

static uar_err read_provider(struct reader *r, const struct uar_json *j,
			     struct uar_provider_setting *out)
{
	static const struct uar_json_field fields[] = {
		{ "dialect", UAR_FIELD_STR, true, offsetof(struct members, dialect) },
		{ "base_url", UAR_FIELD_STR, false, offsetof(struct members, base_url) },
		{ "key_env", UAR_FIELD_STR, false, offsetof(struct members, key_env) },
		{ "key_file", UAR_FIELD_STR, false, offsetof(struct members, key_file) },
		{ "credential", UAR_FIELD_STR, false, offsetof(struct members, credential) },
		{ "key_header", UAR_FIELD_STR, false, offsetof(struct members, key_header) },
		{ "headers", UAR_FIELD_OBJECT, false, offsetof(struct members, headers) },
		{ "models", UAR_FIELD_OBJECT, false, offsetof(struct members, models) },
	};
	struct members m = { .dialect = UAR_STR("") };
	struct uar_error found = { 0 };
	uar_err e;

	if (j->kind != UAR_JSON_OBJECT)
		return refuse(r, NULL, "a provider is an object with a member dialect");
	if (uar_json_get(j, UAR_STR("key")) || uar_json_get(j, UAR_STR("api_key")))
		return refuse(r, NULL,
			      "keys do not belong here: name them by key_env, key_file or "
			      "credential");
	if (uar_json_read(j, fields, ARRAY_LEN(fields), true, &m, &found))
		return refuse_member(r, &found);
	e = copy_text(r, j->key, &out->name);
	if (!e)
		e = copy_members(r, &m, out);
	return e ? e : check_provider(r, out);
}

uar_err uar_providers_read(uar_str json, struct uar_arena *a, struct uar_provider_settings *out,
			   struct uar_error *error)
{
	struct reader r = { .arena = a, .error = error, .provider = UAR_STR("") };
	struct uar_provider_setting *at;
	const struct uar_json *root = NULL;
	size_t n = 0;
	uar_err e;

	*out = (struct uar_provider_settings){ 0 };
	if (!uar_str_trim(json).n)
		return UAR_OK;
	if (uar_json_parse(json, NULL, a, &root, NULL) || root->kind != UAR_JSON_OBJECT)
		return uar_error_set(error, UAR_ECONFIG,
				     "providers: expected a JSON object of names and providers");
	if (root->count > UAR_LIMIT_MODEL_PROVIDERS - 4) /* those of variables have a place, too */
		return uar_error_set(error, UAR_ECONFIG, "providers: these are too many");
	at = uar_arena_alloc(a, (root->count + 1) * sizeof *at);
	e = at ? UAR_OK : uar_error_set(error, UAR_ENOMEM, "out of memory");
	for (const struct uar_json *j = root->first; j && !e; j = j->next) {
		r.provider = j->key;
		e = read_provider(&r, j, &at[n++]);
	}
	if (!e)
		*out = (struct uar_provider_settings){ at, n };
	return e;
}

/* --- keys ------------------------------------------------------------------------------------- */

static uar_err read_key_file(const char *name, const char *path, struct uar_buf *out,
			     struct uar_error *error)
{
	struct uar_error why = { 0 };

	if (uar_file_read(path, out, &why))
		return uar_error_set(error, UAR_ECONFIG,
				     "the key of provider %s cannot be read from %.200s: %.80s",
				     name, path, why.text);
	while (out->n && (out->p[out->n - 1] == '\n' || out->p[out->n - 1] == '\r'))
		out->p[--out->n] = '\0';
	return UAR_OK;
}

static uar_err read_credential(const struct uar_provider_setting *p, struct uar_buf *out,
			       struct uar_error *error)
{
	const char *folder = getenv("CREDENTIALS_DIRECTORY");
	struct uar_buf path = uar_buf_make(UAR_LIMIT_CONFIG_BYTES);
	uar_err e;

	if (!folder || !*folder)
		return uar_error_set(
			error, UAR_ECONFIG,
			"the key of provider %s is a credential, and systemd gave none: "
			"add LoadCredential=%s:PATH to the service",
			p->name, p->credential);
	uar_buf_printf(&path, "%s/%s", folder, p->credential);
	e = path.err ? path.err : read_key_file(p->name, path.p, out, error);
	uar_buf_fini(&path);
	return e;
}

uar_err uar_providers_key(const struct uar_provider_setting *p, struct uar_buf *out,
			  struct uar_error *error)
{
	const char *value = p->key_env ? getenv(p->key_env) : NULL;

	if (p->key_file)
		return read_key_file(p->name, p->key_file, out, error);
	if (p->credential)
		return read_credential(p, out, error);
	if (p->key_env && (!value || !*value))
		return uar_error_set(error, UAR_ECONFIG,
				     "the key of provider %s is in the variable %s, which is not "
				     "set",
				     p->name, p->key_env);
	uar_buf_add_str(out, uar_str_c(value));
	return out->err;
}

uar_err uar_providers_ollama(const char *host, struct uar_buf *out)
{
	uar_str rest = uar_str_trim(uar_str_c(host)), name;
	bool scheme = uar_str_starts(rest, UAR_STR("http://")) ||
		      uar_str_starts(rest, UAR_STR("https://"));

	while (uar_str_ends(rest, UAR_STR("/")))
		rest.n--;
	if (!scheme)
		uar_buf_add_str(out, UAR_STR("http://"));
	name = scheme ? uar_str_from(rest, uar_str_find(rest, '/') + 2) : rest;
	if (uar_str_starts(name, UAR_STR("0.0.0.0"))) { /* where it listens, not where it is */
		if (scheme)
			uar_buf_add_str(out, UAR_STR("http://"));
		uar_buf_add_str(out, UAR_STR("127.0.0.1"));
		rest = name = uar_str_from(name, 7);
	} else if (uar_str_starts(name, UAR_STR(":"))) {
		uar_buf_add_str(out, UAR_STR("127.0.0.1"));
	}
	uar_buf_add_str(out, rest);
	if (uar_str_find(name, ':') == name.n && !scheme)
		uar_buf_add_str(out, UAR_STR(":11434"));
	uar_buf_add_str(out, UAR_STR("/v1"));
	return out->err;
}
