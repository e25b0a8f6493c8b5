/* push.h - notifications of a task to addresses that its owner has named.
 *
 * A configuration is a row below its task; its cursor says how far the receiver has acknowledged.
 * The notifications are the run in the dialect of A2A, so there is no queue beside the log. Each
 * receiver gets them in order, at least once, also after a restart, until the task is over. */
#ifndef UAR_MAIL_PUSH_H
#define UAR_MAIL_PUSH_H

#include "mail/mail.h"
#include "proto/a2a_wire.h"

enum uar_push_what {
	UAR_PUSH_SET,	 /* creates a configuration, or replaces the one with this id and keeps its
			    cursor */
	UAR_PUSH_READ,	 /* one, or all */
	UAR_PUSH_REMOVE, /* no error if there is none */
	/* The mailer's own: */
	UAR_PUSH_LOOK,
	UAR_PUSH_TOLD,
	UAR_PUSH_END,
	UAR_PUSH_DROP,
};

/* It belongs to the caller and stays in place, with its strings, until `done`. That fires once,
 * from the loop, never inside the call; not at all if the call returned an error, or if the mailer
 * is destroyed before, as at a stop: after that the caller may free it. */
struct uar_push_op {
	enum uar_push_what what;
	struct uar_owner owner;
	uar_str run_id;		  /* a run of that owner */
	uar_str id;		  /* READ, REMOVE; READ, empty: all of them */
	struct uar_a2a_push push; /* SET; without an id it gets one */
	uint64_t after;		  /* SET, of a new one: sends only events after this one */
	bool over;		  /* likewise: the run is over, nothing is sent */
	void (*done)(struct uar_push_op *op);
	void *ctx;
	/* out */
	uar_err err; /* ENOTFOUND; ETOOBIG: the task has as many as it may */
	struct uar_error error;
	const struct uar_a2a_push *found; /* SET, READ; valid inside done */
	size_t count;
	/* The mailer's own: */
	struct uar_list node;
	char made[UAR_UUID_TEXT + 1];
	uint64_t sequence;
	int64_t frame;
	uar_str reason;
};
UAR_MUST_CHECK uar_err uar_push(struct uar_mailer *ml, struct uar_push_op *op);

/* Can notifications go there? UAR_EINVALID. */
UAR_MUST_CHECK uar_err uar_push_check(const struct uar_mailer *ml, uar_str url,
				      struct uar_error *error);

/* Sends what was not acknowledged when the last process ended; for all owners. */
void uar_push_recover(struct uar_mailer *ml);

#endif
