/* http_test.c - declarations and arguments become requests; secrets; addresses that redirects name.
 */
#include "test.h"

#include <stdlib.h>

#include "tool/exchange.h"
#include "tool/http_int.h"

TEST(locations_lead_where_they_say, "")
{
	static const struct {
		const char *base, *location, *want;
	} cases[] = {
		{ "https://a.example/b/c?d", "https://x.example/y", "https://x.example/y" },
		{ "https://a.example/b/c?d", "HTTP://x.example", "http://x.example" },
		{ "https://a.example/b/c?d", "//x.example/y", "https://x.example/y" },
		{ "https://a.example/b/c?d", "/y?z", "https://a.example/y?z" },
		{ "https://a.example/b/c?d", "y", "https://a.example/b/y" },
		{ "https://a.example/b/c?d", "?y", "https://a.example/b/c?y" },
		{ "https://a.example/b/c?d", "", "https://a.example/b/c" },
		{ "https://a.example", "y", "https://a.example/y" },
		{ "https://a.example/b", "gopher://x", NULL },
		{ "https://a.example/b", "javascript:1", NULL },
		{ "https://a.example/b", "file:///etc/passwd", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_buf out = uar_buf_make(1024);
		uar_err e = uar_url_resolve(uar_str_c(cases[i].base), uar_str_c(cases[i].location),
					    &out);

		CHECK_INT(e, cases[i].want ? UAR_OK : UAR_EINVALID);
		if (cases[i].want)
			CHECK_STR(uar_buf_str(&out), cases[i].want);
		uar_buf_fini(&out);
	}
}

/* The request of a declaration, or the error. */
static uar_err fill(const char *spec, const char *args, struct uar_arena *arena,
		    struct uar_http_filled *out, struct uar_error *error)
{
	const struct uar_json *j = NULL, *a = NULL;
	struct uar_secrets *secrets = NULL;
	struct uar_http_spec s;
	uar_err e = uar_json_parse(uar_str_c(spec), NULL, arena, &j, error);

	*out = (struct uar_http_filled){ .url = uar_buf_make(16) };
	if (!e)
		e = uar_json_parse(uar_str_c(args), NULL, arena, &a, error);
	if (!e)
		e = uar_secrets_create("/nowhere", UAR_STR(""), &secrets, error);
	if (!e)
		e = uar_http_spec_read(j, arena, &s, error);
	if (!e)
		e = uar_http_fill(&s, a, &(struct uar_secrets_ask){ .secrets = secrets }, out,
				  error);
	uar_secrets_destroy(secrets);
	return e;
}

TEST(requests_are_what_is_declared, "")
{
	static const struct {
		const char *spec, *args, *url, *body;
	} cases[] = {
		{ "{\"name\":\"a\",\"url\":\"https://x.example/{p}\"}",
		  "{\"p\":\"../a b?#\",\"q\":1}", "https://x.example/..%2Fa%20b%3F%23?q=1", "" },
		{ "{\"name\":\"a\",\"url\":\"https://x.example/"
		  "?a=1\",\"query\":{\"b\":\"{b}\",\"c\":\"{c}\"}}",
		  "{\"b\":\"x&y\"}", "https://x.example/?a=1&b=x%26y", "" },
		{ "{\"name\":\"a\",\"method\":\"POST\",\"url\":\"https://x.example/{p}\"}",
		  "{\"p\":1,\"r\":[true]}", "https://x.example/1", "{\"r\":[true]}" },
		{ "{\"name\":\"a\",\"method\":\"PUT\",\"url\":\"https://x.example/\","
		  "\"body\":{\"k\":\"{v}\",\"t\":\"<{v}>\",\"gone\":\"{w}\",\"l\":[\"{v}\"]}}",
		  "{\"v\":{\"n\":2}}", "https://x.example/",
		  "{\"k\":{\"n\":2},\"t\":\"<{\\\"n\\\":2}>\",\"l\":[{\"n\":2}]}" },
		{ "{\"name\":\"a\",\"url\":\"https://x.example/\",\"query\":{\"q\":\"{q}\"}}",
		  "{\"q\":\"${secret:KEY}\"}", "https://x.example/?q=%24%7Bsecret%3AKEY%7D", "" },
	};

	setenv("UAR_SECRET_KEY", "hush", 1);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_arena arena = { 0 };
		struct uar_http_filled f;
		struct uar_error error = { 0 };

		CHECK_INT(fill(cases[i].spec, cases[i].args, &arena, &f, &error), UAR_OK);
		CHECK_STR(uar_buf_str(&f.url), cases[i].url);
		CHECK_STR(uar_buf_str(&f.body), cases[i].body);
		uar_http_filled_fini(&f);
		uar_arena_fini(&arena);
	}
}

