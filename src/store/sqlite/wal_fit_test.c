/* wal_fit_test.c - a log that does not belong to the file beside it is not opened.
 *
 * The files of a store at work are taken before and after its log was folded in, and once
 * more when the log has begun anew. Then they are put together as a kill, a power loss or a
 * copy that was cut off would leave them. */
#include "store/world_test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "faultvfs.h"
#include "store/sqlite/sqlite_int.h"

enum { FRAME = SQ_FRAME_BYTES, PAGE = 4096, COMMITS = 12, TRIES = 60 };

static char dir[400];

struct file {
	uint8_t *p;
	size_t n;
};
static struct file db_before, db, wal; /* unfolded, folded in, the log of both */
static struct file wal_anew;	       /* one commit, over what is left of that */
static uint64_t told, told_anew;       /* sequences up to which there was a yes */

static void in_dir(const char *name, char out[500])
{
	snprintf(out, 500, "%s/%s", dir, name);
}

static struct file load(const char *name)
{
	struct file f = { 0 };
	struct stat st;
	char path[500];
	int fd;

	in_dir(name, path);
	fd = open(path, O_RDONLY);
	if (fd < 0 || fstat(fd, &st))
		return f;
	f.n = (size_t)st.st_size;
	f.p = uar_alloc(f.n + 1);
	CHECK(read(fd, f.p, f.n) == (ssize_t)f.n);
	close(fd);
	return f;
}

static void put(const char *name, const struct file *f)
{
	char path[500];
	int fd;

	in_dir(name, path);
	unlink(path);
	if (!f)
		return;
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	CHECK(write(fd, f->p, f->n) == (ssize_t)f->n);
	close(fd);
}

/* NULL: there is none. */
static void put_both(const struct file *file, const struct file *log)
{
	put("uar.db", file);
	put("uar.db-wal", log);
	put("uar.db-shm", NULL);
	put("uar.mark", NULL); /* incarnation_test.c is about it */
}

static struct file first(const struct file *f, size_t n)
{
	return (struct file){ f->p, n < f->n ? n : f->n };
}

static uar_err open_store(struct world *w, const char *vfs, struct uar_error *error)
{
	struct uar_store_options o = {
		.sched = &w->pump.sched, .dir = dir, .vfs = vfs, .checkpoint_pages = 10000
	};
	uar_err e;

	w->store = NULL;
	uar_pump_init(&w->pump);
	e = uar_store_sqlite_create(&o, &w->store, error);
	if (e)
		uar_pump_fini(&w->pump);
	return e;
}

/* As the writer does when it is idle; the log stays as it is. */
static void fold(void)
{
	char path[500];
	sqlite3 *c = NULL;
	int all = -1, folded = -2;

	in_dir("uar.db", path);
	CHECK_INT(sqlite3_open(path, &c), SQLITE_OK);
	CHECK_INT(sqlite3_exec(c, "SELECT count(*) FROM head", NULL, NULL, NULL), SQLITE_OK);
	CHECK_INT(sqlite3_wal_checkpoint_v2(c, NULL, SQLITE_CHECKPOINT_PASSIVE, &all, &folded),
		  SQLITE_OK);
	CHECK_INT(folded, all);
	sqlite3_close(c);
}

static void take_files(void)
{
	struct uar_facts f;
	struct world w;

	snprintf(dir, sizeof dir, "%s/data", uar_test_dir());
	if (!CHECK(!open_store(&w, NULL, NULL)) || !CHECK(!begin(&w, &f, 1)))
		exit(1);
	for (int i = 0; i < COMMITS; i++)
		CHECK_INT(go_on(&w, &f, 2), UAR_OK);
	told = f.seq;
	db_before = load("uar.db");
	fold();
	db = load("uar.db");
	wal = load("uar.db-wal");
	CHECK_INT(go_on(&w, &f, 1), UAR_OK);
	wal_anew = load("uar.db-wal");
	told_anew = f.seq;
	CHECK(db.n > db_before.n && wal.n > (size_t)COMMITS * FRAME);
	CHECK(wal_anew.n == wal.n && memcmp(wal.p, wal_anew.p, SQ_WAL_HEAD) != 0);
	uar_facts_fini(&f);
	close_world(&w);
}

static void prepare(void)
{
	if (!wal.n)
		take_files();
}

static char said[600];
static void note(void *ctx, const char *what)
{
	if (++*(size_t *)ctx == 1) /* files that do not fit are spoken of first */
		snprintf(said, sizeof said, "%s", what);
}

static uar_err verify(void)
{
	size_t n = 0;

	said[0] = 0;
	return uar_store_sqlite_verify(dir, note, &n, NULL);
}

static bool is_same(const char *name, const struct file *want)
{
	struct file now = load(name);
	bool same = want ? now.n == want->n && memcmp(now.p, want->p, now.n) == 0 : !now.p;

	uar_free(now.p);
	return same;
}

