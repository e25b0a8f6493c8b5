/* loop.h - the scheduler on libuv: one thread owns all state.
 *
 * Tasks posted in one turn run after the I/O of that turn; tasks from other
 * threads arrive through one wake-up for however many there are. */
#ifndef UAR_LOOP_LOOP_H
#define UAR_LOOP_LOOP_H

#include "base/sched.h"

struct uar_loop;
struct uv_loop_s;

/* UAR_EFDS when no descriptor is left. */
UAR_MUST_CHECK uar_err uar_loop_create(const struct uar_clock *clock, struct uar_loop **out);
void uar_loop_destroy(struct uar_loop *l); /* after uar_loop_run has returned */
struct uar_sched *uar_loop_sched(struct uar_loop *l);
struct uv_loop_s *uar_loop_uv(struct uar_loop *l); /* for http/ and loop/ alone */
uint64_t uar_loop_turn(const struct uar_loop *l);  /* its number: what happens in one turn */
void uar_loop_run(struct uar_loop *l);		   /* until stopped */
void uar_loop_stop(struct uar_loop *l);		   /* from the loop thread */
/* The program that supervises children when it is started with UAR_SUPERVISE_WORD; borrowed. It is
 * this program unless another one is set. */
void uar_loop_set_supervisor(struct uar_loop *l, const char *path);
const char *uar_loop_supervisor(const struct uar_loop *l);
/* Is there work that a worker has, or that waits for one? uar_loop_destroy waits for it,
 * without limit: who cannot must leave the loop to the end of the process. */
bool uar_loop_working(struct uar_loop *l);

/* Of the threads for blocking work. There are few; while what they do hangs and others wait,
 * there are more, up to UAR_LIMIT_WORK_THREADS_MOST. When those hang, too, new work is refused
 * (UAR_EBUSY). */
struct uar_work_stats {
	size_t threads, at_work, waiting;
};
void uar_loop_work_stats(struct uar_loop *l, struct uar_work_stats *out);

/* `fn` runs on the loop when the process gets the signal (SIGTERM, SIGINT, SIGHUP). */
typedef void uar_signal_fn(void *ctx, int signum);
UAR_MUST_CHECK uar_err uar_loop_on_signal(struct uar_loop *l, int signum, uar_signal_fn *fn,
					  void *ctx);

#endif
