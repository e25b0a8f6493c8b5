/* client_int.h - what the files of a connection share. */
#ifndef UAR_MCP_CLIENT_INT_H
#define UAR_MCP_CLIENT_INT_H

#include "base/list.h"
#include "mcp/client.h"
#include "mcp/tools.h"

enum state { STATE_WAITING, STATE_PROBING, STATE_INITIALIZING, STATE_LISTING, STATE_READY };

struct uar_mcp_call {
	struct uar_list node;
	struct uar_mcp_client *c;
	char id[24];
	struct uar_mcp_call_events events;
	struct uar_timer timer;
	int64_t until_us;
};

struct uar_mcp_client {
	struct uar_mcp_client_options o;
	struct uar_sched *sched;
	struct uar_mcp_link *link;
	enum state state;
	enum uar_mcp_era era;
	struct uar_buf version, reason;
	struct uar_mcp_toolset *tools; /* that are shown */
	struct uar_mcp_toolset *next;  /* that are being listed */
	char id[24];		       /* of the request that the state waits for */
	uint64_t ids;
	unsigned failures, pages;
	bool list_again;
	struct uar_timer timer; /* of the state */
	struct uar_list calls;
	size_t call_count;
};

/* client.c */
void client_next_id(struct uar_mcp_client *c, char out[24]);
void client_put_envelope(struct uar_jw *w, const struct uar_mcp_client *c, const char *progress);
UAR_MUST_CHECK uar_err client_request(struct uar_mcp_client *c, const char *id, const char *method,
				      struct uar_buf *params, uar_str name);
void client_notify(struct uar_mcp_client *c, const char *method, struct uar_buf *params);

/* client_call.c */
struct uar_mcp_call *client_find_call(struct uar_mcp_client *c, uar_str id); /* NULL: none */
void client_finish_call(struct uar_mcp_call *call, const struct uar_mcp_call_result *r);
void client_fail_call(struct uar_mcp_call *call, uar_err e, const char *reason);
void client_fail_calls(struct uar_mcp_client *c, uar_err e, const char *reason);
/* Progress is a sign of life, up to the limit of a call in all. */
void client_keep_waiting(struct uar_mcp_call *call);
void client_free_call(struct uar_mcp_call *call);

#endif
