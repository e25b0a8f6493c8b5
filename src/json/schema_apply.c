/* schema_apply.c - a value against a node: type and choice first, because they
 * are cheap and decide most; then references and combinations; then the rules of
 * the value's kind; and last what the rest left unevaluated.
 *
 * Every application costs a step and a level, and both are bounded, so a schema
 * that refers to itself without end ends in an error. Annotations are collected
 * only below a node that asks for them. */
#include "json/limits.h"
#include "json/schema_int.h"

#include <stdarg.h>

/* --- failure --- */

static void add_place(struct uar_buf *out, const struct uar_schema_frame *f)
{
	const struct uar_schema_frame *chain[UAR_LIMIT_SCHEMA_DEPTH + 1];
	size_t n = 0;

	for (; f && f->up && n < ARRAY_LEN(chain); f = f->up)
		chain[n++] = f;
	while (n--) {
		if (chain[n]->value->key.p)
			uar_json_pointer_add(out, chain[n]->value->key);
		else
			uar_buf_printf(out, "/%u", chain[n]->index);
	}
}

uar_err uar_schema_fail(struct uar_schema_run *r, const char *fmt, ...)
{
	char text[UAR_LIMIT_ERROR_TEXT];
	struct uar_buf place = uar_buf_make(UAR_LIMIT_ERROR_WHERE - 1);
	va_list ap;

	if (r->quiet || !r->error)
		return UAR_ESCHEMA;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	add_place(&place, r->frame);
	uar_error_where(r->error, "%.*s", UAR_FMT(uar_buf_str(&place)));
	uar_buf_fini(&place);
	return uar_error_set(r->error, UAR_ESCHEMA, "%s", text);
}

uar_err uar_schema_exhausted(struct uar_schema_run *r)
{
	return uar_error_set(r->error, UAR_ETOOBIG, "the value takes too many steps to validate");
}

/* --- annotations --- */

static uar_err need_bits(struct uar_schema_run *r, struct uar_schema_seen *s, uint32_t count)
{
	size_t words = (size_t)count / 64 + 1;

	if (s->bits)
		return UAR_OK;
	if (!uar_schema_spend(r, words)) /* which bounds the memory, too */
		return uar_schema_exhausted(r);
	s->bits = uar_arena_alloc(r->scratch, words * sizeof *s->bits);
	return s->bits ? UAR_OK : uar_error_set(r->error, UAR_ENOMEM, "out of memory");
}

uar_err uar_schema_mark(struct uar_schema_run *r, struct uar_schema_seen *s, uint32_t index,
			uint32_t count)
{
	uar_err e = need_bits(r, s, count);

	if (!e)
		s->bits[index >> 6] |= 1ull << (index & 63);
	return e;
}

static uar_err merge(struct uar_schema_run *r, struct uar_schema_seen *to,
		     const struct uar_schema_seen *from, uint32_t count)
{
	uar_err e;

	to->all |= from->all;
	if (to->all || !from->bits)
		return UAR_OK;
	e = need_bits(r, to, count);
	if (!e && !uar_schema_spend(r, count / 512))
		e = uar_schema_exhausted(r);
	for (size_t i = 0; !e && i < (size_t)count / 64 + 1; i++)
		to->bits[i] |= from->bits[i];
	return e;
}

/* --- type, const, enum --- */

static const uint8_t of_kind[] = {
	[UAR_JSON_NULL] = UAR_TYPE_NULL,
	[UAR_JSON_BOOL] = UAR_TYPE_BOOLEAN,
	[UAR_JSON_INT] = UAR_TYPE_INTEGER | UAR_TYPE_NUMBER,
	[UAR_JSON_DOUBLE] = UAR_TYPE_NUMBER,
	[UAR_JSON_STRING] = UAR_TYPE_STRING,
	[UAR_JSON_ARRAY] = UAR_TYPE_ARRAY,
	[UAR_JSON_OBJECT] = UAR_TYPE_OBJECT,
};

