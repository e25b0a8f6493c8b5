/* writer.c - the store thread: one transaction for all that has queued up.
 *
 * While a commit waits for the disk, appends gather; the next commit takes
 * them together, and those that come while it writes its rows. After a sleep
 * it writes while the loop's turn still brings more, and commits once that turn
 * is over. `done` of every append of a batch is handed to the loop with
 * one wake-up, after COMMIT with synchronous=FULL has returned. When COMMIT
 * fails nobody is told yes: a full disk refuses until there is space again,
 * anything else in COMMIT means that the disk no longer keeps its word, and the
 * store never acknowledges again (a second fsync could succeed on pages that
 * the kernel has already thrown away). */
#include "store/limits.h"
#include "store/sqlite/sqlite_int.h"

#include <unistd.h>

enum {
	CHECKPOINT_IDLE = 100, /* pages that are folded in after IDLE_US without appends */
	IDLE_US = 100000,
	MARK_US = 1000000, /* uar.mark is written as often at most */
	/* A log that a reader keeps long is looked at again, after this at the latest, so many
	 * times. Every commit gives it as many again. */
	RETRY_US = 5000000,
	RETRIES = 100,
	START = 4, /* appends worth being woken for while more of them come */
};

static struct sq_op *op_of(struct uar_list *node)
{
	struct uar_task *t = UAR_OWNER(node, struct uar_task, node);

	return UAR_OWNER(t, struct uar_append, task)->internal;
}

static size_t op_bytes(const struct sq_op *op)
{
	return op->text.n + op->arena.used;
}

uar_err sq_writer_add(struct sq_writer *w, struct sq_op *op, bool *out_asleep)
{
	uar_err e = UAR_OK;
	bool start = false;

	*out_asleep = false;
	pthread_mutex_lock(&w->lock);
	if (w->health == UAR_STORE_BROKEN) {
		e = UAR_ESYNC;
	} else if (w->queued >= UAR_LIMIT_STORE_QUEUE ||
		   w->queued_bytes + op_bytes(op) > UAR_LIMIT_STORE_QUEUE_BYTES) {
		e = UAR_EBUSY;
	} else {
		uar_list_add_last(&w->queue, &op->a->task.node);
		w->queued++;
		w->queued_bytes += op_bytes(op);
		*out_asleep = w->idle;
		w->open |= w->idle;
		w->idle = false;
		start = w->open && w->queued == START;
	}
	pthread_mutex_unlock(&w->lock);
	if (start)
		pthread_cond_signal(&w->wake);
	return e;
}

void sq_writer_wake(struct sq_writer *w)
{
	pthread_mutex_lock(&w->lock);
	w->open = false;
	pthread_mutex_unlock(&w->lock);
	pthread_cond_signal(&w->wake);
}

/* From now on nothing is acknowledged; true: it was fine before. */
static bool set_broken(struct sq_writer *w, const struct uar_error *error)
{
	bool first;

	pthread_mutex_lock(&w->lock);
	first = w->health != UAR_STORE_BROKEN;
	if (first) {
		w->health = UAR_STORE_BROKEN;
		w->broken.error = *error;
	}
	pthread_mutex_unlock(&w->lock);
	return first;
}

static void report_broken(struct sq_writer *w)
{
	struct uar_list tell;

	uar_list_init(&tell);
	uar_list_add_last(&tell, &w->broken.task.node);
	uar_done_push(w->done, &tell);
}

void sq_writer_break(struct sq_writer *w, const struct uar_error *error)
{
	if (set_broken(w, error))
		report_broken(w);
}

static enum uar_store_health health_of(struct sq_writer *w)
{
	enum uar_store_health h;

	pthread_mutex_lock(&w->lock);
	h = w->health;
	pthread_mutex_unlock(&w->lock);
	return h;
}

static int on_wal(void *ctx, sqlite3 *db, const char *name, int frames)
{
	struct sq_writer *w = ctx;

	(void)db, (void)name;
	if (frames < w->folded)
		w->folded = 0; /* the log began anew */
	w->frames = w->committed = frames;
	if (w->retry.pause)
		w->retry.left = RETRIES;
	return SQLITE_OK;
}

/* The file of the log keeps the size of its longest day, unless somebody shortens it. */
static sqlite3_int64 log_size(struct sq_writer *w)
{
	sqlite3_file *log = NULL;
	sqlite3_int64 size = 0;

	if (sqlite3_file_control(w->conn.db, NULL, SQLITE_FCNTL_JOURNAL_POINTER, &log) || !log ||
	    !log->pMethods || log->pMethods->xFileSize(log, &size))
		return 0;
	return size;
}

