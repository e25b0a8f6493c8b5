/* api_client.c - sockets below, answers above; see api_client.h. */
#include "app/api_client.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "app/http_answer.h"
#include "app/limits.h"
#include "app/text.h"
#include "http/http.h"
#include "http/limits.h"
#include "json/json.h"

enum { CONNECT_MS = 5000, ANSWER_MS = 30000, STREAM_MS = 60000, ERROR_BODY = 65536 };

/* --- where --------------------------------------------------------------------- */
static bool copy_part(char *out, size_t size, uar_str s)
{
	if (s.n >= size)
		return false;
	memcpy(out, s.n ? s.p : "", s.n);
	out[s.n] = '\0';
	return true;
}

static bool take_authority(struct uar_api *api, uar_str authority)
{
	struct uar_address a;

	if (!uar_address_read_host(authority, &a) || (a.has_port && !a.port))
		return false;
	api->local = uar_address_is_local(&a);
	snprintf(api->port, sizeof api->port, "%u", a.has_port ? a.port : 80U);
	return copy_part(api->host, sizeof api->host, uar_address_bare(&a));
}

static bool split_url(struct uar_api *api, uar_str url)
{
	uar_str rest = uar_str_from(url, 7), authority;
	size_t slash = uar_str_find(rest, '/');

	authority = uar_str_n(rest.p, slash);
	rest = uar_str_from(rest, slash);
	while (rest.n && rest.p[rest.n - 1] == '/')
		rest.n--;
	return uar_str_find(authority, '@') == authority.n && take_authority(api, authority) &&
	       copy_part(api->prefix, sizeof api->prefix, rest);
}

/* The URL for messages is made anew: what was given could steer a terminal. */
static bool take_socket(struct uar_api *api, uar_str path)
{
	struct uar_buf url = uar_buf_make(sizeof api->url);
	struct uar_arena a;
	bool good;

	uar_arena_init(&a, 0);
	good = uar_http_decode(&a, path, &path) == UAR_OK && path.n &&
	       copy_part(api->unix_path, sizeof api->unix_path, path);
	if (good)
		uar_api_socket_url(&url, path);
	api->local = good;
	good = good && !url.err && copy_part(api->url, sizeof api->url, uar_buf_str(&url));
	uar_buf_fini(&url);
	uar_arena_fini(&a);
	return good;
}

static uar_err take_url(struct uar_api *api, uar_str url, struct uar_error *error)
{
	if (uar_str_starts(url, UAR_STR("unix:")))
		return take_socket(api, uar_str_from(url, 5))
			       ? UAR_OK
			       : uar_error_set(error, UAR_EINVALID,
					       "unix: takes the path of a socket, 1 to %zu bytes, "
					       "a %% in it written as %%25",
					       sizeof api->unix_path - 1);
	if (!uar_str_is_visible(url) || !copy_part(api->url, sizeof api->url, url))
		return uar_error_set(error, UAR_EINVALID, "the server's URL is not valid");
	if (uar_str_starts(url, UAR_STR("https://")))
		return uar_error_set(error, UAR_EINVALID,
				     "%s: this client speaks http:// and unix: only", api->url);
	if (!uar_str_starts(url, UAR_STR("http://")) || !split_url(api, url))
		return uar_error_set(error, UAR_EINVALID,
				     "%s is not a server's URL, expected http://HOST:PORT or "
				     "unix:PATH",
				     api->url);
	return UAR_OK;
}

uar_err uar_api_init(struct uar_api *api, uar_str url, uar_str token, struct uar_error *error)
{
	struct uar_api made = { .connect_ms = CONNECT_MS,
				.answer_ms = ANSWER_MS,
				.stream_ms = STREAM_MS };
	uar_err e = take_url(&made, url, error);

	if (e)
		return e;
	if (!uar_str_is_visible(token) || !copy_part(made.token, sizeof made.token, token))
		return uar_error_set(error, UAR_EINVALID, "the token is not valid");
	*api = made;
	return UAR_OK;
}

/* Besides unreserved characters `also` stays as it is. */
static void escape(struct uar_buf *out, uar_str s, unsigned char also)
{
	static const char hex[] = "0123456789ABCDEF";

	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		char escaped[3] = { '%', hex[c >> 4], hex[c & 15] };

		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		    c == '-' || c == '_' || c == '.' || c == '~' || c == also)
			uar_buf_add_char(out, (char)c);
		else
			uar_buf_add(out, escaped, 3);
	}
}

