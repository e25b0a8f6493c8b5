/* client.h - many HTTP/1.1 and event-stream clients on one epoll loop.
 *
 * Written to cost little beside the server it measures, and to trust nothing
 * the server says: bodies are counted by their framing, events by their ids.
 * A connection carries one request at a time and is opened again when the
 * server has closed it. */
#ifndef BENCH_CLIENT_H
#define BENCH_CLIENT_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bench_bytes {
	char *p;
	size_t n, cap;
};
void bench_bytes_add(struct bench_bytes *b, const void *p, size_t n);

enum bench_framing {
	BENCH_HEAD,
	BENCH_LENGTH,
	BENCH_SIZE, /* of a chunk */
	BENCH_CHUNK,
	BENCH_GAP, /* after the last chunk */
	BENCH_UNTIL_CLOSE,
	BENCH_DONE
};

/* One response on its way in. */
struct bench_response {
	enum bench_framing state;
	int status;
	bool stream, keep_alive;
	int64_t left;		 /* of the body or the chunk */
	struct bench_bytes held; /* an unfinished head, chunk size or event */
};

enum { BENCH_FRAMES = 16 }; /* at most so many frames of one event, less one */

struct bench_event {
	uint64_t id; /* 0: none given. Of "7.2": 7 * BENCH_FRAMES + 2 */
	const char *data;
	size_t n;     /* of data */
	size_t bytes; /* of the whole frame */
};

struct bench_conn;
struct bench_calls {
	/* One event of a stream; what it points to ends with the call. */
	void (*event)(struct bench_conn *c, const struct bench_event *ev);
	/* The response is complete: status and, unless a stream, body. Status 0:
	 * the connection broke first. A new request may be made from here. */
	void (*done)(struct bench_conn *c, int status);
};

struct bench_loop {
	int epoll;
	struct sockaddr_in addr;
	const char *token; /* NULL: no Authorization */
	bool stop;
	size_t streams; /* responses that are event streams and have begun */
	char *scratch;
};

struct bench_conn {
	struct bench_loop *loop;
	const struct bench_calls *calls;
	int fd; /* -1: closed */
	bool wants_write;
	struct bench_response in;
	struct bench_bytes out, body, chunk_line;
	size_t sent;
	uint64_t resume_after; /* sent as Last-Event-ID when not 0 */
	bool frame_ids;	       /* ids of this stream have the form "7.2" */
	void *ctx;
};

/* `url` is http://<IPv4 address>:<port>. */
void bench_loop_init(struct bench_loop *l, const char *url, const char *token);
void bench_loop_fini(struct bench_loop *l);
/* Serves until l->stop or until the clock reaches `until_us` (0: no end). */
void bench_loop_run(struct bench_loop *l, int64_t until_us);

void bench_conn_init(struct bench_conn *c, struct bench_loop *l, const struct bench_calls *calls,
		     void *ctx);
void bench_conn_fini(struct bench_conn *c);
/* Sends a request; `json` NULL: a GET. */
void bench_request(struct bench_conn *c, const char *path, const char *json);

/* The string member `name` of a flat JSON text, copied; false when not there.
 * A benchmark only reads identifiers this way, never text with escapes. */
bool bench_json_string(const char *json, size_t n, const char *name, char *out, size_t cap);
/* Calls fn for every "t=<microseconds> " in the bytes. Returns how many. */
size_t bench_times(const char *p, size_t n, void (*fn)(void *ctx, int64_t sent_us), void *ctx);

#endif
