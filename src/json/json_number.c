/* json_number.c - decimal text to numbers and back, exactly and in linear time.
 *
 * Integers that fit int64 are exact; anything else becomes the nearest double
 * and keeps its source text, by which it is compared. Nothing here depends on
 * the locale: what is given to strtod has no decimal point. */
#include "json/json_int.h"

#include <math.h>

enum {
	KEPT_DIGITS = 800, /* more than any halfway case between two doubles needs */
	INT_DIGITS = 19,   /* what has more does not fit int64, what has not fits uint64 */
	FAST_POWER = 22,   /* 10^22 is the largest power of ten that a double holds exactly */
};
/* Numbers further out than this count as if they were there, whatever way they are
 * written; an exponent is read a good deal further than the digits can shift it. */
static const int64_t POINT_MAX = 1000000000000, EXPONENT_MAX = 1000000000000000;

static bool is_digit(const char *p, const char *end)
{
	return p < end && (unsigned char)(*p - '0') <= 9;
}

/* A decimal as written: 0.d1d2d3... * 10^point, without zeros at either end. */
struct decimal {
	bool negative;
	const char *first,
		*last; /* significant digits, '.' may be among them; first == last: zero */
	int64_t digits;
	int64_t point;
};

static int64_t read_exponent(const char *p, const char *end)
{
	bool negative = p < end && *p == '-';
	int64_t v = 0;

	if (p < end && (*p == '-' || *p == '+'))
		p++;
	for (; is_digit(p, end); p++)
		if (v < EXPONENT_MAX)
			v = v * 10 + (*p - '0');
	return negative ? -v : v;
}

static int64_t bounded(int64_t point)
{
	return point > POINT_MAX ? POINT_MAX : point < -POINT_MAX ? -POINT_MAX : point;
}

/* `text` is a well-formed JSON number. */
static struct decimal decimal_of(uar_str text)
{
	const char *p = text.p, *end = text.p + text.n, *mantissa_end = p;
	struct decimal d = { .negative = text.n && *p == '-' };
	bool after_point = false;

	p += d.negative;
	while (mantissa_end < end && (*mantissa_end | 32) != 'e')
		mantissa_end++;
	for (; p < mantissa_end && (*p == '0' || *p == '.'); p++) {
		after_point |= *p == '.';
		d.point -= after_point && *p != '.';
	}
	d.first = d.last = p;
	for (const char *q = p; q < mantissa_end; q++) {
		if (*q == '.') {
			after_point = true;
			continue;
		}
		d.digits++;
		d.point += !after_point;
		if (*q != '0')
			d.last = q + 1;
	}
	for (const char *q = d.last; q < mantissa_end; q++)
		d.digits -= *q != '.'; /* zeros at the end */
	if (mantissa_end < end)
		d.point += read_exponent(mantissa_end + 1, end);
	d.point = bounded(d.point);
	return d;
}

/* The nearest double, through at most KEPT_DIGITS digits: what is cut off beyond
 * them can only say "a little more", which one more digit says as well. */
static double decimal_double(const struct decimal *d)
{
	char text[KEPT_DIGITS + 32];
	size_t n = 0;

	if (d->first == d->last || d->point < -400)
		return d->negative ? -0.0 : 0.0;
	if (d->point > 400)
		return d->negative ? -HUGE_VAL : HUGE_VAL;
	for (const char *q = d->first; q < d->last && n < KEPT_DIGITS; q++)
		if (*q != '.')
			text[n++] = *q;
	if (d->digits > KEPT_DIGITS)
		text[n++] = '1';
	snprintf(text + n, sizeof text - n, "e%lld", (long long)d->point - (long long)n);
	return d->negative ? -strtod(text, NULL) : strtod(text, NULL);
}

