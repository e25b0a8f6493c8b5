/* storage.c - the disk behind a queue of its own: operations wait until the seed
 * lets them through, appends in order, reads in any. Where a conversation lives
 * is told late, too: what was true when the disk was asked may have changed. */
#include "sim/world.h"

#include "base/alloc.h"
#include "memory_store.h"

enum kind { APPEND, READ, RUNS, THREAD, THREAD_TOLD, PUT, GET, UPLOAD, KEY, ROWS, SESSIONS };

struct pending {
	struct uar_list node;
	struct sim_world *w;
	enum kind kind;
	void *op;
	struct uar_thread_query thread; /* THREAD: asked in place of op */
	struct uar_upload_op upload;	/* UPLOAD: the same */
	bool continues;			/* it came with its handle, which stays its owner's */
};

static struct sim_world *world_of(struct uar_store *s)
{
	return UAR_OWNER(s, struct sim_world, store);
}

static uar_err enqueue(struct uar_store *s, enum kind kind, void *op)
{
	struct sim_world *w = world_of(s);
	struct pending *p = w->drain.on ? NULL : uar_zalloc(sizeof *p);

	if (!p)
		return w->drain.on ? UAR_EDRAINING : UAR_ENOMEM;
	p->w = w;
	p->kind = kind;
	p->op = op;
	if (kind == UPLOAD) {
		p->upload = *(struct uar_upload_op *)op;
		p->continues = p->upload.upload != NULL;
	}
	uar_list_add_last(kind == APPEND ? &w->appends : &w->others, &p->node);
	return UAR_OK;
}

/* A refused append must be refused at once, as the real store does. */
static uar_err sim_append(struct uar_store *s, struct uar_append *a)
{
	struct uar_arena scratch;
	uar_err e = UAR_OK;

	uar_arena_init(&scratch, 0);
	for (size_t i = 0; i < a->event_count && !e; i++)
		e = uar_event_check(&a->events[i], &scratch, &a->error);
	uar_arena_fini(&scratch);
	return e ? e : enqueue(s, APPEND, a);
}

static uar_err sim_read(struct uar_store *s, struct uar_read *r)
{
	return enqueue(s, READ, r);
}

static uar_err sim_runs(struct uar_store *s, struct uar_runs_query *q)
{
	return enqueue(s, RUNS, q);
}

static uar_err sim_thread(struct uar_store *s, struct uar_thread_query *q)
{
	return enqueue(s, THREAD, q);
}

static uar_err sim_put(struct uar_store *s, struct uar_blob_put *b)
{
	return enqueue(s, PUT, b);
}

static uar_err sim_get(struct uar_store *s, struct uar_blob_get *b)
{
	return enqueue(s, GET, b);
}

static uar_err sim_upload(struct uar_store *s, struct uar_upload_op *op)
{
	return enqueue(s, UPLOAD, op);
}

static uar_err sim_key(struct uar_store *s, struct uar_key_query *q)
{
	return enqueue(s, KEY, q);
}

static uar_err sim_rows(struct uar_store *s, struct uar_rows_query *q)
{
	return enqueue(s, ROWS, q);
}

static uar_err sim_sessions(struct uar_store *s, struct uar_sessions_query *q)
{
	return enqueue(s, SESSIONS, q);
}

static uar_err sim_each_live(struct uar_store *s, void (*fn)(void *ctx, const struct uar_run_row *),
			     void *ctx, struct uar_error *error)
{
	struct uar_store *disk = world_of(s)->disk;

	return disk->ops->each_live(disk, fn, ctx, error);
}

static uar_err sim_each_beyond(struct uar_store *s, uint64_t keep,
			       void (*fn)(void *ctx, const struct uar_owner *), void *ctx,
			       struct uar_error *error)
{
	struct uar_store *disk = world_of(s)->disk;

	return disk->ops->each_beyond(disk, keep, fn, ctx, error);
}

static void sim_stats(struct uar_store *s, struct uar_store_stats *out)
{
	struct uar_store *disk = world_of(s)->disk;

	disk->ops->stats(disk, out);
}

/* Like the real one: takes no more, and says so once all that waits is through. */
static void sim_drain(struct uar_store *s, void (*done)(void *ctx), void *ctx)
{
	struct sim_world *w = world_of(s);

	w->drain.on = true;
	w->drain.done = done;
	w->drain.ctx = ctx;
	uar_post(&w->sched, &w->drain.task);
}

static void maybe_drained(struct uar_task *t)
{
	struct sim_world *w = UAR_OWNER(t, struct sim_world, drain.task);
	void (*done)(void *ctx) = w->drain.done;

	if (!done)
		return;
	if (sim_store_pending(w)) {
		uar_post(&w->sched, &w->drain.task);
		return;
	}
	w->drain.done = NULL;
	done(w->drain.ctx);
}

static const struct uar_store_ops ops = {
	.abi = 1,
	.size = sizeof ops,
	.append = sim_append,
	.read = sim_read,
	.runs = sim_runs,
	.thread = sim_thread,
	.blob_put = sim_put,
	.blob_get = sim_get,
	.each_live = sim_each_live,
	.stats = sim_stats,
	.drain = sim_drain,
	.upload = sim_upload,
	.key = sim_key,
	.each_beyond = sim_each_beyond,
	.rows = sim_rows,
	.sessions = sim_sessions,
};

static void thread_found(struct uar_thread_query *q)
{
	struct pending *p = UAR_OWNER(q, struct pending, thread);

	p->kind = THREAD_TOLD;
	uar_list_add_last(&p->w->others, &p->node);
}

static uar_err ask_thread(struct sim_world *w, struct pending *p)
{
	p->thread = *(struct uar_thread_query *)p->op;
	p->thread.done = thread_found;
	return w->disk->ops->thread(w->disk, &p->thread);
}

