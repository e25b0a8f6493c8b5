/* schema_idna.c - labels of international host names: Punycode (RFC 3492) and the
 * rules of IDNA 2008 that do not need tables of writing direction (RFC 5892). */
#include "json/regex_int.h"
#include "json/schema_format.h"

enum { LABEL_CHARS = 63 };

/* --- Punycode --- */

static int digit_of(char c)
{
	char low = c | 32;

	if (c >= '0' && c <= '9')
		return c - '0' + 26;
	return low >= 'a' && low <= 'z' ? low - 'a' : -1;
}

static uint32_t adapt(uint32_t delta, uint32_t points, bool first)
{
	uint32_t k = 0;

	delta /= first ? 700 : 2;
	for (delta += delta / points; delta > 455; k += 36)
		delta /= 35;
	return k + 36 * delta / (delta + 38);
}

/* One variable-length number behind *at, added to *i. */
static bool read_delta(uar_str s, size_t *at, uint32_t bias, uint32_t *i)
{
	uint32_t w = 1;

	for (uint32_t k = 36;; k += 36) {
		uint32_t t = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
		int digit = *at < s.n ? digit_of(s.p[(*at)++]) : -1;

		if (digit < 0 || (uint32_t)digit > (0x7FFFFFFF - *i) / w)
			return false;
		*i += (uint32_t)digit * w;
		if ((uint32_t)digit < t)
			return true;
		if (w > 0x7FFFFFFF / (36 - t))
			return false;
		w *= 36 - t;
	}
}

static void add_utf8(struct uar_buf *out, uint32_t cp)
{
	if (cp < 0x80) {
		uar_buf_add_char(out, (char)cp);
		return;
	}
	if (cp < 0x800) {
		uar_buf_add_char(out, (char)(0xC0 | cp >> 6));
	} else {
		if (cp < 0x10000) {
			uar_buf_add_char(out, (char)(0xE0 | cp >> 12));
		} else {
			uar_buf_add_char(out, (char)(0xF0 | cp >> 18));
			uar_buf_add_char(out, (char)(0x80 | (cp >> 12 & 0x3F)));
		}
		uar_buf_add_char(out, (char)(0x80 | (cp >> 6 & 0x3F)));
	}
	uar_buf_add_char(out, (char)(0x80 | (cp & 0x3F)));
}

bool uar_idna_decode(uar_str s, struct uar_buf *out)
{
	uint32_t cps[LABEL_CHARS], n = 0, code = 128, i = 0, bias = 72;
	size_t basic = s.n, at = 0;

	while (basic && s.p[basic - 1] != '-')
		basic--;
	for (; basic && n + 1 < basic && n < LABEL_CHARS; n++)
		cps[n] = (unsigned char)s.p[n];
	for (at = basic; at < s.n; i++) {
		uint32_t before = i;

		if (n == LABEL_CHARS || !read_delta(s, &at, bias, &i))
			return false;
		bias = adapt(i - before, n + 1, before == 0);
		code += i / (n + 1);
		i %= n + 1;
		if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
			return false;
		memmove(cps + i + 1, cps + i, (n - i) * sizeof *cps);
		cps[i] = code;
		n++;
	}
	for (uint32_t k = 0; k < n; k++)
		add_utf8(out, cps[k]);
	return n && basic < s.n && !out->err; /* only ASCII would not be written so */
}

/* --- rules for characters --- */

static bool between(uint32_t c, uint32_t lo, uint32_t hi)
{
	return c >= lo && c <= hi;
}

static bool is_greek(uint32_t c)
{
	return between(c, 0x370, 0x3FF) || between(c, 0x1F00, 0x1FFF);
}

static bool is_hebrew(uint32_t c)
{
	return between(c, 0x591, 0x5F4) || between(c, 0xFB1D, 0xFB4F);
}

static bool is_kana_or_han(uint32_t c)
{
	return (between(c, 0x3041, 0x30FF) && c != 0x30FB) || between(c, 0x31F0, 0x31FF) ||
	       between(c, 0x3400, 0x4DBF) || between(c, 0x4E00, 0x9FFF) ||
	       between(c, 0xF900, 0xFAFF) || between(c, 0x20000, 0x3FFFF) || c == 0x3005 ||
	       c == 0x3007;
}

static bool is_virama(uint32_t c)
{
	static const uint32_t list[] = { 0x94D,	 0x9CD,	 0xA4D,	 0xACD,	 0xB4D,	 0xBCD,	 0xC4D,
					 0xCCD,	 0xD3B,	 0xD3C,	 0xD4D,	 0xDCA,	 0xE3A,	 0xEBA,
					 0xF84,	 0x1039, 0x103A, 0x1714, 0x1734, 0x17D2, 0x1A60,
					 0x1B44, 0x1BAA, 0x1BAB, 0x1BF2, 0x1BF3, 0x2D7F, 0xA806 };

	for (size_t i = 0; i < ARRAY_LEN(list); i++)
		if (list[i] == c)
			return true;
	return false;
}

