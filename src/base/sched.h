/* sched.h - "later" as a port: the next turn of the loop, timers, other threads.
 *
 * The runtime runs on one thread that a scheduler owns: libuv in the server
 * (loop/loop.h), a seeded one in the simulation. Callbacks never fire inside
 * the call that asked for them. */
#ifndef UAR_BASE_SCHED_H
#define UAR_BASE_SCHED_H

#include "base/clock.h"
#include "base/list.h"

struct uar_task;
typedef void uar_task_fn(struct uar_task *t);

/* Embedded in its owner and zeroed before first use; may be posted again once
 * it has run. */
struct uar_task {
	struct uar_list node;
	uar_task_fn *fn;
	bool queued;
};

struct uar_timer;
typedef void uar_timer_fn(struct uar_timer *t);

/* Embedded in its owner; zeroed before first use. Fires once. */
struct uar_timer {
	uar_timer_fn *fn;
	int64_t due_us;	   /* monotonic */
	size_t heap_index; /* 1-based place in the scheduler's heap, 0: not set */
};

/* Blocking work on another thread: `work` runs there with nothing shared, then
 * `done` on the loop. Embedded in its owner, which stays until then. */
struct uar_work {
	struct uar_task task;
	struct uar_list node;
	void (*work)(struct uar_work *w);
	void (*done)(struct uar_work *w);
};

struct uar_sched;
struct uar_sched_ops {
	uint32_t abi, size;
	/* Runs the task in the next turn; a task that is queued already stays once. */
	void (*post)(struct uar_sched *s, struct uar_task *t);
	/* The same from any thread. The task must not be queued already. */
	void (*post_remote)(struct uar_sched *s, struct uar_task *t);
	/* Takes a queued task back (loop thread; nobody may be posting it meanwhile). */
	void (*unpost)(struct uar_sched *s, struct uar_task *t);
	/* (Re)starts a timer. UAR_ENOMEM leaves it unset. */
	uar_err (*timer_set)(struct uar_sched *s, struct uar_timer *t, int64_t delay_us);
	void (*timer_stop)(struct uar_sched *s, struct uar_timer *t); /* unset is fine */
	/* UAR_EBUSY: UAR_LIMIT_WORK_QUEUE pieces wait already, or all threads hang. What
	 * was taken is finished, and `done`, even when the scheduler ends first. */
	uar_err (*work)(struct uar_sched *s, struct uar_work *w);
};

struct uar_sched {
	const struct uar_sched_ops *ops;
	const struct uar_clock *clock;
};

static inline void uar_post(struct uar_sched *s, struct uar_task *t)
{
	s->ops->post(s, t);
}

static inline void uar_post_remote(struct uar_sched *s, struct uar_task *t)
{
	s->ops->post_remote(s, t);
}

static inline void uar_unpost(struct uar_sched *s, struct uar_task *t)
{
	s->ops->unpost(s, t);
}

static inline uar_err uar_timer_set(struct uar_sched *s, struct uar_timer *t, int64_t delay_us)
{
	return s->ops->timer_set(s, t, delay_us);
}

static inline void uar_timer_stop(struct uar_sched *s, struct uar_timer *t)
{
	s->ops->timer_stop(s, t);
}

UAR_MUST_CHECK static inline uar_err uar_work_begin(struct uar_sched *s, struct uar_work *w)
{
	return s->ops->work(s, w);
}

/* The timer heap both schedulers share. */
struct uar_timers {
	struct uar_timer **heap; /* heap[1..n] */
	size_t n, cap;
};
void uar_timers_fini(struct uar_timers *h);
UAR_MUST_CHECK uar_err uar_timers_set(struct uar_timers *h, struct uar_timer *t, int64_t due_us);
void uar_timers_stop(struct uar_timers *h, struct uar_timer *t);
struct uar_timer *uar_timers_first(const struct uar_timers *h); /* NULL when empty */

#endif
