/* push.h - the port to receivers of notifications: one POST to an address that a client chose.
 *
 * `done` fires from the loop, never inside the call that asked, once, and not at all after
 * a cancel. */
#ifndef UAR_EVENT_PUSH_H
#define UAR_EVENT_PUSH_H

#include "base/str.h"

struct uar_pushes;

/* Belongs to the caller and stays in place, with its strings, until done. */
struct uar_push_post {
	uar_str url, body, content_type;
	uar_str authorization; /* the header's value; empty: none, then */
	uar_str token;	       /* of the header X-A2A-Notification-Token; or empty */
	void (*done)(struct uar_push_post *p);
	/* out */
	bool taken;		/* 2xx */
	char reason[200];	/* for people; nothing of the receiver's text or address */
	int64_t retry_after_us; /* what the receiver asks for; 0: nothing */
	void *internal;
};

struct uar_pushes_ops {
	uint32_t abi, size;
	void (*destroy)(struct uar_pushes *p); /* posts under way end without `done` */
	/* UAR_EINVALID: it is no address, or one of a network that is not public. A name is judged
	 * when it is called. */
	uar_err (*check)(struct uar_pushes *p, uar_str url, struct uar_error *error);
	uar_err (*post)(struct uar_pushes *p, struct uar_push_post *post);
	void (*cancel)(struct uar_pushes *p, struct uar_push_post *post);
};
struct uar_pushes {
	const struct uar_pushes_ops *ops;
};

#endif
