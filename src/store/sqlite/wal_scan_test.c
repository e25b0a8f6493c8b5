/* wal_scan_test.c - a log that was damaged is told from one that was not finished.
 *
 * The files of a store at work are taken as a kill would leave them, with frames of an
 * earlier log at their end. Then one thing at a time is done to a copy: a bit is flipped
 * anywhere, or the last transaction comes to the disk in part, in whatever order. */
#include "store/world_test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "store/sqlite/sqlite_int.h"
#include "store/sqlite/wal_scan.h"

enum { SECTOR = 512, FRAME = SQ_FRAME_BYTES, TRIES = 400 };

static char dir[400];

struct file {
	uint8_t *p;
	size_t n;
};
static struct file db, wal, wal_before; /* the last: without the last commit */
/* Frames, from 0: where the last two commits begin, and all of this log end. */
static size_t second_last, last, end;

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
	if (!CHECK(fd >= 0 && fstat(fd, &st) == 0))
		exit(1);
	f.n = (size_t)st.st_size;
	f.p = uar_alloc(f.n);
	CHECK(read(fd, f.p, f.n) == (ssize_t)f.n);
	close(fd);
	return f;
}

static void put(const char *name, const struct file *f)
{
	char path[500];
	int fd;

	in_dir(name, path);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	CHECK(write(fd, f->p, f->n) == (ssize_t)f->n);
	close(fd);
}

static void put_all(void)
{
	char path[500];

	put("uar.db", &db);
	put("uar.db-wal", &wal);
	in_dir("uar.db-shm", path);
	unlink(path);
	in_dir("uar.mark", path); /* incarnation_test.c is about it */
	unlink(path);
}

static bool is_ours(size_t frame)
{
	size_t at = SQ_WAL_HEAD + frame * FRAME;

	return at + FRAME <= wal.n && memcmp(wal.p + at + 8, wal.p + 16, 8) == 0;
}

/* How many commits this log has. */
static size_t look(void)
{
	static const uint8_t none[4];
	size_t commits = 0;

	second_last = last = end = 0;
	for (size_t next = 0; is_ours(end); end++)
		if (memcmp(wal.p + SQ_WAL_HEAD + end * FRAME + 4, none, 4) != 0) {
			commits++;
			second_last = last;
			last = next;
			next = end + 1;
		}
	return commits;
}

static void drop(struct file *f)
{
	uar_free(f->p);
	*f = (struct file){ 0 };
}

/* A log of some commits, with what is left of an earlier one behind them. */
static bool is_good(void)
{
	return look() >= 6 && SQ_WAL_HEAD + end * FRAME < wal.n && wal_before.n == wal.n;
}

static void take_files(void)
{
	struct uar_store_options o = { .checkpoint_pages = 50 };
	struct uar_facts f;
	struct world w;

	snprintf(dir, sizeof dir, "%s/data", uar_test_dir());
	o.dir = dir;
	o.sched = &w.pump.sched;
	uar_pump_init(&w.pump);
	if (!CHECK(!uar_store_sqlite_create(&o, &w.store, NULL)) || !CHECK(!begin(&w, &f, 1)))
		exit(1);
	for (int i = 0; i < 1000 && !is_good(); i++) {
		drop(&db);
		drop(&wal_before);
		wal_before = wal;
		CHECK_INT(go_on(&w, &f, 1), UAR_OK);
		wal = load("uar.db-wal");
		db = load("uar.db");
	}
	CHECK(is_good());
	uar_facts_fini(&f);
	close_world(&w);
}

static void prepare(void)
{
	if (!wal.n)
		take_files();
}

/* As the reader sees bytes without a file. */
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

static char said[600];
static void note(void *ctx, const char *what)
{
	++*(size_t *)ctx;
	if (strncmp(what, "uar.db-wal", 10) == 0)
		snprintf(said, sizeof said, "%s", what);
}

static bool is_sound(void)
{
	size_t n = 0;

	said[0] = 0;
	return uar_store_sqlite_verify(dir, note, &n, NULL) == UAR_OK;
}

/* A start that refuses changes nothing. */
static bool start_complains(void)
{
	struct world w;
	struct uar_store_options o = { .sched = &w.pump.sched, .dir = dir };
	struct uar_error error = { 0 };
	uar_err e;

	uar_pump_init(&w.pump);
	e = uar_store_sqlite_create(&o, &w.store, &error);
	if (!e) {
		close_world(&w);
		return false;
	}
	uar_pump_fini(&w.pump);
	return e == UAR_ECORRUPT && strstr(error.text, "uar.db-wal") != NULL;
}

static void check_same(const char *name, const struct file *want)
{
	struct file now = load(name);

	CHECK(now.n == want->n && memcmp(now.p, want->p, want->n) == 0);
	uar_free(now.p);
}

static void flip(size_t at, unsigned bit)
{
	wal.p[at] = (uint8_t)(wal.p[at] ^ 1u << bit);
}

TEST(a_sound_log_is_no_damage, "")
{
	struct sq_wal_scan s;

	prepare();
	s = scan(&wal);
	CHECK_INT(s.commits, 0);
	CHECK_INT(s.first, end + 1); /* there the earlier log shows */
	put_all();
	CHECK_MSG(is_sound(), "%s", said);
	put_all();
	CHECK(!start_complains());
}

