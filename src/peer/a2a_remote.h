/* a2a_remote.h - one agent that is spoken with, and the exchange that is under way with it: a
 * request, and its answer, one object or a stream of events, which is folded into a task. What is
 * behind the port of event/remote.h; for peer/ alone. */
#ifndef UAR_PEER_A2A_REMOTE_H
#define UAR_PEER_A2A_REMOTE_H

#include "base/list.h"
#include "base/sse.h"
#include "loop/client.h"
#include "peer/a2a_int.h"

enum { A2A_CONNECT_US = 10000000, A2A_IDLE_US = 60000000 };

/* All that are open, and the cards that were read. */
struct a2a_host {
	struct uar_remotes base;
	struct uar_client *client;
	struct a2a_cards cards;
	struct uar_list open; /* of struct uar_remote */
	int64_t quiet_us;
};

struct uar_remote {
	struct uar_list node;
	struct a2a_host *host;
	struct uar_remote_events events;
	struct uar_arena arena; /* of its card and headers */
	struct a2a_card card;
	uar_str card_url;
	const struct uar_json *hosts;
	const char **headers; /* of the definition */
	struct uar_task kept; /* the card is in memory: told by the next turn */
	/* The operation under way. */
	struct uar_call *call;
	struct {
		struct uar_timer timer; /* of a stream: since its last event */
		bool rests;		/* nothing is read */
		bool rested;		/* nothing was read for a while since it was set */
	} quiet;
	struct uar_buf body, etag;
	struct uar_sse_parser sse;
	struct a2a_task task;
	struct uar_arena scratch; /* of one answer */
	struct {
		uar_str message_id, page;
		char id[160];
		int64_t since_us;
		size_t pages;
		bool on, all_remember;
	} find;		/* the task of a message */
	uint64_t asked; /* requests so far: the id of the last */
	size_t events_seen;
	enum a2a_op op;
	bool busy, streaming, is_stream;
	struct uar_remote_end stop; /* why the stream was left */
	bool stopped;
};

static inline bool a2a_is_good(int status)
{
	return status >= 200 && status < 300;
}

/* --- a2a_exchange.c -------------------------------------------------------------------------- */

/* An operation begins; what was left of the one before is released. */
void a2a_exchange_begin(struct uar_remote *r, enum a2a_op op);
/* Ends the operation and calls end(); the remote may be gone afterwards. `reason` may be NULL. */
void a2a_exchange_finish(struct uar_remote *r, enum uar_remote_how how, const char *reason,
			 int64_t retry_after_us);
/* Ends the operation without calling end(). The call has ended or is cancelled before. */
void a2a_exchange_release(struct uar_remote *r);
/* The same; the call may be under way. */
void a2a_exchange_drop(struct uar_remote *r);
/* No event for too long; time in which nothing is read does not count. */
void a2a_exchange_quiet(struct uar_timer *t);
void a2a_exchange_rest(struct uar_remote *r, bool rests);

/* The operations of the port. An error: nothing is under way, and nothing will be told. */
UAR_MUST_CHECK uar_err a2a_exchange_send(struct uar_remote *r, const struct uar_remote_message *m,
					 bool stream);
UAR_MUST_CHECK uar_err a2a_exchange_get(struct uar_remote *r, uar_str task_id, uar_str message_id);
UAR_MUST_CHECK uar_err a2a_exchange_follow(struct uar_remote *r, uar_str task_id);
UAR_MUST_CHECK uar_err a2a_exchange_cancel(struct uar_remote *r, uar_str task_id);
UAR_MUST_CHECK uar_err a2a_exchange_find(struct uar_remote *r, uar_str message_id,
					 int64_t since_us);

#endif
