/* loop.c - the scheduler on libuv, the signals and the small worker pool.
 *
 * One turn: timers that are due, then I/O, then the tasks that were posted until
 * then. A task posted by a task waits for the next turn, so that I/O always gets
 * its share; an idle handle keeps the poll from sleeping meanwhile. */
#include "loop/loop.h"

#include <assert.h>
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <uv.h>

#include "base/alloc.h"
#include "base/limits.h"
#include "loop/limits.h"
#include "loop/poll.h"

enum { STUCK_US = 1000 * 1000 }; /* no thread has come back for so long */

struct pool {
	uv_mutex_t lock;
	uv_cond_t wake;
	struct uar_list queue;
	size_t queued;
	unsigned at_work;
	uint64_t taken; /* pieces of work so far */
	bool ready, stopping;
	/* The loop's own: */
	unsigned threads;
	uv_thread_t ids[UAR_LIMIT_WORK_THREADS_MOST];
	struct uar_timer relief; /* somebody waits: is any thread coming back? */
	uint64_t seen;		 /* `taken` when it was set */
	bool watching;
	bool stuck; /* there may be no more threads, and none has come back since `seen` */
};

struct uar_loop {
	struct uar_sched sched; /* first: the ops get it back by a cast */
	uv_loop_t uv;
	bool uv_ready, lock_ready;
	uv_timer_t timer;
	uv_check_t check;
	uv_idle_t idle;
	struct uar_poll *wake; /* of wake_fd, which other threads write to */
	int wake_fd;
	struct uar_timers timers;
	int64_t armed_us;    /* what the uv timer waits for, INT64_MAX: nothing */
	int64_t dispatch_us; /* the moment whose timers are being fired, INT64_MIN: none */
	uint64_t turn;
	struct uar_list posted, running;
	uv_mutex_t lock; /* guards the two below */
	struct uar_list remote;
	bool woken;
	struct uar_list signals;
	struct pool pool;
	const char *supervisor; /* NULL: this program */
};

struct signal_watch {
	uv_signal_t uv;
	struct uar_list node;
	uar_signal_fn *fn;
	void *ctx;
};

static struct uar_loop *loop_of(struct uar_sched *s)
{
	return (struct uar_loop *)(void *)s;
}

/* --- tasks ------------------------------------------------------------------ */

static void on_idle(uv_idle_t *h)
{
	(void)h; /* its being active is the point: the poll does not wait */
}

static void loop_post(struct uar_sched *s, struct uar_task *t)
{
	struct uar_loop *l = loop_of(s);

	if (t->queued)
		return;
	t->queued = true;
	uar_list_add_last(&l->posted, &t->node);
	uv_idle_start(&l->idle, on_idle);
}

static void loop_post_remote(struct uar_sched *s, struct uar_task *t)
{
	struct uar_loop *l = loop_of(s);
	bool wake;

	uv_mutex_lock(&l->lock);
	t->queued = true;
	uar_list_add_last(&l->remote, &t->node);
	wake = !l->woken;
	l->woken = true;
	uv_mutex_unlock(&l->lock);
	if (wake)
		(void)eventfd_write(l->wake_fd, 1); /* fails only when that is pending anyway */
}

static void loop_unpost(struct uar_sched *s, struct uar_task *t)
{
	struct uar_loop *l = loop_of(s);

	/* It may still be on the list that other threads append to. */
	uv_mutex_lock(&l->lock);
	if (t->queued) {
		t->queued = false;
		uar_list_remove(&t->node);
	}
	uv_mutex_unlock(&l->lock);
}

/* Not uv_async_t: it makes the loop spin until whoever woke it is through with its
 * call, and a thread is often put aside exactly there, in favour of the loop. */
static void on_wake(void *ctx)
{
	struct uar_loop *l = ctx;
	eventfd_t count;

	(void)eventfd_read(l->wake_fd, &count); /* first, or a later wake-up would be lost */
	uv_mutex_lock(&l->lock);
	l->woken = false;
	uar_list_move_all(&l->remote, &l->posted);
	uv_mutex_unlock(&l->lock);
}

static void run_tasks(struct uar_loop *l)
{
	while (!uar_list_empty(&l->running)) {
		struct uar_task *t = UAR_OWNER(l->running.next, struct uar_task, node);

		uar_list_remove(&t->node);
		t->queued = false;
		t->fn(t);
	}
}

