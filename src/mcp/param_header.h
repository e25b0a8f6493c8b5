/* param_header.h - arguments of a tool that are headers of its call, too (2026-07-28).
 *
 * A property of the input schema says so with "x-mcp-header": the argument is repeated as the
 * header Mcp-Param-<that name>. Pure. */
#ifndef UAR_MCP_PARAM_HEADER_H
#define UAR_MCP_PARAM_HEADER_H

#include "mcp/message.h"

/* Are all names tokens, each there once, on properties that are a string, an integer or a
 * boolean, and reached through `properties` alone? */
bool uar_mcp_param_headers_valid(const struct uar_json *input_schema);
/* The header lines of a call, NULL-terminated, in the arena; *out NULL: there are none. */
UAR_MUST_CHECK uar_err uar_mcp_param_headers(uar_str input_schema, uar_str arguments,
					     struct uar_arena *a, const char *const **out);

#endif
