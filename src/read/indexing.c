/* indexing.c - fills the index of messages in the background, while nothing is committed.
 *
 * A search brings the index up to date by itself, so a server that is never idle loses nothing
 * but the head start. */
#include "read/limits.h"
#include "read/read_int.h"

struct indexing {
	struct rt_op under_way;
	struct uar_reader *rd;
	struct uar_timer timer;
	struct uar_index step;
	bool armed, at_work;
	uint64_t noted, seen; /* commits: all, and up to the last look */
};

static void look(struct uar_timer *t);

static void arm(struct indexing *x)
{
	x->timer.fn = look;
	x->armed = !uar_timer_set(rt_sched(x->rd->rt), &x->timer,
				  (int64_t)UAR_LIMIT_INDEX_IDLE_MS * 1000);
}

/* The store calls back no more: the reader goes next. */
static void drop_step(struct rt_op *op)
{
	UAR_OWNER(op, struct indexing, under_way)->at_work = false;
}

static void stepped(struct uar_index *op)
{
	struct indexing *x = UAR_OWNER(op, struct indexing, step);
	struct uar_store *store = rt_store(x->rd->rt);
	bool goes_on = !op->err && op->more && !rt_is_draining(x->rd->rt) && x->noted == x->seen;

	if (goes_on && !store->ops->index(store, op))
		return;
	x->at_work = false;
	rt_op_end(&x->under_way);
	if (x->noted != x->seen && !x->armed && !rt_is_draining(x->rd->rt))
		arm(x);
}

static void look(struct uar_timer *t)
{
	struct indexing *x = UAR_OWNER(t, struct indexing, timer);
	struct uar_store *store = rt_store(x->rd->rt);
	bool idle = x->noted == x->seen;

	x->armed = false;
	x->seen = x->noted;
	if (rt_is_draining(x->rd->rt) || x->at_work)
		return;
	if (!idle) {
		arm(x);
		return;
	}
	x->step = (struct uar_index){ .done = stepped };
	if (store->ops->index(store, &x->step))
		return;
	x->at_work = true;
	rt_op_begin(x->rd->rt, &x->under_way, drop_step);
}

void rd_indexing_noted(struct indexing *x)
{
	x->noted++;
	if (!x->armed && !x->at_work)
		arm(x);
}

void rd_indexing_start(struct uar_reader *rd)
{
	if (!rt_store(rd->rt)->ops->index)
		return;
	rd->indexing = uar_zalloc(sizeof *rd->indexing);
	if (rd->indexing)
		rd->indexing->rd = rd;
}

void rd_indexing_fini(struct uar_reader *rd)
{
	if (rd->indexing)
		uar_timer_stop(rt_sched(rd->rt), &rd->indexing->timer);
	uar_free(rd->indexing);
	rd->indexing = NULL;
}
