/* list_sessions.c - the sessions of an owner for people: the newest first, by filters.
 *
 * A session has a row of its own only if something was said about it; else its title and agent
 * are those of its first run. Sessions of the runtime itself ("uar.") are left out. */
#include "store/sqlite/sqlite_int.h"

/* Filters, as bits of the set of a statement; other lists have other bits. */
enum {
	BY_STATUS = 1,
	BY_AGENT = 2,
	BY_TITLE = 4,
	LIVE = 8,
	BY_PREFIX = 16,
	WITHOUT = 32,
	OF_SESSIONS = 1 << 29,
};

#define FIRST_RUN "FROM runs r WHERE r.sid = s.sid AND r.evicted = 0 ORDER BY r.rid LIMIT 1"
#define LAST_RUN  "FROM runs r WHERE r.sid = s.sid AND r.evicted = 0 ORDER BY r.rid DESC LIMIT 1"
#define SESSION_TITLE                                                                              \
	"coalesce(nullif(json_extract(w.body, '$.title'), ''), (SELECT r.title " FIRST_RUN "), "   \
	"'')"
#define SESSION_AGENT  "coalesce((SELECT r.agent_id " FIRST_RUN "), '')"
#define SESSION_STATUS "coalesce(nullif(w.status, ''), 'active')"

/* ?1 owner, ?2 cursor, ?3 limit, ?4 to ?9 filters. */
static void list_sql(struct uar_buf *out, unsigned set)
{
	uar_buf_printf(out,
		       "SELECT s.sid, s.session_id, s.created, " SESSION_TITLE ", " SESSION_AGENT
		       ", " SESSION_STATUS ","
		       " max(s.created, coalesce(w.updated, 0), coalesce((SELECT max(r.updated)"
		       " FROM runs r WHERE r.sid = s.sid), 0)),"
		       " (SELECT count(*) FROM runs r WHERE r.sid = s.sid AND r.evicted = 0),"
		       " (SELECT count(*) FROM runs r WHERE r.sid = s.sid AND r.terminal = 0),"
		       " (SELECT count(*) FROM runs r WHERE r.sid = s.sid AND r.terminal = 0"
		       " AND r.waits <> ''), coalesce((SELECT r.status " LAST_RUN "), '')"
		       " FROM sessions s LEFT JOIN rows w ON w.oid = s.oid AND w.kind = 'session'"
		       " AND w.id = s.session_id WHERE s.oid = ?1 AND s.sid < ?2"
		       " AND substr(s.session_id, 1, 4) <> 'uar.'");
	if (set & BY_STATUS)
		uar_buf_printf(out, " AND " SESSION_STATUS " = ?4");
	if (set & BY_AGENT)
		uar_buf_printf(out, " AND " SESSION_AGENT " = ?5");
	if (set & BY_TITLE)
		uar_buf_printf(out, " AND instr(lower(" SESSION_TITLE "), lower(?6)) > 0");
	if (set & LIVE)
		uar_buf_printf(out, " AND EXISTS(SELECT 1 FROM runs r WHERE r.sid = s.sid"
				    " AND r.terminal = 0)");
	if (set & BY_PREFIX)
		uar_buf_printf(out, " AND substr(s.session_id, 1, length(?7)) = ?7");
	if (set & WITHOUT)
		uar_buf_printf(out, " AND substr(s.session_id, 1, length(?8)) <> ?8"
				    " AND substr(s.session_id, 1, length(?9)) <> ?9");
	uar_buf_printf(out, " ORDER BY s.sid DESC LIMIT ?3");
}

#define CURSOR "s" /* it begins so: another list's is refused, and a mere number */

