/* pull_test.c - bodies that the handler takes piece by piece, over real sockets. */
#include "test.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/sha256.h"
#include "http/limits.h"
#include "http_peer.h"

/* --- a handler that pulls --------------------------------------------------------------------- */

/* /now pulls the next piece inside the callback, /later in the next turn, /gate when
 * the test says so; all answer with length and hash of what came. /first answers after
 * one piece, /no before any. */

enum { PIECE = 1000, BODY_MAX = 32 << 20 };

struct taker {
	struct uar_http_request *r;
	struct uar_buf piece, all;
	struct uar_task task;
	size_t pieces;
};

static struct uar_peer_server server;
static uv_sem_t asked, gone;
static struct taker *gated;

static uar_err on_head(void *ctx, struct uar_http_request *r, size_t *out_max,
		       struct uar_error *error)
{
	(void)ctx, (void)error;
	r->streamed = !uar_str_is(r->path, "/echo");
	*out_max = uar_str_is(r->path, "/small") ? 3000 : BODY_MAX;
	return UAR_OK;
}

static void free_taker(struct taker *t)
{
	uar_unpost(uar_loop_sched(server.loop), &t->task);
	uar_buf_fini(&t->piece);
	uar_buf_fini(&t->all);
	uar_free(t);
}

static void say(struct uar_http_request *r, uar_str text)
{
	struct uar_http_response a = { .status = 200, .content_type = "text/plain", .body = text };

	uar_http_respond(r, &a);
}

static void put_sum(uar_str bytes, char *out, size_t size)
{
	char sha256[UAR_SHA256_TEXT + 1];

	uar_sha256_hex(bytes, sha256);
	snprintf(out, size, "%zu %s", bytes.n, sha256);
}

static void finish(struct taker *t)
{
	struct uar_http_request *r = t->r;
	char text[128];

	put_sum(uar_buf_str(&t->all), text, sizeof text);
	CHECK(!t->all.err);
	free_taker(t);
	say(r, uar_str_c(text));
}

static void pull(void *ctx)
{
	struct taker *t = ctx;

	uar_http_body_pull(t->r, &t->piece);
}

static void pull_task(struct uar_task *task)
{
	pull(UAR_OWNER(task, struct taker, task));
}

static void go_on(struct taker *t)
{
	if (uar_str_is(t->r->path, "/gate")) {
		gated = t;
		uv_sem_post(&asked);
	} else if (uar_str_is(t->r->path, "/later")) {
		uar_post(uar_loop_sched(server.loop), &t->task);
	} else {
		pull(t);
	}
}

static void on_request(void *ctx, struct uar_http_request *r)
{
	struct taker *t;

	(void)ctx;
	if (!r->streamed) {
		say(r, r->body);
		return;
	}
	if (uar_str_is(r->path, "/no")) {
		r->user = NULL;
		uar_http_problem(r, UAR_ESTATE, NULL);
		return;
	}
	t = uar_zalloc(sizeof *t);
	t->r = r;
	t->piece = uar_buf_make(PIECE);
	t->all = uar_buf_make(BODY_MAX);
	t->task.fn = pull_task;
	r->user = t;
	go_on(t);
}

static void on_piece(void *ctx, struct uar_http_request *r, bool last)
{
	struct taker *t = r->user;

	(void)ctx;
	CHECK(last || t->piece.n == PIECE);
	uar_buf_add_str(&t->all, uar_buf_str(&t->piece));
	t->pieces++;
	if (uar_str_is(r->path, "/first")) {
		free_taker(t);
		uar_http_problem(r, UAR_ESTATE, NULL);
	} else if (last) {
		finish(t);
	} else {
		go_on(t);
	}
}

static void on_gone(void *ctx, struct uar_http_request *r)
{
	(void)ctx;
	if (r->user)
		free_taker(r->user);
	uv_sem_post(&gone);
}

/* No deadline of the server ends a test that gets little of the processor. */
enum { FOR_EVER_US = 1000000000 };

