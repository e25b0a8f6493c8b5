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
