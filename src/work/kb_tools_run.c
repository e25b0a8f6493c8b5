/* kb_tools_run.c - what each tool over knowledge does, and what it says. */
#include "memory/media.h"
#include "work/kb_tools_int.h"

static const struct uar_json *member(const struct uar_json *j, const char *key)
{
	return uar_json_get(j, uar_str_c(key));
}

static uar_str text_of(const struct uar_tool_call *c, const char *key)
{
	return uar_json_text(c->input, key);
}

static struct uar_tool_call *call_of(struct uar_know_job *j)
{
	return UAR_OWNER(j, struct uar_tool_call, search.job);
}

/* Answers with the error if there is one; then the call is gone. */
static bool failed(struct uar_tool_call *c)
{
	struct uar_error error = c->search.job.error;
	uar_err e = c->search.job.err;

	if (e)
		kb_tool_fail(c, e, &error);
	return e != UAR_OK;
}

/* May the caller's agent see it? One whose definition names no collections sees its owner's. */
static bool may_see(const struct uar_tool_call *c, uar_str collection)
{
	const struct uar_json *kb = member(c->caller.memory, "kb");
	const struct uar_json *list = member(kb, "collections");

	if (!uar_json_bool(member(kb, "enabled"), true))
		return false;
	for (const struct uar_json *j = uar_json_at(list, 0); j; j = j->next)
		if (uar_str_eq(uar_json_str(j, UAR_STR("")), collection))
			return true;
	return !list;
}

static uar_err set_place(struct uar_tool_call *c, struct uar_error *error)
{
	c->place = (struct uar_kb_place){ c->caller.owner, text_of(c, "collection") };
	if (may_see(c, c->place.collection))
		return UAR_OK;
	uar_error_where(error, "/collection");
	return uar_error_set(error, UAR_EFORBIDDEN, "the agent may not use this collection");
}

/* --- kb.search ------------------------------------------------------------------------------ */

static void put_passage(struct uar_jw *w, const struct uar_kb_hit *h)
{
	char url[UAR_KB_PATH];

	uar_kb_passage_path(h, url);
	uar_jw_obj(w, NULL);
	uar_jw_str(w, "collection", h->collection);
	uar_jw_str(w, "document_id", h->document);
	uar_jw_str(w, "title", h->title);
	uar_jw_str(w, "heading", h->heading);
	uar_jw_str(w, "source", h->source);
	uar_jw_str(w, "text", h->text);
	uar_jw_int(w, "page", h->page);
	uar_jw_int(w, "line", h->line);
	uar_jw_double(w, "score", h->score);
	uar_jw_cstr(w, "url", url);
	uar_jw_close(w);
}

static void searched(struct uar_know_job *j)
{
	struct uar_tool_call *c = call_of(j);
	struct uar_jw w = uar_jw_begin(&c->out);

	if (failed(c))
		return;
	uar_jw_obj(&w, NULL);
	uar_jw_arr(&w, "passages");
	for (size_t i = 0; i < c->search.hits.n; i++)
		put_passage(&w, &c->search.hits.at[i]);
	uar_jw_close(&w);
	if (c->search.hits.partial)
		uar_jw_bool(&w, "partial", true);
	uar_jw_close(&w);
	kb_tool_end(c, &w);
}

/* Those that are asked for and may be seen: a wrong name finds nothing. */
static uar_err take_collections(struct uar_tool_call *c)
{
	const struct uar_json *asked = member(c->input, "collections");
	const struct uar_json *list =
		asked ? asked : member(member(c->caller.memory, "kb"), "collections");
	uar_str *to =
		uar_arena_alloc(&c->search.job.arena, ((list ? list->count : 0) + 1) * sizeof *to);

	if (!to)
		return UAR_ENOMEM;
	c->search.q.collections = to;
	for (const struct uar_json *j = uar_json_at(list, 0); j; j = j->next) {
		uar_str name = uar_json_str(j, UAR_STR(""));

		if (may_see(c, name))
			to[c->search.q.collection_count++] = name;
	}
	return UAR_OK;
}

