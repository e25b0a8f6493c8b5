/* providers_test.c - the table of providers, and what is wrong with one. */
#include "test.h"

#include <stdlib.h>

#include "app/providers.h"

static const struct {
	const char *json, *want; /* a part of the message */
} bad[] = {
	{ "7", "expected a JSON object" },
	{ "{\"a\":", "expected a JSON object" },
	{ "{\"a\":7}", "/a: a provider is an object" },
	{ "{\"a\":{}}", "/a" },
	{ "{\"a\":{\"dialect\":\"gemini\"}}", "/a/dialect: write openai_chat" },
	{ "{\"a\":{\"dialect\":\"anthropic\",\"key\":\"sk-1\"}}", "keys do not belong here" },
	{ "{\"a\":{\"dialect\":\"anthropic\",\"key_evn\":\"X\"}}", "/a" },
	{ "{\"a\":{\"dialect\":\"anthropic\",\"base_url\":\"ftp://x\"}}", "/a/base_url" },
	{ "{\"a\":{\"dialect\":\"anthropic\",\"key_env\":\"X\",\"key_file\":\"y\"}}",
	  "one of key_env" },
	{ "{\"a\":{\"dialect\":\"anthropic\",\"credential\":\"../x\"}}", "/a/credential" },
	{ "{\"a\":{\"dialect\":\"anthropic\",\"headers\":{\"X\":1}}}", "/a/headers" },
	{ "{\"a\":{\"dialect\":\"anthropic\",\"headers\":{\"X-API-Key\":\"sk-1\"}}}",
	  "its header by key_header" },
	{ "{\"a\":{\"dialect\":\"anthropic\",\"models\":{\"m\":1}}}", "/a/models" },
	{ "{\"a\":{\"dialect\":\"anthropic\",\"models\":{\"m\":{\"magic\":true}}}}", "/a" },
	{ "{\"a\":{\"dialect\":\"anthropic\",\"models\":{\"m\":{\"structured\":\"x\"}}}}",
	  "structured is none" },
};

TEST(bad_tables_are_refused_with_their_place, "")
{
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct uar_provider_settings s;
		struct uar_error error = { 0 };
		struct uar_arena arena;

		uar_arena_init(&arena, 0);
		CHECK_MSG(uar_providers_read(uar_str_c(bad[i].json), &arena, &s, &error) ==
				  UAR_ECONFIG,
			  "%s", bad[i].json);
		CHECK_MSG(strstr(uar_error_text(&error), bad[i].want) != NULL, "%s: %s",
			  bad[i].json, uar_error_text(&error));
		CHECK(strstr(uar_error_text(&error), "sk-1") == NULL);
		uar_arena_fini(&arena);
	}
}

TEST(a_table_names_providers_and_their_models, "")
{
	static const char json[] =
		"{\"claude\":{\"dialect\":\"anthropic\",\"key_env\":\"UAR_TEST_KEY\"},"
		"\"house\":{\"dialect\":\"openai_chat\",\"base_url\":\"http://h:1/"
		"v1\",\"headers\":{"
		"\"X-Team\":\"a b\"},\"models\":{\"q*\":{\"images\":true,\"structured\":\"none\","
		"\"context_tokens\":32000}}}}";
	struct uar_provider_settings s;
	struct uar_error error = { 0 };
	struct uar_buf key = uar_buf_make(1000);
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	REQUIRE(uar_providers_read(uar_str_c(json), &arena, &s, &error) == UAR_OK);
	REQUIRE(s.count == 2);
	CHECK_STR(uar_str_c(s.at[0].base_url), "https://api.anthropic.com");
	CHECK_INT(s.at[0].dialect, UAR_DIALECT_ANTHROPIC);
	CHECK_STR(uar_str_c(s.at[1].headers[0]), "X-Team: a b");
	CHECK(s.at[1].headers[1] == NULL);
	REQUIRE(s.at[1].row_count == 1);
	CHECK(s.at[1].rows[0].images && s.at[1].rows[0].tools);
	CHECK_INT(s.at[1].rows[0].context_tokens, 32000);
	unsetenv("UAR_TEST_KEY");
	CHECK_INT(uar_providers_key(&s.at[0], &key, &error), UAR_ECONFIG);
	CHECK(strstr(uar_error_text(&error), "UAR_TEST_KEY") != NULL);
	setenv("UAR_TEST_KEY", "sk-9", 1);
	CHECK_INT(uar_providers_key(&s.at[0], &key, &error), UAR_OK);
	CHECK_STR(uar_buf_str(&key), "sk-9");
	uar_buf_clear(&key);
	CHECK_INT(uar_providers_key(&s.at[1], &key, &error), UAR_OK);
	CHECK_INT(key.n, 0);
	CHECK_INT(uar_providers_read(UAR_STR(""), &arena, &s, &error), UAR_OK);
	CHECK_INT(s.count, 0);
	uar_buf_fini(&key);
	uar_arena_fini(&arena);
}

TEST(a_key_may_be_a_credential_of_systemd, "")
{
	struct uar_provider_setting p = { .name = "x", .credential = "key" };
	struct uar_buf key = uar_buf_make(1000);
	struct uar_error error = { 0 };
	char folder[] = "/tmp/uar-credentials-XXXXXX", path[64];
	FILE *f;

	unsetenv("CREDENTIALS_DIRECTORY");
	CHECK_INT(uar_providers_key(&p, &key, &error), UAR_ECONFIG);
	CHECK(strstr(uar_error_text(&error), "LoadCredential=key") != NULL);
	REQUIRE(mkdtemp(folder) != NULL);
	snprintf(path, sizeof path, "%s/key", folder);
	f = fopen(path, "w");
	REQUIRE(f != NULL);
	fputs("sk-8\n", f);
	fclose(f);
	setenv("CREDENTIALS_DIRECTORY", folder, 1);
	CHECK_INT(uar_providers_key(&p, &key, &error), UAR_OK);
	CHECK_STR(uar_buf_str(&key), "sk-8");
	unsetenv("CREDENTIALS_DIRECTORY");
	remove(path);
	remove(folder);
	uar_buf_fini(&key);
}

TEST(where_ollama_is, "")
{
	static const struct {
		const char *host, *url;
	} cases[] = {
		{ "127.0.0.1", "http://127.0.0.1:11434/v1" },
		{ "0.0.0.0", "http://127.0.0.1:11434/v1" },
		{ "0.0.0.0:8080", "http://127.0.0.1:8080/v1" },
		{ ":8080", "http://127.0.0.1:8080/v1" },
		{ "box:11434", "http://box:11434/v1" },
		{ "http://box:11434/", "http://box:11434/v1" },
		{ "https://ollama.example", "https://ollama.example/v1" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_buf url = uar_buf_make(1000);

		CHECK_INT(uar_providers_ollama(cases[i].host, &url), UAR_OK);
		CHECK_STR(uar_buf_str(&url), cases[i].url);
		uar_buf_fini(&url);
	}
}
