/* blob.h - the port to bytes that are kept beside the log.
 *
 * A store asks this port for its blobs, its uploads and their sweep, so that another store may
 * keep bytes elsewhere. The store opens it, answers its questions about runs, and destroys it
 * after the last call. Calls may wait for a disk: they are made on threads that may, several at
 * once, but those of one upload one after the other. `run_ended` never waits.
 *
 * A call that returns UAR_OK after bytes were put, staged or adopted means that they are durable.
 * UAR_ESYNC means that they may not be: the store acknowledges nothing any more. Every call that
 * returns an error other than UAR_ENOMEM or UAR_ENOTFOUND says in `error` why. */
#ifndef UAR_STORE_BLOB_BLOB_H
#define UAR_STORE_BLOB_BLOB_H

#include "store/store.h"

struct uar_blobs;

/* What the store knows of runs; called on the thread of the call that it is given to. */
struct uar_blob_runs {
	/* UAR_ESTATE: the run is over; UAR_ENOTFOUND: there is none. */
	uar_err (*check)(void *ctx, const struct uar_owner *o, uar_str run_id,
			 struct uar_error *error);
	/* Every run that is not over. */
	uar_err (*each_live)(void *ctx, void (*fn)(void *to, const struct uar_run_row *), void *to,
			     struct uar_error *error);
	void *ctx;
};

enum uar_blob_swept {
	UAR_BLOB_REMOVED, /* it may come back after a crash */
	UAR_BLOB_ABSENT,  /* it was not there */
	UAR_BLOB_STAYS,	  /* it was put while the sweep goes on: no event need refer to it yet */
};

struct uar_blobs_ops {
	uint32_t abi, size;
	void (*destroy)(struct uar_blobs *b);
	uar_err (*put)(struct uar_blobs *b, uar_str bytes, char out_sha256[65],
		       struct uar_error *error);
	/* Fills total and bytes; sha256 as well, if g->stage says what is wanted. Bytes that were
	 * read whole are compared with their hash. */
	uar_err (*get)(struct uar_blobs *b, struct uar_blob_get *g, struct uar_error *error);
	/* One step, as uar_upload_op says; fills all of it but task, done, err and internal. */
	uar_err (*upload)(struct uar_blobs *b, struct uar_upload_op *op,
			  const struct uar_blob_runs *runs);
	bool (*has)(struct uar_blobs *b, const char sha256[65]);
	/* From the first on every blob that is put is remembered, and none of these is removed. */
	void (*sweep_begin)(struct uar_blobs *b);
	enum uar_blob_swept (*sweep_one)(struct uar_blobs *b, const char sha256[65]);
	void (*sweep_end)(struct uar_blobs *b);
	/* Before anything is staged in this life: removes what runs have left that are over. */
	uar_err (*stages_open)(struct uar_blobs *b, const struct uar_blob_runs *runs,
			       struct uar_error *error);
	/* The run's end is committed. True: it has something staged, which goes with
	 * `unstage(name)`. If that call is never made, `stages_open` does it in the next life. */
	bool (*run_ended)(struct uar_blobs *b, const struct uar_owner *o, uar_str run_id,
			  char out_name[65]);
	void (*unstage)(struct uar_blobs *b, const char name[65]);
	/* Compares the name of every blob with its bytes; `bad` gets a text for each that differs.
	 */
	uar_err (*verify)(struct uar_blobs *b, void (*bad)(void *ctx, const char *what), void *ctx,
			  struct uar_error *error);
};

struct uar_blobs {
	const struct uar_blobs_ops *ops;
};

/* NULL is fine. */
static inline void uar_blobs_destroy(struct uar_blobs *b)
{
	if (b)
		b->ops->destroy(b);
}

/* --- files below a data directory: files.c --------------------------------------------------- */

struct uar_blob_files {
	int dir_fd; /* of the data directory; stays open until the port is destroyed */
	uint64_t upload_max;
	const struct uar_log *log;
};
/* Makes blobs/ where it is missing, and removes what a crash left half written. */
UAR_MUST_CHECK uar_err uar_blob_files_open(const struct uar_blob_files *o, struct uar_blobs **out,
					   struct uar_error *error);
/* For `has` and `verify` of a directory that may be read-only: nothing is made or removed. */
UAR_MUST_CHECK uar_err uar_blob_files_inspect(int dir_fd, struct uar_blobs **out,
					      struct uar_error *error);

#endif
