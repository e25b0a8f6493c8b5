/* answer.c - response heads, problems and streams. */
#include "http/http_int.h"
#include "http/limits.h"

#include <assert.h>
#include <sys/socket.h>

static const struct {
	int status;
	const char *reason;
} reasons[] = {
	{ 200, "OK" },
	{ 201, "Created" },
	{ 202, "Accepted" },
	{ 204, "No Content" },
	{ 206, "Partial Content" },
	{ 301, "Moved Permanently" },
	{ 302, "Found" },
	{ 303, "See Other" },
	{ 304, "Not Modified" },
	{ 307, "Temporary Redirect" },
	{ 308, "Permanent Redirect" },
	{ 400, "Bad Request" },
	{ 401, "Unauthorized" },
	{ 402, "Payment Required" },
	{ 403, "Forbidden" },
	{ 404, "Not Found" },
	{ 405, "Method Not Allowed" },
	{ 406, "Not Acceptable" },
	{ 408, "Request Timeout" },
	{ 409, "Conflict" },
	{ 410, "Gone" },
	{ 411, "Length Required" },
	{ 412, "Precondition Failed" },
	{ 413, "Content Too Large" },
	{ 414, "URI Too Long" },
	{ 415, "Unsupported Media Type" },
	{ 416, "Range Not Satisfiable" },
	{ 417, "Expectation Failed" },
	{ 422, "Unprocessable Content" },
	{ 428, "Precondition Required" },
	{ 429, "Too Many Requests" },
	{ 431, "Request Header Fields Too Large" },
	{ 500, "Internal Server Error" },
	{ 501, "Not Implemented" },
	{ 502, "Bad Gateway" },
	{ 503, "Service Unavailable" },
	{ 504, "Gateway Timeout" },
	{ 505, "HTTP Version Not Supported" },
	{ 507, "Insufficient Storage" },
};

static const char *reason_of(int status)
{
	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "Unknown";
}

/* --- heads ------------------------------------------------------------------------------------ */

/* A head is put together in the server's scratch. What lines of ours take is bounded
 * by UAR_LIMIT_HTTP_ANSWER_OWN; a caller's are measured before. */

static char *put(char *p, uar_str s)
{
	if (s.n)
		memcpy(p, s.p, s.n);
	return p + s.n;
}

static char *put_number(char *p, uint64_t v)
{
	char digits[UAR_U64_DIGITS], *end = digits + sizeof digits;
	size_t n = uar_digits(end, v);

	return put(p, uar_str_n(end - n, n));
}

static char *put_field(char *p, uar_str name, uar_str value)
{
	p = put(put(p, name), UAR_STR(": "));
	return put(put(p, value), UAR_STR("\r\n"));
}

/* The lines that all answers of a second have, made once in it. */
static uar_str stamp(struct uar_http *h)
{
	static const char days[] = "ThuFriSatSunMonTueWed";
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	int64_t now = uar_clock_wall(h->sched->clock) / 1000000;
	int64_t days_passed = (now - (now < 0 ? 86399 : 0)) / 86400; /* clocks may be wrong */
	int64_t day = (days_passed % 7 + 7) % 7;
	char text[UAR_TIME_TEXT + 1];
	int month;

	if (now == h->stamp.second)
		return uar_str_n(h->stamp.text, h->stamp.n);
	h->stamp.second = now;
	uar_time_format(now * 1000000, text); /* 2026-01-02T03:04:05... */
	month = (text[5] - '0') * 10 + text[6] - '0' - 1;
	h->stamp.n =
		(size_t)snprintf(h->stamp.text, sizeof h->stamp.text,
				 "X-Content-Type-Options: nosniff\r\n"
				 "Date: %.3s, %.2s %.3s %.4s %.8s GMT\r\n",
				 days + day * 3, text + 8, months + month * 3, text, text + 11);
	return uar_str_n(h->stamp.text, h->stamp.n);
}

/* The end of what was put. */
static char *begin_head(struct uar_http *h, int status, const char *content_type)
{
	char *p = put(h->answer_head.bytes, UAR_STR("HTTP/1.1 "));

	p = put(put_number(p, (unsigned)status), UAR_STR(" "));
	p = put(put(p, uar_str_c(reason_of(status))), UAR_STR("\r\n"));
	p = put(p, stamp(h));
	return content_type ? put_field(p, UAR_STR("Content-Type"), uar_str_c(content_type)) : p;
}

