/* rows.c - events as rows of the log, and back.
 *
 * A row holds consecutive events of one append as a JSON array: all without a run,
 * or some of one run, with those before and after them that are not the run's. What
 * all of them share is not in the JSON: the owner and session (by sid), the run and
 * its thread, turn, task and attempt (by rid, or in the column `ids` where an event
 * differs from its run's row), the sequences, which count up from the row's, and the
 * time where it is that of the row, as it is for most: an append is made in one
 * moment. `sum` covers every column and the sum of the session's previous row, so
 * that a row that was changed, dropped or moved is found. */
#include "store/sqlite/sqlite_int.h"

#include "base/crc32c.h"
#include "store/limits.h"

enum {
	OMIT_SESSION = UAR_ID_BIT(UAR_ID_RUNTIME) | UAR_ID_BIT(UAR_ID_TENANT) |
		       UAR_ID_BIT(UAR_ID_WORKSPACE) | UAR_ID_BIT(UAR_ID_USER) |
		       UAR_ID_BIT(UAR_ID_SESSION),
	OMIT_RUN = OMIT_SESSION | UAR_ID_BIT(UAR_ID_THREAD) | UAR_ID_BIT(UAR_ID_TURN) |
		   UAR_ID_BIT(UAR_ID_TASK) | UAR_ID_BIT(UAR_ID_RUN) | UAR_ID_BIT(UAR_ID_ATTEMPT),
};

static struct sq_spine spine_of(const struct uar_event *ev)
{
	return (struct sq_spine){ ev->ids[UAR_ID_THREAD], ev->ids[UAR_ID_TURN],
				  ev->ids[UAR_ID_TASK], ev->ids[UAR_ID_ATTEMPT] };
}

static bool same_spine(const struct sq_spine *a, const struct sq_spine *b)
{
	return uar_str_eq(a->thread, b->thread) && uar_str_eq(a->turn, b->turn) &&
	       uar_str_eq(a->task, b->task) && uar_str_eq(a->attempt, b->attempt);
}

/* Counts the event in; false: it needs a row of its own. */
static bool join_row(struct sq_piece *p, const struct uar_event *ev)
{
	struct sq_spine spine = spine_of(ev);

	if (!ev->run_sequence) {
		++*(p->run_seq ? &p->tail : &p->lead);
	} else if (!p->run_seq) {
		p->run_seq = ev->run_sequence;
		p->spine = spine;
	} else if (p->tail || !same_spine(&p->spine, &spine)) {
		return false;
	}
	p->n++;
	return true;
}

static bool copy_spine(struct sq_op *op, struct sq_spine *s)
{
	bool usual = uar_str_eq(s->attempt, op->run_id);

	s->thread = uar_arena_str(&op->arena, s->thread);
	s->turn = uar_arena_str(&op->arena, s->turn);
	s->task = uar_arena_str(&op->arena, s->task);
	s->attempt = usual ? op->run_id : uar_arena_str(&op->arena, s->attempt);
	return s->thread.p && s->turn.p && s->task.p && s->attempt.p;
}

/* Writes as many events as one row takes. */
static uar_err encode_row(struct sq_op *op, const struct uar_event *ev, size_t n,
			  struct sq_piece *out)
{
	struct uar_jw w = uar_jw_begin(&op->text);
	const struct uar_event *end = ev + n;
	size_t start = op->text.n;
	uar_err e;

	*out = (struct sq_piece){ .body = start, .seq = ev->sequence, .at = ev->time_us };
	uar_jw_arr(&w, NULL);
	for (; ev < end && op->text.n - start < UAR_LIMIT_STORE_ROW_BYTES; ev++) {
		uint32_t omit = ev->run_sequence ? OMIT_RUN : OMIT_SESSION;

		if (!join_row(out, ev))
			break;
		uar_event_write_stored(&w, ev,
				       ev->time_us == out->at ? omit | UAR_OMIT_TIME : omit);
	}
	uar_jw_close(&w);
	e = uar_jw_end(&w);
	if (e)
		return e;
	if (!out->run_seq)
		out->lead = 0; /* there is nothing that they could come before */
	out->body_n = op->text.n - start;
	return out->run_seq && !copy_spine(op, &out->spine) ? UAR_ENOMEM : UAR_OK;
}

