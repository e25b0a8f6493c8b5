/* apply.c - what one append does to the database, inside the writer's transaction.
 *
 * First everything that could refuse the append is looked at, then everything
 * is written: a refused append leaves no trace and the others of its batch go
 * on. Runs that go on, and their sessions, are remembered with their last
 * sequence and sum, and new ids are known for new (known.c), so that a usual
 * append is one INSERT and no SELECT. */
#include "store/sqlite/sqlite_int.h"

#include "base/alloc.h"
#include "event/limits.h"
#include "store/limits.h"

struct session {
	struct uar_list lru;
	int64_t oid, sid;
	uint64_t last_seq;
	uint32_t last_sum;
	int64_t last_part;
	uar_str key; /* in the same allocation */
};

struct run {
	struct uar_list lru;
	int64_t rid, sid;
	uint64_t last_run_seq;
	uint64_t first_seq; /* sequence of its first event; 0: none yet */
	int64_t first_part; /* it is in this part or a later one */
	bool started, terminal, evicted;
	char status[UAR_LIMIT_STATUS_BYTES + 1];
	struct sq_spine spine;
	uar_str key; /* strings: in the same allocation */
};

/* What the checks found out about one append. */
struct found {
	int64_t oid;		 /* 0: a new owner */
	struct session *session; /* NULL: a new one */
	struct run *run;	 /* NULL: none, or a new one */
	int64_t part;		 /* in which its first row will be */
};

/* --- what is remembered ------------------------------------------------------------ */
/* Called between appends: nobody holds an entry then. */
static void trim(struct sq_cache *c, uar_str (*key_of)(struct uar_list *node))
{
	while (c->count > UAR_LIMIT_STORE_CACHE)
		sq_cache_drop(c, key_of(c->lru.next));
}

static uar_str session_key(struct uar_list *node)
{
	return UAR_OWNER(node, struct session, lru)->key;
}

static uar_str run_key(struct uar_list *node)
{
	return UAR_OWNER(node, struct run, lru)->key;
}

static char *place(char *at, uar_str s, uar_str *out)
{
	if (s.n)
		memcpy(at, s.p, s.n);
	*out = uar_str_n(at, s.n);
	return at + s.n;
}

static uar_err remember_session(struct sq_apply *ap, const struct session *in, struct session **out)
{
	struct session *s = uar_alloc(sizeof *s + in->key.n);
	uar_err e;

	if (!s)
		return UAR_ENOMEM;
	*s = *in;
	place((char *)(s + 1), in->key, &s->key);
	uar_list_init(&s->lru);
	e = sq_cache_put(&ap->sessions, s->key, &s->lru);
	if (e) {
		uar_free(s);
		return e;
	}
	*out = s;
	return UAR_OK;
}

static uar_err remember_run(struct sq_apply *ap, const struct run *in, struct run **out)
{
	const struct sq_spine *sp = &in->spine;
	struct run *r = uar_alloc(sizeof *r + in->key.n + sp->thread.n + sp->turn.n + sp->task.n);
	char *at;
	uar_err e;

	if (!r)
		return UAR_ENOMEM;
	*r = *in;
	at = place((char *)(r + 1), in->key, &r->key);
	at = place(at, sp->thread, &r->spine.thread);
	at = place(at, sp->turn, &r->spine.turn);
	place(at, sp->task, &r->spine.task);
	r->spine.attempt = UAR_STR_NONE;
	uar_list_init(&r->lru);
	e = sq_cache_put(&ap->runs, r->key, &r->lru);
	if (e) {
		uar_free(r);
		return e;
	}
	*out = r;
	return UAR_OK;
}

void sq_apply_init(struct sq_apply *ap, struct sq_conn *c)
{
	*ap = (struct sq_apply){ .c = c, .ids = uar_buf_make(8 * UAR_LIMIT_ID_BYTES) };
	ap->owner.key = uar_buf_make(4 * UAR_LIMIT_ID_BYTES);
	sq_cache_init(&ap->sessions);
	sq_cache_init(&ap->runs);
}

