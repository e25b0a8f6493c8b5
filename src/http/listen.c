/* listen.c - where the server listens and who may come in. */
#include "http/http_int.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "http/limits.h"
#include "loop/loop.h"

enum {
	ACCEPTS_PER_TURN = 64,
	KEEPALIVE_S = 60,
	KERNEL_GRACE_MS = 5000,
	PAUSE_US = 100000, /* without a descriptor to take anybody in */
};

union any_address {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_un un;
};

/* --- names ----------------------------------------------------------------------- */

/* The size of the address, 0: nothing that can be bound. */
static socklen_t read_address(uar_str text, union any_address *out)
{
	struct uar_address a;

	if (!uar_address_read_bound(text, &a))
		return 0;
	if (a.kind == UAR_ADDRESS_UNIX) {
		out->un = (struct sockaddr_un){ .sun_family = AF_UNIX };
		memcpy(out->un.sun_path, a.host.p, a.host.n);
		return sizeof out->un;
	}
	if (a.kind == UAR_ADDRESS_IPV6) {
		out->in6 = (struct sockaddr_in6){ .sin6_family = AF_INET6,
						  .sin6_port = htons(a.port) };
		memcpy(&out->in6.sin6_addr, a.ip, sizeof a.ip);
		return sizeof out->in6;
	}
	out->in = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(a.port) };
	memcpy(&out->in.sin_addr, a.ip + 12, 4);
	return sizeof out->in;
}

/* The host alone goes to `host`, "host:port" to `full`. */
static void format_ip(const union any_address *a, char host[64], char full[80])
{
	if (a->sa.sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &a->in6.sin6_addr, host, 64);
		snprintf(full, 80, "[%.63s]:%u", host, ntohs(a->in6.sin6_port));
	} else if (a->sa.sa_family == AF_INET) {
		inet_ntop(AF_INET, &a->in.sin_addr, host, 64);
		snprintf(full, 80, "%.63s:%u", host, ntohs(a->in.sin_port));
	} else {
		snprintf(host, 64, "unix");
		snprintf(full, 80, "unix");
	}
}

/* --- who may come in ---------------------------------------------------------------- */

void uar_http_address_leave(struct uar_http *h, struct address *a)
{
	if (!a || --a->open > 0)
		return;
	uar_map_remove(&h->addresses, uar_str_c(a->text));
	uar_free(a);
}

/* UAR_ERATELIMIT when that address has its share already. */
static uar_err address_enter(struct uar_http *h, const char *host, struct address **out)
{
	struct address *a = uar_map_get(&h->addresses, uar_str_c(host));
	uar_err e;

	if (a && a->open >= h->max_per_address)
		return UAR_ERATELIMIT;
	if (!a) {
		a = uar_zalloc(sizeof *a);
		if (!a)
			return UAR_ENOMEM;
		snprintf(a->text, sizeof a->text, "%s", host);
		e = uar_map_put(&h->addresses, uar_str_c(a->text), a);
		if (e) {
			uar_free(a);
			return e;
		}
	}
	a->open++;
	*out = a;
	return UAR_OK;
}

static void refuse_socket(struct uar_http *h, int fd, uar_err code, const char *peer)
{
	struct uar_http_stream *c;

	if (h->stats.open >= h->max_connections + UAR_LIMIT_HTTP_OVERFLOW) {
		h->stats.refused++;
		close(fd);
		return;
	}
	c = uar_http_conn_open(h, fd, NULL, peer);
	if (c)
		uar_http_refuse(c, code, NULL);
}

static void enter(struct uar_http *h, int fd, const union any_address *from)
{
	struct address *a = NULL;
	char host[64], peer[80];
	uar_err e = UAR_OK;

	format_ip(from, host, peer);
	h->stats.accepted++;
	if (h->stats.open >= h->max_connections)
		e = UAR_EBUSY;
	else if (h->max_per_address && from->sa.sa_family != AF_UNIX)
		e = address_enter(h, host, &a);
	if (e)
		refuse_socket(h, fd, e, peer);
	else
		uar_http_conn_open(h, fd, a, peer);
}

/* No descriptor is left: the poll would wake us for ever. Give up the spare one, take the
 * caller in with it and cut him off. False: another thread was faster, the spare one is gone. */
static bool shed(struct uar_http *h)
{
	int fd;

	if (h->listener.spare_fd >= 0)
		close(h->listener.spare_fd);
	fd = accept4(h->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0) {
		close(fd);
		h->stats.refused++;
	}
	h->listener.spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return h->listener.spare_fd >= 0;
}

/* Callers wait in the kernel for a while. Without memory for the timer they are not let wait. */
static void pause_listening(struct uar_http *h)
{
	if (!uar_timer_set(h->sched, &h->listener.pause, PAUSE_US))
		uv_poll_stop(&h->listener.poll);
}

static void on_connection(uv_poll_t *poll, int status, int events)
{
	struct uar_http *h = poll->data;

	(void)status, (void)events;
	for (int i = 0; i < ACCEPTS_PER_TURN && h->listener.fd >= 0; i++) {
		union any_address from = { 0 };
		socklen_t n = sizeof from;
		int fd = accept4(h->listener.fd, &from.sa, &n, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0) {
			enter(h, fd, &from);
		} else if (errno == EMFILE || errno == ENFILE) {
			if (shed(h))
				continue;
			pause_listening(h);
			break;
		} else if (errno != EINTR && errno != ECONNABORTED) {
			break;
		}
	}
}

