/* kb.c - the two files, their tables, and what every statement needs. */
#include "memory/kb_int.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

const char *const uar_kb_state_names[] = { "pending", "ready", "failed" };
const char *const uar_kb_mode_names[UAR_KB_MODE_COUNT] = { "hybrid", "keyword", "vector" };

static const char documents_schema[] =
	"PRAGMA main.journal_mode = WAL;"
	"PRAGMA main.synchronous = FULL;"
	"PRAGMA secure_delete = ON;"
	"CREATE TABLE IF NOT EXISTS main.documents (id INTEGER PRIMARY KEY AUTOINCREMENT,"
	" owner TEXT NOT NULL, collection TEXT NOT NULL, name TEXT NOT NULL, title TEXT NOT NULL,"
	" source TEXT NOT NULL, media_type TEXT NOT NULL, labels TEXT NOT NULL,"
	" sha256 TEXT NOT NULL, size INTEGER NOT NULL, updated INTEGER NOT NULL,"
	" error TEXT NOT NULL, text TEXT, raw BLOB, UNIQUE (owner, collection, name));"
	"CREATE TABLE IF NOT EXISTS main.collections (owner TEXT NOT NULL, name TEXT NOT NULL,"
	" embedding TEXT NOT NULL, policy TEXT NOT NULL, PRIMARY KEY (owner, name)) WITHOUT ROWID;"
	"CREATE TABLE IF NOT EXISTS main.relations (owner TEXT NOT NULL, collection TEXT NOT NULL,"
	" source TEXT NOT NULL, kind TEXT NOT NULL, target TEXT NOT NULL, document TEXT NOT NULL,"
	" by TEXT NOT NULL, at INTEGER NOT NULL,"
	" PRIMARY KEY (owner, collection, source, kind, target, document)) WITHOUT ROWID;"
	"CREATE INDEX IF NOT EXISTS main.relations_target ON relations (owner, collection, target);"
	"CREATE TABLE IF NOT EXISTS main.memories (owner TEXT NOT NULL, scope TEXT NOT NULL,"
	" scope_id TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, source TEXT NOT NULL,"
	" updated INTEGER NOT NULL, expires INTEGER NOT NULL,"
	" PRIMARY KEY (owner, scope, scope_id, key)) WITHOUT ROWID;"
	"CREATE TABLE IF NOT EXISTS main.watched (document INTEGER PRIMARY KEY);";

static const char index_schema[] =
	"PRAGMA ix.journal_mode = WAL;"
	"PRAGMA ix.synchronous = NORMAL;" /* what is lost with the power is made again */
	"CREATE TABLE IF NOT EXISTS ix.chunks (id INTEGER PRIMARY KEY AUTOINCREMENT,"
	" document INTEGER NOT NULL, n INTEGER NOT NULL, line INTEGER NOT NULL,"
	" page INTEGER NOT NULL, heading TEXT NOT NULL, text TEXT NOT NULL, sha256 TEXT NOT NULL);"
	"CREATE INDEX IF NOT EXISTS ix.chunks_document ON chunks (document, n);"
	"CREATE INDEX IF NOT EXISTS ix.chunks_sha256 ON chunks (sha256);"
	"CREATE VIRTUAL TABLE IF NOT EXISTS ix.words USING fts5(heading, text, content='chunks',"
	" content_rowid='id', tokenize='porter unicode61 remove_diacritics 2');"
	"CREATE TRIGGER IF NOT EXISTS ix.chunks_in AFTER INSERT ON chunks BEGIN"
	" INSERT INTO words(rowid, heading, text) VALUES (new.id, new.heading, new.text); END;"
	"CREATE TRIGGER IF NOT EXISTS ix.chunks_out AFTER DELETE ON chunks BEGIN"
	" INSERT INTO words(words, rowid, heading, text) VALUES ('delete', old.id, old.heading,"
	" old.text); END;"
	/* With row ids: three vectors fill a page, where a key would take one for each. */
	"CREATE TABLE IF NOT EXISTS ix.vectors (model TEXT NOT NULL, sha256 TEXT NOT NULL,"
	" vector BLOB NOT NULL, UNIQUE (sha256, model));"
	"CREATE TABLE IF NOT EXISTS ix.indexed (document INTEGER PRIMARY KEY, sha256 TEXT NOT NULL,"
	" model TEXT NOT NULL, chunks INTEGER NOT NULL);"
	"CREATE TABLE IF NOT EXISTS ix.versions (owner TEXT NOT NULL, collection TEXT NOT NULL,"
	" version INTEGER NOT NULL, removals INTEGER NOT NULL, PRIMARY KEY (owner, collection))"
	" WITHOUT ROWID;";