static void end_head(struct uar_http_stream *c, char *p)
{
	struct uar_http *h = c->server;

	/* What is left of a body cannot be told from the next request. */
	if (h->drain.on || (c->x && c->x->r.streamed && !c->x->complete))
		c->keep_alive = false;
	if (!c->keep_alive)
		p = put(p, UAR_STR("Connection: close\r\n"));
	if (c->x && c->x->r.allow_origin.n &&
	    c->x->r.allow_origin.n <= UAR_LIMIT_HTTP_ALLOW_ORIGIN) {
		p = put_field(p, UAR_STR("Access-Control-Allow-Origin"), c->x->r.allow_origin);
		p = put(p, UAR_STR("Access-Control-Expose-Headers: Location, Retry-After, "
				   "Idempotent-Replayed\r\nVary: Origin\r\n"));
	}
	p = put(p, UAR_STR("\r\n"));
	h->answer_head.n = (size_t)(p - h->answer_head.bytes);
	assert(h->answer_head.n <= sizeof h->answer_head.bytes);
}

static uar_str head_text(const struct uar_http *h)
{
	return uar_str_n(h->answer_head.bytes, h->answer_head.n);
}

static bool on_one_line(uar_str s)
{
	return uar_str_find(s, '\r') == s.n && uar_str_find(s, '\n') == s.n &&
	       uar_str_find(s, 0) == s.n;
}

/* Do the caller's fields make a head, and one that has room? */
static bool is_sound(const struct uar_http_response *a)
{
	uar_str type = uar_str_c(a->content_type);
	size_t n = UAR_LIMIT_HTTP_ANSWER_OWN + type.n;
	bool ok = on_one_line(type);

	for (size_t i = 0; i < a->header_count; i++) {
		const struct uar_http_header *f = &a->headers[i];

		ok = ok && on_one_line(f->name) && on_one_line(f->value);
		n += f->name.n + f->value.n + 4;
	}
	return ok && n <= UAR_LIMIT_HTTP_ANSWER_HEAD;
}

static bool has_body(int status)
{
	return status >= 200 && status != 204 && status != 304;
}

/* The head of a whole answer. False: the caller's fields make no valid head. */
static bool put_head(struct uar_http_stream *c, const struct uar_http_response *a, uint64_t length)
{
	char *p;

	if (!is_sound(a))
		return false;
	p = begin_head(c->server, a->status, a->content_type);
	if (has_body(a->status)) {
		p = put_number(put(p, UAR_STR("Content-Length: ")), length);
		p = put(p, UAR_STR("\r\n"));
	}
	if (a->no_store)
		p = put(p, UAR_STR("Cache-Control: no-store\r\n"));
	for (size_t i = 0; i < a->header_count; i++)
		p = put_field(p, a->headers[i].name, a->headers[i].value);
	end_head(c, p);
	return true;
}

/* Writes the head that was put, and the body. The exchange, in whose memory the
 * body may lie, is given back after that. */
static void send_ready(struct uar_http_stream *c, uar_str body)
{
	c->state = CONN_FLUSH;
	uar_http_set_due(c, DUE_NONE);
	uar_http_out_bytes(c, head_text(c->server), body);
	uar_http_exchange_give(c->server, c->x);
	c->x = NULL;
	if (c->out)
		uar_http_set_due(c, DUE_STALL);
	else if (!c->broken)
		uar_http_conn_answered(c);
}

static void send_answer(struct uar_http_stream *c, const struct uar_http_response *a,
			bool with_body)
{
	static const struct uar_http_response fault = { .status = 500, .close = true };

	if (a->close)
		c->keep_alive = false;
	if (!put_head(c, a, a->content_type ? a->body.n : 0)) {
		c->keep_alive = false;
		a = &fault;
		put_head(c, a, 0);
	}
	with_body = with_body && a->content_type && has_body(a->status);
	send_ready(c, with_body ? a->body : UAR_STR(""));
}

void uar_http_respond(struct uar_http_request *r, const struct uar_http_response *response)
{
	struct exchange *x = (struct exchange *)(void *)r;

	if (r->answer)
		r->answer(r, response);
	else
		send_answer(x->conn, response, r->method != UAR_HTTP_HEAD);
}

/* --- problems -------------------------------------------------------------------- */

static void put_json_text(struct uar_buf *b, const char *text)
{
	bool utf8 = uar_utf8_valid(uar_str_c(text));

	uar_buf_add_char(b, '"');
	for (const char *p = text; *p; p++) {
		unsigned char ch = (unsigned char)*p;

		if (ch == '"' || ch == '\\')
			uar_buf_add_char(b, '\\');
		if (ch < 0x20 || ch == 0x7f)
			uar_buf_printf(b, "\\u%04x", ch);
		else
			uar_buf_add_char(b, ch >= 0x80 && !utf8 ? '?' : *p);
	}
	uar_buf_add_char(b, '"');
}

