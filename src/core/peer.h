/* peer.h - a run whose work an agent of another runtime (the peer) does: the state of the task
 * there, as far as the log has it.
 *
 * A message is recorded before it is sent, and recorded as received when the peer has shown that it
 * has it. In between its arrival is uncertain: the next worker asks the peer, and a person if the
 * peer cannot tell. */
#ifndef UAR_CORE_PEER_H
#define UAR_CORE_PEER_H

#include "base/str.h"
#include "core/sizes.h"

/* What a look at the task found. */
enum uar_peer_found {
	UAR_PEER_NOT_LOOKED,
	UAR_PEER_RUNNING,
	UAR_PEER_IDLE,	      /* the peer has it and does not work on it, or it never arrived */
	UAR_PEER_WAITING,     /* for input or an authorization */
	UAR_PEER_UNDELIVERED, /* it is over; its result was not fetched yet */
	UAR_PEER_MISSING,     /* the peer does not have it any more */
	UAR_PEER_UNREACHABLE, /* the peer does not answer */
	UAR_PEER_FOUND_COUNT
};
const char *uar_peer_found_name(enum uar_peer_found f); /* "running" */

enum uar_peer_delivery { UAR_PEER_POLLING, UAR_PEER_STREAMING, UAR_PEER_SUBSCRIPTION };

enum uar_peer_step {
	UAR_PEER_SENDING, /* message `number` is about to be sent */
	UAR_PEER_UNSENT,  /* it has not arrived, and may be sent again */
	UAR_PEER_LINKED,  /* the task there is known; what was sent has arrived */
	UAR_PEER_STATUS,  /* of that task; what was sent has arrived */
	UAR_PEER_AGAIN,	  /* the text so far does not count: it comes again from its beginning */
	UAR_PEER_LOST,	  /* the peer cannot be reached: it is asked again after a wait */
	UAR_PEER_MADE,	  /* artifacts */
	UAR_PEER_LOOKED,  /* it was reached, and cannot tell whether the message has arrived */
	UAR_PEER_STEP_COUNT
};

struct uar_peer_news {
	enum uar_peer_step step;
	enum uar_peer_found found;
	enum uar_peer_delivery delivery;
	int64_t number; /* SENDING, UNSENT: of the message; 0: the run's own, else of the action
			 * that it answers */
	uar_str task_id, context_id, card_ref; /* LINKED */
	uar_str status;			       /* the peer's own word; or empty */
	uar_str text;	   /* what it says about it, or why it cannot be reached; or empty */
	int64_t wait_us;   /* LOST: as the peer asks for; 0: as usual */
	uar_str artifacts; /* MADE: JSON array, as finalize.c reads it */
};

/* The member of run.status.metadata that holds such news. */
#define UAR_PEER_METADATA "peer"

struct uar_run_peer {
	char task_id[UAR_LIMIT_PEER_ID + 1]; /* empty: not known */
	char context_id[UAR_LIMIT_PEER_ID + 1];
	char card_ref[UAR_LIMIT_PEER_CARD + 1];
	char status[UAR_LIMIT_PEER_STATUS + 1];
	enum uar_peer_delivery delivery;
	enum uar_peer_found found;
	int64_t sending; /* 1 + the number of the message whose arrival is uncertain; 0: none */
	int64_t sent_us; /* when it was recorded */
	int64_t told;	 /* number of the last action whose answer has arrived there */
	int64_t judged;	 /* of the last one that was about sending again */
	int64_t tries;	 /* since the peer was reached last */
	bool over;	 /* the task there has ended */
};
/* Something may be at work there. */
static inline bool uar_run_peer_begun(const struct uar_run_peer *p)
{
	return !p->over && (p->task_id[0] || p->sending);
}

#endif
