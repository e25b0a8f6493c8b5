/* tools.h - the tools of one server as it lists them, checked and bounded.
 *
 * A tool that cannot be used (no name, no schema, too long) is left out; the others stay. */
#ifndef UAR_MCP_TOOLS_H
#define UAR_MCP_TOOLS_H

#include "mcp/client.h"

struct uar_mcp_toolset;
struct uar_mcp_toolset *uar_mcp_toolset_create(void);	 /* NULL: out of memory */
void uar_mcp_toolset_destroy(struct uar_mcp_toolset *t); /* NULL is fine */
/* Adds those of one page, a JSON array; others are none. */
/* `headers`: arguments may be headers too, and a tool that says so wrongly is none. */
UAR_MUST_CHECK uar_err uar_mcp_toolset_add(struct uar_mcp_toolset *t, const struct uar_json *page,
					   bool headers);
const struct uar_mcp_tool *uar_mcp_toolset_find(const struct uar_mcp_toolset *t, uar_str name);
const struct uar_mcp_tool *uar_mcp_toolset_at(const struct uar_mcp_toolset *t, size_t index);

#endif
