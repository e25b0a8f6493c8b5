/* kb_search.c - by words (FTS5, BM25), by vectors (exact), or both, joined by their ranks. */
#include "memory/kb_int.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "skill/embed.h"

#define RANK_CONSTANT 60.0 /* of reciprocal rank fusion */
#define LEAST_SIMILAR 0.12 /* below it two texts share nothing */
enum { POOL = 4 * UAR_LIMIT_KB_HITS };

struct found {
	int64_t chunk;
	double keyword, similarity, score;
};

struct search {
	struct uar_kb *kb;
	const struct uar_kb_query *q;
	uar_str owner;
	struct found pool[2 * POOL];
	size_t n;
	struct uar_arena *arena;
	struct uar_error *error;
};

/* --- the filter that both ways share ------------------------------------------------------ */

/* " AND d.owner = ? AND d.collection IN (?, ...)", and no document with a denied label. */
static void put_filter(const struct search *s, struct uar_buf *sql)
{
	uar_str labels = s->q->deny_labels;

	uar_buf_add_str(sql, UAR_STR(" d.owner = ?1 AND d.collection IN ("));
	for (size_t i = 0; i < s->q->collection_count; i++)
		uar_buf_printf(sql, "%s?%zu", i ? ", " : "", i + 3);
	uar_buf_add_str(sql, UAR_STR(")"));
	for (size_t i = 0; labels.n && i < UAR_LIMIT_KB_LABELS; i++) {
		uar_str word = uar_str_cut(labels, ' ', &labels);

		if (word.n)
			uar_buf_printf(sql,
				       " AND instr(' ' || d.labels || ' ', ' ' || ?%zu || ' ') = 0",
				       s->q->collection_count + 3 + i);
	}
}

