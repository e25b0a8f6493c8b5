/* client_int.h - what the files of the client share; for loop/ alone. */
#ifndef UAR_LOOP_CLIENT_INT_H
#define UAR_LOOP_CLIENT_INT_H

#include "loop/client.h"
#include "loop/curl_load.h"

/* All borrowed; url and body stay in place as long as the handle lives. */
struct uar_client_request {
	const struct uar_call_options *options;
	const char *url;
	uar_str origin;
	const char *body;
	const char *ca_file; /* NULL: the system's */
};

/* http or https, bounded, no spaces or control characters. */
UAR_MUST_CHECK uar_err uar_client_check_url(uar_str url, struct uar_error *error);
UAR_MUST_CHECK uar_err uar_client_prepare(const struct uar_curl *c, CURL *h,
					  const struct uar_client_request *r);
/* Appends the lines to *list, which is the caller's to free, also on error.
 * UAR_EINVALID: a control character, which could forge another header. */
UAR_MUST_CHECK uar_err uar_client_headers(const struct uar_curl *c, const char *const *lines,
					  struct curl_slist **list);

#endif
