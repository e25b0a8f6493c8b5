/* sse.c - reading Server-Sent Events. Pure. */
#include "base/sse.h"

void uar_sse_parser_init(struct uar_sse_parser *p, size_t max, uar_sse_fn *fn, void *ctx)
{
	*p = (struct uar_sse_parser){
		.line = uar_buf_make(max),
		.data = uar_buf_make(max),
		.event = uar_buf_make(max),
		.id = uar_buf_make(max),
		.fn = fn,
		.ctx = ctx,
	};
}

void uar_sse_parser_fini(struct uar_sse_parser *p)
{
	uar_buf_fini(&p->line);
	uar_buf_fini(&p->data);
	uar_buf_fini(&p->event);
	uar_buf_fini(&p->id);
}

static uar_err set_field(struct uar_buf *b, uar_str value)
{
	uar_buf_clear(b);
	uar_buf_add_str(b, value);
	return b->err;
}

/* The id stays for later events, as the standard has it. */
static uar_err dispatch(struct uar_sse_parser *p)
{
	struct uar_sse_event ev = { uar_buf_str(&p->event), uar_buf_str(&p->id),
				    uar_buf_str(&p->data) };
	uar_err e = UAR_OK;

	if (ev.data.n > 0) {
		ev.data.n--; /* the LF after the last data line */
		e = p->fn(p->ctx, &ev);
	}
	uar_buf_clear(&p->data);
	uar_buf_clear(&p->event);
	return e;
}

static uar_err add_data(struct uar_sse_parser *p, uar_str value)
{
	/* One more than the maximum fits: the LF is not part of the data. */
	if (p->data.n + value.n > p->data.max)
		return UAR_ETOOBIG;
	p->data.max++;
	uar_buf_add_str(&p->data, value);
	uar_buf_add_char(&p->data, '\n');
	p->data.max--;
	return p->data.err;
}

static uar_err take_line(struct uar_sse_parser *p, uar_str line)
{
	uar_str name, value;
	uint64_t ms;

	if (!p->started && uar_str_starts(line, UAR_STR("\xef\xbb\xbf")))
		line = uar_str_from(line, 3);
	p->started = true;
	if (line.n == 0)
		return dispatch(p);
	name = uar_str_cut(line, ':', &value);
	if (value.n && value.p[0] == ' ')
		value = uar_str_from(value, 1);
	if (uar_str_is(name, "data"))
		return add_data(p, value);
	if (uar_str_is(name, "event"))
		return set_field(&p->event, value);
	if (uar_str_is(name, "id") && uar_str_find(value, 0) == value.n)
		return set_field(&p->id, value);
	if (uar_str_is(name, "retry") && !uar_str_u64(value, &ms) && ms <= INT32_MAX)
		p->retry_ms = (int64_t)ms;
	return UAR_OK; /* a comment, or a field of the future */
}

/* A line that ended: `tail` is what came in this feed, the rest was kept. */
static uar_err end_line(struct uar_sse_parser *p, uar_str tail)
{
	uar_err e;

	if (p->line.n + tail.n > p->line.max)
		return UAR_ETOOBIG;
	if (p->line.n == 0)
		return take_line(p, tail);
	uar_buf_add_str(&p->line, tail);
	e = p->line.err ? p->line.err : take_line(p, uar_buf_str(&p->line));
	uar_buf_clear(&p->line);
	return e;
}

/* Where the line that begins at `start` ends: CR or LF, or all bytes. The next LF is
 * remembered in `lf`, so that no byte is looked at twice for it. */
static size_t line_end(uar_str bytes, size_t start, size_t *lf)
{
	if (*lf < start)
		*lf = start + uar_str_find(uar_str_from(bytes, start), '\n');
	return start + uar_str_find(uar_str_n(bytes.p + start, *lf - start), '\r');
}

uar_err uar_sse_parser_feed(struct uar_sse_parser *p, uar_str bytes)
{
	size_t at, start = 0, lf = uar_str_find(bytes, '\n');
	uar_err e = UAR_OK;

	if (bytes.n && p->after_cr && bytes.p[0] == '\n')
		start = 1;
	if (bytes.n)
		p->after_cr = false;
	while (start < bytes.n && (at = line_end(bytes, start, &lf)) < bytes.n) {
		e = end_line(p, uar_str_n(bytes.p + start, at - start));
		if (e)
			return e;
		start = at + 1;
		if (bytes.p[at] == '\r') {
			p->after_cr = start == bytes.n;
			if (start < bytes.n && bytes.p[start] == '\n')
				start++;
		}
	}
	if (start < bytes.n)
		uar_buf_add(&p->line, bytes.p + start, bytes.n - start);
	return p->line.err;
}
