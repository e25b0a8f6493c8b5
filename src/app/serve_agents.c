/* serve_agents.c - the agents of the server: their registry, its directory, and the bridge to
 * those that are programs. */
#include "app/serve_int.h"

#include <sys/stat.h>

#include "app/agent_feed.h"
#include "app/verbs_agent.h"
#include "json/limits.h"
#include "loop/watch.h"

extern char **environ;

enum { SETTLE_US = 100000 }; /* editors write a file in several steps */

static void on_note(void *ctx, const struct uar_registry_note *n)
{
	const struct server *s = ctx;

	uar_log(&s->log, n->level, n->what, { "file", uar_str_c(n->file) }, { "text", n->text });
}

static bool is_built_in(uar_str agent_id)
{
	return uar_agent_find(agent_id) != NULL;
}

static void on_agents_changed(void *ctx)
{
	uar_workers_agents_changed(((struct server *)ctx)->parts.work);
}

/* --- the directory ------------------------------------------------------------------ */

static uar_err name_dir(struct server *s)
{
	s->agents.dir = uar_buf_make(UAR_LIMIT_URI_BYTES);
	uar_agents_dir(&s->config->value, &s->agents.dir);
	s->agents.keep_dir = uar_buf_make(UAR_LIMIT_URI_BYTES);
	uar_buf_printf(&s->agents.keep_dir, "%s/agents-good", s->config->value.data);
	return s->agents.dir.err ? s->agents.dir.err : s->agents.keep_dir.err;
}

void uar_server_reload_agents(struct server *s)
{
	struct uar_error error = { 0 };

	error.code = uar_registry_read_dir(s->agents.registry, s->agents.dir.p, &error);
	if (!error.code)
		error.code = uar_bridge_reload(s->agents.bridge, on_agents_changed, s);
	if (error.code)
		uar_log(&s->log, UAR_LOG_ERROR, "agents.refused",
			{ "problems", uar_str_c(uar_error_text(&error)) });
}

static void on_settled(struct uar_timer *t)
{
	uar_server_reload_agents(UAR_OWNER(t, struct server, agents.later));
}

static void on_changed(void *ctx)
{
	struct server *s = ctx;

	s->agents.later.fn = on_settled;
	if (uar_timer_set(uar_loop_sched(s->loop), &s->agents.later, SETTLE_US))
		uar_server_reload_agents(s);
}

/* The default directory is made, so that a first file is noticed. One that cannot be watched is
 * read again on SIGHUP alone. */
static void watch_dir(struct server *s)
{
	if (!s->config->value.agents_dir[0])
		mkdir(s->agents.dir.p, 0700);
	if (uar_dir_watch_create(s->loop, s->agents.dir.p, on_changed, s, &s->agents.watch))
		uar_log(&s->log, UAR_LOG_DEBUG, "agents.not_watched",
			{ "folder", uar_buf_str(&s->agents.dir) });
}

/* --- life ------------------------------------------------------------------------------ */

static uar_err make_bridge(struct server *s)
{
	const struct uar_config *c = &s->config->value;
	struct uar_bridge_options o = {
		.loop = s->loop,
		.registry = s->agents.registry,
		.env = environ,
		.ad_hoc = c->exec_agents == UAR_CONFIG_EXEC_ON ||
			  (c->exec_agents == UAR_CONFIG_EXEC_AUTO &&
			   uar_server_is_local(uar_str_c(c->listen))),
		/* what has a public address is reached through something on this machine */
		.local = uar_server_is_local(uar_str_c(c->listen)) && !*c->public_url,
		.note = on_note,
		.ctx = s,
	};

	return uar_bridge_create(&o, &s->agents.bridge);
}

static uar_err make_feed(struct server *s, struct uar_error *error)
{
	const struct uar_config *c = &s->config->value;
	struct uar_buf cache = uar_buf_make(UAR_LIMIT_URI_BYTES);
	struct uar_agent_feed_options o = {
		.loop = s->loop,
		.registry = s->agents.registry,
		.log = &s->log,
		.url = c->agents_url,
		.token = c->agents_url_token,
		.every_us = c->agents_url_every_us,
		.changed = on_agents_changed,
		.ctx = s,
	};
	uar_err e = c->agents_url[0] ? uar_server_need_client(s, error) : UAR_ESKIP;

	uar_buf_printf(&cache, "%s/agents-url.json", c->data);
	o.client = s->net.client;
	o.cache = cache.p;
	if (!e)
		e = cache.err ? cache.err : uar_agent_feed_create(&o, &s->agents.feed);
	uar_buf_fini(&cache);
	return e == UAR_ESKIP ? UAR_OK : e;
}

uar_err uar_server_make_agents(struct server *s, struct uar_error *error)
{
	struct uar_registry_options o = { .taken = is_built_in, .note = on_note, .ctx = s };
	uar_err e = name_dir(s);

	o.keep_dir = s->agents.keep_dir.p;
	if (!e)
		e = uar_registry_create(&o, &s->agents.registry);
	if (e)
		return e;
	watch_dir(s);
	e = uar_registry_read_dir(s->agents.registry, s->agents.dir.p, error);
	if (!e)
		e = make_feed(s, error);
	return e ? e : make_bridge(s);
}

void uar_server_unmake_agents(struct server *s)
{
	if (s->agents.registry)
		uar_timer_stop(uar_loop_sched(s->loop), &s->agents.later);
	uar_agent_feed_destroy(s->agents.feed);
	uar_dir_watch_destroy(s->agents.watch);
	uar_bridge_destroy(s->agents.bridge);
	uar_registry_destroy(s->agents.registry);
	uar_buf_fini(&s->agents.dir);
	uar_buf_fini(&s->agents.keep_dir);
}
