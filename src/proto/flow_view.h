/* flow_view.h - how the nodes of a run of a workflow stand: a fold of the run's events. */
#ifndef UAR_PROTO_FLOW_VIEW_H
#define UAR_PROTO_FLOW_VIEW_H

#include "base/map.h"
#include "event/event.h"
#include "flow/limits.h"
#include "json/jw.h"

/* A call that was made for a node, or an item of one. */
struct uar_flow_unit {
	struct uar_flow_unit *next;
	uar_str call_id, action_id; /* action_id empty: nobody is asked */
	uar_str subagent_id, session_id, run_id;
	uar_str category, message;
	int64_t item; /* -1: of the node as a whole */
	bool spawns, ended, failed;
	uint64_t first, last; /* of its events; 0: none */
};
struct uar_flow_seen {
	uar_str id, status, took, output, category, message; /* output: JSON; empty: none */
	int64_t started_us, ended_us, items;
	uint64_t first, last;
	struct uar_flow_unit *units, **end;
};
/* What a unit is found by. */
enum uar_flow_id { UAR_FLOW_CALL, UAR_FLOW_CHILD, UAR_FLOW_QUESTION, UAR_FLOW_ID_COUNT };
/* Strings are the arena's. */
struct uar_flow_view {
	struct uar_arena *arena;
	struct uar_flow_seen nodes[UAR_LIMIT_FLOW_NODES];
	size_t count;
	struct uar_map units[UAR_FLOW_ID_COUNT];
	uar_str agent_id, revision; /* of the definition; empty: not known */
	const char *status;	    /* of the run */
	uint64_t through;
};

void uar_flow_view_init(struct uar_flow_view *v, struct uar_arena *arena);
void uar_flow_view_fini(struct uar_flow_view *v);
UAR_MUST_CHECK uar_err uar_flow_view_take(struct uar_flow_view *v, const struct uar_event *ev);
/* Members of an object: nodes and edges of the definition, as they stand. */
void uar_flow_view_write(const struct uar_flow_view *v, const struct uar_json *definition,
			 struct uar_jw *w);

#endif
