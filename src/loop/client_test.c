/* client_test.c - calls against a scripted peer on the loopback. */
#include "test.h"
#include "leap.h"
#include "peer.h"

#include <sched.h>
#include <uv.h>

#include "base/buf.h"
#include "loop/client.h"

#define OK_HEAD "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
#define CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

struct fixture {
	struct leap time;
	struct uar_loop *loop;
	struct uar_client *client;
	struct peer *peer;
	char url[64];
};

struct seen { /* what one call reported */
	struct fixture *f;
	struct uar_call *call;
	struct uar_buf data, body;
	unsigned dones, pieces;
	uar_err err, give_back;
	int status;
	int64_t retry_after_us;
	char reason[256];
	bool cancel_on_data, pause_on_data, leave_running;
	struct seen *cancel_other;
};

static bool set_up(struct fixture *f, const struct peer_script *scripts, size_t n)
{
	*f = (struct fixture){ .peer = peer_create(scripts, n) };
	snprintf(f->url, sizeof f->url, "http://127.0.0.1:%u/v1/x", peer_port(f->peer));
	leap_init(&f->time);
	return CHECK(uar_loop_create(&f->time.clock, &f->loop) == UAR_OK) &&
	       CHECK(uar_client_create(f->loop, &f->client) == UAR_OK);
}

static void tear_down(struct fixture *f)
{
	uar_client_destroy(f->client);
	uar_loop_destroy(f->loop);
	peer_destroy(f->peer);
}

static uar_err on_data(void *ctx, uar_str bytes)
{
	struct seen *s = ctx;

	s->pieces++;
	uar_buf_add_str(&s->data, bytes);
	if (s->cancel_other) {
		uar_call_cancel(s->cancel_other->call);
		s->cancel_other = NULL;
	}
	if (s->pause_on_data)
		uar_call_pause(s->call, true);
	if (s->cancel_on_data) {
		uar_call_cancel(s->call);
		uar_loop_stop(s->f->loop);
	}
	return s->give_back;
}

static void on_done(void *ctx, uar_err e, int status, uar_str body, const char *reason)
{
	struct seen *s = ctx;

	s->dones++;
	s->err = e;
	s->status = status;
	s->retry_after_us = uar_call_retry_after_us(s->call);
	uar_buf_add_str(&s->body, body);
	snprintf(s->reason, sizeof s->reason, "%s", reason);
	if (!s->leave_running)
		uar_loop_stop(s->f->loop);
}

static struct uar_call_options options(struct fixture *f, struct seen *s)
{
	s->f = f;
	s->data = uar_buf_make(1 << 20);
	s->body = uar_buf_make(1 << 20);
	return (struct uar_call_options){ .method = "POST",
					  .url = f->url,
					  .body = UAR_STR("{}"),
					  .data = on_data,
					  .done = on_done,
					  .ctx = s };
}

static void forget(struct seen *s)
{
	uar_buf_fini(&s->data);
	uar_buf_fini(&s->body);
}

static bool call(struct fixture *f, const struct uar_call_options *o, struct seen *s)
{
	struct uar_error error = { 0 };
	uar_err e = uar_client_call(f->client, o, &s->call, &error);

	if (!CHECK_MSG(e == UAR_OK, "%s: %s", uar_err_name(e), uar_error_text(&error)))
		return false;
	CHECK_INT(s->dones + s->pieces, 0); /* never inside the call */
	return true;
}

static void run_until_requests(struct fixture *f, unsigned n)
{
	while (peer_counts(f->peer).requests < n) {
		uv_run(uar_loop_uv(f->loop), UV_RUN_NOWAIT);
		sched_yield();
	}
}