static uar_err meaning(int rc)
{
	if (rc == SQLITE_IOERR_FSYNC || rc == SQLITE_IOERR_DIR_FSYNC)
		return UAR_ESYNC;
	switch (rc & 0xff) {
	case SQLITE_FULL: return UAR_EDISKFULL;
	case SQLITE_NOMEM: return UAR_ENOMEM;
	case SQLITE_TOOBIG: return UAR_ETOOBIG;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB: return UAR_ECORRUPT;
	case SQLITE_BUSY:
	case SQLITE_LOCKED: return UAR_EBUSY;
	case SQLITE_IOERR:
	case SQLITE_CANTOPEN:
	case SQLITE_READONLY:
	case SQLITE_PERM: return UAR_EIO;
	default: return UAR_EINTERNAL;
	}
}

uar_err kb_fail(struct uar_kb *kb, int rc, struct uar_error *error)
{
	int why = kb->db ? sqlite3_system_errno(kb->db) : 0;
	int more = kb->db ? sqlite3_extended_errcode(kb->db) : rc;
	uar_err e = meaning((more & 0xff) == (rc & 0xff) ? more : rc);

	if (e == UAR_ESYNC) {
		kb->unsure = true;
		return uar_error_set(error, UAR_EUNKNOWN,
				     "knowledge: %s; whether it is kept is not known",
				     uar_err_text(e));
	}
	if (e == UAR_EIO && (why == EMFILE || why == ENFILE))
		return uar_error_set(error, UAR_EFDS, "knowledge: %s", uar_err_text(UAR_EFDS));
	return uar_error_set(error, e, "knowledge: %s%s",
			     kb->db ? sqlite3_errmsg(kb->db) : sqlite3_errstr(rc),
			     e == UAR_ECORRUPT ? "; `uar kb rebuild` makes the index anew" : "");
}

/* What the disk holds is not known until it is read again. */
static uar_err refuse_unsure(const struct uar_kb *kb, struct uar_error *error)
{
	if (!kb->unsure)
		return UAR_OK;
	return uar_error_set(error, UAR_ESYNC,
			     "knowledge could not be made durable; look after the disk, then start "
			     "the server again");
}

uar_err kb_exec(struct uar_kb *kb, const char *sql, struct uar_error *error)
{
	uar_err e = refuse_unsure(kb, error);
	int rc = e ? SQLITE_OK : sqlite3_exec(kb->db, sql, NULL, NULL, NULL);

	if (e)
		return e;
	return rc ? kb_fail(kb, rc, error) : UAR_OK;
}

uar_err kb_end(struct uar_kb *kb, uar_err e, struct uar_error *error)
{
	if (!e)
		e = kb_exec(kb, "COMMIT", error);
	if (e)
		(void)sqlite3_exec(kb->db, "ROLLBACK", NULL, NULL, NULL);
	return e;
}

uar_err kb_prepare(struct uar_kb *kb, const char *sql, sqlite3_stmt **out, struct uar_error *error)
{
	uar_err e = refuse_unsure(kb, error);
	int rc = e ? SQLITE_OK : sqlite3_prepare_v2(kb->db, sql, -1, out, NULL);

	if (e) {
		*out = NULL;
		return e;
	}
	return rc ? kb_fail(kb, rc, error) : UAR_OK;
}

void kb_bind_text(sqlite3_stmt *st, int at, uar_str s)
{
	sqlite3_bind_text(st, at, s.n ? s.p : "", (int)s.n, SQLITE_STATIC);
}

