/* store.h - the durable log and its read models, behind one port.
 *
 * An append is atomic: its events, its run's row and its idempotency key are
 * committed together or not at all, and `done` fires on the loop only after
 * the commit is on stable storage. Appends of all sessions that queue up while
 * a commit runs share the next one (group commit). Reads run on other threads
 * and see what was committed. Every operation struct belongs to the caller,
 * stays in place with the strings it points to until its `done`, and finishes
 * exactly once; a call that returns an error never calls back. */
#ifndef UAR_STORE_STORE_H
#define UAR_STORE_STORE_H

#include "base/log.h"
#include "base/sched.h"
#include "event/event.h"
#include "event/record.h"
#include "event/row.h"

struct uar_store;

/* An idempotency key: (owner, scope, key) belongs to one request as long as the run
 * that it made is retained. */
struct uar_key_row {
	uar_str scope, key;  /* scope: which kind of request, "runs" */
	uar_str fingerprint; /* of the request's meaning */
	uar_str made;	     /* by it: a run's id, or the sequence of a message */
};

struct uar_append {
	struct uar_task task; /* the store's */
	/* in */
	struct uar_owner owner;
	uar_str session_id;
	uint64_t after; /* last sequence the decision saw, 0: a new session. The guard. */
	const struct uar_event
		*events; /* sequence after+1..; one run at most; checked and copied */
	size_t event_count;
	const struct uar_run_row *run; /* inserted or replaced; NULL: none; copied */
	const struct uar_key_row *key; /* claimed; NULL: none; copied */
	/* Rows of other kinds, inserted, replaced or removed; copied. Their session is that of
	 * the append. */
	const struct uar_row *rows;
	size_t row_count; /* at most UAR_LIMIT_APPEND_ROWS */
	/* Run ids of that owner, copied. From the commit on they are evicted: no read, no
	 * list and no key finds them, and nothing is appended to them; their events stay
	 * in their sessions. Their rows of the kind UAR_ROW_PUSH are deleted. One that is
	 * evicted already stays so. */
	const uar_str *evict;
	size_t evict_count; /* at most UAR_LIMIT_EVICT_RUNS */
	void (*done)(struct uar_append *a);
	/* out */
	/* ECONFLICT: the guard failed (sequence, run_sequence, a thread or a row that lives
	 * in another session, or a fresh row that exists); EEXISTS: the key is taken, see `taken`;
	 * ENOTFOUND: events, or a row of the kind UAR_ROW_PUSH, of a run that has no row or is
	 * evicted, or one to evict that is not there; ESTATE: the run's row has ended otherwise, or
	 * one to evict has not ended; EINVALID: a run of another session, or with another thread,
	 * turn or task than it was made with. These, and every other error but one, leave no trace.
	 * EUNKNOWN: storage failed during the commit. The append may be stored as a whole
	 * or not at all; only a store that is opened again can tell. `broken` follows. */
	uar_err err;
	struct uar_key_row taken; /* on EEXISTS: fingerprint and what was made, valid inside done */
	void *internal;
	struct uar_error error; /* last, as who sends many need not clear it */
};

/* Events of a run or a session, after a cursor, oldest first. */
struct uar_read {
	struct uar_task task;
	/* in */
	struct uar_owner owner;
	uar_str run_id;	    /* either this (cursor: run_sequence) */
	uar_str session_id; /* or this (cursor: sequence) */
	uint64_t after;
	uint32_t limit; /* at most UAR_LIMIT_READ_PAGE */
	void (*done)(struct uar_read *r);
	/* out; valid until uar_store_read_fini */
	uar_err err; /* ENOTFOUND: no such run or session of that owner */
	struct uar_error error;
	struct uar_event *events;
	size_t event_count;
	bool more; /* the page was full */
	struct uar_arena arena;
	void *internal;
};

/* One run, or a list of runs newest first. */
struct uar_runs_query {
	struct uar_task task;
	/* in */
	struct uar_owner owner;
	uar_str run_id; /* set: that run alone (ENOTFOUND); else a list: */
	uar_str task_id, plugin_id, entry_id, agent_id, status, root_run_id, session_id,
		thread_id; /* empty: any */
	uar_str prefix;	   /* of the run's id; empty: any */
	struct {
		bool waiting; /* those that wait for somebody's answer alone */
		bool live;    /* those that are not over alone */
		bool evicted; /* a list of a session has the evicted ones, too */
	};
	/* Not 0: the ended runs of the owner beyond so many that ended last, those that
	 * ended first before others, and no filter; a damaged one is passed over. */
	uint64_t beyond;
	/* NULL: nothing of it. In place until done. A store that has none of it: ENOTIMPL. */
	const struct uar_run_find *find;
	uar_str before; /* cursor: a run_id of an earlier page; ECURSOR when unknown */
	uint32_t limit; /* at most UAR_LIMIT_LIST_PAGE */
	void (*done)(struct uar_runs_query *q);
	/* out; valid until uar_store_query_fini */
	uar_err err;
	struct uar_error error;
	struct uar_run_row *rows;
	size_t row_count;
	bool more;
	struct uar_run_found {
		uint64_t total; /* of all that match, when it was asked for */
		bool partial;	/* the index of messages does not know the newest runs yet */
	} found;
	struct uar_arena arena;
	void *internal;
};

