/* verify_test.c - whatever is damaged is found.
 *
 * A small store is filled once; then one thing at a time is changed in a copy,
 * through SQL or in the bytes of the file, and the check must notice. A flipped
 * byte that nobody notices must be one that changes nothing. */
#include "store/world_test.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include "base/alloc.h"
#include "store/sqlite/sqlite_int.h"

enum { SESSIONS = 6 };

static char dir[400], path[450];
static char *good; /* the file's bytes */
static size_t good_n;
static struct uar_buf good_dump;

static void write_file(const char *bytes, size_t n)
{
	char wal[500];
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	CHECK(write(fd, bytes, n) == (ssize_t)n);
	close(fd);
	snprintf(wal, sizeof wal, "%s-wal", path);
	unlink(wal);
	snprintf(wal, sizeof wal, "%s-shm", path);
	unlink(wal);
}

static void read_file(void)
{
	int fd = open(path, O_RDONLY);
	off_t n = lseek(fd, 0, SEEK_END);

	good = uar_alloc((size_t)n);
	good_n = (size_t)n;
	CHECK(pread(fd, good, good_n, 0) == n);
	close(fd);
}

static int dump_row(void *ctx, int n, char **value, char **name)
{
	(void)name;
	for (int i = 0; i < n; i++)
		uar_buf_printf(ctx, "%s|", value[i] ? value[i] : "-");
	return 0;
}

/* Everything that is stored, as text; false when it cannot be read. */
static bool dump(struct uar_buf *out)
{
	static const char *const tables[] = { "meta", "head", "owners", "sessions", "threads",
					      "runs", "keys", "log",	"rows" };
	char sql[100];
	sqlite3 *db;
	bool fine = sqlite3_open(path, &db) == SQLITE_OK;

	for (size_t i = 0; i < ARRAY_LEN(tables) && fine; i++) {
		snprintf(sql, sizeof sql, "SELECT * FROM %s ORDER BY 1, 2", tables[i]);
		fine = sqlite3_exec(db, sql, dump_row, out, NULL) == SQLITE_OK;
	}
	sqlite3_close(db);
	return fine;
}

static void fill(void)
{
	struct world w;
	struct uar_store_options o = { .sched = &w.pump.sched, .dir = dir };
	struct uar_facts f;

	uar_pump_init(&w.pump);
	if (uar_store_sqlite_create(&o, &w.store, NULL))
		exit(1);
	for (uint64_t i = 1; i <= SESSIONS; i++) {
		struct uar_key_row key = { UAR_STR("runs"), UAR_STR("key"), UAR_STR("print"),
					   UAR_STR("run") };
		struct uar_row row = { .kind = UAR_ROW_TASK,
				       .status = UAR_STR("running"),
				       .open = true,
				       .body = UAR_STR("{}") };
		char text[16];
		struct one one;

		uar_facts_init(&f, w.store, i);
		f.owner = i % 2 ? uar_facts_owner : uar_facts_stranger;
		CHECK_INT(uar_facts_begin(&w.pump, w.store, &f), UAR_OK);
		one_delta(&f, &one);
		snprintf(text, sizeof text, "key%d", (int)i);
		key.key = uar_str_c(text);
		one.a.key = &key;
		row.id = uar_str_c(text);
		one.a.rows = &row;
		one.a.row_count = 1;
		one.ev.ids[UAR_ID_ATTEMPT] = UAR_STR("own");
		CHECK_INT(uar_facts_append(&w.pump, w.store, &one.a), UAR_OK);
		for (size_t n = 1; n < 5; n++)
			CHECK_INT(go_on(&w, &f, n * i), UAR_OK);
		uar_facts_fini(&f);
	}
	uar_facts_drain(&w.pump, w.store);
	uar_store_destroy(w.store);
	uar_pump_fini(&w.pump);
}

static void prepare(void)
{
	if (good) {
		write_file(good, good_n);
		return;
	}
	snprintf(dir, sizeof dir, "%s/data", uar_test_dir());
	snprintf(path, sizeof path, "%s/uar.db", dir);
	fill();
	good_dump = uar_buf_make(1 << 24);
	CHECK(dump(&good_dump));
	read_file();
}

static char last[600];
static void note(void *ctx, const char *what)
{
	++*(size_t *)ctx;
	snprintf(last, sizeof last, "%s", what);
}

static void count_run(void *ctx, const struct uar_run_row *row)
{
	(void)row;
	++*(size_t *)ctx;
}

static uar_err verify(void)
{
	size_t n = 0;
	uar_err e = uar_store_sqlite_verify(dir, note, &n, NULL);

	CHECK((e == UAR_OK) == (n == 0));
	return e;
}

