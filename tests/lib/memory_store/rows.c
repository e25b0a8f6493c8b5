/* rows.c - rows of declared kinds, and sessions to look at, in memory. */
#include "event/limits.h"
#include "memory_store/memory_int.h"

static uar_str row_key(struct uar_arena *arena, const struct uar_owner *o, enum uar_row_kind kind,
		       uar_str id)
{
	uar_str both = uar_arena_printf(arena, "%s\x1f%.*s", uar_row_info[kind].name, UAR_FMT(id));

	return both.p ? uar_store_key(arena, o, both) : both;
}

/* --- writing --------------------------------------------------------------------------- */

/* The row is named twice in one append: the second writes over the first. */
static struct mem_row *planned_before(const struct mem_row_plan *p, size_t n, uar_str key)
{
	for (size_t i = 0; i < n; i++)
		if (p->at[i] && uar_str_eq(p->at[i]->key, key))
			return p->at[i];
	return NULL;
}

static uar_err check_run(struct mem *m, struct mem_op *op, const struct uar_row *r)
{
	const struct mem_run *run;

	if (r->kind != UAR_ROW_PUSH || r->removed)
		return UAR_OK;
	run = mem_run_of(m, &op->owner, r->parent);
	if (run && !run->row.evicted)
		return UAR_OK;
	return uar_error_set(&op->a->error, UAR_ENOTFOUND, "there is no run %.*s",
			     UAR_FMT(r->parent));
}

static uar_err plan_row(struct mem *m, struct mem_op *op, const struct mem_session *session,
			struct mem_row_plan *p, size_t i)
{
	const struct uar_row *r = &op->rows[i];
	uar_str key = row_key(&m->arena, &op->owner, r->kind, r->id);
	struct mem_row *found = key.p ? uar_map_get(&m->names.rows, key) : NULL;

	if (!key.p)
		return UAR_ENOMEM;
	if (found && (r->fresh || (found->session != session && !(r->removed && r->foreign))))
		return uar_error_set(&op->a->error, UAR_ECONFLICT, "%s %.*s exists already",
				     uar_row_info[r->kind].name, UAR_FMT(r->id));
	if (!found)
		found = planned_before(p, i, key);
	if (!found && !r->removed) {
		found = uar_arena_alloc(&m->arena, sizeof *found);
		p->is_new[i] = true;
		if (!found)
			return UAR_ENOMEM;
		found->key = key;
		uar_list_init(&found->node);
	}
	p->at[i] = found;
	return UAR_OK;
}

uar_err mem_rows_plan(struct mem *m, struct mem_op *op, const struct mem_session *session,
		      struct mem_row_plan *p)
{
	uar_err e = UAR_OK;

	if (!op->row_count)
		return UAR_OK;
	p->at = uar_arena_alloc(&m->arena, op->row_count * sizeof *p->at);
	p->is_new = uar_arena_alloc(&m->arena, op->row_count * sizeof *p->is_new);
	if (!p->at || !p->is_new)
		return UAR_ENOMEM;
	for (size_t i = 0; i < op->row_count && !e; i++) {
		e = check_run(m, op, &op->rows[i]);
		if (!e)
			e = plan_row(m, op, session, p, i);
	}
	return e;
}

uar_err mem_rows_name(struct mem *m, const struct mem_op *op, const struct mem_row_plan *p)
{
	for (size_t i = 0; i < op->row_count; i++) {
		uar_err e = p->is_new[i] ? uar_map_put(&m->names.rows, p->at[i]->key, p->at[i])
					 : UAR_OK;

		if (!e)
			continue;
		while (i-- > 0)
			if (p->is_new[i])
				uar_map_remove(&m->names.rows, p->at[i]->key);
		return e;
	}
	return UAR_OK;
}

void mem_rows_write(struct mem *m, const struct mem_op *op, struct mem_session *session,
		    const struct mem_row_plan *p)
{
	for (size_t i = 0; i < op->row_count; i++) {
		struct mem_row *row = p->at[i];

		if (!row)
			continue;
		if (op->rows[i].removed) {
			uar_map_remove(&m->names.rows, row->key);
			uar_list_remove(&row->node);
			continue;
		}
		row->row = op->rows[i];
		row->row.fresh = false;
		row->row.owner = op->owner;
		row->row.session_id = session->session_id;
		row->row.through = op->after + op->count;
		row->session = session;
		if (p->is_new[i])
			uar_list_add_last(&m->names.all_rows, &row->node);
	}
}

void mem_rows_evict(struct mem *m, const struct uar_run_row *run)
{
	UAR_LIST_EACH (it, &m->names.all_rows) {
		struct mem_row *row = UAR_OWNER(it, struct mem_row, node);

		if (row->row.kind != UAR_ROW_PUSH || !uar_str_eq(row->row.parent, run->run_id) ||
		    !uar_owner_eq(&row->row.owner, &run->owner))
			continue;
		uar_map_remove(&m->names.rows, row->key);
		uar_list_remove(&row->node);
	}
}

