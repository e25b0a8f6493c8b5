/* calc.c - math.evaluate: arithmetic on doubles, read by recursive descent.
 *
 *	sum     = product { ("+" | "-") product }
 *	product = sign { ("*" | "/" | "%") sign }
 *	sign    = ("-" | "+") sign | power
 *	power   = atom [ "^" sign ]
 *	atom    = number | "(" sum ")"
 *
 * So -2^2 is -4, 2^-1 is 0.5 and 2^3^2 is 512. Numbers are written as in JSON. Nesting is
 * bounded by UAR_LIMIT_CALC_DEPTH, length by UAR_LIMIT_CALC_BYTES. */
#include "tool/internal_int.h"
#include "tool/limits.h"

#include <math.h>

struct calc {
	uar_str text;
	size_t at;
	unsigned depth;
	struct uar_error *error;
	uar_err err; /* the first; everything is 0 after it */
};

static double sum(struct calc *c);

static double refuse(struct calc *c, uar_err e, const char *why)
{
	if (c->err)
		return 0;
	c->err = uar_error_set(c->error, e, "%s at character %zu", why, c->at + 1);
	uar_error_where(c->error, "%zu", c->at + 1);
	return 0;
}

/* The next sign, 0 at the end. */
static char peek(struct calc *c)
{
	while (c->at < c->text.n && strchr(" \t\r\n", c->text.p[c->at]) && c->text.p[c->at])
		c->at++;
	return c->at < c->text.n ? c->text.p[c->at] : 0;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Bytes of the number that begins there, as long as it may be one. */
static size_t number_length(uar_str s)
{
	size_t n = 0;

	while (n < s.n && (is_digit(s.p[n]) || s.p[n] == '.'))
		n++;
	if (n + 1 < s.n && (s.p[n] == 'e' || s.p[n] == 'E')) {
		size_t sign = s.p[n + 1] == '+' || s.p[n + 1] == '-';

		for (n += 1 + sign; n < s.n && is_digit(s.p[n]);)
			n++;
	}
	return n;
}

static double number(struct calc *c)
{
	uar_str rest = uar_str_from(c->text, c->at);
	uar_str text = uar_str_n(rest.p, number_length(rest));
	struct uar_arena arena = { 0 };
	const struct uar_json *j = NULL;
	uar_err e = uar_json_parse(text, NULL, &arena, &j, NULL);
	double v = e ? 0 : uar_json_double(j, 0);

	uar_arena_fini(&arena);
	if (e)
		return refuse(c, e == UAR_ENOMEM ? e : UAR_EINVALID,
			      "a number that cannot be read");
	c->at += text.n;
	return v;
}

static double atom(struct calc *c)
{
	char sign = peek(c);
	double v;

	if (is_digit(sign))
		return number(c);
	if (sign != '(')
		return refuse(c, UAR_EINVALID, "a number or \"(\" is missing");
	c->at++;
	v = sum(c);
	if (c->err)
		return 0;
	if (peek(c) != ')')
		return refuse(c, UAR_EINVALID, "\")\" is missing");
	c->at++;
	return v;
}

static double signed_value(struct calc *c);

static double power(struct calc *c)
{
	double base = atom(c);

	if (c->err || peek(c) != '^')
		return base;
	c->at++;
	return pow(base, signed_value(c));
}

/* Every way down leads through here. */
static double signed_value(struct calc *c)
{
	char sign = peek(c);
	double v;

	if (c->depth >= UAR_LIMIT_CALC_DEPTH)
		return refuse(c, UAR_EDEPTH, "nested too deeply");
	c->depth++;
	if (sign == '-' || sign == '+') {
		c->at++;
		v = signed_value(c);
		v = sign == '-' ? -v : v;
	} else {
		v = power(c);
	}
	c->depth--;
	return v;
}

static double product(struct calc *c)
{
	double v = signed_value(c), w;

	for (char sign = peek(c); !c->err && (sign == '*' || sign == '/' || sign == '%');
	     sign = peek(c)) {
		c->at++;
		w = signed_value(c);
		if (sign != '*' && w == 0)
			return refuse(c, UAR_EINVALID, "a division by zero");
		v = sign == '*' ? v * w : sign == '/' ? v / w : fmod(v, w);
	}
	return v;
}

static double sum(struct calc *c)
{
	double v = product(c), w;

	for (char sign = peek(c); !c->err && (sign == '+' || sign == '-'); sign = peek(c)) {
		c->at++;
		w = product(c);
		v = sign == '+' ? v + w : v - w;
	}
	return v;
}

uar_err uar_calc_evaluate(uar_str text, double *out, struct uar_error *error)
{
	struct calc c = { .text = text, .error = error };
	double v;

	if (text.n > UAR_LIMIT_CALC_BYTES)
		return uar_error_set(error, UAR_ETOOBIG, "longer than %d bytes",
				     UAR_LIMIT_CALC_BYTES);
	v = sum(&c);
	if (!c.err && peek(&c))
		refuse(&c, UAR_EINVALID, "something that does not belong there");
	if (c.err)
		return c.err;
	if (!isfinite(v))
		return uar_error_set(error, UAR_ENUMBER, "the result is not a number that is kept");
	*out = v == 0 ? 0 : v; /* there is one zero */
	return UAR_OK;
}

void uar_tool_math_evaluate(struct uar_tool_job *j)
{
	uar_str text = uar_json_text(j->input, "expression");
	struct uar_jw w = uar_jw_begin(&j->out);
	struct uar_error error = { 0 };
	double v = 0;
	uar_err e = uar_calc_evaluate(text, &v, &error);

	if (e) {
		j->retryable = e == UAR_ENOMEM;
		uar_tool_fail(j, j->retryable ? "execution" : "value_invalid", "%s", error.text);
		return;
	}
	uar_jw_obj(&w, NULL);
	uar_jw_double(&w, "value", v);
	uar_jw_close(&w);
	if (uar_jw_end(&w) && !j->out.err)
		uar_tool_fail(j, "execution", "the result cannot be written");
}
