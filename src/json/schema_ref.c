/* schema_ref.c - names of schemas: $id, $schema, anchors, and the references that
 * use them. Documents come from the given map or from the standard, never from
 * the network. */
#include "json/limits.h"
#include "json/schema_int.h"

/* One name of a node; the key of the map lives here. */
struct name {
	uar_str key;
	struct uar_schema_node *node;
};

static uar_err no_memory(struct uar_schema_builder *b)
{
	return uar_error_set(b->error, UAR_ENOMEM, "out of memory");
}

/* "uri" or "uri#anchor". The first one of a name keeps it. */
uar_err uar_schema_register(struct uar_schema_builder *b, uar_str uri, uar_str anchor,
			    struct uar_schema_node *n)
{
	struct name *entry = uar_schema_take(b, sizeof *entry);
	uar_err e;

	if (!entry)
		return UAR_ENOMEM;
	entry->node = n;
	entry->key = uar_arena_printf(&b->schema->arena, "%.*s%s%.*s", UAR_FMT(uri),
				      anchor.n ? "#" : "", UAR_FMT(anchor));
	if (!entry->key.p)
		return no_memory(b);
	e = uar_map_put(&b->schema->uris, entry->key, entry);
	return e == UAR_ENOMEM ? no_memory(b) : UAR_OK;
}

static struct uar_schema_node *look_up(struct uar_schema_builder *b, uar_str key)
{
	struct name *entry = uar_map_get(&b->schema->uris, key);

	return entry ? entry->node : NULL;
}

uar_err uar_schema_add_anchor(struct uar_schema_builder *b, struct uar_schema_node *n, uar_str name,
			      bool dynamic)
{
	struct uar_schema_anchor *a;

	if (!name.n || uar_str_find(name, '#') < name.n)
		return uar_schema_refuse(b, NULL, "is not a name");
	if (dynamic) {
		a = uar_schema_take(b, sizeof *a);
		if (!a)
			return UAR_ENOMEM;
		*a = (struct uar_schema_anchor){ name, n, n->base->dynamic };
		n->base->dynamic = a;
		n->dynamic_anchor = name;
	}
	return uar_schema_register(b, n->base->uri, name, n);
}

/* --- documents --- */

static uar_err find_document(struct uar_schema_builder *b, uar_str uri, const struct uar_json **out)
{
	for (size_t i = 0; i < b->options->resource_count; i++) {
		uar_str name = uar_str_c(b->options->resources[i].uri);

		name.n = uar_str_find(name, '#');
		if (uar_str_eq(name, uri)) {
			*out = b->options->resources[i].document;
			return UAR_OK;
		}
	}
	return uar_schema_builtin(b, uri, out);
}

static uar_err new_base(struct uar_schema_builder *b, uar_str uri, unsigned vocabulary)
{
	struct uar_schema_base *base = uar_schema_take(b, sizeof *base);

	if (!base)
		return UAR_ENOMEM;
	base->uri = uar_arena_str(&b->schema->arena, uri);
	base->vocabulary = vocabulary;
	b->base = base;
	return base->uri.p ? UAR_OK : no_memory(b);
}

static uar_err load(struct uar_schema_builder *b, uar_str uri, struct uar_schema_node **out)
{
	struct uar_schema_base *outer = b->base;
	const struct uar_json *document = NULL;
	struct uar_schema_node *n = NULL;
	uar_err e = find_document(b, uri, &document);

	if (e)
		return e;
	if (!document)
		return uar_error_set(b->error, UAR_EINVALID,
				     "the schema refers to '%.*s', which is "
				     "not known here",
				     (int)(uri.n < 150 ? uri.n : 150), uri.p);
	if (++b->documents > UAR_LIMIT_SCHEMA_DOCUMENTS)
		return uar_error_set(b->error, UAR_ETOOBIG, "too many documents");
	e = new_base(b, uri, UAR_VOCAB_STANDARD);
	if (!e)
		e = uar_schema_build(b, document, &n);
	if (!e)
		e = uar_schema_register(b, uri, UAR_STR_NONE, n);
	b->base = outer;
	if (!e)
		*out = n;
	return e;
}

/* --- dialects --- */

static const struct {
	const char *name;
	unsigned bit;
} vocabularies[] = {
	{ "core", 0 },
	{ "applicator", UAR_VOCAB_APPLICATOR },
	{ "unevaluated", UAR_VOCAB_UNEVALUATED },
	{ "validation", UAR_VOCAB_VALIDATION },
	{ "meta-data", 0 },
	{ "format-annotation", 0 },
	{ "format-assertion", UAR_VOCAB_FORMAT_ASSERTION },
	{ "content", 0 },
};

