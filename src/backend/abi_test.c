/* abi_test.c - what holds for every function and structure of the public header: NULL, sizes of
 * other versions, names, copies, and no control characters in what people read. */
#include "backend/cli_test.h"

#include <ctype.h>

#include "base/file.h"

/* --- NULL --- */

static void null_values(void)
{
	static const uaa_str none;

	CHECK(uaa_abi_version() == (UAA_ABI_MAJOR << 16 | UAA_ABI_MINOR));
	CHECK(!uaa_str_c(NULL).ptr);
	uaa_free(NULL);
	CHECK(!uaa_has_backend(none));
	CHECK_INT(uaa_kind_new(none, NULL, NULL), UAA_E_ARG);
	CHECK(!uaa_kind_str(NULL).ptr && uaa_kind_compare(NULL, NULL) == 0);
	CHECK(uaa_kind_hash(NULL) == 0 && !uaa_kind_ref(NULL));
	uaa_kind_unref(NULL);
	CHECK_INT(uaa_caps_add(NULL, none), UAA_E_ARG);
	CHECK(!uaa_caps_contains(NULL, none) && uaa_caps_count(NULL) == 0);
	CHECK(!uaa_caps_at(NULL, 0).ptr && !uaa_caps_ref(NULL));
	uaa_caps_unref(NULL);
}

static void null_errors(void)
{
	static const uaa_str none;
	int n = 5;

	CHECK(uaa_error_code(NULL) == UAA_E_NOMEM && uaa_error_cause(NULL) == UAA_CAUSE_UNKNOWN);
	CHECK(!uaa_error_exited(NULL, &n) && !uaa_error_signaled(NULL, NULL) && n == 5);
	CHECK(!uaa_error_words(NULL).ptr && !uaa_error_withheld(NULL).ptr);
	CHECK(!uaa_error_agent_kind(NULL).ptr && !uaa_error_capability(NULL).ptr);
	CHECK(!uaa_error_message(NULL).ptr && uaa_error_display(NULL).ptr);
	CHECK(!uaa_error_ref(NULL) && !uaa_error_new(UAA_OK, none, none));
	uaa_error_unref(NULL);
}

static void null_events(void)
{
	int n = 5;

	CHECK(uaa_event_get_kind(NULL) == UAA_EV_UNKNOWN && !uaa_event_agent_kind(NULL).ptr);
	CHECK(!uaa_event_channel(NULL).ptr && !uaa_event_text(NULL).ptr);
	CHECK(!uaa_event_message(NULL).ptr && !uaa_event_data_json(NULL).ptr);
	CHECK(!uaa_event_ref(NULL));
	uaa_event_unref(NULL);
	CHECK(!uaa_completion_exited(NULL, &n) && !uaa_completion_signaled(NULL, &n) && n == 5);
	CHECK(!uaa_completion_final_text(NULL).ptr && !uaa_completion_data_json(NULL).ptr);
	CHECK(!uaa_completion_ref(NULL));
	uaa_completion_unref(NULL);
}

static void null_requests(void)
{
	static const uaa_str none;
	bool cut = true;
	int n = 5;
	int64_t ms;

	CHECK(!uaa_request_copy(NULL));
	uaa_request_unref(NULL);
	CHECK_INT(uaa_request_set_prompt(NULL, none), UAA_E_ARG);
	CHECK_INT(uaa_request_set_working_dir(NULL, none), UAA_E_ARG);
	CHECK_INT(uaa_request_set_timeout_ms(NULL, 1), UAA_E_ARG);
	CHECK_INT(uaa_request_set_env(NULL, none, none), UAA_E_ARG);
	CHECK_INT(uaa_request_set_extension_json(NULL, none, none), UAA_E_ARG);
	CHECK(!uaa_request_prompt(NULL).ptr && !uaa_request_working_dir(NULL).ptr);
	CHECK(!uaa_request_timeout_ms(NULL, &ms) && uaa_request_env_count(NULL) == 0);
	CHECK(!uaa_request_env_at(NULL, 0, NULL, NULL) && uaa_request_extension_count(NULL) == 0);
	CHECK(!uaa_request_extension_at(NULL, 0, NULL, NULL));
	CHECK(!uaa_request_extension(NULL, none).ptr);
	CHECK(!uaa_mcp_result_exited(NULL, &n) && !uaa_mcp_result_signaled(NULL, &n) && n == 5);
	CHECK(!uaa_mcp_result_stdout(NULL, &cut).ptr && !cut);
	CHECK(!uaa_mcp_result_stderr(NULL, NULL).ptr);
	uaa_mcp_result_unref(NULL);
}

