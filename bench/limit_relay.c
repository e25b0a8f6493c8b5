/* limit_relay.c - what a model's token costs with nothing but epoll, recv, send and SQLite.
 *
 *	limit_relay DIR PROVIDER_PORT ROW_BYTES
 *
 * A POST is answered once a row is committed; GET .../stream asks the provider
 * on a connection of its own and hands on every token of its answer as one event,
 * once a row of ROW_BYTES is committed. It parses nothing, keeps no index and ends
 * nobody: the floor under what a durable server can cost, and the least lag that
 * this machine gives in this minute. Prints where it listens as the server does. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/bare.h"
#include "lib/client.h"
#include "lib/measure.h"

enum { MAX_FD = 65536, READ_BYTES = 65536, STAMP_DIGITS = 16 };
enum row { CREATED, TOKEN, DONE };

/* A client, by the number of its socket. */
struct client {
	uint64_t last; /* event */
};

struct relay {
	struct bare_server server;
	struct sockaddr_in provider;
	struct client clients[MAX_FD];
	int reader[MAX_FD]; /* of the provider's connection, the client that it answers; 0: none */
};

/* An id as long as the server's, which tells the number of the socket. */
static int put_id(char *out, size_t cap, int fd)
{
	return snprintf(out, cap, "00000000-0000-7000-8000-%012d", fd);
}

static void answer_create(int fd)
{
	char id[48], body[256], all[512];
	int n;

	put_id(id, sizeof id, fd);
	n = snprintf(
		body, sizeof body,
		"{\"run_id\":\"%s\",\"status\":\"running\",\"stream_url\":\"/api/runs/%s/stream\"}",
		id, id);
	n = snprintf(all, sizeof all,
		     "HTTP/1.1 202 Accepted\r\nContent-Type: application/json\r\n"
		     "Content-Length: %d\r\n\r\n%s",
		     n, body);
	bare_send(fd, all, (size_t)n);
}

/* One event as one chunk; `more` comes behind it. */
static void send_event(struct relay *r, int fd, const char *type, const char *field,
		       const char *more)
{
	char id[48], event[512], all[1024];
	int n;

	put_id(id, sizeof id, fd);
	n = snprintf(event, sizeof event,
		     "event: event\nid: %llu\ndata: "
		     "{\"type\":\"%s\",\"data\":{\"run_id\":\"%s\"%s}}\n\n",
		     (unsigned long long)++r->clients[fd].last, type, id, field);
	n = snprintf(all, sizeof all, "%x\r\n%s\r\n%s", (unsigned)n, event, more);
	bare_send(fd, all, (size_t)n);
}

static void send_token(struct relay *r, int fd, int64_t at)
{
	char field[64];

	snprintf(field, sizeof field, ",\"text_delta\":\"t=%0*lld \"", STAMP_DIGITS, (long long)at);
	send_event(r, fd, "ChatDelta", field, "");
}

static void on_committed(void *ctx, const struct bare_row *rows, size_t n)
{
	struct relay *r = ctx;

	for (size_t i = 0; i < n; i++) {
		if (rows[i].what == CREATED)
			answer_create(rows[i].who);
		else if (rows[i].what == TOKEN)
			send_token(r, rows[i].who, rows[i].at);
		else
			send_event(r, rows[i].who, "RunDone", "", "0\r\n\r\n");
	}
}

static void ask_provider(struct relay *r, int client)
{
	static const char body[] = "{\"model\":\"bench\",\"stream\":true,\"messages\":["
				   "{\"role\":\"user\",\"content\":\"hi\"}]}";
	int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char all[512];
	int n = snprintf(all, sizeof all,
			 "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
			 "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
			 sizeof body - 1, body);

	if (fd < 0 || fd >= MAX_FD ||
	    connect(fd, (struct sockaddr *)&r->provider, sizeof r->provider))
		bench_die("provider: %s", strerror(errno));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	r->reader[fd] = client;
	bare_send(fd, all, (size_t)n);
	bare_watch(r->server.epoll, fd, (uint64_t)fd);
}

static void begin_stream(struct relay *r, int fd)
{
	static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
				   "Transfer-Encoding: chunked\r\n\r\n";

	bare_send(fd, head, sizeof head - 1);
	send_event(r, fd, "RunStart", "", "");
	ask_provider(r, fd);
}

/* The provider sends an event in one piece; the end comes with its last token. */
static void on_tokens(struct relay *r, int fd)
{
	char in[READ_BYTES], *at = in;
	ssize_t n = recv(fd, in, sizeof in - 1, 0);
	int client = r->reader[fd];

	if (n <= 0) {
		r->reader[fd] = 0;
		close(fd);
		return;
	}
	in[n] = 0;
	while ((at = strstr(at, "\"t=")) != NULL) {
		at += 3;
		bare_log_add(r->server.log,
			     (struct bare_row){ client, TOKEN, strtoll(at, NULL, 10) });
	}
	if (strstr(in, "[DONE]"))
		bare_log_add(r->server.log, (struct bare_row){ .who = client, .what = DONE });
}

/* The client sends a request in one piece and waits for the answer. */
static void on_request(struct relay *r, int fd)
{
	char in[4096];
	ssize_t n = recv(fd, in, sizeof in - 1, 0);

	if (n <= 0) {
		close(fd);
		return;
	}
	in[n] = 0;
	if (memcmp(in, "POST", 4) == 0)
		bare_log_add(r->server.log, (struct bare_row){ .who = fd, .what = CREATED });
	else
		begin_stream(r, fd);
}

static void on_connection(void *ctx, int fd)
{
	struct relay *r = ctx;

	if (fd >= MAX_FD)
		bench_die("too many clients");
	r->clients[fd].last = 0;
}

static void on_readable(void *ctx, int fd)
{
	struct relay *r = ctx;

	if (r->reader[fd])
		on_tokens(r, fd);
	else
		on_request(r, fd);
}

int main(int argc, char **argv)
{
	static struct relay r;

	if (argc != 4)
		bench_die("usage: limit_relay DIR PROVIDER_PORT ROW_BYTES");
	signal(SIGPIPE, SIG_IGN);
	bench_raise_files();
	r.provider = (struct sockaddr_in){ .sin_family = AF_INET,
					   .sin_port = htons((uint16_t)strtol(argv[2], NULL, 10)),
					   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	bare_start(&r.server, argv[1], (int)strtol(argv[3], NULL, 10));
	bare_serve(&r.server, &(struct bare_handler){
				      .opened = on_connection,
				      .committed = on_committed,
				      .readable = on_readable,
				      .ctx = &r,
			      });
}
