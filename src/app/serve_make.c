/* serve_make.c - the wiring: every room is made here, joined, and taken apart again.
 *
 * Order of birth: loop, store, models, tools, plugins, agents, peers, runtime, gate, HTTP. */
#include "app/serve_int.h"

#include "base/alloc.h"
#include "tool/hook.h"

#include <unistd.h>

#include "app/definition_parts.h"
#include "app/settings_shown.h"
#include "app/text.h"
#include "base/address.h"
#include "json/limits.h"
#include "mail/push.h"
#include "peer/a2a.h"
#include "peer/push.h"
#include "work/agent_tools.h"
#include "work/definition_store.h"

extern char **environ;

/* For whoever started it with --json and reads the one line. */
static void explain_json(const struct server *s, uar_str text, uar_err e)
{
	struct uar_buf b = uar_buf_make(4096);
	struct uar_jw w = uar_jw_begin(&b);

	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "error", text);
	uar_jw_cstr(&w, "code", uar_err_token(e));
	uar_jw_bool(&w, "in_use", e == UAR_ELOCKED);
	uar_jw_close(&w);
	if (uar_jw_end(&w) == UAR_OK)
		fprintf(s->by.cli->out, "%.*s\n", UAR_FMT(uar_buf_str(&b)));
	fflush(s->by.cli->out);
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

