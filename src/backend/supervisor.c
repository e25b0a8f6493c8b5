/* supervisor.c - a small process that owns one agent program and its whole tree.
 *
 * It is a subreaper: whatever the program starts, however it detaches itself,
 * comes to the supervisor when its parent dies. So killing its own children
 * until there are none reaches everything, and no foreign process can ever be
 * hit: a child's pid is not reused before the supervisor has reaped it.
 * One thread, libc only, no allocation. */
#include "backend/supervisor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CONTROL = 3, RETRY_MS = 10, RETRY_MAX_MS = 500 };

struct sup {
	pid_t root;
	bool root_gone, killing, sweeping;
	int64_t kill_at_ms; /* end of the grace after the program's exit */
	int grace_ms, retry_ms;
	int signals;
	const char *cgroup; /* NULL: in none */
};

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void tell(int type, int a, int b)
{
	struct uab_sup_msg m = { type, a, b };
	ssize_t n;

	do
		n = send(CONTROL, &m, sizeof m, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR); /* a dead host is noticed by the poll */
}

/* --- the children --- */

static void signal_list(FILE *f, int sig)
{
	long pid;

	while (fscanf(f, "%ld", &pid) == 1)
		kill((pid_t)pid, sig);
	fclose(f);
}

static bool is_mine(const char *pid)
{
	char path[64], stat[512];
	const char *at;
	FILE *f;
	size_t n;
	long ppid = 0;

	snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	n = fread(stat, 1, sizeof stat - 1, f);
	fclose(f);
	stat[n] = 0;
	at = strrchr(stat, ')'); /* the name may contain anything */
	return at && sscanf(at + 1, " %*c %ld", &ppid) == 1 && ppid == (long)getpid();
}

/* Kernels without /proc/.../children. */
static void signal_by_scan(int sig)
{
	DIR *d = opendir("/proc");
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && is_mine(e->d_name))
			kill((pid_t)strtol(e->d_name, NULL, 10), sig);
	if (d)
		closedir(d);
}

static void signal_children(int sig)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof path, "/proc/self/task/%ld/children", (long)getpid());
	f = fopen(path, "re");
	if (f)
		signal_list(f, sig);
	else
		signal_by_scan(sig);
}

/* Reaps what is dead. False: no child is left. */
static bool reap(struct sup *s)
{
	for (;;) {
		int status;
		pid_t pid = waitpid(-1, &status, WNOHANG);

		if (pid < 0 && errno == EINTR)
			continue;
		if (pid < 0)
			return false;
		if (pid == 0)
			return true;
		s->retry_ms = RETRY_MS; /* somebody died: its children are ours now */
		if (pid == s->root) {
			s->root_gone = true;
			tell(UAB_SUP_EXITED, status, 0);
		}
	}
}

/* --- starting --- */

static void child(char **argv, int report)
{
	struct uab_sup_msg m = { UAB_SUP_FAILED, UAB_PHASE_CHDIR, 0 };
	sigset_t none;
	ssize_t n;

	setsid();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (!argv[1][0] || chdir(argv[1]) == 0) {
		m.a = UAB_PHASE_EXEC;
		execvp(argv[5], argv + 5);
	}
	m.b = errno;
	do
		n = write(report, &m, sizeof m);
	while (n < 0 && errno == EINTR);
	_exit(127);
}

static void forget_stdio(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int i = 0; i < 3; i++)
		if (fd < 0 || dup2(fd, i) < 0)
			close(i);
	if (fd > 3)
		close(fd);
}

static bool start(struct sup *s, char **argv)
{
	struct uab_sup_msg m = { UAB_SUP_FAILED, UAB_PHASE_FORK, 0 };
	int report[2];
	ssize_t n;

	if (pipe2(report, O_CLOEXEC) == 0) {
		s->root = fork();
		if (s->root == 0)
			child(argv, report[1]);
		close(report[1]);
	} else {
		s->root = -1;
	}
	if (s->root < 0) {
		m.b = errno;
		tell(m.type, m.a, m.b);
		return false;
	}
	forget_stdio();
	do
		n = read(report[0], &m, sizeof m);
	while (n < 0 && errno == EINTR);
	close(report[0]);
	if (n == (ssize_t)sizeof m) {
		waitpid(s->root, NULL, 0);
		tell(UAB_SUP_FAILED, m.a, m.b);
		return false;
	}
	tell(UAB_SUP_STARTED, s->root, 0);
	return true;
}

