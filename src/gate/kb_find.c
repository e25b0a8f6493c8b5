/* kb_find.c - documents out, searches, relations, memories, the state of the index. */
#include "gate/kb_int.h"
#include "gate/limits.h"

/* --- documents ------------------------------------------------------------------------------ */

struct kb_list {
	struct kb_call x;
	struct uar_kb_page page;
	struct uar_kb_documents list;
	struct uar_kb_reading reading; /* of passages of one document */
	struct uar_kb_hits passages;
	bool one;  /* document alone */
	bool read; /* with passages: one that is named, or all */
	bool all;
};

static struct kb_list *list_of(struct uar_know_job *j)
{
	return (struct kb_list *)(void *)j;
}

static void run_list(struct uar_kb *kb, struct uar_know_job *j)
{
	struct kb_list *l = list_of(j);

	l->page.arena = &j->arena;
	j->err = uar_kb_list(kb, &l->page, &l->list, &j->error);
	if (!j->err && l->one && !l->list.n)
		j->err = uar_error_set(&j->error, UAR_ENOTFOUND, "there is no such document");
	if (j->err || !l->read)
		return;
	j->err = uar_kb_passages(kb, &l->reading, &j->arena, &l->passages, &j->error);
	if (!j->err && !l->all && !l->passages.n)
		j->err = uar_error_set(&j->error, UAR_ENOTFOUND,
				       "the document has no such passage: it was changed since");
}

static void put_document(struct uar_jw *w, const struct uar_kb_document *d)
{
	uar_jw_str(w, "document_id", d->id);
	uar_jw_str(w, "collection", d->collection);
	uar_jw_str(w, "title", d->title);
	uar_jw_str(w, "source", d->source);
	uar_jw_str(w, "media_type", d->media_type);
	uar_jw_str(w, "labels", d->labels);
	uar_jw_int(w, "bytes", d->size);
	uar_jw_int(w, "passages", d->chunks);
	uar_jw_cstr(w, "sha256", d->sha256);
	uar_jw_cstr(w, "state", uar_kb_state_names[d->state]);
	if (d->error.n)
		uar_jw_str(w, "error", d->error);
	uar_jw_time(w, "updated_at", d->updated_us);
}

static void put_hit(struct uar_jw *w, const char *key, const struct uar_kb_hit *h)
{
	uar_jw_obj(w, key);
	uar_jw_int(w, "chunk", h->chunk);
	uar_jw_str(w, "sha256", h->sha256);
	uar_jw_int(w, "position", h->position);
	uar_jw_str(w, "collection", h->collection);
	uar_jw_str(w, "document_id", h->document);
	uar_jw_str(w, "title", h->title);
	uar_jw_str(w, "source", h->source);
	uar_jw_str(w, "heading", h->heading);
	uar_jw_int(w, "page", h->page);
	uar_jw_int(w, "line", h->line);
	uar_jw_str(w, "text", h->text);
	uar_jw_double(w, "score", h->score);
	uar_jw_double(w, "keyword", h->keyword);
	uar_jw_double(w, "similarity", h->similarity);
	uar_jw_bool(w, "related", h->related);
	uar_jw_close(w);
}

static void put_passages(struct uar_jw *w, const struct uar_kb_hits *list)
{
	uar_jw_arr(w, "passages");
	for (size_t i = 0; i < list->n; i++)
		put_hit(w, NULL, &list->at[i]);
	uar_jw_close(w);
}

static void listed(struct uar_know_job *j)
{
	struct kb_list *l = list_of(j);
	struct uar_buf b = uar_buf_make(UAR_LIMIT_KB_ANSWER);
	struct uar_jw w = uar_jw_begin(&b);

	if (gate_kb_failed(&l->x))
		return;
	uar_jw_obj(&w, NULL);
	if (l->all) {
		uar_jw_str(&w, "document_id", l->reading.document);
		put_passages(&w, &l->passages);
		uar_jw_bool(&w, "more", l->passages.n == UAR_LIMIT_KB_PAGE);
	} else if (l->one) {
		put_document(&w, &l->list.at[0]);
		if (l->read)
			put_hit(&w, "passage", &l->passages.at[0]);
	} else {
		uar_jw_arr(&w, "documents");
		for (size_t i = 0; i < l->list.n; i++) {
			uar_jw_obj(&w, NULL);
			put_document(&w, &l->list.at[i]);
			uar_jw_close(&w);
		}
		uar_jw_close(&w);
		uar_jw_bool(&w, "more", l->list.n == UAR_LIMIT_KB_PAGE);
	}
	uar_jw_close(&w);
	gate_kb_answer(&l->x, 200, &b, &w);
}

