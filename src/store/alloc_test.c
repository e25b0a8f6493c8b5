/* alloc_test.c - every allocation of a scripted life fails once.
 *
 * Whoever gets UAR_ENOMEM may ask again; nothing is lost, doubled or leaked. */
#include "store/world_test.h"

#include "base/alloc.h"

struct life {
	struct world w;
	char dir[400];
	struct uar_facts f;
	bool created;
};

static bool fine(uar_err e)
{
	return CHECK_MSG(e == UAR_OK || e == UAR_ENOMEM, "%s", uar_err_name(e)) && e == UAR_OK;
}

/* Appends until it is taken: at most one allocation fails. */
static void append(struct life *l, size_t n)
{
	for (int tries = 0; tries < 2; tries++) {
		uint64_t seq = l->f.seq, run_seq = l->f.run_seq;

		if (fine(seq ? go_on(&l->w, &l->f, n)
			     : uar_facts_begin(&l->w.pump, l->w.store, &l->f)))
			return;
		rewind_to(&l->f, seq, run_seq);
	}
	CHECK_MSG(n == 0, "refused twice");
}

static void look_around(struct life *l)
{
	struct uar_read r = { .owner = l->f.owner, .run_id = uar_str_c(l->f.run), .limit = 100 };
	struct uar_runs_query q = { .owner = l->f.owner, .status = UAR_STR("queued"), .limit = 5 };
	struct uar_thread_query t = { .owner = l->f.owner, .thread_id = uar_str_c(l->f.thread) };
	struct uar_blob_put p = { .bytes = UAR_STR("bytes") };
	struct uar_blob_get g = { .limit = 100 };
	struct uar_store *s = l->w.store;
	struct uar_pump *pump = &l->w.pump;

	if (fine(uar_facts_read(pump, s, &r)))
		CHECK_INT(r.event_count, l->f.run_seq);
	if (fine(uar_facts_runs(pump, s, &q)))
		CHECK_INT(q.row_count, 1);
	if (fine(uar_facts_thread(pump, s, &t)))
		CHECK_INT(t.last_sequence, l->f.seq);
	if (fine(uar_facts_put(pump, s, &p))) {
		memcpy(g.sha256, p.sha256, sizeof g.sha256);
		if (fine(uar_facts_get(pump, s, &g)))
			CHECK_STR(g.bytes, "bytes");
	}
	uar_store_read_fini(&r);
	uar_store_query_fini(&q);
	uar_store_blob_get_fini(&g);
}

static void live(struct life *l)
{
	struct uar_store_options o = { .sched = &l->w.pump.sched, .dir = l->dir, .readers = 1 };
	struct uar_arena room = l->f.arena;
	uar_err e = l->w.sqlite ? uar_store_sqlite_create(&o, &l->w.store, NULL)
				: uar_store_memory_create(&o, &l->w.store, NULL);

	if (!fine(e))
		return;
	l->created = true;
	uar_facts_init(&l->f, l->w.store, 1);
	l->f.arena = room;
	append(l, 0);
	append(l, 3);
	append(l, 40);
	look_around(l);
	append(l, 1);
	uar_facts_drain(&l->w.pump, l->w.store);
	uar_store_destroy(l->w.store);
	l->w.store = NULL;
}

static void bad(void *ctx, const char *what)
{
	(void)ctx;
	CHECK_MSG(what == NULL, "%s", what);
}

/* The test's own helpers allocate too; they are given room beforehand. */
static void all_lives(bool sqlite)
{
	bool failed = true;

	for (unsigned long n = 1; failed; n++) {
		struct life l = { .w = { .sqlite = sqlite } };

		if (sqlite)
			snprintf(l.dir, sizeof l.dir, "%s/data", uar_test_dir());
		uar_pump_init(&l.w.pump);
		uar_arena_bytes(&l.f.arena, 1 << 20);
		uar_arena_reset(&l.f.arena);
		uar_test_fail_alloc(n);
		live(&l);
		failed = uar_test_alloc_failed();
		uar_test_fail_alloc(0);
		uar_pump_fini(&l.w.pump);
		uar_facts_fini(&l.f);
		if (sqlite && l.created)
			CHECK_INT(uar_store_sqlite_verify(l.dir, bad, NULL, NULL), UAR_OK);
	}
}

TEST(sqlite_survives_every_failed_allocation, "")
{
	all_lives(true);
}

TEST(memory_survives_every_failed_allocation, "")
{
	all_lives(false);
}
