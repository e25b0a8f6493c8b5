/* http_fill.c - a declaration and arguments become a request.
 *
 * A template is read once: an argument is put in as it is and never looked at for secrets, so that
 * a model cannot ask for one. In an address everything put in is percent-encoded. */
#include "tool/http_int.h"

#include "base/address.h"
#include "loop/limits.h"

struct filling {
	const struct uar_http_spec *spec;
	const struct uar_json *args;
	struct uar_secrets_ask ask;
	struct uar_http_filled *out;
	struct uar_error *error;
};

static void put_encoded(struct uar_buf *out, uar_str s)
{
	static const char digits[] = "0123456789ABCDEF";

	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			     (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' || c == '~';

		if (!plain)
			uar_buf_add_char(out, '%');
		uar_buf_add_char(out, plain ? (char)c : digits[c >> 4]);
		if (!plain)
			uar_buf_add_char(out, digits[c & 15]);
	}
}

/* The argument that the text asks for when it begins with {name}; its length, or 0. */
static size_t argument_at(uar_str text, uar_str *out_name)
{
	size_t n = 1;

	if (!text.n || text.p[0] != '{')
		return 0;
	while (n < text.n && (text.p[n] == '_' || text.p[n] == '-' || text.p[n] == '.' ||
			      (text.p[n] >= '0' && text.p[n] <= '9') ||
			      ((text.p[n] | 32) >= 'a' && (text.p[n] | 32) <= 'z')))
		n++;
	if (n == 1 || n >= text.n || text.p[n] != '}')
		return 0;
	*out_name = uar_str_n(text.p + 1, n - 1);
	return n + 1;
}

static void put_argument(struct filling *f, uar_str name, bool encode, struct uar_buf *out)
{
	const struct uar_json *j = uar_json_get(f->args, name);
	struct uar_buf text = uar_buf_make(UAR_LIMIT_TOOL_INPUT);

	if (j && j->kind == UAR_JSON_STRING)
		uar_buf_add_str(&text, j->text);
	else if (j && j->kind != UAR_JSON_NULL)
		uar_json_write(&text, j);
	if (text.err)
		out->err = text.err;
	else if (encode)
		put_encoded(out, uar_buf_str(&text));
	else
		uar_buf_add_str(out, uar_buf_str(&text));
	uar_buf_fini(&text);
}

static uar_err put_secret(struct filling *f, uar_str mark, bool encode, struct uar_buf *out)
{
	struct uar_buf value = uar_buf_make(UAR_LIMIT_SECRET_BYTES);
	uar_err e = uar_secrets_expand(&f->ask, mark, &value, &f->out->used, f->error);

	if (!e && encode)
		put_encoded(out, uar_buf_str(&value));
	else if (!e)
		uar_buf_add_str(out, uar_buf_str(&value));
	if (value.p)
		explicit_bzero(value.p, value.cap);
	uar_buf_fini(&value);
	return e ? e : out->err;
}

static uar_err fill(struct filling *f, uar_str text, bool encode, struct uar_buf *out)
{
	uar_err e = UAR_OK;

	for (size_t i = 0; i < text.n && !e;) {
		uar_str rest = uar_str_from(text, i), name = UAR_STR("");
		size_t n;

		if (uar_str_starts(rest, UAR_STR("${secret:"))) {
			n = uar_str_find(rest, '}') + 1;
			e = put_secret(f, uar_str_n(rest.p, n < rest.n ? n : rest.n), encode, out);
		} else if ((n = argument_at(rest, &name))) {
			put_argument(f, name, encode, out);
		} else {
			n = 1;
			uar_buf_add_char(out, rest.p[0]);
		}
		i += n;
	}
	return e ? e : out->err;
}

/* --- what is left over --------------------------------------------------------------------- */

static bool asks_for(uar_str text, uar_str name)
{
	uar_str found = UAR_STR("");

	for (size_t i = 0; i < text.n; i++)
		if (argument_at(uar_str_from(text, i), &found) && uar_str_eq(found, name))
			return true;
	return false;
}

