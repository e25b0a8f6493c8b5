/* serve.c - the wiring: every room is made here, joined, and taken apart again.
 *
 * Order of birth: loop, store, models, plugins, agents, runtime, gate, HTTP. Recovery lists the
 * live runs before the first request is taken. On SIGTERM: stop listening, end
 * streams, stop workers, finish commits, close; a second signal or the end of
 * the grace period cuts what is left. A storage that could not sync ends the
 * process with status 1 without another word to anybody. */
#include "app/serve.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/cli.h"
#include "app/datadir.h"
#include "bridge/bridge.h"
#include "gate/gate.h"
#include "loop/client.h"
#include "loop/loop.h"
#include "plugin/plugin.h"

extern char **environ;

enum { REST_LOOK_US = 20000 };

struct server {
	struct uar_config_set *config; /* the one in force */
	struct uar_config_set *loaded; /* by SIGHUP; owned */
	FILE *out;
	bool json;
	struct uar_log log;
	struct uar_loop *loop;
	struct uar_store *store;
	struct uar_client *client;
	struct uar_model *scripted, *provider;
	struct uar_plugin_host *plugins;
	struct uar_bridge *agents;
	struct uar_runtime *runtime;
	struct uar_gate *gate;
	struct uar_http *http;
	struct uar_buf token;
	struct uar_server_info info;
	struct uar_timer grace, idle;
	int64_t rest_until_us; /* monotonic: runs that were told to stop get so long */
	int64_t busy_us;       /* when there was last something to do */
	bool stopping, http_done, runtime_done, broken;
};

/* For whoever started it with --json and reads the one line. */
static void explain_json(const struct server *s, const char *text, uar_err e)
{
	struct uar_buf b = uar_buf_make(4096);
	struct uar_jw w = uar_jw_begin(&b);

	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "error", text);
	uar_jw_cstr(&w, "code", uar_err_token(e));
	uar_jw_bool(&w, "in_use", e == UAR_ELOCKED);
	uar_jw_close(&w);
	if (uar_jw_end(&w) == UAR_OK)
		fprintf(s->out, "%.*s\n", UAR_FMT(uar_buf_str(&b)));
	fflush(s->out);
	uar_buf_fini(&b);
}

/* Who has the directory, as far as it has said so. */
static void name_holder(const struct server *s, char *out, size_t size)
{
	struct uar_server_info other;
	struct uar_error error;

	if (uar_datadir_server(s->config->value.data, &other, &error) == UAR_OK)
		snprintf(out, size, " (pid %lld%s)", (long long)other.pid,
			 other.passing ? ", a server that leaves by itself: try again" : "");
}

static int explain(const struct server *s, const char *what, uar_err e,
		   const struct uar_error *error)
{
	const char *text = error && error->text[0] ? error->text : uar_err_text(e);
	char holder[96] = "";

	if (e == UAR_ELOCKED)
		name_holder(s, holder, sizeof holder);
	fprintf(stderr, "uar: %s: %s%s [%s]\n", what, text, holder, uar_err_token(e));
	if (s->json)
		explain_json(s, text, e);
	return 1;
}

/* --- birth ---------------------------------------------------------------------- */

static void on_broken(void *ctx, const struct uar_error *error)
{
	struct server *s = ctx;

	s->broken = true;
	uar_log(&s->log, UAR_LOG_ERROR, "store.broken",
		{ "reason", uar_str_c(uar_error_text(error)) });
	uar_loop_stop(s->loop);
}

static uar_err make_store(struct server *s, struct uar_error *error)
{
	const struct uar_config *c = &s->config->value;
	struct uar_store_options o = {
		.dir = c->data,
		.sched = uar_loop_sched(s->loop),
		.rand = &uar_rand_system,
		.log = &s->log,
		.readers = (unsigned)c->readers,
		.broken = on_broken,
		.ctx = s,
	};

	return uar_store_sqlite_create(&o, &s->store, error);
}

