/* prepared.h - an HTTP server for tests of clients, made of prepared answers.
 *
 * A thread takes one connection per answer, in order, keeps what was asked,
 * sends the answer in pieces and closes. After the last one it refuses. */
#ifndef UAR_TEST_PREPARED_H
#define UAR_TEST_PREPARED_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

enum { UAR_PREPARED_MAX = 80, UAR_PREPARED_HOLD = 1 << 30 };

struct uar_prepared_answer {
	const char *answer; /* all of it, head and body */
	size_t piece;	    /* bytes a time; 0: at once; HOLD: and stay until the client leaves */
};

struct uar_prepared {
	char url[200];
	char asked[UAR_PREPARED_MAX][4096]; /* to be read after finish */
	struct uar_prepared_answer answers[UAR_PREPARED_MAX];
	size_t count, served;
	int fd;
	pthread_t thread;
	bool joined;
};

/* On a unix socket, or on loopback with `tcp`. */
struct uar_prepared *uar_prepared_start(const struct uar_prepared_answer *answers, size_t count,
					bool tcp);
/* Waits until every answer was given; false when a connection failed. */
bool uar_prepared_finish(struct uar_prepared *p);
/* Also with answers left over. */
void uar_prepared_destroy(struct uar_prepared *p);

#define START(...)                                                                                 \
	uar_prepared_start((const struct uar_prepared_answer[]){ __VA_ARGS__ },                    \
			   sizeof((const struct uar_prepared_answer[]){ __VA_ARGS__ }) /           \
				   sizeof(struct uar_prepared_answer),                             \
			   false)

#define ANSWER(STATUS, TYPE, BODY)                                                                 \
	"HTTP/1.1 " STATUS "\r\nContent-Type: " TYPE "\r\nConnection: close\r\n\r\n" BODY
#define OK(BODY)	      ANSWER("200 OK", "application/json", BODY)
#define PROBLEM(STATUS, BODY) ANSWER(STATUS, "application/problem+json", BODY)
/* A stream that ends with the connection, so it ends in order. */
#define STREAM(FRAMES) ANSWER("200 OK", "text/event-stream", FRAMES)
/* A stream whose connection breaks: its last chunk never comes. */
#define BROKEN(SIZE, FRAMES)                                                                       \
	"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: " SIZE              \
	"\r\n\r\n" FRAMES

#endif
