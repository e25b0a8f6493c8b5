/* reply_repair.c - text that is not quite Unicode, as some providers send it.
 *
 * Servers that cut their output between tokens without looking send the two
 * halves of a character in two events: as escaped surrogates or as raw bytes.
 * A stream must not fail over that. Runs only after the strict reader refused. */
#include "model/reply_int.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* The code unit of the escape \uXXXX at s, or -1. */
static int code_unit(uar_str s)
{
	int v = 0;

	if (s.n < 6 || s.p[0] != '\\' || s.p[1] != 'u')
		return -1;
	for (size_t i = 2; i < 6; i++) {
		int digit = uar_hex_digit(s.p[i]);

		if (digit < 0)
			return -1;
		v = v << 4 | digit;
	}
	return v;
}

static bool is_high(int unit)
{
	return unit >= 0xd800 && unit <= 0xdbff;
}

static bool is_low(int unit)
{
	return unit >= 0xdc00 && unit <= 0xdfff;
}

/* At a backslash. Returns the bytes to step over. */
static size_t repair_escape(uar_str rest, bool at_start, struct uar_buf *out,
			    struct uar_reply_halves *halves)
{
	int unit = code_unit(rest);
	size_t n = rest.n < 2 ? rest.n : 2;

	if (is_high(unit) && is_low(code_unit(uar_str_from(rest, 6)))) {
		n = 12;
	} else if (is_high(unit) || is_low(unit)) {
		if (is_high(unit) && rest.n > 6 && rest.p[6] == '"')
			halves->high = (uint32_t)unit;
		if (is_low(unit) && at_start)
			halves->low = (uint32_t)unit;
		uar_buf_add_str(out, UAR_STR(REPLACEMENT));
		return 6;
	}
	uar_buf_add(out, rest.p, n);
	return n;
}

static size_t repair_byte(uar_str rest, struct uar_buf *out)
{
	uint32_t cp;
	size_t n = (unsigned char)rest.p[0] < 0x80 ? 1 : uar_utf8_decode(rest, &cp);

	if (n)
		uar_buf_add(out, rest.p, n);
	else
		uar_buf_add_str(out, UAR_STR(REPLACEMENT));
	return n ? n : 1;
}

void uar_reply_repair(uar_str json, struct uar_buf *out, struct uar_reply_halves *halves)
{
	bool after_quote = false;
	size_t i = 0;

	while (i < json.n && !out->err) {
		uar_str rest = uar_str_from(json, i);
		bool quote = json.p[i] == '"';

		if (json.p[i] == '\\')
			i += repair_escape(rest, after_quote, out, halves);
		else
			i += repair_byte(rest, out);
		after_quote = quote;
	}
}