static uar_err read_vocabulary(struct uar_schema_builder *b, const struct uar_json *list)
{
	static const uar_str prefix = { "https://json-schema.org/draft/2020-12/vocab/", 44 };
	unsigned mask = 0;

	for (const struct uar_json *v = list->first; v; v = v->next) {
		uar_str name = uar_str_from(v->key, prefix.n);
		bool known = false;

		for (size_t i = 0; uar_str_starts(v->key, prefix) && i < ARRAY_LEN(vocabularies);
		     i++) {
			if (!uar_str_is(name, vocabularies[i].name))
				continue;
			mask |= vocabularies[i].bit;
			known = true;
		}
		if (!known && uar_json_bool(v, false))
			return uar_schema_refuse(b, v, "requires a vocabulary that is not known");
	}
	b->base->vocabulary = mask;
	return UAR_OK;
}

static bool is_older_draft(uar_str uri)
{
	static const char *const older[] = { "http://json-schema.org/draft-0",
					     "https://json-schema.org/draft/2019-09/" };

	for (size_t i = 0; i < ARRAY_LEN(older); i++)
		if (uar_str_starts(uri, uar_str_c(older[i])))
			return true;
	return false;
}

/* A $schema decides which keywords count; an unknown one is taken for the standard. */
static uar_err read_dialect(struct uar_schema_builder *b, const struct uar_json *schema)
{
	uar_str uri = uar_json_str(schema, UAR_STR(""));
	const struct uar_json *meta = NULL, *list;
	uar_err e;

	uri.n = uar_str_find(uri, '#');
	if (!uri.n)
		return UAR_OK;
	b->base->vocabulary = UAR_VOCAB_STANDARD;
	if (is_older_draft(uri)) {
		b->base->vocabulary |= UAR_VOCAB_LEGACY;
		return UAR_OK;
	}
	if (uar_str_is(uri, "https://json-schema.org/draft/2020-12/schema"))
		return UAR_OK;
	e = find_document(b, uri, &meta);
	if (e)
		return e;
	list = uar_json_get(meta, UAR_STR("$vocabulary"));
	return list && list->kind == UAR_JSON_OBJECT ? read_vocabulary(b, list) : UAR_OK;
}

/* --- identity of a node --- */

static uar_err enter_id(struct uar_schema_builder *b, struct uar_schema_node *n, uar_str id)
{
	struct uar_buf uri = uar_buf_make(UAR_LIMIT_URI_BYTES);
	uar_err e;

	uar_schema_uri_resolve(b->base->uri, id, &uri);
	e = uri.err;
	if (e) {
		uar_error_set(b->error, e, "a URI of the schema is too long");
	} else {
		uar_str whole = uar_buf_str(&uri);

		whole.n = uar_str_find(whole, '#');
		e = new_base(b, whole, b->base->vocabulary);
	}
	uar_buf_fini(&uri);
	if (e)
		return e;
	n->base = b->base;
	return uar_schema_register(b, b->base->uri, UAR_STR_NONE, n);
}

uar_err uar_schema_enter_base(struct uar_schema_builder *b, struct uar_schema_node *n)
{
	const struct uar_json *id = uar_json_get(n->source, UAR_STR("$id"));
	const struct uar_json *dialect = uar_json_get(n->source, UAR_STR("$schema"));
	uar_err e = UAR_OK;

	b->keyword = "$id";
	if (id && id->kind != UAR_JSON_STRING)
		return uar_schema_refuse(b, id, "must be a string");
	if (id && id->text.n && id->text.p[0] == '#') /* how older drafts wrote an anchor */
		return id->text.n > 1
			       ? uar_schema_add_anchor(b, n, uar_str_from(id->text, 1), false)
			       : UAR_OK;
	if (id)
		e = enter_id(b, n, id->text);
	b->keyword = "$schema";
	return e || !dialect ? e : read_dialect(b, dialect);
}

/* --- references --- */

static void add_decoded(struct uar_buf *out, uar_str s)
{
	for (size_t i = 0; i < s.n; i++) {
		bool coded = s.p[i] == '%' && i + 2 < s.n;
		int hi = coded ? uar_hex_digit(s.p[i + 1]) : -1,
		    lo = coded ? uar_hex_digit(s.p[i + 2]) : -1;

		if (hi >= 0 && lo >= 0) {
			uar_buf_add_char(out, (char)(hi * 16 + lo));
			i += 2;
		} else {
			uar_buf_add_char(out, s.p[i]);
		}
	}
}

