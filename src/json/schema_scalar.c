/* schema_scalar.c - rules of numbers and strings. Numbers are compared by their
 * decimal text, so that no digit of a large one is lost. */
#include <math.h>

#include "json/schema_int.h"

/* --- multipleOf --- */

/* sign * digits * 10^exponent; false when the digits do not fit. */
struct scaled {
	uint64_t digits;
	int64_t exponent;
};

static bool scale(const struct uar_json *j, struct scaled *out)
{
	const char *p = j->text.p, *end = p + j->text.n;
	bool after_point = false;
	int64_t power = 0;

	*out = (struct scaled){ 0 };
	for (p += p < end && *p == '-'; p < end && (*p | 32) != 'e'; p++) {
		if (*p == '.') {
			after_point = true;
			continue;
		}
		if (out->digits > (UINT64_MAX - 9) / 10)
			return false;
		out->digits = out->digits * 10 + (uint64_t)(*p - '0');
		out->exponent -= after_point;
	}
	if (p < end) {
		bool negative = p[1] == '-';

		for (p += p[1] == '-' || p[1] == '+' ? 2 : 1; p < end && power < 100000; p++)
			power = power * 10 + (*p - '0');
		out->exponent += negative ? -power : power;
	}
	while (out->digits && out->digits % 10 == 0) {
		out->digits /= 10;
		out->exponent++;
	}
	return true;
}

static uint64_t power_of_ten_mod(uint64_t e, uint64_t m)
{
	__extension__ typedef unsigned __int128 wide;
	wide result = 1 % m, base = 10 % m;

	for (; e; e >>= 1) {
		if (e & 1)
			result = result * base % m;
		base = base * base % m;
	}
	return (uint64_t)result;
}

/* a * 10^x is a multiple of b * 10^y, exactly. */
static bool scaled_multiple(struct scaled a, struct scaled b)
{
	__extension__ typedef unsigned __int128 wide;
	uint64_t m = b.digits;

	if (a.digits == 0)
		return true;
	if (a.exponent >= b.exponent)
		return (wide)(a.digits % m) *
			       power_of_ten_mod((uint64_t)(a.exponent - b.exponent), m) % m ==
		       0;
	/* a has no zero at its end, so it must be divisible by ten as it stands: */
	for (int64_t k = a.exponent; k < b.exponent; k++) {
		if (m > UINT64_MAX / 10)
			return false;
		m *= 10;
	}
	return a.digits % m == 0;
}

static bool is_multiple(const struct uar_json *v, const struct uar_json *of)
{
	struct scaled a, b;

	if (v->kind == UAR_JSON_INT && of->kind == UAR_JSON_INT)
		return of->i == 1 || v->i % of->i == 0;
	if (scale(v, &a) && scale(of, &b) && b.digits)
		return scaled_multiple(a, b);
	return fmod(uar_json_double(v, 0), uar_json_double(of, 1)) == 0;
}

/* --- numbers --- */

static uar_err outside(struct uar_schema_run *r, const char *keyword, const struct uar_json *bound)
{
	return uar_schema_fail(r, "%s: %.*s", keyword,
			       (int)(bound->text.n < 60 ? bound->text.n : 60), bound->text.p);
}

uar_err uar_schema_check_number(struct uar_schema_run *r, const struct uar_schema_number *n,
				const struct uar_json *v)
{
	if (n->minimum && uar_json_number_cmp(v, n->minimum) < 0)
		return outside(r, "minimum", n->minimum);
	if (n->maximum && uar_json_number_cmp(v, n->maximum) > 0)
		return outside(r, "maximum", n->maximum);
	if (n->above && uar_json_number_cmp(v, n->above) <= 0)
		return outside(r, "exclusiveMinimum", n->above);
	if (n->below && uar_json_number_cmp(v, n->below) >= 0)
		return outside(r, "exclusiveMaximum", n->below);
	if (n->multiple && !is_multiple(v, n->multiple))
		return outside(r, "multipleOf", n->multiple);
	return UAR_OK;
}

/* --- strings --- */

static uint64_t count_characters(uar_str s)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s.n; i++)
		n += ((unsigned char)s.p[i] & 0xC0) != 0x80;
	return n;
}

/* Bytes bound the characters from both sides; mostly that decides. */
static uar_err check_length(struct uar_schema_run *r, const struct uar_schema_string *s,
			    uar_str text)
{
	uint64_t n = text.n;

	if (n > s->max || n / 4 < s->min)
		n = count_characters(text);
	if (n < s->min)
		return uar_schema_fail(r, "minLength: shorter than %llu characters",
				       (unsigned long long)s->min);
	if (n > s->max)
		return uar_schema_fail(r, "maxLength: longer than %llu characters",
				       (unsigned long long)s->max);
	return UAR_OK;
}

uar_err uar_schema_check_string(struct uar_schema_run *r, const struct uar_schema_string *s,
				uar_str text)
{
	uar_err e = check_length(r, s, text);
	bool found = true;

	if (!e && s->pattern)
		e = uar_regex_match(s->pattern, text, &r->regex_steps, &found);
	if (e == UAR_ETOOBIG)
		return uar_schema_exhausted(r);
	if (e)
		return e;
	if (!found)
		return uar_schema_fail(r, "pattern: the text does not match %.*s",
				       UAR_FMT(uar_str_utf8_prefix(s->pattern_text, 200)));
	if (s->format && !s->format(text))
		return uar_schema_fail(r, "format: not a valid %s", s->format_name);
	return UAR_OK;
}