static const struct {
	const char *name;
	struct peer_script script;
	const char *data, *body;
	uar_err err;
	int status;
} answers[] = {
	{ "plain", { { { PEER_SEND, OK_HEAD "hello", 0 } } }, "hello", "", UAR_OK, 200 },
	{ "chunked",
	  { { { PEER_SEND, CHUNKED "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", 0 } } },
	  "hello",
	  "",
	  UAR_OK,
	  200 },
	{ "byte by byte",
	  { { { PEER_BYTES, CHUNKED "5\r\nhello\r\n0\r\n\r\n", 0 } } },
	  "hello",
	  "",
	  UAR_OK,
	  200 },
	{ "until close",
	  { { { PEER_SEND, "HTTP/1.1 200 OK\r\n\r\nhello", 0 }, { PEER_CLOSE, NULL, 0 } } },
	  "hello",
	  "",
	  UAR_OK,
	  200 },
	{ "continue first",
	  { { { PEER_SEND, "HTTP/1.1 100 Continue\r\n\r\n" OK_HEAD "hello", 0 } } },
	  "hello",
	  "",
	  UAR_OK,
	  200 },
	{ "error body",
	  { { { PEER_SEND, "HTTP/1.1 404 No\r\nContent-Length: 4\r\n\r\nnope", 0 } } },
	  "",
	  "nope",
	  UAR_OK,
	  404 },
	{ "redirect is not followed",
	  { { { PEER_SEND,
		"HTTP/1.1 302 Go\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
		0 } } },
	  "",
	  "",
	  UAR_OK,
	  302 },
	{ "cut short",
	  { { { PEER_SEND, OK_HEAD "he", 0 }, { PEER_CLOSE, NULL, 0 } } },
	  "he",
	  "",
	  UAR_ENET,
	  200 },
	{ "cut in a chunk",
	  { { { PEER_SEND, CHUNKED "5\r\nhe", 0 }, { PEER_CLOSE, NULL, 0 } } },
	  "he",
	  "",
	  UAR_ENET,
	  200 },
	{ "reset", { { { PEER_RESET, NULL, 0 } } }, "", "", UAR_ENET, 0 },
	{ "nothing", { { { PEER_CLOSE, NULL, 0 } } }, "", "", UAR_ENET, 0 },
	{ "not HTTP",
	  { { { PEER_SEND, "SSH-2.0-x\r\n\r\n", 0 }, { PEER_CLOSE, NULL, 0 } } },
	  "",
	  "",
	  UAR_ENET,
	  0 },
	{ "endless head",
	  { { { PEER_SEND, "HTTP/1.1 200 OK\r\n", 0 },
	      { PEER_FILL, "X-Filling: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n", 4000 },
	      { PEER_STALL, NULL, 0 } } },
	  "",
	  "",
	  UAR_EHEADERS,
	  0 },
};

TEST(answers_are_told_as_they_are, "")
{
	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		struct fixture f;
		struct seen s = { 0 };
		struct uar_call_options o;

		REQUIRE(set_up(&f, &answers[i].script, 1));
		o = options(&f, &s);
		if (call(&f, &o, &s))
			uar_loop_run(f.loop);
		CHECK_MSG(s.dones == 1, "%s: done %u times", answers[i].name, s.dones);
		CHECK_MSG(s.err == answers[i].err, "%s: %s (%s)", answers[i].name,
			  uar_err_name(s.err), s.reason);
		if (answers[i].err != UAR_EHEADERS)
			CHECK_MSG(s.status == answers[i].status, "%s: %d", answers[i].name,
				  s.status);
		CHECK_STR(uar_buf_str(&s.data), answers[i].data);
		CHECK_STR(uar_buf_str(&s.body), answers[i].body);
		forget(&s);
		tear_down(&f);
	}
}

TEST(request_is_sent_as_given, "")
{
	static const struct peer_script script = { { { PEER_SEND, OK_HEAD "hello", 0 } } };
	const char *headers[] = { "Content-Type: application/json", "X-One: 1", NULL };
	struct fixture f;
	struct seen s = { 0 };
	struct uar_call_options o;

	REQUIRE(set_up(&f, &script, 1));
	o = options(&f, &s);
	o.method = "PUT";
	o.headers = headers;
	o.body = UAR_STR("{\"a\":1}");
	REQUIRE(call(&f, &o, &s));
	uar_loop_run(f.loop);
	CHECK(strncmp(peer_request(f.peer), "PUT /v1/x HTTP/1.1\r\n", 20) == 0);
	CHECK(strstr(peer_request(f.peer), "\r\nContent-Type: application/json\r\n") != NULL);
	CHECK(strstr(peer_request(f.peer), "\r\nX-One: 1\r\n") != NULL);
	CHECK(strstr(peer_request(f.peer), "\r\n\r\n{\"a\":1}") != NULL);
	CHECK(strstr(peer_request(f.peer), "Expect") == NULL);
	forget(&s);
	tear_down(&f);
}

