/* leap.c - the leaping clock. */
#include "leap.h"

#include "test.h"

static int64_t wall(void *ctx)
{
	return uar_clock_wall(&uar_clock_system) + ((struct leap *)ctx)->ahead_us;
}

static int64_t mono(void *ctx)
{
	struct leap *l = ctx;
	int64_t now = l->held_us ? l->held_us++ : uar_clock_mono(&uar_clock_system);

	return now + l->ahead_us;
}

static void on_poke(struct uar_timer *t)
{
	(void)t; /* its firing makes the loop look at the clock */
}

void leap_init(struct leap *l)
{
	*l = (struct leap){ .clock = { wall, mono, l }, .poke.fn = on_poke };
}

void leap_hold(struct leap *l)
{
	l->held_us = uar_clock_mono(&uar_clock_system);
}

void leap_ahead(struct leap *l, struct uar_sched *s, int64_t us)
{
	/* First: due before the leap it is due before all others, and the loop wakes at once. */
	CHECK(uar_timer_set(s, &l->poke, 0) == UAR_OK);
	l->ahead_us += us;
}
