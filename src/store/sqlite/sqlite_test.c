/* sqlite_test.c - what only a store on disk can do: come back. */
#include "store/world_test.h"
#include "store/sqlite/sqlite_int.h"

#include "base/alloc.h"
#include "store/limits.h"

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[400];

static void fresh_dir(void)
{
	snprintf(dir, sizeof dir, "%s/data", uar_test_dir());
}

static uar_err reopen(struct world *w, struct uar_error *error)
{
	struct uar_store_options o = { .sched = &w->pump.sched, .dir = dir };

	w->sqlite = true;
	w->store = NULL;
	uar_pump_init(&w->pump);
	return uar_store_sqlite_create(&o, &w->store, error);
}

static void shut(struct world *w)
{
	if (w->store)
		uar_facts_drain(&w->pump, w->store);
	uar_store_destroy(w->store);
	uar_pump_fini(&w->pump);
}

/* Runs SQL on the closed database, as an operator could. */
static int sql(const char *text)
{
	char path[450];
	sqlite3 *db;
	int rc;

	snprintf(path, sizeof path, "%s/uar.db", dir);
	rc = sqlite3_open(path, &db);
	if (!rc)
		rc = sqlite3_exec(db, text, NULL, NULL, NULL);
	if (rc)
		printf("  %s: %s\n", text, sqlite3_errmsg(db));
	sqlite3_close(db);
	return rc;
}

static void no_damage(void *ctx, const char *what)
{
	printf("  %s\n", what);
	++*(size_t *)ctx;
}

static void check_sound(void)
{
	size_t bad = 0;

	CHECK_INT(uar_store_sqlite_verify(dir, no_damage, &bad, NULL), UAR_OK);
	CHECK_INT(bad, 0);
}

TEST(a_store_comes_back_as_it_was, "")
{
	struct world w;
	struct uar_facts f, g;
	char runtime[UAR_UUID_TEXT + 1];

	fresh_dir();
	REQUIRE(reopen(&w, NULL) == UAR_OK);
	snprintf(runtime, sizeof runtime, "%s", w.store->runtime_id);
	CHECK(uar_uuid_valid(uar_str_c(runtime)));
	CHECK_INT(begin(&w, &f, 1), UAR_OK);
	CHECK_INT(go_on(&w, &f, 10), UAR_OK);
	shut(&w);
	for (int i = 0; i < 3; i++) {
		REQUIRE(reopen(&w, NULL) == UAR_OK);
		CHECK_STR(uar_str_c(w.store->runtime_id), runtime);
		CHECK(uar_facts_all_there(&w.pump, w.store, &f));
		CHECK_INT(go_on(&w, &f, 5), UAR_OK);
		CHECK_INT(begin(&w, &g, 2 + (uint64_t)i), UAR_OK);
		uar_facts_fini(&g);
		CHECK(uar_facts_all_there(&w.pump, w.store, &f));
		shut(&w);
		check_sound();
	}
	uar_facts_fini(&f);
}

/* Begins a session whose ids look like the runtime's own, so that the writer may know
 * them for new; what they are named after is told apart. */
static uar_err begin_as(struct world *w, struct uar_facts *f, const char *session,
			const char *thread, const char *run)
{
	uar_facts_init(f, w->store, 1);
	snprintf(f->session, sizeof f->session, "0%s-s", session);
	snprintf(f->thread, sizeof f->thread, "0%s-t", thread);
	snprintf(f->run, sizeof f->run, "0%s-r", run);
	return uar_facts_begin(&w->pump, w->store, f);
}

static uar_err tried_as(struct world *w, const char *session, const char *thread, const char *run)
{
	struct uar_facts f;
	uar_err e = begin_as(w, &f, session, thread, run);

	uar_facts_fini(&f);
	return e;
}

static void check_taken(struct world *w)
{
	static const char *const there[] = { "3", "5", "7" };

	for (size_t i = 0; i < ARRAY_LEN(there); i++) {
		CHECK_INT(tried_as(w, there[i], "8", "8"), UAR_ECONFLICT);
		CHECK_INT(tried_as(w, "8", there[i], "8"), UAR_ECONFLICT);
		CHECK_INT(tried_as(w, "8", "8", there[i]), UAR_EINVALID);
	}
}

