/* serve_tools.c - the client for calls to the outside, secrets, and the registry of tools. */
#include "app/serve_int.h"

#include "app/definition_parts.h"
#include "base/alloc.h"
#include "json/limits.h"
#include "tool/hook.h"
#include "tool/http_source.h"
#include "tool/process.h"
#include "tool/skill_script.h"
#include "work/agent_tools.h"
#include "work/kb_tools.h"

uar_err uar_server_need_client(struct server *s, struct uar_error *error)
{
	const struct uar_config *c = &s->config->value;
	struct uar_guard *guard = NULL;
	uar_err e;

	if (s->net.client)
		return UAR_OK;
	e = uar_guard_create(c->outbound_allow.items, c->outbound_allow.count, &guard, error);
	if (e)
		return e;
	e = uar_client_create(s->loop, c->ca_file, &s->net.client);
	if (e)
		uar_guard_destroy(guard);
	else
		uar_client_set_guard(s->net.client, guard);
	return e;
}

/* What a setting names, or a folder of the data directory. */
static struct uar_buf path_of(const struct server *s, const char *set, const char *folder)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_URI_BYTES);

	if (set[0])
		uar_buf_add_str(&b, uar_str_c(set));
	else
		uar_buf_printf(&b, "%s/%s", s->config->value.data, folder);
	return b;
}

/* The registry has it, or it is gone. */
static uar_err take(struct server *s, struct uar_tools *source, struct uar_error *error)
{
	uar_err e = uar_tool_registry_add(s->tools, source, error);

	if (e)
		uar_tools_destroy(source);
	return e;
}

static uar_err add_internal(struct server *s, struct uar_error *error)
{
	const struct uar_config *c = &s->config->value;
	struct uar_buf dir = path_of(s, c->tools_files_dir, "files");
	struct uar_buf others = path_of(s, "", "files-of-");
	struct uar_owner owner = uar_server_owner(s);
	struct uar_internal_tools_options o = { .sched = uar_loop_sched(s->loop),
						.files_dir = dir.p,
						.owner = &owner,
						.others_dir = others.p,
						.skills_dir =
							uar_skill_book_dir(s->agents.skills) };
	struct uar_tools *source = NULL;
	uar_err e = dir.err ? dir.err : others.err;

	if (!e)
		e = uar_datadir_apart(c->data, dir.p, error);
	if (!e)
		e = uar_internal_tools_create(&o, &source, error);
	if (!e)
		s->parts.files_dir = uar_strdup_n(dir.p, dir.n);
	uar_buf_fini(&dir);
	uar_buf_fini(&others);
	return e ? e : take(s, source, error);
}

static uar_err add_knowledge(struct server *s, struct uar_error *error)
{
	struct uar_tools *source = NULL;
	uar_err e = s->parts.knowledge ? uar_kb_tools_create(s->parts.knowledge, &source) : UAR_OK;

	return e || !source ? e : take(s, source, error);
}

static uar_err add_agents(struct server *s, struct uar_error *error)
{
	struct uar_tools *source = NULL;
	uar_err e = uar_agent_tools_create(&source);

	if (!e)
		e = take(s, source, error);
	if (!e)
		s->parts.agent_tools = source; /* the registry owns it */
	return e;
}

static uar_err add_processes(struct server *s, struct uar_error *error)
{
	const struct uar_config *c = &s->config->value;
	struct uar_buf dir = path_of(s, c->tools_files_dir, "files");
	struct uar_processes_options o = {
		.loop = s->loop,
		.dir = dir.p,
		.widest = (enum uar_sandbox_mode)(c->process_tools - 1),
		.network = c->process_network,
		.memory_bytes = c->process_memory_bytes,
	};
	uar_err e = dir.err;

	if (!e && c->process_tools != UAR_CONFIG_PROCESSES_OFF)
		e = uar_processes_create(&o, &s->parts.processes, error);
	uar_buf_fini(&dir);
	if (e || !s->parts.processes)
		return e;
	e = take(s, uar_processes_tools(s->parts.processes), error);
	if (e)
		s->parts.processes = NULL;
	return e;
}

static uar_err add_scripts(struct server *s, struct uar_error *error)
{
	struct uar_tools *source = NULL;
	uar_err e;

	if (!s->config->value.skill_scripts)
		return UAR_OK;
	e = uar_skill_script_create(s->loop, uar_skill_book_dir(s->agents.skills), &source);
	return e ? e : take(s, source, error);
}

static uar_err add_fetch(struct server *s, struct uar_error *error)
{
	struct uar_tools *source = NULL;
	uar_err e = uar_fetch_tool_create(uar_loop_sched(s->loop), s->net.client, &source);

	return e ? e : take(s, source, error);
}

static uar_err add_file(struct server *s, struct uar_error *error)
{
	struct uar_http_tools_options o = { .sched = uar_loop_sched(s->loop),
					    .client = s->net.client,
					    .secrets = s->net.secrets };
	const char *path = s->config->value.tools_file;
	struct uar_tools *source = NULL;
	uar_err e = path[0] ? uar_tools_file_read(path, &o, &source, error) : UAR_OK;

	return e || !source ? e : take(s, source, error);
}

uar_err uar_server_make_hooks(struct server *s, struct uar_error *error)
{
	uar_err e = uar_hooks_read(uar_str_c(s->config->value.hooks), &s->parts.hooks, error);

	if (!e && uar_hooks_need_client(s->parts.hooks))
		e = uar_server_need_client(s, error);
	if (!e)
		uar_hooks_attach(s->parts.hooks, s->loop, s->net.client);
	return e;
}

uar_err uar_server_make_tools(struct server *s, struct uar_error *error)
{
	const struct uar_config *c = &s->config->value;
	struct uar_buf secrets = path_of(s, c->secrets_dir, "secrets");
	uar_err e = secrets.err ? secrets.err
				: uar_secrets_create(secrets.p, uar_str_c(c->secret_grants),
						     &s->net.secrets, error);

	if (!e)
		uar_secrets_set_tenant(s->net.secrets, c->tenant);
	if (!e)
		e = uar_server_make_knowledge(s, error);

	uar_buf_fini(&secrets);
	if (e || !c->tools)
		return e;
	e = uar_server_need_client(s, error);
	if (!e)
		e = uar_tool_registry_create(uar_loop_sched(s->loop), NULL, &s->tools);
	if (!e)
		e = add_internal(s, error);
	if (!e)
		e = add_scripts(s, error);
	if (!e)
		e = add_processes(s, error);
	if (!e)
		e = add_fetch(s, error);
	if (!e)
		e = add_knowledge(s, error);
	if (!e)
		e = add_agents(s, error);
	return e ? e : add_file(s, error);
}