TEST(an_argument_does_not_climb_the_path, "")
{
	static const char *const args[] = { "{\"id\":\"..\"}", "{\"id\":\".\"}",
					    "{\"id\":\"%2e%2E\"}", "{\"id\":\"%252e.\"}" };

	for (size_t i = 0; i < ARRAY_LEN(args); i++) {
		struct uar_arena arena = { 0 };
		struct uar_http_filled f;
		struct uar_error error = { 0 };

		CHECK_INT(
			fill("{\"name\":\"a\",\"url\":\"https://x.example/v1/items/{id}/detail\"}",
			     args[i], &arena, &f, &error),
			UAR_EINVALID);
		CHECK(strstr(error.text, "path") != NULL);
		uar_http_filled_fini(&f);
		uar_arena_fini(&arena);
	}
}

TEST(what_is_declared_wrong_is_named, "")
{
	static const struct {
		const char *spec, *where;
	} cases[] = {
		{ "{\"name\":\"a b\",\"url\":\"https://x.example/\"}", "/name" },
		{ "{\"name\":\"a\",\"url\":\"ftp://x.example/\"}", "/url" },
		{ "{\"name\":\"a\",\"url\":\"https://{host}/\"}", "/url" },
		{ "{\"name\":\"a\",\"url\":\"https://me@x.example/\"}", "/url" },
		{ "{\"name\":\"a\",\"url\":\"https://x.example\",\"method\":\"BREW\"}", "/method" },
		{ "{\"name\":\"a\",\"url\":\"https://x.example\",\"headers\":{\"X\":1}}",
		  "/headers" },
		{ "{\"name\":\"a\",\"url\":\"https://x.example\",\"effect\":\"maybe\"}",
		  "/effect" },
		{ "{\"name\":\"a\",\"url\":\"https://x.example\",\"colour\":1}", "/colour" },
		{ "{\"name\":\"a\"}", "/url" },
		{ "{\"name\":\"a\",\"url\":\"https://x.example\",\"headers\":{\"hOst\":\"y\"}}",
		  "/headers" },
		{ "{\"name\":\"a\",\"url\":\"https://"
		  "x.example\",\"headers\":{\"Transfer-Encoding\":\"y\"}}",
		  "/headers" },
		{ "{\"name\":\"a\",\"url\":\"https://x.example\",\"headers\":{\"A: b\":\"y\"}}",
		  "/headers" },
		{ "{\"name\":\"a\",\"url\":\"https://x.example\",\"headers\":{\"\":\"y\"}}",
		  "/headers" },
		{ "{\"name\":\"a\",\"url\":\"https://"
		  "x.example\",\"headers\":{\"A\":\"${secret:K\"}}",
		  "/headers" },
		{ "{\"name\":\"a\",\"method\":\"POST\",\"url\":\"https://"
		  "x.example\",\"body\":{\"a\":[\"${secret:K\"]}}",
		  "/body" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_arena arena = { 0 };
		struct uar_http_filled f;
		struct uar_error error = { 0 };

		CHECK(fill(cases[i].spec, "{}", &arena, &f, &error) != UAR_OK);
		CHECK_STR(uar_str_c(error.where), cases[i].where);
		uar_http_filled_fini(&f);
		uar_arena_fini(&arena);
	}
}

TEST(a_secret_is_hidden_in_every_form, "SEC-02")
{
	static const struct {
		const char *came, *shown;
	} cases[] = {
		{ "p/q+\"r s", "<redacted>" },
		{ "p%2Fq%2B%22r%20s!", "<redacted>!" },
		{ "p/q%2b%22r+s!", "<redacted>!" },
		{ "p\\/q+\\\"r s!", "<redacted>!" },
		{ "p/q+\\\"r s!", "<redacted>!" },
		{ "cC9xKyJyIHM=", "<redacted>M=" },	    /* alone */
		{ "dTpwL3ErInIgcw==", "dTp<redacted>w==" }, /* behind "u:" */
		{ "eDpwL3ErInIgcyI=", "eDp<redacted>yI=" },
		{ "nothing of it", "nothing of it" },
	};
	struct uar_secrets_used used = { .values = { 0 } };

	uar_secrets_note(&used, UAR_STR("p/q+\"r s"));
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_buf out = uar_buf_make(1024);

		uar_secrets_hide(&used, uar_str_c(cases[i].came), &out);
		CHECK_STR(uar_buf_str(&out), cases[i].shown);
		uar_buf_fini(&out);
	}
	uar_secrets_used_fini(&used);
}

