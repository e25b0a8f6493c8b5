/* grants.h - the grants that may cover the calls of a run: read when a round begins. */
#ifndef UAR_WORK_GRANTS_H
#define UAR_WORK_GRANTS_H

#include "core/permit.h"
#include "work/work_int.h"

struct grants {
	struct uar_arena arena;
	struct uar_row_grant *at;
	size_t count;
};
void rt_grants_free(struct grants *g); /* NULL is fine */

struct grants_load;
/* g is the receiver's; NULL with an error. */
typedef void grants_ready_fn(void *ctx, uar_err e, struct grants *g);
/* `ready` fires later, unless cancelled. */
UAR_MUST_CHECK uar_err rt_grants_load(struct live_run *r, grants_ready_fn *ready, void *ctx,
				      struct grants_load **out);
void rt_grants_cancel(struct grants_load *l); /* NULL is fine */

/* The id of a grant that covers a call of the run with these arguments; empty: there is none. */
uar_str rt_grants_find(const struct grants *g, const struct live_run *r, const struct uar_tool *t,
		       uar_str args_digest);
/* The digest of arguments that grants compare; equal arguments have equal ones. Nobody without the
 * engine's key can guess arguments from it. Empty: they are no JSON. */
void rt_grants_digest(const struct live_run *r, uar_str args, char out[UAR_LIMIT_DIGEST + 1]);

#endif
