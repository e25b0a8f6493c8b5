/* dir.c - whose the data directory is, and that its database stays where it is.
 *
 * The file `lock` says who uses the directory. It can be removed, and uar.db can be reached
 * from another directory by a link: so uar.db is locked itself as well, by flock, of which
 * SQLite and other programs that read it know nothing. SQLite's own locks end when any
 * descriptor of the file is closed: what is held here is opened before SQLite opens the file
 * and closed after it. */
#include "store/sqlite/sqlite_int.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"

char *sq_db_path(const char *dir)
{
	size_t n = strlen(dir) + sizeof "/uar.db";
	char *p = uar_alloc(n);

	if (p)
		snprintf(p, n, "%s/uar.db", dir);
	return p;
}

static void sync_parent(const char *dir)
{
	char up[4096];
	int fd;

	if (snprintf(up, sizeof up, "%s/..", dir) >= (int)sizeof up)
		return;
	fd = open(up, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		fsync(fd); /* not every file system lets a directory be synced */
		close(fd);
	}
}

/* -1: errno says why. */
static int open_lock(int dir_fd, bool create)
{
	int fd = openat(dir_fd, "lock",
			(create ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd >= 0 && flock(fd, (create ? LOCK_EX : LOCK_SH) | LOCK_NB)) {
		int e = errno;

		close(fd);
		errno = e;
		return -1;
	}
	return fd;
}

uar_err sq_lock_dir(const char *dir, bool create, int *out_dir_fd, int *out_lock_fd,
		    struct uar_error *error)
{
	int dir_fd, lock_fd;

	if (create && mkdir(dir, 0700) == 0)
		sync_parent(dir);
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return uar_error_set(error, errno == ENOSPC ? UAR_EDISKFULL : UAR_EIO, "%s: %s",
				     dir, strerror(errno));
	lock_fd = open_lock(dir_fd, create);
	if (lock_fd < 0 && (create || errno != ENOENT)) { /* a copy has none: nobody serves it */
		uar_err e = errno == EWOULDBLOCK ? UAR_ELOCKED
			    : errno == ENOSPC	 ? UAR_EDISKFULL
						 : UAR_EIO;

		uar_error_set(error, e, "%s/lock: %s", dir,
			      e == UAR_ELOCKED ? uar_err_text(e) : strerror(errno));
		close(dir_fd);
		return e;
	}
	*out_dir_fd = dir_fd;
	*out_lock_fd = lock_fd;
	return UAR_OK;
}

/* --- uar.db and its log ------------------------------------------------------------- */

/* SQLite would create the file readable by everybody the umask lets, and gives
 * its mode to the write-ahead log. The directory may be older, and open. */
uar_err sq_hold_db(struct sq_hold *h, int dir_fd, const char *path, struct uar_error *error)
{
	h->db_fd = openat(dir_fd, "uar.db", O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
	if (h->db_fd < 0)
		return uar_error_set(error, errno == ENOSPC ? UAR_EDISKFULL : UAR_EIO, "%s: %s",
				     path, strerror(errno));
	if (flock(h->db_fd, LOCK_EX | LOCK_NB) == 0)
		return UAR_OK;
	if (errno == EWOULDBLOCK)
		return uar_error_set(error, UAR_ELOCKED, "%s: %s", path, uar_err_text(UAR_ELOCKED));
	return uar_error_set(error, UAR_EIO, "%s: %s", path, strerror(errno));
}

enum { SQ_HELD_DB, SQ_HELD_LOG };
static const char *const held_names[] = { [SQ_HELD_DB] = "uar.db", [SQ_HELD_LOG] = "uar.db-wal" };

struct found {
	int64_t inode; /* 0: there is no such file; -1: unknown */
	int64_t size;
};

/* The file of that name, or, with an empty name, the open one. stat asks for the times as well, and
 * times that were asked for make the next write note a new one: on Linux from 6.13 on, a change of
 * the inode, and 60 us, for every commit. */
static struct found look_up(int fd, const char *name)
{
	const unsigned wanted = STATX_INO | STATX_SIZE;
	int flags = *name ? 0 : AT_EMPTY_PATH;
	struct statx few;
	struct stat all;

	if (statx(fd, name, flags, wanted, &few) == 0 && (few.stx_mask & wanted) == wanted)
		return (struct found){ (int64_t)few.stx_ino, (int64_t)few.stx_size };
	/* Some sandboxes know no other call. */
	if (errno != ENOENT && fstatat(fd, name, &all, flags) == 0)
		return (struct found){ (int64_t)all.st_ino, all.st_size };
	return (struct found){ .inode = errno == ENOENT ? 0 : -1 };
}

uar_err sq_hold_log(struct sq_hold *h, int dir_fd, struct uar_error *error)
{
	h->log_fd = openat(dir_fd, "uar.db-wal", O_RDONLY | O_CLOEXEC);
	if (h->log_fd < 0)
		return uar_error_set(error, UAR_EIO, "uar.db-wal: %s", strerror(errno));
	h->dir_fd = dir_fd;
	h->inodes[SQ_HELD_DB] = look_up(h->db_fd, "").inode;
	h->inodes[SQ_HELD_LOG] = look_up(h->log_fd, "").inode;
	sq_hold_grown(h);
	return UAR_OK;
}

void sq_hold_grown(struct sq_hold *h)
{
	int64_t size = look_up(h->db_fd, "").size;

	if (size > h->db_bytes)
		h->db_bytes = size;
}

uar_err sq_hold_check(struct sq_hold *h, int64_t log_bytes, struct uar_error *error)
{
	for (size_t i = 0; i < ARRAY_LEN(held_names); i++) {
		bool log = i == SQ_HELD_LOG;
		struct found now = look_up(h->dir_fd, held_names[i]);

		if (now.inode < 0 || h->inodes[i] <= 0)
			continue;
		if (now.inode != h->inodes[i])
			return uar_error_set(error, UAR_ENOTFOUND,
					     "%s was removed from its directory, or replaced",
					     held_names[i]);
		if (now.size < (log ? log_bytes : h->db_bytes))
			return uar_error_set(error, UAR_ECORRUPT,
					     "%s was cut short by another program", held_names[i]);
	}
	return UAR_OK;
}

void sq_hold_end(struct sq_hold *h)
{
	if (h->db_fd >= 0)
		close(h->db_fd);
	if (h->log_fd >= 0)
		close(h->log_fd);
	*h = (struct sq_hold){ .db_fd = -1, .log_fd = -1 };
}
