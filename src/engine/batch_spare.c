/* batch_spare.c - batches that are over, kept for the next ones with some of their memory. */
#include "engine/batch.h"
#include "engine/limits.h"
#include "event/sizes.h"

struct batch *rt_batch_take(struct uar_runtime *rt)
{
	struct batch *b;

	if (rt->batches.count) {
		b = UAR_OWNER(rt->batches.list.prev, struct batch, node); /* still in the cache */
		uar_list_remove(&b->node);
		rt->batches.count--;
		rt->batches.large -= rt->batches.large > 0;
		return b;
	}
	b = uar_alloc(sizeof *b);
	if (!b)
		return NULL;
	uar_list_init(&b->node);
	uar_run_init(&b->r);
	uar_arena_init(&b->arena, 0);
	b->buf = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
	return b;
}

static void destroy_batch(struct batch *b)
{
	uar_run_copy_fini(&b->r);
	uar_arena_fini(&b->arena);
	uar_buf_fini(&b->buf);
	uar_free(b);
}

void rt_batch_free_spare(struct uar_runtime *rt)
{
	UAR_LIST_EACH (it, &rt->batches.list) {
		uar_list_remove(it);
		destroy_batch(UAR_OWNER(it, struct batch, node));
	}
	rt->batches.count = rt->batches.large = 0;
}

/* Large ones are at the end, where they are taken from first: a crowd that is over must
 * not leave them below small ones. */
void rt_batch_put(struct uar_runtime *rt, struct batch *b)
{
	bool large = rt->batches.large < UAR_LIMIT_SPARE_LARGE_BATCHES;
	size_t keep = large ? UAR_LIMIT_SPARE_BATCH_BYTES : UAR_LIMIT_SPARE_SMALL_BATCH_BYTES;

	if (rt->batches.count < UAR_LIMIT_SPARE_BATCHES) {
		uar_run_copy_fini(&b->r);
		if (b->arena.used > keep)
			uar_arena_fini(&b->arena);
		else
			uar_arena_reset(&b->arena);
		uar_list_init(&b->node);
		uar_list_add_last(large ? &rt->batches.list : rt->batches.list.next, &b->node);
		rt->batches.count++;
		rt->batches.large += large;
		return;
	}
	destroy_batch(b);
}