TEST(bad_requests_are_refused_at_once, "")
{
	static const struct peer_script script = { { { PEER_SEND, OK_HEAD "hello", 0 } } };
	static const char *const urls[] = { "ftp://127.0.0.1/", "file:///etc/passwd", "",
					    "http://a b/", "http://a/\r\nX: y" };
	const char *headers[] = { "X-A: b\r\nX-C: d", NULL };
	struct fixture f;
	struct seen s = { 0 };
	struct uar_call_options o;
	struct uar_error error;

	REQUIRE(set_up(&f, &script, 1));
	o = options(&f, &s);
	for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
		o.url = urls[i];
		CHECK(uar_client_call(f.client, &o, &s.call, &error) == UAR_EINVALID);
	}
	o.url = f.url;
	o.headers = headers;
	CHECK(uar_client_call(f.client, &o, &s.call, &error) == UAR_EINVALID);
	CHECK_INT(s.dones, 0);
	CHECK_INT(peer_counts(f.peer).connections, 0);
	forget(&s);
	tear_down(&f);
}

TEST(connection_is_used_again, "")
{
	static const struct peer_script script = { { { PEER_SEND, OK_HEAD "hello", 0 } } };
	struct fixture f;

	REQUIRE(set_up(&f, &script, 1));
	for (int i = 0; i < 3; i++) {
		struct seen s = { 0 };
		struct uar_call_options o = options(&f, &s);

		if (call(&f, &o, &s))
			uar_loop_run(f.loop);
		CHECK_STR(uar_buf_str(&s.data), "hello");
		forget(&s);
	}
	CHECK_INT(peer_counts(f.peer).requests, 3);
	CHECK_INT(peer_counts(f.peer).connections, 1);
	tear_down(&f);
}

TEST(error_body_is_cut_at_its_limit, "")
{
	static const struct peer_script script = {
		{ { PEER_SEND, "HTTP/1.1 500 Oh\r\nRetry-After: 7\r\n\r\n", 0 },
		  { PEER_FILL, "0123456789", 10000 },
		  { PEER_CLOSE, NULL, 0 } }
	};
	struct fixture f;
	struct seen s = { 0 };
	struct uar_call_options o;

	REQUIRE(set_up(&f, &script, 1));
	o = options(&f, &s);
	o.max_error_body = 25;
	REQUIRE(call(&f, &o, &s));
	uar_loop_run(f.loop);
	CHECK_INT(s.err, UAR_OK);
	CHECK_INT(s.status, 500);
	CHECK_INT(s.retry_after_us, 7000000);
	CHECK_STR(uar_buf_str(&s.body), "0123456789012345678901234");
	forget(&s);
	tear_down(&f);
}

TEST(error_of_the_receiver_ends_the_call, "")
{
	static const struct peer_script script = { { { PEER_SEND, CHUNKED "5\r\nhello\r\n", 0 },
						     { PEER_STALL, NULL, 0 } } };
	struct fixture f;
	struct seen s = { .give_back = UAR_ESYNTAX };
	struct uar_call_options o;

	REQUIRE(set_up(&f, &script, 1));
	o = options(&f, &s);
	REQUIRE(call(&f, &o, &s));
	uar_loop_run(f.loop);
	CHECK_INT(s.err, UAR_ESYNTAX);
	CHECK_INT(s.dones, 1);
	peer_wait(f.peer, (struct peer_counts){ .gone_early = 1 });
	forget(&s);
	tear_down(&f);
}

struct hours {
	struct uar_timer timer;
	struct fixture *f;
};

