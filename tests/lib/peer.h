/* peer.h - a TCP server that plays scripts, for tests of what UAR calls.
 *
 * It listens on a free loopback port. The nth request (over all connections,
 * from 0) is answered by script n % count. Each connection has its thread;
 * counters say what was seen, and a test waits for them instead of sleeping. */
#ifndef UAR_TEST_PEER_H
#define UAR_TEST_PEER_H

#include <stdbool.h>
#include <stddef.h>

enum peer_op {
	PEER_END,   /* done: the next request of the connection, if any */
	PEER_SEND,  /* `text`, `n` bytes (0: its length) */
	PEER_BYTES, /* the same byte by byte */
	PEER_FILL,  /* `text` n times over */
	PEER_CLOSE, /* closes properly */
	PEER_RESET, /* closes with a reset */
	PEER_STALL, /* says nothing until the client goes away */
	PEER_GATE,  /* waits for peer_open_gate */
};

struct peer_step {
	enum peer_op op;
	const char *text;
	size_t n;
};

struct peer_script {
	struct peer_step steps[6];
};

struct peer_counts {
	unsigned connections, requests; /* accepted; read completely */
	unsigned gone;			/* connections that the client closed */
	unsigned gone_early;		/* those of them with an answer unfinished */
	unsigned stalled;		/* PEER_STALL begun: all before it is sent */
};

struct peer;
struct peer *peer_create(const struct peer_script *scripts, size_t n); /* exits on failure */
void peer_destroy(struct peer *p);
unsigned peer_port(const struct peer *p);
void peer_open_gate(struct peer *p);
struct peer_counts peer_counts(struct peer *p);
/* Blocks until every counter is at least as large as in `want`. */
void peer_wait(struct peer *p, struct peer_counts want);
/* Bytes written so far, over all connections. */
size_t peer_sent(struct peer *p);
/* The last request, head and body; valid until the next one comes. */
const char *peer_request(struct peer *p);

#endif
