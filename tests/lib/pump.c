/* pump.c - a scheduler that runs on the test's own thread. */
#include "pump.h"

#include <time.h>

static struct uar_pump *pump_of(struct uar_sched *s)
{
	return UAR_OWNER(s, struct uar_pump, sched);
}

static void post(struct uar_sched *s, struct uar_task *t)
{
	if (t->queued)
		return;
	t->queued = true;
	uar_list_add_last(&pump_of(s)->tasks, &t->node);
}

static void post_remote(struct uar_sched *s, struct uar_task *t)
{
	struct uar_pump *p = pump_of(s);

	pthread_mutex_lock(&p->lock);
	t->queued = true;
	uar_list_add_last(&p->remote, &t->node);
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
}

static void unpost(struct uar_sched *s, struct uar_task *t)
{
	struct uar_pump *p = pump_of(s);

	if (!t->queued)
		return;
	t->queued = false;
	pthread_mutex_lock(&p->lock);
	uar_list_remove(&t->node);
	pthread_mutex_unlock(&p->lock);
}

static uar_err timer_set(struct uar_sched *s, struct uar_timer *t, int64_t delay_us)
{
	return uar_timers_set(&pump_of(s)->timers, t, uar_clock_mono(s->clock) + delay_us);
}

static void timer_stop(struct uar_sched *s, struct uar_timer *t)
{
	uar_timers_stop(&pump_of(s)->timers, t);
}

static void work_done(struct uar_task *t)
{
	struct uar_work *w = UAR_OWNER(t, struct uar_work, task);

	w->done(w);
}

uar_err uar_pump_work(struct uar_sched *s, struct uar_work *w)
{
	w->work(w);
	w->task.fn = work_done;
	s->ops->post(s, &w->task);
	return UAR_OK;
}

static const struct uar_sched_ops ops = {
	.abi = 1,
	.size = sizeof ops,
	.post = post,
	.post_remote = post_remote,
	.unpost = unpost,
	.timer_set = timer_set,
	.timer_stop = timer_stop,
	.work = uar_pump_work,
};

void uar_pump_init(struct uar_pump *p)
{
	pthread_condattr_t attr;

	*p = (struct uar_pump){ .sched = { &ops, &uar_clock_system } };
	uar_list_init(&p->tasks);
	uar_list_init(&p->remote);
	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&p->wake, &attr);
	pthread_condattr_destroy(&attr);
}

void uar_pump_fini(struct uar_pump *p)
{
	while (uar_pump_turn(p))
		;
	uar_timers_fini(&p->timers);
	pthread_cond_destroy(&p->wake);
	pthread_mutex_destroy(&p->lock);
}

static bool run_timers(struct uar_pump *p)
{
	int64_t now = uar_clock_mono(p->sched.clock);
	struct uar_timer *t;
	bool any = false;

	while ((t = uar_timers_first(&p->timers)) && t->due_us <= now) {
		uar_timers_stop(&p->timers, t);
		t->fn(t);
		any = true;
	}
	return any;
}

bool uar_pump_turn(struct uar_pump *p)
{
	struct uar_list now;
	bool any = run_timers(p);

	uar_list_init(&now);
	pthread_mutex_lock(&p->lock);
	uar_list_move_all(&p->remote, &now);
	pthread_mutex_unlock(&p->lock);
	uar_list_move_all(&p->tasks, &now);
	while (!uar_list_empty(&now)) {
		struct uar_task *t = UAR_OWNER(now.next, struct uar_task, node);

		uar_list_remove(&t->node);
		t->queued = false;
		t->fn(t);
		any = true;
	}
	return any;
}

static void sleep_a_while(struct uar_pump *p)
{
	struct uar_timer *t = uar_timers_first(&p->timers);
	struct timespec until;

	pthread_mutex_lock(&p->lock);
	if (!t && uar_list_empty(&p->remote)) {
		pthread_cond_wait(&p->wake, &p->lock);
	} else if (uar_list_empty(&p->remote)) {
		until.tv_sec = t->due_us / 1000000;
		until.tv_nsec = t->due_us % 1000000 * 1000;
		pthread_cond_timedwait(&p->wake, &p->lock, &until);
	}
	pthread_mutex_unlock(&p->lock);
}

void uar_pump_until(struct uar_pump *p, const bool *flag)
{
	while (!*flag)
		if (!uar_pump_turn(p) && !*flag)
			sleep_a_while(p);
}

void uar_pump_count(struct uar_pump *p, const size_t *count, size_t want)
{
	while (*count < want)
		if (!uar_pump_turn(p) && *count < want)
			sleep_a_while(p);
}
