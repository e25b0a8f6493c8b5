/* limit_fanout.c - what fan-out costs when there is nothing but epoll and write.
 *
 *	limit_fanout --subscribers N --rate R --events E --bytes B [--coalesce 1]
 *
 * Listens on a free port of 127.0.0.1, prints it as JSON like the server does,
 * waits for N requests, and sends all of them the same E events of B bytes at R
 * a second, in HTTP chunks. It keeps nothing and checks nothing: the floor under
 * what a server can cost on this machine. Each event goes to everybody, in a write
 * of its own, before the next is made, as it does for a source that speaks now and
 * then; a loop that falls behind and catches up socket by socket would time writes
 * to a socket that is warm, and that the kernel joins. With --coalesce what is late
 * shares one write, the floor for a server that is allowed to lag. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/bare.h"
#include "lib/client.h"
#include "lib/measure.h"

static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
			   "Transfer-Encoding: chunked\r\n\r\n";

struct subscriber {
	int fd;
	size_t sent;	 /* of `wire` */
	bool subscribed; /* its request was read */
};

struct limit {
	int epoll, listener;
	struct subscriber *subs;
	size_t wanted, accepted, subscribed, finished;
	int64_t events, made, bytes, period_us, start_us;
	bool coalesce;
	size_t unit;		 /* bytes of one event on the wire; 0: whatever there is */
	struct bench_bytes wire; /* everything made so far, as it goes out */
};

/* The next event, framed; its last carries the type that ends a run. */
static void make_event(struct limit *l, bool last)
{
	char frame[8192], chunk[32];
	int n = snprintf(
		frame, sizeof frame,
		"event: event\nid: %lld\ndata: {\"type\":\"%s\",\"data\":{\"run_id\":\"limit\","
		"\"text_delta\":\"t=%lld ",
		(long long)++l->made, last ? "RunDone" : "ChatDelta", (long long)bench_now_us());
	int64_t pad = l->bytes - n - 5;

	for (int64_t i = 0; i < pad && n < (int)sizeof frame - 16; i++)
		frame[n++] = '.';
	memcpy(frame + n, "\"}}\n\n", 5);
	n += 5;
	bench_bytes_add(&l->wire, chunk,
			(size_t)snprintf(chunk, sizeof chunk, "%x\r\n", (unsigned)n));
	bench_bytes_add(&l->wire, frame, (size_t)n);
	bench_bytes_add(&l->wire, "\r\n", 2);
	if (l->made == 1)
		l->unit = l->coalesce ? 0 : l->wire.n;
	if (last)
		bench_bytes_add(&l->wire, "0\r\n\r\n", 5);
}

static void finish(struct limit *l, struct subscriber *s)
{
	close(s->fd);
	s->fd = -1;
	l->finished++;
}

static void push(struct limit *l, struct subscriber *s)
{
	while (s->fd >= 0 && s->subscribed && s->sent < l->wire.n) {
		size_t left = l->wire.n - s->sent;
		size_t size = l->unit ? l->unit - s->sent % l->unit : left;
		ssize_t n =
			send(s->fd, l->wire.p + s->sent, size < left ? size : left, MSG_NOSIGNAL);

		if (n > 0)
			s->sent += (size_t)n;
		else if (errno == EAGAIN)
			return;
		else if (errno != EINTR)
			finish(l, s);
		if (s->fd >= 0 && l->made == l->events && s->sent == l->wire.n)
			finish(l, s);
	}
}

static void accept_all(struct limit *l)
{
	int fd;

	while (l->accepted < l->wanted && (fd = bare_accept(l->listener)) >= 0) {
		struct subscriber *s = &l->subs[l->accepted++];
		struct epoll_event ev = { .events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = s };

		*s = (struct subscriber){ .fd = fd };
		epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &ev);
	}
}

static void read_request(struct limit *l, struct subscriber *s)
{
	char request[4096];

	if (s->subscribed || read(s->fd, request, sizeof request) <= 0)
		return;
	s->subscribed = true;
	l->subscribed++;
	if (send(s->fd, head, sizeof head - 1, MSG_NOSIGNAL) < 0)
		bench_die("send: %s", strerror(errno));
}

static bool is_due(const struct limit *l)
{
	return l->made < l->events && l->start_us + l->made * l->period_us <= bench_now_us();
}

/* How long to sleep until the next event is due; makes one, or all that are late. */
static int make_due(struct limit *l)
{
	int64_t due;
	bool fresh = false;

	if (l->made == l->events)
		return 100;
	while (is_due(l) && (!fresh || l->coalesce)) {
		make_event(l, l->made + 1 == l->events);
		fresh = true;
	}
	for (size_t i = 0; fresh && i < l->accepted; i++)
		push(l, &l->subs[i]);
	due = l->start_us + l->made * l->period_us - bench_now_us();
	return due > 0 ? (int)((due + 999) / 1000) : 0;
}

static void serve(struct limit *l, const struct epoll_event *ev)
{
	struct subscriber *s = ev->data.ptr;

	if (!s) {
		accept_all(l);
		return;
	}
	if (s->fd >= 0 && (ev->events & EPOLLIN))
		read_request(l, s);
	push(l, s);
}

int main(int argc, char **argv)
{
	struct limit l = { .wanted = (size_t)bench_number(argv, "--subscribers", 1000),
			   .events = bench_number(argv, "--events", 100),
			   .bytes = bench_number(argv, "--bytes", 200),
			   .coalesce = bench_number(argv, "--coalesce", 0),
			   .period_us = 1000000 / bench_number(argv, "--rate", 20) };
	struct epoll_event evs[512];

	(void)argc;
	signal(SIGPIPE, SIG_IGN);
	bench_raise_files();
	l.subs = bench_alloc(NULL, l.wanted * sizeof *l.subs);
	l.epoll = epoll_create1(EPOLL_CLOEXEC);
	l.listener = bare_listen();
	bare_watch(l.epoll, l.listener, 0); /* 0: a subscriber is its address */
	/* The source runs while subscribers attach, like a run does. */
	l.start_us = bench_now_us();
	while (l.finished < l.wanted) {
		int n = epoll_wait(l.epoll, evs, 512, make_due(&l));

		for (int i = 0; i < n; i++)
			serve(&l, &evs[i]);
	}
	pause(); /* whoever started it reads its CPU time, then ends it */
	free(l.subs);
	free(l.wire.p);
	return 0;
}
