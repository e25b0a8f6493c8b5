/* read.c - reads in memory, answered in the turn after they were asked. */
#include "memory_store/memory_int.h"

#include "store/limits.h"

/* Look-ups use the op's own arena, or the scratch, for the composed key. */
static void *find(struct mem *m, const struct uar_map *map, const struct uar_owner *o, uar_str id)
{
	uar_str key = uar_store_key(&m->scratch, o, id);
	void *found = key.p ? uar_map_get(map, key) : NULL;

	uar_arena_reset(&m->scratch);
	return found;
}

struct mem_run *mem_run_of(struct mem *m, const struct uar_owner *o, uar_str run_id)
{
	return find(m, &m->names.runs, o, run_id);
}

bool mem_key_is_free(struct mem *m, const struct uar_owner *o, const struct mem_key *k)
{
	const struct mem_run *run = mem_run_of(m, o, k->row.made);

	return run && run->row.evicted;
}

static struct mem_run *retained(struct mem *m, const struct uar_owner *o, uar_str run_id)
{
	struct mem_run *run = run_id.n ? mem_run_of(m, o, run_id) : NULL;

	return run && !run->row.evicted ? run : NULL;
}

static uar_err read_page(struct mem *m, struct uar_read *r)
{
	struct mem_run *run = retained(m, &r->owner, r->run_id);
	struct mem_session *s =
		r->run_id.n ? NULL : find(m, &m->names.sessions, &r->owner, r->session_id);
	struct uar_event **events = run ? run->events : s ? s->events : NULL;
	size_t count = run ? run->count : s ? s->count : 0, n;

	if (!run && !s)
		return UAR_ENOTFOUND;
	n = r->after < count ? count - r->after : 0;
	r->more = n > r->limit;
	n = r->more ? r->limit : n;
	r->events = uar_arena_alloc(&r->arena, (n ? n : 1) * sizeof *r->events);
	if (!r->events)
		return UAR_ENOMEM;
	for (size_t i = 0; i < n; i++)
		r->events[i] = *events[r->after + i];
	r->event_count = n;
	return UAR_OK;
}

static void answer_read(struct uar_task *t)
{
	struct uar_read *r = UAR_OWNER(t, struct uar_read, task);
	struct mem *m = r->internal;

	r->error = (struct uar_error){ 0 };
	r->event_count = 0;
	r->more = false;
	r->err = read_page(m, r);
	if (r->err == UAR_ENOTFOUND)
		uar_store_missing(r->run_id, r->session_id, &r->error);
	else if (r->err)
		uar_error_set(&r->error, r->err, "%s", uar_err_text(r->err));
	r->done(r);
}

static bool matches(uar_str filter, uar_str value)
{
	return !filter.n || uar_str_eq(filter, value);
}

static bool stands_right(const struct uar_runs_query *q, const struct uar_run_row *r)
{
	return (q->evicted || !r->evicted) && (!q->waiting || r->listed.waits.n) &&
	       (!q->live || !r->terminal);
}

static bool wanted(const struct uar_runs_query *q, const struct uar_run_row *r)
{
	return stands_right(q, r) && uar_str_starts(r->run_id, q->prefix) &&
	       uar_owner_eq(&q->owner, &r->owner) && matches(q->task_id, r->task_id) &&
	       matches(q->plugin_id, r->plugin_id) && matches(q->entry_id, r->entry_id) &&
	       matches(q->agent_id, r->agent_id) && matches(q->status, r->status) &&
	       matches(q->root_run_id, r->root_run_id) && matches(q->session_id, r->session_id) &&
	       matches(q->thread_id, r->thread_id);
}

static bool add_row(struct uar_runs_query *q, const struct mem_run *run)
{
	struct uar_run_row *row = &q->rows[q->row_count];

	if (!uar_run_row_copy(&q->arena, &run->row, row))
		return false;
	row->last_run_sequence = run->count;
	q->row_count++;
	return true;
}

static uar_err list_runs(struct mem *m, struct uar_runs_query *q)
{
	struct mem_run *before = q->before.n ? find(m, &m->names.runs, &q->owner, q->before) : NULL;
	size_t i = before ? before->number - 1 : m->run_count;

	if (q->before.n && !before)
		return UAR_ECURSOR;
	q->rows = uar_arena_alloc(&q->arena, q->limit * sizeof *q->rows);
	if (!q->rows)
		return UAR_ENOMEM;
	while (i-- > 0) {
		if (!wanted(q, &m->all[i]->row))
			continue;
		q->more = q->row_count == q->limit;
		if (q->more)
			break;
		if (!add_row(q, m->all[i]))
			return UAR_ENOMEM;
	}
	return UAR_OK;
}

static bool is_retained_end(const struct uar_runs_query *q, const struct uar_run_row *r)
{
	return r->terminal && !r->evicted && uar_owner_eq(&q->owner, &r->owner);
}

static bool ended_before(const struct mem_run *a, const struct mem_run *b)
{
	return a->row.finished_us != b->row.finished_us ? a->row.finished_us < b->row.finished_us
							: a->number < b->number;
}

/* The one that ended first of those that ended after `last`. */
static const struct mem_run *next_ended(const struct mem *m, const struct uar_runs_query *q,
					const struct mem_run *last)
{
	const struct mem_run *best = NULL;

	for (size_t i = 0; i < m->run_count; i++) {
		const struct mem_run *x = m->all[i];

		if (is_retained_end(q, &x->row) && (!last || ended_before(last, x)) &&
		    (!best || ended_before(x, best)))
			best = x;
	}
	return best;
}

