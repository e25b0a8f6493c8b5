/* query.c - what the readers ask: pages of events, runs, threads.
 *
 * Everything is looked up below its owner: somebody else's id is an id that
 * does not exist. A damaged row spoils the page that reaches it and nothing
 * else; the events before it are still given out. */
#include "store/sqlite/sqlite_int.h"

static uar_err find_owner(struct sq_conn *c, const struct uar_owner *o, int64_t *out,
			  struct uar_error *error)
{
	sqlite3_stmt *st;
	uar_err e =
		sq_first(c, SQ_OWNER, SQ_VALS(SQ_T(o->tenant), SQ_T(o->workspace), SQ_T(o->user)),
			 &st, error);

	if (e)
		return e;
	*out = sqlite3_column_int64(st, 0);
	sq_done(st);
	return UAR_OK;
}

static uar_err find_id(struct sq_conn *c, enum sq_id what, int64_t oid, uar_str id, int64_t *out,
		       struct uar_error *error)
{
	sqlite3_stmt *st;
	uar_err e = sq_first(c, what, SQ_VALS(SQ_I(oid), SQ_T(id)), &st, error);

	if (e)
		return e;
	*out = sqlite3_column_int64(st, 0);
	sq_done(st);
	return UAR_OK;
}

static bool keep(struct uar_arena *arena, uar_str *s)
{
	*s = uar_arena_str(arena, *s);
	return s->p != NULL;
}

/* --- pages of events ------------------------------------------------------------- */
/* Ids that rows of one run, or of none, leave out. */
struct base {
	struct base *next;
	int64_t rid;
	struct uar_event ev;
};

struct page {
	struct sq_reader *rd;
	struct uar_read *r;
	struct base *bases; /* the first is that of rows without a run */
	size_t room;	    /* events there is memory for */
	size_t bytes;
	int64_t pos; /* of the last row */
	struct uar_error *error;
};

static uar_err add_base(struct page *pg, int64_t rid, struct base **out)
{
	struct base *b = uar_arena_alloc(&pg->r->arena, sizeof *b);

	if (!b)
		return UAR_ENOMEM;
	if (pg->bases)
		b->ev = pg->bases->ev;
	b->rid = rid;
	*out = b;
	return UAR_OK;
}

static uar_err session_base(struct page *pg, int64_t sid)
{
	struct uar_read *r = pg->r;
	sqlite3_stmt *st;
	struct base *b;
	uar_str session;
	uar_err e = add_base(pg, 0, &b);

	if (!e)
		e = sq_first(&pg->rd->conn, SQ_SESSION_ID, SQ_VALS(SQ_I(sid)), &st, pg->error);
	if (e)
		return e;
	session = uar_arena_str(&r->arena, sq_text(st, 0));
	sq_done(st);
	b->ev.ids[UAR_ID_RUNTIME] =
		uar_arena_str(&r->arena, uar_str_c(pg->rd->pool->store->base.runtime_id));
	b->ev.ids[UAR_ID_TENANT] = uar_arena_str(&r->arena, r->owner.tenant);
	b->ev.ids[UAR_ID_WORKSPACE] = uar_arena_str(&r->arena, r->owner.workspace);
	b->ev.ids[UAR_ID_USER] = uar_arena_str(&r->arena, r->owner.user);
	b->ev.ids[UAR_ID_SESSION] = session;
	pg->bases = b;
	return session.p && b->ev.ids[UAR_ID_USER].p ? UAR_OK : UAR_ENOMEM;
}

