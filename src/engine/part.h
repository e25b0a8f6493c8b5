/* part.h - what the rooms above the engine attach to it, and what they may use of it.
 *
 * read/, mail/ and work/ keep state of their own. Each attaches a part, which the
 * engine tells of commits and destroys with itself. Only engine/ appends: a room that
 * has facts of its own hands them to rt_append. */
#ifndef UAR_ENGINE_PART_H
#define UAR_ENGINE_PART_H

#include "base/list.h"
#include "engine/engine.h"

struct uar_append;

/* Durable events of one run, in a row. Borrowed for the call. */
struct rt_commit {
	uar_str run_key; /* as rt_key makes it */
	const struct uar_event *events;
	size_t event_count;
	const struct uar_run_row *row; /* the run's record when it changed, else NULL */
};

/* Embedded in what is attached. Each function may be NULL. */
struct rt_part {
	struct uar_list node; /* the engine's */
	/* Before the bus publishes the events. */
	void (*committed)(struct rt_part *p, const struct rt_commit *c);
	/* The run is evicted: no look-up finds it any more. */
	void (*evicted)(struct rt_part *p, const struct uar_owner *owner, uar_str run_id);
	/* The log of the session has passed a multiple of UAR_LIMIT_SNAPSHOT_EVENTS. */
	void (*advanced)(struct rt_part *p, const struct uar_owner *owner, uar_str session_id);
	void (*release)(struct rt_part *p); /* memory is short: give caches back */
	void (*stop)(struct rt_part *p);    /* a drain begins: start nothing new */
	void (*destroy)(struct rt_part *p); /* workers and operations are gone, the clock is not */
};
void rt_part_add(struct uar_runtime *rt, struct rt_part *p);

struct uar_sched *rt_sched(const struct uar_runtime *rt);
struct uar_store *rt_store(const struct uar_runtime *rt);
struct uar_bus *rt_bus(const struct uar_runtime *rt);
const struct uar_log *rt_log(const struct uar_runtime *rt);
const struct uar_rand *rt_rand(const struct uar_runtime *rt);
struct uar_uuid *rt_ids(struct uar_runtime *rt);
const struct uar_seal_key *rt_seal(const struct uar_runtime *rt);
uint64_t rt_hash_seed(const struct uar_runtime *rt); /* of maps */
bool rt_is_draining(const struct uar_runtime *rt);
/* UAR_EDRAINING, UAR_ECLOCK: new work cannot begin now. */
UAR_MUST_CHECK uar_err rt_takes_new(const struct uar_runtime *rt);
bool rt_worth_retrying(uar_err e); /* it may pass by itself */

enum { UAR_RETRY_US = 500000 }; /* while storage or memory is short */

/* An operation under way at the store, or a posted task of it. An operation that is still
 * under way when the engine is destroyed is dropped: freed without an answer. */
struct rt_op {
	struct uar_list node; /* the engine's */
	struct uar_runtime *rt;
	void (*drop)(struct rt_op *op);
};
void rt_op_begin(struct uar_runtime *rt, struct rt_op *op, void (*drop)(struct rt_op *op));
void rt_op_end(struct rt_op *op);

/* An id is unique below its owner alone: this is the key of maps and of the bus. */
struct rt_key {
	char text[4 * (UAR_LIMIT_ID_BYTES + 1)];
	size_t n; /* 0: no such thing can exist */
};
/* The key, in *k. */
uar_str rt_key(struct rt_key *k, const struct uar_owner *owner, uar_str id);

/* A set of numbers that are not 0, such as hashes of keys (park.c). */
struct rt_numbers {
	uint64_t *at;
	size_t room, count;
};
bool rt_numbers_have(const struct rt_numbers *s, uint64_t n);
bool rt_numbers_add(struct rt_numbers *s, uint64_t n); /* false: no memory */
void rt_numbers_remove(struct rt_numbers *s, uint64_t n);
void rt_numbers_free(struct rt_numbers *s);

/* The committed state of a run in memory; NULL: it is not there. */
const struct uar_run *rt_live_run(const struct uar_runtime *rt, const struct uar_owner *owner,
				  uar_str run_id);
/* Recovery is over, and the run is neither in memory nor quarantined. */
bool rt_run_has_ended(const struct uar_runtime *rt, const struct uar_owner *owner, uar_str run_id);

/* Appends facts of a session that has no run. */
UAR_MUST_CHECK uar_err rt_append(struct uar_runtime *rt, struct uar_append *a);
/* Publishes what such an append made durable to the readers of the session with that key. */
void rt_publish(struct uar_runtime *rt, uar_str key, const struct uar_append *a);

#endif
