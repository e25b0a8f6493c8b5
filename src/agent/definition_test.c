/* definition_test.c - what a definition may say, and what its policy decides. */
#include "agent/definition.h"

#include "test.h"

#define WITH(REST) "{\"version\":\"1.0\",\"kind\":\"agent\",\"id\":\"a\"," REST "}"
#define CODEX	   "\"runtime\":{\"entry\":\"backend.codex\"}"
#define BACKEND(ENTRY, REST)                                                                       \
	WITH("\"runtime\":{\"entry\":\"backend." ENTRY "\",\"backend\":{" REST "}}")

static const char whole[] =
	"{\"$schema\":\"x\",\"version\":\"1.0\",\"kind\":\"agent\",\"id\":\"team:coder-1\","
	"\"metadata\":{\"title\":\"Coder\",\"description\":\"d\",\"tags\":[\"t\"],"
	"\"author\":\"me\",\"icon\":\"i\"},"
	"\"runtime\":{\"entry\":\"backend.acp\",\"timeout_seconds\":90,\"backend\":{"
	"\"program\":\"gemini\",\"args\":[\"--acp\"],\"kind\":\"gemini\",\"model\":\"m\","
	"\"working_dir\":\"/w\",\"allow_working_dir\":true,\"add_dirs\":[\"/x\",\"/y\"],"
	"\"env\":{\"A\":\"1\",\"B\":\"\"},\"pass_env\":[\"KEY\"],\"inherit_env\":\"none\","
	"\"can_resume\":true,\"start_timeout_seconds\":2,\"idle_timeout_seconds\":0.5}},"
	"\"policy\":{\"approvals\":{\"default\":\"deny\",\"timeout_seconds\":60,\"rules\":["
	"{\"kind\":\"command\",\"decision\":\"ask\"},{\"tool\":\"Read*\",\"decision\":\"allow\"}]}}"
	","
	"\"extensions\":{\"anything\":[1,{}]}}";

TEST(a_definition_is_read, "ART-05")
{
	struct uar_error error = { 0 };
	struct uar_definition d;

	REQUIRE(uar_definition_read(uar_str_c(whole), &d, &error) == UAR_OK);
	CHECK_STR(d.info.agent_id, "team:coder-1");
	CHECK_STR(d.info.title, "Coder");
	CHECK_STR(d.info.entry, "backend.acp");
	CHECK_STR(d.info.kind, "gemini");
	CHECK_STR(d.info.model, "m");
	CHECK_INT(d.info.timeout_us, 90000000);
	CHECK(d.info.takes_working_dir && !d.info.needs_working_dir);
	CHECK(d.info.can_resume && !d.info.can_fork);
	CHECK_INT(d.backend.arg_count, 1);
	CHECK_STR(d.backend.add_dirs[1], "/y");
	CHECK_INT(d.backend.env_count, 2);
	CHECK_STR(d.backend.env[0][1], "1");
	CHECK_STR(d.backend.pass_env[0], "KEY");
	CHECK_INT(d.backend.start_us, 2000000);
	CHECK_INT(d.backend.idle_us, 500000);
	CHECK_INT(d.policy.fallback, UAR_VERDICT_DENY);
	CHECK_INT(d.policy.rule_count, 2);
	CHECK_INT(d.policy.timeout_us, 60000000);
	uar_definition_fini(&d);
}

TEST(the_examples_are_right, "")
{
	static const char *const names[] = { "coder", "gemini", "reviewer" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct uar_error error = { 0 };
		struct uar_definition d;
		char path[64];
		uar_err e;

		snprintf(path, sizeof path, "examples/agents/%s.json", names[i]);
		e = uar_definition_load(path, &d, &error);
		CHECK_MSG(!e, "%s: %s %s", path, error.where, error.text);
		if (e)
			continue;
		CHECK_STR(d.info.agent_id, names[i]);
		uar_definition_fini(&d);
	}
}

TEST(what_is_not_said_has_a_safe_default, "")
{
	struct uar_error error = { 0 };
	struct uar_definition d;

	REQUIRE(uar_definition_read(UAR_STR(WITH(CODEX)), &d, &error) == UAR_OK);
	CHECK_STR(d.info.title, "a");
	CHECK_STR(d.info.kind, "codex");
	CHECK(d.info.needs_working_dir && d.info.takes_working_dir);
	CHECK(d.info.can_resume && d.info.can_fork);
	CHECK_INT(d.info.timeout_us, 3600000000);
	CHECK_INT(d.policy.fallback, UAR_VERDICT_ASK);
	CHECK_INT(d.policy.timeout_us, 0);
	uar_definition_fini(&d);
}