/* Exceptions of RFC 5892 2.6 that are never allowed. */
static bool is_disallowed(uint32_t c)
{
	static const uint32_t list[] = { 0x640,	 0x7FA,	 0x302E, 0x302F, 0x3031,
					 0x3032, 0x3033, 0x3034, 0x3035, 0x303B };

	for (size_t i = 0; i < ARRAY_LEN(list); i++)
		if (list[i] == c)
			return true;
	return false;
}

static bool is_exception(uint32_t c)
{
	return c == 0xDF || c == 0x3C2 || c == 0x6FD || c == 0x6FE || c == 0xF0B || c == 0x3007;
}

struct label {
	uint32_t c[LABEL_CHARS + 1];
	size_t n;
};

static bool any_in(const struct label *l, bool (*is)(uint32_t))
{
	for (size_t i = 0; i < l->n; i++)
		if (is(l->c[i]))
			return true;
	return false;
}

static bool is_arabic_digit(uint32_t c)
{
	return between(c, 0x660, 0x669);
}

static bool is_extended_digit(uint32_t c)
{
	return between(c, 0x6F0, 0x6F9);
}

/* Characters that are allowed in certain company only (RFC 5892, appendix A). */
static int context_rule(const struct label *l, size_t i)
{
	uint32_t c = l->c[i], before = i ? l->c[i - 1] : 0, after = i + 1 < l->n ? l->c[i + 1] : 0;

	switch (c) {
	case 0x200C:
	case 0x200D: return is_virama(before);
	case 0xB7: return before == 'l' && after == 'l';
	case 0x375: return is_greek(after);
	case 0x5F3:
	case 0x5F4: return is_hebrew(before);
	case 0x30FB: return any_in(l, is_kana_or_han);
	default: break;
	}
	if (is_arabic_digit(c))
		return !any_in(l, is_extended_digit);
	if (is_extended_digit(c))
		return !any_in(l, is_arabic_digit);
	return -1; /* no such rule */
}

/* Letters, marks and digits; capitals would have to be mapped first. */
static const struct uar_regex_class *category(const char *const *names, size_t n,
					      struct uar_arena *arena)
{
	const struct uar_regex_class *c = NULL;
	struct uar_regex_set set = { 0 };

	for (size_t i = 0; i < n; i++)
		uar_regex_set_add_property(&set, uar_str_c(names[i]));
	uar_regex_set_normalise(&set, false);
	if (uar_regex_set_freeze(&set, arena, &c))
		c = NULL;
	uar_regex_set_fini(&set);
	return c;
}

static bool in_class(const struct uar_regex_class *c, uint32_t ch)
{
	for (uint32_t i = 0; c && i < c->count && c->ranges[i].lo <= ch; i++)
		if (ch <= c->ranges[i].hi)
			return true;
	return false;
}

static bool check_chars(const struct label *l)
{
	static const char *const allowed[] = { "Ll", "Lo", "Lm", "Mn", "Mc", "Nd" };
	static const char *const marks[] = { "M" };
	struct uar_arena arena;
	const struct uar_regex_class *fine, *mark;
	bool good;

	uar_arena_init(&arena, 0);
	fine = category(allowed, ARRAY_LEN(allowed), &arena);
	mark = category(marks, ARRAY_LEN(marks), &arena);
	good = fine && mark && !in_class(mark, l->c[0]);
	for (size_t i = 0; i < l->n && good; i++) {
		int rule = context_rule(l, i);

		if (rule >= 0)
			good = rule;
		else
			good = l->c[i] == '-' || is_exception(l->c[i]) ||
			       (in_class(fine, l->c[i]) && !is_disallowed(l->c[i]));
	}
	uar_arena_fini(&arena);
	return good;
}

bool uar_idna_label_valid(uar_str s)
{
	struct label l = { .n = 0 };

	for (size_t at = 0; at < s.n;) {
		size_t n = uar_utf8_decode(uar_str_from(s, at), &l.c[l.n]);

		if (!n || l.n == LABEL_CHARS)
			return false;
		at += n;
		l.n++;
	}
	if (!l.n || l.c[0] == '-' || l.c[l.n - 1] == '-')
		return false;
	if (l.n >= 4 && l.c[2] == '-' && l.c[3] == '-')
		return false;
	return check_chars(&l);
}
