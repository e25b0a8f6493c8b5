/* url.c - looking things up in a request: headers, query, percent-decoding. */
#include "http/http.h"

uar_str uar_http_header(const struct uar_http_request *r, const char *name)
{
	uar_str want = uar_str_c(name);

	for (size_t i = 0; i < r->header_count; i++)
		if (uar_str_eq_nocase(r->headers[i].name, want))
			return r->headers[i].value;
	return UAR_STR_NONE;
}

/* The byte at s.p[i]; *i moves past it. -1: a broken escape or a NUL. */
static int next_byte(uar_str s, size_t *i)
{
	int high, low;

	if (s.p[*i] != '%')
		return s.p[*i] ? (unsigned char)s.p[(*i)++] : -1;
	if (s.n - *i < 3)
		return -1;
	high = uar_hex_digit(s.p[*i + 1]);
	low = uar_hex_digit(s.p[*i + 2]);
	*i += 3;
	return high < 0 || low < 0 || high + low == 0 ? -1 : high * 16 + low;
}

uar_err uar_http_decode(struct uar_arena *a, uar_str in, uar_str *out)
{
	size_t n = uar_str_find(in, '%'), i = n; /* up to the first escape it is as it is */
	char *p = uar_arena_bytes(a, in.n + 1);
	int c;

	if (!p)
		return UAR_ENOMEM;
	if (uar_str_find(uar_str_n(in.p, n), 0) < n)
		return UAR_EINVALID;
	if (n)
		memcpy(p, in.p, n);
	while (i < in.n) {
		c = next_byte(in, &i);
		if (c < 0)
			return UAR_EINVALID;
		p[n++] = (char)c;
	}
	p[n] = 0;
	*out = uar_str_n(p, n);
	return UAR_OK;
}

bool uar_http_query_cut(uar_str *rest, uar_str *out_name, uar_str *out_value)
{
	uar_str pair = UAR_STR("");

	while (rest->n && !pair.n)
		pair = uar_str_cut(*rest, '&', rest);
	*out_name = uar_str_cut(pair, '=', out_value);
	return pair.n > 0;
}

uar_err uar_http_query(const struct uar_http_request *r, const char *name, uar_str *out)
{
	uar_str rest = r->query, key, value;
	uar_err e;

	while (uar_http_query_cut(&rest, &key, &value)) {
		if (uar_str_find(key, '%') < key.n) {
			e = uar_http_decode(r->arena, key, &key);
			if (e)
				return e;
		}
		if (uar_str_is(key, name))
			return uar_http_decode(r->arena, value, out);
	}
	*out = UAR_STR_NONE;
	return UAR_OK;
}
