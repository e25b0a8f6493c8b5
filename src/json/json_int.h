/* json_int.h - what the files of this room share: the scan for bytes that need
 * care, numbers, and the check for repeated keys. Not for other rooms. */
#ifndef UAR_JSON_JSON_INT_H
#define UAR_JSON_JSON_INT_H

#include "json/json.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* True for a byte that cannot be copied as it is: quote, backslash, control
 * characters, and everything outside ASCII (whose UTF-8 must be checked). */
static inline bool uar_json_special(char c)
{
	return (signed char)c < 0x20 || c == '"' || c == '\\';
}

#ifdef __SSE2__
/* Which of sixteen bytes are not special. Compared with signs, bytes from 0x80 on are
 * small, too; and the bit that is turned over makes the quote a space, and nothing else
 * so small. */
static inline __m128i uar_json_plain_16(__m128i v)
{
	__m128i large =
		_mm_cmpgt_epi8(_mm_xor_si128(v, _mm_set1_epi8('"' ^ ' ')), _mm_set1_epi8(' '));

	return _mm_andnot_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('\\')), large);
}

/* The special ones of the sixteen bytes at p, a bit for each. */
static inline unsigned uar_json_special_bits(const char *p)
{
	__m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);

	return 0xffffu ^ (unsigned)_mm_movemask_epi8(uar_json_plain_16(v));
}
#endif

/* The first special byte in [p, end), or end, of a text that begins at start. */
static inline const char *uar_json_plain_end(const char *start, const char *p, const char *end)
{
#ifndef __SSE2__
	(void)start;
#else
	unsigned special;

	for (; end - p >= 16; p += 16) {
		special = uar_json_special_bits(p);
		if (special)
			return p + __builtin_ctz(special);
	}
	if (end - start >= 16) { /* the last sixteen, without those before p */
		special = uar_json_special_bits(end - 16) >> (16 - (end - p));
		return special ? p + __builtin_ctz(special) : end;
	}
#endif
	while (p < end && !uar_json_special(*p))
		p++;
	return p;
}

/* The first byte in [p, end) that may not stand between quotes as it is: a quote, a
 * backslash, a control character or where UTF-8 is ill-formed; or end. */
static inline const char *uar_json_text_end(const char *start, const char *p, const char *end)
{
	uint32_t cp;
	size_t n;

	while ((p = uar_json_plain_end(start, p, end)) < end && (unsigned char)*p >= 0x80) {
		n = uar_utf8_decode(uar_str_n(p, (size_t)(end - p)), &cp);
		if (n == 0)
			break;
		p += n;
	}
	return p;
}

/* --- numbers (json_number.c) --- */

/* Reads the number at p into kind, text and value of `node`. Returns its end;
 * NULL with *err set: UAR_ESYNTAX or UAR_ENUMBER. */
const char *uar_json_number_read(const char *p, const char *end, struct uar_json *node,
				 uar_err *err);
/* Exact comparison of two numbers by their source text: <0, 0, >0. */
int uar_json_number_cmp(const struct uar_json *a, const struct uar_json *b);
/* One text for all spellings of a value: "-125e-1", "0e0". */
void uar_json_number_canonical(struct uar_buf *out, const struct uar_json *a);
/* True when the mathematical value has no fraction: 1.0 and 1e400 have none. */
bool uar_json_number_is_integer(const struct uar_json *a);

enum { UAR_JSON_NUMBER_TEXT = 32 };
/* The shortest decimal that reads back to the finite v; returns its length. */
size_t uar_json_double_format(double v, char out[UAR_JSON_NUMBER_TEXT]);

/* --- repeated keys (json_keys.c) --- */

/* A set of keys in scratch memory that is reused from object to object. The hash
 * is keyed with randomness, so nobody can choose keys that collide. */
struct uar_json_keys {
	struct uar_json_key_slot *slots;
	size_t cap;
	uint64_t k0, k1;
};
void uar_json_keys_fini(struct uar_json_keys *keys);
/* Fills the set with the members of `object`. UAR_EDUPKEY: *out_second is the
 * repeated member. */
uar_err uar_json_keys_load(struct uar_json_keys *keys, const struct uar_json *object,
			   const struct uar_json **out_second);
/* Leaves only the last of the members with one key. */
uar_err uar_json_keys_last(struct uar_json_keys *keys, struct uar_json *object);
const struct uar_json *uar_json_keys_find(const struct uar_json_keys *keys, uar_str key);

/* --- pointers (json.c) --- */

/* Writes `/key` with ~ and / escaped. */
void uar_json_pointer_add(struct uar_buf *out, uar_str key);
bool uar_json_token_valid(uar_str token);	    /* every ~ is ~0 or ~1 */
bool uar_json_token_is(uar_str token, uar_str key); /* unescaped it equals key */
bool uar_json_token_index(uar_str token, uint64_t *out);

#endif
