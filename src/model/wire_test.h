/* wire_test.h - calls of tests to a scripted provider on the loopback, and how they must end. */
#ifndef UAR_MODEL_WIRE_TEST_H
#define UAR_MODEL_WIRE_TEST_H

#include "test.h"
#include "heard.h"
#include "leap.h"
#include "model_talk.h"
#include "peer.h"

#include "loop/client.h"
#include "model/reply_int.h"

#define KEY "sk-test-0123456789abcdef"

#define HEAD	 "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
#define ERROR(S) "HTTP/1.1 " S "\r\nConnection: close\r\nContent-Type: application/json\r\n\r\n"

struct fixture {
	struct leap time;
	struct uar_loop *loop;
	struct uar_client *client;
	struct uar_model *model;
	struct peer *peer;
};

static inline bool set_up_dialect(struct fixture *f, enum uar_model_dialect dialect,
				  const struct peer_script *scripts, size_t n)
{
	struct uar_model_wire_options o = { .dialect = dialect,
					    .provider = "openai",
					    .api_key = KEY };
	struct uar_error error;
	char url[64];

	*f = (struct fixture){ .peer = peer_create(scripts, n) };
	snprintf(url, sizeof url, "http://127.0.0.1:%u/v1/", peer_port(f->peer));
	o.base_url = url;
	leap_init(&f->time);
	if (!CHECK(uar_loop_create(&f->time.clock, &f->loop) == UAR_OK) ||
	    !CHECK(uar_client_create(f->loop, NULL, &f->client) == UAR_OK))
		return false;
	o.client = f->client;
	return CHECK(uar_model_wire_create(&o, &f->model, &error) == UAR_OK);
}

static inline void tear_down(struct fixture *f)
{
	uar_model_destroy(f->model);
	uar_client_destroy(f->client);
	uar_loop_destroy(f->loop);
	if (f->peer)
		peer_destroy(f->peer);
}

/* --- what a provider may do --------------------------------------------------------- */

struct want {
	const char *text, *reasoning;
	enum uar_model_failure failure;
	bool retryable;
	int status;
	const char *message; /* a part of it */
	const char *calls;   /* "ID NAME ARGUMENTS" a line; NULL: none */
	const char *parts;   /* "KIND NAME TEXT" a line; NULL: none is to be kept */
};

#define GOOD(T)                                                                                    \
	{                                                                                          \
		T, "", UAR_MODEL_FAIL_NONE, false, 200, "", NULL, NULL                             \
	}
#define BAD(T, F, R, S, M)                                                                         \
	{                                                                                          \
		T, "", UAR_MODEL_FAIL_##F, R, S, M, NULL, NULL                                     \
	}

#define THINKS(T, R)                                                                               \
	{                                                                                          \
		T, R, UAR_MODEL_FAIL_NONE, false, 200, "", NULL, NULL                              \
	}
#define ASKS(T, CALLS)                                                                             \
	{                                                                                          \
		T, "", UAR_MODEL_FAIL_NONE, false, 200, "", CALLS, NULL                            \
	}
/* Parts that are to be given back: TEXT, REASONING, calls, parts. */
#define KEEPS(T, R, CALLS, PARTS)                                                                  \
	{                                                                                          \
		T, R, UAR_MODEL_FAIL_NONE, false, 200, "", CALLS, PARTS                            \
	}
#define PLAY(...)                                                                                  \
	{                                                                                          \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}
#define SAY(BYTES)	 PLAY({ PEER_SEND, BYTES, 0 }, { PEER_CLOSE, NULL, 0 })
#define SAY_STALL(BYTES) PLAY({ PEER_SEND, BYTES, 0 }, { PEER_STALL, NULL, 0 })
#define SAY_RESET(BYTES) PLAY({ PEER_SEND, BYTES, 0 }, { PEER_RESET, NULL, 0 })
#define MUTE(OP)	 PLAY({ OP, NULL, 0 })

struct provider_case {
	const char *name;
	struct peer_script script;
	struct want want;
	bool waits; /* a minute passes once its text is there */
};

