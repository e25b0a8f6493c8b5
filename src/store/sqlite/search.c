/* search.c - the index of titles and messages, in a file of its own: search.db.
 *
 * It is filled from the log, outside the append, by readers: in the background and before a
 * search. It is derived: one that is damaged, of another store or of another incarnation is
 * made anew. A lock lets one reader at a time use it, so its readers never meet its writer. */
#include "store/sqlite/sqlite_int.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "store/limits.h"

/* The log rows behind ?1, at most ?2 of them: how many, and the last. */
static const char next_rows[] = "SELECT count(*), max(pos) FROM (SELECT pos FROM log WHERE pos > ?1"
				" ORDER BY pos LIMIT ?2)";
/* What people read in the rows behind ?1 up to ?2. */
static const char texts[] =
	"SELECT l.rid, r.title, json_extract(e.value, '$.type') = 'model.delta',"
	" coalesce(json_extract(e.value, '$.payload.text'), (SELECT"
	" group_concat(json_extract(p.value, '$.preview'), ' ') FROM"
	" json_each(e.value, '$.payload.input_parts') p))"
	" FROM log l JOIN runs r ON r.rid = l.rid, json_each(l.body) e"
	" WHERE l.pos > ?1 AND l.pos <= ?2"
	" AND (instr(l.body, 'turn.submitted') OR instr(l.body, 'model.delta'))"
	" AND json_extract(e.value, '$.type') IN ('turn.submitted', 'model.delta')";
static const char schema[] =
	"PRAGMA journal_mode=TRUNCATE; PRAGMA synchronous=NORMAL; PRAGMA mmap_size=0;"
	"CREATE TABLE IF NOT EXISTS state(one INTEGER PRIMARY KEY CHECK(one = 1),"
	" runtime_id TEXT NOT NULL, incarnation INTEGER NOT NULL, pos INTEGER NOT NULL);"
	"CREATE VIRTUAL TABLE IF NOT EXISTS found USING fts5(title, message, answer);";
static const char add_sql[] =
	"INSERT INTO found(rowid, title, message, answer) VALUES(?1,?2,'','')";
static const char message_sql[] = "UPDATE found SET message = message || ' ' || ?2 WHERE rowid = ?1"
				  " AND length(message) < ?3";
static const char answer_sql[] = "UPDATE found SET answer = answer || ?2 WHERE rowid = ?1"
				 " AND length(answer) < ?3";

/* --- its life -------------------------------------------------------------------------------- */

void sq_search_init(struct sq_search *x)
{
	pthread_mutex_init(&x->lock, NULL);
}

static void close_index(struct sq_search *x)
{
	sqlite3_finalize(x->add);
	sqlite3_finalize(x->message);
	sqlite3_finalize(x->answer);
	sqlite3_close(x->conn.db);
	x->conn.db = NULL;
	x->add = x->message = x->answer = NULL;
}

void sq_search_fini(struct sq_search *x)
{
	close_index(x);
	uar_free(x->path);
	pthread_mutex_destroy(&x->lock);
}

static uar_err exec(struct sq_search *x, const char *sql, struct uar_error *error)
{
	int rc = sqlite3_exec(x->conn.db, sql, NULL, NULL, NULL);

	return rc ? sq_fail(&x->conn, rc, error) : UAR_OK;
}

static uar_err prepare(struct sq_conn *c, const char *sql, sqlite3_stmt **out,
		       struct uar_error *error)
{
	int rc = sqlite3_prepare_v2(c->db, sql, -1, out, NULL);

	return rc ? sq_fail(c, rc, error) : UAR_OK;
}

