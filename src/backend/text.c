/* text.c - UTF-8 and JSON text under the bounds of the envelope. Pure. */
#include "backend/int.h"

#include <math.h>

#define SUFFIX "\xE2\x80\xA6(truncated)" /* an ellipsis: 3 + 11 bytes */
enum { SUFFIX_BYTES = 14, ELLIPSIS_BYTES = 3 };

void uab_truncate(uar_str s, size_t max, struct uar_buf *out)
{
	if (s.n <= max) {
		uar_buf_add_str(out, s);
		return;
	}
	if (max <= SUFFIX_BYTES) {
		uar_buf_add(out, SUFFIX, max >= ELLIPSIS_BYTES ? ELLIPSIS_BYTES : 0);
		return;
	}
	uar_buf_add_str(out, uar_str_utf8_prefix(s, max - SUFFIX_BYTES));
	uar_buf_add(out, SUFFIX, SUFFIX_BYTES);
}

static size_t char_bytes(uar_str s)
{
	size_t n = 1;

	while (n < s.n && ((unsigned char)s.p[n] & 0xC0) == 0x80)
		n++;
	return n;
}

size_t uab_split(uar_str s, size_t max)
{
	size_t n = s.n <= max ? s.n : uar_str_utf8_prefix(s, max).n;

	return n || !s.n ? n : char_bytes(s);
}

/* Bytes of the well-formed character at the start, 0 when there is none. */
static size_t valid_char(uar_str s)
{
	unsigned char c = (unsigned char)s.p[0];
	size_t n = c < 0x80 ? 1 : c < 0xC2 ? 0 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : c < 0xF5 ? 4 : 0;

	return n && n <= s.n && uar_utf8_valid(uar_str_n(s.p, n)) ? n : 0;
}

void uab_lossy(uar_str s, struct uar_buf *out)
{
	size_t start = 0, at = 0;

	if (uar_utf8_valid(s)) {
		uar_buf_add_str(out, s);
		return;
	}
	while (at < s.n) {
		size_t n = valid_char(uar_str_from(s, at));

		if (n) {
			at += n;
			continue;
		}
		uar_buf_add(out, s.p + start, at - start);
		uar_buf_add(out, "\xEF\xBF\xBD", 3);
		start = ++at;
	}
	uar_buf_add(out, s.p + start, at - start);
}

/* White space of Unicode: bytes of the one at the start, 0 when it is not one. */
static size_t space_at(const char *p, size_t n)
{
	static const char *const wide[] = { "\xC2\x85",	    "\xC2\xA0",	    "\xE1\x9A\x80",
					    "\xE2\x80\xA8", "\xE2\x80\xA9", "\xE2\x80\xAF",
					    "\xE2\x81\x9F", "\xE3\x80\x80" };

	if (n && (p[0] == ' ' || (p[0] >= '\t' && p[0] <= '\r')))
		return 1;
	for (size_t i = 0; i < ARRAY_LEN(wide); i++) {
		size_t k = strlen(wide[i]);

		if (n >= k && memcmp(p, wide[i], k) == 0)
			return k;
	}
	if (n >= 3 && memcmp(p, "\xE2\x80", 2) == 0 && (unsigned char)p[2] >= 0x80 &&
	    (unsigned char)p[2] <= 0x8A)
		return 3;
	return 0;
}

uar_str uab_trim(uar_str s)
{
	size_t k;

	while (s.n && (k = space_at(s.p, s.n)))
		s = uar_str_from(s, k);
	for (;;) {
		for (k = 1; k <= 3 && k <= s.n; k++)
			if (space_at(s.p + s.n - k, k) == k)
				break;
		if (k > 3 || k > s.n)
			return s;
		s.n -= k;
	}
}

static int hex4(const char *p)
{
	int v = 0;

	for (int i = 0; i < 4; i++) {
		int digit = uar_hex_digit(p[i]);

		if (digit < 0)
			return -1;
		v = v << 4 | digit;
	}
	return v;
}