static uar_err tell_thread(const struct pending *p)
{
	struct uar_thread_query *q = p->op;

	q->err = p->thread.err;
	q->error = p->thread.error;
	q->last_sequence = p->thread.last_sequence;
	memcpy(q->found_session, p->thread.found_session, sizeof q->found_session);
	q->done(q);
	return UAR_OK;
}

static void upload_taken(struct uar_upload_op *mine)
{
	struct pending *p = UAR_OWNER(mine, struct pending, upload);
	struct uar_upload_op *op = p->op;

	uar_list_remove(&p->node);
	op->upload = mine->upload;
	op->total = mine->total;
	op->err = mine->err;
	op->error = mine->error;
	memcpy(op->sha256, mine->sha256, sizeof op->sha256);
	uar_free(p);
	op->done(op);
}

static uar_err ask_upload(struct sim_world *w, struct pending *p)
{
	p->upload.done = upload_taken;
	uar_list_add_last(&w->uploads, &p->node);
	return w->disk->ops->upload(w->disk, &p->upload);
}

static uar_err forward(struct sim_world *w, struct pending *p)
{
	struct uar_store *disk = w->disk;

	switch (p->kind) {
	case APPEND: return disk->ops->append(disk, p->op);
	case READ: return disk->ops->read(disk, p->op);
	case RUNS: return disk->ops->runs(disk, p->op);
	case THREAD: return ask_thread(w, p);
	case THREAD_TOLD: return tell_thread(p);
	case PUT: return disk->ops->blob_put(disk, p->op);
	case GET: return disk->ops->blob_get(disk, p->op);
	case UPLOAD: return ask_upload(w, p);
	case KEY: return disk->ops->key(disk, p->op);
	case ROWS: return disk->ops->rows(disk, p->op);
	case SESSIONS: return disk->ops->sessions(disk, p->op);
	}
	return UAR_EINTERNAL;
}

static void fail(const struct pending *p, uar_err e)
{
	struct uar_append *a = p->op;
	struct uar_read *r = p->op;
	struct uar_runs_query *q = p->op;
	struct uar_thread_query *t = p->op;
	struct uar_blob_put *put = p->op;
	struct uar_blob_get *get = p->op;
	struct uar_upload_op *up = p->op;
	struct uar_key_query *key = p->op;
	struct uar_rows_query *rows = p->op;
	struct uar_sessions_query *sessions = p->op;

	switch (p->kind) {
	case APPEND: a->err = e, a->done(a); break;
	case READ: r->err = e, r->event_count = 0, r->done(r); break;
	case RUNS: q->err = e, q->row_count = 0, q->done(q); break;
	case THREAD:
	case THREAD_TOLD: t->err = e, t->done(t); break;
	case PUT: put->err = e, put->done(put); break;
	case GET: get->err = e, get->done(get); break;
	case KEY: key->err = e, key->done(key); break;
	case ROWS: rows->err = e, rows->row_count = 0, rows->done(rows); break;
	case SESSIONS: sessions->err = e, sessions->count = 0, sessions->done(sessions); break;
	case UPLOAD:
		if (up->upload)
			up->upload->drop(up->upload);
		up->upload = NULL, up->err = e, up->done(up);
		break;
	}
}

static uar_err fault_of(struct sim_world *w, const struct pending *p)
{
	if (p->kind == READ && w->read_fault)
		return w->read_fault(w, p->op);
	if ((p->kind == APPEND || p->kind == PUT) && sim_below(w, 1000) < w->append_faults)
		return UAR_EDISKFULL;
	return UAR_OK;
}

static bool let_through(struct sim_world *w, struct uar_list *from, size_t index)
{
	struct uar_list *it = from->next;
	struct pending *p;
	bool asked;
	uar_err e;

	if (uar_list_empty(from))
		return false;
	while (index-- && it->next != from)
		it = it->next;
	p = UAR_OWNER(it, struct pending, node);
	asked = p->kind == THREAD || p->kind == UPLOAD; /* and is freed when it comes back */
	uar_list_remove(it);
	if (w->dead)
		e = UAR_EIO;
	else
		e = fault_of(w, p);
	if (!e)
		e = forward(w, p);
	if (e)
		fail(p, e);
	if (e || !asked)
		uar_free(p);
	return true;
}

bool sim_store_step(struct sim_world *w)
{
	if (sim_below(w, 2) && let_through(w, &w->appends, 0))
		return true;
	return let_through(w, &w->others, (size_t)sim_below(w, 4)) ||
	       let_through(w, &w->appends, 0);
}

bool sim_store_pending(const struct sim_world *w)
{
	return !uar_list_empty(&w->appends) || !uar_list_empty(&w->others);
}

void sim_store_init(struct sim_world *w)
{
	w->store.ops = &ops;
	w->store.incarnation = w->disk->incarnation;
	memcpy(w->store.runtime_id, w->disk->runtime_id, sizeof w->store.runtime_id);
	uar_list_init(&w->appends);
	uar_list_init(&w->others);
	uar_list_init(&w->uploads);
	w->drain.task.fn = maybe_drained;
}

static void drop_all(struct uar_list *l)
{
	UAR_LIST_EACH (it, l) {
		struct pending *p = UAR_OWNER(it, struct pending, node);

		uar_list_remove(it);
		if (p->kind == UPLOAD && p->upload.upload && !p->continues)
			p->upload.upload->drop(p->upload.upload);
		uar_free(p);
	}
}

void sim_store_fini(struct sim_world *w)
{
	drop_all(&w->appends);
	drop_all(&w->others);
	drop_all(&w->uploads);
}
