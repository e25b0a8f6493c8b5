/* schema_uri.c - relative references resolved against a base (RFC 3986, 5.2).
 * Works on the text alone: nothing is decoded, nothing is fetched. */
#include "json/limits.h"
#include "json/schema_int.h"

struct uri {
	uar_str scheme, authority, path, query, fragment; /* p NULL: absent */
};

static bool is_scheme(uar_str s)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i], low = c | 32;
		bool letter = low >= 'a' && low <= 'z';

		if (!letter && (i == 0 || !((c >= '0' && c <= '9') || strchr("+-.", c))))
			return false;
	}
	return s.n > 0;
}

/* Cuts s at the first `c`; what follows goes to *rest, whose p stays NULL without one. */
static uar_str cut(uar_str s, char c, uar_str *rest)
{
	size_t at = uar_str_find(s, c);

	*rest = UAR_STR_NONE;
	if (at < s.n)
		*rest = uar_str_n(s.p + at + 1, s.n - at - 1);
	return uar_str_n(s.p, at);
}

static struct uri split(uar_str s)
{
	struct uri u = { .scheme = UAR_STR_NONE, .authority = UAR_STR_NONE };
	size_t colon;

	if (!s.p)
		s = UAR_STR("");
	s = cut(s, '#', &u.fragment);
	s = cut(s, '?', &u.query);
	colon = uar_str_find(s, ':');
	if (colon < s.n && is_scheme(uar_str_n(s.p, colon))) {
		u.scheme = uar_str_n(s.p, colon);
		s = uar_str_n(s.p + colon + 1, s.n - colon - 1);
	}
	if (uar_str_starts(s, UAR_STR("//"))) {
		size_t slash;

		s = uar_str_n(s.p + 2, s.n - 2);
		slash = uar_str_find(s, '/');
		u.authority = uar_str_n(s.p, slash);
		s = uar_str_n(s.p + slash, s.n - slash);
	}
	u.path = s;
	return u;
}

/* Adds one segment (with its slash) behind `start`; dots walk instead. */
static void add_segment(struct uar_buf *out, size_t start, uar_str segment, bool last)
{
	bool up = uar_str_is(segment, "/.."), stay = uar_str_is(segment, "/.");

	if (up)
		while (out->n > start && out->p[--out->n] != '/')
			;
	if (!up && !stay)
		uar_buf_add_str(out, segment);
	else if (last)
		uar_buf_add_char(out, '/');
}

static void add_path(struct uar_buf *out, uar_str path)
{
	size_t start = out->n;

	if (path.n && path.p[0] != '/') { /* nothing to walk up from in front */
		size_t slash = uar_str_find(path, '/');

		uar_buf_add(out, path.p, slash);
		path = uar_str_n(path.p + slash, path.n - slash);
		start = out->n;
	}
	while (path.n) {
		size_t end = uar_str_find(uar_str_from(path, 1), '/') + 1;
		bool last = end >= path.n;

		if (last)
			end = path.n;
		add_segment(out, start, uar_str_n(path.p, end), last);
		path = uar_str_n(path.p + end, path.n - end);
	}
}

static void add_merged(struct uar_buf *out, const struct uri *base, uar_str path)
{
	struct uar_buf whole = uar_buf_make(UAR_LIMIT_URI_BYTES * 2);
	size_t keep = base->path.n;

	while (keep && base->path.p[keep - 1] != '/')
		keep--;
	if (!keep && base->authority.p)
		uar_buf_add_char(&whole, '/');
	uar_buf_add(&whole, base->path.p, keep);
	uar_buf_add_str(&whole, path);
	if (whole.err && !out->err)
		out->err = whole.err;
	add_path(out, uar_buf_str(&whole));
	uar_buf_fini(&whole);
}

static void add_part(struct uar_buf *out, const char *mark, uar_str part)
{
	if (!part.p)
		return;
	uar_buf_add_str(out, uar_str_c(mark));
	uar_buf_add_str(out, part);
}

void uar_schema_uri_resolve(uar_str base_text, uar_str ref_text, struct uar_buf *out)
{
	struct uri base = split(base_text), ref = split(ref_text);
	bool own_path = ref.scheme.p || ref.authority.p;
	uar_str scheme = ref.scheme.p ? ref.scheme : base.scheme;
	bool keep_query = !own_path && !ref.path.n && !ref.query.p;

	if (scheme.p) {
		uar_buf_add_str(out, scheme);
		uar_buf_add_char(out, ':');
	}
	add_part(out, "//", own_path ? ref.authority : base.authority);
	if (own_path || (ref.path.n && ref.path.p[0] == '/'))
		add_path(out, ref.path);
	else if (!ref.path.n)
		uar_buf_add_str(out, base.path);
	else
		add_merged(out, &base, ref.path);
	add_part(out, "?", keep_query ? base.query : ref.query);
	add_part(out, "#", ref.fragment);
}
