/* kb_put.c - documents in and out: what was given is kept first, then indexed. */
#include "memory/kb_int.h"

#include "base/buf.h"

struct put {
	struct uar_kb *kb;
	uar_str owner;
	const struct uar_kb_document *d;
	uar_str media_type;
	uar_str text, raw; /* text.p NULL: a program has to read it */
	char sha256[UAR_SHA256_TEXT + 1];
	struct uar_error *error;
};

static bool is_pdf(uar_str media_type)
{
	return uar_str_starts(media_type, UAR_STR("application/pdf"));
}

enum uar_chunk_kind kb_kind(uar_str media_type)
{
	if (uar_str_starts(media_type, UAR_STR("text/markdown")) ||
	    uar_str_starts(media_type, UAR_STR("text/html")))
		return UAR_CHUNK_MARKDOWN;
	if (uar_str_starts(media_type, UAR_STR("text/x-")) ||
	    uar_str_starts(media_type, UAR_STR("text/javascript")) ||
	    uar_str_starts(media_type, UAR_STR("text/css")))
		return UAR_CHUNK_CODE;
	return UAR_CHUNK_TEXT;
}

/* The digest of everything that is kept of a document: a new title is a change, too. */
static void digest(struct put *p)
{
	const uar_str parts[] = { p->d->title, p->d->source, p->media_type, p->d->labels,
				  p->d->bytes };
	struct uar_sha256 h;

	uar_sha256_init(&h);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		uar_sha256_add(&h, parts[i]);
		uar_sha256_add(&h, UAR_STR("\n"));
	}
	uar_sha256_end(&h, p->sha256);
}

/* The row of the document, 0: none; *same: it has the same digest and is indexed or will be. */
static uar_err find(struct put *p, int64_t *out_id, bool *same)
{
	sqlite3_stmt *st;
	uar_str by[] = { p->owner, p->d->collection, p->d->id };
	uar_err e = kb_prepare(p->kb,
			       "SELECT id, sha256, error FROM documents WHERE owner = ?1 AND"
			       " collection = ?2 AND name = ?3",
			       &st, p->error);

	*out_id = 0;
	*same = false;
	if (e)
		return e;
	kb_bind_texts(st, by, ARRAY_LEN(by));
	if (kb_step(p->kb, st, &e, p->error)) {
		*out_id = sqlite3_column_int64(st, 0);
		*same = uar_str_is(kb_text(st, 1), p->sha256) && !kb_text(st, 2).n;
	}
	sqlite3_finalize(st);
	return e;
}

static uar_err write_row(struct put *p, int64_t *id)
{
	sqlite3_stmt *st;
	uar_str fields[] = { p->owner,	   p->d->collection, p->d->id,	   p->d->title,
			     p->d->source, p->media_type,    p->d->labels, uar_str_c(p->sha256) };
	uar_err e = kb_prepare(
		p->kb,
		"INSERT INTO documents (owner, collection, name, title, source, media_type, labels,"
		" sha256, size, updated, error, text, raw) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8,"
		" ?9, ?10, '', ?11, ?12)"
		" ON CONFLICT (owner, collection, name) DO UPDATE SET title = ?4, source = ?5,"
		" media_type = ?6, labels = ?7, sha256 = ?8, size = ?9, updated = ?10, error = '',"
		" text = ?11, raw = ?12",
		&st, p->error);

	if (e)
		return e;
	kb_bind_texts(st, fields, ARRAY_LEN(fields));
	sqlite3_bind_int64(st, 9, (int64_t)p->d->bytes.n);
	sqlite3_bind_int64(st, 10, p->d->updated_us);
	if (p->text.p)
		kb_bind_text(st, 11, p->text);
	if (p->raw.n)
		kb_bind_bytes(st, 12, p->raw.p, p->raw.n);
	e = kb_run(p->kb, st, p->error);
	if (!e && !*id)
		*id = sqlite3_last_insert_rowid(p->kb->db);
	return e;
}

static uar_err note_watched(struct put *p, int64_t row)
{
	if (!p->d->watched)
		return UAR_OK;
	return kb_do(p->kb,
		     &(struct kb_do){ "INSERT OR IGNORE INTO watched VALUES (?1)", NULL, 0, row },
		     p->error);
}

