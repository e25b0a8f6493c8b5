/* query_runs.c - rows of runs: one, a list by what its runs have in common, those that live. */
#include "store/sqlite/sqlite_int.h"

void sq_run_get(sqlite3_stmt *st, struct uar_run_row *out)
{
	*out = (struct uar_run_row){
		.owner = { sq_text(st, 3), sq_text(st, 4), sq_text(st, 5) },
		.run_id = sq_text(st, 6),
		.session_id = sq_text(st, 7),
		.thread_id = sq_text(st, 8),
		.turn_id = sq_text(st, 9),
		.task_id = sq_text(st, 10),
		.plugin_id = sq_text(st, 11),
		.entry_id = sq_text(st, 12),
		.agent_id = sq_text(st, 13),
		.root_run_id = sq_text(st, 14),
		.parent_run_id = sq_text(st, 15),
		.status = sq_text(st, 16),
		.terminal = sqlite3_column_int(st, 17) != 0,
		.attempt = sqlite3_column_int64(st, 18),
		.created_us = sqlite3_column_int64(st, 19),
		.updated_us = sqlite3_column_int64(st, 20),
		.started_us = sqlite3_column_int64(st, 21),
		.finished_us = sqlite3_column_int64(st, 22),
		.detail = sq_text(st, 23),
		.last_run_sequence = (uint64_t)sqlite3_column_int64(st, 25),
		.evicted = sqlite3_column_int(st, 26) != 0,
		.listed = { .title = sq_text(st, 27),
			    .error_code = sq_text(st, 28),
			    .waits = sq_text(st, 29),
			    .due_us = sqlite3_column_int64(st, 30),
			    .rank = sqlite3_column_int64(st, 31),
			    .cost_micros = sqlite3_column_int64(st, 32),
			    .input_tokens = sqlite3_column_int64(st, 33),
			    .output_tokens = sqlite3_column_int64(st, 34) },
	};
}

uar_err sq_run_check(sqlite3_stmt *st, const struct uar_run_row *r, struct uar_error *error)
{
	if (sq_sum_run(sqlite3_column_int64(st, 0), sqlite3_column_int64(st, 1),
		       sqlite3_column_int64(st, 2), r) == sqlite3_column_int64(st, 24))
		return UAR_OK;
	return uar_error_set(error, UAR_ECORRUPT, "the row of run %.*s is damaged",
			     UAR_FMT(r->run_id));
}

static uar_err one_run(struct sq_reader *rd, struct uar_runs_query *q, int64_t oid)
{
	struct uar_run_row row;
	sqlite3_stmt *st;
	uar_err e = sq_first(&rd->conn, SQ_RUN_ROW, SQ_VALS(SQ_I(oid), SQ_T(q->run_id)), &st,
			     &q->error);

	if (e)
		return e;
	sq_run_get(st, &row);
	e = sq_run_check(st, &row, &q->error);
	q->rows = e ? NULL : uar_arena_alloc(&q->arena, sizeof *q->rows);
	if (!e && (!q->rows || !uar_run_row_copy(&q->arena, &row, q->rows)))
		e = UAR_ENOMEM;
	sq_done(st);
	q->row_count = !e;
	return e;
}

enum {
	F_SESSION,
	F_TASK,
	F_ROOT,
	F_STATUS,
	F_PLUGIN,
	F_ENTRY,
	F_AGENT,
	F_PREFIX,
	F_THREAD,
	F_COUNT
};
/* Further bits of a set of filters. */
enum {
	SET_EVICTED = 1 << F_COUNT,
	SET_WAITING = 1 << (F_COUNT + 1),
	SET_LIVE = 1 << (F_COUNT + 2),
};
static const char *const filter_sql[F_COUNT] = {
	[F_SESSION] = "r.sid = (SELECT sid FROM sessions WHERE oid = ?1 AND session_id = ?",
	[F_TASK] = "r.task_id = ?",
	/* The index leaves out the runs that are their own root. */
	[F_ROOT] = ("r.rid IN (SELECT rid FROM runs WHERE run_id = ?6 AND root_run_id = ?6 UNION "
		    "ALL SELECT rid FROM runs WHERE root_run_id <> run_id AND root_run_id = ?"),
	[F_STATUS] = "r.status = ?",
	[F_PLUGIN] = "r.plugin_id = ?",
	[F_ENTRY] = "r.entry_id = ?",
	[F_AGENT] = "r.agent_id = ?",
	/* Ids are visible ASCII. */
	[F_PREFIX] = "r.run_id < ?11 || char(127) AND r.run_id >= ?",
	[F_THREAD] = "r.thread_id = ?",
};

/* The first filter that leaves few rows picks the index; "+" keeps the planner,
 * which has no statistics, from thinking otherwise. */
