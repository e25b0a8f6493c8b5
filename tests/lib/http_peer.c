/* http_peer.c - the server thread and the blocking client. */
#include "http_peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* --- the server ------------------------------------------------------------------ */

static void run(void *ctx)
{
	uar_loop_run(ctx);
}

bool uar_peer_start(struct uar_peer_server *s, const struct uar_http_options *o)
{
	struct uar_error error = { 0 };

	*s = (struct uar_peer_server){ 0 };
	leap_init(&s->time);
	uv_sem_init(&s->drained, 0);
	if (uar_loop_create(&s->time.clock, &s->loop) ||
	    uar_http_create(s->loop, o, &s->http, &error)) {
		printf("  %s\n", error.text);
		return false;
	}
	return uv_thread_create(&s->thread, run, s->loop) == 0;
}

struct call {
	struct uar_task task;
	uv_sem_t done;
	void (*fn)(void *ctx);
	void *ctx;
};

static void on_call(struct uar_task *t)
{
	struct call *c = UAR_OWNER(t, struct call, task);

	c->fn(c->ctx);
	uv_sem_post(&c->done);
}

void uar_peer_call(struct uar_peer_server *s, void (*fn)(void *ctx), void *ctx)
{
	struct call c = { .task.fn = on_call, .fn = fn, .ctx = ctx };

	uv_sem_init(&c.done, 0);
	uar_post_remote(uar_loop_sched(s->loop), &c.task);
	uv_sem_wait(&c.done);
	uv_sem_destroy(&c.done);
}

static void on_drained(void *ctx)
{
	struct uar_peer_server *s = ctx;

	uv_sem_post(&s->drained);
}

static void drain(void *ctx)
{
	struct uar_peer_server *s = ctx;

	uar_http_drain(s->http, on_drained, s);
}

void uar_peer_drain(struct uar_peer_server *s)
{
	uar_peer_call(s, drain, s);
}

static void stop(void *ctx)
{
	struct uar_peer_server *s = ctx;

	uar_http_destroy(s->http);
	uar_loop_stop(s->loop);
}

void uar_peer_stop(struct uar_peer_server *s)
{
	uar_peer_call(s, stop, s);
	uv_thread_join(&s->thread);
	uar_loop_destroy(s->loop);
	uv_sem_destroy(&s->drained);
}

/* --- the client ------------------------------------------------------------------ */

static int dial_unix(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
	return fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a) == 0 ? fd : -1;
}

bool uar_peer_dial(struct uar_peer *p, const char *address)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	uar_str port;
	uint64_t n;

	p->in = uar_buf_make(1 << 24);
	if (strncmp(address, "unix:", 5) == 0) {
		p->fd = dial_unix(address + 5);
		return p->fd >= 0;
	}
	uar_str_cut(uar_str_c(address), ':', &port);
	if (uar_str_u64(port, &n))
		return false;
	a.sin_port = htons((uint16_t)n);
	p->fd = socket(AF_INET, SOCK_STREAM, 0);
	return p->fd >= 0 && connect(p->fd, (struct sockaddr *)&a, sizeof a) == 0;
}

void uar_peer_close(struct uar_peer *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
	uar_buf_fini(&p->in);
}

bool uar_peer_send(struct uar_peer *p, uar_str bytes)
{
	while (bytes.n > 0) {
		ssize_t n = send(p->fd, bytes.p, bytes.n, MSG_NOSIGNAL);

		if (n <= 0)
			return false;
		bytes = uar_str_from(bytes, (size_t)n);
	}
	return true;
}

bool uar_peer_say(struct uar_peer *p, const char *text)
{
	return uar_peer_send(p, uar_str_c(text));
}

/* More bytes; false when there are no more. */
static bool more(struct uar_peer *p)
{
	char bytes[16384];
	ssize_t n = recv(p->fd, bytes, sizeof bytes, 0);

	if (n <= 0)
		return false;
	uar_buf_add(&p->in, bytes, (size_t)n);
	return !p->in.err;
}

void uar_peer_read_all(struct uar_peer *p)
{
	while (more(p))
		;
}

bool uar_peer_at_end(struct uar_peer *p)
{
	return p->in.n == 0 && !more(p);
}

bool uar_peer_head(struct uar_peer *p, struct uar_peer_reply *out)
{
	const char *end;
	size_t n;

	while (!p->in.n || !(end = strstr(p->in.p, "\r\n\r\n")))
		if (!more(p))
			return false;
	n = (size_t)(end - p->in.p) + 4;
	snprintf(out->head, sizeof out->head, "%.*s", (int)n, p->in.p);
	uar_buf_consume(&p->in, n);
	out->status = (int)strtol(out->head + 9, NULL, 10);
	out->body = uar_buf_make(1 << 24);
	return strncmp(out->head, "HTTP/1.1 ", 9) == 0;
}

static bool take(struct uar_peer *p, size_t n, struct uar_buf *out)
{
	while (p->in.n < n)
		if (!more(p))
			return false;
	if (out)
		uar_buf_add(out, p->in.p, n);
	uar_buf_consume(&p->in, n);
	return true;
}

bool uar_peer_chunk(struct uar_peer *p, struct uar_buf *out)
{
	char *end;
	size_t n;

	while (!p->in.n || !(end = strstr(p->in.p, "\r\n")))
		if (!more(p))
			return false;
	n = strtoul(p->in.p, NULL, 16);
	uar_buf_consume(&p->in, (size_t)(end - p->in.p) + 2);
	return take(p, n, out) && take(p, 2, NULL) && n > 0;
}

bool uar_peer_reply(struct uar_peer *p, bool no_body, struct uar_peer_reply *out)
{
	const char *length;

	if (!uar_peer_head(p, out))
		return false;
	if (no_body || out->status < 200 || out->status == 204)
		return true;
	length = strstr(out->head, "Content-Length: ");
	if (length)
		return take(p, strtoul(length + 16, NULL, 10), &out->body);
	while (uar_peer_chunk(p, &out->body))
		;
	return true;
}