/* Time goes by again and again: what the peer has sent may come after a leap, and
 * would count as a sign of life for another minute. */
static void on_hour(struct uar_timer *t)
{
	struct hours *h = UAR_OWNER(t, struct hours, timer);

	leap_ahead(&h->f->time, uar_loop_sched(h->f->loop), 61000000);
	CHECK(uar_timer_set(uar_loop_sched(h->f->loop), t, 1000) == UAR_OK);
}

TEST(silence_ends_by_the_idle_limit, "")
{
	static const struct peer_script scripts[] = {
		{ { { PEER_STALL, NULL, 0 } } },
		{ { { PEER_SEND, "HTTP/1.1 200", 0 }, { PEER_STALL, NULL, 0 } } },
		{ { { PEER_SEND, OK_HEAD "he", 0 }, { PEER_STALL, NULL, 0 } } },
	};
	struct fixture f;
	struct hours hours = { { .fn = on_hour }, &f };

	REQUIRE(set_up(&f, scripts, ARRAY_LEN(scripts)));
	for (unsigned i = 0; i < ARRAY_LEN(scripts); i++) {
		struct seen s = { 0 };
		struct uar_call_options o = options(&f, &s);

		REQUIRE(call(&f, &o, &s));
		run_until_requests(&f, i + 1);
		CHECK(uar_timer_set(uar_loop_sched(f.loop), &hours.timer, 0) == UAR_OK);
		uar_loop_run(f.loop);
		uar_timer_stop(uar_loop_sched(f.loop), &hours.timer);
		CHECK_INT(s.err, UAR_ETIMEOUT);
		CHECK_INT(s.dones, 1);
		peer_wait(f.peer, (struct peer_counts){ .gone_early = i + 1 });
		forget(&s);
	}
	tear_down(&f);
}

TEST(nobody_listens, "")
{
	static const struct peer_script script = { { { PEER_CLOSE, NULL, 0 } } };
	struct fixture f;
	struct seen s = { 0 };
	struct uar_call_options o;

	REQUIRE(set_up(&f, &script, 1));
	o = options(&f, &s);
	o.url = "http://127.0.0.1:1/";
	REQUIRE(call(&f, &o, &s));
	uar_loop_run(f.loop);
	CHECK_INT(s.err, UAR_ENET);
	CHECK_INT(s.status, 0);
	CHECK(s.reason[0] != 0);
	forget(&s);
	tear_down(&f);
}

TEST(cancel_closes_the_connection_at_once, "")
{
	static const struct peer_script script = { { { PEER_SEND, CHUNKED "5\r\nhello\r\n", 0 },
						     { PEER_STALL, NULL, 0 } } };
	struct fixture f;
	struct seen inside = { .cancel_on_data = true }, outside = { 0 };
	struct uar_call_options o;

	REQUIRE(set_up(&f, &script, 1));
	o = options(&f, &inside);
	REQUIRE(call(&f, &o, &inside));
	uar_loop_run(f.loop); /* the data callback cancels and stops */
	peer_wait(f.peer, (struct peer_counts){ .gone_early = 1 });
	CHECK_INT(inside.dones, 0);
	CHECK_INT(inside.pieces, 1);

	o = options(&f, &outside);
	REQUIRE(call(&f, &o, &outside));
	uar_call_cancel(outside.call); /* nothing was sent yet */
	CHECK_INT(outside.dones, 0);
	forget(&inside);
	forget(&outside);
	tear_down(&f);
}

