/* shortage.c - what the runtime does while memory is short.
 *
 * It begins when an operation fails with UAR_ENOMEM, and is over when no operation has failed
 * for QUIET_US and UAR_LIMIT_SPARE_MEMORY can be allocated. Until then the runtime is not
 * ready, and gives its caches back each LOOK_US. What runs need is tried again meanwhile. After
 * LASTS_US without success there is no reason to hope: `exhausted` ends the process, and its
 * runs go on from the log after the next start. */
#include "base/alloc.h"
#include "engine/limits.h"
#include "engine/engine_int.h"

enum {
	FIRST_LOOK_US = 10000,
	LOOK_US = 1000000,
	QUIET_US = 4 * UAR_RETRY_US, /* what runs need is tried more often */
	LASTS_US = 15000000,
};

static int64_t now_of(const struct uar_runtime *rt)
{
	return uar_clock_mono(rt->o.sched->clock);
}

static void release_caches(struct uar_runtime *rt)
{
	rt_batch_free_spare(rt);
	rt_cmd_free_spare(rt);
	rt_parts_release(rt);
	uar_arena_fini(&rt->scratch);
	uar_alloc_release();
}

static bool is_over(const struct uar_runtime *rt)
{
	return now_of(rt) - rt->shortage.last_us >= QUIET_US &&
	       uar_alloc_can(UAR_LIMIT_SPARE_MEMORY);
}

static void end_shortage(struct uar_runtime *rt)
{
	rt->shortage.of_memory = false;
	uar_log(rt->o.log, UAR_LOG_INFO, "memory.back", { "detail", UAR_STR("ready again") });
}

static void look_later(struct uar_runtime *rt, int64_t us)
{
	if (uar_timer_set(rt->o.sched, &rt->shortage.look, us))
		uar_post(rt->o.sched, &rt->shortage.task);
}

static void look_at_memory(struct uar_runtime *rt)
{
	struct rt_shortage *s = &rt->shortage;

	if (!s->of_memory)
		return;
	release_caches(rt);
	if (is_over(rt)) {
		end_shortage(rt);
	} else if (rt->o.exhausted && !rt->draining && now_of(rt) - s->since_us >= LASTS_US) {
		s->of_memory = false;
		rt->o.exhausted(rt->o.exhausted_ctx);
	} else {
		look_later(rt, LOOK_US);
	}
}

static void on_look(struct uar_timer *t)
{
	look_at_memory(UAR_OWNER(t, struct uar_runtime, shortage.look));
}

static void on_task(struct uar_task *t)
{
	look_at_memory(UAR_OWNER(t, struct uar_runtime, shortage.task));
}

void rt_shortage_init(struct uar_runtime *rt)
{
	rt->shortage.look.fn = on_look;
	rt->shortage.task.fn = on_task;
}

void rt_shortage_fini(struct uar_runtime *rt)
{
	uar_timer_stop(rt->o.sched, &rt->shortage.look);
	uar_unpost(rt->o.sched, &rt->shortage.task);
}

void uar_runtime_note_failure(struct uar_runtime *rt, uar_err e)
{
	struct rt_shortage *s = &rt->shortage;

	if (e != UAR_ENOMEM)
		return;
	s->last_us = now_of(rt);
	if (s->of_memory)
		return;
	s->of_memory = true;
	s->since_us = s->last_us;
	uar_log(rt->o.log, UAR_LOG_WARN, "memory.short",
		{ "detail", UAR_STR("operations fail for want of memory; not ready until it is "
				    "back") });
	look_later(rt, FIRST_LOOK_US);
}

bool uar_runtime_short_of_memory(const struct uar_runtime *rt)
{
	return rt->shortage.of_memory;
}
