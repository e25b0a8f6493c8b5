/* client.h - a connection to one MCP server: its tools, and calls of them.
 *
 * It connects by itself, detects the era, lists the tools and keeps the list. A server that
 * ends, or cannot be reached, has no tools until it is back: it is tried again, later each time.
 * A call that was under way then fails, once, and is never made again by itself.
 *
 * Callbacks fire from the loop, never inside the call that asked for them. */
#ifndef UAR_MCP_CLIENT_H
#define UAR_MCP_CLIENT_H

#include "mcp/era.h"
#include "mcp/link.h"

struct uar_mcp_client;
struct uar_mcp_call;

enum uar_mcp_choice { UAR_MCP_AUTO, UAR_MCP_CHOOSE_LEGACY, UAR_MCP_CHOOSE_MODERN };

/* How a server is reached; either argv or url. Strings and lists stay in place. */
struct uar_mcp_server {
	const char *name;
	const char *const *argv, *const *env; /* env: all of it, NULL-terminated */
	const char *cwd;
	const char *url;
	const char *const *headers;
	enum uar_mcp_choice era;
	int64_t timeout_us; /* of a call without an answer or progress; 0: the default */
};

/* Strings live until the next change. */
struct uar_mcp_tool {
	uar_str name, title, description, input_schema, output_schema;
	bool read_only_hint, destructive_hint, idempotent_hint; /* what the server says: advice */
};

struct uar_mcp_client_options {
	struct uar_loop *loop;
	struct uar_client *http;
	struct uar_mcp_server server;
	void (*changed)(void *ctx); /* the tools, or whether it is there */
	void *ctx;
};
UAR_MUST_CHECK uar_err uar_mcp_client_create(const struct uar_mcp_client_options *o,
					     struct uar_mcp_client **out);
/* Calls under way end without callbacks; a child process is ended. NULL is fine. */
void uar_mcp_client_destroy(struct uar_mcp_client *c);

const struct uar_mcp_tool *uar_mcp_client_tool(const struct uar_mcp_client *c, size_t index);
/* Connected and listed; else *out_reason says what is wrong, for a person. */
bool uar_mcp_client_ready(const struct uar_mcp_client *c, uar_str *out_reason);
uar_str uar_mcp_client_version(const struct uar_mcp_client *c); /* the revision spoken */
uar_str uar_mcp_client_errors(const struct uar_mcp_client *c);	/* standard error, the last of it */

struct uar_mcp_call_result {
	uar_err err; /* UAR_OK: the server has answered */
	uar_str reason;
	int64_t code;		       /* of a JSON-RPC error; 0: none */
	const struct uar_json *result; /* CallToolResult; borrowed */
};
struct uar_mcp_call_events {
	void (*progress)(void *ctx, const struct uar_json *params); /* may be NULL */
	void (*done)(void *ctx, const struct uar_mcp_call_result *r);
	void *ctx;
};
/* UAR_ENET: it is not connected. UAR_EBUSY: too many calls are under way. */
UAR_MUST_CHECK uar_err uar_mcp_client_call(struct uar_mcp_client *c, uar_str tool,
					   uar_str arguments,
					   const struct uar_mcp_call_events *events,
					   struct uar_mcp_call **out);
/* The server is told; the call fails soon with UAR_ECANCELED, if it is not answered before. */
void uar_mcp_call_abandon(struct uar_mcp_call *call);
/* The server is told, and no callback follows. */
void uar_mcp_call_cancel(struct uar_mcp_call *call);

#endif
