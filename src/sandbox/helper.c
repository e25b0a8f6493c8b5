/* helper.c - starts the command, passes its streams on, reports, leaves with its end.
 *
 * One loop over few descriptors. What the server does not read holds the command up; nothing is
 * kept here beyond one piece of each stream. */
#include "sandbox/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "json/json.h"
#include "json/jw.h"
#include "sandbox/confine_int.h"

enum { PIECE = 32768, ARGV_COMMAND = 3, LEFT_FAILED = 125, ROWS = 24, COLUMNS = 80 };

struct helper {
	struct uar_sandbox s;
	pid_t pid;
	int pidfd, in, out, err, listener;
	struct monitor *monitor;
	struct uar_buf orders, input; /* from the server; for the command */
	bool orders_ended, input_ends;
	char piece[PIECE];
};

/* --- reports ------------------------------------------------------------------------------- */

/* A server that is gone needs no report: its supervisor ends all of this. */
static void send_bytes(const char *p, size_t n)
{
	while (n) {
		ssize_t done = write(STDOUT_FILENO, p, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			_exit(LEFT_FAILED);
		p += done;
		n -= (size_t)done;
	}
}

static void report(char what, uar_str bytes)
{
	struct uar_buf frame = uar_buf_make(UAR_FRAME_HEAD + UAR_LIMIT_SANDBOX_FRAME);

	uar_frame_write(&frame, what, bytes);
	if (frame.err)
		_exit(LEFT_FAILED);
	send_bytes(frame.p, frame.n);
	uar_buf_fini(&frame);
}

static void report_json(char what, struct uar_jw *w, struct uar_buf *json)
{
	uar_jw_close(w);
	if (!uar_jw_end(w))
		report(what, uar_buf_str(json));
	uar_buf_fini(json);
}

static void report_failed(const struct confine_error *e)
{
	struct uar_buf json = uar_buf_make(UAR_LIMIT_SANDBOX_FRAME);
	struct uar_jw w = uar_jw_begin(&json);

	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "stage", e->stage);
	uar_jw_cstr(&w, "what", e->what);
	uar_jw_cstr(&w, "error", strerror(e->number));
	report_json(UAR_REPORT_FAILED, &w, &json);
}

/* Each attempt is reported once. */
static bool is_known(const char *kind, uar_str target, const char *attempted)
{
	static char known[UAR_LIMIT_SANDBOX_VIOLATIONS][320];
	static size_t count;
	char text[320];

	snprintf(text, sizeof text, "%s %s %.*s", kind, attempted, UAR_FMT(target));
	for (size_t i = 0; i < count; i++)
		if (strcmp(known[i], text) == 0)
			return true;
	if (count == UAR_LIMIT_SANDBOX_VIOLATIONS)
		return true;
	memcpy(known[count++], text, sizeof text);
	return false;
}

static void report_violation(const char *kind, uar_str target, const char *attempted)
{
	struct uar_buf json = uar_buf_make(UAR_LIMIT_SANDBOX_FRAME);
	struct uar_jw w = uar_jw_begin(&json);
	bool valid = uar_utf8_valid(target);

	if (is_known(kind, target, attempted)) {
		uar_buf_fini(&json);
		return;
	}
	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "kind", kind);
	uar_jw_str(&w, "target", valid ? uar_str_utf8_prefix(target, 1024) : UAR_STR("?"));
	uar_jw_cstr(&w, "attempted", attempted);
	report_json(UAR_REPORT_VIOLATION, &w, &json);
}

static void report_exit(int status)
{
	struct uar_buf json = uar_buf_make(UAR_LIMIT_SANDBOX_FRAME);
	struct uar_jw w = uar_jw_begin(&json);

	uar_jw_obj(&w, NULL);
	if (WIFSIGNALED(status))
		uar_jw_int(&w, "signal", WTERMSIG(status));
	else
		uar_jw_int(&w, "exit_code", WEXITSTATUS(status));
	report_json(UAR_REPORT_EXIT, &w, &json);
}

/* --- the command ---------------------------------------------------------------------------- */

/* Hands the listener of the filter over, or says why there is none. */
static bool hand_over(int to, int listener, const struct confine_error *e)
{
	struct confine_error copy = *e;
	struct iovec io = { &copy, sizeof copy };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1 };

	memset(&control, 0, sizeof control);
	if (listener >= 0) {
		struct cmsghdr *c;

		m.msg_control = &control;
		m.msg_controllen = sizeof control;
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &listener, sizeof listener);
	}
	return sendmsg(to, &m, MSG_NOSIGNAL) == (ssize_t)sizeof copy;
}

static bool take_over(int from, int *out_listener, struct confine_error *e)
{
	struct iovec io = { e, sizeof *e };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr m = { .msg_iov = &io,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof control };
	const struct cmsghdr *c;
	ssize_t n;

	do {
		n = recvmsg(from, &m, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n != (ssize_t)sizeof *e)
		return false;
	c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_type == SCM_RIGHTS)
		memcpy(out_listener, CMSG_DATA(c), sizeof *out_listener);
	return true;
}

