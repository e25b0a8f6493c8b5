/* routes_test.c - every row of route.def is found, and nothing else is. */
#include "gate/gate_int.h"

#include "test.h"

static const struct row {
	enum uar_http_method method;
	const char *path;
	route_fn *fn;
	enum gate_body body;
	const char *query;
} rows[] = {
#define R(METHOD, PATH, HANDLER, ACCESS, BODY, QUERY, DOC)                                         \
	{ UAR_HTTP_##METHOD, PATH, gate_##HANDLER, GATE_BODY_##BODY, QUERY },
#include "gate/route.def"
#undef R
};

static const struct route *find(enum uar_http_method method, const char *path, uar_str *params,
				bool *known)
{
	uar_str none[ROUTE_PARAMS] = { 0 };
	struct gate_routes routes;
	const struct route *found;

	CHECK_INT(gate_routes_init(&routes), UAR_OK);
	found = gate_route(&routes, method, uar_str_c(path), params ? params : none, known);
	gate_routes_fini(&routes); /* rows are static */
	return found;
}

/* The path with each ":name" replaced by a value that says which it is. */
static size_t fill(const char *pattern, char *out, size_t size)
{
	size_t n = 0, params = 0;

	for (const char *p = pattern; *p && n + 8 < size;)
		if (*p == ':' && p > pattern && p[-1] == '/') {
			n += (size_t)snprintf(out + n, size - n, "v%%%zu.-", params++);
			while (*p && *p != '/')
				p++;
		} else {
			out[n++] = *p++;
		}
	out[n] = 0;
	return params;
}

TEST(every_route_is_found_with_its_parameters, "")
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uar_str params[ROUTE_PARAMS] = { 0 };
		const struct route *r;
		char path[200], want[16];
		bool known;
		size_t n = fill(rows[i].path, path, sizeof path);

		r = find(rows[i].method, path, params, &known);
		REQUIRE(r && known);
		CHECK(r->fn == rows[i].fn && r->body == rows[i].body);
		for (size_t p = 0; p < ROUTE_PARAMS; p++) {
			snprintf(want, sizeof want, "v%%%zu.-", p);
			CHECK_STR(params[p], p < n ? want : "");
		}
	}
}

/* Written by hand, so that a wrong access in route.def does not change what is expected. */
static const struct access {
	enum uar_http_method method;
	const char *path;
	const char *grant; /* NULL: open to everybody */
} exceptions[] = {
	{ UAR_HTTP_GET, "/", NULL },
	{ UAR_HTTP_GET, "/ui", NULL },
	{ UAR_HTTP_GET, "/ui/:view", NULL },
	{ UAR_HTTP_GET, "/ui/:view/:id", NULL },
	{ UAR_HTTP_GET, "/ui/:view/:id/:part", NULL },
	{ UAR_HTTP_GET, "/page/:file", NULL },
	{ UAR_HTTP_GET, "/health", NULL },
	{ UAR_HTTP_POST, "/api/link", NULL },
	{ UAR_HTTP_GET, "/.well-known/agent-card.json", NULL },
	{ UAR_HTTP_GET, "/.well-known/agent.json", NULL },
	{ UAR_HTTP_GET, "/a2a/:agent_id/.well-known/agent-card.json", NULL },
	{ UAR_HTTP_GET, "/a2a/:agent_id/.well-known/agent.json", NULL },
	{ UAR_HTTP_GET, "/runs/:run_id/export/:item_id/content", "run" },
	{ UAR_HTTP_GET, "/runs/:run_id/blobs/:blob_id", "run" },
	{ UAR_HTTP_GET, "/channels/runs", "run" },
	{ UAR_HTTP_GET, "/channels/export", "run" },
	{ UAR_HTTP_GET, "/api/mcp/oauth/callback", NULL }, /* `state` admits, once */
	{ UAR_HTTP_PUT, "/uploads/:upload_id", "upload" },
};

static const struct access *find_exception(const struct row *row)
{
	for (size_t i = 0; i < ARRAY_LEN(exceptions); i++)
		if (exceptions[i].method == row->method &&
		    strcmp(exceptions[i].path, row->path) == 0)
			return &exceptions[i];
	return NULL;
}

TEST(all_routes_need_the_token_but_those_listed_here, "SEC-01")
{
	size_t seen = 0;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct access *x = find_exception(&rows[i]);
		const struct route *r;
		char path[200];
		bool known;

		fill(rows[i].path, path, sizeof path);
		r = find(rows[i].method, path, NULL, &known);
		REQUIRE(r);
		CHECK_MSG(r->open == (x && !x->grant), "%s", path);
		CHECK_MSG(!r->grant == !(x && x->grant), "%s", path);
		if (r->grant && x && x->grant)
			CHECK_STR(uar_str_c(r->grant), x->grant);
		seen += x != NULL;
	}
	CHECK_INT(seen, ARRAY_LEN(exceptions));
}

TEST(head_is_answered_where_get_is, "")
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char path[200];
		bool known;
		const struct route *r;

		fill(rows[i].path, path, sizeof path);
		r = find(UAR_HTTP_HEAD, path, NULL, &known);
		CHECK(known);
		if (rows[i].method == UAR_HTTP_GET)
			CHECK(r && r->fn == rows[i].fn);
	}
}

static bool has_row(enum uar_http_method method, const char *path)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].method == method && strcmp(rows[i].path, path) == 0)
			return true;
	return false;
}

