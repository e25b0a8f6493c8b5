/* sqlite.c - the store on SQLite: opens the data directory, takes operations in
 * on the loop, hands them to the writer or the readers, and calls back. */
#include "store/sqlite/sqlite_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/statvfs.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "event/limits.h"
#include "loop/limits.h"
#include "store/limits.h"

enum {
	READERS = 2,
	/* Fewer pages make more stalls, more make longer ones. */
	CHECKPOINT_PAGES = 1000,
};

static struct sq_store *store_of(struct uar_store *s)
{
	return UAR_OWNER(s, struct sq_store, base);
}

/* --- appends ---------------------------------------------------------------------- */
static void op_free(struct sq_op *op)
{
	uar_arena_fini(&op->arena);
	uar_buf_fini(&op->text);
	uar_free(op);
}

static struct sq_op *op_take(struct sq_store *s)
{
	struct sq_op *op = s->free_ops;

	if (op) {
		s->free_ops = op->next_free;
		s->free_count--;
		return op;
	}
	op = uar_zalloc(sizeof *op);
	if (op)
		op->text = uar_buf_make(UAR_LIMIT_STORE_QUEUE_BYTES);
	return op;
}

static void op_give(struct sq_store *s, struct sq_op *op)
{
	if (s->free_count >= UAR_LIMIT_SPARE_APPENDS ||
	    op->text.cap + op->arena.used > UAR_LIMIT_SPARE_APPEND_BYTES) {
		op_free(op);
		return;
	}
	uar_arena_reset(&op->arena);
	uar_buf_clear(&op->text);
	op->next_free = s->free_ops;
	s->free_ops = op;
	s->free_count++;
}

static void free_spare_ops(struct sq_store *s)
{
	while (s->free_ops) {
		struct sq_op *op = s->free_ops;

		s->free_ops = op->next_free;
		op_free(op);
	}
	s->free_count = 0;
}

/* For want of memory: others need what is kept for reuse. */
static void finished(struct sq_store *s, uar_err e)
{
	s->pending--;
	if (e == UAR_ENOMEM)
		free_spare_ops(s);
}

/* The last callback of a drained store; nothing of it is touched afterwards. */
static void maybe_drained(struct sq_store *s)
{
	void (*drained)(void *ctx) = s->call.drained;

	if (!s->draining || s->pending || !drained)
		return;
	s->call.drained = NULL;
	drained(s->call.drained_ctx);
}

/* Where the disk is and how SQLite puts it is for the log, not for who asked. */
static void keep_brief(const struct sq_store *s, uar_err e, struct uar_error *error)
{
	if (e != UAR_EDISKFULL && e != UAR_EHELD && e != UAR_EUNKNOWN)
		return;
	uar_log(s->log, UAR_LOG_DEBUG, e == UAR_EDISKFULL ? "store.no_space" : "store.refused",
		{ "detail", uar_str_c(uar_error_text(error)) });
	uar_error_set(error, e, "%s", uar_err_text(e));
}

static void unstage(struct sq_store *s, const struct uar_owner *owner, uar_str run_id);

static void append_done(struct uar_task *t)
{
	struct uar_append *a = UAR_OWNER(t, struct uar_append, task);
	struct sq_op *op = a->internal;
	struct sq_store *s = op->store;

	finished(s, a->err);
	keep_brief(s, a->err, &a->error);
	if (!a->err && op->has_run && op->run.terminal)
		unstage(s, &op->owner, op->run.run_id);
	a->internal = NULL;
	a->done(a);
	op_give(s, op);
	maybe_drained(s);
}

/* Woken for its first append, the writer would commit that one alone while the
 * others of this turn wait a whole commit longer. */
static void wake_task(struct uar_task *t)
{
	sq_writer_wake(&UAR_OWNER(t, struct sq_store, wake_task)->writer);
}

static uar_err submit(struct sq_store *s, struct uar_append *a)
{
	bool asleep = false;
	struct sq_op *op;
	uar_err e = uar_store_check(a, s->base.runtime_id, &s->scratch, &a->error);

	if (e)
		return e;
	op = op_take(s);
	if (!op)
		return UAR_ENOMEM;
	e = sq_op_fill(op, a);
	if (!e) {
		op->a = a;
		op->store = s;
		a->internal = op;
		a->task.fn = append_done;
		e = sq_writer_add(&s->writer, op, &asleep);
	}
	if (asleep)
		uar_post(s->sched, &s->wake_task);
	if (e)
		op_give(s, op);
	return e;
}

