/* http_answer.c - the response reader, a line machine with a body in between. */
#include "app/http_answer.h"
#include "http/limits.h"

#include <stdio.h>

void uar_answer_init(struct uar_answer *a, uar_err (*body)(void *ctx, uar_str bytes), void *ctx)
{
	memset(a, 0, sizeof *a);
	a->line = uar_buf_make(UAR_LIMIT_HTTP_HEAD);
	a->body = body;
	a->ctx = ctx;
}

void uar_answer_fini(struct uar_answer *a)
{
	uar_buf_fini(&a->line);
}

static uar_err garbled(struct uar_error *error, const char *what)
{
	return uar_error_set(error, UAR_ESYNTAX, "the answer is not HTTP: %s", what);
}

/* --- head ---------------------------------------------------------------------- */
static uar_err status_line(struct uar_answer *a, uar_str line, struct uar_error *error)
{
	uint64_t status;

	if (!uar_str_starts(line, UAR_STR("HTTP/1.")) || line.n < 12 || line.p[8] != ' ' ||
	    (line.n > 12 && line.p[12] != ' ') || uar_str_u64(uar_str_n(line.p + 9, 3), &status) ||
	    status < 100)
		return garbled(error, "bad status line");
	a->status = (int)status;
	a->chunked = a->sized = false;
	a->content_type[0] = '\0';
	a->state = UAR_ANSWER_HEADERS;
	return UAR_OK;
}

static void keep_content_type(struct uar_answer *a, uar_str value)
{
	uar_str rest, type = uar_str_trim(uar_str_cut(value, ';', &rest));
	size_t n = type.n < sizeof a->content_type ? type.n : 0;

	for (size_t i = 0; i < n; i++) {
		char c = type.p[i];

		a->content_type[i] = c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
	}
	a->content_type[n] = '\0';
}

static uar_err header_line(struct uar_answer *a, uar_str line, struct uar_error *error)
{
	uar_str value, name = uar_str_cut(line, ':', &value);
	uint64_t length;

	if (name.n == 0 || name.n == line.n || name.p[name.n - 1] == ' ' || name.p[0] == ' ' ||
	    name.p[0] == '\t')
		return garbled(error, "bad header");
	value = uar_str_trim(value);
	if (uar_str_eq_nocase(name, UAR_STR("content-type")))
		keep_content_type(a, value);
	if (uar_str_eq_nocase(name, UAR_STR("content-length"))) {
		if (uar_str_u64(value, &length) || (a->sized && length != a->left))
			return garbled(error, "bad Content-Length");
		a->sized = true;
		a->left = length;
	}
	if (uar_str_eq_nocase(name, UAR_STR("transfer-encoding"))) {
		if (a->chunked || !uar_str_eq_nocase(value, UAR_STR("chunked")))
			return garbled(error, "unknown Transfer-Encoding");
		a->chunked = true;
	}
	return UAR_OK;
}

static uar_err end_of_head(struct uar_answer *a, struct uar_error *error)
{
	if (a->chunked && a->sized)
		return garbled(error, "both Content-Length and chunked");
	if (a->status < 200) {
		a->state = UAR_ANSWER_STATUS;
		return UAR_OK;
	}
	if (a->status == 204 || a->status == 304 || (a->sized && a->left == 0))
		a->state = UAR_ANSWER_DONE;
	else
		a->state = a->chunked ? UAR_ANSWER_CHUNK_SIZE
			   : a->sized ? UAR_ANSWER_SIZED
				      : UAR_ANSWER_TO_END;
	return UAR_OK;
}

/* --- chunks --------------------------------------------------------------------- */
static uar_err chunk_line(struct uar_answer *a, uar_str line, struct uar_error *error)
{
	uint64_t size = 0;
	size_t i = 0;

	for (; i < line.n && uar_hex_digit(line.p[i]) >= 0; i++) {
		if (i == 15)
			return garbled(error, "chunk too large");
		size = size << 4 | (uint64_t)uar_hex_digit(line.p[i]);
	}
	if (i == 0 || (i < line.n && line.p[i] != ';' && line.p[i] != ' '))
		return garbled(error, "bad chunk size");
	a->left = size;
	a->state = size ? UAR_ANSWER_CHUNK : UAR_ANSWER_TRAILERS;
	a->head_bytes = 0;
	return UAR_OK;
}

