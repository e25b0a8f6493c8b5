/* http.h - a strict HTTP/1.1 server for thousands of event streams.
 *
 * Knows bytes, not runs. One framing rule: Content-Length xor chunked, whatever
 * is ambiguous is refused and the connection closed. Requests of a connection
 * are handed over one at a time, in order; each is answered exactly once, now or
 * later, from the loop thread. Every buffer and wait has a limit. */
#ifndef UAR_HTTP_HTTP_H
#define UAR_HTTP_HTTP_H

#include "base/arena.h"
#include "base/buf.h"

struct uar_loop;
struct uar_http; /* the server */
struct uar_http_response;
struct uar_http_stream; /* a response that goes on */

enum uar_http_method {
	UAR_HTTP_GET,
	UAR_HTTP_HEAD,
	UAR_HTTP_POST,
	UAR_HTTP_PUT,
	UAR_HTTP_PATCH,
	UAR_HTTP_DELETE,
	UAR_HTTP_OPTIONS,
	UAR_HTTP_METHOD_COUNT
};
const char *uar_http_method_name(enum uar_http_method m);

struct uar_http_header {
	uar_str name, value; /* value trimmed */
};

/* What requests are asked for again and again: found while the head is read. */
enum uar_http_field {
	UAR_HTTP_HOST,
	UAR_HTTP_CONTENT_LENGTH,
	UAR_HTTP_TRANSFER_ENCODING,
	UAR_HTTP_EXPECT,
	UAR_HTTP_CONNECTION,
	UAR_HTTP_AUTHORIZATION,
	UAR_HTTP_CONTENT_TYPE,
	UAR_HTTP_ORIGIN,
	UAR_HTTP_IDEMPOTENCY_KEY,
	UAR_HTTP_LAST_EVENT_ID,
	UAR_HTTP_FIELD_COUNT
};

/* Valid until it is answered; the strings live in its arena. */
struct uar_http_request {
	enum uar_http_method method;
	uar_str target;			       /* as sent */
	uar_str path, query;		       /* split at the first '?', not decoded */
	const struct uar_http_header *headers; /* all of them */
	size_t header_count;
	uar_str fields[UAR_HTTP_FIELD_COUNT]; /* the first of its name; .p NULL: absent */
	uar_str body;			      /* empty when it is streamed */
	struct uar_arena *arena;	      /* for the handler's own use while it decodes */
	uar_str peer;			      /* "127.0.0.1:4711", "unix" */
	void *user;			      /* the handler's, NULL at first */
	uar_str allow;			      /* the handler's: the methods that a 405 names */
	uar_str allow_origin; /* `head` may set it: pages of this origin may read the answer */
	bool streamed;	      /* `head` may set it: see uar_http_body_pull */
	/* `head` may set it: writes the body of a problem as application/json instead. */
	void (*problem)(struct uar_buf *out, int status, const char *code,
			const struct uar_error *error);
	const char *problem_type; /* of such a body; NULL: application/json */
	/* Of a request that was not read from a connection, but made by the caller of the handler:
	 * takes the answer, once. Its answer cannot be a stream. NULL: the peer gets the answer. */
	void (*answer)(struct uar_http_request *r, const struct uar_http_response *response);
};

/* First header of that name (any case), or an empty string with .p NULL; for those
 * that have no place in `fields`. */
uar_str uar_http_header(const struct uar_http_request *r, const char *name);
/* First query parameter of that name, percent-decoded into the arena; .p NULL
 * when absent. UAR_EINVALID for a broken escape. */
UAR_MUST_CHECK uar_err uar_http_query(const struct uar_http_request *r, const char *name,
				      uar_str *out);
/* Cuts the next name and value off *rest, neither decoded; false at the end. */
bool uar_http_query_cut(uar_str *rest, uar_str *out_name, uar_str *out_value);
/* Percent-decodes (no '+' rule) into the arena; refuses NUL and broken escapes. */
UAR_MUST_CHECK uar_err uar_http_decode(struct uar_arena *a, uar_str in, uar_str *out);

/* Which bytes of `total` a Range header means. UAR_ESKIP: none that is understood,
 * so the whole is meant (several ranges are not). UAR_ERANGE: bytes that are not there. */
struct uar_http_range {
	uint64_t first, count;
};
UAR_MUST_CHECK uar_err uar_http_range(uar_str header, uint64_t total, struct uar_http_range *out);

struct uar_http_handler {
	/* The head is complete and well formed, the body unread: authenticate and
	 * route here. An error is answered as a problem and the body never read.
	 * On success *out_body_max bounds the body (0: none accepted). */
	uar_err (*head)(void *ctx, struct uar_http_request *r, size_t *out_body_max,
			struct uar_error *error);
	/* The request is complete: answer it now or later. One that is streamed comes
	 * with its head alone, its body is pulled. */
	void (*request)(void *ctx, struct uar_http_request *r);
	/* r will not be answered: the peer went away, or its body was cut off, too
	 * long or not well formed. Forget it. Follows a successful `head`, also
	 * instead of `request`; never comes after the answer. */
	void (*gone)(void *ctx, struct uar_http_request *r);
	/* What was pulled is there; `last`: the body is complete. NULL: nothing is streamed. */
	void (*piece)(void *ctx, struct uar_http_request *r, bool last);
	void *ctx;
};