static int escape_at(const char *p, const char *end)
{
	return end - p >= 6 && p[0] == '\\' && p[1] == 'u' ? hex4(p + 2) : -1;
}

void uab_fix_surrogates(char *p, size_t n)
{
	char *end = p + n;

	while (p < end && (p = memchr(p, '\\', (size_t)(end - p)))) {
		int v = escape_at(p, end);
		int low;

		if (v < 0xD800 || v > 0xDFFF) {
			p += 2; /* a backslash always has a character behind it */
			continue;
		}
		low = v < 0xDC00 ? escape_at(p + 6, end) : -1;
		if (low >= 0xDC00 && low <= 0xDFFF) {
			p += 12;
			continue;
		}
		memcpy(p + 2, "fffd", 4);
		p += 6;
	}
}

/* The writer keeps the text of numbers; the envelope counts the shortest one. */
static void write_value(struct uar_jw *w, const struct uar_json *j, bool named)
{
	if (named)
		uar_jw_key(w, j->key);
	switch (j->kind) {
	case UAR_JSON_OBJECT: uar_jw_obj(w, NULL); break;
	case UAR_JSON_ARRAY: uar_jw_arr(w, NULL); break;
	case UAR_JSON_DOUBLE: uar_jw_double(w, NULL, j->d); return;
	case UAR_JSON_NULL: uar_jw_null(w, NULL); return;
	case UAR_JSON_BOOL: uar_jw_bool(w, NULL, j->b); return;
	case UAR_JSON_INT: uar_jw_int(w, NULL, j->i); return;
	case UAR_JSON_STRING: uar_jw_str(w, NULL, j->text); return;
	}
	for (const struct uar_json *c = j->first; c; c = c->next)
		write_value(w, c, j->kind == UAR_JSON_OBJECT);
	uar_jw_close(w);
}

bool uab_compact(uar_str json, struct uar_arena *arena, struct uar_buf *out)
{
	static const struct uar_json_limits limits = { .foreign = true, .depth = 60 };
	const struct uar_json *j;
	struct uar_jw w = uar_jw_begin(out);

	if (uar_json_parse(json, &limits, arena, &j, NULL))
		return false;
	write_value(&w, j, false);
	return uar_jw_end(&w) == UAR_OK;
}

static bool lower(char c)
{
	return c >= 'a' && c <= 'z';
}

static bool lower_or_digit(char c)
{
	return lower(c) || (c >= '0' && c <= '9');
}

bool uab_is_kind(uar_str s)
{
	if (s.n == 0 || s.n > 128 || !lower(s.p[0]))
		return false;
	for (size_t i = 1; i < s.n; i++)
		if (!lower_or_digit(s.p[i]) && s.p[i] != '_')
			return false;
	return true;
}

bool uab_is_key(uar_str s)
{
	uar_str rest = UAR_STR_NONE;

	if (s.n == 0 || s.n > 256 || !lower(s.p[0]))
		return false;
	for (size_t i = 1; i < s.n; i++)
		if (!lower_or_digit(s.p[i]) && !memchr("_.-", s.p[i], 3))
			return false;
	if (uar_str_starts(s, UAR_STR("agent_api.")))
		return s.n > 10;
	if (!uar_str_starts(s, UAR_STR("backend.")))
		return false;
	return uab_is_kind(uar_str_cut(uar_str_from(s, 8), '.', &rest)) && rest.n > 0;
}

bool uab_is_uuid(uar_str s)
{
	if (s.n != 36)
		return false;
	for (size_t i = 0; i < 36; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;
		char c = s.p[i];

		if (dash ? c != '-'
			 : !((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') ||
			     (c >= 'A' && c <= 'F')))
			return false;
	}
	return true;
}

bool uab_has_nul(uar_str s)
{
	return s.n && memchr(s.p, 0, s.n);
}
