/* reader.c - the threads that answer reads, each with a connection of its own.
 *
 * Operations wait in one bounded queue, in order of arrival. Blobs are read and
 * written here too: they wait for the disk like everything else.
 *
 * A result uses memory until the loop takes it. The threads stop when
 * UAR_LIMIT_READS_UNDELIVERED operations run or wait for the loop, and go on as
 * the loop takes them. */
#include "store/sqlite/sqlite_int.h"

#include "base/alloc.h"
#include "store/limits.h"

uar_err sq_readers_add(struct sq_readers *p, struct uar_task *task)
{
	uar_err e = UAR_OK;

	pthread_mutex_lock(&p->lock);
	if (p->queued >= UAR_LIMIT_READ_QUEUE) {
		e = UAR_EBUSY;
	} else {
		uar_list_add_last(&p->queue, &task->node);
		p->queued++;
	}
	pthread_mutex_unlock(&p->lock);
	if (!e)
		pthread_cond_signal(&p->wake);
	return e;
}

void sq_readers_delivered(struct sq_readers *p)
{
	bool wake;

	pthread_mutex_lock(&p->lock);
	wake = p->undelivered-- == UAR_LIMIT_READS_UNDELIVERED;
	pthread_mutex_unlock(&p->lock);
	if (wake) /* all threads wait at the limit */
		pthread_cond_broadcast(&p->wake);
}

static bool may_take(const struct sq_readers *p)
{
	return !uar_list_empty(&p->queue) && p->undelivered < UAR_LIMIT_READS_UNDELIVERED;
}

static struct uar_task *take(struct sq_readers *p)
{
	struct uar_task *t = NULL;

	pthread_mutex_lock(&p->lock);
	while (!may_take(p) && !p->stop)
		pthread_cond_wait(&p->wake, &p->lock);
	if (!p->stop) {
		t = UAR_OWNER(p->queue.next, struct uar_task, node);
		uar_list_remove(&t->node);
		p->queued--;
		p->undelivered++;
		p->reads++;
	}
	pthread_mutex_unlock(&p->lock);
	return t;
}

static void *reader_main(void *arg)
{
	struct sq_reader *rd = arg;
	struct uar_task *t;
	struct uar_list finished;

	uar_list_init(&finished);
	while ((t = take(rd->pool))) {
		sq_reader_run(rd, t);
		uar_list_add_last(&finished, &t->node);
		uar_done_push(rd->pool->store->done, &finished);
	}
	return NULL;
}

static uar_err start_one(struct sq_readers *p, struct sq_reader *rd, struct uar_error *error)
{
	uar_err e = sq_open(&rd->conn, p->store->path, p->store->vfs, SQ_READ, error);

	rd->pool = p;
	if (e)
		return e;
	if (pthread_create(&rd->thread, NULL, reader_main, rd))
		return uar_error_set(error, UAR_ENOMEM, "no thread for a reader");
	pthread_setname_np(rd->thread, "uar-read");
	rd->started = true;
	return UAR_OK;
}

uar_err sq_readers_start(struct sq_readers *p, struct sq_store *s, unsigned count,
			 struct uar_error *error)
{
	uar_err e = UAR_OK;

	p->store = s;
	p->reader = uar_zalloc(count * sizeof *p->reader);
	if (!p->reader)
		return uar_error_set(error, UAR_ENOMEM, "%s", uar_err_text(UAR_ENOMEM));
	p->count = count;
	uar_list_init(&p->queue);
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->wake, NULL);
	for (unsigned i = 0; i < count && !e; i++)
		e = start_one(p, &p->reader[i], error);
	return e;
}

static void stop_one(struct sq_reader *rd)
{
	if (rd->started)
		pthread_join(rd->thread, NULL);
	for (size_t i = 0; i < ARRAY_LEN(rd->lists); i++)
		sqlite3_finalize(rd->lists[i].st);
	sq_close(&rd->conn);
}

void sq_readers_stop(struct sq_readers *p)
{
	if (!p->reader)
		return;
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_mutex_unlock(&p->lock);
	pthread_cond_broadcast(&p->wake);
	for (unsigned i = 0; i < p->count; i++)
		stop_one(&p->reader[i]);
	pthread_cond_destroy(&p->wake);
	pthread_mutex_destroy(&p->lock);
	uar_free(p->reader);
	p->reader = NULL;
}
