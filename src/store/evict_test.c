/* evict_test.c - runs that are no longer retained, asked of every implementation. */
#include "store/world_test.h"

#include <sqlite3.h>

/* A run that has ended, of a session of its own. */
static void end_one(struct world *w, struct uar_facts *f, uint64_t number)
{
	struct uar_run_row row;

	CHECK_INT(begin(w, f, number), UAR_OK);
	row = uar_facts_row(f, "completed", true);
	CHECK_INT(set_row(w, f, &row), UAR_OK);
}

/* The append that evicts them, the first of a session of its own. */
static uar_err evict(struct world *w, struct uar_owner owner, const uar_str *runs, size_t n)
{
	static uint64_t sessions = 100;
	struct uar_event ev[3];
	struct uar_facts log;
	struct uar_append a = {
		.owner = owner, .events = ev, .event_count = 1, .evict = runs, .evict_count = n
	};
	uar_err e;

	uar_facts_init(&log, w->store, sessions++);
	log.owner = owner;
	a.session_id = uar_str_c(log.session);
	uar_facts_opening(&log, ev); /* that there is a session is enough */
	e = uar_facts_append(&w->pump, w->store, &a);
	uar_facts_fini(&log);
	return e;
}

static uar_err find(struct world *w, const struct uar_facts *f)
{
	struct uar_runs_query q = { .owner = f->owner, .run_id = uar_str_c(f->run), .limit = 1 };
	uar_err e = uar_facts_runs(&w->pump, w->store, &q);

	uar_store_query_fini(&q);
	return e;
}

static uar_err read_run(struct world *w, const struct uar_facts *f)
{
	struct uar_read r = { .owner = f->owner, .run_id = uar_str_c(f->run), .limit = 9 };
	uar_err e = uar_facts_read(&w->pump, w->store, &r);

	uar_store_read_fini(&r);
	return e;
}

static size_t listed(struct world *w, struct uar_runs_query q)
{
	size_t n;

	q.owner = uar_facts_owner;
	q.limit = 50;
	CHECK_INT(uar_facts_runs(&w->pump, w->store, &q), UAR_OK);
	n = q.row_count;
	uar_store_query_fini(&q);
	return n;
}

BOTH(an_evicted_run_is_found_by_nobody, "RUN-52")
{
	struct uar_facts f[3];
	struct one o;
	uar_str gone;

	for (unsigned i = 0; i < 3; i++)
		end_one(w, &f[i], i + 1);
	gone = uar_str_c(f[1].run);
	CHECK_INT(evict(w, uar_facts_owner, &gone, 1), UAR_OK);
	CHECK_INT(find(w, &f[1]), UAR_ENOTFOUND);
	CHECK_INT(read_run(w, &f[1]), UAR_ENOTFOUND);
	CHECK_INT(find(w, &f[0]), UAR_OK);
	CHECK_INT(read_run(w, &f[2]), UAR_OK);
	CHECK_INT(listed(w, (struct uar_runs_query){ .limit = 1 }), 2);
	CHECK_INT(listed(w, (struct uar_runs_query){ .session_id = uar_str_c(f[1].session) }), 0);
	CHECK_INT(listed(w, (struct uar_runs_query){ .task_id = uar_str_c(f[1].task) }), 0);
	CHECK_INT(listed(w, (struct uar_runs_query){ .prefix = uar_str_c(f[1].run) }), 0);
	/* A page that ended with it goes on, and who asks for the evicted ones has them. */
	CHECK_INT(listed(w, (struct uar_runs_query){ .before = uar_str_c(f[1].run) }), 1);
	CHECK_INT(listed(w, (struct uar_runs_query){ .session_id = uar_str_c(f[1].session),
						     .evicted = true }),
		  1);
	/* Nothing is added to it; what it did stays in its session. */
	CHECK_INT(uar_facts_append(&w->pump, w->store, &one_delta(&f[1], &o)->a), UAR_ENOTFOUND);
	rewind_to(&f[1], f[1].seq - 1, f[1].run_seq - 1);
	CHECK(uar_facts_all_there(&w->pump, w->store, &f[1]));
	/* Twice is once. */
	CHECK_INT(evict(w, uar_facts_owner, &gone, 1), UAR_OK);
	CHECK_INT(listed(w, (struct uar_runs_query){ .limit = 1 }), 2);
	for (unsigned i = 0; i < 3; i++)
		uar_facts_fini(&f[i]);
}

BOTH(a_run_that_goes_on_is_never_evicted, "RUN-48")
{
	struct uar_facts f[2];
	uar_str gone[2];

	end_one(w, &f[0], 1);
	CHECK_INT(begin(w, &f[1], 2), UAR_OK);
	gone[0] = uar_str_c(f[0].run);
	gone[1] = uar_str_c(f[1].run);
	CHECK_INT(evict(w, uar_facts_owner, gone, 2), UAR_ESTATE);
	gone[1] = UAR_STR("run-of-nobody");
	CHECK_INT(evict(w, uar_facts_owner, gone, 2), UAR_ENOTFOUND);
	/* A refused append leaves no trace. */
	CHECK_INT(find(w, &f[0]), UAR_OK);
	CHECK_INT(find(w, &f[1]), UAR_OK);
	CHECK_INT(go_on(w, &f[1], 2), UAR_OK);
	/* Below another owner there is no such run. */
	CHECK_INT(evict(w, uar_facts_stranger, gone, 1), UAR_ENOTFOUND);
	CHECK_INT(find(w, &f[0]), UAR_OK);
	uar_facts_fini(&f[0]);
	uar_facts_fini(&f[1]);
}

