/* mcp.h - the tools of one MCP server as a source of a registry: "mcp:SERVER/TOOL".
 *
 * What a server says about its tools is advice. Unless the operator says otherwise each call
 * has to be allowed and is made once: one that may have happened is not repeated. */
#ifndef UAR_TOOL_MCP_H
#define UAR_TOOL_MCP_H

#include "mcp/settings.h"
#include "tool/tool.h"

struct uar_mcp_tools_options {
	struct uar_loop *loop;
	struct uar_client *http;
	const struct uar_mcp_setting *setting; /* stays in place */
	uar_str own_of;		  /* the agent that its tools are for; empty: every agent */
	struct uar_owner owner;	  /* for whom alone they are; no tenant: for everybody */
	const char *redirect_url; /* where a login comes back to; NULL: nobody can log in */
	uar_str tokens;		  /* that were kept for it; copied */
	/* Tokens to keep for it; NULL: they are not kept. */
	void (*keep)(void *ctx, struct uar_tools *source, uar_str tokens);
	/* Tools are not what they were: their description or a schema; may be NULL. */
	void (*turned)(void *ctx, struct uar_tools *source, const struct uar_tool *const *tools,
		       size_t count);
	/* The list changed; uar_tool_registry_changed follows. */
	void (*changed)(void *ctx, struct uar_tools *source);
	void *ctx;
};
UAR_MUST_CHECK uar_err uar_mcp_tools_create(const struct uar_mcp_tools_options *o,
					    struct uar_tools **out);
/* What is behind such a source. */
struct uar_mcp_client *uar_mcp_tools_client(struct uar_tools *source);
const struct uar_mcp_setting *uar_mcp_tools_setting(struct uar_tools *source);

#endif
