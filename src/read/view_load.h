/* view_load.h - the view of a session: from its snapshot and the events behind it, or from the
 * log alone. A snapshot that is damaged or disagrees with the log is stored anew. */
#ifndef UAR_READ_VIEW_LOAD_H
#define UAR_READ_VIEW_LOAD_H

#include "core/view.h"
#include "read/read_int.h"

struct view_load {
	struct uar_reader *rd;
	/* in */
	struct uar_owner owner;		   /* in place until done */
	uar_str session_id, thread_id;	   /* one of them; likewise */
	bool verify;			   /* fold from the first event, and compare */
	void (*done)(struct view_load *l); /* then rd_view_load_fini */
	/* out */
	uar_err err; /* ENOTFOUND: the owner has no such session or thread */
	struct uar_error error;
	struct uar_sview view;
	char found_session[UAR_LIMIT_ID_BYTES + 1];
	bool stale; /* events behind the view exist and cannot be read: */
	char stale_reason[UAR_LIMIT_ERROR_TEXT];
	uint64_t last_sequence;
	bool from_snapshot;
	const char *repair; /* why the stored snapshot has to be replaced; NULL: it has not */
	uint64_t folded;    /* events that were folded behind the snapshot */
	/* its own */
	uint64_t compare_at; /* verify: the sequence of the stored snapshot */
	struct uar_buf stored;
	struct uar_thread_query where;
	struct uar_rows_query row;
	struct uar_read page;
};
/* `l` has its in-members set, everything else is zero. An error: `done` is not called. */
UAR_MUST_CHECK uar_err rd_view_load(struct uar_reader *rd, struct view_load *l);
void rd_view_load_fini(struct view_load *l);

/* snapshots.c: stores the view of a loaded session, when it is worth it. Takes a copy. */
void rd_snapshot_keep(struct uar_reader *rd, const struct view_load *l);
/* The session has passed a mark: its snapshot is written in the background. */
void rd_snapshot_due(struct uar_reader *rd, const struct uar_owner *owner, uar_str session_id);

#endif
