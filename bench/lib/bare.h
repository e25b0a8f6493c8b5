/* bare.h - the least that a durable server needs, for the floors of the benchmarks.
 *
 * One table without an index, a listener on loopback, and a queue to the one
 * thread that commits all that waits (synchronous=FULL) and hands it back in
 * order. Everything that goes wrong ends the program. */
#ifndef BENCH_BARE_H
#define BENCH_BARE_H

#include <stddef.h>
#include <stdint.h>

struct bare_log;

/* Tokens of what is committed: whose row it was, and what it was for. */
struct bare_row {
	int who, what;
	int64_t at;
};

/* Creates DIR/limit.db with rows of so many bytes and starts the thread that commits.
 * `wake` is an eventfd that is written to when rows are back. */
struct bare_log *bare_log_start(const char *dir, int row_bytes, int wake);
void bare_log_add(struct bare_log *l, struct bare_row row);
/* Takes what was committed since; the rows stay until the next call. */
size_t bare_log_take(struct bare_log *l, const struct bare_row **out);

/* What it is told, in one thread: a client has come, rows are committed, a socket that is
 * watched under its own number has something to read. */
struct bare_handler {
	void (*opened)(void *ctx, int fd); /* NULL: no matter */
	void (*committed)(void *ctx, const struct bare_row *rows, size_t n);
	void (*readable)(void *ctx, int fd);
	void *ctx;
};
struct bare_server {
	int epoll, listener, wake;
	struct bare_log *log;
};
/* A log in DIR and a listener. */
void bare_start(struct bare_server *s, const char *dir, int row_bytes);
void bare_serve(struct bare_server *s, const struct bare_handler *h) __attribute__((noreturn));

/* A listener on any port of loopback; prints where it listens as the server does. */
int bare_listen(void);
void bare_watch(int epoll, int fd, uint64_t data);
/* The next connection that waits, -1: none. */
int bare_accept(int listener);
/* All of it at once: the peers of a benchmark read what they are sent. */
void bare_send(int fd, const char *p, size_t n);

#endif
