/* run_test.c - the life of a run: stream, completion, cancel, races. */
#include "backend/toy_test.h"

#include <poll.h>
#include <pthread.h>
#include <sys/stat.h>

TEST(P02_a_run_is_a_stream_and_a_completion,
     "LIB-01 LIB-04 LIB-19 LIB-20 LIB-21 LIB-24 LIB-33 LIB-38")
{
	struct world w;
	uaa_run *run;
	uaa_event *ev;
	uaa_completion *c = NULL, *again = NULL;
	int code = -1, sig = -1;

	world_init(&w, NULL);
	run = start(&w);
	CHECK(uaa_run_next(run, 0, &ev) == UAA_AGAIN);
	CHECK(uaa_run_wait(run, 0, &c, NULL) == UAA_AGAIN);
	say(&w.fake, "one");
	CHECK(uaa_run_next(run, -1, &ev) == UAA_OK);
	CHECK_STR(uab_str(uaa_event_text(ev)), "one");
	CHECK_STR(uab_str(uaa_event_agent_kind(ev)), "toy");
	uaa_event_unref(ev);
	succeed(&w.fake, 7 << 8);
	CHECK(uaa_run_wait(run, 0, &c, NULL) == UAA_AGAIN); /* the end was not received */
	CHECK(uaa_run_next(run, -1, &ev) == UAA_EOS);
	CHECK(uaa_run_wait(run, -1, &c, NULL) == UAA_OK);
	CHECK(uaa_run_wait(run, 0, &again, NULL) == UAA_OK);
	CHECK(c == again);
	CHECK(uaa_completion_exited(c, &code) && code == 7 && !uaa_completion_signaled(c, &sig));
	CHECK_STR(uab_str(uaa_completion_final_text(c)), "bye");
	CHECK(!uaa_completion_data_json(c).ptr);
	CHECK(uaa_run_next(run, -1, &ev) == UAA_EOS);
	uaa_completion_unref(c);
	uaa_completion_unref(again);
	uaa_run_unref(run);
	CHECK_INT(w.fake.cancels, 0);
	world_fini(&w);
}

TEST(P15_signals_are_told_apart, "LIB-20")
{
	struct world w;
	uaa_run *run;
	uaa_run_result r = { 0 };
	int sig = 0;

	world_init(&w, NULL);
	run = start(&w);
	succeed(&w.fake, 9);
	CHECK(uaa_run_collect(run, NULL, NULL, &r, NULL) == UAA_OK);
	CHECK(uaa_completion_signaled(r.completion, &sig) && sig == 9);
	CHECK(!uaa_completion_exited(r.completion, NULL));
	uaa_completion_unref(r.completion);
	uaa_run_unref(run);
	world_fini(&w);
}

TEST(P07_completion_waits_for_every_event, "LIB-10 LIB-11")
{
	struct world w;
	uaa_run *run;
	uaa_event *ev;

	world_init(&w, NULL);
	run = start(&w);
	for (int i = 0; i < 10; i++)
		say(&w.fake, "x");
	succeed(&w.fake, 0);
	for (int i = 0; i < 10; i++) {
		CHECK(uaa_run_wait(run, 0, NULL, NULL) == UAA_AGAIN);
		CHECK(uaa_run_next(run, 0, &ev) == UAA_OK);
		uaa_event_unref(ev);
	}
	CHECK(uaa_run_wait(run, 1, NULL, NULL) == UAA_AGAIN);
	CHECK(uaa_run_next(run, 0, &ev) == UAA_EOS);
	CHECK(uaa_run_wait(run, 0, NULL, NULL) == UAA_OK);
	CHECK(uaa_run_next(run, 0, &ev) == UAA_EOS);
	uaa_run_unref(run);
	world_fini(&w);
}

static void say_number(struct world *w, int i)
{
	char text[32];

	snprintf(text, sizeof text, "%d", i);
	say(&w->fake, text);
}

