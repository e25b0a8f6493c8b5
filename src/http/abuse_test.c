/* abuse_test.c - the corpus against a listening server: whatever is refused ends
 * the connection, and the server serves everybody else as before. */
#include <sys/resource.h>

#include "test.h"

#include "http/http_int.h"
#include "http_corpus.h"
#include "http_peer.h"

static struct uar_peer_server server;
static unsigned served_next; /* the server's thread only */

static uar_err on_head(void *ctx, struct uar_http_request *r, size_t *out_max,
		       struct uar_error *error)
{
	(void)ctx, (void)r, (void)error;
	*out_max = 1000;
	return UAR_OK;
}

static void on_request(void *ctx, struct uar_http_request *r)
{
	struct uar_http_response a = { .status = 200, .content_type = "x/y", .body = r->body };

	(void)ctx;
	served_next += uar_str_is(r->path, "/next");
	uar_http_respond(r, &a);
}

static void on_gone(void *ctx, struct uar_http_request *r)
{
	(void)ctx, (void)r;
}

static const struct uar_http_options options = {
	.listen = "127.0.0.1:0",
	.handler = { .head = on_head, .request = on_request, .gone = on_gone },
};

static void read_served(void *ctx)
{
	*(unsigned *)ctx = served_next;
	served_next = 0;
}

static void check_refusal(struct uar_peer *p, const struct http_case *c,
			  struct uar_peer_reply *reply)
{
	char status[32];

	snprintf(status, sizeof status, "\"status\":%d,", c->status);
	CHECK_MSG(reply->status == c->status, "%s: %d instead of %d", c->name, reply->status,
		  c->status);
	CHECK(strstr(reply->head, "Connection: close\r\n"));
	CHECK(strstr(reply->head, "Content-Type: application/problem+json\r\n"));
	CHECK(strstr(reply->body.p, status) && strstr(reply->body.p, "\"code\":\""));
	CHECK_MSG(uar_peer_at_end(p), "%s: not closed after a refusal", c->name);
}

static void check_taken(struct uar_peer *p, const struct http_case *c, struct uar_peer_reply *reply)
{
	CHECK_MSG(reply->status == 200, "%s: %d instead of 200: %.*s", c->name, reply->status,
		  UAR_FMT(uar_buf_str(&reply->body)));
	CHECK_MSG(uar_str_eq(uar_buf_str(&reply->body), c->body), "%s: other body", c->name);
	uar_buf_fini(&reply->body);
	if (!c->closes) {
		CHECK_MSG(uar_peer_reply(p, false, reply), "%s: no second answer", c->name);
		CHECK_INT(reply->status, 200);
	}
	CHECK(uar_peer_at_end(p));
}

static void check_case(void *ctx, const struct http_case *c)
{
	struct uar_peer p;
	struct uar_peer_reply reply = { 0 };
	unsigned next = 0;

	(void)ctx;
	if (!CHECK(uar_peer_dial(&p, uar_http_address(server.http))))
		return;
	/* The server may stop reading before all is sent: that is its right. */
	if (uar_peer_send(&p, c->bytes))
		uar_peer_say(&p, "GET /next HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
	if (CHECK_MSG(uar_peer_reply(&p, false, &reply), "%s: no answer", c->name)) {
		if (c->status == 200)
			check_taken(&p, c, &reply);
		else
			check_refusal(&p, c, &reply);
	}
	uar_peer_call(&server, read_served, &next);
	CHECK_MSG(next == (c->status == 200 && !c->closes), "%s: next was served %u times", c->name,
		  next);
	uar_buf_fini(&reply.body);
	uar_peer_close(&p);
}

TEST(every_case_of_the_corpus_over_a_socket, "")
{
	REQUIRE(uar_peer_start(&server, &options));
	CHECK(uar_test_http_corpus(check_case, NULL) >= 400);
	uar_peer_stop(&server);
}

static void read_stats(void *ctx)
{
	uar_http_stats(server.http, ctx);
}

/* The beginning of each case, then silence: all must be cut by their deadline. */
static struct uar_peer slow[600];
static size_t slow_count;

static void start_slow(void *ctx, const struct http_case *c)
{
	struct uar_peer *p = &slow[slow_count];

	(void)ctx;
	if (slow_count == ARRAY_LEN(slow) || c->bytes.n < 20 || c->status != 200)
		return;
	if (CHECK(uar_peer_dial(p, uar_http_address(server.http)))) {
		uar_peer_send(p, uar_str_n(c->bytes.p, slow_count % 20));
		slow_count++;
	}
}

static void stop_the_clock(void *ctx)
{
	leap_hold(ctx);
}

static void let_the_deadline_pass(void *ctx)
{
	leap_ahead(ctx, uar_loop_sched(server.loop), 11000000);
}

struct seen {
	size_t open, begun; /* connections, and those of which a byte was read */
};

static void read_seen(void *ctx)
{
	struct seen *seen = ctx;

	*seen = (struct seen){ 0 };
	UAR_LIST_EACH (it, &server.http->conns) {
		seen->open++;
		seen->begun += UAR_OWNER(it, struct uar_http_stream, node)->in.n > 0;
	}
}

/* No time passes before the server has seen all that they have to say. */
static void start_all(void)
{
	struct seen seen = { 0 };

	slow_count = 0;
	while (slow_count < ARRAY_LEN(slow))
		uar_test_http_corpus(start_slow, NULL);
	while (seen.open < slow_count || seen.begun < slow_count - slow_count / 20)
		uar_peer_call(&server, read_seen, &seen);
}

TEST(slow_heads_are_cut_and_cost_nobody_else, "")
{
	struct uar_http_stats stats;
	struct uar_peer_reply reply = { 0 };
	struct rlimit files;

	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	if (files.rlim_cur < 2 * ARRAY_LEN(slow) + 100) {
		uar_test_skip("only %lu files may be open", (unsigned long)files.rlim_cur);
		return;
	}
	REQUIRE(uar_peer_start(&server, &options));
	uar_peer_call(&server, stop_the_clock, &server.time);
	start_all();
	uar_peer_call(&server, let_the_deadline_pass, &server.time);
	for (size_t i = 0; i < slow_count; i++) {
		bool silent = i % 20 == 0; /* it never began: no answer to nothing */

		CHECK(uar_peer_reply(&slow[i], false, &reply) == !silent);
		CHECK(silent || reply.status == 408);
		CHECK(uar_peer_at_end(&slow[i]));
		uar_buf_fini(&reply.body);
		uar_peer_close(&slow[i]);
	}
	REQUIRE(uar_peer_dial(&slow[0], uar_http_address(server.http)));
	uar_peer_say(&slow[0], "GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
	CHECK(uar_peer_reply(&slow[0], false, &reply) && reply.status == 200);
	CHECK(uar_peer_at_end(&slow[0]));
	uar_buf_fini(&reply.body);
	uar_peer_close(&slow[0]);
	uar_peer_call(&server, read_stats, &stats);
	CHECK_INT(stats.accepted, slow_count + 1);
	CHECK_INT(stats.requests, 1);
	uar_peer_stop(&server);
}