/* By the check and by the start, and nothing changes. */
static void check_refused(const struct file *file, const struct file *log)
{
	struct uar_error error = { 0 };
	struct world w;
	uar_err e;

	put_both(file, log);
	CHECK_INT(verify(), UAR_ECORRUPT);
	CHECK_MSG(strstr(said, "uar.db"), "the check says: %s", said);
	CHECK(is_same("uar.db", file) && is_same("uar.db-wal", log));
	e = open_store(&w, NULL, &error);
	CHECK_INT(e, UAR_ECORRUPT);
	if (!e)
		close_world(&w);
	CHECK_MSG(strstr(error.text, "uar.db-wal") && strstr(error.text, "recovery.md"), "%s",
		  error.text);
	CHECK(is_same("uar.db", file) && is_same("uar.db-wal", log));
}

/* Whatever was told up to `seq` is there, and it goes on. */
static bool check_starts(const struct file *file, const struct file *log, uint64_t seq)
{
	struct uar_error error = { 0 };
	struct uar_facts f;
	struct uar_event ev[3];
	struct world w;
	bool good;

	put_both(file, log);
	if (!CHECK_MSG(!verify(), "%s", said) ||
	    !CHECK_MSG(!open_store(&w, NULL, &error), "%s", error.text))
		return false;
	uar_facts_init(&f, w.store, 1);
	uar_facts_opening(&f, ev);
	f.seq = seq;
	f.run_seq = seq - 3;
	good = CHECK(uar_facts_all_there(&w.pump, w.store, &f)) &&
	       CHECK(go_on(&w, &f, 1) == UAR_OK);
	uar_facts_fini(&f);
	close_world(&w);
	return good;
}

static struct sq_wal_scan scan(const struct file *f)
{
	struct sq_wal_scan s = { 0 };

	if (f->n < SQ_WAL_HEAD)
		return s;
	sq_wal_begin(&s, f->p);
	for (size_t at = SQ_WAL_HEAD; at + s.frame_bytes <= f->n; at += s.frame_bytes)
		sq_wal_frame(&s, f->p + at);
	return s;
}

TEST(a_log_that_was_cut_short_is_refused_once_it_was_folded_in, "")
{
	uint64_t all;
	size_t refused = 0;

	prepare();
	all = scan(&wal).held;
	for (size_t n = 0; n <= wal.n; n += n % (3 * FRAME) ? 2 * FRAME : FRAME + 100) {
		struct file cut = first(&wal, n);
		uint64_t held = scan(&cut).held;

		refused += held && held < all;
		if (held && held < all)
			check_refused(&db, &cut);
		else
			check_starts(&db, &cut, told);
	}
	CHECK(refused > COMMITS / 2);
	check_starts(&db, &wal, told);
}

/* What was not folded in is gone, as by a power loss: nobody can tell. */
TEST(a_log_that_was_cut_short_before_is_read_as_far_as_it_goes, "")
{
	struct world w;

	prepare();
	for (size_t n = 0; n < wal.n; n += 7 * FRAME) {
		struct file cut = first(&wal, n);
		uar_err e;

		put_both(&db_before, &cut);
		e = verify();
		CHECK_INT(e, scan(&cut).held ? UAR_OK : UAR_ENOTFOUND);
		CHECK_INT(open_store(&w, NULL, NULL), UAR_OK);
		close_world(&w);
	}
}

/* A kill or a power loss while it is folded in: each page is there or not. */
TEST(a_fold_that_was_cut_off_is_no_reason, "")
{
	struct uar_rand_seeded seed;
	struct uar_rand rand = uar_rand_seed(&seed, 11);

	prepare();
	for (int i = 0; i < TRIES; i++) {
		size_t pages = 1 + (size_t)uar_rand_below(&rand, db.n / PAGE);
		struct file torn = { uar_alloc(db.n), pages * PAGE };

		memset(torn.p, 0, db.n);
		memcpy(torn.p, db_before.p, db_before.n < torn.n ? db_before.n : torn.n);
		for (size_t at = 0; at < torn.n; at += PAGE)
			if (i < 20 || uar_rand_below(&rand, 2)) /* in order, or in none */
				memcpy(torn.p + at, db.p + at, PAGE);
		if (!check_starts(&torn, &wal, told))
			printf("  try %d, %zu pages\n", i, pages);
		uar_free(torn.p);
	}
}