static bool next_is(uaa_run *run, int i)
{
	char text[32];
	uaa_event *ev;

	snprintf(text, sizeof text, "%d", i);
	if (uaa_run_next(run, 0, &ev) != UAA_OK)
		return false;
	if (!uar_str_is(uab_str(uaa_event_text(ev)), text))
		CHECK_STR(uab_str(uaa_event_text(ev)), text);
	uaa_event_unref(ev);
	return true;
}

TEST(P05_buffered_events_keep_their_order, "LIB-07 LIB-08 LIB-12")
{
	enum { N = 100000 };
	struct world w;
	uaa_run *run;
	int i, read = 0;

	world_init(&w, NULL);
	run = start(&w);
	for (i = 0; i < N; i++) { /* far more than fits in memory */
		say_number(&w, i);
		if (i > N / 2 && i % 2) /* a reader who comes late and stays behind */
			read += next_is(run, read);
	}
	CHECK_INT(read, N / 4);
	succeed(&w.fake, 0);
	while (next_is(run, read))
		read++;
	CHECK_INT(read, N);
	CHECK(uaa_run_wait(run, 0, NULL, NULL) == UAA_OK);
	uaa_run_unref(run);
	world_fini(&w);
}

TEST(what_was_read_from_the_file_is_given_back, "")
{
	static char big[60000];
	struct world w;
	uaa_run *run;
	uaa_event *ev;
	struct stat st;

	world_init(&w, NULL);
	run = start(&w);
	memset(big, 'x', sizeof big - 1);
	for (int i = 0; i < 2000; i++) { /* 120 MB through a reader always 100 events behind */
		say(&w.fake, big);
		if (i < 100)
			continue;
		CHECK(uaa_run_next(run, 0, &ev) == UAA_OK);
		uaa_event_unref(ev);
	}
	CHECK(run->q.fd >= 0 && fstat(run->q.fd, &st) == 0);
	CHECK_MSG(st.st_blocks * 512 < 40000000, "the file holds %lld bytes",
		  (long long)st.st_blocks * 512);
	succeed(&w.fake, 0);
	CHECK(uaa_run_collect(run, NULL, NULL, NULL, NULL) == UAA_OK);
	uaa_run_unref(run);
	world_fini(&w);
}

TEST(close_events_opts_out, "LIB-10")
{
	struct world w;
	uaa_run *run;

	world_init(&w, NULL);
	run = start(&w);
	say(&w.fake, "x");
	uaa_run_close_events(run);
	uaa_run_close_events(run);
	CHECK_INT(w.fake.closes, 1);
	CHECK(uaa_run_wait(run, 0, NULL, NULL) == UAA_AGAIN); /* the process lives */
	succeed(&w.fake, 0);
	CHECK(uaa_run_wait(run, 0, NULL, NULL) == UAA_OK);
	uaa_run_unref(run);
	CHECK_INT(w.fake.cancels, 0);
	world_fini(&w);
}

