/* mcp_headers.c - arguments of a call that a header repeats (2026-07-28).
 *
 * A tool's input schema marks them with x-mcp-header; what the header Mcp-Param-NAME says must be
 * what the argument is, so that nothing between client and server was shown another value. */
#include "gate/mcp_int.h"

enum { SCHEMA_DEPTH = 8, NAME_BYTES = 128 };

struct check {
	const struct mcp_exchange *x;
	uar_str fault; /* the name of the first header that is wrong */
};

/* The text by which a header has a value; false: values of this kind have none. */
static bool write_value(const struct uar_json *value, struct uar_buf *out)
{
	if (value->kind == UAR_JSON_STRING)
		uar_buf_add_str(out, uar_json_str(value, UAR_STR("")));
	else if (value->kind == UAR_JSON_BOOL || value->kind == UAR_JSON_INT)
		uar_json_write(out, value);
	else
		return false;
	return !out->err;
}

static bool same_number(uar_str header, const struct uar_json *value)
{
	uint64_t n;
	bool negative = header.n > 1 && header.p[0] == '-';

	if (value->kind != UAR_JSON_INT || uar_str_u64(uar_str_from(header, negative), &n) ||
	    n > INT64_MAX)
		return false;
	return value->i == (negative ? -(int64_t)n : (int64_t)n);
}

static bool agrees(const struct mcp_exchange *x, uar_str header, const struct uar_json *value)
{
	bool given = value && value->kind != UAR_JSON_NULL, same;
	struct uar_buf b;
	uar_str text;

	if (!header.p || !given)
		return !header.p && !given;
	if (uar_mcp_header_decode(header, &x->c->arena, &text))
		return false;
	b = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	same = write_value(value, &b) && uar_str_eq(text, uar_buf_str(&b));
	uar_buf_fini(&b);
	return same || same_number(text, value);
}

static void check_object(struct check *k, const struct uar_json *schema,
			 const struct uar_json *value, int depth)
{
	const struct uar_json *all = uar_json_get(schema, UAR_STR("properties"));
	char name[NAME_BYTES];

	for (const struct uar_json *j = uar_json_first(all); j && !k->fault.n; j = j->next) {
		uar_str header = uar_json_text(j, "x-mcp-header");
		const struct uar_json *at = uar_json_get(value, j->key);

		if (header.n && header.n < sizeof name - sizeof "mcp-param-") {
			snprintf(name, sizeof name, "mcp-param-%.*s", UAR_FMT(header));
			if (!agrees(k->x, uar_http_header(k->x->c->r, name), at))
				k->fault = header;
		}
		if (depth < SCHEMA_DEPTH)
			check_object(k, j, at, depth + 1);
	}
}

bool mcp_check_params(struct mcp_exchange *x, const struct uar_json *schema)
{
	struct check k = { .x = x };
	char text[NAME_BYTES + 64];

	if (x->s || x->hybrid)
		return true; /* pipes and sessions have no such headers */
	check_object(&k, schema, uar_json_get(x->m.params, UAR_STR("arguments")), 0);
	if (!k.fault.n)
		return true;
	snprintf(text, sizeof text, "the header Mcp-Param-%.*s must repeat its argument",
		 UAR_FMT(k.fault));
	mcp_answer_error(x, 400, UAR_MCP_HEADER_MISMATCH, text, UAR_STR_NONE);
	return false;
}
