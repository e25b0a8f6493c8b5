/* nearest.c - a typo costs one; what has the right words lies between one and three typos,
 * and of those the shortest is nearest. */
#include "app/nearest.h"

#include <string.h>

enum { TYPO = 100, BEGINNING = 150, WORD = 250, SHORTEST = 3, LONGEST = 64 };

static const struct {
	const char *word, *name;
} elsewhere[] = {
#define W(WORD, NAME) { WORD, NAME },
#include "app/config.def"
#undef W
};

void uar_nearest_init(struct uar_nearest *n, uar_str name)
{
	size_t typos = name.n / 3 > 2 ? name.n / 3 + 1 : 3;

	*n = (struct uar_nearest){ .name = name, .cost = typos * TYPO };
}

/* `in` has LONGEST bytes at most. */
static uar_str plain(uar_str in, char out[LONGEST])
{
	for (size_t i = 0; i < in.n; i++)
		out[i] = in.p[i] == '-' ? '_' : in.p[i];
	return uar_str_n(out, in.n);
}

static bool is_called(uar_str word, uar_str name)
{
	for (size_t i = 0; i < ARRAY_LEN(elsewhere); i++)
		if (uar_str_is(word, elsewhere[i].word) && uar_str_is(name, elsewhere[i].name))
			return true;
	return false;
}

/* Whole words of `name`, one or several in a row? */
static bool has_words(uar_str name, uar_str words)
{
	for (size_t at = 0; at + words.n <= name.n; at++) {
		size_t end = at + words.n;

		if ((at == 0 || name.p[at - 1] == '_') && (end == name.n || name.p[end] == '_') &&
		    uar_str_eq(uar_str_n(name.p + at, words.n), words))
			return true;
	}
	return false;
}

static size_t cost_of(uar_str given, uar_str name)
{
	size_t more = name.n > given.n ? name.n - given.n : given.n - name.n;
	size_t cost = TYPO * uar_str_distance(given, name);
	size_t words = LONGEST * TYPO;

	if (is_called(given, name))
		return 0;
	if (given.n >= SHORTEST && uar_str_starts(name, given))
		words = BEGINNING + more;
	else if ((given.n >= SHORTEST && has_words(name, given)) ||
		 (name.n >= SHORTEST && has_words(given, name)))
		words = WORD + more;
	return words < cost ? words : cost;
}

void uar_nearest_consider(struct uar_nearest *n, const char *candidate)
{
	char given[LONGEST], name[LONGEST];
	uar_str known = uar_str_c(candidate);
	size_t cost;

	if (n->name.n > LONGEST || known.n > LONGEST)
		return;
	cost = cost_of(plain(n->name, given), plain(known, name));
	if (cost >= n->cost)
		return;
	n->cost = cost;
	n->best = candidate;
}