int uar_server_explain(const struct server *s, const char *what, uar_err e,
		       const struct uar_error *error)
{
	uar_str text = uar_str_c(error && error->text[0] ? error->text : uar_err_text(e));
	struct uar_buf clean = uar_buf_make(UAR_LIMIT_ERROR_TEXT);
	char holder[96] = "";

	if (e == UAR_ELOCKED)
		name_holder(s, holder, sizeof holder);
	uar_text_clean(&clean, text, false); /* it may name a path */
	text = clean.err ? uar_str_c(uar_err_text(e)) : uar_buf_str(&clean);
	if (s->by.problem)
		uar_buf_printf(s->by.problem, "%s: %.*s%s [%s]", what, UAR_FMT(text), holder,
			       uar_err_token(e));
	else
		fprintf(stderr, "uar: %s: %.*s%s [%s]\n", what, UAR_FMT(text), holder,
			uar_err_token(e));
	if (s->by.json)
		explain_json(s, text, e);
	uar_buf_fini(&clean);
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

static void on_exhausted(void *ctx)
{
	struct server *s = ctx;

	s->broken = true;
	uar_log(&s->log, UAR_LOG_ERROR, "server.out_of_memory",
		{ "detail", UAR_STR("memory was short for 15 seconds; runs go on after the next "
				    "start") });
	uar_loop_stop(s->loop);
}

/* Who starts a server may know where its files lie; what clients are told does not say it. */
static void name_place(const char *dir, struct uar_error *error)
{
	char text[sizeof error->text];

	if (!uar_str_starts(uar_str_c(error->text), UAR_STR("uar.db")))
		return;
	memcpy(text, error->text, sizeof text);
	uar_error_set(error, error->code, "%s/%s", dir, text);
}

/* With what was kept for this moment a full disk can at least be read. */
static uar_err make_store(struct server *s, struct uar_error *error)
{
	const struct uar_config *c = &s->config->value;
	struct uar_store_options o = {
		.dir = c->data,
		.sched = uar_loop_sched(s->loop),
		.rand = &uar_rand_system,
		.log = &s->log,
		.readers = (unsigned)c->readers,
		.upload_max = (uint64_t)c->output_max_bytes,
		.evicts = c->keep_runs > 0,
		.broken = on_broken,
		.ctx = s,
	};

	uar_err e = uar_store_sqlite_create(&o, &s->store, error);

	if (e == UAR_EDISKFULL && uar_datadir_release(c->data))
		e = uar_store_sqlite_create(&o, &s->store, error);
	if (e)
		name_place(c->data, error);
	return e;
}

static void on_plugin_note(void *ctx, const struct uar_plugin_note *n)
{
	const struct server *s = ctx;

	uar_log(&s->log, n->level, n->what, { "plugin_id", n->plugin_id }, { "run_id", n->run_id },
		{ "trace_id", n->trace_id }, { "text", n->text });
}

static void work_metrics(const struct server *s, struct uar_buf *b)
{
	struct uar_work_stats st;

	uar_loop_work_stats(s->loop, &st);
	const struct {
		const char *name, *help;
		size_t value;
	} rows[] = {
		{ "threads", "Threads for work that blocks, such as files of tools.", st.threads },
		{ "running", "Pieces of it that they do.", st.at_work },
		{ "waiting", "Pieces that wait for a thread.", st.waiting },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		uar_buf_printf(b,
			       "# HELP uar_work_%s %s\n# TYPE uar_work_%s gauge\n"
			       "uar_work_%s %zu\n",
			       rows[i].name, rows[i].help, rows[i].name, rows[i].name,
			       rows[i].value);
}

static void more_metrics(void *ctx, struct uar_buf *b)
{
	const struct server *s = ctx;
	struct uar_plugin_stats st;

	work_metrics(s, b);
	uar_plugin_host_stats(s->plugins, &st);
	const struct {
		const char *name, *kind, *help;
		double value;
		int digits; /* behind the point */
	} rows[] = {
		{ "processes", "gauge", "Processes of plugins.", (double)st.processes, 0 },
		{ "runs_waiting", "gauge", "Runs that wait for a place.", (double)st.waiting, 0 },
		{ "runs_running", "gauge", "Runs at work.", (double)st.running, 0 },
		{ "processes_started_total", "counter", "Processes started.", (double)st.started,
		  0 },
		{ "processes_crashed_total", "counter",
		  "Processes that ended without having finished a run.", (double)st.crashed, 0 },
		{ "processes_restarted_total", "counter", "Processes started after such an end.",
		  (double)st.restarted, 0 },
		{ "processes_lived_seconds_total", "counter",
		  "How long those that have ended lived, together.", (double)st.lived_us / 1e6, 6 },
		{ "threads", "gauge", "Threads of plugins that are libraries.", (double)st.threads,
		  0 },
		{ "threads_lost", "gauge", "Threads that are written off.", (double)st.lost, 0 },
		{ "threads_lost_total", "counter", "Threads ever written off.",
		  (double)st.ever_lost, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		uar_buf_printf(b,
			       "# HELP uar_plugin_%s %s\n# TYPE uar_plugin_%s %s\n"
			       "uar_plugin_%s %.*f\n",
			       rows[i].name, rows[i].help, rows[i].name, rows[i].kind, rows[i].name,
			       rows[i].digits, rows[i].value);
}

/* One that holds a plugin is easily taken for one that holds plugins. */
static void log_plugins(const struct server *s, uar_str dir)
{
	struct uar_buf inside = uar_buf_make(UAR_LIMIT_URI_BYTES);
	struct uar_plugin_stats st;
	char count[24];

	uar_buf_printf(&inside, "%.*s/plugin.json", UAR_FMT(dir));
	if (!inside.err && access(inside.p, F_OK) == 0)
		uar_log(&s->log, UAR_LOG_WARN, "plugins.not_a_folder_of_plugins", { "folder", dir },
			{ "text", UAR_STR("it is a plugin itself: --plugins-dir takes the folder "
					  "that holds it") });
	uar_buf_fini(&inside);

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
		.upload_max = (uint64_t)c->output_max_bytes,
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

bool uar_server_is_local(uar_str address)
{
	struct uar_address a;

	return uar_address_read_bound(address, &a) && uar_address_is_local(&a);
}

static uar_err make_peers(struct server *s, struct uar_error *error)
{
	const struct uar_config *c = &s->config->value;
	struct uar_peers_options o = {
		.addresses = c->a2a_peers.items,
		.address_count = c->a2a_peers.count,
		.tokens = c->a2a_peer_tokens,
		.own_name = c->a2a_name,
	};
	uar_err e = uar_server_need_client(s, error);

	o.client = s->net.client;
	if (!e)
		e = uar_remotes_create(s->net.client, c->peer_quiet_us, &s->net.remotes);
	if (!e)
		e = uar_pushes_http_create(s->net.client, &s->net.pushes);
	return e ? e : uar_peers_http_create(&o, &s->net.peers, error);
}

struct uar_owner uar_server_owner(const struct server *s)
{
	const struct uar_config *c = &s->config->value;

	return (struct uar_owner){ uar_str_c(c->tenant), uar_str_c(c->workspace),
				   uar_str_c(c->user) };
}

static uar_err make_runtime(struct server *s, struct uar_error *error)
{
	const struct uar_config *c = &s->config->value;
	struct uar_owner owner = uar_server_owner(s);
	struct uar_runtime_options o = {
		.sched = uar_loop_sched(s->loop),
		.store = s->store,
		.rand = &uar_rand_system,
		.log = &s->log,
		.run_timeout_us = c->run_timeout_us,
		.park = c->shutdown == UAR_CONFIG_SHUTDOWN_KEEP,
		.keep_runs = (uint64_t)c->keep_runs,
		.quota = { owner, (size_t)c->tenant_live_runs },
		.exhausted = on_exhausted,
		.exhausted_ctx = s,
	};
	struct uar_workers_options work = {
		.models = s->models,
		.scripted = uar_models_find(s->models, UAR_STR("scripted")),
		.provider = s->routing.chosen.model,
		.provider_model = s->routing.chosen.name.p,
		.entries = uar_plugin_host_entries(s->plugins),
		.agents = uar_bridge_agents(s->agents.bridge),
		.owner = owner,
		.share_programs = c->share_programs,
		.registry = s->agents.registry,
		.skills = s->agents.skills,
		.tools = s->tools,
		.processes = s->parts.processes,
		.files_dir = s->parts.files_dir,
		.knowledge = s->parts.knowledge,
		.client = s->net.client,
		.remotes = s->net.remotes,
		.secrets = s->net.secrets,
		.mcp = uar_server_mcp_host(s),
		.fixtures_dir = c->fixtures_dir[0] ? c->fixtures_dir : NULL,
		.action_timeout_us = c->action_timeout_us,
		.patience = { c->model_idle_timeout_us, (int)c->model_retries, c->model_retry_us },
		.routing = &s->routing.policy,
		.export_progress = c->export_progress,
	};
	struct uar_seal_key seal;
	uar_err e = uar_host_policy_read(uar_str_c(c->permissions), &s->parts.permissions, error);

	if (e)
		return e;
	work.permissions = s->parts.permissions;
	e = uar_server_make_hooks(s, error);
	if (e)
		return e;
	work.hooks = s->parts.hooks;
	e = uar_datadir_seal(c->data, &uar_rand_system, &seal, error);
	if (!e)
		o.seal = &seal;
	if (e == UAR_EDISKFULL)
		e = UAR_OK; /* with a key of this process, what is sealed is asked for again */
	if (!e)
		e = uar_runtime_create(&o, &s->runtime);
	explicit_bzero(&seal, sizeof seal);
	if (!e)
		uar_agent_tools_attach(s->parts.agent_tools, s->runtime);
	if (!e)
		e = uar_workers_create(s->runtime, &work, &s->parts.work);
	if (!e)
		e = uar_reader_create(s->runtime, &s->parts.reader);
	if (!e)
		e = uar_mailer_create(s->runtime, s->net.peers, s->net.pushes, &s->parts.mailer);

	if (!e)
		e = uar_runtime_recover(s->runtime, error);
	if (!e) {
		uar_mailer_wake_outboxes(s->parts.mailer, &owner);
		uar_push_recover(s->parts.mailer);
	}
	if (!e)
		uar_workers_load_definitions(s->parts.work, &owner);
	return e;
}

static uar_err tell_settings(void *ctx, struct uar_buf *b)
{
	const struct server *s = ctx;

	return uar_settings_write(s->config, b);
}

static uar_err make_gate(struct server *s)
{
	const struct uar_config *c = &s->config->value;
	struct uar_gate_options o = {
		.sched = uar_loop_sched(s->loop),
		.runtime = s->runtime,
		.reader = s->parts.reader,
		.mailer = s->parts.mailer,
		.work = s->parts.work,
		.knowledge = s->parts.knowledge,
		.rand = &uar_rand_system,
		.log = &s->log,
		.owner = uar_server_owner(s),
		.token = s->token.p,
		.allowed_hosts = c->allowed_hosts.items,
		.allowed_host_count = c->allowed_hosts.count,
		.allowed_origins = c->allowed_origins.items,
		.allowed_origin_count = c->allowed_origins.count,
		.fixtures_dir = c->fixtures_dir[0] ? c->fixtures_dir : NULL,
		.data_dir = c->data,
		.max = { (size_t)c->max_body_bytes, (size_t)c->tenant_requests },
		.sync_wait_us = c->sync_wait_us,
		.plugin_trigger = c->plugin_trigger,
		.a2a = { c->public_url, c->a2a_agent, c->a2a_compat_0_3 },
		.told = { more_metrics, tell_settings, s },
		.heartbeat_us = c->heartbeat_us,
		.cancel_as_done = c->cancel_terminal == UAR_CONFIG_CANCEL_DONE,
	};

	o.relays = uar_server_relays(s, &o.relay_count);
	return uar_gate_create(&o, &s->gate);
}

/* The address of the last time, when the setting leaves the port open: links and bookmarks go on
 * to lead here. False: there is none, or it was another host. */
static bool last_address(const struct uar_config *c, char *out, size_t size)
{
	struct uar_buf kept = uar_buf_make(16);
	struct uar_error error;
	size_t host = strlen(c->listen);
	uar_str port;
	bool found = false;

	if (host < 2 || strcmp(c->listen + host - 2, ":0") != 0)
		return false;
	if (uar_datadir_kept(c->data, UAR_DATADIR_PORT, &kept, &error) == UAR_OK) {
		uint64_t n = 0;

		port = uar_str_trim(uar_buf_str(&kept));
		found = uar_str_u64(port, &n) == UAR_OK && n && n <= UINT16_MAX;
		if (found)
			snprintf(out, size, "%.*s:%u", (int)(host - 2), c->listen, (unsigned)n);
	}
	uar_buf_fini(&kept);
	return found;
}

static uar_err make_http(struct server *s, struct uar_error *error)
{
	const struct uar_config *c = &s->config->value;
	char last[UAR_SOCKET_PATH];
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
	uar_err e = UAR_ENET;

	if (last_address(c, last, sizeof last)) {
		o.listen = last;
		e = uar_http_create(s->loop, &o, &s->http, NULL); /* may be taken by now */
		o.listen = c->listen;
	}
	if (e)
		e = uar_http_create(s->loop, &o, &s->http, error);
	if (!e)
		uar_gate_set_http(s->gate, s->http);
	return e;
}

/* What models are told and may do. */
static int make_offers(struct server *s)
{
	struct uar_error error = { 0 };
	uar_err e = uar_server_make_models(s, &error);

	if (e)
		return uar_server_explain(s, "models", e, &error);
	e = uar_server_make_skills(s, &error);
	if (e)
		return uar_server_explain(s, "skills", e, &error);
	e = uar_server_make_tools(s, &error);
	if (e)
		return uar_server_explain(s, "tools", e, &error);
	e = uar_server_make_mcp(s, &error);
	return e ? uar_server_explain(s, "MCP servers", e, &error) : 0;
}

int uar_server_make(struct server *s)
{
	const struct uar_config *c = &s->config->value;
	struct uar_error error = { 0 };
	uar_err e = uar_datadir_create(c->data, &error);
	int status;

	uar_definition_also_check(uar_definition_check_parts);
	if (!e)
		e = uar_datadir_regular(c->data, &error);
	if (e)
		return uar_server_explain(s, "data directory", e, &error);
	e = uar_datadir_token(c, &uar_rand_system, &s->token, &error);
	if (e)
		return uar_server_explain(s, "token", e, &error);
	e = uar_loop_create(&uar_clock_system, &s->loop);
	if (e)
		return uar_server_explain(s, "loop", e, NULL);
	if (s->by.program)
		uar_loop_set_supervisor(s->loop, s->by.program);
	e = make_store(s, &error);
	if (e)
		return uar_server_explain(s, "store", e, &error);
	uar_datadir_sweep(c->data);
	status = make_offers(s);
	if (status)
		return status;
	e = make_plugins(s, &error);
	if (e)
		return uar_server_explain(s, "plugins", e, &error);
	e = uar_server_make_agents(s, &error);
	if (e)
		return uar_server_explain(s, "agents", e, &error);
	e = make_peers(s, &error);
	if (e)
		return uar_server_explain(s, "peers", e, &error);
	e = make_runtime(s, &error);
	if (e)
		return uar_server_explain(s, "runtime", e, &error);
	e = make_gate(s);
	if (!e && !s->by.no_port)
		e = make_http(s, &error);
	return e ? uar_server_explain(s, "http", e, &error) : 0;
}

/* --- death ------------------------------------------------------------------------ */

void uar_server_unmake(struct server *s)
{
	if (s->http)
		uar_datadir_retract(s->config->value.data, &s->info);
	uar_http_destroy(s->http);
	uar_knowledge_destroy(s->parts.knowledge);
	uar_store_destroy(s->store); /* first: its threads borrow from those below */
	uar_gate_destroy(s->gate);
	uar_runtime_destroy(s->runtime);
	uar_hooks_destroy(s->parts.hooks);
	uar_host_policy_destroy(s->parts.permissions);
	uar_peers_destroy(s->net.peers);
	uar_pushes_destroy(s->net.pushes);
	uar_remotes_destroy(s->net.remotes);
	uar_server_unmake_agents(s);
	uar_server_unmake_skills(s);
	uar_plugin_host_destroy(s->plugins);
	uar_server_close_mcp(s);
	uar_tools_destroy(s->tools);
	uar_free(s->parts.files_dir);
	uar_secrets_destroy(s->net.secrets);
	uar_server_unmake_mcp(s);
	uar_models_destroy(s->models);
	uar_arena_fini(&s->routing.arena);
	uar_client_destroy(s->net.client);
	if (s->info.pid)
		uar_datadir_reserve(s->config->value.data); /* what it used itself is free again */
	if (!s->stopping || !uar_loop_working(s->loop))
		uar_loop_destroy(s->loop);
	else if (!s->by.problem)
		_exit(0); /* what a worker hangs in may never end */
	else
		s->by.left_working = true;
	uar_config_destroy(s->loaded);
	uar_buf_fini(&s->token);
	uar_buf_fini(&s->idle.again);
}