static bool type_fits(uint8_t types, const struct uar_json *v)
{
	if (types & of_kind[v->kind])
		return true;
	return v->kind == UAR_JSON_DOUBLE && (types & UAR_TYPE_INTEGER) &&
	       uar_json_number_is_integer(v);
}

static const char *type_name(uint8_t types)
{
	static const char *const names[] = { "null",	 "a boolean", "an integer", "a number",
					     "a string", "an array",  "an object" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (types == 1u << i)
			return names[i];
	return "another type";
}

/* Names the values, as far as they fit. */
static uar_err not_a_choice(struct uar_schema_run *r, const struct uar_json *choices)
{
	struct uar_buf b = uar_buf_make(200);
	uar_err e;

	for (const struct uar_json *c = choices->first; c && !b.err && !r->quiet; c = c->next) {
		if (b.n)
			uar_buf_add_str(&b, UAR_STR(", "));
		uar_json_write(&b, c);
	}
	if (b.err)
		e = uar_schema_fail(r, "enum: not one of the %u values", choices->count);
	else
		e = uar_schema_fail(r, "enum: must be one of %.*s", UAR_FMT(uar_buf_str(&b)));
	uar_buf_fini(&b);
	return e;
}

static uar_err check_choice(struct uar_schema_run *r, const struct uar_schema_node *n,
			    const struct uar_json *v)
{
	if (n->choice_map.cap) {
		if (v->kind == UAR_JSON_STRING && uar_map_get(&n->choice_map, v->text))
			return UAR_OK;
		return not_a_choice(r, n->choices);
	}
	if (!uar_schema_spend(r, (uint64_t)n->choices->count * (v->text.n / 64 + 1) / 4))
		return uar_schema_exhausted(r);
	for (const struct uar_json *c = n->choices->first; c; c = c->next)
		if (c->kind == UAR_JSON_STRING && v->kind == UAR_JSON_STRING
			    ? uar_str_eq(c->text, v->text)
			    : uar_json_equal(c, v))
			return UAR_OK;
	return not_a_choice(r, n->choices);
}

static uar_err check_value(struct uar_schema_run *r, const struct uar_schema_node *n,
			   const struct uar_json *v)
{
	if (n->types && !type_fits(n->types, v))
		return uar_schema_fail(r, "type: must be %s, is %s", type_name(n->types),
				       uar_json_kind_name(v->kind));
	if (n->constant && !uar_schema_spend(r, v->text.n / 64))
		return uar_schema_exhausted(r);
	if (n->constant && !uar_json_equal(n->constant, v))
		return uar_schema_fail(r, "const: another value than the one allowed");
	return n->choices ? check_choice(r, n, v) : UAR_OK;
}

/* --- combinations --- */

/* A branch whose failure is an answer, not an error; *passed is that answer. */
static uar_err try_branch(struct uar_schema_run *r, const struct uar_schema_node *n,
			  const struct uar_json *v, struct uar_schema_seen *seen, bool *passed)
{
	uar_err e;

	r->quiet++;
	e = uar_schema_apply(r, n, v, seen);
	r->quiet--;
	*passed = e == UAR_OK;
	return e == UAR_ESCHEMA ? UAR_OK : e;
}

static uar_err check_all(struct uar_schema_run *r, const struct uar_schema_list *list,
			 const struct uar_json *v, struct uar_schema_seen *seen)
{
	uar_err e = UAR_OK;

	for (uint32_t i = 0; i < list->n && !e; i++)
		e = uar_schema_apply(r, list->items[i], v, seen);
	return e;
}

static uar_err check_any(struct uar_schema_run *r, const struct uar_schema_list *list,
			 const struct uar_json *v, struct uar_schema_seen *seen)
{
	bool any = false, passed;

	/* With annotations wanted, every branch that passes contributes. */
	for (uint32_t i = 0; i < list->n && (!any || seen); i++) {
		uar_err e = try_branch(r, list->items[i], v, seen, &passed);

		if (e)
			return e;
		any |= passed;
	}
	return any ? UAR_OK : uar_schema_fail(r, "anyOf: none of the schemas fits");
}

static uar_err check_one(struct uar_schema_run *r, const struct uar_schema_list *list,
			 const struct uar_json *v, struct uar_schema_seen *seen)
{
	uint32_t fits = 0;
	bool passed;

	for (uint32_t i = 0; i < list->n && fits < 2; i++) {
		uar_err e = try_branch(r, list->items[i], v, seen, &passed);

		if (e)
			return e;
		fits += passed;
	}
	if (fits == 1)
		return UAR_OK;
	return uar_schema_fail(r, "oneOf: %s of the schemas fits", fits ? "more than one" : "none");
}

static uar_err check_if(struct uar_schema_run *r, const struct uar_schema_logic *l,
			const struct uar_json *v, struct uar_schema_seen *seen)
{
	const struct uar_schema_node *branch;
	bool passed;
	uar_err e;

	if (!l->then && !l->else_ && !seen)
		return UAR_OK;
	e = try_branch(r, l->if_, v, seen, &passed);
	branch = passed ? l->then : l->else_;
	return e || !branch ? e : uar_schema_apply(r, branch, v, seen);
}

/* The outermost resource of the dynamic scope that has the anchor decides. */
static uar_err check_dynamic(struct uar_schema_run *r, const struct uar_schema_logic *l,
			     const struct uar_json *v, struct uar_schema_seen *seen)
{
	const struct uar_schema_node *target = l->dynamic;
	uint64_t visited = 0;

	for (const struct uar_schema_scope *s = r->scope; s && l->dynamic_name.n; s = s->outer) {
		for (const struct uar_schema_anchor *a = s->base->dynamic; a; a = a->next) {
			visited++;
			if (uar_str_eq(a->name, l->dynamic_name))
				target = a->node;
		}
	}
	if (!uar_schema_spend(r, visited / 8))
		return uar_schema_exhausted(r);
	return uar_schema_apply(r, target, v, seen);
}

static uar_err check_not(struct uar_schema_run *r, const struct uar_schema_node *n,
			 const struct uar_json *v)
{
	bool passed;
	uar_err e = try_branch(r, n, v, NULL, &passed);

	if (!e && passed)
		return uar_schema_fail(r, "not: fits the schema that it must not fit");
	return e;
}

static uar_err check_refs(struct uar_schema_run *r, const struct uar_schema_logic *l,
			  const struct uar_json *v, struct uar_schema_seen *seen)
{
	uar_err e = UAR_OK;

	if (l->ref)
		e = uar_schema_apply(r, l->ref, v, seen);
	if (!e && l->dynamic)
		e = check_dynamic(r, l, v, seen);
	return e;
}

static uar_err check_logic(struct uar_schema_run *r, const struct uar_schema_logic *l,
			   const struct uar_json *v, struct uar_schema_seen *seen)
{
	uar_err e = check_refs(r, l, v, seen);

	if (!e && l->all.n)
		e = check_all(r, &l->all, v, seen);
	if (!e && l->any.n)
		e = check_any(r, &l->any, v, seen);
	if (!e && l->one.n)
		e = check_one(r, &l->one, v, seen);
	if (!e && l->not )
		e = check_not(r, l->not, v);
	return e || !l->if_ ? e : check_if(r, l, v, seen);
}

/* --- one node --- */

static uar_err check_kind(struct uar_schema_run *r, const struct uar_schema_node *n,
			  const struct uar_json *v, struct uar_schema_seen *seen)
{
	switch (v->kind) {
	case UAR_JSON_INT:
	case UAR_JSON_DOUBLE: return n->number ? uar_schema_check_number(r, n->number, v) : UAR_OK;
	case UAR_JSON_STRING:
		return n->string ? uar_schema_check_string(r, n->string, v->text) : UAR_OK;
	case UAR_JSON_ARRAY:
		return n->array ? uar_schema_check_array(r, n->array, v, seen) : UAR_OK;
	case UAR_JSON_OBJECT:
		return n->object ? uar_schema_check_object(r, n->object, v, seen) : UAR_OK;
	case UAR_JSON_NULL:
	case UAR_JSON_BOOL: break;
	}
	return UAR_OK;
}

static uar_err check_node(struct uar_schema_run *r, const struct uar_schema_node *n,
			  const struct uar_json *v, struct uar_schema_seen *seen)
{
	uar_err e = check_value(r, n, v);

	if (!e && n->logic)
		e = check_logic(r, n->logic, v, seen);
	if (!e)
		e = check_kind(r, n, v, seen);
	return e;
}

/* A node that collects: its own set, which its parent gets when it passes. */
static uar_err check_collecting(struct uar_schema_run *r, const struct uar_schema_node *n,
				const struct uar_json *v, struct uar_schema_seen *outer)
{
	struct uar_schema_seen seen = { 0 };
	uar_err e = check_node(r, n, v, &seen);

	if (!e)
		e = uar_schema_check_rest(r, n, v, &seen);
	return e || !outer ? e : merge(r, outer, &seen, v->count);
}

static bool collects(const struct uar_schema_node *n, const struct uar_json *v)
{
	if (v->kind == UAR_JSON_OBJECT)
		return n->object && n->object->unevaluated;
	return v->kind == UAR_JSON_ARRAY && n->array && n->array->unevaluated;
}

/* What may have something below it: a level of its own, and the scope of its resource. */
static uar_err check_level(struct uar_schema_run *r, const struct uar_schema_node *n,
			   const struct uar_json *v, struct uar_schema_seen *seen)
{
	const struct uar_schema_scope *outer = r->scope;
	struct uar_schema_scope scope = { outer, n->base };
	bool container = v->kind == UAR_JSON_OBJECT || v->kind == UAR_JSON_ARRAY;
	uar_err e;

	r->depth++;
	if (!outer || outer->base != n->base)
		r->scope = &scope;
	if (container && (seen || collects(n, v)))
		e = check_collecting(r, n, v, seen);
	else
		e = check_node(r, n, v, NULL);
	r->scope = outer;
	r->depth--;
	return e;
}

uar_err uar_schema_apply(struct uar_schema_run *r, const struct uar_schema_node *n,
			 const struct uar_json *v, struct uar_schema_seen *seen)
{
	if (n->verdict == UAR_SCHEMA_TRUE)
		return UAR_OK;
	if (n->verdict == UAR_SCHEMA_FALSE)
		return uar_schema_fail(r, "false: no value is allowed here");
	if (!uar_schema_spend(r, uar_schema_cost(v)))
		return uar_schema_exhausted(r);
	if (r->depth >= UAR_LIMIT_SCHEMA_DEPTH)
		return uar_error_set(r->error, UAR_EDEPTH, "schemas are applied too deeply");
	if (v->kind < UAR_JSON_ARRAY && !n->logic) /* nothing is below it */
		return check_node(r, n, v, NULL);
	return check_level(r, n, v, seen);
}

uar_err uar_schema_apply_below(struct uar_schema_run *r, const struct uar_schema_node *n,
			       const struct uar_json *child, uint32_t index)
{
	struct uar_schema_frame frame = { r->frame, child, index };
	uar_err e;

	r->frame = &frame;
	e = uar_schema_apply(r, n, child, NULL);
	r->frame = frame.up;
	return e;
}

uar_err uar_schema_validate(const struct uar_schema *s, const struct uar_json *instance,
			    struct uar_arena *scratch, struct uar_error *error)
{
	struct uar_schema_frame top = { NULL, instance, 0 };
	struct uar_schema_run r = { .scratch = scratch,
				    .error = error,
				    .frame = &top,
				    .steps = UAR_LIMIT_SCHEMA_STEPS,
				    .regex_steps = UAR_LIMIT_REGEX_STEPS };

	return uar_schema_apply(&r, s->root, instance, NULL);
}