/* A short decimal m * 10^e is exact when both factors are: one rounding only. */
static bool fast_double(const char *p, const char *end, double *out)
{
	static const double power[FAST_POWER + 1] = { 1e0,  1e1,  1e2,	1e3,  1e4,  1e5,
						      1e6,  1e7,  1e8,	1e9,  1e10, 1e11,
						      1e12, 1e13, 1e14, 1e15, 1e16, 1e17,
						      1e18, 1e19, 1e20, 1e21, 1e22 };
	bool negative = *p == '-', after_point = false;
	uint64_t m = 0;
	int64_t e = 0;

	if (end - p > 40)
		return false;
	for (p += negative; p < end && (*p | 32) != 'e'; p++) {
		if (*p == '.') {
			after_point = true;
			continue;
		}
		if (m > (1ull << 53) / 10 - 1)
			return false;
		m = m * 10 + (uint64_t)(*p - '0');
		e -= after_point;
	}
	if (p < end)
		e += read_exponent(p + 1, end);
	if (e < -FAST_POWER || e > FAST_POWER)
		return false;
	*out = e < 0 ? (double)m / power[-e] : (double)m * power[e];
	if (negative)
		*out = -*out;
	return true;
}

static const char *read_double(const char *start, const char *p, struct uar_json *node,
			       uar_err *err)
{
	node->kind = UAR_JSON_DOUBLE;
	node->text = uar_str_n(start, (size_t)(p - start));
	if (!fast_double(start, p, &node->d)) {
		struct decimal d = decimal_of(node->text);

		node->d = decimal_double(&d);
	}
	if (isfinite(node->d))
		return p;
	*err = UAR_ENUMBER;
	return NULL;
}

static const char *skip_digits(const char *p, const char *end)
{
	if (!is_digit(p, end))
		return NULL;
	while (is_digit(p, end))
		p++;
	return p;
}

/* Fraction and exponent, when they are there. */
static const char *skip_rest(const char *p, const char *end)
{
	if (p < end && *p == '.')
		p = skip_digits(p + 1, end);
	if (p && p < end && (*p | 32) == 'e') {
		p++;
		if (p < end && (*p == '+' || *p == '-'))
			p++;
		p = skip_digits(p, end);
	}
	return p;
}

const char *uar_json_number_read(const char *start, const char *end, struct uar_json *node,
				 uar_err *err)
{
	const char *p = start, *digits;
	bool negative = p < end && *p == '-';
	uint64_t v = 0;

	digits = p += negative;
	for (; is_digit(p, end); p++)
		v = v * 10 + (uint64_t)(*p - '0');
	*err = UAR_ESYNTAX;
	if (p == digits || (*digits == '0' && p - digits > 1))
		return NULL;
	if (p < end && (*p == '.' || (*p | 32) == 'e')) {
		p = skip_rest(p, end);
		return p ? read_double(start, p, node, err) : NULL;
	}
	if (p - digits > INT_DIGITS || v > (uint64_t)INT64_MAX + negative)
		return read_double(start, p, node, err);
	node->kind = UAR_JSON_INT;
	node->text = uar_str_n(start, (size_t)(p - start));
	node->i = negative ? (int64_t)(0 - v) : (int64_t)v;
	return p;
}

static int compare_magnitude(const struct decimal *a, const struct decimal *b)
{
	const char *p = a->first, *q = b->first;

	if (a->point != b->point)
		return a->point < b->point ? -1 : 1;
	for (;;) {
		p += p < a->last && *p == '.';
		q += q < b->last && *q == '.';
		if (p >= a->last || q >= b->last)
			return (p < a->last) - (q < b->last);
		if (*p != *q)
			return *p < *q ? -1 : 1;
		p++, q++;
	}
}

static int sign_of(const struct decimal *d)
{
	return d->first == d->last ? 0 : d->negative ? -1 : 1;
}

int uar_json_number_cmp(const struct uar_json *a, const struct uar_json *b)
{
	struct decimal x, y;
	int sign;

	if (a->kind == UAR_JSON_INT && b->kind == UAR_JSON_INT)
		return a->i < b->i ? -1 : a->i > b->i;
	x = decimal_of(a->text);
	y = decimal_of(b->text);
	sign = sign_of(&x);
	if (sign != sign_of(&y))
		return sign < sign_of(&y) ? -1 : 1;
	return sign == 0 ? 0 : sign * compare_magnitude(&x, &y);
}