uar_err kb_tool_search(struct uar_tool_call *c, struct uar_error *error)
{
	const struct uar_json *mode = member(c->input, "mode");

	if (!member(c->input, "collections") &&
	    !member(member(c->caller.memory, "kb"), "collections"))
		return uar_error_set(error, UAR_EINVALID,
				     "name `collections`: the agent's definition names none");
	c->search.q = (struct uar_kb_query){
		.owner = c->caller.owner,
		.text = text_of(c, "query"),
		.k = (size_t)uar_json_int(member(c->input, "k"), 0),
	};
	c->search.by_policy = true;
	c->search.mode_given = mode != NULL;
	for (int i = 0; mode && i < UAR_KB_MODE_COUNT; i++)
		if (uar_str_is(mode->text, uar_kb_mode_names[i]))
			c->search.q.mode = (enum uar_kb_mode)i;
	c->search.job.done = searched;
	c->searches = true;
	return take_collections(c);
}

/* --- kb.read -------------------------------------------------------------------------------- */

static void run_read(struct uar_kb *kb, struct uar_know_job *j)
{
	struct uar_tool_call *c = call_of(j);
	struct uar_kb_reading r = { c->place, .document = text_of(c, "document_id"),
				    .from = uar_json_int(member(c->input, "from"), 0),
				    .by_policy = true };

	j->err = uar_kb_passages(kb, &r, &j->arena, &c->search.hits, &j->error);
	if (!j->err && !c->search.hits.n)
		j->err = uar_error_set(&j->error, UAR_ENOTFOUND,
				       "there is no such document, or no passage from there on");
}

static void was_read(struct uar_know_job *j)
{
	struct uar_tool_call *c = call_of(j);
	const struct uar_kb_hits *all = &c->search.hits;
	struct uar_jw w = uar_jw_begin(&c->out);
	size_t bytes = 0, n = 0;

	if (failed(c))
		return;
	uar_jw_obj(&w, NULL);
	uar_jw_arr(&w, "passages");
	for (; n < all->n && bytes < UAR_LIMIT_KB_RECALL_BYTES; n++) {
		put_passage(&w, &all->at[n]);
		bytes += all->at[n].text.n;
	}
	uar_jw_close(&w);
	if (n < all->n || n == UAR_LIMIT_KB_PAGE)
		uar_jw_int(&w, "next", all->at[n - 1].position + 1);
	uar_jw_close(&w);
	kb_tool_end(c, &w);
}

uar_err kb_tool_read(struct uar_tool_call *c, struct uar_error *error)
{
	c->search.job.run = run_read;
	c->search.job.done = was_read;
	return set_place(c, error);
}

/* --- kb.ingest ------------------------------------------------------------------------------ */

static void run_ingest(struct uar_kb *kb, struct uar_know_job *j)
{
	struct uar_tool_call *c = call_of(j);

	c->document.updated_us = uar_know_now(j->k);
	j->err = uar_kb_put(kb, &c->caller.owner, &c->document, &c->result, &j->error);
}

static void ingested(struct uar_know_job *j)
{
	static const char *const changes[] = { "created", "updated", "unchanged" };
	struct uar_tool_call *c = call_of(j);
	struct uar_jw w = uar_jw_begin(&c->out);

	if (failed(c))
		return;
	if (!c->result.indexed)
		uar_know_wake(j->k);
	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "change", changes[c->result.change]);
	uar_jw_cstr(&w, "state", c->result.indexed ? "ready" : "pending");
	uar_jw_int(&w, "passages", (int64_t)c->result.chunks);
	uar_jw_close(&w);
	kb_tool_end(c, &w);
}

uar_err kb_tool_ingest(struct uar_tool_call *c, struct uar_error *error)
{
	struct uar_arena *arena = &c->search.job.arena;
	uar_str url = text_of(c, "url"), title = text_of(c, "title");
	uar_err e = set_place(c, error);

	c->document = (struct uar_kb_document){
		.collection = c->place.collection,
		.id = text_of(c, "document_id"),
		.title = title.n ? title : text_of(c, "document_id"),
		.source = url.n ? url : uar_arena_printf(arena, "run:%.*s", UAR_FMT(c->run_id)),
		.media_type = text_of(c, "media_type"),
		.bytes = text_of(c, "text"),
	};
	if (!c->document.media_type.n && !url.n)
		c->document.media_type = uar_media_type_of(c->document.id);
	c->url = url.n ? uar_arena_str(arena, url) : UAR_STR_NONE;
	c->search.job.run = run_ingest;
	c->search.job.done = ingested;
	return e ? e : c->document.source.p && (c->url.p || !url.n) ? UAR_OK : UAR_ENOMEM;
}