static uar_err sq_append(struct uar_store *base, struct uar_append *a)
{
	struct sq_store *s = store_of(base);
	uar_err e;

	uar_error_clear(&a->error);
	e = s->draining ? UAR_EDRAINING : submit(s, a);
	if (!e) {
		s->pending++; /* from here on the append is the writer's */
		return UAR_OK;
	}
	a->err = e;
	if (!a->error.code)
		uar_error_set(&a->error, e, "%s", uar_err_text(e));
	return e;
}

/* --- reads ------------------------------------------------------------------------- */
/* One kind of read: how it comes in, what a reader does, how it goes out. */
#define READ_KIND(KIND, STRUCT, RUN, FORGET)                                                       \
	static void KIND##_done(struct uar_task *t)                                                \
	{                                                                                          \
		struct STRUCT *q = UAR_OWNER(t, struct STRUCT, task);                              \
		struct sq_store *s = q->internal;                                                  \
                                                                                                   \
		sq_readers_delivered(&s->readers);                                                 \
		finished(s, q->err);                                                               \
		keep_brief(s, q->err, &q->error);                                                  \
		q->internal = NULL;                                                                \
		q->done(q);                                                                        \
		maybe_drained(s);                                                                  \
	}                                                                                          \
	static void KIND##_run(struct sq_reader *rd, struct uar_task *t)                           \
	{                                                                                          \
		struct STRUCT *q = UAR_OWNER(t, struct STRUCT, task);                              \
                                                                                                   \
		RUN(rd, q);                                                                        \
		if (q->err == UAR_ENOMEM)                                                          \
			sqlite3_db_release_memory(rd->conn.db);                                    \
	}                                                                                          \
	static void KIND##_forget(struct uar_task *t)                                              \
	{                                                                                          \
		FORGET(UAR_OWNER(t, struct STRUCT, task));                                         \
	}                                                                                          \
	static uar_err KIND##_add(struct uar_store *base, struct STRUCT *q)                        \
	{                                                                                          \
		struct sq_store *s = store_of(base);                                               \
		uar_err e;                                                                         \
                                                                                                   \
		q->internal = s;                                                                   \
		q->task.fn = KIND##_done;                                                          \
		e = s->draining ? UAR_EDRAINING : sq_readers_add(&s->readers, &q->task);           \
		s->pending += !e;                                                                  \
		return e;                                                                          \
	}

static void found_nothing(const void *op)
{
	(void)op;
}

#define R READ_KIND
#include "store/sqlite/reads.def"
#undef R

static const struct read_kind {
	uar_task_fn *done;
	void (*run)(struct sq_reader *rd, struct uar_task *t);
	void (*forget)(struct uar_task *t);
} kinds[] = {
#define R(KIND, STRUCT, RUN, FORGET) { KIND##_done, KIND##_run, KIND##_forget },
#include "store/sqlite/reads.def"
#undef R
};

/* NULL: it is no read. */
static const struct read_kind *kind_of(const struct uar_task *t)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (kinds[i].done == t->fn)
			return &kinds[i];
	return NULL;
}

void sq_reader_run(struct sq_reader *rd, struct uar_task *task)
{
	kind_of(task)->run(rd, task);
}

static void unstaged(struct sq_unstage *u)
{
	uar_list_remove(&u->node);
	uar_free(u);
}

/* The run is over: what it has uploaded and nobody wanted goes. */
static void unstage(struct sq_store *s, const struct uar_owner *owner, uar_str run_id)
{
	struct sq_unstage *u;
	char name[65];

	if (!s->blobs->ops->run_ended(s->blobs, owner, run_id, name))
		return;
	u = uar_zalloc(sizeof *u);
	if (!u)
		return; /* the next start clears it */
	memcpy(u->name, name, sizeof u->name);
	u->done = unstaged;
	uar_list_add_last(&s->clearing, &u->node);
	if (unstage_add(&s->base, u))
		unstaged(u); /* the next start clears it */
}

static uar_err sq_read(struct uar_store *base, struct uar_read *r)
{
	uar_err e = uar_store_check_read(r);

	return e ? e : read_add(base, r);
}

static uar_err sq_runs(struct uar_store *base, struct uar_runs_query *q)
{
	uar_err e = uar_store_check_runs(q);

	return e ? e : runs_add(base, q);
}

