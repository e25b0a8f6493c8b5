/* memory.c - the store port in memory, for tests and the simulation.
 *
 * The same promises as on disk, except the disk: guards, keys, owners, cursors
 * and the order of callbacks are those of the SQLite store, and the same tests
 * run against both. Everything happens on the loop's thread: an append is
 * copied when it is asked for and committed in a later turn, then its `done`
 * fires. Memory is given back when the store is destroyed. */
#include "memory_store/memory_int.h"

#include "base/alloc.h"
#include "loop/limits.h"

void mem_maybe_drained(struct mem *m)
{
	void (*drained)(void *ctx) = m->call.drained;

	if (!m->draining || m->pending || !drained)
		return;
	m->call.drained = NULL;
	drained(m->call.drained_ctx);
}

static bool is_same_session(const struct uar_run_row *a, const struct uar_run_row *b)
{
	return uar_str_eq(a->session_id, b->session_id) && uar_owner_eq(&a->owner, &b->owner);
}

static bool is_first_of_session(const struct mem *m, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (is_same_session(&m->all[i]->row, &m->all[at]->row))
			return false;
	return true;
}

static uar_err mem_each_live(struct uar_store *base,
			     void (*fn)(void *ctx, const struct uar_run_row *), void *ctx,
			     struct uar_error *error)
{
	struct mem *m = mem_of(base);

	(void)error;
	for (size_t first = 0; first < m->run_count; first++)
		for (size_t i = first; i < m->run_count && is_first_of_session(m, first); i++) {
			struct uar_run_row row = m->all[i]->row;

			row.last_run_sequence = m->all[i]->count;
			if (!row.terminal && is_same_session(&row, &m->all[first]->row))
				fn(ctx, &row);
		}
	return UAR_OK;
}

/* An owner is told of at its first run. */
static bool told_before(const struct mem *m, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (uar_owner_eq(&m->all[i]->row.owner, &m->all[at]->row.owner))
			return true;
	return false;
}

static uar_err mem_each_beyond(struct uar_store *base, uint64_t keep,
			       void (*fn)(void *ctx, const struct uar_owner *), void *ctx,
			       struct uar_error *error)
{
	struct mem *m = mem_of(base);

	(void)error;
	for (size_t at = 0; at < m->run_count; at++) {
		const struct uar_owner *o = &m->all[at]->row.owner;
		uint64_t ended = 0;

		for (size_t i = at; i < m->run_count; i++)
			ended += m->all[i]->row.terminal && !m->all[i]->row.evicted &&
				 uar_owner_eq(&m->all[i]->row.owner, o);
		if (ended > keep && !told_before(m, at))
			fn(ctx, o);
	}
	return UAR_OK;
}

static void mem_stats(struct uar_store *base, struct uar_store_stats *out)
{
	*out = mem_of(base)->stats;
	out->queued = mem_of(base)->queued;
	out->space = out->health != UAR_STORE_FULL;
}

static void drained_now(struct uar_task *t)
{
	mem_maybe_drained(UAR_OWNER(t, struct mem, drained_task));
}

static void mem_drain(struct uar_store *base, void (*done)(void *ctx), void *ctx)
{
	struct mem *m = mem_of(base);

	m->draining = true;
	m->call.drained = done;
	m->call.drained_ctx = ctx;
	if (!m->pending)
		uar_post(m->sched, &m->drained_task);
}

static void broken_now(struct uar_task *t)
{
	struct mem *m = UAR_OWNER(t, struct mem, broken_task);

	if (m->call.broken)
		m->call.broken(m->call.broken_ctx, &m->broken_error);
}

/* --- life --------------------------------------------------------------------------------- */
static void forget_tasks(struct mem *m)
{
	uar_unpost(m->sched, &m->commit_task);
	uar_unpost(m->sched, &m->read_task);
	uar_unpost(m->sched, &m->drained_task);
	uar_unpost(m->sched, &m->broken_task);
}

