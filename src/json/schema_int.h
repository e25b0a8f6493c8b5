/* schema_int.h - a compiled schema and what its files share.
 *
 * Every subschema is one node; a keyword that is absent costs nothing but a NULL.
 * Rules for one kind of value stand in a struct of their own, so that a value
 * meets only the rules of its kind. */
#ifndef UAR_JSON_SCHEMA_INT_H
#define UAR_JSON_SCHEMA_INT_H

#include "base/map.h"
#include "json/json_int.h"
#include "json/sizes.h"
#include "json/regex.h"
#include "json/schema.h"

/* --- compiled form --- */

enum { /* each the bit of the kind whose values have the type */
       UAR_TYPE_NULL = 1 << UAR_JSON_NULL,
       UAR_TYPE_BOOLEAN = 1 << UAR_JSON_BOOL,
       UAR_TYPE_INTEGER = 1 << UAR_JSON_INT,
       UAR_TYPE_NUMBER = 1 << UAR_JSON_DOUBLE, /* values of UAR_JSON_INT have it, too */
       UAR_TYPE_STRING = 1 << UAR_JSON_STRING,
       UAR_TYPE_ARRAY = 1 << UAR_JSON_ARRAY,
       UAR_TYPE_OBJECT = 1 << UAR_JSON_OBJECT,
       UAR_TYPE_ANY = (UAR_TYPE_OBJECT << 1) - 1,
};

enum uar_schema_verdict { UAR_SCHEMA_RULES, UAR_SCHEMA_TRUE, UAR_SCHEMA_FALSE };

/* Vocabularies of a dialect, as bits. */
enum {
	UAR_VOCAB_APPLICATOR = 1 << 0,
	UAR_VOCAB_UNEVALUATED = 1 << 1,
	UAR_VOCAB_VALIDATION = 1 << 2,
	UAR_VOCAB_FORMAT_ASSERTION = 1 << 3,
	UAR_VOCAB_LEGACY = 1 << 4, /* an older draft: `items` may be a list, no prefixItems */
	UAR_VOCAB_STANDARD = UAR_VOCAB_APPLICATOR | UAR_VOCAB_UNEVALUATED | UAR_VOCAB_VALIDATION,
};

struct uar_schema_node;

struct uar_schema_anchor {
	uar_str name;
	struct uar_schema_node *node;
	struct uar_schema_anchor *next;
};

/* A schema resource: what one $id, or one document, spans. */
struct uar_schema_base {
	uar_str uri; /* absolute, without fragment; may be empty */
	unsigned vocabulary;
	struct uar_schema_anchor *dynamic; /* its $dynamicAnchors */
};

struct uar_schema_list {
	struct uar_schema_node **items;
	uint32_t n;
};

/* References and in-place applicators. */
struct uar_schema_logic {
	uar_str ref_text, dynamic_text; /* p NULL: absent */
	struct uar_schema_node *ref, *dynamic;
	uar_str dynamic_name; /* not empty: look it up in the dynamic scope */
	struct uar_schema_list all, any, one;
	struct uar_schema_node * not, *if_, *then, *else_;
};

struct uar_schema_number {
	const struct uar_json *minimum, *maximum, *above, *below, *multiple;
};

typedef bool uar_schema_format(uar_str text);

struct uar_schema_string {
	uint64_t min, max; /* characters */
	struct uar_regex *pattern;
	uar_str pattern_text;	   /* of the document, for people */
	uar_schema_format *format; /* NULL: not asserted */
	const char *format_name;
};

struct uar_schema_array {
	struct uar_schema_list prefix;
	struct uar_schema_node *items, *contains, *unevaluated;
	uint64_t min, max, min_contains, max_contains;
	bool unique;
};

struct uar_schema_property {
	uar_str name;
	struct uar_schema_node *node; /* NULL: only required */
};

struct uar_schema_pattern {
	struct uar_regex *regex;
	struct uar_schema_node *node;
};

struct uar_schema_dependent {
	uar_str name;
	const struct uar_json *names; /* array of required names, or NULL */
	struct uar_schema_node *node; /* or NULL */
};

struct uar_schema_object {
	struct uar_schema_property *properties; /* declared ones, then others required */
	uint32_t count, pattern_count, dependent_count;
	uint64_t required;  /* bits of the first 64 properties */
	struct uar_map map; /* in use when there are many */
	const struct uar_json *required_names, *declared;
	struct uar_schema_pattern *patterns;
	struct uar_schema_dependent *dependents;
	struct uar_schema_node *additional, *names, *unevaluated;
	uint64_t min, max;
};

struct uar_schema_node {
	const struct uar_json *source;
	struct uar_schema_base *base;
	struct uar_schema_node *next; /* all nodes of the schema */
	enum uar_schema_verdict verdict;
	uint8_t types; /* 0: any */
	uint8_t plain; /* kinds, as bits, whose values all fit: there is nothing to look at */
	uar_str dynamic_anchor;
	const struct uar_json *constant, *choices;
	struct uar_map choice_map; /* in use when there are many strings */
	struct uar_schema_logic *logic;
	struct uar_schema_number *number;
	struct uar_schema_string *string;
	struct uar_schema_array *array;
	struct uar_schema_object *object;
};

struct uar_schema {
	struct uar_arena arena;
	struct uar_map nodes; /* by address of their source */
	struct uar_map uris;  /* "uri" and "uri#anchor" */
	struct uar_schema_node *first, **last;
	struct uar_schema_node *root;
};