static void null_gateways(void)
{
	uaa_gateway *g = uaa_gateway_new();

	CHECK(!uaa_gateway_ref(NULL) && !uaa_gateway_backend(NULL, NULL));
	CHECK(!uaa_gateway_backend(g, NULL));
	CHECK_INT(uaa_gateway_register(g, NULL, NULL), UAA_E_ARG);
	CHECK_INT(uaa_gateway_run(NULL, NULL, NULL, NULL, NULL), UAA_E_ARG);
	CHECK_INT(uaa_gateway_run_control(NULL, NULL, NULL, NULL, NULL), UAA_E_ARG);
	CHECK_INT(uaa_gateway_mcp(NULL, NULL, NULL, NULL, NULL), UAA_E_ARG);
	uaa_gateway_unref(NULL);
	uaa_gateway_unref(g);
	CHECK(!uaa_backend_new(NULL, NULL) && !uaa_backend_kind(NULL).ptr);
	CHECK(!uaa_backend_caps(NULL) && !uaa_backend_ref(NULL));
	CHECK_INT(uaa_backend_run(NULL, NULL, NULL, NULL), UAA_E_ARG);
	uaa_backend_unref(NULL);
	CHECK(!uaa_acp_backend_new(NULL));
	uaa_backend_unref(uaa_codex_backend_new(NULL));
	uaa_backend_unref(uaa_claude_code_backend_new(NULL));
}

static void null_runs(void)
{
	static const uaa_str none;

	CHECK_INT(uaa_run_fd(NULL), -1);
	CHECK_INT(uaa_run_next(NULL, -1, NULL), UAA_E_ARG);
	uaa_run_close_events(NULL);
	CHECK_INT(uaa_run_wait(NULL, -1, NULL, NULL), UAA_E_ARG);
	CHECK_INT(uaa_run_collect(NULL, NULL, NULL, NULL, NULL), UAA_E_ARG);
	CHECK(!uaa_run_ref(NULL));
	uaa_run_unref(NULL);
	uaa_cancel_request(NULL);
	CHECK(!uaa_cancel_ref(NULL));
	uaa_cancel_unref(NULL);
	CHECK_INT(uaa_run_respond(NULL, none, UAA_DECISION_DENY, NULL), UAA_E_ARG);
	CHECK_INT(uaa_run_approval_input(NULL, none, NULL, NULL, NULL), UAA_E_ARG);
	CHECK_INT(uaa_run_new(none, NULL, NULL, NULL, NULL), UAA_E_ARG);
	CHECK_INT(uaa_producer_emit(NULL, NULL), UAA_E_ARG);
	uaa_producer_succeed(NULL, 0, none, none);
	uaa_producer_fail(NULL, none);
	uaa_producer_fail_as(NULL, UAA_CAUSE_AUTH, none);
	uaa_producer_unref(NULL);
}

/* Each function of the header is called somewhere above: its name stands in this very file. */
static void check_all_named(void)
{
	struct uar_buf header = uar_buf_make(1 << 20), own = header;
	size_t names = 0;

	REQUIRE(uar_file_read("include/agent_api/agent_api.h", &header, NULL) == UAR_OK);
	REQUIRE(uar_file_read("src/backend/abi_test.c", &own, NULL) == UAR_OK);
	for (const char *at = header.p; (at = strstr(at, "\nUAA_API ")); at++) {
		const char *end = strchr(at, '('), *name = end;
		char want[80];

		while (name[-1] == '_' || isalnum((unsigned char)name[-1]))
			name--;
		snprintf(want, sizeof want, "%.*s(", (int)(end - name), name);
		CHECK_MSG(strstr(own.p, want) != NULL, "%s", want);
		names++;
	}
	CHECK(names > 80);
	uar_buf_fini(&header);
	uar_buf_fini(&own);
}

