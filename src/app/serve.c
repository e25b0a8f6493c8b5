/* serve.c - the life of a server: signals, reloads, how it says where it is, its end.
 *
 * On SIGTERM: stop listening, end streams, stop workers, finish commits, close; a second
 * signal or the end of the grace period cuts what is left. A storage that could not sync
 * ends the process with status 1 without another word to anybody. */
#include "app/serve_int.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio_ext.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/again.h"
#include "app/announce.h"
#include "app/early.h"
#include "app/limits.h"
#include "base/address.h"
#include "json/limits.h"

enum { REST_LOOK_US = 20000 };

/* --- death ------------------------------------------------------------------------ */

/* A worker may hang in the file system; it delays the end for the grace period at most. */
static void stop_if_done(struct server *s)
{
	if (!s->done.http || !s->done.runtime)
		return;
	if (!uar_loop_working(s->loop) ||
	    uar_timer_set(uar_loop_sched(s->loop), &s->done.workers, REST_LOOK_US))
		uar_loop_stop(s->loop);
}

static void on_workers(struct uar_timer *t)
{
	stop_if_done(UAR_OWNER(t, struct server, done.workers));
}

static void on_http_done(void *ctx)
{
	struct server *s = ctx;

	s->done.http = true;
	stop_if_done(s);
}

static void on_runtime_done(void *ctx)
{
	struct server *s = ctx;

	s->done.runtime = true;
	stop_if_done(s);
}

static void on_grace_over(struct uar_timer *t)
{
	uar_loop_stop(UAR_OWNER(t, struct server, grace)->loop);
}

static void drain(struct server *s)
{
	s->done.workers.fn = on_workers;
	s->grace.fn = on_grace_over;
	if (uar_timer_set(uar_loop_sched(s->loop), &s->grace, s->config->value.drain_us))
		uar_loop_stop(s->loop);
	uar_gate_drain(s->gate);
	s->done.http = !s->http;
	if (s->http)
		uar_http_drain(s->http, on_http_done, s);
	uar_runtime_drain(s->runtime, on_runtime_done, s);
}

/* Looks whether the runs that were told to stop have done so. */
static void on_rest(struct uar_timer *t)
{
	struct server *s = UAR_OWNER(t, struct server, grace);
	struct uar_sched *sched = uar_loop_sched(s->loop);
	struct uar_runtime_stats stats;

	uar_runtime_stats(s->runtime, &stats);
	if (stats.live_runs == 0 || uar_clock_mono(sched->clock) >= s->rest_until_us ||
	    uar_timer_set(sched, &s->grace, REST_LOOK_US))
		drain(s);
}

void uar_server_stop(struct server *s, const char *reason)
{
	struct uar_sched *sched = uar_loop_sched(s->loop);

	if (s->stopping) {
		uar_loop_stop(s->loop);
		return;
	}
	s->stopping = true;
	uar_log(&s->log, UAR_LOG_INFO, "server.draining", { "reason", uar_str_c(reason) });
	if (s->config->value.shutdown == UAR_CONFIG_SHUTDOWN_KEEP) {
		drain(s);
		return;
	}
	uar_runtime_cancel_all(s->runtime, UAR_STR("the server is shutting down"));
	s->rest_until_us = uar_clock_mono(sched->clock) + s->config->value.drain_us;
	s->grace.fn = on_rest;
	if (uar_timer_set(sched, &s->grace, REST_LOOK_US))
		drain(s);
}

static void on_stop(void *ctx, int signum)
{
	(void)signum;
	uar_server_stop(ctx, "signal");
}

/* --- life -------------------------------------------------------------------------- */

static void log_changes(const struct server *s, const struct uar_config_changes *changes)
{
	for (size_t i = 0; i < changes->count; i++)
		uar_log(&s->log, changes->of[i].applied ? UAR_LOG_INFO : UAR_LOG_WARN,
			"config.changed", { "key", uar_str_c(changes->of[i].row->key) },
			{ "applied", uar_str_c(changes->of[i].applied ? "yes" : "at next start") });
}

/* A line of the log for each. */
static void log_refused(const struct server *s, uar_err e, uar_str problems)
{
	if (!problems.n)
		problems = uar_str_c(uar_err_text(e));
	while (problems.n) {
		uar_str line = uar_str_cut(problems, '\n', &problems);

		uar_log(&s->log, UAR_LOG_ERROR, "config.refused", { "problems", line });
	}
}