/* --- reading ----------------------------------------------------------------------------- */

static bool any_or(uar_str want, uar_str have)
{
	return !want.n || uar_str_eq(want, have);
}

static bool fits(const struct uar_rows_query *q, const struct uar_row *r)
{
	return r->kind == q->kind && uar_owner_eq(&r->owner, &q->owner) &&
	       any_or(q->session_id, r->session_id) && any_or(q->parent, r->parent) &&
	       any_or(q->tag, r->tag) && any_or(q->status, r->status) &&
	       (q->open == UAR_ROWS_ANY || r->open == (q->open == UAR_ROWS_OPEN));
}

static int compare_text(uar_str a, uar_str b)
{
	int d = memcmp(a.p, b.p, a.n < b.n ? a.n : b.n);

	return d ? d : (a.n > b.n) - (a.n < b.n);
}

/* < 0: a comes before b in the order of the list. */
static int compare_rows(enum uar_rows_order order, const struct uar_row *a, const struct uar_row *b)
{
	bool by_rank = order == UAR_ROWS_RANK;
	int64_t x = by_rank ? a->rank : b->updated_us, y = by_rank ? b->rank : a->updated_us;

	if (x != y)
		return x < y ? -1 : 1;
	return by_rank ? compare_text(a->id, b->id) : compare_text(b->id, a->id);
}

/* The first row of the list behind `last`; NULL: there is none. */
static const struct uar_row *row_behind(struct mem *m, const struct uar_rows_query *q,
					const struct uar_row *last)
{
	const struct uar_row *best = NULL;

	UAR_LIST_EACH (it, &m->names.all_rows) {
		const struct uar_row *r = &UAR_OWNER(it, struct mem_row, node)->row;

		if (fits(q, r) && (!last || compare_rows(q->order, last, r) < 0) &&
		    (!best || compare_rows(q->order, r, best) < 0))
			best = r;
	}
	return best;
}

static uar_err list_rows(struct mem *m, struct uar_rows_query *q)
{
	struct uar_row cursor = { .kind = q->kind };
	const struct uar_row *last = NULL;
	int64_t value = 0;

	if (q->after.n) {
		if (!uar_store_rows_cursor_read(q->after, &value, &cursor.id))
			return UAR_ECURSOR;
		cursor.rank = cursor.updated_us = value;
		last = &cursor;
	}
	for (const struct uar_row *r = NULL; q->count && (r = row_behind(m, q, r));)
		q->total++;
	q->rows = uar_arena_alloc(&q->arena, q->limit * sizeof *q->rows);
	if (!q->rows)
		return UAR_ENOMEM;
	while ((last = row_behind(m, q, last))) {
		if (q->row_count == q->limit) {
			q->more = true;
			break;
		}
		if (!uar_row_copy(&q->arena, last, &q->rows[q->row_count]))
			return UAR_ENOMEM;
		q->row_count++;
	}
	if (q->row_count)
		q->next = uar_store_rows_cursor(&q->arena, q->order, &q->rows[q->row_count - 1]);
	return q->row_count && !q->next.p ? UAR_ENOMEM : UAR_OK;
}

static uar_err one_row(struct mem *m, struct uar_rows_query *q)
{
	uar_str key = row_key(&m->scratch, &q->owner, q->kind, q->id);
	const struct mem_row *found = key.p ? uar_map_get(&m->names.rows, key) : NULL;
	uar_err e = found ? UAR_OK : key.p ? UAR_ENOTFOUND : UAR_ENOMEM;

	uar_arena_reset(&m->scratch);
	if (e)
		return e;
	q->rows = uar_arena_alloc(&q->arena, sizeof *q->rows);
	if (!q->rows || !uar_row_copy(&q->arena, &found->row, q->rows))
		return UAR_ENOMEM;
	q->row_count = 1;
	return UAR_OK;
}

static void answer_rows(struct uar_task *t)
{
	struct uar_rows_query *q = UAR_OWNER(t, struct uar_rows_query, task);
	struct mem *m = q->internal;

	q->error = (struct uar_error){ 0 };
	q->rows = NULL;
	q->row_count = 0;
	q->more = false;
	q->total = 0;
	q->next = UAR_STR_NONE;
	q->err = q->id.n ? one_row(m, q) : list_rows(m, q);
	if (q->err == UAR_ENOTFOUND)
		uar_error_set(&q->error, q->err, "no %s %.*s", uar_row_info[q->kind].name,
			      UAR_FMT(uar_str_utf8_prefix(q->id, UAR_LIMIT_ID_BYTES)));
	else if (q->err)
		uar_error_set(&q->error, q->err, "%s", uar_err_text(q->err));
	if (q->err)
		q->row_count = 0;
	q->done(q);
}