/* Calls with a valid object, but with NULL out parameters and NULL strings. */
static void null_beside_values(void)
{
	static const uaa_str none, nothing = { NULL, 7 };
	uaa_request *r = ask("hi");
	uaa_kind *k = NULL;
	uaa_error *e = uaa_error_new(UAA_E_INVALID_REQUEST, none, nothing);
	uaa_backend *b = uaa_claude_code_backend_new(NULL);
	uaa_gateway *g = uaa_gateway_new();
	uaa_caps *c = uaa_caps_new();

	CHECK_INT(uaa_kind_new(nothing, &k, NULL), UAA_E_INVALID_AGENT_KIND);
	CHECK_INT(uaa_kind_new(uaa_str_c("claude_code"), NULL, NULL), UAA_E_ARG);
	CHECK_INT(uaa_kind_new(uaa_str_c("claude_code"), &k, NULL), UAA_OK);
	CHECK(uaa_kind_compare(k, NULL) > 0 && uaa_kind_compare(NULL, k) < 0);
	CHECK_INT(uaa_caps_add(c, nothing), UAA_E_ARG);
	CHECK(!uaa_caps_contains(c, nothing) && !uaa_caps_at(c, 0).ptr);
	CHECK_STR(uab_str(uaa_error_display(e)), "invalid request: ");
	CHECK_INT(uaa_request_set_prompt(r, nothing), UAA_E_ARG);
	CHECK_INT(uaa_request_set_working_dir(r, nothing), UAA_E_ARG);
	CHECK_INT(uaa_request_set_env(r, nothing, none), UAA_E_ARG);
	CHECK_INT(uaa_request_set_env(r, uaa_str_c("A"), nothing), UAA_E_ARG);
	CHECK_INT(uaa_request_set_extension_json(r, uaa_str_c("a.b"), nothing), UAA_E_ARG);
	CHECK_INT(uaa_request_set_env(r, uaa_str_c("A"), uaa_str_c("1")), UAA_OK);
	CHECK_INT(uaa_request_set_extension_json(r, uaa_str_c("a.b"), uaa_str_c("1")), UAA_OK);
	CHECK(uaa_request_env_at(r, 0, NULL, NULL) && uaa_request_extension_at(r, 0, NULL, NULL));
	CHECK(!uaa_request_extension(r, nothing).ptr);
	CHECK_INT(uaa_request_set_timeout_ms(r, 1), UAA_OK);
	CHECK(uaa_request_timeout_ms(r, NULL));
	CHECK_INT(uaa_gateway_register(g, b, NULL), UAA_OK);
	CHECK_INT(uaa_gateway_register(g, b, NULL), UAA_E_INVALID_REQUEST);
	CHECK_INT(uaa_gateway_run(g, k, NULL, NULL, NULL), UAA_E_ARG);
	CHECK_INT(uaa_gateway_run(g, k, r, NULL, NULL), UAA_E_ARG);
	CHECK_INT(uaa_gateway_run(g, NULL, r, NULL, NULL), UAA_E_ARG);
	CHECK_INT(uaa_gateway_run_control(g, k, r, NULL, NULL), UAA_E_ARG);
	CHECK_INT(uaa_gateway_mcp(g, k, NULL, NULL, NULL), UAA_E_ARG);
	CHECK_INT(uaa_backend_run(b, r, NULL, NULL), UAA_E_ARG);
	uaa_caps_unref(c);
	uaa_gateway_unref(g);
	uaa_backend_unref(b);
	uaa_error_unref(e);
	uaa_kind_unref(k);
	uaa_request_unref(r);
}

