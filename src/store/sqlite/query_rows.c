/* query_rows.c - rows of declared kinds: one, a list by filters; sessions to look at. */
#include "store/sqlite/sqlite_int.h"

enum { FIRST_ROOM = 8 }; /* rows; a power of two */

uar_err sq_row_get(sqlite3_stmt *st, struct uar_row *out, struct uar_error *error)
{
	uar_str kind = sq_text(st, 2);

	*out = (struct uar_row){
		.kind = uar_row_kind_of(kind),
		.id = sq_text(st, 0),
		.parent = sq_text(st, 4),
		.tag = sq_text(st, 5),
		.status = sq_text(st, 6),
		.open = sqlite3_column_int(st, 7) != 0,
		.due_us = sqlite3_column_int64(st, 8),
		.rank = sqlite3_column_int64(st, 9),
		.created_us = sqlite3_column_int64(st, 10),
		.updated_us = sqlite3_column_int64(st, 11),
		.through = (uint64_t)sqlite3_column_int64(st, 12),
		.body = sq_text(st, 13),
		.session_id = sq_text(st, 15),
		.owner = { sq_text(st, 16), sq_text(st, 17), sq_text(st, 18) },
	};
	if (out->kind != UAR_ROW_COUNT &&
	    sq_sum_row(sqlite3_column_int64(st, 1), sqlite3_column_int64(st, 3), kind, out) ==
		    sqlite3_column_int64(st, 14))
		return UAR_OK;
	return uar_error_set(error, UAR_ECORRUPT, "the row of %.*s %.*s is damaged", UAR_FMT(kind),
			     UAR_FMT(out->id));
}

/* Room for one more row; few lists are as long as a page may be. */
static bool make_room(struct uar_rows_query *q)
{
	size_t room = q->row_count ? q->row_count * 2 : FIRST_ROOM;
	struct uar_row *rows;

	if (q->row_count & (q->row_count - 1) || (q->row_count && q->row_count < FIRST_ROOM))
		return true; /* there is some: it was doubled at each power of two */
	rows = uar_arena_alloc(&q->arena, room * sizeof *rows);
	if (!rows)
		return false;
	if (q->row_count)
		memcpy(rows, q->rows, q->row_count * sizeof *rows);
	q->rows = rows;
	return true;
}

static uar_err keep_row(struct uar_rows_query *q, sqlite3_stmt *st)
{
	struct uar_row row;
	uar_err e = make_room(q) ? sq_row_get(st, &row, &q->error) : UAR_ENOMEM;

	if (!e && !uar_row_copy(&q->arena, &row, &q->rows[q->row_count]))
		e = UAR_ENOMEM;
	q->row_count += !e;
	return e;
}

static uar_err one_row(struct sq_reader *rd, struct uar_rows_query *q, int64_t oid)
{
	sqlite3_stmt *st;
	uar_err e = sq_first(
		&rd->conn, SQ_ROW_GET,
		SQ_VALS(SQ_I(oid), SQ_T(uar_str_c(uar_row_info[q->kind].name)), SQ_T(q->id)), &st,
		&q->error);

	if (e)
		return e;
	e = keep_row(q, st);
	sq_done(st);
	return e;
}

/* --- lists --------------------------------------------------------------------------- */

/* The filters of a list, as bits of its set; sets of lists of runs are smaller. */
enum {
	BY_SESSION = 1,
	BY_PARENT = 2,
	BY_TAG = 4,
	BY_STATUS = 8,
	BY_OPEN = 16,
	BY_CLOSED = 32,
	BY_RANK = 64,
	BEHIND = 128,
	COUNT = 256,
	OF_ROWS = 1 << 30,
};