TEST(a_callback_may_cancel_another_call, "")
{
	static const struct peer_script scripts[] = {
		{ { { PEER_SEND, CHUNKED "5\r\nhello\r\n", 0 }, { PEER_STALL, NULL, 0 } } },
		{ { { PEER_GATE, NULL, 0 }, { PEER_SEND, OK_HEAD "hello", 0 } } },
	};
	struct fixture f;
	struct seen a = { .leave_running = true }, b = { 0 };
	struct uar_call_options oa, ob;

	REQUIRE(set_up(&f, scripts, 2));
	oa = options(&f, &a);
	ob = options(&f, &b);
	REQUIRE(call(&f, &oa, &a));
	run_until_requests(&f, 1); /* the first one is the one that stalls */
	REQUIRE(call(&f, &ob, &b));
	b.cancel_other = &a;
	peer_open_gate(f.peer);
	uar_loop_run(f.loop);
	CHECK_STR(uar_buf_str(&b.data), "hello");
	CHECK_INT(b.dones, 1);
	CHECK_INT(a.dones, 0);
	peer_wait(f.peer, (struct peer_counts){ .gone_early = 1 });
	forget(&a);
	forget(&b);
	tear_down(&f);
}

struct pauser {
	struct uar_timer timer;
	struct seen *seen;
	struct fixture *f;
	size_t sent;
	unsigned pieces, rounds;
};

static void on_pause_over(struct uar_timer *t)
{
	struct pauser *p = UAR_OWNER(t, struct pauser, timer);

	/* Held back: what is under way fills the sockets and then stands still. */
	if (p->rounds++ == 0 || p->seen->pieces == 0 || p->sent != peer_sent(p->f->peer)) {
		p->sent = peer_sent(p->f->peer);
		if (p->seen->pieces > 0) /* paused: the idle limit rests */
			leap_ahead(&p->f->time, uar_loop_sched(p->f->loop), 120000000);
		CHECK(uar_timer_set(uar_loop_sched(p->f->loop), t, 20000) == UAR_OK);
		return;
	}
	p->pieces = p->seen->pieces;
	p->seen->pause_on_data = false;
	uar_call_pause(p->seen->call, false);
}

TEST(pause_holds_the_peer_back, "")
{
	enum { BLOCKS = 20000, BLOCK = 1000 };
	static char block[BLOCK + 1];
	struct peer_script script = { { { PEER_SEND, "HTTP/1.1 200 OK\r\n\r\n", 0 },
					{ PEER_FILL, block, BLOCKS },
					{ PEER_CLOSE, NULL, 0 } } };
	struct fixture f;
	struct seen s = { .pause_on_data = true };
	struct pauser p = { .timer.fn = on_pause_over, .seen = &s, .f = &f };
	struct uar_call_options o;

	memset(block, 'x', BLOCK);
	REQUIRE(set_up(&f, &script, 1));
	o = options(&f, &s);
	s.data = uar_buf_make((size_t)BLOCKS * BLOCK);
	REQUIRE(call(&f, &o, &s));
	REQUIRE(uar_timer_set(uar_loop_sched(f.loop), &p.timer, 20000) == UAR_OK);
	uar_loop_run(f.loop);
	CHECK_INT(p.pieces, 1); /* the one that paused */
	CHECK(p.sent < (size_t)BLOCKS * BLOCK);
	CHECK_INT(s.err, UAR_OK);
	CHECK_INT(s.data.n, (size_t)BLOCKS * BLOCK);
	forget(&s);
	tear_down(&f);
}

static void on_resume(struct uar_timer *t)
{
	struct pauser *p = UAR_OWNER(t, struct pauser, timer);

	if (p->seen->pieces == 0) { /* a slow machine: not paused yet */
		CHECK(uar_timer_set(uar_loop_sched(p->f->loop), t, 1000) == UAR_OK);
		return;
	}
	CHECK_INT(p->seen->dones, 0);
	CHECK_INT(p->seen->pieces, 1);
	uar_call_pause(p->seen->call, false);
}

TEST(pause_holds_the_end_back, "")
{
	static const struct peer_script script = { { { PEER_SEND, OK_HEAD "hello", 0 },
						     { PEER_CLOSE, NULL, 0 } } };
	struct fixture f;
	struct seen s = { .pause_on_data = true };
	struct pauser p = { .timer.fn = on_resume, .seen = &s, .f = &f };
	struct uar_call_options o;

	REQUIRE(set_up(&f, &script, 1));
	o = options(&f, &s);
	REQUIRE(call(&f, &o, &s));
	REQUIRE(uar_timer_set(uar_loop_sched(f.loop), &p.timer, 30000) == UAR_OK);
	uar_loop_run(f.loop);
	CHECK_INT(s.dones, 1);
	CHECK_INT(s.err, UAR_OK);
	forget(&s);
	tear_down(&f);
}