static uar_err read_which(struct call *c, struct kb_list *l, struct uar_error *error)
{
	uint64_t chunk = 0, from = 0;
	uar_err e;

	if (!l->one)
		return gate_kb_query(&l->x, "after", &l->page.after);
	l->page.id = l->x.id;
	l->reading = (struct uar_kb_reading){ .place = l->x.place, .document = l->x.id };
	if (l->all) {
		e = gate_query_u64(c, "from", 0, &from, error);
	} else {
		e = gate_query_u64(c, "chunk", 0, &chunk, error);
		if (!e)
			e = gate_kb_query(&l->x, "passage", &l->reading.sha256);
	}
	l->reading.chunk = (int64_t)(chunk & INT64_MAX);
	l->reading.from = (int64_t)(from & INT64_MAX);
	l->read = l->all || chunk || l->reading.sha256.n;
	return e;
}

static void list(struct call *c, bool one, bool passages)
{
	struct kb_list *l = (struct kb_list *)(void *)gate_kb_call(c, sizeof *l);
	struct uar_error error = { 0 };
	uar_err e;

	if (!l)
		return;
	l->page = (struct uar_kb_page){ .place = l->x.place, .after = UAR_STR("") };
	l->one = one;
	l->all = passages;
	e = read_which(c, l, &error);
	if (e) {
		uar_know_free(&l->x.job);
		gate_problem(c, e, &error);
		return;
	}
	l->x.job.run = run_list;
	l->x.job.done = listed;
	gate_kb_begin(&l->x);
}

void gate_kb_documents(struct call *c)
{
	list(c, false, false);
}

void gate_kb_document(struct call *c)
{
	list(c, true, false);
}

void gate_kb_passages(struct call *c)
{
	list(c, true, true);
}

static void run_remove(struct uar_kb *kb, struct uar_know_job *j)
{
	struct kb_call *x = (struct kb_call *)(void *)j;

	j->err = uar_kb_remove(kb, &x->place, x->id, &j->error);
}

static void answer_done(struct uar_know_job *j)
{
	struct kb_call *x = (struct kb_call *)(void *)j;
	struct uar_buf b = uar_buf_make(256);
	struct uar_jw w = uar_jw_begin(&b);

	if (gate_kb_failed(x))
		return;
	uar_know_wake(j->k);
	uar_jw_obj(&w, NULL);
	uar_jw_bool(&w, "done", true);
	uar_jw_close(&w);
	gate_kb_answer(x, 200, &b, &w);
}

void gate_kb_remove_document(struct call *c)
{
	struct kb_call *x = gate_kb_call(c, sizeof *x);

	if (!x)
		return;
	x->job.run = run_remove;
	x->job.done = answer_done;
	gate_kb_begin(x);
}

/* --- search --------------------------------------------------------------------------------- */

uar_err gate_kb_mode(uar_str name, enum uar_kb_mode *out, struct uar_error *error)
{
	for (int i = 0; i < UAR_KB_MODE_COUNT; i++)
		if (uar_str_is(name, uar_kb_mode_names[i])) {
			*out = (enum uar_kb_mode)i;
			return UAR_OK;
		}
	uar_error_where(error, "/mode");
	return uar_error_set(error, UAR_EINVALID, "it must be hybrid, keyword or vector");
}

struct search_body {
	uar_str query, mode, deny_labels;
	int64_t k;
	bool expand;
};

static void found(struct uar_know_job *j)
{
	struct uar_know_search *s = UAR_OWNER(j, struct uar_know_search, job);
	struct call *c = j->ctx;
	struct uar_buf b = uar_buf_make(UAR_LIMIT_KB_ANSWER);
	struct uar_jw w = uar_jw_begin(&b);
	struct uar_error error = j->error;
	uar_err e = j->err;

	if (e) {
		uar_know_free(j);
		gate_problem(c, e, &error);
		return;
	}
	uar_jw_obj(&w, NULL);
	put_passages(&w, &s->hits);
	if (s->hits.partial)
		uar_jw_bool(&w, "partial", true);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	uar_know_free(j);
	gate_answer(c, 200, &b);
	uar_buf_fini(&b);
}

