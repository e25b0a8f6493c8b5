/* bus.c - topics in a map, readers in a list per topic.
 *
 * Dispatch keeps its place in topic->next: a reader that leaves while events
 * are handed out moves it on; readers that join meanwhile wait in a list of
 * their own until it is over. */
#include "bus/bus.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/map.h"

struct uar_topic {
	struct uar_list subs;
	struct uar_list late;  /* joined during dispatch */
	struct uar_list *next; /* where dispatch goes on; NULL: not dispatching */
	uint64_t head;
	uar_str key;
	char text[];
};

struct uar_bus {
	struct uar_map topics;
	struct uar_bus_stats stats;
};

uar_err uar_bus_create(uint64_t hash_seed, struct uar_bus **out)
{
	struct uar_bus *b = uar_zalloc(sizeof *b);

	if (!b)
		return UAR_ENOMEM;
	uar_map_init(&b->topics, hash_seed);
	*out = b;
	return UAR_OK;
}

static void free_topic(struct uar_bus *b, struct uar_topic *t)
{
	uar_map_remove(&b->topics, t->key);
	uar_free(t);
	b->stats.topics--;
}

void uar_bus_destroy(struct uar_bus *b)
{
	struct uar_topic *t;
	size_t at = 0;

	if (!b)
		return;
	while ((t = uar_map_next(&b->topics, &at))) {
		UAR_LIST_EACH (it, &t->subs)
			uar_bus_unsubscribe(NULL, UAR_OWNER(it, struct uar_sub, node));
		uar_free(t);
	}
	uar_map_fini(&b->topics);
	uar_free(b);
}

static struct uar_topic *make_topic(struct uar_bus *b, uar_str key)
{
	struct uar_topic *t = uar_zalloc(sizeof *t + key.n);

	if (!t)
		return NULL;
	uar_list_init(&t->subs);
	uar_list_init(&t->late);
	memcpy(t->text, key.p, key.n);
	t->key = uar_str_n(t->text, key.n);
	if (uar_map_put(&b->topics, t->key, t)) {
		uar_free(t);
		return NULL;
	}
	b->stats.topics++;
	return t;
}

uar_err uar_bus_subscribe(struct uar_bus *b, uar_str topic, struct uar_sub *sub)
{
	struct uar_topic *t = uar_map_get(&b->topics, topic);

	if (!t)
		t = make_topic(b, topic);
	if (!t)
		return UAR_ENOMEM;
	sub->topic = t;
	uar_list_add_last(t->next ? &t->late : &t->subs, &sub->node);
	b->stats.subscribers++;
	return UAR_OK;
}

void uar_bus_unsubscribe(struct uar_bus *b, struct uar_sub *sub)
{
	struct uar_topic *t = sub->topic;

	if (!t)
		return;
	if (t->next == &sub->node)
		t->next = sub->node.next;
	uar_list_remove(&sub->node);
	sub->topic = NULL;
	if (!b)
		return;
	b->stats.subscribers--;
	if (uar_list_empty(&t->subs) && !t->next)
		free_topic(b, t);
}

void uar_bus_publish(struct uar_bus *b, uar_str topic, const struct uar_event *events, size_t n,
		     uint64_t head)
{
	struct uar_topic *t = uar_map_get(&b->topics, topic);

	b->stats.published += n;
	if (!t || n == 0)
		return;
	assert(!t->next); /* not from inside fn: the outer hand-out would lose its place */
	t->head = head;
	t->next = t->subs.next;
	while (t->next != &t->subs) {
		struct uar_sub *sub = UAR_OWNER(t->next, struct uar_sub, node);

		t->next = t->next->next;
		__builtin_prefetch(t->next); /* while this one is served */
		b->stats.delivered += n;
		sub->fn(sub->ctx, events, n);
	}
	t->next = NULL;
	uar_list_move_all(&t->late, &t->subs);
	if (uar_list_empty(&t->subs))
		free_topic(b, t);
}

uint64_t uar_sub_head(const struct uar_sub *sub)
{
	return sub->topic ? sub->topic->head : 0;
}

void uar_bus_stats(const struct uar_bus *b, struct uar_bus_stats *out)
{
	*out = b->stats;
}
