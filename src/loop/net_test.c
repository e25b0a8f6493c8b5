/* net_test.c - calls and the thread that makes them: crowds, races, floods, ends. */
#include "loop/client_test.h"

#include "loop/limits.h"
#include "loop/net.h"

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

TEST(a_connection_is_known_by_both_of_its_ends, "")
{
	static const struct uar_way a = { "127.0.0.1", "127.0.0.1", 40000, 443 };
	static const struct uar_way others[] = {
		{ "127.0.0.2", "127.0.0.1", 40000, 443 },
		{ "127.0.0.1", "127.0.0.2", 40000, 443 },
		{ "127.0.0.1", "127.0.0.1", 40001, 443 },
		{ "127.0.0.1", "127.0.0.1", 40000, 8443 },
	};
	struct uar_way same = a;

	CHECK(uar_way_same(&a, &same));
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		CHECK(!uar_way_same(&a, &others[i]));
}

TEST(only_a_refused_stream_is_taken_for_one, "")
{
	static const char refused[] = "Connection died, tried 5 times before giving up";

	CHECK(uar_net_is_refusal(CURLE_RECV_ERROR, refused));
	CHECK(!uar_net_is_refusal(CURLE_SEND_ERROR, refused)); /* closed after the request */
	CHECK(!uar_net_is_refusal(CURLE_HTTP2_STREAM, refused));
	CHECK(!uar_net_is_refusal(CURLE_RECV_ERROR, "Recv failure: Connection reset by peer"));
	CHECK(!uar_net_is_refusal(CURLE_RECV_ERROR, ""));
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