static uar_err sq_rows(struct uar_store *base, struct uar_rows_query *q)
{
	uar_err e = uar_store_check_rows(q);

	return e ? e : rows_add(base, q);
}

static uar_err sq_sessions(struct uar_store *base, struct uar_sessions_query *q)
{
	bool valid = q->limit && q->limit <= UAR_LIMIT_LIST_PAGE;

	return valid ? sessions_add(base, q) : UAR_EINVALID;
}

static uar_err sq_thread(struct uar_store *base, struct uar_thread_query *q)
{
	uar_err e = uar_store_check_thread(q);

	return e ? e : thread_add(base, q);
}

static uar_err sq_key(struct uar_store *base, struct uar_key_query *q)
{
	return key_add(base, q);
}

static uar_err sq_get(struct uar_store *base, struct uar_blob_get *b)
{
	return b->stage || uar_store_is_sha256(b->sha256) ? blob_get_add(base, b) : UAR_EINVALID;
}

static uar_err sq_sweep(struct uar_store *base, struct uar_sweep *op)
{
	struct sq_store *s = store_of(base);
	uar_err e;

	if (!s->sweep.begun)
		s->blobs->ops->sweep_begin(s->blobs);
	e = sweep_add(base, op);
	if (e)
		sq_sweep_end(s, false);
	return e;
}

static bool is_broken(struct uar_store *base)
{
	struct sq_writer *w = &store_of(base)->writer;
	bool broken;

	pthread_mutex_lock(&w->lock);
	broken = w->health == UAR_STORE_BROKEN;
	pthread_mutex_unlock(&w->lock);
	return broken;
}

static uar_err sq_upload(struct uar_store *base, struct uar_upload_op *op)
{
	return is_broken(base) ? UAR_ESYNC : upload_add(base, op);
}

static uar_err sq_put(struct uar_store *base, struct uar_blob_put *b)
{
	if (is_broken(base))
		return UAR_ESYNC;
	return b->bytes.n > UAR_LIMIT_BLOB_BYTES ? UAR_ETOOBIG : blob_put_add(base, b);
}

static uar_err sq_each_live(struct uar_store *base, void (*fn)(void *, const struct uar_run_row *),
			    void *ctx, struct uar_error *error)
{
	struct sq_store *s = store_of(base);
	struct sq_conn c;
	struct uar_error own = { 0 };
	uar_err e = sq_open(&c, s->path, s->vfs, SQ_READ, &own);

	if (!e)
		e = sq_query_live(&c, &(struct sq_live){ fn, ctx, s->log }, &own);
	sq_close(&c);
	if (e && error)
		*error = own;
	return e;
}

static uar_err sq_each_beyond(struct uar_store *base, uint64_t keep,
			      void (*fn)(void *, const struct uar_owner *), void *ctx,
			      struct uar_error *error)
{
	struct sq_store *s = store_of(base);
	struct sq_conn c;
	struct uar_error own = { 0 };
	uar_err e = sq_open(&c, s->path, s->vfs, SQ_READ, &own);

	if (!e)
		e = sq_query_beyond(&c, keep, fn, ctx, &own);
	sq_close(&c);
	if (e && error)
		*error = own;
	return e;
}

/* An idle server would never learn that space is back: nobody appends while it
 * says that it is full. */
static bool has_space(const struct sq_store *s, uint64_t bytes)
{
	struct statvfs fs;

	if (fstatvfs(s->dir_fd, &fs))
		return false;
	/* Some file systems do not count: only a write can tell. */
	return fs.f_blocks == 0 || (uint64_t)fs.f_bavail * fs.f_frsize >= bytes;
}

/* A quota, or a limit for the size of files, does not show in the free space of the disk, and
 * refuses large writes while small ones pass. (A blob may be larger than the free space.) */
void sq_note_full(struct sq_store *s)
{
	if (has_space(s, UAR_LIMIT_STORE_SPACE))
		atomic_store(&s->limited_us, uar_clock_mono(&uar_clock_system));
}

static bool was_limited(const struct sq_store *s)
{
	int64_t at = atomic_load(&s->limited_us);

	return at && uar_clock_mono(&uar_clock_system) - at < UAR_LIMIT_STORE_LIMITED_MS * 1000LL;
}

