/* openapi.c - operations of an OpenAPI 3 document as HTTP tools.
 *
 * Each operation becomes the declaration that a person would have written (http_spec.c), as JSON.
 * Parameters in the path, the query and headers, and a JSON body, are arguments; a body is the
 * argument `body`. References inside the document are followed where an object stands; schemas keep
 * theirs, with what they lead to, and no more, put beside them. */
#include "json/limits.h"
#include "loop/limits.h"
#include "tool/exchange.h"
#include "tool/http_int.h"
#include "tool/http_source.h"
#include "tool/openapi_refs.h"

struct reading {
	const struct uar_openapi_options *o;
	struct uar_arena *arena;
	uar_str base;
	const struct uar_json *item; /* the path */
	uar_str path;
	struct uar_http_spec *out;
	size_t count, cap;
	struct uar_error *error;
};

/* What a local reference names. */
static const struct uar_json *follow(const struct reading *r, const struct uar_json *j)
{
	enum { STEPS = 8 };

	for (int i = 0; i < STEPS; i++) {
		uar_str ref = uar_json_text(j, "$ref");

		if (!ref.n)
			return j;
		if (!uar_str_starts(ref, UAR_STR("#/")))
			return NULL;
		j = uar_json_pointer(r->o->document, uar_str_from(ref, 1));
	}
	return NULL;
}

static bool is_wanted(const struct reading *r, uar_str operation)
{
	struct uar_tool named = { .tool_id = operation };

	for (const struct uar_json *p = uar_json_first(r->o->only); p; p = p->next)
		if (uar_tool_matches(&named, uar_json_str(p, UAR_STR(""))))
			return true;
	return !r->o->only;
}

/* --- parameters ----------------------------------------------------------------------------- */

typedef void parameter_fn(struct uar_jw *w, const struct uar_json *p);

/* Those of the operation first: they replace those of its path. */
static void each(const struct reading *r, const struct uar_json *operation, const char *in,
		 struct uar_jw *w, parameter_fn *fn)
{
	const struct uar_json *lists[] = { uar_json_get(operation, UAR_STR("parameters")),
					   uar_json_get(r->item, UAR_STR("parameters")) };

	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		for (const struct uar_json *p = uar_json_first(lists[i]); p; p = p->next) {
			const struct uar_json *one = follow(r, p);
			bool known = false;

			for (const struct uar_json *q = i ? uar_json_first(lists[0]) : NULL; q;
			     q = q->next)
				known |= uar_str_eq(uar_json_text(follow(r, q), "name"),
						    uar_json_text(one, "name"));
			if (!known && (!in || uar_str_is(uar_json_text(one, "in"), in)))
				fn(w, one);
		}
}

static void put_template(struct uar_jw *w, const struct uar_json *p)
{
	struct uar_buf b = uar_buf_make(1024);

	uar_buf_printf(&b, "{%.*s}", UAR_FMT(uar_json_text(p, "name")));
	uar_jw_key(w, uar_json_text(p, "name"));
	uar_jw_str(w, NULL, uar_buf_str(&b));
	uar_buf_fini(&b);
}

static void put_property(struct uar_jw *w, const struct uar_json *p)
{
	const struct uar_json *schema = uar_json_get(p, UAR_STR("schema"));

	uar_jw_key(w, uar_json_text(p, "name"));
	if (schema)
		uar_jw_tree(w, NULL, schema);
	else
		uar_jw_bool(w, NULL, true);
}

static void put_required(struct uar_jw *w, const struct uar_json *p)
{
	if (uar_json_bool(uar_json_get(p, UAR_STR("required")), false))
		uar_jw_str(w, NULL, uar_json_text(p, "name"));
}

static const struct uar_json *body_schema(const struct reading *r, const struct uar_json *operation)
{
	const struct uar_json *body = follow(r, uar_json_get(operation, UAR_STR("requestBody")));
	const struct uar_json *json =
		uar_json_get(uar_json_get(body, UAR_STR("content")), UAR_STR("application/json"));

	return uar_json_get(json, UAR_STR("schema"));
}