static const struct uar_http_options options = {
	.listen = "127.0.0.1:0",
	.head_timeout_us = FOR_EVER_US,
	.body_timeout_us = FOR_EVER_US,
	.stall_timeout_us = FOR_EVER_US,
	.idle_timeout_us = FOR_EVER_US,
	.handler = { .head = on_head, .request = on_request, .gone = on_gone, .piece = on_piece },
};

static bool start(const struct uar_http_options *o)
{
	uv_sem_init(&asked, 0);
	uv_sem_init(&gone, 0);
	return CHECK(uar_peer_start(&server, o));
}

static void stop(void)
{
	uar_peer_stop(&server);
	uv_sem_destroy(&asked);
	uv_sem_destroy(&gone);
}

static struct uar_peer dial(void)
{
	struct uar_peer p = { .fd = -1 };

	CHECK(uar_peer_dial(&p, uar_http_address(server.http)));
	return p;
}

static void hear(struct uar_peer *p, int status, const char *body)
{
	struct uar_peer_reply r = { 0 };

	if (CHECK(uar_peer_reply(p, false, &r))) {
		CHECK_INT(r.status, status);
		if (body)
			CHECK_STR(uar_buf_str(&r.body), body);
	}
	uar_buf_fini(&r.body);
}

static void fill(struct uar_buf *b, size_t n)
{
	while (n--)
		uar_buf_add_char(b, (char)(n * 7 % 251));
}

/* The same body with a length, or in chunks of odd sizes. */
static void put_request(struct uar_buf *out, const char *path, uar_str body, bool chunked)
{
	uar_buf_printf(out, "PUT %s HTTP/1.1\r\nHost: a\r\n", path);
	if (!chunked) {
		uar_buf_printf(out, "Content-Length: %zu\r\n\r\n", body.n);
		uar_buf_add_str(out, body);
		return;
	}
	uar_buf_printf(out, "Transfer-Encoding: chunked\r\n\r\n");
	for (size_t n = 1; body.n; n = n * 3 % 4099) {
		n = n < body.n ? n : body.n;
		uar_buf_printf(out, "%zx\r\n", n);
		uar_buf_add(out, body.p, n);
		uar_buf_add_str(out, UAR_STR("\r\n"));
		body = uar_str_from(body, n);
	}
	uar_buf_add_str(out, UAR_STR("0\r\n\r\n"));
}

/* --- the ordinary ------------------------------------------------------------------------ */

static void take(const char *path, size_t n, bool chunked, bool bytewise)
{
	struct uar_buf body = uar_buf_make(BODY_MAX), text = uar_buf_make(2 * BODY_MAX);
	struct uar_peer p;
	char want[128];

	fill(&body, n);
	put_sum(uar_buf_str(&body), want, sizeof want);
	put_request(&text, path, uar_buf_str(&body), chunked);
	/* What follows at once must not be taken for a part of the body. */
	uar_buf_add_str(&text, UAR_STR("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n"
				       "next"));
	put_request(&text, path, uar_buf_str(&body), chunked);
	p = dial();
	for (size_t i = 0; bytewise && i < text.n; i++)
		CHECK(uar_peer_send(&p, uar_str_n(text.p + i, 1)));
	if (!bytewise)
		CHECK(uar_peer_send(&p, uar_buf_str(&text)));
	hear(&p, 200, want);
	hear(&p, 200, "next");
	hear(&p, 200, want);
	uar_buf_fini(&body);
	uar_buf_fini(&text);
	uar_peer_close(&p);
}

TEST(a_body_is_taken_in_pieces, "EXP-21")
{
	static const size_t sizes[] = { 0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE, 300001 };

	REQUIRE(start(&options));
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
		for (int chunked = 0; chunked < 2; chunked++) {
			take("/now", sizes[i], chunked, false);
			take("/later", sizes[i], chunked, false);
		}
	take("/later", 2500, true, true);
	take("/now", 2500, false, true);
	stop();
}