static uar_err read_search(struct call *c, struct uar_know_search *s, struct uar_error *error)
{
	static const struct uar_json_field fields[] = {
		{ "query", UAR_FIELD_STR, true, offsetof(struct search_body, query) },
		{ "mode", UAR_FIELD_STR, false, offsetof(struct search_body, mode) },
		{ "deny_labels", UAR_FIELD_STR, false, offsetof(struct search_body, deny_labels) },
		{ "k", UAR_FIELD_INT, false, offsetof(struct search_body, k) },
		{ "expand", UAR_FIELD_BOOL, false, offsetof(struct search_body, expand) },
	};
	uar_str *collection = uar_arena_alloc(&s->job.arena, sizeof *collection);
	struct search_body in = { .mode = UAR_STR("hybrid"), .k = 5 };
	uar_err e = uar_json_read(c->body, fields, ARRAY_LEN(fields), true, &in, error);

	if (!e && (in.k < 1 || in.k > UAR_LIMIT_KB_HITS)) {
		uar_error_where(error, "/k");
		e = uar_error_set(error, UAR_EINVALID, "1 to %d", UAR_LIMIT_KB_HITS);
	}
	if (!collection)
		return UAR_ENOMEM;
	*collection = c->params[0];
	s->q = (struct uar_kb_query){ .owner = c->owner,
				      .collections = collection,
				      .collection_count = 1,
				      .text = in.query,
				      .k = (size_t)in.k,
				      .deny_labels = in.deny_labels,
				      .expand = in.expand };
	return e ? e : gate_kb_mode(in.mode, &s->q.mode, error);
}

void gate_kb_search(struct call *c)
{
	struct kb_call *known = gate_kb_call(c, sizeof(struct uar_know_search) + sizeof *known);
	struct uar_know_search *s = (struct uar_know_search *)(void *)known;
	struct uar_error error = { 0 };
	uar_err e;

	if (!known)
		return;
	s->q = (struct uar_kb_query){ .k = 0 };
	e = read_search(c, s, &error);
	s->job.ctx = c;
	s->job.done = found;
	if (e)
		uar_know_free(&s->job);
	else
		e = uar_know_search_begin(s);
	if (e)
		gate_problem(c, e, &error);
}

/* --- relations ------------------------------------------------------------------------------ */

struct kb_relations {
	struct kb_call x;
	struct uar_kb_relations list;
	uar_str entity;
	uint64_t depth;
};

static void run_relate(struct uar_kb *kb, struct uar_know_job *j)
{
	struct kb_relations *r = (struct kb_relations *)(void *)j;

	j->err = uar_kb_relate(kb, &r->x.place, &r->list, &j->error);
}

struct relation_body {
	uar_str from, kind, to, document_id;
};

static uar_err read_relations(struct call *c, struct kb_relations *r, struct uar_error *error)
{
	static const struct uar_json_field fields[] = {
		{ "from", UAR_FIELD_STR, true, offsetof(struct relation_body, from) },
		{ "kind", UAR_FIELD_STR, true, offsetof(struct relation_body, kind) },
		{ "to", UAR_FIELD_STR, true, offsetof(struct relation_body, to) },
		{ "document_id", UAR_FIELD_STR, false,
		  offsetof(struct relation_body, document_id) },
	};
	const struct uar_json *list = uar_json_get(c->body, UAR_STR("relations"));
	size_t n = list && list->kind == UAR_JSON_ARRAY ? list->count : 0;
	uar_err e = UAR_OK;

	if (!n || n > UAR_LIMIT_KB_RELATIONS) {
		uar_error_where(error, "/relations");
		return uar_error_set(error, UAR_EINVALID, "it must be a list of 1 to %d relations",
				     UAR_LIMIT_KB_RELATIONS);
	}
	r->list.at = uar_arena_alloc(&r->x.job.arena, n * sizeof *r->list.at);
	if (!r->list.at)
		return UAR_ENOMEM;
	for (const struct uar_json *j = uar_json_at(list, 0); j && !e; j = j->next) {
		struct relation_body in = { .document_id = UAR_STR("") };

		e = uar_json_read(j, fields, ARRAY_LEN(fields), true, &in, error);
		r->list.at[r->list.n++] =
			(struct uar_kb_relation){ in.from,	  in.kind,
						  in.to,	  in.document_id,
						  UAR_STR("api"), uar_know_now(r->x.job.k) };
	}
	return e;
}