TEST(wrong_definitions_are_refused_with_their_place, "ART-02 ART-03 ART-04")
{
	static const struct {
		const char *text, *where;
	} cases[] = {
		{ "{\"version\":\"2.0\",\"kind\":\"agent\",\"id\":\"a\"," CODEX "}", "/version" },
		{ "{\"version\":\"1.0\",\"kind\":\"skill\",\"id\":\"a\"," CODEX "}", "/kind" },
		{ "{\"version\":\"1.0\",\"kind\":\"agent\",\"id\":\"a b\"," CODEX "}", "/id" },
		{ "{\"version\":\"1.0\",\"kind\":\"agent\",\"id\":\"\"," CODEX "}", "/id" },
		{ WITH("\"runtime\":{\"entry\":\"llm.talk\"}"), "/runtime/entry" },
		{ WITH("\"runtime\":{\"entry\":\"backend.codex\",\"x\":1}"), "/runtime" },
		{ WITH(CODEX ",\"tools\":{}"), "/tools" },
		{ WITH(CODEX ",\"policy\":{\"approvals\":{\"default\":\"maybe\"}}"),
		  "/policy/approvals/default" },
		{ BACKEND("codex", "\"working_dir\":\"relative\""),
		  "/runtime/backend/working_dir" },
		{ BACKEND("codex", "\"program\":\"a/b\""), "/runtime/backend/program" },
		{ BACKEND("codex", "\"env\":{\"A=B\":\"\"}"), "/runtime/backend/env" },
		{ BACKEND("codex", "\"args\":[\"x\"]"), "/runtime/backend/args" },
		{ BACKEND("claude_code", "\"sandbox_mode\":\"read-only\""),
		  "/runtime/backend/sandbox_mode" },
		{ BACKEND("acp", "\"args\":[]"), "/runtime/backend" },
		{ "[]", "" },
		{ "{", "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_error error = { 0 };
		struct uar_definition d;
		uar_err e = uar_definition_read(uar_str_c(cases[i].text), &d, &error);

		CHECK_MSG(e == UAR_ESCHEMA || e == UAR_ESYNTAX, "%s: %s", cases[i].text,
			  uar_err_name(e));
		CHECK_MSG(uar_str_starts(uar_str_c(error.where), uar_str_c(cases[i].where)),
			  "%s: at %s, %s", cases[i].text, error.where, error.text);
	}
}

TEST(of_the_rules_that_fit_the_strictest_decides, "")
{
	static struct uar_definition_rule rules[] = {
		{ UAR_STR("command"), UAR_STR(""), UAR_VERDICT_DENY },
		{ UAR_STR(""), UAR_STR("mcp__*__read*"), UAR_VERDICT_ALLOW },
		{ UAR_STR("tool"), UAR_STR("Bash"), UAR_VERDICT_ASK },
		{ UAR_STR("tool"), UAR_STR("*"), UAR_VERDICT_DENY },
	};
	static const struct uar_definition_policy p = { UAR_VERDICT_ALLOW, rules, ARRAY_LEN(rules),
							0 };
	static const struct {
		const char *kind, *tool;
		enum uar_verdict want;
		int rule;
	} cases[] = {
		{ "command", "mcp__x__read", UAR_VERDICT_DENY, 0 },
		{ "tool", "mcp__files__read_all", UAR_VERDICT_DENY, 3 },
		{ "tool", "mcp__read", UAR_VERDICT_DENY, 3 },
		{ "tool", "Bash", UAR_VERDICT_DENY, 3 },
		{ "tool", "bash", UAR_VERDICT_DENY, 3 },
		{ "tool", "", UAR_VERDICT_DENY, 3 },
		{ "file_change", "", UAR_VERDICT_ALLOW, -1 },
		{ "input", "mcp__files__read_all", UAR_VERDICT_ALLOW, 1 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int rule = -2;

		CHECK_INT(uar_definition_judge(&p, uar_str_c(cases[i].kind),
					       uar_str_c(cases[i].tool), &rule),
			  cases[i].want);
		CHECK_INT(rule, cases[i].rule);
	}
}

TEST(every_failed_allocation_is_an_error, "")
{
	unsigned long n = 1;
	uar_err e = UAR_ENOMEM;

	for (; e && n < 100000; n++) {
		struct uar_error error = { 0 };
		struct uar_definition d;

		uar_test_fail_alloc(n);
		e = uar_definition_read(uar_str_c(whole), &d, &error);
		uar_test_fail_alloc(0);
		CHECK(e == UAR_OK || e == UAR_ENOMEM);
		if (!e)
			uar_definition_fini(&d);
	}
	CHECK_INT(e, UAR_OK);
}
