/* kb_index.c - passages, their words and vectors, made from documents.
 *
 * The passages of a document are written in one transaction. Those that were there before and
 * say the same stay: only what has changed is written, and a vector is computed once for each
 * text. */
#include "memory/kb_int.h"

struct old_chunk {
	int64_t id;
	char sha256[UAR_SHA256_TEXT + 1];
	bool kept;
};

/* One document on its way. */
struct writer {
	struct uar_kb *kb;
	sqlite3_stmt *insert, *move, *vector;
	int64_t document;
	struct old_chunk *old; /* in their order */
	size_t old_n, next;    /* the one expected now */
	size_t n, written, kept;
	bool builtin; /* its vectors are made here */
	bool words;   /* its vectors are still to come */
	struct uar_error *error;
};

/* --- collections -------------------------------------------------------------------------- */

uar_err kb_collection_model(struct uar_kb *kb, uar_str owner, uar_str collection,
			    struct uar_arena *arena, uar_str *out, struct uar_error *error)
{
	uar_str by[] = { owner, collection, uar_str_c(kb->model) };
	sqlite3_stmt *st = NULL;
	uar_err e =
		kb_do(kb,
		      &(struct kb_do){ "INSERT OR IGNORE INTO collections VALUES (?1, ?2, ?3, '')",
				       by, 3, 0 },
		      error);

	if (!e)
		e = kb_prepare(kb,
			       "SELECT embedding FROM collections WHERE owner = ?1 AND name = ?2",
			       &st, error);
	if (e)
		return e;
	kb_bind_texts(st, by, 2);
	if (kb_step(kb, st, &e, error)) {
		*out = uar_arena_str(arena, kb_text(st, 0));
		e = out->p ? UAR_OK : UAR_ENOMEM;
	}
	sqlite3_finalize(st);
	return e;
}

/* --- passages ------------------------------------------------------------------------------ */

/* Identical text under the same heading is the same passage; mostly they are where they were. */
static struct old_chunk *find_old(struct writer *w, const char *sha256)
{
	for (size_t i = 0; i < w->old_n; i++) {
		struct old_chunk *o = &w->old[(w->next + i) % w->old_n];

		if (!o->kept && !strcmp(o->sha256, sha256)) {
			w->next = (size_t)(o - w->old) + 1;
			return o;
		}
	}
	return NULL;
}

/* A passage without words has no vector, and is found by nothing. */
static uar_err write_vector(struct writer *w, const char *sha256, uar_str text)
{
	float v[UAR_EMBED_DIMENSIONS];
	int rc;

	if (!w->builtin || uar_embed_text(text, v))
		return UAR_OK;
	kb_bind_text(w->vector, 1, uar_str_c(sha256));
	kb_bind_bytes(w->vector, 2, v, sizeof v);
	rc = sqlite3_step(w->vector);
	sqlite3_reset(w->vector);
	return rc == SQLITE_DONE ? UAR_OK : kb_fail(w->kb, rc, w->error);
}

/* The heading belongs to the passage. */
static void digest_chunk(const struct uar_chunk *c, char out[UAR_SHA256_TEXT + 1])
{
	struct uar_sha256 h;

	uar_sha256_init(&h);
	uar_sha256_add(&h, c->heading);
	uar_sha256_add(&h, UAR_STR("\n"));
	uar_sha256_add(&h, c->text);
	uar_sha256_end(&h, out);
}

static uar_err write_chunk(void *ctx, const struct uar_chunk *c)
{
	struct writer *w = ctx;
	char sha256[UAR_SHA256_TEXT + 1];
	struct old_chunk *old;
	sqlite3_stmt *st;
	int rc;
	uar_err e;

	digest_chunk(c, sha256);
	old = find_old(w, sha256);
	st = old ? w->move : w->insert;
	sqlite3_bind_int64(st, 1, old ? old->id : w->document);
	sqlite3_bind_int64(st, 2, (int64_t)w->n++);
	sqlite3_bind_int64(st, 3, (int64_t)c->line);
	sqlite3_bind_int64(st, 4, (int64_t)c->page);
	if (old) {
		old->kept = true;
		w->kept++;
	} else {
		w->written++;
		kb_bind_text(st, 5, c->heading);
		kb_bind_text(st, 6, c->text);
		kb_bind_text(st, 7, uar_str_c(sha256));
	}
	rc = sqlite3_step(st);
	e = rc == SQLITE_DONE ? UAR_OK : kb_fail(w->kb, rc, w->error);
	sqlite3_reset(st);
	return e ? e : write_vector(w, sha256, c->text);
}