static void become_command(const struct uar_sandbox *s, const int ends[3], int sync, char **argv)
{
	struct confine_error e = { .stage = "spawn" };
	int listener = -1, copy;
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	setsid();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (s->tty)
		ioctl(ends[0], TIOCSCTTY, 0);
	for (int i = 0; i < 3; i++)
		if (dup2(ends[i], i) < 0)
			_exit(LEFT_FAILED);
	copy = fcntl(sync, F_DUPFD_CLOEXEC, 3);
	if (copy < 0 || dup2(copy, 3) < 0)
		_exit(LEFT_FAILED);
	fcntl(3, F_SETFD, FD_CLOEXEC);
	closefrom(4);
	if (!uar_confine_self(s, &listener, &e)) {
		hand_over(3, -1, &e);
		_exit(LEFT_FAILED);
	}
	if (!hand_over(3, listener, &e))
		_exit(LEFT_FAILED);
	if (listener >= 0)
		close(listener);
	execvp(argv[0], argv);
	e.number = errno;
	snprintf(e.what, sizeof e.what, "%.40s", argv[0]);
	hand_over(3, -1, &e);
	_exit(LEFT_FAILED);
}

/* A terminal: our end is both streams. */
static bool make_terminal(struct helper *h, int ends[3])
{
	struct winsize size = { .ws_row = ROWS, .ws_col = COLUMNS };
	char name[64];
	int slave;

	h->out = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (h->out < 0 || grantpt(h->out) || unlockpt(h->out) ||
	    ptsname_r(h->out, name, sizeof name))
		return false;
	slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		return false;
	ioctl(slave, TIOCSWINSZ, &size);
	ends[0] = ends[1] = ends[2] = slave;
	h->in = fcntl(h->out, F_DUPFD_CLOEXEC, 3);
	return h->in >= 0;
}

static bool make_streams(struct helper *h, int ends[3])
{
	int pipes[3][2];

	if (h->s.tty)
		return make_terminal(h, ends);
	for (int i = 0; i < 3; i++)
		if (pipe2(pipes[i], O_CLOEXEC))
			return false;
	ends[0] = pipes[0][0];
	h->in = pipes[0][1];
	ends[1] = pipes[1][1];
	h->out = pipes[1][0];
	ends[2] = pipes[2][1];
	h->err = pipes[2][0];
	return true;
}

static bool fail_spawn(struct confine_error *e, const char *what)
{
	e->number = errno;
	memcpy(e->stage, "spawn", sizeof "spawn");
	snprintf(e->what, sizeof e->what, "%s", what);
	return false;
}

/* The streams are open for us without waiting: a stopped command must not stop the helper. */
static void set_nonblocking(const struct helper *h)
{
	const int fds[] = { h->in, h->out, h->err };

	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		if (fds[i] >= 0)
			fcntl(fds[i], F_SETFL, fcntl(fds[i], F_GETFL) | O_NONBLOCK);
}

/* The boundary stands and the command has begun, or `e` says why not. */
static bool await_start(struct helper *h, int sync, struct confine_error *e)
{
	if (!take_over(sync, &h->listener, e) || e->number)
		return e->number ? false : fail_spawn(e, "the command went before it began");
	set_nonblocking(h);
	h->pidfd = pidfd_open(h->pid, 0);
	if (h->listener >= 0)
		h->monitor = uar_monitor_create(h->listener, &h->s, getppid(), getpid(),
						report_violation);
	if (h->pidfd < 0 || (h->listener >= 0 && !h->monitor))
		return fail_spawn(e, "watch");
	/* An error of its exec comes the same way; its success closes the socket. */
	return !take_over(sync, &(int){ -1 }, e) || !e->number;
}

static bool start(struct helper *h, char **argv, struct confine_error *e)
{
	int ends[3], sync[2];
	bool ok;

	if (!make_streams(h, ends))
		return fail_spawn(e, "streams");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sync))
		return fail_spawn(e, "socketpair");
	h->pid = fork();
	if (h->pid < 0)
		return fail_spawn(e, "fork");
	if (h->pid == 0)
		become_command(&h->s, ends, sync[1], argv);
	close(sync[1]);
	for (int i = 0; i < 3; i++)
		if (i == 0 || !h->s.tty)
			close(ends[i]);
	ok = await_start(h, sync[0], e);
	close(sync[0]);
	return ok;
}

/* --- streams -------------------------------------------------------------------------------- */