static void bind_filter(const struct search *s, sqlite3_stmt *st)
{
	uar_str labels = s->q->deny_labels;

	kb_bind_text(st, 1, s->owner);
	for (size_t i = 0; i < s->q->collection_count; i++)
		kb_bind_text(st, (int)i + 3, s->q->collections[i]);
	for (size_t i = 0; labels.n && i < UAR_LIMIT_KB_LABELS; i++) {
		uar_str word = uar_str_cut(labels, ' ', &labels);

		if (word.n)
			kb_bind_text(st, (int)(s->q->collection_count + 3 + i), word);
	}
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

/* "search docs" becomes "search" OR "docs": quoted, so that no word is an operator. */
static void put_match(uar_str text, struct uar_buf *out)
{
	size_t i = 0, words = 0;

	while (i < text.n && words < 64) {
		size_t begin;

		while (i < text.n && !is_word_byte(text.p[i]))
			i++;
		begin = i;
		while (i < text.n && is_word_byte(text.p[i]))
			i++;
		if (i > begin)
			uar_buf_printf(out, "%s\"%.*s\"", words++ ? " OR " : "", (int)(i - begin),
				       text.p + begin);
	}
}

static uar_err find_words(struct search *s)
{
	struct uar_buf match = uar_buf_make(UAR_LIMIT_KB_QUERY * 2);
	sqlite3_stmt *st = NULL;
	uar_err e;

	put_match(s->q->text, &match);
	if (!match.n) {
		uar_buf_fini(&match);
		return UAR_OK;
	}
	e = prepare(s,
		    "SELECT words.rowid, bm25(words, 2.0, 1.0) FROM words"
		    " JOIN chunks c ON c.id = words.rowid JOIN documents d ON d.id = c.document"
		    " WHERE words MATCH ?2 AND",
		    " ORDER BY 2 LIMIT 200", &st);
	if (!e)
		kb_bind_text(st, 2, uar_buf_str(&match));
	while (!e && s->n < POOL && kb_step(s->kb, st, &e, s->error))
		s->pool[s->n++] = (struct found){ .chunk = sqlite3_column_int64(st, 0),
						  .keyword = -sqlite3_column_double(st, 1) };
	sqlite3_finalize(st);
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

/* Keeps the nearest: the pool is sorted when it is full, and its worse half goes. */
static void keep_near(struct found *pool, size_t *n, const struct found *f)
{
	if (*n == (size_t)POOL * 2) {
		qsort(pool, *n, sizeof *pool, by_similarity);
		*n = POOL;
	}
	pool[(*n)++] = *f;
}

static struct found *found_before(struct search *s, size_t words, int64_t chunk)
{
	for (size_t i = 0; i < words; i++)
		if (s->pool[i].chunk == chunk)
			return &s->pool[i];
	return NULL;
}

static void add_near(struct search *s, struct found *near, size_t n)
{
	size_t words = s->n;

	qsort(near, n, sizeof *near, by_similarity);
	for (size_t i = 0; i < n && i < POOL; i++) {
		struct found *known = found_before(s, words, near[i].chunk);

		if (known)
			known->similarity = near[i].similarity;
		else
			s->pool[s->n++] = near[i];
	}
}

static uar_err find_vectors(struct search *s)
{
	float v[UAR_EMBED_DIMENSIONS];
	struct found *near;
	sqlite3_stmt *st = NULL;
	size_t n = 0;
	uar_err e;

	if (uar_embed_text(s->q->text, v))
		return UAR_OK; /* no words, no direction */
	near = uar_alloc((size_t)POOL * 2 * sizeof *near);
	e = near ? prepare(s,
			   "SELECT c.id, c.vector FROM chunks c JOIN documents d"
			   " ON d.id = c.document WHERE ?2 = '' AND c.vector IS NOT NULL AND",
			   " LIMIT 200000", &st)
		 : UAR_ENOMEM;
	if (!e)
		kb_bind_text(st, 2, UAR_STR(""));
	while (!e && kb_step(s->kb, st, &e, s->error)) {
		struct found f = { .chunk = sqlite3_column_int64(st, 0) };

		if (sqlite3_column_bytes(st, 1) != (int)sizeof v)
			continue;
		f.similarity =
			uar_embed_similarity(v, sqlite3_column_blob(st, 1), UAR_EMBED_DIMENSIONS);
		if (f.similarity >= LEAST_SIMILAR)
			keep_near(near, &n, &f);
	}
	sqlite3_finalize(st);
	if (!e)
		add_near(s, near, n);
	uar_free(near);
	return e;
}

/* --- rank ------------------------------------------------------------------------------------ */

/* Reciprocal ranks: what stands high in either list stands high; what stands in both, higher. */
static void rank(struct search *s)
{
	for (size_t i = 0; i < s->n; i++) {
		struct found *f = &s->pool[i];
		size_t word_rank = 1, near_rank = 1;

		for (size_t k = 0; k < s->n; k++) {
			word_rank += s->pool[k].keyword > f->keyword;
			near_rank += s->pool[k].similarity > f->similarity;
		}
		f->score = (f->keyword > 0 ? 1 / (RANK_CONSTANT + (double)word_rank) : 0) +
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

static uar_err read_hit(struct search *s, sqlite3_stmt *st, const struct found *f,
			struct uar_kb_hit *out)
{
	uar_str *const to[] = { &out->collection, &out->document, &out->title,
				&out->source,	  &out->heading,  &out->text };
	uar_err e = UAR_OK;

	sqlite3_bind_int64(st, 1, f->chunk);
	if (kb_step(s->kb, st, &e, s->error)) {
		*out = (struct uar_kb_hit){ .chunk = f->chunk,
					    .line = sqlite3_column_int64(st, 6),
					    .page = sqlite3_column_int64(st, 7),
					    .score = f->score,
					    .keyword = f->keyword,
					    .similarity = f->similarity };
		for (size_t i = 0; i < ARRAY_LEN(to); i++) {
			*to[i] = uar_arena_str(s->arena, kb_text(st, (int)i));
			e = to[i]->p ? e : UAR_ENOMEM;
		}
	}
	sqlite3_reset(st);
	return e;
}

static uar_err read_hits(struct search *s, struct uar_kb_hits *out)
{
	size_t want = s->q->k < UAR_LIMIT_KB_HITS ? s->q->k : UAR_LIMIT_KB_HITS;
	size_t n = s->n < want ? s->n : want;
	struct uar_kb_hit *hits = uar_arena_alloc(s->arena, (n ? n : 1) * sizeof *hits);
	sqlite3_stmt *st = NULL;
	uar_err e = hits ? kb_prepare(s->kb,
				      "SELECT d.collection, d.name, d.title, d.source, c.heading,"
				      " c.text, c.line, c.page FROM chunks c JOIN documents d"
				      " ON d.id = c.document WHERE c.id = ?1",
				      &st, s->error)
			 : UAR_ENOMEM;

	for (size_t i = 0; i < n && !e; i++)
		e = read_hit(s, st, &s->pool[i], &hits[i]);
	sqlite3_finalize(st);
	if (!e)
		*out = (struct uar_kb_hits){ hits, n };
	return e;
}

static uar_err search_locked(struct search *s, struct uar_kb_hits *out)
{
	uar_err e = s->q->mode == UAR_KB_VECTOR ? UAR_OK : find_words(s);

	if (!e && s->q->mode != UAR_KB_KEYWORD)
		e = find_vectors(s);
	if (e)
		return e;
	rank(s);
	qsort(s->pool, s->n, sizeof s->pool[0], by_score);
	return read_hits(s, out);
}

uar_err uar_kb_search(struct uar_kb *kb, const struct uar_kb_query *q, struct uar_arena *arena,
		      struct uar_kb_hits *out, struct uar_error *error)
{
	struct uar_kb_query own = *q;
	struct search *s;
	uar_err e;

	*out = (struct uar_kb_hits){ NULL, 0 };
	if (!q->collection_count || !q->k)
		return UAR_OK;
	if (q->collection_count > UAR_LIMIT_KB_COLLECTIONS)
		return uar_error_set(error, UAR_ETOOBIG, "a search looks at %d collections at most",
				     UAR_LIMIT_KB_COLLECTIONS);
	s = uar_zalloc(sizeof *s);
	if (!s)
		return UAR_ENOMEM;
	own.text = uar_str_utf8_prefix(q->text, UAR_LIMIT_KB_QUERY);
	s->kb = kb;
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