/* --- compiling --- */

struct uar_schema_builder {
	struct uar_schema *schema;
	const struct uar_schema_options *options;
	struct uar_schema_base *base;
	struct uar_error *error;
	const char *keyword; /* for messages */
	unsigned depth, documents;
};

/* Memory of the schema; NULL and the error set when there is none. */
void *uar_schema_take(struct uar_schema_builder *b, size_t n);
uar_err uar_schema_refuse(struct uar_schema_builder *b, const struct uar_json *at, const char *why);
/* The node of a subschema, made on first sight. */
uar_err uar_schema_build(struct uar_schema_builder *b, const struct uar_json *j,
			 struct uar_schema_node **out);
/* Reads all keywords of an object schema into its node (schema_keywords.c). */
uar_err uar_schema_read_keywords(struct uar_schema_builder *b, struct uar_schema_node *n);

/* schema_ref.c: $id, $schema, anchors; then references. */
uar_err uar_schema_enter_base(struct uar_schema_builder *b, struct uar_schema_node *n);
uar_err uar_schema_register(struct uar_schema_builder *b, uar_str uri, uar_str anchor,
			    struct uar_schema_node *n);
uar_err uar_schema_add_anchor(struct uar_schema_builder *b, struct uar_schema_node *n, uar_str name,
			      bool dynamic);
uar_err uar_schema_link(struct uar_schema_builder *b, struct uar_schema_node *n);

/* schema_meta.c: the documents of the standard itself; NULL: not one of them. */
uar_err uar_schema_builtin(struct uar_schema_builder *b, uar_str uri, const struct uar_json **out);

/* schema_uri.c: RFC 3986 section 5.2, into `out`. */
void uar_schema_uri_resolve(uar_str base, uar_str ref, struct uar_buf *out);

/* schema_format.c: NULL for a format that is not known. */
uar_schema_format *uar_schema_format_find(uar_str name, const char **out_name);

/* --- validating --- */

/* Which members or items of one value were evaluated. */
struct uar_schema_seen {
	uint64_t *bits; /* NULL until one is marked */
	bool all;
};

/* Where a value stands in the instance. */
struct uar_schema_frame {
	const struct uar_schema_frame *up;
	const struct uar_json *value;
	uint32_t index;
};

struct uar_schema_scope {
	const struct uar_schema_scope *outer;
	const struct uar_schema_base *base;
};

struct uar_schema_run {
	struct uar_arena *scratch;
	struct uar_error *error;
	const struct uar_schema_scope *scope;
	const struct uar_schema_frame *frame;
	uint64_t steps, regex_steps;
	uint32_t depth, quiet; /* quiet: a failure is not the final word */
};

/* Steps that a value costs: rules of long strings and numbers look at every byte. */
static inline uint64_t uar_schema_cost(const struct uar_json *v)
{
	bool container = v->kind == UAR_JSON_OBJECT || v->kind == UAR_JSON_ARRAY;

	return 1 + (container ? 0 : v->text.n / 128);
}

/* UAR_ESCHEMA with place and reason, when somebody will read it. */
uar_err uar_schema_fail(struct uar_schema_run *r, const char *fmt, ...) UAR_PRINTF(2, 3);
static inline bool uar_schema_spend(struct uar_schema_run *r, uint64_t n)
{
	if (r->steps < n) {
		r->steps = 0;
		return false;
	}
	r->steps -= n;
	return true;
}
uar_err uar_schema_exhausted(struct uar_schema_run *r);
uar_err uar_schema_apply(struct uar_schema_run *r, const struct uar_schema_node *n,
			 const struct uar_json *value, struct uar_schema_seen *seen);
/* The same for a member or an item of the value at hand. */
uar_err uar_schema_apply_below(struct uar_schema_run *r, const struct uar_schema_node *n,
			       const struct uar_json *child, uint32_t index);
static inline uar_err uar_schema_apply_child(struct uar_schema_run *r,
					     const struct uar_schema_node *n,
					     const struct uar_json *child, uint32_t index)
{
	/* Of most values nothing but the kind is asked. */
	if (n->plain >> child->kind & 1 && r->depth < UAR_LIMIT_SCHEMA_DEPTH &&
	    uar_schema_spend(r, uar_schema_cost(child)))
		return UAR_OK;
	return uar_schema_apply_below(r, n, child, index);
}
uar_err uar_schema_mark(struct uar_schema_run *r, struct uar_schema_seen *seen, uint32_t index,
			uint32_t count);
static inline bool uar_schema_is_marked(const struct uar_schema_seen *s, uint32_t index)
{
	return s->all || (s->bits && (s->bits[index >> 6] >> (index & 63) & 1));
}

uar_err uar_schema_check_number(struct uar_schema_run *r, const struct uar_schema_number *n,
				const struct uar_json *value);
uar_err uar_schema_check_string(struct uar_schema_run *r, const struct uar_schema_string *s,
				uar_str text);
uar_err uar_schema_check_array(struct uar_schema_run *r, const struct uar_schema_array *a,
			       const struct uar_json *value, struct uar_schema_seen *seen);
uar_err uar_schema_check_object(struct uar_schema_run *r, const struct uar_schema_object *o,
				const struct uar_json *value, struct uar_schema_seen *seen);
/* What is left when everything else has spoken. */
uar_err uar_schema_check_rest(struct uar_schema_run *r, const struct uar_schema_node *n,
			      const struct uar_json *value, struct uar_schema_seen *seen);

#endif