void uar_json_number_canonical(struct uar_buf *out, const struct uar_json *a)
{
	struct decimal d = decimal_of(a->text);

	if (d.first == d.last) {
		uar_buf_add_str(out, UAR_STR("0e0"));
		return;
	}
	if (d.negative)
		uar_buf_add_char(out, '-');
	for (const char *p = d.first; p < d.last; p++)
		if (*p != '.')
			uar_buf_add_char(out, *p);
	uar_buf_printf(out, "e%lld", (long long)(d.point - d.digits));
}

bool uar_json_number_is_integer(const struct uar_json *a)
{
	struct decimal d;

	if (a->kind == UAR_JSON_INT)
		return true;
	d = decimal_of(a->text);
	return d.first == d.last || d.point >= d.digits;
}

/* --- writing --- */

/* Lays out 0.d1d2... * 10^point the way ECMAScript prints a number. */
static size_t lay_out(char *out, const char *digits, int n, int point)
{
	char *p = out;

	if (point > 21 || point < -5) {
		*p++ = digits[0];
		if (n > 1)
			*p++ = '.';
		memcpy(p, digits + 1, (size_t)n - 1);
		p += n - 1;
		return (size_t)(p - out) + (size_t)snprintf(p, 8, "e%+d", point - 1);
	}
	if (point <= 0) {
		memcpy(p, "0.", 2);
		memset(p + 2, '0', (size_t)-point);
		p += 2 - point;
		memcpy(p, digits, (size_t)n);
		return (size_t)(p - out) + (size_t)n;
	}
	if (n <= point) {
		memcpy(p, digits, (size_t)n);
		memset(p + n, '0', (size_t)(point - n));
		return (size_t)point;
	}
	memcpy(p, digits, (size_t)point);
	p[point] = '.';
	memcpy(p + point + 1, digits + point, (size_t)(n - point));
	return (size_t)n + 1;
}

/* v > 0 as `precision` digits; true when they read back to v. */
static bool try_digits(double v, int precision, char digits[20], int *n, int *point)
{
	char text[48], back[48];
	const char *p = text;

	snprintf(text, sizeof text, "%.*e", precision - 1, v);
	for (*n = 0; *p && *p != 'e'; p++) /* whatever the decimal point looks like */
		if (*p >= '0' && *p <= '9')
			digits[(*n)++] = *p;
	*point = (int)strtol(p + 1, NULL, 10) + 1;
	while (*n > 1 && digits[*n - 1] == '0')
		(*n)--;
	snprintf(back, sizeof back, "%.*se%d", *n, digits, *point - *n);
	return strtod(back, NULL) == v;
}

/* Most doubles that programs write are m / 10^k with small m and k, and one
 * division proves it. */
static bool short_digits(double v, char digits[20], int *n, int *point)
{
	static const double power[] = { 1, 10, 100, 1e3, 1e4, 1e5, 1e6 };

	if (v >= 1e9 || v < 1e-4)
		return false;
	for (int k = 0; k < (int)ARRAY_LEN(power); k++) {
		uint64_t m = (uint64_t)(v * power[k] + 0.5);

		if ((double)m / power[k] != v)
			continue;
		*n = 0;
		for (uint64_t rest = m; rest; rest /= 10)
			(*n)++;
		*point = *n - k;
		for (int i = *n; i > 0; m /= 10)
			digits[--i] = (char)('0' + m % 10);
		while (*n > 1 && digits[*n - 1] == '0')
			(*n)--;
		return true;
	}
	return false;
}

size_t uar_json_double_format(double v, char out[UAR_JSON_NUMBER_TEXT])
{
	char digits[20] = { 0 };
	int n, point, precision = fabs(v) < 2.3e-308 ? 1 : 15;
	size_t sign = signbit(v) ? 1 : 0;

	if (v == 0) {
		memcpy(out, "-0.0", 4);
		if (!sign)
			out[0] = '0';
		return sign ? 4 : 1;
	}
	out[0] = '-';
	v = fabs(v);
	if (!short_digits(v, digits, &n, &point))
		while (!try_digits(v, precision, digits, &n, &point) && precision < 17)
			precision++;
	return sign + lay_out(out + sign, digits, n, point);
}
