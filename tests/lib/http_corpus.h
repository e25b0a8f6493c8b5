/* http_corpus.h - requests good and bad, made from small tables.
 *
 * Every case is one request; what a server must do with it is its status. 200:
 * it is taken, with that body. Anything else: it is refused, the connection is
 * closed and nothing after it is served. Bodies are limited to 1000 bytes. */
#ifndef UAR_TEST_HTTP_CORPUS_H
#define UAR_TEST_HTTP_CORPUS_H

#include "base/str.h"

struct http_case {
	const char *name; /* of its table */
	uar_str bytes;
	int status;
	bool closes;  /* taken, but the client wants the connection closed */
	uar_str body; /* of one that is taken */
};

typedef void http_case_fn(void *ctx, const struct http_case *c);
size_t uar_test_http_corpus(http_case_fn *fn, void *ctx); /* how many cases */

#endif
