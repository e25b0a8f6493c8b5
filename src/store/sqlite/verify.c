/* verify.c - the offline check of a data directory.
 *
 * Walks every row: the checksum of each, the chain of each session, sequences
 * without gaps, events that decode, and at last what the head says the log must
 * add up to. Whatever is damaged is named and the walk goes on. Nothing is written, not even
 * beside the files: a directory that is read-only can be checked, and one that is not stays as
 * it was. */
#include "store/sqlite/sqlite_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "store/limits.h"

struct check {
	struct sq_conn c;
	struct uar_blobs *blobs;
	void (*bad)(void *ctx, const char *what);
	void *ctx;
	size_t found;
	struct uar_arena arena;
	struct uar_error *error;
	struct sq_head head;
	int64_t items;
	uar_err failed;				 /* inside a row of another query */
	const struct uar_store_visitor *visitor; /* NULL: none */
	sqlite3_stmt *ids;			 /* of sessions and runs, for the visitor */
	char runtime_id[UAR_UUID_TEXT + 1];
};

static void say(struct check *k, const char *fmt, ...) UAR_PRINTF(2, 3);
static void say(struct check *k, const char *fmt, ...)
{
	char what[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	k->found++;
	k->bad(k->ctx, what);
}

static void count_bad(void *ctx, const char *what)
{
	struct check *k = ctx;

	k->found++;
	k->bad(k->ctx, what);
}

/* Calls `fn` for each row of a query. A file that cannot be read is damage. */
static uar_err each(struct check *k, const char *sql, void (*fn)(struct check *, sqlite3_stmt *))
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(k->c.db, sql, -1, &st, NULL);
	uar_err e = UAR_OK;

	while (!rc && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		fn(k, st);
		rc = SQLITE_OK;
	}
	if (rc != SQLITE_DONE)
		e = sq_fail(&k->c, rc, k->error);
	sqlite3_finalize(st);
	if (e != UAR_ECORRUPT && e != UAR_EINTERNAL)
		return e;
	say(k, "%s", k->error->text);
	return UAR_OK;
}

static void integrity(struct check *k, sqlite3_stmt *st)
{
	uar_str text = sq_text(st, 0);

	if (!uar_str_is(text, "ok"))
		say(k, "uar.db: %.*s", UAR_FMT(text));
}

/* --- types -------------------------------------------------------------------------- */
static void wrong_type(struct check *k, sqlite3_stmt *st)
{
	say(k, "%.*s: row %.*s has a column that is not what it should be", UAR_FMT(sq_text(st, 0)),
	    UAR_FMT(sq_text(st, 1)));
}

/* An empty text in place of a number reads as 0, which may be what it was: no sum sees
 * that, and comparisons do. SQLite's own check lets columns be of any type. */
static void types(struct check *k, sqlite3_stmt *st)
{
	const char *sql = (const char *)sqlite3_column_text(st, 0);
	uar_err e = sql ? each(k, sql, wrong_type) : UAR_ENOMEM;

	k->failed = k->failed ? k->failed : e;
}

/* --- the rows beside the log ------------------------------------------------------- */
static void check_sum(struct check *k, const char *table, sqlite3_stmt *st, int at, uint32_t sum)
{
	k->items++;
	if (sqlite3_column_int64(st, at) != (int64_t)sum)
		say(k, "%s: row %.*s is damaged", table, UAR_FMT(sq_text(st, 0)));
}

static void owner(struct check *k, sqlite3_stmt *st)
{
	struct uar_owner o = { sq_text(st, 1), sq_text(st, 2), sq_text(st, 3) };

	check_sum(k, "owners", st, 4, sq_sum_owner(sqlite3_column_int64(st, 0), &o));
}

static void session(struct check *k, sqlite3_stmt *st)
{
	check_sum(k, "sessions", st, 4,
		  sq_sum_session(sqlite3_column_int64(st, 0), sqlite3_column_int64(st, 1),
				 sq_text(st, 2), sqlite3_column_int64(st, 3)));
	if (!sqlite3_column_int(st, 5))
		say(k, "sessions: %.*s has lost its events", UAR_FMT(sq_text(st, 2)));
	else if (!sqlite3_column_int(st, 7))
		say(k, "sessions: %.*s does not agree with the log", UAR_FMT(sq_text(st, 2)));
	if (!sqlite3_column_int(st, 6))
		say(k, "sessions: %.*s has lost its owner", UAR_FMT(sq_text(st, 2)));
}