static bool is_long(struct sq_writer *w)
{
	return health_of(w) != UAR_STORE_BROKEN && log_size(w) > sq_log_kept(w->fold_at);
}

/* Nobody tells when a reader goes: it may be another process. */
static void plan_retry(struct sq_retry *r, bool wanted)
{
	if (!wanted) {
		*r = (struct sq_retry){ 0 };
		return;
	}
	r->left = r->pause ? r->left - 1 : RETRIES;
	r->pause = r->pause ? 2 * r->pause : IDLE_US;
	if (r->pause > RETRY_US)
		r->pause = RETRY_US;
	r->at = uar_clock_mono(&uar_clock_system) + r->pause;
}

/* A failed sync counts like one in COMMIT. Anything else has lost nothing, and is tried again:
 * the log grows meanwhile, and somebody should know why. */
static void fold_failed(struct sq_writer *w, int rc)
{
	struct uar_error error = { 0 };

	if (sq_fail(&w->conn, rc, &error) == UAR_ESYNC)
		sq_writer_break(w, &error);
	if ((rc & 0xff) == SQLITE_BUSY || (rc & 0xff) == SQLITE_LOCKED)
		return; /* somebody reads */
	pthread_mutex_lock(&w->lock);
	w->stats.fold_failures++;
	pthread_mutex_unlock(&w->lock);
}

/* SQLite's status. Pages of the log would fill a uar.db that was cut short up to its old size and
 * hide the damage, so its size is checked first. */
static int fold(struct sq_writer *w, int mode, int *out_folded)
{
	struct uar_error cut = { 0 };
	int rc;

	if (sq_hold_check(&w->hold, 0, &cut) == UAR_ECORRUPT) {
		cut.code = UAR_EIO;
		sq_writer_break(w, &cut);
		return SQLITE_IOERR;
	}
	rc = sqlite3_wal_checkpoint_v2(w->conn.db, NULL, mode, NULL, out_folded);
	if (rc)
		fold_failed(w, rc);
	sq_hold_grown(&w->hold);
	return rc;
}

/* Nothing is lost: SQLite empties a log that is folded in as a whole, and synced, and
 * leaves one that a reader still needs to the next time. */
static void shorten(struct sq_writer *w)
{
	if (!is_long(w))
		return;
	sqlite3_busy_handler(w->conn.db, NULL, NULL);
	(void)fold(w, SQLITE_CHECKPOINT_TRUNCATE, NULL);
	sq_busy_watch(&w->busy, w->conn.db);
}

/* Folds the write-ahead log into the file, while nobody waits for an answer.
 * Readers are never waited for. */
static void checkpoint(struct sq_writer *w, int at_least)
{
	int rc, folded = 0;

	if (w->frames - w->folded < at_least || health_of(w) == UAR_STORE_BROKEN)
		return;
	rc = fold(w, SQLITE_CHECKPOINT_PASSIVE, &folded);
	w->folded = rc ? w->frames : folded; /* not again at once */
	(void)sq_mark_flush(&w->mark);
}

static bool enough(const struct sq_writer *w)
{
	return w->queued >= (w->open ? START : 1);
}

/* When the log is to be tidied up if nothing else comes; 0: never. */
static int64_t tidy_at(const struct sq_writer *w)
{
	int64_t soon = uar_clock_mono(&uar_clock_system) + IDLE_US;

	if (w->frames - w->folded >= CHECKPOINT_IDLE)
		return soon;
	if (w->retry.left > 0)
		return w->retry.at > soon ? w->retry.at : soon;
	return 0;
}

/* When uar.mark is to be written if nothing else comes; 0: it is up to date. */
static int64_t mark_at(const struct sq_writer *w)
{
	return w->mark.written == w->mark.acked.pos ? 0 : w->mark.at + MARK_US;
}

static int64_t earlier_of(int64_t a, int64_t b)
{
	return !a || (b && b < a) ? b : a;
}

static void tidy_up(struct sq_writer *w)
{
	bool stays;

	checkpoint(w, CHECKPOINT_IDLE);
	shorten(w);
	stays = is_long(w);
	pthread_mutex_lock(&w->lock);
	plan_retry(&w->retry, stays);
	pthread_mutex_unlock(&w->lock);
	w->folded = w->frames; /* what readers kept from it waits for a retry, or the next commit */
}

