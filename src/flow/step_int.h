/* step_int.h - what step.c and unit.c share. */
#ifndef UAR_FLOW_STEP_INT_H
#define UAR_FLOW_STEP_INT_H

#include "flow/flow_int.h"

/* A call of the log, read. */
struct flow_told {
	const struct uar_flow_call *call;
	const struct uar_json *json; /* what it brought; NULL: it has not ended, or it is no JSON */
};
struct flow_run {
	const struct uar_flow *f;
	struct uar_flow_step *step;
	struct uar_arena *arena;
	struct uar_flow_scope scope;
	struct flow_told *calls;
	size_t call_count, unended;
	uar_str children[UAR_LIMIT_FLOW_CHILDREN]; /* ids of those that are at work */
	size_t child_count, spawned;		   /* spawned: or are about to be */
	uar_str cut; /* id of one of them that is at rest, but whose answer was cut; empty: none */
	int64_t now_us, made_us, until_us;
	uar_err err;
};

enum flow_unit_state { FLOW_UNIT_NEW, FLOW_UNIT_BUSY, FLOW_UNIT_DONE, FLOW_UNIT_FAILED };
/* What one call, or an agent that is started and waited for, does for a node or an item. */
struct flow_unit {
	uar_str id; /* of the node */
	int item;   /* -1: of none */
	enum uar_flow_type type;
	const struct uar_json *config;
	enum flow_unit_state state;
	const struct uar_json *value; /* NEW: of the item; DONE: the result */
	uar_str category, message;    /* FAILED */
};

extern const struct uar_json flow_null;

void flow_read_calls(struct flow_run *r, const struct uar_flow_calls *calls);
/* The tree of the buffer, which is freed; NULL: there is none, r->err says if for want of memory.
 */
const struct uar_json *flow_take_json(struct flow_run *r, uar_err e, struct uar_buf *b);
uar_str flow_key(struct flow_run *r, const char *stage, uar_str id, int item);
const struct flow_told *flow_find_call(const struct flow_run *r, uar_str key); /* NULL: none */
/* False: there is no room for it in this round. */
bool flow_want(struct flow_run *r, uar_str key, uar_str tool_id, uar_str args);
void flow_want_children(struct flow_run *r);
/* NULL: the edge was not taken. */
const struct uar_json *flow_edge_value(const struct flow_run *r, const struct uar_flow_edge *e);
/* What the log says of it. */
void flow_unit_look(struct flow_run *r, struct flow_unit *u);
/* Wants the call of one that is NEW, if there is room. */
void flow_unit_begin(struct flow_run *r, struct flow_unit *u);

#endif
