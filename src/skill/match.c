/* match.c - keywords, patterns and similarity make candidates; gates leave some out; a score
 * orders the rest. */
#include "skill/match.h"

#include <math.h>
#include <stdlib.h>

#include "json/regex.h"
#include "skill/skill_int.h"

/* Shares of the score. A keyword or a pattern that the author named counts like a high similarity.
 */
#define SHARE_SIMILARITY 0.60
#define SHARE_FRESHNESS	 0.10
#define SHARE_SUCCESS	 0.15
#define SHARE_PREFERENCE 0.15
#define NAMED_SIMILARITY 0.75
#define LEAST_SIMILARITY 0.25 /* below it and unnamed: no candidate */
#define FRESH_DAYS	 30.0 /* after so many days half of the freshness is left */

const char *uar_skill_gate_text(enum uar_skill_gate g)
{
	static const char *const text[] = {
		[UAR_SKILL_PASSED] = "passed",	  [UAR_SKILL_GATE_DISABLED] = "disabled",
		[UAR_SKILL_GATE_SCOPE] = "scope", [UAR_SKILL_GATE_CAPABILITY] = "capability",
		[UAR_SKILL_GATE_TOOL] = "tool",	  [UAR_SKILL_GATE_RANK] = "rank",
	};

	return text[g];
}

/* --- candidates ------------------------------------------------------------------------- */

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_letter(char c)
{
	return (unsigned char)c >= 0x80 || (c >= '0' && c <= '9') ||
	       (lower(c) >= 'a' && lower(c) <= 'z');
}

/* As a word or phrase of its own, in any case. */
static bool holds_phrase(uar_str text, uar_str phrase)
{
	for (size_t at = 0; phrase.n && at + phrase.n <= text.n; at++) {
		size_t i = 0;

		while (i < phrase.n && lower(text.p[at + i]) == lower(phrase.p[i]))
			i++;
		if (i == phrase.n && (at == 0 || !is_letter(text.p[at - 1])) &&
		    (at + i == text.n || !is_letter(text.p[at + i])))
			return true;
	}
	return false;
}

/* The words of a message, folded and hashed: most keywords are known to be missing without a
 * look at the message. */
struct features {
	uar_str message;
	uint64_t words[UAR_LIMIT_SKILL_FEATURE_WORDS]; /* a filter: bit by bit */
	float vector[UAR_EMBED_DIMENSIONS];
	bool embedded;
	uint64_t steps; /* that each pattern may take */
};

static uint64_t hash_word(uar_str w)
{
	uint64_t h = 14695981039346656037u;

	for (size_t i = 0; i < w.n; i++)
		h = (h ^ (unsigned char)lower(w.p[i])) * 1099511628211u;
	return h ^ h >> 32;
}

/* The first run of letters, which begins at *from or later. */
static uar_str next_word(uar_str text, size_t *from)
{
	size_t at = *from, end;

	while (at < text.n && !is_letter(text.p[at]))
		at++;
	for (end = at; end < text.n && is_letter(text.p[end]); end++)
		;
	*from = end;
	return uar_str_n(text.p + at, end - at);
}

static void note_words(struct features *f)
{
	size_t from = 0;
	uar_str w;

	memset(f->words, 0, sizeof f->words);
	while ((w = next_word(f->message, &from)).n) {
		uint64_t h = hash_word(w) % (64 * ARRAY_LEN(f->words));

		f->words[h / 64] |= UINT64_C(1) << h % 64;
	}
}

/* A phrase can stand in the message only if its first word does. */
static bool may_hold(const struct features *f, uar_str phrase)
{
	size_t from = 0;
	uar_str w = next_word(phrase, &from);
	uint64_t h = hash_word(w) % (64 * ARRAY_LEN(f->words));

	return !w.n || (f->words[h / 64] >> h % 64 & 1);
}

static bool has_keyword(const struct uar_skill *s, const struct features *f)
{
	for (size_t i = 0; i < s->keywords.n; i++)
		if (may_hold(f, s->keywords.at[i]) && holds_phrase(f->message, s->keywords.at[i]))
			return true;
	return false;
}

