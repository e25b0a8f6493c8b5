/* kb_list.c - what is there: documents, collections, relations between entities. */
#include "memory/kb_int.h"

/* --- documents and collections --------------------------------------------------------------- */

static uar_err read_document(sqlite3_stmt *st, struct uar_arena *arena, struct uar_kb_document *d)
{
	uar_str *const to[] = { &d->collection, &d->id,	    &d->title, &d->source,
				&d->media_type, &d->labels, &d->error };
	uar_err e;

	*d = (struct uar_kb_document){ .row = sqlite3_column_int64(st, 7),
				       .size = sqlite3_column_int64(st, 8),
				       .updated_us = sqlite3_column_int64(st, 9),
				       .chunks = sqlite3_column_int64(st, 11),
				       .watched = sqlite3_column_int(st, 13) };
	e = kb_copy_texts(st, to, ARRAY_LEN(to), arena);
	snprintf(d->sha256, sizeof d->sha256, "%.*s", UAR_FMT(kb_text(st, 10)));
	d->state = d->error.n			? UAR_KB_FAILED
		   : sqlite3_column_int(st, 12) ? UAR_KB_READY
						: UAR_KB_PENDING;
	return e;
}

#define DOCUMENTS                                                                                  \
	"SELECT d.collection, d.name, d.title, d.source, d.media_type, d.labels, d.error, d.id,"   \
	" d.size, d.updated, d.sha256, coalesce(i.chunks, 0), i.sha256 IS d.sha256 AND"            \
	" i.model IS c.embedding, EXISTS (SELECT 1 FROM watched w WHERE w.document = d.id)"        \
	" FROM documents d JOIN collections c ON c.owner = d.owner AND"                            \
	" c.name = d.collection LEFT JOIN ix.indexed i ON i.document = d.id"                       \
	" WHERE d.owner = ?1 AND d.collection = ?2"

uar_err uar_kb_list(struct uar_kb *kb, const struct uar_kb_page *page, struct uar_kb_documents *out,
		    struct uar_error *error)
{
	struct uar_kb_document *list =
		uar_arena_alloc(page->arena, UAR_LIMIT_KB_PAGE * sizeof *list);
	uar_str by[] = { kb_owner(&page->place.owner, page->arena), page->place.collection,
			 page->id.n ? page->id : page->after };
	sqlite3_stmt *st = NULL;
	size_t n = 0;
	uar_err e;

	kb = kb->reader;
	pthread_mutex_lock(&kb->lock);
	e = list && by[0].p
		    ? kb_prepare(kb,
				 page->id.n ? DOCUMENTS " AND d.name = ?3 LIMIT ?4"
					    : DOCUMENTS " AND d.name > ?3 ORDER BY d.name LIMIT ?4",
				 &st, error)
		    : UAR_ENOMEM;
	if (!e) {
		kb_bind_texts(st, by, ARRAY_LEN(by));
		sqlite3_bind_int(st, 4, UAR_LIMIT_KB_PAGE);
	}
	while (!e && n < UAR_LIMIT_KB_PAGE && kb_step(kb, st, &e, error))
		e = read_document(st, page->arena, &list[n++]);
	sqlite3_finalize(st);
	pthread_mutex_unlock(&kb->lock);
	*out = (struct uar_kb_documents){ list, n };
	return e;
}

static uar_err read_collection(sqlite3_stmt *st, struct uar_arena *arena,
			       struct uar_kb_collection *c)
{
	uar_str *const to[] = { &c->name, &c->embedding, &c->policy };

	*c = (struct uar_kb_collection){ .documents = sqlite3_column_int64(st, 3),
					 .chunks = sqlite3_column_int64(st, 4),
					 .pending = sqlite3_column_int64(st, 5),
					 .failed = sqlite3_column_int64(st, 6) };
	return kb_copy_texts(st, to, ARRAY_LEN(to), arena);
}

uar_err uar_kb_collections(struct uar_kb *kb, const struct uar_owner *owner,
			   struct uar_arena *arena, struct uar_kb_collections *out,
			   struct uar_error *error)
{
	struct uar_kb_collection *list = uar_arena_alloc(arena, UAR_LIMIT_KB_PAGE * sizeof *list);
	uar_str name = kb_owner(owner, arena);
	sqlite3_stmt *st = NULL;
	size_t n = 0;
	uar_err e;

	kb = kb->reader;
	pthread_mutex_lock(&kb->lock);
	e = list && name.p
		    ? kb_prepare(kb,
				 "SELECT c.name, c.embedding, c.policy, count(d.id),"
				 " coalesce(sum(i.chunks), 0), coalesce(sum(d.error = '' AND"
				 " (i.sha256 IS NOT d.sha256 OR i.model IS NOT c.embedding)), 0),"
				 " coalesce(sum(d.error <> ''), 0) FROM collections c"
				 " LEFT JOIN documents d ON d.owner = c.owner AND d.collection ="
				 " c.name LEFT JOIN ix.indexed i ON i.document = d.id WHERE"
				 " c.owner = ?1 GROUP BY c.name ORDER BY c.name LIMIT ?2",
				 &st, error)
		    : UAR_ENOMEM;
	if (!e) {
		kb_bind_text(st, 1, name);
		sqlite3_bind_int(st, 2, UAR_LIMIT_KB_PAGE);
	}
	while (!e && n < UAR_LIMIT_KB_PAGE && kb_step(kb, st, &e, error))
		e = read_collection(st, arena, &list[n++]);
	sqlite3_finalize(st);
	pthread_mutex_unlock(&kb->lock);
	*out = (struct uar_kb_collections){ list, n };
	return e;
}

