/* str.h - borrowed text: a pointer and a length, never NUL-dependent. */
#ifndef UAR_BASE_STR_H
#define UAR_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"

#define ARRAY_LEN(A) (sizeof(A) / sizeof((A)[0]))

typedef struct uar_str {
	const char *p;
	size_t n;
} uar_str;

#define UAR_STR(LITERAL) ((uar_str){ "" LITERAL, sizeof(LITERAL) - 1 })
#define UAR_STR_NONE	 ((uar_str){ NULL, 0 })
/* For printf("%.*s", UAR_FMT(s)). */
#define UAR_FMT(S) (int)(S).n, (S).p ? (S).p : ""

static inline uar_str uar_str_c(const char *c)
{
	return (uar_str){ c, c ? strlen(c) : 0 };
}

static inline uar_str uar_str_n(const char *p, size_t n)
{
	return (uar_str){ p, n };
}

static inline bool uar_str_eq(uar_str a, uar_str b)
{
	return a.n == b.n && (a.p == b.p || a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool uar_str_is(uar_str a, const char *c)
{
	return uar_str_eq(a, uar_str_c(c));
}

bool uar_str_eq_nocase(uar_str a, uar_str b); /* ASCII only */
bool uar_str_starts(uar_str s, uar_str prefix);
bool uar_str_ends(uar_str s, uar_str suffix);
int uar_str_cmp(uar_str a, uar_str b); /* bytewise, like strcmp */
/* Index of the byte, or s.n when it is not there. */
size_t uar_str_find(uar_str s, char c);
uar_str uar_str_from(uar_str s, size_t start); /* the rest; empty past the end */
uar_str uar_str_trim(uar_str s);	       /* spaces and tabs at both ends */
/* Cuts `s` at the first `sep`: returns the head, leaves the tail in *rest. */
uar_str uar_str_cut(uar_str s, char sep, uar_str *rest);
/* Whole-string decimal; no sign, no spaces. */
UAR_MUST_CHECK uar_err uar_str_u64(uar_str s, uint64_t *out);
/* Equal in time that depends on the lengths alone; an empty string equals nothing. */
bool uar_str_eq_secret(uar_str a, uar_str b);
/* Digits and a to f alone; the empty string is, too. */
bool uar_str_is_hex(uar_str s);
/* The value of a digit in either case, -1: none. */
static inline int uar_hex_digit(char c)
{
	char low = (char)(c | 32);

	if (c >= '0' && c <= '9')
		return c - '0';
	return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}
/* 2 * n lower-case digits and a NUL. */
void uar_hex(const unsigned char *raw, size_t n, char *out);
enum { UAR_U64_DIGITS = 20 };
/* The decimal digits of v, put right before `end`; returns how many. */
static inline size_t uar_digits(char *end, uint64_t v)
{
	char *p = end;

	do {
		*--p = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	return (size_t)(end - p);
}
/* The longest prefix of at most `max` bytes that ends between code points. */
uar_str uar_str_utf8_prefix(uar_str s, size_t max);
bool uar_utf8_valid(uar_str s);
/* Bytes of the well-formed sequence that begins s, its code point in *out_cp; 0
 * when s is empty or begins ill-formed (RFC 3629). */
size_t uar_utf8_decode(uar_str s, uint32_t *out_cp);
/* Edits (insert, delete, replace) between two short strings; for "did you mean". */
size_t uar_str_distance(uar_str a, uar_str b);
/* ASCII without spaces and control characters; the empty string is, too. */
bool uar_str_is_visible(uar_str s);
/* An identifier from outside: 1..UAR_LIMIT_ID_BYTES visible ASCII characters. */
bool uar_str_is_id(uar_str s);
uint64_t uar_str_hash(uar_str s, uint64_t seed);

#endif