static bool has_pattern(const struct uar_skill *s, const struct features *f)
{
	bool found = false;

	for (size_t i = 0; i < s->patterns.n && !found; i++) {
		uint64_t steps = f->steps;

		if (uar_regex_match(s->index->patterns[i], f->message, &steps, &found))
			found = false;
	}
	return found;
}

/* The nearest of what was embedded: description with triggers, description, title, phrases. */
static double embedded_similarity(const struct features *f, const struct uar_skill *s)
{
	double best = 0;

	for (size_t i = 0; i < s->index->count && f->embedded; i++) {
		double d =
			uar_embed_similarity(f->vector, s->index->vectors[i], UAR_EMBED_DIMENSIONS);

		best = d > best ? d : best;
	}
	return best;
}

/* Patterns share what a message may cost, whatever their order. */
static void find_features(const struct uar_skill_request *r, const struct uar_skill_offer *offers,
			  size_t count, struct features *f)
{
	size_t patterns = 0;

	f->message = uar_str_utf8_prefix(r->message, UAR_LIMIT_SKILL_FEATURE_BYTES);
	f->embedded = !r->similarity && uar_embed_text(f->message, f->vector) == UAR_OK;
	note_words(f);
	for (size_t i = 0; i < count; i++)
		patterns += offers[i].skill->patterns.n;
	f->steps = UAR_LIMIT_SKILL_PATTERN_TOTAL / (patterns ? patterns : 1);
	if (f->steps > UAR_LIMIT_SKILL_PATTERN_STEPS)
		f->steps = UAR_LIMIT_SKILL_PATTERN_STEPS;
}

/* --- gates ---------------------------------------------------------------------------------- */

static bool has_word(const struct uar_words *w, uar_str word)
{
	for (size_t i = 0; i < w->n; i++)
		if (uar_str_eq(w->at[i], word))
			return true;
	return false;
}

static bool fits_scope(const struct uar_words *scope, uar_str name)
{
	return scope->n == 0 || has_word(scope, name);
}

static enum uar_skill_gate gate_of(const struct uar_skill_request *r, const struct uar_skill *s)
{
	if (!s->enabled)
		return UAR_SKILL_GATE_DISABLED;
	if (!fits_scope(&s->tenants, r->tenant) || !fits_scope(&s->workspaces, r->workspace))
		return UAR_SKILL_GATE_SCOPE;
	for (size_t i = 0; i < s->capabilities.n; i++)
		if (!has_word(&r->capabilities, s->capabilities.at[i]))
			return UAR_SKILL_GATE_CAPABILITY;
	for (size_t i = 0; i < s->tools.n && r->has_tool; i++)
		if (!r->has_tool(r->ctx, s->tools.at[i]))
			return UAR_SKILL_GATE_TOOL;
	return UAR_SKILL_PASSED;
}

/* --- rank ------------------------------------------------------------------------------------ */

static double freshness(const struct uar_skill_offer *s, int64_t now_us)
{
	double days = (double)(now_us - s->updated_us) / 86400e6;

	if (!s->updated_us)
		return 0;
	return days <= 0 ? 1 : exp2(-days / FRESH_DAYS);
}

/* Of few runs little is known: the rate begins in the middle. */
static double success_rate(const struct uar_skill_offer *s)
{
	return ((double)s->successes + 1) / ((double)s->successes + (double)s->failures + 2);
}

static double preference(const struct uar_skill_request *r, const struct uar_skill *s)
{
	for (size_t i = 0; i < r->prefer.n; i++) {
		uar_str name = r->prefer.at[i];

		if (uar_str_starts(name, UAR_STR("skill:")))
			name = uar_str_from(name, 6);
		if (uar_str_eq(name, s->skill_id))
			return 1 - (double)i / ((double)r->prefer.n + 1) / 2;
	}
	return 0;
}

static void rate(const struct uar_skill_request *r, const struct uar_skill_offer *offer,
		 struct uar_skill_candidate *c)
{
	double near = c->similarity;