static void log_warnings(const struct server *s, uar_str warnings)
{
	while (warnings.n) {
		uar_str line = uar_str_cut(warnings, '\n', &warnings);

		uar_log(&s->log, UAR_LOG_WARN, "config.unknown_variable", { "text", line });
	}
}

/* It was checked when the configuration was read. */
static void change_policy(struct server *s, const struct uar_config *next)
{
	struct uar_host_policy *policy = NULL;
	struct uar_error error = { 0 };
	uar_err e;

	if (strcmp(s->config->value.permissions, next->permissions) == 0)
		return;
	e = uar_host_policy_read(uar_str_c(next->permissions), &policy, &error);
	if (e)
		log_refused(s, e, uar_str_c(uar_error_text(&error)));
	else
		uar_workers_change_policy(s->parts.work, policy);
}

static void on_reload(void *ctx, int signum)
{
	struct server *s = ctx;
	struct uar_buf problems = uar_buf_make(UAR_LIMIT_LOG_LINE);
	struct uar_config_changes changes;
	struct uar_config_set *next;
	const struct uar_config *c;
	uar_err e;

	(void)signum;
	uar_server_reload_agents(s);
	uar_server_reload_skills(s);
	uar_plugin_host_reload(s->plugins);
	e = uar_config_reload(s->config, &next, &changes, &problems);
	if (e)
		log_refused(s, e, uar_buf_str(&problems));
	uar_buf_fini(&problems);
	if (e)
		return;
	log_changes(s, &changes);
	change_policy(s, &next->value);
	c = &next->value;
	s->log.level = (enum uar_log_level)c->log_level;
	s->log.json = c->log_json;
	uar_gate_reload(s->gate, c->heartbeat_us, c->cancel_terminal == UAR_CONFIG_CANCEL_DONE);
	uar_runtime_reload(s->runtime, c->run_timeout_us);
	uar_workers_reload(s->parts.work, &(struct uar_model_patience){ c->model_idle_timeout_us,
									(int)c->model_retries,
									c->model_retry_us });
	/* What was made from the old set keeps its strings: the first set stays. */
	uar_config_destroy(s->loaded);
	s->loaded = s->config = next;
}

static const char full_text[] =
	"what is stored can be read; new facts are refused until there is space";

/* Then other commands have to be told, too. */
static bool data_by_flag(const struct uar_config_set *set)
{
	for (size_t i = 0; i < UAR_CONFIG_COUNT; i++)
		if (strcmp(uar_config_rows[i].key, "data") == 0)
			return set->origin[i].source == UAR_CONFIG_FROM_FLAG;
	return false;
}

/* Without space for it a server works as well, for who knows its address. */
static uar_err write_address(struct server *s, struct uar_error *error)
{
	const char *data = s->config->value.data;
	uar_err e = uar_datadir_announce(data, &s->info, &uar_clock_system, error);

	if (e == UAR_EDISKFULL && uar_datadir_release(data))
		e = uar_datadir_announce(data, &s->info, &uar_clock_system, error);
	if (e != UAR_EDISKFULL)
		return e;
	uar_log(&s->log, UAR_LOG_WARN, "server.not_announced",
		{ "error", uar_str_c(uar_error_text(error)) });
	return UAR_OK;
}

/* Where the system chose the port, the next start takes it again. Without it nothing is lost. */
static void keep_port(struct server *s, const char *address)
{
	const struct uar_config *c = &s->config->value;
	const char *port = strrchr(address, ':');
	size_t n = strlen(c->listen);
	struct uar_error error;

	if (!port || n < 2 || strcmp(c->listen + n - 2, ":0") != 0)
		return;
	if (uar_datadir_keep(c->data, UAR_DATADIR_PORT, uar_str_c(port + 1), &error))
		uar_log(&s->log, UAR_LOG_INFO, "server.port_not_kept",
			{ "error", uar_str_c(uar_error_text(&error)) });
}

/* Is the disk full? What recovery wrote may have fitted into the last of it: the store alone does
 * not know. */
