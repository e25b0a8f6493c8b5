/* toolbox.c - bundles, overrides, guardrails and own tools of a definition. */
#include "tool/toolbox.h"

#include "base/alloc.h"
#include "json/jw.h"
#include "json/limits.h"
#include "json/schema.h"
#include "mcp/settings.h"
#include "tool/http_source.h"
#include "tool/limits.h"
#include "tool/registry.h"

struct override {
	const struct uar_json *j;  /* key: the tool's id */
	struct uar_schema *schema; /* NULL: it does not narrow */
	struct uar_buf base, told; /* of which schema, and what became of it */
};

struct rail {
	const struct uar_json *j;
	struct uar_schema *deny_if, *ask_if;
};

struct uar_toolbox {
	size_t holders;
	struct uar_arena arena;
	const struct uar_json *json;
	struct override *overrides;
	struct rail *rails;
	size_t override_count, rail_count;
	struct uar_tools *all; /* its own above the server's */
	struct uar_tools *own; /* the source of its own; NULL: none */
	uar_str agent_id;
};

static const struct uar_json *member(const struct uar_toolbox *b, const char *name)
{
	return b ? uar_json_get(b->json, uar_str_c(name)) : NULL;
}

bool uar_tool_is_named(const struct uar_tool *t, const struct uar_json *patterns)
{
	for (const struct uar_json *p =
		     patterns && patterns->kind == UAR_JSON_ARRAY ? patterns->first : NULL;
	     p; p = p->next)
		if (uar_tool_matches(t, uar_json_str(p, UAR_STR(""))))
			return true;
	return false;
}

/* --- overrides ----------------------------------------------------------------------------- */

static struct override *override_of(const struct uar_toolbox *b, const struct uar_tool *t)
{
	for (size_t i = 0; b && i < b->override_count; i++)
		if (uar_tool_matches(t, b->overrides[i].j->key))
			return &b->overrides[i];
	return NULL;
}

uar_str uar_toolbox_description(const struct uar_toolbox *b, const struct uar_tool *t)
{
	const struct override *o = override_of(b, t);
	uar_str said = o ? uar_json_text(o->j, "description") : UAR_STR("");

	return said.n ? said : t->description;
}

static void put_properties(struct uar_jw *w, const struct uar_json *base,
			   const struct uar_json *narrow)
{
	uar_jw_obj(w, "properties");
	for (const struct uar_json *p = uar_json_first(base); p; p = p->next) {
		uar_jw_key(w, p->key);
		uar_jw_tree(w, NULL,
			    uar_json_get(narrow, p->key) ? uar_json_get(narrow, p->key) : p);
	}
	for (const struct uar_json *p = uar_json_first(narrow); p; p = p->next)
		if (!uar_json_get(base, p->key)) {
			uar_jw_key(w, p->key);
			uar_jw_tree(w, NULL, p);
		}
	uar_jw_close(w);
}

static bool has_text(const struct uar_json *list, uar_str text)
{
	for (const struct uar_json *p = uar_json_first(list); p; p = p->next)
		if (uar_str_eq(uar_json_str(p, UAR_STR("")), text))
			return true;
	return false;
}

static void put_required(struct uar_jw *w, const struct uar_json *base,
			 const struct uar_json *narrow)
{
	uar_jw_arr(w, "required");
	for (const struct uar_json *p = uar_json_first(base); p; p = p->next)
		uar_jw_tree(w, NULL, p);
	for (const struct uar_json *p = uar_json_first(narrow); p; p = p->next)
		if (!has_text(base, uar_json_str(p, UAR_STR(""))))
			uar_jw_tree(w, NULL, p);
	uar_jw_close(w);
}

/* For the model: both as one object. Arguments are checked by both. */
static void write_narrowed(const struct uar_json *base, const struct uar_json *narrow,
			   struct uar_buf *out)
{
	struct uar_jw w = uar_jw_begin(out);