	if ((c->keyword || c->pattern) && near < NAMED_SIMILARITY)
		near = NAMED_SIMILARITY + near * (1 - NAMED_SIMILARITY);
	c->freshness = freshness(offer, r->now_us);
	c->success = success_rate(offer);
	c->preference = preference(r, c->skill);
	c->score = SHARE_SIMILARITY * near + SHARE_FRESHNESS * c->freshness +
		   SHARE_SUCCESS * c->success + SHARE_PREFERENCE * c->preference;
}

/* Those that passed first; then by score, then by name, so that no order of discovery shows. */
static int by_rank(const void *pa, const void *pb)
{
	const struct uar_skill_candidate *a = pa, *b = pb;
	bool a_passed = a->gate == UAR_SKILL_PASSED, b_passed = b->gate == UAR_SKILL_PASSED;

	if (a_passed != b_passed)
		return a_passed ? -1 : 1;
	if (fabs(a->score - b->score) > 1e-9)
		return a->score > b->score ? -1 : 1;
	return uar_str_cmp(a->skill->skill_id, b->skill->skill_id);
}

/* A full list keeps its better ones. */
static void add_candidate(struct uar_skill_matches *m, const struct uar_skill_candidate *c)
{
	if (m->n < ARRAY_LEN(m->at)) {
		m->at[m->n++] = *c;
		return;
	}
	qsort(m->at, m->n, sizeof m->at[0], by_rank);
	if (by_rank(c, &m->at[m->n - 1]) < 0)
		m->at[m->n - 1] = *c;
}

static void select_best(const struct uar_skill_request *r, struct uar_skill_matches *m)
{
	size_t max =
		r->max_active < UAR_LIMIT_SKILL_ACTIVE ? r->max_active : UAR_LIMIT_SKILL_ACTIVE;

	qsort(m->at, m->n, sizeof m->at[0], by_rank);
	m->active = 0;
	for (size_t i = 0; i < m->n && m->at[i].gate == UAR_SKILL_PASSED; i++) {
		if (m->active < max)
			m->active++;
		else
			m->at[i].gate = UAR_SKILL_GATE_RANK;
	}
}

void uar_skill_match(const struct uar_skill_request *r, const struct uar_skill_offer *offers,
		     size_t count, struct uar_skill_matches *out)
{
	struct features f;

	find_features(r, offers, count, &f);
	out->n = 0;
	for (size_t i = 0; i < count; i++) {
		struct uar_skill_candidate c = { .skill = offers[i].skill, .offer = i };

		c.keyword = has_keyword(c.skill, &f);
		c.pattern = has_pattern(c.skill, &f);
		c.similarity = r->similarity ? r->similarity(r->ctx, f.message, c.skill)
					     : embedded_similarity(&f, c.skill);
		if (!c.keyword && !c.pattern && c.similarity < LEAST_SIMILARITY)
			continue;
		c.gate = gate_of(r, c.skill);
		rate(r, &offers[i], &c);
		add_candidate(out, &c);
	}
	select_best(r, out);
}

const char *uar_skill_method(const struct uar_skill_candidate *c)
{
	return c->keyword ? "keyword" : c->pattern ? "pattern" : "similarity";
}

/* --- tools ------------------------------------------------------------------------------------ */

/* '*' stands for any text at the end of a pattern. */
static bool fits_tool(const struct uar_words *patterns, uar_str tool)
{
	for (size_t i = 0; i < patterns->n; i++) {
		uar_str p = patterns->at[i];

		if (uar_str_eq(p, tool))
			return true;
		if (p.n && p.p[p.n - 1] == '*' && uar_str_starts(tool, uar_str_n(p.p, p.n - 1)))
			return true;
	}
	return false;
}

bool uar_skill_allows(const struct uar_skill *s, uar_str tool_id)
{
	if (fits_tool(&s->deny, tool_id))
		return false;
	return !s->allow.n || fits_tool(&s->allow, tool_id) ||
	       fits_tool(&s->preferred_tools, tool_id);
}

bool uar_skill_allows_tool(const struct uar_skill_matches *m, uar_str tool_id)
{
	for (size_t i = 0; i < m->active; i++)
		if (!uar_skill_allows(m->at[i].skill, tool_id))
			return false;
	return true;
}
