/* serve_mcp.c - the MCP servers of the settings: connected, their tools in the registry.
 *
 * A start waits for them for a moment: a run that goes on after a restart finds the tools that
 * it was using. One that is slower or broken is connected later. */
#include "app/limits.h"
#include "base/alloc.h"
#include "app/serve_int.h"
#include "mcp/relay.h"
#include "tool/mcp.h"
#include "tool/registry.h"

extern char **environ;

struct server_mcp {
	struct server *s;
	struct uar_arena arena;
	struct uar_tools *sources[UAR_LIMIT_MCP_SERVERS]; /* the registry's */
	bool tried[UAR_LIMIT_MCP_SERVERS];
	size_t count;
	struct uar_mcp_relay *relays[UAR_LIMIT_MCP_SERVERS]; /* those that are passed on */
	bool passed[UAR_LIMIT_MCP_SERVERS];
	size_t relay_count;
	struct uar_timer first; /* the start waits no longer */
	bool starting;
};

/* Each has been connected, or has failed to. */
static bool all_tried(const struct server_mcp *m)
{
	for (size_t i = 0; i < m->count; i++)
		if (!m->tried[i])
			return false;
	for (size_t i = 0; i < m->relay_count; i++)
		if (!m->passed[i])
			return false;
	return true;
}

static void log_state(const struct server *s, struct uar_tools *source)
{
	const struct uar_mcp_client *client = uar_mcp_tools_client(source);
	uar_str reason, name = uar_str_c(uar_mcp_tools_setting(source)->server.name);

	if (uar_mcp_client_ready(client, &reason))
		uar_log(&s->log, UAR_LOG_INFO, "mcp.connected", { "server", name },
			{ "version", uar_mcp_client_version(client) });
	else
		uar_log(&s->log, UAR_LOG_WARN, "mcp.not_connected", { "server", name },
			{ "reason", reason }, { "stderr", uar_mcp_client_errors(client) });
}

static void on_changed(void *ctx, struct uar_tools *source)
{
	struct server_mcp *m = ctx;
	struct uar_error error = { 0 };
	uar_err e = uar_tool_registry_changed(m->s->tools, source, &error);

	if (e)
		uar_log(&m->s->log, UAR_LOG_ERROR, "mcp.tools_not_listed",
			{ "reason", uar_str_c(uar_error_text(&error)) });
	log_state(m->s, source);
	for (size_t i = 0; i < m->count; i++)
		m->tried[i] |= m->sources[i] == source;
	if (m->starting && all_tried(m))
		uar_loop_stop(m->s->loop);
}

static void waited_enough(struct uar_timer *t)
{
	uar_loop_stop(UAR_OWNER(t, struct server_mcp, first)->s->loop);
}

static uar_err add_server(struct server_mcp *m, const struct uar_mcp_setting *setting,
			  struct uar_error *error)
{
	struct uar_mcp_tools_options o = { .loop = m->s->loop,
					   .http = m->s->net.client,
					   .setting = setting,
					   .changed = on_changed,
					   .ctx = m };
	struct uar_tools *source;
	uar_err e = uar_mcp_tools_create(&o, &source);

	if (e)
		return e;
	e = uar_tool_registry_add(m->s->tools, source, error);
	if (e)
		uar_tools_destroy(source);
	else
		m->sources[m->count++] = source;
	return e;
}

/* One of them is connected, or is not. */
static void relay_tried(void *ctx)
{
	struct server_mcp *m = ctx;

	for (size_t i = 0; i < m->relay_count; i++) {
		uar_str reason, name = uar_str_c(uar_mcp_relay_name(m->relays[i]));
		bool ready = uar_mcp_relay_ready(m->relays[i], &reason);

		if (ready && !m->passed[i])
			uar_log(&m->s->log, UAR_LOG_INFO, "mcp.offered", { "server", name });
		else if (!ready)
			uar_log(&m->s->log, UAR_LOG_WARN, "mcp.not_offered", { "server", name },
				{ "reason", reason });
		m->passed[i] = ready;
	}
	if (m->starting && all_tried(m))
		uar_loop_stop(m->s->loop);
}

static uar_err add_relay(struct server_mcp *m, const struct uar_mcp_setting *setting)
{
	struct uar_mcp_relay_options o = { .loop = m->s->loop,
					   .http = m->s->net.client,
					   .setting = setting,
					   .tried = relay_tried,
					   .ctx = m };
	uar_err e = uar_mcp_relay_create(&o, &m->relays[m->relay_count]);

	if (!e)
		m->relay_count++;
	return e;
}

static void wait_for_first(struct server_mcp *m)
{
	struct uar_sched *sched = uar_loop_sched(m->s->loop);

	m->first.fn = waited_enough;
	if (uar_timer_set(sched, &m->first, UAR_LIMIT_MCP_FIRST_MS * 1000LL))
		return;
	m->starting = true;
	uar_loop_run(m->s->loop);
	m->starting = false;
	uar_timer_stop(sched, &m->first);
}

uar_err uar_server_make_mcp(struct server *s, struct uar_error *error)
{
	const struct uar_config *c = &s->config->value;
	struct uar_mcp_settings settings;
	struct server_mcp *m;
	uar_err e;

	if (!s->tools || !c->mcp_servers[0])
		return UAR_OK;
	m = s->net.mcp = uar_zalloc(sizeof *m);
	if (!m)
		return UAR_ENOMEM;
	m->s = s;
	e = uar_mcp_settings_read(uar_str_c(c->mcp_servers), environ, &m->arena, &settings, error);
	if (!e)
		e = uar_server_need_client(s, error);
	for (size_t i = 0; !e && i < settings.count; i++)
		if (!settings.at[i].disabled)
			e = settings.at[i].offer ? add_relay(m, &settings.at[i])
						 : add_server(m, &settings.at[i], error);
	if (!e && m->count + m->relay_count)
		wait_for_first(m);
	return e;
}

struct uar_mcp_relay *const *uar_server_relays(const struct server *s, size_t *out_count)
{
	*out_count = s->net.mcp ? s->net.mcp->relay_count : 0;
	return s->net.mcp ? s->net.mcp->relays : NULL;
}

void uar_server_unmake_mcp(struct server *s)
{
	if (!s->net.mcp)
		return;
	for (size_t i = 0; i < s->net.mcp->relay_count; i++)
		uar_mcp_relay_destroy(s->net.mcp->relays[i]);
	uar_arena_fini(&s->net.mcp->arena);
	uar_free(s->net.mcp);
}
