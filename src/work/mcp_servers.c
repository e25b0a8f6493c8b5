/* mcp_servers.c - MCP servers that owners keep in the database, and those of definitions. */
#include "json/jw.h"
#include "tool/mcp_host.h"
#include "work/definition_store_int.h"
#include "work/work_int.h"

/* --- of the database ------------------------------------------------------------------------ */

static struct uar_mcp_put put_of(uar_str name, uar_str text)
{
	return (struct uar_mcp_put){
		.name = name, .text = text, .origin = UAR_MCP_OF_DATABASE, .agent_id = UAR_STR("")
	};
}

static uar_err read_server(struct definition_writer *d, struct uar_definition_change *op)
{
	struct uar_mcp_put put = put_of(op->id, op->text);
	uar_err e = uar_mcp_host_check(d->w->o.mcp, &put, &op->error);

	if (e)
		return e == UAR_ECONFIG ? UAR_EINVALID : e;
	d->has_new = true;
	d->text = op->text;
	uar_sha256_hex(op->text, d->digest);
	d->revision = d->digest;
	return UAR_OK;
}

static uar_err take_server(struct definition_writer *d, struct uar_definition_change *op,
			   int64_t now)
{
	struct uar_mcp_put put = put_of(op->id, op->text);

	(void)now;
	if (op->text.p)
		return uar_mcp_host_put(d->w->o.mcp, &put, &op->error);
	uar_mcp_host_drop(d->w->o.mcp, UAR_MCP_OF_DATABASE, op->id);
	return UAR_OK;
}

static void fini_server(struct definition_writer *d)
{
	(void)d; /* the text is the caller's */
}

const struct kept_kind rt_kept_mcp = { "mcp_server", "mcp:",	  read_server,
				       NULL,	     take_server, fini_server };

uar_err rt_mcp_load(struct uar_workers *w, const struct uar_row_definition *row, uar_str text)
{
	struct uar_mcp_put put =
		put_of(uar_str_from(row->row.id, strlen(rt_kept_mcp.prefix)), text);
	struct uar_error error = { 0 };

	return w->o.mcp ? uar_mcp_host_put(w->o.mcp, &put, &error) : UAR_ENOTIMPL;
}

/* --- of definitions ------------------------------------------------------------------------- */

static const struct uar_json *servers_of(const struct uar_registered *entry)
{
	const struct uar_json *tools = uar_json_get(entry->def.json, UAR_STR("tools"));

	return uar_json_get(tools, UAR_STR("mcp"));
}

static uar_str name_of(const struct uar_json *server)
{
	return uar_json_str(uar_json_get(server, UAR_STR("name")), UAR_STR(""));
}

static bool defines(const struct uar_registered *entry, uar_str name)
{
	for (const struct uar_json *s = uar_json_first(servers_of(entry)); s; s = s->next)
		if (uar_str_eq(name_of(s), name))
			return true;
	return false;
}

static bool is_defined(const struct uar_workers *w, const struct uar_mcp_hosted *h)
{
	struct uar_registered *entry;

	for (size_t i = 0; (entry = uar_registry_at(w->o.registry, i)); i++)
		if (uar_str_eq(entry->def.info.agent_id, uar_mcp_hosted_agent(h)) &&
		    defines(entry, uar_str_c(uar_mcp_hosted_name(h))))
			return true;
	return false;
}

/* The next one that no definition has any more; NULL: there is none. */
static const struct uar_mcp_hosted *find_left(const struct uar_workers *w)
{
	const struct uar_mcp_hosted *h;

	for (size_t i = 0; (h = uar_mcp_host_at(w->o.mcp, i)); i++)
		if (uar_mcp_hosted_origin(h) == UAR_MCP_OF_AGENT && !is_defined(w, h))
			return h;
	return NULL;
}

static void follow_one(struct uar_workers *w, const struct uar_registered *entry,
		       const struct uar_json *server)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	struct uar_error error = { 0 };
	struct uar_mcp_put put = { .name = name_of(server),
				   .origin = UAR_MCP_OF_AGENT,
				   .agent_id = entry->def.info.agent_id,
				   .from_file = entry->source == UAR_AGENT_FROM_FILE };
	uar_err e;

	uar_json_write(&text, server);
	put.text = uar_buf_str(&text);
	e = text.err ? text.err : uar_mcp_host_put(w->o.mcp, &put, &error);
	if (e)
		uar_log(rt_log(w->rt), UAR_LOG_WARN, "mcp.not_used",
			{ "agent_id", entry->def.info.agent_id }, { "server", put.name },
			{ "reason", uar_str_c(error.text[0] ? error.text : uar_err_text(e)) });
	uar_buf_fini(&text);
}

/* What an owner may not have is refused before it is kept. */
uar_err rt_mcp_may_bring(struct uar_workers *w, const struct uar_definition *def,
			 struct uar_error *error)
{
	const struct uar_json *tools = uar_json_get(def->json, UAR_STR("tools"));
	const struct uar_json *servers = uar_json_get(tools, UAR_STR("mcp"));
	struct uar_error why = { 0 };
	size_t index = 0;
	uar_err e = UAR_OK;

	for (const struct uar_json *s = w->o.mcp ? uar_json_first(servers) : NULL; s && !e;
	     s = s->next, index++) {
		struct uar_buf text = uar_buf_make(UAR_LIMIT_JSON_BYTES);
		struct uar_mcp_put put = { .name = name_of(s),
					   .origin = UAR_MCP_OF_AGENT,
					   .agent_id = def->info.agent_id };

		uar_json_write(&text, s);
		put.text = uar_buf_str(&text);
		if (put.name.n && uar_mcp_host_check(w->o.mcp, &put, &why) == UAR_EFORBIDDEN) {
			uar_error_where(error, "/tools/mcp/%zu", index);
			e = uar_error_set(error, UAR_EFORBIDDEN, "%s", why.text);
		}
		uar_buf_fini(&text);
	}
	return e;
}

void rt_mcp_follow(struct uar_workers *w)
{
	const struct uar_mcp_hosted *left;
	struct uar_registered *entry;

	if (!w->o.mcp || !w->o.registry)
		return;
	while ((left = find_left(w)))
		uar_mcp_host_drop(w->o.mcp, UAR_MCP_OF_AGENT, uar_str_c(uar_mcp_hosted_name(left)));
	for (size_t i = 0; (entry = uar_registry_at(w->o.registry, i)); i++)
		for (const struct uar_json *s = uar_json_first(servers_of(entry)); s; s = s->next)
			if (name_of(s).n)
				follow_one(w, entry, s);
}

struct uar_mcp_host *uar_workers_mcp(const struct uar_workers *w)
{
	return w->o.mcp;
}