	uar_jw_obj(&w, NULL);
	for (const struct uar_json *m = uar_json_first(base); m; m = m->next)
		if (!uar_str_is(m->key, "properties") && !uar_str_is(m->key, "required") &&
		    !uar_json_get(narrow, m->key)) {
			uar_jw_key(&w, m->key);
			uar_jw_tree(&w, NULL, m);
		}
	for (const struct uar_json *m = uar_json_first(narrow); m; m = m->next)
		if (!uar_str_is(m->key, "properties") && !uar_str_is(m->key, "required")) {
			uar_jw_key(&w, m->key);
			uar_jw_tree(&w, NULL, m);
		}
	put_properties(&w, uar_json_get(base, UAR_STR("properties")),
		       uar_json_get(narrow, UAR_STR("properties")));
	put_required(&w, uar_json_get(base, UAR_STR("required")),
		     uar_json_get(narrow, UAR_STR("required")));
	uar_jw_close(&w);
	if (uar_jw_end(&w) && !out->err)
		out->err = UAR_EINVALID;
}

uar_str uar_toolbox_schema(struct uar_toolbox *b, const struct uar_tool *t)
{
	struct override *o = override_of(b, t);
	const struct uar_json *base = NULL;
	struct uar_arena arena = { 0 };

	if (!o || !o->schema)
		return t->input_schema;
	if (o->told.n && uar_str_eq(uar_buf_str(&o->base), t->input_schema))
		return uar_buf_str(&o->told);
	uar_buf_fini(&o->base);
	uar_buf_fini(&o->told);
	o->base = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	o->told = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	uar_buf_add_str(&o->base, t->input_schema);
	if (!uar_json_parse(t->input_schema, NULL, &arena, &base, NULL) &&
	    base->kind == UAR_JSON_OBJECT)
		write_narrowed(base, uar_json_get(o->j, UAR_STR("input_schema")), &o->told);
	uar_arena_fini(&arena);
	return o->told.n && !o->told.err ? uar_buf_str(&o->told) : t->input_schema;
}

static uar_err validate(const struct uar_schema *schema, uar_str input, struct uar_error *error)
{
	const struct uar_json *j = NULL;
	struct uar_arena arena = { 0 };
	uar_err e = uar_json_parse(input, NULL, &arena, &j, error);

	if (!e)
		e = uar_schema_validate(schema, j, &arena, error);
	uar_arena_fini(&arena);
	return e;
}

uar_err uar_toolbox_check(const struct uar_toolbox *b, const struct uar_tool *t, uar_str input,
			  struct uar_error *error)
{
	const struct override *o = override_of(b, t);

	return o && o->schema ? validate(o->schema, input, error) : UAR_OK;
}

/* --- guardrails ------------------------------------------------------------------------------- */

static enum uar_rail judge_one(const struct rail *r, const struct uar_rail_call *c)
{
	const struct uar_json *most = uar_json_get(r->j, UAR_STR("max_calls"));
	const struct uar_json *patterns = uar_json_get(r->j, UAR_STR("tools"));

	/* What cannot be looked at is not let through. */
	if (r->deny_if && validate(r->deny_if, c->input, NULL) != UAR_ESCHEMA)
		return UAR_RAIL_DENY;
	if (most && (int64_t)c->count(c->ctx, patterns) >= uar_json_int(most, 0))
		return UAR_RAIL_DENY;
	if (r->ask_if && validate(r->ask_if, c->input, NULL) != UAR_ESCHEMA)
		return UAR_RAIL_ASK;
	return UAR_RAIL_PASS;
}

enum uar_rail uar_toolbox_judge(const struct uar_toolbox *b, const struct uar_rail_call *c,
				uar_str *out_reason)
{
	enum uar_rail worst = UAR_RAIL_PASS;

	for (size_t i = 0; b && i < b->rail_count; i++) {
		const struct rail *r = &b->rails[i];
		enum uar_rail said;

		if (!uar_tool_is_named(c->tool, uar_json_get(r->j, UAR_STR("tools"))))
			continue;
		said = judge_one(r, c);
		if (said <= worst)
			continue;
		worst = said;
		*out_reason = uar_json_text(r->j, "reason");
	}
	return worst;
}

/* --- bundles -------------------------------------------------------------------------------- */

