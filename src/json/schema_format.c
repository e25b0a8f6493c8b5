/* schema_format.c - the formats of 2020-12: dates, identifiers, pointers. Network
 * names and URIs are in schema_format_net.c. Each is one function over the text. */
#include "json/schema_format.h"

#include <stdlib.h>

/* --- reading pieces --- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Exactly `width` digits, between lo and hi. */
static bool digits(uar_str *s, size_t width, int lo, int hi, int *out)
{
	int v = 0;

	if (s->n < width)
		return false;
	for (size_t i = 0; i < width; i++) {
		if (!is_digit(s->p[i]))
			return false;
		v = v * 10 + (s->p[i] - '0');
	}
	*s = uar_str_n(s->p + width, s->n - width);
	*out = v;
	return v >= lo && v <= hi;
}

static bool take(uar_str *s, char c)
{
	if (!s->n || s->p[0] != c)
		return false;
	*s = uar_str_n(s->p + 1, s->n - 1);
	return true;
}

static bool take_any(uar_str *s, const char *set)
{
	return s->n && s->p[0] && strchr(set, s->p[0]) && take(s, s->p[0]);
}

/* --- dates --- */

static bool take_date(uar_str *s)
{
	static const int lengths[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	int y, m, d, most;

	if (!digits(s, 4, 0, 9999, &y) || !take(s, '-') || !digits(s, 2, 1, 12, &m) ||
	    !take(s, '-') || !digits(s, 2, 1, 31, &d))
		return false;
	most = lengths[m - 1] + (m == 2 && (y % 4 == 0 && (y % 100 != 0 || y % 400 == 0)));
	return d <= most;
}

static bool take_offset(uar_str *s, int *out_minutes)
{
	int h, m, sign = s->n && s->p[0] == '-' ? -1 : 1;

	*out_minutes = 0;
	if (take_any(s, "Zz"))
		return true;
	if (!take_any(s, "+-") || !digits(s, 2, 0, 23, &h) || !take(s, ':') ||
	    !digits(s, 2, 0, 59, &m))
		return false;
	*out_minutes = sign * (h * 60 + m);
	return true;
}

static bool take_time(uar_str *s)
{
	int h, m, sec, offset, utc;

	if (!digits(s, 2, 0, 23, &h) || !take(s, ':') || !digits(s, 2, 0, 59, &m) ||
	    !take(s, ':') || !digits(s, 2, 0, 60, &sec))
		return false;
	if (take(s, '.')) {
		if (!s->n || !is_digit(s->p[0]))
			return false;
		while (s->n && is_digit(s->p[0]))
			take(s, s->p[0]);
	}
	if (!take_offset(s, &offset))
		return false;
	utc = ((h * 60 + m - offset) % 1440 + 1440) % 1440;
	return sec < 60 || utc == 23 * 60 + 59; /* leap seconds end a day of UTC */
}

static bool is_date(uar_str s)
{
	return take_date(&s) && !s.n;
}

static bool is_time(uar_str s)
{
	return take_time(&s) && !s.n;
}

static bool is_date_time(uar_str s)
{
	return take_date(&s) && take_any(&s, "Tt") && take_time(&s) && !s.n;
}

/* A run of number-and-unit pairs whose units are neighbours in `units`. */
static bool take_units(uar_str *s, const char *units)
{
	const char *at = NULL;

	while (s->n && is_digit(s->p[0])) {
		const char *hit;

		while (s->n && is_digit(s->p[0]))
			take(s, s->p[0]);
		hit = s->n && s->p[0] ? strchr(units, s->p[0]) : NULL;
		if (!hit || (at && hit != at + 1))
			return false;
		at = hit;
		take(s, *hit);
	}
	return at != NULL;
}

static bool is_duration(uar_str s)
{
	if (!take(&s, 'P') || !s.n)
		return false;
	if (s.p[s.n - 1] == 'W')
		return take_units(&s, "W") && !s.n;
	if (s.p[0] != 'T' && !take_units(&s, "YMD"))
		return false;
	return !s.n || (take(&s, 'T') && take_units(&s, "HMS") && !s.n);
}

/* --- identifiers --- */

static bool is_uuid(uar_str s)
{
	char lower[UAR_UUID_TEXT];

	if (s.n != sizeof lower)
		return false;
	for (size_t i = 0; i < s.n; i++)
		lower[i] = s.p[i] >= 'A' && s.p[i] <= 'F' ? (char)(s.p[i] | 32) : s.p[i];
	return uar_uuid_valid(uar_str_n(lower, sizeof lower));
}

static bool is_json_pointer(uar_str s)
{
	return (!s.n || s.p[0] == '/') && uar_json_token_valid(s);
}

static bool is_relative_json_pointer(uar_str s)
{
	size_t n = 0;

	while (n < s.n && is_digit(s.p[n]))
		n++;
	if (!n || (n > 1 && s.p[0] == '0'))
		return false;
	s = uar_str_n(s.p + n, s.n - n);
	return uar_str_is(s, "#") || is_json_pointer(s);
}

static bool is_regex(uar_str s)
{
	struct uar_regex *re = NULL;
	uar_err e = uar_regex_create(s, &re, NULL);

	uar_regex_destroy(re);
	return e != UAR_EINVALID; /* too large or with backreferences is still one */
}

static const struct {
	const char *name;
	uar_schema_format *check;
} formats[] = {
	{ "date-time", is_date_time },
	{ "date", is_date },
	{ "time", is_time },
	{ "duration", is_duration },
	{ "email", uar_format_email },
	{ "idn-email", uar_format_idn_email },
	{ "hostname", uar_format_hostname },
	{ "idn-hostname", uar_format_idn_hostname },
	{ "ipv4", uar_format_ipv4 },
	{ "ipv6", uar_format_ipv6 },
	{ "uri", uar_format_uri },
	{ "uri-reference", uar_format_uri_reference },
	{ "iri", uar_format_iri },
	{ "iri-reference", uar_format_iri_reference },
	{ "uri-template", uar_format_uri_template },
	{ "uuid", is_uuid },
	{ "json-pointer", is_json_pointer },
	{ "relative-json-pointer", is_relative_json_pointer },
	{ "regex", is_regex },
};

uar_schema_format *uar_schema_format_find(uar_str name, const char **out_name)
{
	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		if (!uar_str_is(name, formats[i].name))
			continue;
		*out_name = formats[i].name;
		return formats[i].check;
	}
	return NULL;
}
