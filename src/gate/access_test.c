/* access_test.c - which names, origins and tokens are let in. */
#include "gate/gate_int.h"

#include "test.h"

static const char *const hosts[] = { "uar.example", "box.lan:8443" };
static const char *const origins[] = { "https://app.example", "null" };

static const struct uar_gate gate = { .o = { .token = "s3cret-token",
					     .allowed_hosts = hosts,
					     .allowed_host_count = ARRAY_LEN(hosts),
					     .allowed_origins = origins,
					     .allowed_origin_count = ARRAY_LEN(origins) } };

/* NULL: the header is not there. */
static struct uar_http_request request(const char *host, const char *origin,
				       const char *authorization)
{
	return (struct uar_http_request){
		.fields = { [UAR_HTTP_HOST] = uar_str_c(host),
			    [UAR_HTTP_ORIGIN] = uar_str_c(origin),
			    [UAR_HTTP_AUTHORIZATION] = uar_str_c(authorization) },
	};
}

TEST(only_names_we_go_by_are_served, "")
{
	static const struct {
		const char *host;
		bool good;
	} cases[] = {
		{ NULL, true },
		{ "localhost", true },
		{ "LocalHost:8080", true },
		{ "127.0.0.1", true },
		{ "127.0.0.1:1", true },
		{ "[::1]", true },
		{ "[::1]:9", true },
		{ "uar.example", true },
		{ "UAR.example:443", true },
		{ "box.lan:8443", true },
		{ "box.lan", false },
		{ "box.lan:8444", false },
		{ "localhost.", false },
		{ "localhost.evil.example", false },
		{ "evil.example", false },
		{ "evil.example:localhost", false },
		{ "127.0.0.2", false },
		{ "127.0.0.1.evil.example", false },
		{ "[::1", false },
		{ "[::2]", false },
		{ "[::1]evil.example", false },
		{ "[::1]:9:9", false },
		{ "::1", false },
		{ "localhost:", false },
		{ "localhost:80x", false },
		{ "localhost:80:80", false },
		{ ":80", false },
		{ "localhost/", false },
		{ "a@localhost", false },
		{ "localhost,evil.example", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_error error = { 0 };
		struct uar_http_request r = request(cases[i].host, NULL, NULL);
		uar_err e = gate_check_host(&gate, &r, &error);

		CHECK_MSG(e == (cases[i].good ? UAR_OK : UAR_EFORBIDDEN), "%s", cases[i].host);
		CHECK(!e || strcmp(error.where, "Host") == 0);
	}
}

static bool taken(const char *bound, const char *host)
{
	struct uar_gate g = { .o = { .token = "t" } };
	struct uar_http_request r = request(host, NULL, NULL);

	gate_bound_read(&g.bound, uar_str_c(bound));
	return gate_check_host(&g, &r, NULL) == UAR_OK;
}

TEST(the_bound_address_is_a_name_we_go_by, "")
{
	static const struct {
		const char *bound, *host;
		bool good;
	} cases[] = {
		{ "127.0.0.2:7358", "127.0.0.2:7358", true },
		{ "127.0.0.1:7358", "127.0.0.2:7358", false },
		{ "192.0.2.7:7358", "192.0.2.7:7358", true },
		{ "192.0.2.7:7358", "192.0.2.7", true },
		{ "192.0.2.7:7358", "192.0.2.7:80", true }, /* a forwarded port */
		{ "192.0.2.7:7358", "[::ffff:192.0.2.7]:7358", true },
		{ "192.0.2.7:7358", "localhost:7358", true },
		{ "192.0.2.7:7358", "192.0.2.8:7358", false },
		{ "192.0.2.7:7358", "[2001:db8::7]:7358", false },
		{ "[2001:db8::7]:7358", "[2001:db8::7]:7358", true },
		{ "[2001:db8::7]:7358", "[2001:DB8:0::7]", true },
		{ "[2001:db8::7]:7358", "[2001:db8::8]", false },
		{ "[2001:db8::7]:7358", "192.0.2.7:7358", false },
		{ "unix:/192.0.2.7:7358", "192.0.2.7:7358", false },
		{ "unix:192.0.2.7", "192.0.2.7", false },
		{ "0.0.0.0:7358", "192.0.2.7:7358", true },
		{ "0.0.0.0:7358", "198.51.100.1", true }, /* forwarded from elsewhere */
		{ "0.0.0.0:7358", "0.0.0.0:7358", true },
		{ "[::]:7358", "[2001:db8::7]:7358", true },
		{ "[::]:7358", "192.0.2.7:7358", true },
		{ "[::]:7358", "localhost", true },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		CHECK_MSG(taken(cases[i].bound, cases[i].host) == cases[i].good, "%s at %s",
			  cases[i].host, cases[i].bound);
}

/* A name may resolve to anything: only an address cannot. */
TEST(a_wildcard_takes_addresses_and_no_names, "")
{
	static const char *const bad[] = {
		"evil.example",
		"evil.example:7358",
		"192.0.2.7.evil.example",
		"192.0.2.7x",
		"3221225991",
		"0xc0000207",
		"192.0.2",
		"192.0.2.007",
		"192.0.2.7:",
		"2001:db8::7",
		"[2001:db8::7",
		"[2001:db8::77",
		"[2001:db8::7]x",
		"[2001:db8::7]:1:1",
		"[192.0.2.7]",
		"[]",
		"[fe80::1%eth0]",
		"[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000]",
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_MSG(!taken("0.0.0.0:7358", bad[i]) && !taken("[::]:7358", bad[i]), "%s",
			  bad[i]);
}

TEST(only_our_own_page_and_named_origins_are_served, "")
{
	static const struct {
		const char *host, *origin;
		bool good;
	} cases[] = {
		{ "localhost:8080", NULL, true },
		{ "localhost:8080", "http://localhost:8080", true },
		{ "localhost:8080", "https://localhost:8080", true },
		{ "LOCALHOST:8080", "http://localhost:8080", true },
		{ "localhost:8080", "https://app.example", true },
		{ "localhost:8080", "null", true }, /* because it was named */
		{ "192.0.2.7:8080", "http://192.0.2.7:8080", true },
		{ "192.0.2.7:8080", "http://192.0.2.8:8080", false },
		{ "192.0.2.7:8080", "http://192.0.2.7", false },
		{ "[2001:db8::7]:8080", "http://[2001:db8::7]:8080", true },
		{ "localhost:8080", "http://localhost:8081", false },
		{ "localhost:8080", "http://localhost", false },
		{ "localhost:8080", "http://127.0.0.1:8080", false },
		{ "localhost:8080", "http://evil.example", false },
		{ "localhost:8080", "https://app.example.evil.example", false },
		{ "localhost:8080", "http://app.example", false },
		{ "localhost:8080", "ftp://localhost:8080", false },
		{ "localhost:8080", "localhost:8080", false },
		{ "localhost:8080", "http://", false },
		{ NULL, "http://", false },
		{ NULL, "https://", false },
		{ NULL, "http://evil.example", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_error error = { 0 };
		struct uar_http_request r = request(cases[i].host, cases[i].origin, NULL);
		uar_err e = gate_check_origin(&gate, &r, &error);

		CHECK_MSG(e == (cases[i].good ? UAR_OK : UAR_EFORBIDDEN), "%s at %s",
			  cases[i].origin ? cases[i].origin : "-",
			  cases[i].host ? cases[i].host : "-");
		CHECK(!e || strcmp(error.where, "Origin") == 0);
	}
}

TEST(only_the_token_lets_in, "")
{
	static const struct {
		const char *given;
		bool good;
	} cases[] = {
		{ "Bearer s3cret-token", true },
		{ "bearer s3cret-token", true },
		{ "BEARER   s3cret-token", true },
		{ NULL, false },
		{ "", false },
		{ "Bearer", false },
		{ "Bearer ", false },
		{ "Bearer s3cret-toke", false },
		{ "Bearer s3cret-tokenx", false },
		{ "Bearer S3CRET-TOKEN", false },
		{ "Bearers3cret-token", false },
		{ "Basic s3cret-token", false },
		{ "s3cret-token", false },
		{ "Bearer s3cret-token, Bearer x", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_http_request r = request(NULL, NULL, cases[i].given);
		uar_err e = gate_check_token(&gate, &r, NULL);

		CHECK_MSG(e == (cases[i].good ? UAR_OK : UAR_EUNAUTHORIZED), "%s",
			  cases[i].given ? cases[i].given : "-");
	}
}

TEST(an_empty_token_lets_nobody_in, "")
{
	struct uar_gate open = { .o = { .token = "" } };
	struct uar_http_request one = request(NULL, NULL, "Bearer ");
	struct uar_http_request two = request(NULL, NULL, "Bearer  ");

	CHECK_INT(gate_check_token(&open, &one, NULL), UAR_EUNAUTHORIZED);
	CHECK_INT(gate_check_token(&open, &two, NULL), UAR_EUNAUTHORIZED);
}

/* --- tokens of one run or upload --------------------------------------------------------- */

static int64_t test_wall_us(void *ctx)
{
	return *(const int64_t *)ctx;
}

/* A gate whose clock shows `now_us`. */
struct granting_gate {
	int64_t now_us;
	struct uar_clock clock;
	struct uar_sched sched;
	struct uar_gate g;
};

static void granting_gate_init(struct granting_gate *x, int64_t now_us)
{
	*x = (struct granting_gate){ .now_us = now_us };
	x->clock = (struct uar_clock){ test_wall_us, test_wall_us, &x->now_us };
	x->sched.clock = &x->clock;
	x->g.o = (struct uar_gate_options){ .token = "s3cret-token", .sched = &x->sched };
}

static bool is_granted(struct granting_gate *x, const char *what, const char *id, const char *query)
{
	struct uar_arena arena;
	struct uar_http_request r = { .query = uar_str_c(query), .arena = &arena };
	struct call c = { .g = &x->g };
	bool good;

	uar_arena_init(&arena, 0);
	good = gate_check_grant(&c, &r, what, uar_str_c(id));
	uar_arena_fini(&arena);
	return good;
}

TEST(a_grant_ends_when_its_time_is_over, "RCH-09")
{
	enum { EXPIRES = 1700000000 };
	static const int64_t end_us = (int64_t)EXPIRES * 1000000;
	static const char *const kinds[] = { "run", "upload" };

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct granting_gate x;
		char token[GRANT], query[GRANT + 32];

		granting_gate_init(&x, end_us - 1);
		REQUIRE(gate_grant(&(struct call){ .g = &x.g }, kinds[i], UAR_STR("r1"), EXPIRES,
				   token));
		snprintf(query, sizeof query, "%s_token=%s", kinds[i], token);
		CHECK(is_granted(&x, kinds[i], "r1", query));
		CHECK(!is_granted(&x, kinds[i], "r2", query));
		CHECK(!is_granted(&x, kinds[1 - i], "r1", query));
		x.now_us = end_us;
		CHECK(is_granted(&x, kinds[i], "r1", query));
		x.now_us = end_us + 1;
		CHECK(!is_granted(&x, kinds[i], "r1", query));
		x.now_us = end_us + (int64_t)365 * 86400 * 1000000;
		CHECK(!is_granted(&x, kinds[i], "r1", query));
	}
}

/* The end is part of what is signed. */
TEST(a_grant_with_another_end_is_refused, "RCH-09")
{
	struct granting_gate x;
	char token[GRANT], query[GRANT + 32];

	granting_gate_init(&x, 1000000);
	REQUIRE(gate_grant(&(struct call){ .g = &x.g }, "run", UAR_STR("r1"), 2, token));
	snprintf(query, sizeof query, "run_token=9%s", token);
	CHECK(!is_granted(&x, "run", "r1", query));
	snprintf(query, sizeof query, "run_token=%s", token);
	CHECK(is_granted(&x, "run", "r1", query));
}

static const struct uar_owner local = { UAR_STR("t"), UAR_STR("w"), UAR_STR("u") };

TEST(owner_and_scopes_come_from_the_credential, "")
{
	static const struct route open = { .open = true }, closed = { .grant = NULL },
				  of_run = { .grant = "run" }, of_upload = { .grant = "upload" };
	static const struct {
		const struct route *route;
		const char *token;
		unsigned scopes; /* 0: none, of nobody */
		uar_err e;
	} cases[] = {
		{ &open, "Bearer s3cret-token", 0, UAR_OK },
		{ &open, NULL, 0, UAR_OK },
		{ &closed, "Bearer s3cret-token", GATE_SCOPE_ALL, UAR_OK },
		{ &closed, "Bearer other", 0, UAR_EUNAUTHORIZED },
		{ &closed, NULL, 0, UAR_EUNAUTHORIZED },
		{ NULL, NULL, 0, UAR_EUNAUTHORIZED },
		{ &of_run, "Bearer s3cret-token", GATE_SCOPE_ALL, UAR_OK },
		{ &of_run, NULL, GATE_GRANT_RUN, UAR_OK },
		{ &of_upload, NULL, GATE_GRANT_UPLOAD, UAR_OK },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *what = cases[i].route ? cases[i].route->grant : NULL;
		struct uar_http_request r = request(NULL, NULL, cases[i].token);
		struct uar_error error = { 0 };
		struct granting_gate x;
		struct uar_arena arena;
		char token[GRANT], query[GRANT + 32];
		struct call c = { .g = &x.g, .route = cases[i].route };

		granting_gate_init(&x, 1000000);
		x.g.o.owner = local;
		uar_arena_init(&arena, 0);
		r.arena = &arena;
		c.params[0] = UAR_STR("r1");
		REQUIRE(gate_grant(&(struct call){ .g = &x.g, .owner = local }, what ? what : "run",
				   UAR_STR("r1"), 2, token));
		snprintf(query, sizeof query, "%s_token=%s", what ? what : "run", token);
		r.query = uar_str_c(query);
		CHECK_INT(gate_identify(&c, &r, &error), cases[i].e);
		CHECK_INT((int64_t)c.scopes, cases[i].scopes);
		CHECK(uar_owner_eq(&c.owner, &local) == (cases[i].scopes != 0));
		uar_arena_fini(&arena);
	}
}
