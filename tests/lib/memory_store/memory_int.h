/* memory_int.h - what the files of the store in memory share. */
#ifndef TESTS_MEMORY_STORE_MEMORY_INT_H
#define TESTS_MEMORY_STORE_MEMORY_INT_H

#include "base/map.h"
#include "memory_store.h"
#include "store/blob/blob.h"
#include "store/store_int.h"

struct mem_session {
	uar_str key, session_id;
	struct uar_event **events; /* events[sequence - 1] */
	size_t count, cap;
};

struct mem_run {
	uar_str key;
	uint64_t number;	/* order of creation, from 1 */
	struct uar_run_row row; /* `evicted` is here, too */
	struct mem_session *session;
	struct uar_event **events; /* events[run_sequence - 1] */
	size_t count, cap;
};

/* A name that belongs to something: a thread to its session, a key to its run. */
struct mem_thread {
	uar_str key;
	struct mem_session *session;
};
struct mem_key {
	uar_str key;
	struct uar_key_row row;
};
struct mem_row {
	uar_str key; /* of owner, kind and id */
	struct uar_row row;
	struct mem_session *session;
	struct uar_list node; /* in mem_names.all_rows */
};
/* An append between its call and its commit. */
struct mem_op {
	struct uar_append *a;
	struct mem *store;
	struct uar_event *events;
	size_t count;
	struct uar_owner owner;
	uar_str session_id, run_id;
	uint64_t after;
	struct uar_run_row run;
	struct uar_key_row key;
	uar_str *evict; /* run ids */
	size_t evict_count;
	size_t bytes; /* that count while it waits */
	bool has_run, has_key;
	struct uar_row *rows;
	size_t row_count;
};

/* What is found by name; owners are part of the names. */
struct mem_names {
	struct uar_map sessions, runs, threads, keys, rows;
	struct uar_blobs *blobs;
	struct uar_list all_rows; /* of struct mem_row, in order of creation */
};

struct mem_calls {
	void (*drained)(void *ctx);
	void *drained_ctx;
	void (*broken)(void *ctx, const struct uar_error *error);
	void *broken_ctx;
};

struct mem {
	struct uar_store base;
	struct uar_sched *sched;
	struct uar_arena arena; /* all that is kept */
	struct uar_arena scratch;
	struct mem_names names;
	struct mem_run **all; /* in order of creation */
	size_t run_count, run_cap;
	struct uar_list appends; /* of uar_append.task.node: not yet committed */
	struct uar_list reads;	 /* of uar_task.node: not yet answered */
	struct uar_list tell;	 /* of uar_append.task.node: committed, not yet told */
	struct uar_task commit_task, read_task;
	struct uar_task drained_task, broken_task;
	struct uar_store_stats stats;
	struct uar_error broken_error;
	uar_err fault;
	size_t pending, queued, queued_bytes;
	size_t asked; /* reads that wait */
	bool hold, draining;
	struct mem_calls call;
};

static inline struct mem *mem_of(struct uar_store *s)
{
	return UAR_OWNER(s, struct mem, base);
}

/* Calls `drained` when a drain was asked for and nothing is under way. */
void mem_maybe_drained(struct mem *m);

/* --- commit.c --- */
/* The name of an idempotency key, in the arena. */
uar_str mem_key_name(struct uar_arena *arena, const struct uar_owner *o,
		     const struct uar_key_row *k);
uar_err mem_append(struct uar_store *base, struct uar_append *a);
void mem_commit(struct uar_task *t);
/* Commits or refuses one append that waits; nobody is told. */
uar_err mem_commit_one(struct mem *m, struct mem_op *op);

/* --- rows.c --- */
/* What the rows of an append need, found and named before anything is changed. */
struct mem_row_plan {
	struct mem_row **at; /* of each row of the append */
	bool *is_new;
};
uar_err mem_rows_plan(struct mem *m, struct mem_op *op, const struct mem_session *session,
		      struct mem_row_plan *p);
uar_err mem_rows_name(struct mem *m, const struct mem_op *op, const struct mem_row_plan *p);
void mem_rows_write(struct mem *m, const struct mem_op *op, struct mem_session *session,
		    const struct mem_row_plan *p);
void mem_rows_evict(struct mem *m, const struct uar_run_row *run); /* what goes with that run */
uar_err mem_rows(struct uar_store *base, struct uar_rows_query *q);
uar_err mem_sessions(struct uar_store *base, struct uar_sessions_query *q);

/* --- read.c --- */
/* NULL: there is none; an evicted one is there. */
struct mem_run *mem_run_of(struct mem *m, const struct uar_owner *o, uar_str run_id);
/* Its run is evicted. */
bool mem_key_is_free(struct mem *m, const struct uar_owner *o, const struct mem_key *k);
uar_err mem_read(struct uar_store *base, struct uar_read *r);
uar_err mem_runs(struct uar_store *base, struct uar_runs_query *q);
uar_err mem_thread(struct uar_store *base, struct uar_thread_query *q);
uar_err mem_key(struct uar_store *base, struct uar_key_query *q);
/* Answers in the next turn. */
uar_err mem_ask(struct mem *m, struct uar_task *t, uar_task_fn *answer);
void mem_answer_all(struct uar_task *t);

/* --- blobs.c --- */
struct uar_blobs *mem_blobs_create(uint64_t upload_max); /* NULL: no memory */

/* --- bytes.c --- */
uar_err mem_put(struct uar_store *base, struct uar_blob_put *b);
uar_err mem_get(struct uar_store *base, struct uar_blob_get *b);
uar_err mem_upload(struct uar_store *base, struct uar_upload_op *op);
/* The run is over: what it has staged goes. */
void mem_unstage(struct mem *m, const struct uar_owner *o, uar_str run_id);

#endif