/* --- the group --- */

/* "0" is whoever writes it. */
static bool enter_group(const char *group, const char *rest)
{
	char path[1200];
	int n = snprintf(path, sizeof path, "%s/%s", group, rest), fd;
	bool ok;

	if (n < 0 || n >= (int)sizeof path)
		return false;
	fd = open(path, O_WRONLY | O_CLOEXEC);
	ok = fd >= 0 && write(fd, "0", 1) == 1;
	if (fd >= 0)
		close(fd);
	return ok;
}

/* Nobody else is in it any more: back to where this process came from. */
static void leave_group(const struct sup *s)
{
	if (s->cgroup && enter_group(s->cgroup, "../cgroup.procs"))
		rmdir(s->cgroup);
}

/* --- running --- */

static void on_control(struct sup *s)
{
	struct uab_sup_msg m;
	ssize_t n = recv(CONTROL, &m, sizeof m, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < (ssize_t)sizeof m || m.type == UAB_SUP_KILL)
		s->killing = true; /* also when the host is gone */
	else if (m.type == UAB_SUP_TERM && !s->root_gone)
		kill(s->root, SIGTERM);
}

static void on_signal(struct sup *s)
{
	struct signalfd_siginfo info;

	while (read(s->signals, &info, sizeof info) == (ssize_t)sizeof info)
		if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT ||
		    info.ssi_signo == SIGHUP || info.ssi_signo == SIGQUIT)
			s->killing = true;
}

static int next_timeout(const struct sup *s)
{
	int64_t left;

	if (s->killing)
		return s->retry_ms;
	if (!s->sweeping)
		return -1;
	left = s->kill_at_ms - now_ms();
	return left < 0 ? 0 : (int)left;
}

/* After the program's own end the rest gets a moment, then no more. */
static void advance(struct sup *s)
{
	if (s->root_gone && !s->sweeping) {
		s->sweeping = true;
		s->kill_at_ms = now_ms() + s->grace_ms;
		signal_children(SIGTERM);
	}
	if (s->sweeping && now_ms() >= s->kill_at_ms)
		s->killing = true;
	if (s->killing) {
		signal_children(SIGKILL);
		s->retry_ms = s->retry_ms * 2 < RETRY_MAX_MS ? s->retry_ms * 2 : RETRY_MAX_MS;
	}
}

static void supervise(struct sup *s)
{
	struct pollfd fds[2] = { { .fd = s->signals, .events = POLLIN },
				 { .fd = CONTROL, .events = POLLIN } };

	while (reap(s)) {
		advance(s);
		if (s->killing)
			fds[1].fd = -1; /* nothing more to be told */
		if (poll(fds, 2, next_timeout(s)) < 0 && errno != EINTR)
			s->killing = true;
		if (fds[0].revents)
			on_signal(s);
		if (fds[1].fd >= 0 && fds[1].revents)
			on_control(s);
	}
	leave_group(s);
	tell(UAB_SUP_EMPTY, 0, 0);
}

int uab_supervisor_main(int argc, char **argv)
{
	struct sup s = { .retry_ms = RETRY_MS };
	sigset_t set;

	if (argc < 6 || fcntl(CONTROL, F_SETFD, FD_CLOEXEC) < 0) {
		fprintf(stderr, "agent-api-supervisor: started by libagent_api only\n");
		return 2;
	}
	s.grace_ms = (int)strtol(argv[3], NULL, 10);
	sigemptyset(&set);
	for (int sig = 1; sig < 32; sig++)
		if (sig != SIGSEGV && sig != SIGBUS && sig != SIGFPE && sig != SIGILL &&
		    sig != SIGABRT && sig != SIGPIPE)
			sigaddset(&set, sig);
	sigprocmask(SIG_SETMASK, &set, NULL);
	s.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (s.signals < 0 || (long)getppid() != strtol(argv[2], NULL, 10))
		return 1; /* the host died meanwhile: nothing was started */
	if (argv[4][0] && enter_group(argv[4], "cgroup.procs")) {
		s.cgroup = argv[4];
		tell(UAB_SUP_GROUPED, 0, 0);
	}
	if (!start(&s, argv)) {
		leave_group(&s);
		return 1;
	}
	supervise(&s);
	return 0;
}

#ifdef UAB_SUPERVISOR_MAIN
int main(int argc, char **argv)
{
	return uab_supervisor_main(argc, argv);
}
#endif
