/* fake_provider.c - a loopback provider for benchmarks: OpenAI-style streams.
 *
 *	fake_provider [--port N] [--tokens N] [--rate TOKENS_PER_SECOND] [--tools N]
 *
 * Answers every POST with --tokens events, at --rate a second and stream (0: as
 * fast as the reader takes them). With a rate the text of a token is the moment it
 * was made, "t=<monotonic microseconds> ", which gives a reader its lag. With --tools an answer
 * ends with a call of a tool until the request holds that many results. One thread, epoll, libc
 * alone, so that its own cost stays small and known. Prints its port first; on SIGTERM or SIGINT
 * what it did and its CPU time. Not a server for anything else. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { MAX_FD = 65536, IN_BYTES = 65536, BATCH = 64, TICK_US = 1000 };

static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
			   "Transfer-Encoding: chunked\r\n\r\n";
#define CHUNK                                                                                      \
	"data: {\"id\":\"chatcmpl-bench-0123456789\",\"object\":\"chat.completion.chunk\","        \
	"\"created\":1700000000,\"model\":\"bench\",\"system_fingerprint\":\"fp_bench\","          \
	"\"choices\":[{\"index\":0,\"delta\":{"
static const char token_event[] = CHUNK "\"content\":\" word\"},\"logprobs\":null,"
					"\"finish_reason\":null}]}\n\n";
/* What the model calls: internal:math.evaluate, as models know it. */
#define TOOL  "internal__math_evaluate"
#define STAMP "t=0000000000000000 "
static const char timed_event[] = CHUNK "\"content\":\"" STAMP "\"},\"logprobs\":null,"
					"\"finish_reason\":null}]}\n\n";
static const char stop_event[] = CHUNK "},\"logprobs\":null,\"finish_reason\":\"stop\"}]}\n\n";
static const char call_event[] =
	CHUNK "\"tool_calls\":[{\"index\":0,\"id\":\"call_%d\",\"type\":\"function\",\"function\":"
	      "{\"name\":\"%s\",\"arguments\":\"{\\\"expression\\\":\\\"6*7\\\"}\"}}]},"
	      "\"logprobs\":null,\"finish_reason\":null}]}\n\n";
static const char calls_event[] =
	CHUNK "},\"logprobs\":null,\"finish_reason\":\"tool_calls\"}]}\n\n";
static const char done_event[] = "data: [DONE]\n\n";

struct connection {
	int fd;
	char *in; /* the request so far */
	size_t in_n;
	bool streaming, want_out;
	int call;	      /* the number of the call that ends the answer, 0: none */
	long left;	      /* tokens to send */
	size_t out_at, out_n; /* of the piece under way */
	char out[sizeof timed_event * BATCH + 1024];
	size_t at; /* place in the list of streams, with a rate */
};

static struct connection *connections[MAX_FD], *streams[MAX_FD];
static uint64_t due_ns[MAX_FD]; /* next token of each stream, with a rate; apart, as all are
				 * looked at every tick */
static size_t stream_count;
static int epoll_fd, listen_fd;
static long tokens = 100, rate, tools;
static unsigned long requests, sent, finished, left_early;
static char token_chunk[sizeof timed_event + 16], *stamp; /* within it, with a rate */
static size_t token_chunk_n;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void watch(int fd, int op, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.fd = fd };

	if (epoll_ctl(epoll_fd, op, fd, &ev))
		die("epoll_ctl");
}

/* --- streams ----------------------------------------------------------------- */

static void leave_streams(struct connection *c)
{
	if (rate == 0 || !c->streaming)
		return;
	streams[c->at] = streams[--stream_count];
	due_ns[c->at] = due_ns[stream_count];
	streams[c->at]->at = c->at;
}

static void close_connection(struct connection *c)
{
	if (c->streaming)
		left_early++;
	leave_streams(c);
	connections[c->fd] = NULL;
	close(c->fd);
	free(c->in);
	free(c);
}

static void put(struct connection *c, const char *p, size_t n)
{
	memcpy(c->out + c->out_n, p, n);
	c->out_n += n;
}

