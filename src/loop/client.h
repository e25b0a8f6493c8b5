/* client.h - outbound HTTP for everything UAR calls (libcurl, loaded on first use).
 *
 * Callbacks fire from the loop, `done` exactly once. Redirects are not
 * followed. Certificates are always verified. */
#ifndef UAR_LOOP_CLIENT_H
#define UAR_LOOP_CLIENT_H

#include "base/str.h"
#include "loop/loop.h"

struct uar_client;
struct uar_call; /* one request under way */

struct uar_call_options {
	const char *method, *url;
	const char *const *headers; /* "Name: value", NULL-terminated */
	uar_str body;		    /* copied */
	int64_t connect_timeout_us; /* 0: default 10 s */
	int64_t idle_timeout_us;    /* no byte for so long ends it; 0: default 60 s */
	size_t max_error_body;	    /* bytes kept of a non-2xx answer; 0: default 64 KiB */
	/* Bytes of a 2xx answer, as they come. An error ends the call with it. */
	uar_err (*data)(void *ctx, uar_str bytes);
	/* The end. status 0: no answer came. `body` holds a non-2xx answer. */
	void (*done)(void *ctx, uar_err e, int status, uar_str body, const char *reason);
	void *ctx;
};

UAR_MUST_CHECK uar_err uar_client_create(struct uar_loop *l, struct uar_client **out);
void uar_client_destroy(struct uar_client *c); /* calls under way end without callbacks */
UAR_MUST_CHECK uar_err uar_client_call(struct uar_client *c, const struct uar_call_options *o,
				       struct uar_call **out, struct uar_error *error);
/* Closes the upstream connection at once; no callback follows. */
void uar_call_cancel(struct uar_call *call);
/* Backpressure: while paused no data callback fires and the peer is held back. */
void uar_call_pause(struct uar_call *call, bool paused);

#endif
