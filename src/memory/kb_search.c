/* kb_search.c - by words (FTS5, BM25), by vectors (exact), or both, joined by their ranks. */
#include "memory/kb_int.h"

#include <stdlib.h>

#include "base/buf.h"

#define RANK_CONSTANT 60.0 /* of reciprocal rank fusion */
#define LEAST_SIMILAR 0.12 /* below it two texts share nothing */
enum { POOL = 4 * UAR_LIMIT_KB_HITS /* as in LIMIT 200 */, QUERY_WORDS = 64, BASE_PARAMETERS = 3 };

struct found {
	int64_t chunk;
	double keyword, similarity, score;
	double weight; /* of the keywords, 0 to 1 */
	bool related;
};

struct search {
	struct uar_kb *kb;
	const struct uar_kb_query *q;
	uar_str owner;
	struct found pool[3 * POOL];
	size_t n;
	int64_t *denied; /* documents that must not be shown, in order */
	size_t denied_n;
	bool partial;	  /* not all vectors were compared */
	bool loading;	  /* and more of them can be */
	uar_str mismatch; /* why a collection's could not be compared */
	struct uar_arena *arena;
	struct uar_error *error;
};

/* --- the filter that all ways share ------------------------------------------------------ */

/* " AND d.owner = ? AND d.collection IN (?, ...)", and no document with a denied label. */
static void put_filter(const struct search *s, struct uar_buf *sql)
{
	uar_buf_add_str(sql, UAR_STR(" d.owner = ?1 AND (d.error = '' OR d.text IS NOT NULL) AND"
				     " d.collection IN ("));
	for (size_t i = 0; i < s->q->collection_count; i++)
		uar_buf_printf(sql, "%s?%zu", i ? ", " : "", i + BASE_PARAMETERS);
	uar_buf_add_str(sql, UAR_STR(")"));
	if (s->q->deny_labels.n)
		uar_buf_printf(sql, " AND NOT shares_word(d.labels, ?%zu)",
			       s->q->collection_count + BASE_PARAMETERS);
}

static void bind_filter(const struct search *s, sqlite3_stmt *st)
{
	kb_bind_text(st, 1, s->owner);
	for (size_t i = 0; i < s->q->collection_count; i++)
		kb_bind_text(st, (int)i + BASE_PARAMETERS, s->q->collections[i]);
	if (s->q->deny_labels.n)
		kb_bind_text(st, (int)s->q->collection_count + BASE_PARAMETERS, s->q->deny_labels);
}

static uar_err prepare(struct search *s, const char *head, const char *tail, sqlite3_stmt **out)
{
	struct uar_buf sql = uar_buf_make(8192);
	uar_err e;

	uar_buf_add_str(&sql, uar_str_c(head));
	put_filter(s, &sql);
	uar_buf_add_str(&sql, uar_str_c(tail));
	uar_buf_add_char(&sql, 0);
	e = sql.err ? sql.err : kb_prepare(s->kb, sql.p, out, s->error);
	if (!e)
		bind_filter(s, *out);
	uar_buf_fini(&sql);
	return e;
}

/* --- words ---------------------------------------------------------------------------------- */

static bool is_word_byte(char c)
{
	return (unsigned char)c >= 0x80 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
	       (c >= 'A' && c <= 'Z');
}

/* "search docs" becomes "search" OR "docs": quoted, so that no word is an operator. Words that
 * stand in every text are left out, unless there are no others. */
static size_t put_match(uar_str text, bool all, struct uar_buf *out)
{
	size_t i = 0, words = 0;

	while (i < text.n && words < QUERY_WORDS) {
		uar_str word;
		size_t begin;

		while (i < text.n && !is_word_byte(text.p[i]))
			i++;
		begin = i;
		while (i < text.n && is_word_byte(text.p[i]))
			i++;
		word = uar_str_n(text.p + begin, i - begin);
		if (word.n && (all || !uar_embed_is_common(word)))
			uar_buf_printf(out, "%s\"%.*s\"", words++ ? " OR " : "", UAR_FMT(word));
	}
	return words;
}

/* Beside vectors, what has a small part of the query's words stands low: it is by chance that it
 * has them. */
