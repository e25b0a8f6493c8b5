/* sweep.c - after a start, blobs that evicted runs alone refer to are unlinked, step by
 * step in the background. Nothing depends on it: what it leaves the next start tries. */
#include "engine/engine_int.h"

struct sweeping {
	struct rt_op under_way;
	struct uar_sweep sweep;
};

static void drop_sweep(struct rt_op *under_way)
{
	uar_free(UAR_OWNER(under_way, struct sweeping, under_way));
}

static void end_sweep(struct sweeping *b, uar_err e)
{
	const struct uar_log *log = b->under_way.rt->o.log;
	char removed[24];

	b->under_way.rt->stats.swept += b->sweep.removed;
	snprintf(removed, sizeof removed, "%llu", (unsigned long long)b->sweep.removed);
	if (e && e != UAR_EDRAINING)
		uar_log(log, UAR_LOG_WARN, "blobs.not_swept",
			{ "detail", uar_str_c(b->sweep.error.code ? uar_error_text(&b->sweep.error)
								  : uar_err_text(e)) });
	else if (b->sweep.removed)
		uar_log(log, UAR_LOG_INFO, "blobs.swept", { "count", uar_str_c(removed) });
	rt_op_end(&b->under_way);
	uar_free(b);
}

static void swept(struct uar_sweep *op)
{
	struct sweeping *b = UAR_OWNER(op, struct sweeping, sweep);
	struct uar_runtime *rt = b->under_way.rt;
	bool more = op->more; /* the next step may be over before this ends */
	uar_err e = op->err;

	if (!e && more)
		e = rt->draining ? UAR_EDRAINING : rt->o.store->ops->sweep(rt->o.store, op);
	if (e || !more)
		end_sweep(b, e);
}

void rt_sweep(struct uar_runtime *rt)
{
	struct uar_store *store = rt->o.store;
	struct sweeping *b = store->ops->sweep ? uar_zalloc(sizeof *b) : NULL;

	if (!b)
		return;
	b->sweep.done = swept;
	if (store->ops->sweep(store, &b->sweep))
		uar_free(b);
	else
		rt_op_begin(rt, &b->under_way, drop_sweep);
}
