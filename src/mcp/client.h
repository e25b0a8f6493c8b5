/* client.h - a connection to one MCP server: its tools, and requests to it.
 *
 * It connects by itself, detects the era, lists the tools and keeps the list. A server that
 * ends, or cannot be reached, has no tools until it is back: it is tried again, later each time.
 * A call that was under way then fails, once, and is never made again by itself. A server that
 * wants a login is given the tokens that are there; without any it waits for a person
 * (uar_mcp_client_login).
 *
 * Callbacks fire from the loop, never inside the call that asked for them. */
#ifndef UAR_MCP_CLIENT_H
#define UAR_MCP_CLIENT_H

#include "mcp/era.h"
#include "mcp/link.h"
#include "mcp/oauth.h"

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
	const char *const *roots; /* URIs that the server may know of, NULL-terminated; or NULL */
	struct uar_mcp_oauth_setting oauth;
	enum uar_mcp_choice era;
	int64_t timeout_us; /* of a call without an answer or progress; 0: the default */
	bool guarded;	    /* the url is not the operator's own, see loop/guard.h */
};

/* Strings live until the next change. */
struct uar_mcp_tool {
	uar_str name, title, description, input_schema, output_schema;
	bool read_only_hint, destructive_hint, idempotent_hint; /* what the server says: advice */
};

/* What else happens; each may be NULL. */
struct uar_mcp_client_news {
	/* A line of the server's log. */
	void (*logged)(void *ctx, uar_str level, uar_str text);
	/* A resource that is watched has changed, or may have: the connection is another one. */
	void (*updated)(void *ctx, uar_str uri);
	/* The server does not tell of it. */
	void (*unwatched)(void *ctx, uar_str uri, uar_str reason);
	/* Tokens to keep, as text that the option `tokens` takes. */
	void (*tokens)(void *ctx, uar_str text);
};

struct uar_mcp_client_options {
	struct uar_loop *loop;
	struct uar_client *http;
	const struct uar_rand *rand;
	struct uar_mcp_server server;
	bool asks, samples;	  /* a person, or a model, answers what the server asks in a call */
	const char *redirect_url; /* where a login comes back to; NULL: nobody can log in */
	uar_str tokens;		  /* that were kept; copied */
	void (*changed)(void *ctx); /* the tools, or whether it is there */
	struct uar_mcp_client_news news;
	void *ctx;
};
UAR_MUST_CHECK uar_err uar_mcp_client_create(const struct uar_mcp_client_options *o,
					     struct uar_mcp_client **out);
/* Calls under way end without callbacks; a child process is ended. NULL is fine. */
void uar_mcp_client_destroy(struct uar_mcp_client *c);

const struct uar_mcp_tool *uar_mcp_client_tool(const struct uar_mcp_client *c, size_t index);
/* Connected and listed; else *out_reason says what is wrong, for a person. */
bool uar_mcp_client_ready(const struct uar_mcp_client *c, uar_str *out_reason);
/* Has the last attempt failed? It is made again; while a login is prepared it has not. */
bool uar_mcp_client_failed(const struct uar_mcp_client *c);
uar_str uar_mcp_client_version(const struct uar_mcp_client *c); /* the revision spoken */
uar_str uar_mcp_client_errors(const struct uar_mcp_client *c);	/* standard error, the last of it */
/* Does the server offer that: "tools", "resources", "prompts"? */
bool uar_mcp_client_offers(const struct uar_mcp_client *c, const char *capability);

/* The address where a person logs in; NULL: no login is waited for. */
const char *uar_mcp_client_login(const struct uar_mcp_client *c);
/* What came back from a login. UAR_ENOTFOUND: it is none of this server, or was used before. */
UAR_MUST_CHECK uar_err uar_mcp_client_logged_in(struct uar_mcp_client *c,
						const struct uar_mcp_redirect *r);

struct uar_mcp_call_result {
	uar_err err; /* UAR_OK: the server has answered */
	uar_str reason;
	int64_t code;		       /* of a JSON-RPC error; 0: none */
	const struct uar_json *result; /* such as a CallToolResult; borrowed */
};

/* What a server asks while a call is under way. */
enum uar_mcp_ask_kind { UAR_MCP_ELICIT, UAR_MCP_SAMPLE, UAR_MCP_LOGIN };
struct uar_mcp_ask {
	enum uar_mcp_ask_kind kind;
	const struct uar_json *params; /* of the request; NULL: a login */
	const char *url;	       /* of a login */
	bool failed;		       /* it is withdrawn: the login has come to nothing */
};
/* Each ends the question. The result is JSON, as the protocol has it; a login is answered by
 * uar_mcp_client_logged_in alone, or refused. */
void uar_mcp_ask_answer(struct uar_mcp_ask *ask, uar_str result);
/* `why`: for the server; NULL: a person has not allowed it. */
void uar_mcp_ask_refuse(struct uar_mcp_ask *ask, const char *why);

struct uar_mcp_call_events {
	void (*progress)(void *ctx, const struct uar_json *params); /* may be NULL */
	void (*done)(void *ctx, const struct uar_mcp_call_result *r);
	void *ctx;
	/* NULL: nobody can be asked. The ask is there until it is answered, withdrawn or the call
	 * is done. */
	void (*asked)(void *ctx, struct uar_mcp_ask *ask);
	void (*unasked)(void *ctx, struct uar_mcp_ask *ask); /* it is not wanted any more */
};
struct uar_mcp_request {
	const char *method; /* stays in place */
	uar_str name;	    /* what it names: a tool, a prompt, a URI; may be empty */
	uar_str params;	    /* a JSON object; empty: none */
};
/* UAR_ENET: it is not connected. UAR_EBUSY: too many calls are under way. */
UAR_MUST_CHECK uar_err uar_mcp_client_request(struct uar_mcp_client *c,
					      const struct uar_mcp_request *r,
					      const struct uar_mcp_call_events *events,
					      struct uar_mcp_call **out);
/* tools/call. */
UAR_MUST_CHECK uar_err uar_mcp_client_call(struct uar_mcp_client *c, uar_str tool,
					   uar_str arguments,
					   const struct uar_mcp_call_events *events,
					   struct uar_mcp_call **out);
/* Asks the server to tell of changes of a resource (`updated`), on this connection and later ones,
 * as often as it is watched. UAR_ENET: it is not connected. UAR_EBUSY: too many are watched. */
UAR_MUST_CHECK uar_err uar_mcp_client_watch(struct uar_mcp_client *c, uar_str uri);
void uar_mcp_client_unwatch(struct uar_mcp_client *c, uar_str uri);
/* The server is told; the call fails soon with UAR_ECANCELED, if it is not answered before. */
void uar_mcp_call_abandon(struct uar_mcp_call *call);
/* The server is told, and no callback follows. */
void uar_mcp_call_cancel(struct uar_mcp_call *call);

#endif
