/* request.c - what a caller asks for, and the two checks that come first. */
#include "backend/int.h"
#include "backend/limits.h"

uaa_status uab_copy(uaa_str s, uaa_str *out)
{
	char *p;

	if (!s.ptr) {
		*out = UAB_NONE;
		return UAA_OK;
	}
	p = uar_strdup_n(s.ptr, s.len);
	if (!p)
		return UAA_E_NOMEM;
	*out = (uaa_str){ p, s.len };
	return UAA_OK;
}

static void drop(uaa_str *s)
{
	uar_free((char *)s->ptr);
	*s = UAB_NONE;
}

/* Index of the name, or where it belongs. */
static size_t find(const struct uab_pairs *m, uar_str name, bool *out_found)
{
	size_t lo = 0, hi = m->n;

	*out_found = false;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int d = uar_str_cmp(name, uab_str(m->at[mid].name));

		if (d == 0) {
			*out_found = true;
			return mid;
		}
		if (d < 0)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

static bool room(struct uab_pairs *m)
{
	size_t cap = m->cap ? m->cap * 2 : 8;
	struct uab_pair *at;

	if (m->n < m->cap)
		return true;
	if (m->n >= UAR_LIMIT_AGENT_PAIRS)
		return false;
	at = uar_realloc(m->at, cap * sizeof *at);
	if (!at)
		return false;
	m->at = at;
	m->cap = cap;
	return true;
}

uaa_status uab_pairs_set(struct uab_pairs *m, uaa_str name, uaa_str value)
{
	bool found;
	size_t i = find(m, uab_str(name), &found);
	uaa_str v = UAB_NONE, n = UAB_NONE;

	if (uab_copy(value, &v))
		return UAA_E_NOMEM;
	if (found) {
		drop(&m->at[i].value);
		m->at[i].value = v;
		return UAA_OK;
	}
	if (!room(m) || uab_copy(name, &n)) {
		drop(&v);
		return UAA_E_NOMEM;
	}
	memmove(m->at + i + 1, m->at + i, (m->n - i) * sizeof *m->at);
	m->at[i] = (struct uab_pair){ n, v };
	m->n++;
	return UAA_OK;
}

uaa_str uab_pairs_get(const struct uab_pairs *m, uar_str name)
{
	bool found;
	size_t i = find(m, name, &found);

	return found ? m->at[i].value : UAB_NONE;
}

void uab_pairs_fini(struct uab_pairs *m)
{
	for (size_t i = 0; i < m->n; i++) {
		drop(&m->at[i].name);
		drop(&m->at[i].value);
	}
	uar_free(m->at);
	*m = (struct uab_pairs){ 0 };
}

bool uab_env_name_ok(uar_str name)
{
	return name.n && !uab_has_nul(name) && !memchr(name.p, '=', name.n);
}

/* --- the request --- */

uaa_request *uaa_request_new(void)
{
	return uar_zalloc(sizeof(struct uaa_request));
}

void uaa_request_unref(uaa_request *r)
{
	if (!r)
		return;
	drop(&r->prompt);
	drop(&r->working_dir);
	uab_pairs_fini(&r->env);
	uab_pairs_fini(&r->extensions);
	uar_free(r);
}

static bool copy_pairs(struct uab_pairs *to, const struct uab_pairs *from)
{
	for (size_t i = 0; i < from->n; i++)
		if (uab_pairs_set(to, from->at[i].name, from->at[i].value))
			return false;
	return true;
}

uaa_request *uaa_request_copy(const uaa_request *r)
{
	uaa_request *copy = r ? uaa_request_new() : NULL;

	if (!copy)
		return NULL;
	copy->has_timeout = r->has_timeout;
	copy->timeout_ms = r->timeout_ms;
	if (!uab_copy(r->prompt, &copy->prompt) && !uab_copy(r->working_dir, &copy->working_dir) &&
	    copy_pairs(&copy->env, &r->env) && copy_pairs(&copy->extensions, &r->extensions))
		return copy;
	uaa_request_unref(copy);
	return NULL;
}

static uaa_status set_text(uaa_str *field, uaa_str s, size_t max)
{
	uaa_str copy;

	if (!s.ptr || s.len > max || !uar_utf8_valid(uab_str(s)))
		return UAA_E_ARG;
	if (uab_copy(s, &copy))
		return UAA_E_NOMEM;
	drop(field);
	*field = copy;
	return UAA_OK;
}

uaa_status uaa_request_set_prompt(uaa_request *r, uaa_str prompt)
{
	return r ? set_text(&r->prompt, prompt, UAR_LIMIT_AGENT_PROMPT) : UAA_E_ARG;
}

uaa_status uaa_request_set_working_dir(uaa_request *r, uaa_str dir)
{
	if (!r || !dir.len || uab_has_nul(uab_str(dir)))
		return UAA_E_ARG;
	return set_text(&r->working_dir, dir, UAR_LIMIT_AGENT_VALUE);
}

uaa_status uaa_request_set_timeout_ms(uaa_request *r, int64_t ms)
{
	if (!r || ms < 0)
		return UAA_E_ARG;
	r->has_timeout = true;
	r->timeout_ms = ms;
	return UAA_OK;
}

uaa_status uaa_request_set_env(uaa_request *r, uaa_str name, uaa_str value)
{
	if (!r || !value.ptr || !uab_env_name_ok(uab_str(name)) || uab_has_nul(uab_str(value)) ||
	    value.len > UAR_LIMIT_AGENT_VALUE)
		return UAA_E_ARG;
	return uab_pairs_set(&r->env, name, value);
}

uaa_status uaa_request_set_extension_json(uaa_request *r, uaa_str key, uaa_str json)
{
	struct uar_arena arena;
	const struct uar_json *j;
	uar_err e;

	if (!r || !key.ptr || !json.ptr || json.len > UAR_LIMIT_AGENT_VALUE ||
	    !uar_utf8_valid(uab_str(key)))
		return UAA_E_ARG;
	uar_arena_init(&arena, 0);
	e = uar_json_parse(uab_str(json), NULL, &arena, &j, NULL);
	uar_arena_fini(&arena);
	if (e)
		return e == UAR_ENOMEM ? UAA_E_NOMEM : UAA_E_ARG;
	return uab_pairs_set(&r->extensions, key, json);
}

uaa_str uaa_request_prompt(const uaa_request *r)
{
	return r ? r->prompt : UAB_NONE;
}

uaa_str uaa_request_working_dir(const uaa_request *r)
{
	return r ? r->working_dir : UAB_NONE;
}

bool uaa_request_timeout_ms(const uaa_request *r, int64_t *out_ms)
{
	if (!r || !r->has_timeout)
		return false;
	if (out_ms)
		*out_ms = r->timeout_ms;
	return true;
}

static bool pair_at(const struct uab_pairs *m, size_t i, uaa_str *name, uaa_str *value)
{
	if (i >= m->n)
		return false;
	if (name)
		*name = m->at[i].name;
	if (value)
		*value = m->at[i].value;
	return true;
}

size_t uaa_request_env_count(const uaa_request *r)
{
	return r ? r->env.n : 0;
}

bool uaa_request_env_at(const uaa_request *r, size_t i, uaa_str *name, uaa_str *value)
{
	return r && pair_at(&r->env, i, name, value);
}

size_t uaa_request_extension_count(const uaa_request *r)
{
	return r ? r->extensions.n : 0;
}

bool uaa_request_extension_at(const uaa_request *r, size_t i, uaa_str *key, uaa_str *json)
{
	return r && pair_at(&r->extensions, i, key, json);
}

uaa_str uaa_request_extension(const uaa_request *r, uaa_str key)
{
	return r && key.ptr ? uab_pairs_get(&r->extensions, uab_str(key)) : UAB_NONE;
}

/* Options of a backend belong to its kind, whatever its set says. */
static bool foreign(uar_str key, uar_str kind)
{
	uar_str rest = UAR_STR_NONE;

	return uar_str_starts(key, UAR_STR("backend.")) &&
	       !uar_str_eq(uar_str_cut(uar_str_from(key, 8), '.', &rest), kind);
}

uaa_status uab_request_gate(const uaa_request *r, uar_str kind, const uaa_caps *caps,
			    uaa_error **error)
{
	if (uab_trim(uab_str(r->prompt)).n == 0)
		return uab_invalid(error, "prompt must not be empty");
	for (size_t i = 0; i < r->extensions.n; i++) {
		uaa_str key = r->extensions.at[i].name;

		/* an ill-formed key is in no set: the same answer */
		if (!uaa_caps_contains(caps, key) || foreign(uab_str(key), kind))
			return uab_fail(error, UAA_E_UNSUPPORTED_CAPABILITY, kind, uab_str(key));
	}
	return UAA_OK;
}
