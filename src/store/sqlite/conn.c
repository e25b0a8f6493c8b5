/* conn.c - one SQLite connection with statements that are prepared once.
 *
 * Exactly one connection of a process writes and checkpoints; all others are
 * read only and never checkpoint. mmap is never used: a file that is cut short
 * must be an error, not a signal. */
#include "store/sqlite/sqlite_int.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>

#include "store/sqlite/wal_vfs.h"

static const char *const statements[SQ_COUNT] = {
#define S(NAME, SQL) [SQ_##NAME] = SQL,
#include "store/sqlite/statements.def"
#undef S
};

static uar_err meaning(int rc)
{
	switch (rc) {
	case SQLITE_IOERR_FSYNC:
	case SQLITE_IOERR_DIR_FSYNC: return UAR_ESYNC;
	case SQLITE_IOERR_NOMEM: return UAR_ENOMEM;
	}
	switch (rc & 0xff) {
	case SQLITE_FULL: return UAR_EDISKFULL;
	case SQLITE_NOMEM: return UAR_ENOMEM;
	case SQLITE_TOOBIG: return UAR_ETOOBIG;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB: return UAR_ECORRUPT;
	case SQLITE_BUSY: return UAR_EHELD;
	case SQLITE_LOCKED: return UAR_EBUSY;
	case SQLITE_IOERR:
	case SQLITE_CANTOPEN:
	case SQLITE_READONLY:
	case SQLITE_PERM: return UAR_EIO;
	}
	return UAR_EINTERNAL;
}

/* What the connection knows about the failure `rc`, when it is the same one. */
static int extended(const struct sq_conn *c, int rc)
{
	int ext = c->db ? sqlite3_extended_errcode(c->db) : rc;

	return (ext & 0xff) == (rc & 0xff) ? ext : rc;
}

/* The errno behind a failed call, or 0. */
static int cause(const struct sq_conn *c, int ext)
{
	int kind = ext & 0xff;

	return c->db && (kind == SQLITE_IOERR || kind == SQLITE_CANTOPEN)
		       ? sqlite3_system_errno(c->db)
		       : 0;
}

static bool is_full(int ext, int why)
{
	return why == ENOSPC || why == EDQUOT || why == EFBIG ||
	       ext == SQLITE_IOERR_SHMSIZE; /* could not grow */
}

uar_err sq_fail(struct sq_conn *c, int rc, struct uar_error *error)
{
	int ext = extended(c, rc), why = cause(c, ext);
	const char *text;
	uar_err e = meaning(ext);
	char reason[80];

	if ((ext & 0xff) == SQLITE_CORRUPT || (ext & 0xff) == SQLITE_NOTADB)
		c->damaged = true;
	if (e == UAR_EIO && is_full(ext, why))
		e = UAR_EDISKFULL;
	else if (why == EMFILE || why == ENFILE)
		e = UAR_EFDS;
	text = uar_err_text(e);
	if (e == UAR_EDISKFULL)
		text = "no space left on the disk, or a limit of the system is reached";
	else if (why && e != UAR_EFDS)
		text = strerror_r(why, reason, sizeof reason);
	/* Clients see it: where the file lies is not for them. */
	return uar_error_set(error, e, "uar.db: %s (SQLite %d: %s)", text, ext,
			     c->db ? sqlite3_errmsg(c->db) : sqlite3_errstr(rc));
}

uar_err sq_exec(struct sq_conn *c, const char *sql, struct uar_error *error)
{
	int rc = sqlite3_exec(c->db, sql, NULL, NULL, NULL);

	return rc ? sq_fail(c, rc, error) : UAR_OK;
}

/* Schemas found in the file are data: they may not call what has side effects. */
static void harden(sqlite3 *db, struct sq_busy *busy)
{
	sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DDL, 0, NULL);
	if (busy)
		sq_busy_watch(busy, db);
	else
		sqlite3_busy_timeout(db, SQ_BUSY_MS);
}

/* Nobody asks how much memory SQLite holds; counting it takes a lock twice for
 * every piece. Too late for a process that has used SQLite already: no harm. */
