/* client.c - see client.h. */
#include "lib/client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/measure.h"

enum { SCRATCH = 1 << 18, EVENTS = 512, HEAD_MAX = 1 << 16, BODY_MAX = 1 << 24 };

void bench_bytes_add(struct bench_bytes *b, const void *p, size_t n)
{
	if (b->n + n + 1 > b->cap) {
		b->cap = 2 * (b->n + n + 1);
		b->p = bench_alloc(b->p, b->cap);
	}
	memcpy(b->p + b->n, p, n);
	b->n += n;
	b->p[b->n] = 0;
}

static void bytes_drop(struct bench_bytes *b, size_t n)
{
	memmove(b->p, b->p + n, b->n - n);
	b->n -= n;
}

static void bytes_fini(struct bench_bytes *b)
{
	free(b->p);
	*b = (struct bench_bytes){ 0 };
}

/* --- the response ---------------------------------------------------------- */

static const char *header(const char *head, const char *name)
{
	for (const char *line = strstr(head, "\r\n"); line; line = strstr(line, "\r\n")) {
		line += 2;
		if (strncasecmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':')
			return line + strlen(name) + 1 + strspn(line + strlen(name) + 1, " ");
	}
	return NULL;
}

static void parse_head(struct bench_conn *c, const char *head)
{
	struct bench_response *r = &c->in;
	const char *length = header(head, "content-length");
	const char *coding = header(head, "transfer-encoding");
	const char *type = header(head, "content-type");
	const char *connection = header(head, "connection");

	if (strncmp(head, "HTTP/1.1 ", 9) != 0)
		bench_die("not an HTTP/1.1 response: %.40s", head);
	r->status = (int)strtol(head + 9, NULL, 10);
	r->stream = type && strncasecmp(type, "text/event-stream", 17) == 0;
	r->keep_alive = !(connection && strncasecmp(connection, "close", 5) == 0);
	r->left = length ? strtoll(length, NULL, 10) : 0;
	if (coding)
		r->state = BENCH_SIZE;
	else if (length)
		r->state = r->left ? BENCH_LENGTH : BENCH_DONE;
	else
		r->state = r->status == 204 ? BENCH_DONE : BENCH_UNTIL_CLOSE;
	if (r->state == BENCH_UNTIL_CLOSE)
		r->keep_alive = false;
	c->loop->streams += r->stream;
}

/* Takes bytes of the head; returns how many belonged to it. */
static size_t take_head(struct bench_conn *c, const char *p, size_t n)
{
	struct bench_bytes *held = &c->in.held;
	size_t before = held->n, size;
	char *end;

	bench_bytes_add(held, p, n);
	end = memmem(held->p, held->n, "\r\n\r\n", 4);
	if (!end) {
		if (held->n > HEAD_MAX)
			bench_die("a response head without end");
		return n;
	}
	size = (size_t)(end - held->p) + 4;
	end[2] = 0;
	held->n = 0;
	parse_head(c, held->p);
	return size - before;
}

/* "7" is event 7. "7.2" is the second frame of event 7 in a dialect that makes several of one. */
static uint64_t read_id(const char *text)
{
	char *end;
	uint64_t id = strtoull(text, &end, 10);

	return *end == '.' ? id * BENCH_FRAMES + strtoull(end + 1, NULL, 10) : id;
}

static void emit(struct bench_conn *c, const char *p, size_t n)
{
	struct bench_event ev = { .bytes = n + 2 };
	const char *end = p + n;

	while (p < end) {
		const char *eol = memchr(p, '\n', (size_t)(end - p));

		eol = eol ? eol : end;
		if (eol - p > 6 && memcmp(p, "data: ", 6) == 0) {
			ev.data = p + 6;
			ev.n = (size_t)(eol - ev.data);
		} else if (eol - p > 4 && memcmp(p, "id: ", 4) == 0) {
			ev.id = read_id(p + 4);
		}
		p = eol + 1;
	}
	if (ev.data && c->calls->event)
		c->calls->event(c, &ev);
}

/* Emits the complete events in the bytes; returns how many bytes they took. */
static size_t take_events(struct bench_conn *c, const char *p, size_t n)
{
	size_t done = 0;
	const char *end;

	while ((end = memmem(p + done, n - done, "\n\n", 2))) {
		emit(c, p + done, (size_t)(end - p) - done);
		done = (size_t)(end - p) + 2;
	}
	return done;
}