static void put_chunk(struct connection *c, const char *p, size_t n)
{
	c->out_n += (size_t)snprintf(c->out + c->out_n, 16, "%zx\r\n", n);
	put(c, p, n);
	put(c, "\r\n", 2);
}

static void put_end(struct connection *c)
{
	char call[sizeof call_event + 64];

	if (c->call) {
		put_chunk(c, call, (size_t)snprintf(call, sizeof call, call_event, c->call, TOOL));
		put_chunk(c, calls_event, sizeof calls_event - 1);
	} else {
		put_chunk(c, stop_event, sizeof stop_event - 1);
	}
	put_chunk(c, done_event, sizeof done_event - 1);
	put(c, "0\r\n\r\n", 5);
	leave_streams(c);
	c->streaming = false;
	finished++;
}

/* Up to n tokens into the empty buffer; the end after the last one. */
static void put_tokens(struct connection *c, long n)
{
	uint64_t us = stamp ? now_ns() / 1000 : 0;

	for (char *digit = stamp ? stamp + sizeof STAMP - 3 : NULL; us; us /= 10)
		*digit-- = (char)('0' + us % 10);
	for (; n > 0 && c->left > 0; n--, c->left--, sent++)
		put(c, token_chunk, token_chunk_n);
	if (c->left == 0)
		put_end(c);
}

/* False: the connection is gone. */
static bool flush(struct connection *c)
{
	while (c->out_at < c->out_n) {
		ssize_t n = send(c->fd, c->out + c->out_at, c->out_n - c->out_at, MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN)
			break;
		if (n <= 0) {
			close_connection(c);
			return false;
		}
		c->out_at += (size_t)n;
		if (c->out_at < c->out_n)
			continue;
		c->out_at = c->out_n = 0;
		if (rate == 0 && c->streaming)
			put_tokens(c, BATCH);
	}
	if (c->want_out != (c->out_n > 0)) {
		c->want_out = !c->want_out;
		watch(c->fd, EPOLL_CTL_MOD, EPOLLIN | (c->want_out ? EPOLLOUT : 0));
	}
	return true;
}

static void begin_stream(struct connection *c)
{
	requests++;
	c->streaming = true;
	c->left = tokens;
	put(c, head, sizeof head - 1);
	if (rate == 0)
		return;
	c->at = stream_count;
	due_ns[c->at] = now_ns() + (uint64_t)(requests % 997) * 1000000000u / 997 / (uint64_t)rate;
	streams[stream_count++] = c;
}

static void on_tick(void)
{
	uint64_t now = now_ns(), step = 1000000000u / (uint64_t)(rate > 0 ? rate : 1);

	for (size_t i = stream_count; i-- > 0;) {
		struct connection *c = streams[i];
		long n = 0;

		for (; due_ns[i] <= now && n < BATCH; n++)
			due_ns[i] += step;
		if (n == 0 || c->out_n > 0)
			continue;
		put_tokens(c, n);
		flush(c);
	}
}

/* --- requests ------------------------------------------------------------------ */

/* Bytes of the whole request in the buffer, 0: not all there yet. */
static size_t request_length(const struct connection *c)
{
	char *end = c->in_n ? strstr(c->in, "\r\n\r\n") : NULL;
	char *length = end ? strcasestr(c->in, "\r\ncontent-length:") : NULL;
	size_t n;

	if (!end)
		return 0;
	n = (size_t)(end + 4 - c->in);
	if (length && length < end)
		n += strtoul(length + 17, NULL, 10);
	return n <= c->in_n ? n : 0;
}

/* How often the request, whose end is marked, holds a tool's result. */
static long count_results(const char *request)
{
	static const char mark[] = "\"role\":\"tool\"";
	long n = 0;

	while ((request = strstr(request, mark)))
		n++, request += sizeof mark - 1;
	return n;
}

static void take_request(struct connection *c)
{
	size_t n = c->streaming || c->out_n ? 0 : request_length(c);
	long results = n ? count_results(c->in) : 0;

	if (n == 0)
		return;
	c->call = results < tools ? (int)results + 1 : 0;
	memmove(c->in, c->in + n, c->in_n - n + 1);
	c->in_n -= n;
	begin_stream(c);
	flush(c);
}

