/* mcp_artifact_uri_fuzz.c - addresses of artifacts as clients send them: one is written the same as
 * it was read, and every pair of ids has one that is read as these ids. */
#include "gate/mcp_int.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_written(struct uar_arena *arena, const struct mcp_artifact_name *name,
			  uar_str uri)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_URI);
	struct mcp_artifact_name again;

	mcp_artifact_uri(&b, name->run_id, name->artifact_id);
	if (b.err || (uri.n && !uar_str_eq(uar_buf_str(&b), uri)))
		abort();
	if (!mcp_artifact_parse(arena, uar_buf_str(&b), &again) ||
	    !uar_str_eq(again.run_id, name->run_id) ||
	    !uar_str_eq(again.artifact_id, name->artifact_id))
		abort();
	uar_buf_fini(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uar_str in = uar_str_n((const char *)data, size);
	struct mcp_artifact_name name;
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	if (mcp_artifact_parse(&arena, in, &name))
		check_written(&arena, &name, in);
	name.run_id = uar_str_cut(in, '\n', &name.artifact_id);
	if (uar_str_is_id(name.run_id) && uar_str_is_id(name.artifact_id))
		check_written(&arena, &name, UAR_STR_NONE);
	uar_arena_fini(&arena);
	return 0;
}
