/* serve_mcp.c - the MCP servers: those of the settings are connected at the start, others when they
 * are put; their tokens are kept sealed; some are passed on to clients.
 *
 * A start waits for those of the settings for a moment: a run that goes on after a restart finds
 * the tools that it was using. One that is slower or broken is connected later. */
#include "app/limits.h"
#include "app/serve_int.h"
#include "base/alloc.h"
#include "json/jw.h"
#include "mcp/relay.h"
#include "mcp/settings.h"
#include "tool/mcp_host.h"

extern char **environ;

struct server_mcp {
	struct server *s;
	struct uar_arena arena;
	struct uar_mcp_host *host;
	struct uar_seal_key seal;
	bool sealed;					     /* there is a key */
	struct uar_list waited;				     /* of struct first */
	struct uar_mcp_relay *relays[UAR_LIMIT_MCP_SERVERS]; /* those that are passed on */
	bool passed[UAR_LIMIT_MCP_SERVERS];
	size_t relay_count;
	struct uar_timer first; /* the start waits no longer */
	bool starting;
};

/* One of the settings that the start waits for. */
struct first {
	struct uar_list node;
	const char *name;
};

/* Each has been connected, or has failed to. */
static bool all_tried(const struct server_mcp *m)
{
	for (size_t i = 0; i < m->relay_count; i++)
		if (!m->passed[i])
			return false;
	return uar_list_empty(&m->waited);
}

static void log_state(const struct server *s, const struct uar_mcp_hosted *h)
{
	const struct uar_mcp_client *client = uar_mcp_hosted_client(h);
	uar_str reason = UAR_STR_NONE, name = uar_str_c(uar_mcp_hosted_name(h));

	if (client && uar_mcp_client_ready(client, &reason))
		uar_log(&s->log, UAR_LOG_INFO, "mcp.connected", { "server", name },
			{ "version", uar_mcp_client_version(client) });
	else
		uar_log(&s->log, UAR_LOG_WARN, "mcp.not_connected", { "server", name },
			{ "reason", reason },
			{ "stderr", client ? uar_mcp_client_errors(client) : UAR_STR_NONE });
}

static void on_changed(void *ctx, const struct uar_mcp_hosted *h)
{
	struct server_mcp *m = ctx;

	log_state(m->s, h);
	UAR_LIST_EACH (it, &m->waited)
		if (strcmp(UAR_OWNER(it, struct first, node)->name, uar_mcp_hosted_name(h)) == 0)
			uar_list_remove(it);
	if (m->starting && all_tried(m))
		uar_loop_stop(m->s->loop);
}

/* Who has pinned the version that it had is asked again. */
static void on_turned(void *ctx, const struct uar_mcp_hosted *h,
		      const struct uar_tool *const *tools, size_t count)
{
	const struct server_mcp *m = ctx;
	struct uar_owner operator= uar_server_owner(m->s);
	const struct uar_owner *owner = uar_mcp_hosted_owner(h);

	for (size_t i = 0; i < count; i++)
		uar_log(&m->s->log, UAR_LOG_WARN, "mcp.tool_changed",
			{ "tool_id", tools[i]->tool_id }, { "version", tools[i]->version });
	if (m->s->parts.work)
		uar_workers_note_mcp_tools(m->s->parts.work, owner->tenant.n ? owner : &operator,
					   uar_str_c(uar_mcp_hosted_name(h)), tools, count);
}

/* --- tokens --------------------------------------------------------------------------------- */

static void name_file(const char *key, char out[128])
{
	snprintf(out, 128, "mcp-%.32s.sealed", key);
}

static void log_tokens(const struct server_mcp *m, const char *what, const struct uar_error *error)
{
	uar_log(&m->s->log, UAR_LOG_ERROR, what, { "reason", uar_str_c(uar_error_text(error)) });
}

static void load_tokens(void *ctx, const char *key, struct uar_buf *out)
{
	const struct server_mcp *m = ctx;
	struct uar_buf sealed = uar_buf_make(2 * (size_t)UAR_LIMIT_MCP_OAUTH_KEPT);
	struct uar_error error = { 0 };
	char name[128];
	uar_err e;

	name_file(key, name);
	e = m->sealed ? uar_datadir_kept(m->s->config->value.data, name, &sealed, &error)
		      : UAR_ENOTFOUND;
	if (!e)
		e = uar_unseal(&m->seal, uar_buf_str(&sealed), uar_str_c(key), out);
	error.code = e;
	if (e && e != UAR_ENOTFOUND)
		log_tokens(m, "mcp.tokens_unread", &error); /* somebody has to log in again */
	uar_buf_fini(&sealed);
}

static void keep_tokens(void *ctx, const char *key, uar_str tokens)
{
	const struct server_mcp *m = ctx;
	struct uar_buf sealed = uar_buf_make(2 * (size_t)UAR_LIMIT_MCP_OAUTH_KEPT);
	struct uar_error error = { 0 };
	char name[128];
	uar_err e = UAR_OK;

	name_file(key, name);
	if (!m->sealed)
		return;
	if (tokens.n)
		e = uar_seal(&m->seal, &uar_rand_system, tokens, uar_str_c(key), &sealed);
	if (!e)
		e = uar_datadir_keep(m->s->config->value.data, name,
				     tokens.n ? uar_buf_str(&sealed) : UAR_STR_NONE, &error);
	error.code = e;
	if (e)
		log_tokens(m, "mcp.tokens_not_kept", &error);
	uar_buf_fini(&sealed);
}