static uar_err one_line(struct uar_answer *a, uar_str line, struct uar_error *error)
{
	switch (a->state) {
	case UAR_ANSWER_STATUS: return status_line(a, line, error);
	case UAR_ANSWER_HEADERS:
		return line.n ? header_line(a, line, error) : end_of_head(a, error);
	case UAR_ANSWER_CHUNK_SIZE: return chunk_line(a, line, error);
	case UAR_ANSWER_CHUNK_END:
		a->state = UAR_ANSWER_CHUNK_SIZE;
		return line.n ? garbled(error, "bad end of chunk") : UAR_OK;
	case UAR_ANSWER_TRAILERS:
		if (line.n == 0)
			a->state = UAR_ANSWER_DONE;
		return UAR_OK;
	case UAR_ANSWER_SIZED:
	case UAR_ANSWER_TO_END:
	case UAR_ANSWER_CHUNK:
	case UAR_ANSWER_DONE: break;
	}
	return UAR_EINTERNAL;
}

/* Takes bytes up to the end of a line; a line ends with CRLF and nothing else. */
static uar_err feed_line(struct uar_answer *a, uar_str *bytes, struct uar_error *error)
{
	size_t at = uar_str_find(*bytes, '\n');
	size_t take = at < bytes->n ? at + 1 : at;
	uar_str line;
	uar_err e;

	a->head_bytes += take;
	if (a->head_bytes > UAR_LIMIT_HTTP_HEAD)
		return garbled(error, "head too large");
	uar_buf_add(&a->line, bytes->p, take);
	*bytes = uar_str_from(*bytes, take);
	if (a->line.err)
		return uar_error_set(error, a->line.err, "%s", uar_err_text(a->line.err));
	line = uar_buf_str(&a->line);
	if (line.n == 0 || line.p[line.n - 1] != '\n')
		return UAR_OK;
	if (line.n < 2 || line.p[line.n - 2] != '\r')
		return garbled(error, "a line without CR");
	line.n -= 2;
	for (size_t i = 0; i < line.n; i++)
		if (line.p[i] == '\r' || line.p[i] == '\0')
			return garbled(error, "a control character in its head");
	e = one_line(a, line, error);
	uar_buf_clear(&a->line);
	return e;
}

/* --- body ------------------------------------------------------------------------- */
static uar_err feed_body(struct uar_answer *a, uar_str *bytes, struct uar_error *error)
{
	uar_str piece = *bytes;
	uar_err e;

	if (a->state != UAR_ANSWER_TO_END && piece.n > a->left)
		piece.n = (size_t)a->left;
	*bytes = uar_str_from(*bytes, piece.n);
	e = a->body(a->ctx, piece);
	if (e)
		return error && error->text[0] ? e : uar_error_set(error, e, "%s", uar_err_text(e));
	if (a->state == UAR_ANSWER_TO_END)
		return UAR_OK;
	a->left -= piece.n;
	if (a->left == 0)
		a->state = a->state == UAR_ANSWER_SIZED ? UAR_ANSWER_DONE : UAR_ANSWER_CHUNK_END;
	return UAR_OK;
}

uar_err uar_answer_feed(struct uar_answer *a, uar_str bytes, struct uar_error *error)
{
	uar_err e = UAR_OK;

	while (!e && bytes.n && a->state != UAR_ANSWER_DONE) {
		bool body = a->state == UAR_ANSWER_SIZED || a->state == UAR_ANSWER_TO_END ||
			    a->state == UAR_ANSWER_CHUNK;

		e = body ? feed_body(a, &bytes, error) : feed_line(a, &bytes, error);
		if (!e && a->state == UAR_ANSWER_CHUNK_SIZE && a->line.n == 0)
			a->head_bytes = 0; /* the bound is for one chunk's line */
	}
	return e;
}

uar_err uar_answer_end(struct uar_answer *a, struct uar_error *error)
{
	if (a->state == UAR_ANSWER_DONE || a->state == UAR_ANSWER_TO_END) {
		a->state = UAR_ANSWER_DONE;
		return UAR_OK;
	}
	return uar_error_set(error, UAR_EEOF, "the server closed the connection too early");
}
