/* kb_int.h - what the files of the knowledge base share. */
#ifndef UAR_MEMORY_KB_INT_H
#define UAR_MEMORY_KB_INT_H

#include <pthread.h>
#include <sqlite3.h>

#include "base/alloc.h"
#include "memory/chunk.h"
#include "memory/kb.h"
#include "skill/embed.h"

/* Vectors of one collection in memory, in the order of their passages. */
struct kb_matrix {
	char *key; /* owner, collection and model; NULL: free */
	int64_t version, removals;
	uint64_t used;
	size_t n, room, dims;
	bool cut;     /* there are more */
	bool more;    /* the next slice is not read yet */
	bool missing; /* documents that are found by words have no vectors yet */
	int64_t *chunk, *document;
	float *at;
};

/* A connection with documents.db as main and index.db as ix. */
struct uar_kb {
	sqlite3 *db;
	pthread_mutex_t lock;  /* one call at a time */
	struct uar_kb *reader; /* a connection for searches and lists, beside the one that writes */
	char *dir, *model;
	bool damaged;
	bool unsure; /* a sync failed: nothing is written until the next start */
	uint64_t uses;
	size_t slice; /* vectors that one call reads into memory at most */
	struct kb_matrix matrix[UAR_LIMIT_KB_MATRICES];
};

/* What a failed call of SQLite means, with its words. */
uar_err kb_fail(struct uar_kb *kb, int rc, struct uar_error *error);
UAR_MUST_CHECK uar_err kb_exec(struct uar_kb *kb, const char *sql, struct uar_error *error);
/* The end of what BEGIN IMMEDIATE began: COMMIT, or ROLLBACK after an error, which stays. */
UAR_MUST_CHECK uar_err kb_end(struct uar_kb *kb, uar_err e, struct uar_error *error);

/* kb_cover.c: the SQL functions covers(words) and shares_word(text, text), for a connection. */
UAR_MUST_CHECK uar_err kb_add_covers(struct uar_kb *kb, struct uar_error *error);
UAR_MUST_CHECK uar_err kb_prepare(struct uar_kb *kb, const char *sql, sqlite3_stmt **out,
				  struct uar_error *error);
void kb_bind_text(sqlite3_stmt *st, int at, uar_str s);
void kb_bind_bytes(sqlite3_stmt *st, int at, const void *p, size_t n);
void kb_bind_texts(sqlite3_stmt *st, const uar_str *list, size_t n); /* from 1 on */
uar_str kb_text(sqlite3_stmt *st, int column);
/* The first columns of a row, copied. */
UAR_MUST_CHECK uar_err kb_copy_texts(sqlite3_stmt *st, uar_str *const *to, size_t n,
				     struct uar_arena *arena);
/* True: there is a row. False with *e UAR_OK: there is none. */
bool kb_step(struct uar_kb *kb, sqlite3_stmt *st, uar_err *e, struct uar_error *error);
/* Runs a statement that brings no rows, and ends it. */
UAR_MUST_CHECK uar_err kb_run(struct uar_kb *kb, sqlite3_stmt *st, struct uar_error *error);
/* The same for one with text values and, behind them, a number. */
struct kb_do {
	const char *sql;
	const uar_str *texts;
	size_t n;
	int64_t number;
};
UAR_MUST_CHECK uar_err kb_do(struct uar_kb *kb, const struct kb_do *what, struct uar_error *error);

/* The owner as one text: a name never holds the separator. */
uar_str kb_owner(const struct uar_owner *o, struct uar_arena *arena);
UAR_MUST_CHECK uar_err kb_check_name(const char *what, uar_str name, struct uar_error *error);
/* kb.c: the index as an empty file. */
UAR_MUST_CHECK uar_err kb_renew_index(struct uar_kb *kb, struct uar_error *error);

/* kb_index.c; the lock is held. */
UAR_MUST_CHECK uar_err kb_index_locked(struct uar_kb *kb, int64_t row, struct uar_kb_result *out,
				       struct uar_error *error);
void kb_unindex_locked(struct uar_kb *kb, int64_t row); /* as far as it can */
enum uar_chunk_kind kb_kind(uar_str media_type);
/* The model of a collection, which is there from now on. */
UAR_MUST_CHECK uar_err kb_collection_model(struct uar_kb *kb, uar_str owner, uar_str collection,
					   struct uar_arena *arena, uar_str *out,
					   struct uar_error *error);
/* Takes what can be indexed at once; the rest stays pending. */
UAR_MUST_CHECK uar_err kb_index_all(struct uar_kb *kb, struct uar_error *error);

/* Passages `c` of documents `d` that are indexed as they are. */
#define KB_VISIBLE                                                                                 \
	" JOIN documents d ON d.id = c.document JOIN collections k ON k.owner = d.owner AND"       \
	" k.name = d.collection JOIN ix.indexed i ON i.document = d.id AND i.sha256 = d.sha256"
#define KB_PASSAGE                                                                                 \
	"SELECT d.collection, d.name, d.title, d.source, c.heading, c.text, c.sha256, c.line,"     \
	" c.page, c.id, c.n FROM ix.chunks c" KB_VISIBLE " WHERE"
/* kb_passage.c: a row of KB_PASSAGE. */
UAR_MUST_CHECK uar_err kb_read_passage(sqlite3_stmt *st, struct uar_arena *arena,
				       struct uar_kb_hit *out);

/* kb_matrix.c; the lock is held. */
struct kb_matrix_of {
	uar_str owner, collection, model;
};
UAR_MUST_CHECK uar_err kb_matrix_get(struct uar_kb *kb, const struct kb_matrix_of *of,
				     struct kb_matrix **out, struct uar_error *error);
void kb_matrices_free(struct uar_kb *kb);
float kb_dot(const float *a, const float *b, size_t n);

#endif