/* However it is cut, and whatever else it could have become. */
TEST(a_secret_is_hidden_in_a_text_that_comes_in_pieces, "SEC-02")
{
	static const struct {
		const char *came, *shown;
	} cases[] = {
		{ "say abab, then abababa.", "say <redacted>, then <redacted>a." },
		{ "50% of p%2Fq%2B%22r%20s!", "50% of <redacted>!" },
		{ "p\\/q+\\\"r s\\", "<redacted>\\" },
		{ "ab abc aba p/q", "ab abc aba p/q" },
	};
	struct uar_secrets_used used = { .values = { 0 } };

	uar_secrets_note(&used, UAR_STR("abab"));
	uar_secrets_note(&used, UAR_STR("ababab"));
	uar_secrets_note(&used, UAR_STR("p/q+\"r s"));
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uar_str came = uar_str_c(cases[i].came);
		struct uar_buf out = uar_buf_make(1024);
		size_t told = 0;

		for (size_t n = 1; n <= came.n; n++)
			told += uar_secrets_hide_piece(&used, uar_str_n(came.p + told, n - told),
						       &out);
		uar_secrets_hide(&used, uar_str_from(came, told), &out);
		CHECK_STR(uar_buf_str(&out), cases[i].shown);
		uar_buf_fini(&out);
	}
	uar_secrets_used_fini(&used);
}