void sq_apply_fini(struct sq_apply *ap)
{
	if (!ap->c)
		return;
	sq_cache_clear(&ap->sessions);
	sq_cache_clear(&ap->runs);
	uar_buf_fini(&ap->ids);
	uar_buf_fini(&ap->owner.key);
}

static uar_err next_of(struct sq_apply *ap, enum sq_id id, int64_t *out, struct uar_error *error)
{
	sqlite3_stmt *st;
	uar_err e = sq_first(ap->c, id, NULL, 0, &st, error);

	if (e)
		return e;
	*out = sqlite3_column_int64(st, 0);
	sq_done(st);
	return UAR_OK;
}

uar_err sq_apply_reload(struct sq_apply *ap, struct uar_error *error)
{
	sqlite3_stmt *st;
	uar_err e;

	ap->stale = true;
	sq_cache_clear(&ap->sessions);
	sq_cache_clear(&ap->runs);
	ap->owner.oid = 0;
	e = sq_first(ap->c, SQ_HEAD, NULL, 0, &st, error);
	if (e == UAR_ENOTFOUND)
		return uar_error_set(error, UAR_ECORRUPT, "uar.db has no head");
	if (e)
		return e;
	ap->head = (struct sq_head){ sqlite3_column_int64(st, 0), sqlite3_column_int64(st, 1),
				     sqlite3_column_int64(st, 3),
				     (uint64_t)sqlite3_column_int64(st, 2) };
	sq_done(st);
	e = next_of(ap, SQ_OWNER_NEXT, &ap->next_oid, error);
	if (!e)
		e = next_of(ap, SQ_SESSION_NEXT, &ap->next_sid, error);
	if (!e)
		e = next_of(ap, SQ_RUN_NEXT, &ap->next_rid, error);
	if (!e)
		e = sq_top_load(ap->c, SQ_SESSION_TOP, 0, &ap->session, error);
	if (!e)
		e = sq_top_load(ap->c, SQ_RUN_TOP, 0, &ap->run, error);
	ap->stale = e != UAR_OK;
	return e;
}

/* --- what is there ------------------------------------------------------------------- */
static uar_err find_owner(struct sq_apply *ap, const struct sq_op *op, int64_t *out,
			  struct uar_error *error)
{
	sqlite3_stmt *st;
	uar_err e;

	*out = sq_owner_known(&ap->owner, op);
	if (*out)
		return UAR_OK;
	e = sq_first(
		ap->c, SQ_OWNER,
		SQ_VALS(SQ_T(op->owner.tenant), SQ_T(op->owner.workspace), SQ_T(op->owner.user)),
		&st, error);
	if (e)
		return e == UAR_ENOTFOUND ? UAR_OK : e;
	*out = sqlite3_column_int64(st, 0);
	sq_done(st);
	return sq_owner_load(ap->c, op, *out, &ap->owner, error);
}

/* The session, remembered or from its rows; *out stays NULL when there is none. */
static uar_err find_session(struct sq_apply *ap, const struct sq_op *op, int64_t oid,
			    struct session **out, struct uar_error *error)
{
	struct session s = { .oid = oid, .key = op->session_key };
	sqlite3_stmt *st;
	uar_err e;

	e = sq_first(ap->c, SQ_SESSION, SQ_VALS(SQ_I(oid), SQ_T(op->session_id)), &st, error);
	if (e)
		return e == UAR_ENOTFOUND ? UAR_OK : e;
	s.sid = sqlite3_column_int64(st, 0);
	s.last_part = sqlite3_column_int64(st, 2);
	sq_done(st);
	e = sq_first(ap->c, SQ_SESSION_LAST, SQ_VALS(SQ_I(s.sid)), &st, error);
	if (e == UAR_ENOTFOUND)
		return uar_error_set(error, UAR_ECORRUPT, "session %.*s has lost its events",
				     UAR_FMT(op->session_id));
	if (e)
		return e;
	s.last_seq = (uint64_t)sqlite3_column_int64(st, 0);
	s.last_sum = (uint32_t)sqlite3_column_int64(st, 1);
	sq_done(st);
	return remember_session(ap, &s, out);
}

