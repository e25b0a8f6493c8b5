/* mcp.c - tools of an MCP server: its list as rows, its answers as results. */
#include "tool/mcp.h"

#include "base/alloc.h"
#include "base/base64.h"
#include "base/sha256.h"
#include "json/jw.h"
#include "loop/loop.h"
#include "tool/limits.h"
#include "tool/mcp_extra.h"
#include "tool/mcp_int.h"

enum { EXTRAS = 8 };

static struct mcp_tools *mcp_of(struct uar_tools *t)
{
	return (struct mcp_tools *)(void *)t;
}

/* --- rows ----------------------------------------------------------------------------------- */

/* Which program or address answers. */
static void put_server(struct uar_buf *out, const struct uar_mcp_server *s)
{
	uar_buf_printf(out, "\n%s\n%s", s->url ? s->url : "", s->cwd ? s->cwd : "");
	for (const char *const *at = s->argv; at && *at; at++)
		uar_buf_printf(out, "\n%s", *at);
}

/* Names what a person has looked at: another description or schema, and another server behind the
 * name, is another version. */
static uar_str version_of(struct mcp_tools *t, const struct uar_mcp_tool *from)
{
	struct uar_buf all = uar_buf_make(4 * (size_t)UAR_LIMIT_MCP_SCHEMA);
	char hex[UAR_SHA256_TEXT + 1];
	uar_str version = UAR_STR_NONE;

	uar_buf_printf(&all, "%.*s\n%.*s\n%.*s\n", UAR_FMT(from->name), UAR_FMT(from->title),
		       UAR_FMT(from->description));
	uar_buf_add_str(&all, from->input_schema);
	uar_buf_add_char(&all, '\n');
	uar_buf_add_str(&all, from->output_schema);
	put_server(&all, &t->o.setting->server);
	if (!all.err) {
		uar_sha256_hex(uar_buf_str(&all), hex);
		version = uar_arena_str(&t->arena, uar_str_n(hex, 16));
	}
	uar_buf_fini(&all);
	return version;
}

static uar_err fill_row(struct mcp_tools *t, const struct uar_mcp_tool *from, struct uar_tool *row)
{
	const struct uar_mcp_setting *s = t->o.setting;
	bool free_to_call = uar_mcp_setting_is_read_only(s, from->name);

	*row = (struct uar_tool){
		.tool_id = uar_arena_printf(&t->arena, "mcp:%s/%.*s", s->server.name,
					    UAR_FMT(from->name)),
		.name = uar_arena_str(&t->arena, from->name),
		.description = uar_arena_str(&t->arena,
					     from->description.n ? from->description : from->title),
		.version = version_of(t, from),
		.transport = UAR_STR("mcp"),
		.input_schema = uar_arena_str(&t->arena, from->input_schema),
		.output_schema = uar_arena_str(&t->arena, from->output_schema),
		.tags = UAR_STR("[\"mcp\"]"),
		.capabilities = UAR_STR("[\"network\"]"),
		.runtime_owner = uar_arena_printf(&t->arena, "mcp:%s", s->server.name),
		.effect = free_to_call ? UAR_TOOL_READ_ONLY : UAR_TOOL_ONCE,
		.destructive = !free_to_call && from->destructive_hint,
		.ask = !free_to_call && s->ask,
		.may_ask = true,
		.own_of = uar_arena_str(&t->arena, t->o.own_of.n ? t->o.own_of : UAR_STR("")),
		.owner = t->o.owner,
		.timeout_us = UAR_LIMIT_MCP_CALL_MAX_MS * 1000LL,
	};
	return row->tool_id.p && row->version.p && row->name.p && row->description.p &&
			       row->input_schema.p && row->output_schema.p &&
			       row->runtime_owner.p && row->own_of.p
		       ? UAR_OK
		       : UAR_ENOMEM;
}

