/* server_test.c - requests and answers over real sockets. */
#include "test.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "http/limits.h"
#include "http_peer.h"

/* --- a handler with a few habits -------------------------------------------------------------- */

/* /echo answers at once, /later in the next turn, /hold never (it is counted when
 * its client goes), /big with a megabyte, /no is refused at its head. */

static struct uar_peer_server server;
static uv_sem_t held, gone;
static struct uar_http_request *later[64];
static size_t later_count;
static struct uar_task later_task;
static char big[1 << 20];
static struct {
	uint64_t turn;
	size_t n, most, all; /* requests for /crowd: in this turn, in any turn, at all */
} crowd;

static uar_err on_head(void *ctx, struct uar_http_request *r, size_t *out_max,
		       struct uar_error *error)
{
	(void)ctx;
	if (uar_str_is(r->path, "/no"))
		return uar_error_set(error, UAR_EFORBIDDEN, "not \"you\"\n");
	*out_max = uar_str_is(r->path, "/none") ? 0 : 100000;
	return UAR_OK;
}

static void echo(struct uar_http_request *r)
{
	struct uar_http_response a = { .status = 200,
				       .content_type = "text/plain",
				       .body = r->body };

	uar_http_respond(r, &a);
}

static void answer_later(struct uar_task *t)
{
	struct uar_http_request *now[ARRAY_LEN(later)];
	size_t n = later_count;

	(void)t;
	memcpy(now, later, sizeof now);
	later_count = 0;
	for (size_t i = 0; i < n; i++)
		echo(now[i]);
}

static void count_crowd(void)
{
	uint64_t turn = uar_loop_turn(server.loop);

	crowd.n = crowd.turn == turn ? crowd.n + 1 : 1;
	crowd.turn = turn;
	crowd.most = crowd.n > crowd.most ? crowd.n : crowd.most;
	crowd.all++;
}

static void on_request(void *ctx, struct uar_http_request *r)
{
	static const struct uar_http_response none = { .status = 204 };
	static const struct uar_http_header split = { { "X", 1 }, { "a\r\nY: b", 7 } },
					    endless = { { "X", 1 },
							{ big, UAR_LIMIT_HTTP_ANSWER_HEAD } };
	struct uar_http_response a = { .status = 200, .content_type = "x/y" };

	(void)ctx;
	if (uar_str_is(r->path, "/hold")) {
		uv_sem_post(&held);
	} else if (uar_str_is(r->path, "/later")) {
		later[later_count++] = r;
		uar_post(uar_loop_sched(server.loop), &later_task);
	} else if (uar_str_is(r->path, "/big")) {
		a.body = uar_str_n(big, sizeof big);
		uar_http_respond(r, &a);
	} else if (uar_str_is(r->path, "/204")) {
		uar_http_respond(r, &none);
	} else if (uar_str_is(r->path, "/split") || uar_str_is(r->path, "/endless")) {
		a.headers = uar_str_is(r->path, "/split") ? &split : &endless;
		a.header_count = 1;
		uar_http_respond(r, &a);
	} else if (uar_str_is(r->path, "/missing")) {
		uar_http_problem(r, UAR_ENOTFOUND, NULL);
	} else if (uar_str_is(r->path, "/login")) {
		uar_http_problem(r, UAR_EUNAUTHORIZED, NULL);
	} else {
		if (uar_str_is(r->path, "/crowd"))
			count_crowd();
		echo(r);
	}
}

static void on_gone(void *ctx, struct uar_http_request *r)
{
	(void)ctx;
	for (size_t i = 0; i < later_count; i++)
		if (later[i] == r)
			later[i] = later[--later_count];
	uv_sem_post(&gone);
}

static const struct uar_http_options options = {
	.listen = "127.0.0.1:0",
	.handler = { .head = on_head, .request = on_request, .gone = on_gone },
};

static bool start(const struct uar_http_options *o)
{
	uv_sem_init(&held, 0);
	uv_sem_init(&gone, 0);
	later_count = 0;
	later_task = (struct uar_task){ .fn = answer_later };
	return CHECK(uar_peer_start(&server, o));
}

static void stop(void)
{
	uar_peer_stop(&server);
	uv_sem_destroy(&held);
	uv_sem_destroy(&gone);
}