void kb_bind_texts(sqlite3_stmt *st, const uar_str *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		kb_bind_text(st, (int)i + 1, list[i]);
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

uar_err kb_copy_texts(sqlite3_stmt *st, uar_str *const *to, size_t n, struct uar_arena *arena)
{
	for (size_t i = 0; i < n; i++) {
		*to[i] = uar_arena_str(arena, kb_text(st, (int)i));
		if (!to[i]->p)
			return UAR_ENOMEM;
	}
	return UAR_OK;
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

uar_err kb_do(struct uar_kb *kb, const struct kb_do *what, struct uar_error *error)
{
	sqlite3_stmt *st;
	uar_err e = kb_prepare(kb, what->sql, &st, error);

	if (e)
		return e;
	kb_bind_texts(st, what->texts, what->n);
	if (sqlite3_bind_parameter_count(st) > (int)what->n)
		sqlite3_bind_int64(st, (int)what->n + 1, what->number);
	return kb_run(kb, st, error);
}

uar_str kb_owner(const struct uar_owner *o, struct uar_arena *arena)
{
	return uar_arena_printf(arena, "%.*s\x1f%.*s\x1f%.*s", UAR_FMT(o->tenant),
				UAR_FMT(o->workspace), UAR_FMT(o->user));
}

uar_str uar_kb_owner_text(const struct uar_owner *o, struct uar_arena *arena)
{
	return kb_owner(o, arena);
}

static bool is_name_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '.' || c == '_' || c == '-' || c == '/' || (unsigned char)c >= 0x80;
}

uar_err kb_check_name(const char *what, uar_str name, struct uar_error *error)
{
	bool good = name.n > 0 && name.n <= UAR_LIMIT_KB_NAME && uar_utf8_valid(name);

	for (size_t i = 0; i < name.n && good; i++)
		good = is_name_byte(name.p[i]);
	if (good)
		return UAR_OK;
	uar_error_where(error, "/%s", what);
	return uar_error_set(error, UAR_EINVALID,
			     "the %s must be 1 to %d letters, digits, '.', '_', '-' or '/'", what,
			     UAR_LIMIT_KB_NAME);
}

/* --- the files ------------------------------------------------------------------------------ */

static bool path_of(const struct uar_kb *kb, const char *name, char out[PATH_MAX])
{
	int n = snprintf(out, PATH_MAX, "%s/%s", kb->dir, name);

	return n > 0 && n < PATH_MAX;
}

static uar_err attach_index(struct uar_kb *kb, struct uar_error *error)
{
	char path[PATH_MAX];
	struct kb_do attach = { .sql = "ATTACH ?1 AS ix", .n = 1 };
	uar_str name;

	if (!path_of(kb, "index.db", path))
		return uar_error_set(error, UAR_EINVALID, "the path of index.db is too long");
	name = uar_str_c(path);
	attach.texts = &name;
	return kb_do(kb, &attach, error);
}

static void remove_index(struct uar_kb *kb)
{
	static const char *const names[] = { "index.db", "index.db-wal", "index.db-shm" };
	char path[PATH_MAX];

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (path_of(kb, names[i], path))
			(void)unlink(path);
}

static uar_err open_connection(struct uar_kb *kb, int flags, struct uar_error *error)
{
	char path[PATH_MAX];
	int rc;

	if (!path_of(kb, "documents.db", path))
		return uar_error_set(error, UAR_EINVALID, "the path of documents.db is too long");
	rc = sqlite3_open_v2(path, &kb->db, flags | SQLITE_OPEN_FULLMUTEX, NULL);
	if (rc)
		return kb_fail(kb, rc, error);
	sqlite3_busy_timeout(kb->db, 5000);
	return UAR_OK;
}

/* Is the index whole as SQLite sees it? */
static uar_err look_at_index(struct uar_kb *kb, struct uar_error *error)
{
	sqlite3_stmt *st = NULL;
	uar_err e = kb_exec(kb, index_schema, error);

	if (!e)
		e = kb_prepare(kb, "PRAGMA ix.quick_check(1)", &st, error);
	if (!e && (!kb_step(kb, st, &e, error) || !uar_str_is(kb_text(st, 0), "ok")) && !e)
		e = UAR_ECORRUPT;
	sqlite3_finalize(st);
	return e;
}

uar_err kb_renew_index(struct uar_kb *kb, struct uar_error *error)
{
	uar_err e = UAR_OK;

	if (kb->reader)
		(void)sqlite3_exec(kb->reader->db, "DETACH ix", NULL, NULL, NULL);
	(void)sqlite3_exec(kb->db, "DETACH ix", NULL, NULL, NULL);
	remove_index(kb);
	e = attach_index(kb, error);
	if (!e)
		e = kb_exec(kb, index_schema, error);
	if (!e && kb->reader) {
		kb_matrices_free(kb->reader);
		e = attach_index(kb->reader, error);
	}
	return e;
}

/* Passages of documents that are gone, and vectors that nothing points to, once nothing is
 * pending: a crash may have left them. */
static uar_err sweep(struct uar_kb *kb, struct uar_error *error)
{
	return kb_exec(
		kb,
		"DELETE FROM ix.chunks WHERE document NOT IN (SELECT id FROM documents);"
		"DELETE FROM ix.indexed WHERE document NOT IN (SELECT id FROM documents);"
		"DELETE FROM watched WHERE document NOT IN (SELECT id FROM documents);"
		"DELETE FROM ix.vectors WHERE sha256 NOT IN (SELECT sha256 FROM ix.chunks) AND NOT"
		" EXISTS (SELECT 1 FROM documents d LEFT JOIN ix.indexed i ON i.document = d.id"
		" WHERE i.sha256 IS NOT d.sha256 AND d.error = '')",
		error);
}

static uar_err open_writer(struct uar_kb *kb, struct uar_error *error)
{
	uar_err e = open_connection(kb, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, error);

	if (!e)
		e = kb_exec(kb, documents_schema, error);
	if (!e)
		e = attach_index(kb, error);
	if (!e)
		e = look_at_index(kb, error);
	if (e == UAR_ECORRUPT) {
		kb->damaged = true;
		e = kb_renew_index(kb, error);
	}
	return e ? e : sweep(kb, error);
}

static uar_err open_reader(struct uar_kb *kb, struct uar_error *error)
{
	struct uar_kb *r = uar_zalloc(sizeof *r);
	uar_err e;

	if (!r)
		return UAR_ENOMEM;
	r->slice = UAR_LIMIT_KB_SLICE;
	pthread_mutex_init(&r->lock, NULL);
	kb->reader = r;
	r->dir = uar_strdup_n(kb->dir, strlen(kb->dir));
	e = r->dir ? open_connection(r, SQLITE_OPEN_READONLY, error) : UAR_ENOMEM;
	if (!e)
		e = kb_add_covers(r, error);
	return e ? e : attach_index(r, error);
}

uar_err uar_kb_open(const char *dir, const char *model, struct uar_kb **out,
		    struct uar_error *error)
{
	struct uar_kb *kb = uar_zalloc(sizeof *kb);
	uar_err e = UAR_OK;

	if (!kb)
		return UAR_ENOMEM;
	pthread_mutex_init(&kb->lock, NULL);
	if (!model || !model[0])
		model = UAR_KB_BUILTIN;
	kb->dir = uar_strdup_n(dir, strlen(dir));
	kb->model = uar_strdup_n(model, strlen(model));
	if (!kb->dir || !kb->model)
		e = UAR_ENOMEM;
	if (!e)
		e = open_writer(kb, error);
	if (!e)
		e = open_reader(kb, error);
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
	uar_kb_close(kb->reader);
	kb_matrices_free(kb);
	sqlite3_close(kb->db);
	pthread_mutex_destroy(&kb->lock);
	uar_free(kb->dir);
	uar_free(kb->model);
	uar_free(kb);
}

bool uar_kb_was_damaged(const struct uar_kb *kb)
{
	return kb->damaged;
}
