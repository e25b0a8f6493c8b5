/* kb_int.h - what the files of the knowledge base share. */
#ifndef UAR_MEMORY_KB_INT_H
#define UAR_MEMORY_KB_INT_H

#include <pthread.h>
#include <sqlite3.h>

#include "memory/kb.h"

#define KB_CHUNKS_OUT                                                                              \
	"CREATE TRIGGER IF NOT EXISTS chunks_out AFTER DELETE ON chunks BEGIN"                     \
	" INSERT INTO words(words, rowid, heading, text) VALUES ('delete', old.id, old.heading,"   \
	" old.text); END;"

struct uar_kb {
	sqlite3 *db;
	pthread_mutex_t lock; /* one call at a time */
};

/* What a failed call of SQLite means, with its words. */
uar_err kb_fail(struct uar_kb *kb, int rc, struct uar_error *error);
UAR_MUST_CHECK uar_err kb_exec(struct uar_kb *kb, const char *sql, struct uar_error *error);

/* A statement with its values: text (uar_str) for 's', int64_t for 'i', bytes (uar_str) for 'b'. */
UAR_MUST_CHECK uar_err kb_prepare(struct uar_kb *kb, const char *sql, sqlite3_stmt **out,
				  struct uar_error *error);
void kb_bind_text(sqlite3_stmt *st, int at, uar_str s);
void kb_bind_bytes(sqlite3_stmt *st, int at, const void *p, size_t n);
uar_str kb_text(sqlite3_stmt *st, int column);
/* True: there is a row. False with *e UAR_OK: there is none. */
bool kb_step(struct uar_kb *kb, sqlite3_stmt *st, uar_err *e, struct uar_error *error);
/* Runs a statement that brings no rows, and ends it. */
UAR_MUST_CHECK uar_err kb_run(struct uar_kb *kb, sqlite3_stmt *st, struct uar_error *error);

/* The owner as one text: a name never holds the separator. */
uar_str kb_owner(const struct uar_owner *o, struct uar_arena *arena);
UAR_MUST_CHECK uar_err kb_check_name(const char *what, uar_str name, struct uar_error *error);

/* kb_put.c: the passages of a document whose row is there. */
UAR_MUST_CHECK uar_err kb_write_chunks(struct uar_kb *kb, int64_t document, uar_str text,
				       size_t *out_n, struct uar_error *error);

#endif
