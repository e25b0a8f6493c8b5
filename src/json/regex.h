/* regex.h - regular expressions of ECMA-262 in Unicode mode, without backtracking.
 *
 * A match costs at most (characters x instructions) steps whatever the pattern
 * and the text are. Lookahead and lookbehind cost one more pass each;
 * backreferences cannot be had in bounded time and are refused. Of properties
 * (\p{...}) the general categories are known, and Any, ASCII, Assigned.
 * Escaped punctuation and lone braces are taken literally, as browsers do
 * outside of Unicode mode. */
#ifndef UAR_JSON_REGEX_H
#define UAR_JSON_REGEX_H

#include "base/str.h"

struct uar_regex;

/* UAR_EINVALID with the reason and the byte in error->where, UAR_ENOTIMPL for a
 * backreference, UAR_ETOOBIG when the program would be larger than
 * UAR_LIMIT_REGEX_PROGRAM. The result is immutable
 * and may be shared between threads. */
UAR_MUST_CHECK uar_err uar_regex_create(uar_str pattern, struct uar_regex **out,
					struct uar_error *error);
void uar_regex_destroy(struct uar_regex *re);
/* Does `text` (valid UTF-8) hold a match anywhere? Every step is taken from
 * *steps; UAR_ETOOBIG when they are used up. */
UAR_MUST_CHECK uar_err uar_regex_match(const struct uar_regex *re, uar_str text, uint64_t *steps,
				       bool *out_found);

#endif
