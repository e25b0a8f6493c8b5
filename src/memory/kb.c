/* kb.c - the file, its tables, and what every statement needs. */
#include "memory/kb_int.h"

#include <limits.h>

#include "base/alloc.h"

static const char schema[] =
	"PRAGMA journal_mode = WAL;"
	"PRAGMA synchronous = FULL;"
	"PRAGMA foreign_keys = ON;"
	"CREATE TABLE IF NOT EXISTS documents (id INTEGER PRIMARY KEY, owner TEXT NOT NULL,"
	" collection TEXT NOT NULL, name TEXT NOT NULL, title TEXT NOT NULL, source TEXT NOT NULL,"
	" media_type TEXT NOT NULL, labels TEXT NOT NULL, sha256 TEXT NOT NULL, text TEXT NOT NULL,"
	" updated INTEGER NOT NULL, UNIQUE (owner, collection, name));"
	"CREATE TABLE IF NOT EXISTS chunks (id INTEGER PRIMARY KEY, document INTEGER NOT NULL"
	" REFERENCES documents(id) ON DELETE CASCADE, n INTEGER NOT NULL, line INTEGER NOT NULL,"
	" page INTEGER NOT NULL, heading TEXT NOT NULL, text TEXT NOT NULL, sha256 TEXT NOT NULL,"
	" vector BLOB);"
	"CREATE INDEX IF NOT EXISTS chunks_document ON chunks (document, n);"
	"CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(heading, text, content='chunks',"
	" content_rowid='id', tokenize='porter unicode61 remove_diacritics 2');"
	"CREATE TRIGGER IF NOT EXISTS chunks_in AFTER INSERT ON chunks BEGIN"
	" INSERT INTO words(rowid, heading, text) VALUES (new.id, new.heading, new.text); "
	"END;" KB_CHUNKS_OUT
	"CREATE TABLE IF NOT EXISTS relations (owner TEXT NOT NULL, collection TEXT NOT NULL,"
	" source TEXT NOT NULL, kind TEXT NOT NULL, target TEXT NOT NULL, document TEXT NOT NULL,"
	" PRIMARY KEY (owner, collection, source, kind, target)) WITHOUT ROWID;"
	"CREATE INDEX IF NOT EXISTS relations_target ON relations (owner, collection, target);";

uar_err kb_fail(struct uar_kb *kb, int rc, struct uar_error *error)
{
	uar_err e = UAR_EINTERNAL;

	switch (rc & 0xff) {
	case SQLITE_FULL: e = UAR_EDISKFULL; break;
	case SQLITE_NOMEM: e = UAR_ENOMEM; break;
	case SQLITE_TOOBIG: e = UAR_ETOOBIG; break;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB: e = UAR_ECORRUPT; break;
	case SQLITE_BUSY:
	case SQLITE_LOCKED: e = UAR_EBUSY; break;
	case SQLITE_IOERR:
	case SQLITE_CANTOPEN:
	case SQLITE_READONLY:
	case SQLITE_PERM: e = UAR_EIO; break;
	}
	return uar_error_set(error, e, "knowledge.db: %s",
			     kb->db ? sqlite3_errmsg(kb->db) : sqlite3_errstr(rc));
}

uar_err kb_exec(struct uar_kb *kb, const char *sql, struct uar_error *error)
{
	int rc = sqlite3_exec(kb->db, sql, NULL, NULL, NULL);

	return rc ? kb_fail(kb, rc, error) : UAR_OK;
}

uar_err kb_prepare(struct uar_kb *kb, const char *sql, sqlite3_stmt **out, struct uar_error *error)
{
	int rc = sqlite3_prepare_v2(kb->db, sql, -1, out, NULL);

	return rc ? kb_fail(kb, rc, error) : UAR_OK;
}

void kb_bind_text(sqlite3_stmt *st, int at, uar_str s)
{
	sqlite3_bind_text(st, at, s.n ? s.p : "", (int)s.n, SQLITE_STATIC);
}

void kb_bind_bytes(sqlite3_stmt *st, int at, const void *p, size_t n)
{
	sqlite3_bind_blob(st, at, p, (int)n, SQLITE_STATIC);
}

uar_str kb_text(sqlite3_stmt *st, int column)
{
	const char *p = (const char *)sqlite3_column_text(st, column);

	return p ? uar_str_n(p, (size_t)sqlite3_column_bytes(st, column)) : UAR_STR("");
}

bool kb_step(struct uar_kb *kb, sqlite3_stmt *st, uar_err *e, struct uar_error *error)
{
	int rc = *e ? SQLITE_DONE : sqlite3_step(st);

	if (rc == SQLITE_ROW)
		return true;
	if (!*e && rc != SQLITE_DONE)
		*e = kb_fail(kb, rc, error);
	return false;
}

uar_err kb_run(struct uar_kb *kb, sqlite3_stmt *st, struct uar_error *error)
{
	uar_err e = UAR_OK;

	while (kb_step(kb, st, &e, error))
		;
	sqlite3_finalize(st);
	return e;
}

uar_str kb_owner(const struct uar_owner *o, struct uar_arena *arena)
{
	return uar_arena_printf(arena, "%.*s\x1f%.*s\x1f%.*s", UAR_FMT(o->tenant),
				UAR_FMT(o->workspace), UAR_FMT(o->user));
}

static bool is_name_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '.' || c == '_' || c == '-' || c == '/' || (unsigned char)c >= 0x80;
}

uar_err kb_check_name(const char *what, uar_str name, struct uar_error *error)
{
	bool good = name.n > 0 && name.n <= UAR_LIMIT_KB_NAME;

	for (size_t i = 0; i < name.n && good; i++)
		good = is_name_byte(name.p[i]);
	if (good)
		return UAR_OK;
	uar_error_where(error, "/%s", what);
	return uar_error_set(error, UAR_EINVALID,
			     "the %s must be 1 to %d letters, digits, '.', '_', '-' or '/'", what,
			     UAR_LIMIT_KB_NAME);
}

static uar_err open_file(struct uar_kb *kb, const char *dir, struct uar_error *error)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof path, "%s/knowledge.db", dir), rc;

	if (n < 0 || n >= (int)sizeof path)
		return uar_error_set(error, UAR_EINVALID, "the path of knowledge.db is too long");
	rc = sqlite3_open_v2(path, &kb->db,
			     SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX,
			     NULL);
	if (rc)
		return kb_fail(kb, rc, error);
	sqlite3_busy_timeout(kb->db, 5000);
	return kb_exec(kb, schema, error);
}

uar_err uar_kb_open(const char *dir, struct uar_kb **out, struct uar_error *error)
{
	struct uar_kb *kb = uar_zalloc(sizeof *kb);
	uar_err e;

	if (!kb)
		return UAR_ENOMEM;
	pthread_mutex_init(&kb->lock, NULL);
	e = open_file(kb, dir, error);
	if (e)
		uar_kb_close(kb);
	else
		*out = kb;
	return e;
}

void uar_kb_close(struct uar_kb *kb)
{
	if (!kb)
		return;
	sqlite3_close(kb->db);
	pthread_mutex_destroy(&kb->lock);
	uar_free(kb);
}