static uar_err make_models(struct server *s, struct uar_error *error)
{
	const struct uar_config *c = &s->config->value;
	struct uar_model_scripted_options scripted = {
		.sched = uar_loop_sched(s->loop),
		.token_us = c->scripted_token_ms * 1000,
	};
	struct uar_model_openai_options openai = {
		.base_url =
			c->openai_base_url[0] ? c->openai_base_url : "https://api.openai.com/v1",
		.api_key = c->openai_api_key,
	};
	uar_err e = uar_model_scripted_create(&scripted, &s->scripted);

	if (e || (!c->openai_base_url[0] && !c->openai_api_key[0]))
		return e;
	if (!c->model[0] && !c->openai_base_url[0]) { /* the key may be meant for other programs */
		uar_log(&s->log, UAR_LOG_WARN, "model.none",
			{ "text", UAR_STR("a key but no model: set UAR_MODEL to use it") });
		return UAR_OK;
	}
	if (!c->model[0])
		return uar_error_set(error, UAR_ECONFIG,
				     "a provider is configured but no model: set UAR_MODEL");
	e = uar_client_create(s->loop, &s->client);
	openai.client = s->client;
	return e ? e : uar_model_openai_create(&openai, &s->provider, error);
}

static void on_plugin_note(void *ctx, const struct uar_plugin_note *n)
{
	const struct server *s = ctx;

	uar_log(&s->log, n->level, n->what, { "plugin_id", n->plugin_id }, { "run_id", n->run_id },
		{ "trace_id", n->trace_id }, { "text", n->text });
}

static void plugin_metrics(void *ctx, struct uar_buf *b)
{
	const struct server *s = ctx;
	struct uar_plugin_stats st;

	uar_plugin_host_stats(s->plugins, &st);
	uar_buf_printf(b,
		       "# TYPE uar_plugin_processes gauge\nuar_plugin_processes %zu\n"
		       "# TYPE uar_plugin_runs_waiting gauge\nuar_plugin_runs_waiting %zu\n"
		       "# TYPE uar_plugin_runs_running gauge\nuar_plugin_runs_running %zu\n"
		       "# TYPE uar_plugin_processes_started_total counter\n"
		       "uar_plugin_processes_started_total %llu\n"
		       "# TYPE uar_plugin_processes_crashed_total counter\n"
		       "uar_plugin_processes_crashed_total %llu\n"
		       "# TYPE uar_plugin_processes_restarted_total counter\n"
		       "uar_plugin_processes_restarted_total %llu\n"
		       "# TYPE uar_plugin_threads gauge\nuar_plugin_threads %zu\n"
		       "# TYPE uar_plugin_threads_lost gauge\nuar_plugin_threads_lost %zu\n"
		       "# TYPE uar_plugin_threads_lost_total counter\n"
		       "uar_plugin_threads_lost_total %llu\n",
		       st.processes, st.waiting, st.running, (unsigned long long)st.started,
		       (unsigned long long)st.crashed, (unsigned long long)st.restarted, st.threads,
		       st.lost, (unsigned long long)st.ever_lost);
}

static void log_plugins(const struct server *s, uar_str dir)
{
	struct uar_plugin_stats st;
	char count[24];

	uar_plugin_host_stats(s->plugins, &st);
	snprintf(count, sizeof count, "%zu", st.plugins);
	uar_log(&s->log, UAR_LOG_DEBUG, "plugins.read", { "folder", dir },
		{ "plugins", uar_str_c(count) });
}