void gate_kb_relate(struct call *c)
{
	struct kb_relations *r = (struct kb_relations *)(void *)gate_kb_call(c, sizeof *r);
	struct uar_error error = { 0 };
	uar_err e;

	if (!r)
		return;
	e = read_relations(c, r, &error);
	if (e) {
		uar_know_free(&r->x.job);
		gate_problem(c, e, &error);
		return;
	}
	r->x.job.run = run_relate;
	r->x.job.done = answer_done;
	gate_kb_begin(&r->x);
}

static void run_walk(struct uar_kb *kb, struct uar_know_job *j)
{
	struct kb_relations *r = (struct kb_relations *)(void *)j;
	struct uar_kb_walk walk = { r->x.place, r->entity, (int)r->depth, false };

	j->err = uar_kb_neighbours(kb, &walk, &j->arena, &r->list, &j->error);
}

static void walked(struct uar_know_job *j)
{
	struct kb_relations *r = (struct kb_relations *)(void *)j;
	struct uar_buf b = uar_buf_make(UAR_LIMIT_KB_ANSWER);
	struct uar_jw w = uar_jw_begin(&b);

	if (gate_kb_failed(&r->x))
		return;
	uar_jw_obj(&w, NULL);
	uar_jw_arr(&w, "relations");
	for (size_t i = 0; i < r->list.n; i++) {
		const struct uar_kb_relation *at = &r->list.at[i];

		uar_jw_obj(&w, NULL);
		uar_jw_str(&w, "from", at->from);
		uar_jw_str(&w, "kind", at->kind);
		uar_jw_str(&w, "to", at->to);
		uar_jw_str(&w, "document_id", at->document);
		uar_jw_str(&w, "by", at->by);
		uar_jw_time(&w, "at", at->at_us);
		uar_jw_close(&w);
	}
	uar_jw_close(&w);
	uar_jw_close(&w);
	gate_kb_answer(&r->x, 200, &b, &w);
}

void gate_kb_relations(struct call *c)
{
	struct kb_relations *r = (struct kb_relations *)(void *)gate_kb_call(c, sizeof *r);
	struct uar_error error = { 0 };
	uar_err e;

	if (!r)
		return;
	e = gate_query_u64(c, "depth", 1, &r->depth, &error);
	if (!e)
		e = gate_kb_query(&r->x, "entity", &r->entity);
	if (!e && (!r->entity.n || r->depth < 1 || r->depth > 3))
		e = uar_error_set(&error, UAR_EINVALID,
				  "`entity` names one, and `depth` is 1 to 3");
	if (e) {
		uar_know_free(&r->x.job);
		gate_problem(c, e, &error);
		return;
	}
	r->x.job.run = run_walk;
	r->x.job.done = walked;
	gate_kb_begin(&r->x);
}

/* --- memories ------------------------------------------------------------------------------- */

struct kb_memories {
	struct kb_call x;
	struct uar_kb_recall ask;
	struct uar_kb_memories list;
	int64_t forgotten;
};

static void run_recall(struct uar_kb *kb, struct uar_know_job *j)
{
	struct kb_memories *m = (struct kb_memories *)(void *)j;

	m->ask.now_us = uar_know_now(j->k);
	m->ask.arena = &j->arena;
	j->err = uar_kb_recall(kb, &m->ask, &m->list, &j->error);
}

static void run_forget(struct uar_kb *kb, struct uar_know_job *j)
{
	struct kb_memories *m = (struct kb_memories *)(void *)j;

	m->ask.arena = &j->arena;
	j->err = uar_kb_forget(kb, &m->ask, &m->forgotten, &j->error);
}