static void mem_destroy(struct uar_store *base)
{
	struct mem *m = mem_of(base);
	struct mem_session *s;
	size_t at = 0;

	forget_tasks(m);
	while ((s = uar_map_next(&m->names.sessions, &at)))
		uar_free(s->events);
	for (size_t i = 0; i < m->run_count; i++)
		uar_free(m->all[i]->events);
	uar_free(m->all);
	uar_map_fini(&m->names.sessions);
	uar_map_fini(&m->names.runs);
	uar_map_fini(&m->names.threads);
	uar_map_fini(&m->names.keys);
	uar_map_fini(&m->names.rows);
	uar_blobs_destroy(m->names.blobs);
	uar_arena_fini(&m->arena);
	uar_arena_fini(&m->scratch);
	uar_free(m);
}

static const struct uar_store_ops ops = {
	.abi = 1,
	.size = sizeof ops,
	.destroy = mem_destroy,
	.append = mem_append,
	.read = mem_read,
	.runs = mem_runs,
	.thread = mem_thread,
	.blob_put = mem_put,
	.blob_get = mem_get,
	.each_live = mem_each_live,
	.stats = mem_stats,
	.drain = mem_drain,
	.upload = mem_upload,
	.key = mem_key,
	.each_beyond = mem_each_beyond,
	.rows = mem_rows,
	.sessions = mem_sessions,
};

uar_err uar_store_memory_create(const struct uar_store_options *o, struct uar_store **out,
				struct uar_error *error)
{
	uint64_t upload_max = o->upload_max ? o->upload_max : UAR_LIMIT_BLOB_BYTES;
	struct uar_blobs *blobs = mem_blobs_create(upload_max);
	struct mem *m = blobs ? uar_zalloc(sizeof *m) : NULL;
	struct uar_uuid uuid;

	if (!m) {
		uar_blobs_destroy(blobs);
		return uar_error_set(error, UAR_ENOMEM, "%s", uar_err_text(UAR_ENOMEM));
	}
	m->base.ops = &ops;
	m->base.upload_max = upload_max;
	m->names.blobs = blobs;
	m->sched = o->sched;
	m->call.broken = o->broken;
	m->call.broken_ctx = o->ctx;
	m->commit_task.fn = mem_commit;
	m->read_task.fn = mem_answer_all;
	m->drained_task.fn = drained_now;
	m->broken_task.fn = broken_now;
	uar_list_init(&m->appends);
	uar_list_init(&m->reads);
	uar_list_init(&m->tell);
	uar_map_init(&m->names.sessions, 1);
	uar_map_init(&m->names.runs, 2);
	uar_map_init(&m->names.threads, 3);
	uar_map_init(&m->names.keys, 4);
	uar_map_init(&m->names.rows, 7);
	uar_list_init(&m->names.all_rows);
	uar_uuid_init(&uuid, o->sched->clock, o->rand ? o->rand : &uar_rand_system);
	uar_uuid_next(&uuid, m->base.runtime_id);
	m->base.incarnation = 1;
	*out = &m->base;
	return UAR_OK;
}

/* --- what only tests do ------------------------------------------------------------------- */
void uar_store_memory_fail_next(struct uar_store *s, uar_err err)
{
	mem_of(s)->fault = err;
}

void uar_store_memory_hold(struct uar_store *s, bool hold)
{
	struct mem *m = mem_of(s);

	m->hold = hold;
	if (!hold && !uar_list_empty(&m->appends))
		uar_post(m->sched, &m->commit_task);
}

size_t uar_store_memory_waiting(const struct uar_store *s)
{
	return UAR_OWNER(s, const struct mem, base)->queued;
}

void uar_store_memory_crash(struct uar_store *s, size_t keep)
{
	struct mem *m = mem_of(s);

	forget_tasks(m);
	m->fault = UAR_OK;
	m->stats.health = UAR_STORE_FINE;
	while (!uar_list_empty(&m->appends)) {
		struct uar_append *a = UAR_OWNER(UAR_OWNER(m->appends.next, struct uar_task, node),
						 struct uar_append, task);

		uar_list_remove(&a->task.node);
		if (keep) {
			mem_commit_one(m, a->internal);
			keep--;
		}
	}
	uar_list_init(&m->tell);
	uar_list_init(&m->reads);
	m->pending = m->queued = m->queued_bytes = m->asked = 0;
	m->hold = m->draining = false;
	m->call.drained = NULL;
}
