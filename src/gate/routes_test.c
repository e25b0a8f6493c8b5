/* routes_test.c - every row of route.def is found, and nothing else is. */
#include "gate/gate_int.h"

#include "test.h"

static const struct row {
	enum uar_http_method method;
	const char *path;
	route_fn *fn;
	bool open, json;
} rows[] = {
#define ACCESS_OPEN  true
#define ACCESS_TOKEN false
#define BODY_JSON    true
#define BODY_NONE    false
#define R(METHOD, PATH, HANDLER, ACCESS, BODY, DOC)                                                \
	{ UAR_HTTP_##METHOD, PATH, gate_##HANDLER, ACCESS_##ACCESS, BODY_##BODY },
#include "gate/route.def"
#undef R
};

static const struct route *find(enum uar_http_method method, const char *path, uar_str *params,
				bool *known)
{
	static uar_str none[ROUTE_PARAMS];

	memset(none, 0, sizeof none);
	return gate_route(method, uar_str_c(path), params ? params : none, known);
}

/* The path with each ":name" replaced by a value that says which it is. */
static size_t fill(const char *pattern, char *out, size_t size)
{
	size_t n = 0, params = 0;

	for (const char *p = pattern; *p && n + 8 < size;)
		if (*p == ':') {
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
		CHECK(r->fn == rows[i].fn && r->open == rows[i].open && r->json == rows[i].json);
		for (size_t p = 0; p < ROUTE_PARAMS; p++) {
			snprintf(want, sizeof want, "v%%%zu.-", p);
			CHECK_STR(params[p], p < n ? want : "");
		}
	}
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

TEST(other_methods_are_known_but_refused, "")
{
	static const enum uar_http_method methods[] = { UAR_HTTP_PUT, UAR_HTTP_PATCH,
							UAR_HTTP_DELETE, UAR_HTTP_OPTIONS };
	char path[200];
	bool known;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (size_t m = 0; m < ARRAY_LEN(methods); m++) {
			fill(rows[i].path, path, sizeof path);
			CHECK(!find(methods[m], path, NULL, &known));
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
		"/api/sessions/x",
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
		snprintf(near, sizeof near, "%s/", path);
		check_near(near);
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
		{ "/health", "OPTIONS, GET, HEAD" },
		{ "/api/link", "OPTIONS, POST" },
		{ "/api/runs", "OPTIONS, POST, GET, HEAD" },
		{ "/api/runs/x", "OPTIONS, GET, HEAD" },
		{ "/api/runs/x/cancel", "OPTIONS, POST" },
		{ "/nothing", "OPTIONS" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_buf b = uar_buf_make(256);

		gate_route_allow(uar_str_c(cases[i].path), &b);
		CHECK_STR(uar_buf_str(&b), cases[i].want);
		uar_buf_fini(&b);
	}
}