static uar_err load_run(struct sq_apply *ap, sqlite3_stmt *st, const struct sq_op *op,
			struct run **out)
{
	struct run r = {
		.rid = sqlite3_column_int64(st, 0),
		.sid = sqlite3_column_int64(st, 1),
		.terminal = sqlite3_column_int(st, 6) != 0,
		.first_seq = (uint64_t)sqlite3_column_int64(st, 7),
		.last_run_seq = (uint64_t)sqlite3_column_int64(st, 8),
		.first_part = sqlite3_column_int64(st, 9),
		.evicted = sqlite3_column_int(st, 10) != 0,
		.started = sqlite3_column_int64(st, 12) != 0,
		.spine = { sq_text(st, 2), sq_text(st, 3), sq_text(st, 4), UAR_STR_NONE },
		.key = op->run_key,
	};

	snprintf(r.status, sizeof r.status, "%.*s", UAR_FMT(sq_text(st, 5)));
	return remember_run(ap, &r, out);
}

static uar_err find_run(struct sq_apply *ap, const struct sq_op *op, int64_t oid, struct run **out,
			struct uar_error *error)
{
	sqlite3_stmt *st;
	uar_err e = sq_first(ap->c, SQ_RUN, SQ_VALS(SQ_I(oid), SQ_T(op->run_id)), &st, error);

	if (e)
		return e == UAR_ENOTFOUND ? UAR_OK : e;
	e = load_run(ap, st, op, out);
	sq_done(st);
	return e;
}

/* --- checks: refusals go to the append, trouble is returned -------------------------- */
static uar_err refuse(struct sq_op *op, uar_err code, const char *why)
{
	op->a->err = uar_error_set(&op->a->error, code, "%s", why);
	return UAR_OK;
}

static uar_err check_key(struct sq_apply *ap, struct sq_op *op, int64_t oid,
			 struct uar_error *error)
{
	struct uar_key_row taken = op->key;
	sqlite3_stmt *st;
	uar_err e;

	if (!op->has_key || !oid)
		return UAR_OK;
	e = sq_first(ap->c, SQ_KEY, SQ_VALS(SQ_I(oid), SQ_T(op->key.scope), SQ_T(op->key.key)), &st,
		     error);
	if (e)
		return e == UAR_ENOTFOUND ? UAR_OK : e;
	taken.fingerprint = uar_arena_str(&op->arena, sq_text(st, 0));
	taken.made = uar_arena_str(&op->arena, sq_text(st, 1));
	sq_done(st);
	if (!taken.fingerprint.p || !taken.made.p)
		return UAR_ENOMEM;
	op->a->taken = taken;
	return refuse(op, UAR_EEXISTS, "the idempotency key is taken");
}

static uar_err check_session(struct sq_apply *ap, struct sq_op *op, struct found *f,
			     struct uar_error *error)
{
	uint64_t last;
	uar_err e = UAR_OK;

	if (!f->session && f->oid && !sq_is_new(&ap->session, op->session_id))
		e = find_session(ap, op, f->oid, &f->session, error);
	if (e)
		return e;
	last = f->session ? f->session->last_seq : 0;
	if (last == op->after)
		return UAR_OK;
	op->a->err = uar_error_set(&op->a->error, UAR_ECONFLICT,
				   "the session is at sequence %llu, the append follows %llu",
				   (unsigned long long)last, (unsigned long long)op->after);
	return UAR_OK;
}

static bool same_spine(const struct sq_spine *a, const struct uar_run_row *r)
{
	return uar_str_eq(a->thread, r->thread_id) && uar_str_eq(a->turn, r->turn_id) &&
	       uar_str_eq(a->task, r->task_id);
}

