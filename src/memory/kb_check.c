/* kb_check.c - is the index what the documents say? */
#include "memory/kb_int.h"

struct checking {
	struct uar_kb *kb;
	sqlite3_stmt *chunks; /* of the document at hand */
	struct uar_sha256 all;
	struct uar_kb_report *out;
	uar_str name;
	struct uar_error *error;
};

static void note_damage(struct uar_kb_report *r, const char *what, uar_str where)
{
	if (!r->damage[0])
		snprintf(r->damage, sizeof r->damage, "%s%.*s", what, UAR_FMT(where));
}

static uar_err ask_sqlite(struct checking *c, const char *sql)
{
	sqlite3_stmt *st = NULL;
	uar_err e = kb_prepare(c->kb, sql, &st, c->error);

	if (!e && kb_step(c->kb, st, &e, c->error) && !uar_str_is(kb_text(st, 0), "ok"))
		note_damage(c->out, "SQLite: ", kb_text(st, 0));
	sqlite3_finalize(st);
	if (e == UAR_ECORRUPT) {
		note_damage(c->out, "SQLite: the file is damaged", UAR_STR(""));
		e = UAR_OK;
	}
	return e;
}

static uar_err compare_chunk(void *ctx, const struct uar_chunk *now)
{
	struct checking *c = ctx;
	char place[80];
	uar_err e = UAR_OK;
	bool there = kb_step(c->kb, c->chunks, &e, c->error);

	if (e)
		return e;
	c->out->chunks++;
	if (!there || sqlite3_column_int64(c->chunks, 0) != (int64_t)now->line ||
	    sqlite3_column_int64(c->chunks, 1) != (int64_t)now->page ||
	    !uar_str_eq(kb_text(c->chunks, 2), now->heading) ||
	    !uar_str_eq(kb_text(c->chunks, 3), now->text))
		note_damage(c->out, "passages are not those of the document ", c->name);
	snprintf(place, sizeof place, "%zu %zu\n", now->line, now->page);
	uar_sha256_add(&c->all, uar_str_c(place));
	if (there) {
		uar_sha256_add(&c->all, kb_text(c->chunks, 2));
		uar_sha256_add(&c->all, UAR_STR("\n"));
		uar_sha256_add(&c->all, kb_text(c->chunks, 3));
	}
	return UAR_OK;
}

static uar_err check_document(struct checking *c, sqlite3_stmt *st)
{
	uar_err e;

	c->name = kb_text(st, 1);
	uar_sha256_add(&c->all, kb_text(st, 4));
	uar_sha256_add(&c->all, c->name);
	sqlite3_bind_int64(c->chunks, 1, sqlite3_column_int64(st, 0));
	e = uar_chunk_text(kb_text(st, 3), kb_kind(kb_text(st, 2)), compare_chunk, c);
	if (!e && kb_step(c->kb, c->chunks, &e, c->error))
		note_damage(c->out, "there are more passages than those of the document ", c->name);
	sqlite3_reset(c->chunks);
	return e;
}

static uar_err count(struct checking *c, const char *sql, int64_t *out)
{
	sqlite3_stmt *st = NULL;
	uar_err e = kb_prepare(c->kb, sql, &st, c->error);

	if (!e && kb_step(c->kb, st, &e, c->error))
		*out = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	return e;
}

#define PENDING                                                                                    \
	" documents d JOIN collections k ON k.owner = d.owner AND k.name = d.collection LEFT JOIN" \
	" ix.indexed i ON i.document = d.id WHERE d.error = '' AND (i.sha256 IS NOT d.sha256 OR"   \
	" i.model IS NOT k.embedding)"

static uar_err count_all(struct checking *c)
{
	int64_t lost = 0;
	uar_err e = count(c, "SELECT count(*) FROM documents", &c->out->documents);

	if (!e)
		e = count(c, "SELECT count(*) FROM" PENDING, &c->out->pending);
	if (!e)
		e = count(c, "SELECT count(*) FROM documents WHERE error <> ''", &c->out->failed);
	if (!e)
		e = count(c, "SELECT count(*) FROM ix.vectors", &c->out->vectors);
	if (!e)
		e = count(c,
			  "SELECT count(*) FROM ix.chunks WHERE document NOT IN (SELECT id FROM"
			  " documents)",
			  &lost);
	if (lost)
		note_damage(c->out, "there are passages without a document", UAR_STR(""));
	return e;
}

static uar_err name_failures(struct checking *c)
{
	sqlite3_stmt *st = NULL;
	size_t n = 0;
	uar_err e = kb_prepare(c->kb,
			       "SELECT collection || '/' || name || ': ' || substr(error, 1, 120)"
			       " FROM documents WHERE error <> '' ORDER BY id LIMIT 5",
			       &st, c->error);

	while (!e && kb_step(c->kb, st, &e, c->error)) {
		uar_str line = kb_text(st, 0);
		size_t room = sizeof c->out->failures - n;

		if (line.n + 3 > room)
			break;
		n += (size_t)snprintf(c->out->failures + n, room, "%s%.*s", n ? "; " : "",
				      UAR_FMT(line));
	}
	sqlite3_finalize(st);
	return e;
}

static uar_err check_documents(struct checking *c)
{
	sqlite3_stmt *st = NULL;
	uar_err e = kb_prepare(c->kb,
			       "SELECT line, page, heading, text FROM ix.chunks WHERE document ="
			       " ?1 ORDER BY n",
			       &c->chunks, c->error);

	if (!e)
		e = kb_prepare(c->kb,
			       "SELECT d.id, d.collection || '/' || d.name, d.media_type, d.text,"
			       " d.owner FROM documents d JOIN ix.indexed i ON i.document = d.id"
			       " AND i.sha256 = d.sha256 ORDER BY d.owner, d.collection, d.name",
			       &st, c->error);
	while (!e && kb_step(c->kb, st, &e, c->error))
		e = check_document(c, st);
	sqlite3_finalize(st);
	sqlite3_finalize(c->chunks);
	return e;
}

uar_err uar_kb_check(struct uar_kb *kb, struct uar_kb_report *out, struct uar_error *error)
{
	struct checking c = { .kb = kb, .out = out, .error = error };
	uar_err e;

	*out = (struct uar_kb_report){ .documents = 0 };
	uar_sha256_init(&c.all);
	pthread_mutex_lock(&kb->lock);
	e = ask_sqlite(&c, "PRAGMA ix.quick_check(1)");
	if (!e)
		e = ask_sqlite(&c, "PRAGMA main.quick_check(1)");
	if (!e)
		e = ask_sqlite(&c,
			       "INSERT INTO ix.words(words, rank) VALUES ('integrity-check', 1)");
	if (!e)
		e = count_all(&c);
	if (!e)
		e = name_failures(&c);
	if (!e)
		e = check_documents(&c);
	pthread_mutex_unlock(&kb->lock);
	uar_sha256_end(&c.all, out->sha256);
	if (e == UAR_ECORRUPT) {
		note_damage(out, "SQLite: the index is damaged", UAR_STR(""));
		e = UAR_OK;
	}
	return e;
}
