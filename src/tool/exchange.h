/* exchange.h - one request over HTTP on behalf of a tool, with the redirects that it meets.
 *
 * Every address is judged by the client's guard, that of each redirect, too, unless it is the
 * operator's own. Redirects of GET and
 * HEAD are followed, a few; headers go along only to the same origin. */
#ifndef UAR_TOOL_EXCHANGE_H
#define UAR_TOOL_EXCHANGE_H

#include "base/buf.h"
#include "loop/client.h"

struct uar_exchange;
struct uar_exchange_options {
	struct uar_client *client;
	const char *method, *url;
	const char *const *headers; /* "Name: value", NULL-terminated; copied */
	uar_str body;		    /* copied */
	bool once;		    /* as in client.h */
	size_t max_bytes;	    /* of the answer; more end it */
	bool cut;		    /* or are left out: it ends well with the beginning */
	bool timed;		    /* the caller has a limit for all of it */
	bool own;		    /* the operator wrote the URL: nothing judges it */
	/* Once, never inside begin, and not after cancel. */
	void (*done)(void *ctx, const struct uar_exchange *x);
	void *ctx;
};
struct uar_exchange_answer {
	uar_err err; /* UAR_OK: an answer is there, whatever its status */
	int status;
	uar_str body, content_type, url; /* url: of the last redirect */
	bool truncated;
	int64_t retry_after_us;
	const char *reason; /* of an error */
};
UAR_MUST_CHECK uar_err uar_exchange_begin(const struct uar_exchange_options *o,
					  struct uar_exchange **out, struct uar_error *error);
void uar_exchange_cancel(struct uar_exchange *x); /* NULL is fine */
/* Inside done; it is gone afterwards. */
struct uar_exchange_answer uar_exchange_answer(const struct uar_exchange *x);

/* Where a Location leads from a URL. UAR_EINVALID: neither http nor https. */
UAR_MUST_CHECK uar_err uar_url_resolve(uar_str base, uar_str location, struct uar_buf *out);

#endif
