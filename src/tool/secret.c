/* secret.c - names in texts, and where their values are. */
#include "tool/secret.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/file.h"
#include "tool/limits.h"

static const uar_str mark = UAR_STR("${secret:");

struct uar_secrets {
	char *dir;
};

uar_err uar_secrets_create(const char *dir, struct uar_secrets **out)
{
	struct uar_secrets *s = uar_zalloc(sizeof *s);

	if (s && dir)
		s->dir = uar_strdup_n(dir, strlen(dir));
	if (!s || (dir && !s->dir)) {
		uar_secrets_destroy(s);
		return UAR_ENOMEM;
	}
	*out = s;
	return UAR_OK;
}

void uar_secrets_destroy(struct uar_secrets *s)
{
	if (!s)
		return;
	uar_free(s->dir);
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

static uar_err put_value(const struct uar_secrets *s, uar_str name, struct uar_buf *out,
			 struct uar_secrets_used *used, struct uar_error *error)
{
	struct uar_buf value = uar_buf_make(UAR_LIMIT_SECRET_BYTES);
	uar_err e = look_up(s, name, &value, error);

	if (!e) {
		uar_buf_add_str(out, uar_buf_str(&value));
		if (used && !used->values.max)
			used->values = uar_buf_make(UAR_LIMIT_SECRETS_USED);
		if (used)
			uar_buf_add(&used->values, value.p ? value.p : "", value.n + 1);
		e = used && used->values.err ? used->values.err : UAR_OK;
	}
	if (value.p)
		explicit_bzero(value.p, value.cap);
	uar_buf_fini(&value);
	return e;
}

uar_err uar_secrets_expand(const struct uar_secrets *s, uar_str text, struct uar_buf *out,
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
		e = s ? put_value(s, name, out, used, error)
		      : uar_error_set(error, UAR_ENOTFOUND, "there are no secrets here");
	}
	return e ? e : out->err;
}

/* --- what comes back ---------------------------------------------------------------------- */

/* The longest value that begins there; a short one would hide innocent text. */
static size_t value_at(const struct uar_secrets_used *u, uar_str rest)
{
	enum { SHORT = 4 };
	size_t found = 0;

	for (size_t at = 0; at < u->values.n;) {
		uar_str value = uar_str_c(u->values.p + at);

		if (value.n >= SHORT && value.n > found && uar_str_starts(rest, value))
			found = value.n;
		at += value.n + 1;
	}
	return found;
}

void uar_secrets_hide(const struct uar_secrets_used *u, uar_str text, struct uar_buf *out)
{
	size_t from = 0;

	for (size_t i = 0; u->values.n && i < text.n;) {
		size_t n = value_at(u, uar_str_from(text, i));

		if (!n) {
			i++;
			continue;
		}
		uar_buf_add(out, text.p + from, i - from);
		uar_buf_add_str(out, UAR_STR("<redacted>"));
		i += n;
		from = i;
	}
	uar_buf_add_str(out, uar_str_from(text, from));
}