static void take_body(struct bench_conn *c, const char *p, size_t n)
{
	struct bench_bytes *held = &c->in.held;

	if (!c->in.stream) {
		if (c->body.n + n > BODY_MAX)
			bench_die("a body without end");
		bench_bytes_add(&c->body, p, n);
		return;
	}
	if (held->n) {
		bench_bytes_add(held, p, n);
		bytes_drop(held, take_events(c, held->p, held->n));
		return;
	}
	size_t done = take_events(c, p, n);

	if (done < n)
		bench_bytes_add(held, p + done, n - done);
}

/* A line of the chunked framing: a size, the end of a chunk or of the body. */
static size_t take_chunk_line(struct bench_conn *c, const char *p, size_t n)
{
	const char *eol = memchr(p, '\n', n);
	size_t size = eol ? (size_t)(eol - p) + 1 : n;
	struct bench_bytes *line = &c->chunk_line;

	bench_bytes_add(line, p, size);
	if (!eol)
		return size;
	if (c->in.state == BENCH_GAP) { /* after the last chunk */
		if (line->p[0] == '\r')
			c->in.state = BENCH_DONE;
	} else if (line->p[0] != '\r') {
		c->in.left = strtoll(line->p, NULL, 16);
		c->in.state = c->in.left ? BENCH_CHUNK : BENCH_GAP;
	}
	line->n = 0;
	return size;
}

static size_t take_counted(struct bench_conn *c, const char *p, size_t n)
{
	if ((int64_t)n > c->in.left)
		n = (size_t)c->in.left;
	take_body(c, p, n);
	c->in.left -= (int64_t)n;
	if (c->in.left == 0)
		c->in.state = c->in.state == BENCH_LENGTH ? BENCH_DONE : BENCH_SIZE;
	return n;
}

static size_t take(struct bench_conn *c, const char *p, size_t n)
{
	switch (c->in.state) {
	case BENCH_HEAD: return take_head(c, p, n);
	case BENCH_SIZE:
	case BENCH_GAP: return take_chunk_line(c, p, n);
	case BENCH_LENGTH:
	case BENCH_CHUNK: return take_counted(c, p, n);
	case BENCH_UNTIL_CLOSE: take_body(c, p, n); return n;
	case BENCH_DONE: break;
	}
	bench_die("bytes after the end of a response: %.*s", (int)(n < 80 ? n : 80), p);
}

/* --- the connection -------------------------------------------------------- */

static void close_conn(struct bench_conn *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

static void finish(struct bench_conn *c, int status)
{
	c->loop->streams -= c->in.stream;
	c->in.stream = false;
	if (!c->in.keep_alive || status == 0)
		close_conn(c);
	c->calls->done(c, status);
}

static void on_end(struct bench_conn *c)
{
	bool whole = c->in.state == BENCH_UNTIL_CLOSE;
	bool idle = c->in.state == BENCH_DONE;

	close_conn(c);
	if (!idle)
		finish(c, whole ? c->in.status : 0);
}

static void on_readable(struct bench_conn *c)
{
	ssize_t n = read(c->fd, c->loop->scratch, SCRATCH);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		on_end(c);
		return;
	}
	for (size_t done = 0; done < (size_t)n;)
		done += take(c, c->loop->scratch + done, (size_t)n - done);
	if (c->in.state == BENCH_DONE)
		finish(c, c->in.status);
}

static void watch(struct bench_conn *c, int op, bool write_too)
{
	struct epoll_event ev = { .events = EPOLLIN | (write_too ? EPOLLOUT : 0), .data.ptr = c };

	c->wants_write = write_too;
	if (epoll_ctl(c->loop->epoll, op, c->fd, &ev))
		bench_die("epoll_ctl: %s", strerror(errno));
}

static void flush(struct bench_conn *c)
{
	ssize_t n = send(c->fd, c->out.p + c->sent, c->out.n - c->sent, MSG_NOSIGNAL);

	if (n > 0)
		c->sent += (size_t)n;
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		on_end(c);
		return;
	}
	if (c->wants_write != (c->sent < c->out.n))
		watch(c, EPOLL_CTL_MOD, c->sent < c->out.n);
}

static void open_conn(struct bench_conn *c)
{
	int one = 1;

	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		bench_die("socket: %s", strerror(errno));
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	if (connect(c->fd, (struct sockaddr *)&c->loop->addr, sizeof c->loop->addr) &&
	    errno != EINPROGRESS)
		bench_die("connect: %s", strerror(errno));
	watch(c, EPOLL_CTL_ADD, true);
}