/* Sleeps until something is queued, or there is time to tidy up. */
static void wait_for_work(struct sq_writer *w)
{
	int64_t tidy = tidy_at(w), at = earlier_of(tidy, mark_at(w));
	struct timespec until = { at / 1000000, at % 1000000 * 1000 };
	int rc = 0;

	w->idle = true;
	if (!at) {
		pthread_cond_wait(&w->wake, &w->lock);
		return;
	}
	while (!rc && !enough(w) && !w->stop)
		rc = pthread_cond_timedwait(&w->wake, &w->lock, &until);
	if (!uar_list_empty(&w->queue) || w->stop)
		return;
	pthread_mutex_unlock(&w->lock);
	if (at == tidy)
		tidy_up(w);
	else
		(void)sq_mark_flush(&w->mark);
	pthread_mutex_lock(&w->lock);
}

/* Moves what waits, as far as one commit takes it. The lock is held: all of it at once, where
 * that fits, as the loop waits meanwhile. */
static void take(struct sq_writer *w, struct uar_list *out)
{
	if (w->queued <= UAR_LIMIT_STORE_BATCH - w->taken) {
		uar_list_move_all(&w->queue, out);
		w->taken += w->queued;
		w->queued = w->queued_bytes = 0;
		return;
	}
	for (; w->taken < UAR_LIMIT_STORE_BATCH && !uar_list_empty(&w->queue); w->taken++) {
		struct uar_list *node = w->queue.next;

		uar_list_remove(node);
		uar_list_add_last(out, node);
		w->queued--;
		w->queued_bytes -= op_bytes(op_of(node));
	}
}

/* Waits for appends; false when the store closes and none is left. */
static bool take_batch(struct sq_writer *w, struct uar_list *out)
{
	pthread_mutex_lock(&w->lock);
	while (!enough(w) && !w->stop)
		wait_for_work(w);
	w->idle = false;
	w->taken = 0;
	take(w, out);
	pthread_mutex_unlock(&w->lock);
	return !uar_list_empty(out);
}

/* What has come since; false when it is time to commit. */
static bool take_more(struct sq_writer *w, struct uar_list *out)
{
	pthread_mutex_lock(&w->lock);
	while (w->open && !enough(w) && !w->stop)
		pthread_cond_wait(&w->wake, &w->lock);
	take(w, out);
	pthread_mutex_unlock(&w->lock);
	return !uar_list_empty(out);
}

/* Appends that were all refused have written nothing, and say nothing of the disk. */
static void note_space(struct sq_writer *w, uar_err e, bool wrote)
{
	if (e != UAR_EDISKFULL && (e || !wrote))
		return;
	if (e)
		sq_note_full(UAR_OWNER(w, struct sq_store, writer));
	pthread_mutex_lock(&w->lock);
	if (w->health < UAR_STORE_DAMAGED)
		w->health = e ? UAR_STORE_FULL : UAR_STORE_FINE;
	pthread_mutex_unlock(&w->lock);
}

/* What does not meet the damage can still be written; a file that was cut short ends the store. */
static void note_damage(struct sq_writer *w, const struct uar_error *error)
{
	struct uar_error cut = { 0 };
	bool first;

	if (!w->conn.damaged)
		return;
	if (sq_hold_check(&w->hold, 0, &cut)) {
		cut.code = UAR_EIO;
		w->broken.report |= set_broken(w, &cut);
	}
	pthread_mutex_lock(&w->lock);
	first = w->health < UAR_STORE_DAMAGED;
	if (first)
		w->health = UAR_STORE_DAMAGED;
	pthread_mutex_unlock(&w->lock);
	if (first)
		uar_log(w->busy.log, UAR_LOG_ERROR, "store.damaged",
			{ "reason", uar_str_c(error->text) },
			{ "text",
			  UAR_STR("writes fail where they meet the damage: stop the server, "
				  "run `uar check`, restore a backup") });
}

static void rollback(struct sq_writer *w)
{
	struct uar_error ignored = { 0 };

	if (!sqlite3_get_autocommit(w->conn.db) && sq_run(&w->conn, SQ_ROLLBACK, NULL, 0, &ignored))
		sq_writer_break(w, &ignored);
	w->apply.stale = true;
}

