/* fault_test.c - every disk operation of a scripted life fails once.
 *
 * Whatever fails: what was acknowledged is there afterwards, what was refused is
 * not half there, the file verifies, and the store says what state it is in.
 * time limit: 240 s, under TSan each of some hundred operations is a life of the store */
#include "store/world_test.h"

#include <sqlite3.h>

#include "base/alloc.h"
#include "faultvfs.h"

enum { ROUNDS = 14 };

struct life {
	struct world w;
	char dir[400];
	struct uar_facts f;
	size_t broken;
	uint64_t acked;	 /* sequence up to which we were told yes */
	uint64_t unsure; /* outcome unknown: may be there or not */
	bool refused, synced_badly, full;
	bool evicts;
};

static void on_broken(void *ctx, const struct uar_error *error)
{
	struct life *l = ctx;

	CHECK_INT(error->code, UAR_ESYNC);
	l->broken++;
}

static uar_err open_life(struct life *l, const char *vfs)
{
	struct uar_store_options o = { .sched = &l->w.pump.sched,
				       .dir = l->dir,
				       .vfs = vfs,
				       .broken = on_broken,
				       .ctx = l,
				       .readers = 1,
				       .checkpoint_pages = 20,
				       .evicts = l->evicts };

	l->w.store = NULL;
	uar_pump_init(&l->w.pump);
	return uar_store_sqlite_create(&o, &l->w.store, NULL);
}

static void close_life(struct life *l)
{
	if (l->w.store)
		uar_facts_drain(&l->w.pump, l->w.store);
	uar_store_destroy(l->w.store);
	l->w.store = NULL;
	uar_pump_fini(&l->w.pump);
}

/* Appends one after the other and keeps the books. Some are large enough for the
 * write-ahead log to be folded in behind them. */
static void live(struct life *l)
{
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t seq = l->f.seq, run_seq = l->f.run_seq;
		size_t n = i % 4 == 3 ? 200 : 1 + (size_t)i;
		uar_err e = seq == 0 ? uar_facts_begin(&l->w.pump, l->w.store, &l->f)
				     : uar_facts_go_on(&l->w.pump, l->w.store, &l->f, n);

		if (!e) {
			CHECK(!l->synced_badly); /* never yes after a failed sync */
			l->acked = l->f.seq;
			l->full = false;
			continue;
		}
		l->refused = true;
		l->synced_badly |= e == UAR_ESYNC || e == UAR_EUNKNOWN;
		l->full = e == UAR_EDISKFULL;
		CHECK(e == UAR_ESYNC || e == UAR_EDISKFULL || e == UAR_EIO || e == UAR_EUNKNOWN);
		if (e == UAR_EUNKNOWN)
			l->unsure = l->f.seq;
		rewind_to(&l->f, seq, run_seq);
	}
}

static void print_bad(void *ctx, const char *what)
{
	(void)ctx;
	printf("  %s\n", what);
}

/* The books against the disk. */
static bool check_books(struct life *l)
{
	struct uar_thread_query q = { .owner = uar_facts_owner };
	bool good = CHECK_MSG(!uar_store_sqlite_verify(l->dir, print_bad, NULL, NULL),
			      "the file does not verify");
	struct uar_facts f;
	struct uar_event ev[3];
	uar_err e;

	if (!CHECK(open_life(l, NULL) == UAR_OK))
		return false;
	uar_facts_init(&f, l->w.store, 1);
	q.session_id = uar_str_c(f.session);
	e = uar_facts_thread(&l->w.pump, l->w.store, &q);
	good &= CHECK(e == UAR_OK || (e == UAR_ENOTFOUND && l->acked == 0));
	good &= CHECK(q.last_sequence >= l->acked);
	good &= CHECK(q.last_sequence == l->acked || q.last_sequence <= l->unsure);
	if (!e) {
		uar_facts_opening(&f, ev);
		f.seq = q.last_sequence;
		f.run_seq = f.seq - 3;
		good &= uar_facts_all_there(&l->w.pump, l->w.store, &f);
		good &= CHECK(uar_facts_go_on(&l->w.pump, l->w.store, &f, 1) == UAR_OK);
	}
	uar_facts_fini(&f);
	close_life(l);
	return good;
}

static bool start_life(struct life *l)
{
	*l = (struct life){ .evicts = l->evicts };
	snprintf(l->dir, sizeof l->dir, "%s/data", uar_test_dir());
	if (!CHECK(open_life(l, uar_fault_vfs()) == UAR_OK))
		return false;
	uar_facts_init(&l->f, l->w.store, 1);
	return true;
}

/* There is space again: nobody needs to restart anything. */
static void goes_on(struct life *l)
{
	struct uar_store_stats st;

	CHECK_INT(l->f.seq ? uar_facts_go_on(&l->w.pump, l->w.store, &l->f, 2)
			   : uar_facts_begin(&l->w.pump, l->w.store, &l->f),
		  UAR_OK);
	l->acked = l->f.seq;
	l->w.store->ops->stats(l->w.store, &st);
	CHECK_INT(st.health, UAR_STORE_FINE);
}

/* Nobody waits for the log to be folded in, so nobody is refused when that fails. */
static void is_told_of_folding(struct life *l)
{
	struct uar_store_stats st = { 0 };

	while (!st.fold_failures && st.health != UAR_STORE_BROKEN)
		l->w.store->ops->stats(l->w.store, &st);
}

