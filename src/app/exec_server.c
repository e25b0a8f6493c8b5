/* exec_server.c - spawned in a session of its own, so that the terminal's Ctrl-C is
 * not the server's; its first line says that it is ready, or why it is not, and its
 * log is exec.log of the data directory. */
#include "app/exec_server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/again.h"
#include "app/datadir.h"
#include "app/limits.h"

enum {
	PAUSE_MS = 100,
	PAUSE_MAX_MS = 1000,
	LOCKED_MS = 30000,
	START_MS = 30000,
	PATH_BYTES = 4096,
	LINE_BYTES = 8192
};

#define IDLE "2s"

static bool is_named(const struct uar_cli *cli)
{
	return cli->args->option[UAR_OPT_URL] || uar_config_env(cli->env, "UAR_URL");
}

bool uar_exec_server_passing(const struct uar_cli *cli)
{
	return !is_named(cli) && uar_datadir_passing(cli->config->value.data);
}

static bool answers(struct uar_cli *cli, struct uar_error *error)
{
	struct uar_buf body = uar_buf_make(UAR_LIMIT_CLI_ANSWER);
	struct uar_api_request ask = { .method = "GET", .path = "/health" };
	struct uar_api api;
	bool ok = uar_remote_find(cli, &api, error) == UAR_OK &&
		  uar_api_call(&api, &ask, &body, error) == UAR_OK;

	uar_buf_fini(&body);
	return ok;
}