/* At worst each event has a row of its own. */
static uar_err encode(struct sq_op *op, const struct uar_append *a)
{
	uar_err e;

	op->pieces = uar_arena_alloc(&op->arena, a->event_count * sizeof *op->pieces);
	if (!op->pieces)
		return UAR_ENOMEM;
	op->piece_count = 0;
	for (size_t i = 0; i < a->event_count;) {
		struct sq_piece *p = &op->pieces[op->piece_count++];

		e = encode_row(op, &a->events[i], a->event_count - i, p);
		if (e)
			return e;
		i += p->n;
		if (p->run_seq) {
			if (!op->span.run_seq) {
				op->span.run_seq = p->run_seq;
				op->span.first_seq = p->seq + p->lead;
			}
			op->span.last_run_seq = p->run_seq + p->n - p->lead - p->tail - 1;
			op->span.last_seq = p->seq + p->n - p->tail - 1;
		}
	}
	return UAR_OK;
}

static uar_err note_threads(struct sq_op *op, const struct uar_append *a)
{
	size_t n = 0;

	for (size_t i = 0; i < a->event_count; i++)
		n += a->events[i].cls == UAR_EV_THREAD_STARTED;
	op->threads.at = n ? uar_arena_alloc(&op->arena, n * sizeof *op->threads.at) : NULL;
	if (n && !op->threads.at)
		return UAR_ENOMEM;
	for (size_t i = 0; i < a->event_count; i++) {
		uar_str *t;

		if (a->events[i].cls != UAR_EV_THREAD_STARTED)
			continue;
		t = &op->threads.at[op->threads.n];
		*t = uar_arena_str(&op->arena, a->events[i].ids[UAR_ID_THREAD]);
		if (!t->p)
			return UAR_ENOMEM;
		op->threads.n++;
	}
	return UAR_OK;
}

static uar_str next_part(uar_str *key, size_t n)
{
	uar_str part = uar_str_n(key->p, n);

	*key = uar_str_from(*key, n + 1);
	return part;
}

/* The ids are parts of the keys that they are looked up by. */
static bool copy_ids(struct sq_op *op, const struct uar_append *a)
{
	uar_str run = uar_store_append_run(a), at;

	op->session_key = at = uar_store_key(&op->arena, &a->owner, a->session_id);
	op->run_key = uar_store_key(&op->arena, &a->owner, run);
	if (!op->session_key.p || !op->run_key.p)
		return false;
	op->owner.tenant = next_part(&at, a->owner.tenant.n);
	op->owner.workspace = next_part(&at, a->owner.workspace.n);
	op->owner.user = next_part(&at, a->owner.user.n);
	op->session_id = at;
	op->run_id = uar_str_from(op->run_key, op->run_key.n - run.n);
	return true;
}

uar_err sq_op_fill(struct sq_op *op, const struct uar_append *a)
{
	struct uar_arena *m = &op->arena;

	op->after = a->after;
	op->event_count = a->event_count;
	op->at = a->events[0].time_us;
	op->has_run = a->run != NULL;
	op->has_key = a->key != NULL;
	op->span = (struct sq_span){ 0 };
	op->threads.n = 0;
	op->evict.n = a->evict_count;
	op->rows.n = a->row_count;
	if (!copy_ids(op, a) || (a->run && !uar_run_row_copy(m, a->run, &op->run)) ||
	    (a->key && !uar_store_copy_key(m, a->key, &op->key)) ||
	    !uar_store_copy_ids(m, a->evict, a->evict_count, &op->evict.at) ||
	    !uar_store_copy_rows(m, a->rows, a->row_count, &op->rows.at))
		return UAR_ENOMEM;
	uar_err e = note_threads(op, a);
	return e ? e : encode(op, a);
}

/* --- sums -------------------------------------------------------------------- */
uint32_t sq_sum_ints(uint32_t sum, const int64_t *v, size_t n)
{
	return uar_crc32c(sum, v, n * sizeof *v);
}

/* The length first, so that bytes cannot wander from one column to the next. */
uint32_t sq_sum_str(uint32_t sum, uar_str s)
{
	int64_t n = (int64_t)s.n;

	sum = sq_sum_ints(sum, &n, 1);
	return s.n ? uar_crc32c(sum, s.p, s.n) : sum;
}