static inline void check_want(const struct heard *s, const char *name, const struct want *w)
{
	uar_str message = uar_buf_str(&s->message);

	CHECK_MSG(s->dones == 1, "%s: done %u times", name, s->dones);
	CHECK_MSG(s->result.failure == w->failure, "%s: %s, %.*s", name,
		  uar_model_failure_name(s->result.failure), UAR_FMT(message));
	CHECK_MSG(s->result.retryable == w->retryable, "%s: retryable %d", name,
		  s->result.retryable);
	CHECK_MSG(s->result.http_status == w->status, "%s: status %d", name, s->result.http_status);
	CHECK_MSG(strstr(message.p, w->message) != NULL, "%s: message %s", name, message.p);
	CHECK_MSG(strstr(message.p, KEY) == NULL, "%s: the key is shown", name);
	CHECK_MSG((s->result.failure == UAR_MODEL_FAIL_NONE) == (s->stop[0] != 0),
		  "%s: stop \"%s\"", name, s->stop);
	CHECK_MSG(!w->calls || strcmp(s->stop, "tool_calls") == 0, "%s: stop \"%s\"", name,
		  s->stop);
	if (!CHECK_STR(uar_buf_str(&s->text), w->text) ||
	    !CHECK_STR(uar_buf_str(&s->calls), w->calls ? w->calls : "") ||
	    !CHECK_STR(uar_buf_str(&s->parts), w->parts ? w->parts : "") ||
	    !CHECK_STR(uar_buf_str(&s->reasoning), w->reasoning))
		printf("  in %s\n", name);
}

/* A minute in which the peer says nothing. The clock stands still until the text is
 * what it is to be, or, where there is none, until the peer has read the request. */
struct minute {
	struct uar_task task;
	struct fixture *f;
};

static inline void on_minute(struct uar_task *t)
{
	struct minute *m = UAR_OWNER(t, struct minute, task);

	leap_ahead(&m->f->time, uar_loop_sched(m->f->loop), 61000000);
}

static inline void run_with_a_minute(struct fixture *f, struct heard *s, const char *after)
{
	struct minute minute = { .task.fn = on_minute, .f = f };

	leap_hold(&f->time);
	if (*after) {
		s->awaited = after;
		s->then = &minute.task;
	}
	if (!heard_hello(s, "m", 0))
		return;
	if (!*after) {
		peer_wait(f->peer, (struct peer_counts){ .stalled = 1 });
		on_minute(&minute.task);
	}
	uar_loop_run(f->loop);
}

/* Every case ends as it says, with one `done`. */
static inline void run_cases(enum uar_model_dialect dialect, const struct provider_case *cases,
			     size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct fixture f;
		struct heard s;

		REQUIRE(set_up_dialect(&f, dialect, &cases[i].script, 1));
		heard_init(&s, f.model, f.loop);
		if (cases[i].waits)
			run_with_a_minute(&f, &s, cases[i].want.text);
		else if (heard_hello(&s, "m", 0))
			uar_loop_run(f.loop);
		check_want(&s, cases[i].name, &cases[i].want);
		heard_fini(&s);
		tear_down(&f);
	}
}

/* With the nth allocation failing, for each n, a call that began ends once. */
static inline void check_out_of_memory(enum uar_model_dialect dialect,
				       const struct peer_script *script)
{
	const struct uar_model_message hello = SAYS(USER, "Hello");
	struct uar_model_request r = { .model = UAR_STR("m"),
				       .messages = &hello,
				       .message_count = 1,
				       .idle_timeout_us = 200000 };
	bool failed = true;

	for (unsigned long n = 1; failed && n < 200; n++) {
		struct fixture f;
		struct heard s;
		uar_err e;

		REQUIRE(set_up_dialect(&f, dialect, script, 1));
		heard_init(&s, f.model, f.loop);
		uar_buf_reserve(&s.text, 100);
		uar_buf_reserve(&s.reasoning, 100);
		uar_buf_reserve(&s.message, 400);
		uar_buf_reserve(&s.calls, 400);
		uar_buf_reserve(&s.parts, 1000);
		uar_test_fail_alloc(n);
		e = heard_start(&s, &r);
		CHECK(e == UAR_OK || e == UAR_ENOMEM);
		if (e == UAR_OK)
			uar_loop_run(f.loop);
		tear_down(&f); /* first: its thread allocates too */
		failed = uar_test_alloc_failed();
		uar_test_fail_alloc(0);
		CHECK_INT(s.dones, e == UAR_OK);
		CHECK(failed || s.result.failure == UAR_MODEL_FAIL_NONE);
		heard_fini(&s);
	}
	CHECK(!failed);
}

#endif
