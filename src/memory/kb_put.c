/* kb_put.c - documents in and out, each in one transaction. */
#include "memory/kb_int.h"

#include "base/sha256.h"
#include "memory/chunk.h"
#include "skill/embed.h"

/* --- passages ------------------------------------------------------------------------ */

struct writer {
	struct uar_kb *kb;
	sqlite3_stmt *insert;
	int64_t document;
	size_t n;
	struct uar_error *error;
};

/* A passage without words has no vector, and is found by nothing. */
static void bind_vector(struct writer *w, uar_str text)
{
	float v[UAR_EMBED_DIMENSIONS];

	if (uar_embed_text(text, v) == UAR_OK)
		sqlite3_bind_blob(w->insert, 8, v, sizeof v, SQLITE_TRANSIENT);
	else
		sqlite3_bind_null(w->insert, 8);
}

static uar_err write_chunk(void *ctx, const struct uar_chunk *c)
{
	struct writer *w = ctx;
	char sha256[UAR_SHA256_TEXT + 1];
	int rc;

	uar_sha256_hex(c->text, sha256);
	sqlite3_bind_int64(w->insert, 1, w->document);
	sqlite3_bind_int64(w->insert, 2, (int64_t)w->n++);
	sqlite3_bind_int64(w->insert, 3, (int64_t)c->line);
	sqlite3_bind_int64(w->insert, 4, (int64_t)c->page);
	kb_bind_text(w->insert, 5, c->heading);
	kb_bind_text(w->insert, 6, c->text);
	kb_bind_text(w->insert, 7, uar_str_c(sha256));
	bind_vector(w, c->text);
	rc = sqlite3_step(w->insert);
	sqlite3_reset(w->insert);
	return rc == SQLITE_DONE ? UAR_OK : kb_fail(w->kb, rc, w->error);
}

uar_err kb_write_chunks(struct uar_kb *kb, int64_t document, uar_str text, size_t *out_n,
			struct uar_error *error)
{
	struct writer w = { .kb = kb, .document = document, .error = error };
	sqlite3_stmt *clear;
	uar_err e = kb_prepare(kb, "DELETE FROM chunks WHERE document = ?1", &clear, error);

	if (!e) {
		sqlite3_bind_int64(clear, 1, document);
		e = kb_run(kb, clear, error);
	}
	if (!e)
		e = kb_prepare(kb,
			       "INSERT INTO chunks (document, n, line, page, heading, text, sha256,"
			       " vector) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
			       &w.insert, error);
	if (!e)
		e = uar_chunk_text(text, write_chunk, &w);
	sqlite3_finalize(w.insert);
	if (out_n)
		*out_n = w.n;
	return e;
}

/* --- documents ------------------------------------------------------------------------ */

struct put {
	struct uar_kb *kb;
	uar_str owner;
	const struct uar_kb_document *d;
	uar_str text; /* the words of it */
	char sha256[UAR_SHA256_TEXT + 1];
	struct uar_error *error;
};

/* The digest of everything that is kept of a document: a new title is a change, too. */
static void digest(struct put *p)
{
	struct uar_buf all = uar_buf_make((size_t)UAR_LIMIT_KB_DOCUMENT * 2 + 4096);

	uar_buf_printf(&all, "%.*s\n%.*s\n%.*s\n%.*s\n", UAR_FMT(p->d->title),
		       UAR_FMT(p->d->source), UAR_FMT(p->d->media_type), UAR_FMT(p->d->labels));
	uar_buf_add_str(&all, p->d->text);
	uar_sha256_hex(uar_buf_str(&all), p->sha256);
	uar_buf_fini(&all);
}

/* The row of the document, 0: none; *same: it has the same digest. */
static uar_err find(struct put *p, int64_t *out_id, bool *same)
{
	sqlite3_stmt *st;
	uar_err e =
		kb_prepare(p->kb,
			   "SELECT id, sha256 FROM documents WHERE owner = ?1 AND collection = ?2"
			   " AND name = ?3",
			   &st, p->error);

	*out_id = 0;
	*same = false;
	if (e)
		return e;
	kb_bind_text(st, 1, p->owner);
	kb_bind_text(st, 2, p->d->collection);
	kb_bind_text(st, 3, p->d->id);
	if (kb_step(p->kb, st, &e, p->error)) {
		*out_id = sqlite3_column_int64(st, 0);
		*same = uar_str_is(kb_text(st, 1), p->sha256);
	}
	sqlite3_finalize(st);
	return e;
}

static uar_err write_row(struct put *p, int64_t *id)
{
	sqlite3_stmt *st;
	uar_str fields[] = { p->owner,	   p->d->collection,	 p->d->id,
			     p->d->title,  p->d->source,	 p->d->media_type,
			     p->d->labels, uar_str_c(p->sha256), p->text };
	uar_err e = kb_prepare(
		p->kb,
		"INSERT INTO documents (owner, collection, name, title, source, media_type, labels,"
		" sha256, text, updated) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
		" ON CONFLICT (owner, collection, name) DO UPDATE SET title = ?4, source = ?5,"
		" media_type = ?6, labels = ?7, sha256 = ?8, text = ?9, updated = ?10",
		&st, p->error);

	if (e)
		return e;
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		kb_bind_text(st, (int)i + 1, fields[i]);
	sqlite3_bind_int64(st, 10, p->d->updated_us);
	e = kb_run(p->kb, st, p->error);
	if (!e && !*id)
		*id = sqlite3_last_insert_rowid(p->kb->db);
	return e;
}