static uar_err judge_row(struct sq_op *op, const struct run *r)
{
	if (!same_spine(&r->spine, &op->run))
		return refuse(op, UAR_EINVALID, "thread, turn and task of a run never change");
	if (r->terminal && (!op->run.terminal || !uar_str_is(op->run.status, r->status)))
		return refuse(op, UAR_ESTATE, "the run has ended");
	return UAR_OK;
}

static uar_err judge_run(struct sq_op *op, const struct found *f)
{
	const struct run *r = f->run;

	if (!r && !op->has_run)
		return refuse(op, UAR_ENOTFOUND, "events of a run that has no row");
	if (r && r->evicted)
		return refuse(op, UAR_ENOTFOUND, "the run is evicted");
	if (r && (!f->session || r->sid != f->session->sid))
		return refuse(op, UAR_EINVALID, "the run belongs to another session");
	if (op->span.run_seq && op->span.run_seq != (r ? r->last_run_seq : 0) + 1)
		return refuse(op, UAR_ECONFLICT, "the run has gone on");
	return r && op->has_run ? judge_row(op, r) : UAR_OK;
}

static uar_err check_run(struct sq_apply *ap, struct sq_op *op, struct found *f,
			 struct uar_error *error)
{
	uar_err e = UAR_OK;

	if (!op->run_id.n)
		return UAR_OK;
	f->run = sq_cache_get(&ap->runs, op->run_key);
	if (!f->run && f->oid && !sq_is_new(&ap->run, op->run_id))
		e = find_run(ap, op, f->oid, &f->run, error);
	return e ? e : judge_run(op, f);
}

/* A thread lives in one session for ever. */
static uar_err check_threads(struct sq_apply *ap, struct sq_op *op, const struct found *f,
			     struct uar_error *error)
{
	bool known = ap->owner.oid == f->oid;

	for (size_t i = 0; i < op->threads.n && f->oid; i++) {
		sqlite3_stmt *st;
		int64_t sid;
		uar_err e;

		if (known && sq_is_new(&ap->owner.thread, op->threads.at[i]))
			continue;
		e = sq_first(ap->c, SQ_THREAD, SQ_VALS(SQ_I(f->oid), SQ_T(op->threads.at[i])), &st,
			     error);
		if (e == UAR_ENOTFOUND)
			continue;
		if (e)
			return e;
		sid = sqlite3_column_int64(st, 0);
		sq_done(st);
		if (!f->session || sid != f->session->sid)
			return refuse(op, UAR_ECONFLICT, "the thread lives in another session");
	}
	return UAR_OK;
}

static uar_err check(struct sq_apply *ap, struct sq_op *op, struct found *f,
		     struct uar_error *error)
{
	uar_err e = UAR_OK;

	f->session = sq_cache_get(&ap->sessions, op->session_key);
	if (f->session)
		f->oid = f->session->oid;
	else
		e = find_owner(ap, op, &f->oid, error);
	if (!e)
		e = check_key(ap, op, f->oid, error);
	if (!e && !op->a->err)
		e = check_session(ap, op, f, error);
	if (!e && !op->a->err)
		e = check_run(ap, op, f, error);
	if (!e && !op->a->err)
		e = check_threads(ap, op, f, error);
	if (!e && !op->a->err)
		e = sq_evict_check(ap, op, f->oid, error);
	if (!e && !op->a->err)
		e = sq_rows_check(ap, op, f->oid, f->session ? f->session->sid : 0, error);
	return e;
}

/* --- writes ------------------------------------------------------------------------------ */
static uar_err add_owner(struct sq_apply *ap, const struct sq_op *op, struct found *f,
			 struct uar_error *error)
{
	int64_t oid = ap->next_oid;
	uar_err e = sq_run(ap->c, SQ_OWNER_ADD,
			   SQ_VALS(SQ_I(oid), SQ_T(op->owner.tenant), SQ_T(op->owner.workspace),
				   SQ_T(op->owner.user), SQ_I(sq_sum_owner(oid, &op->owner))),
			   error);