/* The base of a row: known from an earlier row of the page, or looked up. */
static uar_err base_of(struct page *pg, int64_t rid, struct base **out)
{
	sqlite3_stmt *st;
	struct base *b;
	uar_str *id;
	uar_err e;

	for (b = pg->bases; b; b = b->next)
		if (b->rid == rid) {
			*out = b;
			return UAR_OK;
		}
	e = add_base(pg, rid, &b);
	if (!e)
		e = sq_first(&pg->rd->conn, SQ_RUN_SPINE, SQ_VALS(SQ_I(rid)), &st, pg->error);
	if (e == UAR_ENOTFOUND)
		return uar_error_set(pg->error, UAR_ECORRUPT, "run %lld has no row",
				     (long long)rid);
	if (e)
		return e;
	id = b->ev.ids;
	id[UAR_ID_RUN] = sq_text(st, 0);
	id[UAR_ID_THREAD] = sq_text(st, 1);
	id[UAR_ID_TURN] = sq_text(st, 2);
	id[UAR_ID_TASK] = sq_text(st, 3);
	e = keep(&pg->r->arena, &id[UAR_ID_RUN]) && keep(&pg->r->arena, &id[UAR_ID_THREAD]) &&
			    keep(&pg->r->arena, &id[UAR_ID_TURN]) &&
			    keep(&pg->r->arena, &id[UAR_ID_TASK])
		    ? UAR_OK
		    : UAR_ENOMEM;
	sq_done(st);
	id[UAR_ID_ATTEMPT] = id[UAR_ID_RUN];
	if (!pg->bases)
		return UAR_EINTERNAL; /* the session's own is always first */
	b->next = pg->bases->next;
	pg->bases->next = b;
	*out = b;
	return e;
}

/* Most pages are short: room for events grows with what is found. */
static uar_err make_room(struct page *pg, size_t more)
{
	struct uar_read *r = pg->r;
	size_t need = r->event_count + more, room = pg->room ? pg->room * 2 : 16;
	struct uar_event *events;

	if (need <= pg->room)
		return UAR_OK;
	while (room < need)
		room *= 2;
	events = uar_arena_alloc(&r->arena, room * sizeof *events);
	if (!events)
		return UAR_ENOMEM;
	if (r->event_count)
		memcpy(events, r->events, r->event_count * sizeof *events);
	r->events = events;
	pg->room = room;
	return UAR_OK;
}

/* Adds the events of one row that lie behind the cursor. */
static uar_err add_row(struct page *pg, sqlite3_stmt *st)
{
	struct uar_read *r = pg->r;
	struct sq_decode d = { .max = r->limit - r->event_count, .arena = &r->arena };
	struct sq_log_row row;
	struct base *b = NULL;
	int64_t first;
	size_t n;
	uar_err e;

	sq_log_get(st, &row);
	if (row.pos <= pg->pos)
		return uar_error_set(pg->error, UAR_ECORRUPT, "rows are out of order at %lld",
				     (long long)row.pos);
	e = base_of(pg, row.rid, &b);
	if (e)
		return e;
	if (!keep(&r->arena, &row.body) || (row.ids.n && !keep(&r->arena, &row.ids)))
		return UAR_ENOMEM;
	first = r->run_id.n ? row.run_seq : row.seq;
	d.skip = r->after >= (uint64_t)first ? r->after - (uint64_t)first + 1 : 0;
	d.base = &b->ev;
	e = make_room(pg, d.max < (size_t)row.n ? d.max : (size_t)row.n);
	if (e)
		return e;
	d.out = r->events + r->event_count;
	e = sq_log_decode(&row, &d, &n, pg->error);
	if (e)
		return e;
	r->event_count += n;
	pg->pos = row.pos;
	r->more = d.skip + n < (uint64_t)row.n;
	pg->bytes += row.body.n;
	return UAR_OK;
}

static bool page_full(const struct page *pg)
{
	return pg->r->event_count >= pg->r->limit || pg->bytes >= UAR_LIMIT_READ_PAGE_BYTES;
}

/* --- where events lie --------------------------------------------------------------- */
/* What is read: a run, or a session (rid 0). */
struct source {
	int64_t sid, rid;
	uint64_t first_seq;
	int64_t first_part;
};

static int64_t key_of(const struct source *from)
{
	return from->rid ? from->rid : -from->sid;
}

static struct sq_place *place_of(struct sq_readers *p, int64_t key)
{
	return &p->places[(uint64_t)key % ARRAY_LEN(p->places)];
}

static void remember_place(struct page *pg, const struct source *from)
{
	const struct uar_event *last = &pg->r->events[pg->r->event_count - 1];
	struct sq_readers *p = pg->rd->pool;

	pthread_mutex_lock(&p->lock);
	*place_of(p, key_of(from)) =
		(struct sq_place){ key_of(from), from->rid ? last->run_sequence : last->sequence,
				   last->sequence, pg->pos >> SQ_PART_BITS };
	pthread_mutex_unlock(&p->lock);
}

