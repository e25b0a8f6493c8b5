/* regex_class.c - sets of characters: built from ranges, then frozen sorted, with
 * a bit map for ASCII in front. */
#include <stdlib.h>

#include "base/alloc.h"
#include "json/regex_int.h"

enum category {
	Cc,
	Cf,
	Cn,
	Co,
	Cs,
	Ll,
	Lm,
	Lo,
	Lt,
	Lu,
	Mc,
	Me,
	Mn,
	Nd,
	Nl,
	No,
	Pc,
	Pd,
	Pe,
	Pf,
	Pi,
	Po,
	Ps,
	Sc,
	Sk,
	Sm,
	So,
	Zl,
	Zp,
	Zs,
	UPLOW,
	LOWUP,
};

#define BIT(C) (1u << (C))

static const struct {
	uint32_t first, last;
	enum category category;
} runs[] = {
#define U(FIRST, LAST, CATEGORY) { FIRST, LAST, CATEGORY },
#include "json/unicode.def"
#undef U
};

static const struct {
	const char *brief, *full;
	uint32_t mask;
} properties[] = {
	{ "L", "Letter", BIT(Ll) | BIT(Lm) | BIT(Lo) | BIT(Lt) | BIT(Lu) },
	{ "LC", "Cased_Letter", BIT(Ll) | BIT(Lt) | BIT(Lu) },
	{ "Lu", "Uppercase_Letter", BIT(Lu) },
	{ "Ll", "Lowercase_Letter", BIT(Ll) },
	{ "Lt", "Titlecase_Letter", BIT(Lt) },
	{ "Lm", "Modifier_Letter", BIT(Lm) },
	{ "Lo", "Other_Letter", BIT(Lo) },
	{ "M", "Mark", BIT(Mc) | BIT(Me) | BIT(Mn) },
	{ "M", "Combining_Mark", BIT(Mc) | BIT(Me) | BIT(Mn) },
	{ "Mn", "Nonspacing_Mark", BIT(Mn) },
	{ "Mc", "Spacing_Mark", BIT(Mc) },
	{ "Me", "Enclosing_Mark", BIT(Me) },
	{ "N", "Number", BIT(Nd) | BIT(Nl) | BIT(No) },
	{ "Nd", "Decimal_Number", BIT(Nd) },
	{ "Nd", "digit", BIT(Nd) },
	{ "Nl", "Letter_Number", BIT(Nl) },
	{ "No", "Other_Number", BIT(No) },
	{ "P", "Punctuation", BIT(Pc) | BIT(Pd) | BIT(Pe) | BIT(Pf) | BIT(Pi) | BIT(Po) | BIT(Ps) },
	{ "P", "punct", BIT(Pc) | BIT(Pd) | BIT(Pe) | BIT(Pf) | BIT(Pi) | BIT(Po) | BIT(Ps) },
	{ "Pc", "Connector_Punctuation", BIT(Pc) },
	{ "Pd", "Dash_Punctuation", BIT(Pd) },
	{ "Ps", "Open_Punctuation", BIT(Ps) },
	{ "Pe", "Close_Punctuation", BIT(Pe) },
	{ "Pi", "Initial_Punctuation", BIT(Pi) },
	{ "Pf", "Final_Punctuation", BIT(Pf) },
	{ "Po", "Other_Punctuation", BIT(Po) },
	{ "S", "Symbol", BIT(Sc) | BIT(Sk) | BIT(Sm) | BIT(So) },
	{ "Sm", "Math_Symbol", BIT(Sm) },
	{ "Sc", "Currency_Symbol", BIT(Sc) },
	{ "Sk", "Modifier_Symbol", BIT(Sk) },
	{ "So", "Other_Symbol", BIT(So) },
	{ "Z", "Separator", BIT(Zl) | BIT(Zp) | BIT(Zs) },
	{ "Zs", "Space_Separator", BIT(Zs) },
	{ "Zl", "Line_Separator", BIT(Zl) },
	{ "Zp", "Paragraph_Separator", BIT(Zp) },
	{ "C", "Other", BIT(Cc) | BIT(Cf) | BIT(Cn) | BIT(Co) | BIT(Cs) },
	{ "Cc", "Control", BIT(Cc) },
	{ "Cc", "cntrl", BIT(Cc) },
	{ "Cf", "Format", BIT(Cf) },
	{ "Cs", "Surrogate", BIT(Cs) },
	{ "Co", "Private_Use", BIT(Co) },
	{ "Cn", "Unassigned", BIT(Cn) },
};

void uar_regex_set_fini(struct uar_regex_set *s)
{
	uar_free(s->r);
	*s = (struct uar_regex_set){ 0 };
}

void uar_regex_set_add(struct uar_regex_set *s, uint32_t lo, uint32_t hi)
{
	if (s->err)
		return;
	if (s->n == s->cap) {
		size_t cap = s->cap ? s->cap * 2 : 16;
		struct uar_regex_range *r = NULL;

		if (cap <= REGEX_RANGES)
			r = uar_realloc(s->r, cap * sizeof *r);
		if (!r) {
			s->err = cap > REGEX_RANGES ? UAR_ETOOBIG : UAR_ENOMEM;
			return;
		}
		s->r = r;
		s->cap = cap;
	}
	s->r[s->n++] = (struct uar_regex_range){ lo, hi };
}