/* False: it is at its end. */
static bool pass_on(struct helper *h, int fd, char what)
{
	ssize_t n = read(fd, h->piece, sizeof h->piece);

	if (n > 0)
		report(what, uar_str_n(h->piece, (size_t)n));
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void take_order(struct helper *h, char what, uar_str bytes)
{
	static const char end_of_text = 4; /* what a terminal takes for the end */

	if (what == UAR_ORDER_INPUT)
		uar_buf_add_str(&h->input, bytes);
	else if (what == UAR_ORDER_END && h->s.tty)
		uar_buf_add(&h->input, &end_of_text, 1);
	else if (what == UAR_ORDER_END)
		h->input_ends = true;
	else if (what == UAR_ORDER_SIGNAL && bytes.n == 1)
		kill(-h->pid, (unsigned char)bytes.p[0]);
}

static void read_orders(struct helper *h)
{
	ssize_t n = read(STDIN_FILENO, h->piece, sizeof h->piece);
	uar_str bytes;
	char what;

	if (n <= 0) {
		h->orders_ended = n == 0 || (errno != EAGAIN && errno != EINTR);
		return;
	}
	uar_buf_add(&h->orders, h->piece, (size_t)n);
	for (;;) {
		size_t used = uar_frame_read(uar_buf_str(&h->orders), &what, &bytes);

		if (used == UAR_FRAME_BROKEN || h->orders.err)
			_exit(LEFT_FAILED);
		if (!used)
			break;
		take_order(h, what, bytes);
		uar_buf_consume(&h->orders, used);
	}
}

static void write_input(struct helper *h)
{
	ssize_t n = h->input.n ? write(h->in, h->input.p, h->input.n) : 0;

	if (n > 0)
		uar_buf_consume(&h->input, (size_t)n);
	if ((n < 0 && errno != EAGAIN && errno != EINTR) || (!h->input.n && h->input_ends)) {
		uar_buf_clear(&h->input);
		close_fd(&h->in);
	}
}

/* What the command wrote before its end; what goes on behind it is not waited for. */
static void drain(struct helper *h)
{
	struct pollfd p[2] = { { .fd = h->out, .events = POLLIN },
			       { .fd = h->err, .events = POLLIN } };

	while (poll(p, 2, 0) > 0) {
		if (p[0].revents && !pass_on(h, h->out, UAR_REPORT_OUTPUT))
			p[0].fd = -1;
		if (p[1].revents && !pass_on(h, h->err, UAR_REPORT_ERRORS))
			p[1].fd = -1;
	}
}

enum { ORDERS, CHILD, NOTIFY, OUT, ERR, IN, FDS };

static void serve(struct helper *h, const struct pollfd p[FDS])
{
	if (p[NOTIFY].revents & POLLIN)
		uar_monitor_handle(h->monitor);
	else if (p[NOTIFY].revents)
		close_fd(&h->listener);
	if (p[OUT].revents && !pass_on(h, h->out, UAR_REPORT_OUTPUT))
		close_fd(&h->out);
	if (p[ERR].revents && !pass_on(h, h->err, UAR_REPORT_ERRORS))
		close_fd(&h->err);
	if (p[ORDERS].revents)
		read_orders(h);
	if (p[IN].revents)
		write_input(h);
}

static void watch(struct helper *h)
{
	int status = 0;

	for (;;) {
		bool full = h->input.n > 0;
		struct pollfd p[FDS] = {
			[ORDERS] = { h->orders_ended || full ? -1 : STDIN_FILENO, POLLIN, 0 },
			[CHILD] = { h->pidfd, POLLIN, 0 },
			[NOTIFY] = { h->listener, POLLIN, 0 },
			[OUT] = { h->out, POLLIN, 0 },
			[ERR] = { h->err, POLLIN, 0 },
			[IN] = { full || h->input_ends ? h->in : -1, POLLOUT, 0 },
		};

		if (poll(p, FDS, -1) < 0)
			continue;
		serve(h, p);
		if (!p[CHILD].revents || waitpid(h->pid, &status, WNOHANG) != h->pid)
			continue;
		drain(h);
		report_exit(status);
		_exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
	}
}

void uar_sandbox_help(int argc, char **argv)
{
	static struct helper h = { .pidfd = -1, .in = -1, .out = -1, .err = -1, .listener = -1 };
	struct confine_error e = { .stage = "sandbox", .what = "profile", .number = EINVAL };
	const struct uar_json *profile = NULL;
	struct uar_arena arena;

	if (argc <= ARGV_COMMAND || strcmp(argv[1], UAR_SANDBOX_WORD) != 0)
		return;
	signal(SIGPIPE, SIG_IGN);
	fcntl(STDIN_FILENO, F_SETFL, fcntl(STDIN_FILENO, F_GETFL) | O_NONBLOCK);
	uar_arena_init(&arena, 0);
	h.orders = uar_buf_make(2 * (UAR_FRAME_HEAD + UAR_LIMIT_SANDBOX_FRAME));
	h.input = uar_buf_make(4 * UAR_LIMIT_SANDBOX_FRAME);
	if (uar_json_parse(uar_str_c(argv[2]), NULL, &arena, &profile, NULL) ||
	    uar_sandbox_read(profile, &h.s, NULL)) {
		report_failed(&e);
		_exit(LEFT_FAILED);
	}
	e = (struct confine_error){ .number = 0 };
	if (!start(&h, argv + ARGV_COMMAND, &e)) {
		report_failed(&e);
		_exit(LEFT_FAILED);
	}
	report(UAR_REPORT_APPLIED, UAR_STR(""));
	watch(&h);
}