static void thread(struct check *k, sqlite3_stmt *st)
{
	check_sum(k, "threads", st, 3,
		  sq_sum_thread(sqlite3_column_int64(st, 1), sq_text(st, 0),
				sqlite3_column_int64(st, 2)));
}

static void key(struct check *k, sqlite3_stmt *st)
{
	struct uar_key_row row = { sq_text(st, 2), sq_text(st, 0), sq_text(st, 3), sq_text(st, 4) };

	check_sum(k, "keys", st, 5, sq_sum_key(sqlite3_column_int64(st, 1), &row));
}

static bool is_flag(sqlite3_stmt *st, int column)
{
	int64_t v = sqlite3_column_int64(st, column);

	return v == 0 || v == 1;
}

/* The sum knows flags as yes or no; queries ask for 1. */
static void run(struct check *k, sqlite3_stmt *st)
{
	struct uar_run_row row;

	sq_run_get(st, &row);
	k->items++;
	if (sq_run_check(st, &row, NULL) || !is_flag(st, 17) || !is_flag(st, 26))
		say(k, "runs: %.*s is damaged", UAR_FMT(row.run_id));
}

static void declared_row(struct check *k, sqlite3_stmt *st)
{
	struct uar_error why = { 0 };
	struct uar_row row;

	k->items++;
	if (sq_row_get(st, &row, &why) || !is_flag(st, 7))
		say(k, "rows: %.*s %.*s is damaged", UAR_FMT(sq_text(st, 2)),
		    UAR_FMT(sq_text(st, 0)));
}

static void orphan(struct check *k, sqlite3_stmt *st)
{
	say(k, "log: %.*s %.*s has lost its row", UAR_FMT(sq_text(st, 0)), UAR_FMT(sq_text(st, 1)));
}

/* --- the log ------------------------------------------------------------------------- */
struct walk {
	struct check *k;
	int64_t sid, next;
	uint32_t prev;
};

/* What only events of an evicted run refer to may be gone. A row that cannot be asked
 * is damaged: nothing is excused. */
static bool is_needed(struct check *k, int64_t pos, uar_str ref)
{
	struct uar_error error = { 0 };
	sqlite3_stmt *st;
	uar_err e = sq_first(&k->c, SQ_REF_NEEDED, SQ_VALS(SQ_I(pos), SQ_T(ref)), &st, &error);

	if (!e)
		sq_done(st);
	return e != UAR_ENOTFOUND;
}

static void blobs_of(struct check *k, const struct sq_log_row *r)
{
	static const char mark[] = "blob://";
	const char *p = r->body.p, *end = r->body.p + r->body.n;
	char sha256[65];

	while ((p = memmem(p, (size_t)(end - p), mark, sizeof mark - 1))) {
		const char *ref = p;

		p += sizeof mark - 1;
		if (end - p < 64)
			return;
		memcpy(sha256, p, 64);
		sha256[64] = 0;
		if (uar_store_is_sha256(sha256) && !k->blobs->ops->has(k->blobs, sha256) &&
		    is_needed(k, r->pos, uar_str_n(ref, sizeof mark - 1 + 64)))
			say(k, "log: row %lld refers to blob %s, which is not there",
			    (long long)r->pos, sha256);
	}
}

