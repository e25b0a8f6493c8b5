/* quarantine.c - runs that can neither go on nor be ended: known by name until the
 * next start, which tries them again. No more of them are known than may be live. */
#include "engine/engine_int.h"
#include "engine/limits.h"

struct bad_run {
	size_t n;
	char key[];
};

static void remember(struct uar_runtime *rt, uar_str key)
{
	struct bad_run *b = NULL;

	if (rt->quarantine.used < UAR_LIMIT_RUNS_LIVE)
		b = uar_zalloc(sizeof *b + key.n);
	if (!b)
		return; /* it is then told like one that is still being recovered */
	b->n = key.n;
	memcpy(b->key, key.p, key.n);
	if (uar_map_put(&rt->quarantine, uar_str_n(b->key, b->n), b))
		uar_free(b);
}

void rt_run_quarantine(struct live_run *r, uar_err why)
{
	remember(r->agg->rt, r->run_key);
	rt_run_over(r, why);
}

uar_err rt_out_of_reach(const struct uar_runtime *rt, const struct uar_owner *owner, uar_str run_id,
			struct uar_error *error)
{
	struct rt_key k;

	if (uar_map_get(&rt->quarantine, rt_key(&k, owner, run_id)))
		return uar_error_set(
			error, UAR_ECORRUPT,
			"the run is at rest: its events cannot be read, or none can be added");
	return uar_error_set(error, UAR_EBUSY, "the run is still being recovered");
}

void rt_quarantine_fini(struct uar_runtime *rt)
{
	struct bad_run *b;
	size_t at = 0;

	while ((b = uar_map_next(&rt->quarantine, &at))) {
		uar_map_remove(&rt->quarantine, uar_str_n(b->key, b->n));
		uar_free(b);
	}
	uar_map_fini(&rt->quarantine);
}
