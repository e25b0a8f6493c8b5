/* mcp_challenge_fuzz.c - WWW-Authenticate, and addresses of metadata. */
#include <stdlib.h>

#include "mcp/oauth.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uar_str all = uar_str_n((const char *)data, size), rest = UAR_STR_NONE;
	uar_str first = uar_str_cut(all, '\n', &rest);
	struct uar_arena a;

	uar_arena_init(&a, 0);
	if (uar_mcp_challenge_param(all, "scope", &a).n > size ||
	    uar_mcp_challenge_param(all, "resource_metadata", &a).n > size)
		abort();
	if (uar_mcp_resource_matches(first, rest) && first.n > rest.n + 64 + size)
		abort();
	uar_arena_fini(&a);
	return 0;
}
