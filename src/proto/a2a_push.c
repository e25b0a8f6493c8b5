/* a2a_push.c - configurations of push notifications, in both versions.
 *
 * What a client gives becomes headers of another request: a line end in it is refused. */
#include "proto/a2a_wire.h"

#include "proto/limits.h"

static uar_err refuse(struct uar_error *error, const char *where, const char *member,
		      const char *why)
{
	uar_error_where(error, "%s%s%s", where, member[0] ? "/" : "", member);
	return uar_error_set(error, UAR_EINVALID, "%s", why);
}

/* Visible ASCII with spaces, of at most so many bytes. */
static bool is_value(uar_str s, size_t max)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] < ' ' || s.p[i] > '~')
			return false;
	return s.n <= max && uar_str_trim(s).n == s.n;
}

static bool is_token(uar_str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (strchr("()<>@,;:\\\"/[]?={} ", s.p[i]))
			return false;
	return is_value(s, UAR_LIMIT_PUSH_SCHEME);
}

static uar_err refuse_length(struct uar_error *error, const char *where, const char *member,
			     int most)
{
	char why[64];

	snprintf(why, sizeof why, "must be at most %d visible ASCII characters", most);
	return refuse(error, where, member, why);
}

static uar_str text_of(const struct uar_json *j, const char *name)
{
	return uar_json_str(uar_json_get(j, uar_str_c(name)), UAR_STR(""));
}

/* One scheme in 1.0, a list of them in 0.3, of which the first counts. */
static uar_err read_scheme(const struct uar_json *j, bool old, const char *where, uar_str *out,
			   struct uar_error *error)
{
	const struct uar_json *list = old ? uar_json_get(j, UAR_STR("schemes")) : NULL;
	const struct uar_json *first = uar_json_first(list);

	if (list && list->kind != UAR_JSON_ARRAY && list->kind != UAR_JSON_NULL)
		return refuse(error, where, "schemes", "schemes is a list of names");
	return uar_a2a_text(first ? first : uar_json_get(j, UAR_STR("scheme")), where,
			    first ? "schemes/0" : "scheme", out, error);
}

static uar_err read_authentication(const struct uar_json *j, bool old, const char *where,
				   struct uar_a2a_push *out, struct uar_error *error)
{
	char at[128];
	uar_err e;

	if (!j || j->kind == UAR_JSON_NULL)
		return UAR_OK;
	if (j->kind != UAR_JSON_OBJECT)
		return refuse(error, where, "authentication", "authentication is an object");
	snprintf(at, sizeof at, "%s/authentication", where);
	e = read_scheme(j, old, at, &out->scheme, error);
	if (!e)
		e = uar_a2a_text(uar_json_get(j, UAR_STR("credentials")), at, "credentials",
				 &out->credentials, error);
	if (e)
		return e;
	if (!out->scheme.n || !is_token(out->scheme))
		return refuse(error, where, "authentication",
			      "scheme must be the name of an authentication scheme, as Bearer");
	if (!is_value(out->credentials, UAR_LIMIT_PUSH_SECRET))
		return refuse_length(error, where, "authentication/credentials",
				     UAR_LIMIT_PUSH_SECRET);
	return UAR_OK;
}

bool uar_a2a_is_push_id(uar_str id)
{
	return uar_str_is_id(id) && id.n <= UAR_LIMIT_PUSH_ID;
}

uar_err uar_a2a_read_push(const struct uar_json *j, bool old, const char *where,
			  struct uar_a2a_push *out, struct uar_error *error)
{
	struct uar_a2a_push p = { .old = old };
	uar_err e;

	if (!j || j->kind != UAR_JSON_OBJECT)
		return refuse(error, where, "", "a configuration of notifications is an object");
	e = uar_a2a_text(uar_json_get(j, UAR_STR("id")), where, "id", &p.id, error);
	if (!e)
		e = uar_a2a_text(uar_json_get(j, UAR_STR("url")), where, "url", &p.url, error);
	if (!e)
		e = uar_a2a_text(uar_json_get(j, UAR_STR("token")), where, "token", &p.token,
				 error);
	if (e)
		return e;
	if (p.id.n && !uar_a2a_is_push_id(p.id))
		return refuse_length(error, where, "id", UAR_LIMIT_PUSH_ID);
	if (!p.url.n)
		return refuse(error, where, "url", "url is required");
	if (p.url.n > UAR_LIMIT_PUSH_URL)
		return refuse_length(error, where, "url", UAR_LIMIT_PUSH_URL);
	if (!uar_str_is_visible(p.url))
		return refuse(error, where, "url",
			      "must be visible ASCII characters, others percent-encoded");
	if (!is_value(p.token, UAR_LIMIT_PUSH_SECRET))
		return refuse_length(error, where, "token", UAR_LIMIT_PUSH_SECRET);
	e = read_authentication(uar_json_get(j, UAR_STR("authentication")), old, where, &p, error);
	if (!e)
		*out = p;
	return e;
}

static void put_members(struct uar_jw *w, const struct uar_a2a_push *p)
{
	uar_jw_str(w, "id", p->id);
	uar_jw_str(w, "url", p->url);
	if (p->token.n)
		uar_jw_str(w, "token", p->token);
}

void uar_a2a_put_push(struct uar_jw *w, const char *key, uar_str task_id, bool old,
		      const struct uar_a2a_push *p)
{
	uar_jw_obj(w, key);
	uar_jw_str(w, "taskId", task_id);
	if (old)
		uar_jw_obj(w, "pushNotificationConfig");
	put_members(w, p);
	if (p->scheme.n) {
		uar_jw_obj(w, "authentication");
		if (old)
			uar_jw_arr(w, "schemes");
		uar_jw_str(w, old ? NULL : "scheme", p->scheme);
		if (old)
			uar_jw_close(w);
		if (p->credentials.n)
			uar_jw_str(w, "credentials", p->credentials);
		uar_jw_close(w);
	}
	if (old)
		uar_jw_close(w);
	uar_jw_close(w);
}

void uar_a2a_keep_push(struct uar_jw *w, const struct uar_a2a_push *p)
{
	uar_jw_obj(w, NULL);
	put_members(w, p);
	uar_jw_str(w, "scheme", p->scheme);
	uar_jw_str(w, "credentials", p->credentials);
	uar_jw_bool(w, "old", p->old);
	uar_jw_close(w);
}

void uar_a2a_kept_push(const struct uar_json *j, struct uar_a2a_push *out)
{
	*out = (struct uar_a2a_push){ .id = text_of(j, "id"),
				      .url = text_of(j, "url"),
				      .token = text_of(j, "token"),
				      .scheme = text_of(j, "scheme"),
				      .credentials = text_of(j, "credentials"),
				      .old = uar_json_bool(uar_json_get(j, UAR_STR("old")),
							   false) };
}