#define USUAL_POLICY                                                                               \
	"'{\"mode\":\"hybrid\",\"top_k\":5,\"deny_labels\":\"\",\"citation_required\":false,"      \
	"\"expand\":false}'"
#define NEW_POLICY                                                                                 \
	"INSERT INTO collections VALUES (?1, ?2, ?3, json_patch(" USUAL_POLICY ", ?4))"            \
	" ON CONFLICT DO UPDATE SET policy = json_patch(json_patch(" USUAL_POLICY                  \
	", iif(json_valid(policy), policy, '{}')), ?4)"

uar_err uar_kb_set_collection(struct uar_kb *kb, const struct uar_owner *owner,
			      const struct uar_kb_collection *c, struct uar_error *error)
{
	struct uar_arena arena;
	uar_str by[] = { UAR_STR_NONE, c->name,
			 c->embedding.n ? c->embedding : uar_str_c(kb->model),
			 c->policy.n ? c->policy : UAR_STR("{}") };
	uar_err e = kb_check_name("collection", c->name, error);

	if (e)
		return e;
	uar_arena_init(&arena, 0);
	by[0] = kb_owner(owner, &arena);
	pthread_mutex_lock(&kb->lock);
	e = by[0].p ? kb_do(kb,
			    &(struct kb_do){ c->embedding.n ? NEW_POLICY ", embedding = ?3"
							    : NEW_POLICY,
					     by, 4, 0 },
			    error)
		    : UAR_ENOMEM;
	if (!e && c->embedding.n) /* what failed with the one before is tried with this one */
		e = kb_do(kb,
			  &(struct kb_do){ "UPDATE documents SET error = '' WHERE owner = ?1 AND"
					   " collection = ?2 AND error <> '' AND text IS NOT NULL",
					   by, 2, 0 },
			  error);
	pthread_mutex_unlock(&kb->lock);
	uar_arena_fini(&arena);
	return e;
}

/* --- relations ------------------------------------------------------------------------------ */

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
	kb_bind_text(st, 7, r->by);
	sqlite3_bind_int64(st, 8, r->at_us);
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
		e = kb_prepare(
			kb,
			"INSERT OR REPLACE INTO relations VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7,"
			" ?8)",
			&st, error);
	if (!e) {
		kb_bind_text(st, 1, kb_owner(&place->owner, &arena));
		kb_bind_text(st, 2, place->collection);
	}
	for (size_t i = 0; i < r->n && !e; i++)
		e = relate_one(kb, st, &r->at[i], error);
	sqlite3_finalize(st);
	e = kb_end(kb, e, error);
	pthread_mutex_unlock(&kb->lock);
	uar_arena_fini(&arena);
	return e;
}

/* It is of no document with a label that the policy of the collection denies. */
#define SHOWN                                                                                      \
	" (NOT ?6 OR NOT EXISTS (SELECT 1 FROM documents d JOIN collections k ON k.owner ="        \
	" d.owner AND k.name = d.collection WHERE d.owner = r.owner AND d.collection ="            \
	" r.collection AND d.name = r.document AND shares_word(d.labels, iif(json_valid("          \
	"k.policy), json_extract(k.policy, '$.deny_labels'), ''))))"

static const char neighbours[] =
	"WITH RECURSIVE near(name, far) AS (SELECT ?3, 0 UNION"
	" SELECT iif(r.source = near.name, r.target, r.source), far + 1 FROM near"
	" JOIN relations r ON r.owner = ?1 AND r.collection = ?2 AND"
	" (r.source = near.name OR r.target = near.name) WHERE far < ?4 - 1 AND" SHOWN
	" LIMIT 1000)"
	" SELECT DISTINCT r.source, r.kind, r.target, r.document, r.by, r.at FROM relations r"
	" JOIN near ON r.source = near.name OR r.target = near.name WHERE"
	" r.owner = ?1 AND r.collection = ?2 AND" SHOWN " ORDER BY 1, 2, 3, 4 LIMIT ?5";

uar_err uar_kb_neighbours(struct uar_kb *kb, const struct uar_kb_walk *walk,
			  struct uar_arena *arena, struct uar_kb_relations *out,
			  struct uar_error *error)
{
	struct uar_kb_relation *list =
		uar_arena_alloc(arena, UAR_LIMIT_KB_RELATIONS * sizeof *list);
	uar_str by[] = { kb_owner(&walk->place.owner, arena), walk->place.collection,
			 walk->entity };
	sqlite3_stmt *st = NULL;
	size_t n = 0;
	uar_err e;

	kb = kb->reader;
	pthread_mutex_lock(&kb->lock);
	e = list && by[0].p ? kb_prepare(kb, neighbours, &st, error) : UAR_ENOMEM;
	if (!e) {
		kb_bind_texts(st, by, ARRAY_LEN(by));
		sqlite3_bind_int(st, 4, walk->depth < 1 ? 1 : walk->depth > 3 ? 3 : walk->depth);
		sqlite3_bind_int(st, 5, UAR_LIMIT_KB_RELATIONS);
		sqlite3_bind_int(st, 6, walk->by_policy);
	}
	while (!e && n < UAR_LIMIT_KB_RELATIONS && kb_step(kb, st, &e, error)) {
		uar_str *const to[] = { &list[n].from, &list[n].kind, &list[n].to,
					&list[n].document, &list[n].by };

		list[n].at_us = sqlite3_column_int64(st, 5);
		e = kb_copy_texts(st, to, ARRAY_LEN(to), arena);
		n++;
	}
	sqlite3_finalize(st);
	pthread_mutex_unlock(&kb->lock);
	*out = (struct uar_kb_relations){ list, n };
	return e;
}
