/* find_runs.c - lists of runs that are sorted, bounded, counted or searched.
 *
 * Such a list is asked for by a person and looks at every run of the owner, so its statement is
 * made each time. Parameters: ?1 owner, ?2 limit, ?3 the run behind which the page begins, ?4
 * and following: filters in the order in which they are written. */
#include "store/sqlite/sqlite_int.h"

enum { FIRST_FILTER = 4, MOST_FILTERS = 40 };

struct finding {
	struct uar_runs_query *q;
	struct uar_buf sql;
	struct sq_val vals[MOST_FILTERS];
	size_t count;
};

static void add_value(struct finding *f, struct sq_val v)
{
	if (f->count == MOST_FILTERS) {
		f->sql.err = UAR_ETOOBIG;
		return;
	}
	uar_buf_printf(&f->sql, "?%zu", FIRST_FILTER + f->count);
	f->vals[f->count++] = v;
}

static void add_filter(struct finding *f, const char *sql, struct sq_val v)
{
	uar_buf_printf(&f->sql, " AND %s", sql);
	add_value(f, v);
}

static void add_text(struct finding *f, const char *sql, uar_str text)
{
	if (text.n)
		add_filter(f, sql, (struct sq_val){ .kind = SQ_TEXT, .s = text });
}

/* No run has a word of an empty list. */
static void add_words(struct finding *f, const char *column, const char *const *words)
{
	if (!words)
		return;
	uar_buf_printf(&f->sql, " AND %s IN (", column);
	for (size_t i = 0; words[i]; i++) {
		if (i)
			uar_buf_add_char(&f->sql, ',');
		add_value(f, (struct sq_val){ .kind = SQ_TEXT, .s = uar_str_c(words[i]) });
	}
	uar_buf_add_char(&f->sql, ')');
}

static void add_bounds(struct finding *f)
{
	const struct uar_run_find *find = f->q->find;
	char sql[256];

	for (int i = 0; i < UAR_RUN_COLUMN_COUNT; i++) {
		const char *column = uar_run_column_info[i].sql;

		if (find->min[i].given) {
			snprintf(sql, sizeof sql, "%s >= ", column);
			add_filter(f, sql,
				   (struct sq_val){ .kind = SQ_INT, .i = find->min[i].value });
		}
		if (find->max[i].given) {
			snprintf(sql, sizeof sql, "%s <= ", column);
			add_filter(f, sql,
				   (struct sq_val){ .kind = SQ_INT, .i = find->max[i].value });
		}
	}
}

static void add_filters(struct finding *f, uar_str match)
{
	const struct uar_runs_query *q = f->q;

	uar_buf_printf(&f->sql, " WHERE r.oid = ?1 AND r.evicted = 0");
	add_text(f, "s.session_id = ", q->session_id);
	add_text(f, "r.task_id = ", q->task_id);
	add_text(f, "r.root_run_id = ", q->root_run_id);
	add_text(f, "r.status = ", q->status);
	add_text(f, "r.plugin_id = ", q->plugin_id);
	add_text(f, "r.entry_id = ", q->entry_id);
	add_text(f, "r.agent_id = ", q->agent_id);
	add_text(f, "r.thread_id = ", q->thread_id);
	add_text(f, "r.error_code = ", q->find->error_code);
	add_words(f, "r.status", q->find->status);
	add_words(f, "r.waits", q->find->waits);
	if (q->prefix.n) {
		add_text(f, "r.run_id >= ", q->prefix);
		add_text(f, "r.run_id < ", q->prefix);
		uar_buf_printf(&f->sql, " || char(127)"); /* ids are visible ASCII */
	}
	if (q->waiting)
		uar_buf_printf(&f->sql, " AND r.waits <> ''");
	if (match.n) {
		add_filter(f, "r.rid IN (SELECT rowid FROM search.found WHERE found MATCH ",
			   (struct sq_val){ .kind = SQ_TEXT, .s = match });
		uar_buf_printf(&f->sql, ")");
	}
	add_bounds(f);
}