/* One life with a fault at operation n; false when n was never reached. */
static bool one_life(enum uar_fault_kind kind, unsigned long n, bool always)
{
	struct uar_store_stats st;
	struct life l = { .evicts = false };
	bool hit;

	if (!start_life(&l))
		return false;
	uar_fault_arm(kind, n, always);
	live(&l);
	hit = uar_fault_happened();
	if (kind == UAR_FAULT_SYNC && hit) /* perhaps behind the last answer */
		uar_pump_count(&l.w.pump, &l.broken, 1);
	if (kind == UAR_FAULT_EIO && hit && !l.refused)
		is_told_of_folding(&l);
	l.w.store->ops->stats(l.w.store, &st);
	if (l.synced_badly || l.broken)
		CHECK_INT(st.health, UAR_STORE_BROKEN);
	else if (st.health != UAR_STORE_BROKEN)
		CHECK_INT(st.health, l.full ? UAR_STORE_FULL : UAR_STORE_FINE);
	CHECK(l.broken <= 1);
	uar_fault_disarm();
	if (kind == UAR_FAULT_FULL)
		goes_on(&l);
	close_life(&l);
	if (!check_books(&l))
		printf("  kind %d at operation %lu%s\n", kind, n, always ? " and after" : "");
	uar_facts_fini(&l.f);
	return hit;
}

static void all_lives(enum uar_fault_kind kind, bool always)
{
	unsigned long n = 1;

	while (one_life(kind, n, always))
		n += 1 + n / 24; /* every early one, then samples */
	CHECK_MSG(n > 5, "only %lu operations", n);
}

TEST(every_write_may_fail_once, "")
{
	all_lives(UAR_FAULT_EIO, false);
}

TEST(every_write_may_fail_for_ever, "")
{
	all_lives(UAR_FAULT_EIO, true);
}

TEST(a_full_disk_refuses_and_recovers, "")
{
	all_lives(UAR_FAULT_FULL, false);
	all_lives(UAR_FAULT_FULL, true);
}

static bool is_indexed(const struct life *l)
{
	char path[420];
	sqlite3_stmt *st = NULL;
	sqlite3 *db;
	bool is;

	snprintf(path, sizeof path, "%s/uar.db", l->dir);
	CHECK_INT(sqlite3_open(path, &db), SQLITE_OK);
	CHECK_INT(sqlite3_prepare_v2(db, "SELECT 1 FROM sqlite_schema WHERE name = 'runs_ended'",
				     -1, &st, NULL),
		  SQLITE_OK);
	is = sqlite3_step(st) == SQLITE_ROW;
	sqlite3_finalize(st);
	sqlite3_close(db);
	return is;
}

/* What is only there for speed waits for space, and nobody waits for it. */
TEST(a_start_on_a_full_disk_leaves_the_index_to_the_next, "")
{
	for (int wanted = 0; wanted < 2; wanted++) {
		struct life l = { .evicts = !wanted };

		REQUIRE(start_life(&l));
		live(&l);
		close_life(&l);
		l.evicts = wanted;
		uar_fault_arm(UAR_FAULT_FULL, 1, true);
		REQUIRE(open_life(&l, uar_fault_vfs()) == UAR_OK);
		CHECK(uar_fault_happened());
		CHECK(uar_facts_all_there(&l.w.pump, l.w.store, &l.f));
		uar_fault_disarm();
		goes_on(&l);
		close_life(&l);
		CHECK_INT(is_indexed(&l), !wanted);
		CHECK(check_books(&l)); /* it is opened once more */
		CHECK_INT(is_indexed(&l), wanted);
		uar_facts_fini(&l.f);
	}
}

TEST(a_refused_append_says_nothing_of_the_disk, "")
{
	struct life l = { .evicts = false };
	struct uar_store_stats st;
	struct uar_facts again;

	REQUIRE(start_life(&l));
	REQUIRE(uar_facts_begin(&l.w.pump, l.w.store, &l.f) == UAR_OK);
	uar_facts_init(&again, l.w.store, 1);
	uar_fault_arm(UAR_FAULT_FULL, 1, true);
	CHECK_INT(uar_facts_go_on(&l.w.pump, l.w.store, &l.f, 1), UAR_EDISKFULL);
	CHECK_INT(uar_facts_begin(&l.w.pump, l.w.store, &again), UAR_ECONFLICT);
	l.w.store->ops->stats(l.w.store, &st);
	CHECK_INT(st.health, UAR_STORE_FULL);
	uar_fault_disarm();
	rewind_to(&l.f, 3, 0);
	goes_on(&l);
	uar_facts_fini(&again);
	uar_facts_fini(&l.f);
	close_life(&l);
}

TEST(a_failed_sync_ends_the_store, "")
{
	all_lives(UAR_FAULT_SYNC, false);
	all_lives(UAR_FAULT_SYNC, true);
}

TEST(power_may_go_at_any_moment, "")
{
	struct uar_rand_seeded seed;
	struct uar_rand rand = uar_rand_seed(&seed, 1);

	for (unsigned long n = 1, hit = 1; hit; n += 1 + n / 16) {
		struct life l = { .evicts = false };

		if (!start_life(&l))
			return;
		uar_fault_arm(UAR_FAULT_POWER, n, true);
		live(&l);
		hit = uar_fault_happened();
		close_life(&l);
		uar_fault_power_loss(&rand);
		uar_fault_disarm();
		if (!check_books(&l))
			printf("  power lost at operation %lu\n", n);
		uar_facts_fini(&l.f);
	}
}