static uar_err put_locked(struct put *p, struct uar_arena *arena, struct uar_kb_result *out)
{
	uar_str model;
	bool same;
	uar_err e = find(p, &out->row, &same);

	if (e || same) {
		out->change = UAR_KB_UNCHANGED;
		return e ? e : note_watched(p, out->row);
	}
	out->change = out->row ? UAR_KB_UPDATED : UAR_KB_CREATED;
	e = kb_exec(p->kb, "BEGIN IMMEDIATE", p->error);
	if (e)
		return e;
	e = kb_collection_model(p->kb, p->owner, p->d->collection, arena, &model, p->error);
	if (!e)
		e = write_row(p, &out->row);
	if (!e)
		e = note_watched(p, out->row);
	e = kb_end(p->kb, e, p->error);
	/* The document is there. What goes wrong from here on is tried again. */
	if (!e && p->text.p && p->text.n <= UAR_LIMIT_KB_AT_ONCE &&
	    uar_str_is(model, UAR_KB_BUILTIN))
		out->indexed = kb_index_locked(p->kb, out->row, out, NULL) == UAR_OK;
	return e;
}

static uar_err check_document(const struct uar_kb_document *d, struct uar_error *error)
{
	uar_err e = kb_check_name("collection", d->collection, error);

	if (!e)
		e = kb_check_name("document_id", d->id, error);
	if (!e && d->bytes.n > UAR_LIMIT_KB_DOCUMENT)
		e = uar_error_set(error, UAR_ETOOBIG, "a document has at most %d bytes",
				  UAR_LIMIT_KB_DOCUMENT);
	if (!e && (d->title.n > UAR_LIMIT_KB_TITLE || d->source.n > UAR_LIMIT_KB_TITLE))
		e = uar_error_set(error, UAR_EINVALID, "title and source have at most %d bytes",
				  UAR_LIMIT_KB_TITLE);
	if (!e && is_pdf(d->media_type) && !uar_str_starts(d->bytes, UAR_STR("%PDF-")))
		e = uar_error_set(error, UAR_EINVALID, "it is no PDF: it does not begin so");
	if (!e && !is_pdf(d->media_type) &&
	    (!uar_utf8_valid(d->bytes) || (d->bytes.n && memchr(d->bytes.p, 0, d->bytes.n))))
		e = uar_error_set(error, UAR_EINVALID,
				  "it is no text: it must be UTF-8 without "
				  "zeros, or a PDF");
	return e;
}

uar_err uar_kb_put(struct uar_kb *kb, const struct uar_owner *owner,
		   const struct uar_kb_document *d, struct uar_kb_result *out,
		   struct uar_error *error)
{
	struct put p = { .kb = kb, .d = d, .text = d->bytes, .error = error };
	struct uar_buf words = uar_buf_make((size_t)UAR_LIMIT_KB_DOCUMENT * 2);
	struct uar_arena arena;
	uar_err e = check_document(d, error);

	if (e)
		return e;
	uar_arena_init(&arena, 0);
	p.owner = kb_owner(owner, &arena);
	p.media_type = d->media_type.n ? d->media_type : UAR_STR("text/plain");
	if (is_pdf(p.media_type)) {
		p.raw = d->bytes;
		p.text = UAR_STR_NONE;
	} else if (uar_str_starts(p.media_type, UAR_STR("text/html"))) {
		uar_html_text(d->bytes, &words);
		p.raw = d->bytes;
		p.text = words.n ? uar_buf_str(&words) : UAR_STR("");
	} else if (!p.text.p) {
		p.text = UAR_STR("");
	}
	e = words.err ? words.err : p.owner.p ? UAR_OK : UAR_ENOMEM;
	*out = (struct uar_kb_result){ .change = UAR_KB_UNCHANGED };
	if (!e) {
		digest(&p);
		pthread_mutex_lock(&kb->lock);
		e = put_locked(&p, &arena, out);
		pthread_mutex_unlock(&kb->lock);
	}
	uar_arena_fini(&arena);
	uar_buf_fini(&words);
	return e;
}