/* Reading changes nothing, whoever says so. */
static uar_err add_extras(struct mcp_tools *t)
{
	const struct uar_mcp_extra *x;
	uar_err e = UAR_OK;

	for (size_t i = 0; !e && (x = uar_mcp_extra_at(t->client, i)); i++) {
		struct uar_mcp_tool as = { .name = uar_str_c(x->name),
					   .title = UAR_STR(""),
					   .description = uar_str_c(x->doc),
					   .input_schema = uar_str_c(x->input_schema),
					   .output_schema = UAR_STR("") };

		if (!uar_mcp_setting_offers(t->o.setting, as.name))
			continue;
		e = fill_row(t, &as, &t->rows[t->count]);
		t->rows[t->count].effect = UAR_TOOL_READ_ONLY;
		t->rows[t->count].ask = t->rows[t->count].destructive = false;
		t->count += !e;
	}
	return e;
}

/* The registry has copies: rows may be made anew at any time. */
static uar_err list_rows(struct mcp_tools *t)
{
	const struct uar_mcp_tool *tool;
	uar_str reason;
	size_t n = 0;
	uar_err e = UAR_OK;

	t->count = 0;
	uar_arena_reset(&t->arena);
	while (uar_mcp_client_tool(t->client, n))
		n++;
	t->rows = uar_arena_alloc(&t->arena, (n + EXTRAS) * sizeof *t->rows);
	if (!t->rows)
		return UAR_ENOMEM;
	for (size_t i = 0; !e && (tool = uar_mcp_client_tool(t->client, i)); i++) {
		if (!uar_mcp_setting_offers(t->o.setting, tool->name))
			continue;
		e = fill_row(t, tool, &t->rows[t->count]);
		t->count += !e;
	}
	return e || !uar_mcp_client_ready(t->client, &reason) ? e : add_extras(t);
}

static void compare_with_past(struct mcp_tools *t)
{
	const struct uar_tool **turned =
		uar_arena_alloc(&t->arena, (t->count + 1) * sizeof(struct uar_tool *));
	size_t n = 0;

	for (size_t i = 0; turned && i < t->count; i++)
		for (size_t k = 0; k < t->seen_count; k++)
			if (uar_str_eq(t->seen[k].tool_id, t->rows[i].tool_id) &&
			    !uar_str_eq(t->seen[k].version, t->rows[i].version))
				turned[n++] = &t->rows[i];
	if (n && t->o.turned)
		t->o.turned(t->o.ctx, &t->base, turned, n);
}

/* A server that is gone for a while is compared with what it was. */
static void remember(struct mcp_tools *t)
{
	if (!t->count)
		return;
	t->seen_count = 0;
	uar_arena_reset(&t->past);
	t->seen = uar_arena_alloc(&t->past, t->count * sizeof *t->seen);
	for (size_t i = 0; t->seen && i < t->count; i++) {
		struct seen s = { uar_arena_str(&t->past, t->rows[i].tool_id),
				  uar_arena_str(&t->past, t->rows[i].version) };

		if (s.tool_id.p && s.version.p)
			t->seen[t->seen_count++] = s;
	}
}

static void on_changed(void *ctx)
{
	struct mcp_tools *t = ctx;

	if (list_rows(t))
		t->count = 0;
	compare_with_past(t);
	remember(t);
	t->o.changed(t->o.ctx, &t->base);
}

static const struct uar_tool *at(struct uar_tools *base, size_t index)
{
	struct mcp_tools *t = mcp_of(base);

	return index < t->count ? &t->rows[index] : NULL;
}

/* --- results -------------------------------------------------------------------------------- */

enum { PARTS = 64 };

struct outcome {
	struct uar_arena arena;
	struct uar_tool_part parts[PARTS];
	size_t count;
	struct uar_buf text; /* of all text blocks */
};

static void add_text(struct outcome *o, uar_str text)
{
	if (o->text.n)
		uar_buf_add_char(&o->text, '\n');
	uar_buf_add_str(&o->text, text);
}