/* The position up to which the log is in it; one of another store or history is emptied. */
static uar_err read_state(struct sq_search *x, const struct sq_store *s, struct uar_error *error)
{
	sqlite3_stmt *st = NULL;
	uar_err e = prepare(&x->conn,
			    "SELECT pos FROM state WHERE runtime_id = ?1 AND incarnation = ?2", &st,
			    error);
	int rc = SQLITE_DONE;

	if (e)
		return e;
	sqlite3_bind_text(st, 1, s->base.runtime_id, -1, SQLITE_STATIC);
	sqlite3_bind_int64(st, 2, (int64_t)s->base.incarnation);
	rc = sqlite3_step(st);
	x->pos = rc == SQLITE_ROW ? sqlite3_column_int64(st, 0) : 0;
	sqlite3_finalize(st);
	if (rc == SQLITE_ROW)
		return UAR_OK;
	if (rc != SQLITE_DONE)
		return sq_fail(&x->conn, rc, error);
	return exec(x, "DELETE FROM found; DELETE FROM state;", error);
}

static uar_err open_file(struct sq_search *x, const struct sq_store *s, struct uar_error *error)
{
	int fd = openat(s->dir_fd, "search.db", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	uar_err e;
	int rc;

	if (fd < 0)
		return uar_error_set(error, errno == ENOSPC ? UAR_EDISKFULL : UAR_EIO,
				     "search.db: %s", strerror(errno));
	close(fd);
	rc = sqlite3_open_v2(x->path, &x->conn.db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_EXRESCODE,
			     NULL);
	e = rc ? sq_fail(&x->conn, rc, error) : exec(x, schema, error);
	if (!e)
		e = read_state(x, s, error);
	if (!e)
		e = prepare(&x->conn, add_sql, &x->add, error);
	if (!e)
		e = prepare(&x->conn, message_sql, &x->message, error);
	if (!e)
		e = prepare(&x->conn, answer_sql, &x->answer, error);
	if (e)
		close_index(x);
	return e;
}

static char *path_of(const char *db)
{
	size_t dir = strlen(db) - strlen("uar.db");
	char *path = uar_alloc(dir + sizeof "search.db");

	if (path) {
		memcpy(path, db, dir);
		memcpy(path + dir, "search.db", sizeof "search.db");
	}
	return path;
}

/* What is damaged is made anew: everything in it is in the log. */
static void forget_index(struct sq_search *x, const struct sq_store *s)
{
	close_index(x);
	unlinkat(s->dir_fd, "search.db", 0);
	unlinkat(s->dir_fd, "search.db-journal", 0);
	x->generation++;
}

static uar_err open_index(struct sq_search *x, struct sq_store *s, struct uar_error *error)
{
	uar_err e;

	if (x->conn.db)
		return UAR_OK;
	if (!x->path)
		x->path = path_of(s->path);
	if (!x->path)
		return UAR_ENOMEM;
	e = open_file(x, s, error);
	if (e != UAR_ECORRUPT)
		return e;
	forget_index(x, s);
	return open_file(x, s, error);
}

/* --- filling it ------------------------------------------------------------------------------ */

static uar_err run_one(struct sq_search *x, sqlite3_stmt *st, int64_t rid, uar_str text,
		       struct uar_error *error)
{
	int rc;

	sqlite3_bind_int64(st, 1, rid);
	sqlite3_bind_text(st, 2, text.n ? text.p : "", (int)text.n, SQLITE_STATIC);
	if (sqlite3_bind_parameter_count(st) == 3)
		sqlite3_bind_int64(st, 3, UAR_LIMIT_SEARCH_TEXT);
	rc = sqlite3_step(st);
	sqlite3_reset(st);
	/* The row of a run that the index knows is there already. */
	if (rc == SQLITE_DONE || (rc & 0xff) == SQLITE_CONSTRAINT)
		return UAR_OK;
	return sq_fail(&x->conn, rc, error);
}

/* Pieces of one answer that follow each other go in at once. */
struct piece {
	int64_t rid; /* 0: none */
	struct uar_buf text;
};

static uar_err flush_piece(struct sq_search *x, struct piece *p, struct uar_error *error)
{
	uar_err e = p->rid && p->text.n
			    ? run_one(x, x->answer, p->rid, uar_buf_str(&p->text), error)
			    : UAR_OK;

	p->rid = 0;
	uar_buf_clear(&p->text);
	return e;
}

static uar_err add_text(struct sq_search *x, sqlite3_stmt *st, struct piece *p,
			struct uar_error *error)
{
	int64_t rid = sqlite3_column_int64(st, 0);
	bool answer = sqlite3_column_int(st, 2) != 0;
	uar_str text = uar_str_utf8_prefix(sq_text(st, 3), UAR_LIMIT_SEARCH_TEXT);
	uar_err e = UAR_OK;

	if (p->rid != rid || !answer || p->text.n + text.n > UAR_LIMIT_SEARCH_TEXT)
		e = flush_piece(x, p, error);
	if (e)
		return e;
	if (answer) {
		p->rid = rid;
		uar_buf_add_str(&p->text, text);
		return p->text.err;
	}
	e = run_one(x, x->add, rid, sq_text(st, 1), error);
	return e ? e : run_one(x, x->message, rid, text, error);
}

static uar_err add_texts(struct sq_search *x, struct sq_reader *rd, int64_t to,
			 struct uar_error *error)
{
	struct piece p = { .text = uar_buf_make(2 * UAR_LIMIT_SEARCH_TEXT) };
	sqlite3_stmt *st = NULL;
	uar_err e = prepare(&rd->conn, texts, &st, error);
	int rc = SQLITE_DONE;

	if (!e) {
		sqlite3_bind_int64(st, 1, x->pos);
		sqlite3_bind_int64(st, 2, to);
	}
	while (!e && (rc = sqlite3_step(st)) == SQLITE_ROW)
		e = add_text(x, st, &p, error);
	if (!e && rc != SQLITE_DONE)
		e = sq_fail(&rd->conn, rc, error);
	if (!e)
		e = flush_piece(x, &p, error);
	sqlite3_finalize(st);
	uar_buf_fini(&p.text);
	return e;
}

static uar_err write_state(struct sq_search *x, const struct sq_store *s, int64_t to,
			   struct uar_error *error)
{
	sqlite3_stmt *st = NULL;
	uar_err e =
		prepare(&x->conn, "INSERT OR REPLACE INTO state VALUES(1, ?1, ?2, ?3)", &st, error);
	int rc;

	if (e)
		return e;
	sqlite3_bind_text(st, 1, s->base.runtime_id, -1, SQLITE_STATIC);
	sqlite3_bind_int64(st, 2, (int64_t)s->base.incarnation);
	sqlite3_bind_int64(st, 3, to);
	rc = sqlite3_step(st);
	e = rc == SQLITE_DONE ? UAR_OK : sq_fail(&x->conn, rc, error);
	sqlite3_finalize(st);
	return e;
}

/* How many rows of the log come next, at most a step of them, and the last one. */
static uar_err look_ahead(struct sq_search *x, struct sq_reader *rd, int64_t *rows, int64_t *to,
			  struct uar_error *error)
{
	sqlite3_stmt *st = NULL;
	uar_err e = prepare(&rd->conn, next_rows, &st, error);
	int rc;

	if (e)
		return e;
	sqlite3_bind_int64(st, 1, x->pos);
	sqlite3_bind_int64(st, 2, UAR_LIMIT_SEARCH_STEP);
	rc = sqlite3_step(st);
	*rows = rc == SQLITE_ROW ? sqlite3_column_int64(st, 0) : 0;
	*to = rc == SQLITE_ROW ? sqlite3_column_int64(st, 1) : 0;
	e = rc == SQLITE_ROW ? UAR_OK : sq_fail(&rd->conn, rc, error);
	sqlite3_finalize(st);
	return e;
}

/* One transaction; *more: the log goes on. */
static uar_err index_step(struct sq_reader *rd, bool *more, struct uar_error *error)
{
	struct sq_store *s = rd->pool->store;
	struct sq_search *x = &s->search;
	int64_t rows = 0, to = 0;
	uar_err e = open_index(x, s, error);

	*more = false;
	if (!e)
		e = look_ahead(x, rd, &rows, &to, error);
	if (e || !rows)
		return e;
	e = exec(x, "BEGIN", error);
	if (!e)
		e = add_texts(x, rd, to, error);
	if (!e)
		e = write_state(x, s, to, error);
	if (!e)
		e = exec(x, "COMMIT", error);
	if (e && x->conn.db)
		sqlite3_exec(x->conn.db, "ROLLBACK", NULL, NULL, NULL);
	else if (!e)
		x->pos = to;
	if (e == UAR_ECORRUPT)
		forget_index(x, s);
	*more = !e && rows == UAR_LIMIT_SEARCH_STEP;
	return e;
}

void sq_index(struct sq_reader *rd, struct uar_index *op)
{
	struct sq_search *x = &rd->pool->store->search;

	op->error = (struct uar_error){ 0 };
	pthread_mutex_lock(&x->lock);
	op->err = sq_settle(index_step(rd, &op->more, &op->error), &op->error);
	pthread_mutex_unlock(&x->lock);
}

/* --- searching ------------------------------------------------------------------------------- */

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static uar_err attach(struct sq_reader *rd, struct uar_error *error)
{
	struct sq_search *x = &rd->pool->store->search;
	sqlite3_stmt *st = NULL;
	uar_err e;
	int rc;

	if (rd->attached == x->generation + 1)
		return UAR_OK;
	if (rd->attached)
		sqlite3_exec(rd->conn.db, "DETACH search", NULL, NULL, NULL);
	rd->attached = 0;
	e = prepare(&rd->conn, "ATTACH ?1 AS search", &st, error);
	if (e)
		return e;
	sqlite3_bind_text(st, 1, x->path, -1, SQLITE_STATIC);
	rc = sqlite3_step(st);
	e = rc == SQLITE_DONE ? UAR_OK : sq_fail(&rd->conn, rc, error);
	sqlite3_finalize(st);
	if (!e)
		rd->attached = x->generation + 1;
	return e;
}

uar_err sq_search_begin(struct sq_reader *rd, bool *partial, struct uar_error *error)
{
	struct sq_search *x = &rd->pool->store->search;
	int64_t until = now_ms() + UAR_LIMIT_SEARCH_WAIT_MS;
	bool more = true;
	uar_err e = UAR_OK;

	pthread_mutex_lock(&x->lock);
	while (!e && more && now_ms() < until)
		e = index_step(rd, &more, error);
	if (!e)
		e = attach(rd, error);
	*partial = more;
	return e;
}

void sq_search_end(struct sq_reader *rd)
{
	pthread_mutex_unlock(&rd->pool->store->search.lock);
}

/* Words between quotes, so that none of them is an operator; the last one may go on. */
uar_str sq_search_match(struct uar_arena *arena, uar_str words)
{
	struct uar_buf b = uar_buf_make(4 * UAR_LIMIT_SEARCH_BYTES);
	uar_str out = UAR_STR_NONE;

	words = uar_str_utf8_prefix(words, UAR_LIMIT_SEARCH_BYTES);
	while (words.n) {
		uar_str word = uar_str_cut(words, ' ', &words);

		if (!word.n)
			continue;
		uar_buf_add_char(&b, '"');
		for (size_t i = 0; i < word.n; i++) {
			if (word.p[i] == '"')
				uar_buf_add_char(&b, '"');
			uar_buf_add_char(&b, word.p[i]);
		}
		uar_buf_add_str(&b, words.n ? UAR_STR("\" ") : UAR_STR("\"*"));
	}
	if (!b.err)
		out = uar_arena_str(arena, uar_buf_str(&b));
	uar_buf_fini(&b);
	return out;
}
