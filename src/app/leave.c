/* leave.c - a thread that waits for the signal: the verb itself may hang in a pipe that
 * nobody reads, and must be left all the same. */
#include "app/leave.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* Past the stream, whose lock the verb may hold; a pipe that is full is not waited for. */
static void tell(struct uar_leave *l)
{
	struct pollfd p = { .fd = fileno(l->err), .events = POLLOUT };

	if (poll(&p, 1, 0) == 1 && p.revents & POLLOUT)
		dprintf(p.fd,
			"%suar: the run goes on: `uar logs -f %s` shows it, `uar cancel %s` stops "
			"it\n",
			l->err_tty ? "\n" : "", l->run_id, l->run_id);
}

static void die(int signal_number)
{
	sigset_t set;

	signal(signal_number, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, signal_number);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	raise(signal_number);
}

static void *watch(void *ctx)
{
	struct uar_leave *l = ctx;
	struct pollfd p[2] = { { .fd = l->stop, .events = POLLIN },
			       { .fd = l->signals, .events = POLLIN } };
	struct signalfd_siginfo taken;

	while (!p[0].revents) {
		if (poll(p, 2, -1) < 0 || !p[1].revents)
			continue;
		if (read(l->signals, &taken, sizeof taken) != sizeof taken)
			continue;
		tell(l);
		die((int)taken.ssi_signo);
	}
	return NULL;
}

static void add_unless_ignored(sigset_t *set, int signal_number)
{
	struct sigaction now;

	if (!sigaction(signal_number, NULL, &now) && now.sa_handler != SIG_IGN)
		sigaddset(set, signal_number);
}

static void close_all(struct uar_leave *l)
{
	if (l->signals >= 0)
		close(l->signals);
	if (l->stop >= 0)
		close(l->stop);
	pthread_sigmask(SIG_SETMASK, &l->before, NULL);
}

void uar_leave_begin(struct uar_leave *l, const struct uar_cli *cli, const char *run_id)
{
	sigset_t set;

	sigemptyset(&set);
	add_unless_ignored(&set, SIGINT);
	add_unless_ignored(&set, SIGTERM);
	*l = (struct uar_leave){ .err = cli->err, .err_tty = cli->err_tty, .run_id = run_id };
	pthread_sigmask(SIG_BLOCK, &set, &l->before);
	l->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	l->stop = eventfd(0, EFD_CLOEXEC);
	l->watching =
		l->signals >= 0 && l->stop >= 0 && !pthread_create(&l->thread, NULL, watch, l);
	if (!l->watching)
		close_all(l);
}

/* A signal that came too late for the thread kills here. */
void uar_leave_end(struct uar_leave *l)
{
	if (!l->watching)
		return;
	eventfd_write(l->stop, 1);
	pthread_join(l->thread, NULL);
	close_all(l);
	l->watching = false;
}