static void on_pause_over(struct uar_timer *t)
{
	struct uar_http *h = UAR_OWNER(t, struct uar_http, listener.pause);

	uv_poll_start(&h->listener.poll, UV_READABLE, on_connection);
}

/* --- the listening socket ------------------------------------------------------------- */

/* Inherited by every accepted socket, so that accepting needs no further calls.
 * A peer that vanished is noticed by the kernel: unacknowledged data, or silence. */
static void set_tcp_options(struct uar_http *h, int fd)
{
	int on = 1, idle = KEEPALIVE_S;
	unsigned stall_ms = (unsigned)(h->due[DUE_STALL].timeout_us / 1000) + KERNEL_GRACE_MS;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &stall_ms, sizeof stall_ms);
}

/* A socket file that nobody listens on is a leftover of a killed process. */
static void remove_leftover(const union any_address *a)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct stat st;

	if (fd < 0)
		return;
	if (lstat(a->un.sun_path, &st) == 0 && S_ISSOCK(st.st_mode) &&
	    connect(fd, &a->sa, sizeof a->un) != 0 && errno == ECONNREFUSED)
		unlink(a->un.sun_path);
	close(fd);
}

/* The mode is set before listen: nobody can connect in between. */
static bool bind_socket(struct uar_http *h, int fd, const union any_address *a, socklen_t n)
{
	if (a->sa.sa_family != AF_UNIX) {
		set_tcp_options(h, fd);
		return bind(fd, &a->sa, n) == 0 && listen(fd, UAR_LIMIT_HTTP_BACKLOG) == 0;
	}
	remove_leftover(a);
	if (bind(fd, &a->sa, n) != 0)
		return false;
	snprintf(h->listener.unix_path, sizeof h->listener.unix_path, "%s", a->un.sun_path);
	return chmod(a->un.sun_path, 0600) == 0 && listen(fd, UAR_LIMIT_HTTP_BACKLOG) == 0;
}

/* A wildcard becomes loopback. [::] mostly takes IPv4 as well, and then 127.0.0.1 it is: ::1
 * may be missing on a machine without IPv6. */
static void make_local(int fd, union any_address *a)
{
	struct in_addr loopback4 = { htonl(INADDR_LOOPBACK) };
	int only6 = 0;
	socklen_t n = sizeof only6;

	if (a->sa.sa_family == AF_INET && a->in.sin_addr.s_addr == htonl(INADDR_ANY))
		a->in.sin_addr = loopback4;
	if (a->sa.sa_family != AF_INET6 || !IN6_IS_ADDR_UNSPECIFIED(&a->in6.sin6_addr))
		return;
	if (getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only6, &n) || only6)
		a->in6.sin6_addr = in6addr_loopback;
	else
		a->in = (struct sockaddr_in){ .sin_family = AF_INET,
					      .sin_port = a->in6.sin6_port,
					      .sin_addr = loopback4 };
}

static void note_address(struct uar_http *h)
{
	char *address = h->listener.address, *local = h->listener.local;
	union any_address a = { 0 };
	socklen_t n = sizeof a;
	char host[64], full[80];

	if (h->listener.unix_path[0]) {
		snprintf(address, sizeof h->listener.address, "unix:%s", h->listener.unix_path);
		snprintf(local, sizeof h->listener.local, "unix:%s", h->listener.unix_path);
		return;
	}
	getsockname(h->listener.fd, &a.sa, &n);
	format_ip(&a, host, full);
	snprintf(address, sizeof h->listener.address, "%s", full);
	make_local(h->listener.fd, &a);
	format_ip(&a, host, full);
	snprintf(local, sizeof h->listener.local, "%s", full);
}

uar_err uar_http_listen(struct uar_http *h, const char *where, struct uar_error *error)
{
	union any_address a = { 0 };
	socklen_t n = read_address(uar_str_c(where), &a);

	if (!n)
		return uar_error_set(error, UAR_ECONFIG,
				     "cannot listen on \"%s\", expected IPV4:PORT, localhost:PORT, "
				     "[IPV6]:PORT or unix:PATH",
				     where ? where : "");
	h->listener.spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	h->listener.fd = socket(a.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (h->listener.fd < 0 || !bind_socket(h, h->listener.fd, &a, n) ||
	    uv_poll_init(uar_loop_uv(h->loop), &h->listener.poll, h->listener.fd))
		return uar_error_set(error, UAR_ENET, "cannot listen on %s: %s", where,
				     strerror(errno));
	h->listener.polled = true;
	h->listener.poll.data = h;
	h->listener.pause.fn = on_pause_over;
	h->handles++;
	uv_poll_start(&h->listener.poll, UV_READABLE, on_connection);
	note_address(h);
	return UAR_OK;
}

static void on_listener_closed(uv_handle_t *handle)
{
	uar_http_released(handle->data);
}

void uar_http_unlisten(struct uar_http *h)
{
	if (h->listener.polled) {
		h->listener.polled = false;
		uar_timer_stop(h->sched, &h->listener.pause);
		uv_close((uv_handle_t *)&h->listener.poll, on_listener_closed);
	}
	if (h->listener.fd >= 0)
		close(h->listener.fd);
	if (h->listener.spare_fd >= 0)
		close(h->listener.spare_fd);
	h->listener.fd = h->listener.spare_fd = -1;
	if (h->listener.unix_path[0])
		unlink(h->listener.unix_path);
	h->listener.unix_path[0] = 0;
}
