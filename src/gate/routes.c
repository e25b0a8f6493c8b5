/* routes.c - the rows of route.def, found by method and path. */
#include "gate/gate_int.h"

enum { ACCESS_TOKEN, ACCESS_OPEN, ACCESS_RUN, ACCESS_UPLOAD };
/* Whose token will do as well. */
#define GRANT_TOKEN  NULL
#define GRANT_OPEN   NULL
#define GRANT_RUN    "run"
#define GRANT_UPLOAD "upload"

static const struct route routes[] = {
#define R(METHOD, PATH, HANDLER, ACCESS, BODY, QUERY, DOC)                                         \
	{ UAR_HTTP_##METHOD, PATH,  gate_##HANDLER, ACCESS_##ACCESS == ACCESS_OPEN,                \
	  GATE_BODY_##BODY,  QUERY, GRANT_##ACCESS },
#include "gate/route.def"
#undef R
};

/* Byte by byte, since most routes differ early; a ":name" takes any non-empty
 * segment. */
static bool matches(const char *want, uar_str path, uar_str *params)
{
	size_t n = 0, at = 0;

	while (*want) {
		uar_str rest;
		size_t len;

		if (*want != ':') {
			if (at >= path.n || path.p[at++] != *want++)
				return false;
			continue;
		}
		rest = uar_str_from(path, at);
		len = uar_str_find(rest, '/');
		if (len == 0 || n == ROUTE_PARAMS)
			return false;
		params[n++] = uar_str_n(rest.p, len);
		at += len;
		want += strcspn(want, "/");
	}
	return at == path.n;
}

const struct route *gate_route(enum uar_http_method method, uar_str path, uar_str *params,
			       bool *out_path_known)
{
	*out_path_known = false;
	for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
		if (!matches(routes[i].path, path, params))
			continue;
		*out_path_known = true;
		if (routes[i].method == method ||
		    (method == UAR_HTTP_HEAD && routes[i].method == UAR_HTTP_GET))
			return &routes[i];
	}
	return NULL;
}

void gate_route_allow(uar_str path, struct uar_buf *out)
{
	bool all = uar_str_is(path, "*"), taken[UAR_HTTP_METHOD_COUNT] = { [UAR_HTTP_OPTIONS] = 1 };
	uar_str params[ROUTE_PARAMS];
	const char *comma = "";

	for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
		if (!all && !matches(routes[i].path, path, params))
			continue;
		taken[routes[i].method] = true;
		if (routes[i].method == UAR_HTTP_GET)
			taken[UAR_HTTP_HEAD] = true;
	}
	for (int m = 0; m < UAR_HTTP_METHOD_COUNT; m++)
		if (taken[m]) {
			uar_buf_printf(out, "%s%s", comma, uar_http_method_name(m));
			comma = ", ";
		}
}