void bench_request(struct bench_conn *c, const char *path, const char *json)
{
	char head[1024];
	int n = snprintf(head, sizeof head, "%s %s HTTP/1.1\r\nHost: %s:%d\r\n",
			 json ? "POST" : "GET", path, inet_ntoa(c->loop->addr.sin_addr),
			 ntohs(c->loop->addr.sin_port));

	c->out.n = c->sent = c->body.n = c->chunk_line.n = c->in.held.n = 0;
	c->in = (struct bench_response){ .held = c->in.held };
	bench_bytes_add(&c->out, head, (size_t)n);
	if (c->loop->token) {
		n = snprintf(head, sizeof head, "Authorization: Bearer %s\r\n", c->loop->token);
		bench_bytes_add(&c->out, head, (size_t)n);
	}
	if (c->resume_after) {
		unsigned long long id = c->resume_after;

		n = c->frame_ids ? snprintf(head, sizeof head, "Last-Event-ID: %llu.%llu\r\n",
					    id / BENCH_FRAMES, id % BENCH_FRAMES)
				 : snprintf(head, sizeof head, "Last-Event-ID: %llu\r\n", id);
		bench_bytes_add(&c->out, head, (size_t)n);
	}
	if (json) {
		n = snprintf(head, sizeof head,
			     "Content-Type: application/json\r\nContent-Length: %zu\r\n",
			     strlen(json));
		bench_bytes_add(&c->out, head, (size_t)n);
	}
	bench_bytes_add(&c->out, "\r\n", 2);
	if (json)
		bench_bytes_add(&c->out, json, strlen(json));
	if (c->fd < 0)
		open_conn(c);
	else
		flush(c);
}

void bench_conn_init(struct bench_conn *c, struct bench_loop *l, const struct bench_calls *calls,
		     void *ctx)
{
	*c = (struct bench_conn){ .loop = l, .calls = calls, .fd = -1, .ctx = ctx };
}

void bench_conn_fini(struct bench_conn *c)
{
	close_conn(c);
	bytes_fini(&c->in.held);
	bytes_fini(&c->out);
	bytes_fini(&c->body);
	bytes_fini(&c->chunk_line);
}

/* --- the loop -------------------------------------------------------------- */

void bench_loop_init(struct bench_loop *l, const char *url, const char *token)
{
	char host[64];
	unsigned port;

	*l = (struct bench_loop){ .token = token, .epoll = epoll_create1(EPOLL_CLOEXEC) };
	if (!url || sscanf(url, "http://%63[0-9.]:%u", host, &port) != 2)
		bench_die("needs --url http://ADDRESS:PORT");
	l->addr.sin_family = AF_INET;
	l->addr.sin_port = htons((uint16_t)port);
	if (inet_pton(AF_INET, host, &l->addr.sin_addr) != 1 || l->epoll < 0)
		bench_die("no address in %s", url);
	l->scratch = bench_alloc(NULL, SCRATCH);
}

void bench_loop_fini(struct bench_loop *l)
{
	close(l->epoll);
	free(l->scratch);
}

static void serve(const struct epoll_event *ev)
{
	struct bench_conn *c = ev->data.ptr;

	if (c->fd >= 0 && (ev->events & EPOLLOUT))
		flush(c);
	if (c->fd >= 0 && (ev->events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		on_readable(c);
}

void bench_loop_run(struct bench_loop *l, int64_t until_us)
{
	struct epoll_event evs[EVENTS];

	l->stop = false;
	while (!l->stop) {
		int64_t left = until_us ? until_us - bench_now_us() : 1000000;
		int n;

		if (left <= 0)
			return;
		n = epoll_wait(l->epoll, evs, EVENTS, (int)((left + 999) / 1000));
		for (int i = 0; i < n; i++)
			serve(&evs[i]);
	}
}

/* --- reading what the server wrote ----------------------------------------- */

bool bench_json_string(const char *json, size_t n, const char *name, char *out, size_t cap)
{
	char key[64];
	int size = snprintf(key, sizeof key, "\"%s\":\"", name);
	const char *at = memmem(json, n, key, (size_t)size), *end;

	if (!at)
		return false;
	at += size;
	end = memchr(at, '"', n - (size_t)(at - json));
	if (!end || (size_t)(end - at) >= cap)
		return false;
	memcpy(out, at, (size_t)(end - at));
	out[end - at] = 0;
	return true;
}

size_t bench_times(const char *p, size_t n, void (*fn)(void *ctx, int64_t sent_us), void *ctx)
{
	const char *end = p + n;
	size_t found = 0;

	while ((p = memmem(p, (size_t)(end - p), "t=", 2))) {
		int64_t us = 0;

		for (p += 2; p < end && *p >= '0' && *p <= '9'; p++)
			us = us * 10 + (*p - '0');
		if (us > 0 && p < end && *p == ' ') {
			fn(ctx, us);
			found++;
		}
	}
	return found;
}
