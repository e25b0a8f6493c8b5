/* http_spec.c - the declaration of a tool that is a request: what it says, what follows from it. */
#include "tool/http_int.h"

#include "base/header.h"

struct declared {
	uar_str name, description, method, url, effect, version;
	const struct uar_json *query, *headers, *body, *input_schema, *output_schema, *tags;
	bool ask, has_ask;
	double timeout_seconds;
};

static const struct uar_json_field fields[] = {
	{ "name", UAR_FIELD_STR, true, offsetof(struct declared, name) },
	{ "description", UAR_FIELD_STR, false, offsetof(struct declared, description) },
	{ "method", UAR_FIELD_STR, false, offsetof(struct declared, method) },
	{ "url", UAR_FIELD_STR, true, offsetof(struct declared, url) },
	{ "query", UAR_FIELD_OBJECT, false, offsetof(struct declared, query) },
	{ "headers", UAR_FIELD_OBJECT, false, offsetof(struct declared, headers) },
	{ "body", UAR_FIELD_ANY, false, offsetof(struct declared, body) },
	{ "input_schema", UAR_FIELD_OBJECT, false, offsetof(struct declared, input_schema) },
	{ "output_schema", UAR_FIELD_OBJECT, false, offsetof(struct declared, output_schema) },
	{ "effect", UAR_FIELD_STR, false, offsetof(struct declared, effect) },
	{ "ask", UAR_FIELD_BOOL, false, offsetof(struct declared, ask) },
	{ "tags", UAR_FIELD_ARRAY, false, offsetof(struct declared, tags) },
	{ "version", UAR_FIELD_STR, false, offsetof(struct declared, version) },
	{ "timeout_seconds", UAR_FIELD_DOUBLE, false, offsetof(struct declared, timeout_seconds) },
};

/* What a method means unless the declaration says otherwise. */
static const struct {
	const char *name;
	enum uar_tool_effect effect;
} methods[] = {
	{ "GET", UAR_TOOL_READ_ONLY },	{ "HEAD", UAR_TOOL_READ_ONLY },
	{ "PUT", UAR_TOOL_IDEMPOTENT }, { "DELETE", UAR_TOOL_IDEMPOTENT },
	{ "POST", UAR_TOOL_ONCE },	{ "PATCH", UAR_TOOL_ONCE },
};

static uar_err wrong(struct uar_error *error, const char *where, const char *text)
{
	(void)uar_error_set(error, UAR_EINVALID, "%s", text);
	uar_error_where(error, "%s", where);
	return UAR_EINVALID;
}

static bool is_name(uar_str s)
{
	if (!s.n || s.n > UAR_LIMIT_TOOL_NAME)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      c == '_' || c == '-' || c == '.'))
			return false;
	}
	return true;
}

/* A template of the host would let a model choose it. */
static bool is_fixed_host(uar_str url)
{
	size_t from = uar_str_starts(url, UAR_STR("https://"))	? 8
		      : uar_str_starts(url, UAR_STR("http://")) ? 7
								: 0;
	size_t n = from;

	while (n < url.n && !strchr("/?#", url.p[n]))
		n++;
	return from && n > from && !memchr(url.p, '{', n) && !memchr(url.p, '@', n);
}

static bool are_texts(const struct uar_json *object)
{
	for (const struct uar_json *m = uar_json_first(object); m; m = m->next)
		if (m->kind != UAR_JSON_STRING)
			return false;
	return true;
}

static uar_err check_headers(const struct uar_json *headers, struct uar_error *error)
{
	if (!are_texts(headers) || (headers && headers->count > UAR_LIMIT_HTTP_TOOL_HEADERS))
		return wrong(error, "/headers", "each member is a text, 32 at most");
	for (const struct uar_json *m = uar_json_first(headers); m; m = m->next) {
		if (!uar_header_name_valid(m->key))
			return wrong(error, "/headers",
				     "a name has a character that no header may have");
		if (uar_header_is_of_connection(m->key))
			return wrong(error, "/headers", UAR_HEADER_OF_CONNECTION);
	}
	return UAR_OK;
}

/* As deep as the definition, whose depth is bounded. */
static bool has_open_mark(const struct uar_json *j)
{
	static const uar_str mark = UAR_STR("${secret:");

	if (!j)
		return false;
	for (size_t i = 0; j->kind == UAR_JSON_STRING && i < j->text.n; i++) {
		uar_str rest = uar_str_from(j->text, i);

		if (uar_str_starts(rest, mark) && !memchr(rest.p, '}', rest.n))
			return true;
	}
	if (j->kind == UAR_JSON_OBJECT || j->kind == UAR_JSON_ARRAY)
		for (const struct uar_json *m = uar_json_first(j); m; m = m->next)
			if (has_open_mark(m))
				return true;
	return false;
}

static uar_err check_marks(const struct declared *d, struct uar_error *error)
{
	struct uar_json url = { .kind = UAR_JSON_STRING, .text = d->url };
	const struct {
		const char *where;
		const struct uar_json *j;
	} all[] = { { "/url", &url },
		    { "/query", d->query },
		    { "/headers", d->headers },
		    { "/body", d->body } };

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (has_open_mark(all[i].j))
			return wrong(error, all[i].where,
				     "${secret:NAME has no closing brace: write ${secret:NAME}");
	return UAR_OK;
}

