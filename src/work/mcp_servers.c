/* mcp_servers.c - MCP servers that owners keep in the database, and those of definitions. */
#include "base/base64.h"
#include "base/seal.h"
#include "json/jw.h"
#include "json/limits.h"
#include "tool/mcp_host.h"
#include "work/definition_store_int.h"
#include "work/work_int.h"

#define SEALED "$sealed"

/* --- values that must not be readable --------------------------------------------------------- */

static uar_str about(uar_str name, struct uar_arena *arena)
{
	return uar_arena_printf(arena, "mcp_server\n%.*s", UAR_FMT(name));
}

/* The text as it is kept: {"$sealed": BASE64} if it hides something, else itself. */
static uar_err seal_text(struct definition_writer *d, const struct uar_definition_change *op,
			 uar_str *out)
{
	struct uar_buf sealed = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	struct uar_buf text = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	struct uar_buf kept = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	struct uar_jw w = uar_jw_begin(&kept);
	const struct uar_runtime *rt = d->w->rt;
	const struct uar_json *json = NULL;
	uar_str whose = about(op->id, &d->arena);
	uar_err e = whose.p ? uar_json_parse(op->text, NULL, &d->arena, &json, NULL) : UAR_ENOMEM;

	*out = op->text;
	if (!e && uar_mcp_hides(json)) {
		e = uar_seal(rt_seal(rt), rt_rand(rt), op->text, whose, &sealed);
		uar_base64_encode(&text, uar_buf_str(&sealed));
		uar_jw_obj(&w, NULL);
		uar_jw_str(&w, SEALED, uar_buf_str(&text));
		uar_jw_close(&w);
		e = e ? e : text.err ? text.err : uar_jw_end(&w);
		*out = e ? UAR_STR_NONE : uar_arena_str(&d->arena, uar_buf_str(&kept));
		e = e || out->p ? e : UAR_ENOMEM;
	}
	uar_buf_fini(&sealed);
	uar_buf_fini(&text);
	uar_buf_fini(&kept);
	return e;
}

/* UAR_ECORRUPT: it was sealed under another key, or for another name. */
static uar_err open_text(struct uar_workers *w, uar_str name, uar_str kept, struct uar_buf *out)
{
	struct uar_arena arena;
	const struct uar_json *json = NULL, *sealed;
	uar_str bytes = UAR_STR_NONE, whose;
	uar_err e;

	uar_arena_init(&arena, 0);
	whose = about(name, &arena);
	e = whose.p ? uar_json_parse(kept, NULL, &arena, &json, NULL) : UAR_ENOMEM;
	sealed = json && json->count == 1 ? uar_json_get(json, UAR_STR(SEALED)) : NULL;
	if (!e && !sealed) {
		uar_buf_add_str(out, kept);
		e = out->err;
	} else if (!e) {
		e = uar_base64_decode(&arena, uar_json_str(sealed, UAR_STR("")), &bytes);
		e = e ? e : uar_unseal(rt_seal(w->rt), bytes, whose, out);
	}
	uar_arena_fini(&arena);
	return e;
}

/* --- of the database ------------------------------------------------------------------------ */

static struct uar_mcp_put put_of(const struct uar_owner *owner, uar_str name, uar_str text)
{
	return (struct uar_mcp_put){
		.name = name,
		.text = text,
		.origin = UAR_MCP_OF_DATABASE,
		.agent_id = UAR_STR(""),
		.owner = *owner,
	};
}

static uar_err read_server(struct definition_writer *d, struct uar_definition_change *op)
{
	struct uar_mcp_put put = put_of(&op->owner, op->id, op->text);
	uar_err e = uar_mcp_host_check(d->w->o.mcp, &put, &op->error);

	if (e)
		return e == UAR_ECONFIG ? UAR_EINVALID : e;
	e = seal_text(d, op, &d->text);
	if (e)
		return e;
	d->has_new = true;
	uar_sha256_hex(d->text, d->digest);
	d->revision = d->digest;
	return UAR_OK;
}

static uar_err take_server(struct definition_writer *d, struct uar_definition_change *op,
			   int64_t now)
{
	struct uar_mcp_put put = put_of(&op->owner, op->id, op->text);

	(void)now;
	if (op->text.p)
		return uar_mcp_host_put(d->w->o.mcp, &put, &op->error);
	uar_mcp_host_drop(d->w->o.mcp, UAR_MCP_OF_DATABASE, &op->owner, op->id);
	return UAR_OK;
}

static void fini_server(struct definition_writer *d)
{
	(void)d; /* the text is the caller's, or the arena's */
}

const struct kept_kind rt_kept_mcp = { .name = "mcp_server",
				       .prefix = "mcp:",
				       .read = read_server,
				       .take = take_server,
				       .fini = fini_server };

uar_err rt_mcp_load(struct uar_workers *w, const struct uar_owner *owner,
		    const struct uar_row_definition *row, uar_str text)
{
	struct uar_buf plain = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	uar_str name = uar_str_from(row->row.id, strlen(rt_kept_mcp.prefix));
	struct uar_mcp_put put;
	struct uar_error error = { 0 };
	uar_err e = w->o.mcp ? open_text(w, name, text, &plain) : UAR_ENOTIMPL;

	put = put_of(owner, name, uar_buf_str(&plain));
	if (!e)
		e = uar_mcp_host_put(w->o.mcp, &put, &error);
	if (plain.p)
		explicit_bzero(plain.p, plain.n);
	uar_buf_fini(&plain);
	return e;
}

/* --- tools that are not what they were ------------------------------------------------------ */

struct tools_note {
	struct uar_definition_change op;
	struct uar_workers *w;
	struct uar_arena arena;
};

