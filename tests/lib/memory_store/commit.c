/* commit.c - appends in memory: copied when asked for, committed a turn later.
 *
 * Everything that an append needs is found and allocated before anything is
 * changed, so a refused one leaves no trace. */
#include "memory_store/memory_int.h"

#include "base/alloc.h"
#include "store/limits.h"

/* --- copying an append ------------------------------------------------------------- */
static bool copy_str(struct mem *m, uar_str *s)
{
	if (!s->n) {
		*s = UAR_STR_NONE;
		return true;
	}
	*s = uar_arena_str(&m->arena, *s);
	return s->p != NULL;
}

static bool copy_event(struct mem *m, struct uar_event *ev)
{
	bool good =
		copy_str(m, &ev->event_id) && copy_str(m, &ev->payload) && copy_str(m, &ev->refs);

	ev->type = uar_event_type(ev);
	ev->tree = NULL;
	good = good && copy_str(m, &ev->type);
	for (size_t i = 0; i < UAR_ID_COUNT && good; i++)
		good = copy_str(m, &ev->ids[i]);
	if (!ev->ids[UAR_ID_RUNTIME].n)
		ev->ids[UAR_ID_RUNTIME] = uar_str_c(m->base.runtime_id);
	return good;
}

static size_t append_bytes(const struct uar_append *a)
{
	size_t n = a->event_count * sizeof *a->events;

	for (size_t i = 0; i < a->event_count; i++)
		n += a->events[i].payload.n + a->events[i].refs.n;
	return n;
}

static struct mem_op *copy_append(struct mem *m, struct uar_append *a)
{
	struct mem_op *op = uar_arena_alloc(&m->arena, sizeof *op);
	bool good = op != NULL;

	if (!good)
		return NULL;
	op->a = a;
	op->store = m;
	op->after = a->after;
	op->count = a->event_count;
	op->bytes = append_bytes(a);
	op->evict_count = a->evict_count;
	op->row_count = a->row_count;
	op->has_run = a->run != NULL;
	op->has_key = a->key != NULL;
	op->session_id = uar_arena_str(&m->arena, a->session_id);
	op->run_id = uar_arena_str(&m->arena, uar_store_append_run(a));
	op->events = uar_arena_alloc(&m->arena, a->event_count * sizeof *op->events);
	good = op->events && op->session_id.p && op->run_id.p &&
	       uar_owner_copy(&m->arena, &a->owner, &op->owner) &&
	       (!a->run || uar_run_row_copy(&m->arena, a->run, &op->run)) &&
	       (!a->key || uar_store_copy_key(&m->arena, a->key, &op->key)) &&
	       uar_store_copy_ids(&m->arena, a->evict, a->evict_count, &op->evict) &&
	       uar_store_copy_rows(&m->arena, a->rows, a->row_count, &op->rows);
	for (size_t i = 0; i < a->event_count && good; i++) {
		op->events[i] = a->events[i];
		good = copy_event(m, &op->events[i]);
	}
	return good ? op : NULL;
}

/* --- committing ---------------------------------------------------------------------- */
/* What an append needs before anything is changed: so that it cannot fail half way. */
struct plan {
	struct mem_session *session;
	struct mem_run *run;
	struct mem_key *key;
	struct mem_thread **threads;
	size_t thread_count;
	struct mem_run *evict[UAR_LIMIT_EVICT_RUNS];
	struct mem_key *old_key; /* of an evicted run: it makes way */
	bool new_session, new_run;
	struct mem_row_plan rows;
};

static uar_str key_of(struct mem *m, const struct uar_owner *o, uar_str id)
{
	return uar_store_key(&m->arena, o, id);
}

uar_str mem_key_name(struct uar_arena *arena, const struct uar_owner *o,
		     const struct uar_key_row *k)
{
	uar_str both = uar_arena_printf(arena, "%.*s\x1f%.*s", UAR_FMT(k->scope), UAR_FMT(k->key));

	return both.p ? uar_store_key(arena, o, both) : both;
}

static uar_err grow(struct uar_event ***events, size_t *cap, size_t need)
{
	size_t n = *cap ? *cap : 16;
	struct uar_event **p;

	while (n < need)
		n *= 2;
	if (n == *cap)
		return UAR_OK;
	p = uar_realloc(*events, n * sizeof *p);
	if (!p)
		return UAR_ENOMEM;
	*events = p;
	*cap = n;
	return UAR_OK;
}