static uar_err check(const struct declared *d, struct uar_error *error)
{
	size_t known = 0;
	uar_err e;

	while (known < ARRAY_LEN(methods) && !uar_str_is(d->method, methods[known].name))
		known++;
	if (!is_name(d->name))
		return wrong(error, "/name", "a name has letters, digits, '.', '_' and '-' alone");
	if (known == ARRAY_LEN(methods))
		return wrong(error, "/method", "write GET, HEAD, POST, PUT, PATCH or DELETE");
	if (!is_fixed_host(d->url))
		return wrong(error, "/url", "write http:// or https:// and a host without {...}");
	if (!are_texts(d->query))
		return wrong(error, "/query", "each member is a text such as \"{city}\"");
	if (d->effect.n &&
	    !uar_str_is(d->effect, uar_tool_effect_name(uar_tool_effect_parse(d->effect))))
		return wrong(error, "/effect", "write read_only, idempotent or once");
	if (d->timeout_seconds < 0 || d->timeout_seconds > 600)
		return wrong(error, "/timeout_seconds", "write a number up to 600");
	e = check_headers(d->headers, error);
	return e ? e : check_marks(d, error);
}

/* --- what follows ----------------------------------------------------------------------- */

/* The names of secrets in the texts of an object, or in one text. */
static void put_secrets(struct uar_jw *w, const struct uar_json *j)
{
	uar_str name;

	if (!j)
		return;
	if (j->kind == UAR_JSON_STRING) {
		for (size_t at = 0; (name = uar_secrets_next(j->text, &at)).n;)
			uar_jw_str(w, NULL, name);
		return;
	}
	if (j->kind == UAR_JSON_OBJECT || j->kind == UAR_JSON_ARRAY)
		for (const struct uar_json *m = uar_json_first(j); m; m = m->next)
			put_secrets(w, m);
}

static uar_err own(struct uar_arena *arena, struct uar_buf *b, uar_str *out)
{
	uar_err e = b->err;

	if (!e) {
		*out = uar_arena_str(arena, uar_buf_str(b));
		e = out->p ? UAR_OK : UAR_ENOMEM;
	}
	uar_buf_fini(b);
	return e;
}

static uar_err write_auth(const struct declared *d, struct uar_arena *arena, uar_str *out)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_TOOL_OUTPUT), empty = uar_buf_make(16);
	struct uar_json url = { .kind = UAR_JSON_STRING, .text = d->url };
	struct uar_jw w = uar_jw_begin(&b);

	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "type", "secrets");
	uar_jw_arr(&w, "secrets");
	put_secrets(&w, &url);
	put_secrets(&w, d->query);
	put_secrets(&w, d->headers);
	put_secrets(&w, d->body);
	uar_jw_close(&w);
	uar_jw_close(&w);
	if (uar_jw_end(&w) && !b.err)
		b.err = UAR_EINVALID;
	if (!b.err && uar_str_ends(uar_buf_str(&b), UAR_STR("\"secrets\":[]}"))) {
		uar_buf_fini(&b);
		return own(arena, &empty, out);
	}
	return own(arena, &b, out);
}

static uar_err write_json(const struct uar_json *j, const char *fallback, struct uar_arena *arena,
			  uar_str *out)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_TOOL_OUTPUT);

	if (j)
		uar_json_write(&b, j);
	else
		uar_buf_add_str(&b, uar_str_c(fallback));
	return own(arena, &b, out);
}

static uar_err describe(const struct declared *d, struct uar_arena *arena, struct uar_tool *t)
{
	enum { DEFAULT_SECONDS = 30 };
	double seconds = d->timeout_seconds > 0 ? d->timeout_seconds : DEFAULT_SECONDS;
	size_t known = 0;
	uar_err e;

	while (!uar_str_is(d->method, methods[known].name))
		known++;
	t->effect = d->effect.n ? uar_tool_effect_parse(d->effect) : methods[known].effect;
	t->ask = d->has_ask ? d->ask : t->effect != UAR_TOOL_READ_ONLY;
	t->destructive = uar_str_is(d->method, "DELETE");
	t->timeout_us = (int64_t)(seconds * 1000000);
	t->transport = UAR_STR("http");
	t->capabilities = UAR_STR("[\"network\"]");
	t->name = uar_arena_str(arena, d->name);
	t->tool_id = uar_arena_printf(arena, "http:%.*s", UAR_FMT(d->name));
	t->description = uar_arena_str(arena, d->description);
	t->version = uar_arena_str(arena, d->version.n ? d->version : UAR_STR("1"));
	if (!t->name.p || !t->tool_id.p || !t->description.p || !t->version.p)
		return UAR_ENOMEM;
	e = write_json(d->input_schema, "{\"type\":\"object\"}", arena, &t->input_schema);
	if (!e)
		e = write_json(d->output_schema, "", arena, &t->output_schema);
	if (!e)
		e = write_json(d->tags, "[\"http\"]", arena, &t->tags);
	return e ? e : write_auth(d, arena, &t->auth);
}

uar_err uar_http_spec_read(const struct uar_json *j, struct uar_arena *arena,
			   struct uar_http_spec *out, struct uar_error *error)
{
	struct declared d = { .method = UAR_STR("GET") };
	struct uar_http_spec s = { .body = NULL };
	uar_err e = uar_json_read(j, fields, ARRAY_LEN(fields), true, &d, error);

	if (!e)
		e = check(&d, error);
	if (e)
		return e;
	d.has_ask = uar_json_get(j, UAR_STR("ask")) != NULL;
	s.method = uar_arena_str(arena, d.method);
	s.url = uar_arena_str(arena, d.url);
	s.query = d.query;
	s.headers = d.headers;
	s.body = d.body;
	e = s.method.p && s.url.p ? describe(&d, arena, &s.tool) : UAR_ENOMEM;
	if (e)
		return uar_error_set(error, e, "%s", uar_err_text(e));
	*out = s;
	return UAR_OK;
}
