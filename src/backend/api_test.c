/* api_test.c - names, errors, requests and the gateway, without any process. */
#include "backend/toy_test.h"

/* --- names --- */

TEST(U05_kind_names, "LIB-25 LIB-26")
{
	static const char *const good[] = { "codex", "claude_code", "a", "a1_", "gemini_cli" };
	static const uaa_str bad[] = { UAB_STR(""),	 UAB_STR("1a"),	      UAB_STR("_a"),
				       UAB_STR("a-b"),	 UAB_STR("Codex"),    UAB_STR("a b"),
				       UAB_STR("a.b"),	 UAB_STR("\xC3\xA9"), UAB_STR("a\xC3\xA9"),
				       UAB_STR("a\xFF"), UAB_STR("aB"),	      UAB_STR("a\n"),
				       UAB_STR("a\0b"),	 UAB_STR("a\0"),      UAB_NONE };
	uaa_kind *k = NULL, *l = NULL;

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		CHECK(uaa_kind_new(uaa_str_c(good[i]), &k, NULL) == UAA_OK);
		CHECK_STR(uab_str(uaa_kind_str(k)), good[i]);
		uaa_kind_unref(k);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		uaa_error *e = NULL;

		CHECK_MSG(uaa_kind_new(bad[i], &k, &e) == UAA_E_INVALID_AGENT_KIND, "kind %zu", i);
		CHECK(uar_str_starts(uab_str(uaa_error_display(e)),
				     UAR_STR("invalid agent kind: ")));
		CHECK(uaa_error_message(e).ptr && !uaa_error_agent_kind(e).ptr);
		uaa_error_unref(e);
	}
	uaa_kind_new(uaa_str_c("a"), &k, NULL);
	uaa_kind_new(uaa_str_c("b"), &l, NULL);
	CHECK(uaa_kind_compare(k, l) < 0 && uaa_kind_compare(l, k) > 0);
	CHECK(uaa_kind_compare(k, k) == 0 && uaa_kind_hash(k) != uaa_kind_hash(l));
	uaa_kind_unref(l);
	uaa_kind_new(uaa_str_c("a"), &l, NULL); /* by the id, not by the object */
	CHECK(k != l && uaa_kind_compare(k, l) == 0 && uaa_kind_hash(k) == uaa_kind_hash(l));
	uaa_kind_unref(l);
	uaa_kind_new(uaa_str_c("a_"), &l, NULL);
	CHECK(uaa_kind_compare(k, l) < 0 && uaa_kind_compare(l, k) > 0);
	uaa_kind_unref(k);
	uaa_kind_unref(l);
}

TEST(capability_sets_are_ordered, "LIB-27")
{
	uaa_caps *c = uaa_caps_new();

	CHECK(uaa_caps_add(c, uaa_str_c("agent_api.run")) == UAA_OK);
	CHECK(uaa_caps_add(c, uaa_str_c("agent_api.events.live")) == UAA_OK);
	CHECK(uaa_caps_add(c, uaa_str_c("agent_api.run")) == UAA_OK);
	CHECK(uaa_caps_add(c, uaa_str_c("backend.codex.exec.x")) == UAA_OK);
	CHECK(uaa_caps_add(c, uaa_str_c("nonsense")) == UAA_E_ARG);
	CHECK_INT(uaa_caps_count(c), 3);
	CHECK_STR(uab_str(uaa_caps_at(c, 0)), "agent_api.events.live");
	CHECK_STR(uab_str(uaa_caps_at(c, 1)), "agent_api.run");
	CHECK(!uaa_caps_at(c, 3).ptr);
	CHECK(uaa_caps_contains(c, uaa_str_c("agent_api.run")));
	CHECK(!uaa_caps_contains(c, uaa_str_c("agent_api.events"))); /* no hierarchy */
	CHECK(!uaa_caps_contains(c, uaa_str_c("Agent_api.run")));
	uaa_caps_unref(c);
}