static void put_problem(struct uar_buf *b, uar_err code, const struct uar_error *error,
			uar_str more)
{
	int status = uar_err_http(code);
	bool detailed = error && error->text[0];

	uar_buf_clear(b);
	uar_buf_add_str(b, UAR_STR("{\"type\":\"about:blank\",\"title\":"));
	put_json_text(b, reason_of(status));
	uar_buf_printf(b, ",\"status\":%d,\"code\":", status);
	put_json_text(b, uar_err_token(code));
	uar_buf_add_str(b, UAR_STR(",\"detail\":"));
	put_json_text(b, detailed ? error->text : uar_err_text(code));
	if (error && error->where[0]) {
		uar_buf_add_str(b, UAR_STR(",\"where\":"));
		put_json_text(b, error->where);
	}
	uar_buf_add_str(b, more);
	uar_buf_add_char(b, '}');
}

/* A route may have a form of its own. */
static void put_body(struct uar_buf *text, uar_err code, const struct uar_error *error,
		     const struct uar_http_request *r, uar_str more)
{
	struct uar_error plain = { .code = code };

	uar_buf_clear(text);
	if (r && r->problem)
		r->problem(text, uar_err_http(code), uar_err_token(code),
			   error && error->text[0] ? error : &plain);
	else
		put_problem(text, code, error, more);
}

static void send_problem(struct uar_http_stream *c, uar_err code, const struct uar_error *error,
			 const struct uar_http_request *r, uar_str more)
{
	struct uar_buf long_text = uar_buf_make(more.n + UAR_LIMIT_HTTP_PROBLEM);
	struct uar_buf *text = more.n ? &long_text : &c->server->problem;
	static const struct uar_http_header retry = { { "Retry-After", 11 }, { "1", 1 } };
	static const struct uar_http_header login = { { "WWW-Authenticate", 16 }, { "Bearer", 6 } };
	int status = uar_err_http(code);
	struct uar_http_header extra;
	struct uar_http_response a = { .status = status,
				       .content_type = "application/problem+json",
				       .headers = &extra,
				       .header_count = 1,
				       .no_store = true };

	if (status == 401)
		extra = login;
	else if (status == 405 && r && r->allow.n)
		extra = (struct uar_http_header){ UAR_STR("Allow"), r->allow };
	else if (uar_err_retryable(code) && (status == 429 || status == 503))
		extra = retry;
	else
		a.header_count = 0;
	put_body(text, code, error, r, more);
	if (text->err && text == &long_text) /* no memory: without more */
		put_body(text = &c->server->problem, code, error, r, UAR_STR_NONE);
	if (r && r->problem)
		a.content_type = r->problem_type ? r->problem_type : "application/json";
	a.body = uar_buf_str(text);
	send_answer(c, &a, !r || r->method != UAR_HTTP_HEAD);
	uar_buf_fini(&long_text);
}

/* Without memory the body is empty. */
static void answer_problem(struct uar_http_request *r, uar_err code, const struct uar_error *error,
			   uar_str more)
{
	struct uar_buf text = uar_buf_make(more.n + UAR_LIMIT_HTTP_PROBLEM);
	struct uar_http_response a = { .status = uar_err_http(code),
				       .content_type = "application/problem+json" };

	put_body(&text, code, error, r, more);
	a.body = text.err ? UAR_STR_NONE : uar_buf_str(&text);
	r->answer(r, &a);
	uar_buf_fini(&text);
}

void uar_http_problem(struct uar_http_request *r, uar_err code, const struct uar_error *error)
{
	uar_http_problem_more(r, code, error, UAR_STR_NONE);
}

void uar_http_problem_more(struct uar_http_request *r, uar_err code, const struct uar_error *error,
			   uar_str more)
{
	struct exchange *x = (struct exchange *)(void *)r;

	if (r->answer)
		answer_problem(r, code, error, more);
	else
		send_problem(x->conn, code, error, r, more);
}

void uar_http_refuse(struct uar_http_stream *c, uar_err code, const struct uar_error *error)
{
	c->server->stats.refused++;
	c->keep_alive = false;
	send_problem(c, code, error, NULL, UAR_STR_NONE);
}

/* --- streams --------------------------------------------------------------------- */