static uar_err prepare(struct sq_reader *rd, struct finding *f, sqlite3_stmt **out)
{
	int rc;

	if (f->sql.err)
		return f->sql.err;
	rc = sqlite3_prepare_v2(rd->conn.db, f->sql.p, -1, out, NULL);
	for (size_t i = 0; i < f->count && !rc; i++) {
		const struct sq_val *v = &f->vals[i];
		int at = (int)(FIRST_FILTER + i);

		rc = v->kind == SQ_INT
			     ? sqlite3_bind_int64(*out, at, v->i)
			     : sqlite3_bind_text(*out, at, v->s.p, (int)v->s.n, SQLITE_STATIC);
	}
	return rc ? sq_fail(&rd->conn, rc, &f->q->error) : UAR_OK;
}

static uar_err count_runs(struct sq_reader *rd, struct uar_runs_query *q, int64_t oid,
			  uar_str match)
{
	struct finding f = { .q = q, .sql = uar_buf_make(8192) };
	sqlite3_stmt *st = NULL;
	uar_err e;
	int rc;

	uar_buf_printf(&f.sql, "SELECT count(*) FROM runs r JOIN sessions s ON s.sid = r.sid");
	add_filters(&f, match);
	e = prepare(rd, &f, &st);
	if (!e) {
		sqlite3_bind_int64(st, 1, oid);
		rc = sqlite3_step(st);
		if (rc == SQLITE_ROW)
			q->found.total = (uint64_t)sqlite3_column_int64(st, 0);
		else
			e = sq_fail(&rd->conn, rc, &q->error);
	}
	sqlite3_finalize(st);
	uar_buf_fini(&f.sql);
	return e;
}

/* Runs with the same value are in the order of their age, so that every page has its end. */
static void add_order(struct finding *f)
{
	const struct uar_run_find *find = f->q->find;
	const char *column = find->sorted ? uar_run_column_info[find->sort].sql : "r.rid";
	const char *way = find->ascending ? "ASC" : "DESC";

	if (f->q->before.n)
		uar_buf_printf(
			&f->sql,
			" AND (%s, r.rid) %c (SELECT %s, r.rid FROM runs r WHERE r.rid = ?3)",
			column, find->ascending ? '>' : '<', column);
	uar_buf_printf(&f->sql, " ORDER BY %s %s, r.rid %s LIMIT ?2", column, way, way);
}

static uar_err list_runs(struct sq_reader *rd, struct uar_runs_query *q, int64_t oid, uar_str match)
{
	struct finding f = { .q = q, .sql = uar_buf_make(8192) };
	sqlite3_stmt *st = NULL;
	int64_t before = 0;
	uar_err e = UAR_OK;

	if (q->before.n)
		e = sq_find_id(&rd->conn, SQ_RUN_PLACE, oid, q->before, &before, &q->error);
	if (e)
		return e == UAR_ENOTFOUND ? UAR_ECURSOR : e;
	uar_buf_printf(&f.sql, "SELECT " SQ_RUN_COLUMNS);
	add_filters(&f, match);
	add_order(&f);
	e = prepare(rd, &f, &st);
	if (!e) {
		sqlite3_bind_int64(st, 1, oid);
		sqlite3_bind_int64(st, 2, (int64_t)q->limit + 1);
		sqlite3_bind_int64(st, 3, before);
		e = sq_list_runs(rd, q, st);
	}
	sqlite3_finalize(st);
	uar_buf_fini(&f.sql);
	return e;
}

uar_err sq_find_runs(struct sq_reader *rd, struct uar_runs_query *q, int64_t oid)
{
	uar_str match = UAR_STR_NONE;
	bool search = q->find->search.n != 0;
	uar_err e = UAR_OK;

	if (search) {
		match = sq_search_match(&q->arena, q->find->search);
		e = sq_search_begin(rd, &q->found.partial, &q->error);
		e = match.p ? e : UAR_ENOMEM;
	}
	if (!e && q->find->count)
		e = count_runs(rd, q, oid, match);
	if (!e)
		e = list_runs(rd, q, oid, match);
	if (search)
		sq_search_end(rd);
	return e;
}