/* The sequence and the part at which to begin to look for what follows the
 * cursor: where the last reader stopped, or else the earliest place it can be,
 * since each event of a run takes at least one sequence. */
static uint64_t look_from(struct page *pg, const struct source *from, int64_t *out_part)
{
	uint64_t after = pg->r->after, seq = from->first_seq + after;
	struct sq_readers *p = pg->rd->pool;
	struct sq_place at;

	*out_part = from->first_part;
	pthread_mutex_lock(&p->lock);
	at = *place_of(p, key_of(from));
	pthread_mutex_unlock(&p->lock);
	if (at.key != key_of(from) || at.nth > after)
		return seq;
	*out_part = at.part;
	return at.seq + (after - at.nth) > seq ? at.seq + (after - at.nth) : seq;
}

static uar_err step_rows(struct page *pg, sqlite3_stmt *st)
{
	struct uar_read *r = pg->r;
	uar_err e = UAR_OK;
	int rc;

	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		r->more = r->more || page_full(pg);
		if (r->more)
			break;
		e = add_row(pg, st);
		if (e)
			break;
	}
	if (!e && rc != SQLITE_ROW && rc != SQLITE_DONE)
		e = sq_fail(&pg->rd->conn, rc, pg->error);
	sq_done(st);
	if (e && e != UAR_ENOMEM && r->event_count) {
		r->more = true; /* what was good is good; the next page tells */
		e = UAR_OK;
	}
	return e;
}

static uar_err fill_page(struct page *pg, const struct source *from)
{
	struct sq_conn *c = &pg->rd->conn;
	struct uar_read *r = pg->r;
	sqlite3_stmt *st;
	uint64_t seq;
	int64_t part;
	uar_err e;

	r->events = NULL;
	if (r->after >= INT64_MAX / 2 || !from->first_seq)
		return UAR_OK;
	seq = look_from(pg, from, &part);
	if (from->rid)
		st = sq_bind(c, SQ_LOG_OF_RUN,
			     SQ_VALS(SQ_I(from->sid), SQ_I(seq), SQ_I(part), SQ_I(from->rid),
				     SQ_I(r->after + 1)),
			     pg->error);
	else
		st = sq_bind(c, SQ_LOG_OF_SESSION, SQ_VALS(SQ_I(from->sid), SQ_I(seq), SQ_I(part)),
			     pg->error);
	if (!st)
		return pg->error->code;
	e = step_rows(pg, st);
	if (!e && r->event_count)
		remember_place(pg, from);
	return e;
}

static uar_err find_source(struct sq_conn *c, const struct uar_read *r, struct source *out,
			   struct uar_error *error)
{
	sqlite3_stmt *st;
	int64_t oid;
	uar_err e = find_owner(c, &r->owner, &oid, error);

	if (!e && r->run_id.n) {
		e = sq_first(c, SQ_RUN, SQ_VALS(SQ_I(oid), SQ_T(r->run_id)), &st, error);
		if (!e && sqlite3_column_int(st, 10)) {
			sq_done(st);
			e = UAR_ENOTFOUND;
		}
		if (!e)
			*out = (struct source){ sqlite3_column_int64(st, 1),
						sqlite3_column_int64(st, 0),
						(uint64_t)sqlite3_column_int64(st, 7),
						sqlite3_column_int64(st, 9) };
	} else if (!e) {
		e = sq_first(c, SQ_SESSION, SQ_VALS(SQ_I(oid), SQ_T(r->session_id)), &st, error);
		if (!e)
			*out = (struct source){ sqlite3_column_int64(st, 0), 0, 1,
						sqlite3_column_int64(st, 1) };
	}
	if (!e)
		sq_done(st);
	return e;
}

static uar_err read_page(struct sq_reader *rd, struct uar_read *r, struct uar_error *error)
{
	struct page pg = { .rd = rd, .r = r, .error = error };
	struct source from;
	uar_err e = find_source(&rd->conn, r, &from, error);

	if (!e)
		e = session_base(&pg, from.sid);
	return e ? e : fill_page(&pg, &from);
}