static void sq_stats(struct uar_store *base, struct uar_store_stats *out)
{
	struct sq_store *s = store_of(base);
	struct sq_writer *w = &s->writer;
	bool blobs_full;

	pthread_mutex_lock(&w->lock);
	*out = w->stats;
	out->queued = w->queued;
	out->health = w->health;
	pthread_mutex_unlock(&w->lock);
	pthread_mutex_lock(&s->readers.lock);
	out->reads = s->readers.reads;
	blobs_full = s->readers.blobs_full;
	pthread_mutex_unlock(&s->readers.lock);
	if (blobs_full && out->health == UAR_STORE_FINE)
		out->health = UAR_STORE_FULL;
	out->space = !was_limited(s) &&
		     (out->health != UAR_STORE_FULL || has_space(s, UAR_LIMIT_STORE_SPACE));
}

static void drained_task(struct uar_task *t)
{
	maybe_drained(UAR_OWNER(t, struct sq_store, drained_task));
}

static void sq_drain(struct uar_store *base, void (*done)(void *ctx), void *ctx)
{
	struct sq_store *s = store_of(base);

	s->draining = true;
	s->call.drained = done;
	s->call.drained_ctx = ctx;
	s->drained_task.fn = drained_task;
	if (!s->pending)
		uar_post(s->sched, &s->drained_task);
}

static void broken_task(struct uar_task *t)
{
	struct sq_writer *w = UAR_OWNER(t, struct sq_writer, broken.task);
	struct sq_store *s = UAR_OWNER(w, struct sq_store, writer);

	if (s->call.broken)
		s->call.broken(s->call.broken_ctx, &w->broken.error);
}

/* What was finished too late to be told: its results go, its owner stays silent. */
static void discard(struct uar_task *t)
{
	const struct read_kind *kind = kind_of(t);

	if (kind)
		kind->forget(t);
	else if (t->fn == append_done)
		op_free(UAR_OWNER(t, struct uar_append, task)->internal);
}

static void discard_finished(struct uar_done *d)
{
	struct uar_list late;

	uar_list_init(&late);
	uar_done_take(d, &late);
	while (!uar_list_empty(&late)) {
		struct uar_list *node = late.next;

		uar_list_remove(node);
		discard(UAR_OWNER(node, struct uar_task, node));
	}
}

static void sq_destroy(struct uar_store *base)
{
	struct sq_store *s = store_of(base);

	if (!s)
		return;
	uar_unpost(s->sched, &s->wake_task);
	uar_unpost(s->sched, &s->drained_task);
	sq_readers_stop(&s->readers);
	sq_writer_stop(&s->writer);
	if (s->done)
		discard_finished(s->done);
	uar_done_destroy(s->done);
	free_spare_ops(s);
	uar_arena_fini(&s->scratch);
	sq_sweep_fini(&s->sweep);
	sq_search_fini(&s->search);
	while (!uar_list_empty(&s->clearing))
		unstaged(UAR_OWNER(s->clearing.next, struct sq_unstage, node));
	uar_blobs_destroy(s->blobs);
	sq_hold_end(&s->writer.hold);
	if (s->dir_fd >= 0)
		close(s->dir_fd);
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	uar_free(s->path);
	uar_free(s->vfs);
	uar_free(s);
}

static const struct uar_store_ops ops = {
	.abi = 1,
	.size = sizeof ops,
	.destroy = sq_destroy,
	.append = sq_append,
	.read = sq_read,
	.runs = sq_runs,
	.thread = sq_thread,
	.blob_put = sq_put,
	.blob_get = sq_get,
	.each_live = sq_each_live,
	.stats = sq_stats,
	.drain = sq_drain,
	.upload = sq_upload,
	.key = sq_key,
	.each_beyond = sq_each_beyond,
	.sweep = sq_sweep,
	.session_list = session_list_add,
	.index = index_add,
	.rows = sq_rows,
	.sessions = sq_sessions,
};

/* --- opening ------------------------------------------------------------------------- */
/* It makes evictions quick, no more: for want of space it is left to the next start, as
 * a full disk is to be read. */
static uar_err index_ended(struct sq_store *s, bool on, struct uar_error *error)
{
	uar_err e = sq_index_ended(&s->writer.conn, on, error);

	if (e != UAR_EDISKFULL)
		return e;
	uar_log(s->log, UAR_LOG_WARN, "store.index_left",
		{ "detail", uar_str_c(uar_error_text(error)) });
	*error = (struct uar_error){ 0 };
	return UAR_OK;
}

