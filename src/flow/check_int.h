/* check_int.h - what check.c and check_values.c share. */
#ifndef UAR_FLOW_CHECK_INT_H
#define UAR_FLOW_CHECK_INT_H

#include "flow/flow_int.h"

struct check {
	struct uar_flow *f;
	struct uar_flow_problems *out;
	const struct uar_json *nodes, *edges;
	size_t node_at[UAR_LIMIT_FLOW_NODES]; /* of f->nodes: the place in the document */
	size_t edge_at[UAR_LIMIT_FLOW_EDGES];
	bool before[UAR_LIMIT_FLOW_NODES][UAR_LIMIT_FLOW_NODES]; /* [a][b]: a comes before b */
};

/* What is wrong, and what to do about it; the problem may be NULL. */
void flow_say(struct uar_flow_problem *p, const char *fmt, ...) UAR_PRINTF(2, 3);
void flow_advise(struct uar_flow_problem *p, const char *fmt, ...) UAR_PRINTF(2, 3);
/* NULL: there are enough already. */
struct uar_flow_problem *flow_at_node(struct check *c, const char *code, size_t node,
				      const char *next_step);
/* Adds to the pointer. */
void flow_point(struct uar_flow_problem *p, const char *more);
/* c->f->node_count: there is none of that id. */
size_t flow_node_named(const struct check *c, uar_str id);
/* check_values.c */
void flow_check_values(struct check *c);

#endif
