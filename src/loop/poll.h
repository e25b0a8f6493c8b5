/* poll.h - a descriptor of somebody else, watched for reading. */
#ifndef UAR_LOOP_POLL_H
#define UAR_LOOP_POLL_H

#include "loop/loop.h"

struct uar_poll;
typedef void uar_poll_fn(void *ctx);

/* `fn` runs from the loop as long as the descriptor is readable; it may pause or
 * stop inside. The descriptor stays the caller's and open until the stop. */
UAR_MUST_CHECK uar_err uar_poll_start(struct uar_loop *l, int fd, uar_poll_fn *fn, void *ctx,
				      struct uar_poll **out);
/* What a call of libuv says (0 or a negative number of the system): UAR_ENOMEM, UAR_EFDS, else
 * UAR_EIO. */
uar_err uar_loop_err(int number);
void uar_poll_pause(struct uar_poll *p, bool paused);
void uar_poll_stop(struct uar_poll *p); /* NULL is fine */

#endif