TEST(a_secret_goes_where_it_is_granted, "SEC-02")
{
	static const char grants[] = "{\"A\":{\"hosts\":[\"x.example\",\"*.y.example:8443\"]},"
				     "\"B\":{\"agents\":[\"w*\"]},\"C\":{},\"*\":{\"hosts\":[]}}";
	static const struct {
		const char *name, *agent, *url;
		uar_err want;
	} cases[] = {
		{ "A", "", "https://x.example/p", UAR_OK },
		{ "A", "", "https://X.Example:443/p", UAR_OK },
		{ "A", "", "https://a.y.example:8443/", UAR_OK },
		{ "A", "", "https://a.y.example/", UAR_EFORBIDDEN },
		{ "A", "", "https://evil.example/x.example", UAR_EFORBIDDEN },
		{ "A", "", "https://x.example@evil.example/", UAR_EFORBIDDEN },
		{ "A", "", "https://evil.example?x.example", UAR_EFORBIDDEN },
		{ "A", "", "https://x.example\\@evil.example/", UAR_EFORBIDDEN },
		{ "A", "", "https://evil.example\\@x.example/", UAR_EFORBIDDEN },
		{ "A", "", "https://evil.example#@x.example/", UAR_EFORBIDDEN },
		{ "B", "weather", "https://any.example/", UAR_OK },
		{ "B", "other", "https://any.example/", UAR_EFORBIDDEN },
		{ "B", "", "https://any.example/", UAR_EFORBIDDEN },
		{ "C", "weather", "https://x.example/", UAR_EFORBIDDEN },
		{ "D", "weather", "https://x.example/", UAR_EFORBIDDEN },
	};
	struct uar_secrets *secrets = NULL;
	struct uar_error error = { 0 };

	setenv("UAR_SECRET_A", "hush", 1);
	setenv("UAR_SECRET_B", "hush", 1);
	CHECK_INT(uar_secrets_create(NULL, uar_str_c(grants), &secrets, &error), UAR_OK);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_secrets_ask ask = { secrets, uar_str_c(cases[i].agent),
					       uar_str_c(cases[i].url), false, UAR_STR("") };
		struct uar_buf out = uar_buf_make(64);
		char text[32];

		snprintf(text, sizeof text, "${secret:%s}", cases[i].name);
		CHECK_MSG(uar_secrets_expand(&ask, uar_str_c(text), &out, NULL, &error) ==
				  cases[i].want,
			  "%s %s %s", cases[i].name, cases[i].agent, cases[i].url);
		uar_buf_fini(&out);
	}
	uar_secrets_destroy(secrets);
	CHECK_INT(uar_secrets_create(NULL, UAR_STR("{\"A\":{\"hosts\":[\"x.example\"]}}"), &secrets,
				     &error),
		  UAR_OK);
	for (int i = 0; i < 3; i++) {
		struct uar_secrets_ask ask = { secrets, UAR_STR("far"),
					       UAR_STR("https://x.example/"), i > 0, UAR_STR("") };
		struct uar_buf out = uar_buf_make(64);

		CHECK_INT(uar_secrets_expand(
				  &ask, i < 2 ? UAR_STR("${secret:B}") : UAR_STR("${secret:A}"),
				  &out, NULL, &error),
			  i == 1 ? UAR_EFORBIDDEN : UAR_OK);
		uar_buf_fini(&out);
	}
	CHECK(strstr(error.text, "secret_grants"));
	uar_secrets_destroy(secrets);
	CHECK_INT(uar_secrets_create(NULL, UAR_STR("{\"A\":{\"host\":[]}}"), &secrets, &error),
		  UAR_EINVALID);
	CHECK_STR(uar_str_c(error.where), "/A/host");
	CHECK_INT(uar_secrets_create(NULL, UAR_STR("{\"A\":true}"), &secrets, &error),
		  UAR_EINVALID);
	CHECK_STR(uar_str_c(error.where), "/A");
}

TEST(secrets_are_put_in_and_hidden_again, "SEC-02")
{
	struct uar_arena arena = { 0 };
	struct uar_error error = { 0 };
	struct uar_buf out = uar_buf_make(1024);
	struct uar_http_filled f;

	setenv("UAR_SECRET_KEY", "hush", 1);
	CHECK_INT(fill("{\"name\":\"a\",\"url\":\"https://x.example/\",\"headers\":{\"K\":\"b "
		       "${secret:KEY}\"}}",
		       "{}", &arena, &f, &error),
		  UAR_OK);
	CHECK_STR(uar_str_c(f.headers[1]), "K: b hush");
	uar_secrets_hide(&f.used, UAR_STR("it is hush, hush!"), &out);
	CHECK_STR(uar_buf_str(&out), "it is <redacted>, <redacted>!");
	uar_http_filled_fini(&f);
	CHECK_INT(fill("{\"name\":\"a\",\"url\":\"https://x.example/\",\"headers\":{\"K\":"
		       "\"${secret:NONE}\"}}",
		       "{}", &arena, &f, &error),
		  UAR_ENOTFOUND);
	CHECK(strstr(error.text, "UAR_SECRET_NONE") != NULL);
	uar_http_filled_fini(&f);
	CHECK_INT(fill("{\"name\":\"a\",\"url\":\"https://x.example/\",\"headers\":{\"K\":"
		       "\"${secret:../x}\"}}",
		       "{}", &arena, &f, &error),
		  UAR_EINVALID);
	uar_http_filled_fini(&f);
	CHECK_INT(
		fill("{\"name\":\"a\",\"url\":\"https://x.example/\",\"headers\":{\"K\":\"{v}\"}}",
		     "{\"v\":\"x\\r\\nEvil: 1\"}", &arena, &f, &error),
		UAR_EINVALID);
	uar_http_filled_fini(&f);
	uar_buf_fini(&out);
	uar_arena_fini(&arena);
}

