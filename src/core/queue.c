/* queue.c - the queue of a thread: who waits, who may start, and the facts about it.
 *
 * The queue is the queued runs of the thread; the shell lists them. */
#include "core/emit.h"

bool uar_queue_waits(const struct uar_queue *q)
{
	return q && (q->busy || q->paused || q->length);
}

bool uar_queue_may_start(const struct uar_queue *q)
{
	return !q || (!q->busy && !q->paused);
}

void uar_core_queue_changed(struct emit *e, const struct uar_queue *after,
			    const struct queue_change *change)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "op", change->op);
	if (change->turn_id.n)
		uar_jw_str(w, "queued_turn_id", change->turn_id);
	uar_jw_arr(w, "order");
	for (size_t i = 0; i < after->listed; i++)
		uar_jw_str(w, NULL, after->at[i].turn_id);
	uar_jw_close(w);
	uar_jw_u64(w, "length", after->length);
	uar_jw_obj(w, "policy");
	uar_jw_cstr(w, "mode", "enqueue");
	uar_jw_bool(w, "paused", change->paused);
	uar_jw_close(w);
	if (change->reason.n)
		uar_jw_str(w, "reason", change->reason);
	uar_emit(e, UAR_EV_QUEUE_CHANGED, EMIT_THREAD);
}

static struct uar_queue queue_of(const struct emit *e)
{
	return e->env->queue ? *e->env->queue : (struct uar_queue){ 0 };
}

static void put_first(struct uar_queue *q, const struct uar_queued *entry)
{
	q->listed -= q->listed == UAR_LIMIT_QUEUE_LISTED;
	memmove(&q->at[1], &q->at[0], q->listed * sizeof q->at[0]);
	q->at[0] = *entry;
	q->listed++;
}

void uar_core_join_queue(struct emit *e, bool first)
{
	struct uar_queue q = queue_of(e);
	struct uar_queued entry = { e->r->id.run_id, e->r->id.turn_id };
	struct queue_change change = { .op = "added", .paused = q.paused };

	change.turn_id = e->r->id.turn_id;
	if (first)
		put_first(&q, &entry);
	else if (q.listed == q.length && q.listed < UAR_LIMIT_QUEUE_LISTED)
		q.at[q.listed++] = entry;
	q.length++;
	uar_core_queue_changed(e, &q, &change);
}

void uar_core_leave_queue(struct emit *e, const char *op)
{
	struct uar_queue q;
	struct queue_change change = { .op = op };

	if (!e->r->in_queue)
		return;
	q = queue_of(e);
	change.paused = q.paused;
	change.turn_id = e->r->id.turn_id;
	uar_core_queue_changed(e, &q, &change);
}
