/* schema_format_net.c - hosts, mail addresses, URIs and IRIs as formats. */
#include "json/schema_format.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_alpha(char c)
{
	return (c | 32) >= 'a' && (c | 32) <= 'z';
}

static bool is_hex(char c)
{
	return is_digit(c) || ((c | 32) >= 'a' && (c | 32) <= 'f');
}

static bool in(char c, const char *set)
{
	return c && strchr(set, c);
}

/* --- addresses --- */

bool uar_format_ipv4(uar_str s)
{
	for (int part = 0; part < 4; part++) {
		size_t n = 0;
		int v = 0;

		while (n < s.n && n < 3 && is_digit(s.p[n]))
			v = v * 10 + (s.p[n++] - '0');
		if (!n || v > 255 || (n > 1 && s.p[0] == '0'))
			return false;
		s = uar_str_n(s.p + n, s.n - n);
		if (part < 3) {
			if (!s.n || s.p[0] != '.')
				return false;
			s = uar_str_n(s.p + 1, s.n - 1);
		}
	}
	return s.n == 0;
}

/* Counts the groups of one side of "::" (an IPv4 tail counts twice); -1: not valid. */
static int count_groups(uar_str s, bool tail)
{
	int groups = 0;

	while (s.n) {
		size_t end = uar_str_find(s, ':');
		uar_str group = uar_str_n(s.p, end);
		bool last = end == s.n;

		if (last && tail && uar_str_find(group, '.') < group.n)
			return uar_format_ipv4(group) ? groups + 2 : -1;
		if (!group.n || group.n > 4)
			return -1;
		for (size_t i = 0; i < group.n; i++)
			if (!is_hex(group.p[i]))
				return -1;
		groups++;
		if (last)
			break;
		s = uar_str_n(s.p + end + 1, s.n - end - 1);
		if (!s.n)
			return -1;
	}
	return groups;
}

bool uar_format_ipv6(uar_str s)
{
	size_t gap = 0;
	int left, right;

	while (gap + 1 < s.n && !(s.p[gap] == ':' && s.p[gap + 1] == ':'))
		gap++;
	if (gap + 1 >= s.n)
		return count_groups(s, true) == 8;
	left = count_groups(uar_str_n(s.p, gap), false);
	right = count_groups(uar_str_n(s.p + gap + 2, s.n - gap - 2), true);
	return left >= 0 && right >= 0 && left + right <= 7;
}

/* --- host names --- */

static bool ascii_label(uar_str l)
{
	if (!l.n || l.n > 63 || l.p[0] == '-' || l.p[l.n - 1] == '-')
		return false;
	for (size_t i = 0; i < l.n; i++)
		if (!is_alpha(l.p[i]) && !is_digit(l.p[i]) && l.p[i] != '-')
			return false;
	return true;
}

/* "xn--" in any case, with valid Unicode behind it; other labels have no "--" there. */
static bool coded_label(uar_str l)
{
	struct uar_buf decoded = uar_buf_make(512);
	bool fine;

	if (l.n < 4 || l.p[2] != '-' || l.p[3] != '-')
		return true;
	if ((l.p[0] | 32) != 'x' || (l.p[1] | 32) != 'n')
		return false;
	fine = uar_idna_decode(uar_str_from(l, 4), &decoded) &&
	       uar_idna_label_valid(uar_buf_str(&decoded));
	uar_buf_fini(&decoded);
	return fine;
}

bool uar_format_hostname(uar_str s)
{
	if (!s.n || s.n > 253)
		return false;
	for (bool more = true; more;) {
		size_t end = uar_str_find(s, '.');
		uar_str label = uar_str_n(s.p, end);

		if (!ascii_label(label) || !coded_label(label))
			return false;
		more = end < s.n;
		s = uar_str_n(s.p + end + more, s.n - end - more);
	}
	return true;
}

/* The length of a label separator at s: '.' or one of its three relatives. */
static size_t separator(uar_str s)
{
	uint32_t cp = 0;
	size_t n = uar_utf8_decode(s, &cp);

	return cp == '.' || cp == 0x3002 || cp == 0xFF0E || cp == 0xFF61 ? n : 0;
}

