/* mcp_settings_fuzz.c - tables of MCP servers: what is read can be used. */
#include <stdlib.h>

#include "mcp/settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char *const env[] = { "PATH=/bin", "KEY=value", NULL };
	struct uar_error error = { 0 };
	struct uar_mcp_settings s;
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	if (!uar_mcp_settings_read(uar_str_n((const char *)data, size), env, &arena, &s, &error))
		for (size_t i = 0; i < s.count; i++)
			if (!s.at[i].server.name || !s.at[i].server.argv == !s.at[i].server.url)
				abort();
	uar_arena_fini(&arena);
	return 0;
}