static void rows_done(struct uar_rows_query *q)
{
	q->order = UAR_ROWS_RANK; /* a sign for have() */
}

/* Is there a row of that kind with that id? */
static bool have(struct world *w, enum uar_row_kind kind, const char *id)
{
	struct uar_rows_query q = { .owner = uar_facts_owner,
				    .kind = kind,
				    .id = uar_str_c(id),
				    .limit = 1,
				    .done = rows_done };

	CHECK_INT(w->store->ops->rows(w->store, &q), UAR_OK);
	while (q.order != UAR_ROWS_RANK)
		(void)uar_pump_turn(&w->pump);
	uar_store_rows_fini(&q);
	return q.err == UAR_OK;
}

/* Two rows below the run: one of notifications, one of another kind. */
static uar_err put_below(struct world *w, struct uar_facts *writer, const struct uar_facts *f,
			 const char *id)
{
	struct uar_row rows[] = { { .kind = UAR_ROW_TASK }, { .kind = UAR_ROW_PUSH } };
	struct one o;
	uar_err e;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		rows[i].id = uar_str_c(id);
		rows[i].parent = uar_str_c(f->run);
		rows[i].status = UAR_STR("active");
		rows[i].body = UAR_STR("{}");
	}
	one_delta(writer, &o);
	o.a.rows = rows;
	o.a.row_count = ARRAY_LEN(rows);
	e = uar_facts_append(&w->pump, w->store, &o.a);
	if (e)
		rewind_to(writer, writer->seq - 1, writer->run_seq - 1);
	return e;
}

BOTH(configurations_of_notifications_go_with_their_run, "A2A-10")
{
	struct uar_facts f[2], writer;
	uar_str gone;

	end_one(w, &f[0], 1);
	end_one(w, &f[1], 2);
	CHECK_INT(begin(w, &writer, 3), UAR_OK);
	CHECK_INT(put_below(w, &writer, &f[0], "a"), UAR_OK);
	CHECK_INT(put_below(w, &writer, &f[1], "b"), UAR_OK);
	gone = uar_str_c(f[0].run);
	CHECK_INT(evict(w, uar_facts_owner, &gone, 1), UAR_OK);
	CHECK(!have(w, UAR_ROW_PUSH, "a"));
	CHECK(have(w, UAR_ROW_TASK, "a"));
	CHECK(have(w, UAR_ROW_PUSH, "b"));
	/* And none comes afterwards. */
	CHECK_INT(put_below(w, &writer, &f[0], "c"), UAR_ENOTFOUND);
	CHECK(!have(w, UAR_ROW_TASK, "c"));
	CHECK_INT(put_below(w, &writer, &f[1], "c"), UAR_OK);
	for (size_t i = 0; i < ARRAY_LEN(f); i++)
		uar_facts_fini(&f[i]);
	uar_facts_fini(&writer);
}

static void count_owner(void *ctx, const struct uar_owner *owner)
{
	CHECK(uar_owner_eq(owner, &uar_facts_owner));
	(*(size_t *)ctx)++;
}

static size_t beyond(struct world *w, uint64_t keep, uar_str *out_first, char text[48])
{
	struct uar_runs_query q = { .owner = uar_facts_owner, .beyond = keep, .limit = 4 };
	size_t n, owners = 0;

	CHECK_INT(uar_facts_runs(&w->pump, w->store, &q), UAR_OK);
	n = q.row_count;
	snprintf(text, 48, "%.*s", UAR_FMT(n ? q.rows[0].run_id : UAR_STR("")));
	*out_first = uar_str_c(text);
	uar_store_query_fini(&q);
	CHECK_INT(w->store->ops->each_beyond(w->store, keep, count_owner, &owners, NULL), UAR_OK);
	CHECK_INT(owners, n > 0);
	return n;
}

BOTH(the_oldest_ended_runs_are_told_first, "RUN-48")
{
	struct uar_facts f[7];
	char text[48];
	uar_str first;

	for (unsigned i = 0; i < 7; i++) {
		if (i == 1)
			CHECK_INT(begin(w, &f[i], i + 1), UAR_OK); /* it goes on */
		else
			end_one(w, &f[i], i + 1);
	}
	CHECK_INT(beyond(w, 6, &first, text), 0);
	CHECK_INT(beyond(w, 5, &first, text), 1);
	CHECK_STR(first, f[0].run);
	CHECK_INT(beyond(w, 4, &first, text), 2);
	CHECK_INT(beyond(w, 1, &first, text), 4); /* a page */
	CHECK_INT(evict(w, uar_facts_owner, &first, 1), UAR_OK);
	CHECK_INT(beyond(w, 5, &first, text), 0);
	CHECK_INT(beyond(w, 4, &first, text), 1);
	CHECK_STR(first, f[2].run);
	for (unsigned i = 0; i < 7; i++)
		uar_facts_fini(&f[i]);
}