/* The end of every query: an error gets its text, and no results. */
static uar_err settle(uar_err e, struct uar_error *error)
{
	if (e && !error->code)
		uar_error_set(error, e, "%s", uar_err_text(e));
	return e;
}

void sq_query_read(struct sq_reader *rd, struct uar_read *r)
{
	r->event_count = 0;
	r->more = false;
	r->error = (struct uar_error){ 0 };
	r->err = read_page(rd, r, &r->error);
	if (r->err == UAR_ENOTFOUND)
		uar_store_missing(r->run_id, r->session_id, &r->error);
	settle(r->err, &r->error);
	if (r->err)
		r->event_count = 0;
	else
		r->error = (struct uar_error){ 0 };
}

/* --- runs -------------------------------------------------------------------------------- */
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
	};
}

uar_err sq_run_check(sqlite3_stmt *st, const struct uar_run_row *r, struct uar_error *error)
{
	if (sq_sum_run(sqlite3_column_int64(st, 0), sqlite3_column_int64(st, 1),
		       sqlite3_column_int64(st, 2), r) == (uint32_t)sqlite3_column_int64(st, 24))
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
_Static_assert((int)F_COUNT == (int)SQ_FILTERS, "a reader keeps a statement for each set");
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
	if (!(set & 1u << F_COUNT)) /* the owner's index has no others */
		uar_buf_add_str(out, UAR_STR(" AND r.evicted = 0"));
	uar_buf_printf(out, " ORDER BY r.%s DESC LIMIT ?3", prefix ? "run_id" : "rid");
}

static uar_err list_stmt(struct sq_reader *rd, unsigned set, sqlite3_stmt **out,
			 struct uar_error *error)
{
	struct uar_buf sql = uar_buf_make(4096);
	int rc = SQLITE_OK;
	uar_err e = UAR_OK;

	if (!rd->lists[set]) {
		list_sql(&sql, set);
		e = sql.err;
		if (!e)
			rc = sqlite3_prepare_v3(rd->conn.db, sql.p, -1, SQLITE_PREPARE_PERSISTENT,
						&rd->lists[set], NULL);
		if (rc)
			e = sq_fail(&rd->conn, rc, error);
		uar_buf_fini(&sql);
	}
	*out = rd->lists[set];
	return e;
}

static uar_err list_rows(struct sq_reader *rd, struct uar_runs_query *q, sqlite3_stmt *st)
{
	uar_err e;
	int rc;

	q->rows = uar_arena_alloc(&q->arena, q->limit * sizeof *q->rows);
	if (!q->rows)
		return UAR_ENOMEM;
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		struct uar_run_row row;

		sq_run_get(st, &row);
		if (q->only && !q->only(&row))
			continue;
		if (q->row_count == q->limit) {
			q->more = true;
			return UAR_OK;
		}
		e = sq_run_check(st, &row, &q->error);
		if (e && q->beyond)
			continue;
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
		e = find_id(&rd->conn, SQ_RUN, oid, q->before, &before, &q->error);
	if (e)
		return e == UAR_ENOTFOUND ? UAR_ECURSOR : e;
	for (int i = 0; i < F_COUNT; i++)
		set |= filter[i].n ? 1u << i : 0;
	set |= q->evicted ? 1u << F_COUNT : 0;
	e = list_stmt(rd, set, &st, &q->error);
	if (e)
		return e;
	sqlite3_bind_int64(st, 1, oid);
	sqlite3_bind_int64(st, 2, before);
	sqlite3_bind_int64(st, 3, q->only ? -1 : (int64_t)q->limit + 1);
	for (int i = 0; i < F_COUNT; i++)
		if (filter[i].n)
			sqlite3_bind_text(st, i + 4, filter[i].p, (int)filter[i].n, SQLITE_STATIC);
	e = list_rows(rd, q, st);
	sq_done(st);
	return e;
}

