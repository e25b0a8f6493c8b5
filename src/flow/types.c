/* types.c - the table of the types of nodes, and what their ports take and give. */
#include "flow/flow_int.h"

const char *const uar_flow_value_names[UAR_FLOW_VALUE_COUNT] = {
	[UAR_FLOW_NO] = "none",	      [UAR_FLOW_ANY] = "any",	      [UAR_FLOW_TEXT] = "text",
	[UAR_FLOW_NUMBER] = "number", [UAR_FLOW_BOOLEAN] = "boolean", [UAR_FLOW_LIST] = "list",
	[UAR_FLOW_OBJECT] = "object",
};

/* The same as JSON Schema. */
static const char *const schemas[UAR_FLOW_VALUE_COUNT] = {
	[UAR_FLOW_NO] = "false",
	[UAR_FLOW_ANY] = "{}",
	[UAR_FLOW_TEXT] = "{\"type\":\"string\"}",
	[UAR_FLOW_NUMBER] = "{\"type\":\"number\"}",
	[UAR_FLOW_BOOLEAN] = "{\"type\":\"boolean\"}",
	[UAR_FLOW_LIST] = "{\"type\":\"array\"}",
	[UAR_FLOW_OBJECT] = "{\"type\":\"object\"}",
};

#define JSON(...) #__VA_ARGS__
const struct uar_flow_type_info uar_flow_types[UAR_FLOW_TYPE_COUNT] = {
#define N(TYPE, NAME, TITLE, GROUP, MORE, IN, FIRST, FIRST_TYPE, SECOND, SECOND_TYPE, DOC, CONFIG) \
	[UAR_FLOW_##TYPE] = {                                                                      \
		NAME,                                                                              \
		TITLE,                                                                             \
		GROUP,                                                                             \
		DOC,                                                                               \
		CONFIG,                                                                            \
		UAR_FLOW_MORE_##MORE,                                                              \
		UAR_FLOW_##IN,                                                                     \
		{ { FIRST, UAR_FLOW_##FIRST_TYPE }, { SECOND, UAR_FLOW_##SECOND_TYPE } }           \
	},
#include "flow/node.def"
#undef N
};
#undef JSON

enum uar_flow_type uar_flow_type_parse(uar_str name)
{
	size_t i = 0;

	while (i < UAR_FLOW_TYPE_COUNT && !uar_str_is(name, uar_flow_types[i].name))
		i++;
	return (enum uar_flow_type)i;
}

static void put_port(struct uar_jw *w, const char *name, enum uar_flow_value type, bool many)
{
	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "port", name);
	uar_jw_cstr(w, "type", uar_flow_value_names[type]);
	uar_jw_raw(w, "schema", uar_str_c(schemas[type]));
	if (many)
		uar_jw_bool(w, "many", true);
	uar_jw_close(w);
}

static void put_type(struct uar_jw *w, const struct uar_flow_type_info *t)
{
	static const char *const more[] = { NULL, "inputs", "on_error" };

	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "type", t->name);
	uar_jw_cstr(w, "title", t->title);
	uar_jw_cstr(w, "group", t->group);
	uar_jw_cstr(w, "doc", t->doc);
	uar_jw_raw(w, "config_schema", uar_str_c(t->config));
	uar_jw_arr(w, "inputs");
	if (t->in)
		put_port(w, "in", t->in, true);
	uar_jw_close(w);
	uar_jw_arr(w, "outputs");
	for (size_t i = 0; i < ARRAY_LEN(t->out) && t->out[i].name; i++)
		put_port(w, t->out[i].name, t->out[i].type, false);
	uar_jw_close(w);
	uar_jw_cstr(w, "ports_from", more[t->more]);
	uar_jw_close(w);
}

void uar_flow_write_types(struct uar_jw *w)
{
	uar_jw_arr(w, "node_types");
	for (size_t i = 0; i < UAR_FLOW_TYPE_COUNT; i++)
		put_type(w, &uar_flow_types[i]);
	uar_jw_close(w);
}

