/* kb.c - knowledge: collections, documents, what is found in them. */
#include "gate/gate_int.h"
#include "gate/kb_int.h"

#include "base/base64.h"
#include "gate/limits.h"
#include "http/limits.h"
#include "memory/media.h"

/* --- what all of them share ----------------------------------------------------------------- */

struct kb_call *gate_kb_call(struct call *c, size_t size)
{
	struct uar_knowledge *k = c->g->o.knowledge;
	struct kb_call *x = k ? uar_know_job_new(k, size) : NULL;
	struct uar_error error = { 0 };

	if (x) {
		c->op = x;
		x->c = c;
		x->place = (struct uar_kb_place){ c->owner, c->params[0] };
		x->id = c->params[1];
		x->job.arena = c->arena;
		x->job.arena.max = 0;
		uar_arena_init(&c->arena, UAR_LIMIT_HTTP_ARENA);
		return x;
	}
	if (k)
		gate_problem(c, UAR_EBUSY, NULL);
	else
		gate_problem(c,
			     uar_error_set(&error, UAR_ENOTIMPL,
					   "knowledge is switched off: set "
					   "`kb` to true"),
			     &error);
	return NULL;
}

uar_err gate_kb_query(struct kb_call *x, const char *name, uar_str *out)
{
	uar_str text = UAR_STR_NONE;
	uar_err e = gate_query_str(x->c, name, &text);

	if (e || !text.p)
		return e;
	*out = uar_arena_str(&x->job.arena, text);
	return out->p ? UAR_OK : UAR_ENOMEM;
}

void gate_kb_begin(struct kb_call *x)
{
	struct call *c = x->c;
	uar_err e = uar_know_begin(&x->job);

	if (e)
		gate_problem(c, e, NULL);
}

/* Answers with an error if there is one; then the job is gone. */
bool gate_kb_failed(struct kb_call *x)
{
	struct call *c = x->c;
	struct uar_error error = x->job.error;
	uar_err e = x->job.err;

	if (!e)
		return false;
	uar_know_free(&x->job);
	gate_problem(c, e, &error);
	return true;
}

void gate_kb_answer(struct kb_call *x, int status, struct uar_buf *b, struct uar_jw *w)
{
	struct call *c = x->c;

	b->err = uar_jw_end(w);
	uar_know_free(&x->job);
	gate_answer(c, status, b);
	uar_buf_fini(b);
}

static struct kb_call *call_of(struct uar_know_job *j)
{
	return UAR_OWNER(j, struct kb_call, job);
}

/* --- collections ---------------------------------------------------------------------------- */

struct kb_collections {
	struct kb_call x;
	struct uar_kb_collections list;
};

static void run_collections(struct uar_kb *kb, struct uar_know_job *j)
{
	struct kb_collections *l = (struct kb_collections *)(void *)call_of(j);

	j->err = uar_kb_collections(kb, &l->x.place.owner, &j->arena, &l->list, &j->error);
}

static void put_progress(struct uar_jw *w, struct uar_knowledge *k, const struct uar_owner *owner)
{
	struct uar_know_progress p;

	uar_know_progress(k, owner, &p);
	uar_jw_obj(w, "index");
	uar_jw_cstr(w, "state", p.busy ? "working" : "idle");
	uar_jw_bool(w, "was_damaged", p.damaged);
	uar_jw_cstr(w, "document_id", p.document[0] ? p.document : NULL);
	uar_jw_int(w, "passages_done", (int64_t)p.done);
	uar_jw_int(w, "passages_total", (int64_t)p.total);
	uar_jw_close(w);
}

static void put_collection(struct uar_jw *w, const struct uar_kb_collection *k)
{
	uar_jw_obj(w, NULL);
	uar_jw_str(w, "collection", k->name);
	uar_jw_int(w, "documents", k->documents);
	uar_jw_int(w, "passages", k->chunks);
	uar_jw_int(w, "pending", k->pending);
	uar_jw_int(w, "failed", k->failed);
	uar_jw_str(w, "embedding", k->embedding);
	uar_jw_raw(w, "policy", k->policy.n ? k->policy : UAR_STR("{}"));
	uar_jw_close(w);
}