static uar_err runs_beyond(struct sq_reader *rd, struct uar_runs_query *q, int64_t oid)
{
	sqlite3_stmt *st =
		sq_bind(&rd->conn, SQ_RUNS_BEYOND,
			SQ_VALS(SQ_I(oid), SQ_I(q->beyond), SQ_I(q->limit + 1)), &q->error);
	uar_err e;

	if (!st)
		return q->error.code;
	e = list_rows(rd, q, st);
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
	q->error = (struct uar_error){ 0 };
	e = find_owner(&rd->conn, &q->owner, &oid, &q->error);
	if (!e)
		e = q->run_id.n ? one_run(rd, q, oid)
		    : q->beyond ? runs_beyond(rd, q, oid)
				: list_runs(rd, q, oid);
	else if (e == UAR_ENOTFOUND && !q->run_id.n)
		e = q->before.n ? UAR_ECURSOR : UAR_OK;
	if (e == UAR_ENOTFOUND)
		uar_store_missing(q->run_id, UAR_STR_NONE, &q->error);
	q->err = settle(e, &q->error);
	if (e)
		q->row_count = 0;
}

/* A damaged one is left alone: the others must not wait for it. */
uar_err sq_query_live(struct sq_conn *c, void (*fn)(void *ctx, const struct uar_run_row *),
		      void *ctx, const struct uar_log *log, struct uar_error *error)
{
	sqlite3_stmt *st = sq_bind(c, SQ_RUNS_LIVE, NULL, 0, error);
	struct uar_run_row row;
	int rc;

	if (!st)
		return error->code;
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		sq_run_get(st, &row);
		if (sq_run_check(st, &row, NULL))
			uar_log(log, UAR_LOG_ERROR, "store.run_damaged", { "run_id", row.run_id });
		else
			fn(ctx, &row);
	}
	if (rc != SQLITE_DONE)
		return sq_fail(c, rc, error);
	sq_done(st);
	return UAR_OK;
}

/* --- threads ------------------------------------------------------------------------------- */
static uar_err find_thread(struct sq_reader *rd, struct uar_thread_query *q)
{
	struct sq_conn *c = &rd->conn;
	uar_str id = q->thread_id.n ? q->thread_id : q->session_id;
	sqlite3_stmt *st;
	int64_t oid, sid;
	uar_err e = find_owner(c, &q->owner, &oid, &q->error);

	if (!e)
		e = find_id(c, q->thread_id.n ? SQ_THREAD : SQ_SESSION, oid, id, &sid, &q->error);
	if (!e)
		e = sq_first(c, SQ_SESSION_ID, SQ_VALS(SQ_I(sid)), &st, &q->error);
	if (e)
		return e;
	snprintf(q->found_session, sizeof q->found_session, "%.*s", UAR_FMT(sq_text(st, 0)));
	sq_done(st);
	e = sq_first(c, SQ_SESSION_LAST, SQ_VALS(SQ_I(sid)), &st, &q->error);
	if (e)
		return e == UAR_ENOTFOUND ? UAR_ECORRUPT : e;
	q->last_sequence = (uint64_t)sqlite3_column_int64(st, 0);
	sq_done(st);
	return UAR_OK;
}

static uar_err find_key(struct sq_reader *rd, struct uar_key_query *q)
{
	sqlite3_stmt *st;
	int64_t oid;
	uar_err e = find_owner(&rd->conn, &q->owner, &oid, &q->error);

	if (!e)
		e = sq_first(&rd->conn, SQ_KEY, SQ_VALS(SQ_I(oid), SQ_T(q->scope), SQ_T(q->key)),
			     &st, &q->error);
	if (e)
		return e;
	snprintf(q->fingerprint, sizeof q->fingerprint, "%.*s", UAR_FMT(sq_text(st, 0)));
	snprintf(q->run_id, sizeof q->run_id, "%.*s", UAR_FMT(sq_text(st, 1)));
	sq_done(st);
	return UAR_OK;
}

void sq_query_key(struct sq_reader *rd, struct uar_key_query *q)
{
	q->fingerprint[0] = q->run_id[0] = 0;
	q->error = (struct uar_error){ 0 };
	q->err = settle(find_key(rd, q), &q->error);
}

void sq_query_thread(struct sq_reader *rd, struct uar_thread_query *q)
{
	q->found_session[0] = 0;
	q->last_sequence = 0;
	q->error = (struct uar_error){ 0 };
	q->err = settle(find_thread(rd, q), &q->error);
}
