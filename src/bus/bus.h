/* bus.h - hand committed events to live readers, in sequence order.
 *
 * Stores nothing and never waits: a reader that cannot take an event leaves
 * and comes back through the store. A topic is the owner and id of a run or
 * a session, as the caller writes it; it exists while somebody listens. Loop thread only. */
#ifndef UAR_BUS_BUS_H
#define UAR_BUS_BUS_H

#include "base/list.h"
#include "event/event.h"

struct uar_bus;
struct uar_topic;

/* The events of one commit that belong to the topic; borrowed for the call. It
 * may subscribe (who joins hears of the next ones) and unsubscribe anybody, but
 * must not publish. */
typedef void uar_bus_fn(void *ctx, const struct uar_event *events, size_t n);

/* Embedded in the reader. */
struct uar_sub {
	struct uar_list node;
	struct uar_topic *topic; /* NULL: not subscribed */
	uar_bus_fn *fn;
	void *ctx;
};

UAR_MUST_CHECK uar_err uar_bus_create(uint64_t hash_seed, struct uar_bus **out);
void uar_bus_destroy(struct uar_bus *b); /* subscriptions end silently */
UAR_MUST_CHECK uar_err uar_bus_subscribe(struct uar_bus *b, uar_str topic, struct uar_sub *sub);
void uar_bus_unsubscribe(struct uar_bus *b, struct uar_sub *sub); /* twice is fine */
/* `head`: sequence of the last event in the topic's own count. */
void uar_bus_publish(struct uar_bus *b, uar_str topic, const struct uar_event *events, size_t n,
		     uint64_t head);
/* The highest head published since the topic came to be, 0 when none was. */
uint64_t uar_sub_head(const struct uar_sub *sub);

struct uar_bus_stats {
	size_t topics, subscribers;
	uint64_t published, delivered;
};
void uar_bus_stats(const struct uar_bus *b, struct uar_bus_stats *out);

#endif
