/* schema_object.c - rules of objects. Members are walked once; the search for
 * each begins behind the last one found, because writers keep the order of the
 * schema, so the usual member costs one comparison. */
#include "json/schema_int.h"

enum { NONE = UINT32_MAX };

static uint32_t find(const struct uar_schema_object *o, uar_str key, uint32_t hint)
{
	struct uar_schema_property *p;

	if (hint < o->count && uar_str_eq(o->properties[hint].name, key))
		return hint;
	if (o->map.cap) {
		p = uar_map_get(&o->map, key);
		return p ? (uint32_t)(p - o->properties) : NONE;
	}
	for (uint32_t i = 0; i < o->count; i++)
		if (uar_str_eq(o->properties[i].name, key))
			return i;
	return NONE;
}

/* Somebody reads it once, whatever was tried before. Most such members are misspelt. */
static uar_err refuse_member(struct uar_schema_run *r, const struct uar_schema_object *o,
			     uar_str key)
{
	size_t least = key.n / 3 > 2 ? key.n / 3 + 1 : 3;
	uar_str best = UAR_STR_NONE, shown = uar_str_utf8_prefix(key, 100);

	for (uint32_t i = 0; i < o->count && !r->quiet && r->error; i++) {
		size_t d = uar_str_distance(key, o->properties[i].name);

		if (d < least) {
			least = d;
			best = o->properties[i].name;
		}
	}
	if (!best.n)
		return uar_schema_fail(r, "additionalProperties: '%.*s' is not allowed",
				       UAR_FMT(shown));
	return uar_schema_fail(r,
			       "additionalProperties: '%.*s' is not allowed, did you mean '%.*s'?",
			       UAR_FMT(shown), UAR_FMT(uar_str_utf8_prefix(best, 100)));
}

/* patternProperties, then additionalProperties for what nobody else named. */
static uar_err check_others(struct uar_schema_run *r, const struct uar_schema_object *o,
			    const struct uar_json *m, bool *named)
{
	for (uint32_t i = 0; i < o->pattern_count; i++) {
		bool found = false;
		uar_err e = uar_regex_match(o->patterns[i].regex, m->key, &r->regex_steps, &found);

		if (e == UAR_ETOOBIG)
			return uar_schema_exhausted(r);
		if (!e && found)
			e = uar_schema_apply_child(r, o->patterns[i].node, m, 0);
		if (e)
			return e;
		*named |= found;
	}
	if (*named || !o->additional)
		return UAR_OK;
	*named = true;
	if (o->additional->verdict == UAR_SCHEMA_FALSE)
		return refuse_member(r, o, m->key);
	return uar_schema_apply_child(r, o->additional, m, 0);
}

static uar_err check_name(struct uar_schema_run *r, const struct uar_schema_node *n, uar_str name)
{
	struct uar_json text = { .kind = UAR_JSON_STRING, .key = name, .text = name };

	return uar_schema_apply_child(r, n, &text, 0);
}

/* One member; `at` is its property or NONE. *named: somebody evaluated it. */
static uar_err check_member(struct uar_schema_run *r, const struct uar_schema_object *o,
			    const struct uar_json *m, uint32_t at, bool *named)
{
	uar_err e = UAR_OK;

	*named = at != NONE && o->properties[at].node;
	if (*named)
		e = uar_schema_apply_child(r, o->properties[at].node, m, 0);
	if (!e && (o->pattern_count || (o->additional && !*named)))
		e = check_others(r, o, m, named);
	if (!e && o->names)
		e = check_name(r, o->names, m->key);
	return e;
}

/* Bits of the properties that were there go to *have. */
static uar_err check_members(struct uar_schema_run *r, const struct uar_schema_object *o,
			     const struct uar_json *v, struct uar_schema_seen *seen, uint64_t *have)
{
	uint32_t hint = 0, index = 0;

	for (const struct uar_json *m = v->first; m; m = m->next, index++) {
		uint32_t at = find(o, m->key, hint);
		bool named;
		uar_err e = check_member(r, o, m, at, &named);

		if (at != NONE) {
			hint = at + 1;
			*have |= at < 64 ? 1ull << at : 0;
		}
		if (!e && named && seen)
			e = uar_schema_mark(r, seen, index, v->count);
		if (!e && !uar_schema_spend(r, 1 + m->key.n / 64))
			e = uar_schema_exhausted(r);
		if (e)
			return e;
	}
	return UAR_OK;
}

static uar_err missing(struct uar_schema_run *r, const char *keyword, uar_str name)
{
	return uar_schema_fail(r, "%s: '%.*s' is missing", keyword,
			       (int)(name.n < 100 ? name.n : 100), name.p);
}

/* Names beyond the bits are looked up one by one, and paid for. */
static uar_err check_names(struct uar_schema_run *r, const char *keyword,
			   const struct uar_json *names, const struct uar_json *v)
{
	for (const struct uar_json *c = names->first; c; c = c->next) {
		if (!uar_schema_spend(r, v->count / 8 + 1))
			return uar_schema_exhausted(r);
		if (!uar_json_get(v, c->text))
			return missing(r, keyword, c->text);
	}
	return UAR_OK;
}

static uar_err check_required(struct uar_schema_run *r, const struct uar_schema_object *o,
			      const struct uar_json *v, uint64_t have)
{
	uint64_t lacks = o->required & ~have;

	if (lacks)
		return missing(r, "required", o->properties[__builtin_ctzll(lacks)].name);
	if (o->count > 64 && o->required_names)
		return check_names(r, "required", o->required_names, v);
	return UAR_OK;
}

static uar_err check_dependents(struct uar_schema_run *r, const struct uar_schema_object *o,
				const struct uar_json *v, struct uar_schema_seen *seen)
{
	for (uint32_t i = 0; i < o->dependent_count; i++) {
		const struct uar_schema_dependent *d = &o->dependents[i];
		uar_err e;

		if (!uar_schema_spend(r, v->count / 8 + 1))
			return uar_schema_exhausted(r);
		if (!uar_json_get(v, d->name))
			continue;
		e = d->node ? uar_schema_apply(r, d->node, v, seen)
			    : check_names(r, "dependentRequired", d->names, v);
		if (e)
			return e;
	}
	return UAR_OK;
}

uar_err uar_schema_check_object(struct uar_schema_run *r, const struct uar_schema_object *o,
				const struct uar_json *v, struct uar_schema_seen *seen)
{
	uint64_t have = 0;
	uar_err e;

	if (v->count < o->min)
		return uar_schema_fail(r, "minProperties: fewer than %llu members",
				       (unsigned long long)o->min);
	if (v->count > o->max)
		return uar_schema_fail(r, "maxProperties: more than %llu members",
				       (unsigned long long)o->max);
	e = check_members(r, o, v, seen, &have);
	if (!e)
		e = check_required(r, o, v, have);
	return e ? e : check_dependents(r, o, v, seen);
}
