/* json.c - looking into a tree: members, pointers, equality, tables of fields. */
#include "json/json_int.h"

#include <assert.h>

bool uar_json_is_plain(uar_str text)
{
	const char *end = text.n ? text.p + text.n : text.p;

	return uar_json_text_end(text.p, text.p, end) == end;
}

const char *uar_json_kind_name(enum uar_json_kind kind)
{
	static const char *const names[] = {
		[UAR_JSON_NULL] = "null",     [UAR_JSON_BOOL] = "boolean",
		[UAR_JSON_INT] = "integer",   [UAR_JSON_DOUBLE] = "number",
		[UAR_JSON_STRING] = "string", [UAR_JSON_ARRAY] = "array",
		[UAR_JSON_OBJECT] = "object",
	};

	return (size_t)kind < ARRAY_LEN(names) ? names[kind] : "?";
}

const struct uar_json *uar_json_get(const struct uar_json *j, uar_str key)
{
	if (!j || j->kind != UAR_JSON_OBJECT)
		return NULL;
	for (j = j->first; j; j = j->next)
		if (uar_str_eq(j->key, key))
			return j;
	return NULL;
}

const struct uar_json *uar_json_at(const struct uar_json *j, size_t index)
{
	if (!j || j->kind != UAR_JSON_ARRAY || index >= j->count)
		return NULL;
	for (j = j->first; index; index--)
		j = j->next;
	return j;
}

uar_str uar_json_str(const struct uar_json *j, uar_str fallback)
{
	return j && j->kind == UAR_JSON_STRING ? j->text : fallback;
}

int64_t uar_json_int(const struct uar_json *j, int64_t fallback)
{
	return j && j->kind == UAR_JSON_INT ? j->i : fallback;
}

double uar_json_double(const struct uar_json *j, double fallback)
{
	if (j && j->kind == UAR_JSON_INT)
		return (double)j->i;
	return j && j->kind == UAR_JSON_DOUBLE ? j->d : fallback;
}

bool uar_json_bool(const struct uar_json *j, bool fallback)
{
	return j && j->kind == UAR_JSON_BOOL ? j->b : fallback;
}

/* --- equality --- */

static bool is_number(const struct uar_json *j)
{
	return j->kind == UAR_JSON_INT || j->kind == UAR_JSON_DOUBLE;
}

static bool arrays_equal(const struct uar_json *a, const struct uar_json *b)
{
	const struct uar_json *x = a->first, *y = b->first;

	for (; x && y; x = x->next, y = y->next)
		if (!uar_json_equal(x, y))
			return false;
	return !x && !y;
}

/* Members usually come in the same order; each out of order costs a look-up, and
 * where look-ups could add up to quadratic time a set takes over. */
static bool objects_equal(const struct uar_json *a, const struct uar_json *b)
{
	enum { SEARCHED = 32 };
	struct uar_json_keys keys = { 0 };
	const struct uar_json *x = a->first, *y = b->first, *second, *hit;
	bool same = a->count == b->count;

	for (; same && x; x = x->next, y = y->next) {
		if (uar_str_eq(x->key, y->key)) {
			same = uar_json_equal(x, y);
			continue;
		}
		if (b->count > SEARCHED && !keys.slots && uar_json_keys_load(&keys, b, &second))
			uar_json_keys_fini(&keys); /* out of memory: slower, not wrong */
		hit = keys.slots ? uar_json_keys_find(&keys, x->key) : uar_json_get(b, x->key);
		same = hit && uar_json_equal(x, hit);
	}
	uar_json_keys_fini(&keys);
	return same;
}

bool uar_json_equal(const struct uar_json *a, const struct uar_json *b)
{
	if (a == b)
		return true;
	if (!a || !b)
		return false;
	if (is_number(a) && is_number(b))
		return uar_json_number_cmp(a, b) == 0;
	if (a->kind != b->kind)
		return false;
	switch (a->kind) {
	case UAR_JSON_NULL: return true;
	case UAR_JSON_BOOL: return a->b == b->b;
	case UAR_JSON_STRING: return uar_str_eq(a->text, b->text);
	case UAR_JSON_ARRAY: return a->count == b->count && arrays_equal(a, b);
	case UAR_JSON_OBJECT: return objects_equal(a, b);
	case UAR_JSON_INT:
	case UAR_JSON_DOUBLE: break;
	}
	return false;
}

/* --- pointers --- */

void uar_json_pointer_add(struct uar_buf *out, uar_str key)
{
	uar_buf_add_char(out, '/');
	for (size_t i = 0; i < key.n; i++) {
		if (key.p[i] == '~')
			uar_buf_add(out, "~0", 2);
		else if (key.p[i] == '/')
			uar_buf_add(out, "~1", 2);
		else
			uar_buf_add_char(out, key.p[i]);
	}
}

bool uar_json_token_is(uar_str token, uar_str key)
{
	size_t i = 0, k = 0;

	while (i < token.n && k < key.n) {
		char c = token.p[i++];

		if (c == '~' && i < token.n)
			c = token.p[i++] == '0' ? '~' : '/';
		if (c != key.p[k++])
			return false;
	}
	return i == token.n && k == key.n;
}

bool uar_json_token_valid(uar_str token)
{
	for (size_t i = 0; i < token.n; i++)
		if (token.p[i] == '~' &&
		    (++i == token.n || (token.p[i] != '0' && token.p[i] != '1')))
			return false;
	return true;
}

bool uar_json_token_index(uar_str token, uint64_t *out)
{
	if (token.n > 1 && token.p[0] == '0')
		return false;
	return uar_str_u64(token, out) == UAR_OK;
}