/* The statement changes something; the check must say so. */
static void must_notice(const char *sql)
{
	sqlite3 *db;

	prepare();
	if (!CHECK(sqlite3_open(path, &db) == SQLITE_OK))
		return;
	CHECK_MSG(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK, "%s: %s", sql,
		  sqlite3_errmsg(db));
	CHECK_MSG(sqlite3_total_changes(db) > 0, "%s changed nothing", sql);
	sqlite3_close(db);
	CHECK_MSG(verify() == UAR_ECORRUPT, "not noticed: %s", sql);
}

static int64_t int_of(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *st = NULL;
	int64_t value = 0;

	if (CHECK(sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK) &&
	    CHECK(sqlite3_step(st) == SQLITE_ROW))
		value = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	return value;
}

TEST(a_sound_store_verifies, "")
{
	prepare();
	CHECK_MSG(verify() == UAR_OK, "%s", last);
}

struct columns {
	const char *table;
	char name[40][32];
	bool text[40], key[40];
	int n;
};

static int add_column(void *ctx, int n, char **value, char **name)
{
	struct columns *c = ctx;

	(void)n, (void)name;
	snprintf(c->name[c->n], sizeof c->name[0], "%s", value[1]);
	c->text[c->n] = strcmp(value[2], "TEXT") == 0;
	c->key[c->n] = strcmp(value[5], "0") != 0;
	c->n++;
	return 0;
}

static struct columns columns_of(const char *table)
{
	struct columns c = { .table = table };
	char sql[100];
	sqlite3 *db;

	snprintf(sql, sizeof sql, "PRAGMA table_info(%s)", table);
	CHECK(sqlite3_open(path, &db) == SQLITE_OK);
	CHECK(sqlite3_exec(db, sql, add_column, &c, NULL) == SQLITE_OK);
	sqlite3_close(db);
	return c;
}

/* Every column of every table, in its first, last and some row in between. */
TEST(a_changed_column_is_noticed, "")
{
	static const char *const tables[] = { "head", "owners", "sessions", "threads",
					      "runs", "keys",	"log",	    "rows" };
	char sql[400];

	prepare();
	for (size_t t = 0; t < ARRAY_LEN(tables); t++) {
		struct columns c = columns_of(tables[t]);

		for (int i = 0; i < c.n; i++)
			for (int at = 0; at < 3; at++) {
				const char *col = c.name[i], *tab = tables[t];
				const char *id = c.name[0];

				if (strcmp(col, "one") == 0)
					continue;
				snprintf(sql, sizeof sql,
					 "UPDATE %s SET %s = %s WHERE %s = (SELECT %s FROM %s "
					 "ORDER BY 1 %s LIMIT 1 OFFSET %d)",
					 tab, col,
					 c.text[i] ? "'x' || coalesce(NAME, '')"
						   : "coalesce(NAME, 0) + 1000",
					 id, id, tab, at == 1 ? "DESC" : "",
					 at == 2 && t > 1 ? 1 : 0);
				for (char *p; (p = strstr(sql, "NAME"));) {
					char rest[400];

					snprintf(rest, sizeof rest, "%s", p + 4);
					snprintf(p, sizeof sql - (size_t)(p - sql), "%s%s", col,
						 rest);
				}
				must_notice(sql);
			}
	}
}

/* A text that reads as 0 is not 0, and neither is a number that reads as no text. */
TEST(a_column_of_another_type_is_noticed, "")
{
	static const char *const tables[] = { "head", "owners", "sessions", "threads",
					      "runs", "keys",	"log",	    "rows" };
	char sql[300], value[64];

	prepare();
	for (size_t t = 0; t < ARRAY_LEN(tables); t++) {
		struct columns c = columns_of(tables[t]);

		for (int i = 0; i < c.n; i++) {
			bool is_rowid = i == 0 && !c.text[0] && c.key[0] && !c.key[1];

			if (is_rowid) /* can be nothing else */
				continue;
			snprintf(value, sizeof value, "CAST(coalesce(%s, '') AS BLOB)", c.name[i]);
			snprintf(sql, sizeof sql,
				 "UPDATE %s SET %s = %s WHERE %s = (SELECT %s FROM %s LIMIT 1)",
				 tables[t], c.name[i], c.text[i] ? value : "''", c.name[0],
				 c.name[0], tables[t]);
			must_notice(sql);
		}
	}
}

