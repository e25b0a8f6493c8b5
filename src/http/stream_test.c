/* stream_test.c - answers that go on: fast, slow, stalled and vanished readers. */
#include "test.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/sse.h"
#include "http/limits.h"
#include "http_peer.h"

/* Every GET becomes a stream; the test's thread sends through uar_peer_call. */
enum { STREAMS = 2000, FRAMES = 20 };

struct reader {
	struct uar_http_stream *stream; /* NULL: gone */
	size_t sent, busy;
	unsigned writable, closed;
};

static struct uar_peer_server server;
static struct reader readers[STREAMS];
static size_t reader_count;
static uv_sem_t begun, writable, closed;

static uar_err on_head(void *ctx, struct uar_http_request *r, size_t *out_max,
		       struct uar_error *error)
{
	(void)ctx, (void)r, (void)out_max, (void)error;
	return UAR_OK;
}

static void on_writable(void *ctx)
{
	((struct reader *)ctx)->writable++;
	uv_sem_post(&writable);
}

static void on_closed(void *ctx)
{
	struct reader *r = ctx;

	r->stream = NULL;
	r->closed++;
	uv_sem_post(&closed);
}

static void on_request(void *ctx, struct uar_http_request *r)
{
	struct reader *reader = &readers[reader_count];
	struct uar_http_stream_events events = { on_writable, on_closed, reader };
	uar_err e;

	(void)ctx;
	*reader = (struct reader){ 0 };
	e = uar_http_stream_begin(r, "text/event-stream; charset=utf-8", &events, &reader->stream);
	if (e) {
		uar_http_problem(r, e, NULL);
		return;
	}
	reader_count++;
	uv_sem_post(&begun);
}

static void on_gone(void *ctx, struct uar_http_request *r)
{
	(void)ctx, (void)r;
}

static const struct uar_http_options options = {
	.listen = "127.0.0.1:0",
	.handler = { .head = on_head, .request = on_request, .gone = on_gone },
};

static bool start(const struct uar_http_options *o)
{
	reader_count = 0;
	uv_sem_init(&begun, 0);
	uv_sem_init(&writable, 0);
	uv_sem_init(&closed, 0);
	return CHECK(uar_peer_start(&server, o));
}

static void stop(void)
{
	uar_peer_stop(&server);
	uv_sem_destroy(&begun);
	uv_sem_destroy(&writable);
	uv_sem_destroy(&closed);
}

/* Opens a stream and reads its head. */
static bool subscribe(struct uar_peer *p, const char *request)
{
	struct uar_peer_reply r = { 0 };

	if (!CHECK(uar_peer_dial(p, uar_http_address(server.http))) ||
	    !CHECK(uar_peer_say(p, request)) || !CHECK(uar_peer_head(p, &r)))
		return false;
	uv_sem_wait(&begun);
	return CHECK_MSG(r.status == 200 && strstr(r.head, "Cache-Control: no-store\r\n") &&
				 strstr(r.head, "X-Accel-Buffering: no\r\n"),
			 "%s", r.head);
}

static const char get[] = "GET /s HTTP/1.1\r\nHost: a\r\n\r\n";

/* Sends `text` to everybody, once; what is refused is counted. */
static void send_all(void *ctx)
{
	struct uar_frame *f = uar_frame_create(uar_str_c(ctx));

	for (size_t i = 0; i < reader_count; i++) {
		uar_err e =
			readers[i].stream ? uar_http_stream_send(readers[i].stream, f) : UAR_EEOF;

		readers[i].sent += e == UAR_OK;
		readers[i].busy += e == UAR_EBUSY;
	}
	uar_frame_unref(f);
}

static void say(const char *text)
{
	char copy[64];

	snprintf(copy, sizeof copy, "%s", text);
	uar_peer_call(&server, send_all, copy);
}

static void end_all(void *ctx)
{
	(void)ctx;
	for (size_t i = 0; i < reader_count; i++)
		if (readers[i].stream)
			uar_http_stream_end(readers[i].stream);
	reader_count = 0;
}

static void read_stats(void *ctx)
{
	uar_http_stats(server.http, ctx);
}

/* --- the ordinary ------------------------------------------------------------------------ */