static uar_err runs_beyond(struct mem *m, struct uar_runs_query *q)
{
	const struct mem_run *run = NULL;
	size_t count = 0;

	for (size_t i = 0; i < m->run_count; i++)
		count += is_retained_end(q, &m->all[i]->row);
	q->rows = uar_arena_alloc(&q->arena, q->limit * sizeof *q->rows);
	if (!q->rows)
		return UAR_ENOMEM;
	for (; count > q->beyond && (run = next_ended(m, q, run)); count--) {
		q->more = q->row_count == q->limit;
		if (q->more)
			break;
		if (!add_row(q, run))
			return UAR_ENOMEM;
	}
	return UAR_OK;
}

static uar_err one_run(struct mem *m, struct uar_runs_query *q)
{
	struct mem_run *run = retained(m, &q->owner, q->run_id);

	if (!run)
		return UAR_ENOTFOUND;
	q->rows = uar_arena_alloc(&q->arena, sizeof *q->rows);
	return q->rows && add_row(q, run) ? UAR_OK : UAR_ENOMEM;
}

static void answer_runs(struct uar_task *t)
{
	struct uar_runs_query *q = UAR_OWNER(t, struct uar_runs_query, task);
	struct mem *m = q->internal;

	q->error = (struct uar_error){ 0 };
	q->row_count = 0;
	q->more = false;
	q->found.total = 0;
	q->found.partial = false;
	q->err = q->find && uar_run_find_any(q->find) ? UAR_ENOTIMPL
		 : q->run_id.n			      ? one_run(m, q)
		 : q->beyond			      ? runs_beyond(m, q)
						      : list_runs(m, q);
	if (q->err == UAR_ENOTFOUND)
		uar_store_missing(q->run_id, UAR_STR_NONE, &q->error);
	else if (q->err)
		uar_error_set(&q->error, q->err, "%s", uar_err_text(q->err));
	if (q->err)
		q->row_count = 0;
	q->done(q);
}

static void answer_thread(struct uar_task *t)
{
	struct uar_thread_query *q = UAR_OWNER(t, struct uar_thread_query, task);
	struct mem *m = q->internal;
	struct mem_thread *th =
		q->thread_id.n ? find(m, &m->names.threads, &q->owner, q->thread_id) : NULL;
	struct mem_session *s = th ? th->session
				: q->thread_id.n
					? NULL
					: find(m, &m->names.sessions, &q->owner, q->session_id);

	q->error = (struct uar_error){ 0 };
	q->err = s ? UAR_OK : uar_error_set(&q->error, UAR_ENOTFOUND, "no such thread or session");
	q->found_session[0] = 0;
	q->last_sequence = s ? s->count : 0;
	if (s)
		snprintf(q->found_session, sizeof q->found_session, "%.*s", UAR_FMT(s->session_id));
	q->done(q);
}

/* Reads are answered in the next turn, in order: each task's fn is its answer. */
void mem_answer_all(struct uar_task *t)
{
	struct mem *m = UAR_OWNER(t, struct mem, read_task);
	struct uar_list now;

	uar_list_init(&now);
	uar_list_move_all(&m->reads, &now);
	while (!uar_list_empty(&now)) {
		struct uar_task *read = UAR_OWNER(now.next, struct uar_task, node);

		uar_list_remove(&read->node);
		m->pending--;
		m->asked--;
		m->stats.reads++;
		read->fn(read);
	}
	mem_maybe_drained(m);
}

uar_err mem_ask(struct mem *m, struct uar_task *t, uar_task_fn *answer)
{
	if (m->draining)
		return UAR_EDRAINING;
	if (m->asked >= UAR_LIMIT_READ_QUEUE)
		return UAR_EBUSY;
	t->fn = answer;
	uar_list_add_last(&m->reads, &t->node);
	m->pending++;
	m->asked++;
	uar_post(m->sched, &m->read_task);
	return UAR_OK;
}

uar_err mem_read(struct uar_store *base, struct uar_read *r)
{
	uar_err e = uar_store_check_read(r);

	r->internal = mem_of(base);
	return e ? e : mem_ask(mem_of(base), &r->task, answer_read);
}

uar_err mem_runs(struct uar_store *base, struct uar_runs_query *q)
{
	uar_err e = uar_store_check_runs(q);

	q->internal = mem_of(base);
	return e ? e : mem_ask(mem_of(base), &q->task, answer_runs);
}

uar_err mem_thread(struct uar_store *base, struct uar_thread_query *q)
{
	uar_err e = uar_store_check_thread(q);

	q->internal = mem_of(base);
	return e ? e : mem_ask(mem_of(base), &q->task, answer_thread);
}

static void answer_key(struct uar_task *t)
{
	struct uar_key_query *q = UAR_OWNER(t, struct uar_key_query, task);
	struct mem *m = q->internal;
	struct uar_key_row asked = { .scope = q->scope, .key = q->key };
	uar_str name = mem_key_name(&m->scratch, &q->owner, &asked);
	struct mem_key *k = name.p ? uar_map_get(&m->names.keys, name) : NULL;

	if (k && mem_key_is_free(m, &q->owner, k))
		k = NULL;
	q->error = (struct uar_error){ 0 };
	q->err = k	  ? UAR_OK
		 : name.p ? uar_error_set(&q->error, UAR_ENOTFOUND, "the key is free")
			  : uar_error_set(&q->error, UAR_ENOMEM, "%s", uar_err_text(UAR_ENOMEM));
	uar_arena_reset(&m->scratch);
	if (k) {
		snprintf(q->fingerprint, sizeof q->fingerprint, "%.*s",
			 UAR_FMT(k->row.fingerprint));
		snprintf(q->made, sizeof q->made, "%.*s", UAR_FMT(k->row.made));
	}
	q->done(q);
}

uar_err mem_key(struct uar_store *base, struct uar_key_query *q)
{
	q->internal = mem_of(base);
	return mem_ask(mem_of(base), &q->task, answer_key);
}