void uar_api_escape(struct uar_buf *out, uar_str s)
{
	escape(out, s, '~');
}

void uar_api_socket_url(struct uar_buf *out, uar_str path)
{
	uar_buf_add_str(out, UAR_STR("unix:"));
	escape(out, path, '/');
}

/* --- connection ------------------------------------------------------------------ */
static uar_err given_up(struct uar_error *error)
{
	return uar_error_set(error, UAR_ECANCELED, "interrupted");
}

static uar_err not_reached(const struct uar_api *api, int e, struct uar_error *error)
{
	char reason[80];

	if (e == ECANCELED)
		return given_up(error);
	if (e == ECONNREFUSED || e == ENOENT)
		return uar_error_set(error, UAR_ENET,
				     "no server is running at %s; start one with `uar serve`",
				     api->url);
	return uar_error_set(error, UAR_ENET, "cannot reach %s: %s", api->url,
			     strerror_r(e, reason, sizeof reason));
}

/* 0 and a socket, or errno. The socket stays non-blocking. */
static int connect_to(const struct uar_api *api, const struct sockaddr *address, socklen_t n,
		      int *out_fd)
{
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int e = 0;
	socklen_t size = sizeof e;

	if (fd < 0)
		return errno;
	if (connect(fd, address, n))
		e = errno;
	if (e == EINPROGRESS || e == EAGAIN) {
		e = uar_beside_wait(api->beside, fd, POLLOUT, api->connect_ms);
		if (!e && getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &size))
			e = errno;
	}
	if (e)
		close(fd);
	else
		*out_fd = fd;
	return e;
}

static uar_err connect_unix(const struct uar_api *api, int *out_fd, struct uar_error *error)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int e;

	memcpy(address.sun_path, api->unix_path, sizeof address.sun_path);
	e = connect_to(api, (const struct sockaddr *)&address, sizeof address, out_fd);
	return e ? not_reached(api, e, error) : UAR_OK;
}

static uar_err connect_tcp(const struct uar_api *api, int *out_fd, struct uar_error *error)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list = NULL;
	int e = getaddrinfo(api->host, api->port, &hints, &list);

	if (e)
		return uar_error_set(error, UAR_ENET, "cannot reach %s: %s", api->url,
				     gai_strerror(e));
	e = ECONNREFUSED;
	for (struct addrinfo *at = list; at && e && e != ECANCELED; at = at->ai_next)
		e = connect_to(api, at->ai_addr, at->ai_addrlen, out_fd);
	freeaddrinfo(list);
	return e ? not_reached(api, e, error) : UAR_OK;
}

/* A peer that answers without reading everything is fine: its answer counts. */
static uar_err send_all(const struct uar_api *api, int fd, uar_str bytes, struct uar_error *error)
{
	while (bytes.n) {
		ssize_t n = send(fd, bytes.p, bytes.n, MSG_NOSIGNAL);
		int e = n < 0 ? errno : 0;

		if (n >= 0)
			bytes = uar_str_from(bytes, (size_t)n);
		else if (e == EPIPE || e == ECONNRESET)
			return UAR_OK;
		else if (e == EAGAIN)
			e = uar_beside_wait(api->beside, fd, POLLOUT, api->answer_ms);
		else if (e != EINTR)
			return uar_error_set(error, UAR_EEOF, "the connection broke");
		if (e == ECANCELED)
			return given_up(error);
		if (e == ETIMEDOUT)
			return uar_error_set(error, UAR_ETIMEOUT,
					     "the server takes nothing any more");
	}
	return UAR_OK;
}

static void put_head(const struct uar_api *api, const struct uar_api_request *r,
		     struct uar_buf *out)
{
	bool v6 = strchr(api->host, ':') != NULL;

	uar_buf_printf(out, "%s %s%s HTTP/1.1\r\n", r->method, api->prefix, r->path);
	if (api->unix_path[0])
		uar_buf_printf(out, "Host: localhost\r\n");
	else
		uar_buf_printf(out, "Host: %s%s%s:%s\r\n", v6 ? "[" : "", api->host, v6 ? "]" : "",
			       api->port);
	uar_buf_printf(out, "User-Agent: uar/%s\r\nConnection: close\r\n", UAR_VERSION);
	if (api->token[0])
		uar_buf_printf(out, "Authorization: Bearer %s\r\n", api->token);
	if (r->either)
		uar_buf_printf(out, "Accept: application/json, text/event-stream\r\n");
	if (r->last_event_id.n)
		uar_buf_printf(out, "Last-Event-ID: %.*s\r\n", UAR_FMT(r->last_event_id));
	if (r->span)
		uar_buf_printf(out, "Range: bytes=%llu-%llu\r\n", (unsigned long long)r->offset,
			       (unsigned long long)(r->offset + r->span - 1));
	if (r->body.p)
		uar_buf_printf(out, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
			       r->body.n);
	else if (strcmp(r->method, "GET"))
		uar_buf_printf(out, "Content-Length: 0\r\n");
	uar_buf_printf(out, "\r\n");
}

