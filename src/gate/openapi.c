/* openapi.c - GET /openapi.json: route.def and core/command.def as an OpenAPI 3.1 document.
 *
 * Each command of the control plane is a path of its own, because each has its own input. */
#include "gate/gate_int.h"

#include "core/control.h"
#include "gate/limits.h"
#include "gate/route_access.h"

struct row {
	const char *method, *path, *handler, *query, *doc;
	bool open;
	enum gate_body body;
	const char *grant;
};

#define METHOD_GET     "get"
#define METHOD_POST    "post"
#define METHOD_PUT     "put"
#define METHOD_PATCH   "patch"
#define METHOD_DELETE  "delete"
#define METHOD_OPTIONS "options"

static const struct row rows[] = {
#define R(METHOD, PATH, HANDLER, ACCESS, BODY, QUERY, DOC)                                         \
	{ METHOD_##METHOD,	 PATH, #HANDLER, QUERY, DOC, GATE_OPEN_##ACCESS, GATE_BODY_##BODY, \
	  GATE_TOKEN_OF_##ACCESS },
#include "gate/route.def"
#undef R
};

/* "/runs/:run_id" becomes "/runs/{run_id}". */
static uar_str template_of(struct uar_buf *b, uar_str path)
{
	uar_buf_clear(b);
	while (path.n) {
		uar_str rest, segment = uar_str_cut(uar_str_from(path, 1), '/', &rest);
		bool param = segment.n && segment.p[0] == ':';

		uar_buf_printf(b, "/%s%.*s%s", param ? "{" : "",
			       UAR_FMT(param ? uar_str_from(segment, 1) : segment),
			       param ? "}" : "");
		path = uar_str_from(path, segment.n + 1);
	}
	return uar_buf_str(b);
}

static void put_parameter(struct uar_jw *w, const char *in, uar_str name)
{
	uar_jw_obj(w, NULL);
	uar_jw_str(w, "name", name);
	uar_jw_cstr(w, "in", in);
	uar_jw_bool(w, "required", in[0] == 'p');
	uar_jw_obj(w, "schema");
	uar_jw_cstr(w, "type", "string");
	uar_jw_close(w);
	uar_jw_close(w);
}

static void put_parameters(struct uar_jw *w, const struct row *r)
{
	uar_str path = uar_str_c(r->path), names = uar_str_c(r->query);

	if (uar_str_is(names, "*"))
		names = UAR_STR("");
	if (!strchr(r->path, ':') && !names.n)
		return;
	uar_jw_arr(w, "parameters");
	while (path.n) {
		uar_str rest, segment = uar_str_cut(uar_str_from(path, 1), '/', &rest);

		if (segment.n && segment.p[0] == ':')
			put_parameter(w, "path", uar_str_from(segment, 1));
		path = uar_str_from(path, segment.n + 1);
	}
	while (names.n) {
		uar_str name = uar_str_cut(names, ' ', &names);

		if (name.n)
			put_parameter(w, "query", name);
	}
	uar_jw_close(w);
}

static void put_media(struct uar_jw *w, const char *type, const char *schema)
{
	uar_jw_obj(w, "content");
	uar_jw_obj(w, type);
	uar_jw_raw(w, "schema", uar_str_c(schema));
	uar_jw_close(w);
	uar_jw_close(w);
}

static void put_body(struct uar_jw *w, enum gate_body body)
{
	if (body == GATE_BODY_NONE)
		return;
	uar_jw_obj(w, "requestBody");
	uar_jw_bool(w, "required", body != GATE_BODY_MAYBE);
	if (body == GATE_BODY_BYTES)
		put_media(w, "application/octet-stream", "{}");
	else
		put_media(w, "application/json", "{\"type\":\"object\"}");
	uar_jw_close(w);
}

static void put_responses(struct uar_jw *w, const char *result)
{
	uar_jw_obj(w, "responses");
	uar_jw_obj(w, "2XX");
	uar_jw_cstr(w, "description", "Success.");
	if (result)
		put_media(w, "application/json", result);
	uar_jw_close(w);
	uar_jw_obj(w, "default");
	uar_jw_cstr(w, "description", "A problem: what was wrong, and what to do.");
	put_media(w, "application/problem+json", "{\"$ref\":\"#/components/schemas/Problem\"}");
	uar_jw_close(w);
	uar_jw_close(w);
}

/* Open routes need none; some take a token of the run or the upload in the query as well. */
static void put_security(struct uar_jw *w, const struct row *r)
{
	uar_jw_arr(w, "security");
	if (!r->open)
		uar_jw_raw(w, NULL, UAR_STR("{\"token\":[]}"));
	if (r->grant) {
		char name[32];

		snprintf(name, sizeof name, "%s_token", r->grant);
		uar_jw_obj(w, NULL);
		uar_jw_raw(w, name, UAR_STR("[]"));
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

static bool serves_other_methods(const struct row *r)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (&rows[i] != r && !strcmp(rows[i].path, r->path) &&
		    !strcmp(rows[i].handler, r->handler))
			return true;
	return false;
}

/* Handlers serve several paths, some several methods: both make the name unique. */
static void put_operation_id(struct uar_jw *w, const struct row *r)
{
	char id[160];
	size_t n = (size_t)snprintf(id, sizeof id, "%s%s", r->handler,
				    serves_other_methods(r) ? r->method : "");

	for (const char *p = r->path; *p && n + 1 < sizeof id; p++)
		id[n++] = (*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9') ? *p : '_';
	uar_jw_str(w, "operationId", uar_str_n(id, n));
}

static void put_operation(struct uar_jw *w, const struct row *r)
{
	uar_jw_obj(w, r->method);
	put_operation_id(w, r);
	uar_jw_cstr(w, "summary", r->doc);
	put_parameters(w, r);
	put_body(w, r->body);
	put_responses(w, NULL);
	put_security(w, r);
	uar_jw_close(w);
}

static bool is_first(size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (!strcmp(rows[k].path, rows[i].path))
			return false;
	return true;
}

/* All methods of a path, when the first of them comes. */
static void put_path(struct uar_jw *w, struct uar_buf *name, size_t i)
{
	uar_str path = template_of(name, uar_str_c(rows[i].path));

	if (!is_first(i))
		return;
	uar_jw_put_obj(w, path);
	for (size_t k = i; k < ARRAY_LEN(rows); k++)
		if (!strcmp(rows[k].path, rows[i].path))
			put_operation(w, &rows[k]);
	uar_jw_close(w);
}

static void put_command(struct uar_jw *w, const struct uar_control_info *info)
{
	char path[128];

	snprintf(path, sizeof path, "/api/control/%s", info->name);
	uar_jw_obj(w, path);
	uar_jw_obj(w, "post");
	uar_jw_cstr(w, "operationId", info->name);
	uar_jw_cstr(w, "summary", info->doc);
	uar_jw_raw(w, "tags", UAR_STR("[\"control\"]"));
	uar_jw_obj(w, "requestBody");
	uar_jw_bool(w, "required", true);
	uar_jw_obj(w, "content");
	uar_jw_obj(w, "application/json");
	uar_fields_schema(w, "schema", &info->fields);
	uar_jw_close(w);
	uar_jw_close(w);
	uar_jw_close(w);
	put_responses(w, "{\"$ref\":\"#/components/schemas/Outcome\"}");
	uar_jw_raw(w, "security", UAR_STR("[{\"token\":[]}]"));
	uar_jw_close(w);
	uar_jw_close(w);
}

static const char components[] =
	"{\"securitySchemes\":{"
	"\"token\":{\"type\":\"http\",\"scheme\":\"bearer\"},"
	"\"run_token\":{\"type\":\"apiKey\",\"in\":\"query\",\"name\":\"run_token\"},"
	"\"upload_token\":{\"type\":\"apiKey\",\"in\":\"query\",\"name\":\"upload_token\"}},"
	"\"schemas\":{"
	"\"Problem\":{\"type\":\"object\",\"required\":[\"type\",\"title\",\"status\",\"code\"],"
	"\"properties\":{\"type\":{\"type\":\"string\"},\"title\":{\"type\":\"string\"},"
	"\"status\":{\"type\":\"integer\"},\"code\":{\"type\":\"string\"},"
	"\"detail\":{\"type\":\"string\"},\"pointer\":{\"type\":\"string\"}}},"
	"\"Outcome\":{\"type\":\"object\",\"required\":[\"ok\",\"result\",\"event_ids\"],"
	"\"properties\":{\"ok\":{\"const\":true},\"result\":{\"type\":\"object\"},"
	"\"event_ids\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}}}}}";

void gate_openapi(struct call *c)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_OPENAPI_BYTES);
	struct uar_buf name = uar_buf_make(256);
	struct uar_jw w = uar_jw_begin(&b);

	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "openapi", "3.1.0");
	uar_jw_obj(&w, "info");
	uar_jw_cstr(&w, "title", "Universal Agent Runtime");
	uar_jw_cstr(&w, "version", UAR_VERSION);
	uar_jw_close(&w);
	uar_jw_obj(&w, "paths");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		put_path(&w, &name, i);
	for (size_t i = 0; i < UAR_CTL_COUNT; i++)
		if (uar_control_info[i].mode != UAR_CTL_MODE_INTERNAL)
			put_command(&w, &uar_control_info[i]);
	uar_jw_close(&w);
	uar_jw_raw(&w, "components", uar_str_c(components));
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	gate_answer(c, 200, &b);
	uar_buf_fini(&name);
	uar_buf_fini(&b);
}