static void list_sql(struct uar_buf *out, unsigned set)
{
	bool prefix = set & 1u << F_PREFIX; /* in the order of ids, which rise with time */
	bool narrow = prefix || set & (1u << F_SESSION | 1u << F_TASK | 1u << F_ROOT);
	bool free_index = !prefix; /* it has its own */

	uar_buf_printf(out, "SELECT " SQ_RUN_COLUMNS " WHERE %sr.oid = ?1 AND %sr.rid < ?2",
		       narrow ? "+" : "", prefix ? "+" : "");
	for (int i = 0; i < F_COUNT; i++) {
		if (!(set & 1u << i))
			continue;
		uar_buf_printf(out, " AND %s%s%d%s", free_index || i == F_PREFIX ? "" : "+",
			       filter_sql[i], i + 4, i == F_SESSION || i == F_ROOT ? ")" : "");
		free_index = free_index && i > F_STATUS;
	}
	if (set & SET_WAITING)
		uar_buf_add_str(out, UAR_STR(" AND r.waits <> ''"));
	if (set & SET_LIVE)
		uar_buf_add_str(out, UAR_STR(" AND r.terminal = 0"));
	if (!(set & SET_EVICTED)) /* the owner's index has no others */
		uar_buf_add_str(out, UAR_STR(" AND r.evicted = 0"));
	uar_buf_printf(out, " ORDER BY r.%s DESC LIMIT ?3", prefix ? "run_id" : "rid");
}

/* Where the set is kept; else the free place, or the one that was used longest ago. */
static struct sq_list *list_place(struct sq_reader *rd, unsigned set)
{
	struct sq_list *old = &rd->lists[0];

	for (size_t i = 0; i < ARRAY_LEN(rd->lists); i++) {
		struct sq_list *l = &rd->lists[i];

		if (l->st && l->set == set)
			return l;
		if (l->used < old->used)
			old = l;
	}
	return old;
}

static uar_err list_prepare(struct sq_reader *rd, unsigned set,
			    void (*write)(struct uar_buf *out, unsigned set), struct sq_list *place,
			    struct uar_error *error)
{
	struct uar_buf sql = uar_buf_make(4096);
	sqlite3_stmt *st = NULL;
	uar_err e;
	int rc = SQLITE_OK;

	write(&sql, set);
	e = sql.err;
	if (!e)
		rc = sqlite3_prepare_v3(rd->conn.db, sql.p, -1, SQLITE_PREPARE_PERSISTENT, &st,
					NULL);
	if (rc)
		e = sq_fail(&rd->conn, rc, error);
	uar_buf_fini(&sql);
	if (e)
		return e;
	sqlite3_finalize(place->st);
	*place = (struct sq_list){ .st = st, .set = set };
	return UAR_OK;
}

uar_err sq_list_stmt(struct sq_reader *rd, unsigned set,
		     void (*write)(struct uar_buf *out, unsigned set), sqlite3_stmt **out,
		     struct uar_error *error)
{
	struct sq_list *place = list_place(rd, set);
	uar_err e = place->st && place->set == set ? UAR_OK
						   : list_prepare(rd, set, write, place, error);

	if (e)
		return e;
	place->used = ++rd->lists_used;
	*out = place->st;
	return UAR_OK;
}

uar_err sq_list_runs(struct sq_reader *rd, struct uar_runs_query *q, sqlite3_stmt *st)
{
	uar_err e;
	int rc;

	q->rows = uar_arena_alloc(&q->arena, q->limit * sizeof *q->rows);
	if (!q->rows)
		return UAR_ENOMEM;
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		struct uar_run_row row;

		sq_run_get(st, &row);
		if (q->row_count == q->limit) {
			q->more = true;
			return UAR_OK;
		}
		e = sq_run_check(st, &row, &q->error);
		if (e && q->beyond) {
			uar_error_clear(&q->error);
			continue;
		}
		if (e)
			return e;
		if (!uar_run_row_copy(&q->arena, &row, &q->rows[q->row_count]))
			return UAR_ENOMEM;
		q->row_count++;
	}
	return rc == SQLITE_DONE ? UAR_OK : sq_fail(&rd->conn, rc, &q->error);
}

static uar_err list_runs(struct sq_reader *rd, struct uar_runs_query *q, int64_t oid)
{
	const uar_str filter[F_COUNT] = { q->session_id, q->task_id,   q->root_run_id,
					  q->status,	 q->plugin_id, q->entry_id,
					  q->agent_id,	 q->prefix,    q->thread_id };
	int64_t before = INT64_MAX;
	unsigned set = 0;
	sqlite3_stmt *st;
	uar_err e = UAR_OK;

	if (q->before.n)
		e = sq_find_id(&rd->conn, SQ_RUN_PLACE, oid, q->before, &before, &q->error);
	if (e)
		return e == UAR_ENOTFOUND ? UAR_ECURSOR : e;
	for (int i = 0; i < F_COUNT; i++)
		set |= filter[i].n ? 1u << i : 0;
	set |= (q->evicted ? SET_EVICTED : 0) | (q->waiting ? SET_WAITING : 0) |
	       (q->live ? SET_LIVE : 0);
	e = sq_list_stmt(rd, set, list_sql, &st, &q->error);
	if (e)
		return e;
	sqlite3_bind_int64(st, 1, oid);
	sqlite3_bind_int64(st, 2, before);
	sqlite3_bind_int64(st, 3, (int64_t)q->limit + 1);
	for (int i = 0; i < F_COUNT; i++)
		if (filter[i].n)
			sqlite3_bind_text(st, i + 4, filter[i].p, (int)filter[i].n, SQLITE_STATIC);
	e = sq_list_runs(rd, q, st);
	sq_done(st);
	return e;
}