static uar_err read_old(struct writer *w, struct uar_arena *arena)
{
	sqlite3_stmt *st = NULL;
	size_t room = 0;
	uar_err e =
		kb_prepare(w->kb, "SELECT id, sha256 FROM ix.chunks WHERE document = ?1 ORDER BY n",
			   &st, w->error);

	if (!e)
		sqlite3_bind_int64(st, 1, w->document);
	while (!e && kb_step(w->kb, st, &e, w->error)) {
		if (w->old_n == room) {
			struct old_chunk *more;

			room = room ? room * 2 : 64;
			more = uar_arena_room(arena, room * sizeof *more);
			if (!more) {
				e = UAR_ENOMEM;
				break;
			}
			if (w->old_n)
				memcpy(more, w->old, w->old_n * sizeof *more);
			w->old = more;
		}
		w->old[w->old_n] = (struct old_chunk){ .id = sqlite3_column_int64(st, 0) };
		snprintf(w->old[w->old_n++].sha256, UAR_SHA256_TEXT + 1, "%.*s",
			 UAR_FMT(kb_text(st, 1)));
	}
	sqlite3_finalize(st);
	return e;
}

/* A passage goes, and its vectors with it when no other one says the same. */
static uar_err remove_chunk(struct uar_kb *kb, const struct old_chunk *o, struct uar_error *error)
{
	uar_str sha256 = uar_str_c(o->sha256);
	uar_err e =
		kb_do(kb, &(struct kb_do){ "DELETE FROM ix.chunks WHERE id = ?1", NULL, 0, o->id },
		      error);

	return e ? e
		 : kb_do(kb,
			 &(struct kb_do){ "DELETE FROM ix.vectors WHERE sha256 = ?1 AND NOT EXISTS"
					  " (SELECT 1 FROM ix.chunks WHERE sha256 = ?1)",
					  &sha256, 1, 0 },
			 error);
}

static uar_err remove_rest(struct writer *w, size_t *out_removed)
{
	uar_err e = UAR_OK;

	for (size_t i = 0; i < w->old_n && !e; i++)
		if (!w->old[i].kept) {
			e = remove_chunk(w->kb, &w->old[i], w->error);
			++*out_removed;
		}
	return e;
}

static uar_err prepare_writer(struct writer *w)
{
	uar_err e = kb_prepare(w->kb,
			       "INSERT INTO ix.chunks (document, n, line, page, heading, text,"
			       " sha256) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
			       &w->insert, w->error);

	if (!e)
		e = kb_prepare(w->kb,
			       "UPDATE ix.chunks SET n = ?2, line = ?3, page = ?4 WHERE id = ?1",
			       &w->move, w->error);
	return e ? e
		 : kb_prepare(w->kb,
			      "INSERT OR IGNORE INTO ix.vectors VALUES ('" UAR_KB_BUILTIN
			      "', ?1, ?2)",
			      &w->vector, w->error);
}

static uar_err note_version(struct uar_kb *kb, const uar_str place[2], size_t removed,
			    struct uar_error *error)
{
	return kb_do(kb,
		     &(struct kb_do){
			     "INSERT INTO ix.versions VALUES (?1, ?2, 1, ?3) ON CONFLICT (owner,"
			     " collection) DO UPDATE SET version = version + 1,"
			     " removals = removals + ?3",
			     place, 2, (int64_t)removed },
		     error);
}

/* What the row says. */
struct source {
	uar_str owner, collection, media_type, sha256, model, text;
};

static uar_err read_source(struct uar_kb *kb, int64_t row, struct uar_arena *arena,
			   struct source *out, struct uar_error *error)
{
	uar_str *const to[] = { &out->owner,  &out->collection, &out->media_type,
				&out->sha256, &out->model,	&out->text };
	sqlite3_stmt *st;
	uar_err e = kb_prepare(kb,
			       "SELECT d.owner, d.collection, d.media_type, d.sha256, c.embedding,"
			       " d.text FROM documents d JOIN collections c ON c.owner = d.owner"
			       " AND c.name = d.collection WHERE d.id = ?1 AND d.text IS NOT NULL",
			       &st, error);

