/* mcp_param_header_fuzz.c - a schema, a line, arguments: headers have no line breaks. */
#include <stdlib.h>

#include "mcp/param_header.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uar_str rest = UAR_STR_NONE;
	uar_str schema = uar_str_cut(uar_str_n((const char *)data, size), '\n', &rest);
	const char *const *lines = NULL;
	const struct uar_json *j = NULL;
	struct uar_arena a;

	uar_arena_init(&a, 0);
	if (!uar_json_parse(schema, NULL, &a, &j, NULL) && uar_mcp_param_headers_valid(j) &&
	    !uar_mcp_param_headers(schema, rest, &a, &lines))
		for (size_t i = 0; lines && lines[i]; i++)
			if (strpbrk(lines[i], "\r\n"))
				abort();
	uar_arena_fini(&a);
	return 0;
}
