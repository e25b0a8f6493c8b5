/* range.c - the Range header: one range of bytes, or the whole. */
#include "http/http.h"

/* A number that does not fit is beyond the end of everything. */
static uar_err number(uar_str text, uint64_t *out)
{
	for (size_t i = 0; i < text.n; i++)
		if (text.p[i] < '0' || text.p[i] > '9')
			return UAR_EINVALID;
	if (!text.n)
		return UAR_EINVALID;
	if (uar_str_u64(text, out))
		*out = UINT64_MAX;
	return UAR_OK;
}

/* "-n": the last n bytes. */
static uar_err suffix(uar_str text, uint64_t total, struct uar_http_range *out)
{
	uint64_t n;

	if (number(text, &n))
		return UAR_ESKIP;
	if (n == 0 || total == 0)
		return UAR_ERANGE;
	n = n < total ? n : total;
	*out = (struct uar_http_range){ total - n, n };
	return UAR_OK;
}

uar_err uar_http_range(uar_str header, uint64_t total, struct uar_http_range *out)
{
	static const uar_str unit = { "bytes=", 6 };
	uar_str first, last = UAR_STR_NONE;
	uint64_t from, to;

	if (!uar_str_starts(header, unit))
		return UAR_ESKIP;
	header = uar_str_trim(uar_str_from(header, unit.n));
	if (uar_str_find(header, '-') == header.n)
		return UAR_ESKIP;
	first = uar_str_cut(header, '-', &last);
	if (!first.n)
		return suffix(last, total, out);
	to = total ? total - 1 : 0;
	if (number(first, &from) || (last.n && number(last, &to)) || to < (last.n ? from : 0))
		return UAR_ESKIP;
	if (from >= total)
		return UAR_ERANGE;
	to = to < total ? to : total - 1;
	*out = (struct uar_http_range){ from, to - from + 1 };
	return UAR_OK;
}
