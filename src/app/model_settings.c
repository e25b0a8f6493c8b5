/* model_settings.c - reads the settings `routing` and `prices`. */
#include "app/model_settings.h"

#include <stdio.h>

#include "json/json.h"
#include "model/limits.h"

/* NULL: nothing is set, or an error. */
static const struct uar_json *parse_object(const char *setting, uar_str json, struct uar_arena *a,
					   struct uar_error *error)
{
	const struct uar_json *root = NULL;

	if (!uar_str_trim(json).n)
		return NULL;
	if (uar_json_parse(json, NULL, a, &root, NULL) || root->kind != UAR_JSON_OBJECT) {
		uar_error_set(error, UAR_ECONFIG, "%s: expected a JSON object", setting);
		return NULL;
	}
	return root;
}

uar_err uar_routing_setting_read(uar_str json, struct uar_arena *a, struct uar_model_policy *out,
				 struct uar_error *error)
{
	struct uar_error found = { 0 };
	const struct uar_json *root;

	*out = (struct uar_model_policy){ .count = 0 };
	error->code = UAR_OK;
	root = parse_object("routing", json, a, error);
	if (!root || !root->count)
		return error->code;
	if (uar_model_policy_read(root, out, &found))
		return uar_error_set(error, UAR_ECONFIG, "routing: %s", uar_error_text(&found));
	return UAR_OK;
}

static uar_err read_price(const struct uar_json *j, struct uar_model_price *out,
			  struct uar_error *error)
{
	static const struct uar_json_field fields[] = {
		{ "input", UAR_FIELD_DOUBLE, true, offsetof(struct uar_model_price, input) },
		{ "cached", UAR_FIELD_DOUBLE, false, offsetof(struct uar_model_price, cached) },
		{ "output", UAR_FIELD_DOUBLE, true, offsetof(struct uar_model_price, output) },
	};
	struct uar_error found = { 0 };

	*out = (struct uar_model_price){ .name = j->key };
	if (j->kind != UAR_JSON_OBJECT)
		uar_error_set(&found, UAR_EINVALID, "write an object with input and output");
	else if (!uar_json_read(j, fields, ARRAY_LEN(fields), true, out, &found) &&
		 (out->input < 0 || out->cached < 0 || out->output < 0))
		uar_error_set(&found, UAR_EINVALID, "a price is not negative");
	if (!found.code)
		return UAR_OK;
	return uar_error_set(error, UAR_ECONFIG, "prices: /%.*s: %s",
			     UAR_FMT(uar_str_utf8_prefix(j->key, 60)), uar_error_text(&found));
}

uar_err uar_prices_setting_read(uar_str json, struct uar_arena *a, struct uar_price_settings *out,
				struct uar_error *error)
{
	struct uar_model_price *at;
	const struct uar_json *root;
	size_t n = 0;
	uar_err e = UAR_OK;

	*out = (struct uar_price_settings){ NULL, 0 };
	error->code = UAR_OK;
	root = parse_object("prices", json, a, error);
	if (!root)
		return error->code;
	if (root->count > UAR_LIMIT_PRICES)
		return uar_error_set(error, UAR_ECONFIG, "prices: these are too many");
	at = uar_arena_alloc(a, (root->count + 1) * sizeof *at);
	if (!at)
		return uar_error_set(error, UAR_ENOMEM, "out of memory");
	for (const struct uar_json *j = root->first; j && !e; j = j->next)
		e = read_price(j, &at[n++], error);
	*out = (struct uar_price_settings){ at, n };
	return e;
}