static double weight_of(const struct search *s, sqlite3_stmt *st)
{
	double part = sqlite3_column_double(st, 2);

	return s->q->mode == UAR_KB_KEYWORD ? 1 : part * part;
}

/* Takes what a statement brings: passage, rank, part of the query, whether it may be shown.
 * *out_all: how many rows there were. */
static uar_err take_words(struct search *s, sqlite3_stmt *st, uar_str match, size_t *out_all)
{
	uar_err e = UAR_OK;

	*out_all = s->n = 0;
	kb_bind_text(st, 2, match);
	while (s->n < POOL && kb_step(s->kb, st, &e, s->error)) {
		++*out_all;
		if (!sqlite3_column_int(st, 3))
			continue;
		s->pool[s->n++] = (struct found){ .chunk = sqlite3_column_int64(st, 0),
						  .keyword = -sqlite3_column_double(st, 1),
						  .weight = weight_of(s, st) };
	}
	sqlite3_finalize(st);
	return e;
}

/* The best of the index, and which of them may be shown: FTS5 sorts faster by itself. Where others'
 * are among them, those that may be shown are sorted instead. */
static uar_err find_matching(struct search *s, uar_str match)
{
	sqlite3_stmt *st = NULL;
	size_t all = 0;
	uar_err e =
		prepare(s,
			"SELECT w.id, w.rank, w.part, EXISTS (SELECT 1 FROM ix.chunks"
			" c" KB_VISIBLE " WHERE",
			" AND c.id = w.id) FROM (SELECT rowid AS id, rank, covers(words) AS part"
			" FROM ix.words WHERE words MATCH ?2 AND rank MATCH 'bm25(2.0, 1.0)'"
			" ORDER BY rank LIMIT 200) w",
			&st);

	if (!e)
		e = take_words(s, st, match, &all);
	if (e || all < POOL || s->n == all)
		return e;
	e = prepare(s,
		    "SELECT c.id, bm25(words, 2.0, 1.0), covers(words), 1 FROM ix.words"
		    " JOIN ix.chunks c ON c.id = words.rowid" KB_VISIBLE
		    " WHERE words MATCH ?2 AND",
		    " ORDER BY 2 LIMIT 200", &st);
	return e ? e : take_words(s, st, match, &all);
}

static uar_err find_words(struct search *s)
{
	struct uar_buf match = uar_buf_make(UAR_LIMIT_KB_QUERY * 2);
	uar_err e = UAR_OK;

	if (put_match(s->q->text, false, &match) || put_match(s->q->text, true, &match))
		e = find_matching(s, uar_buf_str(&match));
	uar_buf_fini(&match);
	return e;
}

/* --- vectors -------------------------------------------------------------------------------- */

static int by_similarity(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	if (x->similarity != y->similarity)
		return x->similarity > y->similarity ? -1 : 1;
	return x->chunk < y->chunk ? -1 : x->chunk > y->chunk;
}

struct near {
	struct found at[2 * POOL];
	size_t n;
	double least; /* what is not nearer need not be kept */
};

/* Keeps the nearest: the list is sorted when it is full, and its worse half goes. */
static void keep_near(struct near *near, int64_t chunk, double similarity)
{
	if (near->n == (size_t)POOL * 2) {
		qsort(near->at, near->n, sizeof *near->at, by_similarity);
		near->n = POOL;
		near->least = near->at[POOL - 1].similarity;
	}
	near->at[near->n++] = (struct found){ .chunk = chunk, .similarity = similarity };
}

static struct found *found_before(struct search *s, size_t words, int64_t chunk)
{
	for (size_t i = 0; i < words; i++)
		if (s->pool[i].chunk == chunk)
			return &s->pool[i];
	return NULL;
}

static void add_near(struct search *s, struct near *near)
{
	size_t words = s->n;

	qsort(near->at, near->n, sizeof *near->at, by_similarity);
	for (size_t i = 0; i < near->n && i < POOL; i++) {
		struct found *known = found_before(s, words, near->at[i].chunk);

		if (known)
			known->similarity = near->at[i].similarity;
		else
			s->pool[s->n++] = near->at[i];
	}
}