static void null_in_a_run(void)
{
	static const uaa_str nothing = { NULL, 7 };
	const uaa_event_spec say = { .kind = UAA_EV_STATUS,
				     .channel = nothing,
				     .text = nothing,
				     .message = nothing,
				     .data_json = nothing };
	uaa_producer *p = NULL;
	uaa_run *run = NULL;
	uaa_event *ev = NULL;
	uaa_completion *c = NULL;

	CHECK_INT(uaa_run_new(uaa_str_c("k"), NULL, NULL, NULL, &p), UAA_E_ARG);
	CHECK_INT(uaa_run_new(uaa_str_c("k"), NULL, NULL, &run, NULL), UAA_E_ARG);
	REQUIRE(uaa_run_new(uaa_str_c("k"), NULL, NULL, &run, &p) == UAA_OK);
	CHECK_INT(uaa_producer_emit(p, NULL), UAA_E_ARG);
	CHECK_INT(uaa_producer_emit(p, &say), UAA_OK);
	CHECK_INT(uaa_run_next(run, 0, NULL), UAA_E_ARG);
	REQUIRE(uaa_run_next(run, 0, &ev) == UAA_OK);
	CHECK(!uaa_event_channel(ev).ptr && !uaa_event_data_json(ev).ptr);
	uaa_event_unref(ev);
	CHECK_INT(uaa_run_respond(run, nothing, UAA_DECISION_DENY, NULL), UAA_E_ARG);
	CHECK_INT(uaa_run_respond(run, uaa_str_c("x"), UAA_DECISION_DENY, NULL),
		  UAA_E_UNSUPPORTED_CAPABILITY);
	CHECK_INT(uaa_run_approval_input(run, uaa_str_c("x"), NULL, NULL, NULL), UAA_E_ARG);
	CHECK_INT(uaa_run_wait(run, 0, NULL, NULL), UAA_AGAIN);
	uaa_producer_succeed(p, 0, nothing, nothing);
	uaa_producer_unref(p);
	CHECK_INT(uaa_run_collect(run, NULL, NULL, NULL, NULL), UAA_OK);
	REQUIRE(uaa_run_wait(run, 0, &c, NULL) == UAA_OK);
	CHECK(uaa_completion_exited(c, NULL) && !uaa_completion_signaled(c, NULL));
	CHECK(!uaa_completion_final_text(c).ptr && !uaa_completion_data_json(c).ptr);
	uaa_completion_unref(c);
	uaa_run_unref(run);
}

/* A list that is said to have members and is not there is refused, not read. */
static void null_lists(void)
{
	uaa_codex_config codex = UAA_CODEX_CONFIG_INIT;
	uaa_claude_code_config claude_code = UAA_CLAUDE_CODE_CONFIG_INIT;
	uaa_acp_config acp = UAA_ACP_CONFIG_INIT;
	uaa_gateway *g = uaa_gateway_new();
	uaa_backend *b = uaa_codex_backend_new(NULL);
	uaa_kind *k = NULL;

	codex.env_count = claude_code.env_count = acp.env_count = 1;
	acp.binary = uaa_str_c("x");
	CHECK(!uaa_codex_backend_new(&codex) && !uaa_claude_code_backend_new(&claude_code));
	CHECK(!uaa_acp_backend_new(&acp));
	acp.env_count = 0;
	acp.arg_count = 1;
	CHECK(!uaa_acp_backend_new(&acp));
	CHECK_INT(uaa_gateway_register(g, b, NULL), UAA_OK);
	CHECK_INT(uaa_kind_new(uaa_str_c("codex"), &k, NULL), UAA_OK);
	for (int i = 0; i < 3; i++) {
		uaa_mcp_request r = UAA_MCP_REQUEST_INIT;
		uaa_mcp_result *m = NULL;

		*(i == 0 ? &r.command_count : i == 1 ? &r.server_env_count : &r.env_count) = 1;
		CHECK_INT(uaa_gateway_mcp(g, k, &r, &m, NULL), UAA_E_ARG);
	}
	uaa_kind_unref(k);
	uaa_gateway_unref(g);
	uaa_backend_unref(b);
}