static void listed_collections(struct uar_know_job *j)
{
	struct kb_collections *l = (struct kb_collections *)(void *)call_of(j);
	struct uar_buf b = uar_buf_make(UAR_LIMIT_KB_ANSWER);
	struct uar_jw w = uar_jw_begin(&b);

	if (gate_kb_failed(&l->x))
		return;
	uar_jw_obj(&w, NULL);
	put_progress(&w, j->k, &l->x.place.owner);
	uar_jw_arr(&w, "collections");
	for (size_t i = 0; i < l->list.n; i++)
		put_collection(&w, &l->list.at[i]);
	uar_jw_close(&w);
	uar_jw_close(&w);
	gate_kb_answer(&l->x, 200, &b, &w);
}

void gate_kb_collections(struct call *c)
{
	struct kb_collections *l = (struct kb_collections *)(void *)gate_kb_call(c, sizeof *l);

	if (!l)
		return;
	l->x.job.run = run_collections;
	l->x.job.done = listed_collections;
	gate_kb_begin(&l->x);
}

struct kb_setting {
	struct kb_call x;
	struct uar_kb_collection to;
};

static void run_set(struct uar_kb *kb, struct uar_know_job *j)
{
	struct kb_setting *s = (struct kb_setting *)(void *)call_of(j);

	j->err = uar_kb_set_collection(kb, &s->x.place.owner, &s->to, &j->error);
}

static void was_set(struct uar_know_job *j)
{
	struct kb_setting *s = (struct kb_setting *)(void *)call_of(j);
	struct uar_buf b = uar_buf_make(4096);
	struct uar_jw w = uar_jw_begin(&b);

	if (gate_kb_failed(&s->x))
		return;
	uar_know_wake(j->k);
	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "collection", s->to.name);
	uar_jw_close(&w);
	gate_kb_answer(&s->x, 200, &b, &w);
}

struct set_body {
	uar_str embedding, mode, deny_labels;
	int64_t top_k;
	bool citation_required, expand;
};

/* What is given alone: other members keep their value. */
static uar_err write_policy(struct kb_setting *s, struct uar_error *error)
{
	static const struct uar_json_field fields[] = {
		{ "embedding", UAR_FIELD_STR, false, offsetof(struct set_body, embedding) },
		{ "mode", UAR_FIELD_STR, false, offsetof(struct set_body, mode) },
		{ "deny_labels", UAR_FIELD_STR, false, offsetof(struct set_body, deny_labels) },
		{ "top_k", UAR_FIELD_INT, false, offsetof(struct set_body, top_k) },
		{ "citation_required", UAR_FIELD_BOOL, false,
		  offsetof(struct set_body, citation_required) },
		{ "expand", UAR_FIELD_BOOL, false, offsetof(struct set_body, expand) },
	};
	struct set_body in = { .mode = UAR_STR("hybrid"), .top_k = 5 };
	struct uar_kb_collection *to = &s->to;
	struct uar_buf b = uar_buf_make(4096);
	struct uar_jw w = uar_jw_begin(&b);
	enum uar_kb_mode mode;
	uar_err e = uar_json_read(s->x.c->body, fields, ARRAY_LEN(fields), true, &in, error);

	if (!e)
		e = gate_kb_mode(in.mode, &mode, error);
	if (!e && (in.top_k < 1 || in.top_k > UAR_LIMIT_KB_HITS)) {
		uar_error_where(error, "/top_k");
		e = uar_error_set(error, UAR_EINVALID, "1 to %d", UAR_LIMIT_KB_HITS);
	}
	if (!e && in.embedding.n)
		e = uar_know_check_embedding(s->x.job.k, in.embedding, error);
	uar_jw_obj(&w, NULL);
	for (size_t i = 1; i < ARRAY_LEN(fields); i++) /* the embedding is no part of it */
		if (!e && uar_json_get(s->x.c->body, uar_str_c(fields[i].name)))
			uar_jw_tree(&w, fields[i].name,
				    uar_json_get(s->x.c->body, uar_str_c(fields[i].name)));
	uar_jw_close(&w);
	if (!e)
		e = uar_jw_end(&w);
	to->embedding = in.embedding;
	to->policy = uar_arena_str(&s->x.job.arena, uar_buf_str(&b));
	uar_buf_fini(&b);
	return e ? e : to->policy.p ? UAR_OK : UAR_ENOMEM;
}

