/* openapi.c - operations of an OpenAPI 3 document as HTTP tools.
 *
 * Each operation becomes the declaration that a person would have written (http_spec.c), as JSON.
 * Parameters in the path, the query and headers, and a JSON body, are arguments; a body is the
 * argument `body`. References inside the document are followed where an object stands; schemas keep
 * theirs, with what they name put beside them. */
#include "tool/http_int.h"

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

static uar_str text_of(const struct uar_json *j, const char *key)
{
	return uar_json_str(uar_json_get(j, uar_str_c(key)), UAR_STR(""));
}

/* What a local reference names. */
static const struct uar_json *follow(const struct reading *r, const struct uar_json *j)
{
	enum { STEPS = 8 };

	for (int i = 0; i < STEPS; i++) {
		uar_str ref = text_of(j, "$ref");

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
				known |= uar_str_eq(text_of(follow(r, q), "name"),
						    text_of(one, "name"));
			if (!known && (!in || uar_str_is(text_of(one, "in"), in)))
				fn(w, one);
		}
}

static void put_template(struct uar_jw *w, const struct uar_json *p)
{
	struct uar_buf b = uar_buf_make(1024);

	uar_buf_printf(&b, "{%.*s}", UAR_FMT(text_of(p, "name")));
	uar_jw_key(w, text_of(p, "name"));
	uar_jw_str(w, NULL, uar_buf_str(&b));
	uar_buf_fini(&b);
}

static void put_property(struct uar_jw *w, const struct uar_json *p)
{
	const struct uar_json *schema = uar_json_get(p, UAR_STR("schema"));

	uar_jw_key(w, text_of(p, "name"));
	if (schema)
		uar_jw_tree(w, NULL, schema);
	else
		uar_jw_bool(w, NULL, true);
}

static void put_required(struct uar_jw *w, const struct uar_json *p)
{
	if (uar_json_bool(uar_json_get(p, UAR_STR("required")), false))
		uar_jw_str(w, NULL, text_of(p, "name"));
}

static const struct uar_json *body_schema(const struct reading *r, const struct uar_json *operation)
{
	const struct uar_json *body = follow(r, uar_json_get(operation, UAR_STR("requestBody")));
	const struct uar_json *json =
		uar_json_get(uar_json_get(body, UAR_STR("content")), UAR_STR("application/json"));

	return uar_json_get(json, UAR_STR("schema"));
}

static void put_input_schema(const struct reading *r, const struct uar_json *operation,
			     struct uar_jw *w)
{
	const struct uar_json *body = body_schema(r, operation);
	const struct uar_json *components = uar_json_get(r->o->document, UAR_STR("components"));
	const struct uar_json *schemas = uar_json_get(components, UAR_STR("schemas"));

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
	if (schemas) { /* where "#/components/schemas/X" still leads */
		uar_jw_obj(w, "components");
		uar_jw_tree(w, "schemas", schemas);
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

/* --- operations --------------------------------------------------------------------------------
 */

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
	uar_str summary = text_of(operation, "summary");

	uar_buf_printf(&url, "%.*s%.*s", UAR_FMT(r->base), UAR_FMT(r->path));
	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "name", text_of(operation, "operationId"));
	uar_jw_str(&w, "description", summary.n ? summary : text_of(operation, "description"));
	uar_jw_str(&w, "method", method);
	uar_jw_str(&w, "url", uar_buf_str(&url));
	uar_jw_obj(&w, "query");
	each(r, operation, "query", &w, put_template);
	uar_jw_close(&w);
	put_headers(r, operation, &w);
	if (body_schema(r, operation))
		uar_jw_cstr(&w, "body", "{body}");
	put_input_schema(r, operation, &w);
	uar_jw_close(&w);
	if (uar_jw_end(&w) && !out->err)
		out->err = UAR_EINVALID;
	uar_buf_fini(&url);
}

static uar_err take(struct reading *r, const struct uar_json *operation, uar_str method)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	const struct uar_json *j = NULL;
	uar_err e;
	uar_str text;

	if (r->count == r->cap)
		return uar_error_set(r->error, UAR_ETOOBIG,
				     "there are too many operations: name "
				     "those you need in `operations`");
	declare(r, operation, method, &b);
	text = b.err ? UAR_STR_NONE : uar_arena_str(r->arena, uar_buf_str(&b));
	e = b.err    ? b.err
	    : text.p ? uar_json_parse(text, NULL, r->arena, &j, r->error)
		     : UAR_ENOMEM;
	if (!e)
		e = uar_http_spec_read(j, r->arena, &r->out[r->count], r->error);
	if (!e)
		r->count++;
	uar_buf_fini(&b);
	return e;
}

static uar_err take_path(struct reading *r)
{
	static const char *const methods[][2] = { { "get", "GET" },	{ "put", "PUT" },
						  { "post", "POST" },	{ "delete", "DELETE" },
						  { "patch", "PATCH" }, { "head", "HEAD" } };
	uar_err e = UAR_OK;

	for (size_t i = 0; i < ARRAY_LEN(methods) && !e; i++) {
		const struct uar_json *o = uar_json_get(r->item, uar_str_c(methods[i][0]));
		uar_str id = text_of(o, "operationId");

		if (o && id.n && is_wanted(r, id))
			e = take(r, o, uar_str_c(methods[i][1]));
	}
	return e;
}

uar_err uar_openapi_read(const struct uar_openapi_options *o, struct uar_arena *arena,
			 struct uar_http_spec **out, size_t *out_count, struct uar_error *error)
{
	const struct uar_json *paths = uar_json_get(o->document, UAR_STR("paths"));
	const struct uar_json *servers = uar_json_get(o->document, UAR_STR("servers"));
	struct reading r = {
		.o = o, .arena = arena, .cap = UAR_LIMIT_OPENAPI_TOOLS, .error = error
	};
	uar_err e = UAR_OK;

	if (!uar_str_starts(text_of(o->document, "openapi"), UAR_STR("3.")))
		return uar_error_set(error, UAR_EINVALID, "it is no OpenAPI document of version 3");
	r.base = o->base_url.n ? o->base_url : text_of(uar_json_at(servers, 0), "url");
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