static bool member_asks_for(const struct uar_json *object, uar_str name)
{
	for (const struct uar_json *m = uar_json_first(object); m; m = m->next)
		if (asks_for(m->text, name))
			return true;
	return false;
}

static bool is_left_over(const struct filling *f, uar_str name)
{
	return !asks_for(f->spec->url, name) && !member_asks_for(f->spec->query, name) &&
	       !member_asks_for(f->spec->headers, name);
}

/* --- the address ------------------------------------------------------------------------------ */

static void put_parameter(struct uar_buf *url, uar_str name)
{
	bool more = memchr(url->p ? url->p : "", '?', url->n) != NULL;

	uar_buf_add_char(url, more ? '&' : '?');
	put_encoded(url, name);
	uar_buf_add_char(url, '=');
}

/* A parameter that only an absent argument would fill is left out. */
static bool is_absent(const struct filling *f, uar_str text)
{
	uar_str name = UAR_STR("");

	return argument_at(text, &name) == text.n && text.n && !uar_json_get(f->args, name);
}

/* Clients resolve ".." before they ask: such an argument would choose another resource. */
static uar_err fill_path(struct filling *f)
{
	uar_err e = fill(f, f->spec->url, true, &f->out->url);

	if (e || !uar_address_climbs(uar_buf_str(&f->out->url)))
		return e;
	return uar_error_set(f->error, UAR_EINVALID,
			     "an argument makes a part of the path \".\" or \"..\", which leads "
			     "elsewhere: give another value");
}

static uar_err fill_url(struct filling *f)
{
	struct uar_buf *url = &f->out->url;
	bool reads = uar_str_is(f->spec->method, "GET") || uar_str_is(f->spec->method, "HEAD") ||
		     uar_str_is(f->spec->method, "DELETE");
	uar_err e = fill_path(f);
	const struct uar_json *m;

	for (m = uar_json_first(f->spec->query); m && !e; m = m->next) {
		if (is_absent(f, m->text))
			continue;
		put_parameter(url, m->key);
		e = fill(f, m->text, true, url);
	}
	for (m = reads && !f->spec->body ? uar_json_first(f->args) : NULL; m && !e; m = m->next) {
		if (!is_left_over(f, m->key) || m->kind == UAR_JSON_NULL)
			continue;
		put_parameter(url, m->key);
		put_argument(f, m->key, true, url);
	}
	if (url->err == UAR_ETOOBIG)
		return uar_error_set(f->error, UAR_EINVALID, "the address gets too long");
	return e ? e : url->err;
}

/* --- headers and body ----------------------------------------------------------------------- */

static uar_err fill_headers(struct filling *f)
{
	size_t n = 0;
	uar_err e = UAR_OK;

	f->out->headers[n++] = "Accept: application/json, text/*;q=0.5";
	if (f->out->body.n)
		f->out->headers[n++] = "Content-Type: application/json";
	for (const struct uar_json *m = uar_json_first(f->spec->headers); m && !e; m = m->next) {
		struct uar_buf line = uar_buf_make(UAR_LIMIT_SECRETS_USED);

		uar_buf_printf(&line, "%.*s: ", UAR_FMT(m->key));
		e = fill(f, m->text, false, &line);
		f->out->headers[n] = e ? NULL : uar_arena_str(&f->out->arena, uar_buf_str(&line)).p;
		if (!e && !f->out->headers[n++])
			e = UAR_ENOMEM;
		if (!e && (memchr(line.p, '\n', line.n) || memchr(line.p, '\r', line.n) ||
			   memchr(line.p, 0, line.n)))
			e = uar_error_set(f->error, UAR_EINVALID,
					  "an argument has a line end where a header wants none");
		if (line.p)
			explicit_bzero(line.p, line.cap);
		uar_buf_fini(&line);
	}
	return e;
}