static uar_err make_plugins(struct server *s, struct uar_error *error)
{
	const struct uar_config *c = &s->config->value;
	struct uar_buf dir = uar_buf_make(UAR_LIMIT_URI_BYTES);
	struct uar_plugin_host_options o = {
		.loop = s->loop,
		.env = environ,
		.note = on_plugin_note,
		.ctx = s,
	};
	uar_err e;

	if (c->plugins_dir[0])
		uar_buf_add_str(&dir, uar_str_c(c->plugins_dir));
	else
		uar_buf_printf(&dir, "%s/plugins", c->data);
	o.dir = dir.p;
	e = dir.err ? dir.err : uar_plugin_host_create(&o, &s->plugins, error);
	if (!e)
		log_plugins(s, uar_buf_str(&dir));
	uar_buf_fini(&dir);
	return e;
}

static void on_agent_note(void *ctx, const struct uar_bridge_note *n)
{
	const struct server *s = ctx;

	uar_log(&s->log, n->level, n->what, { "file", uar_str_c(n->file) }, { "text", n->text });
}

static bool is_built_in(uar_str agent_id)
{
	return uar_agent_find(agent_id) != NULL;
}

/* Who can connect to it is on this machine. */
static bool listens_locally(uar_str listen)
{
	static const char *const local[] = { "127.", "localhost:", "[::1]:", "unix:" };

	for (size_t i = 0; i < ARRAY_LEN(local); i++)
		if (uar_str_starts(listen, uar_str_c(local[i])))
			return true;
	return false;
}

static uar_err make_agents(struct server *s, struct uar_error *error)
{
	const struct uar_config *c = &s->config->value;
	struct uar_buf dir = uar_buf_make(UAR_LIMIT_URI_BYTES);
	struct uar_bridge_options o = {
		.loop = s->loop,
		.env = environ,
		.ad_hoc = c->exec_agents == UAR_CONFIG_EXEC_ON ||
			  (c->exec_agents == UAR_CONFIG_EXEC_AUTO &&
			   listens_locally(uar_str_c(c->listen))),
		.taken = is_built_in,
		.note = on_agent_note,
		.ctx = s,
	};
	uar_err e;

	if (c->agents_dir[0])
		uar_buf_add_str(&dir, uar_str_c(c->agents_dir));
	else
		uar_buf_printf(&dir, "%s/agents", c->data);
	o.dir = dir.p;
	e = dir.err ? dir.err : uar_bridge_create(&o, &s->agents, error);
	uar_buf_fini(&dir);
	return e;
}

static uar_err make_runtime(struct server *s, struct uar_error *error)
{
	const struct uar_config *c = &s->config->value;
	struct uar_runtime_options o = {
		.sched = uar_loop_sched(s->loop),
		.store = s->store,
		.rand = &uar_rand_system,
		.log = &s->log,
		.scripted = s->scripted,
		.provider = s->provider,
		.provider_model = c->model,
		.entries = uar_plugin_host_entries(s->plugins),
		.agents = uar_bridge_agents(s->agents),
		.fixtures_dir = c->fixtures_dir[0] ? c->fixtures_dir : NULL,
		.model_idle_us = c->model_idle_timeout_us,
		.export_progress = c->export_progress,
		.run_timeout_us = c->run_timeout_us,
		.keep_runs = (uint64_t)c->keep_runs,
	};
	uar_err e = uar_runtime_create(&o, &s->runtime);

	return e ? e : uar_runtime_recover(s->runtime, error);
}

static uar_err make_gate(struct server *s)
{
	const struct uar_config *c = &s->config->value;
	struct uar_gate_options o = {
		.sched = uar_loop_sched(s->loop),
		.runtime = s->runtime,
		.rand = &uar_rand_system,
		.log = &s->log,
		.owner = { uar_str_c(c->tenant), uar_str_c(c->workspace), uar_str_c(c->user) },
		.token = s->token.p,
		.allowed_hosts = c->allowed_hosts.items,
		.allowed_host_count = c->allowed_hosts.count,
		.allowed_origins = c->allowed_origins.items,
		.allowed_origin_count = c->allowed_origins.count,
		.fixtures_dir = c->fixtures_dir[0] ? c->fixtures_dir : NULL,
		.max_body = (size_t)c->max_body_bytes,
		.sync_wait_us = c->sync_wait_us,
		.plugin_trigger = c->plugin_trigger,
		.metrics = plugin_metrics,
		.metrics_ctx = s,
		.heartbeat_us = c->heartbeat_us,
		.cancel_as_done = c->cancel_terminal == UAR_CONFIG_CANCEL_DONE,
	};

	return uar_gate_create(&o, &s->gate);
}