	if (e)
		return e;
	sqlite3_bind_int64(st, 1, row);
	if (kb_step(kb, st, &e, error))
		e = kb_copy_texts(st, to, ARRAY_LEN(to), arena);
	else if (!e)
		e = UAR_ENOTFOUND;
	sqlite3_finalize(st);
	return e;
}

static uar_err write_document(struct writer *w, const struct source *s, struct uar_arena *arena)
{
	uar_str place[2] = { s->owner, s->collection };
	uar_str facts[2] = { s->sha256, w->words ? UAR_STR("") : s->model };
	size_t removed = 0;
	uar_err e = read_old(w, arena);

	if (!e)
		e = prepare_writer(w);
	if (!e)
		e = uar_chunk_text(s->text, kb_kind(s->media_type), write_chunk, w);
	if (!e)
		e = remove_rest(w, &removed);
	if (!e)
		e = kb_do(w->kb,
			  &(struct kb_do){ "INSERT OR REPLACE INTO ix.indexed (sha256, model,"
					   " document, chunks) SELECT ?1, ?2, ?3, (SELECT count(*)"
					   " FROM ix.chunks WHERE document = ?3)",
					   facts, 2, w->document },
			  w->error);
	/* Passages that stayed may have vectors of another model now. */
	removed += w->kept && !w->builtin;
	return e ? e : note_version(w->kb, place, removed, w->error);
}

static uar_err index_row(struct uar_kb *kb, int64_t row, bool words, struct uar_kb_result *out,
			 struct uar_error *error)
{
	struct writer w = { .kb = kb, .document = row, .words = words, .error = error };
	struct source s = { .text = UAR_STR_NONE };
	struct uar_arena arena;
	uar_err e;

	uar_arena_init(&arena, 0);
	e = read_source(kb, row, &arena, &s, error);
	w.builtin = !words && uar_str_is(s.model, UAR_KB_BUILTIN);
	if (!e)
		e = kb_exec(kb, "BEGIN IMMEDIATE", error);
	if (!e)
		e = kb_end(kb, write_document(&w, &s, &arena), error);
	sqlite3_finalize(w.insert);
	sqlite3_finalize(w.move);
	sqlite3_finalize(w.vector);
	uar_arena_fini(&arena);
	if (!e && out) {
		out->chunks = w.n;
		out->written = w.written;
		out->kept = w.kept;
	}
	return e;
}

uar_err kb_index_locked(struct uar_kb *kb, int64_t row, struct uar_kb_result *out,
			struct uar_error *error)
{
	return index_row(kb, row, false, out, error);
}

uar_err uar_kb_index_words(struct uar_kb *kb, int64_t row, struct uar_error *error)
{
	sqlite3_stmt *st = NULL;
	bool there = false;
	uar_err e;

	pthread_mutex_lock(&kb->lock);
	e = kb_prepare(kb,
		       "SELECT 1 FROM documents d JOIN ix.indexed i ON i.document = d.id AND"
		       " i.sha256 = d.sha256 WHERE d.id = ?1",
		       &st, error);
	if (!e) {
		sqlite3_bind_int64(st, 1, row);
		there = kb_step(kb, st, &e, error);
	}
	sqlite3_finalize(st);
	if (!e && !there)
		e = index_row(kb, row, true, NULL, error);
	pthread_mutex_unlock(&kb->lock);
	return e;
}

uar_err uar_kb_index(struct uar_kb *kb, int64_t row, struct uar_kb_result *out,
		     struct uar_error *error)
{
	uar_err e;

	pthread_mutex_lock(&kb->lock);
	e = kb_index_locked(kb, row, out, error);
	pthread_mutex_unlock(&kb->lock);
	return e;
}

/* The document's row is gone already. */
void kb_unindex_locked(struct uar_kb *kb, int64_t row)
{
	struct writer w = { .kb = kb, .document = row, .error = NULL };
	struct uar_arena arena;
	size_t removed = 0;
	uar_err e = kb_exec(kb, "BEGIN IMMEDIATE", NULL);

	if (e)
		return;
	uar_arena_init(&arena, 0);
	e = read_old(&w, &arena);
	if (!e)
		e = remove_rest(&w, &removed);
	if (!e)
		e = kb_do(kb,
			  &(struct kb_do){ "DELETE FROM ix.indexed WHERE document = ?1", NULL, 0,
					   row },
			  NULL);
	if (!e)
		e = kb_exec(kb,
			    "UPDATE ix.versions SET version = version + 1, removals = removals + 1",
			    NULL);
	uar_arena_fini(&arena);
	e = kb_end(kb, e, NULL);
	(void)e;
}