TEST(error_display_formats, "LIB-34")
{
	static const struct {
		uaa_status code;
		const char *want;
	} cases[] = {
		{ UAA_E_UNKNOWN_BACKEND, "unknown backend: toy" },
		{ UAA_E_UNSUPPORTED_CAPABILITY, "unsupported capability for toy: what" },
		{ UAA_E_INVALID_AGENT_KIND, "invalid agent kind: what" },
		{ UAA_E_INVALID_REQUEST, "invalid request: what" },
		{ UAA_E_BACKEND, "backend error: what" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uaa_error *e = uaa_error_new(cases[i].code, uaa_str_c("toy"), uaa_str_c("what"));

		CHECK_STR(uab_str(uaa_error_display(e)), cases[i].want);
		CHECK(uaa_error_code(e) == cases[i].code);
		CHECK(!uaa_error_agent_kind(e).ptr == (i > 1));
		CHECK(!uaa_error_capability(e).ptr == (i != 1));
		CHECK(!uaa_error_message(e).ptr == (i < 2));
		uaa_error_unref(e);
	}
	for (int code = -1; code <= (int)UAA_E_ARG; code++) /* there are no others */
		if (code < (int)UAA_E_UNKNOWN_BACKEND || code > (int)UAA_E_BACKEND)
			CHECK(!uaa_error_new((uaa_status)code, UAB_NONE, UAB_NONE));
}

TEST(requests_hold_what_is_set, "LIB-30")
{
	uaa_request *r = uaa_request_new();
	uaa_str k, v;
	int64_t ms = -7;

	CHECK(!uaa_request_prompt(r).ptr && !uaa_request_working_dir(r).ptr);
	CHECK(!uaa_request_timeout_ms(r, &ms) && ms == -7);
	CHECK(uaa_request_set_env(r, uaa_str_c("B"), uaa_str_c("1")) == UAA_OK);
	CHECK(uaa_request_set_env(r, uaa_str_c("A"), uaa_str_c("2")) == UAA_OK);
	CHECK(uaa_request_set_env(r, uaa_str_c("B"), uaa_str_c("3")) == UAA_OK);
	CHECK(uaa_request_set_env(r, uaa_str_c("A=B"), uaa_str_c("")) == UAA_E_ARG);
	CHECK(uaa_request_set_env(r, uaa_str_c(""), uaa_str_c("")) == UAA_E_ARG);
	CHECK_INT(uaa_request_env_count(r), 2);
	CHECK(uaa_request_env_at(r, 1, &k, &v));
	CHECK_STR(uab_str(k), "B");
	CHECK_STR(uab_str(v), "3");
	CHECK(uaa_request_set_prompt(r, uaa_str_c("\xFF")) == UAA_E_ARG);
	CHECK(uaa_request_set_timeout_ms(r, -1) == UAA_E_ARG);
	CHECK(uaa_request_set_timeout_ms(r, 0) == UAA_OK);
	CHECK(uaa_request_timeout_ms(r, &ms) && ms == 0);
	CHECK(uaa_request_set_extension_json(r, uaa_str_c("x.y"), uaa_str_c("{")) == UAA_E_ARG);
	CHECK(uaa_request_set_extension_json(r, uaa_str_c("x.y"), uaa_str_c("{}")) == UAA_OK);
	CHECK_STR(uab_str(uaa_request_extension(r, uaa_str_c("x.y"))), "{}");
	CHECK(!uaa_request_extension(r, uaa_str_c("x")).ptr);
	uaa_request_unref(r);
}

TEST(requests_give_back_copies_in_order, "LIB-30")
{
	static const char *const keys[] = { "x.c", "x.a", "x.b", "x.a" };
	static const char *const want[][2] = { { "x.a", "[3]" },
					       { "x.b", "[2]" },
					       { "x.c", "[0]" } };
	char text[] = "prompt", json[] = "[0]";
	uaa_request *r = uaa_request_new();
	uaa_str k = UAB_NONE, v = UAB_NONE;

	CHECK(uaa_request_set_prompt(r, uaa_str_c(text)) == UAA_OK);
	CHECK(uaa_request_set_working_dir(r, uaa_str_c(text)) == UAA_OK);
	CHECK(uaa_request_set_env(r, uaa_str_c(text), uaa_str_c(text)) == UAA_OK);
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		json[1] = (char)('0' + i);
		CHECK(uaa_request_set_extension_json(r, uaa_str_c(keys[i]), uaa_str_c(json)) ==
		      UAA_OK);
	}
	memset(text, '-', sizeof text - 1); /* what was given may go */
	memset(json, '-', sizeof json - 1);
	CHECK_STR(uab_str(uaa_request_prompt(r)), "prompt");
	CHECK_STR(uab_str(uaa_request_working_dir(r)), "prompt");
	CHECK(uaa_request_env_at(r, 0, &k, &v) && !uaa_request_env_at(r, 1, &k, &v));
	CHECK_STR(uab_str(k), "prompt");
	CHECK_STR(uab_str(v), "prompt");
	CHECK_INT(uaa_request_extension_count(r), 3);
	for (size_t i = 0; i < 3; i++) {
		CHECK(uaa_request_extension_at(r, i, &k, &v));
		CHECK_STR(uab_str(k), want[i][0]);
		CHECK_STR(uab_str(v), want[i][1]);
	}
	CHECK(!uaa_request_extension_at(r, 3, &k, &v));
	uaa_request_unref(r);
}