/* Bytes that cannot be read are named, not shown. */
static void add_bytes(struct outcome *o, enum uar_tool_part_kind kind, uar_str base64,
		      uar_str media_type, uar_str name)
{
	struct uar_tool_part part = { .kind = kind, .media_type = media_type, .name = name };

	if (o->count < PARTS && !uar_base64_decode(&o->arena, base64, &part.bytes))
		o->parts[o->count++] = part;
	else
		add_text(o, UAR_STR("[content that could not be read]"));
}

static void add_resource(struct outcome *o, const struct uar_json *r)
{
	uar_str blob = uar_json_text(r, "blob");

	if (blob.n)
		add_bytes(o, UAR_TOOL_FILE, blob, uar_json_text(r, "mimeType"),
			  uar_json_text(r, "uri"));
	else
		add_text(o, uar_json_text(r, "text"));
}

static void add_block(struct outcome *o, const struct uar_json *block)
{
	uar_str type = uar_json_text(block, "type");

	if (uar_str_is(type, "text")) {
		add_text(o, uar_json_text(block, "text"));
	} else if (uar_str_is(type, "image")) {
		add_bytes(o, UAR_TOOL_IMAGE, uar_json_text(block, "data"),
			  uar_json_text(block, "mimeType"), UAR_STR_NONE);
	} else if (uar_str_is(type, "audio")) {
		add_bytes(o, UAR_TOOL_FILE, uar_json_text(block, "data"),
			  uar_json_text(block, "mimeType"), UAR_STR_NONE);
	} else if (uar_str_is(type, "resource")) {
		add_resource(o, uar_json_get(block, UAR_STR("resource")));
	} else if (uar_str_is(type, "resource_link")) {
		add_text(o, uar_json_text(block, "uri"));
	} else {
		add_text(o, block->text); /* of a kind that is not known here */
	}
}

static void put_part(struct uar_jw *w, const struct uar_tool_part *p)
{
	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "type", p->kind == UAR_TOOL_IMAGE ? "image" : "file");
	uar_jw_str(w, "media_type", p->media_type);
	uar_jw_int(w, "bytes", (int64_t)p->bytes.n);
	if (p->name.n)
		uar_jw_str(w, "name", p->name);
	uar_jw_close(w);
}

/* Structured content is the output; otherwise the text is, and what came besides is named. */
static uar_err write_output(const struct uar_json *structured, const struct outcome *o,
			    struct uar_buf *out)
{
	struct uar_jw w = uar_jw_begin(out);

	if (structured) {
		uar_jw_tree(&w, NULL, structured);
		return uar_jw_end(&w);
	}
	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "text", uar_buf_str(&o->text));
	if (o->count) {
		uar_jw_arr(&w, "parts");
		for (size_t i = 0; i < o->count; i++)
			put_part(&w, &o->parts[i]);
		uar_jw_close(&w);
	}
	uar_jw_close(&w);
	return uar_jw_end(&w);
}

static void free_call(struct mcp_tool_call *k)
{
	if (k->watch)
		mcp_watch_end(k);
	uar_unpost(uar_loop_sched(k->t->o.loop), &k->next);
	uar_free(k);
}

void mcp_tell(struct mcp_tool_call *k, const struct uar_tool_result *r)
{
	struct uar_tool_events events = k->events;
	struct uar_tool_result shown = *r;
	struct mcp_hidden hidden;

	mcp_hide_keys(&k->t->keys, &hidden, &shown);
	free_call(k);
	events.done(events.ctx, &shown);
	mcp_hidden_fini(&hidden);
}

