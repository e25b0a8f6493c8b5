/* waiting_test.c - runs that wait in one session: how much is looked at to find them, and
 * that nothing they say is missed. */
#include "store/world_test.h"

#include "store/sqlite/sqlite_int.h"

static uar_err reopen(struct world *w, const char *dir)
{
	struct uar_store_options o = { .sched = &w->pump.sched, .dir = dir };

	w->sqlite = true;
	w->store = NULL;
	uar_pump_init(&w->pump);
	return uar_store_sqlite_create(&o, &w->store, NULL);
}

static void shut(struct world *w)
{
	uar_facts_drain(&w->pump, w->store);
	uar_store_destroy(w->store);
	uar_pump_fini(&w->pump);
}

/* Steps of SQLite's machine: what the statements of a connection have cost so far. */
static int64_t steps_of(const struct sq_conn *c)
{
	int64_t sum = 0;

	for (size_t i = 0; i < SQ_COUNT; i++)
		if (c->st[i])
			sum += sqlite3_stmt_status(c->st[i], SQLITE_STMTSTATUS_VM_STEP, 0);
	return sum;
}

static int64_t reader_steps(const struct world *w)
{
	const struct sq_readers *p = &UAR_OWNER(w->store, struct sq_store, base)->readers;
	int64_t sum = 0;

	for (unsigned i = 0; i < p->count; i++)
		sum += steps_of(&p->reader[i].conn);
	return sum;
}

/* Run `number` of the session, as of the sequence that is next. */
static void turn_of(struct world *w, struct uar_facts *f, uint64_t number, uint64_t seq)
{
	uar_facts_init(f, w->store, number);
	snprintf(f->session, sizeof f->session, "talk");
	snprintf(f->thread, sizeof f->thread, "thread");
	f->seq = seq;
}

static uar_err put(struct world *w, struct uar_facts *f, const char *status)
{
	struct uar_run_row row = uar_facts_row(f, status, strcmp(status, "queued") != 0);

	row.started_us = 0;
	return set_row(w, f, &row);
}

static void count_live(void *ctx, const struct uar_run_row *row)
{
	CHECK_INT(row->last_run_sequence, 1);
	++*(size_t *)ctx;
}

static int64_t live_steps(const char *dir, size_t want)
{
	struct sq_conn c;
	char path[512];
	size_t live = 0;
	int64_t steps;

	snprintf(path, sizeof path, "%s/uar.db", dir);
	CHECK_INT(sq_open(&c, path, NULL, SQ_READ, NULL), UAR_OK);
	CHECK_INT(sq_query_live(&c, &(struct sq_live){ count_live, &live, NULL }, NULL), UAR_OK);
	CHECK_INT(live, want);
	steps = steps_of(&c);
	sq_close(&c);
	return steps;
}

struct effort {
	int64_t list, read, end;
};

/* So many wait; the process goes and comes; each is found, read and ended. */
static struct effort effort_of(size_t n)
{
	const char *dir = uar_test_dir();
	struct effort out;
	struct uar_facts f;
	struct world w;
	uint64_t seq = 0;

	CHECK_INT(reopen(&w, dir), UAR_OK);
	for (size_t i = 1; i <= n; i++) {
		turn_of(&w, &f, i, seq);
		CHECK_INT(put(&w, &f, "queued"), UAR_OK);
		seq = f.seq;
		uar_facts_fini(&f);
	}
	shut(&w);
	CHECK_INT(reopen(&w, dir), UAR_OK);
	out.list = live_steps(dir, n);
	out.read = -reader_steps(&w);
	for (size_t i = 1; i <= n; i++) {
		struct uar_read r;

		turn_of(&w, &f, i, 0);
		r = (struct uar_read){ .owner = f.owner, .run_id = uar_str_c(f.run), .limit = 9 };
		CHECK_INT(uar_facts_read(&w.pump, w.store, &r), UAR_OK);
		CHECK(r.event_count == 1 && !r.more);
		uar_store_read_fini(&r);
		uar_facts_fini(&f);
	}
	out.read += reader_steps(&w);
	out.end = -steps_of(&UAR_OWNER(w.store, struct sq_store, base)->writer.conn);
	for (size_t i = 1; i <= n; i++) {
		turn_of(&w, &f, i, seq);
		f.run_seq = 1;
		CHECK_INT(put(&w, &f, "canceled"), UAR_OK);
		seq = f.seq;
		uar_facts_fini(&f);
	}
	out.end += steps_of(&UAR_OWNER(w.store, struct sq_store, base)->writer.conn);
	shut(&w);
	return out;
}