void gate_kb_set_collection(struct call *c)
{
	struct kb_setting *s = (struct kb_setting *)(void *)gate_kb_call(c, sizeof *s);
	struct uar_error error = { 0 };
	uar_err e;

	if (!s)
		return;
	s->to.name = c->params[0];
	e = write_policy(s, &error);
	if (e) {
		uar_know_free(&s->x.job);
		gate_problem(c, e, &error);
		return;
	}
	s->x.job.run = run_set;
	s->x.job.done = was_set;
	gate_kb_begin(&s->x);
}

struct kb_clearing {
	struct kb_call x;
	int64_t documents;
};

static void run_clear(struct uar_kb *kb, struct uar_know_job *j)
{
	struct kb_clearing *k = (struct kb_clearing *)(void *)call_of(j);

	j->err = uar_kb_clear(kb, &k->x.place, &k->documents, &j->error);
}

static void was_cleared(struct uar_know_job *j)
{
	struct kb_clearing *k = (struct kb_clearing *)(void *)call_of(j);
	struct uar_buf b = uar_buf_make(256);
	struct uar_jw w = uar_jw_begin(&b);

	if (gate_kb_failed(&k->x))
		return;
	uar_jw_obj(&w, NULL);
	uar_jw_int(&w, "documents_removed", k->documents);
	uar_jw_close(&w);
	gate_kb_answer(&k->x, 200, &b, &w);
}

static void clear(struct call *c, uar_str collection)
{
	struct kb_clearing *k = (struct kb_clearing *)(void *)gate_kb_call(c, sizeof *k);

	if (!k)
		return;
	k->x.place.collection = collection;
	k->x.job.run = run_clear;
	k->x.job.done = was_cleared;
	gate_kb_begin(&k->x);
}

void gate_kb_clear_collection(struct call *c)
{
	clear(c, c->params[0]);
}

void gate_kb_clear(struct call *c)
{
	clear(c, UAR_STR(""));
}

/* --- a document in -------------------------------------------------------------------------- */

struct kb_put {
	struct kb_call x;
	struct uar_kb_document d;
	struct uar_kb_result result;
	uar_str url;
};

static struct kb_put *put_of(struct uar_know_job *j)
{
	return (struct kb_put *)(void *)call_of(j);
}

static void run_put(struct uar_kb *kb, struct uar_know_job *j)
{
	struct kb_put *p = put_of(j);

	p->d.updated_us = uar_know_now(j->k);
	j->err = uar_kb_put(kb, &p->x.place.owner, &p->d, &p->result, &j->error);
}

static void was_put(struct uar_know_job *j)
{
	static const char *const changes[] = { "created", "updated", "unchanged" };
	struct kb_put *p = put_of(j);
	struct uar_buf b = uar_buf_make(16384);
	struct uar_jw w = uar_jw_begin(&b);
	bool indexed = p->result.indexed;

	if (gate_kb_failed(&p->x))
		return;
	if (!indexed)
		uar_know_wake(j->k);
	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "collection", p->d.collection);
	uar_jw_str(&w, "document_id", p->d.id);
	uar_jw_cstr(&w, "change", changes[p->result.change]);
	if (p->result.change != UAR_KB_UNCHANGED)
		uar_jw_cstr(&w, "state", indexed ? "ready" : "pending");
	uar_jw_int(&w, "passages_written", (int64_t)p->result.written);
	uar_jw_int(&w, "passages_kept", (int64_t)p->result.kept);
	uar_jw_close(&w);
	gate_kb_answer(&p->x, p->result.change == UAR_KB_CREATED ? 201 : 200, &b, &w);
}

static void fetched(struct uar_know_page *page)
{
	struct kb_put *p = page->ctx;
	struct call *c = p->x.c;
	struct uar_error error = page->error;
	uar_err e = page->err;

	if (!e) {
		p->d.bytes = uar_arena_str(&p->x.job.arena, uar_buf_str(&page->bytes));
		if (!p->d.media_type.n)
			p->d.media_type =
				uar_arena_str(&p->x.job.arena, uar_str_c(page->media_type));
		e = p->d.bytes.p && p->d.media_type.p ? UAR_OK : UAR_ENOMEM;
	}
	uar_know_page_free(page);
	if (e) {
		uar_know_free(&p->x.job);
		gate_problem(c, e, &error);
	} else {
		gate_kb_begin(&p->x);
	}
}

struct put_body {
	uar_str document_id, title, source, media_type, labels, text, content, url;
};

