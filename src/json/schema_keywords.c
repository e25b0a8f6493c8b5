/* schema_keywords.c - the keywords of 2020-12, one row each, read into a node.
 * A keyword counts when the dialect has its vocabulary; unknown ones are ignored
 * as the standard asks. */
#include "json/schema_int.h"

#include "base/rand.h"

enum { MANY = 16 }; /* from here on a map is faster than looking along a list */

/* --- parts of a node, made when a keyword needs them --- */

enum part { NODE, LOGIC, NUMBER, STRING, ARRAY, OBJECT };

static void *new_part(struct uar_schema_builder *b, struct uar_schema_node *n, enum part part)
{
	switch (part) {
	case NODE: break;
	case LOGIC: return n->logic = uar_schema_take(b, sizeof *n->logic);
	case NUMBER: return n->number = uar_schema_take(b, sizeof *n->number);
	case STRING:
		n->string = uar_schema_take(b, sizeof *n->string);
		if (n->string)
			n->string->max = UINT64_MAX;
		return n->string;
	case ARRAY:
		n->array = uar_schema_take(b, sizeof *n->array);
		if (n->array)
			*n->array = (struct uar_schema_array){ .max = UINT64_MAX,
							       .min_contains = 1,
							       .max_contains = UINT64_MAX };
		return n->array;
	case OBJECT:
		n->object = uar_schema_take(b, sizeof *n->object);
		if (n->object)
			n->object->max = UINT64_MAX;
		return n->object;
	}
	return n;
}

static void *part_of(struct uar_schema_builder *b, struct uar_schema_node *n, enum part part)
{
	void *const parts[] = {
		[NODE] = n,	      [LOGIC] = n->logic, [NUMBER] = n->number,
		[STRING] = n->string, [ARRAY] = n->array, [OBJECT] = n->object,
	};

	return parts[part] ? parts[part] : new_part(b, n, part);
}

/* --- plain forms --- */

static uar_err read_count(struct uar_schema_builder *b, const struct uar_json *v, void *at)
{
	uint64_t count;

	if (v->kind == UAR_JSON_INT && v->i >= 0)
		count = (uint64_t)v->i;
	else if (v->kind == UAR_JSON_DOUBLE && v->d >= 0 && uar_json_number_is_integer(v))
		count = v->d < 9e18 ? (uint64_t)v->d : UINT64_MAX;
	else
		return uar_schema_refuse(b, v, "must be a non-negative integer");
	memcpy(at, &count, sizeof count);
	return UAR_OK;
}

static uar_err read_number(struct uar_schema_builder *b, const struct uar_json *v, void *at)
{
	if (v->kind != UAR_JSON_INT && v->kind != UAR_JSON_DOUBLE)
		return uar_schema_refuse(b, v, "must be a number");
	memcpy(at, &v, sizeof v);
	return UAR_OK;
}

static uar_err read_text(struct uar_schema_builder *b, const struct uar_json *v, void *at)
{
	if (v->kind != UAR_JSON_STRING)
		return uar_schema_refuse(b, v, "must be a string");
	memcpy(at, &v->text, sizeof v->text);
	return UAR_OK;
}

static uar_err read_schema(struct uar_schema_builder *b, const struct uar_json *v, void *at)
{
	struct uar_schema_node *child;
	uar_err e = uar_schema_build(b, v, &child);

	if (!e)
		memcpy(at, &child, sizeof(struct uar_schema_node *));
	return e;
}

static uar_err read_list(struct uar_schema_builder *b, const struct uar_json *v, void *at)
{
	struct uar_schema_list *list = at;
	uar_err e = UAR_OK;

	if (v->kind != UAR_JSON_ARRAY)
		return uar_schema_refuse(b, v, "must be an array of schemas");
	list->items = uar_schema_take(b, v->count * sizeof(struct uar_schema_node *));
	if (!list->items)
		return UAR_ENOMEM;
	for (const struct uar_json *c = v->first; c && !e; c = c->next)
		e = read_schema(b, c, &list->items[list->n++]);
	return e;
}

static uar_err read_any(struct uar_schema_builder *b, const struct uar_json *v, void *at)
{
	(void)b;
	memcpy(at, &v, sizeof v);
	return UAR_OK;
}

