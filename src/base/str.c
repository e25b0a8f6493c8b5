/* str.c - operations on borrowed text. */
#include "base/str.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

static uint64_t eight(const char *p)
{
	uint64_t x;

	memcpy(&x, p, sizeof x);
	return x;
}

static uint64_t four(const char *p)
{
	uint32_t x;

	memcpy(&x, p, sizeof x);
	return x;
}

/* Up to eight bytes as one number; some are in it twice. */
static uint64_t few(uar_str s)
{
	if (s.n >= 4)
		return four(s.p) << 32 | four(s.p + s.n - 4);
	if (s.n == 0)
		return 0;
	return (uint64_t)(unsigned char)s.p[0] << 16 | (uint64_t)(unsigned char)s.p[s.n / 2] << 8 |
	       (unsigned char)s.p[s.n - 1];
}

/* Do eight bytes each differ at most in the case of letters? */
static bool same_but_case(uint64_t a, uint64_t b)
{
	const uint64_t ones = UINT64_MAX / 255, top = ones * 0x80;
	uint64_t low = (a | ones * 0x20) & ~top;
	uint64_t letter = (low + ones * (0x80 - 'a')) & ~(low + ones * (0x80 - 'z' - 1)) & ~a & top;

	return !((a ^ b) & ~(letter >> 2));
}

bool uar_str_eq_nocase(uar_str a, uar_str b)
{
	if (a.n != b.n)
		return false;
	if (a.n <= 8)
		return same_but_case(few(a), few(b));
	for (size_t i = 0; i + 8 < a.n; i += 8)
		if (!same_but_case(eight(a.p + i), eight(b.p + i)))
			return false;
	return same_but_case(eight(a.p + a.n - 8), eight(b.p + b.n - 8));
}

bool uar_str_starts(uar_str s, uar_str prefix)
{
	return s.n >= prefix.n && (prefix.n == 0 || memcmp(s.p, prefix.p, prefix.n) == 0);
}

bool uar_str_ends(uar_str s, uar_str suffix)
{
	return s.n >= suffix.n &&
	       (suffix.n == 0 || memcmp(s.p + s.n - suffix.n, suffix.p, suffix.n) == 0);
}

int uar_str_cmp(uar_str a, uar_str b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int d = n ? memcmp(a.p, b.p, n) : 0;

	if (d)
		return d;
	return a.n < b.n ? -1 : a.n > b.n;
}

size_t uar_str_find(uar_str s, char c)
{
	const char *hit = s.n ? memchr(s.p, c, s.n) : NULL;

	return hit ? (size_t)(hit - s.p) : s.n;
}

uar_str uar_str_from(uar_str s, size_t start)
{
	if (start >= s.n)
		return UAR_STR("");
	return uar_str_n(s.p + start, s.n - start);
}

uar_str uar_str_trim(uar_str s)
{
	while (s.n && (s.p[0] == ' ' || s.p[0] == '\t'))
		s = uar_str_n(s.p + 1, s.n - 1);
	while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
		s.n--;
	return s;
}

uar_str uar_str_cut(uar_str s, char sep, uar_str *rest)
{
	size_t at = uar_str_find(s, sep);

	*rest = uar_str_from(s, at + 1);
	return uar_str_n(s.p, at);
}

uar_err uar_str_u64(uar_str s, uint64_t *out)
{
	uint64_t v = 0;

	if (s.n == 0 || s.n > 20)
		return UAR_EINVALID;
	for (size_t i = 0; i < s.n; i++) {
		unsigned digit = (unsigned char)s.p[i] - '0';

		if (digit > 9 || v > (UINT64_MAX - digit) / 10)
			return UAR_EINVALID;
		v = v * 10 + digit;
	}
	*out = v;
	return UAR_OK;
}

bool uar_str_eq_secret(uar_str a, uar_str b)
{
	uint64_t diff;

	if (a.n != b.n || a.n == 0)
		return false;
	if (a.n <= 8)
		return few(a) == few(b);
	diff = eight(a.p + a.n - 8) ^ eight(b.p + b.n - 8);
	for (size_t i = 0; i + 8 < a.n; i += 8)
		diff |= eight(a.p + i) ^ eight(b.p + i);
	return diff == 0;
}

bool uar_str_is_hex(uar_str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!(s.p[i] >= '0' && s.p[i] <= '9') && !(s.p[i] >= 'a' && s.p[i] <= 'f'))
			return false;
	return true;
}

#ifdef __SSE2__
/* Half bytes to digits: those above nine move on to the letters. */
static __m128i digits_of(__m128i halves)
{
	__m128i letters = _mm_cmpgt_epi8(halves, _mm_set1_epi8(9));
	__m128i shift = _mm_and_si128(letters, _mm_set1_epi8('a' - '0' - 10));

	return _mm_add_epi8(_mm_add_epi8(halves, _mm_set1_epi8('0')), shift);
}