static uar_err send_request(const struct uar_api *api, const struct uar_api_request *r, int fd,
			    struct uar_error *error)
{
	struct uar_buf head = uar_buf_make(2 * UAR_LIMIT_HTTP_HEAD);
	uar_err e;

	put_head(api, r, &head);
	e = head.err ? uar_error_set(error, head.err, "the request is too large")
		     : send_all(api, fd, uar_buf_str(&head), error);
	if (!e && r->body.n)
		e = send_all(api, fd, r->body, error);
	if (head.p)
		explicit_bzero(head.p, head.n);
	uar_buf_fini(&head);
	return e;
}

/* --- answers ------------------------------------------------------------------------ */
/* What the body is for depends on the status, which comes first. */
struct receiver {
	struct uar_answer answer;
	struct uar_buf *whole;	    /* of a call */
	struct uar_sse_parser *sse; /* of a stream */
	bool either;		    /* JSON goes to `whole` */
	void (*opened)(void *ctx);  /* told once, then NULL */
	void *ctx;
	struct uar_buf problem; /* of an answer that is not 2xx */
};

static bool is_json(const struct receiver *r)
{
	return r->either && strcmp(r->answer.content_type, "application/json") == 0;
}

static uar_err receive(void *ctx, uar_str bytes)
{
	struct receiver *r = ctx;

	if (is_json(r)) {
		uar_buf_add_str(r->whole, bytes);
		return r->whole->err;
	}
	if (r->answer.status / 100 != 2) {
		if (r->problem.n + bytes.n <= ERROR_BODY)
			uar_buf_add_str(&r->problem, bytes);
		return UAR_OK;
	}
	if (r->sse)
		return uar_sse_parser_feed(r->sse, bytes);
	uar_buf_add_str(r->whole, bytes);
	return r->whole->err;
}

static void tell_opened(struct receiver *r)
{
	if (!r->opened || !uar_answer_in_body(&r->answer) || r->answer.status / 100 != 2)
		return;
	r->opened(r->ctx);
	r->opened = NULL;
}

static uar_err read_answer(const struct uar_api *api, int fd, struct receiver *r,
			   struct uar_error *error)
{
	char bytes[16384];
	uar_err e = UAR_OK;

	while (!e && r->answer.state != UAR_ANSWER_DONE) {
		bool streaming = r->sse && uar_answer_in_body(&r->answer);
		int limit = streaming ? api->stream_ms : api->answer_ms;
		int waited = uar_beside_wait(api->beside, fd, POLLIN, limit);
		ssize_t n;

		if (waited == ECANCELED)
			return given_up(error);
		if (waited)
			return uar_error_set(error, streaming ? UAR_ETIMEOUT : UAR_EBUSY,
					     "%s does not answer: nothing came for %g seconds",
					     api->url, limit / 1000.0);
		n = recv(fd, bytes, sizeof bytes, 0);
		if (n > 0) {
			e = uar_answer_feed(&r->answer, uar_str_n(bytes, (size_t)n), error);
			tell_opened(r);
		} else if (n == 0) {
			return uar_answer_end(&r->answer, error);
		} else if (errno != EINTR && errno != EAGAIN) {
			return uar_error_set(error, UAR_EEOF, "the connection to %s broke",
					     api->url);
		}
	}
	return e;
}

static uar_err code_of(int status)
{
	static const struct {
		int status;
		uar_err code;
	} rows[] = {
		{ 401, UAR_EUNAUTHORIZED }, { 403, UAR_EFORBIDDEN }, { 404, UAR_ENOTFOUND },
		{ 409, UAR_ECONFLICT },	    { 413, UAR_ETOOBIG },    { 429, UAR_ERATELIMIT },
		{ 503, UAR_EBUSY },	    { 507, UAR_EDISKFULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].status == status)
			return rows[i].code;
	return status / 100 == 4 ? UAR_EINVALID : UAR_EINTERNAL;
}

