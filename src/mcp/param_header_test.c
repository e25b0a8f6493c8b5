/* param_header_test.c - arguments that are headers: which schemas may say so, and what is sent. */
#include "mcp/param_header.h"

#include "test.h"

#define PROPS(X) "{\"type\":\"object\",\"properties\":{" X "}}"
#define HEAD(N)	 "\"x-mcp-header\":\"" N "\""

TEST(schemas_with_wrong_headers_are_refused, "")
{
	static const struct {
		const char *schema;
		bool valid;
	} cases[] = {
		{ PROPS("\"a\":{\"type\":\"string\"," HEAD("A") "}"), true },
		{ PROPS("\"o\":{\"properties\":{\"b\":{\"type\":\"integer\"," HEAD("B") "}}}"),
		  true },
		{ PROPS("\"a\":{\"type\":\"string\"," HEAD("") "}"), false },
		{ PROPS("\"a\":{\"type\":\"string\"," HEAD("A B") "}"), false },
		{ PROPS("\"a\":{\"type\":\"number\"," HEAD("A") "}"), false },
		{ PROPS("\"a\":{\"type\":\"string\"," HEAD("A") "},"
								"\"b\":{\"type\":\"string\"," HEAD(
									"a") "}"),
		  false },
		{ PROPS("\"a\":{\"items\":{\"type\":\"string\"," HEAD("A") "}}"), false },
		{ PROPS("\"a\":{\"default\":{" HEAD("A") "}}"), true },
		{ "{\"type\":\"object\"," HEAD("A") "}", false },
	};
	struct uar_arena a;

	uar_arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct uar_json *j;

		REQUIRE(uar_json_parse(uar_str_c(cases[i].schema), NULL, &a, &j, NULL) == UAR_OK);
		CHECK(uar_mcp_param_headers_valid(j) == cases[i].valid);
	}
	uar_arena_fini(&a);
}

TEST(arguments_are_repeated_as_headers, "")
{
	static const char schema[] =
		PROPS("\"a\":{\"type\":\"string\"," HEAD("A") "},\"n\":{\"type\":\"integer\"," HEAD(
			"N") "},\"b\":{\"type\":\"boolean\"," HEAD("B") "},\"gone\":{\"type\":"
									"\"string\"," HEAD(
										"G") "}");
	const char *const *lines = NULL;
	struct uar_arena a;

	uar_arena_init(&a, 0);
	REQUIRE(uar_mcp_param_headers(uar_str_c(schema),
				      UAR_STR("{\"a\":\"\\u00e4\",\"n\":7,\"b\":true,\"gone\":"
					      "null,\"x\":1}"),
				      &a, &lines) == UAR_OK);
	REQUIRE(lines && lines[0] && lines[1] && lines[2] && !lines[3]);
	CHECK_STR(uar_str_c(lines[0]), "Mcp-Param-A: =?base64?w6Q=?=");
	CHECK_STR(uar_str_c(lines[1]), "Mcp-Param-N: 7");
	CHECK_STR(uar_str_c(lines[2]), "Mcp-Param-B: true");
	REQUIRE(uar_mcp_param_headers(UAR_STR("{}"), UAR_STR("{}"), &a, &lines) == UAR_OK);
	CHECK(!lines);
	uar_arena_fini(&a);
}