/* --- kb.graph, kb.relate -------------------------------------------------------------------- */

static void run_graph(struct uar_kb *kb, struct uar_know_job *j)
{
	struct uar_tool_call *c = call_of(j);
	struct uar_kb_walk walk = { c->place, text_of(c, "entity"),
				    (int)uar_json_int(member(c->input, "depth"), 1), true };

	j->err = uar_kb_neighbours(kb, &walk, &j->arena, &c->relations, &j->error);
}

static void walked(struct uar_know_job *j)
{
	struct uar_tool_call *c = call_of(j);
	struct uar_jw w = uar_jw_begin(&c->out);

	if (failed(c))
		return;
	uar_jw_obj(&w, NULL);
	uar_jw_arr(&w, "relations");
	for (size_t i = 0; i < c->relations.n; i++) {
		const struct uar_kb_relation *r = &c->relations.at[i];

		uar_jw_obj(&w, NULL);
		uar_jw_str(&w, "from", r->from);
		uar_jw_str(&w, "kind", r->kind);
		uar_jw_str(&w, "to", r->to);
		uar_jw_str(&w, "document_id", r->document);
		uar_jw_str(&w, "by", r->by);
		uar_jw_close(&w);
	}
	uar_jw_close(&w);
	uar_jw_close(&w);
	kb_tool_end(c, &w);
}

uar_err kb_tool_graph(struct uar_tool_call *c, struct uar_error *error)
{
	c->search.job.run = run_graph;
	c->search.job.done = walked;
	return set_place(c, error);
}

static void run_relate(struct uar_kb *kb, struct uar_know_job *j)
{
	struct uar_tool_call *c = call_of(j);

	j->err = uar_kb_relate(kb, &c->place, &c->relations, &j->error);
}

static void related(struct uar_know_job *j)
{
	struct uar_tool_call *c = call_of(j);
	struct uar_jw w = uar_jw_begin(&c->out);

	if (failed(c))
		return;
	uar_jw_obj(&w, NULL);
	uar_jw_int(&w, "related", (int64_t)c->relations.n);
	uar_jw_close(&w);
	kb_tool_end(c, &w);
}

uar_err kb_tool_relate(struct uar_tool_call *c, struct uar_error *error)
{
	const struct uar_json *list = member(c->input, "relations");
	struct uar_kb_relation *to =
		uar_arena_alloc(&c->search.job.arena, list->count * sizeof *to);
	uar_str by = uar_arena_printf(&c->search.job.arena, "run:%.*s", UAR_FMT(c->run_id));

	if (!to || !by.p)
		return UAR_ENOMEM;
	c->relations.at = to;
	for (const struct uar_json *j = uar_json_at(list, 0); j; j = j->next)
		to[c->relations.n++] = (struct uar_kb_relation){
			.from = uar_json_text(j, "from"),
			.kind = uar_json_text(j, "kind"),
			.to = uar_json_text(j, "to"),
			.document = uar_json_text(j, "document_id"),
			.by = by,
			.at_us = uar_know_now(c->search.job.k),
		};
	c->search.job.run = run_relate;
	c->search.job.done = related;
	return set_place(c, error);
}

/* --- memory.* ------------------------------------------------------------------------------- */

/* What `scope` of the input means for the caller. */
static uar_err set_scope(struct uar_tool_call *c, struct uar_error *error)
{
	uar_str scope = uar_json_str(member(c->input, "scope"), UAR_STR("user"));
	uar_str id = uar_str_is(scope, "conversation") ? c->caller.conversation_id
		     : uar_str_is(scope, "agent")      ? c->caller.agent_id
						       : UAR_STR("");

	if (!id.n && !uar_str_is(scope, "user")) {
		uar_error_where(error, "/scope");
		return uar_error_set(error, UAR_EINVALID, "the call belongs to no %.*s",
				     UAR_FMT(scope));
	}
	c->ask = (struct uar_kb_recall){ .owner = c->caller.owner,
					 .scope = scope,
					 .scope_id = id,
					 .key = text_of(c, "key"),
					 .now_us = uar_know_now(c->search.job.k),
					 .arena = &c->search.job.arena };
	return UAR_OK;
}