static void tell_result(struct mcp_tool_call *k, const struct uar_json *result)
{
	const struct uar_json *content = uar_json_get(result, UAR_STR("content"));
	const struct uar_json *structured = uar_json_get(result, UAR_STR("structuredContent"));
	struct outcome *o = uar_zalloc(sizeof *o);
	struct uar_buf out = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	struct uar_tool_result r = { .category = UAR_STR("execution") };

	if (!o) {
		r.message = uar_str_c(uar_err_text(UAR_ENOMEM));
		mcp_tell(k, &r);
		return;
	}
	o->text = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	for (const struct uar_json *b = content && content->kind == UAR_JSON_ARRAY ? content->first
										   : NULL;
	     b; b = b->next)
		add_block(o, b);
	r.ok = !uar_json_bool(uar_json_get(result, UAR_STR("isError")), false) &&
	       !write_output(structured, o, &out);
	r.output = r.ok ? uar_buf_str(&out) : UAR_STR_NONE;
	r.parts = o->parts;
	r.part_count = r.ok ? o->count : 0;
	r.message = o->text.n ? uar_buf_str(&o->text) : UAR_STR("the tool failed");
	mcp_tell(k, &r);
	uar_buf_fini(&out);
	uar_buf_fini(&o->text);
	uar_arena_fini(&o->arena);
	uar_free(o);
}

/* What was listed or read, as the server wrote it. */
static void tell_extra(struct mcp_tool_call *k, const struct uar_json *result)
{
	struct uar_buf out = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	struct uar_tool_result r = { .category = UAR_STR("execution") };

	uar_json_write(&out, result);
	r.ok = !out.err;
	r.output = uar_buf_str(&out);
	r.message = UAR_STR("what the server said is too long");
	mcp_tell(k, &r);
	uar_buf_fini(&out);
}

/* --- calls ---------------------------------------------------------------------------------- */

const char *mcp_category_of(const struct uar_mcp_call_result *r)
{
	if (r->err == UAR_ETIMEOUT)
		return "timeout";
	if (r->err == UAR_ECANCELED)
		return "cancelled";
	return r->code == UAR_MCP_INVALID_PARAMS ? "value_invalid" : "dependency";
}

static void on_done(void *ctx, const struct uar_mcp_call_result *r)
{
	struct mcp_tool_call *k = ctx;
	struct uar_tool_result failed = { .category = uar_str_c(mcp_category_of(r)),
					  .message = r->reason.n
							     ? r->reason
							     : uar_str_c(uar_err_text(r->err)) };

	if (r->err)
		mcp_tell(k, &failed);
	else if (k->extra)
		tell_extra(k, r->result);
	else if (uar_str_is(uar_json_str(uar_json_get(r->result, UAR_STR("resultType")),
					 UAR_STR("complete")),
			    "complete"))
		tell_result(k, r->result);
	else {
		failed.message = UAR_STR("the server asks for input, which is not offered here");
		mcp_tell(k, &failed);
	}
}

static void on_progress(void *ctx, const struct uar_json *params)
{
	struct mcp_tool_call *k = ctx;
	struct uar_buf shown = uar_buf_make(4 * params->text.n + 64);

	if (k->events.progress) {
		uar_secrets_hide(&k->t->keys, params->text, &shown);
		if (!shown.err)
			k->events.progress(k->events.ctx, uar_buf_str(&shown));
	}
	uar_buf_fini(&shown);
}

static uar_err request_extra(struct mcp_tools *t, struct mcp_tool_call *k, uar_str input,
			     const struct uar_mcp_call_events *events)
{
	struct uar_mcp_request r = { .method = k->extra->method,
				     .name = UAR_STR(""),
				     .params = input };
	const struct uar_json *j = NULL;
	struct uar_arena arena = { 0 };
	uar_err e = uar_json_parse(input, NULL, &arena, &j, NULL);

	if (!e && k->extra->named)
		r.name = uar_json_text(j, k->extra->named);
	if (!e)
		e = uar_mcp_client_request(t->client, &r, events, &k->call);
	uar_arena_fini(&arena);
	return e;
}

static uar_err start(struct uar_tools *base, const struct uar_tool_request *r,
		     const struct uar_tool_events *events, struct uar_tool_call **out,
		     struct uar_error *error)
{
	struct mcp_tools *t = mcp_of(base);
	struct mcp_tool_call *k = uar_zalloc(sizeof *k);
	struct uar_mcp_call_events inner = { .progress = on_progress,
					     .done = on_done,
					     .ctx = k,
					     .asked = events->asked ? mcp_on_asked : NULL,
					     .unasked = mcp_on_unasked };
	uar_str reason = UAR_STR_NONE;
	uar_err e;

