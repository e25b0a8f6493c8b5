/* mail_int.h - what the files of mail/ share. */
#ifndef UAR_MAIL_MAIL_INT_H
#define UAR_MAIL_MAIL_INT_H

#include "base/alloc.h"
#include "base/map.h"
#include "engine/part.h"
#include "mail/mail.h"
#include "store/store.h"

/* push.c: finds tasks with open configurations in the store, a page at a time. */
struct push_scan {
	struct rt_op under_way;
	struct uar_sessions_query sessions;
	struct uar_timer timer; /* when a page could not be read */
	uar_str after;		/* cursor; allocated */
	bool on, asking;
};

struct uar_mailer {
	struct rt_part part;
	struct uar_runtime *rt;
	struct uar_peers *peers; /* NULL: none */
	struct uar_map in;	 /* inbox.c: of struct inbox, messages on their way into the log */
	struct uar_map out;	 /* outbox.c: of struct outbox, messages on their way out of it */
	struct {
		struct uar_pushes *port;     /* NULL: there are none */
		struct uar_map tasks;	     /* of struct push_task, by the run's key */
		struct rt_numbers watched;   /* hashes of the keys of runs with configurations */
		struct uar_map lanes, parts; /* push_places.c */
		struct uar_list ready; /* of struct push_lane: their senders may get a place */
		struct uar_list idle;  /* of struct push_sender */
		size_t senders, idle_count, working, looks;
		struct push_scan scan;
		bool left; /* something to send may be in the store alone */
		bool stopped, pumping;
	} push;
};

/* outbox.c */
bool rt_peer_known(const struct uar_mailer *ml, uar_str peer);
/* The outbox for that peer has another message. */
void rt_outbox_kick(struct uar_mailer *ml, const struct uar_owner *owner, uar_str peer);
/* Nothing leaves any more; what is on its way may have arrived or not. */
void rt_outboxes_stop(struct uar_mailer *ml);
void rt_outboxes_fini(struct uar_mailer *ml);

#endif