static void run_get(struct uar_kb *kb, struct uar_know_job *j)
{
	struct uar_tool_call *c = call_of(j);

	j->err = uar_kb_recall(kb, &c->ask, &c->memories, &j->error);
}

static void got(struct uar_know_job *j)
{
	struct uar_tool_call *c = call_of(j);
	struct uar_jw w = uar_jw_begin(&c->out);

	if (failed(c))
		return;
	uar_jw_obj(&w, NULL);
	uar_jw_arr(&w, "memories");
	for (size_t i = 0; i < c->memories.n; i++) {
		const struct uar_kb_memory *m = &c->memories.at[i];

		uar_jw_obj(&w, NULL);
		uar_jw_str(&w, "key", m->key);
		uar_jw_str(&w, "value", m->value);
		uar_jw_time(&w, "updated_at", m->updated_us);
		if (m->expires_us)
			uar_jw_time(&w, "expires_at", m->expires_us);
		uar_jw_close(&w);
	}
	uar_jw_close(&w);
	uar_jw_close(&w);
	kb_tool_end(c, &w);
}

uar_err kb_tool_get(struct uar_tool_call *c, struct uar_error *error)
{
	c->search.job.run = run_get;
	c->search.job.done = got;
	return set_scope(c, error);
}

static void run_put(struct uar_kb *kb, struct uar_know_job *j)
{
	struct uar_tool_call *c = call_of(j);

	j->err = uar_kb_remember(kb, &c->caller.owner, &c->memory, &j->error);
}

static void was_put(struct uar_know_job *j)
{
	struct uar_tool_call *c = call_of(j);
	struct uar_jw w = uar_jw_begin(&c->out);

	if (failed(c))
		return;
	uar_jw_obj(&w, NULL);
	uar_jw_bool(&w, "remembered", true);
	if (c->memory.expires_us)
		uar_jw_time(&w, "expires_at", c->memory.expires_us);
	uar_jw_close(&w);
	kb_tool_end(c, &w);
}

/* The shorter one of what is asked for and what the definition allows; 0: for ever. */
static int64_t expiry(const struct uar_tool_call *c)
{
	int64_t asked = uar_json_int(member(c->input, "ttl_seconds"), 0);
	int64_t most = uar_json_int(member(c->caller.memory, "retention_days"), 0) * 86400;
	int64_t s = asked && (!most || asked < most) ? asked : most;

	return s ? c->ask.now_us + s * 1000000 : 0;
}

uar_err kb_tool_put(struct uar_tool_call *c, struct uar_error *error)
{
	uar_err e = set_scope(c, error);

	c->memory = (struct uar_kb_memory){
		.scope = c->ask.scope,
		.scope_id = c->ask.scope_id,
		.key = c->ask.key,
		.value = text_of(c, "value"),
		.source = c->run_id,
		.updated_us = c->ask.now_us,
		.expires_us = e ? 0 : expiry(c),
	};
	c->search.job.run = run_put;
	c->search.job.done = was_put;
	return e;
}

static void run_forget(struct uar_kb *kb, struct uar_know_job *j)
{
	struct uar_tool_call *c = call_of(j);

	j->err = uar_kb_forget(kb, &c->ask, &c->count, &j->error);
}

static void forgotten(struct uar_know_job *j)
{
	struct uar_tool_call *c = call_of(j);
	struct uar_jw w = uar_jw_begin(&c->out);

	if (failed(c))
		return;
	uar_jw_obj(&w, NULL);
	uar_jw_int(&w, "forgotten", c->count);
	uar_jw_close(&w);
	kb_tool_end(c, &w);
}

uar_err kb_tool_forget(struct uar_tool_call *c, struct uar_error *error)
{
	c->search.job.run = run_forget;
	c->search.job.done = forgotten;
	return set_scope(c, error);
}