static bool look_at_space(struct server *s)
{
	const char *data = s->config->value.data;
	struct uar_store_stats stats;
	bool full;

	s->store->ops->stats(s->store, &stats);
	full = stats.health == UAR_STORE_FULL || uar_datadir_full(data);
	uar_datadir_reserve(data);
	if (full)
		uar_log(&s->log, UAR_LOG_WARN, "server.disk_full",
			{ "text", uar_str_c(full_text) });
	return full;
}

static void warn_if_open(const struct server *s)
{
	uar_str address = uar_str_c(uar_http_address(s->http));
	const char *data = s->config->value.data;

	if (!uar_server_is_local(address))
		uar_log(&s->log, UAR_LOG_WARN, "server.open_to_network", { "address", address },
			{ "text", UAR_STR("plain HTTP is open to the network, and the token with "
					  "it: TLS belongs in front") });
	if (uar_datadir_open_to_others(data))
		uar_log(&s->log, UAR_LOG_WARN, "server.data_open_to_others",
			{ "data", uar_str_c(data) },
			{ "text", UAR_STR("other users can write into the data directory, and with "
					  "it choose what runs here: chmod 700 closes it") });
}

/* A path from here leads nowhere for a command in another directory. One that would get too
 * long for a socket stays as it is. */
static void find_socket(const char *path, char out[UAR_SOCKET_PATH])
{
	char here[UAR_SOCKET_PATH];
	size_t n = strlen(path);

	if (path[0] != '/' && getcwd(here, sizeof here) && strlen(here) + 1 + n < UAR_SOCKET_PATH)
		snprintf(out, UAR_SOCKET_PATH, "%s/%s", here, path);
	else
		snprintf(out, UAR_SOCKET_PATH, "%s", path);
}

/* Nobody has read it, and the server is there all the same. */
static void log_unsaid(const struct server *s, int number)
{
	char reason[80];

	uar_log(&s->log, UAR_LOG_ERROR, "server.not_announced",
		{ "error", uar_str_c(strerror_r(number, reason, sizeof reason)) },
		{ "text", UAR_STR("standard output cannot be written: server.json of the data "
				  "directory says where the server is") });
	__fpurge(s->by.cli->out);
	clearerr(s->by.cli->out);
}

/* Half of it would be worse than nothing: whoever starts a server reads it. */
static uar_err say_where(struct server *s, const char *socket, bool full)
{
	char link[sizeof s->info.url + 64];
	struct uar_announcement a = { .url = s->info.url,
				      .link = link,
				      .socket = socket,
				      .program = s->by.cli->program,
				      .full = full ? full_text : NULL,
				      .data = s->config->value.data,
				      .data_by_flag = data_by_flag(s->config),
				      .token = uar_buf_str(&s->token) };
	struct uar_buf words = uar_buf_make(16 * UAR_LIMIT_URI_BYTES);
	uar_err e;

	snprintf(link, sizeof link, "%s/#code=%s", a.url, uar_gate_link_code(s->gate));
	e = s->by.json ? uar_announce_json(&a, &words) : uar_announce_text(&a, &words);
	if (!e)
		fprintf(s->by.cli->out, "%.*s", UAR_FMT(uar_buf_str(&words)));
	if (fflush(s->by.cli->out) || ferror(s->by.cli->out))
		log_unsaid(s, errno);
	uar_buf_fini(&words);
	return e;
}

/* What is too much is not kept in part: whoever needs the server is told instead. */
static void keep_how(struct server *s)
{
	uar_err e = s->info.passing ? uar_again_put(s->config, &s->idle.again) : UAR_OK;

	s->info.again = e ? UAR_STR("null") : uar_buf_str(&s->idle.again);
}

static int announce(struct server *s)
{
	struct uar_server_info *info = &s->info;
	struct uar_error error = { 0 };
	const char *address = uar_http_local_address(s->http);
	bool is_unix = uar_str_starts(uar_str_c(address), UAR_STR("unix:"));
	char path[UAR_SOCKET_PATH];
	const char *socket = is_unix ? path : NULL;
	bool full;
	uar_err e;

	if (is_unix)
		find_socket(address + strlen("unix:"), path);
	info->pid = getpid();
	info->passing = s->config->value.idle_exit_us > 0;
	keep_how(s);
	e = uar_announce_url(address, socket, info->url, sizeof info->url);
	if (!e)
		e = write_address(s, &error);
	if (e)
		return uar_server_explain(s, "data directory", e, &error);
	keep_port(s, address);
	full = look_at_space(s);
	warn_if_open(s);
	uar_server_mcp_listens(s);
	e = say_where(s, socket, full);
	return e ? uar_server_explain(s, "announcement", e, NULL) : 0;
}

