/* schema.c - the life of a compiled schema: build every node, then link the
 * references, which may bring in more documents and so more nodes. */
#include "base/alloc.h"
#include "base/rand.h"
#include "json/limits.h"
#include "json/schema_int.h"

void *uar_schema_take(struct uar_schema_builder *b, size_t n)
{
	void *p = uar_arena_alloc(&b->schema->arena, n);

	if (!p)
		uar_error_set(b->error, UAR_ENOMEM, "out of memory");
	return p;
}

uar_err uar_schema_refuse(struct uar_schema_builder *b, const struct uar_json *at, const char *why)
{
	if (at && at->key.n)
		uar_error_where(b->error, "/%.*s", (int)(at->key.n < 100 ? at->key.n : 100),
				at->key.p);
	return uar_error_set(b->error, UAR_EINVALID, "the schema is not valid: %s%s%s",
			     b->keyword ? b->keyword : "", b->keyword ? " " : "", why);
}

/* The key of a node is the address of its source, as bytes. */
static uar_str address_key(const struct uar_json *const *source)
{
	return uar_str_n((const char *)source, sizeof *source);
}

static uar_err new_node(struct uar_schema_builder *b, const struct uar_json *j,
			struct uar_schema_node **out)
{
	struct uar_schema *s = b->schema;
	struct uar_schema_node *n = uar_schema_take(b, sizeof *n);
	uar_err e;

	if (!n)
		return UAR_ENOMEM;
	n->source = j;
	n->base = b->base;
	e = uar_map_put(&s->nodes, address_key(&n->source), n);
	if (e)
		return uar_error_set(b->error, e, "out of memory");
	*s->last = n;
	s->last = &n->next;
	*out = n;
	return UAR_OK;
}

uar_err uar_schema_build(struct uar_schema_builder *b, const struct uar_json *j,
			 struct uar_schema_node **out)
{
	struct uar_schema_base *outer = b->base;
	struct uar_schema_node *n = uar_map_get(&b->schema->nodes, address_key(&j));
	uar_err e;

	if (n) {
		*out = n;
		return UAR_OK;
	}
	if (j->kind != UAR_JSON_OBJECT && j->kind != UAR_JSON_BOOL)
		return uar_schema_refuse(b, j, "needs an object or a boolean");
	if (b->depth >= UAR_LIMIT_JSON_DEPTH_MAX)
		return uar_error_set(b->error, UAR_EDEPTH, "the schema is nested too deeply");
	e = new_node(b, j, &n);
	if (e)
		return e;
	if (j->kind == UAR_JSON_BOOL) {
		n->verdict = j->b ? UAR_SCHEMA_TRUE : UAR_SCHEMA_FALSE;
	} else {
		b->depth++;
		e = uar_schema_enter_base(b, n);
		if (!e)
			e = uar_schema_read_keywords(b, n);
		b->depth--;
		b->base = outer;
	}
	if (!e)
		*out = n;
	return e;
}

static void fini_node(struct uar_schema_node *n)
{
	uar_map_fini(&n->choice_map);
	if (n->string)
		uar_regex_destroy(n->string->pattern);
	if (!n->object)
		return;
	uar_map_fini(&n->object->map);
	for (uint32_t i = 0; i < n->object->pattern_count; i++)
		uar_regex_destroy(n->object->patterns[i].regex);
}

void uar_schema_destroy(struct uar_schema *s)
{
	if (!s)
		return;
	for (struct uar_schema_node *n = s->first; n; n = n->next)
		fini_node(n);
	uar_map_fini(&s->nodes);
	uar_map_fini(&s->uris);
	uar_arena_fini(&s->arena);
	uar_free(s);
}

static uint8_t plain_kinds(const struct uar_schema_node *n)
{
	unsigned kinds = n->types ? n->types : UAR_TYPE_ANY;

	if (n->verdict != UAR_SCHEMA_RULES || n->logic || n->constant || n->choices)
		return 0;
	if (kinds & UAR_TYPE_NUMBER)
		kinds |= UAR_TYPE_INTEGER;
	if (n->number)
		kinds &= ~(unsigned)(UAR_TYPE_NUMBER | UAR_TYPE_INTEGER);
	if (n->string)
		kinds &= ~(unsigned)UAR_TYPE_STRING;
	if (n->array)
		kinds &= ~(unsigned)UAR_TYPE_ARRAY;
	if (n->object)
		kinds &= ~(unsigned)UAR_TYPE_OBJECT;
	return (uint8_t)kinds;
}

static uar_err build_all(struct uar_schema_builder *b, const struct uar_json *document)
{
	struct uar_schema *s = b->schema;
	struct uar_schema_base *base = uar_schema_take(b, sizeof *base);
	uar_str uri = uar_str_c(b->options->base_uri);
	uar_err e;

	if (!base)
		return UAR_ENOMEM;
	base->uri = uri.p ? uar_str_n(uri.p, uar_str_find(uri, '#')) : UAR_STR("");
	base->uri = uar_arena_str(&s->arena, base->uri);
	if (!base->uri.p)
		return uar_error_set(b->error, UAR_ENOMEM, "out of memory");
	base->vocabulary = UAR_VOCAB_STANDARD;
	b->base = base;
	e = uar_schema_build(b, document, &s->root);
	if (!e)
		e = uar_schema_register(b, base->uri, UAR_STR_NONE, s->root);
	for (struct uar_schema_node *n = s->first; n && !e; n = n->next) {
		e = uar_schema_link(b, n);
		n->plain = plain_kinds(n);
	}
	return e;
}

uar_err uar_schema_create(const struct uar_json *document, const struct uar_schema_options *options,
			  struct uar_schema **out, struct uar_error *error)
{
	static const struct uar_schema_options none;
	struct uar_schema *s = uar_zalloc(sizeof *s);
	struct uar_schema_builder b = { .schema = s,
					.options = options ? options : &none,
					.error = error };
	uar_err e;

	if (!s)
		return uar_error_set(error, UAR_ENOMEM, "out of memory");
	uar_arena_init(&s->arena, 0);
	uar_map_init(&s->nodes, uar_rand_u64(&uar_rand_system));
	uar_map_init(&s->uris, uar_rand_u64(&uar_rand_system));
	s->last = &s->first;
	e = build_all(&b, document);
	if (e) {
		uar_schema_destroy(s);
		return e;
	}
	*out = s;
	return UAR_OK;
}

uar_err uar_schema_check_text(uar_str text, const struct uar_json *instance,
			      struct uar_error *error)
{
	const struct uar_json *document;
	struct uar_schema *schema = NULL;
	struct uar_arena arena, scratch;
	uar_err e;

	uar_arena_init(&arena, 0);
	uar_arena_init(&scratch, 0);
	e = uar_json_parse(text, NULL, &arena, &document, error);
	if (!e)
		e = uar_schema_create(document, NULL, &schema, error);
	if (!e)
		e = uar_schema_validate(schema, instance, &scratch, error);
	uar_schema_destroy(schema);
	uar_arena_fini(&scratch);
	uar_arena_fini(&arena);
	return e;
}
