/* batch.h - the commands of one run on their way to the store (batch.c). */
#ifndef UAR_RUNTIME_BATCH_H
#define UAR_RUNTIME_BATCH_H

#include "runtime/runtime_int.h"

struct batch {
	struct uar_list node; /* among the spare ones */
	struct uar_append append;
	struct agg *agg;
	struct live_run *run;
	struct uar_session s; /* the copies */
	struct uar_run r;
	struct uar_decision d;
	struct uar_run_row row;
	struct uar_list cmds;
	struct uar_arena arena;
	struct uar_buf buf;
};

/* One that is empty but for the memory it may use; NULL: out of memory. */
struct batch *rt_batch_take(struct uar_runtime *rt);
void rt_batch_put(struct uar_runtime *rt, struct batch *b);
/* Nothing of it is durable, for that reason. Its run and session may go with it; b stays the
 * caller's. */
void rt_batch_abort(struct batch *b, uar_err e, const struct uar_error *error);

#endif
