/* monitor.c - system calls that the kernel asks about.
 *
 * What Landlock decides is only looked at here: an attempt that it refuses is reported, and the
 * kernel goes on. What Landlock does not know (owner, mode and times of files, how many
 * processes there are, sockets) is decided here. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "sandbox/confine_int.h"

enum { PATH_ROOM = UAR_LIMIT_SANDBOX_PATH, GRANT_NS = 50 * 1000 * 1000 };

struct monitor {
	int listener;
	const struct uar_sandbox *s;
	pid_t root, self;
	monitor_fn *report;
	/* Roots as the kernel sees them. */
	uar_str read_roots[UAR_LIMIT_SANDBOX_ROOTS + 16], write_roots[UAR_LIMIT_SANDBOX_ROOTS + 16];
	size_t read_count, write_count;
	/* Of forks that were allowed and may not show yet. */
	int64_t counted;
	struct timespec counted_at;
	struct uar_arena arena;
};

/* --- paths --------------------------------------------------------------------------------- */

static void add_root(struct monitor *m, uar_str *to, size_t *count, uar_str path)
{
	char text[PATH_ROOM], real[PATH_MAX];

	snprintf(text, sizeof text, "%.*s", UAR_FMT(path));
	if (!realpath(text, real))
		return;
	to[*count] = uar_arena_str(&m->arena, uar_str_c(real));
	*count += to[*count].p != NULL;
}

struct monitor *uar_monitor_create(int listener, const struct uar_sandbox *s, pid_t root,
				   pid_t self, monitor_fn *report)
{
	struct monitor *m = uar_zalloc(sizeof *m);

	if (!m)
		return NULL;
	*m = (struct monitor){
		.listener = listener, .s = s, .root = root, .self = self, .report = report
	};
	uar_arena_init(&m->arena, 0);
	for (size_t i = 0; i < s->read_count; i++)
		add_root(m, m->read_roots, &m->read_count, s->read_roots[i]);
	for (size_t i = 0; i < s->write_count; i++)
		add_root(m, m->write_roots, &m->write_count, s->write_roots[i]);
	for (size_t i = 0; i < uar_confine_device_count; i++)
		add_root(m, m->write_roots, &m->write_count, uar_confine_devices[i]);
	return m;
}

/* A text in the memory of the process. */
static bool read_text(pid_t pid, uint64_t at, char *out, size_t room)
{
	char path[64];
	size_t n = 0;
	int fd;

	snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	while (n < room) {
		/* Not across a page that may not be there. */
		size_t page = 4096 - (size_t)((at + n) & 4095);
		size_t want = page < room - n ? page : room - n;
		ssize_t got = pread(fd, out + n, want, (off_t)(at + n));

		if (got <= 0)
			break;
		n += (size_t)got;
		if (memchr(out + n - got, 0, (size_t)got)) {
			close(fd);
			return true;
		}
	}
	close(fd);
	return false;
}

/* The folder that a relative path begins in, or the file of a descriptor. */
static bool read_place(pid_t pid, int fd, char out[PATH_ROOM])
{
	char path[64];
	ssize_t n;

	if (fd == AT_FDCWD)
		snprintf(path, sizeof path, "/proc/%d/cwd", (int)pid);
	else
		snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, fd);
	n = readlink(path, out, PATH_ROOM - 1);
	if (n <= 0)
		return false;
	out[n] = 0;
	return out[0] == '/';
}

/* "/proc/self" is the process that asks, not this one. */
static void name_self(pid_t pid, char path[PATH_ROOM])
{
	char rest[PATH_ROOM];

	if (strncmp(path, "/proc/self", 10) != 0 || (path[10] != '/' && path[10] != 0))
		return;
	snprintf(rest, sizeof rest, "%s", path + 10);
	snprintf(path, PATH_ROOM, "/proc/%d%.4000s", (int)pid, rest);
}

/* The path without links; of what is not there that of its folder, and its name. */
static bool resolve(char path[PATH_ROOM], bool *out_exists, char out[PATH_MAX])
{
	char *slash, folder[PATH_MAX];

	*out_exists = true;
	if (realpath(path, out))
		return true;
	*out_exists = false;
	slash = strrchr(path, '/');
	if (!slash || errno == EACCES)
		return false;
	*slash = 0;
	if (!realpath(path[0] ? path : "/", folder)) {
		*slash = '/';
		return false;
	}
	snprintf(out, PATH_MAX, "%.2000s/%.2000s", strcmp(folder, "/") ? folder : "", slash + 1);
	*slash = '/';
	return true;
}

struct asked {
	const struct seccomp_notif *n;
	const struct call_info *info;
	char path[PATH_ROOM], real[PATH_MAX];
	bool exists;
};

static int arg_int(const struct asked *a, int i)
{
	return (int)a->n->data.args[i];
}

/* Which file the call is about. */
static bool find_path(struct asked *a)
{
	pid_t pid = (pid_t)a->n->pid;
	char name[PATH_ROOM], place[PATH_ROOM];
	int dir = a->info->dir >= 0 ? arg_int(a, a->info->dir) : AT_FDCWD;

	name[0] = 0;
	if (a->info->path >= 0 && a->n->data.args[a->info->path] &&
	    !read_text(pid, a->n->data.args[a->info->path], name, sizeof name))
		return false;
	if (name[0] == '/') {
		memcpy(a->path, name, sizeof name);
	} else {
		if (!read_place(pid, dir, place))
			return false;
		snprintf(a->path, sizeof a->path, name[0] ? "%.2000s/%.2000s" : "%.2000s%s", place,
			 name);
	}
	name_self(pid, a->path);
	return resolve(a->path, &a->exists, a->real);
}

