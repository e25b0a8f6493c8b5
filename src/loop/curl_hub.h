/* curl_hub.h - one libcurl multi handle driven by the loop; for loop/ alone.
 *
 * `ended` and `after` fire from the loop, never inside add or remove, and with
 * libcurl off the stack: handles may be added and removed there. */
#ifndef UAR_LOOP_CURL_HUB_H
#define UAR_LOOP_CURL_HUB_H

#include "loop/curl_load.h"
#include "loop/loop.h"

struct uar_hub {
	const struct uar_curl *curl;
	struct uar_loop *loop;
	CURLM *multi;
	struct uar_timer timer;
	struct uar_task task; /* stands in for a timer that could not be set */
	/* A transfer is over; it is the receiver's to remove. */
	void (*ended)(void *ctx, CURL *easy, CURLcode code);
	void (*after)(void *ctx); /* after each round of libcurl */
	void *ctx;
};

/* curl, loop and the callbacks are set by the caller before. `per_host` caps
 * the connections to one host, 0: no cap. */
UAR_MUST_CHECK uar_err uar_hub_init(struct uar_hub *h, long per_host);
void uar_hub_fini(struct uar_hub *h); /* half-built is fine */
UAR_MUST_CHECK uar_err uar_hub_add(struct uar_hub *h, CURL *easy);
void uar_hub_remove(struct uar_hub *h, CURL *easy);
/* Lets libcurl go on with a paused transfer; it may end or pause again inside. */
CURLcode uar_hub_resume(struct uar_hub *h, CURL *easy);

#endif
