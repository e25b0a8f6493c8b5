/* source_test.c - comments, YAML, and the lines that errors name. */
#include "agent/source.h"

#include "agent/definition.h"
#include "test.h"

#define YAML_HEAD "version: \"1.0\"\nkind: agent\nid: a\nruntime:\n  entry: llm.chat\n"

static void check_text(const char *file, const char *from, const char *want)
{
	struct uar_buf b = uar_buf_make(65536);
	struct uar_error error = { 0 };
	uar_err e = uar_source_read(uar_str_c(file), uar_str_c(from), &b, &error);

	CHECK_MSG(!e, "%s: %s", from, error.text);
	CHECK_STR(uar_buf_str(&b), want);
	uar_buf_fini(&b);
}

TEST(comments_and_last_commas_are_blanks, "")
{
	check_text("a.json", "{\"a\":1, // x\n/* y\n */\"b\":[1,],}",
		   "{\"a\":1,     \n    \n   \"b\":[1 ] }");
	check_text("a.json", "{\"a\":\"//no\\\" /* */\"}", "{\"a\":\"//no\\\" /* */\"}");
	check_text("a.jsonc", "\xef\xbb\xbf{}", "{}");
}

TEST(yaml_becomes_json_on_the_same_lines, "")
{
	check_text("a.yaml", "\xef\xbb\xbf{a: 1}\r\n", "{\"a\":1}");
	check_text("a.yaml", "a: 1\nb:\n  - x\n  - true\n  - ~\n  - \"1\"\n",
		   "{\"a\":1,\n\"b\":\n[\"x\",\ntrue,\nnull,\n\"1\"]}");
	check_text("a.yml", "{a: no, b: 007, c: -1.5e3}",
		   "{\"a\":\"no\",\"b\":\"007\",\"c\":-1.5e3}");
	check_text("a.yml", "a: |\n  x\n  y\n", "{\"a\":\"x\\ny\\n\"}");
}

TEST(yaml_that_would_grow_is_refused, "")
{
	static const struct {
		const char *text, *where;
	} cases[] = {
		{ "a: &x 1\nb: *x\n", "line 1" },  { "a: 1\nb: !!binary x\n", "line 2" },
		{ "a: 1\n---\nb: 1\n", "line 2" }, { "a: [1\n", "line " },
		{ "? [a]\n: b\n", "line 1" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_buf b = uar_buf_make(65536);
		struct uar_error error = { 0 };

		CHECK_INT(uar_source_read(UAR_STR("a.yaml"), uar_str_c(cases[i].text), &b, &error),
			  UAR_ESYNTAX);
		CHECK_MSG(uar_str_starts(uar_str_c(error.where), uar_str_c(cases[i].where)),
			  "%s: %s", cases[i].text, error.where);
		uar_buf_fini(&b);
	}
}

TEST(a_pointer_has_a_line, "")
{
	uar_str json = UAR_STR("{\n\"a\": [1,\n {\"b\":\n 2}],\n\"c/d\": \"}\",\n\"e\": 1}");

	CHECK_INT(uar_source_line(json, UAR_STR("")), 1);
	CHECK_INT(uar_source_line(json, UAR_STR("/a/1")), 3);
	CHECK_INT(uar_source_line(json, UAR_STR("/a/1/b")), 4);
	CHECK_INT(uar_source_line(json, UAR_STR("/c~1d")), 5);
	CHECK_INT(uar_source_line(json, UAR_STR("/e")), 6);
	CHECK_INT(uar_source_line(json, UAR_STR("/a/7/x")), 2);
}

TEST(errors_name_file_line_and_pointer_and_what_to_write, "ART-23")
{
	static const struct {
		const char *file, *text, *where, *hint;
	} cases[] = {
		{ "x.yaml", "version: 1.0\nkind: agent\nid: a\nruntime: {entry: llm.chat}\n",
		  "x.yaml:1 /version", "write \"1.0\"" },
		{ "x.yaml", YAML_HEAD "prompt:\n  sytem: hi\n", "x.yaml:7 /prompt",
		  "did you mean system" },
		{ "x.yaml", YAML_HEAD "prompt:\n  system: hi {{name}}\n", "x.yaml:7 /prompt/system",
		  "declare it below prompt.variables" },
		{ "x.yaml", YAML_HEAD "policy:\n  approvals: {}\n", "x.yaml:7 /policy/approvals",
		  "use policy.tools.ask" },
		{ "x.json", "{\n \"version\": \"1.0\", // c\n \"kind\": agent }", "x.json:3:", "" },
		{ "x.yaml", "a: [\n", "x.yaml:", "" },
		{ "x.yaml", YAML_HEAD "schemas:\n  inputs: {type: objekt}\n",
		  "x.yaml:7 /schemas/inputs", "the schema is not valid" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_error error = { 0 };
		struct uar_definition d;
		uar_err e = uar_definition_read_file(cases[i].file, uar_str_c(cases[i].text), &d,
						     &error);

		CHECK_MSG(e, "%s", cases[i].text);
		CHECK_MSG(uar_str_starts(uar_str_c(error.where), uar_str_c(cases[i].where)) &&
				  strstr(error.text, cases[i].hint),
			  "%s: at %s, %s", cases[i].text, error.where, error.text);
		if (!e)
			uar_definition_fini(&d);
	}
}

TEST(the_example_of_the_specification_loads, "ART-05 ART-22 ART-23")
{
	struct uar_error error = { 0 };
	struct uar_definition_inactive row;
	struct uar_definition d, again;

	REQUIRE(!uar_definition_load("examples/agents/contract_agent.json", &d, &error));
	CHECK_STR(d.info.agent_id, "contract_agent");
	CHECK_STR(d.info.title, "Contract Agent");
	CHECK_STR(d.routing.chosen.provider, "openai");
	CHECK_STR(d.routing.chosen.model, "gpt-5");
	CHECK_INT(d.routing.fallback_count, 1);
	CHECK_STR(d.tools.allow, "mcp:* internal:kb.*");
	CHECK_STR(d.tools.deny, "internal:fs.delete");
	CHECK_INT(d.tools.max_concurrent, 3);
	CHECK_INT(d.prompt.instruction_count, 2);
	CHECK(d.schemas.inputs && d.schemas.outputs && !d.schemas.state);
	CHECK(d.memory.conversation);
	CHECK(uar_definition_allows(&d, UAR_PROTOCOL_A2A));
	CHECK(!uar_definition_inactive(&d, 0, &row));
	CHECK_INT(strlen(d.revision), 64);
	/* The canonical text is the same definition. */
	REQUIRE(!uar_definition_read(d.text, &again, &error));
	CHECK_STR(uar_str_c(again.revision), d.revision);
	uar_definition_fini(&again);
	uar_definition_fini(&d);
}

TEST(yaml_and_json_of_one_agent_have_one_revision, "ART-24")
{
	static const char json[] =
		"{\"id\":\"a\",\"kind\":\"agent\",\"runtime\":{\"entry\":\"llm.chat\"},"
		"\"version\":\"1.0\"}";
	struct uar_definition a, b;
	struct uar_error error = { 0 };

	REQUIRE(!uar_definition_read_file("a.json", uar_str_c(json), &a, &error));
	REQUIRE(!uar_definition_read_file("a.yaml", UAR_STR(YAML_HEAD), &b, &error));
	CHECK_STR(uar_str_c(a.revision), b.revision);
	CHECK_INT(a.tools.max_concurrent, 1);
	uar_definition_fini(&a);
	uar_definition_fini(&b);
}
