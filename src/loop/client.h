/* client.h - outbound HTTP for everything UAR calls (libcurl, loaded on first use).
 *
 * Callbacks fire from the loop, never inside uar_client_call; `done` exactly
 * once, after which the call is gone. http and https alone; redirects are not
 * followed; certificates are always verified. The proxies of the environment
 * (https_proxy, http_proxy, no_proxy) are used, except for loopback addresses.
 *
 * An https host that speaks HTTP/2 gets a few connections that all calls share,
 * any other one connection a call. A stream that such a host refuses, which says that it
 * has not looked at it, is tried again, a bounded number of times. A call that was cancelled or
 * failed never leaves a half-read connection behind for another one. */
#ifndef UAR_LOOP_CLIENT_H
#define UAR_LOOP_CLIENT_H

#include "base/str.h"
#include "loop/guard.h"
#include "loop/loop.h"

struct uar_client;
struct uar_call; /* one request under way */

struct uar_call_options {
	const char *method, *url;
	const char *const *headers; /* "Name: value", NULL-terminated */
	uar_str body;		    /* copied */
	int64_t connect_timeout_us; /* 0: default 10 s */
	int64_t idle_timeout_us;    /* no byte for so long ends it; 0: default 60 s; < 0: none */
	/* All of it may take so long, pauses aside, however its bytes come; 0: default
	 * UAR_LIMIT_CLIENT_CALL_SECONDS; < 0: no limit here, for streams and for callers that have
	 * one of their own. */
	int64_t total_timeout_us;
	/* The address comes from a definition, a model or a peer: it is judged by the client's
	 * guard (guard.h), and no proxy is used. False: it is the operator's own. UAR_EFORBIDDEN at
	 * the end: no address of the host passes. */
	bool guarded;
	/* It must not arrive twice: it gets a connection of its own. On one that was used before,
	 * and that the peer closes without an answer, libcurl sends a request again. */
	bool once;
	size_t max_error_body; /* bytes kept of a non-2xx answer; 0: default 64 KiB */
	/* Each header line of the answer, whatever its status, before any of its bytes; NULL: not
	 * wanted. Names are as the server wrote them: compare without case. Interim (1xx) heads
	 * and trailers are not told. uar_call_status is known inside. */
	void (*header)(void *ctx, uar_str name, uar_str value);
	/* Bytes of a 2xx answer, as they come. An error ends the call with it. */
	uar_err (*data)(void *ctx, uar_str bytes);
	/* The end. status 0: no answer came. `body` holds a non-2xx answer, cut at
	 * max_error_body. UAR_OK: the answer is complete, whatever its status;
	 * UAR_ETIMEOUT, UAR_ENET, UAR_EFORBIDDEN (the certificate is not trusted),
	 * or what `data` returned. `reason` is text for a person. */
	void (*done)(void *ctx, uar_err e, int status, uar_str body, const char *reason);
	void *ctx;
};

/* `ca_file`: a PEM file of certificate authorities; NULL or empty: the system's. */
UAR_MUST_CHECK uar_err uar_client_create(struct uar_loop *l, const char *ca_file,
					 struct uar_client **out);
/* What passes its guard besides public addresses; takes g. Before the first call. */
void uar_client_set_guard(struct uar_client *c, struct uar_guard *g);
/* Would a guarded call of that address end with UAR_EFORBIDDEN, whatever its name leads to? */
bool uar_client_bars(const struct uar_client *c, uar_str url);
/* Calls under way end without callbacks. Not from inside a callback. */
void uar_client_destroy(struct uar_client *c);
struct uar_sched *uar_client_sched(const struct uar_client *c);
UAR_MUST_CHECK uar_err uar_client_call(struct uar_client *c, const struct uar_call_options *o,
				       struct uar_call **out, struct uar_error *error);
/* No callback follows. The connection is closed by the client's thread as soon as it gets
 * to it, a crowd of UAR_LIMIT_CLIENT_ORDERS orders a turn. Fine inside the
 * callbacks of any call, but not of one whose `done` has been called. */
void uar_call_cancel(struct uar_call *call);
/* Backpressure: while paused no callback fires, timeouts rest and the peer is held
 * back. */
void uar_call_pause(struct uar_call *call, bool paused);
/* The status once bytes of the body came, or the head where `header` wants it; 0: not yet. */
int uar_call_status(const struct uar_call *call);
/* What the answer's Retry-After asks for; 0: nothing. Useful inside `done`. */
int64_t uar_call_retry_after_us(const struct uar_call *call);
/* The kind of failure for a person, without the names and addresses that `reason` may have in it.
 * Inside `done` alone. */
const char *uar_call_failure(const struct uar_call *call);

#endif