TEST(ids_are_found_in_whatever_order_they_come, "")
{
	struct world w;
	struct uar_facts f[3], other;

	fresh_dir();
	REQUIRE(reopen(&w, NULL) == UAR_OK);
	CHECK_INT(begin_as(&w, &f[0], "5", "5", "5"), UAR_OK);
	CHECK_INT(begin_as(&w, &f[1], "3", "3", "3"), UAR_OK);
	CHECK_INT(begin_as(&w, &f[2], "7", "7", "7"), UAR_OK);
	check_taken(&w);
	/* Another owner has ids of his own, and leaves those of the first alone. */
	uar_facts_init(&other, w.store, 1);
	snprintf(other.session, sizeof other.session, "%s", f[0].session);
	snprintf(other.thread, sizeof other.thread, "%s", f[0].thread);
	other.owner = uar_facts_stranger;
	CHECK_INT(uar_facts_begin(&w.pump, w.store, &other), UAR_OK);
	check_taken(&w);
	shut(&w);
	REQUIRE(reopen(&w, NULL) == UAR_OK);
	check_taken(&w);
	CHECK(uar_facts_all_there(&w.pump, w.store, &other));
	for (size_t i = 0; i < ARRAY_LEN(f); i++) {
		CHECK_INT(go_on(&w, &f[i], 2), UAR_OK);
		CHECK(uar_facts_all_there(&w.pump, w.store, &f[i]));
		uar_facts_fini(&f[i]);
	}
	CHECK_INT(tried_as(&w, "8", "8", "8"), UAR_OK);
	uar_facts_fini(&other);
	shut(&w);
	check_sound();
}

/* The writer forgets a run with its end; whoever goes on finds it all the same. */
TEST(a_session_goes_on_behind_the_end_of_its_run, "")
{
	struct world w;
	struct uar_facts f;
	struct uar_run_row row;

	fresh_dir();
	REQUIRE(reopen(&w, NULL) == UAR_OK);
	CHECK_INT(begin(&w, &f, 1), UAR_OK);
	CHECK_INT(go_on(&w, &f, 3), UAR_OK);
	row = uar_facts_row(&f, "succeeded", true);
	CHECK_INT(set_row(&w, &f, &row), UAR_OK);
	CHECK_INT(go_on(&w, &f, 2), UAR_OK);
	row = uar_facts_row(&f, "running", false);
	CHECK_INT(set_row(&w, &f, &row), UAR_ESTATE);
	CHECK_INT(go_on(&w, &f, 1), UAR_OK);
	CHECK(uar_facts_all_there(&w.pump, w.store, &f));
	uar_facts_fini(&f);
	shut(&w);
	check_sound();
}

/* The log's index has parts; a session may be in many, and not in those between. */
TEST(sessions_are_read_across_parts_of_the_log, "")
{
	static const char *const jumps[] = { "UPDATE head SET pos = 4094",
					     "UPDATE head SET pos = 8191",
					     "UPDATE head SET pos = 40958" };
	struct world w;
	struct uar_facts f, g, idle;

	fresh_dir();
	REQUIRE(reopen(&w, NULL) == UAR_OK);
	CHECK_INT(begin(&w, &f, 1), UAR_OK);
	CHECK_INT(begin(&w, &g, 2), UAR_OK);
	CHECK_INT(begin(&w, &idle, 3), UAR_OK);
	for (size_t i = 0; i < ARRAY_LEN(jumps); i++) {
		shut(&w);
		CHECK_INT(sql(jumps[i]), SQLITE_OK);
		REQUIRE(reopen(&w, NULL) == UAR_OK);
		for (int n = 0; n < 3; n++) {
			CHECK_INT(go_on(&w, &f, 2), UAR_OK);
			CHECK_INT(go_on(&w, &g, 1), UAR_OK);
		}
		CHECK(uar_facts_all_there(&w.pump, w.store, &f));
		CHECK(uar_facts_all_there(&w.pump, w.store, &g));
		CHECK(uar_facts_all_there(&w.pump, w.store, &idle));
	}
	CHECK_INT(go_on(&w, &idle, 1), UAR_OK);
	CHECK(uar_facts_all_there(&w.pump, w.store, &idle));
	uar_facts_fini(&f);
	uar_facts_fini(&g);
	uar_facts_fini(&idle);
	shut(&w);
	check_sound();
}

TEST(one_process_at_a_time, "")
{
	struct world w, second;
	struct uar_error error = { 0 };
	size_t bad = 0;

	fresh_dir();
	REQUIRE(reopen(&w, NULL) == UAR_OK);
	CHECK_INT(reopen(&second, &error), UAR_ELOCKED);
	CHECK(error.text[0]);
	shut(&second);
	CHECK_INT(uar_store_sqlite_verify(dir, no_damage, &bad, NULL), UAR_ELOCKED);
	shut(&w);
	CHECK_INT(reopen(&w, NULL), UAR_OK);
	shut(&w);
}

