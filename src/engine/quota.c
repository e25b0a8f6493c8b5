/* quota.c - how many runs of a tenant are at work. */
#include "engine/engine_int.h"

/* The runs of the tenant that are in memory and not over. */
static size_t count_live(const struct uar_runtime *rt, uar_str tenant)
{
	const struct live_run *r;
	size_t n = 0;

	for (size_t at = 0; (r = uar_map_next(&rt->runs, &at));)
		n += uar_str_eq(r->agg->state.owner.tenant, tenant);
	return n;
}

uar_err rt_check_quota(const struct uar_runtime *rt, struct uar_run_create *op)
{
	size_t most = rt->o.quota.live_runs;

	if (!most || uar_owner_eq(&op->owner, &rt->o.quota.owner) ||
	    count_live(rt, op->owner.tenant) < most)
		return UAR_OK;
	return uar_error_set(&op->error, UAR_EQUOTA,
			     "the tenant has %zu runs at work, which is its quota: try again "
			     "when one is over (tenant_live_runs)",
			     most);
}