/* Rows of one kind: one of them, or a list. Everything is looked up below the owner. */
enum uar_rows_order {
	UAR_ROWS_NEWEST, /* the row that was written last comes first */
	UAR_ROWS_RANK,	 /* the lowest rank first */
};
enum uar_rows_open { UAR_ROWS_ANY, UAR_ROWS_OPEN, UAR_ROWS_CLOSED };
struct uar_rows_query {
	struct uar_task task;
	/* in */
	struct uar_owner owner;
	enum uar_row_kind kind;
	uar_str id;				 /* set: that row alone (ENOTFOUND); else a list: */
	uar_str session_id, parent, tag, status; /* empty: any */
	enum uar_rows_open open;
	enum uar_rows_order order;
	uar_str after;	/* cursor: `next` of the page before; ECURSOR when it is none */
	uint32_t limit; /* at most UAR_LIMIT_LIST_PAGE */
	bool count;	/* `total` is wanted: for lists of open rows, which are few */
	void (*done)(struct uar_rows_query *q);
	/* out; valid until uar_store_rows_fini */
	uar_err err;
	struct uar_error error;
	struct uar_row *rows;
	size_t row_count;
	bool more;
	uint64_t total; /* rows that the filters let through, those of other pages included */
	uar_str next;	/* cursor behind the last row; opaque */
	struct uar_arena arena;
	void *internal;
};

/* Sessions of all owners that somebody has to look at, in pages. */
enum uar_sessions_which {
	UAR_SESSIONS_OPEN, /* they have a run that is not over, or an open row; by age */
	UAR_SESSIONS_DUE,  /* they have a row that is due; the earliest first */
};
struct uar_session_place {
	struct uar_owner owner;
	uar_str session_id;
	int64_t due_us; /* DUE: the earliest of its rows */
};
struct uar_sessions_query {
	struct uar_task task;
	/* in */
	enum uar_sessions_which which;
	uar_str after;	/* OPEN: cursor */
	uint32_t limit; /* at most UAR_LIMIT_LIST_PAGE */
	void (*done)(struct uar_sessions_query *q);
	/* out; valid until uar_store_sessions_fini */
	uar_err err;
	struct uar_error error;
	struct uar_session_place *sessions;
	size_t count;
	bool more;
	uar_str next; /* cursor behind the last; opaque */
	struct uar_arena arena;
	void *internal;
};

/* Sessions of an owner for people, the newest first. */
struct uar_session_listed {
	uar_str session_id, title, agent_id;
	uar_str status;	     /* active, archived */
	uar_str last_status; /* of its newest run; empty: it has none */
	int64_t created_us, updated_us;
	uint64_t runs, live, waiting;
};
struct uar_session_list {
	struct uar_task task;
	/* in */
	struct uar_owner owner;
	uar_str status, agent_id; /* empty: any */
	uar_str title;		  /* a part of it; empty: any */
	uar_str prefix;		  /* that the id begins with; empty: any */
	uar_str without[2];	  /* that it does not begin with, both or none */
	bool live;		  /* those with a run that is not over */
	uar_str after;		  /* cursor: `next` of the page before; ECURSOR when it is none */
	uint32_t limit;		  /* at most UAR_LIMIT_LIST_PAGE */
	void (*done)(struct uar_session_list *q);
	/* out; valid until uar_store_session_list_fini */
	uar_err err;
	struct uar_error error;
	struct uar_session_listed *rows;
	size_t row_count;
	bool more;
	uar_str next;
	struct uar_arena arena;
	void *internal;
};

/* Where a conversation lives: the session of a thread and its last sequence.
 * Also answers for a session id alone (thread_id empty). */
struct uar_thread_query {
	struct uar_task task;
	struct uar_owner owner;
	uar_str thread_id, session_id; /* one of them */
	void (*done)(struct uar_thread_query *q);
	/* out */
	uar_err err; /* ENOTFOUND */
	struct uar_error error;
	char found_session[UAR_LIMIT_ID_BYTES + 1];
	uint64_t last_sequence;
	void *internal;
};

/* What an idempotency key was claimed for, without claiming anything. */
struct uar_key_query {
	struct uar_task task;
	struct uar_owner owner;
	uar_str scope, key;
	void (*done)(struct uar_key_query *q);
	/* out */
	uar_err err; /* ENOTFOUND: it is free */
	struct uar_error error;
	char fingerprint[UAR_LIMIT_ID_BYTES + 1];
	char made[UAR_LIMIT_ID_BYTES + 1];
	void *internal;
};

