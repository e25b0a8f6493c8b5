/* definition_parts.c - the parts of a definition that other rooms understand: its HTTP tools and
 * its routing policy are read as a run would read them. */
#include "app/definition_parts.h"

#include "base/file.h"
#include "json/limits.h"
#include "model/policy.h"

static uar_err name_part(uar_err e, const char *part, struct uar_error *error)
{
	struct uar_error as;

	if (!e || e == UAR_ENOMEM || !error)
		return e;
	as = *error;
	(void)uar_error_set(error, UAR_ESCHEMA, "%s", uar_error_text(&as));
	uar_error_where(error, "%s%.120s", part, as.where);
	return UAR_ESCHEMA;
}

uar_err uar_definition_check_parts(const struct uar_definition *d, struct uar_error *error)
{
	const struct uar_json *tools = uar_json_get(d->json, UAR_STR("tools"));
	struct uar_http_tools_options o = { .http = uar_json_get(tools, UAR_STR("http")),
					    .openapi = uar_json_get(tools, UAR_STR("openapi")) };
	struct uar_tools *source = NULL;
	struct uar_model_policy policy;
	uar_err e = UAR_OK;

	if (o.http || o.openapi)
		e = uar_http_tools_create(&o, &source, error);
	uar_tools_destroy(source);
	if (e)
		return name_part(e, "/tools", error);
	if (d->routing.rules)
		e = uar_model_policy_read(d->routing.rules, &policy, error);
	return name_part(e, "/policy/provider", error);
}

static uar_err read_tools(uar_str text, struct uar_http_tools_options *o, struct uar_tools **out,
			  struct uar_error *error)
{
	static const struct uar_json_field fields[] = {
		{ "http", UAR_FIELD_ARRAY, false, offsetof(struct uar_http_tools_options, http) },
		{ "openapi", UAR_FIELD_ARRAY, false,
		  offsetof(struct uar_http_tools_options, openapi) },
	};
	const struct uar_json *j = NULL;
	struct uar_arena arena = { 0 };
	uar_err e = uar_json_parse(text, NULL, &arena, &j, error);

	if (!e)
		e = uar_json_read(j, fields, ARRAY_LEN(fields), true, o, error);
	if (!e)
		e = uar_http_tools_create(o, out, error);
	uar_arena_fini(&arena);
	return e;
}

uar_err uar_tools_file_read(const char *path, struct uar_http_tools_options *o,
			    struct uar_tools **out, struct uar_error *error)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	struct uar_error why = { 0 };
	uar_err e = uar_file_read(path, &text, &why);

	if (!e)
		e = read_tools(uar_buf_str(&text), o, out, &why);
	uar_buf_fini(&text);
	if (!e)
		return UAR_OK;
	return uar_error_set(error, e, "tools_file %s%s%s: %s", path, why.where[0] ? ", at " : "",
			     why.where, uar_error_text(&why));
}
