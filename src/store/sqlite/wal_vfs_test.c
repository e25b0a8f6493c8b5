/* wal_vfs_test.c - a checkpoint that fails half way loses nothing.
 *
 * With a reader on an older state SQLite folds in what that reader may see, syncs
 * nothing and takes those pages for written from then on. So each write to the file
 * must have been done, or have failed, when its call returns. */
#include "test.h"

#include <stdlib.h>

#include "faultvfs.h"
#include "store/sqlite/sqlite_int.h"

enum { ROWS = 40 }; /* each has pages of its own */

struct pair {
	char path[400];
	struct sq_conn writer, reader;
	struct uar_error error;
};

static void run_sql(struct pair *p, struct sq_conn *c, const char *sql)
{
	CHECK_MSG(!sq_exec(c, sql, &p->error), "%s", p->error.text);
}

static void add_rows(struct pair *p)
{
	char sql[200];

	snprintf(sql, sizeof sql,
		 "WITH RECURSIVE k(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM k WHERE i < %d)"
		 " INSERT INTO t(body) SELECT hex(zeroblob(6000)) FROM k",
		 ROWS);
	run_sql(p, &p->writer, sql);
}

static int one_number(void *ctx, int n, char **value, char **name)
{
	(void)n, (void)name;
	*(long *)ctx = value[0] ? strtol(value[0], NULL, 10) : -1;
	return 0;
}

static int one_word(void *ctx, int n, char **value, char **name)
{
	(void)n, (void)name;
	*(bool *)ctx = value[0] && strcmp(value[0], "ok") == 0;
	return 0;
}

/* As somebody reads it who knows nothing of what went on. */
static void check_file(const struct pair *p, long rows)
{
	bool fine = false;
	long there = -1;
	sqlite3 *db;

	CHECK_INT(sqlite3_open(p->path, &db), SQLITE_OK);
	CHECK_INT(sqlite3_exec(db, "PRAGMA integrity_check", one_word, &fine, NULL), SQLITE_OK);
	CHECK(fine);
	CHECK_INT(sqlite3_exec(db, "SELECT count(*) FROM t WHERE body = hex(zeroblob(6000))",
			       one_number, &there, NULL),
		  SQLITE_OK);
	CHECK_INT(there, rows);
	sqlite3_close(db);
}

static int fold(struct pair *p)
{
	return sqlite3_wal_checkpoint_v2(p->writer.db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
}

static void begin(struct pair *p)
{
	*p = (struct pair){ .error = { 0 } };
	snprintf(p->path, sizeof p->path, "%s/uar.db", uar_test_dir());
	REQUIRE(!sq_open(&p->writer, p->path, uar_fault_vfs(), SQ_WRITE, &p->error));
	run_sql(p, &p->writer, "CREATE TABLE t(id INTEGER PRIMARY KEY, body TEXT)");
	CHECK_INT(fold(p), SQLITE_OK);
	REQUIRE(!sq_open(&p->reader, p->path, NULL, SQ_READ, &p->error));
}

/* The n-th write of a partial checkpoint fails; false: it has fewer. */
static bool one_checkpoint(enum uar_fault_kind kind, unsigned long n)
{
	struct pair p;
	bool hit;
	int rc;

	begin(&p);
	add_rows(&p);
	run_sql(&p, &p.reader, "BEGIN; SELECT count(*) FROM t");
	add_rows(&p);
	uar_fault_arm(kind, n, false);
	rc = fold(&p);
	hit = uar_fault_happened();
	CHECK_INT(rc != SQLITE_OK, hit); /* nothing is swallowed */
	uar_fault_disarm();
	run_sql(&p, &p.reader, "COMMIT");
	CHECK_INT(fold(&p), SQLITE_OK);
	check_file(&p, 2L * ROWS);
	add_rows(&p); /* over the log's beginning: what is not in the file is gone now */
	CHECK_INT(fold(&p), SQLITE_OK);
	sq_close(&p.reader);
	sq_close(&p.writer);
	check_file(&p, 3L * ROWS);
	return hit;
}

TEST(a_checkpoint_beside_a_reader_may_fail_at_any_write, "")
{
	static const enum uar_fault_kind kinds[] = { UAR_FAULT_EIO, UAR_FAULT_FULL };

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		unsigned long n = 1;

		while (one_checkpoint(kinds[i], n))
			n += 1 + n / 8;
		CHECK_MSG(n > 20, "only %lu writes", n);
	}
}