/* --- gateway --- */

TEST(U08_duplicate_register, "LIB-36 LIB-37")
{
	struct world w;
	struct fake other = { .kind = "toy" };
	uaa_backend *b, *got;
	uaa_error *e = NULL;
	uaa_gateway *empty = uaa_gateway_new();

	world_init(&w, NULL);
	CHECK(!uaa_gateway_backend(empty, w.kind));
	uaa_gateway_unref(empty);
	other.caps = w.fake.caps;
	b = uaa_backend_new(&fake_ops, &other);
	CHECK(uaa_gateway_register(w.gw, b, &e) == UAA_E_INVALID_REQUEST);
	uaa_error_unref(e);
	got = uaa_gateway_backend(w.gw, w.kind);
	CHECK(got && got != b);
	uaa_backend_unref(got);
	CHECK_INT(w.fake.destroyed, 0); /* what was given back was a reference of its own */
	uaa_backend_unref(b);
	CHECK_INT(other.destroyed, 1);
	world_fini(&w);
}

TEST(S10_run_and_events_are_required, "")
{
	struct fake f = { .kind = "bare", .caps = uaa_caps_new() };
	uaa_gateway *gw = uaa_gateway_new();
	uaa_backend *b = uaa_backend_new(&fake_ops, &f);

	CHECK(uaa_gateway_register(gw, b, NULL) == UAA_E_INVALID_REQUEST);
	uaa_backend_unref(b);
	uaa_gateway_unref(gw);
	uaa_caps_unref(f.caps);
}

TEST(ops_are_checked, "")
{
	uaa_backend_ops ops = fake_ops;
	struct fake f = { .kind = "Bad" };

	CHECK(!uaa_backend_new(&ops, &f)); /* its kind is not one */
	ops.abi = 7 << 16;
	CHECK(!uaa_backend_new(&ops, &f));
	ops = fake_ops;
	ops.struct_size = 4;
	CHECK(!uaa_backend_new(&ops, &f));
	CHECK(!uaa_backend_new(NULL, &f));
}

