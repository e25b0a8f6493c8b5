/* api_client.h - one blocking request at a time to a UAR server, for client verbs.
 *
 * http://HOST[:PORT][/PREFIX] and unix:PATH, the path plain or percent-encoded (a % in it
 * always is). A connection per request, every
 * wait bounded. Answers other than 2xx become errors that read "CODE: detail". */
#ifndef UAR_APP_API_CLIENT_H
#define UAR_APP_API_CLIENT_H

#include "app/beside.h"
#include "base/address.h"
#include "base/buf.h"
#include "base/sse.h"

struct uar_api {
	char url[512];		 /* for messages: as given, the path of a socket percent-encoded */
	char host[256], port[8]; /* the host without brackets */
	char prefix[256];	 /* "" or "/base" */
	char unix_path[UAR_SOCKET_PATH]; /* not empty: a unix socket */
	char token[1024];		 /* "": none is sent */
	bool local;			 /* this machine: loopback or a unix socket */
	int connect_ms,
		answer_ms; /* to be connected; to the first byte of a body and between two */
	int stream_ms;	   /* between two pieces of a stream */
	const struct uar_beside *beside; /* looked after in every wait; NULL: nothing */
};

/* Timeouts get their defaults. UAR_EINVALID for a URL that this client cannot use. */
UAR_MUST_CHECK uar_err uar_api_init(struct uar_api *api, uar_str url, uar_str token,
				    struct uar_error *error);

struct uar_api_request {
	const char *method, *path; /* path with its query, already escaped */
	uar_str body;		   /* JSON; .p NULL: none */
	uar_str last_event_id;	   /* empty: not sent */
	bool either; /* a stream: an answer that is JSON, whatever its status, is one event of it */
	uint64_t offset, span; /* so many bytes of the body from there; span 0: all of it */
	/* The head of a stream is there, maybe long before its first event. NULL: untold;
	 * `ctx` is that of the stream. */
	void (*opened)(void *ctx);
};
/* `out` gets the body of a 2xx answer. UAR_ENET: not reached; UAR_EEOF, UAR_ETIMEOUT
 * (silence inside a stream): broken on the way; UAR_EBUSY: no answer in time, or
 * 503; UAR_ECANCELED: what is beside says so. Other answers: UAR_EUNAUTHORIZED, UAR_EFORBIDDEN,
 * UAR_ENOTFOUND, UAR_ECONFLICT, UAR_ETOOBIG, UAR_ERATELIMIT, UAR_EDISKFULL, and UAR_EINVALID,
 * UAR_EINTERNAL for the rest of 4xx and 5xx; `error` has the code that the answer names. */
UAR_MUST_CHECK uar_err uar_api_call(const struct uar_api *api, const struct uar_api_request *r,
				    struct uar_buf *out, struct uar_error *error);
/* Hands every event to `fn` until the stream ends in order (UAR_OK), breaks, or
 * `fn` returns an error, which is returned. */
UAR_MUST_CHECK uar_err uar_api_stream(const struct uar_api *api, const struct uar_api_request *r,
				      uar_sse_fn *fn, void *ctx, struct uar_error *error);

/* Percent-encodes all but unreserved characters. */
void uar_api_escape(struct uar_buf *out, uar_str s);
/* The URL of a server on a Unix socket, visible ASCII whatever the path has in it. */
void uar_api_socket_url(struct uar_buf *out, uar_str path);

#endif