/* Follows a pointer; the innermost node on the way gives the base, because the
 * place may lie inside a keyword that nobody knows. */
static uar_err follow(struct uar_schema_builder *b, struct uar_schema_node *from, uar_str pointer,
		      struct uar_schema_node **out)
{
	struct uar_schema_base *outer = b->base;
	const struct uar_json *j = from->source;
	uar_err e;

	b->base = from->base;
	for (size_t at = 0, end; at < pointer.n && j; at = end) {
		struct uar_schema_node *n;

		end = at + 1 + uar_str_find(uar_str_from(pointer, at + 1), '/');
		j = uar_json_pointer(j, uar_str_n(pointer.p + at, end - at));
		n = j ? uar_map_get(&b->schema->nodes, uar_str_n((const char *)&j, sizeof j))
		      : NULL;
		if (n)
			b->base = n->base;
	}
	if (j)
		e = uar_schema_build(b, j, out);
	else
		e = uar_error_set(b->error, UAR_EINVALID,
				  "the schema refers to '%.*s', where nothing is",
				  (int)(pointer.n < 150 ? pointer.n : 150), pointer.p);
	b->base = outer;
	return e;
}

static uar_err find_anchor(struct uar_schema_builder *b, struct uar_schema_node *doc, uar_str name,
			   struct uar_schema_node **out)
{
	struct uar_buf key = uar_buf_make(UAR_LIMIT_URI_BYTES * 2);
	uar_err e;

	uar_buf_add_str(&key, doc->base->uri);
	uar_buf_add_char(&key, '#');
	uar_buf_add_str(&key, name);
	e = key.err;
	*out = e ? NULL : look_up(b, uar_buf_str(&key));
	uar_buf_fini(&key);
	if (e == UAR_ENOMEM)
		return no_memory(b);
	if (*out)
		return UAR_OK;
	return uar_error_set(b->error, UAR_EINVALID,
			     "the schema refers to '#%.*s', which is not there",
			     (int)(name.n < 150 ? name.n : 150), name.p);
}

struct target {
	struct uar_schema_node *node;
	uar_str anchor; /* empty unless it was named by one */
};

static uar_err resolve_absolute(struct uar_schema_builder *b, uar_str uri, uar_str fragment,
				struct target *out)
{
	struct uar_schema_node *doc = look_up(b, uri);
	uar_err e = doc ? UAR_OK : load(b, uri, &doc);

	if (e)
		return e;
	out->node = doc;
	out->anchor = UAR_STR("");
	if (!fragment.n)
		return UAR_OK;
	if (fragment.p[0] == '/')
		return follow(b, doc, fragment, &out->node);
	e = find_anchor(b, doc, fragment, &out->node);
	if (!e)
		out->anchor = out->node->dynamic_anchor;
	if (!e && !uar_str_eq(out->anchor, fragment))
		out->anchor = UAR_STR("");
	return e;
}

static uar_err resolve(struct uar_schema_builder *b, const struct uar_schema_node *n, uar_str text,
		       struct target *out)
{
	struct uar_buf whole = uar_buf_make(UAR_LIMIT_URI_BYTES),
		       fragment = uar_buf_make(UAR_LIMIT_URI_BYTES);
	uar_str uri;
	uar_err e;

	uar_schema_uri_resolve(n->base->uri, text, &whole);
	uri = uar_buf_str(&whole);
	uri.n = uar_str_find(uri, '#');
	if (uri.n < whole.n)
		add_decoded(&fragment, uar_str_n(whole.p + uri.n + 1, whole.n - uri.n - 1));
	e = whole.err ? whole.err : fragment.err;
	if (e)
		uar_error_set(b->error, e, "a URI of the schema is too long");
	else
		e = resolve_absolute(b, uri, uar_buf_str(&fragment), out);
	uar_buf_fini(&whole);
	uar_buf_fini(&fragment);
	return e;
}

uar_err uar_schema_link(struct uar_schema_builder *b, struct uar_schema_node *n)
{
	struct uar_schema_logic *l = n->logic;
	struct target t;
	uar_err e = UAR_OK;

	if (l && l->ref_text.p) {
		e = resolve(b, n, l->ref_text, &t);
		if (!e)
			l->ref = t.node;
	}
	if (!e && l && l->dynamic_text.p) {
		e = resolve(b, n, l->dynamic_text, &t);
		if (!e) {
			l->dynamic = t.node;
			l->dynamic_name = t.anchor;
		}
	}
	return e;
}