/* --- the settings --------------------------------------------------------------------------- */

static void waited_enough(struct uar_timer *t)
{
	uar_loop_stop(UAR_OWNER(t, struct server_mcp, first)->s->loop);
}

static uar_err add_server(struct server_mcp *m, const struct uar_json *json,
			  struct uar_error *error)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_CONFIG_BYTES);
	struct uar_mcp_put put = { .name = json->key,
				   .origin = UAR_MCP_OF_SETTINGS,
				   .agent_id = UAR_STR("") };
	struct first *f = uar_arena_alloc(&m->arena, sizeof *f);
	uar_err e;

	if (!f)
		return UAR_ENOMEM;
	uar_json_write(&text, json);
	put.text = uar_buf_str(&text);
	f->name = uar_arena_str(&m->arena, json->key).p;
	uar_list_init(&f->node);
	if (f->name)
		uar_list_add_last(&m->waited, &f->node);
	e = text.err ? text.err : f->name ? uar_mcp_host_put(m->host, &put, error) : UAR_ENOMEM;
	uar_buf_fini(&text);
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
	if (all_tried(m) || uar_timer_set(sched, &m->first, UAR_LIMIT_MCP_FIRST_MS * 1000LL))
		return;
	m->starting = true;
	uar_loop_run(m->s->loop);
	m->starting = false;
	uar_timer_stop(sched, &m->first);
	uar_list_init(&m->waited);
}

static uar_err add_all(struct server_mcp *m, struct uar_error *error)
{
	const char *table = m->s->config->value.mcp_servers;
	struct uar_mcp_settings settings;
	const struct uar_json *root = NULL, *servers, *j;
	uar_err e = uar_mcp_settings_read(uar_str_c(table), environ, &m->arena, &settings, error);

	if (!e && settings.count)
		e = uar_json_parse(uar_str_c(table), NULL, &m->arena, &root, error);
	servers = uar_json_get(root, UAR_STR("mcpServers"));
	j = uar_json_first(servers ? servers : root);
	for (size_t i = 0; !e && i < settings.count && j; i++, j = j->next)
		if (!settings.at[i].disabled)
			e = settings.at[i].offer ? add_relay(m, &settings.at[i])
						 : add_server(m, j, error);
	return e;
}

/* --- life ----------------------------------------------------------------------------------- */

static uar_err make_host(struct server_mcp *m)
{
	const struct uar_config *c = &m->s->config->value;
	struct uar_mcp_host_options o = { .loop = m->s->loop,
					  .http = m->s->net.client,
					  .registry = m->s->tools,
					  .env = environ,
					  .commands = c->mcp_commands,
					  .owner = uar_server_owner(m->s),
					  .load = load_tokens,
					  .keep = keep_tokens,
					  .changed = on_changed,
					  .turned = on_turned,
					  .ctx = m };

	m->sealed = !uar_datadir_seal(c->data, &uar_rand_system, &m->seal, NULL);
	return uar_mcp_host_create(&o, &m->host);
}

uar_err uar_server_make_mcp(struct server *s, struct uar_error *error)
{
	struct server_mcp *m;
	uar_err e;

	if (!s->tools)
		return UAR_OK;
	m = s->net.mcp = uar_zalloc(sizeof *m);
	if (!m)
		return UAR_ENOMEM;
	m->s = s;
	uar_list_init(&m->waited);
	e = uar_server_need_client(s, error);
	if (!e)
		e = make_host(m);
	if (!e)
		e = add_all(m, error);
	if (!e)
		wait_for_first(m);
	return e;
}

/* A person's browser is on the machine where the server is, unless a proxy's name says more. */
void uar_server_mcp_listens(struct server *s)
{
	char url[sizeof s->info.url + 64];

	if (!s->net.mcp || strncmp(s->info.url, "http", 4) != 0)
		return;
	snprintf(url, sizeof url, "%s/api/mcp/oauth/callback", s->info.url);
	uar_mcp_host_set_redirect(s->net.mcp->host, s->config->value.mcp_redirect_url[0]
							    ? s->config->value.mcp_redirect_url
							    : url);
}

struct uar_mcp_host *uar_server_mcp_host(const struct server *s)
{
	return s->net.mcp ? s->net.mcp->host : NULL;
}

struct uar_mcp_relay *const *uar_server_relays(const struct server *s, size_t *out_count)
{
	*out_count = s->net.mcp ? s->net.mcp->relay_count : 0;
	return s->net.mcp ? s->net.mcp->relays : NULL;
}

void uar_server_close_mcp(struct server *s)
{
	if (!s->net.mcp)
		return;
	uar_mcp_host_destroy(s->net.mcp->host);
	s->net.mcp->host = NULL;
}

void uar_server_unmake_mcp(struct server *s)
{
	if (!s->net.mcp)
		return;
	for (size_t i = 0; i < s->net.mcp->relay_count; i++)
		uar_mcp_relay_destroy(s->net.mcp->relays[i]);
	uar_arena_fini(&s->net.mcp->arena);
	explicit_bzero(&s->net.mcp->seal, sizeof s->net.mcp->seal);
	uar_free(s->net.mcp);
}