/* The ids that a row leaves out, as its session and its run have them. */
static uar_err ids_of(struct check *k, const struct sq_log_row *r, uar_str id[UAR_ID_COUNT])
{
	static const char sql[] =
		"SELECT s.session_id, o.tenant_id, o.workspace_id, o.user_id, r.run_id,"
		" r.thread_id, r.turn_id, r.task_id FROM sessions s JOIN owners o ON o.oid = s.oid"
		" LEFT JOIN runs r ON r.rid = ?2 WHERE s.sid = ?1";
	static const enum uar_id to[] = { UAR_ID_SESSION, UAR_ID_TENANT, UAR_ID_WORKSPACE,
					  UAR_ID_USER,	  UAR_ID_RUN,	 UAR_ID_THREAD,
					  UAR_ID_TURN,	  UAR_ID_TASK };
	uar_err e = UAR_ENOTFOUND;
	sqlite3_stmt *st = k->ids;

	if (!st && sqlite3_prepare_v2(k->c.db, sql, -1, &st, NULL) == SQLITE_OK)
		k->ids = st;
	if (st && sqlite3_bind_int64(st, 1, r->sid) == SQLITE_OK &&
	    sqlite3_bind_int64(st, 2, r->rid) == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW) {
		e = UAR_OK;
		for (size_t i = 0; i < ARRAY_LEN(to); i++) {
			id[to[i]] = uar_arena_str(&k->arena, sq_text(st, (int)i));
			e = id[to[i]].p || !id[to[i]].n ? e : UAR_ENOMEM;
		}
	}
	sqlite3_reset(st);
	id[UAR_ID_ATTEMPT] = id[UAR_ID_RUN];
	id[UAR_ID_RUNTIME] = uar_str_c(k->runtime_id);
	return e;
}

/* Shows the events of a row to the visitor. A session without its row has been named. */
static void visit(struct check *k, const struct uar_event *events, size_t n)
{
	for (size_t i = 0; i < n && !k->failed; i++)
		k->failed = k->visitor->event(k->visitor->ctx, &events[i]);
}

static void decode(struct check *k, const struct sq_log_row *r)
{
	struct uar_event base = { .type = UAR_STR_NONE }, outside;
	struct uar_error why = { 0 };
	struct sq_decode d = {
		.base = &base, .outside = &outside, .max = (size_t)r->n, .arena = &k->arena
	};
	bool shown = k->visitor && ids_of(k, r, base.ids) == UAR_OK;
	size_t n;

	outside = base;
	for (size_t i = UAR_ID_SESSION + 1; i < UAR_ID_COUNT; i++)
		outside.ids[i] = UAR_STR_NONE;

	if (r->n < 1 || r->n > UAR_LIMIT_APPEND_EVENTS) {
		say(k, "log: row %lld says it has %lld events", (long long)r->pos, (long long)r->n);
		return;
	}
	d.out = uar_arena_alloc(&k->arena, (size_t)r->n * sizeof *d.out);
	if (!d.out || sq_log_decode(r, &d, &n, &why))
		say(k, "log: %s", d.out ? why.text : "out of memory");
	else if (shown)
		visit(k, d.out, n);
	uar_arena_reset(&k->arena);
}

static void row_in_session(struct walk *w, sqlite3_stmt *st)
{
	struct check *k = w->k;
	struct sq_log_row r;

	sq_log_get(st, &r);
	if (r.sid != w->sid)
		*w = (struct walk){ k, r.sid, 1, 0 };
	if (r.seq != w->next)
		say(k, "log: row %lld begins at sequence %lld of session %lld, wanted %lld",
		    (long long)r.pos, (long long)r.seq, (long long)r.sid, (long long)w->next);
	if (r.prev != w->prev)
		say(k, "log: row %lld does not follow the row before it", (long long)r.pos);
	decode(k, &r);
	blobs_of(k, &r);
	w->next = r.seq + r.n;
	w->prev = (uint32_t)r.sum;
	k->head.log_rows++;
	k->head.acc += sq_log_acc(&r);
	k->head.pos = r.pos > k->head.pos ? r.pos : k->head.pos;
}

/* The limit keeps SQLite from thinking that nobody needs the order. Positions are
 * sorted, not rows, which may be large. */
static uar_err walk_sessions(struct check *k)
{
	struct walk w = { .k = k };
	sqlite3_stmt *st = NULL;
	uar_err e = UAR_OK;
	int rc = sqlite3_prepare_v2(k->c.db,
				    "SELECT " SQ_LOG_COLUMNS
				    " FROM (SELECT pos AS p FROM log ORDER BY sid, seq LIMIT -1)"
				    " CROSS JOIN log ON pos = p",
				    -1, &st, NULL);

	while (!rc && !k->failed && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		row_in_session(&w, st);
		rc = SQLITE_OK;
	}
	if (k->failed)
		e = k->failed;
	else if (rc != SQLITE_DONE)
		e = sq_fail(&k->c, rc, k->error);
	sqlite3_finalize(st);
	if (e != UAR_ECORRUPT)
		return e;
	say(k, "log: %s", k->error->text);
	return UAR_OK;
}

