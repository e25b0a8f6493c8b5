/* mcp_message_fuzz.c - JSON-RPC messages from outside: what is accepted keeps its bounds. */
#include <stdlib.h>

#include "mcp/era.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uar_mcp_head head = { UAR_STR(UAR_MCP_MODERN), UAR_STR("tools/call"), UAR_STR("n") };
	struct uar_error error = { 0 };
	struct uar_mcp_message m = { 0 };
	struct uar_mcp_verdict v;
	struct uar_arena arena;
	uar_str value;
	uar_err e;

	uar_arena_init(&arena, 0);
	e = uar_mcp_message_read(uar_str_n((const char *)data, size), &arena, &m, &error);
	if (!m.id.p && (e || m.kind != UAR_MCP_NOTIFICATION))
		abort();
	if (!e && (m.id.n > UAR_LIMIT_MCP_ID || m.method.n > UAR_LIMIT_MCP_METHOD))
		abort();
	if (!e && (m.kind == UAR_MCP_REQUEST || m.kind == UAR_MCP_NOTIFICATION)) {
		uar_mcp_judge(&m, &head, &arena, &v);
		if (v.code && !v.text)
			abort();
		(void)uar_mcp_progress_token(&m, &arena);
	}
	if (!uar_mcp_header_decode(uar_str_n((const char *)data, size), &arena, &value) &&
	    !uar_utf8_valid(value))
		abort();
	uar_arena_fini(&arena);
	return 0;
}