static uar_err make_http(struct server *s, struct uar_error *error)
{
	const struct uar_config *c = &s->config->value;
	struct uar_http_options o = {
		.listen = c->listen,
		.max_connections = (size_t)c->max_connections,
		.max_per_address = (size_t)c->max_connections_per_address,
		.head_timeout_us = c->head_timeout_us,
		.body_timeout_us = c->body_timeout_us,
		.idle_timeout_us = c->idle_timeout_us,
		.stall_timeout_us = c->stall_timeout_us,
		.handler = uar_gate_handler(s->gate),
	};
	uar_err e = uar_http_create(s->loop, &o, &s->http, error);

	if (!e)
		uar_gate_set_http(s->gate, s->http);
	return e;
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

static int make_all(struct server *s)
{
	const struct uar_config *c = &s->config->value;
	struct uar_error error = { 0 };
	uar_err e = uar_datadir_create(c->data, &error);

	if (e)
		return explain(s, "data directory", e, &error);
	e = uar_datadir_token(c, &uar_rand_system, &s->token, &error);
	if (e)
		return explain(s, "token", e, &error);
	e = uar_loop_create(&uar_clock_system, &s->loop);
	if (e)
		return explain(s, "loop", e, NULL);
	e = make_store(s, &error);
	if (e)
		return explain(s, "store", e, &error);
	e = make_models(s, &error);
	if (e)
		return explain(s, "models", e, &error);
	e = make_plugins(s, &error);
	if (e)
		return explain(s, "plugins", e, &error);
	e = make_agents(s, &error);
	if (e)
		return explain(s, "agents", e, &error);
	e = make_runtime(s, &error);
	if (e)
		return explain(s, "runtime", e, &error);
	e = make_gate(s);
	if (!e)
		e = make_http(s, &error);
	return e ? explain(s, "http", e, &error) : 0;
}

/* --- death ------------------------------------------------------------------------ */

static void stop_if_done(struct server *s)
{
	if (s->http_done && s->runtime_done)
		uar_loop_stop(s->loop);
}

static void on_http_done(void *ctx)
{
	struct server *s = ctx;

	s->http_done = true;
	stop_if_done(s);
}

static void on_runtime_done(void *ctx)
{
	struct server *s = ctx;

	s->runtime_done = true;
	stop_if_done(s);
}

static void on_grace_over(struct uar_timer *t)
{
	uar_loop_stop(UAR_OWNER(t, struct server, grace)->loop);
}

static void drain(struct server *s)
{
	s->grace.fn = on_grace_over;
	if (uar_timer_set(uar_loop_sched(s->loop), &s->grace, s->config->value.drain_us))
		uar_loop_stop(s->loop);
	uar_gate_drain(s->gate);
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

static void on_stop(void *ctx, int signum)
{
	struct server *s = ctx;
	struct uar_sched *sched = uar_loop_sched(s->loop);

	(void)signum;
	if (s->stopping) {
		uar_loop_stop(s->loop);
		return;
	}
	s->stopping = true;
	uar_log(&s->log, UAR_LOG_INFO, "server.draining", { "reason", UAR_STR("signal") });
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

static void unmake_all(struct server *s)
{
	if (s->http)
		uar_datadir_retract(s->config->value.data, &s->info);
	uar_http_destroy(s->http);
	uar_store_destroy(s->store); /* first: its threads borrow from those below */
	uar_gate_destroy(s->gate);
	uar_runtime_destroy(s->runtime);
	uar_bridge_destroy(s->agents);
	uar_plugin_host_destroy(s->plugins);
	uar_model_destroy(s->provider);
	uar_model_destroy(s->scripted);
	uar_client_destroy(s->client);
	uar_loop_destroy(s->loop);
	uar_config_destroy(s->loaded);
	uar_buf_fini(&s->token);
}

/* --- life -------------------------------------------------------------------------- */

static void log_changes(const struct server *s, const struct uar_config_changes *changes)
{
	for (size_t i = 0; i < changes->count; i++)
		uar_log(&s->log, changes->of[i].applied ? UAR_LOG_INFO : UAR_LOG_WARN,
			"config.changed", { "key", uar_str_c(changes->of[i].row->key) },
			{ "applied", uar_str_c(changes->of[i].applied ? "yes" : "at next start") });
}

static void on_agents_changed(void *ctx)
{
	uar_runtime_agents_changed(((struct server *)ctx)->runtime);
}

static void reload_agents(struct server *s)
{
	struct uar_error error = { 0 };

	error.code = uar_bridge_reload(s->agents, on_agents_changed, s, &error);
	if (error.code)
		uar_log(&s->log, UAR_LOG_ERROR, "agents.refused",
			{ "problems", uar_str_c(uar_error_text(&error)) });
}

static void on_reload(void *ctx, int signum)
{
	struct server *s = ctx;
	struct uar_buf problems = uar_buf_make(UAR_LIMIT_LOG_LINE);
	struct uar_config_changes changes;
	struct uar_config_set *next;
	const struct uar_config *c;

	(void)signum;
	reload_agents(s);
	if (uar_config_reload(s->config, &next, &changes, &problems)) {
		uar_log(&s->log, UAR_LOG_ERROR, "config.refused",
			{ "problems", uar_buf_str(&problems) });
		uar_buf_fini(&problems);
		return;
	}
	uar_buf_fini(&problems);
	log_changes(s, &changes);
	c = &next->value;
	s->log.level = (enum uar_log_level)c->log_level;
	s->log.json = c->log_json;
	uar_gate_reload(s->gate, c->heartbeat_us, c->cancel_terminal == UAR_CONFIG_CANCEL_DONE);
	uar_runtime_reload(s->runtime, c->run_timeout_us, c->model_idle_timeout_us);
	/* What was made from the old set keeps its strings: the first set stays. */
	uar_config_destroy(s->loaded);
	s->loaded = s->config = next;
}

static void announce_json(const struct server *s, const char *url, const char *link)
{
	struct uar_buf b = uar_buf_make(4096);
	struct uar_jw w = uar_jw_begin(&b);

	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "url", url);
	if (link)
		uar_jw_cstr(&w, "link", link);
	else
		uar_jw_null(&w, "link"); /* no browser opens a socket file */
	uar_jw_str(&w, "token", uar_buf_str(&s->token));
	uar_jw_cstr(&w, "data", s->config->value.data);
	uar_jw_int(&w, "pid", getpid());
	uar_jw_cstr(&w, "version", UAR_VERSION);
	uar_jw_close(&w);
	if (uar_jw_end(&w) == UAR_OK)
		fprintf(s->out, "%.*s\n", UAR_FMT(uar_buf_str(&b)));
	uar_buf_fini(&b);
}

/* Then other commands have to be told, too. */
static bool data_by_flag(const struct uar_config_set *set)
{
	for (size_t i = 0; i < UAR_CONFIG_COUNT; i++)
		if (strcmp(uar_config_rows[i].key, "data") == 0)
			return set->origin[i].source == UAR_CONFIG_FROM_FLAG;
	return false;
}

static void announce_text(const struct server *s, const char *link, const char *socket)
{
	const char *data = s->config->value.data;
	bool elsewhere = data_by_flag(s->config);

	fprintf(s->out, "UAR %s is running.\n\n", UAR_VERSION);
	if (socket)
		fprintf(s->out,
			"  call      curl --unix-socket '%s' -H \"Authorization: Bearer $(cat "
			"'%s/token')\" "
			"http://localhost/api/runs\n",
			socket, data);
	else
		fprintf(s->out, "  open      %s\n", link);
	fprintf(s->out,
		"  data      %s\n  try       uar run demo \"hello\"%s%s\n\n%sCtrl-C stops; runs go "
		"on at the next start.\n",
		data, elsewhere ? " --data " : "", elsewhere ? data : "",
		socket ? "" : "The link works once. ");
}

static int announce(struct server *s)
{
	struct uar_server_info *info = &s->info;
	char link[sizeof info->url + 64];
	struct uar_error error = { 0 };
	const char *address = uar_http_address(s->http);
	bool is_unix = uar_str_starts(uar_str_c(address), UAR_STR("unix:"));
	uar_err e;

	info->pid = getpid();
	info->passing = s->config->value.idle_exit_us > 0;
	snprintf(info->url, sizeof info->url, "%s%s", is_unix ? "" : "http://", address);
	e = uar_datadir_announce(s->config->value.data, info, &uar_clock_system, &error);
	if (e)
		return explain(s, "data directory", e, &error);
	snprintf(link, sizeof link, "%s/#code=%s", info->url, uar_gate_link_code(s->gate));
	if (s->json)
		announce_json(s, info->url, is_unix ? NULL : link);
	else
		announce_text(s, link, is_unix ? address + strlen("unix:") : NULL);
	fflush(s->out);
	return 0;
}

/* Looked at now and then: exactness is not what it is for. */
static void on_idle_check(struct uar_timer *t)
{
	struct server *s = UAR_OWNER(t, struct server, idle);
	int64_t limit = s->config->value.idle_exit_us, now = uar_clock_mono(&uar_clock_system);
	struct uar_runtime_stats runs;
	struct uar_http_stats http;

	uar_runtime_stats(s->runtime, &runs);
	uar_http_stats(s->http, &http);
	if (runs.live_runs || http.open)
		s->busy_us = now;
	if (!s->stopping && now - s->busy_us >= limit)
		on_stop(s, SIGTERM);
	else if (!s->stopping && uar_timer_set(uar_loop_sched(s->loop), t, limit / 4 + 1000))
		on_stop(s, SIGTERM);
}

static uar_err watch_idle(struct server *s)
{
	if (!s->config->value.idle_exit_us)
		return UAR_OK;
	s->busy_us = uar_clock_mono(&uar_clock_system);
	s->idle.fn = on_idle_check;
	return uar_timer_set(uar_loop_sched(s->loop), &s->idle,
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

int uar_app_serve(struct uar_config_set *config, bool json, FILE *out)
{
	struct server s = { .config = config, .out = out, .json = json };
	const struct uar_config *c = &config->value;
	int status;

	s.log = (struct uar_log){ &uar_clock_system, (enum uar_log_level)c->log_level, c->log_json,
				  STDERR_FILENO };
	s.token = uar_buf_make(UAR_LIMIT_ID_BYTES * 4);
	umask(077); /* whatever is written is the owner's alone */
	signal(SIGPIPE, SIG_IGN);
	raise_file_limit();
	status = make_all(&s);
	if (!status && on_signals(&s))
		status = explain(&s, "signals", UAR_ENOMEM, NULL);
	if (!status)
		status = announce(&s);
	if (!status)
		uar_loop_run(s.loop);
	hold_signals();
	if (s.broken)
		_exit(1); /* nothing may be acknowledged any more, not even by closing */
	unmake_all(&s);
	return status;
}

int uar_verb_serve(struct uar_cli *cli)
{
	return uar_app_serve(cli->config, cli->args->option[UAR_OPT_JSON] != NULL, cli->out);
}