static const struct uar_json *step(const struct uar_json *j, uar_str token)
{
	uint64_t index;

	if (j->kind == UAR_JSON_ARRAY)
		return uar_json_token_index(token, &index) ? uar_json_at(j, index) : NULL;
	if (j->kind != UAR_JSON_OBJECT)
		return NULL;
	for (j = j->first; j; j = j->next)
		if (uar_json_token_is(token, j->key))
			return j;
	return NULL;
}

const struct uar_json *uar_json_pointer(const struct uar_json *root, uar_str pointer)
{
	const struct uar_json *j = root;

	if (pointer.n && pointer.p[0] != '/')
		return NULL;
	while (j && pointer.n) {
		uar_str rest = uar_str_from(pointer, 1);
		size_t end = uar_str_find(rest, '/');
		uar_str token = uar_str_n(rest.p, end);

		if (!uar_json_token_valid(token))
			return NULL;
		j = step(j, token);
		pointer = end < rest.n ? uar_str_from(rest, end) : UAR_STR("");
	}
	return j;
}

/* --- tables of fields --- */

static void set_where(struct uar_error *error, uar_str key)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_ERROR_WHERE);

	if (!error)
		return;
	uar_json_pointer_add(&b, key);
	uar_error_where(error, "%s", b.p ? b.p : "/");
	uar_buf_fini(&b);
}

static uar_err bad_field(struct uar_error *error, uar_str key, const char *why)
{
	set_where(error, key);
	return uar_error_set(error, UAR_EINVALID, "%.*s %s", (int)(key.n < 100 ? key.n : 100),
			     key.p ? key.p : "", why);
}

static bool kind_fits(enum uar_json_field_type type, const struct uar_json *v)
{
	switch (type) {
	case UAR_FIELD_STR:
	case UAR_FIELD_ID: return v->kind == UAR_JSON_STRING;
	case UAR_FIELD_INT: return v->kind == UAR_JSON_INT;
	case UAR_FIELD_DOUBLE: return is_number(v);
	case UAR_FIELD_BOOL: return v->kind == UAR_JSON_BOOL;
	case UAR_FIELD_OBJECT: return v->kind == UAR_JSON_OBJECT;
	case UAR_FIELD_ARRAY: return v->kind == UAR_JSON_ARRAY;
	case UAR_FIELD_ANY: return true;
	}
	return false;
}

static const char *const wanted[] = {
	[UAR_FIELD_STR] = "must be a string",	[UAR_FIELD_ID] = "must be a string",
	[UAR_FIELD_INT] = "must be an integer", [UAR_FIELD_DOUBLE] = "must be a number",
	[UAR_FIELD_BOOL] = "must be a boolean", [UAR_FIELD_OBJECT] = "must be an object",
	[UAR_FIELD_ARRAY] = "must be an array", [UAR_FIELD_ANY] = "",
};

static void store(enum uar_json_field_type type, const struct uar_json *v, void *at)
{
	double number;

	switch (type) {
	case UAR_FIELD_STR:
	case UAR_FIELD_ID: memcpy(at, &v->text, sizeof v->text); break;
	case UAR_FIELD_INT: memcpy(at, &v->i, sizeof v->i); break;
	case UAR_FIELD_DOUBLE:
		number = uar_json_double(v, 0);
		memcpy(at, &number, sizeof number);
		break;
	case UAR_FIELD_BOOL: memcpy(at, &v->b, sizeof v->b); break;
	case UAR_FIELD_OBJECT:
	case UAR_FIELD_ARRAY:
	case UAR_FIELD_ANY: memcpy(at, &v, sizeof v); break;
	}
}

static uar_err read_field(const struct uar_json_field *f, const struct uar_json *v, void *target,
			  struct uar_error *error)
{
	if (v->kind == UAR_JSON_NULL && !f->required)
		return UAR_OK;
	if (!kind_fits(f->type, v))
		return bad_field(error, v->key, wanted[f->type]);
	if (f->type == UAR_FIELD_ID && !uar_str_is_id(v->text))
		return bad_field(error, v->key, "must be 1 to 128 visible ASCII characters");
	store(f->type, v, (char *)target + f->offset);
	return UAR_OK;
}

/* Members mostly come in the order of the table, so the search begins behind the
 * last hit. Returns n when the table has no such field. */
static size_t find_field(const struct uar_json_field *fields, size_t n, size_t start, uar_str key)
{
	for (size_t i = 0; i < n; i++) {
		size_t at = start + i < n ? start + i : start + i - n;

		if (strncmp(fields[at].name, key.p, key.n) == 0 && !fields[at].name[key.n])
			return at;
	}
	return n;
}

uar_err uar_json_read(const struct uar_json *object, const struct uar_json_field *fields, size_t n,
		      bool strict, void *target, struct uar_error *error)
{
	uint64_t seen = 0;
	size_t next = 0;

	assert(n <= 64);
	if (!object || object->kind != UAR_JSON_OBJECT)
		return uar_error_set(error, UAR_EINVALID, "must be an object");
	for (const struct uar_json *m = object->first; m; m = m->next) {
		size_t at = find_field(fields, n, next, m->key);
		uar_err e;

		if (at == n && strict)
			return bad_field(error, m->key, "is not known here");
		if (at == n)
			continue;
		e = read_field(&fields[at], m, target, error);
		if (e)
			return e;
		seen |= 1ull << at;
		next = at + 1 < n ? at + 1 : 0;
	}
	for (size_t i = 0; i < n; i++)
		if (fields[i].required && !(seen >> i & 1))
			return bad_field(error, uar_str_c(fields[i].name), "is missing");
	return UAR_OK;
}