static uar_err refuse(struct mem_op *op, uar_err code, const char *why)
{
	return uar_error_set(&op->a->error, code, "%s", why);
}

static uar_err plan_key(struct mem *m, struct mem_op *op, struct plan *p)
{
	struct mem_key *taken;

	if (!op->has_key)
		return UAR_OK;
	p->key = uar_arena_alloc(&m->arena, sizeof *p->key);
	if (!p->key)
		return UAR_ENOMEM;
	p->key->row = op->key;
	p->key->key = mem_key_name(&m->arena, &op->owner, &op->key);
	if (!p->key->key.p)
		return UAR_ENOMEM;
	taken = uar_map_get(&m->names.keys, p->key->key);
	if (!taken)
		return UAR_OK;
	if (mem_key_is_free(m, &op->owner, taken)) {
		p->old_key = taken;
		return UAR_OK;
	}
	op->a->taken = taken->row;
	return refuse(op, UAR_EEXISTS, "the idempotency key is taken");
}

static uar_err plan_evict(struct mem *m, struct mem_op *op, struct plan *p)
{
	for (size_t i = 0; i < op->evict_count; i++) {
		p->evict[i] = mem_run_of(m, &op->owner, op->evict[i]);
		if (!p->evict[i])
			return refuse(op, UAR_ENOTFOUND, "the run to evict is not there");
		if (!p->evict[i]->row.terminal)
			return refuse(op, UAR_ESTATE, "the run to evict has not ended");
	}
	return UAR_OK;
}

static uar_err plan_session(struct mem *m, struct mem_op *op, struct plan *p)
{
	uar_str key = key_of(m, &op->owner, op->session_id);

	if (!key.p)
		return UAR_ENOMEM;
	p->session = uar_map_get(&m->names.sessions, key);
	if ((p->session ? p->session->count : 0) != op->after)
		return refuse(op, UAR_ECONFLICT, "the session has gone on");
	if (!p->session) {
		p->session = uar_arena_alloc(&m->arena, sizeof *p->session);
		p->new_session = true;
		if (!p->session)
			return UAR_ENOMEM;
		p->session->key = key;
		p->session->session_id = op->session_id;
	}
	return UAR_OK;
}

static uar_err judge_row(struct mem_op *op, const struct uar_run_row *old)
{
	if (!uar_str_eq(old->thread_id, op->run.thread_id) ||
	    !uar_str_eq(old->turn_id, op->run.turn_id) ||
	    !uar_str_eq(old->task_id, op->run.task_id))
		return refuse(op, UAR_EINVALID, "thread, turn and task of a run never change");
	if (old->terminal && (!op->run.terminal || !uar_str_eq(old->status, op->run.status)))
		return refuse(op, UAR_ESTATE, "the run has ended");
	return UAR_OK;
}

static uar_err judge_run(struct mem_op *op, const struct plan *p)
{
	const struct uar_run_row *old = &p->run->row;
	uint64_t first = 0;

	for (size_t i = 0; i < op->count && !first; i++)
		first = op->events[i].run_sequence;
	if (!p->new_run && old->evicted)
		return refuse(op, UAR_ENOTFOUND, "the run is evicted");
	if (!p->new_run && p->run->session != p->session)
		return refuse(op, UAR_EINVALID, "the run belongs to another session");
	if (first && first != p->run->count + 1)
		return refuse(op, UAR_ECONFLICT, "the run has gone on");
	return p->new_run || !op->has_run ? UAR_OK : judge_row(op, old);
}

static uar_err plan_run(struct mem *m, struct mem_op *op, struct plan *p)
{
	uar_str key;

	if (!op->run_id.n)
		return UAR_OK;
	key = key_of(m, &op->owner, op->run_id);
	if (!key.p)
		return UAR_ENOMEM;
	p->run = uar_map_get(&m->names.runs, key);
	if (!p->run && !op->has_run)
		return refuse(op, UAR_ENOTFOUND, "events of a run that has no row");
	if (!p->run) {
		p->run = uar_arena_alloc(&m->arena, sizeof *p->run);
		p->new_run = true;
		if (!p->run)
			return UAR_ENOMEM;
		p->run->key = key;
		p->run->session = p->session;
	}
	return judge_run(op, p);
}

