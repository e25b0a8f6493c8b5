/* mcp_extra.h - tools that list and read what an MCP server offers besides its own tools. */
#ifndef UAR_TOOL_MCP_EXTRA_H
#define UAR_TOOL_MCP_EXTRA_H

#include "base/str.h"

struct uar_mcp_client;
struct uar_mcp_extra {
	const char *name;
	const char *capability; /* that the server must have */
	const char *method;	/* NULL: tool/mcp_watch.c */
	const char *named;	/* member of the arguments that names what is meant; NULL: none */
	const char *doc, *input_schema;
};
/* Those that the server can serve; NULL past the end. */
const struct uar_mcp_extra *uar_mcp_extra_at(const struct uar_mcp_client *c, size_t index);
const struct uar_mcp_extra *uar_mcp_extra_find(uar_str name); /* NULL: it is none of them */

#endif