TEST(client_may_go_with_calls_under_way, "")
{
	static const struct peer_script script = { { { PEER_STALL, NULL, 0 } } };
	struct fixture f;
	struct seen s[3] = { { 0 } };

	REQUIRE(set_up(&f, &script, 1));
	for (int i = 0; i < 3; i++) {
		struct uar_call_options o = options(&f, &s[i]);

		REQUIRE(call(&f, &o, &s[i]));
	}
	run_until_requests(&f, 3);
	uar_client_destroy(f.client);
	f.client = NULL;
	peer_wait(f.peer, (struct peer_counts){ .gone_early = 3 });
	for (int i = 0; i < 3; i++)
		CHECK_INT(s[i].dones, 0);
	tear_down(&f);
}

static void run_turns(struct fixture *f, int n)
{
	while (n-- > 0) {
		uv_run(uar_loop_uv(f->loop), UV_RUN_NOWAIT);
		sched_yield();
	}
}

enum { CROWD = 40, ROUNDS = 50 };

struct crowd {
	struct fixture f;
	struct seen seen[CROWD];
	unsigned left, bad;
};

static void ask(struct crowd *c, struct seen *s);

static void on_crowd_done(void *ctx, uar_err e, int status, uar_str body, const char *reason)
{
	struct seen *s = ctx;
	struct crowd *c = UAR_OWNER(s->f, struct crowd, f);

	(void)reason;
	s->dones++;
	if (e || status != 200 || body.n || !uar_str_eq(uar_buf_str(&s->data), UAR_STR("hello")))
		c->bad++;
	uar_buf_clear(&s->data);
	if (s->dones < ROUNDS)
		ask(c, s);
	if (--c->left == 0)
		uar_loop_stop(s->f->loop);
}

static void ask(struct crowd *c, struct seen *s)
{
	struct uar_call_options o = { .method = "POST",
				      .url = c->f.url,
				      .body = UAR_STR("{}"),
				      .data = on_data,
				      .done = on_crowd_done,
				      .ctx = s };
	struct uar_error error;

	CHECK(uar_client_call(c->f.client, &o, &s->call, &error) == UAR_OK);
}

TEST(thousands_of_calls_get_their_own_answer_once, "")
{
	static const struct peer_script script = { { { PEER_SEND, CHUNKED "2\r\nhe\r\n", 0 },
						     { PEER_SEND, "3\r\nllo\r\n0\r\n\r\n", 0 } } };
	struct crowd c = { .left = CROWD * ROUNDS };

	REQUIRE(set_up(&c.f, &script, 1));
	for (int i = 0; i < CROWD; i++) {
		c.seen[i].f = &c.f;
		c.seen[i].data = uar_buf_make(100);
		ask(&c, &c.seen[i]);
	}
	uar_loop_run(c.f.loop);
	CHECK_INT(c.bad, 0);
	for (int i = 0; i < CROWD; i++) {
		CHECK_INT(c.seen[i].dones, ROUNDS);
		forget(&c.seen[i]);
	}
	CHECK_INT(peer_counts(c.f.peer).requests, CROWD * ROUNDS);
	tear_down(&c.f);
}

/* Both answers are handed over together, or one after the other: the call whose
 * bytes are told first cancels the other one, of which nothing is heard. */