TEST(null_is_tolerated_everywhere, "")
{
	uaa_caps_unref(uaa_caps_new());
	uaa_request_unref(uaa_request_new());
	null_beside_values();
	null_in_a_run();
	null_lists();
	null_values();
	null_errors();
	null_events();
	null_requests();
	null_gateways();
	null_runs();
	check_all_named();
}

/* --- names and copies --- */

/* All that the header declares, read from there. */
TEST(every_status_has_its_name, "")
{
	struct uar_buf header = uar_buf_make(1 << 20);
	char name[64];
	int value, names = 0;

	REQUIRE(uar_file_read("include/agent_api/agent_api.h", &header, NULL) == UAR_OK);
	for (const char *at = strstr(header.p, "typedef enum uaa_status {");
	     at && sscanf(strchr(at, '\n'), " %63[A-Z_] = %d", name, &value) == 2;
	     at = strchr(at, '\n') + 1) {
		CHECK_STR(uar_str_c(uaa_status_name((uaa_status)value)), name);
		names++;
	}
	CHECK_INT(names, 10);
	CHECK_STR(uar_str_c(uaa_status_name((uaa_status)77)), "unknown uaa_status");
	uar_buf_fini(&header);
}

TEST(a_copied_request_is_the_same_and_its_own, "")
{
	uaa_request *r = ask("one"), *copy;
	uaa_str name, value;
	int64_t ms = 0;

	CHECK_INT(uaa_request_set_working_dir(r, uaa_str_c("/d")), UAA_OK);
	CHECK_INT(uaa_request_set_timeout_ms(r, 7), UAA_OK);
	CHECK_INT(uaa_request_set_env(r, uaa_str_c("A"), uaa_str_c("1")), UAA_OK);
	with(r, "agent_api.exec.non_interactive", "true");
	copy = uaa_request_copy(r);
	REQUIRE(copy != NULL);
	CHECK_INT(uaa_request_set_prompt(r, uaa_str_c("two")), UAA_OK);
	CHECK_INT(uaa_request_set_env(r, uaa_str_c("A"), uaa_str_c("2")), UAA_OK);
	CHECK_INT(uaa_request_set_env(copy, uaa_str_c("B"), uaa_str_c("3")), UAA_OK);
	CHECK_INT(uaa_request_env_count(r), 1);
	uaa_request_unref(r);
	CHECK_STR(uab_str(uaa_request_prompt(copy)), "one");
	CHECK_STR(uab_str(uaa_request_working_dir(copy)), "/d");
	CHECK(uaa_request_timeout_ms(copy, &ms) && ms == 7);
	CHECK(uaa_request_env_at(copy, 0, &name, &value) && value.ptr[0] == '1');
	CHECK_STR(uab_str(uaa_request_extension(copy, uaa_str_c("agent_api.exec.non_interactive"))),
		  "true");
	uaa_request_unref(copy);
	copy = uaa_request_copy(r = uaa_request_new());
	CHECK(copy && !uaa_request_prompt(copy).ptr && !uaa_request_timeout_ms(copy, NULL));
	uaa_request_unref(copy);
	uaa_request_unref(r);
}

TEST(control_characters_of_a_key_are_escaped_for_people, "")
{
	uaa_request *r = ask("hi");
	uaa_backend *b = uaa_claude_code_backend_new(NULL);
	uaa_run *run = NULL;
	uaa_error *e = NULL;
	static const char key[] = "a\x1b[31m\nb\x7f\xC2\x9B\xC3\xA9";

	with(r, key, "1");
	CHECK_INT(uaa_backend_run(b, r, &run, &e), UAA_E_UNSUPPORTED_CAPABILITY);
	CHECK_STR(uab_str(uaa_error_display(e)), "unsupported capability for claude_code: "
						 "a\\u001b[31m\\u000ab\\u007f\\u009b\xC3\xA9");
	CHECK_STR(uab_str(uaa_error_capability(e)), key);
	uaa_error_unref(e);
	uaa_request_unref(r);
	uaa_backend_unref(b);
}