	if (e)
		return e;
	f->oid = oid;
	ap->next_oid++;
	ap->head.items++;
	return sq_owner_load(ap->c, op, oid, &ap->owner, error);
}

static uar_err add_session(struct sq_apply *ap, const struct sq_op *op, struct found *f,
			   struct uar_error *error)
{
	struct session s = {
		.oid = f->oid, .sid = ap->next_sid, .last_part = f->part, .key = op->session_key
	};
	uint32_t sum = sq_sum_session(s.sid, f->oid, op->session_id, op->at);
	uar_err e = sq_run(ap->c, SQ_SESSION_ADD,
			   SQ_VALS(SQ_I(s.sid), SQ_I(f->oid), SQ_T(op->session_id), SQ_I(op->at),
				   SQ_I(sum), SQ_I(f->part)),
			   error);

	if (e)
		return e;
	ap->next_sid++;
	ap->head.items++;
	sq_top_add(&ap->session, op->session_id);
	return remember_session(ap, &s, &f->session);
}

/* Where the run's events lie once the append is written. last_seq may stay
 * behind: then it says from where on to look. */
struct place {
	uint64_t first_seq, last_seq, last_run_seq;
	int64_t first_part;
};

static struct place place_after(const struct sq_op *op, const struct found *f)
{
	const struct run *r = f->run;
	uint64_t first = r ? r->first_seq : 0;

	return (struct place){
		.first_seq = first ? first : op->span.first_seq,
		.last_seq = op->span.run_seq ? op->span.last_seq : op->after,
		.last_run_seq = op->span.run_seq ? op->span.last_run_seq
				: r		 ? r->last_run_seq
						 : 0,
		.first_part = first ? r->first_part : f->part,
	};
}

/* The run's row need not change with every event: not while it is at work. */
static uar_err move_run(struct sq_apply *ap, const struct sq_op *op, struct found *f,
			struct uar_error *error)
{
	struct place at = place_after(op, f);
	struct run *r = f->run;
	uar_err e = UAR_OK;

	if (!r) /* never: check found it, or it was put just now */
		return UAR_EINTERNAL;
	if (!op->has_run && (r->terminal || !r->started || !r->first_seq))
		e = sq_run(ap->c, SQ_RUN_MOVE,
			   SQ_VALS(SQ_I(r->rid), SQ_I(at.first_seq), SQ_I(at.last_seq),
				   SQ_I(at.last_run_seq), SQ_I(at.first_part)),
			   error);
	if (!e) {
		r->first_part = at.first_part;
		r->first_seq = at.first_seq;
		r->last_run_seq = at.last_run_seq;
	}
	return e;
}

static uar_err put_run(struct sq_apply *ap, struct sq_op *op, struct found *f,
		       struct uar_error *error)
{
	const struct uar_run_row *r = &op->run;
	const struct uar_run_listed *l = &r->listed;
	int64_t rid = f->run ? f->run->rid : ap->next_rid;
	struct place at = place_after(op, f);
	struct run fresh = { .rid = rid,
			     .sid = f->session->sid,
			     .key = op->run_key,
			     .spine = { r->thread_id, r->turn_id, r->task_id, UAR_STR_NONE } };
	uar_err e =
		sq_run(ap->c, f->run ? SQ_RUN_SET : SQ_RUN_ADD,
		       SQ_VALS(SQ_I(rid), SQ_I(f->oid), SQ_I(f->session->sid), SQ_T(r->run_id),
			       SQ_T(r->thread_id), SQ_T(r->turn_id), SQ_T(r->task_id),
			       SQ_T(r->plugin_id), SQ_T(r->entry_id), SQ_T(r->agent_id),
			       SQ_T(r->root_run_id), SQ_T(r->parent_run_id), SQ_T(r->status),
			       SQ_I(r->terminal), SQ_I(r->attempt), SQ_I(r->created_us),
			       SQ_I(r->updated_us), SQ_I(r->started_us), SQ_I(r->finished_us),
			       SQ_T(r->detail), SQ_I(sq_sum_run(rid, f->oid, f->session->sid, r)),
			       SQ_I(at.first_seq), SQ_I(at.last_seq), SQ_I(at.last_run_seq),
			       SQ_I(at.first_part), SQ_T(l->title), SQ_T(l->error_code),
			       SQ_T(l->waits), SQ_I(l->due_us), SQ_I(l->rank), SQ_I(l->cost_micros),
			       SQ_I(l->input_tokens), SQ_I(l->output_tokens)),
		       error);