static void on_check(uv_check_t *h)
{
	struct uar_loop *l = h->data;

	uar_list_move_all(&l->posted, &l->running);
	run_tasks(l);
	if (uar_list_empty(&l->posted))
		uv_idle_stop(&l->idle);
	l->turn++;
}

/* --- timers ----------------------------------------------------------------- */

static void on_timer(uv_timer_t *h);

/* One uv timer stands for the whole heap. It may wake too early (its timer was
 * stopped, the clock is not libuv's), never too late. */
static void arm(struct uar_loop *l)
{
	struct uar_timer *first = uar_timers_first(&l->timers);
	int64_t delay_us;

	if (!first || l->armed_us <= first->due_us)
		return;
	l->armed_us = first->due_us;
	delay_us = first->due_us - uar_clock_mono(l->sched.clock);
	uv_timer_start(&l->timer, on_timer, delay_us > 0 ? (uint64_t)(delay_us + 999) / 1000 : 0,
		       0);
}

static void on_timer(uv_timer_t *h)
{
	struct uar_loop *l = h->data;
	struct uar_timer *t;

	l->armed_us = INT64_MAX;
	l->dispatch_us = uar_clock_mono(l->sched.clock);
	while ((t = uar_timers_first(&l->timers)) && t->due_us <= l->dispatch_us) {
		uar_timers_stop(&l->timers, t);
		t->fn(t);
	}
	l->dispatch_us = INT64_MIN;
	uv_update_time(&l->uv);
	arm(l);
}

static uar_err loop_timer_set(struct uar_sched *s, struct uar_timer *t, int64_t delay_us)
{
	struct uar_loop *l = loop_of(s);
	int64_t due = uar_clock_mono(s->clock) + (delay_us > 0 ? delay_us : 0);
	uar_err e;

	if (due <= l->dispatch_us) /* set by a timer for "now": the next turn */
		due = l->dispatch_us + 1;
	e = uar_timers_set(&l->timers, t, due);
	if (!e && l->dispatch_us == INT64_MIN)
		arm(l);
	return e;
}

static void loop_timer_stop(struct uar_sched *s, struct uar_timer *t)
{
	uar_timers_stop(&loop_of(s)->timers, t);
}

/* --- workers ---------------------------------------------------------------- */

static void work_done(struct uar_task *t)
{
	struct uar_work *w = UAR_OWNER(t, struct uar_work, task);

	w->done(w);
}

/* The next piece of work, NULL when the pool ends and nothing waits. */
static struct uar_work *next_work(struct pool *p)
{
	struct uar_work *w = NULL;

	uv_mutex_lock(&p->lock);
	while (uar_list_empty(&p->queue) && !p->stopping)
		uv_cond_wait(&p->wake, &p->lock);
	if (!uar_list_empty(&p->queue)) {
		w = UAR_OWNER(p->queue.next, struct uar_work, node);
		uar_list_remove(&w->node);
		p->queued--;
		p->at_work++;
		p->taken++;
	}
	uv_mutex_unlock(&p->lock);
	return w;
}

static void worked(struct pool *p)
{
	uv_mutex_lock(&p->lock);
	p->at_work--;
	uv_mutex_unlock(&p->lock);
}

bool uar_loop_working(struct uar_loop *l)
{
	struct pool *p = &l->pool;
	bool working;

	if (!p->ready)
		return false;
	uv_mutex_lock(&p->lock);
	working = p->queued || p->at_work;
	uv_mutex_unlock(&p->lock);
	return working;
}

static void worker(void *ctx)
{
	struct uar_loop *l = ctx;
	struct uar_work *w;

	while ((w = next_work(&l->pool))) {
		w->work(w);
		w->task.fn = work_done;
		loop_post_remote(&l->sched, &w->task);
		worked(&l->pool);
	}
}

void uar_loop_work_stats(struct uar_loop *l, struct uar_work_stats *out)
{
	struct pool *p = &l->pool;

	*out = (struct uar_work_stats){ .threads = p->threads };
	if (!p->ready)
		return;
	uv_mutex_lock(&p->lock);
	out->at_work = p->at_work;
	out->waiting = p->queued;
	uv_mutex_unlock(&p->lock);
}

static void relieve(struct uar_timer *t);

/* Without memory for the timer the next piece of work tries again. */
static void watch(struct uar_loop *l, uint64_t taken)
{
	struct pool *p = &l->pool;

	p->seen = taken;
	p->relief.fn = relieve;
	p->watching = loop_timer_set(&l->sched, &p->relief, STUCK_US) == UAR_OK;
}