static void count_commit(struct sq_writer *w, const struct uar_list *batch, uint64_t us)
{
	struct uar_store_stats *s = &w->stats;

	pthread_mutex_lock(&w->lock);
	s->commits++;
	s->commit_us_total += us;
	if (us > s->commit_us_max)
		s->commit_us_max = us;
	UAR_LIST_EACH (it, batch) {
		const struct sq_op *op = op_of(it);

		s->conflicts += op->a->err != UAR_OK;
		if (op->a->err)
			continue;
		s->appends++;
		s->events += op->event_count;
		s->bytes += op->text.n;
	}
	pthread_mutex_unlock(&w->lock);
}

/* What is in a file that no start will find, or in a part that was cut off, is not durable. A log
 * without a name is folded in: it still has all that was acknowledged. */
static uar_err still_there(struct sq_writer *w, int frames, struct uar_error *error)
{
	int64_t bytes = frames ? SQ_LOG_HEAD_BYTES + (int64_t)frames * SQ_FRAME_BYTES : 0;
	uar_err e = sq_hold_check(&w->hold, bytes, error);

	if (e == UAR_ENOTFOUND)
		sqlite3_wal_checkpoint_v2(w->conn.db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
	if (e)
		error->code = UAR_EIO;
	return e ? UAR_EIO : UAR_OK;
}

static uar_err run_commit(struct sq_writer *w, struct uar_error *error)
{
	struct uar_error cut = { 0 };
	uar_err e;

	w->committed = 0;
	e = sq_run(&w->conn, SQ_COMMIT, NULL, 0, error);
	if (!e)
		return still_there(w, w->committed, error);
	if (e == UAR_EIO && still_there(w, w->frames, &cut))
		*error = cut;
	return e;
}

/* COMMIT. Every failure but "no space" ends the store: the rows may be in the log file
 * already, with or without their sync, and only a new start finds out. ("No space" comes
 * from a frame that could not be written, so the commit is not in the log.) The failure is
 * reported when the appends of the batch have got their answer. */
static uar_err commit(struct sq_writer *w, const struct uar_list *batch, struct uar_error *error)
{
	int64_t start = uar_clock_mono(&uar_clock_system);
	uar_err e = run_commit(w, error);

	if (!e) {
		count_commit(w, batch, (uint64_t)(uar_clock_mono(&uar_clock_system) - start));
		if (w->mark.acked.pos != w->apply.head.pos) {
			w->mark.acked.pos = w->apply.head.pos;
			w->mark.acked.sum = w->apply.last_sum;
		}
		return UAR_OK;
	}
	if (e == UAR_EDISKFULL)
		return e;
	error->code = UAR_ESYNC;
	w->broken.report |= set_broken(w, error);
	error->code = UAR_EUNKNOWN;
	return UAR_EUNKNOWN;
}

static uar_err apply(struct sq_writer *w, const struct uar_list *batch, struct uar_error *error)
{
	uar_err e = UAR_OK;

	UAR_LIST_EACH (it, batch) {
		e = sq_apply_append(&w->apply, op_of(it), error);
		if (e)
			break;
	}
	return e;
}

static uar_err apply_more(struct sq_writer *w, struct uar_list *batch, struct uar_error *error)
{
	struct uar_list more;
	uar_err e = UAR_OK;

	uar_list_init(&more);
	while (!e && take_more(w, &more)) {
		e = apply(w, &more, error);
		uar_list_move_all(&more, batch);
	}
	return e;
}

/* `all`: what comes meanwhile joins the batch. */
static uar_err try_batch(struct sq_writer *w, struct uar_list *batch, bool all,
			 struct uar_error *error)
{
	int64_t pos;
	uar_err e;

	if (health_of(w) == UAR_STORE_BROKEN) {
		*error = w->broken.error;
		error->code = UAR_ESYNC;
		return UAR_ESYNC;
	}
	e = w->apply.stale ? sq_apply_reload(&w->apply, error) : UAR_OK;
	if (!e)
		e = sq_run(&w->conn, SQ_BEGIN, NULL, 0, error);
	if (e) {
		note_space(w, e, false);
		note_damage(w, error);
		return e;
	}
	sq_busy_over(&w->busy);
	pos = w->apply.head.pos;
	e = apply(w, batch, error);
	if (!e && all)
		e = apply_more(w, batch, error);
	if (!e && w->apply.head.pos != pos)
		e = sq_apply_head(&w->apply, error);
	if (!e)
		e = commit(w, batch, error);
	note_space(w, e, w->apply.head.pos != pos);
	note_damage(w, error);
	if (e)
		rollback(w);
	return e;
}

static void fail_batch(struct uar_list *batch, uar_err e, const struct uar_error *error)
{
	UAR_LIST_EACH (it, batch) {
		struct uar_append *a = op_of(it)->a;

		a->err = e;
		a->error = *error;
		a->error.code = e;
	}
}

/* One bad append must not take its neighbours with it: each alone. */
static void try_one_by_one(struct sq_writer *w, struct uar_list *batch)
{
	struct uar_list one, tried;

	uar_list_init(&one);
	uar_list_init(&tried);
	while (!uar_list_empty(batch)) {
		struct uar_list *node = batch->next;
		struct uar_error error = { 0 };
		uar_err e;

		uar_list_remove(node);
		uar_list_add_last(&one, node);
		e = try_batch(w, &one, false, &error);
		if (e)
			fail_batch(&one, e, &error);
		uar_list_move_all(&one, &tried);
	}
	uar_list_move_all(&tried, batch);
}

/* None of them would fare better alone; each would wait as long again. */
static bool blames_all(uar_err e)
{
	return e == UAR_EDISKFULL || e == UAR_ESYNC || e == UAR_EUNKNOWN || e == UAR_EHELD;
}

static void do_batch(struct sq_writer *w, struct uar_list *batch)
{
	struct uar_error error = { 0 };
	uar_err e = try_batch(w, batch, true, &error);

	if (e == UAR_ENOMEM)
		sqlite3_db_release_memory(w->conn.db);
	if (blames_all(e) || (e && batch->next == batch->prev))
		fail_batch(batch, e, &error);
	else if (e)
		try_one_by_one(w, batch);
}

static void mark_in_time(struct sq_writer *w)
{
	int64_t at = mark_at(w);

	if (at && uar_clock_mono(&uar_clock_system) >= at)
		(void)sq_mark_flush(&w->mark);
}

static void *writer_main(void *arg)
{
	struct sq_writer *w = arg;
	struct uar_list batch;

	uar_list_init(&batch);
	while (take_batch(w, &batch)) {
		do_batch(w, &batch);
		uar_done_push(w->done, &batch);
		if (w->broken.report)
			report_broken(w);
		w->broken.report = false;
		checkpoint(w, w->fold_at);
		mark_in_time(w);
	}
	return NULL;
}

/* What a killed process has left counts as frames that wait, however many of them are:
 * they are folded in once there is nothing else to do. */
static uar_err bound_log(struct sq_writer *w, struct uar_error *error)
{
	char sql[64];

	w->frames = (int)(log_size(w) / SQ_FRAME_BYTES);
	snprintf(sql, sizeof sql, "PRAGMA journal_size_limit=%lld",
		 (long long)sq_log_kept(w->fold_at));
	return sq_exec(&w->conn, sql, error);
}

uar_err sq_writer_start(struct sq_writer *w, struct uar_error *error)
{
	pthread_condattr_t attr;
	uar_err e;

	uar_list_init(&w->queue);
	sq_apply_init(&w->apply, &w->conn);
	e = sq_apply_reload(&w->apply, error);
	if (!e)
		e = bound_log(w, error);
	if (e)
		return e;
	sqlite3_wal_hook(w->conn.db, on_wal, w);
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->wake, &attr);
	pthread_condattr_destroy(&attr);
	if (pthread_create(&w->thread, NULL, writer_main, w)) {
		pthread_cond_destroy(&w->wake);
		pthread_mutex_destroy(&w->lock);
		return uar_error_set(error, UAR_ENOMEM, "no thread for the writer");
	}
	pthread_setname_np(w->thread, "uar-store");
	w->running = true;
	return UAR_OK;
}

void sq_writer_stop(struct sq_writer *w)
{
	sq_busy_stop(&w->busy);
	if (w->running) {
		pthread_mutex_lock(&w->lock);
		w->stop = true;
		pthread_mutex_unlock(&w->lock);
		pthread_cond_signal(&w->wake);
		pthread_join(w->thread, NULL);
		pthread_cond_destroy(&w->wake);
		pthread_mutex_destroy(&w->lock);
		w->running = false;
	}
	(void)sq_mark_flush(&w->mark);
	if (w->mark.fd >= 0)
		close(w->mark.fd);
	w->mark.fd = -1;
	if (w->health == UAR_STORE_BROKEN) /* no second sync on what the first one lost */
		sqlite3_db_config(w->conn.db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	sq_apply_fini(&w->apply);
	sq_close(&w->conn);
	sq_busy_fini(&w->busy);
}
