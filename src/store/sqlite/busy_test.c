/* busy_test.c - a lock of another program: what waits for it, who is told, when it is given up. */
#include "store/world_test.h"

#include "store/sqlite/sqlite_int.h"

/* Another program with a transaction, and a log that can be read. */
struct other {
	sqlite3 *db;
	struct uar_log log;
	struct uar_log_out out;
	int write_end;
	int lines; /* where the log is read */
	char path[512];
};

static void other_opens(struct other *o, const char *dir)
{
	int ends[2];

	REQUIRE(pipe(ends) == 0);
	o->lines = ends[0];
	o->write_end = ends[1];
	uar_log_out_init(&o->out, ends[1]);
	o->log = (struct uar_log){ &uar_clock_system, UAR_LOG_INFO, false, &o->out };
	snprintf(o->path, sizeof o->path, "%s/uar.db", dir);
	REQUIRE(!sqlite3_open(o->path, &o->db));
}

static void other_does(struct other *o, const char *sql)
{
	REQUIRE(!sqlite3_exec(o->db, sql, NULL, NULL, NULL));
}

static void other_ends(struct other *o)
{
	sqlite3_close(o->db);
	close(o->lines);
	uar_log_out_fini(&o->out);
	close(o->write_end);
}

/* Waits for the next line of the log. */
static void told(const struct other *o, const char *what)
{
	char line[512];
	ssize_t n = read(o->lines, line, sizeof line - 1);

	REQUIRE(n > 0);
	line[n] = 0;
	CHECK(strstr(line, what) != NULL);
}

struct waiter {
	struct sq_busy busy;
	struct sq_conn conn;
	struct uar_error error;
	uar_err err;
};

static void *begin_transaction(void *arg)
{
	struct waiter *w = arg;

	w->err = sq_exec(&w->conn, "BEGIN IMMEDIATE", &w->error);
	return NULL;
}

TEST(who_waits_for_a_lock_is_refused_when_it_ends, "")
{
	struct waiter w = { .err = UAR_OK };
	pthread_t thread;
	struct other o;

	other_opens(&o, uar_test_dir());
	sq_busy_init(&w.busy, &o.log);
	REQUIRE(!sq_open_writer(&w.conn, o.path, NULL, &w.busy, &w.error));
	other_does(&o, "BEGIN IMMEDIATE");
	REQUIRE(pthread_create(&thread, NULL, begin_transaction, &w) == 0);
	told(&o, "store.held");
	sq_busy_stop(&w.busy);
	pthread_join(thread, NULL);
	CHECK_INT(w.err, UAR_EHELD);
	CHECK(strstr(w.error.text, "another program holds the write lock") != NULL);
	CHECK(!w.busy.refused); /* it was not the time that ended it */
	sq_close(&w.conn);
	sq_busy_fini(&w.busy);
	other_ends(&o);
}

static bool append_told;

static void append_done(struct uar_append *a)
{
	(void)a;
	append_told = true;
}

static void reads(struct world *w, struct uar_read *r, uint64_t events)
{
	CHECK_INT(uar_facts_read(&w->pump, w->store, r), UAR_OK);
	CHECK_INT(r->event_count, events);
	uar_store_read_fini(r);
}

TEST(an_append_waits_for_a_lock_and_is_told_once_it_is_stored, "")
{
	const char *dir = uar_test_dir();
	struct world w = { .sqlite = true };
	struct uar_read r;
	struct uar_facts f;
	struct other o;
	struct one one;

	other_opens(&o, dir);
	uar_pump_init(&w.pump);
	REQUIRE(!uar_store_sqlite_create(
		&(struct uar_store_options){ .sched = &w.pump.sched, .dir = dir, .log = &o.log },
		&w.store, NULL));
	CHECK_INT(begin(&w, &f, 1), UAR_OK);
	r = (struct uar_read){ .owner = f.owner, .run_id = uar_str_c(f.run), .limit = 100 };
	for (int i = 0; i < 2; i++) { /* the second is another episode */
		uint64_t before = f.run_seq;

		other_does(&o, "BEGIN IMMEDIATE");
		append_told = false;
		one_delta(&f, &one)->a.done = append_done;
		REQUIRE(!w.store->ops->append(w.store, &one.a));
		reads(&w, &r, before);
		told(&o, "store.held");
		CHECK(!append_told);
		other_does(&o, "COMMIT");
		uar_pump_until(&w.pump, &append_told);
		CHECK_INT(one.a.err, UAR_OK);
		told(&o, "store.released");
		reads(&w, &r, before + 1);
	}
	uar_facts_fini(&f);
	close_world(&w);
	other_ends(&o);
}
