/* part.c - the attached rooms, and what the engine does for them. */
#include "engine/engine_int.h"
#include "engine/limits.h"

void rt_part_add(struct uar_runtime *rt, struct rt_part *p)
{
	uar_list_add_last(&rt->parts, &p->node);
}

void rt_parts_committed(struct uar_runtime *rt, const struct rt_commit *c)
{
	UAR_LIST_EACH (it, &rt->parts) {
		struct rt_part *p = UAR_OWNER(it, struct rt_part, node);

		if (p->committed)
			p->committed(p, c);
	}
}

void rt_parts_evicted(struct uar_runtime *rt, const struct uar_owner *owner, uar_str run_id)
{
	UAR_LIST_EACH (it, &rt->parts) {
		struct rt_part *p = UAR_OWNER(it, struct rt_part, node);

		if (p->evicted)
			p->evicted(p, owner, run_id);
	}
}

void rt_session_advanced(struct agg *a, const struct uar_event *first, const struct uar_event *last)
{
	if ((first->sequence - 1) / UAR_LIMIT_SNAPSHOT_EVENTS ==
	    last->sequence / UAR_LIMIT_SNAPSHOT_EVENTS)
		return;
	UAR_LIST_EACH (it, &a->rt->parts) {
		struct rt_part *p = UAR_OWNER(it, struct rt_part, node);

		if (p->advanced)
			p->advanced(p, &a->state.owner, a->state.session_id);
	}
}

void rt_parts_release(struct uar_runtime *rt)
{
	UAR_LIST_EACH (it, &rt->parts) {
		struct rt_part *p = UAR_OWNER(it, struct rt_part, node);

		if (p->release)
			p->release(p);
	}
}

void rt_parts_stop(struct uar_runtime *rt)
{
	UAR_LIST_EACH (it, &rt->parts) {
		struct rt_part *p = UAR_OWNER(it, struct rt_part, node);

		if (p->stop)
			p->stop(p);
	}
}

/* The one that was attached last goes first. */
void rt_parts_destroy(struct uar_runtime *rt)
{
	while (!uar_list_empty(&rt->parts)) {
		struct rt_part *p = UAR_OWNER(rt->parts.prev, struct rt_part, node);

		uar_list_remove(&p->node);
		p->destroy(p);
	}
}

struct uar_sched *rt_sched(const struct uar_runtime *rt)
{
	return rt->o.sched;
}

struct uar_store *rt_store(const struct uar_runtime *rt)
{
	return rt->o.store;
}

struct uar_bus *rt_bus(const struct uar_runtime *rt)
{
	return rt->bus;
}

const struct uar_log *rt_log(const struct uar_runtime *rt)
{
	return rt->o.log;
}

const struct uar_rand *rt_rand(const struct uar_runtime *rt)
{
	return rt->o.rand;
}

struct uar_uuid *rt_ids(struct uar_runtime *rt)
{
	return &rt->ids;
}

const struct uar_seal_key *rt_seal(const struct uar_runtime *rt)
{
	return &rt->secret.seal;
}

uint64_t rt_hash_seed(const struct uar_runtime *rt)
{
	return rt->secret.hash_seed;
}

bool rt_is_draining(const struct uar_runtime *rt)
{
	return rt->draining;
}

uar_err rt_takes_new(const struct uar_runtime *rt)
{
	if (rt->draining)
		return UAR_EDRAINING;
	return uar_time_usable(uar_clock_wall(rt->o.sched->clock)) ? UAR_OK : UAR_ECLOCK;
}

bool rt_worth_retrying(uar_err e)
{
	return e == UAR_EDISKFULL || e == UAR_EBUSY || e == UAR_EHELD || e == UAR_ENOMEM ||
	       e == UAR_EFDS || e == UAR_ECLOCK;
}

void rt_op_begin(struct uar_runtime *rt, struct rt_op *op, void (*drop)(struct rt_op *op))
{
	op->rt = rt;
	op->drop = drop;
	uar_list_add_last(&rt->ops, &op->node);
}

void rt_op_end(struct rt_op *op)
{
	uar_list_remove(&op->node);
	rt_maybe_drained(op->rt);
}

const struct uar_run *rt_live_run(const struct uar_runtime *rt, const struct uar_owner *owner,
				  uar_str run_id)
{
	const struct live_run *r = rt_run_find(rt, owner, run_id);

	return r && r->committed ? &r->state : NULL;
}

bool rt_run_has_ended(const struct uar_runtime *rt, const struct uar_owner *owner, uar_str run_id)
{
	struct rt_key k;

	return uar_runtime_ready(rt) && !rt_run_find(rt, owner, run_id) &&
	       !rt_run_is_parked(rt, owner, run_id) &&
	       !uar_map_get(&rt->quarantine, rt_key(&k, owner, run_id));
}

uar_err rt_append(struct uar_runtime *rt, struct uar_append *a)
{
	return rt->o.store->ops->append(rt->o.store, a);
}

void rt_publish(struct uar_runtime *rt, uar_str key, const struct uar_append *a)
{
	rt->stats.events += a->event_count;
	uar_bus_publish(rt->bus, key, a->events, a->event_count,
			a->events[a->event_count - 1].sequence);
}