/* Also what the writer of a backend puts into any of the five. */
TEST(control_characters_are_escaped_in_each_kind_of_error, "")
{
	static const uaa_str evil = { "a\x1b\r\0b", 5 };
	static const char *const want[] = {
		"unknown backend: a\\u001b\\u000d\\u0000b",
		"unsupported capability for a\\u001b\\u000d\\u0000b: a\\u001b\\u000d\\u0000b",
		"invalid agent kind: a\\u001b\\u000d\\u0000b",
		"invalid request: a\\u001b\\u000d\\u0000b",
		"backend error: a\\u001b\\u000d\\u0000b",
	};

	for (int code = UAA_E_UNKNOWN_BACKEND; code <= UAA_E_BACKEND; code++) {
		uaa_error *e = uaa_error_new((uaa_status)code, evil, evil);

		REQUIRE(e != NULL);
		CHECK_STR(uab_str(uaa_error_display(e)), want[code - 1]);
		uaa_error_unref(e);
	}
}

/* --- structures of other versions --- */

/* A structure as a later version may have it: more behind what is known here. */
#define LATER(TYPE)                                                                                \
	union {                                                                                    \
		TYPE now;                                                                          \
		char bytes[sizeof(TYPE) + 16];                                                     \
	}

static void set_tail(char *bytes, size_t n, char last)
{
	memcpy(bytes, &n, sizeof n);
	bytes[n - 1] = last;
}

static bool accepted(uaa_backend *b)
{
	uaa_backend_unref(b);
	return b != NULL;
}

TEST(of_a_larger_structure_only_a_zero_rest_is_taken, "")
{
	for (int bad = 0; bad < 2; bad++) {
		LATER(uaa_codex_config) codex = { 0 };
		LATER(uaa_claude_code_config) claude_code = { 0 };
		LATER(uaa_acp_config) acp = { 0 };
		LATER(uaa_process_options) process = { 0 };
		LATER(uaa_producer_hooks) hooks = { 0 };
		uaa_codex_config with_process = UAA_CODEX_CONFIG_INIT;
		uaa_producer *p = NULL;
		uaa_run *run = NULL;

		acp.now.binary = uaa_str_c("x");
		set_tail(codex.bytes, sizeof codex.bytes, (char)bad);
		set_tail(claude_code.bytes, sizeof claude_code.bytes, (char)bad);
		set_tail(acp.bytes, sizeof acp.bytes, (char)bad);
		set_tail(process.bytes, sizeof process.bytes, (char)bad);
		set_tail(hooks.bytes, sizeof hooks.bytes, (char)bad);
		with_process.process = &process.now;
		CHECK(accepted(uaa_codex_backend_new(&codex.now)) == !bad);
		CHECK(accepted(uaa_claude_code_backend_new(&claude_code.now)) == !bad);
		CHECK(accepted(uaa_acp_backend_new(&acp.now)) == !bad);
		CHECK(accepted(uaa_codex_backend_new(&with_process)) == !bad);
		CHECK_INT(uaa_run_new(uaa_str_c("k"), &hooks.now, NULL, &run, &p),
			  bad ? UAA_E_ARG : UAA_OK);
		uaa_producer_unref(p);
		uaa_run_unref(run);
	}
}

static uaa_str own_kind(void *self)
{
	(void)self;
	return UAB_STR("own");
}

static const uaa_caps *own_caps(void *self)
{
	return self;
}

static uaa_status own_run(void *self, const uaa_request *r, uaa_run **out, uaa_error **error)
{
	(void)self, (void)r, (void)out;
	return uab_invalid(error, "it runs nothing");
}

static uaa_status own_mcp(void *self, const uaa_mcp_request *r, uaa_mcp_result **out,
			  uaa_error **error)
{
	(void)self, (void)r, (void)out;
	return uab_invalid(error, "it was asked");
}

/* The status, and the error says the same. */
static void check_wrong(uaa_status s, uaa_error **error, const char *want)
{
	CHECK_INT(s, UAA_E_ARG);
	CHECK_INT(uaa_error_code(*error), UAA_E_ARG);
	CHECK_STR(uab_str(uaa_error_display(*error)), want);
	uaa_error_unref(*error);
	*error = NULL;
}