TEST(a_stream_ends_properly_and_the_connection_goes_on, "")
{
	struct uar_buf got = uar_buf_make(1000);
	struct uar_http_stats stats;
	struct uar_peer p;

	REQUIRE(start(&options));
	REQUIRE(subscribe(&p, get));
	for (int round = 0; round < 3; round++) {
		struct uar_peer_reply r = { 0 };

		say("one ");
		say(""); /* a frame of nothing must not end the body */
		say("two");
		uar_peer_call(&server, end_all, NULL);
		while (uar_peer_chunk(&p, &got))
			;
		CHECK_STR(uar_buf_str(&got), "one two");
		uar_buf_clear(&got);
		uar_peer_call(&server, read_stats, &stats);
		CHECK(stats.streams == 0 && stats.open == 1);
		uar_peer_say(&p, get);
		REQUIRE(uar_peer_head(&p, &r));
		CHECK(strstr(r.head, "Transfer-Encoding: chunked\r\n"));
		uv_sem_wait(&begun);
	}
	uar_peer_close(&p);
	uv_sem_wait(&closed);
	CHECK_INT(readers[0].closed, 1);
	uar_buf_fini(&got);
	stop();
}

TEST(a_request_sent_during_a_stream_is_served_after_it, "")
{
	struct uar_peer p;
	struct uar_peer_reply r = { 0 };
	struct uar_buf got = uar_buf_make(1000);

	REQUIRE(start(&options));
	REQUIRE(subscribe(&p,
			  "GET /s HTTP/1.1\r\nHost: a\r\n\r\nHEAD /s HTTP/1.1\r\nHost: a\r\n\r\n"));
	say("x");
	uar_peer_call(&server, end_all, NULL);
	while (uar_peer_chunk(&p, &got))
		;
	CHECK_STR(uar_buf_str(&got), "x");
	REQUIRE(uar_peer_reply(&p, true, &r));
	CHECK_INT(r.status, 405); /* HEAD of a stream is the handler's to answer */
	uar_buf_fini(&got);
	uar_peer_close(&p);
	stop();
}

TEST(http10_gets_the_bytes_alone, "")
{
	struct uar_peer p;

	REQUIRE(start(&options));
	REQUIRE(subscribe(&p, "GET /s HTTP/1.0\r\n\r\n"));
	say("plain ");
	say("bytes");
	uar_peer_call(&server, end_all, NULL);
	uar_peer_read_all(&p);
	CHECK_STR(uar_buf_str(&p.in), "plain bytes");
	uar_peer_close(&p);
	stop();
}

TEST(a_client_that_talks_during_a_stream_is_cut, "")
{
	static char noise[UAR_LIMIT_HTTP_STREAM_INPUT + 1];
	struct uar_peer p;

	REQUIRE(start(&options));
	REQUIRE(subscribe(&p, get));
	uar_peer_send(&p, uar_str_n(noise, sizeof noise));
	uv_sem_wait(&closed);
	CHECK(!readers[0].stream && readers[0].closed == 1);
	uar_peer_close(&p);
	stop();
}

/* --- many ---------------------------------------------------------------------------------- */

static struct uar_peer many[STREAMS];

TEST(two_thousand_streams_get_every_frame, "")
{
	struct rlimit files;
	struct uar_http_stats stats;
	size_t wrong = 0;

	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	if (files.rlim_cur < 2 * STREAMS + 100) {
		uar_test_skip("only %lu files may be open", (unsigned long)files.rlim_cur);
		return;
	}
	REQUIRE(start(&options));
	for (size_t i = 0; i < STREAMS; i++)
		REQUIRE(subscribe(&many[i], get));
	for (int f = 0; f < FRAMES; f++) {
		char text[16];

		snprintf(text, sizeof text, "<%d>", f);
		say(text);
	}
	uar_peer_call(&server, read_stats, &stats);
	CHECK_INT(stats.streams, STREAMS);
	uar_peer_call(&server, end_all, NULL);
	for (size_t i = 0; i < STREAMS; i++) {
		struct uar_buf got = uar_buf_make(1000);

		while (uar_peer_chunk(&many[i], &got))
			;
		wrong += !uar_str_eq(uar_buf_str(&got),
				     UAR_STR("<0><1><2><3><4><5><6><7><8><9><10><11><12><13><14>"
					     "<15><16><17><18><19>"));
		uar_buf_fini(&got);
		uar_peer_close(&many[i]);
	}
	CHECK_INT(wrong, 0);
	stop();
}

