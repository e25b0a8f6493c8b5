/* message_test.c - JSON-RPC messages in and out, and the eras told apart. */
#include "mcp/era.h"

#include "test.h"

static uar_err read_text(struct uar_arena *a, const char *text, struct uar_mcp_message *m)
{
	struct uar_error error = { 0 };

	return uar_mcp_message_read(uar_str_c(text), a, m, &error);
}

TEST(messages_are_told_apart, "")
{
	static const struct {
		const char *text;
		uar_err e;
		enum uar_mcp_kind kind;
		const char *id;
	} cases[] = {
		{ "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}", UAR_OK, UAR_MCP_REQUEST,
		  "7" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":\"a\\\"b\",\"method\":\"ping\",\"params\":{}}",
		  UAR_OK, UAR_MCP_REQUEST, "\"a\\\"b\"" },
		{ "{\"jsonrpc\":\"2.0\",\"method\":\"x/y\"}", UAR_OK, UAR_MCP_NOTIFICATION, "" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}", UAR_OK, UAR_MCP_RESULT, "0" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"m\"}}",
		  UAR_OK, UAR_MCP_ERROR, "null" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", UAR_EINVALID, 0,
		  "null" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", UAR_EINVALID, 0, "null" },
		{ "{\"jsonrpc\":\"1.0\",\"id\":3,\"method\":\"ping\"}", UAR_EINVALID, 0, "3" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\",\"params\":[]}", UAR_EINVALID,
		  0, "3" },
		{ "[{\"jsonrpc\":\"2.0\",\"method\":\"x\"}]", UAR_EINVALID, 0, "null" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":3}", UAR_EINVALID, 0, "3" },
		{ "{\"jsonrpc\":", UAR_ESYNTAX, 0, "null" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_mcp_message m = { 0 };
		struct uar_arena a;

		uar_arena_init(&a, 0);
		CHECK_INT(read_text(&a, cases[i].text, &m), cases[i].e);
		if (!cases[i].e)
			CHECK_INT(m.kind, cases[i].kind);
		CHECK_STR(m.id, cases[i].id);
		uar_arena_fini(&a);
	}
}

TEST(written_messages_are_read_back, "")
{
	struct uar_buf b = uar_buf_make(4096);
	struct uar_mcp_message m;
	struct uar_arena a;

	uar_arena_init(&a, 0);
	CHECK_INT(uar_mcp_write_request(&b, UAR_STR("\"x\""), UAR_STR("tools/call"),
					UAR_STR("{\"name\":\"n\"}")),
		  UAR_OK);
	REQUIRE(read_text(&a, b.p, &m) == UAR_OK && m.kind == UAR_MCP_REQUEST);
	CHECK_STR(uar_json_str(uar_json_get(m.params, UAR_STR("name")), UAR_STR("")), "n");
	uar_buf_clear(&b);
	CHECK_INT(
		uar_mcp_write_error(&b, m.id, UAR_MCP_INVALID_PARAMS, UAR_STR("no"), UAR_STR("{}")),
		UAR_OK);
	REQUIRE(read_text(&a, b.p, &m) == UAR_OK && m.kind == UAR_MCP_ERROR);
	CHECK_INT(m.error.code, UAR_MCP_INVALID_PARAMS);
	CHECK_STR(m.id, "\"x\"");
	uar_buf_clear(&b);
	CHECK_INT(uar_mcp_write_result(&b, UAR_STR("5"), UAR_STR("{\"a\":1}")), UAR_OK);
	REQUIRE(read_text(&a, b.p, &m) == UAR_OK && m.kind == UAR_MCP_RESULT);
	uar_buf_fini(&b);
	uar_arena_fini(&a);
}

#define ENVELOPE                                                                                   \
	"\"_meta\":{\"" UAR_MCP_META "protocolVersion\":\"" UAR_MCP_MODERN "\",\"" UAR_MCP_META    \
	"clientCapabilities\":{}}"

static struct uar_mcp_verdict judged(struct uar_arena *a, const char *text,
				     struct uar_mcp_head head)
{
	struct uar_mcp_message m = { 0 };
	struct uar_mcp_verdict v;

	CHECK_INT(read_text(a, text, &m), UAR_OK);
	uar_mcp_judge(&m, &head, a, &v);
	return v;
}

TEST(eras_and_their_refusals, "")
{
	static const char call[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
				   "\"params\":{\"name\":\"\xc3\xa4\"," ENVELOPE "}}";
	struct uar_mcp_head fine = { UAR_STR(UAR_MCP_MODERN), UAR_STR("tools/call"),
				     UAR_STR("=?base64?w6Q=?=") };
	struct uar_mcp_head head = fine;
	struct uar_arena a;

	uar_arena_init(&a, 0);
	CHECK_INT(judged(&a, call, fine).code, 0);
	CHECK_INT(judged(&a, call, fine).era, UAR_MCP_ERA_MODERN);
	head.name = UAR_STR("=?base64?####?=");
	CHECK_INT(judged(&a, call, head).code, UAR_MCP_HEADER_MISMATCH);
	head = fine;
	head.version = UAR_STR_NONE;
	CHECK_INT(judged(&a, call, head).code, UAR_MCP_HEADER_MISMATCH);
	head = fine;
	CHECK_INT(judged(&a, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}", head).code,
		  UAR_MCP_INVALID_PARAMS);
	head.method = UAR_STR("ping");
	CHECK_INT(judged(&a,
			 "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{" ENVELOPE
			 "}}",
			 head)
			  .status,
		  404);
	head = (struct uar_mcp_head){ 0 };
	CHECK_INT(judged(&a, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", head).code, 0);
	CHECK_INT(judged(&a, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pong\"}", head).code,
		  UAR_MCP_METHOD_NOT_FOUND);
	uar_arena_fini(&a);
}

TEST(header_values_survive, "")
{
	static const char *const values[] = {
		"plain", "", " edge", "\xc3\xa4", "=?base64?x", "a\tb"
	};
	struct uar_arena a;

	uar_arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		uar_str back = UAR_STR_NONE;
		uar_str sent = uar_mcp_header_encode(uar_str_c(values[i]), &a);

		REQUIRE(sent.p);
		CHECK_INT(uar_mcp_header_decode(sent, &a, &back), UAR_OK);
		CHECK_STR(back, values[i]);
	}
	uar_arena_fini(&a);
}