static void read_stats(void *ctx)
{
	uar_http_stats(server.http, ctx);
}

/* Says `text`, expects that status; the body is checked when it is given. */
static void ask(struct uar_peer *p, const char *text, int status, const char *body)
{
	struct uar_peer_reply r = { 0 };

	CHECK(uar_peer_say(p, text));
	if (CHECK_MSG(uar_peer_reply(p, false, &r), "no answer to %.40s", text)) {
		CHECK_INT(r.status, status);
		if (body)
			CHECK_STR(uar_buf_str(&r.body), body);
	}
	uar_buf_fini(&r.body);
}

static struct uar_peer dial(void)
{
	struct uar_peer p = { .fd = -1 };

	CHECK(uar_peer_dial(&p, uar_http_address(server.http)));
	return p;
}

/* --- the ordinary --------------------------------------------------------------------- */

TEST(keeps_a_connection_alive, "")
{
	struct uar_http_stats stats;
	struct uar_peer p;

	REQUIRE(start(&options));
	p = dial();
	for (int i = 0; i < 50; i++) {
		ask(&p, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", 200,
		    "hello");
		ask(&p, "GET /later HTTP/1.1\r\nHost: a\r\n\r\n", 200, "");
		ask(&p, "GET /204 HTTP/1.1\r\nHost: a\r\n\r\n", 204, NULL);
	}
	uar_peer_call(&server, read_stats, &stats);
	CHECK_INT(stats.accepted, 1);
	CHECK_INT(stats.requests, 150);
	CHECK_INT(stats.open, 1);
	uar_peer_close(&p);
	stop();
}

static void pipeline(const char *path)
{
	struct uar_buf all = uar_buf_make(1 << 20);
	struct uar_peer p = dial();
	char want[16];

	for (int i = 100; i < 300; i++)
		uar_buf_printf(&all, "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n%d",
			       path, i);
	CHECK(uar_peer_send(&p, uar_buf_str(&all)));
	for (int i = 100; i < 300; i++) {
		snprintf(want, sizeof want, "%d", i);
		ask(&p, "", 200, want);
	}
	uar_buf_fini(&all);
	uar_peer_close(&p);
}

TEST(answers_pipelined_requests_in_order, "")
{
	REQUIRE(start(&options));
	pipeline("/echo");
	pipeline("/later");
	stop();
}

TEST(pipelined_requests_beyond_what_is_kept_are_held_back, "")
{
	struct uar_buf all = uar_buf_make(1 << 22);
	struct uar_peer p;

	REQUIRE(start(&options));
	p = dial();
	/* Each is larger than what is read early; nothing may be lost or reordered. */
	for (int i = 0; i < 4; i++) {
		uar_buf_printf(&all,
			       "POST /later HTTP/1.1\r\nHost: a\r\nContent-Length: 90000\r\n\r\n");
		for (int k = 0; k < 90000; k++)
			uar_buf_add_char(&all, (char)('a' + i));
	}
	CHECK(uar_peer_send(&p, uar_buf_str(&all)));
	for (int i = 0; i < 4; i++) {
		struct uar_peer_reply r = { 0 };

		REQUIRE(uar_peer_reply(&p, false, &r));
		CHECK(r.body.n == 90000 && r.body.p[0] == 'a' + i && r.body.p[89999] == 'a' + i);
		uar_buf_fini(&r.body);
	}
	uar_buf_fini(&all);
	uar_peer_close(&p);
	stop();
}

enum { CROWD = UAR_LIMIT_HTTP_TURN * 3 };

static void crowd_comes(void *ctx)
{
	struct uar_peer *p = ctx;

	for (int i = 0; i < CROWD; i++)
		CHECK(uar_peer_say(&p[i], i % 2 ? "GET /crowd HTTP/1.1\r\nHost: a\r\n\r\n"
						: "POST /crowd HTTP/1.1\r\nHost: a\r\n"
						  "Content-Length: 2\r\n\r\nhi"));
}