/* The run of `f` with that key. */
static uar_err claim(struct world *w, struct uar_facts *f, uint64_t number)
{
	struct uar_key_row key = { UAR_STR("runs"), UAR_STR("k"), UAR_STR("print"), UAR_STR_NONE };
	struct uar_run_row row;
	struct uar_event ev[3];
	struct uar_append a = { .events = ev, .run = &row, .key = &key };

	uar_facts_init(f, w->store, number);
	a.owner = f->owner;
	a.session_id = uar_str_c(f->session);
	key.made = uar_str_c(f->run);
	row = uar_facts_row(f, "completed", true);
	a.event_count = uar_facts_opening(f, ev);
	return uar_facts_append(&w->pump, w->store, &a);
}

BOTH(the_key_of_an_evicted_run_is_free, "RUN-52")
{
	struct uar_key_query q = { .owner = uar_facts_owner,
				   .scope = UAR_STR("runs"),
				   .key = UAR_STR("k") };
	struct uar_facts f[3];
	uar_str gone;

	CHECK_INT(claim(w, &f[0], 1), UAR_OK);
	CHECK_INT(claim(w, &f[1], 2), UAR_EEXISTS);
	gone = uar_str_c(f[0].run);
	CHECK_INT(evict(w, uar_facts_owner, &gone, 1), UAR_OK);
	CHECK_INT(uar_facts_key(&w->pump, w->store, &q), UAR_ENOTFOUND);
	CHECK_INT(claim(w, &f[2], 3), UAR_OK);
	CHECK_INT(uar_facts_key(&w->pump, w->store, &q), UAR_OK);
	CHECK_STR(uar_str_c(q.made), f[2].run);
	for (unsigned i = 0; i < 3; i++)
		uar_facts_fini(&f[i]);
}

/* --- the file ------------------------------------------------------------------------ */

static void say(void *ctx, const char *what)
{
	printf("  (expected) %s\n", what);
	(*(size_t *)ctx)++;
}

static void reopen(struct world *w, const char *dir)
{
	struct uar_store_options o = { .sched = &w->pump.sched, .dir = dir };
	struct uar_error error = { 0 };

	CHECK_INT(uar_store_sqlite_create(&o, &w->store, &error), UAR_OK);
}

static void shut(struct world *w)
{
	uar_facts_drain(&w->pump, w->store);
	uar_store_destroy(w->store);
}

static void run_sql(const char *dir, const char *sql)
{
	char path[512];
	sqlite3 *db;

	snprintf(path, sizeof path, "%s/uar.db", dir);
	CHECK_INT(sqlite3_open(path, &db), SQLITE_OK);
	CHECK_INT(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

TEST(a_file_of_version_1_learns_to_evict, "")
{
	const char *dir = uar_test_dir();
	struct world w = { .sqlite = true };
	struct uar_facts f[2];
	size_t bad = 0;
	uar_str gone;

	uar_pump_init(&w.pump);
	reopen(&w, dir);
	end_one(&w, &f[0], 1);
	CHECK_INT(claim(&w, &f[1], 2), UAR_OK);
	shut(&w);
	/* As the version before wrote it. */
	run_sql(dir, "DROP VIEW events;" BEFORE_VERSION_5 "ALTER TABLE log DROP COLUMN lead;"
		     "ALTER TABLE log DROP COLUMN tail; DROP INDEX runs_owner;"
		     "DROP INDEX runs_evicted; ALTER TABLE runs DROP COLUMN evicted;"
		     "CREATE INDEX runs_owner ON runs(oid, rid); PRAGMA user_version = 1");
	reopen(&w, dir);
	CHECK_INT(find(&w, &f[0]), UAR_OK);
	gone = uar_str_c(f[1].run);
	CHECK_INT(evict(&w, uar_facts_owner, &gone, 1), UAR_OK);
	shut(&w);
	CHECK_INT(uar_store_sqlite_verify(dir, say, &bad, NULL), UAR_OK);
	reopen(&w, dir); /* it was durable */
	CHECK_INT(find(&w, &f[1]), UAR_ENOTFOUND);
	CHECK_INT(find(&w, &f[0]), UAR_OK);
	uar_facts_fini(&f[1]);
	CHECK_INT(claim(&w, &f[1], 3), UAR_OK); /* the key makes way, and is counted once */
	shut(&w);
	CHECK_INT(uar_store_sqlite_verify(dir, say, &bad, NULL), UAR_OK);
	/* A flipped mark is damage: neither does a run vanish by it nor come back. */
	run_sql(dir, "UPDATE runs SET evicted = 1 - evicted");
	CHECK_INT(uar_store_sqlite_verify(dir, say, &bad, NULL), UAR_ECORRUPT);
	CHECK_INT(bad, 3);
	uar_facts_fini(&f[0]);
	uar_facts_fini(&f[1]);
	uar_pump_fini(&w.pump);
}