TEST(a_callback_may_cancel_what_came_with_it, "")
{
	static const struct peer_script script = { { { PEER_GATE, NULL, 0 },
						     { PEER_SEND, OK_HEAD "hello", 0 } } };

	for (int i = 0; i < 20; i++) {
		struct fixture f;
		struct seen s[2] = { { 0 } };

		REQUIRE(set_up(&f, &script, 1));
		for (int k = 0; k < 2; k++) {
			struct uar_call_options o = options(&f, &s[k]);

			s[k].cancel_other = &s[1 - k];
			REQUIRE(call(&f, &o, &s[k]));
		}
		run_until_requests(&f, 2);
		peer_open_gate(f.peer);
		uar_loop_run(f.loop);
		run_turns(&f, 20);
		CHECK_INT(s[0].dones + s[1].dones, 1);
		CHECK_INT(s[0].pieces ? s[1].pieces : s[0].pieces, 0);
		forget(&s[0]);
		forget(&s[1]);
		tear_down(&f);
	}
}

TEST(a_cancel_may_race_with_the_end, "")
{
	static const struct peer_script script = { { { PEER_SEND, OK_HEAD "hello", 0 } } };
	enum { TIMES = 200 };
	struct fixture f;
	struct seen s[TIMES] = { { 0 } };

	REQUIRE(set_up(&f, &script, 1));
	for (int i = 0; i < TIMES; i++) {
		struct uar_call_options o = options(&f, &s[i]);
		unsigned heard;

		REQUIRE(call(&f, &o, &s[i]));
		run_turns(&f, i % 50); /* sometimes it has ended by then */
		if (s[i].dones)
			continue;
		uar_call_cancel(s[i].call);
		heard = s[i].pieces;
		run_turns(&f, 5);
		CHECK_INT(s[i].pieces, heard);
		CHECK_INT(s[i].dones, 0);
		s[i].leave_running = true;
	}
	for (int i = 0; i < TIMES; i++) {
		CHECK_INT(s[i].dones, !s[i].leave_running);
		forget(&s[i]);
	}
	tear_down(&f);
}

struct sipper { /* reads a piece, pauses, goes on in the next turn */
	struct seen seen;
	struct uar_task next;
	size_t largest;
	bool wrong;
};

static uar_err on_sip(void *ctx, uar_str bytes)
{
	struct sipper *r = UAR_OWNER(ctx, struct sipper, seen);

	for (size_t i = 0; i < bytes.n; i++)
		r->wrong |= bytes.p[i] != "0123456789"[(r->seen.data.n + i) % 10];
	r->seen.data.n += bytes.n; /* counts alone */
	r->largest = bytes.n > r->largest ? bytes.n : r->largest;
	uar_call_pause(r->seen.call, true);
	uar_post(uar_loop_sched(r->seen.f->loop), &r->next);
	return UAR_OK;
}

static void on_next_sip(struct uar_task *t)
{
	uar_call_pause(UAR_OWNER(t, struct sipper, next)->seen.call, false);
}

TEST(a_slow_reader_gets_every_byte_in_order, "")
{
	enum { TENS = 100000 };
	static const struct peer_script script = { { { PEER_SEND, "HTTP/1.1 200 OK\r\n\r\n", 0 },
						     { PEER_FILL, "0123456789", TENS },
						     { PEER_CLOSE, NULL, 0 } } };
	struct fixture f;
	struct sipper r = { .next.fn = on_next_sip };
	struct uar_call_options o;

	REQUIRE(set_up(&f, &script, 1));
	o = options(&f, &r.seen);
	o.data = on_sip;
	REQUIRE(call(&f, &o, &r.seen));
	uar_loop_run(f.loop);
	CHECK_INT(r.seen.err, UAR_OK);
	CHECK_INT(r.seen.dones, 1);
	CHECK_INT(r.seen.data.n, TENS * 10);
	CHECK(!r.wrong);
	CHECK(r.largest <= UAR_LIMIT_CLIENT_INBOX);
	r.seen.data.n = 0;
	forget(&r.seen);
	tear_down(&f);
}

static const struct peer_script flood = { { { PEER_SEND, "HTTP/1.1 200 OK\r\n\r\n", 0 },
					    { PEER_FILL, "0123456789", 10000000 } } };