/* Rows that are written with events of their session alone, first and later. */
TEST(a_row_without_events_of_its_run_is_sound, "")
{
	struct uar_store_options o = { .dir = NULL };
	struct uar_facts f, g;
	struct uar_event ev[3];
	struct uar_append a;
	struct uar_run_row row;
	struct world w;
	char own[400];
	size_t n = 0;

	snprintf(own, sizeof own, "%s/data", uar_test_dir());
	o.dir = own;
	o.sched = &w.pump.sched;
	uar_pump_init(&w.pump);
	REQUIRE(!uar_store_sqlite_create(&o, &w.store, NULL));
	CHECK_INT(begin(&w, &f, 1), UAR_OK);
	CHECK_INT(begin(&w, &g, 2), UAR_OK); /* and nothing more */
	CHECK_INT(go_on(&w, &f, 3), UAR_OK);
	row = uar_facts_row(&f, "running", false);
	a = (struct uar_append){ .owner = f.owner,
				 .session_id = uar_str_c(f.session),
				 .after = f.seq,
				 .events = ev,
				 .run = &row };
	a.event_count = uar_facts_opening(&f, ev);
	CHECK_INT(uar_facts_append(&w.pump, w.store, &a), UAR_OK);
	CHECK_INT(go_on(&w, &f, 2), UAR_OK);
	uar_facts_fini(&f);
	uar_facts_fini(&g);
	close_world(&w);
	CHECK_MSG(uar_store_sqlite_verify(own, note, &n, NULL) == UAR_OK, "%s", last);
}

TEST(a_run_that_is_misplaced_is_noticed, "")
{
	must_notice("UPDATE runs SET last_seq = last_seq + 1 WHERE rid = 1");
	must_notice("UPDATE runs SET last_seq = last_seq - 1 WHERE rid = 2");
	must_notice("UPDATE runs SET last_seq = last_seq - 2 WHERE rid = 3");
	must_notice("UPDATE runs SET last_seq = 0 WHERE rid = 3");
	must_notice("UPDATE runs SET terminal = 2 WHERE rid = 1");
	must_notice("UPDATE runs SET terminal = -1 WHERE rid = 1");
	must_notice("UPDATE runs SET evicted = 2 WHERE rid = 1");
}

static void read_some(struct world *w, const struct uar_owner *owner, uar_str run_id,
		      uar_str session_id)
{
	struct uar_read r = {
		.owner = *owner, .run_id = run_id, .session_id = session_id, .after = 3, .limit = 4
	};

	(void)uar_facts_read(&w->pump, w->store, &r);
	uar_store_read_fini(&r);
}

/* Whatever reads the damaged store comes to an end, however far off parts are said to be. */
static void reading_ends(void)
{
	struct world w;
	struct uar_store_options o = { .sched = &w.pump.sched, .dir = dir };
	struct uar_facts f;
	size_t live = 0;

	uar_pump_init(&w.pump);
	REQUIRE(!uar_store_sqlite_create(&o, &w.store, NULL));
	uar_facts_init(&f, w.store, 1);
	read_some(&w, &f.owner, uar_str_c(f.run), UAR_STR(""));
	read_some(&w, &f.owner, UAR_STR(""), uar_str_c(f.session));
	CHECK_INT(w.store->ops->each_live(w.store, count_run, &live, NULL), UAR_OK);
	CHECK_INT(live, SESSIONS);
	uar_facts_fini(&f);
	close_world(&w);
}

TEST(a_part_that_is_far_off_is_noticed_and_not_walked_to, "")
{
	static const char *const columns[] = { "sessions SET first_part", "sessions SET last_part",
					       "runs SET first_part" };
	char sql[100];

	for (size_t i = 0; i < ARRAY_LEN(columns); i++)
		for (int sign = -1; sign <= 1; sign += 2) {
			snprintf(sql, sizeof sql, "UPDATE %s = %lld", columns[i],
				 sign * (1LL << 50));
			must_notice(sql);
			reading_ends();
		}
}

TEST(a_missing_row_is_noticed, "")
{
	static const char *const tables[] = { "owners", "sessions", "threads", "runs",
					      "keys",	"head",	    "meta" };
	char sql[200];

	for (size_t t = 0; t < ARRAY_LEN(tables); t++) {
		snprintf(sql, sizeof sql, "DELETE FROM %s WHERE 1 = 1", tables[t]);
		must_notice(sql);
	}
	for (int i = 0; i < 30; i++) {
		snprintf(sql, sizeof sql,
			 "DELETE FROM log WHERE pos = (SELECT pos FROM log ORDER BY pos DESC"
			 " LIMIT 1 OFFSET %d)",
			 i);
		must_notice(sql);
	}
	must_notice("DELETE FROM keys WHERE key = 'key3'");
	must_notice("DELETE FROM threads WHERE sid = 2");
	must_notice("DELETE FROM runs WHERE rid = 2");
	must_notice("DELETE FROM log WHERE sid = 3; DELETE FROM sessions WHERE sid = 3");
}

