/* schema.h - JSON Schema 2020-12, compiled once and applied many times.
 *
 * Remote references resolve only through the given map: nothing is ever
 * fetched. Time is bounded by UAR_LIMIT_SCHEMA_STEPS, nesting by
 * UAR_LIMIT_SCHEMA_DEPTH; `pattern` runs on a matcher without backtracking. A
 * compiled schema is immutable and may be shared between threads. */
#ifndef UAR_JSON_SCHEMA_H
#define UAR_JSON_SCHEMA_H

#include "json/json.h"

struct uar_schema;

/* Documents that `$ref` may name, by absolute URI. */
struct uar_schema_resource {
	const char *uri;
	const struct uar_json *document; /* outlives the schema */
};

struct uar_schema_options {
	const struct uar_schema_resource *resources;
	size_t resource_count;
	const char *base_uri; /* NULL: none */
	bool check_formats;   /* assert the common formats instead of annotating */
};

/* `document` must outlive the schema. `options` may be NULL. */
UAR_MUST_CHECK uar_err uar_schema_create(const struct uar_json *document,
					 const struct uar_schema_options *options,
					 struct uar_schema **out, struct uar_error *error);
void uar_schema_destroy(struct uar_schema *s);
/* UAR_OK or UAR_ESCHEMA with the instance pointer in error->where and the
 * keyword in the text; UAR_EDEPTH or UAR_ETOOBIG when a bound is hit.
 * `scratch` is used for annotations and may be reset afterwards. */
UAR_MUST_CHECK uar_err uar_schema_validate(const struct uar_schema *s,
					   const struct uar_json *instance,
					   struct uar_arena *scratch, struct uar_error *error);
/* The same for a schema that is used once: its text. A schema that is wrong itself is
 * told like an instance that is. */
UAR_MUST_CHECK uar_err uar_schema_check_text(uar_str schema, const struct uar_json *instance,
					     struct uar_error *error);

#endif
