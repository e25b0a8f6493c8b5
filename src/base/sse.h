/* sse.h - Server-Sent Events as providers and servers send them, read piece by piece. */
#ifndef UAR_BASE_SSE_H
#define UAR_BASE_SSE_H

#include "base/buf.h"

/* An incremental parser (WHATWG rules: CR, LF, CRLF; BOM; comments; multi-line
 * data). Bytes may be cut anywhere. */
struct uar_sse_event {
	uar_str event, id, data; /* borrowed until the callback returns */
};
typedef uar_err uar_sse_fn(void *ctx, const struct uar_sse_event *ev);
struct uar_sse_parser {
	struct uar_buf line, data, event, id;
	bool after_cr, started;
	int64_t retry_ms; /* what the last `retry` asked for; 0: none did */
	uar_sse_fn *fn;
	void *ctx;
};
/* `max` bounds a line and one event's data. */
void uar_sse_parser_init(struct uar_sse_parser *p, size_t max, uar_sse_fn *fn, void *ctx);
void uar_sse_parser_fini(struct uar_sse_parser *p);
/* Stops at the first error: the callback's, or UAR_ETOOBIG. */
UAR_MUST_CHECK uar_err uar_sse_parser_feed(struct uar_sse_parser *p, uar_str bytes);

#endif