/* The row with that token, for who shows it; `e` when it has none of its own. */
static uar_err named(uar_str token, uar_err e)
{
	for (int i = UAR_ERR_FIRST_ + 1; i < UAR_ERR_END_ && !uar_str_is(token, uar_err_token(e));
	     i++)
		if (uar_str_is(token, uar_err_token((uar_err)i)))
			e = (uar_err)i;
	return e;
}

/* application/problem+json: {"code","detail","title","where"} */
static uar_err problem_of(const struct uar_api *api, const struct receiver *r,
			  struct uar_error *error)
{
	struct uar_arena a;
	const struct uar_json *root = NULL;
	struct uar_buf line = uar_buf_make(UAR_LIMIT_ERROR_TEXT);
	uar_str code, detail, where;
	uar_err e = code_of(r->answer.status);

	uar_arena_init(&a, 0);
	if (!r->problem.n ||
	    uar_json_parse(uar_buf_str(&r->problem), NULL, &a, &root, NULL) != UAR_OK)
		root = NULL;
	code = uar_json_text(root, "code");
	detail = uar_json_str(uar_json_get(root, UAR_STR("detail")), uar_json_text(root, "title"));
	where = uar_json_text(root, "where");
	uar_text_brief(&line, code, 60); /* it goes to a terminal */
	uar_buf_add_str(&line, where.n ? UAR_STR(": ") : UAR_STR(""));
	uar_text_brief(&line, where, 120);
	uar_buf_add_str(&line, detail.n ? UAR_STR(": ") : UAR_STR(""));
	uar_text_brief(&line, detail, 240);
	if (code.n)
		uar_error_set(error, named(code, e), "%.*s", UAR_FMT(uar_buf_str(&line)));
	else
		uar_error_set(error, e, "%s answered with status %d%s", api->url, r->answer.status,
			      e == UAR_EUNAUTHORIZED ? ": a valid token is required" : "");
	uar_buf_fini(&line);
	uar_arena_fini(&a);
	return e;
}

static uar_err judge(const struct uar_api *api, const struct receiver *r, struct uar_error *error)
{
	if (is_json(r))
		return UAR_OK;
	if (r->answer.status / 100 != 2)
		return problem_of(api, r, error);
	if (r->sse && strcmp(r->answer.content_type, "text/event-stream"))
		return uar_error_set(error, UAR_EMEDIATYPE,
				     "%s answered with something that is no event stream",
				     api->url);
	return UAR_OK;
}

static uar_err exchange(const struct uar_api *api, const struct uar_api_request *request,
			struct receiver *r, struct uar_error *error)
{
	int fd = -1;
	uar_err e =
		api->unix_path[0] ? connect_unix(api, &fd, error) : connect_tcp(api, &fd, error);

	if (e)
		return e;
	uar_answer_init(&r->answer, receive, r);
	r->problem = uar_buf_make(ERROR_BODY);
	e = send_request(api, request, fd, error);
	if (!e)
		e = read_answer(api, fd, r, error);
	if (!e)
		e = judge(api, r, error);
	uar_buf_fini(&r->problem);
	uar_answer_fini(&r->answer);
	close(fd);
	return e;
}

uar_err uar_api_call(const struct uar_api *api, const struct uar_api_request *request,
		     struct uar_buf *out, struct uar_error *error)
{
	struct receiver r = { .whole = out };

	return exchange(api, request, &r, error);
}

uar_err uar_api_stream(const struct uar_api *api, const struct uar_api_request *request,
		       uar_sse_fn *fn, void *ctx, struct uar_error *error)
{
	struct uar_sse_parser sse;
	struct uar_buf whole = uar_buf_make(UAR_LIMIT_CLI_LINE);
	struct receiver r = { .whole = &whole,
			      .sse = &sse,
			      .either = request->either,
			      .opened = request->opened,
			      .ctx = ctx };
	uar_err e;

	uar_sse_parser_init(&sse, UAR_LIMIT_CLI_LINE, fn, ctx);
	e = exchange(api, request, &r, error);
	if (!e && whole.n)
		e = fn(ctx, &(struct uar_sse_event){ .event = UAR_STR("message"),
						     .data = uar_buf_str(&whole) });
	uar_sse_parser_fini(&sse);
	uar_buf_fini(&whole);
	return e;
}