/* Looked at now and then: exactness is not what it is for. */
static void on_idle_check(struct uar_timer *t)
{
	struct server *s = UAR_OWNER(t, struct server, idle.timer);
	int64_t limit = s->config->value.idle_exit_us, now = uar_clock_mono(&uar_clock_system);
	struct uar_runtime_stats runs;
	struct uar_http_stats http;

	uar_runtime_stats(s->runtime, &runs);
	uar_http_stats(s->http, &http);
	if (runs.live_runs || runs.parked || http.open)
		s->idle.busy_us = now;
	if (s->stopping)
		return;
	if (now - s->idle.busy_us >= limit ||
	    uar_timer_set(uar_loop_sched(s->loop), t, limit / 4 + 1000))
		uar_server_stop(s, "idle");
}

static uar_err watch_idle(struct server *s)
{
	if (!s->config->value.idle_exit_us)
		return UAR_OK;
	s->idle.busy_us = uar_clock_mono(&uar_clock_system);
	s->idle.timer.fn = on_idle_check;
	return uar_timer_set(uar_loop_sched(s->loop), &s->idle.timer,
			     s->config->value.idle_exit_us / 4 + 1000);
}

static uar_err on_signals(struct server *s)
{
	uar_err e = uar_loop_on_signal(s->loop, SIGTERM, on_stop, s);

	if (!e)
		e = uar_loop_on_signal(s->loop, SIGINT, on_stop, s);
	if (!e)
		e = uar_loop_on_signal(s->loop, SIGHUP, on_reload, s);
	if (!e)
		e = watch_idle(s);
	return e;
}

/* It is ending: one signal more would only spoil its status. */
static void hold_signals(void)
{
	sigset_t stops;

	sigemptyset(&stops);
	sigaddset(&stops, SIGTERM);
	sigaddset(&stops, SIGINT);
	sigaddset(&stops, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &stops, NULL);
}

/* The thread that talks to models comes with the first call and by default gets a heap of
 * its own. What it needs fits into the holes that the start of runs leaves in the loop's:
 * 8 of 57 MB with a thousand runs. The threads that are there keep theirs. */
static void share_heaps(const struct server *s)
{
	if (s->net.client)
		(void)mallopt(M_ARENA_MAX, 1);
}

/* Each thread would reserve 64 MB of addresses for a heap of its own. Where addresses are limited
 * (ulimit -v) that fails, and every small piece then takes whole pages: all share one heap. */
static void share_limited_heap(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
		(void)mallopt(M_ARENA_MAX, 1);
}

/* A stream is a descriptor: take as many as the system grants. */
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

int uar_verb_serve(struct uar_cli *cli)
{
	struct server s = { .config = cli->config,
			    .by = { .cli = cli, .json = cli->args->option[UAR_OPT_JSON] != NULL } };
	const struct uar_config *c = &cli->config->value;
	struct uar_log_out out;
	int status;

	uar_log_out_init(&out, STDERR_FILENO);
	uar_log_out_keep(&out);
	s.log = (struct uar_log){ &uar_clock_system, (enum uar_log_level)c->log_level, c->log_json,
				  &out };
	s.token = uar_buf_make(UAR_LIMIT_ID_BYTES * 4);
	s.idle.again = uar_buf_make(UAR_LIMIT_SERVER_FILE / 2);
	umask(077); /* whatever is written is the owner's alone */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a limit for files is a full disk, not a reason to die */
	raise_file_limit();
	share_limited_heap();
	log_warnings(&s, uar_str_c(cli->config->warnings));
	status = uar_server_make(&s);
	share_heaps(&s);
	if (!status && on_signals(&s))
		status = uar_server_explain(&s, "signals", UAR_ENOMEM, NULL);
	if (!status)
		status = announce(&s);
	if (!status) {
		uar_early_deliver();
		uar_loop_run(s.loop);
	}
	hold_signals();
	if (s.broken)
		_exit(1); /* nothing may be acknowledged any more, not even by closing */
	uar_server_unmake(&s);
	uar_log_out_fini(&out);
	return status;
}