TEST(U09_P01_unknown_backend_comes_first, "LIB-02")
{
	struct world w;
	uaa_kind *k;
	uaa_run *run = NULL;
	uaa_error *e = NULL;
	uaa_request *blank = uaa_request_new();
	uaa_controlled_run c = { 0 };
	uaa_mcp_result *m = NULL;
	uaa_mcp_request mr = { .struct_size = sizeof mr, .op = UAA_MCP_ADD }; /* without a name */

	world_init(&w, NULL);
	uaa_kind_new(uaa_str_c("nobody"), &k, NULL);
	CHECK(uaa_gateway_run(w.gw, k, blank, &run, &e) == UAA_E_UNKNOWN_BACKEND);
	CHECK_STR(uab_str(uaa_error_agent_kind(e)), "nobody");
	uaa_error_unref(e);
	CHECK(uaa_gateway_run_control(w.gw, k, blank, &c, &e) == UAA_E_UNKNOWN_BACKEND);
	CHECK_STR(uab_str(uaa_error_agent_kind(e)), "nobody");
	uaa_error_unref(e);
	CHECK(uaa_gateway_mcp(w.gw, k, &mr, &m, &e) == UAA_E_UNKNOWN_BACKEND);
	CHECK_STR(uab_str(uaa_error_agent_kind(e)), "nobody");
	uaa_error_unref(e);
	CHECK(uaa_gateway_run(w.gw, w.kind, blank, &run, &e) == UAA_E_INVALID_REQUEST);
	CHECK_STR(uab_str(uaa_error_message(e)), "prompt must not be empty");
	uaa_error_unref(e);
	CHECK(!run);
	CHECK_INT(w.fake.runs, 0);
	uaa_request_unref(blank);
	uaa_kind_unref(k);
	world_fini(&w);
}

TEST(U07_U21_U24_U25_P11_keys_are_gated, "LIB-03 LIB-51 CAP-02 CAP-04 CAP-05 CAP-06 CAP-07")
{
	static const char *const bad[] = { "agent_api.x",
					   "backend.codex.a",
					   "backend.toy.other",
					   "Backend.toy.a",
					   "nodot",
					   "agent_api.Run",
					   "x.y",
					   "backend.toy",
					   "backend..a",
					   "agent_api.run ",
					   "backend.toy.a\xC3\xA9" };
	struct world w;
	uaa_controlled_run c = { 0 };

	world_init(&w, "backend.toy.a");
	uaa_caps_add(w.fake.caps, uaa_str_c("agent_api.control.cancel.v1"));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		uaa_request *r = uaa_request_new();
		uaa_run *run = NULL;
		uaa_error *e = NULL;

		uaa_request_set_prompt(r, uaa_str_c("x"));
		CHECK(uaa_request_set_extension_json(r, uaa_str_c(bad[i]), uaa_str_c("1")) ==
		      UAA_OK);
		uaa_request_set_extension_json(r, uaa_str_c("backend.toy.a"), uaa_str_c("1"));
		CHECK(uaa_gateway_run(w.gw, w.kind, r, &run, &e) == UAA_E_UNSUPPORTED_CAPABILITY);
		CHECK_STR(uab_str(uaa_error_capability(e)), bad[i]);
		CHECK_STR(uab_str(uaa_error_agent_kind(e)), "toy");
		uaa_error_unref(e);
		CHECK(uaa_gateway_run_control(w.gw, w.kind, r, &c, &e) ==
		      UAA_E_UNSUPPORTED_CAPABILITY);
		CHECK_STR(uab_str(uaa_error_capability(e)), bad[i]);
		uaa_error_unref(e);
		uaa_request_unref(r);
	}
	CHECK_INT(w.fake.runs, 0);
	world_fini(&w);
}