/* What the arguments of an operation refer to. */
static uar_err add_refs(const struct reading *r, const struct uar_json *operation,
			struct uar_openapi_refs *out)
{
	const struct uar_json *const of[] = { operation, r->item };
	uar_err e = UAR_OK;

	for (size_t i = 0; i < ARRAY_LEN(of); i++)
		for (const struct uar_json *p =
			     uar_json_first(uar_json_get(of[i], UAR_STR("parameters")));
		     p && !e; p = p->next)
			e = uar_openapi_refs_add(out, follow(r, p));
	return e ? e : uar_openapi_refs_add(out, body_schema(r, operation));
}

static void put_schemas(struct uar_jw *w, const struct uar_openapi_refs *refs)
{
	if (!refs->count)
		return;
	uar_jw_obj(w, "components"); /* where "#/components/schemas/X" still leads */
	uar_jw_key(w, UAR_STR("schemas"));
	uar_openapi_refs_write(w, refs, UAR_STR("schemas"));
	uar_jw_close(w);
}

static uar_err put_input_schema(const struct reading *r, const struct uar_json *operation,
				struct uar_jw *w)
{
	const struct uar_json *body = body_schema(r, operation);
	struct uar_openapi_refs refs = { .document = r->o->document, .arena = r->arena };
	uar_err e = add_refs(r, operation, &refs);

	uar_jw_obj(w, "input_schema");
	uar_jw_cstr(w, "type", "object");
	uar_jw_obj(w, "properties");
	each(r, operation, NULL, w, put_property);
	if (body)
		uar_jw_tree(w, "body", body);
	uar_jw_close(w);
	uar_jw_arr(w, "required");
	each(r, operation, NULL, w, put_required);
	if (body)
		uar_jw_cstr(w, NULL, "body");
	uar_jw_close(w);
	put_schemas(w, &refs);
	uar_jw_close(w);
	return e;
}

/* --- operations ----------------------------------------------------------------------------- */

static void put_headers(const struct reading *r, const struct uar_json *operation, struct uar_jw *w)
{
	uar_jw_obj(w, "headers");
	for (const struct uar_json *h = uar_json_first(r->o->headers); h; h = h->next) {
		uar_jw_key(w, h->key);
		uar_jw_tree(w, NULL, h);
	}
	each(r, operation, "header", w, put_template);
	uar_jw_close(w);
}

static void declare(const struct reading *r, const struct uar_json *operation, uar_str method,
		    struct uar_buf *out)
{
	struct uar_jw w = uar_jw_begin(out);
	struct uar_buf url = uar_buf_make(8192);
	uar_str summary = uar_json_text(operation, "summary");
	uar_err e;

	uar_buf_printf(&url, "%.*s%.*s", UAR_FMT(r->base), UAR_FMT(r->path));
	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "name", uar_json_text(operation, "operationId"));
	uar_jw_str(&w, "description",
		   summary.n ? summary : uar_json_text(operation, "description"));
	uar_jw_str(&w, "method", method);
	uar_jw_str(&w, "url", uar_buf_str(&url));
	uar_jw_obj(&w, "query");
	each(r, operation, "query", &w, put_template);
	uar_jw_close(&w);
	put_headers(r, operation, &w);
	if (body_schema(r, operation))
		uar_jw_cstr(&w, "body", "{body}");
	e = put_input_schema(r, operation, &w);
	uar_jw_close(&w);
	if (uar_jw_end(&w) && !e)
		e = UAR_EINVALID;
	if (e && !out->err)
		out->err = e;
	uar_buf_fini(&url);
}

static uar_err take(struct reading *r, const struct uar_json *operation, uar_str method)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	const struct uar_json *j = NULL;
	uar_err e;

	if (r->count == r->cap)
		return uar_error_set(r->error, UAR_ETOOBIG,
				     "there are too many operations: name "
				     "those you need in `operations`");
	declare(r, operation, method, &b);
	e = b.err ? b.err : uar_json_parse_copy(uar_buf_str(&b), NULL, r->arena, &j, r->error);
	if (!e)
		e = uar_http_spec_read(j, r->arena, &r->out[r->count], r->error);
	if (!e)
		r->count++;
	uar_buf_fini(&b);
	return e;
}

