/* relay.h - a server of 2026-07-28 whose offers are passed on to the clients of UAR.
 *
 * What it lists is kept; requests go to it as a client wrote them, with what the client is and
 * can do, and what it answers comes back as it is. It is connected again when it ends; a request
 * that was under way then fails, once.
 *
 * Callbacks fire from the loop, never inside the call that asked for them. */
#ifndef UAR_MCP_RELAY_H
#define UAR_MCP_RELAY_H

#include "mcp/message.h"

struct uar_client;
struct uar_loop;
struct uar_mcp_setting;
struct uar_mcp_relay;
struct uar_mcp_passage; /* a request on its way */

enum uar_mcp_list {
	UAR_MCP_TOOLS,
	UAR_MCP_PROMPTS,
	UAR_MCP_RESOURCES,
	UAR_MCP_TEMPLATES,
	UAR_MCP_LISTS
};

struct uar_mcp_relay_options {
	struct uar_loop *loop;
	struct uar_client *http;
	const struct uar_mcp_setting *setting; /* stays in place */
	void (*tried)(void *ctx);	       /* it is connected, or failed to be; may be NULL */
	void *ctx;
};
UAR_MUST_CHECK uar_err uar_mcp_relay_create(const struct uar_mcp_relay_options *o,
					    struct uar_mcp_relay **out);
void uar_mcp_relay_destroy(struct uar_mcp_relay *r); /* NULL is fine */

struct uar_mcp_relay_watcher {
	void (*changed)(void *ctx, enum uar_mcp_list list);
	void (*updated)(void *ctx, uar_str uri); /* a resource that is watched */
	void *ctx;
};
/* Who hears of changes; one watcher, NULL: none. */
void uar_mcp_relay_watch(struct uar_mcp_relay *r, const struct uar_mcp_relay_watcher *w);
/* Says of which resources updates are wanted; the strings are copied. */
UAR_MUST_CHECK uar_err uar_mcp_relay_want(struct uar_mcp_relay *r, const uar_str *uris, size_t n);

const char *uar_mcp_relay_name(const struct uar_mcp_relay *r);
bool uar_mcp_relay_offers(const struct uar_mcp_relay *r, uar_str tool); /* by its setting */
/* Connected and listed; else *out_reason says what is wrong, for a person. */
bool uar_mcp_relay_ready(const struct uar_mcp_relay *r, uar_str *out_reason);
/* Array of what it lists, until the next change; NULL: nothing. Tools that the setting leaves out
 * are in it. */
const struct uar_json *uar_mcp_relay_list(const struct uar_mcp_relay *r, enum uar_mcp_list list);

/* A request for the server; strings and trees are borrowed during the call. */
struct uar_mcp_passing {
	uar_str method, name;	       /* what it names, for headers; may be empty */
	const struct uar_json *params; /* of the client; its _meta is replaced; NULL: none */
	uar_str capabilities;	       /* of the client, a JSON object */
	uar_str info;		       /* who the client is, a JSON object, or empty */
	uar_str log_level;	       /* or empty */
	bool progress;
	bool again;	 /* the client has answered what the server asked: */
	uar_str state;	 /* requestState; .p NULL: there was none */
	uar_str answers; /* JSON object */
};
struct uar_mcp_passed {
	uar_err err; /* UAR_OK: the server has answered */
	const char *reason;
	const struct uar_json *result; /* borrowed; NULL: it is an error, of this code: */
	int64_t code;
	uar_str message;
	const struct uar_json *data;
};
struct uar_mcp_passage_events {
	/* notifications/progress, whose token is of no meaning, or notifications/message. */
	void (*notified)(void *ctx, uar_str method, const struct uar_json *params);
	void (*done)(void *ctx, const struct uar_mcp_passed *p);
	void *ctx;
};
/* UAR_ENET: it is not connected. UAR_EBUSY: too many requests are under way. */
UAR_MUST_CHECK uar_err uar_mcp_relay_pass(struct uar_mcp_relay *r, const struct uar_mcp_passing *p,
					  const struct uar_mcp_passage_events *events,
					  struct uar_mcp_passage **out);
/* The server learns of it, and no callback follows. */
void uar_mcp_passage_cancel(struct uar_mcp_passage *p);

#endif
