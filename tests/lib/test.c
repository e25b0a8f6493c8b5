/* test.c - runs the registered tests of one program in order of registration. */
#include "test.h"

#include <ftw.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"

static struct uar_test *first, **last = &first;
static bool failed, skipped;
static char reason[256]; /* of a skip, or the first failure */
static char dir[256];

void uar_test_register(struct uar_test *t)
{
	*last = t;
	last = &t->next;
}

void uar_test_fail(const char *file, int line, const char *fmt, ...)
{
	size_t n;
	va_list ap;

	printf("  %s:%d: ", file, line);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	if (failed)
		return;
	failed = true;
	n = (size_t)snprintf(reason, sizeof reason, "%s:%d: ", file, line);
	n = n < sizeof reason ? n : sizeof reason;
	va_start(ap, fmt);
	vsnprintf(reason + n, sizeof reason - n, fmt, ap);
	va_end(ap);
	for (char *c = reason; *c; c++)
		*c = (unsigned char)*c < ' ' ? ' ' : *c;
}

void uar_test_skip(const char *fmt, ...)
{
	va_list ap;

	skipped = true;
	va_start(ap, fmt);
	vsnprintf(reason, sizeof reason, fmt, ap);
	va_end(ap);
}

bool uar_test_check_str(const char *file, int line, const char *expr, uar_str got, uar_str want)
{
	if (uar_str_eq(got, want))
		return true;
	uar_test_fail(file, line, "%s is\n    %.*s\n  wanted\n    %.*s", expr, UAR_FMT(got),
		      UAR_FMT(want));
	return false;
}

static unsigned long fail_at, calls;

static int fail_nth(void *ctx)
{
	(void)ctx;
	return __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) == fail_at;
}

void uar_test_fail_alloc(unsigned long n)
{
	fail_at = n;
	calls = 0;
	uar_alloc_set_hook(n ? fail_nth : NULL, NULL);
}

bool uar_test_alloc_failed(void)
{
	return fail_at && calls >= fail_at;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static void remove_dir(void)
{
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *uar_test_dir(void)
{
	static unsigned n;
	static char sub[300];
	const char *tmp = getenv("TMPDIR");

	if (!dir[0]) {
		snprintf(dir, sizeof dir, "%s/uar-test-XXXXXX", tmp ? tmp : "/tmp");
		if (!mkdtemp(dir)) {
			perror(dir);
			exit(1);
		}
		atexit(remove_dir);
	}
	snprintf(sub, sizeof sub, "%s/%u-XXXXXX", dir, n++);
	return mkdtemp(sub);
}

const char *uar_test_built(const char *name)
{
	static char path[4][1200];
	static int turn;
	char self[1024];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	char *cut;

	self[n > 0 ? n : 0] = 0;
	cut = strstr(self, "/tests/");
	if (cut)
		*cut = 0;
	turn = (turn + 1) % (int)ARRAY_LEN(path);
	snprintf(path[turn], sizeof path[turn], "%s/%s", self, name);
	return path[turn];
}

static bool run(const struct uar_test *t)
{
	failed = skipped = false;
	t->fn();
	if (failed)
		printf("not ok %s [%s] # %s\n", t->name, t->ids, reason);
	else if (skipped)
		printf("skipped %s [%s] # %s\n", t->name, t->ids, reason);
	else
		printf("ok %s [%s]\n", t->name, t->ids);
	fflush(stdout);
	return !failed;
}

int main(int argc, char **argv)
{
	bool good = true;

	for (struct uar_test *t = first; t; t = t->next)
		if (argc < 2 || strstr(t->name, argv[1]))
			good &= run(t);
	return good ? 0 : 1;
}
