/* embed.c - hashed features: whole words, and the three-letter parts of each. */
#include "skill/embed.h"

#include <math.h>
#include <string.h>

enum { WORD_BYTES = 64, GRAM = 3 };

static bool is_word_byte(unsigned char c)
{
	return c >= 0x80 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
	       (c >= 'A' && c <= 'Z');
}

static uint64_t hash_bytes(const char *p, size_t n, uint64_t h)
{
	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)p[i]) * 1099511628211u;
	h ^= h >> 31;
	h *= 0x9e3779b97f4a7c15u;
	return h ^ h >> 29;
}

static void add_feature(float *v, uint64_t h, float weight)
{
	v[h % UAR_EMBED_DIMENSIONS] += h >> 63 ? -weight : weight;
}

/* Words that stand in every text tell nothing. */
static bool is_common(const char *word, size_t n)
{
	static const char *const common[] = { "a",  "an",  "and",  "are",  "as",   "at",
					      "be", "by",  "do",   "for",  "from", "how",
					      "i",  "in",  "is",   "it",   "me",   "my",
					      "of", "on",  "or",   "that", "the",  "this",
					      "to", "was", "what", "with", "you",  "your" };

	for (size_t i = 0; i < ARRAY_LEN(common); i++)
		if (strlen(common[i]) == n && !memcmp(common[i], word, n))
			return true;
	return false;
}

bool uar_embed_is_common(uar_str word)
{
	char lower[16];

	if (!word.n || word.n > sizeof lower)
		return false;
	for (size_t i = 0; i < word.n; i++)
		lower[i] = word.p[i] >= 'A' && word.p[i] <= 'Z' ? (char)(word.p[i] - 'A' + 'a')
								: word.p[i];
	return is_common(lower, word.n);
}

static void add_word(float *v, const char *word, size_t n)
{
	char framed[WORD_BYTES + 2] = "^";

	add_feature(v, hash_bytes(word, n, 1), 1.0F);
	memcpy(framed + 1, word, n);
	framed[n + 1] = '$';
	for (size_t i = 0; i + GRAM <= n + 2; i++)
		add_feature(v, hash_bytes(framed + i, GRAM, 2), 0.4F);
}

static bool normalize(float *v)
{
	double sum = 0;

	for (size_t i = 0; i < UAR_EMBED_DIMENSIONS; i++)
		sum += (double)v[i] * (double)v[i];
	if (sum <= 0)
		return false;
	for (size_t i = 0; i < UAR_EMBED_DIMENSIONS; i++)
		v[i] = (float)((double)v[i] / sqrt(sum));
	return true;
}

static size_t next_word(uar_str *rest, char word[WORD_BYTES])
{
	size_t n = 0, skipped = 0;

	while (skipped < rest->n && !is_word_byte((unsigned char)rest->p[skipped]))
		skipped++;
	*rest = uar_str_from(*rest, skipped);
	while (n < rest->n && is_word_byte((unsigned char)rest->p[n])) {
		char c = rest->p[n];

		if (n < WORD_BYTES)
			word[n] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
		n++;
	}
	*rest = uar_str_from(*rest, n);
	return n < WORD_BYTES ? n : WORD_BYTES;
}

/* A text of common words only is measured by them. */
static void add_words(float *v, uar_str text, bool all)
{
	char word[WORD_BYTES];
	size_t n;

	while ((n = next_word(&text, word)))
		if (all || !is_common(word, n))
			add_word(v, word, n);
}

uar_err uar_embed_text(uar_str text, float out[UAR_EMBED_DIMENSIONS])
{
	if (text.n > UAR_LIMIT_EMBED_BYTES)
		text.n = UAR_LIMIT_EMBED_BYTES;
	memset(out, 0, UAR_EMBED_DIMENSIONS * sizeof *out);
	add_words(out, text, false);
	if (normalize(out))
		return UAR_OK;
	add_words(out, text, true);
	return normalize(out) ? UAR_OK : UAR_EINVALID;
}

double uar_embed_similarity(const float *a, const float *b, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (double)a[i] * (double)b[i];
	return sum;
}