TEST(a_log_that_began_anew_is_no_reason, "")
{
	struct file mixed;

	prepare();
	check_starts(&db, &wal_anew, told_anew);
	for (size_t n = 0; n <= wal.n; n += FRAME / 2) { /* so much of it was written */
		mixed = (struct file){ uar_alloc(wal.n), wal.n };
		memcpy(mixed.p, wal.p, wal.n);
		memcpy(mixed.p, wal_anew.p, n < SQ_WAL_HEAD ? SQ_WAL_HEAD : n);
		check_starts(&db, &mixed, scan(&mixed).held ? told_anew : told);
		uar_free(mixed.p);
		if (scan(&wal_anew).first * FRAME < n)
			break;
	}
}

TEST(a_log_is_not_thrown_away_because_its_file_is_gone, "")
{
	struct file nothing = { (uint8_t *)"", 0 }, head;
	struct world w;

	prepare();
	check_refused(&nothing, &wal);
	check_refused(NULL, &wal);
	check_refused(&nothing, &wal_anew);
	head = first(&wal, SQ_WAL_HEAD + FRAME / 2);
	put_both(&nothing, &head); /* no commit: nothing is lost */
	CHECK_INT(verify(), UAR_ENOTFOUND);
	CHECK(is_same("uar.db-wal", &head));
	CHECK_INT(open_store(&w, NULL, NULL), UAR_OK);
	close_world(&w);
}

static void fresh_dir(void)
{
	snprintf(dir, sizeof dir, "%s/data", uar_test_dir());
}

/* --- an older file -------------------------------------------------------------------- */

/* Every one was whole in its time, and the log goes on from the last. */
TEST(a_file_that_is_older_than_its_log_is_refused, "")
{
	enum { FOLDS = 5, ROWS = 40 }; /* more rows than a page has */
	struct file was[FOLDS], log;
	struct uar_facts f;
	struct world w;
	uint64_t seq;

	fresh_dir();
	REQUIRE(!open_store(&w, NULL, NULL) && !begin(&w, &f, 1));
	for (int i = 0; i < FOLDS; i++) {
		for (int k = 0; i && k < ROWS; k++)
			CHECK_INT(go_on(&w, &f, 2), UAR_OK);
		if (i)
			fold(); /* the first has no tables yet */
		was[i] = load("uar.db");
	}
	CHECK_INT(go_on(&w, &f, 2), UAR_OK);
	log = load("uar.db-wal");
	seq = f.seq;
	uar_facts_fini(&f);
	close_world(&w);
	CHECK_INT(scan(&log).held, 1);
	for (int i = 0; i + 1 < FOLDS; i++)
		check_refused(&was[i], &log);
	check_starts(&was[FOLDS - 1], &log, seq);
	for (int i = 0; i < FOLDS; i++)
		uar_free(was[i].p);
	uar_free(log.p);
}

/* --- the very first start ------------------------------------------------------------ */
static bool check_first(unsigned long n)
{
	struct uar_facts f;
	struct world w;
	struct file file = load("uar.db"), log = load("uar.db-wal");
	uar_err e = verify();
	bool good = CHECK_MSG(e == UAR_OK || e == UAR_ENOTFOUND, "operation %lu: %s, %s", n,
			      uar_err_name(e), said);

	good &= CHECK(is_same("uar.db", file.p ? &file : NULL));
	good &= CHECK(is_same("uar.db-wal", log.p ? &log : NULL));
	uar_free(file.p);
	uar_free(log.p);
	if (!CHECK(open_store(&w, NULL, NULL) == UAR_OK))
		return false;
	good &= CHECK(begin(&w, &f, 1) == UAR_OK);
	uar_facts_fini(&f);
	close_world(&w);
	return good & CHECK(verify() == UAR_OK);
}

/* Is it killed at that operation? */
static bool killed_at(unsigned long n)
{
	struct world w;
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		uar_fault_arm(UAR_FAULT_KILL, n, true);
		_exit(open_store(&w, uar_fault_vfs(), NULL) ? 1 : 0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
	return WIFSIGNALED(status);
}

TEST(a_first_start_may_be_killed_at_any_moment, "")
{
	unsigned long n = 1;

	for (fresh_dir(); killed_at(n); fresh_dir(), n++)
		if (!check_first(n))
			printf("  killed at operation %lu\n", n);
	CHECK_MSG(n > 10, "only %lu operations", n);
}

TEST(power_may_go_in_a_first_start, "")
{
	struct uar_rand_seeded seed;
	struct uar_rand rand = uar_rand_seed(&seed, 4);
	bool hit = true;

	for (unsigned long n = 1; hit; n++) {
		struct world w;

		fresh_dir();
		uar_fault_arm(UAR_FAULT_POWER, n, true);
		if (!open_store(&w, uar_fault_vfs(), NULL))
			close_world(&w);
		hit = uar_fault_happened();
		uar_fault_power_loss(&rand);
		uar_fault_disarm();
		if (CHECK(open_store(&w, NULL, NULL) == UAR_OK))
			close_world(&w);
		if (!CHECK(verify() == UAR_OK))
			printf("  power lost at operation %lu\n", n);
	}
}
