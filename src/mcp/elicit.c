/* elicit.c - values of a form, with the defaults that its schema has. */
#include "mcp/elicit.h"

#include "json/jw.h"

uar_err uar_mcp_elicit_accept(const struct uar_json *params, const struct uar_json *values,
			      struct uar_buf *out)
{
	const struct uar_json *schema = uar_json_get(params, UAR_STR("requestedSchema"));
	const struct uar_json *asked = uar_json_get(schema, UAR_STR("properties"));
	struct uar_jw w = uar_jw_begin(out);

	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "action", "accept");
	uar_jw_obj(&w, "content");
	for (const struct uar_json *v = uar_json_first(values); v; v = v->next) {
		uar_jw_key(&w, v->key);
		uar_jw_tree(&w, NULL, v);
	}
	for (const struct uar_json *p = uar_json_first(asked); p; p = p->next) {
		const struct uar_json *usual = uar_json_get(p, UAR_STR("default"));

		if (!usual || uar_json_get(values, p->key))
			continue;
		uar_jw_key(&w, p->key);
		uar_jw_tree(&w, NULL, usual);
	}
	uar_jw_close(&w);
	uar_jw_close(&w);
	return uar_jw_end(&w);
}
