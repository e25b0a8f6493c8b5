/* client_test.c - calls against a scripted peer on the loopback. */
#include "loop/client_test.h"
#include "loop/limits.h"

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
	{ "endless line of a head",
	  { { { PEER_SEND, "HTTP/1.1 200 OK\r\nX-Filling: ", 0 },
	      { PEER_FILL, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 8000 },
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
		else
			CHECK(strstr(s.reason, "head of the answer"));
		CHECK_STR(uar_buf_str(&s.data), answers[i].data);
		CHECK_STR(uar_buf_str(&s.body), answers[i].body);
		forget(&s);
		tear_down(&f);
	}
}

/* The head comes with the first bytes or before them, and lines that belong to it once
 * more after all of them: pieces with no bytes, which have no status of their own. */
TEST(status_stays_once_it_is_known, "")
{
	static const struct peer_script scripts[] = {
		{ { { PEER_SEND, CHUNKED "5\r\nhello\r\n", 0 },
		    { PEER_GATE, NULL, 0 },
		    { PEER_SEND, "0\r\nX-After: 1\r\n\r\n", 0 } } },
		{ { { PEER_BYTES, CHUNKED "5\r\nhello\r\n", 0 },
		    { PEER_GATE, NULL, 0 },
		    { PEER_BYTES, "0\r\nX-After: 1\r\nX-More: 2\r\n\r\n", 0 } } },
	};

	for (size_t i = 0; i < ARRAY_LEN(scripts); i++) {
		struct fixture f;
		struct seen s = { .open_on_data = true };
		struct uar_call_options o;

		REQUIRE(set_up(&f, &scripts[i], 1));
		o = options(&f, &s);
		if (call(&f, &o, &s))
			uar_loop_run(f.loop);
		CHECK_STR(uar_buf_str(&s.data), "hello");
		CHECK_INT(s.err, UAR_OK);
		CHECK_INT(s.status, 200);
		CHECK_INT(s.status_on_data, 200);
		CHECK_INT(s.status_on_done, 200);
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

/* Less than the idle limit goes by with each piece. */
static uar_err on_slow_data(void *ctx, uar_str bytes)
{
	struct seen *s = ctx;

	leap_ahead(&s->f->time, uar_loop_sched(s->f->loop), 40000000);
	return on_data(ctx, bytes);
}

TEST(an_answer_that_trickles_ends_by_the_limit_in_all, "")
{
	enum { BLOCKS = 20000, BLOCK = 1000 };
	static char block[BLOCK + 1];
	struct peer_script script = { { { PEER_SEND, "HTTP/1.1 200 OK\r\n\r\n", 0 },
					{ PEER_FILL, block, BLOCKS },
					{ PEER_CLOSE, NULL, 0 } } };
	static const struct {
		int64_t total_us;
		uar_err err;
	} cases[] = {
		{ 0, UAR_ETIMEOUT }, { -1, UAR_OK } /* a stream */
	};
	struct fixture f;

	memset(block, 'x', BLOCK);
	REQUIRE(set_up(&f, &script, 1));
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct seen s = { 0 };
		struct uar_call_options o = options(&f, &s);

		o.data = on_slow_data;
		o.total_timeout_us = cases[i].total_us;
		REQUIRE(call(&f, &o, &s));
		uar_loop_run(f.loop);
		CHECK_INT(s.err, cases[i].err);
		CHECK_INT(s.dones, 1);
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

/* Longer than both limits. */
static void on_long_pause_over(struct uar_timer *t)
{
	struct pauser *p = UAR_OWNER(t, struct pauser, timer);
	struct uar_sched *sched = uar_loop_sched(p->f->loop);

	if (p->seen->pieces == 0) {
		CHECK(uar_timer_set(sched, t, 1000) == UAR_OK);
		return;
	}
	leap_ahead(&p->f->time, sched, (UAR_LIMIT_CLIENT_CALL_SECONDS + 60) * 1000000LL);
	p->seen->pause_on_data = false;
	uar_call_pause(p->seen->call, false);
	peer_open_gate(p->f->peer);
}

TEST(time_in_which_a_call_is_paused_does_not_count, "")
{
	static const struct peer_script script = {
		{ { PEER_SEND, OK_HEAD "he", 0 }, { PEER_GATE, NULL, 0 }, { PEER_SEND, "llo", 0 } }
	};
	struct fixture f;
	struct seen s = { .pause_on_data = true };
	struct pauser p = { .timer.fn = on_long_pause_over, .seen = &s, .f = &f };
	struct uar_call_options o;

	REQUIRE(set_up(&f, &script, 1));
	o = options(&f, &s);
	REQUIRE(call(&f, &o, &s));
	REQUIRE(uar_timer_set(uar_loop_sched(f.loop), &p.timer, 1000) == UAR_OK);
	uar_loop_run(f.loop);
	CHECK_INT(s.err, UAR_OK);
	CHECK_STR(uar_buf_str(&s.data), "hello");
	forget(&s);
	tear_down(&f);
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

/* --- header lines ------------------------------------------------------------------- */

struct head_seen {
	struct seen seen; /* first: the other callbacks get it */
	struct uar_buf lines;
	int status; /* asked for inside */
	unsigned pieces_before;
	bool cancel;
};

static void on_header(void *ctx, uar_str name, uar_str value)
{
	struct head_seen *h = ctx;

	h->status = uar_call_status(h->seen.call);
	h->pieces_before += h->seen.pieces;
	uar_buf_printf(&h->lines, "%.*s=%.*s\n", UAR_FMT(name), UAR_FMT(value));
	if (h->cancel) {
		uar_call_cancel(h->seen.call);
		uar_loop_stop(h->seen.f->loop);
	}
}

static void check_head(const struct peer_script *script, int status, const char *want)
{
	struct head_seen h = { .lines = uar_buf_make(4096) };
	struct fixture f;
	struct uar_call_options o;

	REQUIRE(set_up(&f, script, 1));
	o = options(&f, &h.seen);
	o.header = on_header;
	o.ctx = &h;
	REQUIRE(call(&f, &o, &h.seen));
	uar_loop_run(f.loop);
	CHECK_STR(uar_buf_str(&h.lines), want);
	CHECK_INT(h.status, status);
	CHECK_INT(h.pieces_before, 0);
	CHECK_INT(h.seen.dones, 1);
	CHECK_INT(h.seen.status, status);
	forget(&h.seen);
	uar_buf_fini(&h.lines);
	tear_down(&f);
}

TEST(header_lines_come_before_the_body, "")
{
	static const struct peer_script good = {
		{ { PEER_BYTES,
		    "HTTP/1.1 100 Continue\r\nX-Early: no\r\n\r\nHTTP/1.1 200 OK\r\n"
		    "Transfer-Encoding: chunked\r\nX-A:  one two \r\nEmpty:\r\nx-a: 3:4\r\n\r\n"
		    "5\r\nhello\r\n0\r\nX-Trailer: no\r\n\r\n",
		    0 } }
	};
	static const struct peer_script bad = {
		{ { PEER_SEND,
		    "HTTP/1.1 404 No\r\nMcp-Session-Id: 7\r\nContent-Length: 4\r\n\r\nnope", 0 } }
	};
	static const struct peer_script empty = {
		{ { PEER_SEND, "HTTP/1.1 302 Go\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", 0 } }
	};

	check_head(&good, 200, "Transfer-Encoding=chunked\nX-A=one two\nEmpty=\nx-a=3:4\n");
	check_head(&bad, 404, "Mcp-Session-Id=7\nContent-Length=4\n");
	check_head(&empty, 302, "Location=/x\nContent-Length=0\n");
}

TEST(a_call_may_be_cancelled_by_a_header_line, "")
{
	static const struct peer_script script = {
		{ { PEER_SEND, "HTTP/1.1 200 OK\r\nA: 1\r\nB: 2\r\n\r\nhello", 0 },
		  { PEER_STALL, NULL, 0 } }
	};
	struct head_seen h = { .lines = uar_buf_make(4096), .cancel = true };
	struct fixture f;
	struct uar_call_options o;

	REQUIRE(set_up(&f, &script, 1));
	o = options(&f, &h.seen);
	o.header = on_header;
	o.ctx = &h;
	REQUIRE(call(&f, &o, &h.seen));
	uar_loop_run(f.loop);
	peer_wait(f.peer, (struct peer_counts){ .gone_early = 1 });
	CHECK_STR(uar_buf_str(&h.lines), "A=1\n");
	CHECK_INT(h.seen.dones + h.seen.pieces, 0);
	forget(&h.seen);
	uar_buf_fini(&h.lines);
	tear_down(&f);
}