static void on_input(struct connection *c)
{
	ssize_t n =
		c->in_n < IN_BYTES - 1 ? read(c->fd, c->in + c->in_n, IN_BYTES - 1 - c->in_n) : 0;

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		close_connection(c);
		return;
	}
	c->in_n += (size_t)n;
	c->in[c->in_n] = 0;
	take_request(c);
}

static void on_connection(void)
{
	int fd, one = 1;

	while ((fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		struct connection *c = fd < MAX_FD ? calloc(1, sizeof *c) : NULL;

		if (!c || !(c->in = calloc(1, IN_BYTES)))
			die("connection");
		c->fd = fd;
		connections[fd] = c;
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		watch(fd, EPOLL_CTL_ADD, EPOLLIN);
	}
}

static void on_event(int fd, uint32_t events)
{
	struct connection *c = connections[fd];

	if (c && (events & EPOLLOUT) && !flush(c))
		return;
	if (c && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		on_input(c);
}

/* --- life ------------------------------------------------------------------------ */

static unsigned listen_on(unsigned port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	socklen_t n = sizeof at;
	int one = 1;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	setsockopt(listen_fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (listen_fd < 0 || bind(listen_fd, (struct sockaddr *)&at, sizeof at) ||
	    listen(listen_fd, 4096) || getsockname(listen_fd, (struct sockaddr *)&at, &n))
		die("listen");
	watch(listen_fd, EPOLL_CTL_ADD, EPOLLIN);
	return ntohs(at.sin_port);
}

static int open_timer(void)
{
	struct itimerspec every = { { 0, TICK_US * 1000 }, { 0, TICK_US * 1000 } };
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

	if (fd < 0 || timerfd_settime(fd, 0, &every, NULL))
		die("timerfd");
	watch(fd, EPOLL_CTL_ADD, EPOLLIN);
	return fd;
}

static int open_signals(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	if (fd < 0)
		die("signalfd");
	watch(fd, EPOLL_CTL_ADD, EPOLLIN);
	return fd;
}

static void report(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	printf("requests %lu finished %lu left_early %lu tokens %lu cpu_ms %ld\n", requests,
	       finished, left_early, sent,
	       (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000 +
		       (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000);
}

static long option(int argc, char **argv, const char *name, long fallback)
{
	for (int i = 1; i + 1 < argc; i += 2)
		if (strcmp(argv[i], name) == 0)
			return strtol(argv[i + 1], NULL, 10);
	return fallback;
}

static void run(int timer_fd, int signal_fd)
{
	struct epoll_event events[256];
	uint64_t ticks;

	for (;;) {
		int n = epoll_wait(epoll_fd, events, 256, -1);

		for (int i = 0; i < n; i++) {
			int fd = events[i].data.fd;

			if (fd == signal_fd)
				return;
			if (fd == listen_fd)
				on_connection();
			else if (fd == timer_fd && read(fd, &ticks, sizeof ticks) > 0)
				on_tick();
			else if (fd != timer_fd)
				on_event(fd, events[i].events);
		}
	}
}

int main(int argc, char **argv)
{
	struct rlimit files = { MAX_FD, MAX_FD };
	const char *event;
	int signal_fd;

	tokens = option(argc, argv, "--tokens", tokens);
	rate = option(argc, argv, "--rate", 0);
	tools = option(argc, argv, "--tools", 0);
	setrlimit(RLIMIT_NOFILE, &files);
	event = rate > 0 ? timed_event : token_event;
	token_chunk_n = (size_t)snprintf(token_chunk, sizeof token_chunk, "%zx\r\n%s\r\n",
					 strlen(event), event);
	stamp = strstr(token_chunk, STAMP);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	signal_fd = open_signals();
	printf("%u\n", listen_on((unsigned)option(argc, argv, "--port", 0)));
	fflush(stdout);
	run(rate > 0 ? open_timer() : -1, signal_fd);
	report();
	return 0;
}
