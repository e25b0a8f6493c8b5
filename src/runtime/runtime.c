/* runtime.c - the shell's life: made, drained, destroyed, counted. */
#include "runtime/tail.h"

uar_err uar_runtime_create(const struct uar_runtime_options *o, struct uar_runtime **out)
{
	struct uar_runtime *rt = uar_zalloc(sizeof *rt);
	uint64_t seed;
	uar_err e;

	if (!rt)
		return UAR_ENOMEM;
	rt->o = *o;
	uar_uuid_init(&rt->ids, o->sched->clock, o->rand);
	seed = uar_rand_u64(o->rand);
	uar_map_init(&rt->sessions, seed);
	uar_map_init(&rt->runs, seed);
	uar_map_init(&rt->threads, seed);
	uar_map_init(&rt->tail_map, seed);
	uar_list_init(&rt->tails);
	uar_list_init(&rt->spare);
	uar_list_init(&rt->to_load);
	e = uar_bus_create(seed, &rt->bus);
	if (e) {
		uar_runtime_destroy(rt);
		return e;
	}
	*out = rt;
	return UAR_OK;
}

void uar_runtime_destroy(struct uar_runtime *rt)
{
	struct agg *a;
	size_t at = 0;

	if (!rt)
		return;
	while ((a = uar_map_next(&rt->sessions, &at)))
		rt_agg_free(a);
	rt_batch_free_spare(rt);
	rt_tail_fini(rt);
	uar_map_fini(&rt->sessions);
	uar_map_fini(&rt->runs);
	uar_map_fini(&rt->threads);
	uar_bus_destroy(rt->bus);
	uar_free(rt);
}

struct uar_bus *uar_runtime_bus(struct uar_runtime *rt)
{
	return rt->bus;
}

struct uar_store *uar_runtime_store(struct uar_runtime *rt)
{
	return rt->o.store;
}

bool uar_runtime_ready(const struct uar_runtime *rt)
{
	return rt->enumerated && rt->recovering == 0 && !rt->draining;
}

void uar_runtime_reload(struct uar_runtime *rt, int64_t run_timeout_us, int64_t model_idle_us)
{
	rt->o.run_timeout_us = run_timeout_us;
	rt->o.model_idle_us = model_idle_us;
}

void uar_runtime_drain(struct uar_runtime *rt, void (*done)(void *ctx), void *ctx)
{
	struct live_run *r;
	size_t at = 0;

	rt->draining = true;
	while ((r = uar_map_next(&rt->runs, &at)))
		rt_worker_stop(r);
	rt->drained_ctx = ctx;
	if (rt->in_flight)
		rt->drained = done;
	else
		rt->o.store->ops->drain(rt->o.store, done, ctx);
}

void uar_runtime_stats(const struct uar_runtime *rt, struct uar_runtime_stats *out)
{
	*out = rt->stats;
}

void rt_log_run(const struct uar_runtime *rt, enum uar_log_level level, const char *what,
		uar_str run_id, const char *detail)
{
	uar_log(rt->o.log, level, what, { "run_id", run_id }, { "detail", uar_str_c(detail) });
}