static uar_err fill_tree(struct filling *f, struct uar_jw *w, const struct uar_json *j);

static uar_err fill_text(struct filling *f, struct uar_jw *w, uar_str text)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_TOOL_INPUT);
	uar_str name = UAR_STR("");
	uar_err e = UAR_OK;

	if (text.n && argument_at(text, &name) == text.n) {
		const struct uar_json *j = uar_json_get(f->args, name);

		if (j)
			uar_jw_tree(w, NULL, j);
		else
			uar_jw_null(w, NULL);
		return UAR_OK;
	}
	e = fill(f, text, false, &b);
	if (!e)
		uar_jw_str(w, NULL, uar_buf_str(&b));
	if (b.p)
		explicit_bzero(b.p, b.cap);
	uar_buf_fini(&b);
	return e;
}

static uar_err fill_members(struct filling *f, struct uar_jw *w, const struct uar_json *j)
{
	uar_err e = UAR_OK;

	for (const struct uar_json *m = uar_json_first(j); m && !e; m = m->next) {
		if (j->kind == UAR_JSON_OBJECT && m->kind == UAR_JSON_STRING &&
		    is_absent(f, m->text))
			continue;
		if (j->kind == UAR_JSON_OBJECT)
			uar_jw_key(w, m->key);
		e = fill_tree(f, w, m);
	}
	uar_jw_close(w);
	return e;
}

/* As deep as the definition, whose depth is bounded. */
static uar_err fill_tree(struct filling *f, struct uar_jw *w, const struct uar_json *j)
{
	switch (j->kind) {
	case UAR_JSON_STRING: return fill_text(f, w, j->text);
	case UAR_JSON_OBJECT: uar_jw_obj(w, NULL); return fill_members(f, w, j);
	case UAR_JSON_ARRAY: uar_jw_arr(w, NULL); return fill_members(f, w, j);
	case UAR_JSON_NULL:
	case UAR_JSON_BOOL:
	case UAR_JSON_INT:
	case UAR_JSON_DOUBLE: uar_jw_tree(w, NULL, j); break;
	}
	return UAR_OK;
}

static uar_err fill_body(struct filling *f)
{
	bool takes = uar_str_is(f->spec->method, "POST") || uar_str_is(f->spec->method, "PUT") ||
		     uar_str_is(f->spec->method, "PATCH");
	struct uar_jw w = uar_jw_begin(&f->out->body);
	uar_err e = UAR_OK, written;

	if (!takes && !f->spec->body)
		return UAR_OK;
	if (f->spec->body) {
		e = fill_tree(f, &w, f->spec->body);
	} else {
		uar_jw_obj(&w, NULL);
		for (const struct uar_json *m = uar_json_first(f->args); m; m = m->next)
			if (is_left_over(f, m->key)) {
				uar_jw_key(&w, m->key);
				uar_jw_tree(&w, NULL, m);
			}
		uar_jw_close(&w);
	}
	written = uar_jw_end(&w);
	return e ? e : written;
}

uar_err uar_http_fill(const struct uar_http_spec *s, const struct uar_json *args,
		      const struct uar_secrets_ask *ask, struct uar_http_filled *out,
		      struct uar_error *error)
{
	struct filling f = { s, args, *ask, out, error };
	uar_err e;

	f.ask.url = s->url;
	*out = (struct uar_http_filled){ .url = uar_buf_make(UAR_LIMIT_CLIENT_URL),
					 .body = uar_buf_make(2 * UAR_LIMIT_TOOL_INPUT) };
	e = fill_url(&f);
	if (!e)
		e = fill_body(&f);
	return e ? e : fill_headers(&f);
}

void uar_http_filled_fini(struct uar_http_filled *f)
{
	if (f->body.p)
		explicit_bzero(f->body.p, f->body.cap);
	uar_buf_fini(&f->url);
	uar_buf_fini(&f->body);
	uar_secrets_used_fini(&f->used);
	uar_arena_fini(&f->arena);
}