static bool readable(uaa_run *run)
{
	struct pollfd p = { .fd = uaa_run_fd(run), .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

TEST(the_descriptor_says_when_to_read, "")
{
	struct world w;
	uaa_run *run;
	uaa_event *ev;

	world_init(&w, NULL);
	run = start(&w);
	CHECK(!readable(run));
	for (int i = 0; i < 4; i++)
		say(&w.fake, "x");
	for (int i = 0; i < 4; i++) {
		CHECK(readable(run));
		CHECK(uaa_run_next(run, 0, &ev) == UAA_OK);
		uaa_event_unref(ev);
	}
	CHECK(!readable(run));
	uab_cancel(run);
	CHECK(readable(run)); /* the end is there to be received */
	CHECK(uaa_run_next(run, 0, &ev) == UAA_EOS);
	CHECK(!readable(run)); /* the process is not gone yet */
	succeed(&w.fake, 0);
	CHECK(readable(run));
	CHECK(uaa_run_wait(run, 0, NULL, NULL) == UAA_E_BACKEND);
	uaa_run_unref(run);
	world_fini(&w);
}

static uaa_controlled_run control(struct world *w)
{
	uaa_controlled_run c = { 0 };

	world_init(w, "agent_api.control.cancel.v1");
	CHECK(uaa_gateway_run_control(w->gw, w->kind, w->req, &c, NULL) == UAA_OK);
	return c;
}

static void end(struct world *w, uaa_controlled_run *c)
{
	uaa_run_unref(c->run);
	uaa_cancel_unref(c->cancel);
	world_fini(w);
}

static void check_cancelled(uaa_run *run)
{
	uaa_error *e = NULL;

	CHECK(uaa_run_wait(run, 0, NULL, &e) == UAA_E_BACKEND);
	CHECK_STR(uab_str(uaa_error_display(e)), "backend error: cancelled");
	CHECK_INT(uaa_error_cause(e), UAA_CAUSE_CANCELLED);
	uaa_error_unref(e);
}

TEST(K01_K03_K04_K05_cancel, "LIB-14")
{
	struct world w;
	uaa_controlled_run c = control(&w);
	uaa_event *ev;

	say(&w.fake, "lost");
	uaa_cancel_request(c.cancel);
	uaa_cancel_request(c.cancel);
	CHECK_INT(w.fake.cancels, 1);
	say(&w.fake, "late");
	CHECK(uaa_run_next(c.run, 0, &ev) == UAA_EOS);
	CHECK(uaa_run_wait(c.run, 0, NULL, NULL) == UAA_AGAIN);
	succeed(&w.fake, 0); /* success after cancel is still cancelled */
	check_cancelled(c.run);
	uaa_cancel_request(c.cancel);
	CHECK_INT(w.fake.cancels, 1);
	check_cancelled(c.run);
	end(&w, &c);
}

/* Wherever they wait: at the reader, in memory or in the file. */
TEST(K03_buffered_events_are_dropped, "LIB-14")
{
	static char big[60000];

	memset(big, 'x', sizeof big - 1);
	for (int read = 0; read <= 3; read++) {
		struct world w;
		uaa_controlled_run c = control(&w);
		uaa_event *ev;

		for (int i = 0; i < 10; i++)
			say(&w.fake, "few");
		for (int i = 0; i < read; i++) {
			CHECK(uaa_run_next(c.run, 0, &ev) == UAA_OK);
			uaa_event_unref(ev);
		}
		for (int i = 0; i < 40; i++)
			say(&w.fake, big);
		CHECK(c.run->q.spilled > 0);
		uaa_cancel_request(c.cancel);
		for (int i = 0; i < 40; i++)
			say(&w.fake, big);
		CHECK(uaa_run_next(c.run, 0, &ev) == UAA_EOS);
		succeed(&w.fake, 0);
		CHECK(uaa_run_next(c.run, 0, &ev) == UAA_EOS);
		check_cancelled(c.run);
		end(&w, &c);
	}
}

/* A failure after the cancel, and an end that nobody has seen yet, both lose to it. */
TEST(K04_cancelled_wins, "LIB-14")
{
	for (int before = 0; before < 2; before++)
		for (int ok = 0; ok < 2; ok++) {
			struct world w;
			uaa_controlled_run c = control(&w);
			uaa_event *ev;

			if (!before)
				uaa_cancel_request(c.cancel);
			if (ok) {
				succeed(&w.fake, 0);
			} else {
				uaa_producer_fail(w.fake.producer, UAB_STR("broken"));
				uaa_producer_unref(w.fake.producer);
			}
			if (before)
				uaa_cancel_request(c.cancel);
			CHECK(uaa_run_next(c.run, 0, &ev) == UAA_EOS);
			check_cancelled(c.run);
			end(&w, &c);
		}
}

TEST(a_backend_may_say_why_it_failed, "")
{
	static const uaa_cause causes[] = { UAA_CAUSE_UNKNOWN, UAA_CAUSE_RATE };

	for (size_t i = 0; i < ARRAY_LEN(causes); i++) {
		struct world w;
		uaa_controlled_run c = control(&w);
		uaa_error *e = NULL;
		uaa_event *ev;

		uaa_producer_fail_as(w.fake.producer, causes[i], UAB_STR("slow down"));
		uaa_producer_unref(w.fake.producer);
		CHECK(uaa_run_next(c.run, 0, &ev) == UAA_EOS);
		CHECK(uaa_run_wait(c.run, 0, NULL, &e) == UAA_E_BACKEND);
		CHECK_INT(uaa_error_cause(e), causes[i]);
		CHECK_STR(uab_str(uaa_error_message(e)), "slow down");
		uaa_error_unref(e);
		end(&w, &c);
	}
}

TEST(K02_cancel_outlives_the_handle, "")
{
	struct world w;
	uaa_controlled_run c = control(&w);
	uaa_cancel *second;

	uaa_run_close_events(c.run); /* without the events it still stops the run */
	CHECK_INT(w.fake.cancels, 0);
	uaa_cancel_request(c.cancel);
	CHECK_INT(w.fake.cancels, 1);
	succeed(&w.fake, 0);
	check_cancelled(c.run);
	end(&w, &c);

	c = control(&w);
	uaa_run_unref(c.run);
	uaa_cancel_request(c.cancel);
	CHECK_INT(w.fake.cancels, 1);
	second = uaa_cancel_ref(c.cancel);
	CHECK_INT(c.cancel->run->refs, 3); /* the producer and two handles hold it */
	succeed(&w.fake, 0);
	CHECK_INT(c.cancel->run->refs, 2);
	uaa_cancel_request(c.cancel);
	uaa_cancel_unref(c.cancel);
	uaa_cancel_request(second);
	uaa_cancel_unref(second);
	world_fini(&w);
}

TEST(cancel_after_resolution_changes_nothing, "LIB-19")
{
	struct world w;
	uaa_controlled_run c = { 0 };

	world_init(&w, "agent_api.control.cancel.v1");
	CHECK(uaa_gateway_run_control(w.gw, w.kind, w.req, &c, NULL) == UAA_OK);
	succeed(&w.fake, 0);
	CHECK(uaa_run_collect(c.run, NULL, NULL, NULL, NULL) == UAA_OK);
	uaa_cancel_request(c.cancel);
	CHECK(uaa_run_wait(c.run, 0, NULL, NULL) == UAA_OK);
	CHECK_INT(w.fake.cancels, 0);
	uaa_cancel_unref(c.cancel);
	uaa_run_unref(c.run);
	world_fini(&w);
}

TEST(P09_drop_is_a_hint, "LIB-14")
{
	struct world w;
	uaa_run *run;

	world_init(&w, NULL);
	run = start(&w);
	say(&w.fake, "x");
	uaa_run_unref(run);
	CHECK_INT(w.fake.cancels, 1);
	say(&w.fake, "nobody hears");
	succeed(&w.fake, 0);
	world_fini(&w);
}

TEST(P10_termination_failure_beats_cancelled, "LIB-16")
{
	struct world w;
	uaa_run *run;
	uaa_error *e = NULL;

	world_init(&w, NULL);
	run = start(&w);
	uab_cancel(run);
	uab_producer_fail(w.fake.producer,
			  uab_error_caused(UAA_CAUSE_TERMINATION, UAB_STR("termination failed")),
			  true);
	uaa_producer_unref(w.fake.producer);
	CHECK(uaa_run_collect(run, NULL, NULL, NULL, &e) == UAA_E_BACKEND);
	CHECK_STR(uab_str(uaa_error_message(e)), "termination failed");
	uaa_error_unref(e);
	uaa_run_unref(run);
	world_fini(&w);
}

TEST(a_forgotten_producer_fails_the_run, "")
{
	struct world w;
	uaa_run *run;
	uaa_error *e = NULL;

	world_init(&w, NULL);
	run = start(&w);
	uaa_producer_unref(w.fake.producer);
	CHECK(uaa_run_collect(run, NULL, NULL, NULL, &e) == UAA_E_BACKEND);
	CHECK_STR(uab_str(uaa_error_message(e)), "completion channel dropped");
	uaa_error_unref(e);
	uaa_run_unref(run);
	world_fini(&w);
}

/* --- threads --- */

struct racer {
	uaa_run *run;
	struct fake *fake;
	uaa_status status;
	void *value;
};

static void *racing_waiter(void *arg)
{
	struct racer *r = arg;
	uaa_completion *c = NULL;
	uaa_error *e = NULL;

	r->status = uaa_run_wait(r->run, -1, &c, &e);
	r->value = c ? (void *)c : (void *)e;
	uaa_completion_unref(c);
	uaa_error_unref(e);
	return NULL;
}

static void *racing_producer(void *arg)
{
	struct racer *r = arg;

	say(r->fake, "x");
	succeed(r->fake, 0);
	return NULL;
}

static void *racing_cancel(void *arg)
{
	uab_cancel(((struct racer *)arg)->run);
	return NULL;
}

static int rounds(int usual)
{
	const char *n = getenv("AGENT_API_ROUNDS");
	uint64_t v;

	return n && uar_str_u64(uar_str_c(n), &v) == UAR_OK ? (int)v : usual;
}

TEST(P14_cancel_races_exit_and_resolves_once, "LIB-19 LIB-31 LIB-35")
{
	int n = rounds(10000), ok = 0, cancelled = 0;
	struct world w;

	world_init(&w, NULL);
	for (int i = 0; i < n; i++) {
		uaa_run *run = start(&w);
		struct racer a = { run, &w.fake, 0, NULL }, b = a, c = a;
		pthread_t t[4];
		uaa_event *ev;

		pthread_create(&t[0], NULL, racing_waiter, &a);
		pthread_create(&t[1], NULL, racing_waiter, &b);
		pthread_create(&t[2], NULL, racing_producer, &c);
		pthread_create(&t[3], NULL, racing_cancel, &c);
		while (uaa_run_next(run, -1, &ev) == UAA_OK)
			uaa_event_unref(ev);
		for (int k = 0; k < 4; k++)
			pthread_join(t[k], NULL);
		if (a.status != b.status || a.value != b.value)
			uar_test_fail(__FILE__, __LINE__, "two waiters, two results");
		ok += a.status == UAA_OK;
		cancelled += a.status == UAA_E_BACKEND;
		uaa_run_unref(run);
	}
	CHECK_INT(ok + cancelled, n);
	world_fini(&w);
}

TEST(nothing_leaks_when_memory_is_short, "")
{
	for (unsigned long n = 1; n < 60; n++) {
		struct fake f = { .kind = "toy" };
		uaa_gateway *gw = NULL;
		uaa_backend *b = NULL;
		uaa_request *r = NULL;
		uaa_run *run = NULL;
		uaa_error *e = NULL;

		uar_test_fail_alloc(n);
		f.caps = uaa_caps_new();
		if (f.caps) {
			uaa_caps_add(f.caps, uaa_str_c("agent_api.run"));
			uaa_caps_add(f.caps, uaa_str_c("agent_api.events"));
			b = uaa_backend_new(&fake_ops, &f);
		}
		gw = uaa_gateway_new();
		r = uaa_request_new();
		if (r)
			uaa_request_set_prompt(r, uaa_str_c("x"));
		if (b && gw)
			uaa_gateway_register(gw, b, &e);
		uaa_error_unref(e);
		e = NULL;
		if (b && r && uaa_backend_run(b, r, &run, &e) == UAA_OK) {
			say(&f, "x");
			succeed(&f, 0);
			uaa_run_collect(run, NULL, NULL, NULL, NULL);
		}
		uar_test_fail_alloc(0);
		uaa_error_unref(e);
		uaa_run_unref(run);
		uaa_request_unref(r);
		uaa_backend_unref(b);
		uaa_gateway_unref(gw);
		uaa_caps_unref(f.caps);
	}
}