static uar_err read_tools(struct definition_writer *d, struct uar_definition_change *op)
{
	const struct uar_json *json = NULL;
	uar_err e = uar_json_parse(op->text, NULL, &d->arena, &json, &op->error);
	struct uar_buf b = uar_buf_make(UAR_LIMIT_EVENT_BYTES / 2);
	struct uar_jw w = uar_jw_begin(&b);
	const struct uar_json *t = uar_json_first(uar_json_get(json, UAR_STR("tools")));

	uar_jw_arr(&w, NULL);
	for (size_t n = 0; t && n < UAR_LIMIT_MCP_NOTED; t = t->next, n++) {
		uar_jw_obj(&w, NULL);
		uar_jw_tree(&w, "tool_id", uar_json_get(t, UAR_STR("tool_id")));
		uar_jw_tree(&w, "version", uar_json_get(t, UAR_STR("version")));
		uar_jw_close(&w);
	}
	uar_jw_close(&w);
	e = e ? e : uar_jw_end(&w);
	d->tools = e ? UAR_STR_NONE : uar_arena_str(&d->arena, uar_buf_str(&b));
	uar_buf_fini(&b);
	d->text = op->text;
	uar_sha256_hex(d->text, d->digest);
	d->revision = d->digest;
	return e || d->tools.p ? e : UAR_ENOMEM;
}

const struct kept_kind rt_kept_mcp_tools = {
	.name = "mcp_tools", .prefix = "mcp_tools:", .noted = true, .read = read_tools
};

static void tools_noted(struct uar_definition_change *op)
{
	struct tools_note *n = UAR_OWNER(op, struct tools_note, op);

	if (op->err)
		uar_log(rt_log(n->w->rt), UAR_LOG_ERROR, "mcp.change_not_recorded",
			{ "server", op->id }, { "reason", uar_str_c(uar_err_text(op->err)) });
	uar_arena_fini(&n->arena);
	uar_free(n);
}

struct tools_list {
	const struct uar_tool *const *at;
	size_t count;
};

static uar_err write_tools(struct uar_buf *out, uar_str server, const struct tools_list *l,
			   bool whole)
{
	struct uar_jw w = uar_jw_begin(out);

	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "server", server);
	uar_jw_arr(&w, "tools");
	for (size_t i = 0; i < l->count; i++) {
		const struct uar_tool *t = l->at[i];

		uar_jw_obj(&w, NULL);
		uar_jw_str(&w, "tool_id", t->tool_id);
		uar_jw_str(&w, "version", t->version);
		if (whole) {
			uar_jw_str(&w, "description", t->description);
			uar_jw_raw(&w, "input_schema", t->input_schema);
		}
		if (whole && t->output_schema.n)
			uar_jw_raw(&w, "output_schema", t->output_schema);
		uar_jw_close(&w);
	}
	uar_jw_close(&w);
	uar_jw_close(&w);
	return uar_jw_end(&w);
}

void uar_workers_note_mcp_tools(struct uar_workers *w, const struct uar_owner *owner,
				uar_str server, const struct uar_tool *const *tools, size_t count)
{
	struct tools_note *n = uar_zalloc(sizeof *n);
	struct uar_buf text = uar_buf_make(UAR_LIMIT_AGENT_DEFINITION);
	const struct tools_list l = { tools, count };
	uar_err e = write_tools(&text, server, &l, true);

	if (e) { /* too long: their names and versions alone */
		uar_buf_fini(&text);
		text = uar_buf_make(UAR_LIMIT_AGENT_DEFINITION);
		e = write_tools(&text, server, &l, false);
	}
	e = n ? e : UAR_ENOMEM;
	if (n) {
		*n = (struct tools_note){
			.w = w, .op = { .what = UAR_KEPT_MCP_TOOLS, .done = tools_noted }
		};
		n->op.id = uar_arena_str(&n->arena, server);
		n->op.text = uar_arena_str(&n->arena, uar_buf_str(&text));
		if (!n->op.id.p || !n->op.text.p || !uar_owner_copy(&n->arena, owner, &n->op.owner))
			e = UAR_ENOMEM;
	}
	uar_buf_fini(&text);
	e = e ? e : uar_workers_change_definition(w, &n->op);
	if (e && n) {
		n->op.err = e;
		tools_noted(&n->op);
	}
}

/* --- of definitions ------------------------------------------------------------------------- */

static const struct uar_json *servers_of(const struct uar_registered *entry)
{
	const struct uar_json *tools = uar_json_get(entry->def.json, UAR_STR("tools"));

	return uar_json_get(tools, UAR_STR("mcp"));
}

/* Whose the servers of a definition are. */
static const struct uar_owner *owner_of(const struct uar_registered *entry)
{
	static const struct uar_owner everybody = { UAR_STR(""), UAR_STR(""), UAR_STR("") };

	return entry->source == UAR_AGENT_FROM_DATABASE ? &entry->owner : &everybody;
}

static uar_str name_of(const struct uar_json *server)
{
	return uar_json_text(server, "name");
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
		    uar_owner_eq(owner_of(entry), uar_mcp_hosted_owner(h)) &&
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
				   .owner = *owner_of(entry),
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
		uar_mcp_host_drop(w->o.mcp, UAR_MCP_OF_AGENT, uar_mcp_hosted_owner(left),
				  uar_str_c(uar_mcp_hosted_name(left)));
	for (size_t i = 0; (entry = uar_registry_at(w->o.registry, i)); i++)
		for (const struct uar_json *s = uar_json_first(servers_of(entry)); s; s = s->next)
			if (name_of(s).n)
				follow_one(w, entry, s);
}

struct uar_mcp_host *uar_workers_mcp(const struct uar_workers *w)
{
	return w->o.mcp;
}