static void recalled(struct uar_know_job *j)
{
	struct kb_memories *m = (struct kb_memories *)(void *)j;
	struct uar_buf b = uar_buf_make(UAR_LIMIT_KB_ANSWER);
	struct uar_jw w = uar_jw_begin(&b);

	if (gate_kb_failed(&m->x))
		return;
	uar_jw_obj(&w, NULL);
	if (j->run == run_forget)
		uar_jw_int(&w, "forgotten", m->forgotten);
	else
		uar_jw_arr(&w, "memories");
	for (size_t i = 0; i < m->list.n; i++) {
		const struct uar_kb_memory *at = &m->list.at[i];

		uar_jw_obj(&w, NULL);
		uar_jw_str(&w, "scope", at->scope);
		uar_jw_str(&w, "scope_id", at->scope_id);
		uar_jw_str(&w, "key", at->key);
		uar_jw_str(&w, "value", at->value);
		uar_jw_str(&w, "source", at->source);
		uar_jw_time(&w, "updated_at", at->updated_us);
		if (at->expires_us)
			uar_jw_time(&w, "expires_at", at->expires_us);
		uar_jw_close(&w);
	}
	if (j->run != run_forget)
		uar_jw_close(&w);
	uar_jw_close(&w);
	gate_kb_answer(&m->x, 200, &b, &w);
}

static void ask_memories(struct call *c, void (*run)(struct uar_kb *, struct uar_know_job *))
{
	struct kb_memories *m = (struct kb_memories *)(void *)gate_kb_call(c, sizeof *m);
	uar_err e;

	if (!m)
		return;
	m->ask.owner = c->owner;
	e = gate_kb_query(&m->x, "scope", &m->ask.scope);
	if (!e)
		e = gate_kb_query(&m->x, "scope_id", &m->ask.scope_id);
	if (!e)
		e = gate_kb_query(&m->x, "key", &m->ask.key);
	if (e) {
		uar_know_free(&m->x.job);
		gate_problem(c, e, NULL);
		return;
	}
	m->x.job.run = run;
	m->x.job.done = recalled;
	gate_kb_begin(&m->x);
}

void gate_kb_memories(struct call *c)
{
	ask_memories(c, run_recall);
}

void gate_kb_forget(struct call *c)
{
	ask_memories(c, run_forget);
}

/* --- the index ------------------------------------------------------------------------------ */

struct kb_checking {
	struct kb_call x;
	struct uar_kb_report report;
};

static void run_rebuild(struct uar_kb *kb, struct uar_know_job *j)
{
	j->err = uar_kb_rebuild(kb, &j->error);
}

void gate_kb_rebuild(struct call *c)
{
	struct kb_call *x = gate_kb_call(c, sizeof *x);

	if (!x)
		return;
	x->job.run = run_rebuild;
	x->job.done = answer_done;
	gate_kb_begin(x);
}

static void run_check(struct uar_kb *kb, struct uar_know_job *j)
{
	j->err = uar_kb_check(kb, &((struct kb_checking *)(void *)j)->report, &j->error);
}

static void checked(struct uar_know_job *j)
{
	struct kb_checking *k = (struct kb_checking *)(void *)j;
	const struct uar_kb_report *r = &k->report;
	struct uar_buf b = uar_buf_make(4096);
	struct uar_jw w = uar_jw_begin(&b);

	if (gate_kb_failed(&k->x))
		return;
	uar_jw_obj(&w, NULL);
	uar_jw_bool(&w, "ok", !r->damage[0]);
	if (r->damage[0])
		uar_jw_cstr(&w, "damage", r->damage);
	uar_jw_int(&w, "documents", r->documents);
	uar_jw_int(&w, "pending", r->pending);
	uar_jw_int(&w, "failed", r->failed);
	if (r->failures[0])
		uar_jw_cstr(&w, "failures", r->failures);
	uar_jw_int(&w, "passages", r->chunks);
	uar_jw_int(&w, "vectors", r->vectors);
	uar_jw_cstr(&w, "sha256", r->sha256);
	uar_jw_close(&w);
	gate_kb_answer(&k->x, 200, &b, &w);
}

void gate_kb_check(struct call *c)
{
	struct kb_checking *k = (struct kb_checking *)(void *)gate_kb_call(c, sizeof *k);

	if (!k)
		return;
	k->x.job.run = run_check;
	k->x.job.done = checked;
	gate_kb_begin(&k->x);
}
