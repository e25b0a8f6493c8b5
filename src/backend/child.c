/* child.c - starts a program under its supervisor without touching the host:
 * no fork handlers, no signal dispositions, no inherited descriptors, and
 * waiting for one pid only. */
#include "backend/child.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	FIRST_FREE_FD = 10,
	PIPE_BYTES = 262144
}; /* ours stay clear of 0..3, which the child gets */

#ifndef AGENT_API_LIBEXEC
#define AGENT_API_LIBEXEC "/usr/local/libexec"
#endif

void uab_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* --- finding the supervisor --- */

static bool usable(char *path, size_t size, uar_str dir, const char *rest)
{
	int n = snprintf(path, size, "%.*s%s", UAR_FMT(dir), rest);

	return n > 0 && (size_t)n < size && access(path, X_OK) == 0;
}

/* Where the code of the library lies. Linked into a program that was found in PATH
 * it has no directory in its name; the present one is never meant. */
static uar_str own_dir(char *buf, size_t size)
{
	Dl_info here;
	ssize_t n;

	if (!dladdr(__extension__(void *) own_dir, &here) || !here.dli_fname)
		return UAR_STR_NONE;
	if (strchr(here.dli_fname, '/')) {
		snprintf(buf, size, "%s", here.dli_fname);
	} else {
		n = readlink("/proc/self/exe", buf, size - 1);
		buf[n > 0 ? n : 0] = 0;
	}
	return uar_str_n(buf, strchr(buf, '/') ? (size_t)(strrchr(buf, '/') - buf) : 0);
}

const char *uab_supervisor_path(uaa_str configured, char *path, size_t size)
{
	const char *env = secure_getenv("AGENT_API_SUPERVISOR");
	char self[1024];
	uar_str dir;

	if (configured.ptr) /* asked for: no other one will do */
		return usable(path, size, uab_str(configured), "") ? path : NULL;
	if (env)
		return usable(path, size, uar_str_c(env), "") ? path : NULL;
	dir = own_dir(self, sizeof self);
	if (dir.n && (usable(path, size, dir, "/agent-api-supervisor") ||
		      usable(path, size, dir, "/../libexec/agent-api-supervisor")))
		return path;
	return usable(path, size, UAR_STR(AGENT_API_LIBEXEC), "/agent-api-supervisor") ? path
										       : NULL;
}

/* --- starting --- */

/* A descriptor out of the way of 0..3, closed on exec. */
static int lift(int fd)
{
	int high;

	if (fd < 0 || fd >= FIRST_FREE_FD)
		return fd;
	high = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
	close(fd);
	return high;
}

static bool make_pipe(int *rd, int *wr)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC))
		return false;
	*rd = lift(p[0]);
	*wr = lift(p[1]);
	return *rd >= 0 && *wr >= 0;
}

static bool make_control(int *ours, int *theirs)
{
	int p[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p))
		return false;
	*ours = lift(p[0]);
	*theirs = lift(p[1]);
	return *ours >= 0 && *theirs >= 0;
}

static int init_attr(posix_spawnattr_t *attr)
{
	sigset_t set;
	int e = posix_spawnattr_init(attr);

	if (e)
		return e;
	sigemptyset(&set);
	e = posix_spawnattr_setsigmask(attr, &set);
	sigfillset(&set);
	e = e ? e : posix_spawnattr_setsigdefault(attr, &set);
	return e ? e
		 : posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
							  POSIX_SPAWN_SETSID);
}

static int spawn_with(struct uab_child *c, const struct uab_spawn *spec, const int fds[4],
		      char *const *argv)
{
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t attr;
	int e = init_attr(&attr);

	if (e)
		return e;
	e = posix_spawn_file_actions_init(&fa);
	if (!e) {
		for (int i = 0; i < 4 && !e; i++)
			e = posix_spawn_file_actions_adddup2(&fa, fds[i], i);
		e = e ? e : posix_spawn_file_actions_addclosefrom_np(&fa, 4);
		e = e ? e : posix_spawn(&c->pid, spec->supervisor, &fa, &attr, argv, spec->envp);
		posix_spawn_file_actions_destroy(&fa);
	}
	posix_spawnattr_destroy(&attr);
	return e;
}