static const char *const methods[][2] = { { "get", "GET" },	{ "put", "PUT" },
					  { "post", "POST" },	{ "delete", "DELETE" },
					  { "patch", "PATCH" }, { "head", "HEAD" } };

/* The operation of a path; NULL: it has none that is wanted. */
static const struct uar_json *wanted(const struct reading *r, const char *method)
{
	const struct uar_json *o = uar_json_get(r->item, uar_str_c(method));
	uar_str id = uar_json_text(o, "operationId");

	return id.n && is_wanted(r, id) ? o : NULL;
}

static uar_err take_path(struct reading *r)
{
	uar_err e = UAR_OK;

	for (size_t i = 0; i < ARRAY_LEN(methods) && !e; i++) {
		const struct uar_json *o = wanted(r, methods[i][0]);

		if (o)
			e = take(r, o, uar_str_c(methods[i][1]));
	}
	return e;
}

static uar_err check_version(const struct uar_json *document, struct uar_error *error)
{
	if (uar_str_starts(uar_json_text(document, "openapi"), UAR_STR("3.")))
		return UAR_OK;
	return uar_error_set(error, UAR_EINVALID, "it is no OpenAPI document of version 3");
}

static uar_str first_server(const struct uar_json *document)
{
	return uar_json_text(uar_json_at(uar_json_get(document, UAR_STR("servers")), 0), "url");
}

uar_err uar_openapi_read(const struct uar_openapi_options *o, struct uar_arena *arena,
			 struct uar_http_spec **out, size_t *out_count, struct uar_error *error)
{
	const struct uar_json *paths = uar_json_get(o->document, UAR_STR("paths"));
	struct reading r = {
		.o = o, .arena = arena, .cap = UAR_LIMIT_OPENAPI_TOOLS, .error = error
	};
	uar_err e = check_version(o->document, error);

	if (e)
		return e;
	r.base = o->base_url.n ? o->base_url : first_server(o->document);
	while (r.base.n && r.base.p[r.base.n - 1] == '/')
		r.base.n--;
	r.out = uar_arena_alloc(arena, r.cap * sizeof *r.out);
	if (!r.out)
		return UAR_ENOMEM;
	for (const struct uar_json *p = uar_json_first(paths); p && !e; p = p->next) {
		r.item = follow(&r, p);
		r.path = p->key;
		if (r.item)
			e = take_path(&r);
	}
	*out = r.out;
	*out_count = r.count;
	return e;
}

/* --- an entry of its own -------------------------------------------------------------------- */

static void put_member(struct uar_jw *w, const struct uar_json *from, const char *key)
{
	const struct uar_json *j = uar_json_get(from, uar_str_c(key));

	if (j)
		uar_jw_tree(w, key, j);
}

static void put_parameters(const struct reading *r, const struct uar_json *of, struct uar_jw *w)
{
	const struct uar_json *list = uar_json_get(of, UAR_STR("parameters"));

	if (!list)
		return;
	uar_jw_arr(w, "parameters");
	for (const struct uar_json *p = uar_json_first(list); p; p = p->next)
		if (follow(r, p))
			uar_jw_tree(w, NULL, follow(r, p));
	uar_jw_close(w);
}

