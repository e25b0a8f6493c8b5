/* redact.c - a walk over a value beside the schemas that apply to it.
 *
 * Several schemas may apply to one place (allOf, anyOf, $ref, ...): one mark hides it. Where
 * more apply than are followed, the place is hidden. */
#include "core/redact.h"

#include "core/limits.h"

enum { SCHEMAS = UAR_LIMIT_REDACT_SCHEMAS, DEPTH = UAR_LIMIT_REDACT_DEPTH };

/* The schemas of one place. */
struct place {
	const struct uar_json *at[SCHEMAS];
	size_t count;
	bool hidden;
};

struct walk {
	const struct uar_json *root; /* of the schema, which "#/..." names */
	struct uar_jw *w;	     /* NULL: it is only asked whether something is hidden */
	bool found;
};

static const struct uar_json *member(const struct uar_json *j, const char *key)
{
	return j && j->kind == UAR_JSON_OBJECT ? uar_json_get(j, uar_str_c(key)) : NULL;
}

static void add(struct walk *x, struct place *p, const struct uar_json *schema, int depth);

static void add_all(struct walk *x, struct place *p, const struct uar_json *list, int depth)
{
	const struct uar_json *at = list && list->kind == UAR_JSON_ARRAY ? list->first : NULL;

	for (; at; at = at->next)
		add(x, p, at, depth);
}

static void add_named(struct walk *x, struct place *p, const struct uar_json *schema, int depth)
{
	uar_str ref = uar_json_str(member(schema, "$ref"), UAR_STR(""));

	if (uar_str_is(ref, "#"))
		add(x, p, x->root, depth);
	else if (ref.n > 1 && ref.p[0] == '#')
		add(x, p, uar_json_pointer(x->root, uar_str_from(ref, 1)), depth);
}

/* The schema and those that it applies to the same place. */
static void add(struct walk *x, struct place *p, const struct uar_json *schema, int depth)
{
	static const char *const lists[] = { "allOf", "anyOf", "oneOf" };
	static const char *const others[] = { "then", "else" };

	if (!schema || schema->kind != UAR_JSON_OBJECT)
		return;
	for (size_t i = 0; i < p->count; i++)
		if (p->at[i] == schema)
			return;
	if (p->count == SCHEMAS || depth == DEPTH) {
		p->hidden = true;
		return;
	}
	p->at[p->count++] = schema;
	p->hidden |= uar_json_bool(member(schema, "writeOnly"), false) ||
		     uar_json_bool(member(schema, "x-sensitive"), false) ||
		     uar_str_is(uar_json_str(member(schema, "format"), UAR_STR("")), "password");
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		add_all(x, p, member(schema, lists[i]), depth + 1);
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		add(x, p, member(schema, others[i]), depth + 1);
	add_named(x, p, schema, depth + 1);
}

static void add_member(struct walk *x, struct place *to, const struct uar_json *schema, uar_str key)
{
	const struct uar_json *own = uar_json_get(member(schema, "properties"), key);
	const struct uar_json *patterns = member(schema, "patternProperties");

	add(x, to, own, 0);
	if (patterns && patterns->kind == UAR_JSON_OBJECT)
		for (const struct uar_json *at = patterns->first; at; at = at->next)
			add(x, to, at, 0);
	if (!own)
		add(x, to, member(schema, "additionalProperties"), 0);
}

static void add_item(struct walk *x, struct place *to, const struct uar_json *schema, size_t index)
{
	const struct uar_json *first = member(schema, "prefixItems");

	if (first && first->kind == UAR_JSON_ARRAY && index < first->count)
		add(x, to, uar_json_at(first, index), 0);
	else
		add(x, to, member(schema, "items"), 0);
}

/* A key without bytes to point to is none. */
static void put(struct walk *x, uar_str key, const struct uar_json *value, const struct place *p,
		int depth);

static void put_below(struct walk *x, const struct uar_json *value, const struct place *p,
		      int depth)
{
	size_t index = 0;

	for (const struct uar_json *at = value->first; at; at = at->next, index++) {
		bool object = value->kind == UAR_JSON_OBJECT;
		struct place below = { .count = 0 };

		for (size_t i = 0; i < p->count; i++)
			if (object)
				add_member(x, &below, p->at[i], at->key);
			else
				add_item(x, &below, p->at[i], index);
		below.hidden |= object && uar_is_secret_name(at->key);
		put(x, object ? at->key : UAR_STR_NONE, at, &below, depth + 1);
	}
}

static void put_scalar(struct uar_jw *w, uar_str key, const struct uar_json *value)
{
	switch (value->kind) {
	case UAR_JSON_NULL: uar_jw_put_null(w, key); break;
	case UAR_JSON_BOOL: uar_jw_put_bool(w, key, value->b); break;
	case UAR_JSON_STRING: uar_jw_put_str(w, key, value->text); break;
	default: uar_jw_put_raw(w, key, value->text); break; /* a number */
	}
}

static void put(struct walk *x, uar_str key, const struct uar_json *value, const struct place *p,
		int depth)
{
	bool nested = value->kind == UAR_JSON_OBJECT || value->kind == UAR_JSON_ARRAY;
	bool hides = (p->hidden && value->kind != UAR_JSON_NULL) || (nested && depth >= DEPTH);

	x->found |= hides;
	if (x->w && hides)
		uar_jw_put_str(x->w, key, UAR_STR(UAR_REDACTED));
	else if (x->w && !nested)
		put_scalar(x->w, key, value);
	else if (x->w && value->kind == UAR_JSON_OBJECT)
		uar_jw_put_obj(x->w, key);
	else if (x->w)
		uar_jw_put_arr(x->w, key);
	if (hides || !nested)
		return;
	put_below(x, value, p, depth);
	if (x->w)
		uar_jw_close(x->w);
}

static bool walk(struct uar_jw *w, const char *key, const struct uar_json *value,
		 const struct uar_json *schema)
{
	struct walk x = { .root = schema, .w = w };
	struct place p = { .count = 0 };

	add(&x, &p, schema, 0);
	put(&x, key ? uar_str_c(key) : UAR_STR_NONE, value, &p, 0);
	return x.found;
}

bool uar_redact(struct uar_jw *w, const char *key, const struct uar_json *value,
		const struct uar_json *schema)
{
	return walk(w, key, value, schema);
}

bool uar_redacts(const struct uar_json *value, const struct uar_json *schema)
{
	return walk(NULL, NULL, value, schema);
}
