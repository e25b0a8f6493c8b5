/* files_test.c - blobs when descriptors run out, a sync fails or their directory goes. */
#include "store/world_test.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The n-th sync of the store's own files fails; SQLite's are not meant. */
static _Atomic int syncs_left = -1;

int fsync(int fd)
{
	if (syncs_left >= 0 && syncs_left-- == 0) {
		errno = EIO;
		return -1;
	}
	return (int)syscall(SYS_fsync, fd);
}

static char dir[400];

static void open_dir(struct world *w)
{
	struct uar_store_options o = { .sched = &w->pump.sched, .dir = dir };

	snprintf(dir, sizeof dir, "%s", uar_test_dir());
	uar_pump_init(&w->pump);
	w->sqlite = true;
	if (uar_store_sqlite_create(&o, &w->store, NULL))
		exit(1);
}

static uar_err put(struct world *w, uar_str bytes, char out_sha256[65])
{
	struct uar_blob_put p = { .bytes = bytes };
	uar_err e = uar_facts_put(&w->pump, w->store, &p);

	if (!e)
		memcpy(out_sha256, p.sha256, sizeof p.sha256);
	return e;
}

static uar_err get(struct world *w, const char *sha256)
{
	struct uar_blob_get b = { .limit = 1 << 20 };
	uar_err e;

	snprintf(b.sha256, sizeof b.sha256, "%s", sha256);
	e = uar_facts_get(&w->pump, w->store, &b);
	uar_store_blob_get_fini(&b);
	return e;
}

static ino_t inode(const char *sha256)
{
	char path[600];
	struct stat st = { 0 };

	snprintf(path, sizeof path, "%s/blobs/%.2s/%s", dir, sha256, sha256 + 2);
	CHECK_INT(stat(path, &st), 0);
	return st.st_ino;
}

TEST(a_blob_stays_when_it_comes_again_and_descriptors_are_out, "")
{
	struct uar_upload_op op = { .bytes = UAR_STR("hello") };
	struct rlimit before;
	struct world w;
	char sha256[65];
	uar_err e;

	open_dir(&w);
	REQUIRE(put(&w, UAR_STR("hello"), sha256) == UAR_OK);
	REQUIRE(upload_step(&w, &op) == UAR_OK);
	op.bytes = UAR_STR("");
	op.finish = true;
	before = leave_free(0);
	e = upload_step(&w, &op);
	setrlimit(RLIMIT_NOFILE, &before);
	CHECK_INT(e, UAR_EFDS);
	CHECK_INT(get(&w, sha256), UAR_OK);
	/* It was no verdict on the disk. */
	CHECK_INT(put(&w, UAR_STR("hello"), sha256), UAR_OK);
	close_world(&w);
}

TEST(a_blob_is_not_written_again_for_want_of_descriptors, "")
{
	struct world w;
	char sha256[65], same[65];
	ino_t first;

	open_dir(&w);
	REQUIRE(put(&w, UAR_STR("hello"), sha256) == UAR_OK);
	first = inode(sha256);
	for (rlim_t n = 0; n < 2; n++) {
		struct rlimit before = leave_free(n);
		uar_err e = put(&w, UAR_STR("hello"), same);

		setrlimit(RLIMIT_NOFILE, &before);
		CHECK_INT(e, UAR_EFDS);
		CHECK(inode(sha256) == first);
	}
	CHECK_INT(put(&w, UAR_STR("hello"), same), UAR_OK);
	CHECK(inode(sha256) == first);
	close_world(&w);
}

TEST(the_first_failing_sync_of_a_blob_ends_the_store, "")
{
	char sha256[65];

	/* Of its file, its directory and the one above; first when it is new. */
	for (int again = 0; again < 2; again++)
		for (int n = 0; n < 3; n++) {
			char text[32];
			struct world w;
			uar_err e;

			snprintf(text, sizeof text, "%d %d", again, n);
			open_dir(&w);
			if (again)
				CHECK_INT(put(&w, uar_str_c(text), sha256), UAR_OK);
			syncs_left = n;
			e = put(&w, uar_str_c(text), sha256);
			CHECK_MSG(syncs_left == -1, "it has not failed");
			syncs_left = -1;
			CHECK_INT(e, UAR_ESYNC);
			CHECK_INT(put(&w, uar_str_c(text), sha256), UAR_ESYNC);
			close_world(&w);
		}
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	(void)st, (void)kind, (void)where;
	return remove(path);
}

/* Its path; nothing is there any more. */
static const char *removed(const char *name)
{
	static char path[600];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	CHECK(nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS) == 0);
	return path;
}

/* The directory, a part of it, or the directory and there is another one. */
static void lose(size_t how)
{
	const char *path = removed(how == 1 ? "blobs/tmp" : "blobs");

	if (how == 2)
		REQUIRE(mkdir(path, 0700) == 0);
}

TEST(blobs_are_written_after_their_directory_was_removed, "")
{
	char sha256[65], text[32];
	struct world w;

	open_dir(&w);
	for (size_t i = 0; i < 3; i++) {
		struct uar_upload_op op = { .bytes = UAR_STR("upload"), .finish = true };

		lose(i);
		snprintf(text, sizeof text, "text %zu", i);
		CHECK_INT(put(&w, uar_str_c(text), sha256), UAR_OK);
		CHECK(inode(sha256) != 0);
		CHECK_INT(get(&w, sha256), UAR_OK);
		lose(i);
		CHECK_INT(upload_step(&w, &op), UAR_OK);
		CHECK(inode(op.sha256) != 0);
	}
	close_world(&w);
}

TEST(blobs_that_cannot_be_made_anew_are_refused, "")
{
	struct world w;
	char sha256[65];

	open_dir(&w);
	close(creat(removed("blobs"), 0600));
	CHECK_INT(put(&w, UAR_STR("hello"), sha256), UAR_EIO);
	removed("blobs");
	syncs_left = 1;
	CHECK_INT(put(&w, UAR_STR("hello"), sha256), UAR_ESYNC);
	syncs_left = -1;
	CHECK_INT(put(&w, UAR_STR("hello"), sha256), UAR_ESYNC);
	close_world(&w);
}