static void read_in(void *ctx)
{
	struct uar_http_stats stats;

	uar_http_stats(server.http, &stats);
	*(uint64_t *)ctx = stats.bytes_in;
}

/* All that can be sent without waiting for the server. */
static size_t send_freely(struct uar_peer *p, uar_str bytes)
{
	size_t n = 0;
	ssize_t sent = 0;

	while (n < bytes.n && sent >= 0) {
		sent = send(p->fd, bytes.p + n, bytes.n - n, MSG_DONTWAIT | MSG_NOSIGNAL);
		n += sent > 0 ? (size_t)sent : 0;
	}
	CHECK(n == bytes.n || errno == EAGAIN);
	return n;
}

/* From here on it is taken as it comes. */
static void pull_all(void *ctx)
{
	struct taker *t = ctx;

	t->r->path = UAR_STR("/now");
	pull(t);
}

TEST(nothing_is_read_that_was_not_pulled, "EXP-21")
{
	struct uar_buf body = uar_buf_make(BODY_MAX), text = uar_buf_make(2 * BODY_MAX);
	uint64_t in;
	char want[128];
	struct uar_peer p;
	size_t n;

	fill(&body, BODY_MAX);
	put_sum(uar_buf_str(&body), want, sizeof want);
	put_request(&text, "/gate", uar_buf_str(&body), false);
	REQUIRE(start(&options));
	p = dial();
	n = send_freely(&p, uar_buf_str(&text));
	CHECK(n < text.n); /* the kernel holds less than that */
	for (unsigned i = 0; i < 5; i++) {
		uv_sem_wait(&asked);
		uar_peer_call(&server, read_in, &in);
		CHECK_MSG(in <= UAR_LIMIT_HTTP_PIPELINED + 2 * UAR_LIMIT_HTTP_READ + i * PIECE,
			  "%llu bytes", (unsigned long long)in);
		uar_peer_call(&server, pull, gated);
	}
	uv_sem_wait(&asked);
	uar_peer_call(&server, pull_all, gated);
	CHECK(uar_peer_send(&p, uar_str_from(uar_buf_str(&text), n)));
	hear(&p, 200, want);
	uar_buf_fini(&body);
	uar_buf_fini(&text);
	uar_peer_close(&p);
	stop();
}

TEST(who_waits_for_100_hears_it_with_the_first_pull, "EXP-21")
{
	struct uar_peer_reply r = { 0 };
	struct uar_peer p;
	char want[128];

	REQUIRE(start(&options));
	p = dial();
	uar_peer_say(&p, "PUT /gate HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n"
			 "Expect: 100-continue\r\n\r\n");
	uv_sem_wait(&asked);
	uar_peer_call(&server, pull, gated);
	REQUIRE(uar_peer_head(&p, &r));
	CHECK_STR(uar_str_c(r.head), "HTTP/1.1 100 Continue\r\n\r\n");
	uar_peer_say(&p, "hi");
	put_sum(UAR_STR("hi"), want, sizeof want);
	hear(&p, 200, want);
	/* Who is refused does not. */
	uar_peer_say(&p, "PUT /no HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n"
			 "Expect: 100-continue\r\n\r\n");
	hear(&p, 409, NULL);
	CHECK(uar_peer_at_end(&p));
	uar_peer_close(&p);
	stop();
}

/* --- the rest of it ------------------------------------------------------------------------ */

