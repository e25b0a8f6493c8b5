/* schema_test.c - files of older versions: what they hold is read as it was. */
#include "store/world_test.h"

#include "store/sqlite/sqlite_int.h"

static uar_err reopen_as(struct world *w, const char *dir, bool evicts)
{
	struct uar_store_options o = { .sched = &w->pump.sched, .dir = dir, .evicts = evicts };

	w->sqlite = true;
	w->store = NULL;
	uar_pump_init(&w->pump);
	return uar_store_sqlite_create(&o, &w->store, NULL);
}

static uar_err reopen(struct world *w, const char *dir)
{
	return reopen_as(w, dir, false);
}

static void shut(struct world *w)
{
	uar_facts_drain(&w->pump, w->store);
	uar_store_destroy(w->store);
	uar_pump_fini(&w->pump);
}

static void say(void *ctx, const char *what)
{
	(void)ctx;
	printf("  %s\n", what);
}

/* As people open it: the view is theirs. */
static sqlite3 *open_file(const char *dir)
{
	char path[512];
	sqlite3 *db;

	snprintf(path, sizeof path, "%s/uar.db", dir);
	CHECK_INT(sqlite3_open(path, &db), SQLITE_OK);
	return db;
}

static void run_sql(sqlite3 *db, const char *sql)
{
	CHECK_INT(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
}

static int64_t number(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *st;
	int64_t n = -1;

	CHECK_INT(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
	if (sqlite3_step(st) == SQLITE_ROW)
		n = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	return n;
}

/* Bodies were changed: every sum after them is made anew. */
static void sum_again(sqlite3 *db)
{
	int64_t sid = 0, prev = 0;
	uint64_t acc = 0;
	sqlite3_stmt *st, *set;

	CHECK_INT(sqlite3_prepare_v2(db, "SELECT " SQ_LOG_COLUMNS " FROM log ORDER BY sid, seq", -1,
				     &st, NULL),
		  SQLITE_OK);
	CHECK_INT(sqlite3_prepare_v2(db, "UPDATE log SET prev = ?2, sum = ?3 WHERE pos = ?1", -1,
				     &set, NULL),
		  SQLITE_OK);
	while (sqlite3_step(st) == SQLITE_ROW) {
		struct sq_log_row r;

		sq_log_get(st, &r);
		r.prev = r.sid == sid ? prev : 0;
		r.sum = prev = sq_log_sum(&r);
		sid = r.sid;
		acc += sq_log_acc(&r);
		sqlite3_bind_int64(set, 1, r.pos);
		sqlite3_bind_int64(set, 2, r.prev);
		sqlite3_bind_int64(set, 3, r.sum);
		CHECK_INT(sqlite3_step(set), SQLITE_DONE);
		sqlite3_reset(set);
	}
	sqlite3_finalize(st);
	CHECK_INT(sqlite3_prepare_v2(db, "UPDATE head SET acc = ?1", -1, &st, NULL), SQLITE_OK);
	sqlite3_bind_int64(st, 1, (int64_t)acc);
	CHECK_INT(sqlite3_step(st), SQLITE_DONE);
	sqlite3_finalize(st);
	sqlite3_finalize(set);
}

/* The file as version 2 would have written it. */
static void make_old(const char *dir)
{
	sqlite3 *db = open_file(dir);

	run_sql(db, "UPDATE log SET body = (SELECT json_group_array(json_set(e.value,"
		    " '$.timestamp', v.timestamp)) FROM json_each(body) e"
		    " JOIN events v ON v.pos = log.pos AND v.sequence = log.seq + e.key)");
	CHECK_INT(number(db, "SELECT count(*) FROM log, json_each(body)"
			     " WHERE json_type(value, '$.timestamp') IS NULL"),
		  0);
	sum_again(db);
	run_sql(db, "DROP VIEW events;" BEFORE_VERSION_5 "ALTER TABLE log DROP COLUMN lead;"
		    "ALTER TABLE log DROP COLUMN tail; CREATE VIEW events AS SELECT 1;"
		    "PRAGMA user_version = 2");
	sqlite3_close(db);
}

static void check_view(const char *dir)
{
	sqlite3 *db = open_file(dir);

	CHECK_INT(number(db, "SELECT count(*) FROM events"), 9);
	/* The facts have a microsecond between them; each is there once. */
	CHECK_INT(number(db, "SELECT count(DISTINCT timestamp) FROM events WHERE timestamp"
			     " GLOB '2023-11-14T22:13:20.00000[0-8]Z'"),
		  9);
	/* An old row has all its times, a new one has not that of its first event. */
	CHECK_INT(number(db, "SELECT count(*) FROM events"
			     " WHERE json_type(event, '$.timestamp') IS NULL"),
		  1);
	sqlite3_close(db);
}

TEST(a_file_of_version_2_keeps_its_events, "")
{
	const char *dir = uar_test_dir();
	struct uar_facts f;
	struct world w;

	REQUIRE(reopen(&w, dir) == UAR_OK);
	CHECK_INT(begin(&w, &f, 1), UAR_OK);
	CHECK_INT(go_on(&w, &f, 3), UAR_OK);
	shut(&w);
	make_old(dir);
	CHECK_INT(uar_store_sqlite_verify(dir, say, NULL, NULL), UAR_ESTATE);
	REQUIRE(reopen(&w, dir) == UAR_OK);
	CHECK(uar_facts_all_there(&w.pump, w.store, &f));
	CHECK_INT(go_on(&w, &f, 3), UAR_OK);
	CHECK(uar_facts_all_there(&w.pump, w.store, &f));
	shut(&w);
	CHECK_INT(uar_store_sqlite_verify(dir, say, NULL, NULL), UAR_OK);
	check_view(dir);
	uar_facts_fini(&f);
}

static size_t beyond(struct world *w, uint64_t keep)
{
	struct uar_runs_query q = { .owner = uar_facts_owner, .beyond = keep, .limit = 9 };
	size_t n;

	CHECK_INT(uar_facts_runs(&w->pump, w->store, &q), UAR_OK);
	n = q.row_count;
	uar_store_query_fini(&q);
	return n;
}

/* How many steps of a statement's plan name what is given; none may sort then. */
static int walks(sqlite3 *db, enum sq_id id, const char *name)
{
	static const char *const statements[SQ_COUNT] = {
#define S(NAME, SQL) [SQ_##NAME] = SQL,
#include "store/sqlite/statements.def"
#undef S
	};
	char sql[4096];
	sqlite3_stmt *st;
	int n = 0, sorts = 0;

	snprintf(sql, sizeof sql, "EXPLAIN QUERY PLAN %s", statements[id]);
	CHECK_INT(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
	while (sqlite3_step(st) == SQLITE_ROW) {
		const char *step = (const char *)sqlite3_column_text(st, 3);

		n += strstr(step, name) != NULL;
		sorts += strstr(step, "TEMP B-TREE") != NULL;
	}
	sqlite3_finalize(st);
	CHECK(n == 0 || sorts == 0);
	return n;
}

/* It comes and goes with the setting; what it would make quick is true without it. */
TEST(the_index_of_ended_runs_is_there_when_it_is_wanted, "")
{
	const char *dir = uar_test_dir();
	struct uar_run_row row;
	struct uar_facts f;
	struct world w;

	for (int i = 0; i < 5; i++) {
		bool wanted = i & 1;
		sqlite3 *db;

		REQUIRE(reopen_as(&w, dir, wanted) == UAR_OK);
		CHECK_INT(begin(&w, &f, 1 + (uint64_t)i), UAR_OK);
		row = uar_facts_row(&f, "completed", true);
		CHECK_INT(set_row(&w, &f, &row), UAR_OK);
		CHECK_INT(beyond(&w, 1), i);
		shut(&w);
		uar_facts_fini(&f);
		CHECK_INT(uar_store_sqlite_verify(dir, say, NULL, NULL), UAR_OK);
		db = open_file(dir);
		CHECK_INT(
			number(db, "SELECT count(*) FROM sqlite_schema WHERE name = 'runs_ended'"),
			wanted);
		CHECK_INT(walks(db, SQ_RUNS_BEYOND, "INDEX runs_ended "), wanted ? 2 : 0);
		CHECK_INT(walks(db, SQ_OWNERS_BEYOND, "INDEX runs_ended "), wanted);
		sqlite3_close(db);
	}
}

static void count_waiting(void *ctx, const struct uar_run_row *row)
{
	CHECK(row->run_id.n && row->session_id.n && row->thread_id.n && row->owner.user.n);
	CHECK_STR(row->status, "running");
	CHECK_STR(row->listed.waits, "permission");
	++*(size_t *)ctx;
}

/* Before version 6 the list of a start read the row of each run. Old rows stay as they are. */
TEST(a_start_reads_of_runs_that_wait_only_the_index, "")
{
	const char *dir = uar_test_dir();
	struct uar_run_row row;
	struct uar_facts f;
	struct world w;
	size_t live = 0;
	sqlite3 *db;

	REQUIRE(reopen(&w, dir) == UAR_OK);
	CHECK_INT(begin(&w, &f, 1), UAR_OK);
	row = uar_facts_row(&f, "running", false);
	row.listed.waits = UAR_STR("permission");
	CHECK_INT(set_row(&w, &f, &row), UAR_OK);
	shut(&w);
	db = open_file(dir);
	CHECK_INT(walks(db, SQ_RUNS_LIVE, "COVERING INDEX runs_open"), 1);
	run_sql(db, "DROP INDEX runs_open; CREATE INDEX runs_open ON runs(sid, rid)"
		    " WHERE terminal = 0; PRAGMA user_version = 5");
	CHECK_INT(walks(db, SQ_RUNS_LIVE, "COVERING INDEX runs_open"), 0);
	sqlite3_close(db);
	REQUIRE(reopen(&w, dir) == UAR_OK);
	CHECK_INT(w.store->ops->each_live(w.store, count_waiting, &live, NULL), UAR_OK);
	CHECK_INT(live, 1);
	shut(&w);
	db = open_file(dir);
	CHECK_INT(walks(db, SQ_RUNS_LIVE, "COVERING INDEX runs_open"), 1);
	sqlite3_close(db);
	CHECK_INT(uar_store_sqlite_verify(dir, say, NULL, NULL), UAR_OK);
	uar_facts_fini(&f);
}
