/* client_int.h - what the files of a connection share. */
#ifndef UAR_MCP_CLIENT_INT_H
#define UAR_MCP_CLIENT_INT_H

#include "base/list.h"
#include "mcp/client.h"
#include "mcp/tools.h"

enum state {
	STATE_WAITING,
	STATE_AUTHORIZING, /* a person, or the server of tokens */
	STATE_PROBING,
	STATE_INITIALIZING,
	STATE_LISTING,
	STATE_READY
};

struct uar_mcp_call {
	struct uar_list node;
	struct uar_mcp_client *c;
	char id[24];	/* of the request that is under way */
	char token[24]; /* of its progress: that of the first request */
	struct uar_mcp_call_events events;
	struct uar_timer timer;
	int64_t until_us;
	const char *method;
	struct uar_buf name, params;
	struct uar_buf state;	  /* requestState, as JSON; empty: none */
	struct uar_buf responses; /* inputResponses: members so far */
	struct uar_buf task;	  /* id of the task that it became; empty: none */
	struct uar_list asks;
	size_t open_asks;
	unsigned rounds; /* of questions */
	unsigned logins;
	bool parked;					  /* until there is a token */
	enum { LISTED, LISTS_AGAIN, LISTED_AGAIN } lists; /* its headers were wrong */
	bool polls;					  /* the timer waits to ask for the task */
};

/* A question of the server, in a call. */
struct ask {
	struct uar_mcp_ask base; /* first */
	struct uar_list node;
	struct uar_mcp_call *call;
	struct uar_arena arena;
	uar_str id;  /* of the server's request, JSON; empty: `key` says whose answer it is */
	uar_str key; /* in inputRequests */
};

struct uar_mcp_client {
	struct uar_mcp_client_options o;
	struct uar_sched *sched;
	struct uar_mcp_link *link;
	struct uar_mcp_auth *auth; /* NULL: it has no url */
	enum state state;
	enum uar_mcp_era era;
	struct uar_buf version, reason;
	struct uar_buf caps;	       /* of the server, JSON */
	struct uar_mcp_toolset *tools; /* that are shown */
	struct uar_mcp_toolset *next;  /* that are being listed */
	char id[24];		       /* of the request that the state waits for */
	char listens[24];	       /* of the subscription (2026-07-28); empty: none */
	uint64_t ids;
	unsigned failures, pages;
	bool list_again, version_again;
	/* ONLY_MODERN: a probe asks for capabilities alone. TWO_ADDRESSES: the transport of
	 * 2024-11-05 is tried, or spoken. */
	enum { NOTHING_KNOWN, ONLY_MODERN, TWO_ADDRESSES } known;
	struct uar_timer timer; /* of the state */
	struct uar_timer listen_again;
	struct uar_list calls, watched;
	size_t call_count, watched_count;
};

/* client.c */
void client_next_id(struct uar_mcp_client *c, char out[24]);
void client_put_envelope(struct uar_jw *w, const struct uar_mcp_client *c, const char *progress);
/* `params`: the text of an object. `tool`: whose arguments may be headers; NULL: none. */
UAR_MUST_CHECK uar_err client_request(struct uar_mcp_client *c, const char *id, const char *method,
				      struct uar_buf *params, uar_str name);
void client_notify(struct uar_mcp_client *c, const char *method, struct uar_buf *params);
void client_respond(struct uar_mcp_client *c, uar_str text); /* to a request of the server */
void client_list_again(struct uar_mcp_client *c);
void client_connect(struct uar_mcp_client *c);
/* What is under way fails; it is tried again after a while. May be called from inside the link. */
void client_connect_later(struct uar_mcp_client *c, const char *reason);
void client_show_tools(struct uar_mcp_client *c, struct uar_mcp_toolset *tools); /* NULL: none */

/* client_watch.c */
/* Asks for what a modern server is to tell; what was asked before is forgotten. */
UAR_MUST_CHECK uar_err client_listen(struct uar_mcp_client *c);
void client_watch_anew(struct uar_mcp_client *c);  /* another connection is made */
void client_watch_ready(struct uar_mcp_client *c); /* and there */
void client_watch_updated(struct uar_mcp_client *c, uar_str uri);
/* False: it was none of these requests. */
bool client_watch_refused(struct uar_mcp_client *c, uar_str id, uar_str reason);
void client_watch_fini(struct uar_mcp_client *c);

/* client_news.c */
void client_take_notification(struct uar_mcp_client *c, const struct uar_mcp_message *m);

/* client_login.c */
UAR_MUST_CHECK uar_err client_make_auth(struct uar_mcp_client *c);
/* A request, of `call` or of the state, was refused with 401 or 403: begins a login if that asks
 * for one. False: it does not, or that was tried enough. */
bool client_authorize_request(struct uar_mcp_client *c, struct uar_mcp_call *call, int status);

/* client_call.c */
/* The answer is not wanted any more, and the server is told where that is how it learns of it. */
void client_forget(struct uar_mcp_client *c, const char *id, const char *why);
struct uar_mcp_call *client_find_call(struct uar_mcp_client *c, uar_str id); /* NULL: none */
void client_finish_call(struct uar_mcp_call *call, const struct uar_mcp_call_result *r);
void client_fail_call(struct uar_mcp_call *call, uar_err e, const char *reason);
void client_fail_calls(struct uar_mcp_client *c, uar_err e, const char *reason);
/* Progress is a sign of life, up to the limit of a call in all. */
void client_keep_waiting(struct uar_mcp_call *call);
void client_rest_call(struct uar_mcp_call *call); /* somebody else is waited for */
void client_free_call(struct uar_mcp_call *call);
UAR_MUST_CHECK uar_err client_send_call(struct uar_mcp_call *call);
/* The answer to the request that is under way. */
void client_take_answer(struct uar_mcp_call *call, const struct uar_mcp_message *m);
/* The same request again, with a new id. */
void client_call_again(struct uar_mcp_call *call);

/* client_ask.c */
/* A request of the server. `of`: the call whose answer it came with. */
void client_asked(struct uar_mcp_client *c, const struct uar_mcp_message *m, uar_str of);
void client_ask_cancelled(struct uar_mcp_client *c, uar_str id);
/* inputRequests of an answer. False: one of them is nothing that can be answered. */
bool client_ask_all(struct uar_mcp_call *call, const struct uar_json *requests);
void client_drop_asks(struct uar_mcp_call *call);
/* There is a token, or none will come. */
void client_ask_login(struct uar_mcp_call *call, const char *url);
void client_login_over(struct uar_mcp_client *c, bool ok, const char *reason);

/* client_task.c */
void client_task_begin(struct uar_mcp_call *call, const struct uar_json *task);
void client_task_poll(struct uar_mcp_call *call);
void client_task_answered(struct uar_mcp_call *call, const struct uar_json *task);
void client_task_update(struct uar_mcp_call *call); /* its questions are answered */
void client_task_cancel(struct uar_mcp_call *call);

#endif
