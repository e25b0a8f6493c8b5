/* supervise.c - start, reap, kill, leave with the child's status.
 *
 * A process whose parent dies becomes ours (PR_SET_CHILD_SUBREAPER), so killing
 * direct children until there is none left gets every descendant. */
#include "loop/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CANNOT_START = 127, CANNOT_START_NOW = 126, KILL_AGAIN_NS = 50000000 };

struct watch {
	pid_t child;
	int status; /* of the child, as this process will exit */
	bool ending;
};

static void take_signals(sigset_t *set)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP, SIGCHLD };

	sigemptyset(set);
	for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
		sigaddset(set, signals[i]);
	sigprocmask(SIG_BLOCK, set, NULL);
}

/* Would the same command fail the next time, too? */
static bool is_lasting(int error)
{
	return error != ENOMEM && error != EAGAIN && error != EMFILE && error != ENFILE &&
	       error != ETXTBSY && error != EIO;
}

static pid_t start(char **command)
{
	pid_t self = getpid(), pid = fork();
	int status = CANNOT_START;
	sigset_t none;

	if (pid)
		return pid;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == self) {
		execvp(command[0], command);
		status = is_lasting(errno) ? CANNOT_START : CANNOT_START_NOW;
		fprintf(stderr, "cannot start %s: %s\n", command[0], strerror(errno));
	}
	_exit(status);
}

/* The pipes are the child's alone: their end must be its end. */
static void let_go(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd < 3 && null >= 0; fd++)
		dup2(null, fd);
}

static void kill_children(const struct watch *w)
{
	char path[64], text[16384], *at = text, *end;
	ssize_t n;
	int fd;

	if (w->child > 0)
		kill(-w->child, SIGKILL);
	snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = 0;
	for (;;) {
		long pid = strtol(at, &end, 10);

		if (end == at)
			return;
		if (*end == ' ' && pid > 1) /* a number cut off at the end names nobody */
			kill((pid_t)pid, SIGKILL);
		at = end;
	}
}

/* False: there are no children any more. */
static bool reap(struct watch *w)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == w->child) {
			w->child = -1;
			w->ending = true;
			w->status =
				WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
		}
	return pid == 0;
}

static void watch(struct watch *w, const sigset_t *set)
{
	struct timespec soon = { 0, KILL_AGAIN_NS };
	int signum;

	while (reap(w)) {
		if (w->ending)
			kill_children(w);
		signum = w->ending ? sigtimedwait(set, NULL, &soon) : sigwaitinfo(set, NULL);
		if (signum > 0 && signum != SIGCHLD)
			w->ending = true;
	}
}

void uar_supervise(int argc, char **argv)
{
	struct watch w = { .status = CANNOT_START };
	sigset_t set;

	if (argc < 4 || strcmp(argv[1], UAR_SUPERVISE_WORD) != 0)
		return;
	closefrom(3); /* what the server was started with is not for plugins */
	take_signals(&set);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != (pid_t)strtol(argv[2], NULL, 10))
		_exit(CANNOT_START);
	w.child = start(argv + 3);
	let_go();
	if (w.child > 0)
		watch(&w, &set);
	else
		w.status = CANNOT_START_NOW;
	_exit(w.status);
}
