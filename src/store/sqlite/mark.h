/* mark.h - what the store remembers of itself beside the log, to notice an older copy.
 *
 * `uar.mark` holds the last position of the log that was acknowledged, the sum of its row, its own
 * place (device, inode, birth) and the incarnation. It is written at most once a second, at a
 * checkpoint and at the end, and never synced: it may be behind the log, but never before it. Each
 * start replaces the file. A mark of an earlier start that is copied back, with or without the log,
 * therefore names another place than its own.
 * The database has such a text in its table `meta`, as of the start of its incarnation and with the
 * place of uar.db, so that a copy without `uar.mark` is noticed, too. */
#ifndef UAR_STORE_SQLITE_MARK_H
#define UAR_STORE_SQLITE_MARK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

struct sq_mark {
	uint64_t incarnation; /* 0: there is no mark */
	int64_t pos;	      /* 0: nothing was acknowledged yet */
	uint32_t sum;	      /* of the row at pos, which contains that of the row before it in its
			       * session */
	uint64_t device, inode;
	int64_t born_us; /* 0: the file system does not tell */
	/* The place is that of uar.mark; false: of uar.db (in `meta`, and in marks of older
	 * versions). */
	bool of_mark;
};
enum { SQ_MARK_TEXT = 11 + 4 * 17 + 9 + 17 + 8 + 1 }; /* with the line's end */

void sq_mark_write(const struct sq_mark *m, char out[SQ_MARK_TEXT + 1]);
/* UAR_ECORRUPT: it is no such text, or its sum is wrong. */
UAR_MUST_CHECK uar_err sq_mark_read(uar_str text, struct sq_mark *out);
/* The file that is open there. */
void sq_mark_place(int fd, struct sq_mark *out);
/* Are both of one file? Devices may get other numbers when a machine starts. */
bool sq_mark_same_place(const struct sq_mark *a, const struct sq_mark *b);

/* `uar.mark` in that directory. None, or one that is empty after a power loss, has
 * incarnation 0; UAR_ECORRUPT: it is damaged. Any other error: it cannot be read. *out_moved (NULL
 * is fine): the place in the mark is not that of the file. */
UAR_MUST_CHECK uar_err sq_mark_load(int dir_fd, struct sq_mark *out, bool *out_moved,
				    struct uar_error *error);

/* What is known when a store is opened. */
struct sq_mark_view {
	struct sq_mark here;	     /* the place of the file, and where its log ends */
	struct sq_mark file, stored; /* of uar.mark, of the table meta */
	bool row_differs;	     /* the log's row at file.pos has another sum */
	bool moved;		     /* uar.mark is of an earlier start, and was put back */
};
enum sq_history {
	SQ_SAME,
	SQ_COPIED,   /* the file is another one than it was */
	SQ_CUT,	     /* what was acknowledged is not in the log */
	SQ_OTHER,    /* the log has something else in its place */
	SQ_PUT_BACK, /* into the same files, uar.mark as well */
};
enum sq_history sq_mark_compare(const struct sq_mark_view *v);
/* The number of the next incarnation: larger than all before it, also than those of other copies,
 * which is why it is made of the time. */
uint64_t sq_mark_next(const struct sq_mark_view *v, int64_t wall_us);

#endif