TEST(the_directory_is_private, "")
{
	struct world w;
	struct stat st;

	fresh_dir();
	umask(0);
	REQUIRE(reopen(&w, NULL) == UAR_OK);
	umask(022);
	CHECK_INT(stat(dir, &st), 0);
	CHECK_INT(st.st_mode & 0777, 0700);
	shut(&w);
}

TEST(the_files_are_private_in_an_open_directory, "")
{
	static const char *const names[] = { "uar.db", "uar.db-wal", "uar.db-shm", "lock" };
	struct world w;
	struct stat st;
	char path[450];

	fresh_dir();
	umask(0);
	CHECK_INT(mkdir(dir, 0755), 0);
	REQUIRE(reopen(&w, NULL) == UAR_OK);
	umask(022);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(path, sizeof path, "%s/%s", dir, names[i]);
		CHECK_INT(stat(path, &st), 0);
		CHECK_INT(st.st_mode & 0777, 0600);
	}
	shut(&w);
}

TEST(a_newer_file_is_left_alone, "")
{
	struct world w;
	struct uar_error error = { 0 };

	fresh_dir();
	REQUIRE(reopen(&w, NULL) == UAR_OK);
	shut(&w);
	REQUIRE(sql("PRAGMA user_version=99") == 0);
	CHECK_INT(reopen(&w, &error), UAR_ENEWER);
	CHECK(strstr(error.text, "99"));
	shut(&w);
	REQUIRE(sql(BEFORE_VERSION_5 "PRAGMA user_version=3") == 0);
	CHECK_INT(reopen(&w, &error), UAR_OK);
	shut(&w);
	REQUIRE(sql("PRAGMA application_id=7") == 0);
	CHECK_INT(reopen(&w, &error), UAR_ECORRUPT);
	shut(&w);
}

TEST(a_file_that_is_no_database_is_refused, "")
{
	struct world w;
	struct uar_error error = { 0 };
	char path[450], junk[8192];
	int fd;

	fresh_dir();
	CHECK_INT(mkdir(dir, 0700), 0);
	snprintf(path, sizeof path, "%s/uar.db", dir);
	memset(junk, 'x', sizeof junk);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	CHECK_INT(write(fd, junk, sizeof junk), sizeof junk);
	close(fd);
	CHECK_INT(reopen(&w, &error), UAR_ECORRUPT);
	shut(&w);
}

/* --- kill -9 ---------------------------------------------------------------------- */
enum { KILL_SESSIONS = 4 };

/* The child writes and, after each `done`, tells the parent through the pipe. */
static void child(int tell)
{
	struct world w;
	struct uar_facts f[KILL_SESSIONS];

	if (reopen(&w, NULL))
		_exit(3);
	for (uint64_t i = 0; i < KILL_SESSIONS; i++) {
		if (begin(&w, &f[i], i + 1))
			_exit(4);
	}
	for (size_t i = 0;; i = (i + 1) % KILL_SESSIONS) {
		char who = (char)i;

		if (go_on(&w, &f[i], 1 + f[i].seq % 3) || write(tell, &who, 1) != 1)
			_exit(5);
	}
}

