/* child.c - pipes on libuv, the exit on a pidfd. */
#include "loop/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "base/alloc.h"
#include "loop/limits.h"
#include "loop/supervise.h"

enum { STREAMS = 3, READ_BYTES = 65536, ERRORS_BYTES = 4096, ARGS = 256 };

struct uar_child {
	struct uar_loop *loop;
	struct uar_child_options o;
	uv_pipe_t pipe[STREAMS]; /* our ends of stdin, stdout, stderr */
	uv_poll_t exit;
	int pidfd;
	pid_t pid;
	int status;
	size_t waiting; /* bytes not yet taken by the child */
	unsigned open;	/* handles that are not closed */
	bool gone, told, destroyed, no_input, broken_input;
	char buffer[READ_BYTES];
};

struct write {
	uv_write_t req;
	struct uar_child *c;
	size_t n;
	char bytes[];
};

/* --- starting ------------------------------------------------------------------ */

static uar_err fail(struct uar_error *error, const char *what, int number)
{
	return uar_error_set(error, UAR_ECHILD, "%s: %s", what, strerror(number));
}

static void close_all(int fds[STREAMS][2])
{
	for (int i = 0; i < STREAMS; i++)
		for (int side = 0; side < 2; side++)
			if (fds[i][side] >= 0)
				close(fds[i][side]);
}

/* fds[i][0] is the child's end, fds[i][1] ours. */
static int make_pipes(int fds[STREAMS][2])
{
	memset(fds, -1, STREAMS * sizeof fds[0]);
	for (int i = 0; i < STREAMS; i++) {
		int ends[2];

		if (pipe2(ends, O_CLOEXEC)) {
			int number = errno;

			close_all(fds);
			return number;
		}
		fds[i][0] = ends[i == 0 ? 0 : 1];
		fds[i][1] = ends[i == 0 ? 1 : 0];
	}
	return 0;
}

static int set_actions(posix_spawn_file_actions_t *a, int fds[STREAMS][2], const char *cwd)
{
	int e = 0;

	for (int i = 0; i < STREAMS && !e; i++)
		e = posix_spawn_file_actions_adddup2(a, fds[i][0], i);
	if (!e && cwd)
		e = posix_spawn_file_actions_addchdir_np(a, cwd);
	return e;
}

static int set_attributes(posix_spawnattr_t *a)
{
	short flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
	sigset_t none, all;
	int e;

	sigemptyset(&none);
	sigfillset(&all);
	e = posix_spawnattr_setflags(a, flags);
	if (!e)
		e = posix_spawnattr_setpgroup(a, 0);
	if (!e)
		e = posix_spawnattr_setsigmask(a, &none);
	if (!e)
		e = posix_spawnattr_setsigdefault(a, &all);
	return e;
}

static int spawn(struct uar_child *c, int fds[STREAMS][2], char **argv)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int e = posix_spawn_file_actions_init(&actions);

	if (e)
		return e;
	e = posix_spawnattr_init(&attributes);
	if (!e) {
		e = set_attributes(&attributes);
		if (!e)
			e = set_actions(&actions, fds, c->o.cwd);
		if (!e)
			e = posix_spawn(&c->pid, uar_loop_supervisor(c->loop), &actions,
					&attributes, argv, (char *const *)(uintptr_t)c->o.env);
		posix_spawnattr_destroy(&attributes);
	}
	posix_spawn_file_actions_destroy(&actions);
	return e;
}

static uar_err spawn_supervisor(struct uar_child *c, int fds[STREAMS][2], struct uar_error *error)
{
	char *argv[ARGS + 4], pid[16];
	size_t n = 0;
	int e;

	snprintf(pid, sizeof pid, "%d", (int)getpid());
	argv[0] = (char *)(uintptr_t) "uar";
	argv[1] = (char *)(uintptr_t)UAR_SUPERVISE_WORD;
	argv[2] = pid;
	while (c->o.argv[n] && n < ARGS) {
		argv[n + 3] = (char *)(uintptr_t)c->o.argv[n];
		n++;
	}
	if (n == 0 || n == ARGS)
		return uar_error_set(error, UAR_EINVALID, "a command has 1 to %d words", ARGS - 1);
	argv[n + 3] = NULL;
	e = spawn(c, fds, argv);
	return e ? fail(error, c->o.argv[0], e) : UAR_OK;
}