static void count_no_memory(void)
{
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

static uar_err open_conn(struct sq_conn *c, const char *path, const char *vfs, enum sq_mode mode,
			 struct sq_busy *busy, struct uar_error *error)
{
	static const char *const pragmas[] = {
		[SQ_WRITE] = ("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
			      "PRAGMA wal_autocheckpoint=0; PRAGMA mmap_size=0;"
			      /* Nothing is deleted but index entries and keys that are claimed
			       * anew, and nobody is told that their bytes are gone: to zero
			       * what every split of a page moves, as Debian's SQLite does
			       * unasked, protects nothing. */
			      "PRAGMA secure_delete=0;"
			      "PRAGMA cache_size=-4096; PRAGMA temp_store=MEMORY;"),
		[SQ_READ] = ("PRAGMA wal_autocheckpoint=0; PRAGMA mmap_size=0;"
			     "PRAGMA query_only=1; PRAGMA cache_size=-2048;"
			     "PRAGMA temp_store=MEMORY;"),
		/* Exclusive: the index of the log is kept in memory, not in a file. */
		[SQ_VERIFY] = ("PRAGMA locking_mode=EXCLUSIVE; PRAGMA wal_autocheckpoint=0;"
			       "PRAGMA mmap_size=0; PRAGMA query_only=1;"),
	};
	static pthread_once_t configured = PTHREAD_ONCE_INIT;
	int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
	int rc;

	pthread_once(&configured, count_no_memory);
	flags |= mode == SQ_WRITE ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
				  : SQLITE_OPEN_READONLY;
	flags |= mode == SQ_VERIFY ? SQLITE_OPEN_URI : 0;
	*c = (struct sq_conn){ 0 };
	if (mode == SQ_WRITE)
		vfs = sq_wal_vfs(vfs);
	rc = sqlite3_open_v2(path, &c->db, flags, vfs);
	if (rc)
		return sq_fail(c, rc, error);
	harden(c->db, busy);
	if (mode == SQ_VERIFY)
		sqlite3_db_config(c->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	return sq_exec(c, pragmas[mode], error);
}

uar_err sq_open(struct sq_conn *c, const char *path, const char *vfs, enum sq_mode mode,
		struct uar_error *error)
{
	return open_conn(c, path, vfs, mode, NULL, error);
}

uar_err sq_open_writer(struct sq_conn *c, const char *path, const char *vfs, struct sq_busy *busy,
		       struct uar_error *error)
{
	return open_conn(c, path, vfs, SQ_WRITE, busy, error);
}

static void put_uri(struct uar_buf *out, const char *path)
{
	uar_buf_add_str(out, UAR_STR("file:"));
	for (const char *p = path; *p; p++)
		if ((*p >= 'a' && *p <= 'z') || (*p == '/' && p != path + 1)) /* // is a host */
			uar_buf_add_char(out, *p);
		else
			uar_buf_printf(out, "%%%02x", (unsigned char)*p);
}

/* SQLite would make a log and an index beside a file that it merely reads. Alone the file cannot
 * change; with its log neither locks nor an index of the log are put on the disk: the directory's
 * lock keeps writers away. */
uar_err sq_open_still(struct sq_conn *c, const char *path, bool with_log, struct uar_error *error)
{
	struct uar_buf uri = uar_buf_make(4 * PATH_MAX);
	uar_err e;

	*c = (struct sq_conn){ 0 };
	put_uri(&uri, path);
	uar_buf_add_str(&uri, with_log ? UAR_STR("") : UAR_STR("?immutable=1"));
	e = uri.err;
	if (!e)
		e = sq_open(c, uri.p, with_log ? "unix-none" : NULL, SQ_VERIFY, error);
	uar_buf_fini(&uri);
	return e;
}

void sq_close(struct sq_conn *c)
{
	for (size_t i = 0; i < SQ_COUNT; i++)
		sqlite3_finalize(c->st[i]);
	sqlite3_close(c->db);
	*c = (struct sq_conn){ 0 };
}

void sq_done(sqlite3_stmt *st)
{
	sqlite3_reset(st);
}

uar_str sq_text(sqlite3_stmt *st, int column)
{
	const char *p = (const char *)sqlite3_column_text(st, column);

	return uar_str_n(p ? p : "", p ? (size_t)sqlite3_column_bytes(st, column) : 0);
}

static int bind_one(sqlite3_stmt *st, int at, const struct sq_val *v)
{
	switch (v->kind) {
	case SQ_NULL: return sqlite3_bind_null(st, at);
	case SQ_INT: return sqlite3_bind_int64(st, at, v->i);
	case SQ_TEXT: break;
	}
	return sqlite3_bind_text64(st, at, v->s.n ? v->s.p : "", v->s.n, SQLITE_STATIC,
				   SQLITE_UTF8);
}

sqlite3_stmt *sq_bind(struct sq_conn *c, enum sq_id id, const struct sq_val *vals, size_t n,
		      struct uar_error *error)
{
	sqlite3_stmt **st = &c->st[id];
	int rc = SQLITE_OK;

	if (!*st)
		rc = sqlite3_prepare_v3(c->db, statements[id], -1, SQLITE_PREPARE_PERSISTENT, st,
					NULL);
	else
		sqlite3_reset(*st);
	for (size_t i = 0; i < n && !rc; i++)
		rc = bind_one(*st, (int)i + 1, &vals[i]);
	if (rc) {
		sq_fail(c, rc, error);
		return NULL;
	}
	return *st;
}

uar_err sq_run(struct sq_conn *c, enum sq_id id, const struct sq_val *vals, size_t n,
	       struct uar_error *error)
{
	sqlite3_stmt *st = sq_bind(c, id, vals, n, error);
	int rc;

	if (!st)
		return error->code;
	rc = sqlite3_step(st);
	if (rc != SQLITE_DONE) {
		uar_err e = sq_fail(c, rc, error);

		sqlite3_reset(st);
		return e;
	}
	sqlite3_reset(st);
	return UAR_OK;
}

uar_err sq_first(struct sq_conn *c, enum sq_id id, const struct sq_val *vals, size_t n,
		 sqlite3_stmt **out, struct uar_error *error)
{
	sqlite3_stmt *st = sq_bind(c, id, vals, n, error);
	uar_err e;
	int rc;

	if (!st)
		return error->code;
	rc = sqlite3_step(st);
	if (rc == SQLITE_ROW) {
		*out = st;
		return UAR_OK;
	}
	e = rc == SQLITE_DONE ? UAR_ENOTFOUND : sq_fail(c, rc, error);
	sqlite3_reset(st);
	return e;
}