/* --- what is left to do --------------------------------------------------------------------- */

uar_err uar_kb_next_pending(struct uar_kb *kb, const struct uar_kb_after *after,
			    struct uar_arena *arena, struct uar_kb_pending *out,
			    struct uar_error *error)
{
	uar_str *const to[] = { &out->collection, &out->id, &out->media_type, &out->embedding,
				&out->owner };
	sqlite3_stmt *st = NULL;
	uar_err e;

	*out = (struct uar_kb_pending){ .row = 0 };
	pthread_mutex_lock(&kb->lock);
	e = kb_prepare(
		kb,
		"SELECT d.collection, d.name, d.media_type, c.embedding, d.owner,"
		" d.id, iif(d.text IS NULL, d.raw, NULL) FROM documents d JOIN collections c ON"
		" c.owner = d.owner AND c.name = d.collection LEFT JOIN ix.indexed i ON"
		" i.document = d.id WHERE d.id > ?1 AND d.error = '' AND (i.sha256 IS NOT d.sha256"
		" OR (i.model IS NOT c.embedding AND c.embedding <> ?2)) ORDER BY d.id LIMIT 1",
		&st, error);
	if (!e) {
		sqlite3_bind_int64(st, 1, after->row);
		kb_bind_text(st, 2, uar_str_c(after->silent));
		if (!kb_step(kb, st, &e, error)) {
			e = e ? e : UAR_ENOTFOUND;
		} else {
			const char *raw = sqlite3_column_blob(st, 6);
			size_t n = (size_t)sqlite3_column_bytes(st, 6);

			out->row = sqlite3_column_int64(st, 5);
			e = kb_copy_texts(st, to, ARRAY_LEN(to), arena);
			if (!e && n)
				out->raw = uar_arena_str(arena, uar_str_n(raw, n));
			e = n && !e && !out->raw.p ? UAR_ENOMEM : e;
		}
	}
	sqlite3_finalize(st);
	pthread_mutex_unlock(&kb->lock);
	return e;
}

static uar_err set_member(struct uar_kb *kb, const char *sql, uar_str value, int64_t row,
			  struct uar_error *error)
{
	uar_err e;

	pthread_mutex_lock(&kb->lock);
	e = kb_do(kb, &(struct kb_do){ sql, &value, 1, row }, error);
	pthread_mutex_unlock(&kb->lock);
	return e;
}

uar_err uar_kb_set_text(struct uar_kb *kb, int64_t row, uar_str text, struct uar_error *error)
{
	return set_member(kb, "UPDATE documents SET text = ?1, error = '' WHERE id = ?2", text, row,
			  error);
}

uar_err uar_kb_set_failed(struct uar_kb *kb, int64_t row, uar_str why, struct uar_error *error)
{
	return set_member(kb, "UPDATE documents SET error = ?1 WHERE id = ?2",
			  why.n ? why : UAR_STR("failed"), row, error);
}

uar_err uar_kb_retry_failed(struct uar_kb *kb, struct uar_error *error)
{
	uar_err e;

	pthread_mutex_lock(&kb->lock);
	e = kb_exec(kb, "UPDATE documents SET error = '' WHERE error <> '' AND text IS NOT NULL",
		    error);
	pthread_mutex_unlock(&kb->lock);
	return e;
}

/* --- vectors of providers ------------------------------------------------------------------- */

struct lacking {
	struct uar_kb *kb;
	sqlite3_stmt *has;
	uar_str model;
	size_t bytes;
	struct uar_arena *arena;
	struct uar_kb_missing *out;
	struct uar_error *error;
};

static uar_err note_lacking(void *ctx, const struct uar_chunk *c)
{
	struct lacking *l = ctx;
	struct uar_kb_missing *m = l->out;
	char sha256[UAR_SHA256_TEXT + 1];
	uar_err e = UAR_OK;
	bool there;

	m->total++;
	digest_chunk(c, sha256);
	kb_bind_text(l->has, 1, l->model);
	kb_bind_text(l->has, 2, uar_str_c(sha256));
	there = kb_step(l->kb, l->has, &e, l->error);
	sqlite3_reset(l->has);
	if (e || there)
		return e;
	m->lacking++;
	if (m->n == UAR_LIMIT_KB_EMBED_BATCH || l->bytes > UAR_LIMIT_KB_EMBED_BATCH_BYTES)
		return UAR_OK;
	l->bytes += c->text.n;
	memcpy(m->sha256[m->n], sha256, sizeof sha256);
	m->text[m->n] = uar_arena_str(l->arena, c->text);
	return m->text[m->n++].p ? UAR_OK : UAR_ENOMEM;
}