bool uar_format_idn_hostname(uar_str s)
{
	size_t total = 0;

	if (!s.n)
		return false;
	for (bool more = true; more;) {
		size_t end = 0, gap = 0;
		uar_str label;
		bool ascii = true;

		for (; end < s.n && !(gap = separator(uar_str_from(s, end))); end++)
			ascii &= (unsigned char)s.p[end] < 0x80;
		label = uar_str_n(s.p, end);
		total += end + 1;
		if (ascii ? !ascii_label(label) || !coded_label(label)
			  : !uar_idna_label_valid(label))
			return false;
		more = end < s.n;
		s = uar_str_n(s.p + end + gap, s.n - end - gap);
	}
	return total <= 254;
}

/* --- mail --- */

static bool atom_char(char c, bool idn)
{
	return is_alpha(c) || is_digit(c) || in(c, "!#$%&'*+-/=?^_`{|}~") ||
	       (idn && (unsigned char)c >= 0x80);
}

static bool quoted_local(uar_str s, bool idn)
{
	for (size_t i = 1; i + 1 < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (c == '\\')
			c = (unsigned char)(++i + 1 < s.n ? s.p[i] : 0);
		else if (c == '"')
			return false;
		if (c < 0x20 || c == 0x7F || (c >= 0x80 && !idn))
			return false;
	}
	return s.n >= 2 && s.p[s.n - 1] == '"';
}

static bool local_part(uar_str s, bool idn)
{
	bool dot = true;

	if (s.n && s.p[0] == '"')
		return quoted_local(s, idn);
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '.' ? dot : !atom_char(s.p[i], idn))
			return false;
		dot = s.p[i] == '.';
	}
	return !dot;
}

static bool mail_domain(uar_str s, bool idn)
{
	if (s.n > 2 && s.p[0] == '[' && s.p[s.n - 1] == ']') {
		uar_str inner = uar_str_n(s.p + 1, s.n - 2);

		if (inner.n > 5 && uar_str_eq_nocase(uar_str_n(inner.p, 5), UAR_STR("IPv6:")))
			return uar_format_ipv6(uar_str_from(inner, 5));
		return uar_format_ipv4(inner);
	}
	return idn ? uar_format_idn_hostname(s) : uar_format_hostname(s);
}

static bool mail(uar_str s, bool idn)
{
	size_t at = s.n;

	while (at && s.p[at - 1] != '@')
		at--;
	return at && local_part(uar_str_n(s.p, at - 1), idn) &&
	       mail_domain(uar_str_from(s, at), idn);
}

bool uar_format_email(uar_str s)
{
	return mail(s, false);
}

bool uar_format_idn_email(uar_str s)
{
	return mail(s, true);
}

/* --- URIs --- */

/* Unreserved and sub-delims characters, percent codes, and those in `more`. */
static bool uri_chars(uar_str s, const char *more, bool iri)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if (c == '%') {
			if (i + 2 >= s.n || !is_hex(s.p[i + 1]) || !is_hex(s.p[i + 2]))
				return false;
			i += 2;
		} else if (!is_alpha(c) && !is_digit(c) && !in(c, "-._~!$&'()*+,;=") &&
			   !in(c, more) && !(iri && (unsigned char)c >= 0x80)) {
			return false;
		}
	}
	return true;
}

static bool future_address(uar_str s)
{
	size_t dot = uar_str_find(s, '.');

	for (size_t i = 1; i < dot; i++)
		if (!is_hex(s.p[i]))
			return false;
	return dot > 1 && dot + 1 < s.n && uri_chars(uar_str_from(s, dot + 1), ":", false);
}

static bool uri_host(uar_str s, bool iri)
{
	if (s.n && s.p[0] == '[') {
		uar_str inner = uar_str_n(s.p + 1, s.n > 2 ? s.n - 2 : 0);

		if (s.p[s.n - 1] != ']')
			return false;
		return uar_format_ipv6(inner) ||
		       (inner.n && (inner.p[0] | 32) == 'v' && future_address(inner));
	}
	return uri_chars(s, "", iri);
}

static bool authority(uar_str s, bool iri)
{
	size_t at = uar_str_find(s, '@'), end;

	if (at < s.n) {
		if (!uri_chars(uar_str_n(s.p, at), ":", iri))
			return false;
		s = uar_str_n(s.p + at + 1, s.n - at - 1);
	}
	for (end = s.n; end && is_digit(s.p[end - 1]); end--)
		;
	if (end && s.p[end - 1] == ':') /* a port */
		s.n = end - 1;
	return uri_host(s, iri);
}