TEST(a_crowd_that_comes_at_once_is_let_in_by_and_by, "")
{
	struct uar_peer p[CROWD];

	REQUIRE(start(&options));
	memset(&crowd, 0, sizeof crowd);
	for (int i = 0; i < CROWD; i++) {
		p[i] = dial();
		ask(&p[i], "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n", 200, "");
	}
	uar_peer_call(&server, crowd_comes, p); /* on its thread: it finds all of them */
	for (int i = 0; i < CROWD; i++) {
		ask(&p[i], "", 200, i % 2 ? "" : "hi");
		uar_peer_close(&p[i]);
	}
	stop();
	CHECK_INT((int64_t)crowd.all, CROWD);
	CHECK_INT((int64_t)crowd.most, UAR_LIMIT_HTTP_TURN);
}

TEST(reads_chunked_bodies_however_they_arrive, "")
{
	static const char text[] =
		"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
		"\r\n4\r\nwiki\r\n5\r\npedia\r\n0\r\n\r\n";
	struct uar_peer p;

	REQUIRE(start(&options));
	p = dial();
	ask(&p, text, 200, "wikipedia");
	for (size_t i = 0; i < sizeof text - 2; i++)
		CHECK(uar_peer_send(&p, uar_str_n(text + i, 1)));
	ask(&p, text + sizeof text - 2, 200, "wikipedia");
	uar_peer_close(&p);
	stop();
}

TEST(sends_100_before_a_body_that_waits_for_it, "")
{
	struct uar_peer_reply r = { 0 };
	struct uar_peer p;

	REQUIRE(start(&options));
	p = dial();
	uar_peer_say(&p, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n"
			 "Expect: 100-continue\r\n\r\n");
	REQUIRE(uar_peer_head(&p, &r));
	CHECK_STR(uar_str_c(r.head), "HTTP/1.1 100 Continue\r\n\r\n");
	ask(&p, "hi", 200, "hi");
	/* A refusal comes instead of it, and the body is never read. */
	ask(&p, "POST /no HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n",
	    403, NULL);
	CHECK(uar_peer_at_end(&p));
	uar_peer_close(&p);
	stop();
}

TEST(head_has_the_length_and_no_body, "")
{
	struct uar_peer_reply r = { 0 };
	struct uar_peer p;

	REQUIRE(start(&options));
	p = dial();
	uar_peer_say(
		&p,
		"HEAD /big HTTP/1.1\r\nHost: a\r\n\r\nHEAD /missing HTTP/1.1\r\nHost: a\r\n\r\n");
	REQUIRE(uar_peer_reply(&p, true, &r));
	CHECK(r.status == 200 && strstr(r.head, "Content-Length: 1048576\r\n"));
	REQUIRE(uar_peer_reply(&p, true, &r));
	CHECK_INT(r.status, 404);
	ask(&p, "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n", 200, "");
	uar_peer_close(&p);
	stop();
}

TEST(large_answers_arrive_whole_and_in_order, "")
{
	struct uar_peer_reply r = { 0 };
	struct uar_peer p;

	for (size_t i = 0; i < sizeof big; i++)
		big[i] = (char)('a' + i % 23);
	REQUIRE(start(&options));
	p = dial();
	uar_peer_say(&p, "GET /big HTTP/1.1\r\nHost: a\r\n\r\nGET /big HTTP/1.1\r\nHost: a\r\n\r\n"
			 "GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
	for (int i = 0; i < 2; i++) {
		REQUIRE(uar_peer_reply(&p, false, &r));
		CHECK(r.body.n == sizeof big && memcmp(r.body.p, big, sizeof big) == 0);
		uar_buf_fini(&r.body);
	}
	ask(&p, "", 200, "");
	CHECK(uar_peer_at_end(&p));
	uar_peer_close(&p);
	stop();
}

/* --- refusals -------------------------------------------------------------------------- */

TEST(problems_have_status_code_and_detail, "")
{
	struct uar_peer_reply r = { 0 };
	struct uar_peer p;

	REQUIRE(start(&options));
	p = dial();
	ask(&p, "GET /no HTTP/1.1\r\nHost: a\r\n\r\n", 403,
	    "{\"type\":\"about:blank\",\"title\":\"Forbidden\",\"status\":403,\"code\":"
	    "\"FORBIDDEN\","
	    "\"detail\":\"not \\\"you\\\"\\u000a\"}");
	ask(&p, "GET /missing HTTP/1.1\r\nHost: a\r\n\r\n", 404, NULL);
	ask(&p, "POST /none HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", 200, "");
	uar_peer_say(&p, "GET /login HTTP/1.1\r\nHost: a\r\n\r\n");
	REQUIRE(uar_peer_reply(&p, false, &r));
	CHECK(r.status == 401 && strstr(r.head, "WWW-Authenticate: Bearer\r\n"));
	CHECK(strstr(r.head, "X-Content-Type-Options: nosniff\r\n") &&
	      strstr(r.head, "\r\nDate: "));
	uar_buf_fini(&r.body);
	ask(&p, "POST /none HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx", 413, NULL);
	CHECK(uar_peer_at_end(&p));
	uar_peer_close(&p);
	stop();
}

TEST(a_header_value_cannot_split_an_answer, "")
{
	static const char *const texts[] = { "GET /split HTTP/1.1\r\nHost: a\r\n\r\n",
					     "GET /endless HTTP/1.1\r\nHost: a\r\n\r\n" };

	REQUIRE(start(&options));
	memset(big, 'x', sizeof big);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct uar_peer p = dial();

		ask(&p, texts[i], 500, "");
		CHECK(uar_peer_at_end(&p));
		uar_peer_close(&p);
	}
	stop();
}