TEST(a_wrong_call_names_the_argument, "")
{
	uaa_backend_ops ops = { .struct_size = sizeof ops,
				.abi = uaa_abi_version(),
				.kind = own_kind,
				.caps = own_caps,
				.run = own_run,
				.mcp = own_mcp };
	uaa_caps *caps = uaa_caps_new();
	uaa_gateway *g = uaa_gateway_new();
	uaa_request *r = uaa_request_new();
	uaa_mcp_request bad_op = { .struct_size = sizeof bad_op, .op = (uaa_mcp_op)99 };
	uaa_backend *b;
	uaa_error *e = NULL;
	uaa_mcp_result *m = NULL;
	uaa_run *run = NULL;
	uaa_kind *k = NULL;

	CHECK_INT(uaa_caps_add(caps, uaa_str_c("agent_api.run")), UAA_OK);
	CHECK_INT(uaa_caps_add(caps, uaa_str_c("agent_api.events")), UAA_OK);
	b = uaa_backend_new(&ops, caps);
	CHECK_INT(uaa_gateway_register(g, b, NULL), UAA_OK);
	CHECK_INT(uaa_kind_new(uaa_str_c("own"), &k, NULL), UAA_OK);
	check_wrong(uaa_kind_new(uaa_str_c("own"), NULL, &e), &e, "invalid argument: out is NULL");
	check_wrong(uaa_gateway_register(NULL, b, &e), &e, "invalid argument: gateway is NULL");
	check_wrong(uaa_gateway_register(g, NULL, &e), &e, "invalid argument: backend is NULL");
	check_wrong(uaa_gateway_run(NULL, k, r, &run, &e), &e, "invalid argument: gateway is NULL");
	check_wrong(uaa_gateway_run(g, NULL, r, &run, &e), &e, "invalid argument: kind is NULL");
	check_wrong(uaa_gateway_run(g, k, NULL, &run, &e), &e, "invalid argument: request is NULL");
	check_wrong(uaa_gateway_run(g, k, r, NULL, &e), &e, "invalid argument: out is NULL");
	check_wrong(uaa_gateway_run_control(g, k, r, NULL, &e), &e,
		    "invalid argument: out is NULL");
	check_wrong(uaa_gateway_mcp(g, k, NULL, &m, &e), &e, "invalid argument: request is NULL");
	check_wrong(uaa_gateway_mcp(g, k, &bad_op, &m, &e), &e,
		    "invalid argument: op of the request is not known");
	check_wrong(uaa_run_wait(NULL, -1, NULL, &e), &e, "invalid argument: run is NULL");
	check_wrong(uaa_run_respond(NULL, uaa_str_c("x"), UAA_DECISION_DENY, &e), &e,
		    "invalid argument: run is NULL");
	uaa_kind_unref(k);
	uaa_request_unref(r);
	uaa_backend_unref(b);
	uaa_gateway_unref(g);
	uaa_caps_unref(caps);
}

TEST(a_number_that_names_nothing_is_refused, "")
{
	uaa_codex_config codex = UAA_CODEX_CONFIG_INIT;
	uaa_claude_code_config claude_code = UAA_CLAUDE_CODE_CONFIG_INIT;
	uaa_acp_config acp = UAA_ACP_CONFIG_INIT;

	acp.binary = uaa_str_c("x");
	for (uint32_t known = UAA_ENV_ALLOWLIST; known <= UAA_ENV_NONE; known++) {
		codex.inherit_env = claude_code.inherit_env = acp.inherit_env = known;
		CHECK(accepted(uaa_codex_backend_new(&codex)));
		CHECK(accepted(uaa_claude_code_backend_new(&claude_code)));
		CHECK(accepted(uaa_acp_backend_new(&acp)));
	}
	codex.inherit_env = claude_code.inherit_env = acp.inherit_env = 77;
	CHECK(!accepted(uaa_codex_backend_new(&codex)));
	CHECK(!accepted(uaa_claude_code_backend_new(&claude_code)));
	CHECK(!accepted(uaa_acp_backend_new(&acp)));
	codex.inherit_env = UAA_ENV_ALL;
	codex.transport = 99;
	CHECK(!accepted(uaa_codex_backend_new(&codex)));
}