/* Content-addressed bytes: written, synced and renamed before `done`. */
struct uar_blob_put {
	struct uar_task task;
	uar_str bytes; /* stays in place until done */
	void (*done)(struct uar_blob_put *b);
	uar_err err;
	struct uar_error error;
	char sha256[65];
	void *internal;
};
/* Bytes of a run that no event refers to yet, under an id of their own. They are
 * durable, and go when their run is over. */
enum { UAR_STAGE_ID = 24 }; /* lower-case hex digits */
struct uar_stage {
	struct uar_owner owner;
	uar_str run_id, id;
};
struct uar_blob_get {
	struct uar_task task;
	const struct uar_stage *stage; /* not NULL: what is staged there; sha256 is told */
	char sha256[65];
	uint64_t offset;
	size_t limit; /* bytes wanted at most */
	void (*done)(struct uar_blob_get *b);
	uar_err err; /* ENOTFOUND, ECORRUPT: seen if all of it is read at once */
	struct uar_error error;
	uar_str bytes;
	uint64_t total;
	struct uar_arena arena;
	void *internal;
};

/* Bytes on their way to a blob, piece by piece: what is too large to be held. */
struct uar_upload {
	void (*drop)(struct uar_upload *u); /* forgets it; no operation of it is under way */
};
struct uar_upload_op {
	struct uar_task task;
	/* NULL begins one, which is here when it is done. After an error or a finish
	 * it is gone, and this is NULL again. */
	struct uar_upload *upload;
	uar_str bytes;	/* appended; stay in place until done */
	bool finish;	/* then the whole is a durable blob, */
	uar_str expect; /* if this is empty or its sha256, else EINVALID */
	/* Not NULL: it is staged there instead. The same bytes once more are fine, others
	 * are EEXISTS. ESTATE: the run is over, ENOTFOUND: there is none; ERATELIMIT: it
	 * has UAR_LIMIT_RUN_STAGED. */
	const struct uar_stage *stage;
	bool adopt; /* no upload: what is staged becomes a blob as well; ENOTFOUND */
	void (*done)(struct uar_upload_op *op);
	uar_err err; /* ETOOBIG: more than upload_max of the store */
	struct uar_error error;
	uint64_t total;	 /* bytes so far */
	char sha256[65]; /* of a finished or adopted one */
	void *internal;
};

/* Unlinks the blobs that nothing but evicted runs refers to, one step each time it is
 * asked, while there is `more`. What the questions of turns refer to stays: their
 * conversations remember them. Asked for once in the life of a store, before its
 * first blob is put; a sweep that was cut off is begun again in the next life. */
struct uar_sweep {
	struct uar_task task;
	void (*done)(struct uar_sweep *s);
	uar_err err; /* it ends here, and whatever is left is left to the next life */
	struct uar_error error;
	bool more;
	uint64_t removed; /* blobs so far */
	void *internal;
};

/* Puts titles and messages into the index that searches use, one step each time it is asked,
 * while there is `more`. A search brings the index up to date by itself: this is for the time in
 * which nothing else happens. */
struct uar_index {
	struct uar_task task;
	void (*done)(struct uar_index *op);
	uar_err err;
	struct uar_error error;
	bool more;
	void *internal;
};

enum uar_store_health {
	UAR_STORE_FINE,
	UAR_STORE_FULL,	   /* writes are refused with EDISKFULL until there is space */
	UAR_STORE_DAMAGED, /* pages of the file cannot be right; writes that meet them fail */
	UAR_STORE_BROKEN,  /* a sync failed: nothing is acknowledged any more */
};

struct uar_store_stats {
	uint64_t commits, appends, events, bytes, conflicts, reads;
	uint64_t commit_us_total, commit_us_max; /* time inside COMMIT */
	uint64_t fold_failures; /* a write-ahead log could not be folded in: it grows */
	size_t queued;
	enum uar_store_health health; /* as it was opened, or the last append or blob found it */
	bool space;		      /* the next write is expected to find space */
};

