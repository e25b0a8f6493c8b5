/* kb_list.c - what is there: documents, collections, relations between entities. */
#include "memory/kb_int.h"

/* --- documents and collections --------------------------------------------------------------- */

static uar_err read_document(sqlite3_stmt *st, struct uar_arena *arena, struct uar_kb_document *d)
{
	uar_str *const to[] = { &d->collection, &d->id,		&d->title,
				&d->source,	&d->media_type, &d->labels };

	*d = (struct uar_kb_document){ .bytes = sqlite3_column_int64(st, 6),
				       .chunks = sqlite3_column_int64(st, 7),
				       .updated_us = sqlite3_column_int64(st, 8) };
	for (size_t i = 0; i < ARRAY_LEN(to); i++) {
		*to[i] = uar_arena_str(arena, kb_text(st, (int)i));
		if (!to[i]->p)
			return UAR_ENOMEM;
	}
	snprintf(d->sha256, sizeof d->sha256, "%.*s", UAR_FMT(kb_text(st, 9)));
	return UAR_OK;
}

uar_err uar_kb_list(struct uar_kb *kb, const struct uar_kb_page *page, struct uar_kb_documents *out,
		    struct uar_error *error)
{
	struct uar_kb_document *list =
		uar_arena_alloc(page->arena, UAR_LIMIT_KB_PAGE * sizeof *list);
	sqlite3_stmt *st = NULL;
	size_t n = 0;
	uar_err e;

	pthread_mutex_lock(&kb->lock);
	e = list ? kb_prepare(
			   kb,
			   "SELECT collection, name, title, source, media_type, labels,"
			   " length(CAST(text AS BLOB)), (SELECT count(*) FROM chunks c WHERE"
			   " c.document = d.id), updated, sha256 FROM documents d WHERE owner = ?1"
			   " AND collection = ?2 AND name > ?3 ORDER BY name LIMIT ?4",
			   &st, error)
		 : UAR_ENOMEM;
	if (!e) {
		kb_bind_text(st, 1, kb_owner(&page->place.owner, page->arena));
		kb_bind_text(st, 2, page->place.collection);
		kb_bind_text(st, 3, page->after);
		sqlite3_bind_int(st, 4, UAR_LIMIT_KB_PAGE);
	}
	while (!e && n < UAR_LIMIT_KB_PAGE && kb_step(kb, st, &e, error))
		e = read_document(st, page->arena, &list[n++]);
	sqlite3_finalize(st);
	pthread_mutex_unlock(&kb->lock);
	*out = (struct uar_kb_documents){ list, n };
	return e;
}

uar_err uar_kb_collections(struct uar_kb *kb, const struct uar_owner *owner,
			   struct uar_arena *arena, struct uar_kb_collections *out,
			   struct uar_error *error)
{
	struct uar_kb_collection *list = uar_arena_alloc(arena, UAR_LIMIT_KB_PAGE * sizeof *list);
	sqlite3_stmt *st = NULL;
	size_t n = 0;
	uar_err e;

	pthread_mutex_lock(&kb->lock);
	e = list ? kb_prepare(
			   kb,
			   "SELECT collection, count(*), (SELECT count(*) FROM chunks c JOIN"
			   " documents x ON x.id = c.document WHERE x.owner = ?1 AND x.collection ="
			   " d.collection) FROM documents d WHERE owner = ?1 GROUP BY collection"
			   " ORDER BY collection LIMIT ?2",
			   &st, error)
		 : UAR_ENOMEM;
	if (!e) {
		kb_bind_text(st, 1, kb_owner(owner, arena));
		sqlite3_bind_int(st, 2, UAR_LIMIT_KB_PAGE);
	}
	while (!e && n < UAR_LIMIT_KB_PAGE && kb_step(kb, st, &e, error)) {
		list[n] = (struct uar_kb_collection){ uar_arena_str(arena, kb_text(st, 0)),
						      sqlite3_column_int64(st, 1),
						      sqlite3_column_int64(st, 2) };
		e = list[n++].name.p ? UAR_OK : UAR_ENOMEM;
	}
	sqlite3_finalize(st);
	pthread_mutex_unlock(&kb->lock);
	*out = (struct uar_kb_collections){ list, n };
	return e;
}

/* --- relations ----------------------------------------------------------------------------------
 */

