/* recall.c - passages for a prompt, numbered, with where each came from. */
#include "work/recall.h"

#include "event/sizes.h"
#include "memory/know.h"
#include "work/definitions.h"

enum { SNIPPET = 400 };

static const struct uar_json *member(const struct uar_json *j, const char *key)
{
	return uar_json_get(j, uar_str_c(key));
}

static uar_err read_collections(const struct uar_json *list, struct uar_know_search *s)
{
	size_t n = list && list->kind == UAR_JSON_ARRAY ? list->count : 0;
	uar_str *to = uar_arena_alloc(&s->job.arena, (n + 1) * sizeof *to);

	if (!to)
		return UAR_ENOMEM;
	s->q.collections = to;
	for (const struct uar_json *j = uar_json_at(list, 0); j; j = j->next) {
		*to = uar_arena_str(&s->job.arena, uar_json_str(j, UAR_STR("")));
		if (!to->p)
			return UAR_ENOMEM;
		to++;
		s->q.collection_count++;
	}
	return UAR_OK;
}

static void write_source(struct uar_jw *w, const struct uar_kb_hit *h, size_t number)
{
	char url[UAR_KB_PATH];

	uar_kb_passage_path(h, url);
	uar_jw_obj(w, NULL);
	uar_jw_str(w, "title", h->title);
	uar_jw_cstr(w, "url", url);
	uar_jw_str(w, "snippet", uar_str_utf8_prefix(h->text, SNIPPET));
	uar_jw_int(w, "number", (int64_t)number);
	uar_jw_str(w, "source", h->source);
	uar_jw_int(w, "page", h->page);
	uar_jw_int(w, "line", h->line);
	uar_jw_double(w, "score", h->score);
	uar_jw_close(w);
}

static void write_item(struct uar_jw *w, const struct uar_kb_hit *h, size_t number)
{
	char key[32];

	snprintf(key, sizeof key, "[%zu]", number);
	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "key", key);
	uar_jw_str(w, "value", uar_str_utf8_prefix(h->text, SNIPPET));
	uar_jw_str(w, "source", h->document);
	uar_jw_close(w);
}

static uar_err write_facts(struct recall *c, const struct uar_kb_hits *hits)
{
	struct uar_jw w = uar_jw_begin(&c->citations), m = uar_jw_begin(&c->recalled);
	uar_err e;

	uar_jw_arr(&w, NULL);
	uar_jw_arr(&m, NULL);
	for (size_t i = 0; i < c->count; i++) {
		write_source(&w, &hits->at[i], i + 1);
		write_item(&m, &hits->at[i], i + 1);
	}
	uar_jw_close(&w);
	uar_jw_close(&m);
	e = uar_jw_end(&w);
	return e ? e : uar_jw_end(&m);
}

/* As many as the prompt has room for. */
static uar_err take_hits(struct recall *c, const struct uar_kb_hits *hits)
{
	struct uar_arena *arena = &c->search->job.arena;
	size_t bytes = 0;

	c->pieces = uar_arena_alloc(arena, (hits->n + 1) * sizeof *c->pieces);
	if (!c->pieces)
		return UAR_ENOMEM;
	for (size_t i = 0; i < hits->n; i++) {
		const struct uar_kb_hit *h = &hits->at[i];

		bytes += h->text.n;
		if (i && bytes > UAR_LIMIT_KB_RECALL_BYTES)
			break;
		c->pieces[i].text = h->text;
		c->pieces[i].name =
			uar_arena_printf(arena, "[%zu] %.*s, page %lld, line %lld", i + 1,
					 UAR_FMT(h->title), (long long)h->page, (long long)h->line);
		if (!c->pieces[i].name.p)
			return UAR_ENOMEM;
		c->count++;
	}
	return c->count ? write_facts(c, hits) : UAR_OK;
}

static void searched(struct uar_know_job *j)
{
	struct recall *c = j->ctx;
	uar_err e = j->err;

	c->waiting = false;
	c->cite |= c->search->cite;
	if (!e)
		e = take_hits(c, &c->search->hits);
	c->done(c->ctx, e, j->error.text[0] ? j->error.text : uar_err_text(e));
}

static uar_err fill_query(struct live_run *r, const struct uar_json *memory, uar_str message,
			  struct uar_know_search *s)
{
	const struct uar_json *kb = member(memory, "kb"), *model = member(memory, "embedding");
	struct uar_arena *arena = &s->job.arena;
	uar_str *const owner[] = { &s->q.owner.tenant, &s->q.owner.workspace, &s->q.owner.user };

	s->q = (struct uar_kb_query){
		.owner = rt_agg_session(rt_agg(r))->owner,
		.text = uar_arena_str(arena, uar_str_utf8_prefix(message, UAR_LIMIT_KB_QUERY)),
		.k = (size_t)uar_json_int(member(kb, "top_k"), 0),
	};
	s->by_policy = true;
	if (!uar_arena_strs(arena, owner, ARRAY_LEN(owner)))
		return UAR_ENOMEM; /* a worker reads it, perhaps after the run */
	if (model)
		s->q.only_model = uar_arena_printf(arena, "%.*s/%.*s",
						   UAR_FMT(uar_json_text(model, "provider")),
						   UAR_FMT(uar_json_text(model, "model")));
	return s->q.text.p ? read_collections(member(kb, "collections"), s) : UAR_ENOMEM;
}

uar_err rt_recall_begin(struct live_run *r, uar_str message, struct recall *c)
{
	const struct uar_definition *d = rt_definition(r);
	const struct uar_json *memory = d ? member(d->json, "memory") : NULL;
	const struct uar_json *kb = member(memory, "kb");
	struct uar_knowledge *k = rt_work(r)->o.knowledge;
	uar_err e;

	rt_recall_release(c);
	if (!kb || !k || !uar_json_bool(member(kb, "enabled"), true) || !member(kb, "collections"))
		return UAR_ESKIP;
	c->cite = uar_json_bool(member(kb, "citation_required"), false);
	c->recalled = uar_buf_make(UAR_LIMIT_EVENT_BYTES / 2);
	c->citations = uar_buf_make(UAR_LIMIT_EVENT_BYTES / 2);
	c->search = uar_know_job_new(k, sizeof *c->search);
	if (!c->search)
		return UAR_EBUSY;
	e = fill_query(r, memory, message, c->search);
	c->search->job.ctx = c;
	c->search->job.done = searched;
	if (e)
		uar_know_free(&c->search->job);
	else
		e = uar_know_search_begin(c->search);
	if (e)
		c->search = NULL;
	c->waiting = !e;
	return e;
}

void rt_recall_release(struct recall *c)
{
	if (c->search && c->waiting)
		uar_know_cancel(&c->search->job);
	else if (c->search)
		uar_know_free(&c->search->job);
	c->search = NULL;
	c->waiting = false;
	c->pieces = NULL;
	uar_buf_fini(&c->recalled);
	uar_buf_fini(&c->citations);
}

bool rt_recall_is_cited(const struct recall *c, uar_str answer)
{
	for (size_t i = 1; i <= c->count; i++) {
		char mark[24];

		snprintf(mark, sizeof mark, "[%zu]", i);
		if (answer.n && memmem(answer.p, answer.n, mark, strlen(mark)))
			return true;
	}
	return false;
}
