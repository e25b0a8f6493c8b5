/* http_int.h - what the files of http/ share; nobody else includes it.
 *
 *	listen.c   sockets, accepting, who may come in
 *	server.c   life of the server, deadlines, the list of those who go on
 *	conn.c     one connection: reads requests, hands them over, closes
 *	answer.c   response heads, problems, streams
 *	out.c      frames and the bounded queue of a slow reader
 *
 * A connection:
 *
 *	HEAD -> BODY -> HANDLER -> (FLUSH) -> HEAD ...        kept alive
 *	HEAD -> HANDLER -> BODY -> HANDLER -> BODY ...        a body that is pulled
 *	                HANDLER -> STREAM -> (FLUSH) -> HEAD  an answer that goes on
 *	any  -> FLUSH -> LINGER -> CLOSED                     the last answer
 *
 * Callbacks of the handler fire only from conn.c's entry points, which the loop
 * calls; a failure noticed inside one of the handler's own calls is put on the
 * ready list and told from there. */
#ifndef UAR_HTTP_HTTP_INT_H
#define UAR_HTTP_HTTP_INT_H

#include <uv.h>

#include "base/address.h"
#include "base/list.h"
#include "base/map.h"
#include "base/sched.h"
#include "http/http.h"
#include "http/http_parse.h"
#include "http/sizes.h"

enum conn_state {
	CONN_HEAD,    /* waits for a request head, or reads it */
	CONN_BODY,    /* reads the body */
	CONN_HANDLER, /* the handler has the request */
	CONN_FLUSH,   /* answered, not all is written */
	CONN_STREAM,  /* answered with a body that goes on */
	CONN_LINGER,  /* said its last word, throws input away until the peer closes */
	CONN_CLOSED
};

enum deadline { DUE_HEAD, DUE_BODY, DUE_IDLE, DUE_STALL, DUE_LINGER, DUE_COUNT, DUE_NONE };

/* One request and its answer; kept for reuse, so that a request costs no heap call. */
struct exchange {
	struct uar_http_request r; /* first: the handler's pointer is this one */
	struct uar_http_stream *conn;
	struct uar_arena arena;
	struct uar_http_body reader;
	struct uar_buf body, *into; /* into: where body bytes go; NULL: nothing was pulled */
	struct uar_list spare;
	bool taken;    /* the handler said yes to the head: it must hear the end */
	bool expects;  /* the client waits for 100 */
	bool complete; /* all of the body is read */
};

struct out_queue;

/* A connection. Its answer may be a stream, hence the name outside. */
struct uar_http_stream {
	uv_poll_t poll;
	struct uar_http *server;
	struct out_queue *out; /* NULL: nothing waits */
	int fd;
	unsigned char state, due_class;
	bool http10;
	bool keep_alive;       /* another request may follow this answer */
	bool reading, writing; /* what poll waits for */
	bool running;	       /* inside conn.c's reading loop */
	bool eof;	       /* the peer will send no more */
	bool broken;	       /* writing failed; the ready list will close it */
	struct {
		bool wants_room; /* a send was refused */
		bool corked;	 /* what a stream is given in this turn goes out at its end */
		bool bare;	 /* the body has a length: no chunks */
		bool bounded;	 /* the kernel's buffer is that of a stream */
	} flow;
	struct uar_list node, ready, due;
	int64_t due_us;
	struct exchange *x; /* in BODY and HANDLER */
	struct uar_buf in;  /* bytes that were read and not used yet */
	size_t scanned;	    /* of them: looked at for the end of the head */
	size_t progress;    /* body bytes since the deadline was set; bytes thrown away */
	struct uar_http_stream_events events;
	struct address *address; /* counted there, or NULL */
	char peer[];
};

struct address {
	size_t open;
	char text[UV_IF_NAMESIZE + 46];
};

