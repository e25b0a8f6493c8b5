/* openapi_refs.c - the components of an OpenAPI document that something refers to.
 *
 * Only references inside the document count. A component may refer to further ones, and to itself.
 */
#include "tool/openapi_refs.h"

#include "tool/limits.h"

static const uar_str prefix = UAR_STR("#/components/");

static bool is_known(const struct uar_openapi_refs *r, const struct uar_json *node)
{
	for (const struct uar_openapi_ref *at = r->first; at; at = at->next)
		if (at->node == node)
			return true;
	return false;
}

/* "#/components/SECTION/NAME", whatever follows. */
static uar_err add(struct uar_openapi_refs *r, uar_str ref)
{
	const struct uar_json *node;
	struct uar_openapi_ref *one;
	uar_str rest, section, name, pointer;

	if (!uar_str_starts(ref, prefix))
		return UAR_OK;
	section = uar_str_cut(uar_str_from(ref, prefix.n), '/', &rest);
	name = uar_str_cut(rest, '/', &rest);
	pointer = uar_arena_printf(r->arena, "/components/%.*s/%.*s", UAR_FMT(section),
				   UAR_FMT(name));
	if (!pointer.p)
		return UAR_ENOMEM;
	node = uar_json_pointer(r->document, pointer);
	if (!node || is_known(r, node))
		return UAR_OK;
	if (r->count == UAR_LIMIT_OPENAPI_COMPONENTS)
		return UAR_ETOOBIG;
	one = uar_arena_alloc(r->arena, sizeof *one);
	if (!one)
		return UAR_ENOMEM;
	*one = (struct uar_openapi_ref){ .section = section, .node = node };
	if (r->last)
		r->last->next = one;
	else
		r->first = one;
	r->last = one;
	r->count++;
	return UAR_OK;
}

/* As deep as the reader of JSON lets a document be. */
static uar_err walk(struct uar_openapi_refs *r, const struct uar_json *j)
{
	uar_err e = UAR_OK;

	for (const struct uar_json *m = uar_json_first(j); m && !e; m = m->next) {
		if (j->kind == UAR_JSON_OBJECT && uar_str_is(m->key, "$ref") &&
		    m->kind == UAR_JSON_STRING)
			e = add(r, m->text);
		else
			e = walk(r, m);
	}
	return e;
}

uar_err uar_openapi_refs_add(struct uar_openapi_refs *r, const struct uar_json *j)
{
	const struct uar_openapi_ref *before = r->last;
	uar_err e = walk(r, j);

	/* What was added refers to more, which is added behind it. */
	for (const struct uar_openapi_ref *at = before ? before->next : r->first; at && !e;
	     at = at->next)
		e = walk(r, at->node);
	return e;
}

void uar_openapi_refs_write(struct uar_jw *w, const struct uar_openapi_refs *r, uar_str section)
{
	uar_jw_obj(w, NULL);
	for (const struct uar_openapi_ref *at = r->first; at; at = at->next)
		if (uar_str_eq(at->section, section)) {
			uar_jw_key(w, at->node->key);
			uar_jw_tree(w, NULL, at->node);
		}
	uar_jw_close(w);
}