static uar_err put_locked(struct put *p, struct uar_kb_result *out)
{
	bool same;
	int64_t id;
	uar_err e = find(p, &id, &same);

	*out = (struct uar_kb_result){ .change = UAR_KB_UNCHANGED };
	if (e || same)
		return e;
	out->change = id ? UAR_KB_UPDATED : UAR_KB_CREATED;
	e = kb_exec(p->kb, "BEGIN IMMEDIATE", p->error);
	if (e)
		return e;
	e = write_row(p, &id);
	if (!e)
		e = kb_write_chunks(p->kb, id, p->text, &out->chunks, p->error);
	if (!e)
		e = kb_exec(p->kb, "COMMIT", p->error);
	if (e)
		(void)sqlite3_exec(p->kb->db, "ROLLBACK", NULL, NULL, NULL);
	return e;
}

static uar_err check_document(const struct uar_kb_document *d, struct uar_error *error)
{
	uar_err e = kb_check_name("collection", d->collection, error);

	if (!e)
		e = kb_check_name("document_id", d->id, error);
	if (!e && d->text.n > UAR_LIMIT_KB_DOCUMENT)
		e = uar_error_set(error, UAR_ETOOBIG, "a document has at most %d bytes",
				  UAR_LIMIT_KB_DOCUMENT);
	if (!e && !uar_utf8_valid(d->text))
		e = uar_error_set(error, UAR_EINVALID, "the text is not UTF-8");
	return e;
}

uar_err uar_kb_put(struct uar_kb *kb, const struct uar_owner *owner,
		   const struct uar_kb_document *d, struct uar_kb_result *out,
		   struct uar_error *error)
{
	struct put p = { .kb = kb, .d = d, .text = d->text, .error = error };
	struct uar_buf words = uar_buf_make((size_t)UAR_LIMIT_KB_DOCUMENT * 2);
	struct uar_arena arena;
	uar_err e = check_document(d, error);

	if (e)
		return e;
	uar_arena_init(&arena, 0);
	p.owner = kb_owner(owner, &arena);
	if (uar_str_starts(d->media_type, UAR_STR("text/html"))) {
		uar_html_text(d->text, &words);
		p.text = uar_buf_str(&words);
	}
	e = words.err ? words.err : p.owner.p ? UAR_OK : UAR_ENOMEM;
	if (!e) {
		digest(&p);
		pthread_mutex_lock(&kb->lock);
		e = put_locked(&p, out);
		pthread_mutex_unlock(&kb->lock);
	}
	uar_arena_fini(&arena);
	uar_buf_fini(&words);
	return e;
}

uar_err uar_kb_remove(struct uar_kb *kb, const struct uar_kb_place *place, uar_str id,
		      struct uar_error *error)
{
	static const char *const sql[] = {
		"DELETE FROM relations WHERE owner = ?1 AND collection = ?2 AND document = ?3",
		"DELETE FROM documents WHERE owner = ?1 AND collection = ?2 AND name = ?3",
	};
	struct uar_arena arena;
	uar_err e = UAR_OK;
	uar_str name;

	uar_arena_init(&arena, 0);
	name = kb_owner(&place->owner, &arena);
	pthread_mutex_lock(&kb->lock);
	for (size_t i = 0; i < ARRAY_LEN(sql) && !e; i++) {
		sqlite3_stmt *st;

		e = kb_prepare(kb, sql[i], &st, error);
		if (e)
			break;
		kb_bind_text(st, 1, name);
		kb_bind_text(st, 2, place->collection);
		kb_bind_text(st, 3, id);
		e = kb_run(kb, st, error);
	}
	if (!e && sqlite3_changes(kb->db) == 0)
		e = uar_error_set(error, UAR_ENOTFOUND, "there is no such document");
	pthread_mutex_unlock(&kb->lock);
	uar_arena_fini(&arena);
	return e;
}

/* --- rebuild ------------------------------------------------------------------------------ */

static uar_err rebuild_all(struct uar_kb *kb, struct uar_error *error)
{
	sqlite3_stmt *st;
	uar_err e = kb_prepare(kb, "SELECT id, text FROM documents ORDER BY id", &st, error);

	while (!e && kb_step(kb, st, &e, error))
		e = kb_write_chunks(kb, sqlite3_column_int64(st, 0), kb_text(st, 1), NULL, error);
	sqlite3_finalize(st);
	return e;
}

uar_err uar_kb_rebuild(struct uar_kb *kb, struct uar_error *error)
{
	uar_err e;

	pthread_mutex_lock(&kb->lock);
	/* The index is emptied as a whole: a damaged one could not be emptied row by row. */
	e = kb_exec(kb,
		    "BEGIN IMMEDIATE; DROP TRIGGER chunks_out; DELETE FROM chunks;"
		    " INSERT INTO words(words) VALUES ('delete-all'); " KB_CHUNKS_OUT,
		    error);
	if (!e)
		e = rebuild_all(kb, error);
	if (!e)
		e = kb_exec(kb, "COMMIT", error);
	if (e)
		(void)sqlite3_exec(kb->db, "ROLLBACK", NULL, NULL, NULL);
	pthread_mutex_unlock(&kb->lock);
	return e;
}
