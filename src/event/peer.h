/* peer.h - the port to other runtimes: one message to an agent of one of them. The
 * runtime calls it; behind it stands whoever knows where they are and how they speak.
 *
 * `done` fires from the loop, never inside the call that asked, once, and not at all
 * after a cancel. */
#ifndef UAR_EVENT_PEER_H
#define UAR_EVENT_PEER_H

#include "base/str.h"

struct uar_peers;

/* What stands behind the @ of a recipient. */
bool uar_peer_name_valid(uar_str name);

enum uar_delivery_how {
	UAR_DELIVERED,
	UAR_DELIVERY_REFUSED, /* for good: the same message again would be refused again */
	UAR_DELIVERY_FAILED,  /* nobody knows whether it arrived: it may be sent again */
};

/* Belongs to the caller and stays in place, with its strings, until done. */
struct uar_delivery {
	uar_str peer;	 /* a name that is known */
	uar_str message; /* JSON object */
	void (*done)(struct uar_delivery *d);
	/* out */
	enum uar_delivery_how how;
	char reason[200];	/* for people */
	int64_t retry_after_us; /* what the peer asks for; 0: nothing */
	void *internal;
};

struct uar_peers_ops {
	uint32_t abi, size;
	void (*destroy)(struct uar_peers *p); /* deliveries under way end without `done` */
	uar_str (*at)(struct uar_peers *p, size_t index); /* names; empty past the end */
	uar_err (*deliver)(struct uar_peers *p, struct uar_delivery *d);
	void (*cancel)(struct uar_peers *p, struct uar_delivery *d);
};
struct uar_peers {
	const struct uar_peers_ops *ops;
	uar_str own_name; /* what they call this runtime; empty: nothing */
};

#endif
