/* http_answer.h - reads an HTTP/1.1 response from bytes that come in any pieces.
 *
 * Knows no sockets. One framing rule as on the server's side: Content-Length
 * xor chunked, else the body goes to the end of the connection; whatever is
 * ambiguous is refused. Interim answers (1xx) are skipped. */
#ifndef UAR_APP_HTTP_ANSWER_H
#define UAR_APP_HTTP_ANSWER_H

#include "base/buf.h"

enum uar_answer_state {
	UAR_ANSWER_STATUS,
	UAR_ANSWER_HEADERS,
	UAR_ANSWER_SIZED,      /* `left` bytes of body to come */
	UAR_ANSWER_TO_END,     /* body until the peer closes */
	UAR_ANSWER_CHUNK_SIZE, /* a chunk's first line */
	UAR_ANSWER_CHUNK,      /* `left` bytes of it to come */
	UAR_ANSWER_CHUNK_END,  /* its CRLF */
	UAR_ANSWER_TRAILERS,
	UAR_ANSWER_DONE,
};

struct uar_answer {
	enum uar_answer_state state;
	int status;
	char content_type[80]; /* lower case, without parameters */
	bool chunked, sized;
	uint64_t left;
	size_t head_bytes;
	struct uar_buf line; /* of head or chunk framing, not complete yet */
	uar_err (*body)(void *ctx, uar_str bytes);
	void *ctx;
};

/* `body` gets the payload as it comes; its error ends the reading. When it is
 * first called, status and content_type are known. */
void uar_answer_init(struct uar_answer *a, uar_err (*body)(void *ctx, uar_str bytes), void *ctx);
void uar_answer_fini(struct uar_answer *a);
/* Bytes after a complete answer are ignored. */
UAR_MUST_CHECK uar_err uar_answer_feed(struct uar_answer *a, uar_str bytes,
				       struct uar_error *error);
/* The connection ended: UAR_OK when the answer is complete, else UAR_EEOF. */
UAR_MUST_CHECK uar_err uar_answer_end(struct uar_answer *a, struct uar_error *error);

static inline bool uar_answer_in_body(const struct uar_answer *a)
{
	return a->state >= UAR_ANSWER_SIZED;
}

#endif