	if (e)
		return e;
	if (!f->run) {
		ap->next_rid++;
		ap->head.items++;
		sq_top_add(&ap->run, r->run_id);
		e = remember_run(ap, &fresh, &f->run);
	}
	if (!e) {
		f->run->started = r->started_us != 0;
		f->run->terminal = r->terminal;
		snprintf(f->run->status, sizeof f->run->status, "%.*s", UAR_FMT(r->status));
	}
	return e;
}

static uar_err add_thread(struct sq_apply *ap, uar_str thread, const struct found *f,
			  struct uar_error *error)
{
	uint32_t sum = sq_sum_thread(f->oid, thread, f->session->sid);
	uar_err e = sq_run(ap->c, SQ_THREAD_ADD,
			   SQ_VALS(SQ_I(f->oid), SQ_T(thread), SQ_I(f->session->sid), SQ_I(sum)),
			   error);

	if (e)
		return e;
	ap->head.items += sqlite3_changes(ap->c->db);
	if (ap->owner.oid == f->oid)
		sq_top_add(&ap->owner.thread, thread);
	return UAR_OK;
}

static uar_err add_key(struct sq_apply *ap, const struct sq_op *op, const struct found *f,
		       struct uar_error *error)
{
	uar_err e = sq_run(ap->c, SQ_KEY_DROP,
			   SQ_VALS(SQ_I(f->oid), SQ_T(op->key.scope), SQ_T(op->key.key)), error);

	if (e)
		return e;
	ap->head.items -= sqlite3_changes(ap->c->db);
	e = sq_run(ap->c, SQ_KEY_ADD,
		   SQ_VALS(SQ_I(f->oid), SQ_T(op->key.scope), SQ_T(op->key.key),
			   SQ_T(op->key.fingerprint), SQ_T(op->key.made),
			   SQ_I(sq_sum_key(f->oid, &op->key))),
		   error);

	ap->head.items += !e;
	return e;
}

/* The spine is written where it is not the run's own: then `ids` is set. */
static uar_err row_ids(struct sq_apply *ap, const struct sq_op *op, const struct sq_piece *p,
		       const struct run *r, uar_str *out)
{
	uar_err e;

	*out = UAR_STR_NONE;
	if (uar_str_eq(p->spine.thread, r->spine.thread) &&
	    uar_str_eq(p->spine.turn, r->spine.turn) && uar_str_eq(p->spine.task, r->spine.task) &&
	    uar_str_eq(p->spine.attempt, op->run_id))
		return UAR_OK;
	uar_buf_clear(&ap->ids);
	e = sq_spine_write(&ap->ids, &p->spine);
	if (!e)
		*out = uar_buf_str(&ap->ids);
	return e;
}

/* Once a session and part, so that the session's newest row is found at once. */
static uar_err move_session(struct sq_apply *ap, struct session *s, int64_t part,
			    struct uar_error *error)
{
	uar_err e = sq_run(ap->c, SQ_SESSION_MOVE, SQ_VALS(SQ_I(s->sid), SQ_I(part)), error);

	if (!e)
		s->last_part = part;
	return e;
}