struct uar_http {
	struct uar_loop *loop;
	struct uar_sched *sched;
	struct uar_http_handler handler;
	struct uar_http_stats stats;
	size_t max_connections, max_per_address;
	struct uar_list conns, ready;
	struct uar_task ready_task;
	struct uar_map addresses;
	struct {
		int64_t timeout_us;
		struct uar_list conns; /* in order of due_us */
	} due[DUE_COUNT];
	struct uar_timer sweep;
	struct {
		uv_poll_t poll;
		struct uar_timer pause; /* while even the spare descriptor is gone */
		int fd, spare_fd;	/* spare_fd: given up to accept and cut when none is left */
		bool polled;
		char address[128], unix_path[UAR_SOCKET_PATH];
		char local[128]; /* the address, or loopback where that is a wildcard */
	} listener;
	struct {
		uint64_t turn;		 /* of the loop */
		size_t begun;		 /* requests, in this one */
		struct uar_list waiting; /* connections with more of them, by `ready` */
		bool serving;		 /* one that waited has its turn */
	} intake;
	size_t handles; /* uv handles that are not closed yet */
	bool destroyed;
	struct {
		bool on;
		void (*done)(void *ctx);
		void *ctx;
		struct uar_task task;
	} drain;
	struct {
		struct uar_list exchanges; /* for reuse */
		size_t count;
	} spare;
	struct uar_frame *last_chunk;
	struct {
		int64_t second;
		size_t n;
		char text[128];
	} stamp;
	struct uar_buf problem; /* scratch, allocated at creation */
	struct {
		size_t n;
		char bytes[UAR_LIMIT_HTTP_ANSWER_HEAD];
	} answer_head;			    /* scratch */
	struct uar_http_head head;	    /* scratch */
	char read_buf[UAR_LIMIT_HTTP_READ]; /* scratch, shared by all connections */
};

/* listen.c */
uar_err uar_http_listen(struct uar_http *h, const char *where, struct uar_error *error);
void uar_http_unlisten(struct uar_http *h);
void uar_http_address_leave(struct uar_http *h, struct address *a); /* NULL is fine */

/* server.c */
void uar_http_set_due(struct uar_http_stream *c, enum deadline class);
void uar_http_make_ready(struct uar_http_stream *c); /* conn_resume in the next turn */
/* A crowd that comes at once is let in by and by, first come, first served: what
 * the server has begun to answer goes on in between. */
bool uar_http_takes_requests(struct uar_http *h);
void uar_http_wait_turn(struct uar_http_stream *c); /* conn_resume when it does */
void uar_http_released(struct uar_http *h);	    /* a handle has closed */
void uar_http_check_drained(struct uar_http *h);
struct exchange *uar_http_exchange_take(struct uar_http_stream *c); /* NULL: no memory */
void uar_http_exchange_give(struct uar_http *h, struct exchange *x);

/* conn.c */
/* Takes the socket (and the place at the address); NULL: no memory, both are gone. */
struct uar_http_stream *uar_http_conn_open(struct uar_http *h, int fd, struct address *a,
					   const char *peer);
void uar_http_conn_resume(struct uar_http_stream *c);
void uar_http_conn_expire(struct uar_http_stream *c);
/* The server goes: what has not become a request by now never will. */
void uar_http_conn_drain(struct uar_http_stream *c);
/* The whole answer is written: read on, linger or close. */
void uar_http_conn_answered(struct uar_http_stream *c);
/* Closes at once and tells nobody. */
void uar_http_conn_close(struct uar_http_stream *c);
void uar_http_conn_poll(struct uar_http_stream *c, bool reading, bool writing);

/* answer.c */
/* Answers with a problem and ends the connection. */
void uar_http_refuse(struct uar_http_stream *c, uar_err code, const struct uar_error *error);

/* out.c */
struct uar_frame *uar_http_last_chunk(void); /* ends a chunked body; NULL: no memory */
/* Writes; what does not fit now is copied and queued. Failure marks c broken. */
/* Queues the head of a stream; the end of this turn sends it and what followed at once. */
void uar_http_out_cork(struct uar_http_stream *c, uar_str head);
void uar_http_out_bytes(struct uar_http_stream *c, uar_str head, uar_str body);
void uar_http_out_frame(struct uar_http_stream *c, struct uar_frame *f);
bool uar_http_out_full(const struct uar_http_stream *c);
bool uar_http_out_has_room(const struct uar_http_stream *c); /* half of it is free again */
bool uar_http_out_flush(struct uar_http_stream *c);	     /* true: progress was made */
void uar_http_out_free(struct uar_http_stream *c);

#endif
