/* net.h - libcurl on a thread of its own; for client.c alone.
 *
 * A transfer is embedded in its owner and started once. The thread has it from
 * then on and hands pieces of the answer to the loop, many with one wake-up.
 * `over` is the last it does with a transfer: it comes exactly once, after all
 * pieces, also when the transfer was stopped. Then the memory is the owner's.
 *
 * What was handed over and not read is bounded by UAR_LIMIT_CLIENT_INBOX: at that
 * the peer is held back until uar_net_read says that there is room. */
#ifndef UAR_LOOP_NET_H
#define UAR_LOOP_NET_H

#include <netinet/in.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "loop/client_request.h"
#include "loop/loop.h"

struct uar_net;
struct uar_hub;

/* Bytes of a 2xx answer. Without any it says that something of the head came. */
struct uar_piece {
	struct uar_task task; /* its function gets the piece, which is the loop's then */
	struct uar_transfer *of;
	int status;
	bool head; /* its bytes are the header lines of the answer, whatever its status */
	size_t n, cap;
	char bytes[];
};
static inline size_t uar_piece_size(const struct uar_piece *p)
{
	return sizeof *p + p->cap;
}

/* A connection by its two ends. Those of different peers may share a port of ours. */
struct uar_way {
	char local[INET6_ADDRSTRLEN], remote[INET6_ADDRSTRLEN];
	int local_port, remote_port;
};
static inline bool uar_way_same(const struct uar_way *a, const struct uar_way *b)
{
	return a->local_port == b->local_port && a->remote_port == b->remote_port &&
	       strcmp(a->local, b->local) == 0 && strcmp(a->remote, b->remote) == 0;
}

struct uar_outcome { /* of a transfer; the owner's once it is over */
	uar_err err; /* decides over libcurl's */
	CURLcode code;
	int status;
	int64_t retry_after_us;
	struct uar_buf body; /* of an answer that is not 2xx */
	char reason[CURL_ERROR_SIZE];
};

struct uar_transfer { /* zeroed before first use */
	/* Set by the owner before the start. */
	struct uar_client_request request;
	/* The copy that request.body points to, or NULL. The thread frees it once it is sent and
	 * the answer has begun; else the owner does, after `over`. */
	char *body;
	struct uar_task over; /* its function runs on the loop */
	bool wants_head;      /* hand over the header lines */
	struct uar_outcome outcome;
	/* Both threads'. */
	_Atomic size_t unread;		   /* what pieces handed over and not read take */
	_Atomic(struct uar_piece *) spare; /* one that was read, for the next bytes; or NULL */
	struct uar_list order; /* this and the next are guarded by the lock of the net */
	unsigned orders;
	bool deaf; /* over: takes no orders */
	/* The thread's. */
	struct uar_net *net;
	struct uar_list node;
	struct uar_hub *hub; /* NULL: in none */
	CURL *easy;
	struct uar_piece *open; /* may take more bytes while `round` is the net's */
	uint64_t round;
	size_t head_bytes;
	struct uar_buf head; /* header lines of the answer so far, when wanted */
	bool head_over;	     /* what follows are trailers */
	unsigned refused;    /* begun again so often */
	bool held;	     /* libcurl holds bytes back */
	bool sent;	     /* has a connection, ... */
	struct uar_way way;  /* ... which is this one */
};

/* Loads libcurl and starts the thread. `piece` runs on the loop of `sched`. */
UAR_MUST_CHECK uar_err uar_net_create(struct uar_sched *sched, uar_task_fn *piece,
				      struct uar_net **out, struct uar_error *error);
/* Ends all transfers and the thread; nobody is told. */
void uar_net_destroy(struct uar_net *n);
const struct uar_curl *uar_net_curl(const struct uar_net *n);
void uar_net_start(struct uar_net *n, struct uar_transfer *t);
void uar_net_stop(struct uar_transfer *t); /* `over` follows, if it is not under way */
void uar_net_read(struct uar_transfer *t, struct uar_piece *p); /* takes it back */
/* Did a host that speaks HTTP/2 refuse the stream, that is, has it surely not looked at it? */
bool uar_net_is_refusal(CURLcode code, const char *reason);

#endif
