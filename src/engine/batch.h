/* batch.h - the commands of one run on their way to the store (batch.c). */
#ifndef UAR_ENGINE_BATCH_H
#define UAR_ENGINE_BATCH_H

#include "engine/engine_int.h"

struct batch {
	struct uar_list node; /* among those of its session at the store, or the spare ones */
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

/* What a commit did to a run. */
struct rt_moved {
	struct live_run *run;
	struct uar_run *copy; /* becomes its state */
	const struct uar_decision *d;
	const struct uar_run_row *row; /* NULL: its record shows nothing new */
};
/* The copy becomes the state; readers and watches are told. */
void rt_moved_tell(const struct rt_moved *m);
/* Then effects begin; a run that is over goes, and the next of its thread starts. */
void rt_moved_perform(const struct rt_moved *m);

/* One that is empty but for the memory it may use; NULL: out of memory. */
struct batch *rt_batch_take(struct uar_runtime *rt);
void rt_batch_put(struct uar_runtime *rt, struct batch *b);
/* Nothing of it is durable, for that reason. Its run and session may go with it; b stays the
 * caller's. */
void rt_batch_abort(struct batch *b, uar_err e, const struct uar_error *error);
/* It is no longer at the store. */
void rt_batch_leave(struct batch *b);
/* Once the last of a broken row is back, what was decided in vain is decided again. */
void rt_batch_mend_row(struct agg *a);

#endif
