/* relay_int.h - what the files of a relay share. */
#ifndef UAR_MCP_RELAY_INT_H
#define UAR_MCP_RELAY_INT_H

#include "base/list.h"
#include "mcp/relay.h"
#include "mcp/settings.h"

enum { RELAY_ID = 24 };

struct uar_mcp_passage {
	struct uar_list node; /* in uar_mcp_relay.passages */
	struct uar_mcp_relay *r;
	char id[RELAY_ID];
	struct uar_mcp_passage_events events;
	struct uar_timer timer;
	int64_t until_us;
};

/* What one method lists. */
struct relay_list {
	struct uar_arena arena;
	const struct uar_json *items; /* array; NULL: none */
};

enum relay_state { RELAY_WAITING, RELAY_PROBING, RELAY_LISTING, RELAY_READY };

struct uar_mcp_relay {
	struct uar_mcp_relay_options o;
	struct uar_sched *sched;
	struct uar_mcp_link *link;
	enum relay_state state;
	struct uar_buf reason;
	struct relay_list lists[UAR_MCP_LISTS];
	struct uar_buf page;   /* items of the list that is being read, a comma between two */
	unsigned wanted;       /* bits of lists that are to be read */
	enum uar_mcp_list at;  /* the one that is being read */
	char id[RELAY_ID];     /* of the request that the state waits for */
	char listen[RELAY_ID]; /* of the one that hears of changes; empty: none */
	uint64_t ids;
	unsigned failures, pages;
	bool has_been_ready; /* since it was connected */
	struct uar_timer timer;
	struct uar_timer listen_again;
	struct uar_list passages;
	size_t passage_count;
	struct uar_mcp_relay_watcher watcher;
	struct uar_buf uris; /* JSON array of the resources that are watched; empty: none */
};

/* relay.c */
void relay_next_id(struct uar_mcp_relay *r, char out[RELAY_ID]);
UAR_MUST_CHECK uar_err relay_send(struct uar_mcp_relay *r, const char *id, uar_str method,
				  uar_str name, struct uar_buf *params);
/* A request whose answer is not wanted any more. */
void relay_drop(struct uar_mcp_relay *r, const char *id, const char *why);

/* relay_pass.c */
void relay_put_envelope(struct uar_jw *w, const struct uar_mcp_passing *p, const char *token);
struct uar_mcp_passage *relay_find(struct uar_mcp_relay *r, uar_str id); /* NULL: none */
void relay_take_answer(struct uar_mcp_passage *p, const struct uar_mcp_message *m);
void relay_take_notice(struct uar_mcp_relay *r, const struct uar_mcp_message *m, uar_str of);
void relay_fail(struct uar_mcp_passage *p, uar_err e, const char *reason);
void relay_fail_all(struct uar_mcp_relay *r, uar_err e, const char *reason);
void relay_free_passage(struct uar_mcp_passage *p);

#endif
