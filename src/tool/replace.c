/* replace.c - a file whose text appears as a whole, and nothing else beside it.
 *
 * Where the file system can (O_TMPFILE) the text is written into a file without a name,
 * so that a stop in the middle leaves nothing behind. A new file gets its name at once;
 * only one that replaces another needs a name of its own between two calls of the
 * kernel. Whoever writes under such a name holds a lock on it: an old one that nobody holds
 * was left by a server that was killed, and is removed by whoever comes upon it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sha256.h"
#include "tool/internal_int.h"

enum { DIGITS = 16, OLD_SECONDS = 60 };
static const uar_str lead = UAR_STR(".uar-");

bool uar_tool_is_temporary(uar_str name)
{
	return uar_str_starts(name, lead) && name.n == lead.n + DIGITS &&
	       uar_str_is_hex(uar_str_from(name, lead.n));
}

/* The same call again may have made a new one of that name meanwhile. */
static bool has_still(int dir, const char *name, const struct stat *opened)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == opened->st_ino;
}

void uar_tool_sweep(const struct uar_tool_job *j, int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	    st.st_mtime < j->now_us / 1000000 - OLD_SECONDS && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
	    has_still(dir, name, &st))
		unlinkat(dir, name, 0);
	close(fd);
}

static int write_all(int fd, uar_str text)
{
	while (text.n) {
		ssize_t n = write(fd, text.p, text.n);

		if (n < 0 && errno != EINTR)
			return errno;
		text = uar_str_from(text, n > 0 ? (size_t)n : 0);
	}
	return fsync(fd) ? errno : 0;
}

/* What is being written. */
struct draft {
	const struct uar_tool_file *f;
	int fd;
	bool named; /* it has the name below */
	char name[32];
};

/* A lock that the file system does not have protects nothing, nor does anybody sweep then. */
static void hold(const struct draft *d)
{
	(void)flock(d->fd, LOCK_EX | LOCK_NB);
}

/* What an earlier attempt of the same call has left behind is in nobody's way. */
static int open_named(struct draft *d)
{
	int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;

	unlinkat(d->f->dir, d->name, 0);
	d->fd = openat(d->f->dir, d->name, flags, 0600);
	if (d->fd < 0)
		return errno;
	d->named = true;
	hold(d);
	return 0;
}

static int open_draft(struct draft *d)
{
	/* Its name is made through /proc, the one way that needs no privilege. */
	if (access("/proc/self/fd", F_OK) != 0)
		return open_named(d);
	d->fd = openat(d->f->dir, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	if (d->fd >= 0)
		return 0;
	return errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT || errno == EINVAL
		       ? open_named(d)
		       : errno;
}

static int give_name(const struct draft *d, const char *name)
{
	char path[40];

	snprintf(path, sizeof path, "/proc/self/fd/%d", d->fd);
	return linkat(AT_FDCWD, path, d->f->dir, name, AT_SYMLINK_FOLLOW) ? errno : 0;
}

static int publish(struct draft *d)
{
	int e;

	if (!d->named) {
		e = give_name(d, d->f->name);
		if (e != EEXIST)
			return e;
		hold(d);
		unlinkat(d->f->dir, d->name, 0);
		e = give_name(d, d->name);
		if (e)
			return e;
		d->named = true;
	}
	return renameat(d->f->dir, d->name, d->f->dir, d->f->name) ? errno : 0;
}

int uar_tool_replace(struct uar_tool_job *j, const struct uar_tool_file *f)
{
	struct draft d = { .f = f, .fd = -1 };
	char digest[UAR_SHA256_TEXT + 1];
	int e;

	uar_sha256_hex(j->key, digest);
	snprintf(d.name, sizeof d.name, "%.*s%.*s", UAR_FMT(lead), DIGITS, digest);
	e = open_draft(&d);
	if (e)
		return e;
	e = fchmod(d.fd, f->mode) ? errno : write_all(d.fd, f->text);
	if (!e && !j->may_change(j))
		e = ECANCELED;
	if (!e)
		e = publish(&d);
	if (e && d.named)
		unlinkat(f->dir, d.name, 0);
	close(d.fd);
	return e ? e : fsync(f->dir) ? errno : 0;
}
