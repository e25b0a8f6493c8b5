/* http_peer.h - a server on a thread of its own, and a blocking client for it.
 *
 * The handler runs on the server's thread; what a test wants to see or change
 * there it does through uar_peer_call. */
#ifndef UAR_TEST_HTTP_PEER_H
#define UAR_TEST_HTTP_PEER_H

#include <uv.h>

#include "base/buf.h"
#include "http/http.h"
#include "leap.h"
#include "loop/loop.h"

struct uar_peer_server {
	struct leap time; /* the server's clock, and its thread's once it runs */
	struct uar_loop *loop;
	struct uar_http *http;
	uv_thread_t thread;
	uv_sem_t drained; /* posted once what uar_peer_drain began is over */
};

bool uar_peer_start(struct uar_peer_server *s, const struct uar_http_options *o);
/* Runs fn on the server's thread and waits for it. */
void uar_peer_call(struct uar_peer_server *s, void (*fn)(void *ctx), void *ctx);
void uar_peer_drain(struct uar_peer_server *s);
void uar_peer_stop(struct uar_peer_server *s); /* destroys the server and its loop */

struct uar_peer {
	int fd;
	struct uar_buf in; /* bytes that were read and not used yet */
};

struct uar_peer_reply {
	int status;
	char head[8192];
	struct uar_buf body;
};

bool uar_peer_dial(struct uar_peer *p, const char *address);
void uar_peer_close(struct uar_peer *p);
bool uar_peer_send(struct uar_peer *p, uar_str bytes); /* false: the server has closed */
bool uar_peer_say(struct uar_peer *p, const char *text);
/* One reply; `no_body` for answers to HEAD. False: the connection ended first. */
bool uar_peer_reply(struct uar_peer *p, bool no_body, struct uar_peer_reply *out);
/* The head of a reply whose body is a stream; pieces of it with uar_peer_chunk. */
bool uar_peer_head(struct uar_peer *p, struct uar_peer_reply *out);
/* Appends the next chunk to `out`; false at the end of the body or connection. */
bool uar_peer_chunk(struct uar_peer *p, struct uar_buf *out);
void uar_peer_read_all(struct uar_peer *p); /* into p->in, until the server closes */
bool uar_peer_at_end(struct uar_peer *p);   /* waits: true when the server closes, no byte before */

#endif
