/* tail.c - a bounded number of runs, the least recently written forgotten first.
 *
 * A run is here from its first event on or not at all: with more live runs than
 * places each commit would push out another one, which would be back with its
 * next. One that says more than its share is forgotten, since nobody who comes
 * for the whole of it would be served. */
#include "read/limits.h"
#include "read/read_int.h"

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
	struct uar_list node;	/* in tails.list, oldest first */
	struct uar_arena arena; /* spine, events */
	struct uar_arena shown; /* row */
	uar_str spine[UAR_ID_COUNT];
	struct kept *events; /* on the heap, since they grow */
	size_t n, room;
	size_t bytes;		/* of it all, as counted in tails */
	struct uar_run_row row; /* run_id empty: none yet */
	uar_str key;
};

static void forget(struct tails *ts, struct tail *t)
{
	uar_map_remove(&ts->map, t->key);
	uar_list_remove(&t->node);
	uar_arena_fini(&t->arena);
	uar_arena_fini(&t->shown);
	uar_free(t->events);
	ts->count--;
	ts->bytes -= t->bytes;
	uar_free(t);
}

void rt_tails_init(struct tails *ts, uint64_t hash_seed)
{
	uar_list_init(&ts->list);
	uar_map_init(&ts->map, hash_seed);
}

void rt_tails_clear(struct tails *ts)
{
	UAR_LIST_EACH (it, &ts->list)
		forget(ts, UAR_OWNER(it, struct tail, node));
}

void rt_tails_fini(struct tails *ts)
{
	rt_tails_clear(ts);
	uar_map_fini(&ts->map);
}

void rt_tail_forget(struct tails *ts, const struct uar_owner *owner, uar_str run_id)
{
	struct rt_key k;
	struct tail *t = uar_map_get(&ts->map, rt_key(&k, owner, run_id));

	if (t)
		forget(ts, t);
}

static const enum uar_id shared[] = { UAR_ID_RUNTIME, UAR_ID_TENANT,  UAR_ID_WORKSPACE, UAR_ID_USER,
				      UAR_ID_SESSION, UAR_ID_THREAD,  UAR_ID_TURN,	UAR_ID_TASK,
				      UAR_ID_RUN,     UAR_ID_ATTEMPT, UAR_ID_TRACE };

static struct tail *make(struct tails *ts, uar_str run_key, const struct uar_event *first)
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
	t->key = run_key;
	if (!uar_arena_strs(&t->arena, own, ARRAY_LEN(own)) || uar_map_put(&ts->map, t->key, t)) {
		uar_arena_fini(&t->arena);
		uar_free(t);
		return NULL;
	}
	uar_list_add_last(&ts->list, &t->node);
	ts->count++;
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

static void weigh(struct tails *ts, struct tail *t)
{
	ts->bytes -= t->bytes;
	t->bytes = sizeof *t + t->arena.used + t->shown.used + t->room * sizeof *t->events;
	ts->bytes += t->bytes;
}

void rt_tail_commit(struct tails *ts, const struct rt_commit *c)
{
	const struct uar_event *events = c->events;
	struct tail *t;

	if (c->event_count == 0 || events[0].run_sequence > UAR_LIMIT_TAIL_EVENTS + 1)
		return; /* forgotten already */
	t = events[0].run_sequence == 1 ? make(ts, c->run_key, &events[0])
					: uar_map_get(&ts->map, c->run_key);
	if (!t)
		return;
	uar_list_remove(&t->node);
	uar_list_add_last(&ts->list, &t->node);
	if (!add_events(t, events, c->event_count) || (c->row && !set_row(t, c->row)))
		forget(ts, t);
	else
		weigh(ts, t);
	while (ts->count > UAR_LIMIT_TAIL_RUNS || ts->bytes > UAR_LIMIT_TAILS_BYTES)
		forget(ts, UAR_OWNER(ts->list.next, struct tail, node));
}

static struct tail *find(const struct tails *ts, const struct uar_owner *owner, uar_str run_id)
{
	struct rt_key k;

	return uar_map_get(&ts->map, rt_key(&k, owner, run_id));
}

static struct tail *covering(const struct tails *ts, const struct tail_place *p)
{
	struct tail *t = find(ts, p->owner, p->run_id);

	return t && t->n ? t : NULL; /* it has all of them, or none */
}

bool rt_tail_has(const struct tails *ts, const struct tail_place *p)
{
	return covering(ts, p) != NULL;
}

bool rt_tail_read(const struct tails *ts, const struct tail_place *p,
		  struct uar_event out[static UAR_LIMIT_TAIL_EVENTS], size_t *out_n)
{
	struct tail *t = covering(ts, p);
	size_t n = 0;

	if (!t)
		return false;
	for (uint64_t i = p->after + 1 - t->events[0].run_sequence; i < t->n; i++, n++)
		show_event(t, &t->events[i], n ? &out[n - 1] : NULL, &out[n]);
	*out_n = n;
	return true;
}

const struct uar_run_row *rt_tail_row(const struct tails *ts, const struct uar_owner *owner,
				      uar_str run_id)
{
	struct tail *t = find(ts, owner, run_id);

	return t && t->row.run_id.n ? &t->row : NULL;
}