bool uar_toolbox_complete(const struct uar_toolbox *b, uar_bundle_has_fn *has, void *ctx,
			  uar_str *out_bundle, uar_str *out_pattern)
{
	const struct uar_json *bundles = member(b, "bundles");

	for (const struct uar_json *one = uar_json_first(bundles); one; one = one->next) {
		const struct uar_json *tools = uar_json_get(one, UAR_STR("tools"));

		if (!uar_json_bool(uar_json_get(one, UAR_STR("required")), false))
			continue;
		for (const struct uar_json *p = uar_json_first(tools); p; p = p->next) {
			if (has(ctx, uar_json_str(p, UAR_STR(""))))
				continue;
			*out_bundle = uar_json_text(one, "id");
			*out_pattern = uar_json_str(p, UAR_STR(""));
			return false;
		}
	}
	return true;
}

bool uar_toolbox_unpinned(const struct uar_toolbox *b, const struct uar_tool *t)
{
	uar_str pin = uar_json_str(uar_json_get(member(b, "pins"), t->tool_id), UAR_STR(""));

	return pin.n && !uar_str_eq(pin, t->version);
}

static uar_str server_of(const struct uar_tool *t)
{
	return uar_str_from(t->runtime_owner, sizeof "mcp:" - 1);
}

static bool is_of_agent(const struct uar_toolbox *b, const struct uar_tool *t)
{
	return b && t->own_of.n && uar_str_eq(t->own_of, b->agent_id);
}

/* An entry names a server of its own (`name`) or one that is there (`server`), and maybe some of
 * its tools. */
bool uar_toolbox_brings(const struct uar_toolbox *b, const struct uar_tool *t)
{
	const struct uar_json *servers = member(b, "mcp");

	if (!uar_str_is(t->transport, "mcp"))
		return false;
	for (const struct uar_json *one = uar_json_first(servers); one; one = one->next) {
		const struct uar_json *tools = uar_json_get(one, UAR_STR("tools"));
		uar_str name = uar_json_text(one, "name");

		if (!uar_str_eq(name.n ? name : uar_json_text(one, "server"), server_of(t)))
			continue;
		if (name.n ? !is_of_agent(b, t) : t->own_of.n && !is_of_agent(b, t))
			continue;
		if (!tools || uar_mcp_names(tools, t->name))
			return true;
	}
	return false;
}

bool uar_toolbox_lacks(const struct uar_toolbox *b, const struct uar_tool *t)
{
	const struct uar_json *servers = member(b, "mcp");

	if (!uar_str_is(t->transport, "mcp") || is_of_agent(b, t))
		return false;
	for (const struct uar_json *one = uar_json_first(servers); one; one = one->next)
		if (uar_str_eq(uar_json_text(one, "name"), server_of(t)))
			return true;
	return false;
}

bool uar_toolbox_narrows(const struct uar_toolbox *b, const struct uar_tool *t)
{
	const struct uar_json *servers = member(b, "mcp");

	if (!uar_str_is(t->transport, "mcp") || uar_toolbox_brings(b, t))
		return false;
	for (const struct uar_json *one = uar_json_first(servers); one; one = one->next)
		if (uar_str_eq(uar_json_text(one, "server"), server_of(t)))
			return true;
	return false;
}

bool uar_toolbox_offers(const struct uar_toolbox *b, const struct uar_tool *t)
{
	const struct uar_json *bundles = member(b, "bundles");

	for (const struct uar_json *one = uar_json_first(bundles); one; one = one->next)
		if (uar_tool_is_named(t, uar_json_get(one, UAR_STR("tools"))))
			return true;
	return uar_toolbox_brings(b, t) || (b && uar_tools_find(b->own, NULL, t->tool_id));
}

/* --- life ----------------------------------------------------------------------------------- */

static uar_err compile(const struct uar_json *j, const char *key, struct uar_schema **out,
		       struct uar_error *error)
{
	const struct uar_json *schema = uar_json_get(j, uar_str_c(key));

	return schema ? uar_schema_create(schema, NULL, out, error) : UAR_OK;
}

static uar_err read_overrides(struct uar_toolbox *b, struct uar_error *error)
{
	const struct uar_json *all = member(b, "overrides");
	uar_err e = UAR_OK;

	if (!all)
		return UAR_OK;
	b->overrides = uar_arena_alloc(&b->arena, (all->count + 1) * sizeof *b->overrides);
	if (!b->overrides)
		return UAR_ENOMEM;
	for (const struct uar_json *j = uar_json_first(all); j && !e; j = j->next) {
		struct override *o = &b->overrides[b->override_count++];

		o->j = j;
		e = compile(j, "input_schema", &o->schema, error);
		if (e)
			uar_error_where(error, "/overrides/%.*s/input_schema", UAR_FMT(j->key));
	}
	return e;
}

