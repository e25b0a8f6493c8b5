/* tail.h - recent runs that are short, kept in memory as a whole within a bound.
 *
 * Who creates a run reads it right away: while it is short that needs no disk. Of one
 * that says more nothing is kept. Only what is durable is here; what is not here is in
 * the store. */
#ifndef UAR_RUNTIME_TAIL_H
#define UAR_RUNTIME_TAIL_H

#include "runtime/runtime_int.h"

struct tail; /* of one run */

/* The run's part of a commit; `row` when it changed. Out of memory forgets the run. */
void rt_tail_commit(struct uar_runtime *rt, const struct live_run *r,
		    const struct uar_event *events, size_t n, const struct uar_run_row *row);
/* A place in a run. */
struct tail_place {
	const struct uar_owner *owner;
	uar_str run_id;
	uint64_t after;
};
/* Does memory have all events behind the place, up to the newest? */
bool rt_tail_has(struct uar_runtime *rt, const struct tail_place *p);
/* Gives them out, if so; their texts stay until the loop's next turn. */
bool rt_tail_read(struct uar_runtime *rt, const struct tail_place *p,
		  struct uar_event out[static UAR_LIMIT_TAIL_EVENTS], size_t *out_n);
/* The run is evicted. */
void rt_tail_forget(struct uar_runtime *rt, const struct uar_owner *owner, uar_str run_id);
void rt_tail_fini(struct uar_runtime *rt);

#endif