/* --- files ---------------------------------------------------------------------------------- */

static bool wants_to_write(const struct asked *a)
{
	int flags;

	if (a->info->access != CALL_OPEN)
		return a->info->access != CALL_READ;
	flags = arg_int(a, a->info->flags);
	return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC));
}

static bool is_covered(const struct monitor *m, const struct asked *a, bool write)
{
	uar_str path = uar_str_c(a->real);

	return uar_sandbox_covers(m->write_roots, m->write_count, path) ||
	       (!write && uar_sandbox_covers(m->read_roots, m->read_count, path));
}

static const char *attempt_of(const struct asked *a, bool write)
{
	if (a->info->access != CALL_OPEN && a->info->access != CALL_READ)
		return a->info->name;
	return write ? "open for writing" : "open for reading";
}

/* Would it be refused? Then it is reported. What is not there is not refused but missing. */
static bool is_outside(const struct monitor *m, const struct asked *a)
{
	bool write = wants_to_write(a);
	bool opens_path = a->info->access == CALL_OPEN && (arg_int(a, a->info->flags) & O_PATH);
	bool creates =
		write && (a->info->access != CALL_OPEN || (arg_int(a, a->info->flags) & O_CREAT));

	if (opens_path || (!a->exists && !creates))
		return false;
	/* Only for reading, although it says that it would create it. */
	if (a->info->access == CALL_OPEN && a->exists &&
	    (arg_int(a, a->info->flags) & O_ACCMODE) == O_RDONLY &&
	    !(arg_int(a, a->info->flags) & O_TRUNC))
		write = false;
	if (is_covered(m, a, write))
		return false;
	m->report("filesystem", uar_str_c(a->real), attempt_of(a, write));
	return true;
}

/* --- processes -------------------------------------------------------------------------------- */

static int64_t count_tasks(const struct monitor *m, pid_t pid, int64_t most, int depth);

static int64_t count_children(const struct monitor *m, pid_t pid, const char *task, int64_t most,
			      int depth)
{
	char path[320];
	int64_t n = 0;
	long child;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/task/%.64s/children", (int)pid, task);
	f = fopen(path, "re");
	while (f && n < most && fscanf(f, "%ld", &child) == 1)
		if ((pid_t)child != m->self)
			n += count_tasks(m, (pid_t)child, most - n, depth + 1);
	if (f)
		fclose(f);
	return n;
}

/* Threads of the process and of all below it, at most so many. */
static int64_t count_tasks(const struct monitor *m, pid_t pid, int64_t most, int depth)
{
	char path[64];
	const struct dirent *d;
	int64_t n = 0;
	DIR *dir;

	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	dir = depth < UAR_LIMIT_SANDBOX_ROOTS * 8 ? opendir(path) : NULL;
	while (dir && n < most && (d = readdir(dir))) {
		if (d->d_name[0] == '.')
			continue;
		n += pid != m->root;
		n += count_children(m, pid, d->d_name, most - n, depth);
	}
	if (dir)
		closedir(dir);
	return n;
}

static bool is_recent(const struct timespec *at)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - at->tv_sec) * 1000000000LL + now.tv_nsec - at->tv_nsec < GRANT_NS;
}

/* A child that was allowed a moment ago may not be there yet: it counts all the same. */
static bool may_fork(struct monitor *m)
{
	int64_t most = m->s->limits.processes, n;
	char self[32];

	snprintf(self, sizeof self, "%d", (int)m->self);
	n = count_tasks(m, m->root, most + 1, 0) + count_children(m, m->self, self, most + 1, 0);
	if (is_recent(&m->counted_at) && m->counted > n)
		n = m->counted;
	if (n >= most) {
		m->report("resource", UAR_STR("processes"), "fork");
		return false;
	}
	m->counted = n + 1;
	clock_gettime(CLOCK_MONOTONIC, &m->counted_at);
	return true;
}

/* --- answers -------------------------------------------------------------------------------- */

/* 0: the kernel goes on. Else the number that the call fails with. */
static int judge(struct monitor *m, struct asked *a)
{
	switch (a->info->access) {
	case CALL_SOCKET: m->report("network", UAR_STR("socket"), "socket"); return EACCES;
	case CALL_DENY: m->report("process", uar_str_c(a->info->name), a->info->name); return EPERM;
	case CALL_FORK: return may_fork(m) ? 0 : EAGAIN;
	case CALL_META: return !find_path(a) || is_outside(m, a) ? EPERM : 0;
	case CALL_READ:
	case CALL_WRITE:
	case CALL_OPEN:
		if (find_path(a))
			(void)is_outside(m, a);
		return 0;
	case CALL_MUTE: break;
	}
	return EPERM;
}

void uar_monitor_handle(struct monitor *m)
{
	struct seccomp_notif n;
	struct seccomp_notif_resp r;
	struct asked a = { .n = &n };
	int number;

	memset(&n, 0, sizeof n);
	if (ioctl(m->listener, SECCOMP_IOCTL_NOTIF_RECV, &n))
		return; /* who asked is gone */
	a.info = uar_call_find(n.data.nr);
	number = a.info ? judge(m, &a) : EPERM;
	memset(&r, 0, sizeof r);
	r.id = n.id;
	if (number)
		r.error = -number;
	else
		r.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	ioctl(m->listener, SECCOMP_IOCTL_NOTIF_SEND, &r);
}
