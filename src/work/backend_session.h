/* backend_session.h - where the program of an agent left off in this conversation. */
#ifndef UAR_WORK_BACKEND_SESSION_H
#define UAR_WORK_BACKEND_SESSION_H

#include "work/work_int.h"

struct session_find;
/* `id` is empty when no earlier run of that agent in the thread has one. */
typedef void session_found_fn(void *ctx, uar_err e, uar_str id);
/* `found` fires later, unless the search is cancelled first. */
uar_err rt_session_find(struct live_run *r, session_found_fn *found, void *ctx,
			struct session_find **out);
void rt_session_cancel(struct session_find *f); /* NULL is fine */

#endif
