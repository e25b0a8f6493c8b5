/* files_int.h - bytes as files below blobs/, and how the files that keep them meet.
 *
 * files.c opens, writes and reads; upload.c takes a blob in pieces; stage.c keeps what runs have
 * uploaded; kept.c is what a sweep must not remove. */
#ifndef UAR_STORE_BLOB_FILES_INT_H
#define UAR_STORE_BLOB_FILES_INT_H

#include <pthread.h>

#include "base/map.h"
#include "store/blob/blob.h"
#include "store/store_int.h"

/* Hashes of blobs that were put while a sweep goes on: no event need refer to them yet. */
struct bf_kept {
	pthread_mutex_t lock;
	struct uar_map map;
	bool on;   /* a sweep has begun and not ended */
	bool lost; /* there was no memory to remember one: nothing is unlinked */
};

struct bf_stages {
	pthread_mutex_t naming; /* held while something gets its name, or goes */
	bool blobs_missing;	/* under it: blobs/ is gone and cannot be made */
	pthread_mutex_t lock;	/* never held for long */
	struct uar_map runs;	/* under it: names of their directories */
};

struct bf {
	struct uar_blobs base;
	const struct uar_log *log;
	int dir_fd; /* the store's */
	int fd;	    /* of blobs/; -1: there is none, and none is wanted */
	uint64_t upload_max;
	struct bf_kept kept;
	struct bf_stages stages;
};

static inline struct bf *bf_of(struct uar_blobs *b)
{
	return UAR_OWNER(b, struct bf, base);
}

/* --- kept.c --------------------------------------------------------------------------- */
void bf_kept_init(struct bf_kept *k);
/* Before it is looked for, so that it is either found and stays, or written anew. */
void bf_kept_add(struct bf_kept *k, const char sha256[65]);
void bf_kept_fini(struct bf_kept *k);
void bf_sweep_begin(struct uar_blobs *base);
enum uar_blob_swept bf_sweep_one(struct uar_blobs *base, const char sha256[65]);
void bf_sweep_end(struct uar_blobs *base);

/* --- stage.c: bytes of runs that are not over ------------------------------------------ */
void bf_stages_init(struct bf_stages *st);
void bf_stages_fini(struct bf_stages *st);
UAR_MUST_CHECK uar_err bf_stages_open(struct uar_blobs *base, const struct uar_blob_runs *runs,
				      struct uar_error *error);
/* A written file below blobs/tmp gets its name, as uar_upload_op says. */
struct bf_written {
	const char *temp, *sha256;
	int fd;
};
UAR_MUST_CHECK uar_err bf_stage_put(struct bf *b, const struct uar_stage *g,
				    const struct bf_written *w, const struct uar_blob_runs *runs,
				    struct uar_error *error);
UAR_MUST_CHECK uar_err bf_stage_adopt(struct bf *b, struct uar_upload_op *op);
UAR_MUST_CHECK uar_err bf_stage_get(struct bf *b, struct uar_blob_get *g, struct uar_error *error);
bool bf_run_ended(struct uar_blobs *base, const struct uar_owner *o, uar_str run_id,
		  char out_name[65]);
void bf_unstage(struct uar_blobs *base, const char name[65]);

/* --- upload.c ----------------------------------------------------------------------------- */
UAR_MUST_CHECK uar_err bf_upload(struct uar_blobs *base, struct uar_upload_op *op,
				 const struct uar_blob_runs *runs);

/* --- files.c ------------------------------------------------------------------------------ */
/* What errno says, with `code` unless the disk is full. */
uar_err bf_fail(struct uar_error *error, uar_err code, const char *what);
/* Makes blobs/ anew if it was removed under the server. */
UAR_MUST_CHECK uar_err bf_need_dir(struct bf *b, struct uar_error *error);
/* The part of an open file that is asked for. If that is all of it, it is compared with
 * g->sha256: who reads in pieces has to hash them, and less than the whole cannot be checked. */
UAR_MUST_CHECK uar_err bf_read(int fd, struct uar_blob_get *g, struct uar_error *error);
/* A written file below blobs/tmp becomes the blob of that hash, durably. */
UAR_MUST_CHECK uar_err bf_adopt(int blobs_fd, const char *temp, int fd, const char sha256[65],
				struct uar_error *error);
bool bf_has(struct uar_blobs *base, const char sha256[65]);
void bf_unlink(int blobs_fd, const char sha256[65]); /* it may come back after a crash */

#endif
