/* mcp_int.h - what the files of an MCP server's tools share. */
#ifndef UAR_TOOL_MCP_INT_H
#define UAR_TOOL_MCP_INT_H

#include "mcp/client.h"
#include "tool/mcp.h"
#include "tool/secret.h"

struct mcp_watch;
struct uar_mcp_extra;

struct mcp_tools {
	struct uar_tools base; /* first */
	struct uar_mcp_tools_options o;
	struct uar_mcp_client *client;
	struct uar_arena arena; /* the rows */
	struct uar_tool *rows;
	size_t count;
	struct uar_arena past; /* what the last list with tools had */
	struct seen {
		uar_str tool_id, version;
	} * seen;
	size_t seen_count;
	struct uar_list watches;      /* of struct mcp_watch */
	struct uar_secrets_used keys; /* that the server was given */
};

struct mcp_tool_call {
	struct mcp_tools *t;
	struct uar_mcp_call *call;
	struct uar_tool_events events;
	const struct uar_mcp_extra *extra; /* NULL: a tool of the server */
	struct mcp_watch *watch;	   /* NULL: it is none */
	struct uar_mcp_ask *open;	   /* what a person is asked; NULL: nothing */
	struct uar_mcp_ask *waiting[UAR_LIMIT_MCP_ASKS + UAR_LIMIT_MCP_LOGINS]; /* what follows */
	size_t waiting_count;
	struct uar_task next; /* asks or refuses what waits, never inside a call of the client */
};

/* mcp_ask.c: events of the client, and what a person answers. */
void mcp_on_asked(void *ctx, struct uar_mcp_ask *a);
void mcp_on_unasked(void *ctx, struct uar_mcp_ask *a);
void mcp_ask_next(struct uar_task *t);
void mcp_answer(struct uar_tools *base, struct uar_tool_call *call,
		const struct uar_tool_answer *said);

/* mcp_echo.c: what the server was given and gives back. */
struct mcp_hidden {
	struct uar_buf output, message;
};
void mcp_keys_note(const struct uar_mcp_server *s, struct uar_secrets_used *keys);
/* The strings of r are then those of h, which must be finished. */
void mcp_hide_keys(const struct uar_secrets_used *keys, struct mcp_hidden *h,
		   struct uar_tool_result *r);
void mcp_hidden_fini(struct mcp_hidden *h);

/* mcp.c: ends the call. */
void mcp_tell(struct mcp_tool_call *k, const struct uar_tool_result *r);
const char *mcp_category_of(const struct uar_mcp_call_result *r);

/* mcp_watch.c: a call that waits until a resource changes. */
UAR_MUST_CHECK uar_err mcp_watch_begin(struct mcp_tool_call *k, uar_str input);
void mcp_watch_end(struct mcp_tool_call *k); /* and `call` of k is over with it */
void mcp_on_updated(void *ctx, uar_str uri);
void mcp_on_unwatched(void *ctx, uar_str uri, uar_str reason);

#endif
