/* routes.c - the rows of route.def as a tree of path segments, found by method and path. */
#include "gate/gate_int.h"
#include "gate/route_access.h"

#include <assert.h>

/* What a credential has to be for. */
#define SCOPE_TOKEN(METHOD)   (UAR_HTTP_##METHOD == UAR_HTTP_GET ? GATE_SCOPE_READ : GATE_SCOPE_RUN)
#define SCOPE_OPEN(METHOD)    0
#define SCOPE_ANY(METHOD)     0
#define SCOPE_RUN(METHOD)     GATE_SCOPE_READ
#define SCOPE_UPLOAD(METHOD)  GATE_SCOPE_RUN
#define SCOPE_READ(METHOD)    GATE_SCOPE_READ
#define SCOPE_ANSWER(METHOD)  GATE_SCOPE_ANSWER
#define SCOPE_DEFINE(METHOD)  GATE_SCOPE_DEFINE
#define SCOPE_METRICS(METHOD) GATE_SCOPE_METRICS
#define SCOPE_ADMIN(METHOD)   GATE_SCOPE_ADMIN

static const struct route routes[] = {
#define R(METHOD, PATH, HANDLER, ACCESS, BODY, QUERY, DOC)                                         \
	{ UAR_HTTP_##METHOD,                                                                       \
	  PATH,                                                                                    \
	  gate_##HANDLER,                                                                          \
	  GATE_OPEN_##ACCESS,                                                                      \
	  GATE_BODY_##BODY,                                                                        \
	  SCOPE_##ACCESS(METHOD),                                                                  \
	  QUERY,                                                                                   \
	  GATE_TOKEN_OF_##ACCESS },
#include "gate/route.def"
#undef R
};

/* What stands between two slashes: the rows that end here, and what may follow. */
struct segment {
	uar_str text;
	bool any;   /* a ":name": takes whatever is not empty */
	bool known; /* a row ends here */
	struct segment *below, *next;
	const struct route *rows[UAR_HTTP_METHOD_COUNT];
};

/* Cuts the first segment off a path, which begins with its slash. */
static uar_str cut_segment(uar_str *path)
{
	uar_str text = uar_str_n(path->p + 1, path->n - 1);

	text.n = uar_str_find(text, '/');
	*path = uar_str_from(*path, text.n + 1);
	return text;
}

/* --- the tree ------------------------------------------------------------------ */

/* The segment below `s` for this part of a row; a new one when there is none. */
static struct segment *grow(struct gate_routes *r, struct segment *s, uar_str text)
{
	struct segment **at = &s->below;
	bool any = text.n && text.p[0] == ':';

	for (; *at; at = &(*at)->next) {
		/* Else a search would have to come back to try the other. */
		assert((*at)->any == any && "names and a parameter in the same place");
		if (any || uar_str_eq((*at)->text, text))
			return *at;
	}
	*at = uar_arena_alloc(&r->arena, sizeof **at);
	if (*at) {
		(*at)->text = text;
		(*at)->any = any;
	}
	return *at;
}

static bool add(struct gate_routes *r, const struct route *row)
{
	uar_str path = uar_str_c(row->path);
	struct segment *s = r->root;

	while (s && path.n)
		s = grow(r, s, cut_segment(&path));
	if (!s)
		return false;
	s->known = true;
	s->rows[row->method] = row;
	if (row->method == UAR_HTTP_GET)
		s->rows[UAR_HTTP_HEAD] = row;
	return true;
}

uar_err gate_routes_init(struct gate_routes *r)
{
	uar_arena_init(&r->arena, 0);
	r->root = uar_arena_alloc(&r->arena, sizeof *r->root);
	for (size_t i = 0; r->root && i < ARRAY_LEN(routes); i++)
		if (!add(r, &routes[i]))
			return UAR_ENOMEM;
	return r->root ? UAR_OK : UAR_ENOMEM;
}

void gate_routes_fini(struct gate_routes *r)
{
	uar_arena_fini(&r->arena);
}

/* --- the search ------------------------------------------------------------------ */

static const struct segment *below(const struct segment *s, uar_str text)
{
	for (s = s->below; s; s = s->next)
		if (s->any ? text.n > 0 : uar_str_eq(s->text, text))
			break;
	return s;
}

/* NULL: no row has that path. */
static const struct segment *find(const struct gate_routes *r, uar_str path, uar_str *params)
{
	const struct segment *s = path.n && path.p[0] == '/' ? r->root : NULL;
	size_t n = 0;

	while (s && path.n) {
		uar_str text = cut_segment(&path);

		s = below(s, text);
		if (s && s->any && n < ROUTE_PARAMS)
			params[n++] = text;
	}
	return s && s->known ? s : NULL;
}

const struct route *gate_route(const struct gate_routes *r, enum uar_http_method method,
			       uar_str path, uar_str *params, bool *out_path_known)
{
	const struct segment *s = find(r, path, params);

	*out_path_known = s != NULL;
	return s ? s->rows[method] : NULL;
}

void gate_route_allow(const struct gate_routes *r, uar_str path, struct uar_buf *out)
{
	bool all = uar_str_is(path, "*"), taken[UAR_HTTP_METHOD_COUNT] = { [UAR_HTTP_OPTIONS] = 1 };
	uar_str params[ROUTE_PARAMS];
	const struct segment *s = find(r, path, params);
	const char *comma = "";

	for (size_t i = 0; all && i < ARRAY_LEN(routes); i++)
		taken[routes[i].method] = true;
	for (int m = 0; s && m < UAR_HTTP_METHOD_COUNT; m++)
		taken[m] |= s->rows[m] != NULL;
	taken[UAR_HTTP_HEAD] = taken[UAR_HTTP_GET];
	for (int m = 0; m < UAR_HTTP_METHOD_COUNT; m++)
		if (taken[m]) {
			uar_buf_printf(out, "%s%s", comma, uar_http_method_name(m));
			comma = ", ";
		}
}