/* --- ending -------------------------------------------------------------------- */

static void on_closed(uv_handle_t *h)
{
	struct uar_child *c = h->data;

	if (--c->open == 0 && c->destroyed)
		uar_free(c);
}

static void close_handle(uv_handle_t *h)
{
	if (h->data && !uv_is_closing(h))
		uv_close(h, on_closed);
}

static bool is_open(const uv_pipe_t *p)
{
	return p->data && !uv_is_closing((const uv_handle_t *)p);
}

static void tell_if_over(struct uar_child *c)
{
	if (!c->gone || c->told || is_open(&c->pipe[1]) || is_open(&c->pipe[2]))
		return;
	c->told = true;
	close_handle((uv_handle_t *)&c->pipe[0]);
	c->o.exited(c->o.ctx, c->status);
}

static void wait_for(struct uar_child *c)
{
	siginfo_t info = { 0 };

	while (waitid(P_PID, (id_t)c->pid, &info, WEXITED) && errno == EINTR)
		;
	c->status = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
	c->gone = true;
	close(c->pidfd);
	c->pidfd = -1;
}

static void on_pidfd(uv_poll_t *poll, int status, int events)
{
	struct uar_child *c = poll->data;

	(void)status, (void)events;
	uv_poll_stop(poll);
	close_handle((uv_handle_t *)poll);
	wait_for(c);
	tell_if_over(c);
}

/* --- reading -------------------------------------------------------------------- */

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *out)
{
	struct uar_child *c = h->data;

	(void)suggested;
	*out = uv_buf_init(c->buffer, READ_BYTES);
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
	struct uar_child *c = s->data;
	bool output = s == (uv_stream_t *)&c->pipe[1];

	if (n > 0) {
		(output ? c->o.output : c->o.errors)(c->o.ctx, uar_str_n(buf->base, (size_t)n));
	} else if (n < 0) {
		close_handle((uv_handle_t *)s);
		if (output && c->o.output_ended)
			c->o.output_ended(c->o.ctx);
		tell_if_over(c);
	}
}

/* Into a buffer of its own: the other one may hold the output that is being handled. At most
 * what a pipe holds, or a child that never stops writing would never be left. */
void uar_child_read_errors(struct uar_child *c)
{
	char bytes[ERRORS_BYTES];
	uv_os_fd_t fd;
	ssize_t n = 1;

	if (!is_open(&c->pipe[2]) || uv_fileno((uv_handle_t *)&c->pipe[2], &fd))
		return;
	for (size_t all = 0; all < READ_BYTES && n > 0; all += (size_t)n) {
		do {
			n = read(fd, bytes, sizeof bytes);
		} while (n < 0 && errno == EINTR);
		if (n > 0)
			c->o.errors(c->o.ctx, uar_str_n(bytes, (size_t)n));
	}
}

void uar_child_pause(struct uar_child *c, bool paused)
{
	if (!is_open(&c->pipe[1]))
		return;
	if (paused)
		uv_read_stop((uv_stream_t *)&c->pipe[1]);
	else
		uv_read_start((uv_stream_t *)&c->pipe[1], on_alloc, on_read);
}

/* --- writing -------------------------------------------------------------------- */

static void on_written(uv_write_t *req, int status)
{
	struct write *w = req->data;
	struct uar_child *c = w->c;

	c->waiting -= w->n;
	c->broken_input = c->broken_input || status < 0;
	uar_free(w);
	if (c->no_input && c->waiting == 0)
		close_handle((uv_handle_t *)&c->pipe[0]);
}

