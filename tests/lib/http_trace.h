/* http_trace.h - what the request reader makes of some bytes, as text.
 *
 * "200 POST /x 5 hello\n" for each request it takes, then "400\n" for a refusal or
 * "...\n" for one that is not complete. Two ways to feed the same bytes must give
 * the same text. Header only: unit tests and fuzz targets share it. */
#ifndef UAR_TEST_HTTP_TRACE_H
#define UAR_TEST_HTTP_TRACE_H

#include "base/buf.h"
#include "http/http_parse.h"

enum { TRACE_BODY_MAX = 1000 };

/* A connection without a socket. */
struct trace {
	struct uar_buf in, body, *out;
	struct uar_buf piece; /* of a body; how large it is makes no difference */
	size_t scanned;
	struct uar_http_head head;
	struct uar_http_body reader;
	bool in_body, over;
	size_t taken;	 /* bytes of the text that tell of complete requests */
	uar_err refused; /* why, when the text ends in a status */
};

static inline void trace_init(struct trace *t, size_t piece, struct uar_buf *out)
{
	memset(t, 0, sizeof *t);
	t->out = out;
	t->in = uar_buf_make(1 << 24);
	t->body = uar_buf_make(TRACE_BODY_MAX);
	t->piece = uar_buf_make(piece ? piece : TRACE_BODY_MAX);
}

static inline void trace_fini(struct trace *t)
{
	uar_buf_fini(&t->in);
	uar_buf_fini(&t->body);
	uar_buf_fini(&t->piece);
}

static inline void trace_refuse(struct trace *t, uar_err e)
{
	uar_buf_printf(t->out, "%d\n", uar_err_http(e));
	t->refused = e;
	t->over = true;
}

/* False: more bytes are needed. */
static inline bool trace_head(struct trace *t)
{
	struct uar_error error = { 0 };
	size_t n = 0;
	uar_err e = uar_http_find_head(uar_buf_str(&t->in), &t->scanned, &n, &error);

	if (!e && n == 0)
		return false;
	if (!e)
		e = uar_http_parse_head(uar_str_n(t->in.p, n), &t->head, &error);
	if (!e && t->head.length > TRACE_BODY_MAX)
		e = UAR_ETOOBIG;
	if (e) {
		trace_refuse(t, e);
		return false;
	}
	uar_buf_printf(t->out, "200 %s %.*s ", uar_http_method_name(t->head.method),
		       UAR_FMT(t->head.target));
	uar_buf_consume(&t->in, n);
	uar_http_body_init(&t->reader, &t->head, TRACE_BODY_MAX);
	uar_buf_clear(&t->body);
	t->scanned = 0;
	t->in_body = true;
	return true;
}

static inline bool trace_body(struct trace *t)
{
	struct uar_error error = { 0 };
	uar_str rest = uar_buf_str(&t->in);
	bool done = false, full = true;
	uar_err e = UAR_OK;

	while (!e && !done && full) {
		uar_buf_clear(&t->piece);
		e = uar_http_body_feed(&t->reader, &rest, &t->piece, &done, &error);
		full = t->piece.n == t->piece.max;
		uar_buf_add_str(&t->body, uar_buf_str(&t->piece));
	}
	if (e) {
		uar_buf_add_str(t->out, UAR_STR("\n"));
		trace_refuse(t, e);
		return false;
	}
	uar_buf_consume(&t->in, t->in.n - rest.n);
	if (!done)
		return false;
	uar_buf_printf(t->out, "%zu ", t->body.n);
	uar_buf_add_str(t->out, uar_buf_str(&t->body));
	uar_buf_add_str(t->out, UAR_STR("\n"));
	t->in_body = false;
	t->taken = t->out->n;
	t->over = !t->head.keep_alive;
	return true;
}

static inline void trace_feed(struct trace *t, uar_str bytes)
{
	if (!t->over)
		uar_buf_add_str(&t->in, bytes);
	while (!t->over && (t->in_body ? trace_body(t) : t->in.n > 0 && trace_head(t)))
		;
}

static inline void trace_end(struct trace *t)
{
	if (!t->over && (t->in_body || t->in.n > 0))
		uar_buf_add_str(t->out, UAR_STR("...\n"));
}

/* Fed in pieces of `cut` bytes (0: whole) after a first piece of `first` bytes; bodies
 * are taken in pieces of that size as well. */
static inline struct trace trace_run(uar_str in, size_t first, size_t cut, struct uar_buf *out)
{
	struct trace t;

	trace_init(&t, cut, out);
	trace_feed(&t, uar_str_n(in.p, first < in.n ? first : in.n));
	in = uar_str_from(in, first);
	for (size_t n; in.n > 0; in = uar_str_from(in, n)) {
		n = cut && cut < in.n ? cut : in.n;
		trace_feed(&t, uar_str_n(in.p, n));
	}
	trace_end(&t);
	trace_fini(&t);
	return t;
}

#endif