static uar_err relate_one(struct uar_kb *kb, sqlite3_stmt *st, const struct uar_kb_relation *r,
			  struct uar_error *error)
{
	uar_err e = UAR_OK;

	if (!r->from.n || !r->kind.n || !r->to.n || r->from.n > 512 || r->kind.n > 128 ||
	    r->to.n > 512)
		return uar_error_set(error, UAR_EINVALID,
				     "a relation has from, kind and to, of 512, 128 and 512 bytes "
				     "at most");
	kb_bind_text(st, 3, r->from);
	kb_bind_text(st, 4, r->kind);
	kb_bind_text(st, 5, r->to);
	kb_bind_text(st, 6, r->document);
	(void)kb_step(kb, st, &e, error);
	sqlite3_reset(st);
	return e;
}

uar_err uar_kb_relate(struct uar_kb *kb, const struct uar_kb_place *place,
		      const struct uar_kb_relations *r, struct uar_error *error)
{
	struct uar_arena arena;
	sqlite3_stmt *st = NULL;
	uar_err e = kb_check_name("collection", place->collection, error);

	if (e)
		return e;
	uar_arena_init(&arena, 0);
	pthread_mutex_lock(&kb->lock);
	e = kb_exec(kb, "BEGIN IMMEDIATE", error);
	if (!e)
		e = kb_prepare(kb,
			       "INSERT OR REPLACE INTO relations VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
			       &st, error);
	if (!e) {
		kb_bind_text(st, 1, kb_owner(&place->owner, &arena));
		kb_bind_text(st, 2, place->collection);
	}
	for (size_t i = 0; i < r->n && !e; i++)
		e = relate_one(kb, st, &r->at[i], error);
	sqlite3_finalize(st);
	if (!e)
		e = kb_exec(kb, "COMMIT", error);
	if (e)
		(void)sqlite3_exec(kb->db, "ROLLBACK", NULL, NULL, NULL);
	pthread_mutex_unlock(&kb->lock);
	uar_arena_fini(&arena);
	return e;
}

uar_err uar_kb_neighbours(struct uar_kb *kb, const struct uar_kb_walk *walk,
			  struct uar_arena *arena, struct uar_kb_relations *out,
			  struct uar_error *error)
{
	struct uar_kb_relation *list =
		uar_arena_alloc(arena, UAR_LIMIT_KB_RELATIONS * sizeof *list);
	sqlite3_stmt *st = NULL;
	size_t n = 0;
	uar_err e;

	pthread_mutex_lock(&kb->lock);
	e = list ? kb_prepare(kb,
			      "WITH RECURSIVE near(name, far) AS (SELECT ?3, 0 UNION"
			      " SELECT iif(r.source = near.name, r.target, r.source), far + 1 FROM "
			      "near"
			      " JOIN relations r ON r.owner = ?1 AND r.collection = ?2 AND"
			      " (r.source = near.name OR r.target = near.name) WHERE far < ?4 - 1"
			      " LIMIT 1000)"
			      " SELECT DISTINCT r.source, r.kind, r.target, r.document FROM "
			      "relations r"
			      " JOIN near ON r.source = near.name OR r.target = near.name WHERE"
			      " r.owner = ?1 AND r.collection = ?2 ORDER BY 1, 2, 3 LIMIT ?5",
			      &st, error)
		 : UAR_ENOMEM;
	if (!e) {
		kb_bind_text(st, 1, kb_owner(&walk->place.owner, arena));
		kb_bind_text(st, 2, walk->place.collection);
		kb_bind_text(st, 3, walk->entity);
		sqlite3_bind_int(st, 4, walk->depth < 1 ? 1 : walk->depth > 3 ? 3 : walk->depth);
		sqlite3_bind_int(st, 5, UAR_LIMIT_KB_RELATIONS);
	}
	while (!e && n < UAR_LIMIT_KB_RELATIONS && kb_step(kb, st, &e, error)) {
		uar_str *const to[] = { &list[n].from, &list[n].kind, &list[n].to,
					&list[n].document };

		for (size_t i = 0; i < ARRAY_LEN(to); i++) {
			*to[i] = uar_arena_str(arena, kb_text(st, (int)i));
			e = to[i]->p ? e : UAR_ENOMEM;
		}
		n++;
	}
	sqlite3_finalize(st);
	pthread_mutex_unlock(&kb->lock);
	*out = (struct uar_kb_relations){ list, n };
	return e;
}