static void gap(struct check *k, sqlite3_stmt *st)
{
	say(k, "log: row %.*s begins at run_sequence %.*s of run %.*s, wanted %.*s",
	    UAR_FMT(sq_text(st, 0)), UAR_FMT(sq_text(st, 1)), UAR_FMT(sq_text(st, 2)),
	    UAR_FMT(sq_text(st, 3)));
}

/* What the row of a run says about its place in the log. last_seq is where its last event
 * was when the row was written, or, if that append had none of its events, where the
 * session was before it. */
static const char places[] =
	"WITH place AS MATERIALIZED (SELECT r.rid, r.run_id, r.sid, r.last_seq,"
	" coalesce(l.ends, 0) AS ends, coalesce(s.last, 0) AS last,"
	" r.first_seq <> coalesce(l.first, 0) OR r.first_part NOT BETWEEN 0 AND l.at >> 12"
	" OR r.last_run_seq > coalesce(l.last_run, 0)"
	" OR (" SQ_ROW_KNOWS_LAST " AND r.last_run_seq <> coalesce(l.last_run, 0))"
	" OR r.last_run_seq <> coalesce(l.told, 0) OR r.last_seq > s.last AS bad"
	" FROM runs r LEFT JOIN (SELECT g.rid, min(g.seq + lead) AS first,"
	" min(pos) AS at, max(" SQ_RUN_END " - 1) AS last_run,"
	" max(iif(g.seq <= q.last_seq, " SQ_RUN_END " - 1, 0)) AS told,"
	" max(g.seq + n - tail - 1 = q.last_seq) AS ends"
	" FROM log g JOIN runs q ON q.rid = g.rid GROUP BY g.rid) l ON l.rid = r.rid"
	" LEFT JOIN (SELECT sid, max(seq + n - 1) AS last FROM log GROUP BY sid) s"
	" ON s.sid = r.sid)"
	" SELECT run_id FROM place WHERE bad OR NOT (ends OR (last_seq < last AND (last_seq = 0"
	" OR rid IN (SELECT c.rid FROM log g JOIN place c ON c.sid = g.sid"
	" AND c.last_seq = g.seq + g.n - 1 WHERE NOT c.ends))))";

static void lost_place(struct check *k, sqlite3_stmt *st)
{
	say(k, "runs: %.*s does not agree with the log", UAR_FMT(sq_text(st, 0)));
}

static void head(struct check *k, sqlite3_stmt *st)
{
	const struct sq_head *h = &k->head;

	if (sqlite3_column_int64(st, 0) != h->pos || sqlite3_column_int64(st, 1) != h->log_rows ||
	    sqlite3_column_int64(st, 2) != (int64_t)h->acc)
		say(k, "log: %lld rows up to %lld are there, the head says %lld up to %lld",
		    (long long)h->log_rows, (long long)h->pos,
		    (long long)sqlite3_column_int64(st, 1), (long long)sqlite3_column_int64(st, 0));
	if (sqlite3_column_int64(st, 3) != k->items)
		say(k,
		    "%lld owners, sessions, threads, runs, keys and rows are there, the head says"
		    " %lld",
		    (long long)k->items, (long long)sqlite3_column_int64(st, 3));
	k->head.log_rows = -1;
}