uint32_t sq_log_sum(const struct sq_log_row *r)
{
	const int64_t v[] = { r->prev, r->pos, r->sid, r->seq, r->rid, r->run_seq, r->n, r->at };
	const int64_t outside[] = { r->lead, r->tail };
	uint32_t sum = sq_sum_str(sq_sum_str(sq_sum_ints(0, v, ARRAY_LEN(v)), r->ids), r->body);

	/* Rows from before version 3 have none, and keep their sums. */
	return r->lead || r->tail ? sq_sum_ints(sum, outside, ARRAY_LEN(outside)) : sum;
}

uint64_t sq_log_acc(const struct sq_log_row *r)
{
	uint64_t x = (uint64_t)r->pos << 32 ^ (uint64_t)r->sum;

	x = (x ^ x >> 31) * 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
	return x ^ x >> 32;
}

uint32_t sq_sum_owner(int64_t oid, const struct uar_owner *o)
{
	return sq_sum_str(sq_sum_str(sq_sum_str(sq_sum_ints(0, &oid, 1), o->tenant), o->workspace),
			  o->user);
}

uint32_t sq_sum_session(int64_t sid, int64_t oid, uar_str session_id, int64_t created)
{
	const int64_t v[] = { sid, oid, created };

	return sq_sum_str(sq_sum_ints(0, v, ARRAY_LEN(v)), session_id);
}

uint32_t sq_sum_thread(int64_t oid, uar_str thread_id, int64_t sid)
{
	const int64_t v[] = { oid, sid };

	return sq_sum_str(sq_sum_ints(0, v, ARRAY_LEN(v)), thread_id);
}

uint32_t sq_sum_key(int64_t oid, const struct uar_key_row *k)
{
	uint32_t sum = sq_sum_str(sq_sum_str(sq_sum_ints(0, &oid, 1), k->scope), k->key);

	return sq_sum_str(sq_sum_str(sum, k->fingerprint), k->made);
}

/* What version 5 has added. Rows from before have none of it, and keep their sums. */
static uint32_t sum_of_lists(uint32_t sum, const struct uar_run_listed *l)
{
	const int64_t v[] = { l->due_us, l->rank, l->cost_micros, l->input_tokens,
			      l->output_tokens };
	bool any = l->title.n || l->error_code.n || l->waits.n;

	for (size_t i = 0; i < ARRAY_LEN(v); i++)
		any |= v[i] != 0;
	if (!any)
		return sum;
	sum = sq_sum_str(sq_sum_str(sq_sum_str(sum, l->title), l->error_code), l->waits);
	return sq_sum_ints(sum, v, ARRAY_LEN(v));
}

uint32_t sq_sum_run(int64_t rid, int64_t oid, int64_t sid, const struct uar_run_row *r)
{
	const int64_t v[] = { rid,	     oid,	    sid,
			      r->terminal,   r->attempt,    r->created_us,
			      r->updated_us, r->started_us, r->finished_us };
	const uar_str s[] = { r->run_id,	r->thread_id, r->turn_id,  r->task_id,
			      r->plugin_id,	r->entry_id,  r->agent_id, r->root_run_id,
			      r->parent_run_id, r->status,    r->detail };
	uint32_t sum = sq_sum_ints(0, v, ARRAY_LEN(v));

	for (size_t i = 0; i < ARRAY_LEN(s); i++)
		sum = sq_sum_str(sum, s[i]);
	sum = sum_of_lists(sum, &r->listed);
	return r->evicted ? sq_sum_evicted(sum) : sum;
}

uint32_t sq_sum_evicted(uint32_t sum)
{
	return sq_sum_str(sum, UAR_STR("evicted"));
}

/* --- reading --------------------------------------------------------------------- */
void sq_log_get(sqlite3_stmt *st, struct sq_log_row *out)
{
	*out = (struct sq_log_row){
		.pos = sqlite3_column_int64(st, 0),
		.sid = sqlite3_column_int64(st, 1),
		.seq = sqlite3_column_int64(st, 2),
		.rid = sqlite3_column_int64(st, 3),
		.run_seq = sqlite3_column_int64(st, 4),
		.n = sqlite3_column_int64(st, 5),
		.at = sqlite3_column_int64(st, 6),
		.ids = sq_text(st, 7),
		.body = sq_text(st, 8),
		.prev = sqlite3_column_int64(st, 9),
		.sum = sqlite3_column_int64(st, 10),
		.lead = sqlite3_column_int64(st, 11),
		.tail = sqlite3_column_int64(st, 12),
	};
}

