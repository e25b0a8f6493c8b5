/* push_places.c - which notifications are made and sent at once, and which wait for a place.
 *
 * A sender waits in the lane of its owner and its receiver (scheme, host and port). A lane has a
 * few places while its receiver takes what it is sent, else a single one. Lanes take turns. An
 * owner has a part of all places and a receiver has one, too: a lane whose part is used up is
 * parked at it until one of that part's places is free, so no lane waits behind a lane that waits.
 *
 * Inside a lane those go last that were not taken before. While the receiver takes nothing the
 * newest of the others goes first: at one host addresses that hang may be beside some that do not.
 */
#include "mail/push_int.h"

/* What all lanes of an owner, or to a receiver, may have together. */
struct push_part {
	uar_str key;
	size_t most, working, lanes, senders;
	struct uar_list parked; /* of struct push_lane */
	char text[];
};

struct push_lane {
	struct uar_list node; /* in ml->push.ready, or parked */
	/* Of struct push_sender. READY: those never refused, the others; WAITING. */
	struct uar_list first, last, waiting;
	struct push_part *owner, *receiver;
	size_t most, working, senders;
	uar_str key;
	char text[];
};

/* --- lanes ------------------------------------------------------------------------------------ */

/* Scheme, host and port, in lower case and without the port that the scheme implies. */
static uar_str receiver_of(uar_str url, char *out)
{
	bool secure = uar_str_starts(url, UAR_STR("https://"));
	uar_str port = secure ? UAR_STR(":443") : UAR_STR(":80");
	size_t n = secure ? 8 : 7;

	while (n < url.n && !strchr("/?", url.p[n]))
		n++;
	n = n < url.n ? n : url.n;
	for (size_t i = 0; i < n; i++)
		out[i] = (char)(url.p[i] >= 'A' && url.p[i] <= 'Z' ? url.p[i] + 32 : url.p[i]);
	if (n > port.n && memcmp(out + n - port.n, port.p, port.n) == 0)
		n -= port.n;
	return uar_str_n(out, n);
}

static struct push_part *hold_part(struct uar_mailer *ml, uar_str key, size_t most)
{
	struct push_part *p = uar_map_get(&ml->push.parts, key);

	if (!p) {
		p = uar_zalloc(sizeof *p + key.n);
		if (!p)
			return NULL;
		memcpy(p->text, key.p, key.n);
		p->key = uar_str_n(p->text, key.n);
		p->most = most;
		uar_list_init(&p->parked);
		if (uar_map_put(&ml->push.parts, p->key, p)) {
			uar_free(p);
			return NULL;
		}
	}
	p->lanes++;
	return p;
}

static void let_go(struct uar_mailer *ml, struct push_part *p)
{
	if (!p || --p->lanes)
		return;
	uar_map_remove(&ml->push.parts, p->key);
	uar_free(p);
}

static void free_lane(struct uar_mailer *ml, struct push_lane *l)
{
	uar_map_remove(&ml->push.lanes, l->key);
	uar_list_remove(&l->node);
	let_go(ml, l->owner);
	let_go(ml, l->receiver);
	uar_free(l);
}

static struct push_lane *make_lane(struct uar_mailer *ml, uar_str key, size_t owner_bytes)
{
	struct push_lane *l = uar_zalloc(sizeof *l + key.n);

	if (!l)
		return NULL;
	memcpy(l->text, key.p, key.n);
	l->key = uar_str_n(l->text, key.n);
	uar_list_init(&l->node);
	uar_list_init(&l->first);
	uar_list_init(&l->last);
	uar_list_init(&l->waiting);
	l->most = 1;
	l->owner = hold_part(ml, uar_str_n(key.p, owner_bytes), UAR_LIMIT_PUSH_OF_OWNER);
	l->receiver = hold_part(ml, uar_str_from(key, owner_bytes), UAR_LIMIT_PUSH_TO_RECEIVER);
	if (l->owner && l->receiver && !uar_map_put(&ml->push.lanes, l->key, l))
		return l;
	free_lane(ml, l);
	return NULL;
}

uar_err rt_push_lane_enter(struct push_sender *s)
{
	struct uar_mailer *ml = s->task->ml;
	struct rt_key k;
	uar_str owner = rt_key(&k, &s->task->owner, UAR_STR(""));
	char *text = uar_arena_alloc(&s->own, owner.n + s->to.url.n + 1);
	uar_str key;

	if (!text)
		return UAR_ENOMEM;
	memcpy(text, owner.p, owner.n);
	key = uar_str_n(text, owner.n + receiver_of(s->to.url, text + owner.n).n);
	s->lane = uar_map_get(&ml->push.lanes, key);
	if (!s->lane)
		s->lane = make_lane(ml, key, owner.n);
	if (!s->lane)
		return UAR_ENOMEM;
	s->lane->senders++;
	s->lane->owner->senders++;
	return UAR_OK;
}