/* --- keywords with a form of their own; `at` is their part --- */

static uar_err read_flag(struct uar_schema_builder *b, const struct uar_json *v, void *at)
{
	if (v->kind != UAR_JSON_BOOL)
		return uar_schema_refuse(b, v, "must be a boolean");
	memcpy(at, &v->b, sizeof v->b);
	return UAR_OK;
}

static uint8_t type_bit(uar_str name)
{
	static const char *const names[] = { "null",   "boolean", "integer", "number",
					     "string", "array",	  "object" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (uar_str_is(name, names[i]))
			return (uint8_t)(1u << i);
	return 0;
}

static uar_err read_type(struct uar_schema_builder *b, const struct uar_json *v, void *at)
{
	struct uar_schema_node *n = at;
	bool list = v->kind == UAR_JSON_ARRAY;

	for (const struct uar_json *t = list ? v->first : v; t; t = list ? t->next : NULL) {
		uint8_t bit = type_bit(uar_json_str(t, UAR_STR("")));

		if (!bit)
			return uar_schema_refuse(b, v, "names no type");
		n->types |= bit;
	}
	return n->types ? UAR_OK : uar_schema_refuse(b, v, "names no type");
}

static uar_err read_enum(struct uar_schema_builder *b, const struct uar_json *v, void *at)
{
	struct uar_schema_node *n = at;
	bool strings = v->kind == UAR_JSON_ARRAY && v->count > MANY;

	if (v->kind != UAR_JSON_ARRAY)
		return uar_schema_refuse(b, v, "must be an array");
	n->choices = v;
	for (const struct uar_json *c = v->first; c && strings; c = c->next)
		strings = c->kind == UAR_JSON_STRING;
	if (!strings)
		return UAR_OK;
	uar_map_init(&n->choice_map, uar_rand_u64(&uar_rand_system));
	for (const struct uar_json *c = v->first; c; c = c->next)
		if (uar_map_put(&n->choice_map, c->text, (void *)(uintptr_t)c) == UAR_ENOMEM)
			return uar_error_set(b->error, UAR_ENOMEM, "out of memory");
	return UAR_OK;
}

static uar_err read_multiple(struct uar_schema_builder *b, const struct uar_json *v, void *at)
{
	if (uar_json_double(v, 0) <= 0)
		return uar_schema_refuse(b, v, "must be a number above zero");
	return read_number(b, v, at);
}

static uar_err new_regex(struct uar_schema_builder *b, uar_str text, struct uar_regex **out)
{
	struct uar_error why = { 0 };
	uar_err e = uar_regex_create(text, out, &why);

	if (!e || e == UAR_ENOMEM)
		return e ? uar_error_set(b->error, e, "out of memory") : e;
	return uar_error_set(b->error, UAR_EINVALID, "the schema is not valid: %s '%.*s': %s",
			     b->keyword, (int)(text.n < 100 ? text.n : 100), text.p, why.text);
}

static uar_err read_pattern(struct uar_schema_builder *b, const struct uar_json *v, void *at)
{
	struct uar_schema_string *s = at;

	if (v->kind != UAR_JSON_STRING)
		return uar_schema_refuse(b, v, "must be a string");
	s->pattern_text = v->text;
	return new_regex(b, v->text, &s->pattern);
}

static uar_err read_format(struct uar_schema_builder *b, const struct uar_json *v, void *at)
{
	struct uar_schema_string *s = at;
	bool asserted =
		b->options->check_formats || (b->base->vocabulary & UAR_VOCAB_FORMAT_ASSERTION);

	if (v->kind != UAR_JSON_STRING)
		return uar_schema_refuse(b, v, "must be a string");
	if (asserted)
		s->format = uar_schema_format_find(v->text, &s->format_name);
	return UAR_OK;
}

static uar_err read_anchor(struct uar_schema_builder *b, const struct uar_json *v, void *at)
{
	if (v->kind != UAR_JSON_STRING)
		return uar_schema_refuse(b, v, "must be a string");
	return uar_schema_add_anchor(b, at, v->text, false);
}

static uar_err read_dynamic_anchor(struct uar_schema_builder *b, const struct uar_json *v, void *at)
{
	if (v->kind != UAR_JSON_STRING)
		return uar_schema_refuse(b, v, "must be a string");
	return uar_schema_add_anchor(b, at, v->text, true);
}

static uar_err need_object(struct uar_schema_builder *b, const struct uar_json *v)
{
	return v->kind == UAR_JSON_OBJECT ? UAR_OK : uar_schema_refuse(b, v, "must be an object");
}

static uar_err need_names(struct uar_schema_builder *b, const struct uar_json *v)
{
	bool fine = v->kind == UAR_JSON_ARRAY;

	for (const struct uar_json *c = fine ? v->first : NULL; c && fine; c = c->next)
		fine = c->kind == UAR_JSON_STRING;
	return fine ? UAR_OK : uar_schema_refuse(b, v, "must be an array of names");
}

static uar_err read_definitions(struct uar_schema_builder *b, const struct uar_json *v, void *at)
{
	uar_err e = need_object(b, v);
	struct uar_schema_node *child;

	(void)at;
	for (const struct uar_json *c = e ? NULL : v->first; c && !e; c = c->next)
		e = uar_schema_build(b, c, &child);
	return e;
}

/* properties and required make one table, when both have been seen. */
static uar_err read_properties(struct uar_schema_builder *b, const struct uar_json *v, void *at)
{
	uar_err e = need_object(b, v);

	return e ? e : read_any(b, v, at);
}

static uar_err read_required(struct uar_schema_builder *b, const struct uar_json *v, void *at)
{
	uar_err e = need_names(b, v);

	return e ? e : read_any(b, v, at);
}

static uar_err read_patterns(struct uar_schema_builder *b, const struct uar_json *v, void *at)
{
	struct uar_schema_object *o = at;
	uar_err e = need_object(b, v);

	if (e)
		return e;
	o->patterns = uar_schema_take(b, v->count * sizeof *o->patterns);
	if (!o->patterns)
		return UAR_ENOMEM;
	for (const struct uar_json *c = v->first; c && !e; c = c->next) {
		struct uar_schema_pattern *p = &o->patterns[o->pattern_count];

		e = new_regex(b, c->key, &p->regex);
		if (e)
			break;
		o->pattern_count++; /* from here on the node destroys it */
		e = uar_schema_build(b, c, &p->node);
	}
	return e;
}

/* dependentRequired, dependentSchemas and the older dependencies, which is both. */
static uar_err read_dependents(struct uar_schema_builder *b, const struct uar_json *v, void *at)
{
	struct uar_schema_object *o = at;
	struct uar_schema_dependent *list;
	uar_err e = need_object(b, v);

	if (e)
		return e;
	list = uar_schema_take(b, (o->dependent_count + v->count) * sizeof *list);
	if (!list)
		return UAR_ENOMEM;
	if (o->dependent_count)
		memcpy(list, o->dependents, o->dependent_count * sizeof *list);
	o->dependents = list;
	for (const struct uar_json *c = v->first; c && !e; c = c->next) {
		struct uar_schema_dependent *d = &list[o->dependent_count++];

		d->name = c->key;
		if (c->kind == UAR_JSON_ARRAY) {
			d->names = c;
			e = need_names(b, c);
		} else {
			e = uar_schema_build(b, c, &d->node);
		}
	}
	return e;
}

static uar_err read_items(struct uar_schema_builder *b, const struct uar_json *v, void *at)
{
	struct uar_schema_array *a = at;

	if (v->kind == UAR_JSON_ARRAY && (b->base->vocabulary & UAR_VOCAB_LEGACY))
		return read_list(b, v, &a->prefix);
	return read_schema(b, v, &a->items);
}

static uar_err read_prefix(struct uar_schema_builder *b, const struct uar_json *v, void *at)
{
	struct uar_schema_array *a = at;

	return b->base->vocabulary & UAR_VOCAB_LEGACY ? UAR_OK : read_list(b, v, &a->prefix);
}

/* Older drafts: what `items` says beyond its list. Without a list it says nothing. */
static uar_err read_additional_items(struct uar_schema_builder *b, const struct uar_json *v,
				     void *at)
{
	struct uar_schema_array *a = at;

	if (!(b->base->vocabulary & UAR_VOCAB_LEGACY) || a->items)
		return UAR_OK;
	return read_schema(b, v, &a->items);
}

/* --- the table --- */

#define AT(PART, FIELD) offsetof(struct uar_schema_##PART, FIELD)

static const struct keyword {
	const char *name;
	unsigned vocabulary; /* 0: always */
	enum part part;
	size_t offset;
	uar_err (*read)(struct uar_schema_builder *b, const struct uar_json *v, void *at);
} keywords[] = {
	{ "$ref", 0, LOGIC, AT(logic, ref_text), read_text },
	{ "$dynamicRef", 0, LOGIC, AT(logic, dynamic_text), read_text },
	{ "$anchor", 0, NODE, 0, read_anchor },
	{ "$dynamicAnchor", 0, NODE, 0, read_dynamic_anchor },
	{ "$defs", 0, NODE, 0, read_definitions },
	{ "allOf", UAR_VOCAB_APPLICATOR, LOGIC, AT(logic, all), read_list },
	{ "anyOf", UAR_VOCAB_APPLICATOR, LOGIC, AT(logic, any), read_list },
	{ "oneOf", UAR_VOCAB_APPLICATOR, LOGIC, AT(logic, one), read_list },
	{ "not", UAR_VOCAB_APPLICATOR, LOGIC, AT(logic, not ), read_schema },
	{ "if", UAR_VOCAB_APPLICATOR, LOGIC, AT(logic, if_), read_schema },
	{ "then", UAR_VOCAB_APPLICATOR, LOGIC, AT(logic, then), read_schema },
	{ "else", UAR_VOCAB_APPLICATOR, LOGIC, AT(logic, else_), read_schema },
	{ "properties", UAR_VOCAB_APPLICATOR, OBJECT, AT(object, declared), read_properties },
	{ "patternProperties", UAR_VOCAB_APPLICATOR, OBJECT, 0, read_patterns },
	{ "additionalProperties", UAR_VOCAB_APPLICATOR, OBJECT, AT(object, additional),
	  read_schema },
	{ "propertyNames", UAR_VOCAB_APPLICATOR, OBJECT, AT(object, names), read_schema },
	{ "dependentSchemas", UAR_VOCAB_APPLICATOR, OBJECT, 0, read_dependents },
	{ "dependencies", UAR_VOCAB_APPLICATOR, OBJECT, 0, read_dependents },
	{ "items", UAR_VOCAB_APPLICATOR, ARRAY, 0, read_items },
	{ "prefixItems", UAR_VOCAB_APPLICATOR, ARRAY, 0, read_prefix },
	{ "contains", UAR_VOCAB_APPLICATOR, ARRAY, AT(array, contains), read_schema },
	{ "unevaluatedItems", UAR_VOCAB_UNEVALUATED, ARRAY, AT(array, unevaluated), read_schema },
	{ "unevaluatedProperties", UAR_VOCAB_UNEVALUATED, OBJECT, AT(object, unevaluated),
	  read_schema },
	{ "type", UAR_VOCAB_VALIDATION, NODE, 0, read_type },
	{ "enum", UAR_VOCAB_VALIDATION, NODE, 0, read_enum },
	{ "const", UAR_VOCAB_VALIDATION, NODE, AT(node, constant), read_any },
	{ "multipleOf", UAR_VOCAB_VALIDATION, NUMBER, AT(number, multiple), read_multiple },
	{ "minimum", UAR_VOCAB_VALIDATION, NUMBER, AT(number, minimum), read_number },
	{ "maximum", UAR_VOCAB_VALIDATION, NUMBER, AT(number, maximum), read_number },
	{ "exclusiveMinimum", UAR_VOCAB_VALIDATION, NUMBER, AT(number, above), read_number },
	{ "exclusiveMaximum", UAR_VOCAB_VALIDATION, NUMBER, AT(number, below), read_number },
	{ "minLength", UAR_VOCAB_VALIDATION, STRING, AT(string, min), read_count },
	{ "maxLength", UAR_VOCAB_VALIDATION, STRING, AT(string, max), read_count },
	{ "pattern", UAR_VOCAB_VALIDATION, STRING, 0, read_pattern },
	{ "format", 0, STRING, 0, read_format },
	{ "minItems", UAR_VOCAB_VALIDATION, ARRAY, AT(array, min), read_count },
	{ "maxItems", UAR_VOCAB_VALIDATION, ARRAY, AT(array, max), read_count },
	{ "uniqueItems", UAR_VOCAB_VALIDATION, ARRAY, AT(array, unique), read_flag },
	{ "minContains", UAR_VOCAB_VALIDATION, ARRAY, AT(array, min_contains), read_count },
	{ "maxContains", UAR_VOCAB_VALIDATION, ARRAY, AT(array, max_contains), read_count },
	{ "minProperties", UAR_VOCAB_VALIDATION, OBJECT, AT(object, min), read_count },
	{ "maxProperties", UAR_VOCAB_VALIDATION, OBJECT, AT(object, max), read_count },
	{ "required", UAR_VOCAB_VALIDATION, OBJECT, AT(object, required_names), read_required },
	{ "dependentRequired", UAR_VOCAB_VALIDATION, OBJECT, 0, read_dependents },
	{ "additionalItems", UAR_VOCAB_LEGACY, ARRAY, 0, read_additional_items },
};

static uar_err read_keyword(struct uar_schema_builder *b, struct uar_schema_node *n,
			    const struct uar_json *v)
{
	for (size_t i = 0; i < ARRAY_LEN(keywords); i++) {
		const struct keyword *k = &keywords[i];
		char *part;

		if (!uar_str_is(v->key, k->name))
			continue;
		if (k->vocabulary && !(b->base->vocabulary & k->vocabulary))
			return UAR_OK;
		part = part_of(b, n, k->part);
		if (!part)
			return UAR_ENOMEM;
		b->keyword = k->name;
		return k->read(b, v, part + k->offset);
	}
	return UAR_OK;
}

/* --- the table of properties --- */

static struct uar_schema_property *find_property(struct uar_schema_object *o, uar_str name)
{
	if (o->map.cap)
		return uar_map_get(&o->map, name);
	for (uint32_t i = 0; i < o->count; i++)
		if (uar_str_eq(o->properties[i].name, name))
			return &o->properties[i];
	return NULL;
}

static uar_err add_property(struct uar_schema_builder *b, struct uar_schema_object *o, uar_str name,
			    const struct uar_json *schema)
{
	struct uar_schema_property *p = &o->properties[o->count];
	uar_err e = UAR_OK;

	p->name = name;
	if (schema)
		e = uar_schema_build(b, schema, &p->node);
	if (e)
		return e;
	if (o->map.seed && uar_map_put(&o->map, p->name, p) == UAR_ENOMEM)
		return uar_error_set(b->error, UAR_ENOMEM, "out of memory");
	o->count++;
	return UAR_OK;
}

static uar_err finish_object(struct uar_schema_builder *b, struct uar_schema_object *o)
{
	const struct uar_json *declared = o->declared, *required = o->required_names;
	size_t most = (declared ? declared->count : 0) + (size_t)(required ? required->count : 0);
	uar_err e = UAR_OK;

	o->properties = uar_schema_take(b, most * sizeof *o->properties);
	if (!o->properties)
		return UAR_ENOMEM;
	if (most > MANY)
		uar_map_init(&o->map, uar_rand_u64(&uar_rand_system) | 1);
	for (const struct uar_json *c = declared ? declared->first : NULL; c && !e; c = c->next)
		e = add_property(b, o, c->key, c);
	for (const struct uar_json *c = required ? required->first : NULL; c && !e; c = c->next) {
		struct uar_schema_property *p = find_property(o, c->text);
		size_t index = p ? (size_t)(p - o->properties) : o->count;

		if (!p)
			e = add_property(b, o, c->text, NULL);
		if (index < 64)
			o->required |= 1ull << index;
	}
	return e;
}

uar_err uar_schema_read_keywords(struct uar_schema_builder *b, struct uar_schema_node *n)
{
	uar_err e = UAR_OK;

	for (const struct uar_json *v = n->source->first; v && !e; v = v->next)
		e = read_keyword(b, n, v);
	if (!e && n->object)
		e = finish_object(b, n->object);
	return e;
}
