/* wal_size_test.c - the file of the write-ahead log does not stay large for ever.
 *
 * A reader on an old state keeps the log from beginning anew, so that it grows. Once the
 * reader is gone it comes back to its usual size: while the store is at work, while nothing
 * happens at all, and after a kill without any further append. */
#include "store/world_test.h"

#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "store/sqlite/sqlite_int.h"

enum { FOLD_AT = 20, LARGE = 8 }; /* so many times its usual size */

static char dir[400];

static void fresh_dir(void)
{
	snprintf(dir, sizeof dir, "%s/data", uar_test_dir());
}

static uar_err open_store(struct world *w)
{
	struct uar_store_options o = { .sched = &w->pump.sched,
				       .dir = dir,
				       .checkpoint_pages = FOLD_AT };

	uar_pump_init(&w->pump);
	return uar_store_sqlite_create(&o, &w->store, NULL);
}

static int64_t log_bytes(void)
{
	char path[450];
	struct stat st;

	snprintf(path, sizeof path, "%s/uar.db-wal", dir);
	return stat(path, &st) ? -1 : (int64_t)st.st_size;
}

static sqlite3 *hold_back(void)
{
	char path[450];
	sqlite3 *db = NULL;

	snprintf(path, sizeof path, "%s/uar.db", dir);
	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) ||
	    sqlite3_exec(db, "BEGIN; SELECT count(*) FROM log", NULL, NULL, NULL))
		exit(1);
	return db;
}

/* NULL: it did not work; otherwise what keeps it large. */
static sqlite3 *grow_and_hold(struct world *w, struct uar_facts *f)
{
	sqlite3 *reader;

	if (begin(w, f, 1))
		return NULL;
	reader = hold_back();
	while (log_bytes() < LARGE * sq_log_kept(FOLD_AT))
		if (go_on(w, f, 100))
			return NULL;
	return reader;
}

static bool grow(struct world *w, struct uar_facts *f)
{
	sqlite3 *reader = grow_and_hold(w, f);

	sqlite3_close(reader);
	return reader != NULL;
}

static void wait_a_little(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

/* What the writer has planned. */
static struct sq_retry retry_of(struct world *w)
{
	struct sq_writer *writer = &UAR_OWNER(w->store, struct sq_store, base)->writer;
	struct sq_retry r;

	pthread_mutex_lock(&writer->lock);
	r = writer->retry;
	pthread_mutex_unlock(&writer->lock);
	return r;
}

static void bad(void *ctx, const char *what)
{
	printf("  %s\n", what);
	++*(size_t *)ctx;
}

static void check_sound(void)
{
	size_t n = 0;

	CHECK_INT(uar_store_sqlite_verify(dir, bad, &n, NULL), UAR_OK);
}

TEST(the_log_becomes_short_again_at_work, "")
{
	struct uar_facts f;
	struct world w;

	fresh_dir();
	REQUIRE(open_store(&w) == UAR_OK);
	REQUIRE(grow(&w, &f));
	for (int i = 0; i < 10 * FOLD_AT && log_bytes() > sq_log_kept(FOLD_AT); i++)
		CHECK_INT(go_on(&w, &f, 20), UAR_OK);
	CHECK_MSG(log_bytes() <= sq_log_kept(FOLD_AT), "%lld bytes", (long long)log_bytes());
	CHECK(uar_facts_all_there(&w.pump, w.store, &f));
	uar_facts_fini(&f);
	close_world(&w);
	check_sound();
}

/* Once it has tried in vain nothing else would make it try again. */
TEST(the_log_becomes_short_when_a_reader_goes_while_nothing_happens, "")
{
	struct uar_facts f;
	struct world w;
	sqlite3 *reader;

	fresh_dir();
	REQUIRE(open_store(&w) == UAR_OK);
	reader = grow_and_hold(&w, &f);
	REQUIRE(reader != NULL);
	while (retry_of(&w).pause < 400000) /* in vain, and again */
		wait_a_little();
	CHECK(log_bytes() > sq_log_kept(FOLD_AT));
	sqlite3_close(reader);
	while (log_bytes() > sq_log_kept(FOLD_AT))
		wait_a_little();
	while (retry_of(&w).left) /* and sleeps without an end */
		wait_a_little();
	CHECK(uar_facts_all_there(&w.pump, w.store, &f));
	uar_facts_fini(&f);
	close_world(&w);
	check_sound();
}

/* Grows the log, tells how many events there are and waits to be killed. */
static void child(int tell)
{
	struct uar_facts f;
	struct world w;

	if (open_store(&w) || !grow(&w, &f) ||
	    write(tell, &f.seq, sizeof f.seq) != (ssize_t)sizeof f.seq)
		_exit(3);
	for (;;)
		pause();
}

static void kill_one(uint64_t *out_seq)
{
	int ends[2], status;
	pid_t pid;

	REQUIRE(pipe(ends) == 0);
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		child(ends[1]);
	close(ends[1]);
	REQUIRE(read(ends[0], out_seq, sizeof *out_seq) == (ssize_t)sizeof *out_seq);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	close(ends[0]);
}

TEST(the_log_of_a_killed_store_becomes_short_by_itself, "")
{
	struct uar_facts f;
	struct uar_event ev[3];
	struct world w;
	uint64_t seq = 0;

	fresh_dir();
	kill_one(&seq);
	CHECK(log_bytes() >= 0);
	check_sound();
	REQUIRE(open_store(&w) == UAR_OK);
	while (log_bytes() > sq_log_kept(FOLD_AT)) /* the writer has nothing else to do */
		wait_a_little();
	uar_facts_init(&f, w.store, 1);
	uar_facts_opening(&f, ev);
	f.seq = seq;
	f.run_seq = seq - 3;
	CHECK(uar_facts_all_there(&w.pump, w.store, &f));
	CHECK_INT(go_on(&w, &f, 1), UAR_OK);
	uar_facts_fini(&f);
	close_world(&w);
	check_sound();
}
