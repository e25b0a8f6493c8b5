/* routes.c - the rows of route.def, found by method and path. */
#include "gate/gate_int.h"

enum { ACCESS_TOKEN, ACCESS_OPEN, ACCESS_RUN };

static const struct route routes[] = {
#define R(METHOD, PATH, HANDLER, ACCESS, BODY, QUERY, DOC)                                         \
	{ UAR_HTTP_##METHOD,                                                                       \
	  PATH,                                                                                    \
	  gate_##HANDLER,                                                                          \
	  ACCESS_##ACCESS == ACCESS_OPEN,                                                          \
	  GATE_BODY_##BODY,                                                                        \
	  QUERY,                                                                                   \
	  ACCESS_##ACCESS == ACCESS_RUN },
#include "gate/route.def"
#undef R
};

/* Takes "/segment" off the front; false when there is none. */
static bool take_segment(uar_str *rest, uar_str *out)
{
	uar_str from = uar_str_from(*rest, 1);
	size_t n = uar_str_find(from, '/');

	if (!rest->n || rest->p[0] != '/')
		return false;
	*out = uar_str_n(from.p, n);
	*rest = uar_str_from(from, n);
	return true;
}

/* Segment by segment; a ":name" takes any non-empty one. */
static bool matches(const char *pattern, uar_str path, uar_str *params)
{
	uar_str want = uar_str_c(pattern), w, p;
	size_t n = 0;

	while (take_segment(&want, &w)) {
		if (!take_segment(&path, &p))
			return false;
		if (!w.n || w.p[0] != ':') {
			if (!uar_str_eq(w, p))
				return false;
		} else if (p.n && n < ROUTE_PARAMS) {
			params[n++] = p;
		} else {
			return false;
		}
	}
	return path.n == 0;
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
