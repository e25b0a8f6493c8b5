/* index.c - what a message is compared with is computed once: vectors and regular expressions. */
#include "base/alloc.h"
#include "skill/skill_int.h"

static void add_words(struct uar_buf *out, const struct uar_words *w)
{
	for (size_t i = 0; i < w->n; i++) {
		uar_buf_add_char(out, '\n');
		uar_buf_add_str(out, w->at[i]);
	}
}

/* Texts without a word have no vector and are left out. */
static bool embed(struct uar_skill_index *x, uar_str text)
{
	bool good = uar_embed_text(text, x->vectors[x->count]) == UAR_OK;

	x->count += good;
	return good;
}

static uar_err embed_all(struct uar_skill *s)
{
	struct uar_skill_index *x = s->index;
	struct uar_buf all = uar_buf_make(UAR_LIMIT_SKILL_BYTES);

	x->vectors = uar_arena_alloc(&s->arena, (3 + s->phrases.n) * sizeof *x->vectors);
	if (!x->vectors)
		return UAR_ENOMEM;
	uar_buf_add_str(&all, s->description);
	add_words(&all, &s->keywords);
	add_words(&all, &s->phrases);
	x->whole = !all.err && embed(x, uar_buf_str(&all));
	uar_buf_fini(&all);
	embed(x, s->description);
	embed(x, s->title);
	for (size_t i = 0; i < s->phrases.n; i++)
		embed(x, s->phrases.at[i]);
	return UAR_OK;
}

uar_err skill_index_make(struct uar_skill *s, struct uar_error *error)
{
	struct uar_error why = { 0 };
	uar_err e;

	s->index = uar_arena_alloc(&s->arena, sizeof *s->index);
	if (!s->index)
		return UAR_ENOMEM;
	e = embed_all(s);
	if (!e && s->patterns.n) {
		s->index->patterns =
			uar_arena_alloc(&s->arena, s->patterns.n * sizeof *s->index->patterns);
		e = s->index->patterns ? UAR_OK : UAR_ENOMEM;
	}
	for (size_t i = 0; i < s->patterns.n && !e; i++) {
		e = uar_regex_create(s->patterns.at[i], &s->index->patterns[i], &why);
		if (e) {
			uar_error_where(error, "/triggers/patterns/%zu", i);
			uar_error_set(error, e, "this is no regular expression: %s", why.text);
		}
	}
	return e;
}

void skill_index_free(struct uar_skill *s)
{
	for (size_t i = 0; s->index && s->index->patterns && i < s->patterns.n; i++)
		if (s->index->patterns[i])
			uar_regex_destroy(s->index->patterns[i]);
	s->index = NULL;
}

const float *uar_skill_embedding(const struct uar_skill *s)
{
	return s->index && s->index->whole ? s->index->vectors[0] : NULL;
}
