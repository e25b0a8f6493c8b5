/* client_request.h - a request as options of libcurl; for loop/ alone. */
#ifndef UAR_LOOP_CLIENT_REQUEST_H
#define UAR_LOOP_CLIENT_REQUEST_H

#include "loop/curl_load.h"

#include "base/str.h"
#include "loop/guard.h"

/* A call whose address is not the operator's. */
struct uar_guarded {
	const struct uar_guard *guard;
	bool refused; /* an address did not pass */
};

/* All borrowed; stays in place as long as the handle lives. */
struct uar_client_request {
	const char *method, *url;
	uar_str origin, body;
	struct curl_slist *headers;
	int64_t connect_timeout_us;  /* 0: default */
	const char *ca_file;	     /* NULL: the system's */
	struct uar_guarded *guarded; /* NULL: it may go anywhere */
	bool once;		     /* no connection that was used before */
};

/* http or https, bounded, no spaces or control characters. */
UAR_MUST_CHECK uar_err uar_client_check_url(uar_str url, struct uar_error *error);
UAR_MUST_CHECK uar_err uar_client_prepare(const struct uar_curl *c, CURL *h,
					  const struct uar_client_request *r);
/* May the request go to the peer of this connection, which may be one that was there before? */
bool uar_client_may_send(const struct uar_client_request *r, const char *ip, int port);
/* Appends the lines to *list, which is the caller's to free, also on error.
 * UAR_EINVALID: a control character, which could forge another header. */
UAR_MUST_CHECK uar_err uar_client_headers(const struct uar_curl *c, const char *const *lines,
					  struct curl_slist **list);

#endif
