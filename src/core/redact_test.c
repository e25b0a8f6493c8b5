/* redact_test.c - what of a value is hidden. */
#include "core/redact.h"

#include "test.h"

static void shows(const char *schema, const char *value, const char *want)
{
	const struct uar_json *s = NULL, *v = NULL;
	struct uar_buf out = uar_buf_make(4096);
	struct uar_jw w = uar_jw_begin(&out);
	struct uar_arena arena;
	bool hides;

	uar_arena_init(&arena, 0);
	if (schema)
		CHECK_INT(uar_json_parse(uar_str_c(schema), NULL, &arena, &s, NULL), UAR_OK);
	CHECK_INT(uar_json_parse(uar_str_c(value), NULL, &arena, &v, NULL), UAR_OK);
	hides = uar_redact(&w, NULL, v, s);
	CHECK_INT(uar_jw_end(&w), UAR_OK);
	CHECK_STR(uar_buf_str(&out), want);
	CHECK_INT(hides, strstr(want, UAR_REDACTED) != NULL);
	CHECK_INT(uar_redacts(v, s), hides);
	uar_buf_fini(&out);
	uar_arena_fini(&arena);
}

TEST(members_with_the_name_of_a_secret_are_hidden, "")
{
	shows(NULL, "{\"user\":\"a\",\"password\":\"x\",\"n\":[1,true,null]}",
	      "{\"user\":\"a\",\"password\":\"<redacted>\",\"n\":[1,true,null]}");
	shows(NULL, "{\"deep\":[{\"API-Key\":{\"a\":1}}],\"\":2}",
	      "{\"deep\":[{\"API-Key\":\"<redacted>\"}],\"\":2}");
	shows(NULL, "{\"clientSecret\":null,\"tokens\":7,\"token\":7}",
	      "{\"clientSecret\":null,\"tokens\":7,\"token\":\"<redacted>\"}");
	shows(NULL, "{\"api_token\":1,\"githubToken\":2,\"user-pin\":3,\"db.pwd\":4,\"cardCVV\":5}",
	      "{\"api_token\":\"<redacted>\",\"githubToken\":\"<redacted>\",\"user-pin\":"
	      "\"<redacted>\",\"db.pwd\":\"<redacted>\",\"cardCVV\":\"<redacted>\"}");
	shows(NULL,
	      "{\"APIToken2\":1,\"spinner\":2,\"max_tokens\":3,\"shopping\":4,\"bypass\":5,\"_\":"
	      "6}",
	      "{\"APIToken2\":\"<redacted>\",\"spinner\":2,\"max_tokens\":3,\"shopping\":4,"
	      "\"bypass\":5,\"_\":6}");
	shows(NULL,
	      "{\"token_count\":1,\"tokenLimit\":2,\"password_length\":3,\"secretary\":4,"
	      "\"token_1\":5,\"my_secret\":6,\"new_password\":7}",
	      "{\"token_count\":1,\"tokenLimit\":2,\"password_length\":3,\"secretary\":4,"
	      "\"token_1\":\"<redacted>\",\"my_secret\":\"<redacted>\","
	      "\"new_password\":\"<redacted>\"}");
	shows(NULL, "\"plain\"", "\"plain\"");
}

TEST(members_that_a_schema_marks_are_hidden, "")
{
	shows("{\"properties\":{\"a\":{\"writeOnly\":true},\"b\":{\"x-sensitive\":true}}}",
	      "{\"a\":1,\"b\":{\"c\":2},\"d\":3}",
	      "{\"a\":\"<redacted>\",\"b\":\"<redacted>\",\"d\":3}");
	shows("{\"$defs\":{\"s\":{\"writeOnly\":true}},\"allOf\":[{\"properties\":{\"l\":{"
	      "\"items\":"
	      "{\"$ref\":\"#/$defs/s\"}}}}]}",
	      "{\"l\":[1,2]}", "{\"l\":[\"<redacted>\",\"<redacted>\"]}");
	shows("{\"prefixItems\":[{\"writeOnly\":true}],\"items\":{\"type\":\"integer\"}}", "[1,2]",
	      "[\"<redacted>\",2]");
	shows("{\"properties\":{\"a\":{\"format\":\"password\"}}}", "{\"a\":1,\"b\":2}",
	      "{\"a\":\"<redacted>\",\"b\":2}");
	shows("{\"writeOnly\":true}", "{\"a\":1}", "\"<redacted>\"");
	shows("{\"additionalProperties\":{\"writeOnly\":true},\"properties\":{\"a\":{}}}",
	      "{\"a\":1,\"b\":2}", "{\"a\":1,\"b\":\"<redacted>\"}");
	shows("{\"$ref\":\"#\",\"properties\":{\"a\":{\"$ref\":\"#\"}}}", "{\"a\":{\"a\":1}}",
	      "{\"a\":{\"a\":1}}");
}