/* --- turns ------------------------------------------------------------------------------------ */

static bool may_work(const struct push_lane *l)
{
	return l->working < l->most && (!uar_list_empty(&l->first) || !uar_list_empty(&l->last));
}

static void queue_lane(struct uar_mailer *ml, struct push_lane *l)
{
	if (uar_list_empty(&l->node) && may_work(l))
		uar_list_add_last(&ml->push.ready, &l->node);
}

/* While a part has a free place, a lane of it that was parked is in the queue: it gets there
 * when a place becomes free, and when one that was there did not use it. */
static void call_up(struct uar_mailer *ml, struct push_part *p)
{
	struct uar_list *first = p->parked.next;

	if (p->working >= p->most || uar_list_empty(&p->parked))
		return;
	uar_list_remove(first);
	uar_list_add_last(&ml->push.ready, first);
}

static void call_up_others(struct uar_mailer *ml, struct push_lane *l)
{
	call_up(ml, l->owner);
	call_up(ml, l->receiver);
}

void rt_push_lane_leave(struct push_sender *s)
{
	struct uar_mailer *ml = s->task->ml;
	struct push_lane *l = s->lane;

	s->lane = NULL;
	if (!l)
		return;
	l->owner->senders--;
	if (--l->senders)
		return;
	uar_list_remove(&l->node);
	call_up_others(ml, l);
	free_lane(ml, l);
}

void rt_push_ready(struct push_sender *s)
{
	uar_list_add_last(s->tries ? &s->lane->last : &s->lane->first, &s->place);
	queue_lane(s->task->ml, s->lane);
}

void rt_push_wait(struct push_sender *s)
{
	uar_list_add_last(&s->lane->waiting, &s->place);
}

static struct push_sender *take_sender(struct push_lane *l)
{
	struct uar_list *node = uar_list_empty(&l->first) ? l->last.next
				: l->most == 1		  ? l->first.prev
							  : l->first.next;

	uar_list_remove(node);
	return UAR_OWNER(node, struct push_sender, place);
}

struct push_sender *rt_push_next(struct uar_mailer *ml)
{
	struct push_sender *s = NULL;

	while (!s && ml->push.working < UAR_LIMIT_PUSH_FLIGHTS &&
	       !uar_list_empty(&ml->push.ready)) {
		struct push_lane *l = UAR_OWNER(ml->push.ready.next, struct push_lane, node);
		struct push_part *full = l->owner->working >= l->owner->most	     ? l->owner
					 : l->receiver->working >= l->receiver->most ? l->receiver
										     : NULL;

		uar_list_remove(&l->node);
		if (may_work(l) && full) {
			uar_list_add_last(&full->parked, &l->node);
		} else if (may_work(l)) {
			s = take_sender(l);
			ml->push.working++;
			l->owner->working++;
			l->receiver->working++;
			l->working++;
			queue_lane(ml, l);
		}
		call_up_others(ml, l);
	}
	return s;
}

void rt_push_place_free(struct push_sender *s)
{
	struct uar_mailer *ml = s->task->ml;
	struct push_lane *l = s->lane;

	ml->push.working--;
	l->owner->working--;
	l->receiver->working--;
	l->working--;
	queue_lane(ml, l);
	call_up_others(ml, l);
}

void rt_push_taken(struct push_sender *s, bool yes)
{
	s->lane->most = yes ? UAR_LIMIT_PUSH_OF_LANE : 1;
	queue_lane(s->task->ml, s->lane);
}

/* --- memory ----------------------------------------------------------------------------------- */

size_t rt_push_load(const struct uar_mailer *ml)
{
	return ml->push.senders - ml->push.idle_count;
}

/* The one that would get its place last; of those that wait for a timer the last one, too. */
static struct uar_list *surplus_of(const struct push_lane *l)
{
	if (!uar_list_empty(&l->first))
		return l->most == 1 ? l->first.next : l->first.prev;
	if (!uar_list_empty(&l->last))
		return l->last.prev;
	return uar_list_empty(&l->waiting) ? NULL : l->waiting.prev;
}

static bool is_larger(const struct push_lane *a, const struct push_lane *b)
{
	if (a->owner->senders != b->owner->senders)
		return a->owner->senders > b->owner->senders;
	return a->senders > b->senders;
}

struct push_sender *rt_push_surplus(struct uar_mailer *ml)
{
	struct push_lane *l, *most = NULL;
	size_t at = 0;

	while ((l = uar_map_next(&ml->push.lanes, &at)))
		if (surplus_of(l) && (!most || is_larger(l, most)))
			most = l;
	return most ? UAR_OWNER(surplus_of(most), struct push_sender, place) : NULL;
}