static uar_err runs_beyond(struct sq_reader *rd, struct uar_runs_query *q, int64_t oid)
{
	sqlite3_stmt *st =
		sq_bind(&rd->conn, SQ_RUNS_BEYOND, SQ_VALS(SQ_I(oid), SQ_I(q->beyond)), &q->error);
	uar_err e;

	if (!st)
		return q->error.code;
	e = sq_list_runs(rd, q, st);
	sq_done(st);
	return e;
}

uar_err sq_query_beyond(struct sq_conn *c, uint64_t keep,
			void (*fn)(void *ctx, const struct uar_owner *), void *ctx,
			struct uar_error *error)
{
	sqlite3_stmt *st = sq_bind(c, SQ_OWNERS_BEYOND, SQ_VALS(SQ_I(keep)), error);
	int rc;

	if (!st)
		return error->code;
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		struct uar_owner o = { sq_text(st, 0), sq_text(st, 1), sq_text(st, 2) };

		fn(ctx, &o);
	}
	if (rc != SQLITE_DONE)
		return sq_fail(c, rc, error);
	sq_done(st);
	return UAR_OK;
}

void sq_query_runs(struct sq_reader *rd, struct uar_runs_query *q)
{
	int64_t oid;
	uar_err e;

	q->rows = NULL;
	q->row_count = 0;
	q->more = false;
	q->found.total = 0;
	q->found.partial = false;
	q->error = (struct uar_error){ 0 };
	e = sq_find_owner(&rd->conn, &q->owner, &oid, &q->error);
	if (!e)
		e = q->run_id.n				   ? one_run(rd, q, oid)
		    : q->beyond				   ? runs_beyond(rd, q, oid)
		    : q->find && uar_run_find_any(q->find) ? sq_find_runs(rd, q, oid)
							   : list_runs(rd, q, oid);
	else if (e == UAR_ENOTFOUND && !q->run_id.n)
		e = q->before.n ? UAR_ECURSOR : UAR_OK;
	if (e == UAR_ENOTFOUND)
		uar_store_missing(q->run_id, UAR_STR_NONE, &q->error);
	q->err = sq_settle(e, &q->error);
	if (e)
		q->row_count = 0;
}

static void get_waiting(sqlite3_stmt *st, struct uar_run_row *out)
{
	*out = (struct uar_run_row){
		.owner = { sq_text(st, 1), sq_text(st, 2), sq_text(st, 3) },
		.run_id = sq_text(st, 4),
		.session_id = sq_text(st, 5),
		.thread_id = sq_text(st, 6),
		.status = sq_text(st, 7),
		.listed.waits = sq_text(st, 8),
	};
}

/* The whole row. A damaged one is left alone: the others must not wait for it. */
static uar_err pass_whole(struct sq_conn *c, int64_t rid, const struct sq_live *to,
			  struct uar_error *error)
{
	struct uar_run_row row;
	sqlite3_stmt *st;
	uar_err e = sq_first(c, SQ_RUN_AT, SQ_VALS(SQ_I(rid)), &st, error);

	if (e)
		return e;
	sq_run_get(st, &row);
	if (sq_run_check(st, &row, NULL))
		uar_log(to->log, UAR_LOG_ERROR, "store.run_damaged", { "run_id", row.run_id });
	else
		to->fn(to->ctx, &row);
	sq_done(st);
	return UAR_OK;
}

uar_err sq_query_live(struct sq_conn *c, const struct sq_live *to, struct uar_error *error)
{
	sqlite3_stmt *st = sq_bind(c, SQ_RUNS_LIVE, NULL, 0, error);
	struct uar_run_row row;
	uar_err e = UAR_OK;
	int rc = SQLITE_DONE;

	if (!st)
		return error->code;
	while (!e && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		get_waiting(st, &row);
		if (row.listed.waits.n)
			to->fn(to->ctx, &row);
		else
			e = pass_whole(c, sqlite3_column_int64(st, 0), to, error);
	}
	if (!e && rc != SQLITE_DONE)
		return sq_fail(c, rc, error);
	sq_done(st);
	return e;
}