static uar_err put_stream_head(struct uar_http_stream *c, const char *content_type)
{
	char *p;

	if (strlen(content_type) > UAR_LIMIT_HTTP_ANSWER_HEAD - UAR_LIMIT_HTTP_ANSWER_OWN)
		return UAR_ETOOBIG;
	p = begin_head(c->server, 200, content_type);
	p = put(p, UAR_STR("Cache-Control: no-store\r\nX-Accel-Buffering: no\r\n"));
	if (!c->http10)
		p = put(p, UAR_STR("Transfer-Encoding: chunked\r\n"));
	end_head(c, p);
	return UAR_OK;
}

void uar_http_stream_head(struct uar_http_request *r, const char *content_type)
{
	struct uar_http_stream *c = ((struct exchange *)(void *)r)->conn;

	if (put_stream_head(c, content_type))
		uar_http_problem(r, UAR_EINTERNAL, NULL);
	else
		send_ready(c, UAR_STR(""));
}

/* The head is written; what follows comes from outside. */
static struct uar_http_stream *begin_stream(struct uar_http_stream *c,
					    const struct uar_http_stream_events *events, bool bare)
{
	c->state = CONN_STREAM;
	c->events = *events;
	c->flow.wants_room = false;
	c->flow.bare = bare;
	c->server->stats.streams++;
	uar_http_set_due(c, DUE_NONE);
	uar_http_out_cork(c, head_text(c->server));
	uar_http_exchange_give(c->server, c->x);
	c->x = NULL;
	if (!c->running) /* it may have been held back while it waited */
		uar_http_conn_poll(c, true, c->writing);
	return c;
}

uar_err uar_http_stream_begin(struct uar_http_request *r, const char *content_type,
			      const struct uar_http_stream_events *events,
			      struct uar_http_stream **out)
{
	struct uar_http_stream *c = ((struct exchange *)(void *)r)->conn;
	int kernel = UAR_LIMIT_HTTP_STREAM_SOCKET;
	uar_err e;

	if (r->answer)
		return UAR_ENOTIMPL;
	if (r->method == UAR_HTTP_HEAD)
		return UAR_EMETHOD;
	e = put_stream_head(c, content_type);
	if (e)
		return e;
	/* Else a reader that stops would let the kernel collect megabytes for it. */
	if (!c->flow.bounded)
		c->flow.bounded = !setsockopt(c->fd, SOL_SOCKET, SO_SNDBUF, &kernel, sizeof kernel);
	*out = begin_stream(c, events, false);
	return UAR_OK;
}

uar_err uar_http_body_begin(struct uar_http_request *r, const struct uar_http_response *head,
			    uint64_t length, const struct uar_http_stream_events *events,
			    struct uar_http_stream **out)
{
	struct uar_http_stream *c = ((struct exchange *)(void *)r)->conn;

	if (r->answer)
		return UAR_ENOTIMPL;
	if (!put_head(c, head, length))
		return UAR_EINTERNAL;
	if (r->method != UAR_HTTP_HEAD) {
		*out = begin_stream(c, events, true);
		return UAR_OK;
	}
	send_ready(c, UAR_STR(""));
	*out = NULL;
	return UAR_OK;
}

uar_err uar_http_stream_room(struct uar_http_stream *s)
{
	if (s->broken)
		return UAR_EEOF;
	if (!uar_http_out_full(s))
		return UAR_OK;
	s->flow.wants_room = true;
	return UAR_EBUSY;
}

uar_err uar_http_stream_send(struct uar_http_stream *s, struct uar_frame *f)
{
	uar_err e = uar_http_stream_room(s);

	if (e)
		return e;
	uar_http_out_frame(s, f);
	return s->broken ? UAR_EEOF : UAR_OK;
}

void uar_http_stream_end_with(struct uar_http_stream *s, struct uar_frame *f)
{
	if (!s->broken)
		uar_http_out_frame(s, f);
	uar_http_stream_end(s);
}

void uar_http_stream_hold(struct uar_http_stream *s)
{
	if (s->broken || s->out)
		return;
	s->flow.corked = true;
	uar_http_make_ready(s);
}

void uar_http_stream_end(struct uar_http_stream *s)
{
	s->state = CONN_FLUSH;
	s->server->stats.streams--;
	if (!s->http10 && !s->flow.bare)
		uar_http_out_frame(s, s->server->last_chunk);
	if (s->out)
		uar_http_set_due(s, DUE_STALL);
	else if (!s->broken)
		uar_http_conn_answered(s);
}

void uar_http_stream_cut(struct uar_http_stream *s)
{
	uar_http_conn_close(s);
}
