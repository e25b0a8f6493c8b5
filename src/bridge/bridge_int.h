/* bridge_int.h - what the files of bridge/ share. */
#ifndef UAR_BRIDGE_BRIDGE_INT_H
#define UAR_BRIDGE_BRIDGE_INT_H

#include "agent/registry.h"
#include "agent/limits.h"
#include "agent_api/agent_api.h"
#include "base/alloc.h"
#include "bridge/bridge.h"
#include "event/sizes.h"
#include "json/jw.h"
#include "loop/sizes.h"
#include "loop/poll.h"

enum { BRIDGE_ID = 160 };

/* Shared by the set that names it and the calls that began with it. */
struct bridge_agent {
	unsigned refs;
	struct uar_registered *entry; /* its definition */
	uaa_gateway *gateway;
	uaa_kind *kind;
	bool interactive; /* it can ask */
};

struct bridge_set {
	struct bridge_agent *at[UAR_LIMIT_AGENTS];
	size_t count;
};

struct uar_bridge {
	struct uar_agents port;
	struct uar_bridge_options o;
	struct bridge_set *set;
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
	bool thinking;				      /* the last news was of the same kind */
	unsigned denied_by_us;			      /* answers whose echo is still to come */
	struct bridge_ask asks[UAR_LIMIT_AGENT_ASKS]; /* the newest, round and round */
	size_t ask_at;
	char denied[UAR_LIMIT_OPEN_TOOLS]
		   [BRIDGE_ID]; /* tool calls that were not allowed, likewise */
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
/* A set of what the registry has now; of `old` (NULL: none) what has not changed. */
uar_err bridge_load(const struct uar_bridge *b, const struct bridge_set *old,
		    struct bridge_set **out);
void bridge_set_destroy(struct bridge_set *set); /* NULL is fine */
struct bridge_agent *bridge_find(const struct bridge_set *set, uar_str agent_id);
struct bridge_agent *bridge_agent_ref(struct bridge_agent *a);
/* program.c */
const char *bridge_program(const struct uar_definition *def); /* its name or path */
uar_err bridge_check_program(struct uar_agents *h, uar_str agent_id, struct uar_error *error);
void bridge_agent_unref(struct bridge_agent *a); /* NULL is fine */

/* call.c */
extern const struct uar_agents_ops bridge_ops;
void bridge_call_free(struct uar_agent_call *c);

/* tell.c */
void bridge_tell(struct uar_agent_call *c, const uaa_event *ev);
/* The end: FINISHED with a completion, else with the error. */
void bridge_tell_end(struct uar_agent_call *c, uaa_completion *completion, uaa_error *error);
/* words.c */
/* The message of a failure, with what the agent says and lacks where that may be told. It lives
 * as long as the call's scratch. */
uar_str bridge_words(struct uar_agent_call *c, const uaa_error *error, uar_str message);
/* The text in one line without what looks like a secret or an address, or is the value of a
 * variable whose name says that it is one. */
void bridge_mask(char *const *env, uar_str text, struct uar_buf *out);
/* One safe line about what is to be approved. */
void bridge_prompt(const struct uar_json *input, uar_str what, struct uar_buf *out);

#endif
