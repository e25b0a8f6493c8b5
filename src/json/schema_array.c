/* schema_array.c - rules of arrays, and what is left unevaluated in either kind
 * of container. */
#include <stdlib.h>

#include "base/rand.h"
#include "json/schema_int.h"

/* --- uniqueItems --- */

enum { COMPARED_PAIRWISE = 16 };

struct hashed {
	uint64_t hash;
	const struct uar_json *item;
};

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15u;
	return h ^ (h >> 29);
}

/* Equal values have equal hashes: numbers go by their nearest double, members by
 * a sum, which does not know their order. */
static uint64_t hash_value(const struct uar_json *j, uint64_t seed)
{
	double d = uar_json_double(j, 0) + 0.0; /* -0 becomes 0 */
	uint64_t h = seed, bits;

	switch (j->kind) {
	case UAR_JSON_NULL: return mix(seed, 1);
	case UAR_JSON_BOOL: return mix(seed, 2 + j->b);
	case UAR_JSON_INT:
	case UAR_JSON_DOUBLE: memcpy(&bits, &d, sizeof bits); return mix(seed + 4, bits);
	case UAR_JSON_STRING: return uar_str_hash(j->text, seed + 5);
	case UAR_JSON_ARRAY:
		for (const struct uar_json *c = j->first; c; c = c->next)
			h = mix(h, hash_value(c, seed));
		return mix(h, 6 + (uint64_t)j->count);
	case UAR_JSON_OBJECT:
		for (const struct uar_json *c = j->first; c; c = c->next)
			h += mix(uar_str_hash(c->key, seed), hash_value(c, seed));
		return mix(h, 7 + (uint64_t)j->count);
	}
	return h;
}

static int by_hash(const void *a, const void *b)
{
	const struct hashed *x = a, *y = b;

	return x->hash < y->hash ? -1 : x->hash > y->hash;
}

static uar_err repeated(struct uar_schema_run *r)
{
	return uar_schema_fail(r, "uniqueItems: the same item twice");
}

/* Neighbours in order of their hashes; equal hashes are compared and paid for. */
static uar_err check_sorted(struct uar_schema_run *r, const struct hashed *list, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++) {
		for (uint32_t k = i; k > 0 && list[k - 1].hash == list[i].hash; k--) {
			if (!uar_schema_spend(r, 4))
				return uar_schema_exhausted(r);
			if (uar_json_equal(list[k - 1].item, list[i].item))
				return repeated(r);
		}
	}
	return UAR_OK;
}

static uar_err check_unique(struct uar_schema_run *r, const struct uar_json *v)
{
	uint64_t seed = uar_rand_u64(&uar_rand_system);
	struct hashed *list;
	uint32_t n = 0;

	if (v->count <= COMPARED_PAIRWISE) {
		for (const struct uar_json *a = v->first; a; a = a->next)
			for (const struct uar_json *b = a->next; b; b = b->next)
				if (uar_json_equal(a, b))
					return repeated(r);
		return UAR_OK;
	}
	if (!uar_schema_spend(r, (uint64_t)v->count * 4 + v->text.n / 64))
		return uar_schema_exhausted(r);
	list = uar_arena_alloc(r->scratch, v->count * sizeof *list);
	if (!list)
		return uar_error_set(r->error, UAR_ENOMEM, "out of memory");
	for (const struct uar_json *c = v->first; c; c = c->next)
		list[n++] = (struct hashed){ hash_value(c, seed), c };
	qsort(list, n, sizeof *list, by_hash);
	return check_sorted(r, list, n);
}

/* --- items --- */

static uar_err check_items(struct uar_schema_run *r, const struct uar_schema_array *a,
			   const struct uar_json *v, struct uar_schema_seen *seen)
{
	uint32_t index = 0;
	uar_err e = UAR_OK;

	for (const struct uar_json *c = v->first; c && !e; c = c->next, index++) {
		const struct uar_schema_node *n =
			index < a->prefix.n ? a->prefix.items[index] : a->items;

		if (!n)
			break;
		if (!uar_schema_spend(r, 1))
			return uar_schema_exhausted(r);
		e = uar_schema_apply_child(r, n, c, index);
		if (!e && seen)
			e = uar_schema_mark(r, seen, index, v->count);
	}
	if (!e && seen && a->items)
		seen->all = true;
	return e;
}

static uar_err try_item(struct uar_schema_run *r, const struct uar_schema_node *n,
			const struct uar_json *item, uint32_t index, bool *passed)
{
	uar_err e;

	r->quiet++;
	e = uar_schema_apply_child(r, n, item, index);
	r->quiet--;
	*passed = e == UAR_OK;
	return e == UAR_ESCHEMA ? UAR_OK : e;
}

static uar_err check_contains(struct uar_schema_run *r, const struct uar_schema_array *a,
			      const struct uar_json *v, struct uar_schema_seen *seen)
{
	uint64_t hits = 0;
	uint32_t index = 0;

	for (const struct uar_json *c = v->first; c; c = c->next, index++) {
		bool passed = false;
		uar_err e = uar_schema_spend(r, 1) ? try_item(r, a->contains, c, index, &passed)
						   : uar_schema_exhausted(r);

		if (!e && passed && seen)
			e = uar_schema_mark(r, seen, index, v->count);
		if (e)
			return e;
		hits += passed;
	}
	if (hits < a->min_contains)
		return uar_schema_fail(r, "contains: only %llu items fit",
				       (unsigned long long)hits);
	if (hits > a->max_contains)
		return uar_schema_fail(r, "maxContains: %llu items fit", (unsigned long long)hits);
	return UAR_OK;
}

uar_err uar_schema_check_array(struct uar_schema_run *r, const struct uar_schema_array *a,
			       const struct uar_json *v, struct uar_schema_seen *seen)
{
	uar_err e = UAR_OK;

	if (v->count < a->min)
		return uar_schema_fail(r, "minItems: fewer than %llu items",
				       (unsigned long long)a->min);
	if (v->count > a->max)
		return uar_schema_fail(r, "maxItems: more than %llu items",
				       (unsigned long long)a->max);
	if (a->prefix.n || a->items)
		e = check_items(r, a, v, seen);
	if (!e && a->contains)
		e = check_contains(r, a, v, seen);
	return e || !a->unique ? e : check_unique(r, v);
}

/* --- unevaluatedItems, unevaluatedProperties --- */

uar_err uar_schema_check_rest(struct uar_schema_run *r, const struct uar_schema_node *n,
			      const struct uar_json *v, struct uar_schema_seen *seen)
{
	bool object = v->kind == UAR_JSON_OBJECT;
	const struct uar_schema_node *rest = NULL;
	uint32_t index = 0;

	if (object && n->object)
		rest = n->object->unevaluated;
	else if (!object && n->array)
		rest = n->array->unevaluated;
	if (!rest)
		return UAR_OK;
	for (const struct uar_json *c = v->first; c; c = c->next, index++) {
		uar_err e = UAR_OK;

		if (!uar_schema_is_marked(seen, index))
			e = uar_schema_apply_child(r, rest, c, index);
		if (!e && !uar_schema_spend(r, 1))
			e = uar_schema_exhausted(r);
		if (e)
			return e;
	}
	seen->all = true;
	return UAR_OK;
}
