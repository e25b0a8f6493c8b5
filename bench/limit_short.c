/* limit_short.c - what a short run costs with nothing but epoll, send and SQLite.
 *
 *	limit_short DIR CREATED STREAM RECORD ROW_BYTES
 *
 * Answers the three requests of a short run with the bytes of three files: a POST
 * with CREATED, once a row of ROW_BYTES is committed, GET .../stream with STREAM as
 * one chunk, any other GET with RECORD. It looks at nothing else: the floor under
 * what a server can cost on this machine. Prints where it listens as the server does. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/bare.h"
#include "lib/client.h"
#include "lib/measure.h"

struct limit {
	struct bare_server server;
	struct bench_bytes created, stream, record; /* whole answers */
};

static struct bench_bytes file_bytes(const char *path)
{
	struct bench_bytes b = { 0 };
	char part[4096];
	FILE *f = fopen(path, "rb");
	size_t n;

	if (!f)
		bench_die("%s: %s", path, strerror(errno));
	while ((n = fread(part, 1, sizeof part, f)) > 0)
		bench_bytes_add(&b, part, n);
	fclose(f);
	return b;
}

static struct bench_bytes answer(const char *path, bool stream)
{
	struct bench_bytes body = file_bytes(path), all = { 0 };
	char head[256];
	int n = stream ? snprintf(head, sizeof head,
				  "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
				  "Transfer-Encoding: chunked\r\n\r\n%zx\r\n",
				  body.n)
		       : snprintf(head, sizeof head,
				  "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
				  "Content-Length: %zu\r\n\r\n",
				  body.n);

	bench_bytes_add(&all, head, (size_t)n);
	bench_bytes_add(&all, body.p, body.n);
	if (stream)
		bench_bytes_add(&all, "\r\n0\r\n\r\n", 7);
	free(body.p);
	return all;
}

static void reply(int fd, const struct bench_bytes *b)
{
	bare_send(fd, b->p, b->n);
}

static void on_committed(void *ctx, const struct bare_row *rows, size_t n)
{
	struct limit *l = ctx;

	for (size_t i = 0; i < n; i++)
		reply(rows[i].who, &l->created);
}

/* The client sends a request in one piece and waits for the answer. */
static void on_request(void *ctx, int fd)
{
	struct limit *l = ctx;
	char request[4096];
	ssize_t n = recv(fd, request, sizeof request - 1, 0);

	if (n <= 0) {
		close(fd);
		return;
	}
	request[n] = 0;
	if (memcmp(request, "POST", 4) == 0)
		bare_log_add(l->server.log, (struct bare_row){ .who = fd });
	else
		reply(fd, strstr(request, "/stream") ? &l->stream : &l->record);
}

int main(int argc, char **argv)
{
	struct limit l = { 0 };

	if (argc != 6)
		bench_die("usage: limit_short DIR CREATED STREAM RECORD ROW_BYTES");
	signal(SIGPIPE, SIG_IGN);
	l.created = answer(argv[2], false);
	l.stream = answer(argv[3], true);
	l.record = answer(argv[4], false);
	bare_start(&l.server, argv[1], (int)strtol(argv[5], NULL, 10));
	bare_serve(&l.server, &(struct bare_handler){
				      .committed = on_committed,
				      .readable = on_request,
				      .ctx = &l,
			      });
}
