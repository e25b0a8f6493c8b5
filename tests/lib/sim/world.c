/* world.c - time and order. */
#include "sim/world.h"

#include "memory_store.h"
#include "pump.h"

static int64_t now(void *ctx)
{
	return ((struct sim_world *)ctx)->now_us;
}

static void post(struct uar_sched *s, struct uar_task *t)
{
	struct sim_world *w = UAR_OWNER(s, struct sim_world, sched);

	if (t->queued)
		return;
	t->queued = true;
	uar_list_add_last(&w->tasks, &t->node);
}

static void unpost(struct uar_sched *s, struct uar_task *t)
{
	(void)s;
	if (!t->queued)
		return;
	t->queued = false;
	uar_list_remove(&t->node);
}

static uar_err timer_set(struct uar_sched *s, struct uar_timer *t, int64_t delay_us)
{
	struct sim_world *w = UAR_OWNER(s, struct sim_world, sched);

	return uar_timers_set(&w->timers, t, w->now_us + delay_us);
}

static void timer_stop(struct uar_sched *s, struct uar_timer *t)
{
	uar_timers_stop(&UAR_OWNER(s, struct sim_world, sched)->timers, t);
}

static const struct uar_sched_ops ops = { 1,	  sizeof ops, post,	  post,
					  unpost, timer_set,  timer_stop, uar_pump_work };

void sim_world_init(struct sim_world *w, uint64_t seed)
{
	struct uar_store_options o = { .sched = &w->sched, .rand = &w->rand };
	struct uar_error error;

	*w = (struct sim_world){ .now_us = 1800000000000000 };
	w->clock = (struct uar_clock){ now, now, w };
	w->sched = (struct uar_sched){ &ops, &w->clock };
	w->rand = uar_rand_seed(&w->seeded, seed);
	uar_list_init(&w->tasks);
	if (uar_store_memory_create(&o, &w->disk, &error))
		abort();
	sim_store_init(w);
	sim_model_init(w);
	sim_entries_init(w);
	sim_tools_init(w);
}

void sim_world_fini(struct sim_world *w)
{
	sim_store_fini(w);
	uar_store_destroy(w->disk);
	uar_timers_fini(&w->timers);
}

uint64_t sim_below(struct sim_world *w, uint64_t n)
{
	return uar_rand_below(&w->rand, n);
}

bool sim_run_task(struct sim_world *w)
{
	struct uar_task *t;

	if (uar_list_empty(&w->tasks))
		return false;
	t = UAR_OWNER(w->tasks.next, struct uar_task, node);
	uar_list_remove(&t->node);
	t->queued = false;
	t->fn(t);
	return true;
}

static bool run_timer(struct sim_world *w)
{
	struct uar_timer *t = uar_timers_first(&w->timers);

	if (!t)
		return false;
	if (t->due_us > w->now_us)
		w->now_us = t->due_us;
	uar_timers_stop(&w->timers, t);
	t->fn(t);
	return true;
}

/* However busy everybody is. */
static bool timer_due(const struct sim_world *w)
{
	const struct uar_timer *t = uar_timers_first(&w->timers);

	return t && t->due_us <= w->now_us;
}

static bool run_due_timer(struct sim_world *w)
{
	return timer_due(w) && run_timer(w);
}

bool sim_step(struct sim_world *w)
{
	static bool (*const who[])(struct sim_world *) = { sim_store_step, sim_model_step,
							   sim_entries_step, run_due_timer,
							   sim_tools_step };
	uint64_t first;

	w->now_us += (int64_t)sim_below(w, 50);
	first = sim_below(w, ARRAY_LEN(who) + 1);
	if (first < ARRAY_LEN(who) && who[first](w))
		return true;
	return sim_run_task(w) || sim_store_step(w) || sim_model_step(w) || sim_entries_step(w) ||
	       sim_tools_step(w) || run_timer(w);
}

void sim_settle(struct sim_world *w, int64_t us)
{
	int64_t until = w->now_us + us;

	for (;;) {
		struct uar_timer *t = uar_timers_first(&w->timers);

		if (uar_list_empty(&w->tasks) && !sim_store_pending(w) && !w->call_count &&
		    !w->tools.call_count && sim_entries_idle(w) && (!t || t->due_us > until))
			return;
		sim_step(w);
	}
}

void sim_kill(struct sim_world *w)
{
	w->dead = true;
}

void sim_reborn(struct sim_world *w)
{
	while (sim_run_task(w) || sim_store_step(w))
		;
	w->dead = w->drain.on = false;
}
