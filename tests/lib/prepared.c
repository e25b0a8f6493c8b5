/* prepared.c - see prepared.h. */
#include "prepared.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "test.h"

static void read_request(int fd, char *out, size_t size)
{
	size_t n = 0, need = size;
	char *end, *length;

	while (n < need && n < size - 1) {
		ssize_t got = recv(fd, out + n, size - 1 - n, 0);

		if (got <= 0)
			break;
		n += (size_t)got;
		out[n] = '\0';
		end = strstr(out, "\r\n\r\n");
		length = strstr(out, "Content-Length: ");
		if (end)
			need = (size_t)(end - out) + 4 +
			       (length ? strtoul(length + 16, NULL, 10) : 0);
	}
	out[n] = '\0';
}

static void send_answer(int fd, const struct uar_prepared_answer *p)
{
	size_t n = p->answer ? strlen(p->answer) : 0, step = p->piece ? p->piece : n;

	for (size_t at = 0; at < n; at += step) {
		size_t part = n - at < step ? n - at : step;

		if (send(fd, p->answer + at, part, MSG_NOSIGNAL) < 0)
			return;
	}
}

static void *serve(void *arg)
{
	struct uar_prepared *s = arg;
	char byte;

	for (; s->served < s->count; s->served++) {
		int fd = accept(s->fd, NULL, NULL);

		if (fd < 0)
			break;
		/* Whoever comes after the last is refused; a client that has its answer may
		 * come at once, and would wait for ever in a queue that nobody serves. */
		if (s->served + 1 == s->count)
			shutdown(s->fd, SHUT_RDWR);
		read_request(fd, s->asked[s->served], sizeof s->asked[0]);
		send_answer(fd, &s->answers[s->served]);
		while (s->answers[s->served].piece == UAR_PREPARED_HOLD &&
		       recv(fd, &byte, 1, 0) > 0)
			;
		close(fd);
	}
	shutdown(s->fd, SHUT_RDWR);
	return NULL;
}

static void listen_unix(struct uar_prepared *s)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	snprintf(a.sun_path, sizeof a.sun_path, "%s/s", uar_test_dir());
	snprintf(s->url, sizeof s->url, "unix:%s", a.sun_path);
	s->fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (s->fd < 0 || bind(s->fd, (struct sockaddr *)&a, sizeof a) || listen(s->fd, 8))
		abort();
}

static void listen_tcp(struct uar_prepared *s)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t n = sizeof a;

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	s->fd = socket(AF_INET, SOCK_STREAM, 0);
	if (s->fd < 0 || bind(s->fd, (struct sockaddr *)&a, sizeof a) || listen(s->fd, 8) ||
	    getsockname(s->fd, (struct sockaddr *)&a, &n))
		abort();
	snprintf(s->url, sizeof s->url, "http://127.0.0.1:%u", (unsigned)ntohs(a.sin_port));
}

struct uar_prepared *uar_prepared_start(const struct uar_prepared_answer *answers, size_t count,
					bool tcp)
{
	struct uar_prepared *s = calloc(1, sizeof *s);

	if (!s || count > UAR_PREPARED_MAX)
		abort();
	memcpy(s->answers, answers, count * sizeof *answers);
	s->count = count;
	if (tcp)
		listen_tcp(s);
	else
		listen_unix(s);
	if (pthread_create(&s->thread, NULL, serve, s))
		abort();
	return s;
}

bool uar_prepared_finish(struct uar_prepared *s)
{
	if (!s->joined)
		pthread_join(s->thread, NULL);
	s->joined = true;
	return s->served == s->count;
}

void uar_prepared_destroy(struct uar_prepared *s)
{
	if (!s)
		return;
	shutdown(s->fd, SHUT_RDWR); /* wakes the thread if it still waits */
	uar_prepared_finish(s);
	close(s->fd);
	free(s);
}
