/* client_body_test.c - how long the body of a request is kept. */
#include "loop/client_test.h"

#include <arpa/inet.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LONG_BODY = 16 << 20 };

struct body_peer {
	pthread_t thread;
	int listener;
	bool body_first; /* reads it before it answers */
	bool body_came;	 /* whole and as it was given */
};

static bool body_is_whole(int fd, char *buf)
{
	for (size_t n = 0; n < LONG_BODY;) {
		ssize_t got = read(fd, buf, 65536);

		if (got <= 0)
			return false;
		for (ssize_t i = 0; i < got; i++, n++)
			if (buf[i] != (char)('a' + n % 23))
				return false;
	}
	return true;
}

/* Answers as soon as it has the head, then reads the body; or the other way round. */
static void *answer_long_body(void *arg)
{
	static const char answer[] = CHUNKED "5\r\nhello\r\n", end[] = "0\r\n\r\n";
	struct body_peer *p = arg;
	int fd = accept(p->listener, NULL, NULL);
	char *buf = malloc(65536);
	size_t head = 0;

	while (head < 4 || memcmp(buf + head - 4, "\r\n\r\n", 4) != 0)
		if (read(fd, buf + head, 1) == 1)
			head++;
		else
			break;
	if (p->body_first)
		p->body_came = body_is_whole(fd, buf);
	if (write(fd, answer, sizeof answer - 1) > 0 && !p->body_first)
		p->body_came = body_is_whole(fd, buf);
	(void)!write(fd, end, sizeof end - 1);
	close(fd);
	free(buf);
	return NULL;
}

static bool body_peer_start(struct body_peer *p, struct fixture *f)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof at;

	p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(p->listener, (struct sockaddr *)&at, n) || listen(p->listener, 1) ||
	    getsockname(p->listener, (struct sockaddr *)&at, &n))
		return false;
	snprintf(f->url, sizeof f->url, "http://127.0.0.1:%u/", ntohs(at.sin_port));
	return pthread_create(&p->thread, NULL, answer_long_body, p) == 0;
}

/* Large pieces are mapped one by one. 0 under a sanitizer, which has a heap of its own. */
static size_t mapped_bytes(void)
{
	return mallinfo2().hblkhd;
}

static uar_err on_first_data(void *ctx, uar_str bytes)
{
	size_t *mapped = ((struct seen *)ctx)->extra;

	*mapped = mapped_bytes();
	return on_data(ctx, bytes);
}

static void send_long_body(struct body_peer *p, size_t *mapped_before, size_t *mapped_then)
{
	static const struct peer_script unused;
	struct fixture f;
	struct seen s = { .extra = mapped_then };
	struct uar_call_options o;
	char *body = malloc(LONG_BODY);

	REQUIRE(body && set_up(&f, &unused, 1) && body_peer_start(p, &f));
	for (size_t i = 0; i < LONG_BODY; i++)
		body[i] = (char)('a' + i % 23);
	o = options(&f, &s);
	o.data = on_first_data;
	o.body = uar_str_n(body, LONG_BODY);
	REQUIRE(call(&f, &o, &s));
	free(body); /* the call has a copy */
	*mapped_before = mapped_bytes();
	uar_loop_run(f.loop);
	pthread_join(p->thread, NULL);
	CHECK_INT(s.err, UAR_OK);
	CHECK_STR(uar_buf_str(&s.data), "hello");
	CHECK(p->body_came);
	close(p->listener);
	forget(&s);
	tear_down(&f);
}

TEST(a_request_is_sent_to_its_end_though_the_answer_has_begun, "")
{
	struct body_peer p = { .body_first = false };
	size_t before, then;

	send_long_body(&p, &before, &then);
}

TEST(a_request_is_freed_when_its_answer_begins, "")
{
	struct body_peer p = { .body_first = true };
	size_t before, then;

	(void)mallopt(M_MMAP_THRESHOLD, 1 << 20);
	send_long_body(&p, &before, &then);
	if (before)
		CHECK(then + LONG_BODY <= before);
}
