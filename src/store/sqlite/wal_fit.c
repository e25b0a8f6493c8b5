/* wal_fit.c - do the write-ahead log and the file beside it fit together?
 *
 * SQLite lays the log over the file, whichever of them is newer, and throws it away when the
 * file is empty. Both are silent, so it is asked before SQLite opens them.
 *
 * A log that was cut short looks like one whose last commit nobody had synced. But if its
 * commits were folded in before, the file knows more than the log. Every commit with events
 * moves the head's position forward, and pages are folded in after the log is synced up to
 * their commit; the log begins anew after all of it is folded in and synced. So whatever a kill
 * or a power loss leaves, the head in the file is one that the log has, too, or one from before
 * it: the position that is read from the file alone is never ahead of the one that is read
 * through the log. If it is, the log has lost its end, or is an older one.
 *
 * A fold that was cut off leaves pages of several commits in the file. Alone it may then be
 * unreadable, which says nothing. A log that has just begun anew holds no commit, even if frames
 * of the one before are still behind its head: SQLite reads the file alone, and so does nobody
 * here. The file gets its first page, synced, before there is a log: an empty one beside
 * commits has lost what it had. */
#include "store/sqlite/sqlite_int.h"

#include <errno.h>
#include <sys/stat.h>

bool sq_db_empty(int dir_fd)
{
	struct stat st;

	return fstatat(dir_fd, "uar.db", &st, 0) ? errno == ENOENT : st.st_size == 0;
}

static uar_err newest(const char *path, bool with_log, int64_t *out)
{
	struct uar_error error = { 0 };
	sqlite3_stmt *st = NULL;
	struct sq_conn c;
	uar_err e = sq_open_still(&c, path, with_log, &error);

	if (!e)
		e = sq_first(&c, SQ_HEAD, NULL, 0, &st, &error);
	if (!e)
		*out = sqlite3_column_int64(st, 0);
	sq_done(st);
	sq_close(&c);
	return e;
}

static uar_err compare(const char *path, char out[SQ_WAL_TEXT])
{
	int64_t alone = -1, both = -1;
	uar_err e = newest(path, false, &alone);

	if (e != UAR_ENOMEM)
		e = newest(path, true, &both);
	if (e == UAR_ENOMEM)
		return e;
	if (e == UAR_ECORRUPT)
		snprintf(out, SQ_WAL_TEXT, "uar.db cannot be read with this uar.db-wal");
	else if (!e && both < alone)
		snprintf(out, SQ_WAL_TEXT,
			 "uar.db-wal is cut short, or an older one: it ends at position %lld, and "
			 "%lld is in uar.db already",
			 (long long)both, (long long)alone);
	return UAR_OK;
}

uar_err sq_wal_doubt(int dir_fd, const char *path, char out[SQ_WAL_TEXT], struct uar_error *error)
{
	struct sq_wal_scan scan = { 0 };
	uar_err e = sq_wal_scan(dir_fd, &scan, error);

	out[0] = 0;
	if (e)
		return e;
	if (scan.commits)
		sq_wal_tell(&scan, out);
	else if (scan.held && sq_db_empty(dir_fd))
		snprintf(out, SQ_WAL_TEXT,
			 "uar.db is empty or missing, and uar.db-wal is of one that was not");
	else if (scan.held)
		e = compare(path, out);
	return e;
}

uar_err sq_wal_refuse(int dir_fd, const char *path, struct uar_error *error)
{
	char text[SQ_WAL_TEXT];
	uar_err e = sq_wal_doubt(dir_fd, path, text, NULL);

	if (e == UAR_ENOMEM)
		return e;
	if (e || !text[0])
		return UAR_OK;
	return uar_error_set(error, UAR_ECORRUPT,
			     "%s. Nothing was changed: docs/recovery.md says what to do", text);
}
