/* engine.c - the engine's life: made, drained, destroyed, counted. */
#include "engine/engine_int.h"

uar_err uar_runtime_create(const struct uar_runtime_options *o, struct uar_runtime **out)
{
	struct uar_runtime *rt = uar_zalloc(sizeof *rt);
	uint64_t seed;
	uar_err e;

	if (!rt)
		return UAR_ENOMEM;
	rt->o = *o;
	uar_uuid_init(&rt->ids, o->sched->clock, o->rand);
	if (o->seal)
		rt->secret.seal = *o->seal;
	else
		o->rand->fill(o->rand->ctx, rt->secret.seal.bytes, sizeof rt->secret.seal.bytes);
	seed = rt->secret.hash_seed = uar_rand_u64(o->rand);
	uar_map_init(&rt->sessions, seed);
	uar_map_init(&rt->runs, seed);
	uar_map_init(&rt->threads, seed);
	uar_map_init(&rt->quarantine, seed);
	uar_map_init(&rt->budgets.trees, seed);
	uar_map_init(&rt->budgets.accounts, seed);
	uar_map_init(&rt->retention.owners, seed);
	uar_list_init(&rt->batches.list);
	uar_list_init(&rt->cmds.list);
	uar_list_init(&rt->crowd);
	uar_list_init(&rt->recovery.to_load);
	uar_list_init(&rt->ops);
	uar_list_init(&rt->watches);
	uar_list_init(&rt->fanout.waiters);
	rt_shortage_init(rt);
	rt_due_init(rt);
	uar_list_init(&rt->parts);
	e = uar_bus_create(seed, &rt->bus);
	if (e) {
		uar_runtime_destroy(rt);
		return e;
	}
	*out = rt;
	return UAR_OK;
}

/* Workers first: they give up what they wait for, which is then dropped. */
void uar_runtime_destroy(struct uar_runtime *rt)
{
	struct live_run *r;
	struct agg *a;
	size_t at = 0;

	if (!rt)
		return;
	rt->drain.done = NULL; /* whatever ends from here on */
	uar_timer_stop(rt->o.sched, &rt->recovery.reload);
	uar_unpost(rt->o.sched, &rt->recovery.reload_now);
	uar_unpost(rt->o.sched, &rt->drain.later);
	while ((r = uar_map_next(&rt->runs, &at)))
		rt_worker_stop(r);
	while (!uar_list_empty(&rt->ops)) {
		struct rt_op *op = UAR_OWNER(rt->ops.next, struct rt_op, node);

		uar_list_remove(&op->node);
		op->drop(op);
	}
	at = 0;
	while ((a = uar_map_next(&rt->sessions, &at)))
		rt_agg_free(a);
	rt_due_fini(rt);
	rt_shortage_fini(rt);
	rt_parts_destroy(rt);
	rt_batch_free_spare(rt);
	rt_cmd_free_spare(rt);
	rt_quarantine_fini(rt);
	rt_numbers_free(&rt->parked);
	uar_arena_fini(&rt->scratch);
	uar_map_fini(&rt->sessions);
	uar_map_fini(&rt->runs);
	uar_map_fini(&rt->threads);
	uar_map_fini(&rt->budgets.trees);
	uar_map_fini(&rt->budgets.accounts);
	uar_map_fini(&rt->retention.owners);
	uar_bus_destroy(rt->bus);
	uar_free(rt);
}

void uar_runtime_watch(struct uar_runtime *rt, struct uar_watch *w)
{
	uar_list_add_last(&rt->watches, &w->node);
}

void uar_runtime_unwatch(struct uar_watch *w)
{
	if (w->node.next)
		uar_list_remove(&w->node);
}

bool uar_runtime_ready(const struct uar_runtime *rt)
{
	return rt->recovery.over && !rt->draining;
}

void uar_runtime_reload(struct uar_runtime *rt, int64_t run_timeout_us)
{
	rt->o.run_timeout_us = run_timeout_us;
}

static bool idle(const struct uar_runtime *rt)
{
	const struct agg *a;
	size_t at = 0;

	if (rt->in_flight || !uar_list_empty(&rt->ops))
		return false;
	while ((a = uar_map_next(&rt->sessions, &at)))
		if (!uar_list_empty(&a->queue))
			return false;
	return true;
}

static void drain_task(struct uar_task *t)
{
	struct uar_runtime *rt = UAR_OWNER(t, struct uar_runtime, drain.later);
	void (*done)(void *ctx) = rt->drain.done;

	if (!done || !idle(rt))
		return; /* whatever is under way asks again when it ends */
	rt->drain.done = NULL;
	rt->o.store->ops->drain(rt->o.store, done, rt->drain.ctx);
}

/* Looked at in a turn of its own: who calls may be in the middle of something. */
void rt_maybe_drained(struct uar_runtime *rt)
{
	if (rt->drain.done)
		uar_post(rt->o.sched, &rt->drain.later);
}

/* What was sent before is still decided and committed, but no worker begins. */
void uar_runtime_drain(struct uar_runtime *rt, void (*done)(void *ctx), void *ctx)
{
	struct live_run *r;
	size_t at = 0;

	rt->draining = true;
	while ((r = uar_map_next(&rt->runs, &at)))
		rt_worker_stop(r);
	rt_parts_stop(rt);
	rt_fanout_drain(rt);
	rt_recover_stop(rt);
	rt->drain.done = done;
	rt->drain.ctx = ctx;
	rt->drain.later.fn = drain_task;
	rt_maybe_drained(rt);
}

void uar_runtime_stats(const struct uar_runtime *rt, struct uar_runtime_stats *out)
{
	*out = rt->stats;
}

void uar_runtime_each_run(const struct uar_runtime *rt,
			  void (*fn)(void *ctx, const struct uar_run *run), void *ctx)
{
	const struct live_run *r;
	size_t at = 0;

	while ((r = uar_map_next(&rt->runs, &at)))
		if (r->committed)
			fn(ctx, &r->state);
}

/* Who asked is gone since a restart, and the log does not say so yet. */
static bool asked_in_vain(const struct live_run *r)
{
	return !r->worker && r->state.what.restart == UAR_RESTART_FAIL;
}

void uar_runtime_each_waiting(const struct uar_runtime *rt, const struct uar_owner *owner,
			      void (*fn)(void *ctx, const struct uar_run *run), void *ctx)
{
	const struct live_run *r;
	size_t at = 0;

	while ((r = uar_map_next(&rt->runs, &at)))
		if (r->committed && !asked_in_vain(r) &&
		    uar_run_rare(&r->state)->actions.open_count &&
		    uar_owner_eq(&r->agg->state.owner, owner))
			fn(ctx, &r->state);
}

void rt_log_run(const struct live_run *r, enum uar_log_level level, const char *what,
		const char *detail)
{
	uar_log(r->agg->rt->o.log, level, what, { "run_id", uar_str_c(r->run_id) },
		{ "trace_id", r->state.id.trace_id }, { "detail", uar_str_c(detail) });
}