/* ?1 owner, ?2 kind, ?3 limit, ?4 and ?5 cursor, ?6 to ?9 filters. */
static void list_sql(struct uar_buf *out, unsigned set)
{
	bool rank = set & BY_RANK;

	uar_buf_printf(out, "SELECT %s WHERE r.oid = ?1 AND r.kind = ?2",
		       set & COUNT ? "count(*) FROM rows r" : SQ_ROW_COLUMNS);
	if (set & BY_SESSION)
		uar_buf_printf(out, " AND r.sid = (SELECT sid FROM sessions WHERE oid = ?1"
				    " AND session_id = ?6)");
	if (set & BY_PARENT)
		uar_buf_printf(out, " AND r.parent = ?7 AND r.parent <> ''");
	if (set & BY_TAG)
		uar_buf_printf(out, " AND r.tag = ?8 AND r.tag <> ''");
	if (set & BY_STATUS)
		uar_buf_printf(out, " AND r.status = ?9");
	if (set & (BY_OPEN | BY_CLOSED))
		uar_buf_printf(out, " AND r.open = %d", set & BY_OPEN ? 1 : 0);
	if (set & COUNT)
		return;
	if (set & BEHIND)
		uar_buf_printf(out, rank ? " AND (r.rank, r.id) > (?4, ?5)"
					 : " AND (r.updated, r.id) < (?4, ?5)");
	uar_buf_printf(out, rank ? " ORDER BY r.rank, r.id LIMIT ?3"
				 : " ORDER BY r.updated DESC, r.id DESC LIMIT ?3");
}

static unsigned set_of(const struct uar_rows_query *q)
{
	return OF_ROWS | (q->session_id.n ? BY_SESSION : 0) | (q->parent.n ? BY_PARENT : 0) |
	       (q->tag.n ? BY_TAG : 0) | (q->status.n ? BY_STATUS : 0) |
	       (q->open == UAR_ROWS_OPEN ? BY_OPEN : 0) |
	       (q->open == UAR_ROWS_CLOSED ? BY_CLOSED : 0) |
	       (q->order == UAR_ROWS_RANK ? BY_RANK : 0) | (q->after.n ? BEHIND : 0);
}

static void bind_text(sqlite3_stmt *st, int at, uar_str s)
{
	if (s.n)
		sqlite3_bind_text(st, at, s.p, (int)s.n, SQLITE_STATIC);
}

static uar_err bind_list(sqlite3_stmt *st, const struct uar_rows_query *q, int64_t oid)
{
	uar_str id = UAR_STR_NONE;
	int64_t value = 0;

	if (q->after.n && !uar_store_rows_cursor_read(q->after, &value, &id))
		return UAR_ECURSOR;
	sqlite3_bind_int64(st, 1, oid);
	bind_text(st, 2, uar_str_c(uar_row_info[q->kind].name));
	sqlite3_bind_int64(st, 3, (int64_t)q->limit + 1);
	if (q->after.n) {
		sqlite3_bind_int64(st, 4, value);
		bind_text(st, 5, id);
	}
	bind_text(st, 6, q->session_id);
	bind_text(st, 7, q->parent);
	bind_text(st, 8, q->tag);
	bind_text(st, 9, q->status);
	return UAR_OK;
}

static uar_err read_list(struct sq_reader *rd, struct uar_rows_query *q, sqlite3_stmt *st)
{
	int rc = SQLITE_ROW;
	uar_err e = UAR_OK;

	while (!e && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		if (q->row_count == q->limit) {
			q->more = true;
			rc = SQLITE_DONE;
			break;
		}
		e = keep_row(q, st);
	}
	if (!e && rc != SQLITE_DONE)
		e = sq_fail(&rd->conn, rc, &q->error);
	if (e || !q->row_count)
		return e;
	q->next = uar_store_rows_cursor(&q->arena, q->order, &q->rows[q->row_count - 1]);
	return q->next.p ? UAR_OK : UAR_ENOMEM;
}

static uar_err list_rows(struct sq_reader *rd, struct uar_rows_query *q, int64_t oid)
{
	sqlite3_stmt *st;
	uar_err e = sq_list_stmt(rd, set_of(q), list_sql, &st, &q->error);

	if (e)
		return e;
	e = bind_list(st, q, oid);
	if (!e)
		e = read_list(rd, q, st);
	sq_done(st);
	return e;
}