/* First what SQLite would not notice: who refuses has changed nothing. */
static uar_err take_files(struct sq_store *s, struct uar_error *error)
{
	uar_err e = sq_wal_sync(s->dir_fd, error);

	if (!e)
		e = sq_wal_refuse(s->dir_fd, s->path, error);
	return e ? e : sq_hold_db(&s->writer.hold, s->dir_fd, s->path, error);
}

static uar_err open_db(struct sq_store *s, const struct uar_store_options *o,
		       struct uar_error *error)
{
	struct sq_writer *w = &s->writer;
	uar_err e = sq_open_writer(&w->conn, s->path, s->vfs, &w->busy, error);

	if (!e)
		e = sq_migrate(&w->conn, &s->rand, error);
	if (!e)
		e = index_ended(s, o->evicts, error);
	if (!e)
		sq_busy_over(&w->busy);
	if (!e && fsync(s->dir_fd))
		e = uar_error_set(error, UAR_ESYNC, "%s: %s", o->dir, strerror(errno));
	if (!e)
		e = sq_hold_log(&w->hold, s->dir_fd, error);
	if (!e)
		e = sq_runtime_id(&w->conn, s->base.runtime_id, error);
	return e ? e : sq_incarnation_open(s, error);
}

/* Before there are readers. */
static uar_err each_of_writer(void *ctx, void (*fn)(void *, const struct uar_run_row *), void *to,
			      struct uar_error *error)
{
	struct sq_store *s = ctx;

	return sq_query_live(&s->writer.conn, &(struct sq_live){ fn, to, s->log }, error);
}

static uar_err open_all(struct sq_store *s, const struct uar_store_options *o,
			struct uar_error *error)
{
	uar_err e = sq_lock_dir(o->dir, true, &s->dir_fd, &s->lock_fd, error);

	if (!e)
		e = take_files(s, error);
	if (!e)
		e = uar_blob_files_open(
			&(struct uar_blob_files){ s->dir_fd, s->base.upload_max, s->log },
			&s->blobs, error);
	if (!e)
		e = open_db(s, o, error);
	if (!e && !has_space(s, UAR_LIMIT_START_SPACE))
		s->writer.health = UAR_STORE_FULL; /* nobody has tried yet, and some ask */
	if (!e)
		e = s->blobs->ops->stages_open(
			s->blobs, &(struct uar_blob_runs){ .each_live = each_of_writer, .ctx = s },
			error);
	if (!e)
		e = sq_writer_start(&s->writer, error);
	return e ? e : sq_readers_start(&s->readers, s, o->readers ? o->readers : READERS, error);
}

uar_err uar_store_sqlite_create(const struct uar_store_options *o, struct uar_store **out,
				struct uar_error *error)
{
	struct sq_store *s = uar_zalloc(sizeof *s);
	struct uar_error own = { 0 };
	uar_err e = UAR_ENOMEM;

	if (!s)
		return uar_error_set(error, e, "%s", uar_err_text(e));
	s->base.ops = &ops;
	s->base.upload_max = o->upload_max ? o->upload_max : UAR_LIMIT_BLOB_BYTES;
	s->sched = o->sched;
	s->log = o->log;
	s->wake_task.fn = wake_task;
	s->rand = o->rand ? *o->rand : uar_rand_system;
	s->call.broken = o->broken;
	s->call.broken_ctx = o->ctx;
	s->dir_fd = s->lock_fd = -1;
	s->writer.hold = (struct sq_hold){ .db_fd = -1, .log_fd = -1 };
	s->writer.mark.fd = -1;
	sq_busy_init(&s->writer.busy, o->log);
	sq_sweep_init(&s->sweep);
	sq_search_init(&s->search);
	uar_list_init(&s->clearing);
	s->path = sq_db_path(o->dir);
	s->vfs = o->vfs ? uar_strdup_n(o->vfs, strlen(o->vfs)) : NULL;
	s->done = s->writer.done = uar_done_create(o->sched);
	s->writer.broken.task.fn = broken_task;
	s->writer.fold_at = o->checkpoint_pages ? (int)o->checkpoint_pages : CHECKPOINT_PAGES;
	if (s->path && s->done && !s->vfs == !o->vfs)
		e = open_all(s, o, &own);
	if (e) {
		if (!own.code)
			uar_error_set(&own, e, "%s", uar_err_text(e));
		if (error)
			*error = own;
		sq_destroy(&s->base);
		return e;
	}
	*out = &s->base;
	return UAR_OK;
}