static uar_err plan_threads(struct mem *m, struct mem_op *op, struct plan *p)
{
	p->threads = uar_arena_alloc(&m->arena, op->count * sizeof *p->threads);
	if (!p->threads)
		return UAR_ENOMEM;
	for (size_t i = 0; i < op->count; i++) {
		struct mem_thread *t;
		uar_str key;

		if (op->events[i].cls != UAR_EV_THREAD_STARTED)
			continue;
		key = key_of(m, &op->owner, op->events[i].ids[UAR_ID_THREAD]);
		t = key.p ? uar_map_get(&m->names.threads, key) : NULL;
		if (t && t->session != p->session)
			return refuse(op, UAR_ECONFLICT, "the thread lives in another session");
		if (t)
			continue;
		t = key.p ? uar_arena_alloc(&m->arena, sizeof *t) : NULL;
		if (!t)
			return UAR_ENOMEM;
		*t = (struct mem_thread){ key, p->session };
		p->threads[p->thread_count++] = t;
	}
	return UAR_OK;
}

static uar_err plan_room(struct mem *m, struct mem_op *op, struct plan *p)
{
	uar_err e = grow(&p->session->events, &p->session->cap, p->session->count + op->count);

	if (!e && p->run)
		e = grow(&p->run->events, &p->run->cap, p->run->count + op->count);
	if (!e && p->new_run && m->run_count == m->run_cap) {
		size_t cap = m->run_cap ? m->run_cap * 2 : 64;
		struct mem_run **all = uar_realloc(m->all, cap * sizeof *all);

		if (!all)
			return UAR_ENOMEM;
		m->all = all;
		m->run_cap = cap;
	}
	return e;
}

static uar_err name_key(struct mem *m, const struct plan *p)
{
	if (p->old_key)
		uar_map_remove(&m->names.keys, p->old_key->key);
	return p->key ? uar_map_put(&m->names.keys, p->key->key, p->key) : UAR_OK;
}

/* Names enter the maps; a failure takes back those that did. */
static uar_err name_all(struct mem *m, struct plan *p)
{
	uar_err e = p->new_session ? uar_map_put(&m->names.sessions, p->session->key, p->session)
				   : UAR_OK;
	size_t t = 0;

	if (!e && p->new_run)
		e = uar_map_put(&m->names.runs, p->run->key, p->run);
	if (!e)
		e = name_key(m, p);
	for (; t < p->thread_count && !e; t++) {
		e = uar_map_put(&m->names.threads, p->threads[t]->key, p->threads[t]);
		e = e == UAR_EEXISTS ? UAR_OK : e; /* twice in one append */
	}
	if (!e)
		return UAR_OK;
	while (t-- > 0)
		uar_map_remove(&m->names.threads, p->threads[t]->key);
	if (p->new_session)
		uar_map_remove(&m->names.sessions, p->session->key);
	if (p->new_run)
		uar_map_remove(&m->names.runs, p->run->key);
	if (p->key)
		uar_map_remove(&m->names.keys, p->key->key);
	return e;
}

static void write_all(struct mem *m, struct mem_op *op, struct plan *p)
{
	if (p->new_run) {
		m->all[m->run_count++] = p->run;
		p->run->number = m->run_count;
	}
	if (op->has_run)
		p->run->row = op->run;
	for (size_t i = 0; i < op->count; i++) {
		p->session->events[p->session->count++] = &op->events[i];
		if (op->events[i].run_sequence)
			p->run->events[p->run->count++] = &op->events[i];
		m->stats.bytes += op->events[i].payload.n;
	}
	for (size_t i = 0; i < op->evict_count; i++) {
		p->evict[i]->row.evicted = true;
		mem_rows_evict(m, &p->evict[i]->row);
	}
	mem_rows_write(m, op, p->session, &p->rows);
	m->stats.appends++;
	m->stats.events += op->count;
}

static void free_plan(struct plan *p, bool new_session, bool new_run)
{
	if (new_session && p->session) {
		uar_free(p->session->events);
		p->session->events = NULL;
	}
	if (new_run && p->run) {
		uar_free(p->run->events);
		p->run->events = NULL;
	}
}