TEST(swapped_and_doubled_rows_are_noticed, "")
{
	must_notice("UPDATE log SET body = (SELECT body FROM log WHERE pos = 9 - l.pos)"
		    " FROM log l WHERE log.pos = l.pos AND log.pos IN (4, 5)");
	must_notice("UPDATE log SET pos = -pos WHERE pos IN (4, 5);"
		    "UPDATE log SET pos = 9 + pos WHERE pos < 0");
	must_notice("UPDATE log SET sid = 100 WHERE sid = 1; UPDATE log SET sid = 1 WHERE sid = 2;"
		    "UPDATE log SET sid = 2 WHERE sid = 100");
	must_notice("UPDATE runs SET run_id = run_id || 'x' WHERE rid = 1;"
		    "UPDATE log SET run_seq = run_seq + 1000 WHERE rid = 1");
	must_notice("INSERT INTO log SELECT 1000, sid, 1000, rid, 1000, n, at, ids, body, prev, "
		    "sum, lead, tail"
		    " FROM log WHERE pos = 5");
	must_notice("INSERT INTO keys SELECT oid, scope, 'more', fingerprint, run_id, sum FROM keys"
		    " LIMIT 1");
	must_notice("DROP INDEX runs_open; UPDATE head SET pos = pos");
}

/* The row at `pos` gets another time, with a right sum of its own and in the head: then the
 * row behind it in its session is the only one that knows better. */
static void forge_row(sqlite3 *db, int64_t pos)
{
	struct sq_log_row r;
	sqlite3_stmt *st;
	uint64_t acc, sum;
	char sql[300];

	snprintf(sql, sizeof sql, "SELECT " SQ_LOG_COLUMNS " FROM log WHERE pos = %lld",
		 (long long)pos);
	REQUIRE(sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK);
	REQUIRE(sqlite3_step(st) == SQLITE_ROW);
	sq_log_get(st, &r);
	acc = sq_log_acc(&r);
	r.at++;
	r.sum = sq_log_sum(&r);
	acc = sq_log_acc(&r) - acc;
	sqlite3_finalize(st);
	sum = (uint64_t)int_of(db, "SELECT acc FROM head") + acc;
	snprintf(sql, sizeof sql,
		 "UPDATE log SET at = %lld, sum = %lld WHERE pos = %lld;"
		 "UPDATE head SET acc = %lld",
		 (long long)r.at, (long long)r.sum, (long long)pos, (long long)sum);
	CHECK_MSG(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(db));
}

TEST(a_forged_row_is_noticed_by_the_row_behind_it, "")
{
	int64_t first, final;
	sqlite3 *db;

	prepare();
	REQUIRE(sqlite3_open(path, &db) == SQLITE_OK);
	first = int_of(db, "SELECT min(pos) FROM log WHERE sid = 2");
	final = int_of(db, "SELECT max(pos) FROM log WHERE sid = 2");
	CHECK(first < final);
	forge_row(db, final);
	sqlite3_close(db);
	CHECK_MSG(verify() == UAR_OK, "%s", last); /* the sums of a forged row are right */
	prepare();
	REQUIRE(sqlite3_open(path, &db) == SQLITE_OK);
	forge_row(db, first);
	sqlite3_close(db);
	CHECK_INT(verify(), UAR_ECORRUPT);
	CHECK_MSG(strstr(last, "does not follow the row before it"), "%s", last);
}

/* Any byte of the file. */
TEST(a_flipped_bit_is_noticed_or_harmless, "")
{
	struct uar_rand_seeded seed;
	struct uar_rand rand = uar_rand_seed(&seed, 7);
	size_t noticed = 0, harmless = 0;

	for (int i = 0; i < 400; i++) {
		struct uar_buf after = uar_buf_make(1 << 24);
		unsigned char bit = (unsigned char)(1u << uar_rand_below(&rand, 8));
		size_t at;

		prepare();
		at = (size_t)uar_rand_below(&rand, good_n);
		good[at] = (char)(good[at] ^ bit);
		write_file(good, good_n);
		good[at] = (char)(good[at] ^ bit);
		if (verify() != UAR_OK) {
			noticed++;
		} else {
			CHECK_MSG(dump(&after) &&
					  uar_str_eq(uar_buf_str(&after), uar_buf_str(&good_dump)),
				  "byte %zu changed unnoticed", at);
			harmless++;
		}
		uar_buf_fini(&after);
	}
	CHECK(noticed > 50);
	printf("  %zu noticed, %zu harmless\n", noticed, harmless);
}