struct uar_store_ops {
	uint32_t abi, size;
	void (*destroy)(struct uar_store *s);
	uar_err (*append)(struct uar_store *s, struct uar_append *a);
	uar_err (*read)(struct uar_store *s, struct uar_read *r);
	uar_err (*runs)(struct uar_store *s, struct uar_runs_query *q);
	uar_err (*thread)(struct uar_store *s, struct uar_thread_query *q);
	uar_err (*blob_put)(struct uar_store *s, struct uar_blob_put *b);
	uar_err (*blob_get)(struct uar_store *s, struct uar_blob_get *b);
	/* Every run that is not terminal, session by session and in order of creation; blocks; for
	 * start-up. Of one that waits for somebody only owner, run_id, session_id, thread_id,
	 * status and listed.waits are set. */
	uar_err (*each_live)(struct uar_store *s, void (*fn)(void *ctx, const struct uar_run_row *),
			     void *ctx, struct uar_error *error);
	void (*stats)(struct uar_store *s, struct uar_store_stats *out);
	/* Finishes what is queued, then calls done on the loop. Nothing may be asked
	 * after it (UAR_EDRAINING); it is the way to destroy. */
	void (*drain)(struct uar_store *s, void (*done)(void *ctx), void *ctx);
	/* One operation of an upload at a time. */
	uar_err (*upload)(struct uar_store *s, struct uar_upload_op *op);
	uar_err (*key)(struct uar_store *s, struct uar_key_query *q);
	/* Every owner that has more than `keep` ended runs; blocks; for start-up. */
	uar_err (*each_beyond)(struct uar_store *s, uint64_t keep,
			       void (*fn)(void *ctx, const struct uar_owner *), void *ctx,
			       struct uar_error *error);
	/* NULL: there are no files. */
	uar_err (*sweep)(struct uar_store *s, struct uar_sweep *op);
	uar_err (*rows)(struct uar_store *s, struct uar_rows_query *q);
	uar_err (*sessions)(struct uar_store *s, struct uar_sessions_query *q);
	/* NULL: it has no such list. */
	uar_err (*session_list)(struct uar_store *s, struct uar_session_list *q);
	/* NULL: there is no index. */
	uar_err (*index)(struct uar_store *s, struct uar_index *op);
};

struct uar_store {
	const struct uar_store_ops *ops;
	char runtime_id[UAR_UUID_TEXT + 1]; /* of this data directory, for ever */
	uint64_t upload_max;		    /* bytes of one upload */
	/* Which history of it: 1 is the first. A store that was opened on a copy, on an older copy,
	 * or without the end of its log has a new one, and sequences of another one mean
	 * nothing in it. */
	uint64_t incarnation;
};

struct uar_store_options {
	const char *dir; /* created 0700 when missing; locked for the life of the store */
	struct uar_sched *sched;
	const struct uar_rand *rand;
	const struct uar_log *log;
	unsigned readers;	   /* threads; 0: 2 */
	const char *vfs;	   /* SQLite VFS name for fault injection; NULL: default */
	unsigned checkpoint_pages; /* of the write-ahead log; 0: 1000 */
	uint64_t upload_max;	   /* bytes of one upload; 0: UAR_LIMIT_BLOB_BYTES */
	bool evicts; /* each_beyond and queries with `beyond` come: they shall be quick */
	/* A sync or a commit failed: whatever was not acknowledged may be lost; the process
	 * must not go on. Called once, on the loop, after `done` of the appends concerned. */
	void (*broken)(void *ctx, const struct uar_error *error);
	void *ctx;
};
UAR_MUST_CHECK uar_err uar_store_sqlite_create(const struct uar_store_options *o,
					       struct uar_store **out, struct uar_error *error);
/* NULL is fine. After a drain nothing is under way. Without one: what was written
 * before stays written, nothing is called back, and what operations under way own
 * goes; they themselves must be there until this returns. */
void uar_store_destroy(struct uar_store *s);

void uar_store_read_fini(struct uar_read *r);
void uar_store_query_fini(struct uar_runs_query *q);
void uar_store_rows_fini(struct uar_rows_query *q);
void uar_store_sessions_fini(struct uar_sessions_query *q);
void uar_store_session_list_fini(struct uar_session_list *q);
void uar_store_blob_get_fini(struct uar_blob_get *b);

/* Offline check of a data directory: every row's checksum, every sequence, every
 * blob's name, and that what was acknowledged last is in the log. `bad` is told of each damaged
 * place; returns UAR_ECORRUPT if any. UAR_ESTATE: the file is of an older version and was not
 * looked at. UAR_ENOTFOUND: there is nothing in it yet. */
UAR_MUST_CHECK uar_err uar_store_sqlite_verify(const char *dir,
					       void (*bad)(void *ctx, const char *what), void *ctx,
					       struct uar_error *error);
/* The same, and shows what it reads: every event whose row is whole, session by session in the
 * order of their sequence, then the record of every run that is retained, then the rows. An
 * error that a visitor returns ends the check. */
struct uar_store_visitor {
	uar_err (*event)(void *ctx, const struct uar_event *ev);
	uar_err (*run)(void *ctx, const struct uar_run_row *row);
	uar_err (*row)(void *ctx, const struct uar_row *row);
	void (*bad)(void *ctx, const char *what);
	void *ctx;
};
UAR_MUST_CHECK uar_err uar_store_sqlite_visit(const char *dir, const struct uar_store_visitor *v,
					      struct uar_error *error);

#endif
