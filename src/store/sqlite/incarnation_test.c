/* incarnation_test.c - older copies, copies and lost ends of the log are noticed. */
#include "store/world_test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/sqlite/mark.h"

static char dir[400], copy[400];

static void in(const char *where, const char *name, char out[500])
{
	snprintf(out, 500, "%s/%s", where, name);
}

static void remove_file(const char *where, const char *name)
{
	char path[500];

	in(where, name, path);
	unlink(path);
}

/* Into the same file, if it is there. */
static void put_bytes(const char *where, const char *name, const void *p, size_t n)
{
	char path[500];
	int fd;

	in(where, name, path);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	CHECK(fd >= 0 && write(fd, p, n) == (ssize_t)n);
	close(fd);
}

/* What is not there is not copied; at most `max` bytes. */
static void copy_file(const char *from, const char *to, const char *name, size_t max)
{
	static char bytes[1 << 22];
	char path[500];
	ssize_t n;
	int fd;

	in(from, name, path);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return;
	n = read(fd, bytes, max < sizeof bytes ? max : sizeof bytes);
	close(fd);
	CHECK(n >= 0 && (size_t)n < sizeof bytes);
	put_bytes(to, name, bytes, n < 0 ? 0 : (size_t)n);
}

static void copy_dir(const char *from, const char *to)
{
	static const char *const names[] = { "uar.db", "uar.db-wal", "uar.mark" };

	CHECK(mkdir(to, 0700) == 0);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		copy_file(from, to, names[i], SIZE_MAX);
}

static void name_dirs(void)
{
	static unsigned number;
	const char *root = uar_test_dir();

	number++;
	snprintf(dir, sizeof dir, "%s/data%u", root, number);
	snprintf(copy, sizeof copy, "%s/copy%u", root, number);
}

static void open_dir(struct world *w, const char *name)
{
	struct uar_store_options o = { .sched = &w->pump.sched, .dir = name };
	struct uar_error error = { 0 };

	w->store = NULL;
	uar_pump_init(&w->pump);
	CHECK_MSG(!uar_store_sqlite_create(&o, &w->store, &error), "%s", error.text);
}

/* Opened and closed: its incarnation. */
static uint64_t incarnation_of(const char *name)
{
	struct world w;
	uint64_t n;

	open_dir(&w, name);
	n = w.store->incarnation;
	close_world(&w);
	return n;
}

static void add_session(const char *name, unsigned number)
{
	struct uar_facts f;
	struct world w;

	open_dir(&w, name);
	CHECK_INT(begin(&w, &f, number), UAR_OK);
	uar_facts_fini(&f);
	close_world(&w);
}

static char said[600];
static void note(void *ctx, const char *what)
{
	(void)ctx;
	snprintf(said, sizeof said, "%s", what);
}

static uar_err verify(const char *name)
{
	said[0] = 0;
	return uar_store_sqlite_verify(name, note, NULL, NULL);
}

TEST(a_mark_is_read_as_it_was_written, "")
{
	struct sq_mark m = { 7, INT64_MAX, 0xdeadbeef, UINT64_MAX, 5, 1700000000000000, true }, got;
	char text[SQ_MARK_TEXT + 1];
	uar_str s = uar_str_n(text, SQ_MARK_TEXT);

	sq_mark_write(&m, text);
	CHECK_INT(strlen(text), SQ_MARK_TEXT);
	REQUIRE(sq_mark_read(s, &got) == UAR_OK);
	CHECK(got.incarnation == 7 && got.pos == INT64_MAX && got.sum == 0xdeadbeef);
	CHECK(got.device == UINT64_MAX && got.inode == 5 && got.born_us == m.born_us &&
	      got.of_mark);
	for (size_t i = 0; i < SQ_MARK_TEXT; i++) { /* every bit counts */
		for (int bit = 0; bit < 8; bit++) {
			text[i] = (char)(text[i] ^ 1 << bit);
			CHECK_INT(sq_mark_read(s, &got), UAR_ECORRUPT);
			text[i] = (char)(text[i] ^ 1 << bit);
		}
		CHECK(text[SQ_MARK_TEXT - 1] == '\n');
		text[SQ_MARK_TEXT - 1] = ' ';
		CHECK_INT(sq_mark_read(s, &got), UAR_ECORRUPT);
		text[SQ_MARK_TEXT - 1] = '\n';
		CHECK_INT(sq_mark_read(uar_str_n(text, i), &got), UAR_ECORRUPT);
	}
	m.incarnation = 0;
	sq_mark_write(&m, text);
	CHECK_INT(sq_mark_read(s, &got), UAR_ECORRUPT);
}