uar_err mem_rows(struct uar_store *base, struct uar_rows_query *q)
{
	uar_err e = uar_store_check_rows(q);

	q->internal = mem_of(base);
	return e ? e : mem_ask(mem_of(base), &q->task, answer_rows);
}

/* --- sessions --------------------------------------------------------------------------- */

static bool is_listed(const struct uar_sessions_query *q, const struct uar_owner *owner,
		      uar_str session_id)
{
	for (size_t i = 0; i < q->count; i++)
		if (uar_str_eq(q->sessions[i].session_id, session_id) &&
		    uar_owner_eq(&q->sessions[i].owner, owner))
			return true;
	return false;
}

static bool add_session(struct uar_sessions_query *q, const struct uar_owner *owner,
			uar_str session_id, int64_t due_us)
{
	struct uar_session_place *p;
	struct uar_session_place *more;

	if (is_listed(q, owner, session_id))
		return true;
	more = uar_arena_alloc(&q->arena, (q->count + 1) * sizeof *more);
	if (!more)
		return false;
	if (q->count)
		memcpy(more, q->sessions, q->count * sizeof *more);
	q->sessions = more;
	p = &q->sessions[q->count++];
	p->session_id = uar_arena_str(&q->arena, session_id);
	p->due_us = due_us;
	return p->session_id.p && uar_owner_copy(&q->arena, owner, &p->owner);
}

static const struct uar_row *next_due(struct mem *m, const struct uar_sessions_query *q)
{
	const struct uar_row *best = NULL;

	UAR_LIST_EACH (it, &m->names.all_rows) {
		const struct uar_row *r = &UAR_OWNER(it, struct mem_row, node)->row;

		if (r->due_us && (!best || r->due_us < best->due_us) &&
		    !is_listed(q, &r->owner, r->session_id))
			best = r;
	}
	return best;
}

static bool add_due_runs(struct mem *m, struct uar_sessions_query *q)
{
	for (size_t i = 0; i < m->run_count; i++) {
		const struct uar_run_row *r = &m->all[i]->row;

		if (r->listed.due_us && !r->terminal && q->count < q->limit &&
		    !add_session(q, &r->owner, r->session_id, r->listed.due_us))
			return false;
	}
	return true;
}

static bool list_due(struct mem *m, struct uar_sessions_query *q)
{
	const struct uar_row *r;

	while (q->count < q->limit && (r = next_due(m, q)))
		if (!add_session(q, &r->owner, r->session_id, r->due_us))
			return false;
	return add_due_runs(m, q);
}

static bool list_open(struct mem *m, struct uar_sessions_query *q)
{
	for (size_t i = 0; i < m->run_count; i++) {
		const struct uar_run_row *r = &m->all[i]->row;

		if (!r->terminal && !add_session(q, &r->owner, r->session_id, 0))
			return false;
	}
	UAR_LIST_EACH (it, &m->names.all_rows) {
		const struct uar_row *r = &UAR_OWNER(it, struct mem_row, node)->row;

		if (r->open && !add_session(q, &r->owner, r->session_id, 0))
			return false;
	}
	return true;
}

/* The whole list is made each time; the cursor says how much of it is passed over. */
static uar_err turn_page(struct uar_sessions_query *q)
{
	size_t skip = 0;

	for (size_t i = 0; i < q->after.n; i++)
		skip = skip * 10 + (size_t)(q->after.p[i] - '0');
	skip = skip < q->count ? skip : q->count;
	q->sessions = q->sessions ? q->sessions + skip : NULL;
	q->count -= skip;
	q->more = q->count > q->limit;
	q->count = q->more ? q->limit : q->count;
	q->next = uar_arena_printf(&q->arena, "%zu", skip + q->count);
	return q->next.p ? UAR_OK : UAR_ENOMEM;
}

static void answer_sessions(struct uar_task *t)
{
	struct uar_sessions_query *q = UAR_OWNER(t, struct uar_sessions_query, task);
	struct mem *m = q->internal;
	bool good;

	q->error = (struct uar_error){ 0 };
	q->sessions = NULL;
	q->count = 0;
	q->more = false;
	good = q->which == UAR_SESSIONS_DUE ? list_due(m, q) : list_open(m, q);
	q->err = good ? turn_page(q) : UAR_ENOMEM;
	if (q->err)
		uar_error_set(&q->error, q->err, "%s", uar_err_text(q->err));
	q->done(q);
}

uar_err mem_sessions(struct uar_store *base, struct uar_sessions_query *q)
{
	q->internal = mem_of(base);
	if (!q->limit || q->limit > UAR_LIMIT_LIST_PAGE)
		return UAR_EINVALID;
	return mem_ask(mem_of(base), &q->task, answer_sessions);
}
