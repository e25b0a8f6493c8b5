/* exec_server.c - spawned in a session of its own, so that the terminal's Ctrl-C is
 * not the server's; it says "ready" with its first line and writes its log to
 * exec.log of the data directory. */
#include "app/exec_server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/datadir.h"

enum { TRIES = 50, PAUSE_MS = 100, START_MS = 30000, IDLE_SECONDS = 2, PATH_BYTES = 4096 };

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

static int spawn_with(posix_spawn_file_actions_t *f, posix_spawnattr_t *a, struct uar_cli *cli,
		      pid_t *out)
{
	const char *config = cli->args->option[UAR_OPT_CONFIG];
	char idle[16];
	const char *argv[] = { "uar",
			       "serve",
			       "--json",
			       "--data",
			       cli->config->value.data,
			       "--idle-exit-seconds",
			       idle,
			       config ? "--config" : NULL,
			       config,
			       NULL };
	int e = posix_spawnattr_setflags(a, POSIX_SPAWN_SETSID);

	snprintf(idle, sizeof idle, "%ds", IDLE_SECONDS);
	return e ? e
		 : posix_spawn(out, "/proc/self/exe", f, a, (char *const *)(uintptr_t)argv,
			       (char *const *)(uintptr_t)cli->env);
}

static int spawn_server(struct uar_cli *cli, int out_fd, pid_t *out)
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
		e = posix_spawn_file_actions_addopen(&f, 2, log, O_WRONLY | O_CREAT | O_APPEND,
						     0600);
	if (!e)
		e = posix_spawnattr_init(&a);
	if (!e) {
		e = spawn_with(&f, &a, cli, out);
		posix_spawnattr_destroy(&a);
	}
	posix_spawn_file_actions_destroy(&f);
	return e;
}

/* Its first line, or its end. */
static bool said_something(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char byte;

	return poll(&p, 1, START_MS) == 1 && read(fd, &byte, 1) == 1;
}

static uar_err start(struct uar_cli *cli, struct uar_error *error)
{
	const char *data = cli->config->value.data;
	uar_err e = uar_datadir_create(data, error);
	int ends[2], status, failed;
	pid_t pid;

	if (e)
		return e;
	if (pipe2(ends, O_CLOEXEC))
		return uar_error_set(error, UAR_ECHILD, "%s", strerror(errno));
	failed = spawn_server(cli, ends[1], &pid);
	close(ends[1]);
	if (failed)
		e = uar_error_set(error, UAR_ECHILD, "no server could be started: %s",
				  strerror(failed));
	else if (!said_something(ends[0]))
		e = uar_error_set(error, UAR_ECHILD, "no server could be started; see %s/exec.log",
				  data);
	close(ends[0]);
	if (e && !failed)
		waitpid(pid, &status, WNOHANG);
	return e;
}

/* Others may start one at the same time, and only one of them gets the directory; or
 * the last one is still on its way out. */
uar_err uar_exec_server(struct uar_cli *cli, struct uar_error *error)
{
	bool named = cli->args->option[UAR_OPT_URL] || uar_config_env(cli->env, "UAR_URL");
	struct uar_error unheard = { 0 };
	uar_err e = UAR_ENET;

	if (named)
		return answers(cli, error) ? UAR_OK : UAR_ENET;
	for (int i = 0; i < TRIES && e; i++) {
		e = answers(cli, &unheard) ? UAR_OK : start(cli, error);
		if (e)
			poll(NULL, 0, PAUSE_MS);
	}
	return e;
}
