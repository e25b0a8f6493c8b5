/* sweep_test.c - what only evicted runs refer to goes, everything else stays. */
#include "store/world_test.h"

#include <unistd.h>

static const char *dir;

static void open_dir(struct world *w)
{
	struct uar_store_options o = { .sched = &w->pump.sched, .dir = dir };
	struct uar_error error = { 0 };

	w->sqlite = true;
	REQUIRE(uar_store_sqlite_create(&o, &w->store, &error) == UAR_OK);
}

static void begin_world(struct world *w)
{
	dir = uar_test_dir();
	uar_pump_init(&w->pump);
	open_dir(w);
}

static void shut(struct world *w)
{
	uar_facts_drain(&w->pump, w->store);
	uar_store_destroy(w->store);
}

static void next_life(struct world *w)
{
	shut(w);
	open_dir(w);
}

static void put(struct world *w, const char *text, char out_sha256[65])
{
	struct uar_blob_put p = { .bytes = uar_str_c(text) };

	CHECK_INT(uar_facts_put(&w->pump, w->store, &p), UAR_OK);
	memcpy(out_sha256, p.sha256, 65);
}

static const char *blob_path(const char sha256[65])
{
	static char path[600];

	snprintf(path, sizeof path, "%s/blobs/%.2s/%s", dir, sha256, sha256 + 2);
	return path;
}

static bool there(const char sha256[65])
{
	return access(blob_path(sha256), F_OK) == 0;
}

/* The run says something that refers to the blob, and ends or goes on. */
static void say(struct world *w, struct uar_facts *f, const char sha256[65], bool ends)
{
	struct uar_run_row row = uar_facts_row(f, "completed", true);
	struct one o;
	char refs[128];

	one_delta(f, &o);
	snprintf(refs, sizeof refs, "{\"text_ref\":\"blob://%s\"}", sha256);
	o.ev.refs = uar_str_c(refs);
	o.a.run = ends ? &row : NULL;
	CHECK_INT(uar_facts_append(&w->pump, w->store, &o.a), UAR_OK);
}

/* A run whose question is a blob. */
static void ask(struct world *w, struct uar_facts *f, uint64_t number, const char sha256[65])
{
	struct uar_event ev[3];
	struct uar_run_row row;
	struct uar_append a = { .events = ev, .run = &row };
	char refs[128];

	uar_facts_init(f, w->store, number);
	a.owner = f->owner;
	a.session_id = uar_str_c(f->session);
	row = uar_facts_row(f, "running", false);
	a.event_count = uar_facts_opening(f, ev);
	snprintf(refs, sizeof refs, "{\"input_ref\":\"blob://%s\"}", sha256);
	CHECK_INT(ev[2].cls, UAR_EV_TURN_SUBMITTED);
	ev[2].refs = uar_str_c(refs);
	CHECK_INT(uar_facts_append(&w->pump, w->store, &a), UAR_OK);
}

static void evict(struct world *w, const struct uar_facts *f)
{
	static uint64_t sessions = 100;
	struct uar_event ev[3];
	struct uar_facts log;
	uar_str id = uar_str_c(f->run);
	struct uar_append a = { .events = ev, .event_count = 1, .evict = &id, .evict_count = 1 };

	uar_facts_init(&log, w->store, sessions++);
	a.owner = log.owner;
	a.session_id = uar_str_c(log.session);
	uar_facts_opening(&log, ev);
	CHECK_INT(uar_facts_append(&w->pump, w->store, &a), UAR_OK);
	uar_facts_fini(&log);
}

struct sweep {
	struct uar_sweep op;
	bool done;
};

static void stepped(struct uar_sweep *op)
{
	UAR_OWNER(op, struct sweep, op)->done = true;
}

static bool step(struct world *w, struct sweep *s)
{
	s->done = false;
	s->op.done = stepped;
	CHECK_INT(w->store->ops->sweep(w->store, &s->op), UAR_OK);
	uar_pump_until(&w->pump, &s->done);
	CHECK_INT(s->op.err, UAR_OK);
	return s->op.more;
}

static uint64_t sweep(struct world *w)
{
	struct sweep s = { .done = false };

	while (step(w, &s))
		;
	return s.op.removed;
}

static void bad(void *ctx, const char *what)
{
	(void)ctx;
	printf("  %s\n", what);
}

/* Nobody may take it: the check misses it. */
static void check_missed(const char sha256[65])
{
	CHECK_INT(uar_store_sqlite_verify(dir, bad, NULL, NULL), UAR_OK);
	CHECK_INT(unlink(blob_path(sha256)), 0);
	CHECK_INT(uar_store_sqlite_verify(dir, bad, NULL, NULL), UAR_ECORRUPT);
}

struct scene {
	struct uar_facts gone, stays;
	char question[65], own[65], shared[65], other[65];
};

