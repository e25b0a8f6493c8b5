/* peer.c - the scripted TCP server of the tests. */
#include "peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX_CONNECTIONS = 2048, REQUEST_BYTES = 65536 };

struct connection {
	struct peer *peer;
	pthread_t thread;
	int fd;
};

struct peer {
	int fd;
	unsigned port;
	const struct peer_script *scripts;
	size_t script_count;
	pthread_t thread;
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t changed;
	struct peer_counts counts;
	bool gate, stopping;
	size_t sent;
	char request[REQUEST_BYTES];
	struct connection connections[MAX_CONNECTIONS];
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void count(struct peer *p, unsigned *counter)
{
	pthread_mutex_lock(&p->lock);
	++*counter;
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
}

/* --- one connection -------------------------------------------------------------- */

static size_t body_length(const char *head)
{
	const char *at = strcasestr(head, "\r\ncontent-length:");

	return at ? strtoul(at + 17, NULL, 10) : 0;
}

/* Reads a whole request into buf; false when the client is gone. */
static bool read_request(int fd, char *buf)
{
	size_t n = 0;
	const char *end = NULL;

	while (!end || n < (size_t)(end + 4 - buf) + body_length(buf)) {
		ssize_t got = n < REQUEST_BYTES - 1 ? read(fd, buf + n, REQUEST_BYTES - 1 - n) : 0;

		if (got <= 0)
			return false;
		n += (size_t)got;
		buf[n] = 0;
		end = strstr(buf, "\r\n\r\n");
	}
	return true;
}

static bool send_all(struct connection *c, const char *p, size_t n)
{
	while (n) {
		ssize_t did = send(c->fd, p, n, MSG_NOSIGNAL);

		if (did <= 0)
			return false;
		p += did;
		n -= (size_t)did;
		pthread_mutex_lock(&c->peer->lock);
		c->peer->sent += (size_t)did;
		pthread_mutex_unlock(&c->peer->lock);
	}
	return true;
}

static bool send_bytes(struct connection *c, const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!send_all(c, p + i, 1))
			return false;
	return true;
}

static bool fill(struct connection *c, const char *text, size_t times)
{
	for (size_t i = 0; i < times; i++)
		if (!send_all(c, text, strlen(text)))
			return false;
	return true;
}

static bool wait_gate(struct peer *p)
{
	pthread_mutex_lock(&p->lock);
	while (!p->gate && !p->stopping)
		pthread_cond_wait(&p->changed, &p->lock);
	pthread_mutex_unlock(&p->lock);
	return true;
}

static bool stall(struct connection *c)
{
	char byte;

	count(c->peer, &c->peer->counts.stalled);
	while (read(c->fd, &byte, 1) > 0)
		;
	return false;
}

static bool reset(struct connection *c)
{
	struct linger hard = { .l_onoff = 1, .l_linger = 0 };

	setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
	return false;
}

/* False: the connection is over; *out_early: because the client left. */
static bool play(struct connection *c, const struct peer_script *s, bool *out_early)
{
	for (size_t i = 0; i < sizeof s->steps / sizeof s->steps[0]; i++) {
		const struct peer_step *st = &s->steps[i];
		size_t n = st->n || !st->text ? st->n : strlen(st->text);
		bool good = true;

		*out_early = st->op != PEER_CLOSE && st->op != PEER_RESET;
		switch (st->op) {
		case PEER_END: return true;
		case PEER_SEND: good = send_all(c, st->text, n); break;
		case PEER_BYTES: good = send_bytes(c, st->text, n); break;
		case PEER_FILL: good = fill(c, st->text, st->n); break;
		case PEER_CLOSE: return false;
		case PEER_RESET: return reset(c);
		case PEER_STALL: good = stall(c); break;
		case PEER_GATE: good = wait_gate(c->peer); break;
		}
		if (!good)
			return false;
	}
	return true;
}

static const struct peer_script *take_request(struct peer *p, const char *request)
{
	const struct peer_script *s;

	pthread_mutex_lock(&p->lock);
	s = &p->scripts[p->counts.requests++ % p->script_count];
	memcpy(p->request, request, strlen(request) + 1);
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
	return s;
}