static void hex_16(const unsigned char *raw, char *out)
{
	__m128i v = _mm_loadu_si128((const __m128i *)(const void *)raw);
	__m128i low = _mm_and_si128(v, _mm_set1_epi8(15));
	__m128i high = _mm_and_si128(_mm_srli_epi16(v, 4), _mm_set1_epi8(15));
	__m128i *to = (__m128i *)(void *)out;

	_mm_storeu_si128(to, digits_of(_mm_unpacklo_epi8(high, low)));
	_mm_storeu_si128(to + 1, digits_of(_mm_unpackhi_epi8(high, low)));
}
#endif

void uar_hex(const unsigned char *raw, size_t n, char *out)
{
	size_t i = 0;

#ifdef __SSE2__
	for (; n - i >= 16; i += 16, out += 32)
		hex_16(raw + i, out);
#endif
	for (; i < n; i++) {
		*out++ = "0123456789abcdef"[raw[i] >> 4];
		*out++ = "0123456789abcdef"[raw[i] & 15];
	}
	*out = 0;
}

uar_str uar_str_utf8_prefix(uar_str s, size_t max)
{
	size_t n = max;

	if (s.n <= max)
		return s;
	while (n && max - n < 4 && ((unsigned char)s.p[n] & 0xC0) == 0x80)
		n--;
	if (max - n == 4)
		n = max; /* ill-formed: no code point is that long, and who cuts must get on */
	return uar_str_n(s.p, n);
}

/* Length of the well-formed sequence at p, 0 when ill-formed (RFC 3629). */
static size_t utf8_len(const unsigned char *p, size_t n)
{
	unsigned char c = p[0];
	unsigned char lo = 0x80, hi = 0xBF;
	size_t len = c < 0x80 ? 1 : c < 0xC2 ? 0 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : c < 0xF5 ? 4 : 0;

	if (len == 0 || len > n)
		return 0;
	if (c == 0xE0)
		lo = 0xA0;
	else if (c == 0xED)
		hi = 0x9F;
	else if (c == 0xF0)
		lo = 0x90;
	else if (c == 0xF4)
		hi = 0x8F;
	for (size_t i = 1; i < len; i++, lo = 0x80, hi = 0xBF)
		if (p[i] < lo || p[i] > hi)
			return 0;
	return len;
}

size_t uar_utf8_decode(uar_str s, uint32_t *out_cp)
{
	const unsigned char *p = (const unsigned char *)s.p;
	size_t len = s.n ? utf8_len(p, s.n) : 0;
	uint32_t cp;

	if (len == 0)
		return 0;
	cp = len == 1 ? p[0] : p[0] & (0x7Fu >> len);
	for (size_t i = 1; i < len; i++)
		cp = cp << 6 | (p[i] & 0x3F);
	*out_cp = cp;
	return len;
}

bool uar_utf8_valid(uar_str s)
{
	const unsigned char *p = (const unsigned char *)s.p;
	size_t left = s.n;

	while (left) {
		size_t len = *p < 0x80 ? 1 : utf8_len(p, left);

		if (len == 0)
			return false;
		p += len;
		left -= len;
	}
	return true;
}

size_t uar_str_distance(uar_str a, uar_str b)
{
	enum { MAX = 64 };
	size_t row[MAX + 1];

	if (a.n > MAX || b.n > MAX)
		return MAX;
	for (size_t j = 0; j <= b.n; j++)
		row[j] = j;
	for (size_t i = 1; i <= a.n; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= b.n; j++) {
			size_t replace = diagonal + (a.p[i - 1] != b.p[j - 1]);
			size_t best = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;

			diagonal = row[j];
			row[j] = replace < best ? replace : best;
		}
	}
	return row[b.n];
}

/* Does one of the eight bytes at p lie outside 0x21..0x7E? A borrow or carry
 * between bytes only follows a byte that is outside by itself. */
static bool outside_visible(const char *p)
{
	const uint64_t ones = UINT64_MAX / 255;
	uint64_t x = eight(p);

	return ((x - ones * 0x21) | x | (x + ones)) & ones * 0x80;
}

bool uar_str_is_visible(uar_str s)
{
	if (s.n < 8) {
		char padded[8] = "........";

		if (s.n)
			memcpy(padded, s.p, s.n);
		return !outside_visible(padded);
	}
	for (size_t i = 0; i + 8 < s.n; i += 8)
		if (outside_visible(s.p + i))
			return false;
	return !outside_visible(s.p + s.n - 8);
}

bool uar_str_is_id(uar_str s)
{
	return s.n > 0 && s.n <= UAR_LIMIT_ID_BYTES && uar_str_is_visible(s);
}

static uint64_t mix(uint64_t h, uint64_t x)
{
	unsigned __int128 product = (unsigned __int128)(h ^ x) * 0x9e3779b97f4a7c15u;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Eight bytes at a time; the last eight may overlap those before. The seed keeps
 * outsiders from choosing collisions. */
uint64_t uar_str_hash(uar_str s, uint64_t seed)
{
	uint64_t h = mix(seed, s.n + 0xcbf29ce484222325u);

	if (s.n <= 8)
		return mix(mix(h, few(s)), seed);
	for (size_t i = 0; i + 8 < s.n; i += 8)
		h = mix(h, eight(s.p + i));
	return mix(mix(h, eight(s.p + s.n - 8)), seed);
}