/* A key is well formed or in no set, so a request with another one is refused. */
TEST(U24_ill_formed_keys_are_in_no_set, "CAP-04 CAP-05")
{
	static const uaa_str bad[] = {
		UAB_STR(""),
		UAB_STR("nodot"),
		UAB_STR("x.y"),
		UAB_STR("agent_api"),
		UAB_STR("agent_api."),
		UAB_STR("agent_apix.y"),
		UAB_STR("Agent_api.x"),
		UAB_STR("agent_api.X"),
		UAB_STR("agent_api.x "),
		UAB_STR("agent_api.x\n"),
		UAB_STR("agent_api.\xC3\xA9"),
		UAB_STR("agent_api.a\0b"),
		UAB_STR("agent_api.a/b"),
		UAB_STR("1agent_api.x"),
		UAB_STR("_agent_api.x"),
		UAB_STR("backend."),
		UAB_STR("backend.toy"),
		UAB_STR("backend.toy."),
		UAB_STR("backend..a"),
		UAB_STR("backend.To.a"),
		UAB_STR("backend.1a.a"),
		UAB_STR("backend.a-b.c"),
		UAB_NONE,
	};
	static const char *const good[] = { "agent_api.x", "agent_api.a-b_c.d1", "backend.toy.a",
					    "backend.a_1.b.c-d" };
	uaa_caps *c = uaa_caps_new();

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_MSG(uaa_caps_add(c, bad[i]) == UAA_E_ARG, "key %zu is taken", i);
	CHECK_INT(uaa_caps_count(c), 0);
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		CHECK_MSG(uaa_caps_add(c, uaa_str_c(good[i])) == UAA_OK, "%s", good[i]);
	uaa_caps_unref(c);
}

/* Whatever a backend claims: options of another one are not its own. */
TEST(U25_foreign_namespaces_are_refused, "CAP-06")
{
	static const struct {
		const char *key;
		bool own;
	} cases[] = { { "backend.codex.a", false },
		      { "backend.toys.a", false },
		      { "backend.to.a", false },
		      { "backend.toy.a", true },
		      { "agent_api.x", true } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct world w;
		uaa_run *run = NULL;
		uaa_error *e = NULL;
		uaa_status s;

		world_init(&w, cases[i].key); /* it lists the key */
		uaa_request_set_extension_json(w.req, uaa_str_c(cases[i].key), uaa_str_c("1"));
		s = uaa_gateway_run(w.gw, w.kind, w.req, &run, &e);
		CHECK_MSG(s == (cases[i].own ? UAA_OK : UAA_E_UNSUPPORTED_CAPABILITY), "%s: %d",
			  cases[i].key, (int)s);
		CHECK_INT(w.fake.runs, cases[i].own);
		if (s == UAA_OK)
			succeed(&w.fake, 0);
		else
			CHECK_STR(uab_str(uaa_error_capability(e)), cases[i].key);
		uaa_error_unref(e);
		uaa_run_unref(run);
		world_fini(&w);
	}
}

TEST(prompt_must_not_be_blank, "")
{
	static const char *const blank[] = { "", " \n\t", "\xC2\xA0\xE3\x80\x80 \xE2\x80\x89" };
	struct world w;
	uaa_run *run;

	world_init(&w, NULL);
	for (size_t i = 0; i < ARRAY_LEN(blank); i++) {
		uaa_request_set_prompt(w.req, uaa_str_c(blank[i]));
		CHECK(uaa_gateway_run(w.gw, w.kind, w.req, &run, NULL) == UAA_E_INVALID_REQUEST);
	}
	world_fini(&w);
}

TEST(K06_U26_control_and_mcp_need_their_capability, "LIB-51")
{
	struct world w;
	uaa_controlled_run c = { 0 };
	uaa_error *e = NULL;
	uaa_mcp_result *m = NULL;
	uaa_mcp_request mr = { .struct_size = sizeof mr, .op = UAA_MCP_ADD };

	world_init(&w, NULL);
	CHECK(uaa_gateway_run_control(w.gw, w.kind, w.req, &c, &e) == UAA_E_UNSUPPORTED_CAPABILITY);
	CHECK_STR(uab_str(uaa_error_capability(e)), "agent_api.control.cancel.v1");
	uaa_error_unref(e);
	CHECK(uaa_gateway_mcp(w.gw, w.kind, &mr, &m, &e) == UAA_E_UNSUPPORTED_CAPABILITY);
	CHECK_STR(uab_str(uaa_error_capability(e)), "agent_api.tools.mcp.add.v1");
	uaa_error_unref(e);
	CHECK_INT(w.fake.runs, 0);
	world_fini(&w);
}