/* The next bytes of a streamed body, up to the maximum of `into`, which is emptied
 * first, is the handler's and stays in place until `piece` or `gone`. Nothing is read
 * from the socket that was not pulled: the sender waits. Who expects "100 Continue"
 * hears it with the first pull. One answered before its last piece ends the connection. */
void uar_http_body_pull(struct uar_http_request *r, struct uar_buf *into);

struct uar_http_response {
	int status;
	const char *content_type;	       /* NULL: no body */
	uar_str body;			       /* copied */
	const struct uar_http_header *headers; /* extra ones */
	size_t header_count;
	bool no_store; /* "Cache-Control: no-store": what it says concerns one caller alone */
	bool close;    /* end the connection afterwards */
};
/* A header value with a line end in it is answered as a fault of ours (500). */
void uar_http_respond(struct uar_http_request *r, const struct uar_http_response *response);
/* application/problem+json from an error: status, stable code, detail, pointer. */
void uar_http_problem(struct uar_http_request *r, uar_err code, const struct uar_error *error);
/* The same with more members: JSON text that begins with a comma, or empty. */
void uar_http_problem_more(struct uar_http_request *r, uar_err code, const struct uar_error *error,
			   uar_str more);

/* Immutable bytes shared by many streams: framed once, sent to all. Loop thread only. */
struct uar_frame;
struct uar_frame *uar_frame_create(uar_str bytes); /* NULL: out of memory */
struct uar_frame *uar_frame_ref(struct uar_frame *f);
void uar_frame_unref(struct uar_frame *f); /* NULL is fine */

struct uar_http_stream_events {
	/* There is room again after a send was refused. */
	void (*writable)(void *ctx);
	/* The peer went away or was cut for making no progress; the stream is gone. */
	void (*closed)(void *ctx);
	void *ctx;
};
/* Answers r with 200 and an open body (chunked). The request is over; on an error
 * it is not and must be answered otherwise (UAR_EMETHOD: HEAD has no body). */
UAR_MUST_CHECK uar_err uar_http_stream_begin(struct uar_http_request *r, const char *content_type,
					     const struct uar_http_stream_events *events,
					     struct uar_http_stream **out);
/* Answers HEAD with the head that the stream would have. */
void uar_http_stream_head(struct uar_http_request *r, const char *content_type);
/* The same for a body whose length is known: status, type and headers are those of
 * `head`, the frames are sent bare, and exactly `length` bytes must come before the
 * end. HEAD is answered at once, and *out is NULL. */
UAR_MUST_CHECK uar_err uar_http_body_begin(struct uar_http_request *r,
					   const struct uar_http_response *head, uint64_t length,
					   const struct uar_http_stream_events *events,
					   struct uar_http_stream **out);
/* The body cannot be completed: cuts the connection, so that the reader notices.
 * `closed` is not called. */
void uar_http_stream_cut(struct uar_http_stream *s);
/* UAR_EBUSY: more than the cap waits already; nothing was taken, `writable` follows.
 * UAR_EEOF: the peer is gone; `closed` follows. */
/* Will a frame be taken? UAR_EBUSY: not now, on_writable follows; UAR_EEOF: the peer is gone. */
UAR_MUST_CHECK uar_err uar_http_stream_room(struct uar_http_stream *s);
UAR_MUST_CHECK uar_err uar_http_stream_send(struct uar_http_stream *s, struct uar_frame *f);
/* Sends a last frame, whatever waits already, and ends the body; `closed` is not called. */
void uar_http_stream_end_with(struct uar_http_stream *s, struct uar_frame *f);
/* What follows in this turn goes out together at its end: for a last frame and
 * the end of the body. */
void uar_http_stream_hold(struct uar_http_stream *s);
/* Ends the body properly after what was sent; `closed` is not called. */
void uar_http_stream_end(struct uar_http_stream *s);

struct uar_http_options {
	const char *listen;	  /* "127.0.0.1:0", "[::1]:8080", "unix:/path" */
	size_t max_connections;	  /* 0: UAR_LIMIT_HTTP_CONNECTIONS */
	size_t max_per_address;	  /* 0: no bound of its own */
	int64_t head_timeout_us;  /* a head must be complete after it; 0: 10 s */
	int64_t body_timeout_us;  /* so must a body, or 64 KiB more of it; 0: 30 s */
	int64_t idle_timeout_us;  /* between two requests; 0: 75 s */
	int64_t stall_timeout_us; /* a reader that takes nothing is cut; 0: 60 s */
	struct uar_http_handler handler;
};
UAR_MUST_CHECK uar_err uar_http_create(struct uar_loop *loop, const struct uar_http_options *o,
				       struct uar_http **out, struct uar_error *error);
/* What was bound: "127.0.0.1:43117"; useful when port 0 was asked for. */
const char *uar_http_address(const struct uar_http *h);
/* Where this machine reaches it: the same, but loopback for 0.0.0.0 and [::], which are no
 * address to call. */
const char *uar_http_local_address(const struct uar_http *h);
/* Stops listening. Connections without a whole head close, a request whose body
 * is incomplete is refused, answers under way are finished, streams are the
 * handler's to end. `done` fires when no connection is left. */
void uar_http_drain(struct uar_http *h, void (*done)(void *ctx), void *ctx);
/* Closes whatever is open; no callback follows, requests and streams are gone. */
void uar_http_destroy(struct uar_http *h);

struct uar_http_stats {
	uint64_t accepted, requests, refused, bytes_in, bytes_out;
	size_t open, streams;
};
void uar_http_stats(const struct uar_http *h, struct uar_http_stats *out);

#endif
