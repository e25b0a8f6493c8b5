/* embed.h - the built-in embedder: a text becomes a vector, the same one every time.
 *
 * It hashes words and their parts into a fixed number of dimensions. Texts that share words, stems
 * or spellings have similar vectors; it knows nothing of meaning. It exists so that everything
 * that ranks by similarity works without a provider. */
#ifndef UAR_SKILL_EMBED_H
#define UAR_SKILL_EMBED_H

#include "base/str.h"
#include "skill/limits.h"

enum { UAR_EMBED_DIMENSIONS = UAR_LIMIT_EMBED_DIMENSIONS };

/* A vector of length 1. UAR_EINVALID: the text holds no word, and no vector would mean
 * anything. Of a long text the first UAR_LIMIT_EMBED_BYTES count. */
UAR_MUST_CHECK uar_err uar_embed_text(uar_str text, float out[UAR_EMBED_DIMENSIONS]);
/* A word that stands in every text and says nothing about it. */
bool uar_embed_is_common(uar_str word);
/* -1 to 1, for vectors of length 1. */
double uar_embed_similarity(const float *a, const float *b, size_t n);

#endif
