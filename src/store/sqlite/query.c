/* query.c - what the readers ask: pages of events, threads, keys.
 *
 * Everything is looked up below its owner: somebody else's id is an id that
 * does not exist. A damaged row spoils the page that reaches it and nothing
 * else; the events before it are still given out. */
#include "event/limits.h"
#include "store/sqlite/sqlite_int.h"

uar_err sq_find_owner(struct sq_conn *c, const struct uar_owner *o, int64_t *out,
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

uar_err sq_find_id(struct sq_conn *c, enum sq_id what, int64_t oid, uar_str id, int64_t *out,
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
	uint64_t first, end;
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
	first = (uint64_t)(r->run_id.n ? row.run_seq : row.seq);
	d.skip = r->after >= first ? r->after - first + 1 : 0;
	end = (uint64_t)row.n;
	if (r->run_id.n) { /* and not what stands around its events */
		d.skip += (uint64_t)row.lead;
		end -= (uint64_t)row.tail;
	}
	if (d.max > end - d.skip)
		d.max = end - d.skip;
	d.base = &b->ev;
	d.outside = &pg->bases->ev;
	e = make_room(pg, d.max);
	if (e)
		return e;
	d.out = r->events + r->event_count;
	e = sq_log_decode(&row, &d, &n, pg->error);
	if (e)
		return e;
	r->event_count += n;
	pg->pos = row.pos;
	r->more = d.skip + n < end;
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
	uint64_t last_run_seq; /* of a run that has not begun: nothing of it follows; or 0 */
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

/* Nothing of the run follows: the rest of the session is not looked through. */
static bool at_end(const struct source *from, uint64_t run_seq)
{
	return from->last_run_seq && run_seq >= from->last_run_seq;
}

static uar_err step_rows(struct page *pg, const struct source *from, sqlite3_stmt *st)
{
	struct uar_read *r = pg->r;
	uar_err e = UAR_OK;
	int rc;

	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		r->more = r->more || page_full(pg);
		if (r->more)
			break;
		e = add_row(pg, st);
		if (e ||
		    (r->event_count && at_end(from, r->events[r->event_count - 1].run_sequence)))
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
	if (r->after >= INT64_MAX / 2 || !from->first_seq || at_end(from, r->after))
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
	e = step_rows(pg, from, st);
	if (!e && r->event_count)
		remember_place(pg, from);
	return e;
}

static uar_err find_source(struct sq_conn *c, const struct uar_read *r, struct source *out,
			   struct uar_error *error)
{
	sqlite3_stmt *st;
	int64_t oid;
	uar_err e = sq_find_owner(c, &r->owner, &oid, error);

	if (!e && r->run_id.n) {
		e = sq_first(c, SQ_RUN_PLACE, SQ_VALS(SQ_I(oid), SQ_T(r->run_id)), &st, error);
		if (!e && sqlite3_column_int(st, 4)) {
			sq_done(st);
			e = UAR_ENOTFOUND;
		}
		if (!e)
			*out = (struct source){ sqlite3_column_int64(st, 1),
						sqlite3_column_int64(st, 0),
						(uint64_t)sqlite3_column_int64(st, 2),
						sqlite3_column_int64(st, 3),
						(uint64_t)sqlite3_column_int64(st, 5) };
	} else if (!e) {
		e = sq_first(c, SQ_SESSION, SQ_VALS(SQ_I(oid), SQ_T(r->session_id)), &st, error);
		if (!e)
			*out = (struct source){ sqlite3_column_int64(st, 0), 0, 1,
						sqlite3_column_int64(st, 1), 0 };
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

uar_err sq_settle(uar_err e, struct uar_error *error)
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
	sq_settle(r->err, &r->error);
	if (r->err)
		r->event_count = 0;
	else
		r->error = (struct uar_error){ 0 };
}

/* --- threads ------------------------------------------------------------------------------- */
static uar_err find_thread(struct sq_reader *rd, struct uar_thread_query *q)
{
	struct sq_conn *c = &rd->conn;
	uar_str id = q->thread_id.n ? q->thread_id : q->session_id;
	sqlite3_stmt *st;
	int64_t oid, sid;
	uar_err e = sq_find_owner(c, &q->owner, &oid, &q->error);

	if (!e)
		e = sq_find_id(c, q->thread_id.n ? SQ_THREAD : SQ_SESSION, oid, id, &sid,
			       &q->error);
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
	uar_err e = sq_find_owner(&rd->conn, &q->owner, &oid, &q->error);

	if (!e)
		e = sq_first(&rd->conn, SQ_KEY, SQ_VALS(SQ_I(oid), SQ_T(q->scope), SQ_T(q->key)),
			     &st, &q->error);
	if (e)
		return e;
	snprintf(q->fingerprint, sizeof q->fingerprint, "%.*s", UAR_FMT(sq_text(st, 0)));
	snprintf(q->made, sizeof q->made, "%.*s", UAR_FMT(sq_text(st, 1)));
	sq_done(st);
	return UAR_OK;
}

void sq_query_key(struct sq_reader *rd, struct uar_key_query *q)
{
	q->fingerprint[0] = q->made[0] = 0;
	q->error = (struct uar_error){ 0 };
	q->err = sq_settle(find_key(rd, q), &q->error);
}

void sq_query_thread(struct sq_reader *rd, struct uar_thread_query *q)
{
	q->found_session[0] = 0;
	q->last_sequence = 0;
	q->error = (struct uar_error){ 0 };
	q->err = sq_settle(find_thread(rd, q), &q->error);
}
