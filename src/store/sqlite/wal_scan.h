/* wal_scan.h - was the write-ahead log damaged after it was written?
 *
 * SQLite takes the first frame that is not right for the end of its log. After a power
 * loss that is what it should be: what was being written has come to the disk in part.
 * But when a commit follows that somebody was told of, the log was damaged, and all
 * behind the place is lost. This reader tells the one from the other; wal_scan.c says how.
 * It only reads. */
#ifndef UAR_STORE_SQLITE_WAL_SCAN_H
#define UAR_STORE_SQLITE_WAL_SCAN_H

#include <stdint.h>

#include "base/err.h"

enum { SQ_WAL_HEAD = 32, SQ_WAL_FRAME_HEAD = 24 };

/* One pass over a log: its head, then frame after frame. */
struct sq_wal_scan {
	size_t frame_bytes;
	uint64_t at;	   /* frames so far */
	uint32_t prev[2];  /* sum of the frame before, as it is stored */
	uint8_t salts[8];  /* of this log; those before it in the same file had others */
	bool big;	   /* order of bytes in sums */
	bool broken;	   /* a frame was not right: here SQLite sees the end */
	bool head_broken;  /* or even the head was not */
	bool after_commit; /* the frame before is right in itself, behind the break, a commit */
	uint64_t held;	   /* commits before that: what SQLite reads */
	uint64_t first;	   /* the frame that was not right, from 1; 0: the head */
	uint64_t commits;  /* behind it that were acknowledged: there is damage */
};
void sq_wal_begin(struct sq_wal_scan *s, const uint8_t head[SQ_WAL_HEAD]);
void sq_wal_frame(struct sq_wal_scan *s, const uint8_t *frame); /* s->frame_bytes of it */

/* Reads "uar.db-wal" in that directory before SQLite does. None is fine. */
UAR_MUST_CHECK uar_err sq_wal_scan(int dir_fd, struct sq_wal_scan *out, struct uar_error *error);
/* Makes what a killed process has written and not synced durable, before it is shown as if
 * it were. */
UAR_MUST_CHECK uar_err sq_wal_sync(int dir_fd, struct uar_error *error);
/* What `commits` means, for people. */
enum { SQ_WAL_TEXT = 160 };
void sq_wal_tell(const struct sq_wal_scan *s, char out[SQ_WAL_TEXT]);

#endif