/* --- slow ----------------------------------------------------------------------------------- */

static char large[32768];

static void fill_until_busy(void *ctx)
{
	struct uar_frame *f = uar_frame_create(uar_str_n(large, sizeof large));
	struct reader *r = &readers[0];

	(void)ctx;
	while (r->stream && !r->busy && r->sent < 10000) {
		uar_err e = uar_http_stream_send(r->stream, f);

		r->sent += e == UAR_OK;
		r->busy += e == UAR_EBUSY;
		if (e && e != UAR_EBUSY)
			break;
	}
	uar_frame_unref(f);
}

TEST(a_slow_reader_is_refused_then_told_that_there_is_room, "")
{
	struct uar_buf got = uar_buf_make(1 << 30);
	struct uar_http_stats stats;
	struct uar_peer p;
	size_t sent;

	memset(large, 'z', sizeof large);
	REQUIRE(start(&options));
	REQUIRE(subscribe(&p, get));
	uar_peer_call(&server, fill_until_busy, NULL);
	CHECK_INT(readers[0].busy, 1);
	sent = readers[0].sent;
	CHECK(sent < 1000);
	/* It reads on: nothing is lost, nothing doubled, and `writable` comes. */
	while (got.n < sent * sizeof large && uar_peer_chunk(&p, &got))
		;
	CHECK_INT(got.n, sent * sizeof large);
	uv_sem_wait(&writable);
	say("more");
	uar_buf_clear(&got);
	CHECK(uar_peer_chunk(&p, &got));
	CHECK_STR(uar_buf_str(&got), "more");
	CHECK_INT(readers[0].writable, 1);
	uar_peer_call(&server, read_stats, &stats);
	CHECK_INT(stats.streams, 1);
	uar_buf_fini(&got);
	uar_peer_close(&p);
	stop();
}

TEST(an_end_behind_a_full_queue_arrives_last, "")
{
	struct uar_buf got = uar_buf_make(1 << 30);
	struct uar_peer p;
	size_t sent;

	REQUIRE(start(&options));
	REQUIRE(subscribe(&p, get));
	uar_peer_call(&server, fill_until_busy, NULL);
	sent = readers[0].sent;
	uar_peer_call(&server, end_all, NULL);
	while (uar_peer_chunk(&p, &got))
		;
	CHECK_INT(got.n, sent * sizeof large);
	CHECK_INT(readers[0].closed, 0);
	uar_buf_fini(&got);
	uar_peer_close(&p);
	stop();
}

TEST(a_stalled_reader_is_cut_and_others_are_not, "")
{
	struct uar_http_options o = options;
	struct uar_buf got = uar_buf_make(1000);
	struct uar_peer stalled, fine;
	struct uar_http_stats stats;

	o.stall_timeout_us = 50000;
	REQUIRE(start(&o));
	REQUIRE(subscribe(&stalled, get));
	uar_peer_call(&server, fill_until_busy, NULL);
	REQUIRE(subscribe(&fine, get));
	uv_sem_wait(&closed);
	CHECK(readers[0].closed == 1 && !readers[0].stream);
	say("still here");
	CHECK(uar_peer_chunk(&fine, &got));
	CHECK_STR(uar_buf_str(&got), "still here");
	uar_peer_call(&server, read_stats, &stats);
	CHECK_INT(stats.streams, 1);
	uar_buf_fini(&got);
	uar_peer_close(&stalled);
	uar_peer_close(&fine);
	stop();
}

/* The answer to a send on a connection that was reset is an error or nothing;
 * either way `closed` follows, once, and not from inside the send. */
