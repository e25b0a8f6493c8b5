/* sched.c - a binary heap of timers by due time. */
#include "base/sched.h"

#include "base/alloc.h"

void uar_timers_fini(struct uar_timers *h)
{
	uar_free(h->heap);
	*h = (struct uar_timers){ 0 };
}

static void put_at(struct uar_timers *h, size_t i, struct uar_timer *t)
{
	h->heap[i] = t;
	t->heap_index = i;
}

static void move_up(struct uar_timers *h, size_t i)
{
	struct uar_timer *t = h->heap[i];

	for (; i > 1 && h->heap[i / 2]->due_us > t->due_us; i /= 2)
		put_at(h, i, h->heap[i / 2]);
	put_at(h, i, t);
}

static void move_down(struct uar_timers *h, size_t i)
{
	struct uar_timer *t = h->heap[i];

	for (;;) {
		size_t child = i * 2;

		if (child > h->n)
			break;
		if (child < h->n && h->heap[child + 1]->due_us < h->heap[child]->due_us)
			child++;
		if (h->heap[child]->due_us >= t->due_us)
			break;
		put_at(h, i, h->heap[child]);
		i = child;
	}
	put_at(h, i, t);
}

void uar_timers_stop(struct uar_timers *h, struct uar_timer *t)
{
	size_t i = t->heap_index;
	struct uar_timer *tail;

	if (i == 0)
		return;
	t->heap_index = 0;
	tail = h->heap[h->n--];
	if (tail == t)
		return;
	put_at(h, i, tail);
	move_up(h, i);
	move_down(h, tail->heap_index);
}

uar_err uar_timers_set(struct uar_timers *h, struct uar_timer *t, int64_t due_us)
{
	uar_timers_stop(h, t);
	if (h->n + 2 > h->cap) {
		size_t cap = h->cap ? h->cap * 2 : 64;
		struct uar_timer **heap = uar_realloc(h->heap, cap * sizeof *heap);

		if (!heap)
			return UAR_ENOMEM;
		h->heap = heap;
		h->cap = cap;
	}
	t->due_us = due_us;
	put_at(h, ++h->n, t);
	move_up(h, h->n);
	return UAR_OK;
}

struct uar_timer *uar_timers_first(const struct uar_timers *h)
{
	return h->n ? h->heap[1] : NULL;
}
