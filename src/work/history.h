/* history.h - the earlier messages of a conversation, brought up to date from the log. */
#ifndef UAR_WORK_HISTORY_H
#define UAR_WORK_HISTORY_H

#include "work/past.h"

struct history_load;
/* p is the receiver's; NULL with an error. */
typedef void history_ready_fn(void *ctx, uar_err e, const struct uar_error *error, struct past *p);
/* What was said in r's thread, long texts included. `ready` fires later, unless
 * cancelled. */
uar_err rt_history_load(struct live_run *r, history_ready_fn *ready, void *ctx,
			struct history_load **out);
void rt_history_cancel(struct history_load *l); /* NULL is fine */

#endif