static uar_err read_rails(struct uar_toolbox *b, struct uar_error *error)
{
	const struct uar_json *all = member(b, "guardrails");
	uar_err e = UAR_OK;

	if (!all)
		return UAR_OK;
	b->rails = uar_arena_alloc(&b->arena, (all->count + 1) * sizeof *b->rails);
	if (!b->rails)
		return UAR_ENOMEM;
	for (const struct uar_json *j = uar_json_first(all); j && !e; j = j->next) {
		struct rail *r = &b->rails[b->rail_count++];

		r->j = j;
		e = compile(j, "deny_if", &r->deny_if, error);
		if (!e)
			e = compile(j, "ask_if", &r->ask_if, error);
		if (e)
			uar_error_where(error, "/guardrails/%zu", b->rail_count - 1);
	}
	return e;
}

static uar_err make_own(struct uar_toolbox *b, const struct uar_toolbox_options *o,
			struct uar_error *error)
{
	struct uar_http_tools_options http = { .sched = o->sched,
					       .client = o->client,
					       .secrets = o->secrets,
					       .only_granted = !o->from_file,
					       .http = member(b, "http"),
					       .openapi = member(b, "openapi") };
	struct uar_tools *source = NULL;
	uar_err e = uar_tool_registry_create(o->sched, o->tools_below, &b->all);

	if (e || (!http.http && !http.openapi))
		return e;
	if (!o->client)
		return uar_error_set(error, UAR_ENOTIMPL, "HTTP tools are switched off here");
	e = uar_http_tools_create(&http, &source, error);
	if (!e)
		e = uar_tool_registry_add(b->all, source, error);
	if (e)
		uar_tools_destroy(source);
	else
		b->own = source;
	return e;
}

static uar_err copy_json(struct uar_toolbox *b, const struct uar_json *tools,
			 struct uar_error *error)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	uar_err e;

	if (!tools)
		return UAR_OK;
	uar_json_write(&text, tools);
	e = text.err;
	if (!e)
		e = uar_json_parse_copy(uar_buf_str(&text), NULL, &b->arena, &b->json, error);
	uar_buf_fini(&text);
	return e;
}

uar_err uar_toolbox_create(const struct uar_toolbox_options *o, struct uar_toolbox **out,
			   struct uar_error *error)
{
	struct uar_toolbox *b = uar_zalloc(sizeof *b);
	uar_err e;

	if (!b)
		return uar_error_set(error, UAR_ENOMEM, "out of memory");
	b->holders = 1;
	e = copy_json(b, o->tools, error);
	b->agent_id = uar_arena_str(&b->arena, o->agent_id.n ? o->agent_id : UAR_STR(""));
	if (!e && !b->agent_id.p)
		e = UAR_ENOMEM;
	if (!e)
		e = read_overrides(b, error);
	if (!e)
		e = read_rails(b, error);
	if (!e)
		e = make_own(b, o, error);
	if (e) {
		uar_toolbox_unref(b);
		return error && error->text[0] ? e : uar_error_set(error, e, "%s", uar_err_text(e));
	}
	*out = b;
	return UAR_OK;
}

void uar_toolbox_ref(struct uar_toolbox *b)
{
	if (b)
		b->holders++;
}

void uar_toolbox_unref(struct uar_toolbox *b)
{
	if (!b || --b->holders)
		return;
	for (size_t i = 0; i < b->override_count; i++) {
		uar_schema_destroy(b->overrides[i].schema);
		uar_buf_fini(&b->overrides[i].base);
		uar_buf_fini(&b->overrides[i].told);
	}
	for (size_t i = 0; i < b->rail_count; i++) {
		uar_schema_destroy(b->rails[i].deny_if);
		uar_schema_destroy(b->rails[i].ask_if);
	}
	uar_tools_destroy(b->all);
	uar_arena_fini(&b->arena);
	uar_free(b);
}

struct uar_tools *uar_toolbox_tools(const struct uar_toolbox *b)
{
	return b ? b->all : NULL;
}
