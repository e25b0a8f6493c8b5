/* client_test.h - calls of tests to a scripted peer on the loopback, and what they heard. */
#ifndef UAR_LOOP_CLIENT_TEST_H
#define UAR_LOOP_CLIENT_TEST_H

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
	int status, status_on_data, status_on_done; /* told; asked for inside the callbacks */
	int64_t retry_after_us;
	char reason[256];
	bool cancel_on_data, pause_on_data, open_on_data, leave_running;
	struct seen *cancel_other;
	void *extra; /* the test's */
};

static inline bool set_up(struct fixture *f, const struct peer_script *scripts, size_t n)
{
	*f = (struct fixture){ .peer = peer_create(scripts, n) };
	snprintf(f->url, sizeof f->url, "http://127.0.0.1:%u/v1/x", peer_port(f->peer));
	leap_init(&f->time);
	return CHECK(uar_loop_create(&f->time.clock, &f->loop) == UAR_OK) &&
	       CHECK(uar_client_create(f->loop, NULL, &f->client) == UAR_OK);
}

static inline void tear_down(struct fixture *f)
{
	uar_client_destroy(f->client);
	uar_loop_destroy(f->loop);
	peer_destroy(f->peer);
}

static inline uar_err on_data(void *ctx, uar_str bytes)
{
	struct seen *s = ctx;

	s->pieces++;
	s->status_on_data = uar_call_status(s->call);
	uar_buf_add_str(&s->data, bytes);
	if (s->open_on_data)
		peer_open_gate(s->f->peer);
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

static inline void on_done(void *ctx, uar_err e, int status, uar_str body, const char *reason)
{
	struct seen *s = ctx;

	s->dones++;
	s->err = e;
	s->status = status;
	s->status_on_done = uar_call_status(s->call);
	s->retry_after_us = uar_call_retry_after_us(s->call);
	uar_buf_add_str(&s->body, body);
	snprintf(s->reason, sizeof s->reason, "%s", reason);
	if (!s->leave_running)
		uar_loop_stop(s->f->loop);
}

static inline struct uar_call_options options(struct fixture *f, struct seen *s)
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

static inline void forget(struct seen *s)
{
	uar_buf_fini(&s->data);
	uar_buf_fini(&s->body);
}

static inline bool call(struct fixture *f, const struct uar_call_options *o, struct seen *s)
{
	struct uar_error error = { 0 };
	uar_err e = uar_client_call(f->client, o, &s->call, &error);

	if (!CHECK_MSG(e == UAR_OK, "%s: %s", uar_err_name(e), uar_error_text(&error)))
		return false;
	CHECK_INT(s->dones + s->pieces, 0); /* never inside the call */
	return true;
}

static inline void run_until_requests(struct fixture *f, unsigned n)
{
	while (peer_counts(f->peer).requests < n) {
		uv_run(uar_loop_uv(f->loop), UV_RUN_NOWAIT);
		sched_yield();
	}
}

#endif