/* --- ports ---------------------------------------------------------------------------------- */

uar_str uar_flow_setting(const struct uar_json *config, const char *name)
{
	return uar_json_text(config, name);
}

static enum uar_flow_value of_schema(const struct uar_json *schema)
{
	static const struct {
		const char *name;
		enum uar_flow_value type;
	} rows[] = { { "string", UAR_FLOW_TEXT },   { "integer", UAR_FLOW_NUMBER },
		     { "number", UAR_FLOW_NUMBER }, { "boolean", UAR_FLOW_BOOLEAN },
		     { "array", UAR_FLOW_LIST },    { "object", UAR_FLOW_OBJECT } };
	uar_str type = uar_flow_setting(schema, "type");

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (uar_str_is(type, rows[i].name))
			return rows[i].type;
	return UAR_FLOW_ANY;
}

static enum uar_flow_value of_input(const struct uar_json *inputs, uar_str port)
{
	const struct uar_json *one =
		uar_json_get(uar_json_get(inputs, UAR_STR("properties")), port);

	if (!inputs)
		return uar_str_is(port, "message") ? UAR_FLOW_TEXT : UAR_FLOW_NO;
	return one ? of_schema(one) : UAR_FLOW_NO;
}

/* A text of nothing but one pointer has the type of the value there, which is not known. */
static enum uar_flow_value of_text(uar_str text)
{
	uar_str before, pointer, rest;
	bool has = uar_flow_cut_pointer(uar_str_trim(text), &before, &pointer, &rest);

	return has && !before.n && !rest.n ? UAR_FLOW_ANY : UAR_FLOW_TEXT;
}

static enum uar_flow_value of_template(const struct uar_json *t)
{
	switch (t ? t->kind : UAR_JSON_NULL) {
	case UAR_JSON_NULL: return UAR_FLOW_ANY;
	case UAR_JSON_BOOL: return UAR_FLOW_BOOLEAN;
	case UAR_JSON_INT:
	case UAR_JSON_DOUBLE: return UAR_FLOW_NUMBER;
	case UAR_JSON_STRING: return of_text(t->text);
	case UAR_JSON_ARRAY: return UAR_FLOW_LIST;
	case UAR_JSON_OBJECT: return UAR_FLOW_OBJECT;
	}
	return UAR_FLOW_ANY;
}

/* What the settings make of the first output. */
static enum uar_flow_value refine(const struct uar_flow_node *n, enum uar_flow_value type)
{
	bool lenient = uar_str_is(uar_flow_setting(n->config, "on_error"), "continue");

	if (n->type == UAR_FLOW_TRANSFORM)
		return of_template(uar_json_get(n->config, UAR_STR("value")));
	if (n->type == UAR_FLOW_MODEL || n->type == UAR_FLOW_AGENT)
		return lenient || uar_str_is(uar_flow_setting(n->config, "output"), "json")
			       ? UAR_FLOW_ANY
			       : type;
	return type;
}

enum uar_flow_value uar_flow_port_type(const struct uar_json *inputs, const struct uar_flow_node *n,
				       uar_str port)
{
	const struct uar_flow_type_info *t = &uar_flow_types[n->type];

	for (size_t i = 0; i < ARRAY_LEN(t->out) && t->out[i].name; i++)
		if (uar_str_is(port, t->out[i].name))
			return i ? t->out[i].type : refine(n, t->out[i].type);
	if (t->more == UAR_FLOW_MORE_INPUTS)
		return of_input(inputs, port);
	if (t->more == UAR_FLOW_MORE_ON_ERROR && uar_str_is(port, "error") &&
	    uar_str_is(uar_flow_setting(n->config, "on_error"), "port"))
		return UAR_FLOW_OBJECT;
	return UAR_FLOW_NO;
}
