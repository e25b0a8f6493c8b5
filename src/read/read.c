/* read.c - the reader's life, and its numbers. */
#include "read/read_int.h"
#include "read/view_load.h"

static struct uar_reader *reader_of(struct rt_part *p)
{
	return UAR_OWNER(p, struct uar_reader, part);
}

static void on_committed(struct rt_part *p, const struct rt_commit *c)
{
	struct uar_reader *rd = reader_of(p);

	rt_tail_commit(&rd->tails, c);
	if (rd->indexing) /* text that comes, too: the index waits until nobody is at work */
		rd_indexing_noted(rd->indexing);
}

static void on_evicted(struct rt_part *p, const struct uar_owner *owner, uar_str run_id)
{
	rt_tail_forget(&reader_of(p)->tails, owner, run_id);
}

static void on_advanced(struct rt_part *p, const struct uar_owner *owner, uar_str session_id)
{
	rd_snapshot_due(reader_of(p), owner, session_id);
}

static void on_release(struct rt_part *p)
{
	rt_tails_clear(&reader_of(p)->tails);
}

static void destroy_reader(struct rt_part *p)
{
	struct uar_reader *rd = reader_of(p);

	rt_tails_fini(&rd->tails);
	rd_indexing_fini(rd);
	rt_lookups_fini(rd);
	uar_free(rd);
}

void rd_put_next(struct uar_jw *w, bool more, uar_str next)
{
	uar_jw_str_or_null(w, "next_cursor", more ? next : UAR_STR_NONE);
}

uar_err uar_reader_create(struct uar_runtime *rt, struct uar_reader **out)
{
	struct uar_reader *rd = uar_zalloc(sizeof *rd);

	if (!rd)
		return UAR_ENOMEM;
	rd->rt = rt;
	rt_tails_init(&rd->tails, rt_hash_seed(rt));
	uar_list_init(&rd->asked);
	rd->part = (struct rt_part){ .committed = on_committed,
				     .evicted = on_evicted,
				     .advanced = on_advanced,
				     .release = on_release,
				     .destroy = destroy_reader };
	rt_part_add(rt, &rd->part);
	rd_indexing_start(rd);
	*out = rd;
	return UAR_OK;
}

bool uar_reader_recent_run(struct uar_reader *rd, const struct uar_owner *owner, uar_str run_id,
			   const struct uar_run_row **out)
{
	const struct uar_run_row *row = rt_tail_row(&rd->tails, owner, run_id);

	if (row)
		*out = row;
	return row != NULL;
}

static enum uar_storage_health health_of(enum uar_store_health h)
{
	switch (h) {
	case UAR_STORE_FINE: return UAR_STORAGE_FINE;
	case UAR_STORE_FULL: return UAR_STORAGE_FULL;
	case UAR_STORE_DAMAGED: return UAR_STORAGE_DAMAGED;
	case UAR_STORE_BROKEN: break;
	}
	return UAR_STORAGE_BROKEN;
}

void uar_reader_stats(const struct uar_reader *rd, struct uar_reader_stats *out)
{
	struct uar_store *store = rt_store(rd->rt);
	struct uar_store_stats s;
	struct uar_bus_stats bus;

	store->ops->stats(store, &s);
	uar_bus_stats(rt_bus(rd->rt), &bus);
	*out = (struct uar_reader_stats){
		.commits = s.commits,
		.appends = s.appends,
		.reads = s.reads,
		.commit_us_total = s.commit_us_total,
		.commit_us_max = s.commit_us_max,
		.fold_failures = s.fold_failures,
		.queued = s.queued,
		.health = health_of(s.health),
		.space = s.space,
		.delivered = bus.delivered,
		.topics = bus.topics,
		.subscribers = bus.subscribers,
	};
}

const char *uar_reader_runtime_id(const struct uar_reader *rd)
{
	return rt_store(rd->rt)->runtime_id;
}

uint64_t uar_reader_incarnation(const struct uar_reader *rd)
{
	return rt_store(rd->rt)->incarnation;
}