/* A run that is evicted and one that is not, with blobs of their own and one of both. */
static void set_scene(struct world *w, struct scene *s)
{
	put(w, "question", s->question);
	put(w, "own", s->own);
	put(w, "shared", s->shared);
	put(w, "other", s->other);
	ask(w, &s->gone, 1, s->question);
	say(w, &s->gone, s->own, false);
	say(w, &s->gone, s->shared, true);
	CHECK_INT(begin(w, &s->stays, 2), UAR_OK);
	say(w, &s->stays, s->shared, false);
	say(w, &s->stays, s->other, true);
}

static void check_scene(const struct scene *s, bool swept)
{
	CHECK(there(s->question) && there(s->shared) && there(s->other));
	CHECK_INT(there(s->own), !swept);
	CHECK_INT(uar_store_sqlite_verify(dir, bad, NULL, NULL), UAR_OK);
}

static void leave(struct world *w, struct scene *s)
{
	uar_facts_fini(&s->gone);
	uar_facts_fini(&s->stays);
	uar_pump_fini(&w->pump);
}

TEST(what_only_evicted_runs_refer_to_is_unlinked, "RUN-48 RUN-52")
{
	struct scene s;
	struct world w;

	begin_world(&w);
	set_scene(&w, &s);
	next_life(&w);
	CHECK_INT(sweep(&w), 0);
	evict(&w, &s.gone);
	CHECK(there(s.own));
	next_life(&w);
	CHECK_INT(sweep(&w), 1);
	next_life(&w);
	CHECK_INT(sweep(&w), 0);
	/* Then the other one. */
	evict(&w, &s.stays);
	next_life(&w);
	CHECK_INT(sweep(&w), 2);
	CHECK(there(s.question) && !there(s.shared) && !there(s.other));
	shut(&w);
	check_missed(s.question);
	leave(&w, &s);
}

/* The start after the first of the two runs was evicted. */
static void begin_evicted(struct world *w, struct scene *s)
{
	begin_world(w);
	set_scene(w, s);
	evict(w, &s->gone);
	next_life(w);
}

TEST(a_sweep_that_is_cut_off_is_begun_again, "RUN-52")
{
	for (int steps = 0; steps < 5; steps++) {
		struct sweep cut = { .done = false };
		struct scene s;
		struct world w;

		begin_evicted(&w, &s);
		for (int i = 0; i < steps; i++)
			if (!step(&w, &cut))
				break;
		uar_store_destroy(w.store); /* as it is */
		open_dir(&w);
		CHECK_INT(sweep(&w) + cut.op.removed, 1);
		shut(&w);
		check_scene(&s, true);
		leave(&w, &s);
	}
}

/* It is found, so it is not written again: it must not go before its event comes. */
TEST(a_blob_that_is_put_during_a_sweep_stays, "RUN-52")
{
	for (int steps = 1; steps < 3; steps++) {
		struct sweep late = { .done = false };
		struct uar_facts f;
		struct scene s;
		struct world w;

		begin_evicted(&w, &s);
		for (int i = 0; i < steps; i++)
			CHECK(step(&w, &late));
		put(&w, "own", s.own);
		while (step(&w, &late))
			;
		CHECK_INT(late.op.removed, 0);
		CHECK_INT(begin(&w, &f, 3), UAR_OK);
		say(&w, &f, s.own, true);
		next_life(&w);
		CHECK_INT(sweep(&w), 0);
		evict(&w, &f);
		next_life(&w);
		CHECK_INT(sweep(&w), 1);
		shut(&w);
		check_scene(&s, true);
		uar_facts_fini(&f);
		leave(&w, &s);
	}
}

/* In one row with the run's own events, and still nobody's. */
TEST(what_an_event_beside_the_run_refers_to_stays, "RUN-52")
{
	char beside[65], own[65], refs[2][128];
	struct uar_run_row row;
	struct uar_event ev[2];
	struct uar_facts f;
	struct world w;

	begin_world(&w);
	put(&w, "beside", beside);
	put(&w, "own", own);
	CHECK_INT(begin(&w, &f, 1), UAR_OK);
	row = uar_facts_row(&f, "completed", true);
	struct uar_append a = { .owner = f.owner,
				.session_id = uar_str_c(f.session),
				.after = f.seq,
				.events = ev,
				.event_count = 2,
				.run = &row };
	ev[0] = uar_facts_delta(&f, "beside");
	f.run_seq--;
	ev[0].cls = UAR_EV_VENDOR;
	ev[0].type = UAR_STR("vendor.acme.beside");
	ev[0].run_sequence = 0;
	ev[0].ids[UAR_ID_RUN] = ev[0].ids[UAR_ID_ATTEMPT] = UAR_STR_NONE;
	ev[1] = uar_facts_delta(&f, "own");
	for (size_t i = 0; i < 2; i++) {
		snprintf(refs[i], sizeof refs[i], "{\"text_ref\":\"blob://%s\"}", i ? own : beside);
		ev[i].refs = uar_str_c(refs[i]);
	}
	CHECK_INT(uar_facts_append(&w.pump, w.store, &a), UAR_OK);
	evict(&w, &f);
	next_life(&w);
	CHECK_INT(sweep(&w), 1);
	CHECK(there(beside) && !there(own));
	shut(&w);
	check_missed(beside);
	uar_facts_fini(&f);
	uar_pump_fini(&w.pump);
}
