/* world_test.h - a store to test, of either kind, with its loop. */
#ifndef UAR_STORE_WORLD_TEST_H
#define UAR_STORE_WORLD_TEST_H

#include <sys/resource.h>
#include <unistd.h>

#include "facts.h"
#include "memory_store.h"
#include "test.h"

struct world {
	struct uar_pump pump;
	struct uar_store *store;
	bool sqlite;
};

static inline void open_world(struct world *w, bool sqlite)
{
	struct uar_store_options o = { .sched = &w->pump.sched };
	struct uar_error error = { 0 };
	uar_err e;

	uar_pump_init(&w->pump);
	w->sqlite = sqlite;
	o.dir = sqlite ? uar_test_dir() : NULL;
	e = sqlite ? uar_store_sqlite_create(&o, &w->store, &error)
		   : uar_store_memory_create(&o, &w->store, &error);
	if (e) {
		printf("  %s: %s\n", uar_err_name(e), error.text);
		exit(1);
	}
}

static inline void close_world(struct world *w)
{
	uar_facts_drain(&w->pump, w->store);
	uar_store_destroy(w->store);
	uar_pump_fini(&w->pump);
}

static bool upload_told;

static inline void upload_done(struct uar_upload_op *op)
{
	(void)op;
	upload_told = true;
}

/* One operation of an upload, to its end. */
static inline uar_err upload_step(struct world *w, struct uar_upload_op *op)
{
	uar_err e;

	op->done = upload_done;
	upload_told = false;
	e = w->store->ops->upload(w->store, op);
	if (e)
		return e;
	uar_pump_until(&w->pump, &upload_told);
	return op->err;
}

/* So many descriptors can be opened from now on. */
static inline struct rlimit leave_free(rlim_t n)
{
	struct rlimit before, few;
	int next = dup(0);

	close(next);
	getrlimit(RLIMIT_NOFILE, &before);
	few = before;
	few.rlim_cur = (rlim_t)next + n;
	setrlimit(RLIMIT_NOFILE, &few);
	return before;
}

/* SQL that takes back what version 5 of the file has brought. */
#define BEFORE_VERSION_5                                                                           \
	"DROP TABLE rows; DROP INDEX runs_open; DROP INDEX runs_due; DROP INDEX runs_waits; "      \
	"CREATE INDEX runs_live ON runs(rid)"                                                      \
	" WHERE terminal = 0; ALTER TABLE runs DROP COLUMN title; ALTER TABLE runs DROP COLUMN"    \
	" error_code; ALTER TABLE runs DROP COLUMN waits; ALTER TABLE runs DROP COLUMN due;"       \
	" ALTER TABLE runs DROP COLUMN rank; ALTER TABLE runs DROP COLUMN cost; ALTER TABLE runs"  \
	" DROP COLUMN input_tokens; ALTER TABLE runs DROP COLUMN output_tokens;"

/* A test of the port is two tests. */
#define BOTH(NAME, IDS)                                                                            \
	static void both_##NAME(struct world *w);                                                  \
	TEST(sqlite_##NAME, IDS)                                                                   \
	{                                                                                          \
		struct world w;                                                                    \
                                                                                                   \
		open_world(&w, true);                                                              \
		both_##NAME(&w);                                                                   \
		close_world(&w);                                                                   \
	}                                                                                          \
	TEST(memory_##NAME, IDS)                                                                   \
	{                                                                                          \
		struct world w;                                                                    \
                                                                                                   \
		open_world(&w, false);                                                             \
		both_##NAME(&w);                                                                   \
		close_world(&w);                                                                   \
	}                                                                                          \
	static void both_##NAME(struct world *w)

static inline uar_err begin(struct world *w, struct uar_facts *f, uint64_t number)
{
	uar_facts_init(f, w->store, number);
	return uar_facts_begin(&w->pump, w->store, f);
}

static inline uar_err go_on(struct world *w, struct uar_facts *f, size_t n)
{
	return uar_facts_go_on(&w->pump, w->store, f, n);
}

/* An append of one delta that the test may spoil first. */
struct one {
	struct uar_append a;
	struct uar_event ev;
};

static inline struct one *one_delta(struct uar_facts *f, struct one *o)
{
	*o = (struct one){ .a = { .owner = f->owner,
				  .session_id = uar_str_c(f->session),
				  .after = f->seq,
				  .event_count = 1 } };
	o->ev = uar_facts_delta(f, "hello");
	o->a.events = &o->ev;
	return o;
}

/* Takes back what was made but not stored. */
static inline void rewind_to(struct uar_facts *f, uint64_t seq, uint64_t run_seq)
{
	f->made -= f->seq - seq;
	f->seq = seq;
	f->run_seq = run_seq;
}

static inline uar_err set_row(struct world *w, struct uar_facts *f, const struct uar_run_row *row)
{
	struct one o;

	one_delta(f, &o);
	o.a.run = row;
	uar_err e = uar_facts_append(&w->pump, w->store, &o.a);
	if (e)
		rewind_to(f, f->seq - 1, f->run_seq - 1);
	return e;
}

#endif
