/* routes.c - the rows of route.def, found by method and path. */
#include "gate/gate_int.h"

enum { ACCESS_TOKEN, ACCESS_OPEN };
enum { BODY_NONE, BODY_JSON };

static const struct route routes[] = {
#define R(METHOD, PATH, HANDLER, ACCESS, BODY, DOC)                                                \
	{ UAR_HTTP_##METHOD, PATH, gate_##HANDLER, ACCESS_##ACCESS == ACCESS_OPEN,                 \
	  BODY_##BODY == BODY_JSON },
#include "gate/route.def"
#undef R
};

/* Segment by segment; a ":name" takes any non-empty one. */
static bool matches(const char *pattern, uar_str path, uar_str *params)
{
	uar_str want = uar_str_c(pattern), got = path;
	size_t n = 0;

	if (uar_str_eq(want, got))
		return true;
	if (!got.n || got.p[0] != '/')
		return false;
	while (want.n && got.n) {
		uar_str w = uar_str_cut(uar_str_from(want, 1), '/', &want);
		uar_str p = uar_str_cut(uar_str_from(got, 1), '/', &got);
		bool more_want = w.p + w.n < pattern + strlen(pattern);
		bool more_got = p.p + p.n < path.p + path.n;

		if (w.n && w.p[0] == ':') {
			if (p.n == 0 || n == ROUTE_PARAMS)
				return false;
			params[n++] = p;
		} else if (!uar_str_eq(w, p)) {
			return false;
		}
		if (more_want != more_got)
			return false;
		if (!more_want)
			return true;
		/* uar_str_cut dropped the slash: step back onto it. */
		want = uar_str_n(w.p + w.n, (size_t)(pattern + strlen(pattern) - (w.p + w.n)));
		got = uar_str_n(p.p + p.n, (size_t)(path.p + path.n - (p.p + p.n)));
	}
	return false;
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

const char *gate_route_allow(uar_str path, struct uar_buf *out)
{
	uar_str params[ROUTE_PARAMS];

	uar_buf_add_str(out, UAR_STR("OPTIONS"));
	for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
		if (!matches(routes[i].path, path, params))
			continue;
		uar_buf_printf(out, ", %s", uar_http_method_name(routes[i].method));
		if (routes[i].method == UAR_HTTP_GET)
			uar_buf_add_str(out, UAR_STR(", HEAD"));
	}
	return out->p ? out->p : "";
}