/* Whatever bit it is, if a whole commit and the beginning of another follow. */
TEST(a_flipped_bit_is_damage, "")
{
	struct uar_rand_seeded seed;
	struct uar_rand rand = uar_rand_seed(&seed, 3);
	size_t ours;

	prepare();
	ours = SQ_WAL_HEAD + end * FRAME;
	for (size_t i = 0; i < TRIES + 8 * SQ_WAL_HEAD; i++) {
		size_t at = i < TRIES ? (size_t)uar_rand_below(&rand, ours) : (i - TRIES) / 8;
		size_t frame = at < SQ_WAL_HEAD ? 0 : (at - SQ_WAL_HEAD) / FRAME + 1;
		unsigned bit = i < TRIES ? (unsigned)uar_rand_below(&rand, 8) : i % 8;
		struct sq_wal_scan s;

		flip(at, bit);
		s = scan(&wal);
		flip(at, bit);
		if (frame <= second_last)
			CHECK_MSG(s.commits > 0, "byte %zu, bit %u: unseen", at, bit);
		else if (frame > last)
			CHECK_MSG(s.commits == 0, "byte %zu, bit %u: too strict", at, bit);
		if (s.commits)
			CHECK_INT(s.first, frame);
	}
}

/* Nothing is left that would say whose frames follow. */
TEST(a_head_of_zeros_is_damage, "")
{
	uint8_t head[SQ_WAL_HEAD];
	struct sq_wal_scan s;

	prepare();
	memcpy(head, wal.p, sizeof head);
	memset(wal.p, 0, sizeof head);
	s = scan(&wal);
	CHECK(s.commits > 0 && s.first == 0);
	put_all();
	CHECK(!is_sound());
	CHECK(start_complains());
	check_same("uar.db-wal", &wal);
	memcpy(wal.p, head, sizeof head);
}

TEST(damage_is_told_by_the_check_and_the_start, "")
{
	static const size_t places[] = { 20, SQ_WAL_HEAD + 3, SQ_WAL_HEAD + 2 * FRAME + 1000 };

	prepare();
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		flip(places[i], 2);
		put_all();
		CHECK(!is_sound());
		CHECK_MSG(said[0], "the check does not name the log");
		check_same("uar.db-wal", &wal);
		CHECK(start_complains());
		check_same("uar.db-wal", &wal);
		check_same("uar.db", &db);
		flip(places[i], 2);
	}
	put_all();
	CHECK(is_sound());
}

/* Power went while the last commit was written: each of its sectors is there or not. */
TEST(an_unfinished_commit_is_no_damage, "")
{
	struct uar_rand_seeded seed;
	struct uar_rand rand = uar_rand_seed(&seed, 5);
	size_t from, to;

	prepare();
	from = SQ_WAL_HEAD + last * FRAME;
	to = SQ_WAL_HEAD + end * FRAME;
	for (int i = 0; i < TRIES; i++) {
		struct file torn = { uar_alloc(wal.n), wal.n };
		uint64_t chance = 1 + uar_rand_below(&rand, 16);

		memcpy(torn.p, wal.p, wal.n);
		for (size_t at = from - from % SECTOR; at < to; at += SECTOR)
			if (uar_rand_below(&rand, 16) < chance)
				memcpy(torn.p + at, wal_before.p + at,
				       at + SECTOR < wal.n ? SECTOR : wal.n - at);
		CHECK_INT(scan(&torn).commits, 0);
		if (i % 16 == 0) {
			put_all();
			put("uar.db-wal", &torn);
			CHECK_MSG(is_sound(), "%s", said);
		}
		torn.n = (size_t)uar_rand_below(&rand, wal.n); /* or the file ends there */
		CHECK_INT(scan(&torn).commits, 0);
		uar_free(torn.p);
	}
}

static void sql(struct sq_conn *c, const char *text)
{
	struct uar_error error = { 0 };

	CHECK_MSG(!sq_exec(c, text, &error), "%s", error.text);
}

/* Frames that were rolled back stay in the file, with the salts of the log. */
TEST(what_was_rolled_back_is_no_damage, "")
{
	char path[500];
	struct uar_error error = { 0 };
	struct file f;
	struct sq_conn c;

	snprintf(dir, sizeof dir, "%s", uar_test_dir());
	in_dir("uar.db", path);
	REQUIRE(!sq_open(&c, path, NULL, SQ_WRITE, &error));
	sql(&c, "PRAGMA cache_size=10; CREATE TABLE t(id INTEGER PRIMARY KEY, body TEXT)");
	for (int i = 0; i < 5; i++) {
		sql(&c, "BEGIN; WITH RECURSIVE k(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM k"
			" WHERE i < 40) INSERT INTO t(body) SELECT hex(randomblob(3000)) FROM k;"
			"ROLLBACK");
		sql(&c, "INSERT INTO t(body) VALUES(hex(randomblob(3000)))");
	}
	f = load("uar.db-wal");
	CHECK(f.n > (size_t)50 * FRAME);
	CHECK_INT(scan(&f).commits, 0);
	CHECK(scan(&f).broken);
	f.p[SQ_WAL_HEAD + 100] ^= 1;
	CHECK_INT(scan(&f).first, 1);
	CHECK(scan(&f).commits >= 4);
	uar_free(f.p);
	sq_close(&c);
}