/* The functions of a backend, and a request for its MCP servers. */
TEST(larger_ops_and_requests_need_a_zero_tail, "")
{
	uaa_caps *caps = uaa_caps_new();

	CHECK_INT(uaa_caps_add(caps, uaa_str_c("agent_api.run")), UAA_OK);
	CHECK_INT(uaa_caps_add(caps, uaa_str_c("agent_api.events")), UAA_OK);
	CHECK_INT(uaa_caps_add(caps, uaa_str_c("agent_api.tools.mcp.list.v1")), UAA_OK);
	for (int bad = 0; bad < 2; bad++) {
		LATER(uaa_backend_ops) ops = { 0 };
		LATER(uaa_mcp_request) request = { 0 };
		uaa_gateway *g = uaa_gateway_new();
		uaa_mcp_result *m = NULL;
		uaa_backend *b;
		uaa_kind *k = NULL;

		ops.now = (uaa_backend_ops){ .abi = uaa_abi_version(),
					     .kind = own_kind,
					     .caps = own_caps,
					     .run = own_run,
					     .mcp = own_mcp };
		set_tail(ops.bytes, sizeof ops.bytes, (char)bad);
		CHECK(accepted(uaa_backend_new(&ops.now, caps)) == !bad);
		ops.bytes[sizeof ops.bytes - 1] = 0;
		b = uaa_backend_new(&ops.now, caps);
		CHECK_INT(uaa_gateway_register(g, b, NULL), UAA_OK);
		CHECK_INT(uaa_kind_new(uaa_str_c("own"), &k, NULL), UAA_OK);
		set_tail(request.bytes, sizeof request.bytes, (char)bad);
		CHECK_INT(uaa_gateway_mcp(g, k, &request.now, &m, NULL),
			  bad ? UAA_E_ARG : UAA_E_INVALID_REQUEST);
		uaa_kind_unref(k);
		uaa_backend_unref(b);
		uaa_gateway_unref(g);
	}
	uaa_caps_unref(caps);
}

TEST(a_structure_of_an_older_version_is_taken, "")
{
	uaa_process_options o = UAA_PROCESS_OPTIONS_INIT;
	uaa_codex_config c = UAA_CODEX_CONFIG_INIT;

	c.process = &o;
	o.struct_size = offsetof(uaa_process_options, trace); /* of minor 2 */
	o.keep_words = true;				      /* behind its end */
	CHECK(accepted(uaa_codex_backend_new(&c)));
	o.struct_size--;
	CHECK(!accepted(uaa_codex_backend_new(&c)));
}

TEST(every_init_is_its_size_and_nothing_else, "")
{
	static const char zero[1024];

#define ZERO_BUT_SIZE(TYPE, INIT)                                                                  \
	do {                                                                                       \
		static TYPE v = INIT;                                                              \
		CHECK(v.struct_size == sizeof v);                                                  \
		CHECK(!memcmp((const char *)&v + sizeof v.struct_size, zero,                       \
			      sizeof v - sizeof v.struct_size));                                   \
	} while (0)
	ZERO_BUT_SIZE(uaa_codex_config, UAA_CODEX_CONFIG_INIT);
	ZERO_BUT_SIZE(uaa_claude_code_config, UAA_CLAUDE_CODE_CONFIG_INIT);
	ZERO_BUT_SIZE(uaa_acp_config, UAA_ACP_CONFIG_INIT);
	ZERO_BUT_SIZE(uaa_process_options, UAA_PROCESS_OPTIONS_INIT);
	ZERO_BUT_SIZE(uaa_mcp_request, UAA_MCP_REQUEST_INIT);
	ZERO_BUT_SIZE(uaa_backend_ops, UAA_BACKEND_OPS_INIT);
	ZERO_BUT_SIZE(uaa_producer_hooks, UAA_PRODUCER_HOOKS_INIT);
}