uar_err uar_kb_missing(struct uar_kb *kb, const struct uar_kb_pending *p, struct uar_arena *arena,
		       struct uar_kb_missing *out, struct uar_error *error)
{
	struct lacking l = { kb, NULL, p->embedding, 0, arena, out, error };
	struct source s = { .text = UAR_STR_NONE };
	uar_err e;

	*out = (struct uar_kb_missing){ .n = 0 };
	out->text = uar_arena_alloc(arena, UAR_LIMIT_KB_EMBED_BATCH * sizeof *out->text);
	out->sha256 = uar_arena_alloc(arena, UAR_LIMIT_KB_EMBED_BATCH * sizeof *out->sha256);
	if (!out->text || !out->sha256)
		return UAR_ENOMEM;
	pthread_mutex_lock(&kb->lock);
	e = read_source(kb, p->row, arena, &s, error);
	if (!e)
		e = kb_prepare(kb, "SELECT 1 FROM ix.vectors WHERE model = ?1 AND sha256 = ?2",
			       &l.has, error);
	if (!e)
		e = uar_chunk_text(s.text, kb_kind(s.media_type), note_lacking, &l);
	sqlite3_finalize(l.has);
	pthread_mutex_unlock(&kb->lock);
	return e;
}

static bool is_zero(const struct uar_kb_vector *v)
{
	return v->n == 0 || !(kb_dot(v->at, v->at, v->n) > 1e-12F);
}

uar_err uar_kb_save_vector(struct uar_kb *kb, uar_str model, const char *sha256,
			   const struct uar_kb_vector *v, struct uar_error *error)
{
	sqlite3_stmt *st = NULL;
	uar_err e;

	if (is_zero(v))
		return uar_error_set(error, UAR_EINVALID,
				     "the embedder brought a vector of zeros, which would be found "
				     "by nothing");
	pthread_mutex_lock(&kb->lock);
	e = kb_prepare(kb, "INSERT OR REPLACE INTO ix.vectors VALUES (?1, ?2, ?3)", &st, error);
	if (!e) {
		kb_bind_text(st, 1, model);
		kb_bind_text(st, 2, uar_str_c(sha256));
		kb_bind_bytes(st, 3, v->at, v->n * sizeof *v->at);
		e = kb_run(kb, st, error);
	}
	pthread_mutex_unlock(&kb->lock);
	return e;
}

/* --- rebuild -------------------------------------------------------------------------------- */

uar_err kb_index_all(struct uar_kb *kb, struct uar_error *error)
{
	uar_err e = UAR_OK;
	int64_t row = 0;

	while (!e) {
		sqlite3_stmt *st = NULL;

		e = kb_prepare(kb,
			       "SELECT d.id FROM documents d JOIN collections c ON c.owner ="
			       " d.owner AND c.name = d.collection WHERE d.id > ?1 AND d.text IS"
			       " NOT NULL AND c.embedding = '" UAR_KB_BUILTIN "' ORDER BY d.id"
			       " LIMIT 1",
			       &st, error);
		if (e)
			return e;
		sqlite3_bind_int64(st, 1, row);
		row = kb_step(kb, st, &e, error) ? sqlite3_column_int64(st, 0) : 0;
		sqlite3_finalize(st);
		if (!row)
			break;
		if (!e)
			e = kb_index_locked(kb, row, NULL, error);
	}
	return e;
}

uar_err uar_kb_rebuild(struct uar_kb *kb, struct uar_error *error)
{
	uar_err e;

	pthread_mutex_lock(&kb->lock);
	pthread_mutex_lock(&kb->reader->lock);
	e = kb_renew_index(kb, error);
	pthread_mutex_unlock(&kb->reader->lock);
	if (!e) /* what failed is tried again */
		e = kb_exec(kb, "UPDATE documents SET error = '' WHERE error <> ''", error);
	if (!e)
		e = kb_index_all(kb, error);
	kb->damaged = false;
	pthread_mutex_unlock(&kb->lock);
	return e;
}
