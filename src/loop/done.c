/* done.c - finished operations go back to the loop in batches. */
#include "loop/done.h"

#include "base/alloc.h"

static void deliver(struct uar_task *wake)
{
	struct uar_done *d = UAR_OWNER(wake, struct uar_done, wake);
	struct uar_list ready;

	uar_list_init(&ready);
	pthread_mutex_lock(&d->lock);
	d->posted = false;
	uar_list_move_all(&d->finished, &ready);
	pthread_mutex_unlock(&d->lock);
	while (!uar_list_empty(&ready)) {
		struct uar_task *t = UAR_OWNER(ready.next, struct uar_task, node);

		uar_list_remove(&t->node);
		t->fn(t);
	}
}

struct uar_done *uar_done_create(struct uar_sched *sched)
{
	struct uar_done *d = uar_zalloc(sizeof *d);

	if (!d)
		return NULL;
	d->sched = sched;
	d->wake.fn = deliver;
	uar_list_init(&d->finished);
	pthread_mutex_init(&d->lock, NULL);
	return d;
}

void uar_done_destroy(struct uar_done *d)
{
	if (!d)
		return;
	if (d->posted)
		uar_unpost(d->sched, &d->wake);
	pthread_mutex_destroy(&d->lock);
	uar_free(d);
}

void uar_done_take(struct uar_done *d, struct uar_list *out)
{
	pthread_mutex_lock(&d->lock);
	uar_list_move_all(&d->finished, out);
	pthread_mutex_unlock(&d->lock);
}

void uar_done_push(struct uar_done *d, struct uar_list *tasks)
{
	bool wake;

	if (uar_list_empty(tasks))
		return;
	pthread_mutex_lock(&d->lock);
	uar_list_move_all(tasks, &d->finished);
	wake = !d->posted;
	d->posted = true;
	pthread_mutex_unlock(&d->lock);
	if (wake)
		uar_post_remote(d->sched, &d->wake);
}
