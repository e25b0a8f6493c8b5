/* mixed_test.c - appends whose events are a run's and nobody's by turns: each comes back
 * in its place, with its own ids and time, to whoever reads the session or the run. */
#include "store/world_test.h"

#include <sqlite3.h>

enum { APPENDS = 40, MOST = 9 };

struct story {
	struct uar_facts f;
	struct uar_event all[APPENDS * MOST];
	size_t n;
};

/* An event that is not the run's. */
static struct uar_event aside(struct uar_facts *f, bool of_thread)
{
	struct uar_event ev = uar_facts_delta(f, "aside");

	f->run_seq--;
	ev.run_sequence = 0;
	ev.cls = UAR_EV_VENDOR;
	ev.type = UAR_STR("vendor.acme.aside");
	ev.ids[UAR_ID_RUN] = ev.ids[UAR_ID_ATTEMPT] = UAR_STR_NONE;
	ev.ids[UAR_ID_TURN] = ev.ids[UAR_ID_TASK] = UAR_STR_NONE;
	if (!of_thread)
		ev.ids[UAR_ID_THREAD] = UAR_STR_NONE;
	return ev;
}

static void tell_one(struct world *w, struct story *s, const struct uar_rand *rand)
{
	struct uar_append a = { .owner = s->f.owner,
				.session_id = uar_str_c(s->f.session),
				.after = s->f.seq,
				.events = s->all + s->n,
				.event_count = 1 + uar_rand_below(rand, MOST) };

	for (size_t i = 0; i < a.event_count; i++) {
		struct uar_event *ev = &s->all[s->n + i];
		uint64_t kind = uar_rand_below(rand, 8);

		*ev = kind < 4 ? uar_facts_delta(&s->f, "hello") : aside(&s->f, kind < 6);
		if (kind == 0) /* of the run, and of another turn */
			ev->ids[UAR_ID_TURN] = UAR_STR("another");
		if (i && uar_rand_below(rand, 2))
			ev->time_us = s->all[s->n].time_us;
	}
	CHECK_INT(uar_facts_append(&w->pump, w->store, &a), UAR_OK);
	s->n += a.event_count;
}

static void tell(struct world *w, struct story *s)
{
	struct uar_rand_seeded seed;
	struct uar_rand rand = uar_rand_seed(&seed, 7);

	s->n = 0;
	CHECK_INT(begin(w, &s->f, 1), UAR_OK);
	for (int i = 0; i < APPENDS; i++)
		tell_one(w, s, &rand);
}

static void check_page(struct world *w, const struct story *s, bool run, uint64_t after)
{
	struct uar_read r = { .owner = s->f.owner, .after = after, .limit = 1 + after % 7 };
	size_t n = 0;

	*(run ? &r.run_id : &r.session_id) = uar_str_c(run ? s->f.run : s->f.session);
	CHECK_INT(uar_facts_read(&w->pump, w->store, &r), UAR_OK);
	for (size_t i = 0; i < s->n && n < r.event_count; i++) {
		const struct uar_event *want = &s->all[i], *ev = &r.events[n];

		if ((run ? want->run_sequence : want->sequence) <= after)
			continue;
		CHECK(uar_str_eq(ev->event_id, want->event_id));
		CHECK_INT(ev->sequence, want->sequence);
		CHECK_INT(ev->run_sequence, want->run_sequence);
		CHECK_INT(ev->time_us, want->time_us);
		for (size_t k = 0; k < UAR_ID_COUNT; k++)
			CHECK(uar_str_eq(ev->ids[k], want->ids[k]));
		n++;
	}
	CHECK_INT(n, r.event_count);
	CHECK_INT(r.more, after + n < (run ? s->f.run_seq : s->f.seq));
	uar_store_read_fini(&r);
}

BOTH(events_around_those_of_a_run_keep_their_place, "EVT-004")
{
	struct story s;

	tell(w, &s);
	for (uint64_t after = 3; after <= s.f.seq; after++)
		check_page(w, &s, false, after);
	for (uint64_t after = 0; after <= s.f.run_seq; after++)
		check_page(w, &s, true, after);
	uar_facts_fini(&s.f);
}

static void say(void *ctx, const char *what)
{
	(void)ctx;
	printf("  %s\n", what);
}

/* The view says of each event what a reader is told. */
static void check_view(const char *dir, const struct story *s)
{
	char path[512];
	sqlite3 *db;
	sqlite3_stmt *st;
	size_t i = 0;

	snprintf(path, sizeof path, "%s/uar.db", dir);
	CHECK_INT(sqlite3_open(path, &db), SQLITE_OK);
	CHECK_INT(sqlite3_prepare_v2(db,
				     "SELECT event_id, coalesce(run_sequence, 0), timestamp,"
				     " coalesce(run_id, ''), coalesce(thread_id, ''),"
				     " coalesce(turn_id, '') FROM events WHERE sequence > 3"
				     " ORDER BY sequence",
				     -1, &st, NULL),
		  SQLITE_OK);
	for (; sqlite3_step(st) == SQLITE_ROW && i < s->n; i++) {
		const struct uar_event *ev = &s->all[i];
		char at[UAR_TIME_TEXT + 1];

		uar_time_format(ev->time_us, at);
		CHECK_STR(ev->event_id, (const char *)sqlite3_column_text(st, 0));
		CHECK_INT(sqlite3_column_int64(st, 1), ev->run_sequence);
		CHECK_STR(uar_str_c(at), (const char *)sqlite3_column_text(st, 2));
		CHECK_STR(ev->ids[UAR_ID_RUN], (const char *)sqlite3_column_text(st, 3));
		CHECK_STR(ev->ids[UAR_ID_THREAD], (const char *)sqlite3_column_text(st, 4));
		CHECK_STR(ev->ids[UAR_ID_TURN], (const char *)sqlite3_column_text(st, 5));
	}
	CHECK_INT(i, s->n);
	sqlite3_finalize(st);
	sqlite3_close(db);
}

TEST(events_around_those_of_a_run_pass_the_check, "")
{
	struct world w = { .sqlite = true };
	struct uar_store_options o = { .sched = &w.pump.sched, .dir = uar_test_dir() };
	struct story s;

	uar_pump_init(&w.pump);
	REQUIRE(uar_store_sqlite_create(&o, &w.store, NULL) == UAR_OK);
	tell(&w, &s);
	close_world(&w);
	CHECK_INT(uar_store_sqlite_verify(o.dir, say, NULL, NULL), UAR_OK);
	check_view(o.dir, &s);
	uar_facts_fini(&s.f);
}