static void put_operation(const struct reading *r, const struct uar_json *operation,
			  const char *method, struct uar_jw *w)
{
	const struct uar_json *body = body_schema(r, operation);

	uar_jw_obj(w, method);
	put_member(w, operation, "operationId");
	put_member(w, operation, uar_json_text(operation, "summary").n ? "summary" : "description");
	put_parameters(r, operation, w);
	if (body) {
		uar_jw_obj(w, "requestBody");
		uar_jw_obj(w, "content");
		uar_jw_obj(w, "application/json");
		uar_jw_tree(w, "schema", body);
		uar_jw_close(w);
		uar_jw_close(w);
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

static uar_err put_path(struct reading *r, struct uar_openapi_refs *refs, struct uar_jw *w)
{
	uar_err e = UAR_OK;
	bool begun = false;

	for (size_t i = 0; i < ARRAY_LEN(methods) && !e; i++) {
		const struct uar_json *o = wanted(r, methods[i][0]);

		if (!o)
			continue;
		if (!begun) {
			uar_jw_key(w, r->path);
			uar_jw_obj(w, NULL);
			put_parameters(r, r->item, w);
			begun = true;
		}
		put_operation(r, o, methods[i][0], w);
		e = add_refs(r, o, refs);
		r->count++;
	}
	if (begun)
		uar_jw_close(w);
	return e;
}

static uar_err put_paths(struct reading *r, struct uar_openapi_refs *refs, struct uar_jw *w)
{
	const struct uar_json *paths = uar_json_get(r->o->document, UAR_STR("paths"));
	uar_err e = UAR_OK;

	uar_jw_obj(w, "paths");
	for (const struct uar_json *p = uar_json_first(paths); p && !e; p = p->next) {
		r->item = follow(r, p);
		r->path = p->key;
		if (r->item)
			e = put_path(r, refs, w);
	}
	uar_jw_close(w);
	return e;
}

static void put_components(struct uar_jw *w, const struct uar_openapi_refs *refs)
{
	uar_jw_obj(w, "components");
	for (const struct uar_openapi_ref *at = refs->first; at; at = at->next) {
		const struct uar_openapi_ref *first = refs->first;

		while (!uar_str_eq(first->section, at->section))
			first = first->next;
		if (first != at)
			continue;
		uar_jw_key(w, at->section);
		uar_openapi_refs_write(w, refs, at->section);
	}
	uar_jw_close(w);
}

static uar_err put_document(struct reading *r, struct uar_jw *w)
{
	const struct uar_json *info = uar_json_get(r->o->document, UAR_STR("info"));
	struct uar_openapi_refs refs = { .document = r->o->document, .arena = r->arena };
	uar_err e;

	uar_jw_obj(w, "document");
	put_member(w, r->o->document, "openapi");
	uar_jw_obj(w, "info");
	put_member(w, info, "title");
	put_member(w, info, "version");
	uar_jw_close(w);
	e = put_paths(r, &refs, w);
	put_components(w, &refs);
	uar_jw_close(w);
	return e;
}

/* The address of a service may be relative to that of its document. */
static uar_err put_base(const struct uar_openapi_options *o, uar_str url, struct uar_jw *w,
			struct uar_error *error)
{
	uar_str said = o->base_url.n ? o->base_url : first_server(o->document);
	struct uar_buf base = uar_buf_make(UAR_LIMIT_CLIENT_URL);
	uar_err e = UAR_OK;

	if (uar_str_starts(said, UAR_STR("https://")) || uar_str_starts(said, UAR_STR("http://")))
		uar_buf_add_str(&base, said);
	else if (url.n)
		e = uar_url_resolve(url, said.n ? said : UAR_STR("/"), &base);
	else
		e = UAR_EINVALID;
	if (e)
		(void)uar_error_set(error, e,
				    "it does not say at which address the service is "
				    "(servers/0/url): add it to the document");
	else
		uar_jw_str(w, "base_url", uar_buf_str(&base));
	uar_buf_fini(&base);
	return e;
}

uar_err uar_openapi_import(const struct uar_openapi_options *o, uar_str url, struct uar_buf *out,
			   struct uar_error *error)
{
	struct uar_arena arena = { 0 };
	struct reading r = { .o = o, .arena = &arena };
	struct uar_jw w = uar_jw_begin(out);
	uar_err e = check_version(o->document, error);

	uar_jw_obj(&w, NULL);
	if (!e)
		e = put_base(o, url, &w, error);
	if (!e) {
		e = put_document(&r, &w);
		if (e)
			(void)uar_error_set(error, e, "%s", uar_err_text(e));
	}
	uar_jw_close(&w);
	uar_arena_fini(&arena);
	if (e)
		return e;
	if (!r.count)
		return uar_error_set(error, UAR_ENOTFOUND,
				     "it has no operation with an operationId that is wanted");
	e = uar_jw_end(&w);
	return e ? uar_error_set(error, e, "%s", uar_err_text(e)) : UAR_OK;
}
