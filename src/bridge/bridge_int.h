/* bridge_int.h - what the files of bridge/ share. */
#ifndef UAR_BRIDGE_BRIDGE_INT_H
#define UAR_BRIDGE_BRIDGE_INT_H

#include "agent/definition.h"
#include "agent_api/agent_api.h"
#include "base/alloc.h"
#include "bridge/bridge.h"
#include "json/jw.h"
#include "loop/poll.h"

enum { BRIDGE_DENIED = 16, BRIDGE_ASKS = 8, BRIDGE_ID = 160 };

struct bridge_agent {
	struct uar_definition def;
	uaa_gateway *gateway;
	uaa_kind *kind;
	bool interactive; /* it can ask */
};

struct uar_bridge {
	struct uar_agents port;
	struct uar_bridge_options o;
	struct bridge_agent *agents;
	size_t agent_count;
	struct uar_list calls; /* of struct uar_agent_call */
	struct uar_list dying; /* likewise: nobody listens any more */
};

/* An approval that waits, for the sake of its tool call. */
struct bridge_ask {
	char id[BRIDGE_ID], call_id[BRIDGE_ID];
};

struct uar_agent_call {
	struct uar_list node;
	struct uar_bridge *b;
	struct bridge_agent *agent;
	struct uar_agent_events events;
	uaa_run *run;
	uaa_cancel *cancel;
	struct uar_poll *poll;
	struct uar_arena scratch;
	bool paused, cancelled, ended, dying;
	bool thinking;			     /* the last news was of the same kind */
	unsigned denied_by_us;		     /* answers whose echo is still to come */
	struct bridge_ask asks[BRIDGE_ASKS]; /* the newest, round and round */
	size_t ask_at;
	char denied[BRIDGE_DENIED][BRIDGE_ID]; /* tool calls that were not allowed, likewise */
	size_t denied_at;
	char trouble[512]; /* an Error event that may be the last word; empty: none */
};

static inline uaa_str bridge_pub(uar_str s)
{
	return (uaa_str){ s.p, s.n };
}

static inline uar_str bridge_str(uaa_str s)
{
	return uar_str_n(s.ptr, s.len);
}

/* definitions.c */
uar_err bridge_load(struct uar_bridge *b, struct uar_error *error);
void bridge_unload(struct uar_bridge *b);
struct bridge_agent *bridge_find(struct uar_bridge *b, uar_str agent_id);

/* call.c */
extern const struct uar_agents_ops bridge_ops;
void bridge_call_free(struct uar_agent_call *c);

/* tell.c */
void bridge_tell(struct uar_agent_call *c, const uaa_event *ev);
/* The end: FINISHED with a completion, else with the error. */
void bridge_tell_end(struct uar_agent_call *c, uaa_completion *completion, uaa_error *error);
/* One safe line about what is to be approved. */
void bridge_prompt(const struct uar_json *input, uar_str what, struct uar_buf *out);

#endif