static void *serve(void *ctx)
{
	struct connection *c = ctx;
	char *request = malloc(REQUEST_BYTES);
	bool early = false, mine = false;

	while (request && !mine && read_request(c->fd, request)) {
		mine = !play(c, take_request(c->peer, request), &early);
		early = early && mine;
	}
	if (!mine || early)
		count(c->peer, &c->peer->counts.gone);
	if (early)
		count(c->peer, &c->peer->counts.gone_early);
	free(request);
	pthread_mutex_lock(&c->peer->lock); /* peer_destroy may be looking at fd */
	close(c->fd);
	c->fd = -1;
	pthread_mutex_unlock(&c->peer->lock);
	return NULL;
}

/* --- the peer -------------------------------------------------------------------- */

static void *accept_all(void *ctx)
{
	struct peer *p = ctx;
	int fd, one = 1, small = 65536;

	while ((fd = accept(p->fd, NULL, NULL)) >= 0) {
		struct connection *c = &p->connections[p->counts.connections];

		if (p->counts.connections >= MAX_CONNECTIONS)
			die("too many connections");
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
		pthread_mutex_lock(&p->lock);
		*c = (struct connection){ .peer = p, .fd = fd };
		if (pthread_create(&c->thread, NULL, serve, c))
			die("pthread_create");
		p->counts.connections++;
		pthread_cond_broadcast(&p->changed);
		pthread_mutex_unlock(&p->lock);
	}
	return NULL;
}

struct peer *peer_create(const struct peer_script *scripts, size_t n)
{
	struct peer *p = calloc(1, sizeof *p);
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t len = sizeof at;

	if (!p)
		die("peer");
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	p->scripts = scripts;
	p->script_count = n;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->changed, NULL);
	p->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (p->fd < 0 || bind(p->fd, (struct sockaddr *)&at, sizeof at) || listen(p->fd, 1024) ||
	    getsockname(p->fd, (struct sockaddr *)&at, &len))
		die("peer");
	p->port = ntohs(at.sin_port);
	if (pthread_create(&p->thread, NULL, accept_all, p))
		die("pthread_create");
	return p;
}

void peer_destroy(struct peer *p)
{
	shutdown(p->fd, SHUT_RDWR);
	pthread_join(p->thread, NULL);
	close(p->fd);
	pthread_mutex_lock(&p->lock);
	p->stopping = true;
	for (unsigned i = 0; i < p->counts.connections; i++)
		if (p->connections[i].fd >= 0)
			shutdown(p->connections[i].fd, SHUT_RDWR);
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
	for (unsigned i = 0; i < p->counts.connections; i++)
		pthread_join(p->connections[i].thread, NULL);
	pthread_mutex_destroy(&p->lock);
	pthread_cond_destroy(&p->changed);
	free(p);
}

unsigned peer_port(const struct peer *p)
{
	return p->port;
}

void peer_open_gate(struct peer *p)
{
	pthread_mutex_lock(&p->lock);
	p->gate = true;
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
}

struct peer_counts peer_counts(struct peer *p)
{
	struct peer_counts c;

	pthread_mutex_lock(&p->lock);
	c = p->counts;
	pthread_mutex_unlock(&p->lock);
	return c;
}

void peer_wait(struct peer *p, struct peer_counts want)
{
	pthread_mutex_lock(&p->lock);
	while (p->counts.connections < want.connections || p->counts.requests < want.requests ||
	       p->counts.gone < want.gone || p->counts.gone_early < want.gone_early ||
	       p->counts.stalled < want.stalled)
		pthread_cond_wait(&p->changed, &p->lock);
	pthread_mutex_unlock(&p->lock);
}

size_t peer_sent(struct peer *p)
{
	size_t n;

	pthread_mutex_lock(&p->lock);
	n = p->sent;
	pthread_mutex_unlock(&p->lock);
	return n;
}

const char *peer_request(struct peer *p)
{
	return p->request;
}