TEST(places_are_compared_by_what_a_start_of_the_machine_keeps, "")
{
	static const struct {
		struct sq_mark a, b;
		bool same;
	} rows[] = {
		{ { .device = 1, .inode = 2 }, { .device = 1, .inode = 2 }, true },
		{ { .device = 1, .inode = 2 }, { .device = 9, .inode = 2 }, false },
		{ { .device = 1, .inode = 2 }, { .device = 1, .inode = 3 }, false },
		{ { .device = 1, .inode = 2, .born_us = 5 },
		  { .device = 9, .inode = 2, .born_us = 5 },
		  true },
		{ { .device = 1, .inode = 2, .born_us = 5 },
		  { .device = 1, .inode = 2, .born_us = 6 },
		  false },
		{ { .device = 1, .inode = 2, .born_us = 5 }, { .device = 1, .inode = 2 }, true },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		CHECK_MSG(sq_mark_same_place(&rows[i].a, &rows[i].b) == rows[i].same, "row %zu", i);
}

TEST(histories_by_table, "")
{
	const struct sq_mark at10 = { 1, 10, 5, 1, 1, 0, false };
	const struct sq_mark at12 = { 1, 12, 6, 1, 1, 0, false };
	const struct sq_mark later = { 2, 10, 5, 1, 1, 0, false };
	const struct sq_mark away = { 1, 10, 5, 1, 2, 0, false };
	const struct sq_mark own = { 1, 10, 5, 1, 7, 0, true }, none = { 0 };
	const struct {
		struct sq_mark_view v;
		enum sq_history want;
	} rows[] = {
		{ { at10, none, none, false, false }, SQ_SAME }, /* new, or of an older version */
		{ { at10, at10, at10, false, false }, SQ_SAME },
		{ { at12, at10, at10, false, false }, SQ_SAME }, /* the mark is behind */
		{ { at12, none, at10, false, false }, SQ_SAME }, /* it was removed */
		{ { at12, at10, none, false, false }, SQ_SAME },
		{ { at10, at12, at10, false, false }, SQ_CUT },
		{ { at10, at10, at10, true, false }, SQ_OTHER },
		{ { at10, later, at10, false, false }, SQ_OTHER }, /* restored into the same file */
		{ { later, at10, later, false, false }, SQ_SAME }, /* killed before it was marked */
		{ { away, none, at10, false, false }, SQ_COPIED },
		{ { away, at10, away, false, false }, SQ_COPIED },
		{ { at10, at10, own, false, false }, SQ_SAME },
		{ { at10, at10, own, false, true }, SQ_PUT_BACK },
		{ { at10, at10, own, true, true }, SQ_OTHER },
		{ { away, at10, own, false, true }, SQ_COPIED },
	};
	struct sq_mark_view v = { later, later, at10, false, false };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		CHECK_MSG(sq_mark_compare(&rows[i].v) == rows[i].want, "row %zu", i);
	CHECK_INT(sq_mark_next(&v, 1700000000000000), 1700000000);
	CHECK_INT(sq_mark_next(&v, -1), 3); /* a clock that is of no use */
	v.file.incarnation = 1800000000;
	CHECK_INT(sq_mark_next(&v, 1700000000000000), 1800000001);
}

TEST(starts_on_the_same_store_stay_in_one_incarnation, "")
{
	name_dirs();
	for (unsigned i = 1; i < 4; i++) {
		CHECK_INT(incarnation_of(dir), 1);
		add_session(dir, i);
		CHECK_INT(verify(dir), UAR_OK);
	}
	remove_file(dir, "uar.mark");
	CHECK_INT(incarnation_of(dir), 1); /* the database knows its place */
	put_bytes(dir, "uar.mark", "x", 1);
	CHECK_INT(verify(dir), UAR_ECORRUPT);
	CHECK_INT(incarnation_of(dir), 1);
	CHECK_INT(verify(dir), UAR_OK); /* it was written anew */
	put_bytes(dir, "uar.mark", (char[SQ_MARK_TEXT]){ 0 }, SQ_MARK_TEXT);
	CHECK_INT(verify(dir), UAR_OK); /* as a power loss leaves it */
}

TEST(a_copy_is_a_new_incarnation, "")
{
	static const char *const left_out[] = { "none", "uar.mark" };

	for (size_t i = 0; i < ARRAY_LEN(left_out); i++) {
		uint64_t first;

		name_dirs();
		add_session(dir, 1);
		copy_dir(dir, copy);
		remove_file(copy, left_out[i]);
		CHECK_INT(verify(copy), UAR_OK); /* nothing is wrong with it */
		first = incarnation_of(copy);
		CHECK(first > 1000000000); /* of the time: no two copies have the same */
		CHECK_INT(incarnation_of(copy), first);
		CHECK_INT(incarnation_of(dir), 1);
	}
}

/* In the same file: the inode stays. */
TEST(an_older_copy_is_a_new_incarnation, "")
{
	uint64_t second;

	name_dirs();
	add_session(dir, 1);
	copy_dir(dir, copy);
	add_session(dir, 2);
	copy_file(copy, dir, "uar.db", SIZE_MAX);
	CHECK_INT(verify(dir), UAR_ECORRUPT);
	CHECK_MSG(strstr(said, "uar.mark: position 2"), "%s", said);
	second = incarnation_of(dir);
	CHECK(second > 1);
	CHECK_INT(verify(dir), UAR_OK); /* it was told, and is how things are now */
	add_session(dir, 3);
	add_session(dir, 4);
	CHECK_INT(incarnation_of(dir), second);
	copy_file(copy, dir, "uar.db", SIZE_MAX); /* and again */
	CHECK(incarnation_of(dir) > second);
}

/* Whatever was there is overwritten, and keeps its inode. */
TEST(a_whole_directory_that_is_put_back_is_a_new_incarnation, "")
{
	static const char *const names[] = { "uar.db", "uar.db-wal", "uar.mark" };

	for (unsigned more = 0; more < 2; more++) { /* also if nothing was written meanwhile */
		uint64_t second;

		name_dirs();
		add_session(dir, 1);
		copy_dir(dir, copy);
		CHECK_INT(incarnation_of(dir), 1);
		if (more)
			add_session(dir, 2);
		for (size_t i = 0; i < ARRAY_LEN(names); i++)
			copy_file(copy, dir, names[i], SIZE_MAX);
		CHECK_INT(verify(dir), UAR_OK); /* nothing is missing that it knows of */
		second = incarnation_of(dir);
		CHECK(second > 1);
		CHECK_INT(incarnation_of(dir), second);
		add_session(dir, 3);
		CHECK_INT(incarnation_of(dir), second);
	}
}

TEST(another_history_of_the_same_length_is_noticed, "")
{
	name_dirs();
	add_session(dir, 1);
	copy_dir(dir, copy);
	add_session(dir, 2);
	add_session(copy, 3);
	copy_file(copy, dir, "uar.db", SIZE_MAX);
	CHECK_INT(verify(dir), UAR_ECORRUPT);
	CHECK_MSG(strstr(said, "another row at position 2"), "%s", said);
	CHECK(incarnation_of(dir) > 1);
}

/* A server was killed; then somebody removes its log, or cuts it. */
TEST(a_lost_end_of_the_log_is_noticed, "")
{
	for (int cut = 0; cut < 2; cut++) {
		struct uar_facts f;
		struct world w;

		name_dirs();
		add_session(dir, 1);
		open_dir(&w, dir);
		REQUIRE(begin(&w, &f, 2) == UAR_OK);
		for (int i = 0; i < 5; i++)
			CHECK_INT(go_on(&w, &f, 2), UAR_OK);
		copy_dir(dir, copy); /* as a kill leaves them */
		uar_facts_fini(&f);
		close_world(&w);
		copy_file(copy, dir, "uar.db", SIZE_MAX);
		if (cut)
			copy_file(copy, dir, "uar.db-wal", 32);
		CHECK_INT(verify(dir), UAR_ECORRUPT);
		CHECK_MSG(strstr(said, "the end of uar.db-wal is missing"), "%s", said);
		CHECK(incarnation_of(dir) > 1);
		CHECK_INT(verify(dir), UAR_OK);
	}
}