static int spawn_argv(struct uab_child *c, const struct uab_spawn *spec, const int fds[4])
{
	char ppid[24], grace[24];
	size_t n = 0;
	char **argv;
	int e;

	while (spec->argv[n])
		n++;
	argv = uar_alloc((n + 6) * sizeof *argv);
	if (!argv)
		return ENOMEM;
	snprintf(ppid, sizeof ppid, "%ld", (long)getpid());
	snprintf(grace, sizeof grace, "%d", spec->grace_ms);
	argv[0] = (char *)"agent-api-supervisor";
	argv[1] = (char *)(spec->cwd ? spec->cwd : "");
	argv[2] = ppid;
	argv[3] = grace;
	argv[4] = c->cgroup;
	memcpy(argv + 5, spec->argv, (n + 1) * sizeof *argv);
	e = spawn_with(c, spec, fds, argv);
	uar_free(argv);
	return e;
}

static void non_blocking(int fd)
{
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

int uab_child_spawn(struct uab_child *c, const struct uab_spawn *spec)
{
	int theirs[4] = { -1, -1, -1, -1 };
	int e;

	*c = (struct uab_child){ .in = -1, .out = -1, .err = -1, .control = -1, .pidfd = -1 };
	if (make_pipe(&theirs[0], &c->in) && make_pipe(&c->out, &theirs[1]) &&
	    make_pipe(&c->err, &theirs[2]) && make_control(&c->control, &theirs[3])) {
		uab_cgroup_make(spec->cgroup, c->cgroup);
		e = spawn_argv(c, spec, theirs);
	} else {
		e = errno ? errno : EMFILE;
	}
	for (int i = 0; i < 4; i++)
		uab_close(&theirs[i]);
	if (e) {
		uab_close(&c->in);
		uab_close(&c->out);
		uab_close(&c->err);
		uab_close(&c->control);
		uab_cgroup_remove(c->cgroup);
		c->pid = 0;
		return e;
	}
	/* nobody else can have reaped it yet unless it is gone already */
	c->pidfd = pidfd_open(c->pid, 0);
	fcntl(c->out, F_SETPIPE_SZ, PIPE_BYTES); /* fewer switches; as good without */
	non_blocking(c->in);
	non_blocking(c->out);
	non_blocking(c->err);
	return 0;
}

/* --- talking --- */

static void take(struct uab_child *c, const struct uab_sup_msg *m)
{
	if (m->type == UAB_SUP_STARTED) {
		c->started = true;
		c->root = m->a;
	} else if (m->type == UAB_SUP_GROUPED) {
		c->grouped = true;
	} else if (m->type == UAB_SUP_FAILED) {
		c->failed = c->empty = true;
		c->phase = m->a;
		c->failed_errno = m->b;
	} else if (m->type == UAB_SUP_EXITED) {
		c->exited = true;
		c->status = m->a;
	} else if (m->type == UAB_SUP_EMPTY) {
		c->empty = true;
	}
}

void uab_child_control(struct uab_child *c)
{
	for (;;) {
		struct uab_sup_msg m;
		ssize_t n = recv(c->control, &m, sizeof m, MSG_DONTWAIT);

		/* It left a word of ours unread: the system says so once, ahead of what
		 * it sent before it left. */
		if (n < 0 && (errno == EINTR || errno == ECONNRESET))
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n == (ssize_t)sizeof m) {
			take(c, &m);
			continue;
		}
		uab_close(&c->control);
		if (!c->empty) { /* killed from outside: do what can be done from here */
			c->lost = true;
			if (c->root > 1)
				kill(-c->root, SIGKILL);
		}
		return;
	}
}

void uab_child_tell(struct uab_child *c, enum uab_sup_type what)
{
	struct uab_sup_msg m = { .type = (int32_t)what };
	ssize_t n;

	if (c->control < 0)
		return;
	do
		n = send(c->control, &m, sizeof m, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
}

void uab_child_sweep(struct uab_child *c, int64_t until_us)
{
	if (c->grouped && uab_cgroup_sweep(c->cgroup, until_us))
		c->empty = true;
}

/* Somebody in the host may reap everything; then there is nothing to wait for. */
static void wait_gone(struct uab_child *c)
{
	siginfo_t info;
	int n;

	if (c->pid <= 0)
		return;
	do
		n = c->pidfd >= 0 ? waitid(P_PIDFD, (id_t)c->pidfd, &info, WEXITED)
				  : waitid(P_PID, (id_t)c->pid, &info, WEXITED);
	while (n < 0 && errno == EINTR);
	c->pid = 0;
}

void uab_child_reap(struct uab_child *c)
{
	uab_close(&c->in);
	uab_close(&c->out);
	uab_close(&c->err);
	uab_close(&c->control); /* a supervisor that still works kills everything now */
	wait_gone(c);
	uab_close(&c->pidfd);
	uab_cgroup_remove(c->cgroup);
}
