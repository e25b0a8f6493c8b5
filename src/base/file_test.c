/* file_test.c - what is read whole, and what is not a file. */
#include "base/file.h"

#include <stdio.h>
#include <sys/stat.h>

#include "test.h"

static uar_err read_at(const char *path, size_t max, struct uar_buf *out, struct uar_error *error)
{
	*out = uar_buf_make(max);
	return uar_file_read(path, out, error);
}

static void write_at(const char *path, size_t n)
{
	FILE *f = fopen(path, "w");

	REQUIRE(f != NULL);
	for (size_t i = 0; i < n; i++)
		fputc('a' + (int)(i % 26), f);
	CHECK(fclose(f) == 0);
}

TEST(a_file_is_read_whole_up_to_its_limit, "")
{
	static const size_t sizes[] = { 0, 1, 16383, 16384, 16385, 50000 };
	char path[4096];

	snprintf(path, sizeof path, "%s/f", uar_test_dir());
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		struct uar_error error = { 0 };
		struct uar_buf b;

		write_at(path, sizes[i]);
		CHECK_INT(read_at(path, sizes[i], &b, &error), UAR_OK);
		CHECK_INT(b.n, sizes[i]);
		CHECK(!b.n || b.p[b.n - 1] == 'a' + (int)((b.n - 1) % 26));
		uar_buf_fini(&b);
		if (!sizes[i])
			continue;
		CHECK_INT(read_at(path, sizes[i] - 1, &b, &error), UAR_ETOOBIG);
		uar_buf_fini(&b);
	}
}

/* A FIFO that nobody writes to would be waited for without end. */
TEST(what_is_no_file_is_not_read, "")
{
	struct uar_error error = { 0 };
	struct uar_buf b;
	char path[4096];

	snprintf(path, sizeof path, "%s/fifo", uar_test_dir());
	CHECK_INT(read_at(path, 10, &b, &error), UAR_ENOTFOUND);
	CHECK_STR(uar_str_c(error.text), "No such file or directory");
	CHECK_INT(read_at("/", 10, &b, &error), UAR_EINVALID);
	CHECK_STR(uar_str_c(error.text), "not a file");
	REQUIRE(mkfifo(path, 0600) == 0);
	CHECK_INT(read_at(path, 10, &b, &error), UAR_EINVALID);
	CHECK_INT(uar_file_read("/dev/null", &b, &error), UAR_EINVALID);
}