static uar_err check_tables(struct check *k)
{
	static const struct {
		const char *sql;
		void (*fn)(struct check *k, sqlite3_stmt *st);
	} parts[] = {
		{ "PRAGMA integrity_check", integrity },
		{ "SELECT 'SELECT ' || quote(t.name) || ', ' || min(iif(c.cid, NULL, c.name)) ||"
		  " ' FROM ' || t.name || ' WHERE ' || group_concat('(typeof(' || c.name || ') <> '"
		  " || quote(lower(c.type)) || iif(c.\"notnull\", ')', ' AND ' || c.name ||"
		  " ' IS NOT NULL)'), ' OR ') FROM sqlite_schema t, pragma_table_info(t.name) c"
		  " WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%' GROUP BY t.name",
		  types },
		{ "SELECT oid, tenant_id, workspace_id, user_id, sum FROM owners", owner },
		{ "SELECT s.sid, oid, session_id, created, sum, l.sid IS NOT NULL,"
		  " EXISTS(SELECT 1 FROM owners o WHERE o.oid = s.oid),"
		  " first_part = first >> 12 AND last_part = last >> 12 FROM sessions s LEFT JOIN"
		  " (SELECT sid, min(pos) AS first, max(pos) AS last FROM log GROUP BY sid) l"
		  " ON l.sid = s.sid",
		  session },
		{ "SELECT thread_id, oid, sid, sum FROM threads", thread },
		{ "SELECT key, oid, scope, fingerprint, run_id, sum FROM keys", key },
		{ "SELECT " SQ_RUN_COLUMNS, run },
		{ "SELECT " SQ_ROW_COLUMNS, declared_row },
		{ "SELECT DISTINCT 'session', sid FROM log WHERE sid NOT IN"
		  " (SELECT sid FROM sessions) UNION SELECT DISTINCT 'run', rid FROM log"
		  " WHERE rid IS NOT NULL AND rid NOT IN (SELECT rid FROM runs)",
		  orphan },
		{ "SELECT pos, run_seq, rid, want FROM (SELECT pos, run_seq, rid,"
		  " coalesce(lag(" SQ_RUN_END ") OVER (PARTITION BY rid ORDER BY seq), 1) AS want"
		  " FROM log WHERE rid IS NOT NULL) WHERE run_seq <> want",
		  gap },
		{ places, lost_place },
	};
	uar_err e = UAR_OK;

	for (size_t i = 0; i < ARRAY_LEN(parts) && !e; i++)
		e = each(k, parts[i].sql, parts[i].fn);
	return e ? e : k->failed;
}

static void visit_run(struct check *k, sqlite3_stmt *st)
{
	struct uar_run_row row;

	sq_run_get(st, &row);
	if (!row.evicted && !k->failed)
		k->failed = k->visitor->run(k->visitor->ctx, &row);
}

static void visit_row(struct check *k, sqlite3_stmt *st)
{
	struct uar_error why = { 0 };
	struct uar_row row;

	if (!sq_row_get(st, &row, &why) && !k->failed) /* a damaged one was named */
		k->failed = k->visitor->row(k->visitor->ctx, &row);
}

static uar_err visit_records(struct check *k)
{
	uar_err e = each(k, "SELECT " SQ_RUN_COLUMNS, visit_run);

	if (!e && !k->failed)
		e = each(k, "SELECT " SQ_ROW_COLUMNS, visit_row);
	return e ? e : k->failed;
}

static uar_err check_all(struct check *k)
{
	uar_err e = sq_check_version(&k->c, k->error);

	if (!e)
		e = sq_check_schema(&k->c, k->error);
	if (!e)
		e = sq_runtime_id(&k->c, k->runtime_id, k->error);
	if (!e)
		e = check_tables(k);
	if (!e)
		e = walk_sessions(k);
	if (!e)
		e = each(k, "SELECT pos, log_rows, acc, items FROM head", head);
	if (!e && k->head.log_rows != -1)
		say(k, "the head is missing");
	if (!e && k->visitor)
		e = visit_records(k);
	return e ? e : k->blobs->ops->verify(k->blobs, count_bad, k, k->error);
}

/* --- what was acknowledged last ------------------------------------------------------- */

/* The mark may be behind the log, and of another place: this may be a copy. */
static uar_err check_mark(struct check *k, int dir_fd)
{
	struct sq_mark m = { 0 };
	int64_t sum = -1;
	uar_err e = sq_mark_load(dir_fd, &m, NULL, k->error);

	if (!e && m.pos)
		e = sq_log_sum_at(&k->c, m.pos, &sum, k->error);
	if (e || !m.pos || sum == (int64_t)m.sum)
		return e;
	if (sum == -1)
		say(k,
		    "uar.mark: position %lld was acknowledged and is not in the log: the end of "
		    "uar.db-wal is missing, or this is an older copy",
		    (long long)m.pos);
	else
		say(k, "uar.mark: the log has another row at position %lld than was acknowledged",
		    (long long)m.pos);
	return UAR_OK;
}