static bool take_scheme(uar_str *s)
{
	size_t n = 0;

	while (n < s->n && (is_alpha(s->p[n]) || (n && (is_digit(s->p[n]) || in(s->p[n], "+-.")))))
		n++;
	if (!n || n == s->n || s->p[n] != ':')
		return false;
	*s = uar_str_n(s->p + n + 1, s->n - n - 1);
	return true;
}

/* Cuts off what follows the first `c` and checks it. */
static bool cut_part(uar_str *s, char c, const char *more, bool iri)
{
	size_t at = uar_str_find(*s, c);
	uar_str part = at < s->n ? uar_str_n(s->p + at + 1, s->n - at - 1) : UAR_STR("");

	s->n = at;
	return uri_chars(part, more, iri);
}

static bool uri(uar_str s, bool iri, bool relative)
{
	bool scheme = take_scheme(&s);

	if (!scheme && !relative)
		return false;
	if (!cut_part(&s, '#', ":@/?", iri) || !cut_part(&s, '?', ":@/?", iri))
		return false;
	if (s.n >= 2 && s.p[0] == '/' && s.p[1] == '/') {
		uar_str rest = uar_str_n(s.p + 2, s.n - 2);
		size_t slash = uar_str_find(rest, '/');

		if (!authority(uar_str_n(rest.p, slash), iri))
			return false;
		s = uar_str_n(rest.p + slash, rest.n - slash);
	} else if (!scheme && uar_str_find(s, ':') < uar_str_find(s, '/')) {
		return false; /* a first segment with a colon would be a scheme */
	}
	return uri_chars(s, ":@/", iri);
}

bool uar_format_uri(uar_str s)
{
	return uri(s, false, false);
}

bool uar_format_uri_reference(uar_str s)
{
	return uri(s, false, true);
}

bool uar_format_iri(uar_str s)
{
	return uri(s, true, false);
}

bool uar_format_iri_reference(uar_str s)
{
	return uri(s, true, true);
}

/* --- URI templates (RFC 6570) --- */

/* ":3" behind a name: at most four digits, none leading zero. */
static bool prefix_length(uar_str s)
{
	if (s.n < 2 || s.n > 5 || s.p[1] == '0')
		return false;
	for (size_t i = 1; i < s.n; i++)
		if (!is_digit(s.p[i]))
			return false;
	return true;
}

static bool variable_name(uar_str s)
{
	bool dot = true;

	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if (c == '.' && dot)
			return false;
		dot = c == '.';
		if (c == '%') {
			if (i + 2 >= s.n || !is_hex(s.p[i + 1]) || !is_hex(s.p[i + 2]))
				return false;
			i += 2;
		} else if (!dot && !is_alpha(c) && !is_digit(c) && c != '_') {
			return false;
		}
	}
	return !dot;
}

static bool variable(uar_str v)
{
	size_t end = uar_str_find(v, ':');

	if (end < v.n)
		return prefix_length(uar_str_n(v.p + end, v.n - end)) &&
		       variable_name(uar_str_n(v.p, end));
	if (v.n && v.p[v.n - 1] == '*')
		v.n--;
	return variable_name(v);
}

static bool expression(uar_str e)
{
	if (e.n && in(e.p[0], "+#./;?&=,!@|"))
		e = uar_str_n(e.p + 1, e.n - 1);
	for (bool more = true; more;) {
		size_t end = uar_str_find(e, ',');

		if (!variable(uar_str_n(e.p, end)))
			return false;
		more = end < e.n;
		e = uar_str_n(e.p + end + more, e.n - end - more);
	}
	return true;
}

bool uar_format_uri_template(uar_str s)
{
	while (s.n) {
		size_t end;

		if (s.p[0] == '{') {
			end = uar_str_find(s, '}');
			if (end == s.n || !expression(uar_str_n(s.p + 1, end - 1)))
				return false;
			s = uar_str_n(s.p + end + 1, s.n - end - 1);
			continue;
		}
		if ((unsigned char)s.p[0] <= ' ' || in(s.p[0], "\"<>\\^`|}\x7f"))
			return false;
		s = uar_str_n(s.p + 1, s.n - 1);
	}
	return true;
}