TEST(twice_as_many_that_wait_are_twice_the_work, "")
{
	struct effort one = effort_of(200), two = effort_of(400);

	CHECK_MSG(two.list < 3 * one.list, "%lld, %lld", (long long)one.list, (long long)two.list);
	CHECK_MSG(two.read < 3 * one.read, "%lld, %lld", (long long)one.read, (long long)two.read);
	CHECK_MSG(two.end < 3 * one.end, "%lld, %lld", (long long)one.end, (long long)two.end);
}

static void count_bad(void *ctx, const char *what)
{
	(void)what;
	++*(size_t *)ctx;
}

static size_t damage(const char *dir)
{
	size_t bad = 0;

	uar_err e = uar_store_sqlite_verify(dir, count_bad, &bad, NULL);

	CHECK(e == (bad ? UAR_ECORRUPT : UAR_OK));
	return bad;
}

/* It is the row that says where its events end, so it is kept true. */
TEST(what_a_run_says_before_it_begins_is_found, "")
{
	const char *dir = uar_test_dir();
	struct uar_facts f, g;
	struct uar_read r;
	struct world w;
	char path[512];
	sqlite3 *db;

	REQUIRE(reopen(&w, dir) == UAR_OK);
	turn_of(&w, &f, 1, 0);
	CHECK_INT(put(&w, &f, "queued"), UAR_OK);
	turn_of(&w, &g, 2, f.seq);
	CHECK_INT(put(&w, &g, "queued"), UAR_OK);
	f.seq = g.seq;
	CHECK_INT(go_on(&w, &f, 2), UAR_OK);
	shut(&w);
	CHECK_INT(damage(dir), 0);
	REQUIRE(reopen(&w, dir) == UAR_OK);
	r = (struct uar_read){ .owner = f.owner, .run_id = uar_str_c(f.run), .limit = 9 };
	CHECK_INT(uar_facts_read(&w.pump, w.store, &r), UAR_OK);
	CHECK(r.event_count == 3 && !r.more);
	uar_store_read_fini(&r);
	r.after = 3;
	CHECK_INT(uar_facts_read(&w.pump, w.store, &r), UAR_OK);
	CHECK(r.event_count == 0 && !r.more);
	uar_store_read_fini(&r);
	CHECK_INT(go_on(&w, &f, 1), UAR_OK); /* behind the third */
	shut(&w);
	CHECK_INT(damage(dir), 0);
	snprintf(path, sizeof path, "%s/uar.db", dir);
	CHECK_INT(sqlite3_open(path, &db), SQLITE_OK);
	CHECK_INT(sqlite3_exec(db, "UPDATE runs SET last_seq = 1, last_run_seq = 1 WHERE rid = 1",
			       NULL, NULL, NULL),
		  SQLITE_OK);
	CHECK_INT(damage(dir), 1);
	/* In a file of version 3 that was its place: it is mended once. */
	CHECK_INT(sqlite3_exec(db, BEFORE_VERSION_5 "PRAGMA user_version = 3", NULL, NULL, NULL),
		  SQLITE_OK);
	sqlite3_close(db);
	REQUIRE(reopen(&w, dir) == UAR_OK);
	CHECK_INT(go_on(&w, &f, 1), UAR_OK);
	shut(&w);
	CHECK_INT(damage(dir), 0);
	uar_facts_fini(&f);
	uar_facts_fini(&g);
}