static uar_err count_rows(struct sq_reader *rd, struct uar_rows_query *q, int64_t oid)
{
	unsigned set = (set_of(q) & ~(unsigned)(BY_RANK | BEHIND)) | COUNT;
	sqlite3_stmt *st;
	uar_err e = sq_list_stmt(rd, set, list_sql, &st, &q->error);
	int rc;

	if (e)
		return e;
	e = bind_list(st, q, oid);
	rc = e ? SQLITE_OK : sqlite3_step(st);
	if (rc == SQLITE_ROW)
		q->total = (uint64_t)sqlite3_column_int64(st, 0);
	else if (!e)
		e = sq_fail(&rd->conn, rc, &q->error);
	sq_done(st);
	return e;
}

void sq_query_rows(struct sq_reader *rd, struct uar_rows_query *q)
{
	int64_t oid;
	uar_err e;

	q->rows = NULL;
	q->row_count = 0;
	q->more = false;
	q->total = 0;
	q->next = UAR_STR_NONE;
	q->error = (struct uar_error){ 0 };
	e = sq_find_owner(&rd->conn, &q->owner, &oid, &q->error);
	if (!e) {
		e = q->id.n ? one_row(rd, q, oid) : list_rows(rd, q, oid);
		if (!e && q->count)
			e = count_rows(rd, q, oid);
	} else if (e == UAR_ENOTFOUND && !q->id.n) {
		e = UAR_OK;
	}
	if (e == UAR_ENOTFOUND)
		uar_error_set(&q->error, e, "no %s %.*s", uar_row_info[q->kind].name,
			      UAR_FMT(uar_str_utf8_prefix(q->id, UAR_LIMIT_ID_BYTES)));
	q->err = sq_settle(e, &q->error);
	if (e)
		q->row_count = 0;
}

/* --- sessions --------------------------------------------------------------------------- */

static bool keep_session(struct uar_sessions_query *q, sqlite3_stmt *st)
{
	struct uar_session_place *p = &q->sessions[q->count];
	struct uar_owner owner = { sq_text(st, 0), sq_text(st, 1), sq_text(st, 2) };

	p->session_id = uar_arena_str(&q->arena, sq_text(st, 3));
	p->due_us = sqlite3_column_int64(st, 5);
	q->next = uar_arena_printf(&q->arena, "%lld", (long long)sqlite3_column_int64(st, 4));
	q->count++;
	return p->session_id.p && q->next.p && uar_owner_copy(&q->arena, &owner, &p->owner);
}

static uar_err list_sessions(struct sq_reader *rd, struct uar_sessions_query *q, int64_t after)
{
	enum sq_id id = q->which == UAR_SESSIONS_DUE ? SQ_SESSIONS_DUE : SQ_SESSIONS_OPEN;
	sqlite3_stmt *st = sq_bind(&rd->conn, id, SQ_VALS(SQ_I(after), SQ_I(q->limit)), &q->error);
	uar_err e = UAR_OK;
	int rc = SQLITE_ROW;

	if (!st)
		return q->error.code;
	q->sessions = uar_arena_alloc(&q->arena, q->limit * sizeof *q->sessions);
	if (!q->sessions)
		e = UAR_ENOMEM;
	while (!e && (rc = sqlite3_step(st)) == SQLITE_ROW)
		e = keep_session(q, st) ? UAR_OK : UAR_ENOMEM;
	if (!e && rc != SQLITE_DONE)
		e = sq_fail(&rd->conn, rc, &q->error);
	sq_done(st);
	q->more = !e && q->count == q->limit;
	return e;
}

static bool read_number(uar_str text, int64_t *out)
{
	char number[24];
	char *end;

	if (text.n >= sizeof number)
		return false;
	if (text.n)
		memcpy(number, text.p, text.n);
	number[text.n] = 0;
	*out = strtoll(number, &end, 10);
	return !*end;
}

void sq_query_sessions(struct sq_reader *rd, struct uar_sessions_query *q)
{
	int64_t after = 0;
	uar_err e;

	q->sessions = NULL;
	q->count = 0;
	q->more = false;
	q->next = UAR_STR_NONE;
	q->error = (struct uar_error){ 0 };
	e = read_number(q->after, &after) ? list_sessions(rd, q, after) : UAR_ECURSOR;
	q->err = sq_settle(e, &q->error);
	if (e)
		q->count = 0;
}