static void send_to_reset(void *ctx)
{
	struct uar_frame *f = uar_frame_create(UAR_STR("x"));
	struct reader *r = &readers[0];
	uar_err e = UAR_OK;

	(void)ctx;
	for (int i = 0; i < 1000 && r->stream && !e; i++)
		e = uar_http_stream_send(r->stream, f);
	CHECK(e == UAR_EEOF);
	CHECK(r->stream && uar_http_stream_send(r->stream, f) == UAR_EEOF);
	CHECK_INT(r->closed, 0);
	uar_frame_unref(f);
}

struct reset {
	struct uar_peer *peer;
};

static void reset_then_send(void *ctx)
{
	struct linger hard = { 1, 0 };
	struct reset *r = ctx;

	setsockopt(r->peer->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
	close(r->peer->fd); /* loopback: the reset is there when this returns */
	r->peer->fd = -1;
	send_to_reset(NULL);
}

TEST(sending_to_a_vanished_reader_fails_and_closed_follows, "")
{
	struct uar_peer p;
	struct reset reset = { &p };

	REQUIRE(start(&options));
	REQUIRE(subscribe(&p, get));
	uar_peer_call(&server, reset_then_send, &reset);
	uv_sem_wait(&closed);
	CHECK_INT(readers[0].closed, 1);
	uar_peer_close(&p);
	stop();
}

/* --- ending ------------------------------------------------------------------------------- */

TEST(drain_leaves_streams_to_the_handler, "")
{
	struct uar_buf got = uar_buf_make(1000);
	struct uar_peer p;

	REQUIRE(start(&options));
	REQUIRE(subscribe(&p, get));
	uar_peer_drain(&server);
	say("bye");
	CHECK(uv_sem_trywait(&server.drained) != 0);
	uar_peer_call(&server, end_all, NULL);
	while (uar_peer_chunk(&p, &got))
		;
	CHECK_STR(uar_buf_str(&got), "bye");
	CHECK(uar_peer_at_end(&p));
	uar_peer_close(&p);
	uv_sem_wait(&server.drained);
	uar_buf_fini(&got);
	stop();
}

TEST(destroy_with_open_streams_calls_nobody, "")
{
	struct uar_peer p[3];

	REQUIRE(start(&options));
	for (size_t i = 0; i < ARRAY_LEN(p); i++)
		REQUIRE(subscribe(&p[i], get));
	uar_peer_call(&server, fill_until_busy, NULL);
	uar_peer_stop(&server);
	CHECK(readers[0].closed + readers[1].closed + readers[2].closed == 0);
	for (size_t i = 0; i < ARRAY_LEN(p); i++)
		uar_peer_close(&p[i]);
	uv_sem_destroy(&begun);
	uv_sem_destroy(&writable);
	uv_sem_destroy(&closed);
}

/* --- memory ------------------------------------------------------------------------------- */

static void fail_alloc(void *ctx)
{
	uar_test_fail_alloc(*(unsigned long *)ctx);
}

static void stop_failing(void *ctx)
{
	*(bool *)ctx = uar_test_alloc_failed();
	uar_test_fail_alloc(0);
}

static void fill_and_end(void *ctx)
{
	struct reader *r = &readers[0];
	struct uar_frame *f = uar_frame_create(uar_str_n(large, sizeof large));

	(void)ctx;
	for (int i = 0; f && r->stream && i < 20; i++)
		if (uar_http_stream_send(r->stream, f))
			break;
	uar_frame_unref(f);
	end_all(NULL);
}

/* Each allocation of a slow stream's way fails once: it is whole, or it is cut. */
TEST(a_stream_survives_every_failing_allocation, "")
{
	bool failed = true;
	unsigned long n;

	REQUIRE(start(&options));
	for (n = 1; failed && n < 50; n++) {
		struct uar_buf got = uar_buf_make(1 << 24);
		struct uar_peer p;

		REQUIRE(subscribe(&p, get));
		uar_peer_call(&server, fail_alloc, &n);
		uar_peer_call(&server, fill_and_end, NULL);
		uar_peer_call(&server, stop_failing, &failed);
		while (uar_peer_chunk(&p, &got))
			;
		CHECK(got.n % sizeof large == 0 || failed);
		uar_buf_fini(&got);
		uar_peer_close(&p);
	}
	CHECK_MSG(n > 2 && n < 50, "%lu allocations", n);
	stop();
}