TEST(the_handler_hears_of_requests_that_end_early, "")
{
	static const char *const texts[] = {
		"GET /hold HTTP/1.1\r\nHost: a\r\n\r\n",			   /* answer due */
		"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhell", /* body cut */
		"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx",
		"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100001\r\n\r\n",
	};
	struct uar_http_stats stats;

	REQUIRE(start(&options));
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct uar_peer p = dial();

		uar_peer_say(&p, texts[i]);
		if (i == 0)
			uv_sem_wait(&held);
		uar_peer_close(&p);
		uv_sem_wait(&gone);
	}
	uar_peer_call(&server, read_stats, &stats);
	CHECK_INT(stats.requests, ARRAY_LEN(texts));
	stop();
}

TEST(a_client_that_resets_is_forgotten, "")
{
	struct linger hard = { 1, 0 };
	struct uar_peer p;

	REQUIRE(start(&options));
	p = dial();
	uar_peer_say(&p, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
	uv_sem_wait(&held);
	setsockopt(p.fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
	uar_peer_close(&p);
	uv_sem_wait(&gone);
	stop();
}

TEST(a_client_that_only_stops_sending_gets_its_answers, "")
{
	struct uar_peer p;

	REQUIRE(start(&options));
	p = dial();
	uar_peer_say(&p,
		     "GET /big HTTP/1.1\r\nHost: a\r\n\r\nGET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
	shutdown(p.fd, SHUT_WR);
	ask(&p, "", 200, NULL);
	ask(&p, "", 200, "");
	CHECK(uar_peer_at_end(&p));
	uar_peer_close(&p);
	stop();
}

/* --- deadlines and limits ---------------------------------------------------------------- */

TEST(idle_and_slow_bodies_are_cut, "")
{
	struct uar_http_options o = options;
	struct uar_peer idle, body;

	o.idle_timeout_us = o.body_timeout_us = 50000;
	REQUIRE(start(&o));
	idle = dial();
	body = dial();
	ask(&idle, "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n", 200, "");
	CHECK(uar_peer_at_end(&idle));
	ask(&body, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhell", 408, NULL);
	CHECK(uar_peer_at_end(&body));
	uv_sem_wait(&gone);
	uar_peer_close(&idle);
	uar_peer_close(&body);
	stop();
}

TEST(more_connections_than_the_maximum_are_told_so, "")
{
	struct uar_http_options o = options;
	struct uar_peer p[3], late;

	o.max_connections = 3;
	REQUIRE(start(&o));
	for (int i = 0; i < 3; i++) {
		p[i] = dial();
		ask(&p[i], "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n", 200, "");
	}
	late = dial();
	ask(&late, "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n", 503, NULL);
	CHECK(uar_peer_at_end(&late));
	uar_peer_close(&late);
	for (int i = 0; i < 3; i++) {
		ask(&p[i], "GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 200, "");
		CHECK(uar_peer_at_end(&p[i]));
		uar_peer_close(&p[i]);
	}
	stop();
}

TEST(one_address_has_its_share, "")
{
	struct uar_http_options o = options;
	struct uar_peer a, b, late;
	struct uar_http_stats stats = { .open = 9 };

	o.max_per_address = 2;
	REQUIRE(start(&o));
	a = dial();
	ask(&a, "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n", 200, "");
	b = dial();
	ask(&b, "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n", 200, "");
	late = dial();
	ask(&late, "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n", 429, NULL);
	uar_peer_close(&late);
	uar_peer_close(&a);
	while (stats.open > 1)
		uar_peer_call(&server, read_stats, &stats);
	a = dial();
	ask(&a, "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n", 200, "");
	uar_peer_close(&a);
	uar_peer_close(&b);
	stop();
}

/* --- ending ----------------------------------------------------------------------------- */

static void answer_held(void *ctx)
{
	uar_http_problem(later[0], UAR_EDRAINING, NULL);
	(void)ctx;
}

static void on_kept(void *ctx, struct uar_http_request *r)
{
	(void)ctx;
	later[0] = r;
	uv_sem_post(&held);
}

TEST(drain_finishes_what_was_begun, "")
{
	struct uar_http_options o = options;
	struct uar_peer idle, busy, late;

	o.handler.request = on_kept;
	REQUIRE(start(&o));
	idle = dial();
	busy = dial();
	uar_peer_say(&busy, "GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
	uv_sem_wait(&held);
	uar_peer_drain(&server);
	CHECK(uar_peer_at_end(&idle));
	CHECK(!uar_peer_dial(&late, uar_http_address(server.http)));
	uar_peer_close(&late);
	uar_peer_call(&server, answer_held, NULL);
	ask(&busy, "", 503, NULL);
	CHECK(uar_peer_at_end(&busy));
	uar_peer_close(&busy);
	uar_peer_close(&idle);
	uv_sem_wait(&server.drained);
	stop();
}

/* --- memory ------------------------------------------------------------------------------ */

static void fail_alloc(void *ctx)
{
	uar_test_fail_alloc(*(unsigned long *)ctx);
}

static void stop_failing(void *ctx)
{
	*(bool *)ctx = uar_test_alloc_failed();
	uar_test_fail_alloc(0);
}

/* Each allocation of a request's way fails once: the client hears 200 or 503 or
 * is cut, and the next one is served. */
static bool survive(unsigned long n, const char *text)
{
	struct uar_peer_reply r = { 0 };
	bool failed = false;
	struct uar_peer p;

	uar_peer_call(&server, fail_alloc, &n);
	p = dial();
	uar_peer_say(&p, text);
	if (uar_peer_reply(&p, false, &r))
		CHECK_MSG(r.status == 200 || r.status == 503, "%d", r.status);
	uar_buf_fini(&r.body);
	uar_peer_call(&server, stop_failing, &failed);
	uar_peer_close(&p);
	p = dial();
	ask(&p, "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n", 200, "");
	uar_peer_close(&p);
	return failed;
}

TEST(survives_every_failing_allocation, "")
{
	static const char *const texts[] = {
		"GET /echo?a=b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
		("POST /later HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
		 "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
		"GET /big HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
	};
	struct uar_http_options o = options;

	o.max_per_address = 10;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		unsigned long n = 1;

		REQUIRE(start(&o)); /* afresh: no request record is spare yet */
		while (n < 100 && survive(n, texts[i]))
			n++;
		CHECK_MSG(n > 2 && n < 100, "%lu allocations failed", n);
		stop();
	}
}

TEST(creation_survives_every_failing_allocation, "")
{
	struct uar_loop *loop = NULL;
	struct uar_http *h = NULL;
	struct uar_error error = { 0 };
	unsigned long n = 0;
	uar_err e;

	REQUIRE(uar_loop_create(&uar_clock_system, &loop) == UAR_OK);
	do {
		uar_test_fail_alloc(++n);
		e = uar_http_create(loop, &options, &h, &error);
		uar_test_fail_alloc(0);
		CHECK(e == UAR_OK || (e == UAR_ENOMEM && error.text[0]));
	} while (e && n < 20);
	CHECK(n > 3 && e == UAR_OK);
	uar_http_destroy(h);
	uar_loop_destroy(loop);
}
