/* tail.c - a bounded number of runs, the least recently written forgotten first.
 *
 * A run is here from its first event on or not at all: with more live runs than
 * places each commit would push out another one, which would be back with its
 * next. One that says more than its share is forgotten, since nobody who comes
 * for the whole of it would be served. */
#include "runtime/tail.h"

struct own_id {
	enum uar_id id;
	uar_str text;
};

/* An event without what all of its run have in common. An event has room for every
 * id there is; kept as it is, it would be five times as large. */
struct kept {
	enum uar_event_class cls;
	uint32_t shared; /* UAR_ID_BITs: the spine's */
	uar_str type, event_id, payload, refs;
	int64_t time_us;
	uint64_t sequence, run_sequence;
	struct own_id *own;
	size_t own_count;
};

struct tail {
	struct uar_list node;	/* in rt->tails.list, oldest first */
	struct uar_arena arena; /* spine, events */
	struct uar_arena shown; /* row */
	uar_str spine[UAR_ID_COUNT];
	struct kept *events; /* on the heap, since they grow */
	size_t n, room;
	size_t bytes;		/* of it all, as counted in rt->tails */
	struct uar_run_row row; /* run_id empty: none yet */
	uar_str key;
};

static void forget(struct uar_runtime *rt, struct tail *t)
{
	uar_map_remove(&rt->tails.map, t->key);
	uar_list_remove(&t->node);
	uar_arena_fini(&t->arena);
	uar_arena_fini(&t->shown);
	uar_free(t->events);
	rt->tails.count--;
	rt->tails.bytes -= t->bytes;
	uar_free(t);
}

void rt_tail_fini(struct uar_runtime *rt)
{
	UAR_LIST_EACH (it, &rt->tails.list)
		forget(rt, UAR_OWNER(it, struct tail, node));
	uar_map_fini(&rt->tails.map);
}

void rt_tail_forget(struct uar_runtime *rt, const struct uar_owner *owner, uar_str run_id)
{
	struct rt_key k;
	struct tail *t = uar_map_get(&rt->tails.map, rt_key(&k, owner, run_id));

	if (t)
		forget(rt, t);
}

static const enum uar_id shared[] = { UAR_ID_RUNTIME, UAR_ID_TENANT,  UAR_ID_WORKSPACE, UAR_ID_USER,
				      UAR_ID_SESSION, UAR_ID_THREAD,  UAR_ID_TURN,	UAR_ID_TASK,
				      UAR_ID_RUN,     UAR_ID_ATTEMPT, UAR_ID_TRACE };

static struct tail *make(struct uar_runtime *rt, const struct live_run *r,
			 const struct uar_event *first)
{
	struct tail *t = uar_zalloc(sizeof *t);
	uar_str *own[ARRAY_LEN(shared) + 1];

	if (!t)
		return NULL;
	uar_list_init(&t->node);
	for (size_t i = 0; i < ARRAY_LEN(shared); i++) {
		own[i] = &t->spine[shared[i]];
		*own[i] = first->ids[shared[i]];
	}
	own[ARRAY_LEN(shared)] = &t->key;
	t->key = r->run_key;
	if (!uar_arena_strs(&t->arena, own, ARRAY_LEN(own)) ||
	    uar_map_put(&rt->tails.map, t->key, t)) {
		uar_arena_fini(&t->arena);
		uar_free(t);
		return NULL;
	}
	uar_list_add_last(&rt->tails.list, &t->node);
	rt->tails.count++;
	return t;
}

static bool keep_ids(struct tail *t, const struct uar_event *ev, struct kept *to)
{
	struct own_id own[UAR_ID_COUNT];
	size_t n = 0;

	for (int i = 0; i < UAR_ID_COUNT; i++) {
		if (!ev->ids[i].n)
			continue;
		if (uar_str_eq(ev->ids[i], t->spine[i])) {
			to->shared |= UAR_ID_BIT(i);
			continue;
		}
		own[n] = (struct own_id){ (enum uar_id)i, uar_arena_str(&t->arena, ev->ids[i]) };
		if (!own[n++].text.p)
			return false;
	}
	to->own_count = n;
	to->own = n ? uar_arena_alloc(&t->arena, n * sizeof *own) : NULL;
	if (to->own)
		memcpy(to->own, own, n * sizeof *own);
	return !n || to->own;
}

/* Most events have the ids of the one before them in the batch: the very same text. */
static bool keep_ids_like(struct tail *t, const struct uar_event *ev, struct kept *to, bool same)
{
	if (!same)
		return keep_ids(t, ev, to);
	to->shared = to[-1].shared;
	to->own = to[-1].own;
	to->own_count = to[-1].own_count;
	return true;
}

/* All of a commit at once, in as much memory as they need. */
static bool keep_texts(struct tail *t, struct kept *events, size_t n)
{
	uar_str *own[4 * UAR_LIMIT_TAIL_EVENTS];
	size_t count = 0;

	for (struct kept *k = events; k < events + n; k++) {
		own[count++] = &k->event_id;
		own[count++] = &k->payload;
		if (k->refs.n)
			own[count++] = &k->refs;
		if (k->cls >= UAR_EV_VENDOR) /* that of a standard class is there anyway */
			own[count++] = &k->type;
	}
	return uar_arena_strs(&t->arena, own, count);
}

