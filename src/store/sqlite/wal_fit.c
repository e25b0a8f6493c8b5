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
 * If it is the file that is older, what was folded into the newer one before this log began is
 * nowhere. Rows of the log are never removed: those behind the position that the file alone
 * knows must be there through the log, as many as the two heads say. Fewer are certain. As many
 * are not: a commit also writes rows of before that lie on the same page, so a file that is
 * older by no more than those looks right, and what it lacks of other tables is not looked for.
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

/* How far it is known, by the file alone or through its log. */
struct reach {
	int64_t pos, rows; /* the head's; pos is -1 when there is none to be read */
	int64_t behind;	   /* rows behind the position of another */
};

static uar_err read_head(struct sq_conn *c, struct reach *out, struct uar_error *error)
{
	sqlite3_stmt *st = NULL;
	uar_err e = sq_first(c, SQ_HEAD, NULL, 0, &st, error);

	if (!e) {
		out->pos = sqlite3_column_int64(st, 0);
		out->rows = sqlite3_column_int64(st, 1);
	}
	sq_done(st);
	return e;
}

static uar_err count_behind(struct sq_conn *c, int64_t pos, struct reach *out,
			    struct uar_error *error)
{
	sqlite3_stmt *st = NULL;
	uar_err e = sq_first(c, SQ_LOG_BEHIND, SQ_VALS(SQ_I(pos)), &st, error);

	if (!e)
		out->behind = sqlite3_column_int64(st, 0);
	sq_done(st);
	return e;
}

/* A file without tables was never folded into: the log has everything. */
static uar_err look_alone(const char *path, struct reach *out)
{
	struct uar_error error = { 0 };
	struct sq_conn c;
	uar_err e = sq_open_still(&c, path, false, &error);

	if (!e && sq_check_version(&c, &error) == UAR_ENOTFOUND)
		*out = (struct reach){ 0 };
	else if (!e)
		e = read_head(&c, out, &error);
	sq_close(&c);
	return e;
}

static uar_err look_through(const char *path, const struct reach *alone, struct reach *out)
{
	struct uar_error error = { 0 };
	struct sq_conn c;
	uar_err e = sq_open_still(&c, path, true, &error);
	bool tables = !e && sq_check_version(&c, &error) != UAR_ENOTFOUND;

	if (tables)
		e = read_head(&c, out, &error);
	if (tables && !e && alone->pos >= 0)
		e = count_behind(&c, alone->pos, out, &error);
	sq_close(&c);
	return e;
}

static void judge(const struct reach *alone, const struct reach *both, char out[SQ_WAL_TEXT])
{
	int64_t missing = both->rows - alone->rows - both->behind;

	if (both->pos < 0) /* the first commit ever makes the tables */
		snprintf(out, SQ_WAL_TEXT,
			 "uar.db is an older one than uar.db-wal: it has no tables");
	else if (both->pos < alone->pos)
		snprintf(out, SQ_WAL_TEXT,
			 "uar.db-wal is cut short, or an older one: it ends at position %lld, and "
			 "%lld is in uar.db already",
			 (long long)both->pos, (long long)alone->pos);
	else if (alone->pos >= 0 && missing > 0)
		snprintf(out, SQ_WAL_TEXT,
			 "uar.db is an older one than uar.db-wal: it ends at position %lld, and "
			 "%lld rows behind that are in neither",
			 (long long)alone->pos, (long long)missing);
}

static uar_err compare(const char *path, char out[SQ_WAL_TEXT])
{
	struct reach alone = { .pos = -1 }, both = { .pos = -1 };
	uar_err e = look_alone(path, &alone);

	if (e != UAR_ENOMEM)
		e = look_through(path, &alone, &both);
	if (e == UAR_ENOMEM)
		return e;
	if (e == UAR_ECORRUPT)
		snprintf(out, SQ_WAL_TEXT, "uar.db cannot be read with this uar.db-wal");
	else if (!e)
		judge(&alone, &both, out);
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