/* Waits until the child has told of n appends, kills it, counts all it told. */
static void kill_child(pid_t pid, int from, int n, size_t told[KILL_SESSIONS])
{
	char who;
	int status;

	for (int i = 0; i < n && read(from, &who, 1) == 1; i++)
		told[(size_t)who]++;
	kill(pid, SIGKILL);
	while (read(from, &who, 1) == 1)
		told[(size_t)who]++;
	waitpid(pid, &status, 0);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

TEST(nothing_told_is_lost_by_kill_9, "")
{
	for (int round = 0; round < 12; round++) {
		size_t told[KILL_SESSIONS] = { 0 };
		struct world w;
		int ends[2];
		pid_t pid;

		fresh_dir();
		REQUIRE(pipe(ends) == 0);
		fflush(stdout);
		pid = fork();
		if (pid == 0) {
			close(ends[0]);
			child(ends[1]);
		}
		close(ends[1]);
		kill_child(pid, ends[0], 1 + round * 37, told);
		close(ends[0]);
		check_sound();
		REQUIRE(reopen(&w, NULL) == UAR_OK);
		for (uint64_t i = 0; i < KILL_SESSIONS; i++) {
			struct uar_thread_query q = { .owner = uar_facts_owner };
			struct uar_facts f;
			struct uar_event ev[3];
			uint64_t seq = 3;

			for (size_t n = 0; n < told[i]; n++)
				seq += 1 + seq % 3;
			uar_facts_init(&f, w.store, i + 1);
			q.session_id = uar_str_c(f.session);
			CHECK_INT(uar_facts_thread(&w.pump, w.store, &q), UAR_OK);
			CHECK(q.last_sequence >= seq);
			uar_facts_opening(&f, ev);
			f.seq = q.last_sequence;
			f.run_seq = f.seq - 3;
			CHECK(uar_facts_all_there(&w.pump, w.store, &f));
			CHECK_INT(go_on(&w, &f, 1), UAR_OK);
			uar_facts_fini(&f);
		}
		shut(&w);
		check_sound();
	}
}

/* --- people ------------------------------------------------------------------------- */
static int print_row(void *ctx, int n, char **value, char **name)
{
	struct uar_buf *out = ctx;

	(void)name;
	for (int i = 0; i < n; i++)
		uar_buf_printf(out, "%s%s", i ? "|" : "", value[i] ? value[i] : "-");
	uar_buf_add_char(out, '\n');
	return 0;
}

TEST(the_log_reads_well_with_sqlite3, "")
{
	struct uar_buf out = uar_buf_make(1 << 20);
	struct uar_facts f;
	struct world w;
	char path[450], want[1024];
	sqlite3 *db;

	fresh_dir();
	REQUIRE(reopen(&w, NULL) == UAR_OK);
	CHECK_INT(begin(&w, &f, 1), UAR_OK);
	CHECK_INT(go_on(&w, &f, 2), UAR_OK);
	shut(&w);
	snprintf(path, sizeof path, "%s/uar.db", dir);
	REQUIRE(sqlite3_open(path, &db) == 0);
	CHECK_INT(sqlite3_exec(db,
			       "SELECT sequence, run_sequence, type, timestamp, session_id, run_id,"
			       " thread_id, turn_id, task_id, payload, user_id FROM events",
			       print_row, &out, NULL),
		  0);
	sqlite3_close(db);
	snprintf(want, sizeof want, "1|-|session.created|2023-11-14T22:13:20.000000Z|%s|-|-|-|-|",
		 f.session);
	CHECK(out.p && uar_str_starts(uar_buf_str(&out), uar_str_c(want)));
	snprintf(want, sizeof want,
		 "5|2|model.delta|2023-11-14T22:13:20.000004Z|%s|%s|%s|%s|%s|"
		 "{\"message_id\":\"m1\",\"index\":1,\"kind\":\"text\",\"text\":\"hello\"}|ann\n",
		 f.session, f.run, f.thread, f.turn, f.task);
	CHECK(out.p && uar_str_ends(uar_buf_str(&out), uar_str_c(want)));
	uar_buf_fini(&out);
	uar_facts_fini(&f);
}

/* --- damage ---------------------------------------------------------------------------- */
static void count_live(void *ctx, const struct uar_run_row *row)
{
	(void)row;
	++*(size_t *)ctx;
}

TEST(a_damaged_row_spoils_only_its_own_page, "")
{
	size_t live = 0;
	struct uar_facts f, g;
	struct uar_read r;
	struct uar_runs_query q;
	struct world w;

	fresh_dir();
	REQUIRE(reopen(&w, NULL) == UAR_OK);
	CHECK_INT(begin(&w, &f, 1), UAR_OK);
	CHECK_INT(begin(&w, &g, 2), UAR_OK);
	for (int i = 0; i < 5; i++)
		CHECK_INT(go_on(&w, &f, 2), UAR_OK);
	CHECK_INT(go_on(&w, &g, 2), UAR_OK);
	shut(&w);
	REQUIRE(sql("UPDATE log SET body = replace(body, 'hello', 'jello') WHERE run_seq = 5") ==
		0);
	REQUIRE(sql("UPDATE runs SET status = 'completed' WHERE rid = 1") == 0);
	REQUIRE(reopen(&w, NULL) == UAR_OK);
	r = (struct uar_read){ .owner = f.owner, .run_id = uar_str_c(f.run), .limit = 100 };
	CHECK_INT(uar_facts_read(&w.pump, w.store, &r), UAR_OK);
	CHECK_INT(r.event_count, 4);
	CHECK(r.more);
	uar_store_read_fini(&r);
	r.after = 4;
	CHECK_INT(uar_facts_read(&w.pump, w.store, &r), UAR_ECORRUPT);
	CHECK(strstr(r.error.where, "log/"));
	uar_store_read_fini(&r);
	r.after = 6;
	CHECK_INT(uar_facts_read(&w.pump, w.store, &r), UAR_OK);
	CHECK_INT(r.event_count, 4);
	uar_store_read_fini(&r);
	q = (struct uar_runs_query){ .owner = f.owner, .run_id = uar_str_c(f.run) };
	CHECK_INT(uar_facts_runs(&w.pump, w.store, &q), UAR_ECORRUPT);
	uar_store_query_fini(&q);
	q = (struct uar_runs_query){ .owner = f.owner, .limit = 10 };
	CHECK_INT(uar_facts_runs(&w.pump, w.store, &q), UAR_ECORRUPT);
	CHECK(strstr(q.error.text, f.run));
	uar_store_query_fini(&q);
	CHECK_INT(w.store->ops->each_live(w.store, count_live, &live, NULL), UAR_OK);
	CHECK_INT(live, 1); /* the other one */
	CHECK(uar_facts_all_there(&w.pump, w.store, &g));
	CHECK_INT(go_on(&w, &g, 2), UAR_OK);
	shut(&w);
	uar_facts_fini(&f);
	uar_facts_fini(&g);
}

TEST(a_damaged_blob_is_noticed, "")
{
	struct uar_blob_put p = { .bytes = UAR_STR("hello") };
	struct uar_blob_get g = { .limit = 100 };
	struct world w;
	char path[560];
	size_t bad = 0;
	int fd;

	fresh_dir();
	REQUIRE(reopen(&w, NULL) == UAR_OK);
	CHECK_INT(uar_facts_put(&w.pump, w.store, &p), UAR_OK);
	memcpy(g.sha256, p.sha256, sizeof g.sha256);
	snprintf(path, sizeof path, "%s/blobs/%.2s/%s", dir, p.sha256, p.sha256 + 2);
	fd = open(path, O_RDWR);
	CHECK_INT(pwrite(fd, "j", 1, 0), 1);
	CHECK_INT(uar_facts_get(&w.pump, w.store, &g), UAR_ECORRUPT);
	uar_store_blob_get_fini(&g);
	CHECK_INT(ftruncate(fd, 3), 0);
	CHECK_INT(uar_facts_get(&w.pump, w.store, &g), UAR_ECORRUPT);
	uar_store_blob_get_fini(&g);
	close(fd);
	/* Who puts the same bytes again mends it. */
	CHECK_INT(uar_facts_put(&w.pump, w.store, &p), UAR_OK);
	CHECK_INT(uar_facts_get(&w.pump, w.store, &g), UAR_OK);
	CHECK_STR(g.bytes, "hello");
	uar_store_blob_get_fini(&g);
	shut(&w);
	check_sound();
	CHECK_INT(truncate(path, 2), 0);
	printf("  (expected) ");
	CHECK_INT(uar_store_sqlite_verify(dir, no_damage, &bad, NULL), UAR_ECORRUPT);
	CHECK_INT(bad, 1);
}

/* --- reads that the loop does not take --------------------------------------------------- */

static void ignore_read(struct uar_read *r)
{
	(void)r;
}

static size_t finished_reads(struct sq_store *s)
{
	size_t n = 0;

	pthread_mutex_lock(&s->done->lock);
	UAR_LIST_EACH (it, &s->done->finished)
		n++;
	pthread_mutex_unlock(&s->done->lock);
	return n;
}

TEST(reads_stop_until_the_loop_takes_their_results, "")
{
	enum { READS = 1000 };
	struct uar_read *r = uar_zalloc(READS * sizeof *r);
	struct uar_facts f;
	struct world w;
	struct sq_store *s;

	REQUIRE(r);
	open_world(&w, true);
	s = UAR_OWNER(w.store, struct sq_store, base);
	CHECK_INT(begin(&w, &f, 1), UAR_OK);
	for (size_t i = 0; i < READS; i++) {
		r[i] = (struct uar_read){ .owner = f.owner,
					  .session_id = uar_str_c(f.session),
					  .limit = 10,
					  .done = ignore_read };
		CHECK_INT(w.store->ops->read(w.store, &r[i]), UAR_OK);
	}
	while (finished_reads(s) < UAR_LIMIT_READS_UNDELIVERED)
		sched_yield();
	for (int i = 0; i < 1000; i++) /* time to take more */
		sched_yield();
	CHECK_INT((long long)finished_reads(s), UAR_LIMIT_READS_UNDELIVERED);
	close_world(&w); /* takes all of them */
	for (size_t i = 0; i < READS; i++)
		uar_store_read_fini(&r[i]);
	uar_free(r);
	uar_facts_fini(&f);
}