static uar_err apply(struct mem *m, struct mem_op *op)
{
	struct plan p = { 0 };
	uar_err e = plan_key(m, op, &p);

	if (!e)
		e = plan_session(m, op, &p);
	if (!e)
		e = plan_run(m, op, &p);
	if (!e)
		e = plan_threads(m, op, &p);
	if (!e)
		e = plan_evict(m, op, &p);
	if (!e)
		e = mem_rows_plan(m, op, p.new_session ? NULL : p.session, &p.rows);
	if (!e)
		e = plan_room(m, op, &p);
	if (!e)
		e = mem_rows_name(m, op, &p.rows);
	if (!e)
		e = name_all(m, &p);
	if (!e)
		write_all(m, op, &p);
	else
		free_plan(&p, p.new_session, p.new_run);
	return e;
}

static uar_err break_store(struct mem *m, uar_err e)
{
	m->stats.health = UAR_STORE_BROKEN;
	uar_error_set(&m->broken_error, UAR_ESYNC, "%s", uar_err_text(UAR_ESYNC));
	uar_post(m->sched, &m->broken_task);
	return e;
}

uar_err mem_commit_one(struct mem *m, struct mem_op *op)
{
	uar_err e = m->fault;

	if (m->stats.health == UAR_STORE_BROKEN)
		return UAR_ESYNC;
	m->fault = UAR_OK;
	if (!e)
		e = apply(m, op);
	else if (e == UAR_EUNKNOWN && (e = apply(m, op)) == UAR_OK)
		e = break_store(m, UAR_EUNKNOWN);
	else if (e == UAR_ESYNC)
		e = break_store(m, UAR_ESYNC);
	else if (e == UAR_EDISKFULL)
		m->stats.health = UAR_STORE_FULL;
	if (!e)
		m->stats.health = UAR_STORE_FINE;
	if (!e && op->has_run && op->run.terminal)
		mem_unstage(m, &op->owner, op->run.run_id);
	m->stats.conflicts += e != UAR_OK;
	return e;
}

/* One turn commits all that has gathered; then everybody is told, in order. */
void mem_commit(struct uar_task *t)
{
	struct mem *m = UAR_OWNER(t, struct mem, commit_task);

	while (!m->hold && !uar_list_empty(&m->appends)) {
		struct uar_append *a = UAR_OWNER(UAR_OWNER(m->appends.next, struct uar_task, node),
						 struct uar_append, task);
		const struct mem_op *op = a->internal;

		m->queued_bytes -= op->bytes;
		a->err = mem_commit_one(m, a->internal);
		if (a->err && !a->error.code)
			uar_error_set(&a->error, a->err, "%s", uar_err_text(a->err));
		uar_list_remove(&a->task.node);
		uar_list_add_last(&m->tell, &a->task.node);
		m->queued--;
	}
	m->stats.commits++;
	while (!uar_list_empty(&m->tell)) {
		struct uar_append *a = UAR_OWNER(UAR_OWNER(m->tell.next, struct uar_task, node),
						 struct uar_append, task);

		uar_list_remove(&a->task.node);
		a->internal = NULL;
		m->pending--;
		a->done(a);
	}
	mem_maybe_drained(m);
}

static bool has_room(const struct mem *m, const struct uar_append *a)
{
	return m->queued < UAR_LIMIT_STORE_QUEUE &&
	       m->queued_bytes + append_bytes(a) <= UAR_LIMIT_STORE_QUEUE_BYTES;
}

uar_err mem_append(struct uar_store *base, struct uar_append *a)
{
	struct mem *m = mem_of(base);
	struct mem_op *op;
	uar_err e;

	uar_error_clear(&a->error);
	e = m->draining ? UAR_EDRAINING
			: uar_store_check(a, base->runtime_id, &m->scratch, &a->error);
	if (!e && m->stats.health == UAR_STORE_BROKEN)
		e = UAR_ESYNC;
	if (!e && !has_room(m, a))
		e = UAR_EBUSY;
	op = e ? NULL : copy_append(m, a);
	if (!e && !op)
		e = UAR_ENOMEM;
	a->internal = op;
	a->err = e;
	if (e) {
		if (!a->error.code)
			uar_error_set(&a->error, e, "%s", uar_err_text(e));
		return e;
	}
	uar_list_add_last(&m->appends, &a->task.node);
	m->pending++;
	m->queued++;
	m->queued_bytes += op->bytes;
	uar_post(m->sched, &m->commit_task);
	return UAR_OK;
}
