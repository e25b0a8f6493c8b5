/* dir_test.c - one process has a database, and the database stays where it is. */
#include "store/sqlite/sqlite_int.h"
#include "store/world_test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static char one[400], two[400];

static void in(const char *dir, const char *name, char out[500])
{
	snprintf(out, 500, "%s/%s", dir, name);
}

static uar_err open_in(struct world *w, const char *dir)
{
	struct uar_store_options o = { .sched = &w->pump.sched, .dir = dir };

	w->store = NULL;
	uar_pump_init(&w->pump);
	return uar_store_sqlite_create(&o, &w->store, NULL);
}

static void shut(struct world *w)
{
	if (w->store)
		uar_facts_drain(&w->pump, w->store);
	uar_store_destroy(w->store);
	uar_pump_fini(&w->pump);
}

static void name_dirs(void)
{
	snprintf(one, sizeof one, "%s/one", uar_test_dir());
	snprintf(two, sizeof two, "%s/two", uar_test_dir());
}

TEST(a_database_has_one_process_without_its_lock_file, "")
{
	struct world w, second;
	char path[500];

	name_dirs();
	REQUIRE(open_in(&w, one) == UAR_OK);
	in(one, "lock", path);
	REQUIRE(unlink(path) == 0);
	CHECK_INT(open_in(&second, one), UAR_ELOCKED);
	shut(&second);
	shut(&w);
	REQUIRE(open_in(&w, one) == UAR_OK);
	shut(&w);
}

TEST(a_database_has_one_process_through_links, "")
{
	struct world w, second;
	char path[500], alias[500];

	name_dirs();
	REQUIRE(open_in(&w, one) == UAR_OK);
	in(one, "uar.db", path);
	in(two, "uar.db", alias);
	REQUIRE(mkdir(two, 0700) == 0);
	for (int hard = 0; hard < 2; hard++) {
		REQUIRE((hard ? link(path, alias) : symlink(path, alias)) == 0);
		CHECK_INT(open_in(&second, two), UAR_ELOCKED);
		shut(&second);
		unlink(alias);
	}
	shut(&w);
}

/* When the log alone is gone, whatever was told is there: its descriptor still had it. */
TEST(a_removed_file_ends_the_store, "")
{
	static const char *const names[] = { "uar.db", "uar.db-wal" };

	name_dirs();
	for (size_t n = 0; n < 2 * ARRAY_LEN(names); n++) {
		size_t i = n / 2;
		bool moved = n % 2; /* it has another name then */
		struct uar_store_stats st;
		struct uar_facts f;
		struct world w;
		char path[500], away[500];

		REQUIRE(open_in(&w, one) == UAR_OK);
		uar_facts_init(&f, w.store, n + 1);
		REQUIRE(uar_facts_begin(&w.pump, w.store, &f) == UAR_OK);
		in(one, names[i], path);
		in(one, "elsewhere", away);
		REQUIRE((moved ? rename(path, away) : unlink(path)) == 0);
		CHECK_INT(uar_facts_go_on(&w.pump, w.store, &f, 1), UAR_EUNKNOWN);
		w.store->ops->stats(w.store, &st);
		CHECK_INT(st.health, UAR_STORE_BROKEN);
		shut(&w);
		in(one, "uar.db-wal", path); /* of a uar.db that is gone */
		if (i == 0) {
			unlink(path);
		} else {
			REQUIRE(open_in(&w, one) == UAR_OK);
			CHECK(uar_facts_all_there(&w.pump, w.store, &f));
			shut(&w);
		}
		uar_facts_fini(&f);
	}
}

/* SQLite would go on writing behind the end, and leave a hole where acknowledged facts were. (So
 * few pages are not folded in meanwhile; a log that was folded in whole begins anew and loses
 * nothing.) */
TEST(a_file_that_is_cut_short_ends_the_store, "")
{
	static const char *const names[] = { "uar.db", "uar.db-wal" };

	name_dirs();
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct uar_store_stats st;
		struct uar_facts f;
		struct world w;
		char path[500];

		REQUIRE(open_in(&w, one) == UAR_OK);
		shut(&w); /* the tables are in uar.db */
		REQUIRE(open_in(&w, one) == UAR_OK);
		uar_facts_init(&f, w.store, i + 1);
		REQUIRE(uar_facts_begin(&w.pump, w.store, &f) == UAR_OK);
		in(one, names[i], path);
		REQUIRE(truncate(path, i ? 0 : 8192) == 0);
		CHECK_INT(uar_facts_go_on(&w.pump, w.store, &f, 1), UAR_EUNKNOWN);
		w.store->ops->stats(w.store, &st);
		CHECK_INT(st.health, UAR_STORE_BROKEN);
		shut(&w);
		for (size_t j = 0; j < ARRAY_LEN(names); j++) {
			in(one, names[j], path);
			unlink(path);
		}
		uar_facts_fini(&f);
	}
}

static void make_file(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	REQUIRE(fd >= 0);
	close(fd);
}

/* It is compared with the files that are open, not with those that have their names by then. */
TEST(a_file_replaced_while_the_store_opens_is_noticed, "")
{
	struct sq_hold h = { .db_fd = -1, .log_fd = -1 };
	struct uar_error error = { 0 };
	char path[500];
	int dir_fd;

	name_dirs();
	REQUIRE(mkdir(one, 0700) == 0);
	in(one, "uar.db", path);
	dir_fd = open(one, O_DIRECTORY | O_CLOEXEC);
	REQUIRE(dir_fd >= 0);
	REQUIRE(sq_hold_db(&h, dir_fd, path, &error) == UAR_OK);
	make_file(dir_fd, "uar.db-wal");
	make_file(dir_fd, "another");
	REQUIRE(renameat(dir_fd, "another", dir_fd, "uar.db") == 0);
	REQUIRE(sq_hold_log(&h, dir_fd, &error) == UAR_OK);
	CHECK_INT(sq_hold_check(&h, 0, &error), UAR_ENOTFOUND);
	sq_hold_end(&h);
	close(dir_fd);
}

/* A file of that name is there, and another one is written to. */
TEST(a_replaced_file_ends_the_store, "")
{
	struct uar_facts f;
	struct world w;
	char path[500], away[500];
	FILE *other;

	name_dirs();
	REQUIRE(open_in(&w, one) == UAR_OK);
	uar_facts_init(&f, w.store, 1);
	REQUIRE(uar_facts_begin(&w.pump, w.store, &f) == UAR_OK);
	in(one, "uar.db-wal", path);
	in(one, "elsewhere", away);
	REQUIRE(rename(path, away) == 0);
	other = fopen(path, "w");
	REQUIRE(other);
	REQUIRE(ftruncate(fileno(other), 1 << 20) == 0); /* its size says nothing */
	fclose(other);
	CHECK_INT(uar_facts_go_on(&w.pump, w.store, &f, 1), UAR_EUNKNOWN);
	shut(&w);
	uar_facts_fini(&f);
}