/* Work waits, and for a while no thread has taken any: what they do may hang, as in a file
 * system that does not answer. Others must not wait for it, so there is one thread more. */
static void relieve(struct uar_timer *t)
{
	struct uar_loop *l = UAR_OWNER(t, struct uar_loop, pool.relief);
	struct pool *p = &l->pool;
	uint64_t taken;
	bool waits;

	uv_mutex_lock(&p->lock);
	taken = p->taken;
	waits = p->queued > 0;
	uv_mutex_unlock(&p->lock);
	p->watching = false;
	p->stuck = waits && taken == p->seen;
	if (p->stuck && p->threads < UAR_LIMIT_WORK_THREADS_MOST &&
	    uv_thread_create(&p->ids[p->threads], worker, l) == 0) {
		p->threads++;
		p->stuck = false;
	}
	if (waits)
		watch(l, taken);
}

static uar_err pool_start(struct uar_loop *l)
{
	struct pool *p = &l->pool;

	if (!p->ready) {
		if (uv_mutex_init(&p->lock))
			return UAR_ENOMEM;
		if (uv_cond_init(&p->wake)) {
			uv_mutex_destroy(&p->lock);
			return UAR_ENOMEM;
		}
		uar_list_init(&p->queue);
		p->ready = true;
	}
	while (p->threads < UAR_LIMIT_WORK_THREADS) {
		if (uv_thread_create(&p->ids[p->threads], worker, l))
			return p->threads ? UAR_OK : UAR_ENOMEM;
		p->threads++;
	}
	return UAR_OK;
}

static uar_err loop_work(struct uar_sched *s, struct uar_work *w)
{
	struct uar_loop *l = loop_of(s);
	struct pool *p = &l->pool;
	uar_err e = p->threads >= UAR_LIMIT_WORK_THREADS ? UAR_OK : pool_start(l);
	uint64_t taken;
	bool crowded;

	if (e)
		return e;
	uv_mutex_lock(&p->lock);
	taken = p->taken;
	crowded = p->at_work + p->queued >= p->threads;
	if (p->queued >= UAR_LIMIT_WORK_QUEUE || (p->stuck && taken == p->seen)) {
		e = UAR_EBUSY;
	} else {
		uar_list_add_last(&p->queue, &w->node);
		p->queued++;
		uv_cond_signal(&p->wake);
	}
	uv_mutex_unlock(&p->lock);
	if (!e && crowded && !p->watching)
		watch(l, taken);
	return e;
}

/* Work that was taken is finished, and said to be: exactly once, as always. */
static void pool_stop(struct uar_loop *l)
{
	struct pool *p = &l->pool;

	if (!p->ready)
		return;
	uar_timers_stop(&l->timers, &p->relief);
	uv_mutex_lock(&p->lock);
	p->stopping = true;
	uv_cond_broadcast(&p->wake);
	uv_mutex_unlock(&p->lock);
	while (p->threads > 0)
		uv_thread_join(&p->ids[--p->threads]);
	uv_cond_destroy(&p->wake);
	uv_mutex_destroy(&p->lock);
	p->ready = false;
	uar_list_move_all(&l->remote, &l->posted);
	UAR_LIST_EACH (node, &l->posted) {
		struct uar_task *t = UAR_OWNER(node, struct uar_task, node);

		if (t->fn != work_done)
			continue;
		uar_list_remove(node);
		uar_list_add_last(&l->running, node);
	}
	run_tasks(l);
}

static const struct uar_sched_ops loop_ops = {
	.abi = 1,
	.size = sizeof(struct uar_sched_ops),
	.post = loop_post,
	.post_remote = loop_post_remote,
	.unpost = loop_unpost,
	.timer_set = loop_timer_set,
	.timer_stop = loop_timer_stop,
	.work = loop_work,
};

/* --- signals ---------------------------------------------------------------- */

static void on_signal(uv_signal_t *h, int signum)
{
	struct signal_watch *s = h->data;

	s->fn(s->ctx, signum);
}

static void free_signal(uv_handle_t *h)
{
	uar_free(h->data);
}

uar_err uar_loop_on_signal(struct uar_loop *l, int signum, uar_signal_fn *fn, void *ctx)
{
	struct signal_watch *s = uar_zalloc(sizeof *s);
	int number;

	if (!s)
		return UAR_ENOMEM;
	s->fn = fn;
	s->ctx = ctx;
	number = uv_signal_init(&l->uv, &s->uv);
	if (number) {
		uar_free(s);
		return uar_loop_err(number);
	}
	s->uv.data = s;
	if (uv_signal_start(&s->uv, on_signal, signum)) {
		uv_close((uv_handle_t *)&s->uv, free_signal);
		return UAR_EINVALID;
	}
	uar_list_add_last(&l->signals, &s->node);
	return UAR_OK;
}

