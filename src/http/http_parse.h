/* http_parse.h - reads HTTP/1.x requests: bytes in, a checked head and a body out.
 *
 * Pure: no sockets, no clock. The head is buffered whole and read in one pass;
 * the result does not depend on how the bytes were cut. Whatever another program
 * on the way could frame differently is refused, and after a refusal the bytes
 * that follow have no meaning: the connection must be closed. */
#ifndef UAR_HTTP_HTTP_PARSE_H
#define UAR_HTTP_HTTP_PARSE_H

#include "http/http.h"
#include "http/sizes.h"

enum uar_http_framing { UAR_HTTP_NO_BODY, UAR_HTTP_LENGTH, UAR_HTTP_CHUNKED };

/* Strings point into the head that was given. */
struct uar_http_head {
	enum uar_http_method method;
	enum uar_http_framing framing;
	uint64_t length;      /* of the body, with UAR_HTTP_LENGTH */
	bool http10;	      /* never kept alive, never chunked */
	bool keep_alive;      /* the client lets the connection stay open */
	bool expect_continue; /* it waits for 100 before it sends the body */
	uar_str target, path, query;
	uar_str fields[UAR_HTTP_FIELD_COUNT];
	size_t header_count;
	struct uar_http_header headers[UAR_LIMIT_HTTP_HEADERS];
};

/* Looks for the end of the head at the start of `in`. `*at` counts the bytes
 * that were looked at before (0 at first) and moves on. UAR_OK with
 * *out_length == 0: it has not ended yet. Errors: bytes that no head may hold,
 * or no end within UAR_LIMIT_HTTP_HEAD. */
UAR_MUST_CHECK uar_err uar_http_find_head(uar_str in, size_t *at, size_t *out_length,
					  struct uar_error *error);
/* Reads a head that uar_http_find_head found, all its bytes. `out` is scratch
 * when it fails. */
UAR_MUST_CHECK uar_err uar_http_parse_head(uar_str head, struct uar_http_head *out,
					   struct uar_error *error);

/* How far the body of one request has been read. */
struct uar_http_body {
	enum uar_http_framing framing;
	uint64_t left;	    /* of the body or of the current chunk */
	uint64_t max, room; /* bytes that the body may have; that may still come */
	unsigned char state, digits;
};

void uar_http_body_init(struct uar_http_body *b, const struct uar_http_head *head, uint64_t max);
/* Moves body bytes from `*in` (cut at its front) to `out`, until that is full: what
 * is left of `*in` then belongs to the next call. More than `max` in all is
 * UAR_ETOOBIG, as soon as it is announced. *out_done: the body is complete, `*in`
 * starts at the next request. */
UAR_MUST_CHECK uar_err uar_http_body_feed(struct uar_http_body *b, uar_str *in, struct uar_buf *out,
					  bool *out_done, struct uar_error *error);

/* UAR_ETOOBIG, in words: the body is longer than `max`. */
uar_err uar_http_too_big(uint64_t max, struct uar_error *error);

#endif