uar_err sq_spine_write(struct uar_buf *out, const struct sq_spine *s)
{
	struct uar_jw w = uar_jw_begin(out);

	uar_jw_obj(&w, NULL);
	uar_jw_str_or_null(&w, "thread_id", s->thread);
	uar_jw_str_or_null(&w, "turn_id", s->turn);
	uar_jw_str_or_null(&w, "task_id", s->task);
	uar_jw_str_or_null(&w, "attempt_id", s->attempt);
	uar_jw_close(&w);
	return uar_jw_end(&w);
}

uar_err sq_spine_read(uar_str json, struct uar_arena *arena, struct sq_spine *out,
		      struct uar_error *error)
{
	const struct uar_json *j;
	uar_err e = uar_json_parse(json, NULL, arena, &j, error);

	if (e)
		return e == UAR_ENOMEM ? e : UAR_ECORRUPT;
	*out = (struct sq_spine){
		uar_json_str(uar_json_get(j, UAR_STR("thread_id")), UAR_STR_NONE),
		uar_json_str(uar_json_get(j, UAR_STR("turn_id")), UAR_STR_NONE),
		uar_json_str(uar_json_get(j, UAR_STR("task_id")), UAR_STR_NONE),
		uar_json_str(uar_json_get(j, UAR_STR("attempt_id")), UAR_STR_NONE),
	};
	return UAR_OK;
}

static uar_err corrupt(const struct sq_log_row *r, const char *why, struct uar_error *error)
{
	char reason[160];

	snprintf(reason, sizeof reason, "%s", why);
	uar_error_set(error, UAR_ECORRUPT, "row %lld of the log (events from sequence %lld): %s",
		      (long long)r->pos, (long long)r->seq, reason);
	uar_error_where(error, "log/%lld", (long long)r->pos);
	return UAR_ECORRUPT;
}

/* What the run's events leave out: the row's time and the base's ids, or its own where
 * it has some. */
static uar_err row_base(const struct sq_log_row *r, const struct sq_decode *d,
			struct uar_event *out, struct uar_error *error)
{
	struct sq_spine s;
	uar_err e;

	*out = *d->base;
	out->time_us = r->at;
	if (!r->ids.n)
		return UAR_OK;
	e = sq_spine_read(r->ids, d->arena, &s, error);
	if (e)
		return e;
	out->ids[UAR_ID_THREAD] = s.thread;
	out->ids[UAR_ID_TURN] = s.turn;
	out->ids[UAR_ID_TASK] = s.task;
	out->ids[UAR_ID_ATTEMPT] = s.attempt;
	return UAR_OK;
}

static uar_err decode_events(const struct sq_log_row *r, const struct sq_decode *d,
			     const struct uar_json *events, size_t *out_n, struct uar_error *error)
{
	const struct uar_json *j = uar_json_at(events, d->skip);
	size_t lead = (size_t)r->lead, end = (size_t)(r->n - r->tail), n = 0;
	struct uar_event base, outside = *d->outside;
	uar_err e = row_base(r, d, &base, error);

	outside.time_us = r->at;
	for (; j && n < d->max && !e; j = j->next, n++) {
		struct uar_event *ev = &d->out[n];
		size_t at = d->skip + n;
		bool own = r->rid && at >= lead && at < end;

		e = uar_event_read(j, own ? &base : &outside, d->arena, ev, error);
		ev->sequence = (uint64_t)r->seq + at;
		ev->run_sequence = own ? (uint64_t)r->run_seq + at - lead : 0;
	}
	if (!e)
		*out_n = n;
	return e;
}

static bool counts_fit(const struct sq_log_row *r)
{
	if (!r->rid)
		return !r->lead && !r->tail;
	return r->lead >= 0 && r->tail >= 0 && r->lead < r->n && r->tail < r->n - r->lead;
}

uar_err sq_log_decode(const struct sq_log_row *r, const struct sq_decode *d, size_t *out_n,
		      struct uar_error *error)
{
	const struct uar_json *events;
	uar_err e;

	if (sq_log_sum(r) != r->sum)
		return corrupt(r, "its checksum does not match", error);
	e = uar_json_parse(r->body, NULL, d->arena, &events, error);
	if (!e &&
	    (events->kind != UAR_JSON_ARRAY || events->count != (uint64_t)r->n || !counts_fit(r)))
		return corrupt(r, "not the events it says it has", error);
	if (!e)
		e = decode_events(r, d, events, out_n, error);
	if (e && e != UAR_ENOMEM)
		return corrupt(r, uar_error_text(error), error);
	return e;
}