void uar_regex_set_add_set(struct uar_regex_set *s, const struct uar_regex_set *other)
{
	if (other->err && !s->err)
		s->err = other->err;
	for (size_t i = 0; i < other->n; i++)
		uar_regex_set_add(s, other->r[i].lo, other->r[i].hi);
}

static int by_start(const void *a, const void *b)
{
	const struct uar_regex_range *x = a, *y = b;

	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

static void merge(struct uar_regex_set *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++) {
		if (n && s->r[i].lo <= s->r[n - 1].hi + 1) {
			if (s->r[i].hi > s->r[n - 1].hi)
				s->r[n - 1].hi = s->r[i].hi;
		} else {
			s->r[n++] = s->r[i];
		}
	}
	s->n = n;
}

void uar_regex_set_normalise(struct uar_regex_set *s, bool negate)
{
	struct uar_regex_set other = { 0 };
	uint32_t next = 0;

	if (s->err)
		return;
	if (s->n)
		qsort(s->r, s->n, sizeof *s->r, by_start);
	merge(s);
	if (!negate)
		return;
	for (size_t i = 0; i < s->n; i++) {
		if (s->r[i].lo > next)
			uar_regex_set_add(&other, next, s->r[i].lo - 1);
		next = s->r[i].hi + 1;
	}
	if (next <= REGEX_LAST)
		uar_regex_set_add(&other, next, REGEX_LAST);
	uar_regex_set_fini(s);
	*s = other;
}

void uar_regex_set_add_digits(struct uar_regex_set *s)
{
	uar_regex_set_add(s, '0', '9');
}

void uar_regex_set_add_words(struct uar_regex_set *s)
{
	uar_regex_set_add_digits(s);
	uar_regex_set_add(s, 'A', 'Z');
	uar_regex_set_add(s, '_', '_');
	uar_regex_set_add(s, 'a', 'z');
}

static void add_categories(struct uar_regex_set *s, uint32_t mask)
{
	uint32_t next = 0;

	for (size_t i = 0; i < ARRAY_LEN(runs); i++) {
		uint32_t first = runs[i].first, last = runs[i].last;
		bool up = mask & BIT(Lu), low = mask & BIT(Ll);

		if ((mask & BIT(Cn)) && first > next)
			uar_regex_set_add(s, next, first - 1);
		next = last + 1;
		if (runs[i].category < UPLOW ? mask & BIT(runs[i].category) : up && low) {
			uar_regex_set_add(s, first, last);
		} else if (runs[i].category >= UPLOW && (up || low)) {
			first += (runs[i].category == UPLOW) != up; /* every second one */
			for (; first <= last; first += 2)
				uar_regex_set_add(s, first, first);
		}
	}
	if ((mask & BIT(Cn)) && next <= REGEX_LAST)
		uar_regex_set_add(s, next, REGEX_LAST);
}

void uar_regex_set_add_spaces(struct uar_regex_set *s)
{
	uar_regex_set_add(s, '\t', '\r');
	uar_regex_set_add(s, 0xFEFF, 0xFEFF);
	add_categories(s, BIT(Zs) | BIT(Zl) | BIT(Zp));
}

bool uar_regex_set_add_property(struct uar_regex_set *s, uar_str name)
{
	uar_str value, key = uar_str_cut(name, '=', &value);

	if (uar_str_is(name, "Any")) {
		uar_regex_set_add(s, 0, REGEX_LAST);
		return true;
	}
	if (uar_str_is(name, "ASCII")) {
		uar_regex_set_add(s, 0, 0x7F);
		return true;
	}
	if (uar_str_is(name, "Assigned")) {
		add_categories(s, ~BIT(Cn));
		return true;
	}
	if (uar_str_is(key, "gc") || uar_str_is(key, "General_Category"))
		name = value;
	for (size_t i = 0; i < ARRAY_LEN(properties); i++) {
		if (uar_str_is(name, properties[i].brief) || uar_str_is(name, properties[i].full)) {
			add_categories(s, properties[i].mask);
			return true;
		}
	}
	return false;
}

uar_err uar_regex_set_freeze(const struct uar_regex_set *s, struct uar_arena *arena,
			     const struct uar_regex_class **out)
{
	struct uar_regex_class *c = uar_arena_alloc(arena, sizeof *c);
	struct uar_regex_range *r = uar_arena_alloc(arena, s->n * sizeof *r);

	if (s->err || !c || !r)
		return s->err ? s->err : UAR_ENOMEM;
	if (s->n)
		memcpy(r, s->r, s->n * sizeof *r);
	c->ranges = r;
	c->count = (uint32_t)s->n;
	for (size_t i = 0; i < s->n; i++)
		for (uint32_t ch = s->r[i].lo; ch <= s->r[i].hi && ch < 128; ch++)
			c->ascii[ch >> 6] |= 1ull << (ch & 63);
	*out = c;
	return UAR_OK;
}