static uar_err remove_locked(struct uar_kb *kb, const uar_str by[3], struct uar_error *error)
{
	struct put p = { .kb = kb, .owner = by[0], .error = error };
	struct uar_kb_document d = { .collection = by[1], .id = by[2] };
	int64_t row;
	bool same;
	uar_err e;

	p.d = &d;
	e = find(&p, &row, &same);
	if (!e && !row)
		e = uar_error_set(error, UAR_ENOTFOUND, "there is no such document");
	if (!e)
		e = kb_exec(kb, "BEGIN IMMEDIATE", error);
	if (e)
		return e;
	e = kb_do(kb,
		  &(struct kb_do){ "DELETE FROM relations WHERE owner = ?1 AND collection = ?2"
				   " AND document = ?3",
				   by, 3, 0 },
		  error);
	if (!e)
		e = kb_do(kb,
			  &(struct kb_do){ "DELETE FROM documents WHERE owner = ?1 AND"
					   " collection = ?2 AND name = ?3",
					   by, 3, 0 },
			  error);
	e = kb_end(kb, e, error);
	/* The document is gone. What stays of its index is found by nobody, and swept at a start.
	 */
	if (!e)
		kb_unindex_locked(kb, row);
	return e;
}

uar_err uar_kb_remove(struct uar_kb *kb, const struct uar_kb_place *place, uar_str id,
		      struct uar_error *error)
{
	struct uar_arena arena;
	uar_str by[3] = { UAR_STR_NONE, place->collection, id };
	uar_err e;

	uar_arena_init(&arena, 0);
	by[0] = kb_owner(&place->owner, &arena);
	pthread_mutex_lock(&kb->lock);
	e = by[0].p ? remove_locked(kb, by, error) : UAR_ENOMEM;
	pthread_mutex_unlock(&kb->lock);
	uar_arena_fini(&arena);
	return e;
}

/* --- all of an owner ------------------------------------------------------------------------ */

/* One document of the owner (by[0]), of the collection by[1] if that is not empty. UAR_ENOTFOUND:
 * there is none left. */
static uar_err remove_one(struct uar_kb *kb, const uar_str by[2], struct uar_error *error)
{
	struct uar_arena arena;
	sqlite3_stmt *st = NULL;
	uar_str found[3] = { by[0], UAR_STR_NONE, UAR_STR_NONE };
	uar_str *const to[] = { &found[1], &found[2] };
	uar_err e;

	uar_arena_init(&arena, 0);
	pthread_mutex_lock(&kb->lock);
	e = kb_prepare(kb,
		       "SELECT collection, name FROM documents WHERE owner = ?1 AND"
		       " (?2 = '' OR collection = ?2) LIMIT 1",
		       &st, error);
	if (!e) {
		kb_bind_texts(st, by, 2);
		if (kb_step(kb, st, &e, error))
			e = kb_copy_texts(st, to, ARRAY_LEN(to), &arena);
		else if (!e)
			e = UAR_ENOTFOUND;
	}
	sqlite3_finalize(st);
	if (!e)
		e = remove_locked(kb, found, error);
	pthread_mutex_unlock(&kb->lock);
	uar_arena_fini(&arena);
	return e;
}

static uar_err remove_rest(struct uar_kb *kb, const uar_str by[2], struct uar_error *error)
{
	static const char *const rest[] = {
		"DELETE FROM relations WHERE owner = ?1 AND (?2 = '' OR collection = ?2)",
		"DELETE FROM collections WHERE owner = ?1 AND (?2 = '' OR name = ?2)",
		"DELETE FROM memories WHERE owner = ?1 AND ?2 = ''",
	};
	uar_err e;

	pthread_mutex_lock(&kb->lock);
	e = kb_exec(kb, "BEGIN IMMEDIATE", error);
	if (!e) {
		for (size_t i = 0; i < ARRAY_LEN(rest) && !e; i++)
			e = kb_do(kb, &(struct kb_do){ rest[i], by, 2, 0 }, error);
		e = kb_end(kb, e, error);
	}
	pthread_mutex_unlock(&kb->lock);
	return e;
}

uar_err uar_kb_clear(struct uar_kb *kb, const struct uar_kb_place *place, int64_t *out_documents,
		     struct uar_error *error)
{
	struct uar_arena arena;
	uar_str by[2] = { UAR_STR_NONE, place->collection };
	uar_err e;

	uar_arena_init(&arena, 0);
	by[0] = kb_owner(&place->owner, &arena);
	e = by[0].p ? UAR_OK : UAR_ENOMEM;
	*out_documents = 0;
	while (!e) {
		e = remove_one(kb, by, error);
		*out_documents += !e;
	}
	if (e == UAR_ENOTFOUND)
		e = remove_rest(kb, by, error);
	uar_arena_fini(&arena);
	return e;
}
