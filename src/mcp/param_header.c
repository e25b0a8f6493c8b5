/* param_header.c - finds what an input schema calls headers, and writes them for a call. */
#include "mcp/param_header.h"

#include "mcp/era.h"

struct names {
	uar_str at[UAR_LIMIT_MCP_ARGUMENTS];
	size_t n;
	bool wrong;
};

static const struct uar_json *annotation(const struct uar_json *schema)
{
	return uar_json_get(schema, UAR_STR("x-mcp-header"));
}

static bool is_token(uar_str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] <= 0x20 || s.p[i] > 0x7e || strchr("()<>@,;:\\\"/[]?={}", s.p[i]))
			return false;
	return s.n > 0 && s.n <= 128;
}

static bool is_plain_type(const struct uar_json *schema)
{
	uar_str type = uar_json_text(schema, "type");

	return uar_str_is(type, "string") || uar_str_is(type, "integer") ||
	       uar_str_is(type, "boolean");
}

static void take_name(struct names *names, const struct uar_json *schema)
{
	uar_str name = uar_json_str(annotation(schema), UAR_STR(""));

	if (!is_token(name) || !is_plain_type(schema) || names->n == ARRAY_LEN(names->at)) {
		names->wrong = true;
		return;
	}
	for (size_t i = 0; i < names->n; i++)
		names->wrong |= uar_str_eq_nocase(names->at[i], name);
	names->at[names->n++] = name;
}

/* Values are no schemas: what stands in them says nothing. */
static bool is_value(uar_str key)
{
	return uar_str_is(key, "enum") || uar_str_is(key, "const") || uar_str_is(key, "default") ||
	       uar_str_is(key, "examples");
}

static void visit(struct names *names, const struct uar_json *schema, bool reached)
{
	if (schema->kind == UAR_JSON_OBJECT && annotation(schema)) {
		if (reached)
			take_name(names, schema);
		else
			names->wrong = true;
	}
	for (const struct uar_json *j = uar_json_first(schema); j && !names->wrong; j = j->next) {
		bool properties =
			schema->kind == UAR_JSON_OBJECT && uar_str_is(j->key, "properties");

		if (schema->kind == UAR_JSON_OBJECT && is_value(j->key))
			continue;
		if (!properties) {
			visit(names, j, false);
			continue;
		}
		for (const struct uar_json *p = uar_json_first(j); p; p = p->next)
			visit(names, p, reached);
	}
}

bool uar_mcp_param_headers_valid(const struct uar_json *input_schema)
{
	struct names names = { 0 };

	for (const struct uar_json *j = uar_json_first(input_schema); j && !names.wrong;
	     j = j->next) {
		if (!uar_str_is(j->key, "properties")) {
			if (!is_value(j->key))
				visit(&names, j, false);
			continue;
		}
		for (const struct uar_json *p = uar_json_first(j); p; p = p->next)
			visit(&names, p, true);
	}
	return !names.wrong && !annotation(input_schema);
}

struct lines {
	struct uar_arena *a;
	const char **at;
	size_t n;
	uar_err err;
};

static void add_line(struct lines *l, uar_str name, const struct uar_json *value)
{
	uar_str text = value->kind == UAR_JSON_BOOL
			       ? (value->b ? UAR_STR("true") : UAR_STR("false"))
			       : value->text;
	uar_str line, encoded;

	if (value->kind == UAR_JSON_NULL || value->kind == UAR_JSON_ARRAY ||
	    value->kind == UAR_JSON_OBJECT || l->n == UAR_LIMIT_MCP_ARGUMENTS)
		return;
	encoded = uar_mcp_header_encode(text, l->a);
	/* libcurl leaves a header out that has no value, unless it ends with a semicolon. */
	line = !encoded.p   ? UAR_STR_NONE
	       : !encoded.n ? uar_arena_printf(l->a, "Mcp-Param-%.*s;", UAR_FMT(name))
			    : uar_arena_printf(l->a, "Mcp-Param-%.*s: %.*s", UAR_FMT(name),
					       UAR_FMT(encoded));
	if (line.p)
		l->at[l->n++] = line.p;
	else
		l->err = UAR_ENOMEM;
}

static void collect(struct lines *l, const struct uar_json *schema, const struct uar_json *args)
{
	const struct uar_json *all = uar_json_get(schema, UAR_STR("properties"));

	for (const struct uar_json *p = uar_json_first(all); p && !l->err; p = p->next) {
		const struct uar_json *value = uar_json_get(args, p->key);
		uar_str name = uar_json_str(annotation(p), UAR_STR(""));

		if (value && name.n)
			add_line(l, name, value);
		else if (value)
			collect(l, p, value);
	}
}

uar_err uar_mcp_param_headers(uar_str input_schema, uar_str arguments, struct uar_arena *a,
			      const char *const **out)
{
	struct lines l = { .a = a };
	const struct uar_json *schema = NULL, *args = NULL;

	*out = NULL;
	if (uar_json_parse(input_schema, NULL, a, &schema, NULL) ||
	    uar_json_parse(arguments, NULL, a, &args, NULL))
		return UAR_OK; /* nothing can be repeated */
	l.at = uar_arena_alloc(a, (UAR_LIMIT_MCP_ARGUMENTS + 1) * sizeof *l.at);
	if (!l.at)
		return UAR_ENOMEM;
	collect(&l, schema, args);
	if (l.n)
		*out = l.at;
	return l.err;
}