/* Pet refers to itself and to Name; the path's parameter to Id; Other is nobody's. */
static const char pets[] =
	"{\"openapi\":\"3.0.0\",\"servers\":[{\"url\":\"https://x.example/v1\"}],\"paths\":{\"/p/"
	"{i}\":{"
	"\"parameters\":[{\"$ref\":\"#/components/parameters/i\"}],"
	"\"get\":{\"operationId\":\"look\"},"
	"\"put\":{\"operationId\":\"set\",\"requestBody\":{\"content\":{\"application/"
	"json\":{\"schema\":"
	"{\"$ref\":\"#/components/schemas/"
	"Pet\"}}}}}}},\"components\":{\"parameters\":{\"i\":{\"name\":\"i\","
	"\"in\":\"path\",\"schema\":{\"$ref\":\"#/components/schemas/Id\"}}},\"schemas\":{"
	"\"Id\":{\"type\":\"string\"},\"Other\":{\"$ref\":\"#/components/schemas/Pet\"},"
	"\"Name\":{\"type\":\"string\"},\"Pet\":{\"properties\":{"
	"\"name\":{\"$ref\":\"#/components/schemas/Name\"},\"mate\":{\"$ref\":\"#/components/"
	"schemas/Pet\"}}}}}}";

TEST(schemas_of_operations_have_what_they_refer_to, "")
{
	struct uar_arena arena = { 0 };
	struct uar_openapi_options o = { .base_url = UAR_STR("") };
	struct uar_http_spec *specs = NULL;
	struct uar_error error = { 0 };
	size_t n = 0;

	REQUIRE(!uar_json_parse(uar_str_c(pets), NULL, &arena, &o.document, &error));
	REQUIRE(!uar_openapi_read(&o, &arena, &specs, &n, &error));
	CHECK_INT(n, 2);
	CHECK_STR(specs[0].tool.input_schema,
		  "{\"type\":\"object\",\"properties\":{\"i\":{\"$ref\":\"#/components/schemas/"
		  "Id\"}},"
		  "\"required\":[],\"components\":{\"schemas\":{\"Id\":{\"type\":\"string\"}}}}");
	CHECK(strstr(specs[1].tool.input_schema.p, "\"Name\":{") != NULL);
	CHECK(strstr(specs[1].tool.input_schema.p, "Other") == NULL);
	uar_arena_fini(&arena);
}

TEST(an_entry_has_what_its_operations_need, "")
{
	static const struct {
		const char *only, *url, *want;
	} cases[] = {
		{ "[\"look\"]", "",
		  "{\"base_url\":\"https://x.example/"
		  "v1\",\"document\":{\"openapi\":\"3.0.0\",\"info\":{},"
		  "\"paths\":{\"/p/{i}\":{\"parameters\":[{\"name\":\"i\",\"in\":\"path\","
		  "\"schema\":{\"$ref\":\"#/components/schemas/Id\"}}],"
		  "\"get\":{\"operationId\":\"look\"}}},\"components\":{\"schemas\":{\"Id\":{"
		  "\"type\":\"string\"}}}}}" },
		{ "[\"none\"]", "", NULL },
	};
	struct uar_arena arena = { 0 };
	struct uar_openapi_options o = { .base_url = UAR_STR("") };

	REQUIRE(!uar_json_parse(uar_str_c(pets), NULL, &arena, &o.document, NULL));
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_buf out = uar_buf_make(4096);
		struct uar_error error = { 0 };
		uar_err e;

		REQUIRE(!uar_json_parse(uar_str_c(cases[i].only), NULL, &arena, &o.only, NULL));
		e = uar_openapi_import(&o, uar_str_c(cases[i].url), &out, &error);
		CHECK_INT(e, cases[i].want ? UAR_OK : UAR_ENOTFOUND);
		if (cases[i].want)
			CHECK_STR(uar_buf_str(&out), cases[i].want);
		uar_buf_fini(&out);
	}
	uar_arena_fini(&arena);
}