/* --- life ------------------------------------------------------------------- */

uar_err uar_loop_err(int number)
{
	switch (number) {
	case 0: return UAR_OK;
	case UV_ENOMEM: return UAR_ENOMEM;
	case UV_EMFILE:
	case UV_ENFILE: return UAR_EFDS;
	}
	return UAR_EIO;
}

static uar_err init_wake(struct uar_loop *l)
{
	l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return l->wake_fd < 0 ? uar_loop_err(-errno)
			      : uar_poll_start(l, l->wake_fd, on_wake, l, &l->wake);
}

static uar_err init_handles(struct uar_loop *l)
{
	int number = uv_mutex_init(&l->lock);
	uar_err e;

	l->lock_ready = !number;
	if (!number)
		number = uv_loop_init(&l->uv);
	l->uv_ready = !number;
	if (!number)
		number = uv_timer_init(&l->uv, &l->timer);
	if (!number)
		number = uv_check_init(&l->uv, &l->check);
	if (!number)
		number = uv_idle_init(&l->uv, &l->idle);
	if (number)
		return uar_loop_err(number);
	l->timer.data = l->check.data = l->idle.data = l;
	e = init_wake(l);
	return e ? e : uar_loop_err(uv_check_start(&l->check, on_check));
}

uar_err uar_loop_create(const struct uar_clock *clock, struct uar_loop **out)
{
	struct uar_loop *l = uar_zalloc(sizeof *l);
	uar_err e;

	if (!l)
		return UAR_ENOMEM;
	l->sched = (struct uar_sched){ &loop_ops, clock };
	l->wake_fd = -1;
	l->armed_us = INT64_MAX;
	l->dispatch_us = INT64_MIN;
	uar_list_init(&l->posted);
	uar_list_init(&l->running);
	uar_list_init(&l->remote);
	uar_list_init(&l->signals);
	e = init_handles(l);
	if (e) {
		uar_loop_destroy(l);
		return e;
	}
	*out = l;
	return UAR_OK;
}

static void close_handle(uv_handle_t *h)
{
	if (h->type != UV_UNKNOWN_HANDLE && !uv_is_closing(h))
		uv_close(h, NULL);
}

static void close_uv(struct uar_loop *l)
{
	int e;

	close_handle((uv_handle_t *)&l->timer);
	close_handle((uv_handle_t *)&l->check);
	close_handle((uv_handle_t *)&l->idle);
	uar_poll_stop(l->wake);
	UAR_LIST_EACH (node, &l->signals)
		uv_close((uv_handle_t *)&UAR_OWNER(node, struct signal_watch, node)->uv,
			 free_signal);
	/* Two rounds close everything; more would mean that somebody left a handle open. */
	for (int i = 0; i < 4 && uv_loop_alive(&l->uv); i++)
		uv_run(&l->uv, UV_RUN_NOWAIT);
	e = uv_loop_close(&l->uv);
	assert(e == 0);
	(void)e;
}

void uar_loop_destroy(struct uar_loop *l)
{
	if (!l)
		return;
	pool_stop(l);
	if (l->uv_ready)
		close_uv(l);
	if (l->wake_fd >= 0)
		close(l->wake_fd);
	if (l->lock_ready)
		uv_mutex_destroy(&l->lock);
	uar_timers_fini(&l->timers);
	uar_free(l);
}

struct uar_sched *uar_loop_sched(struct uar_loop *l)
{
	return &l->sched;
}

struct uv_loop_s *uar_loop_uv(struct uar_loop *l)
{
	return &l->uv;
}

void uar_loop_set_supervisor(struct uar_loop *l, const char *path)
{
	l->supervisor = path;
}

const char *uar_loop_supervisor(const struct uar_loop *l)
{
	return l->supervisor ? l->supervisor : "/proc/self/exe";
}

uint64_t uar_loop_turn(const struct uar_loop *l)
{
	return l->turn;
}

void uar_loop_run(struct uar_loop *l)
{
	bool keeps = uar_alloc_keep();

	uv_run(&l->uv, UV_RUN_DEFAULT);
	if (keeps)
		uar_alloc_keep_end();
}

void uar_loop_stop(struct uar_loop *l)
{
	uv_stop(&l->uv);
}