/* "https://example.org/a/b?c" becomes "example.org/a/b_c". */
static uar_str name_of(struct uar_arena *arena, uar_str from)
{
	uar_str rest = from;
	char *to;

	if (uar_str_starts(from, UAR_STR("http://")) || uar_str_starts(from, UAR_STR("https://")))
		rest = uar_str_from(from, uar_str_find(from, '/') + 2);
	if (rest.n > UAR_LIMIT_KB_NAME)
		rest = uar_str_from(rest, rest.n - UAR_LIMIT_KB_NAME);
	to = uar_arena_bytes(arena, rest.n + 1);
	if (!to)
		return UAR_STR_NONE;
	for (size_t i = 0; i < rest.n; i++) {
		unsigned char b = (unsigned char)rest.p[i];
		bool good = (b >= '0' && b <= '9') || (b >= 'a' && b <= 'z') ||
			    (b >= 'A' && b <= 'Z') || strchr("._-/", b);

		to[i] = good && b ? (char)b : '_';
	}
	return uar_str_n(to, rest.n);
}

static uar_err decode_content(struct kb_put *p, uar_str base64, struct uar_error *error)
{
	uar_err e = uar_base64_decode(&p->x.job.arena, base64, &p->d.bytes);

	if (e && e != UAR_ENOMEM) {
		uar_error_where(error, "/content");
		return uar_error_set(error, UAR_EINVALID, "it is no base64");
	}
	return e;
}

static uar_err read_put(struct kb_put *p, struct uar_error *error)
{
	static const struct uar_json_field fields[] = {
		{ "document_id", UAR_FIELD_STR, false, offsetof(struct put_body, document_id) },
		{ "title", UAR_FIELD_STR, false, offsetof(struct put_body, title) },
		{ "source", UAR_FIELD_STR, false, offsetof(struct put_body, source) },
		{ "media_type", UAR_FIELD_STR, false, offsetof(struct put_body, media_type) },
		{ "labels", UAR_FIELD_STR, false, offsetof(struct put_body, labels) },
		{ "text", UAR_FIELD_STR, false, offsetof(struct put_body, text) },
		{ "content", UAR_FIELD_STR, false, offsetof(struct put_body, content) },
		{ "url", UAR_FIELD_STR, false, offsetof(struct put_body, url) },
	};
	struct uar_arena *arena = &p->x.job.arena;
	struct call *c = p->x.c;
	struct put_body in = { .url = UAR_STR_NONE };
	uar_err e = uar_json_read(c->body, fields, ARRAY_LEN(fields), true, &in, error);

	if (!e && (in.text.p != NULL) + (in.content.p != NULL) + (in.url.p != NULL) != 1)
		e = uar_error_set(error, UAR_EINVALID,
				  "a document has one of text, content (base64) and url");
	if (e)
		return e;
	p->url = in.url.p ? uar_arena_str(arena, in.url) : UAR_STR_NONE;
	p->d = (struct uar_kb_document){
		.collection = c->params[0],
		.id = in.document_id.p ? in.document_id
				       : name_of(arena, in.url.p ? in.url : in.source),
		.title = in.title.p ? in.title
			 : in.url.p ? in.url
				    : in.source,
		.source = in.source.p ? in.source : in.url,
		.media_type = in.media_type,
		.labels = in.labels,
		.bytes = in.text,
	};
	if (!p->d.title.n)
		p->d.title = p->d.id;
	if (!p->d.media_type.n && !in.url.p)
		p->d.media_type = uar_media_type_of(p->d.source.n ? p->d.source : p->d.id);
	return in.content.p ? decode_content(p, in.content, error) : UAR_OK;
}

void gate_kb_put_document(struct call *c)
{
	struct kb_put *p = (struct kb_put *)(void *)gate_kb_call(c, sizeof *p);
	struct uar_error error = { 0 };
	uar_err e;

	if (!p)
		return;
	p->x.job.run = run_put;
	p->x.job.done = was_put;
	e = read_put(p, &error);
	if (!e && p->url.p)
		e = uar_know_fetch(p->x.job.k, p->url, fetched, p, &error);
	else if (!e) {
		gate_kb_begin(&p->x);
		return;
	}
	if (e) {
		uar_know_free(&p->x.job);
		gate_problem(c, e, &error);
	}
}
