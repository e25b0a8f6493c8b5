/* link.h - how messages reach an MCP server: the pipes of a child process, or HTTP.
 *
 * Callbacks fire from the loop, never inside a call. A link is not destroyed from inside
 * its callbacks. */
#ifndef UAR_MCP_LINK_H
#define UAR_MCP_LINK_H

#include "loop/client.h"
#include "mcp/message.h"

struct uar_mcp_link;

struct uar_mcp_sending {
	uar_str text;		    /* one message */
	uar_str id;		    /* JSON text of a request's id; empty: no answer follows */
	uar_str method;		    /* for headers, as are those that follow; may be empty */
	uar_str name;		    /* what a modern request names */
	uar_str version;	    /* the revision; empty: not known yet */
	const char *const *headers; /* more of them, "Name: value", NULL-terminated; NULL: none */
	bool modern;
};

struct uar_mcp_link_events {
	/* `of`: the id of the request whose answer it came with; empty: that is not known. */
	void (*message)(void *ctx, uar_str text, uar_str of);
	/* The request of that id gets no answer. `status` of HTTP, 0: none came. */
	void (*lost)(void *ctx, uar_str id, uar_err e, int status, const char *reason);
	/* Nothing can be sent any more. */
	void (*down)(void *ctx, const char *reason);
	void *ctx;
};

struct uar_mcp_link_ops {
	UAR_MUST_CHECK uar_err (*send)(struct uar_mcp_link *l, const struct uar_mcp_sending *m);
	/* The answer of that request is not wanted any more. */
	void (*forget)(struct uar_mcp_link *l, uar_str id);
	/* A session began: what the server says without being asked is wanted. */
	void (*listen)(struct uar_mcp_link *l, uar_str version);
	uar_str (*errors)(struct uar_mcp_link *l); /* what it wrote to standard error last */
	/* What the last refusal with status 401 or 403 asks for: WWW-Authenticate, or empty. */
	uar_str (*challenge)(struct uar_mcp_link *l);
	void (*destroy)(struct uar_mcp_link *l);
};
struct uar_mcp_link {
	const struct uar_mcp_link_ops *ops;
};

struct uar_mcp_stdio_options {
	struct uar_loop *loop;
	const char *const *argv, *const *env; /* stay in place while the link lives */
	const char *cwd;		      /* NULL: the present one */
	struct uar_mcp_link_events events;
};
UAR_MUST_CHECK uar_err uar_mcp_stdio_open(const struct uar_mcp_stdio_options *o,
					  struct uar_mcp_link **out, struct uar_error *error);

struct uar_mcp_http_options {
	struct uar_client *client;
	struct uar_sched *sched;
	const char *url;
	const char *const *headers; /* "Name: value", NULL-terminated; NULL: none */
	bool guarded;		    /* the address is judged, see loop/guard.h */
	bool two_addresses;	    /* the transport of 2024-11-05 */
	/* The header line that authorizes a request, asked for each time; NULL: none. */
	const char *(*authorization)(void *ctx);
	struct uar_mcp_link_events events;
};
UAR_MUST_CHECK uar_err uar_mcp_http_open(const struct uar_mcp_http_options *o,
					 struct uar_mcp_link **out);
/* Appends where messages go by what the stream at `url` said: an address of the same origin, or a
 * part of one. False: it is none. */
bool uar_mcp_endpoint(uar_str url, uar_str said, struct uar_buf *out);

#endif
