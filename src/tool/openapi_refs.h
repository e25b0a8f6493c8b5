/* openapi_refs.h - the components of an OpenAPI document that something refers to; for tool/
 * alone. */
#ifndef UAR_TOOL_OPENAPI_REFS_H
#define UAR_TOOL_OPENAPI_REFS_H

#include "json/jw.h"

struct uar_openapi_ref {
	struct uar_openapi_ref *next;
	uar_str section;	     /* "schemas" */
	const struct uar_json *node; /* its key is the name */
};
/* Begins with document and arena, which outlive it. */
struct uar_openapi_refs {
	const struct uar_json *document;
	struct uar_arena *arena;
	struct uar_openapi_ref *first, *last;
	size_t count;
};
/* Adds what the value refers to, and what that refers to. NULL refers to nothing. UAR_ETOOBIG: more
 * than UAR_LIMIT_OPENAPI_COMPONENTS. */
UAR_MUST_CHECK uar_err uar_openapi_refs_add(struct uar_openapi_refs *r, const struct uar_json *j);
/* The next value: an object of the components of a section, by name. */
void uar_openapi_refs_write(struct uar_jw *w, const struct uar_openapi_refs *r, uar_str section);

#endif
