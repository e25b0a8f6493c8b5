/* mcp_challenge_fuzz.c - WWW-Authenticate, addresses of metadata, and where messages go. */
#include <stdlib.h>

#include "mcp/link.h"
#include "mcp/oauth.h"

/* Messages stay at the server whose stream it is. */
static void check_endpoint(uar_str path, uar_str said)
{
	static const char origin[] = "http://server:1/";
	struct uar_buf url = uar_buf_make(1 << 20), to = uar_buf_make(1 << 20);

	uar_buf_add_str(&url, uar_str_c(origin));
	uar_buf_add_str(&url, path);
	if (!url.err && uar_mcp_endpoint(uar_str_c(url.p), said, &to) &&
	    (to.n < sizeof origin - 2 || strncasecmp(to.p, origin, sizeof origin - 2) != 0 ||
	     (to.p[sizeof origin - 2] && !strchr("/?", to.p[sizeof origin - 2]))))
		abort();
	uar_buf_fini(&url);
	uar_buf_fini(&to);
}

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
	check_endpoint(first, rest);
	return 0;
}