/* Before SQLite opens it. */
static uar_err check_wal(struct check *k, const char *path, int dir_fd)
{
	char text[SQ_WAL_TEXT];
	uar_err e = sq_wal_doubt(dir_fd, path, text, k->error);

	if (!e && text[0])
		say(k, "%s", text);
	return e;
}

/* --- without a trace ----------------------------------------------------------------- */

/* Is there anything in the log that is not in the file? */
static uar_err has_log(struct check *k, int dir_fd, bool *out)
{
	int fd = openat(dir_fd, "uar.db-wal", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;
	bool some = fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0;

	if (fd < 0 && errno != ENOENT)
		return uar_error_set(k->error, UAR_EIO,
				     "uar.db-wal, without which uar.db is not whole: %s",
				     strerror(errno));
	if (fd >= 0)
		close(fd);
	*out = some;
	return UAR_OK;
}

static uar_err open_and_check(struct check *k, const char *path, int dir_fd)
{
	bool log = false;
	uar_err e = uar_blob_files_inspect(dir_fd, &k->blobs, k->error);

	if (!e)
		e = has_log(k, dir_fd, &log);
	if (!e)
		e = sq_open_still(&k->c, path, log, k->error);
	if (!e)
		e = check_all(k);
	if (!e)
		e = check_mark(k, dir_fd);
	if (e == UAR_ECORRUPT) {
		say(k, "%s", k->error->text);
		e = UAR_OK;
	}
	sqlite3_finalize(k->ids);
	sq_close(&k->c);
	return e;
}

/* The database is empty. Was there anything in it? */
static uar_err check_lost(struct check *k, int dir_fd)
{
	struct sq_mark m = { 0 };
	uar_err e = sq_mark_load(dir_fd, &m, NULL, k->error);

	if (!e && m.pos)
		say(k, "uar.mark: position %lld was acknowledged, and there is no log",
		    (long long)m.pos);
	return e ? e : UAR_ENOTFOUND;
}

static uar_err check_files(struct check *k, const char *path, int dir_fd)
{
	uar_err e = check_wal(k, path, dir_fd);

	if (!e)
		e = sq_db_empty(dir_fd) ? UAR_ENOTFOUND : open_and_check(k, path, dir_fd);
	if (e == UAR_ENOTFOUND)
		e = check_lost(k, dir_fd);
	if (e == UAR_ENOTFOUND)
		uar_error_set(k->error, e,
			      "uar.db is empty, as after a first start that was cut off");
	if (k->found && (!e || e == UAR_ENOTFOUND))
		e = uar_error_set(k->error, UAR_ECORRUPT, "%zu damaged place%s", k->found,
				  k->found == 1 ? "" : "s");
	return e;
}

static uar_err verify(const char *dir, struct check k, struct uar_error *error)
{
	struct uar_error own = { 0 };
	int dir_fd = -1, lock_fd = -1;
	char *path = sq_db_path(dir);
	uar_err e = path ? sq_lock_dir(dir, false, &dir_fd, &lock_fd, &own) : UAR_ENOMEM;

	k.error = &own;
	if (!e)
		e = check_files(&k, path, dir_fd);
	uar_arena_fini(&k.arena);
	uar_blobs_destroy(k.blobs);
	if (dir_fd >= 0)
		close(dir_fd);
	if (lock_fd >= 0)
		close(lock_fd);
	uar_free(path);
	if (e && error) {
		if (!own.code)
			uar_error_set(&own, e, "%s", uar_err_text(e));
		*error = own;
	}
	return e;
}

uar_err uar_store_sqlite_verify(const char *dir, void (*bad)(void *ctx, const char *what),
				void *ctx, struct uar_error *error)
{
	return verify(dir, (struct check){ .bad = bad, .ctx = ctx }, error);
}

uar_err uar_store_sqlite_visit(const char *dir, const struct uar_store_visitor *v,
			       struct uar_error *error)
{
	return verify(dir, (struct check){ .bad = v->bad, .ctx = v->ctx, .visitor = v }, error);
}