static int spawn_with(posix_spawn_file_actions_t *f, posix_spawnattr_t *a,
		      const struct uar_again *how, pid_t *out)
{
	int e = posix_spawnattr_setflags(a, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
	sigset_t none;

	sigemptyset(&none); /* what we hold back is not to be held back from it */
	if (!e)
		e = posix_spawnattr_setsigmask(a, &none);
	return e ? e
		 : posix_spawn(out, "/proc/self/exe", f, a, (char *const *)(uintptr_t)how->argv,
			       (char *const *)(uintptr_t)how->env);
}

static int spawn_server(struct uar_cli *cli, const struct uar_again *how, int out_fd, pid_t *out)
{
	posix_spawn_file_actions_t f;
	posix_spawnattr_t a;
	char log[PATH_BYTES];
	int e = posix_spawn_file_actions_init(&f);

	if (e)
		return e;
	snprintf(log, sizeof log, "%s/exec.log", cli->config->value.data);
	e = posix_spawn_file_actions_addopen(&f, 0, "/dev/null", O_RDONLY, 0);
	if (!e)
		e = posix_spawn_file_actions_adddup2(&f, out_fd, 1);
	if (!e)
		e = posix_spawn_file_actions_addopen(
			&f, 2, log, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK, 0600);
	if (!e)
		e = posix_spawnattr_init(&a);
	if (!e) {
		e = spawn_with(&f, &a, how, out);
		posix_spawnattr_destroy(&a);
	}
	posix_spawn_file_actions_destroy(&f);
	return e;
}

/* Its first line, or what it said before its end. ETIMEDOUT, ECANCELED. */
static int first_line(const struct uar_cli *cli, int fd, struct uar_buf *out)
{
	int64_t until = uar_clock_mono(cli->clock) + (int64_t)START_MS * 1000;

	while (!memchr(out->n ? out->p : "", '\n', out->n)) {
		int64_t left = (until - uar_clock_mono(cli->clock)) / 1000;
		int e = uar_beside_wait(cli->beside, fd, POLLIN, left > 0 ? (int)left : 0);
		char *room = e ? NULL : uar_buf_reserve(out, 1024);
		ssize_t n = room ? read(fd, room, 1024) : 0;

		if (e)
			return e;
		if (n <= 0)
			break;
		out->n += (size_t)n;
	}
	return 0;
}

/* UAR_ELOCKED: somebody else has the directory. */
static uar_err judge(const struct uar_cli *cli, uar_str line, struct uar_error *error)
{
	const struct uar_json *said = NULL;
	struct uar_arena a;
	uar_str why;
	uar_err e = UAR_ECHILD;

	uar_arena_init(&a, 0);
	if (uar_json_parse(line, NULL, &a, &said, NULL))
		said = NULL;
	why = uar_json_text(said, "error");
	if (uar_json_get(said, UAR_STR("url")))
		e = UAR_OK;
	else if (uar_json_bool(uar_json_get(said, UAR_STR("in_use")), false))
		e = UAR_ELOCKED;
	if (e)
		uar_error_set(error, e, "no server could be started: %.*s%s%s/exec.log",
			      UAR_FMT(uar_str_utf8_prefix(why, 300)), why.n ? "; see " : "see ",
			      cli->config->value.data);
	uar_arena_fini(&a);
	return e;
}

/* One that is not ready is not left behind. */
static uar_err await_server(const struct uar_cli *cli, int fd, pid_t pid, struct uar_error *error)
{
	struct uar_buf line = uar_buf_make(LINE_BYTES);
	int failed = first_line(cli, fd, &line), status;
	uar_err e = failed == ECANCELED ? uar_error_set(error, UAR_ECANCELED, "interrupted")
		    : failed		? uar_error_set(error, UAR_ECHILD,
							"no server could be started: not ready after %d s; "
								   "see %s/exec.log",
							START_MS / 1000, cli->config->value.data)
					: judge(cli, uar_buf_str(&line), error);

	uar_buf_fini(&line);
	if (!e)
		return UAR_OK;
	kill(pid, failed ? SIGKILL : SIGTERM);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return e;
}

static uar_err start_as(struct uar_cli *cli, const struct uar_again *how, struct uar_error *error)
{
	int ends[2], failed;
	uar_err e;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return uar_error_set(error, UAR_ECHILD, "%s", strerror(errno));
	failed = spawn_server(cli, how, ends[1], &pid);
	close(ends[1]);
	e = failed ? uar_error_set(error, UAR_ECHILD,
				   "no server could be started with its log in %s/exec.log: %s",
				   cli->config->value.data, strerror(failed))
		   : await_server(cli, ends[0], pid, error);
	close(ends[0]);
	return e;
}

static uar_err start(struct uar_cli *cli, bool own, struct uar_error *error)
{
	uar_err e = uar_datadir_create(cli->config->value.data, error);
	struct uar_again how;
	struct uar_arena a;

	uar_arena_init(&a, 0);
	if (!e)
		e = uar_again_plan(cli, IDLE, own, &a, &how, error);
	if (!e)
		e = start_as(cli, &how, error);
	uar_arena_fini(&a);
	return e;
}

/* Others may start one at the same time, and only one of them gets the directory; or
 * the last one is still on its way out. */
static uar_err find_or_start(struct uar_cli *cli, bool own, struct uar_error *error)
{
	struct uar_error unheard = { 0 };
	int pause = 0, waited = 0;
	uar_err e = UAR_ELOCKED;

	if (is_named(cli))
		return answers(cli, error) ? UAR_OK : UAR_ENET;
	for (; e == UAR_ELOCKED && waited <= LOCKED_MS; waited += pause) {
		if (pause && uar_beside_wait(cli->beside, -1, 0, pause) == ECANCELED)
			return uar_error_set(error, UAR_ECANCELED, "interrupted");
		pause = pause ? 2 * pause : PAUSE_MS;
		pause = pause > PAUSE_MAX_MS ? PAUSE_MAX_MS : pause;
		e = answers(cli, &unheard) ? UAR_OK : start(cli, own, error);
	}
	return e;
}

uar_err uar_exec_server(struct uar_cli *cli, struct uar_error *error)
{
	return find_or_start(cli, true, error);
}

uar_err uar_exec_server_again(struct uar_cli *cli, struct uar_error *error)
{
	return uar_exec_server_passing(cli) ? find_or_start(cli, false, error) : UAR_OK;
}
