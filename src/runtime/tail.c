/* tail.c - a bounded number of runs, the least recently written forgotten first.
 *
 * A run is here from its first event on or not at all: with more live runs than
 * places each commit would push out another one, which would be back with its
 * next. One that says more than its share is forgotten, since nobody who comes
 * for the whole of it would be served. */
#include "runtime/tail.h"

struct tail {
	struct uar_list node;	  /* in rt->tails.list, oldest first */
	struct uar_arena fixed;	  /* identity */
	struct uar_arena arena;	  /* events */
	struct uar_arena shown;	  /* row */
	struct uar_event spine;	  /* ids that all its events share */
	struct uar_event *events; /* on the heap, since they grow */
	size_t n, room;
	struct uar_run_row row; /* run_id empty: none yet */
	uar_str key;
};

static void forget(struct uar_runtime *rt, struct tail *t)
{
	uar_map_remove(&rt->tails.map, t->key);
	uar_list_remove(&t->node);
	uar_arena_fini(&t->arena);
	uar_arena_fini(&t->shown);
	uar_arena_fini(&t->fixed);
	uar_free(t->events);
	uar_free(t);
	rt->tails.count--;
}

void rt_tail_fini(struct uar_runtime *rt)
{
	UAR_LIST_EACH (it, &rt->tails.list)
		forget(rt, UAR_OWNER(it, struct tail, node));
	uar_map_fini(&rt->tails.map);
}

static bool copy(struct uar_arena *a, uar_str *s)
{
	if (!s->n)
		return true;
	*s = uar_arena_str(a, *s);
	return s->p != NULL; /* which is empty, too, when there is no memory */
}

static const enum uar_id shared[] = { UAR_ID_RUNTIME, UAR_ID_TENANT,  UAR_ID_WORKSPACE, UAR_ID_USER,
				      UAR_ID_SESSION, UAR_ID_THREAD,  UAR_ID_TURN,	UAR_ID_TASK,
				      UAR_ID_RUN,     UAR_ID_ATTEMPT, UAR_ID_TRACE };

static struct tail *make(struct uar_runtime *rt, const struct live_run *r,
			 const struct uar_event *first)
{
	struct tail *t = uar_zalloc(sizeof *t);
	bool good = t != NULL;

	if (!t)
		return NULL;
	uar_list_init(&t->node);
	for (size_t i = 0; i < ARRAY_LEN(shared) && good; i++) {
		t->spine.ids[shared[i]] = first->ids[shared[i]];
		good = copy(&t->fixed, &t->spine.ids[shared[i]]);
	}
	t->key = r->run_key;
	if (!good || !copy(&t->fixed, &t->key) || uar_map_put(&rt->tails.map, t->key, t)) {
		uar_arena_fini(&t->fixed);
		uar_free(t);
		return NULL;
	}
	uar_list_add_last(&rt->tails.list, &t->node);
	rt->tails.count++;
	return t;
}

/* Ids that equal the spine's are shared, others are copied. */
static bool copy_event(struct tail *t, const struct uar_event *from, struct uar_event *to)
{
	bool good = true;

	*to = *from;
	to->tree = NULL;
	for (int i = 0; i < UAR_ID_COUNT && good; i++) {
		if (!from->ids[i].n)
			continue;
		if (uar_str_eq(from->ids[i], t->spine.ids[i]))
			to->ids[i] = t->spine.ids[i];
		else
			good = copy(&t->arena, &to->ids[i]);
	}
	return good && copy(&t->arena, &to->event_id) && copy(&t->arena, &to->payload) &&
	       copy(&t->arena, &to->refs);
}

static bool make_room(struct tail *t, size_t n)
{
	size_t room = t->room ? t->room : 16;
	struct uar_event *events;

	while (room < t->n + n)
		room *= 2;
	if (room == t->room)
		return true;
	events = uar_realloc(t->events, room * sizeof *events);
	if (!events)
		return false;
	t->events = events;
	t->room = room;
	return true;
}

static bool add_events(struct tail *t, const struct uar_event *events, size_t n)
{
	if (t->n + n > UAR_LIMIT_TAIL_EVENTS || t->arena.used > UAR_LIMIT_TAIL_BYTES ||
	    !make_room(t, n))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!copy_event(t, &events[i], &t->events[t->n++]))
			return false;
	return true;
}

static bool set_row(struct tail *t, const struct uar_run_row *row)
{
	uar_arena_reset(&t->shown);
	return uar_run_row_copy(&t->shown, row, &t->row);
}

void rt_tail_commit(struct uar_runtime *rt, const struct live_run *r,
		    const struct uar_event *events, size_t n, const struct uar_run_row *row)
{
	struct tail *t = uar_map_get(&rt->tails.map, r->run_key);

	if (n == 0)
		return;
	if (!t && events[0].run_sequence == 1)
		t = make(rt, r, &events[0]);
	if (!t)
		return;
	uar_list_remove(&t->node);
	uar_list_add_last(&rt->tails.list, &t->node);
	if (!add_events(t, events, n) || (row && !set_row(t, row)))
		forget(rt, t);
	while (rt->tails.count > UAR_LIMIT_TAIL_RUNS)
		forget(rt, UAR_OWNER(rt->tails.list.next, struct tail, node));
}

static struct tail *find(struct uar_runtime *rt, const struct uar_owner *owner, uar_str run_id)
{
	struct rt_key k;

	return uar_map_get(&rt->tails.map, rt_key(&k, owner, run_id));
}

bool rt_tail_read(struct uar_runtime *rt, struct tail_page *p)
{
	struct tail *t = find(rt, p->owner, p->run_id);
	size_t skip;

	if (!t || !t->n || p->after + 1 < t->events[0].run_sequence)
		return false;
	skip = (size_t)(p->after + 1 - t->events[0].run_sequence);
	if (skip > t->n)
		skip = t->n;
	p->events = t->events + skip;
	p->n = t->n - skip;
	return true;
}

bool uar_runtime_recent_run(struct uar_runtime *rt, const struct uar_owner *owner, uar_str run_id,
			    const struct uar_run_row **out)
{
	struct tail *t = find(rt, owner, run_id);

	if (!t || !t->row.run_id.n)
		return false;
	*out = &t->row;
	return true;
}