uar_err uar_child_write(struct uar_child *c, uar_str bytes)
{
	struct write *w;
	uv_buf_t buf;

	if (c->no_input || c->broken_input || !is_open(&c->pipe[0]))
		return UAR_EEOF;
	if (c->waiting + bytes.n > UAR_LIMIT_CHILD_INPUT)
		return UAR_EBUSY;
	w = uar_alloc(sizeof *w + bytes.n);
	if (!w)
		return UAR_ENOMEM;
	w->c = c;
	w->n = bytes.n;
	w->req.data = w;
	memcpy(w->bytes, bytes.p, bytes.n);
	buf = uv_buf_init(w->bytes, (unsigned)bytes.n);
	if (uv_write(&w->req, (uv_stream_t *)&c->pipe[0], &buf, 1, on_written)) {
		uar_free(w);
		return UAR_EEOF;
	}
	c->waiting += bytes.n;
	return UAR_OK;
}

void uar_child_end_input(struct uar_child *c)
{
	c->no_input = true;
	if (c->waiting == 0)
		close_handle((uv_handle_t *)&c->pipe[0]);
}

/* --- life ----------------------------------------------------------------------- */

static uar_err open_handles(struct uar_child *c, int fds[STREAMS][2])
{
	uv_loop_t *uv = uar_loop_uv(c->loop);

	for (int i = 0; i < STREAMS; i++) {
		if (uv_pipe_init(uv, &c->pipe[i], 0))
			return UAR_ENOMEM;
		c->pipe[i].data = c;
		c->open++;
		if (uv_pipe_open(&c->pipe[i], fds[i][1]))
			return UAR_ENOMEM;
		fds[i][1] = -1; /* the handle's now */
	}
	if (uv_poll_init(uv, &c->exit, c->pidfd))
		return UAR_ENOMEM;
	c->exit.data = c;
	c->open++;
	if (uv_poll_start(&c->exit, UV_READABLE, on_pidfd) ||
	    uv_read_start((uv_stream_t *)&c->pipe[1], on_alloc, on_read) ||
	    uv_read_start((uv_stream_t *)&c->pipe[2], on_alloc, on_read))
		return UAR_ENOMEM;
	return UAR_OK;
}

uar_err uar_child_start(struct uar_loop *l, const struct uar_child_options *o,
			struct uar_child **out, struct uar_error *error)
{
	struct uar_child *c = uar_zalloc(sizeof *c);
	int fds[STREAMS][2];
	uar_err e;
	int number;

	if (!c)
		return UAR_ENOMEM;
	c->loop = l;
	c->o = *o;
	c->pidfd = -1;
	number = make_pipes(fds);
	if (number) {
		uar_free(c);
		return fail(error, "pipe", number);
	}
	e = spawn_supervisor(c, fds, error);
	if (!e) {
		c->pidfd = pidfd_open(c->pid, 0);
		e = c->pidfd < 0 ? fail(error, "pidfd_open", errno) : open_handles(c, fds);
	}
	close_all(fds);
	if (e) {
		uar_child_destroy(c);
		return e;
	}
	c->o.argv = c->o.env = NULL; /* were borrowed for the start */
	c->o.cwd = NULL;
	*out = c;
	return UAR_OK;
}

void uar_child_kill(struct uar_child *c)
{
	if (c->gone || c->pid <= 0)
		return;
	kill(c->pid, SIGTERM);
	kill(c->pid, SIGCONT); /* it hears nothing while somebody has stopped it */
}

void uar_child_destroy(struct uar_child *c)
{
	if (!c)
		return;
	uar_child_kill(c);
	close_handle((uv_handle_t *)&c->exit);
	if (!c->gone && c->pidfd >= 0) {
		wait_for(c);
	} else if (!c->gone && c->pid > 0) {
		waitpid(c->pid, NULL, 0);
	}
	c->destroyed = true;
	c->told = true;
	for (int i = 0; i < STREAMS; i++)
		close_handle((uv_handle_t *)&c->pipe[i]);
	if (c->open == 0)
		uar_free(c);
}