	if (!k)
		return UAR_ENOMEM;
	*k = (struct mcp_tool_call){ .t = t, .events = *events, .next.fn = mcp_ask_next };
	k->extra = uar_mcp_extra_find(r->tool->name);
	if (k->extra && !k->extra->method)
		e = mcp_watch_begin(k, r->input);
	else
		e = k->extra ? request_extra(t, k, r->input, &inner)
			     : uar_mcp_client_call(t->client, r->tool->name, r->input, &inner,
						   &k->call);
	if (e) {
		uar_mcp_client_ready(t->client, &reason);
		free_call(k);
		return uar_error_set(error, e, "the MCP server \"%s\" is not connected: %.*s",
				     t->o.setting->server.name, UAR_FMT(reason));
	}
	*out = (struct uar_tool_call *)(void *)k;
	return UAR_OK;
}

static void cancel(struct uar_tools *base, struct uar_tool_call *call)
{
	struct mcp_tool_call *k = (struct mcp_tool_call *)(void *)call;

	(void)base;
	if (!k->watch)
		uar_mcp_call_cancel(k->call);
	free_call(k);
}

/* What the server has heard may have happened: it is told, and `done` follows. */
static bool withdraw(struct uar_tools *base, struct uar_tool_call *call)
{
	struct mcp_tool_call *k = (struct mcp_tool_call *)(void *)call;

	(void)base;
	if (!k->watch) {
		uar_mcp_call_abandon(k->call);
		return false;
	}
	free_call(k); /* it only looks on */
	return true;
}

/* --- life ----------------------------------------------------------------------------------- */

static void destroy(struct uar_tools *base)
{
	struct mcp_tools *t = mcp_of(base);

	uar_mcp_client_destroy(t->client);
	uar_arena_fini(&t->arena);
	uar_arena_fini(&t->past);
	uar_secrets_used_fini(&t->keys);
	uar_free(t);
}

static void keep_tokens(void *ctx, uar_str tokens)
{
	struct mcp_tools *t = ctx;

	if (t->o.keep)
		t->o.keep(t->o.ctx, &t->base, tokens);
}

uar_err uar_mcp_tools_create(const struct uar_mcp_tools_options *o, struct uar_tools **out)
{
	static const struct uar_tools_ops ops = { .abi = 1,
						  .size = sizeof ops,
						  .destroy = destroy,
						  .at = at,
						  .start = start,
						  .cancel = cancel,
						  .withdraw = withdraw,
						  .answer = mcp_answer };
	struct mcp_tools *t = uar_zalloc(sizeof *t);
	struct uar_mcp_client_options c = { .loop = o->loop,
					    .http = o->http,
					    .server = o->setting->server,
					    .asks = true,
					    .samples = true,
					    .redirect_url = o->redirect_url,
					    .tokens = o->tokens,
					    .changed = on_changed,
					    .news = { .tokens = keep_tokens,
						      .updated = mcp_on_updated,
						      .unwatched = mcp_on_unwatched },
					    .ctx = t };
	uar_err e;

	if (!t)
		return UAR_ENOMEM;
	t->base.ops = &ops;
	uar_list_init(&t->watches);
	t->o = *o;
	mcp_keys_note(&o->setting->server, &t->keys);
	e = t->keys.values.err ? UAR_ENOMEM : uar_mcp_client_create(&c, &t->client);
	if (e) {
		uar_secrets_used_fini(&t->keys);
		uar_free(t);
		return e;
	}
	*out = &t->base;
	return UAR_OK;
}

struct uar_mcp_client *uar_mcp_tools_client(struct uar_tools *source)
{
	return mcp_of(source)->client;
}

const struct uar_mcp_setting *uar_mcp_tools_setting(struct uar_tools *source)
{
	return mcp_of(source)->o.setting;
}