static bool keep_session(struct uar_session_list *q, sqlite3_stmt *st)
{
	struct uar_session_listed *l = &q->rows[q->row_count];

	*l = (struct uar_session_listed){
		.session_id = uar_arena_str(&q->arena, sq_text(st, 1)),
		.created_us = sqlite3_column_int64(st, 2),
		.title = uar_arena_str(&q->arena, sq_text(st, 3)),
		.agent_id = uar_arena_str(&q->arena, sq_text(st, 4)),
		.status = uar_arena_str(&q->arena, sq_text(st, 5)),
		.updated_us = sqlite3_column_int64(st, 6),
		.runs = (uint64_t)sqlite3_column_int64(st, 7),
		.live = (uint64_t)sqlite3_column_int64(st, 8),
		.waiting = (uint64_t)sqlite3_column_int64(st, 9),
		.last_status = uar_arena_str(&q->arena, sq_text(st, 10)),
	};
	q->next =
		uar_arena_printf(&q->arena, CURSOR "%lld", (long long)sqlite3_column_int64(st, 0));
	q->row_count++;
	return l->session_id.p && l->title.p && l->agent_id.p && l->status.p && l->last_status.p &&
	       q->next.p;
}

static void bind_text(sqlite3_stmt *st, int at, uar_str s)
{
	if (s.n)
		sqlite3_bind_text(st, at, s.p, (int)s.n, SQLITE_STATIC);
}

static uar_err read_rows(struct sq_reader *rd, struct uar_session_list *q, sqlite3_stmt *st)
{
	int rc;

	q->rows = uar_arena_alloc(&q->arena, q->limit * sizeof *q->rows);
	if (!q->rows)
		return UAR_ENOMEM;
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		if (q->row_count == q->limit) {
			q->more = true;
			return UAR_OK;
		}
		if (!keep_session(q, st))
			return UAR_ENOMEM;
	}
	return rc == SQLITE_DONE ? UAR_OK : sq_fail(&rd->conn, rc, &q->error);
}

static uar_err list_sessions(struct sq_reader *rd, struct uar_session_list *q, int64_t oid)
{
	unsigned set = OF_SESSIONS | (q->status.n ? BY_STATUS : 0) |
		       (q->agent_id.n ? BY_AGENT : 0) | (q->title.n ? BY_TITLE : 0) |
		       (q->live ? LIVE : 0) | (q->prefix.n ? BY_PREFIX : 0) |
		       (q->without[1].n ? WITHOUT : 0);
	uint64_t before = INT64_MAX;
	sqlite3_stmt *st;
	uar_err e;

	if (q->after.n &&
	    (!uar_str_starts(q->after, UAR_STR(CURSOR)) ||
	     uar_str_u64(uar_str_from(q->after, strlen(CURSOR)), &before) || before > INT64_MAX))
		return UAR_ECURSOR;
	e = sq_list_stmt(rd, set, list_sql, &st, &q->error);
	if (e)
		return e;
	sqlite3_bind_int64(st, 1, oid);
	sqlite3_bind_int64(st, 2, (int64_t)before);
	sqlite3_bind_int64(st, 3, (int64_t)q->limit + 1);
	bind_text(st, 4, q->status);
	bind_text(st, 5, q->agent_id);
	bind_text(st, 6, q->title);
	bind_text(st, 7, q->prefix);
	bind_text(st, 8, q->without[0]);
	bind_text(st, 9, q->without[1]);
	e = read_rows(rd, q, st);
	sq_done(st);
	return e;
}

void sq_list_sessions(struct sq_reader *rd, struct uar_session_list *q)
{
	int64_t oid;
	uar_err e;

	q->rows = NULL;
	q->row_count = 0;
	q->more = false;
	q->next = UAR_STR_NONE;
	q->error = (struct uar_error){ 0 };
	e = sq_find_owner(&rd->conn, &q->owner, &oid, &q->error);
	if (e == UAR_ENOTFOUND)
		e = UAR_OK;
	else if (!e)
		e = list_sessions(rd, q, oid);
	q->err = sq_settle(e, &q->error);
	if (e)
		q->row_count = 0;
}