TEST(an_error_of_the_receiver_stops_a_flood, "")
{
	struct fixture f;
	struct seen s = { .give_back = UAR_ESYNTAX };
	struct uar_call_options o;

	REQUIRE(set_up(&f, &flood, 1));
	o = options(&f, &s);
	REQUIRE(call(&f, &o, &s));
	uar_loop_run(f.loop);
	CHECK_INT(s.err, UAR_ESYNTAX);
	CHECK_INT(s.dones, 1);
	CHECK_INT(s.pieces, 1);
	forget(&s);
	tear_down(&f);
}

TEST(client_may_go_in_the_middle_of_a_flood, "")
{
	struct fixture f;
	struct seen s[4] = { { 0 }, { .pause_on_data = true }, { 0 }, { .cancel_on_data = true } };

	REQUIRE(set_up(&f, &flood, 1));
	for (int i = 0; i < 4; i++) {
		struct uar_call_options o = options(&f, &s[i]);

		REQUIRE(call(&f, &o, &s[i]));
	}
	while (!s[0].pieces || !s[1].pieces || !s[2].pieces || !s[3].pieces)
		run_turns(&f, 1);
	uar_client_destroy(f.client);
	f.client = NULL;
	for (int i = 0; i < 4; i++) {
		CHECK_INT(s[i].dones, 0);
		forget(&s[i]);
	}
	CHECK_INT(s[1].pieces, 1);
	CHECK_INT(s[3].pieces, 1);
	tear_down(&f);
}

TEST(client_may_go_before_its_calls_have_begun, "")
{
	static const struct peer_script script = { { { PEER_STALL, NULL, 0 } } };
	struct fixture f;
	struct seen s[100] = { { 0 } };

	REQUIRE(set_up(&f, &script, 1));
	for (size_t i = 0; i < ARRAY_LEN(s); i++) {
		struct uar_call_options o = options(&f, &s[i]);

		REQUIRE(call(&f, &o, &s[i]));
		if (i % 3 == 0)
			uar_call_cancel(s[i].call);
	}
	uar_client_destroy(f.client);
	f.client = NULL;
	for (size_t i = 0; i < ARRAY_LEN(s); i++)
		CHECK_INT(s[i].dones, 0);
	tear_down(&f);
}

TEST(what_is_over_and_paused_may_be_cancelled_or_left, "")
{
	static const struct peer_script script = { { { PEER_SEND, OK_HEAD "hello", 0 },
						     { PEER_CLOSE, NULL, 0 } } };
	struct fixture f;
	struct seen s[3] = { { .pause_on_data = true }, { .pause_on_data = true }, { 0 } };

	REQUIRE(set_up(&f, &script, 1));
	for (int i = 0; i < 3; i++) {
		struct uar_call_options o = options(&f, &s[i]);

		REQUIRE(call(&f, &o, &s[i]));
		while (!s[i].pieces || (i == 2 && !s[i].dones))
			run_turns(&f, 1);
	}
	uar_call_cancel(s[0].call);
	run_turns(&f, 5);
	uar_client_destroy(f.client);
	f.client = NULL;
	for (int i = 0; i < 3; i++) {
		CHECK_INT(s[i].dones, i == 2);
		forget(&s[i]);
	}
	tear_down(&f);
}

TEST(out_of_memory_is_an_error_like_others, "")
{
	static const struct peer_script script = { { { PEER_SEND, OK_HEAD "hello", 0 } } };
	bool failed = true;

	for (unsigned long n = 1; failed && n < 50; n++) {
		struct fixture f;
		struct seen s = { 0 };
		struct uar_call_options o;
		struct uar_error error;
		uar_err e;

		REQUIRE(set_up(&f, &script, 1));
		o = options(&f, &s);
		o.idle_timeout_us = o.connect_timeout_us = 50000;
		uar_test_fail_alloc(n);
		e = uar_client_call(f.client, &o, &s.call, &error);
		CHECK(e == UAR_OK || e == UAR_ENOMEM);
		if (e == UAR_OK)
			uar_loop_run(f.loop);
		tear_down(&f); /* first: its thread allocates too */
		failed = uar_test_alloc_failed();
		uar_test_fail_alloc(0);
		CHECK_INT(s.dones, e == UAR_OK);
		forget(&s);
	}
	CHECK(!failed);
}