static uar_err add_row(struct sq_apply *ap, const struct sq_op *op, const struct sq_piece *p,
		       struct found *f, struct uar_error *error)
{
	struct sq_log_row r = {
		.pos = ap->head.pos + 1,
		.sid = f->session->sid,
		.seq = (int64_t)p->seq,
		.rid = p->run_seq && f->run ? f->run->rid
					    : 0, /* check() saw to it that it is there */
		.run_seq = (int64_t)p->run_seq,
		.n = p->n,
		.at = p->at,
		.lead = p->lead,
		.tail = p->tail,
		.body = uar_str_n(op->text.p + p->body, p->body_n),
		.prev = f->session->last_sum,
	};
	uar_err e = r.rid ? row_ids(ap, op, p, f->run, &r.ids) : UAR_OK;

	if (e)
		return uar_error_set(error, e, "the ids of a row");
	r.sum = sq_log_sum(&r);
	e = sq_run(ap->c, SQ_LOG_ADD,
		   SQ_VALS(SQ_I(r.pos), SQ_I(r.sid), SQ_I(r.seq), r.rid ? SQ_I(r.rid) : SQ_N,
			   r.rid ? SQ_I(r.run_seq) : SQ_N, SQ_I(r.n), SQ_I(r.at),
			   r.ids.n ? SQ_T(r.ids) : SQ_N, SQ_T(r.body), SQ_I(r.prev), SQ_I(r.sum),
			   SQ_I(r.lead), SQ_I(r.tail)),
		   error);
	if (!e && r.pos >> SQ_PART_BITS != f->session->last_part)
		e = move_session(ap, f->session, r.pos >> SQ_PART_BITS, error);
	if (e)
		return e;
	f->session->last_sum = ap->last_sum = (uint32_t)r.sum;
	f->session->last_seq = p->seq + p->n - 1;
	ap->head.pos++;
	ap->head.log_rows++;
	ap->head.acc += sq_log_acc(&r);
	return UAR_OK;
}

/* What is neither events nor a run: the key, rows of declared kinds, evictions. */
static uar_err write_beside(struct sq_apply *ap, struct sq_op *op, struct found *f,
			    struct uar_error *error)
{
	uar_err e = op->has_key ? add_key(ap, op, f, error) : UAR_OK;

	if (!e)
		e = sq_rows_write(ap, op, f->oid, f->session->sid, error);
	return e ? e : sq_evict_write(ap, op, f->oid, error);
}

static uar_err write_all(struct sq_apply *ap, struct sq_op *op, struct found *f,
			 struct uar_error *error)
{
	uar_err e = f->oid ? UAR_OK : add_owner(ap, op, f, error);

	f->part = (ap->head.pos + 1) >> SQ_PART_BITS;
	if (!e && !f->session)
		e = add_session(ap, op, f, error);
	if (!e && op->has_run)
		e = put_run(ap, op, f, error);
	for (size_t i = 0; i < op->threads.n && !e; i++)
		e = add_thread(ap, op->threads.at[i], f, error);
	for (size_t i = 0; i < op->piece_count && !e; i++)
		e = add_row(ap, op, &op->pieces[i], f, error);
	if (!e && op->span.run_seq)
		e = move_run(ap, op, f, error);
	return e ? e : write_beside(ap, op, f, error);
}

uar_err sq_apply_append(struct sq_apply *ap, struct sq_op *op, struct uar_error *error)
{
	struct found f = { 0 };
	uar_err e;

	trim(&ap->sessions, session_key);
	trim(&ap->runs, run_key);
	op->a->err = UAR_OK;
	e = check(ap, op, &f, error);
	if (!e && !op->a->err)
		e = write_all(ap, op, &f, error);
	if (op->has_run && op->run.terminal) { /* what is said after its end is rare */
		sq_cache_drop(&ap->runs, op->run_key);
		sq_cache_drop(&ap->sessions, op->session_key);
	}
	if (e && !error->code)
		uar_error_set(error, e, "%s", uar_err_text(e));
	return e;
}

uar_err sq_apply_head(struct sq_apply *ap, struct uar_error *error)
{
	const struct sq_head *h = &ap->head;

	return sq_run(ap->c, SQ_HEAD_SET,
		      SQ_VALS(SQ_I(h->pos), SQ_I(h->log_rows), SQ_I(h->acc), SQ_I(h->items)),
		      error);
}