static int by_number(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* Documents of the collections that have a denied label, or are not indexed as they are. */
static uar_err find_denied(struct search *s)
{
	sqlite3_stmt *st = NULL;
	size_t room = 0;
	uar_err e = prepare(s,
			    "SELECT o.id FROM documents o JOIN collections ok ON ok.owner = o.owner"
			    " AND ok.name = o.collection WHERE o.owner = ?1 AND ?2 = '' AND"
			    " o.id NOT IN (SELECT d.id FROM documents d JOIN ix.indexed i ON"
			    " i.document = d.id AND i.sha256 = d.sha256 WHERE",
			    ") ORDER BY o.id", &st);

	if (!e)
		kb_bind_text(st, 2, UAR_STR(""));
	while (!e && kb_step(s->kb, st, &e, s->error)) {
		if (s->denied_n == room) {
			int64_t *more = uar_arena_room(s->arena, (room = room ? 2 * room : 256) *
									 sizeof *more);

			if (!more) {
				e = UAR_ENOMEM;
				break;
			}
			if (s->denied_n)
				memcpy(more, s->denied, s->denied_n * sizeof *more);
			s->denied = more;
		}
		s->denied[s->denied_n++] = sqlite3_column_int64(st, 0);
	}
	sqlite3_finalize(st);
	return e;
}

static bool is_denied(const struct search *s, int64_t document)
{
	return s->denied_n &&
	       bsearch(&document, s->denied, s->denied_n, sizeof document, by_number);
}

static void scan(const struct search *s, const struct kb_matrix *m, const struct uar_kb_vector *v,
		 struct near *near)
{
	for (size_t i = 0; i < m->n; i++) {
		double similarity = (double)kb_dot(v->at, m->at + i * m->dims, m->dims);

		if (similarity > near->least && !is_denied(s, m->document[i]))
			keep_near(near, m->chunk[i], similarity);
	}
}

static uar_err model_of(struct search *s, uar_str collection, uar_str *out)
{
	uar_str by[] = { s->owner, collection };
	sqlite3_stmt *st = NULL;
	uar_err e = kb_prepare(s->kb,
			       "SELECT embedding FROM collections WHERE owner = ?1 AND name = ?2",
			       &st, s->error);

	*out = UAR_STR_NONE;
	if (e)
		return e;
	kb_bind_texts(st, by, ARRAY_LEN(by));
	if (kb_step(s->kb, st, &e, s->error)) {
		*out = uar_arena_str(s->arena, kb_text(st, 0));
		e = out->p ? UAR_OK : UAR_ENOMEM;
	}
	sqlite3_finalize(st);
	return e;
}

static const struct uar_kb_vector *vector_of(const struct search *s, uar_str model,
					     const struct uar_kb_vector *own)
{
	if (s->q->only_model.n && !uar_str_eq(s->q->only_model, model))
		return NULL;
	if (uar_str_eq(own->model, model))
		return own->n ? own : NULL;
	for (size_t i = 0; i < s->q->vector_count; i++)
		if (uar_str_eq(s->q->vectors[i].model, model))
			return &s->q->vectors[i];
	return NULL;
}

/* The embedder has changed behind its name. Words find passages all the same. */
static uar_err refuse_vector(struct search *s, size_t query, size_t collection)
{
	uar_err e = uar_error_set(s->error, UAR_ECONFLICT,
				  "the query has %zu dimensions and the collection %zu; `uar kb "
				  "rebuild` embeds it anew",
				  query, collection);

	if (s->q->mode != UAR_KB_HYBRID)
		return e;
	s->mismatch = uar_arena_str(s->arena, uar_str_c(s->error->text));
	s->partial = true;
	return s->mismatch.p ? UAR_OK : UAR_ENOMEM;
}

static uar_err scan_collection(struct search *s, uar_str collection,
			       const struct uar_kb_vector *own, struct near *near)
{
	struct kb_matrix_of of = { s->owner, collection, UAR_STR_NONE };
	const struct uar_kb_vector *v;
	struct kb_matrix *m = NULL;
	uar_err e = model_of(s, collection, &of.model);

	if (e || !of.model.p)
		return e;
	v = vector_of(s, of.model, own);
	if (!v)
		return UAR_OK;
	e = kb_matrix_get(s->kb, &of, &m, s->error);
	s->partial |= !e && (m->cut || m->missing || m->more);
	s->loading |= !e && m->more;
	if (!e && m->dims == v->n)
		scan(s, m, v, near);
	else if (!e && m->n)
		e = refuse_vector(s, v->n, m->dims);
	return e;
}

static uar_err find_vectors(struct search *s)
{
	float v[UAR_EMBED_DIMENSIONS];
	struct uar_kb_vector own = { UAR_STR(UAR_KB_BUILTIN), v, UAR_EMBED_DIMENSIONS };
	struct near *near = uar_zalloc(sizeof *near);
	uar_err e = near ? find_denied(s) : UAR_ENOMEM;

	if (uar_embed_text(s->q->text, v))
		own.n = 0; /* no words, no direction */
	if (!e)
		near->least = LEAST_SIMILAR;
	for (size_t i = 0; i < s->q->collection_count && !e; i++)
		e = scan_collection(s, s->q->collections[i], &own, near);
	if (!e)
		add_near(s, near);
	uar_free(near);
	return e;
}

/* --- relations ------------------------------------------------------------------------------ */

/* The first passages of documents that speak of the same entities as those that were found. */
static uar_err find_related(struct search *s, int64_t from)
{
	sqlite3_stmt *st = NULL;
	uar_err e = prepare(
		s,
		"SELECT c.id FROM documents f JOIN ix.chunks fc ON fc.document = f.id AND fc.id ="
		" ?2 JOIN relations a ON a.owner = f.owner AND a.collection = f.collection AND"
		" a.document = f.name JOIN relations b ON b.owner = a.owner AND b.collection ="
		" a.collection AND b.document <> a.document AND (b.source IN (a.source, a.target)"
		" OR b.target IN (a.source, a.target)) JOIN documents t ON t.owner = b.owner AND"
		" t.collection = b.collection AND t.name = b.document JOIN ix.chunks c ON"
		" c.document = t.id AND c.n = 0" KB_VISIBLE " WHERE",
		" GROUP BY c.id ORDER BY c.id LIMIT 8", &st);

	if (!e)
		sqlite3_bind_int64(st, 2, from);
	while (!e && s->n < ARRAY_LEN(s->pool) && kb_step(s->kb, st, &e, s->error)) {
		int64_t chunk = sqlite3_column_int64(st, 0);

		if (!found_before(s, s->n, chunk))
			s->pool[s->n++] = (struct found){ .chunk = chunk, .related = true };
	}
	sqlite3_finalize(st);
	return e;
}

/* Behind what was found: an expansion never pushes a passage out that fits by itself, but for the
 * last places. */
static uar_err expand(struct search *s, size_t k)
{
	enum { FROM = 3 };
	size_t found = s->n;
	double least = found ? s->pool[(found < k ? found : k) - 1].score : 0;
	uar_err e = UAR_OK;

	for (size_t i = 0; i < found && i < FROM && !e; i++)
		e = find_related(s, s->pool[i].chunk);
	for (size_t i = found; i < s->n; i++)
		s->pool[i].score =
			least * (found < k ? 0.99 : 1 + 1e-6) - 1e-9 * (double)(i - found);
	return e;
}

/* --- rank ------------------------------------------------------------------------------------ */

/* Reciprocal ranks, those of words by how much of the query they are: what stands high in either
 * list stands high; what stands in both, higher. */
static void rank(struct search *s)
{
	for (size_t i = 0; i < s->n; i++) {
		struct found *f = &s->pool[i];
		size_t word_rank = 1, near_rank = 1;

		for (size_t k = 0; k < s->n; k++) {
			word_rank += s->pool[k].keyword > f->keyword;
			near_rank += s->pool[k].similarity > f->similarity;
		}
		f->score = (f->keyword > 0 ? f->weight / (RANK_CONSTANT + (double)word_rank) : 0) +
			   (f->similarity > 0 ? 1 / (RANK_CONSTANT + (double)near_rank) : 0);
	}
}

static int by_score(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	if (x->score != y->score)
		return x->score > y->score ? -1 : 1;
	return x->chunk < y->chunk ? -1 : x->chunk > y->chunk;
}

static uar_err read_hits(struct search *s, size_t want, struct uar_kb_hits *out)
{
	size_t n = 0;
	struct uar_kb_hit *hits = uar_arena_alloc(s->arena, want * sizeof *hits);
	sqlite3_stmt *st = NULL;
	uar_err e = hits ? prepare(s, KB_PASSAGE, " AND c.id = ?2", &st) : UAR_ENOMEM;

	for (size_t i = 0; i < s->n && n < want && !e; i++) {
		const struct found *f = &s->pool[i];

		sqlite3_bind_int64(st, 2, f->chunk);
		if (kb_step(s->kb, st, &e, s->error)) {
			e = kb_read_passage(st, s->arena, &hits[n]);
			hits[n].score = f->score;
			hits[n].keyword = f->keyword;
			hits[n].similarity = f->similarity;
			hits[n++].related = f->related;
		}
		sqlite3_reset(st);
	}
	sqlite3_finalize(st);
	if (!e)
		*out = (struct uar_kb_hits){ hits, n, s->partial, s->loading, s->mismatch };
	return e;
}

static uar_err search_locked(struct search *s, struct uar_kb_hits *out)
{
	size_t k = s->q->k < UAR_LIMIT_KB_HITS ? s->q->k : UAR_LIMIT_KB_HITS;
	uar_err e = s->q->mode == UAR_KB_VECTOR ? UAR_OK : find_words(s);

	if (!e && s->q->mode != UAR_KB_KEYWORD)
		e = find_vectors(s);
	if (e)
		return e;
	rank(s);
	qsort(s->pool, s->n, sizeof *s->pool, by_score);
	if (s->q->expand) {
		e = expand(s, k);
		qsort(s->pool, s->n, sizeof *s->pool, by_score);
	}
	return e ? e : read_hits(s, k, out);
}

uar_err uar_kb_search(struct uar_kb *kb, const struct uar_kb_query *q, struct uar_arena *arena,
		      struct uar_kb_hits *out, struct uar_error *error)
{
	struct uar_kb_query own = *q;
	struct search *s;
	uar_err e;

	*out = (struct uar_kb_hits){ .at = NULL };
	if (!q->collection_count || !q->k)
		return UAR_OK;
	if (q->collection_count > UAR_LIMIT_KB_COLLECTIONS)
		return uar_error_set(error, UAR_ETOOBIG, "a search looks at %d collections at most",
				     UAR_LIMIT_KB_COLLECTIONS);
	s = uar_zalloc(sizeof *s);
	if (!s)
		return UAR_ENOMEM;
	own.text = uar_str_utf8_prefix(q->text, UAR_LIMIT_KB_QUERY);
	s->kb = kb = kb->reader;
	s->q = &own;
	s->arena = arena;
	s->error = error;
	s->owner = kb_owner(&q->owner, arena);
	pthread_mutex_lock(&kb->lock);
	e = s->owner.p ? search_locked(s, out) : UAR_ENOMEM;
	pthread_mutex_unlock(&kb->lock);
	uar_free(s);
	return e;
}

uar_err uar_kb_models(struct uar_kb *kb, const struct uar_kb_query *q, struct uar_arena *arena,
		      uar_str *out, size_t *out_n)
{
	struct search s = { .kb = kb->reader, .q = q, .arena = arena };
	uar_err e = UAR_OK;
	size_t n = 0;

	s.owner = kb_owner(&q->owner, arena);
	pthread_mutex_lock(&s.kb->lock);
	for (size_t i = 0; i < q->collection_count && n < UAR_LIMIT_KB_MODELS && !e; i++) {
		uar_str model;
		size_t at = 0;

		e = model_of(&s, q->collections[i], &model);
		if (e || !model.n || uar_str_is(model, UAR_KB_BUILTIN) ||
		    (q->only_model.n && !uar_str_eq(q->only_model, model)))
			continue;
		while (at < n && !uar_str_eq(out[at], model))
			at++;
		out[at] = model;
		n += at == n;
	}
	pthread_mutex_unlock(&s.kb->lock);
	*out_n = n;
	return e;
}