TEST(an_answer_before_the_end_of_the_body_is_the_last, "EXP-21")
{
	static const char smuggled[] = "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n";
	struct uar_buf text = uar_buf_make(1 << 20);
	struct uar_peer p;

	REQUIRE(start(&options));
	for (int i = 0; i < 2; i++) {
		p = dial();
		uar_buf_clear(&text);
		/* A request in the place of the body's rest is no request. */
		uar_buf_printf(&text, "PUT %s HTTP/1.1\r\nHost: a\r\nContent-Length: 9000\r\n\r\n",
			       i ? "/first" : "/no");
		fill(&text, i ? PIECE : 0);
		uar_buf_add_str(&text, uar_str_c(smuggled));
		CHECK(uar_peer_send(&p, uar_buf_str(&text)));
		hear(&p, 409, NULL);
		CHECK(uar_peer_at_end(&p));
		uar_peer_close(&p);
	}
	/* Without a body there is no doubt where the next request begins. */
	p = dial();
	uar_peer_say(&p, "PUT /no HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
	hear(&p, 409, NULL);
	uar_peer_say(&p, smuggled);
	hear(&p, 200, "");
	uar_buf_fini(&text);
	uar_peer_close(&p);
	stop();
}

TEST(a_streamed_body_has_its_limit, "EXP-21")
{
	struct uar_buf body = uar_buf_make(1 << 20), text = uar_buf_make(1 << 20);
	struct uar_peer p;

	REQUIRE(start(&options));
	p = dial();
	uar_peer_say(&p, "PUT /small HTTP/1.1\r\nHost: a\r\nContent-Length: 3001\r\n\r\n");
	hear(&p, 413, NULL); /* before a byte of it came */
	uv_sem_wait(&gone);
	CHECK(uar_peer_at_end(&p));
	uar_peer_close(&p);
	fill(&body, 3001);
	put_request(&text, "/small", uar_buf_str(&body), true);
	p = dial();
	CHECK(uar_peer_send(&p, uar_buf_str(&text)));
	hear(&p, 413, NULL);
	uv_sem_wait(&gone);
	uar_peer_close(&p);
	uar_buf_fini(&body);
	uar_buf_fini(&text);
	take("/small", 3000, true, false);
	take("/small", 3000, false, false);
	stop();
}

TEST(a_streamed_body_that_breaks_off_is_told_once, "EXP-21")
{
	static const struct {
		const char *text;
		int status; /* 0: the client leaves */
	} cases[] = {
		{ "PUT /now HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc", 0 },
		{ "PUT /now HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc", 408 },
		{ "PUT /later HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nab",
		  408 },
		{ "PUT /later HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
		  "4\r\nabcd\r\nx\r\n",
		  400 },
		{ "PUT /now HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
		  "4;x=y\r\nabcd\r\n",
		  400 },
		{ "PUT /now HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n",
		  400 },
	};
	struct uar_http_options o = options;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_peer p;

		o.body_timeout_us = cases[i].status == 408 ? 50000 : FOR_EVER_US;
		REQUIRE(start(&o));
		p = dial();
		uar_peer_say(&p, cases[i].text);
		if (cases[i].status) {
			hear(&p, cases[i].status, NULL);
			CHECK(uar_peer_at_end(&p));
		}
		uar_peer_close(&p);
		uv_sem_wait(&gone);
		CHECK(uv_sem_trywait(&gone) != 0);
		stop();
	}
}

TEST(a_client_that_leaves_between_two_pulls_is_noticed, "EXP-21")
{
	struct uar_peer p;

	REQUIRE(start(&options));
	p = dial();
	uar_peer_say(&p, "PUT /gate HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc");
	uv_sem_wait(&asked);
	uar_peer_close(&p);
	uv_sem_wait(&gone);
	stop();
}

TEST(a_body_under_way_is_refused_when_the_server_goes, "EXP-21")
{
	static const char text[] = "PUT /gate HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc";
	struct uar_peer waits, held;

	REQUIRE(start(&options));
	waits = dial();
	uar_peer_say(&waits, text);
	uv_sem_wait(&asked);
	uar_peer_call(&server, pull, gated); /* this one waits for bytes, */
	held = dial();
	uar_peer_say(&held, text);
	uv_sem_wait(&asked); /* that one for the handler */
	uar_peer_drain(&server);
	hear(&waits, 503, NULL);
	uv_sem_wait(&gone);
	uar_peer_call(&server, pull, gated);
	hear(&held, 503, NULL);
	uv_sem_wait(&gone);
	uar_peer_close(&waits);
	uar_peer_close(&held);
	uv_sem_wait(&server.drained);
	stop();
}