static bool keep_event(struct tail *t, const struct uar_event *ev, struct kept *to, bool same_ids)
{
	*to = (struct kept){
		.cls = ev->cls,
		.type = uar_event_type(ev),
		.event_id = ev->event_id,
		.payload = ev->payload,
		.refs = ev->refs,
		.time_us = ev->time_us,
		.sequence = ev->sequence,
		.run_sequence = ev->run_sequence,
	};
	return keep_ids_like(t, ev, to, same_ids);
}

static void show_ids(const struct tail *t, const struct kept *k, struct uar_event *out)
{
	for (int i = 0; i < UAR_ID_COUNT; i++)
		out->ids[i] = k->shared & UAR_ID_BIT(i) ? t->spine[i] : UAR_STR_NONE;
	for (size_t i = 0; i < k->own_count; i++)
		out->ids[k->own[i].id] = k->own[i].text;
}

/* `like`: the event shown before it, of the kept one before; NULL: none. */
static void show_event(const struct tail *t, const struct kept *k, const struct uar_event *like,
		       struct uar_event *out)
{
	if (like && k->shared == k[-1].shared && k->own == k[-1].own)
		memcpy(out->ids, like->ids, sizeof out->ids);
	else
		show_ids(t, k, out);
	out->cls = k->cls;
	out->type = k->type;
	out->event_id = k->event_id;
	out->payload = k->payload;
	out->refs = k->refs;
	out->time_us = k->time_us;
	out->sequence = k->sequence;
	out->run_sequence = k->run_sequence;
	out->tree = NULL;
}

static bool make_room(struct tail *t, size_t n)
{
	size_t room = t->room ? t->room : 8;
	struct kept *events;

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
	struct kept *first;

	if (t->n + n > UAR_LIMIT_TAIL_EVENTS || t->arena.used > UAR_LIMIT_TAIL_BYTES ||
	    !make_room(t, n))
		return false;
	first = t->events + t->n;
	for (size_t i = 0; i < n; i++) {
		bool same = i && memcmp(events[i].ids, events[i - 1].ids, sizeof events->ids) == 0;

		if (!keep_event(t, &events[i], &t->events[t->n++], same))
			return false;
	}
	return keep_texts(t, first, n);
}

static bool set_row(struct tail *t, const struct uar_run_row *row)
{
	uar_arena_reset(&t->shown);
	return uar_run_row_copy(&t->shown, row, &t->row);
}

static void weigh(struct uar_runtime *rt, struct tail *t)
{
	rt->tails.bytes -= t->bytes;
	t->bytes = sizeof *t + t->arena.used + t->shown.used + t->room * sizeof *t->events;
	rt->tails.bytes += t->bytes;
}

void rt_tail_commit(struct uar_runtime *rt, const struct live_run *r,
		    const struct uar_event *events, size_t n, const struct uar_run_row *row)
{
	struct tail *t;

	if (n == 0 || events[0].run_sequence > UAR_LIMIT_TAIL_EVENTS + 1)
		return; /* forgotten already */
	t = events[0].run_sequence == 1 ? make(rt, r, &events[0])
					: uar_map_get(&rt->tails.map, r->run_key);
	if (!t)
		return;
	uar_list_remove(&t->node);
	uar_list_add_last(&rt->tails.list, &t->node);
	if (!add_events(t, events, n) || (row && !set_row(t, row)))
		forget(rt, t);
	else
		weigh(rt, t);
	while (rt->tails.count > UAR_LIMIT_TAIL_RUNS || rt->tails.bytes > UAR_LIMIT_TAILS_BYTES)
		forget(rt, UAR_OWNER(rt->tails.list.next, struct tail, node));
}

static struct tail *find(struct uar_runtime *rt, const struct uar_owner *owner, uar_str run_id)
{
	struct rt_key k;

	return uar_map_get(&rt->tails.map, rt_key(&k, owner, run_id));
}

static struct tail *covering(struct uar_runtime *rt, const struct tail_place *p)
{
	struct tail *t = find(rt, p->owner, p->run_id);

	return t && t->n ? t : NULL; /* it has all of them, or none */
}

bool rt_tail_has(struct uar_runtime *rt, const struct tail_place *p)
{
	return covering(rt, p) != NULL;
}

bool rt_tail_read(struct uar_runtime *rt, const struct tail_place *p,
		  struct uar_event out[static UAR_LIMIT_TAIL_EVENTS], size_t *out_n)
{
	struct tail *t = covering(rt, p);
	size_t n = 0;

	if (!t)
		return false;
	for (uint64_t i = p->after + 1 - t->events[0].run_sequence; i < t->n; i++, n++)
		show_event(t, &t->events[i], n ? &out[n - 1] : NULL, &out[n]);
	*out_n = n;
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
