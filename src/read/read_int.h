/* read_int.h - what the files of read/ share: the reader, and recent runs in memory. */
#ifndef UAR_READ_READ_INT_H
#define UAR_READ_READ_INT_H

#include "read/limits.h"
#include "base/alloc.h"
#include "base/map.h"
#include "bus/bus.h"
#include "engine/part.h"
#include "read/read.h"
#include "store/store.h"

/* tail.c: recent runs that are short, kept in memory as a whole within a bound.
 *
 * Who creates a run reads it right away: while it is short that needs no disk. Of one
 * that says more nothing is kept. Only what is durable is here; what is not here is in
 * the store. */
struct tail; /* of one run */
struct tails {
	struct uar_list list; /* the least recently written first */
	struct uar_map map;   /* by key */
	size_t count, bytes;
};

struct uar_reader {
	struct rt_part part;
	struct uar_runtime *rt;
	struct tails tails;
	struct uar_list asked;	   /* lookup.c: operations under way */
	size_t snapshot_jobs;	   /* snapshots.c */
	size_t exports;		   /* evidence.c */
	struct indexing *indexing; /* indexing.c; NULL: the store has no index */
};

void rt_tails_init(struct tails *ts, uint64_t hash_seed);
void rt_tails_clear(struct tails *ts); /* forgets all */
void rt_tails_fini(struct tails *ts);
/* The run's part of a commit. Out of memory forgets the run. */
void rt_tail_commit(struct tails *ts, const struct rt_commit *c);
/* A place in a run. */
struct tail_place {
	const struct uar_owner *owner;
	uar_str run_id;
	uint64_t after;
};
/* Does memory have all events behind the place, up to the newest? */
bool rt_tail_has(const struct tails *ts, const struct tail_place *p);
/* Gives them out, if so; their texts stay until the loop's next turn. */
bool rt_tail_read(const struct tails *ts, const struct tail_place *p,
		  struct uar_event out[static UAR_LIMIT_TAIL_EVENTS], size_t *out_n);
/* The run's record; NULL: it is not here. */
const struct uar_run_row *rt_tail_row(const struct tails *ts, const struct uar_owner *owner,
				      uar_str run_id);
/* The run is evicted. */
void rt_tail_forget(struct tails *ts, const struct uar_owner *owner, uar_str run_id);

/* indexing.c: fills the index of messages while nothing is committed. */
void rd_indexing_start(struct uar_reader *rd);
void rd_indexing_noted(struct indexing *x); /* something was committed */
void rd_indexing_fini(struct uar_reader *rd);
/* lookup.c: what is under way is forgotten; the store is gone. */
void rt_lookups_fini(struct uar_reader *rd);

/* The end of a page of rows: the cursor of the next one, or null. */
void rd_put_next(struct uar_jw *w, bool more, uar_str next);

#endif
