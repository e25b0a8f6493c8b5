/* library_pool.c - the threads of a library.
 *
 * They are started when there is work for them, up to the manifest's concurrency, and
 * stay. Nothing of the host is touched on them but the library and the job, under the
 * library's lock. */
#include "plugin/library_int.h"

#include <signal.h>

enum { STALL_US = 1000 };

uint32_t pool_live(const struct library *l)
{
	return l->pool.threads - l->pool.lost;
}

/* Under the lock. NULL: this thread is not wanted any more. */
static struct job *next_job(struct library *l)
{
	struct library_pool *p = &l->pool;
	struct job *j;

	while (!l->closed && pool_live(l) <= p->max && uar_list_empty(&l->queue)) {
		p->idle++;
		pthread_cond_wait(&l->work, &l->lock);
		p->idle--;
		p->called -= p->called > 0;
	}
	if (l->closed || pool_live(l) > p->max)
		return NULL;
	j = UAR_OWNER(l->queue.next, struct job, queued);
	uar_list_remove(&j->queued);
	j->state = JOB_RUNNING;
	j->epoch = p->epoch;
	p->queued--;
	p->running++;
	p->taken++;
	return j;
}

/* Under the lock: the loop gets the job back, or nobody is there to get it. */
static void returned(struct library *l, struct job *j)
{
	j->state = JOB_RETURNED;
	l->pool.running--;
	l->pool.slow -= j->epoch != l->pool.epoch;
	l->pool.lost -= j->lost;
	if (l->closed)
		job_free(j);
	else
		library_post(l, j);
}

static void *thread(void *ctx)
{
	struct library *l = ctx;
	struct job *j;
	bool last;

	pthread_mutex_lock(&l->lock);
	l->pool.called -= l->pool.called > 0;
	while ((j = next_job(l))) {
		pthread_mutex_unlock(&l->lock);
		job_execute(j);
		pthread_mutex_lock(&l->lock);
		returned(l, j);
	}
	l->pool.threads--;
	last = --l->users == 0;
	pthread_cond_signal(&l->quiet);
	pthread_mutex_unlock(&l->lock);
	if (last)
		library_free(l);
	return NULL;
}

/* Under the lock. Signals stay with the thread that waits for them. */
static bool add_thread(struct library *l)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	pthread_t id;
	bool good;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	good = pthread_create(&id, &attributes, thread, l) == 0;
	pthread_attr_destroy(&attributes);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	l->pool.threads += good;
	l->pool.called += good;
	l->users += good;
	return good;
}

/* Under the lock: one more thread for the queue. */
static bool call_thread(struct library *l)
{
	struct library_pool *p = &l->pool;

	if (p->idle <= p->called)
		return pool_live(l) < p->max && add_thread(l);
	p->called++;
	pthread_cond_signal(&l->work);
	return true;
}

void pool_stalled(struct uar_timer *t)
{
	struct library *l = UAR_OWNER(t, struct library, stall);
	struct library_pool *p = &l->pool;
	size_t more = 0;

	pthread_mutex_lock(&l->lock);
	if (p->queued && p->taken == p->seen) {
		p->epoch++;
		p->slow = p->running;
		more = p->running > p->quick ? p->running : p->quick;
	}
	for (more = more < p->queued ? more : p->queued; more && call_thread(l);)
		more--;
	p->seen = p->taken;
	more = p->queued;
	pthread_mutex_unlock(&l->lock);
	if (more && uar_timer_set(l->sched, t, STALL_US))
		plugin_note(l->plugin, UAR_LOG_ERROR, "plugin.no_timer", NULL, UAR_STR(""));
}

bool pool_submit(struct library *l, struct job *j)
{
	struct library_pool *p = &l->pool;
	bool good = true, wait;

	pthread_mutex_lock(&l->lock);
	wait = p->running - p->slow + p->called >= p->quick;
	if (!wait || (!l->stall.heap_index && uar_timer_set(l->sched, &l->stall, STALL_US)))
		good = call_thread(l) || pool_live(l) > 0;
	if (good) {
		uar_list_add_last(&l->queue, &j->queued);
		p->queued++;
	}
	pthread_mutex_unlock(&l->lock);
	return good;
}
