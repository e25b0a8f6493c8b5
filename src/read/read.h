/* read.h - what may be read of the log: events, records of runs, bytes, numbers.
 *
 * The reader stands between those who show things and the store. It is attached to
 * the engine and destroyed with it. All calls come from the loop thread; callbacks
 * never fire inside the call that asked; a call that returns an error never calls
 * back. Operation structs belong to the caller and stay in place, with their strings,
 * until `done`. Every look-up is one of an owner. */
#ifndef UAR_READ_READ_H
#define UAR_READ_READ_H

#include "engine/engine.h"

struct uar_reader;

UAR_MUST_CHECK uar_err uar_reader_create(struct uar_runtime *rt, struct uar_reader **out);

/* The record of a run that was written lately, straight from memory; valid until
 * the loop's next turn. False: ask uar_reader_runs. */
bool uar_reader_recent_run(struct uar_reader *rd, const struct uar_owner *owner, uar_str run_id,
			   const struct uar_run_row **out);

/* Events of a run or a session, after a cursor, oldest first. */
struct uar_events_read {
	struct uar_owner owner;
	uar_str run_id;	    /* either this (cursor: run_sequence) */
	uar_str session_id; /* or this (cursor: sequence) */
	uint64_t after;
	uint32_t limit; /* at most UAR_LIMIT_READ_PAGE */
	void (*done)(struct uar_events_read *r);
	/* out; valid until uar_events_read_fini */
	uar_err err; /* ENOTFOUND: the owner has no such run or session */
	struct uar_error error;
	const struct uar_event *events;
	size_t event_count;
	bool more;	/* the page was full */
	void *internal; /* the reader's */
};
UAR_MUST_CHECK uar_err uar_reader_events(struct uar_reader *rd, struct uar_events_read *r);
void uar_events_read_fini(struct uar_events_read *r);

/* The record of one run, or a list of records, newest first. */
struct uar_run_list {
	struct uar_owner owner;
	uar_str run_id; /* set: that run alone (ENOTFOUND); else a list: */
	uar_str task_id, plugin_id, entry_id, agent_id, status, root_run_id, session_id, thread_id;
	uar_str prefix; /* of the run's id; this and those above: empty for any */
	bool waiting;	/* those alone that wait for an answer */
	struct uar_run_find find;
	uar_str before; /* cursor: a run_id of an earlier page; ECURSOR when unknown */
	uint32_t limit; /* at most UAR_LIMIT_LIST_PAGE */
	void (*done)(struct uar_run_list *l);
	/* out; valid until uar_run_list_fini */
	uar_err err;
	struct uar_error error;
	const struct uar_run_row *rows;
	size_t row_count;
	bool more;
	uint64_t total;
	bool partial;
	void *internal; /* the reader's */
};
UAR_MUST_CHECK uar_err uar_reader_runs(struct uar_reader *rd, struct uar_run_list *l);
void uar_run_list_fini(struct uar_run_list *l);

/* Bytes by their hash, or those that were staged for a run (engine/staging.h). */
struct uar_blob_read {
	/* staged_id set: that run's bytes of that id; sha256 is filled in then */
	struct uar_owner owner;
	uar_str run_id, staged_id;
	char sha256[65];
	uint64_t offset;
	size_t limit; /* bytes wanted at most */
	void (*done)(struct uar_blob_read *b);
	/* out; valid until uar_blob_read_fini */
	uar_err err; /* ENOTFOUND; ECORRUPT: seen if all of it is read at once */
	struct uar_error error;
	uar_str bytes;
	uint64_t total;
	void *internal; /* the reader's */
};
UAR_MUST_CHECK uar_err uar_reader_blob(struct uar_reader *rd, struct uar_blob_read *b);
void uar_blob_read_fini(struct uar_blob_read *b);

enum uar_storage_health {
	UAR_STORAGE_FINE,
	UAR_STORAGE_FULL,    /* writes are refused until there is space */
	UAR_STORAGE_DAMAGED, /* writes that meet damaged pages are refused */
	UAR_STORAGE_BROKEN,  /* nothing is acknowledged any more */
};
struct uar_reader_stats {
	uint64_t commits, appends, reads;
	uint64_t commit_us_total, commit_us_max;
	uint64_t fold_failures; /* of the write-ahead log: it grows */
	size_t queued;		/* appends that wait for a commit */
	enum uar_storage_health health;
	bool space;		    /* the next write is expected to find space */
	uint64_t delivered;	    /* events to live readers */
	size_t topics, subscribers; /* that are listened to; live readers */
};
void uar_reader_stats(const struct uar_reader *rd, struct uar_reader_stats *out);
/* Of this data directory, for ever; the incarnation changes when an older copy is restored. */
const char *uar_reader_runtime_id(const struct uar_reader *rd);
uint64_t uar_reader_incarnation(const struct uar_reader *rd);

#endif