TEST(other_methods_are_known_but_refused, "")
{
	static const enum uar_http_method methods[] = { UAR_HTTP_PUT, UAR_HTTP_PATCH,
							UAR_HTTP_DELETE, UAR_HTTP_OPTIONS };
	char path[200];
	bool known;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (size_t m = 0; m < ARRAY_LEN(methods); m++) {
			fill(rows[i].path, path, sizeof path);
			CHECK(!find(methods[m], path, NULL, &known) ==
			      !has_row(methods[m], rows[i].path));
			CHECK(known);
		}
}

static void check_near(const char *path)
{
	bool known = true;

	for (int m = 0; m < UAR_HTTP_METHOD_COUNT; m++) {
		CHECK_MSG(!find((enum uar_http_method)m, path, NULL, &known), "%s", path);
		CHECK_MSG(!known, "%s", path);
	}
}

TEST(near_misses_are_not_found, "")
{
	static const char *const paths[] = {
		"",
		"//",
		"health",
		"/api",
		"/api/",
		"/API/runs",
		"/api//runs",
		"/api/runs/",
		"/api/runs//stream",
		"/api/runs//",
		"/api/runs/x/",
		"/api/runs/x/stream/",
		"/api/runs/x/streams",
		"/api/runs/x/y/stream",
		"/api/runs/:run_id/x",
		"/api/sessions/x/threads",
		"/api/sessions//events",
		"/api/fixtures/x",
		"/health/x",
		"xhealth",
		"xapi/runs/y",
		"*",
		"/healthx",
		"/health%2f",
	};

	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		check_near(paths[i]);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char path[200], near[210];

		fill(rows[i].path, path, sizeof path);
		snprintf(near, sizeof near, "%s/", rows[i].path);
		if (!has_row(UAR_HTTP_POST, near)) {
			snprintf(near, sizeof near, "%s/", path);
			check_near(near);
		}
		snprintf(near, sizeof near, "%s/more", path + 1);
		check_near(near);
		check_near(path + 1); /* without its first slash */
	}
}

TEST(allow_names_what_a_path_takes, "")
{
	static const struct {
		const char *path, *want;
	} cases[] = {
		{ "/health", "GET, HEAD, OPTIONS" },
		{ "/api/link", "POST, OPTIONS" },
		{ "/api/runs", "GET, HEAD, POST, OPTIONS" },
		{ "/api/runs/x", "GET, HEAD, OPTIONS" },
		{ "/api/runs/x/cancel", "POST, OPTIONS" },
		{ "/nothing", "OPTIONS" },
		{ "/uploads/x", "PUT, OPTIONS" },
		{ "*", "GET, HEAD, POST, PUT, DELETE, OPTIONS" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_buf b = uar_buf_make(256);
		struct gate_routes routes;

		REQUIRE(gate_routes_init(&routes) == UAR_OK);
		gate_route_allow(&routes, uar_str_c(cases[i].path), &b);
		CHECK_STR(uar_buf_str(&b), cases[i].want);
		gate_routes_fini(&routes);
		uar_buf_fini(&b);
	}
}

static uar_err query(const struct route *route, const char *text, struct uar_error *error)
{
	struct uar_arena arena;
	struct uar_http_request r = { .query = uar_str_c(text), .arena = &arena };
	uar_err e;

	uar_arena_init(&arena, 0);
	*error = (struct uar_error){ 0 };
	e = gate_check_query(route, &r, error);
	uar_arena_fini(&arena);
	return e;
}

/* Each route: every name of its own alone, all of them at once, none twice, no other. */
TEST(a_route_takes_its_own_query_names_and_no_other, "ERR-05")
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct route route = { .query = rows[i].query };
		struct uar_buf all = uar_buf_make(4096);
		uar_str names = uar_str_c(rows[i].query);
		struct uar_error error;
		char text[200];

		CHECK_INT(query(&route, "", &error), UAR_OK);
		CHECK_INT(query(&route, "&&", &error), UAR_OK);
		if (uar_str_is(names, "*")) { /* the page's own: any, once each */
			CHECK_INT(query(&route, "colour=1", &error), UAR_OK);
			CHECK_INT(query(&route, "colour=1&colour=2", &error), UAR_EINVALID);
			uar_buf_fini(&all);
			continue;
		}
		CHECK_INT(query(&route, "colour=1", &error), UAR_EINVALID);
		CHECK_STR(uar_str_c(error.where), "?colour");
		while (names.n) {
			uar_str name = uar_str_cut(names, ' ', &names);

			uar_buf_printf(&all, "%.*s=%%c3%%a4&", UAR_FMT(name));
			snprintf(text, sizeof text, "%.*s=1&%.*s", UAR_FMT(name), UAR_FMT(name));
			CHECK_INT(query(&route, text, &error), UAR_EINVALID);
			snprintf(text, sizeof text, "%.*s=%%f", UAR_FMT(name));
			CHECK_INT(query(&route, text, &error), UAR_EINVALID);
			snprintf(text, sizeof text, "%.*s=%%ff", UAR_FMT(name));
			CHECK_INT(query(&route, text, &error), UAR_EINVALID);
			CHECK(error.where[0] == '?' &&
			      strncmp(error.where + 1, name.p, name.n) == 0);
		}
		CHECK_INT(query(&route, all.p ? all.p : "", &error), UAR_OK);
		uar_buf_fini(&all);
	}
}
