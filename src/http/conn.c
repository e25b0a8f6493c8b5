/* conn.c - one connection: reads requests in order, hands them over, closes.
 *
 * Bytes are read into the server's one buffer and used from there; a connection
 * keeps only what it cannot use yet, so an idle one owns no buffer at all. */
#include "http/http_int.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "http/limits.h"
#include "loop/loop.h"

static void on_poll(uv_poll_t *poll, int status, int events);

/* --- opening and closing ------------------------------------------------------------ */

void uar_http_conn_poll(struct uar_http_stream *c, bool reading, bool writing)
{
	int want = (reading ? UV_READABLE : 0) | (writing ? UV_WRITABLE : 0);

	if (c->state == CONN_CLOSED || (c->reading == reading && c->writing == writing))
		return;
	c->reading = reading;
	c->writing = writing;
	if (want)
		uv_poll_start(&c->poll, want, on_poll);
	else
		uv_poll_stop(&c->poll);
}

struct uar_http_stream *uar_http_conn_open(struct uar_http *h, int fd, struct address *a,
					   const char *peer)
{
	size_t n = strlen(peer);
	struct uar_http_stream *c = uar_zalloc(sizeof *c + n + 1);

	if (!c || uv_poll_init(uar_loop_uv(h->loop), &c->poll, fd)) {
		uar_http_address_leave(h, a);
		close(fd);
		uar_free(c);
		return NULL;
	}
	c->poll.data = c;
	c->server = h;
	c->fd = fd;
	c->address = a;
	c->in = uar_buf_make(UAR_LIMIT_HTTP_PIPELINED + UAR_LIMIT_HTTP_READ);
	memcpy(c->peer, peer, n);
	uar_list_init(&c->ready);
	uar_list_init(&c->due);
	uar_list_add_last(&h->conns, &c->node);
	h->handles++;
	h->stats.open++;
	uar_http_conn_poll(c, true, false);
	uar_http_set_due(c, DUE_HEAD);
	return c;
}

static void on_closed(uv_handle_t *handle)
{
	struct uar_http_stream *c = handle->data;
	struct uar_http *h = c->server;

	uar_free(c);
	uar_http_released(h);
}

void uar_http_conn_close(struct uar_http_stream *c)
{
	struct uar_http *h = c->server;

	if (c->state == CONN_CLOSED)
		return;
	h->stats.open--;
	if (c->state == CONN_STREAM)
		h->stats.streams--;
	uar_http_set_due(c, DUE_NONE);
	uar_http_exchange_give(h, c->x);
	uar_http_address_leave(h, c->address);
	uar_http_out_free(c);
	uar_buf_fini(&c->in);
	uar_list_remove(&c->ready);
	uar_list_remove(&c->node);
	c->x = NULL;
	c->state = CONN_CLOSED;
	uv_close((uv_handle_t *)&c->poll, on_closed);
	close(c->fd);
	uar_http_check_drained(h);
}

/* Gives the request up and tells the handler, if it knows of it. */
static void abandon(struct uar_http_stream *c)
{
	struct uar_http *h = c->server;
	struct exchange *x = c->x;

	c->x = NULL;
	if (x && x->taken)
		h->handler.gone(h->handler.ctx, &x->r);
	uar_http_exchange_give(h, x);
}

/* The peer is gone, or has to go: closes and tells the handler. */
static void drop(struct uar_http_stream *c)
{
	struct uar_http_stream_events events = c->events;
	bool stream = c->state == CONN_STREAM;
	struct exchange *x = c->x;

	c->x = NULL;
	uar_http_conn_close(c);
	c->x = x;
	abandon(c);
	if (stream)
		events.closed(events.ctx);
}

/* The last answer is out. Closing with unread input would reset the connection
 * and could take the answer with it, so the peer closes first, for a while. */
static void linger(struct uar_http_stream *c)
{
	if (c->eof) {
		uar_http_conn_close(c);
		return;
	}
	c->state = CONN_LINGER;
	c->progress = 0;
	uar_buf_fini(&c->in);
	shutdown(c->fd, SHUT_WR);
	uar_http_conn_poll(c, true, false);
	uar_http_set_due(c, DUE_LINGER);
}

void uar_http_conn_answered(struct uar_http_stream *c)
{
	if (!c->keep_alive) {
		linger(c);
		return;
	}
	c->state = CONN_HEAD;
	c->scanned = 0;
	uar_http_set_due(c, DUE_IDLE);
	if (c->running)
		return; /* the reading loop goes on by itself */
	if (c->in.n > 0)
		uar_http_make_ready(c);
	else if (c->eof || c->server->drain.on)
		uar_http_conn_close(c);
	else
		uar_http_conn_poll(c, true, false);
}

/* --- requests ------------------------------------------------------------------------ */

static void refuse_request(struct uar_http_stream *c, uar_err e, const struct uar_error *error)
{
	abandon(c);
	if (c->state != CONN_CLOSED)
		uar_http_refuse(c, e, error);
}

/* Copies the head to the request's own memory and reads it there. */
static uar_err fill_request(struct exchange *x, uar_str bytes, struct uar_http_head *head,
			    struct uar_error *error)
{
	uar_str copy = uar_arena_str(&x->arena, bytes);
	struct uar_http_header *headers;
	uar_err e = copy.p ? uar_http_parse_head(copy, head, error) : UAR_ENOMEM;

	if (e)
		return e;
	headers = uar_arena_alloc(&x->arena, head->header_count * sizeof *headers);
	if (!headers)
		return UAR_ENOMEM;
	memcpy(headers, head->headers, head->header_count * sizeof *headers);
	x->r.method = head->method;
	x->r.target = head->target;
	x->r.path = head->path;
	x->r.query = head->query;
	x->r.headers = headers;
	x->r.header_count = head->header_count;
	memcpy(x->r.fields, head->fields, sizeof x->r.fields);
	return UAR_OK;
}

/* The handler has said no. Without a body the connection can go on. */
static void rejected(struct uar_http_stream *c, const struct uar_http_head *head, uar_err e,
		     const struct uar_error *error)
{
	if (head->framing == UAR_HTTP_CHUNKED || head->length > 0)
		c->keep_alive = false;
	c->state = CONN_HANDLER;
	uar_http_problem(&c->x->r, e, error);
}

/* Asks the handler; on success the body may be read. */
static uar_err ask_handler(struct uar_http_stream *c, const struct uar_http_head *head,
			   struct uar_error *error)
{
	struct uar_http *h = c->server;
	size_t body_max = 0;
	uar_err e = h->handler.head(h->handler.ctx, &c->x->r, &body_max, error);

	if (c->state == CONN_CLOSED)
		return UAR_OK;
	if (e) {
		rejected(c, head, e, error);
		return UAR_OK;
	}
	c->x->taken = true;
	if (head->length > body_max)
		return uar_http_too_big(body_max, error);
	uar_http_body_init(&c->x->reader, head, body_max);
	c->x->body = uar_buf_make(c->x->r.streamed ? 0 : body_max);
	c->x->complete = head->framing != UAR_HTTP_CHUNKED && head->length == 0;
	c->state = CONN_BODY;
	return UAR_OK;
}

static void hand_over(struct uar_http_stream *c)
{
	struct uar_http *h = c->server;

	c->state = CONN_HANDLER;
	c->progress = 0;
	uar_http_set_due(c, c->out ? DUE_STALL : DUE_NONE);
	h->handler.request(h->handler.ctx, &c->x->r);
}

/* Now the body is wanted: who waits to be asked for it is asked. */
static void invite(struct uar_http_stream *c)
{
	if (c->x->expects)
		uar_http_out_bytes(c, UAR_STR("HTTP/1.1 100 Continue\r\n\r\n"), UAR_STR(""));
	c->x->expects = false;
}

static uar_err begin_request(struct uar_http_stream *c, uar_str bytes, bool body_is_here,
			     struct uar_error *error)
{
	struct uar_http_head *head = &c->server->head;
	uar_err e;

	c->x = uar_http_exchange_take(c);
	if (!c->x)
		return UAR_ENOMEM;
	e = fill_request(c->x, bytes, head, error);
	if (e)
		return e;
	c->http10 = head->http10;
	c->keep_alive = head->keep_alive;
	c->server->stats.requests++;
	c->server->intake.begun++;
	c->x->expects = head->expect_continue && !body_is_here &&
			(head->framing == UAR_HTTP_CHUNKED || head->length > 0);
	e = ask_handler(c, head, error);
	if (e || c->state != CONN_BODY)
		return e;
	if (c->x->r.streamed)
		hand_over(c);
	else
		invite(c);
	return UAR_OK;
}

/* False: nothing more can be done with these bytes. */
static bool read_head(struct uar_http_stream *c, uar_str *rest)
{
	struct uar_error error;
	size_t n = 0;
	uar_err e;

	uar_error_clear(&error);
	e = uar_http_find_head(*rest, &c->scanned, &n, &error);
	if (!e && n == 0)
		return false;
	if (!e)
		e = begin_request(c, uar_str_n(rest->p, n), rest->n > n, &error);
	if (e) {
		refuse_request(c, e, &error);
		return false;
	}
	c->scanned = 0;
	*rest = uar_str_from(*rest, n);
	return true;
}

/* A body that came whole is copied once, without a buffer of its own. */
static bool read_whole_body(struct exchange *x, uar_str *rest)
{
	uint64_t n = x->reader.left;

	if (x->reader.framing == UAR_HTTP_CHUNKED || x->body.n > 0 || rest->n < n)
		return false;
	x->r.body = uar_arena_str(&x->arena, uar_str_n(rest->p, (size_t)n));
	if (!x->r.body.p)
		return false;
	*rest = uar_str_from(*rest, (size_t)n);
	return true;
}

static void wait_for_body(struct uar_http_stream *c, size_t arrived)
{
	c->progress += arrived;
	if (c->due_class == DUE_BODY && c->progress < UAR_LIMIT_HTTP_BODY_PROGRESS)
		return;
	c->progress = 0;
	uar_http_set_due(c, DUE_BODY);
}

static void give_piece(struct uar_http_stream *c, bool last)
{
	struct uar_http *h = c->server;

	c->state = CONN_HANDLER;
	c->progress = 0;
	c->x->into = NULL;
	c->x->complete = last;
	uar_http_set_due(c, c->out ? DUE_STALL : DUE_NONE);
	h->handler.piece(h->handler.ctx, &c->x->r, last);
}

/* A part of a streamed body, as large as it was asked for. */
static bool read_piece(struct uar_http_stream *c, uar_str *rest)
{
	struct exchange *x = c->x;
	struct uar_error error = { 0 };
	size_t before = rest->n;
	bool done = false;
	uar_err e = c->server->drain.on ? UAR_EDRAINING : UAR_OK;

	if (!e)
		e = uar_http_body_feed(&x->reader, rest, x->into, &done, &error);
	if (e) {
		refuse_request(c, e, &error);
		return false;
	}
	if (!done && x->into->n < x->into->max) {
		wait_for_body(c, before - rest->n);
		return false;
	}
	give_piece(c, done);
	return true;
}

static bool read_body(struct uar_http_stream *c, uar_str *rest)
{
	struct exchange *x = c->x;
	struct uar_error error;
	size_t before = rest->n;
	bool done = false;
	uar_err e;

	if (x->r.streamed)
		return read_piece(c, rest);
	if (!read_whole_body(x, rest)) {
		uar_error_clear(&error);
		e = uar_http_body_feed(&x->reader, rest, &x->body, &done, &error);
		if (e) {
			refuse_request(c, e, &error);
			return false;
		}
		if (!done) {
			wait_for_body(c, before - rest->n);
			return false;
		}
		x->r.body = uar_buf_str(&x->body);
	}
	hand_over(c);
	return true;
}

/* Uses up as much of `rest` as is complete. True: stopped only for the sake of
 * the other connections. */
static bool read_requests(struct uar_http_stream *c, uar_str *rest)
{
	for (int i = 0; i < UAR_LIMIT_HTTP_IN_A_ROW; i++) {
		bool more;

		if (c->state == CONN_HEAD && rest->n > 0 && !uar_http_takes_requests(c->server))
			return true;
		if (c->state == CONN_HEAD)
			more = rest->n > 0 && read_head(c, rest);
		else
			more = c->state == CONN_BODY && read_body(c, rest);
		if (!more)
			return false;
	}
	return true;
}

/* After the reading loop: keeps the rest and waits for what comes next. */
static void settle(struct uar_http_stream *c, bool unfinished)
{
	if (c->state == CONN_FLUSH && !c->keep_alive)
		uar_buf_fini(&c->in); /* nothing after the last answer is read */
	if (c->in.n >= UAR_LIMIT_HTTP_PIPELINED && c->state != CONN_STREAM)
		uar_http_conn_poll(c, false, c->writing);
	if (unfinished) {
		uar_http_wait_turn(c);
		return;
	}
	if (c->state != CONN_HEAD)
		return;
	if (c->eof || c->server->drain.on) /* what is left of a head is no request */
		uar_http_conn_close(c);
	else if (c->in.n > 0 && c->due_class != DUE_HEAD)
		uar_http_set_due(c, DUE_HEAD);
}

static void read_on(struct uar_http_stream *c, uar_str bytes)
{
	bool kept = c->in.n > 0, unfinished;
	uar_str all = bytes, rest;

	if (kept) {
		uar_buf_add_str(&c->in, bytes);
		all = uar_buf_str(&c->in);
	}
	rest = all;
	c->running = true;
	unfinished = !c->in.err && read_requests(c, &rest);
	c->running = false;
	if (c->state == CONN_CLOSED || c->state == CONN_LINGER)
		return;
	if (kept)
		uar_buf_consume(&c->in, all.n - rest.n);
	else if (rest.n > 0)
		uar_buf_add_str(&c->in, rest);
	if (c->in.err) {
		drop(c);
		return;
	}
	if (c->in.p && c->in.n == 0)
		uar_buf_fini(&c->in);
	settle(c, unfinished);
}

/* --- what the loop says ------------------------------------------------------------- */

/* Bytes that cannot be used now. A reader of a stream has nothing to say; one
 * that sends further requests early is held back. */
static void keep(struct uar_http_stream *c, uar_str bytes)
{
	uar_buf_add_str(&c->in, bytes);
	if (c->in.err || (c->state == CONN_STREAM && c->in.n > UAR_LIMIT_HTTP_STREAM_INPUT))
		drop(c);
	else if (c->state != CONN_STREAM && c->in.n >= UAR_LIMIT_HTTP_PIPELINED)
		uar_http_conn_poll(c, false, c->writing);
}

static void throw_away(struct uar_http_stream *c, size_t n)
{
	c->progress += n;
	if (c->progress > UAR_LIMIT_HTTP_LINGER)
		drop(c);
}

static void take_bytes(struct uar_http_stream *c, uar_str bytes)
{
	bool last = c->state == CONN_FLUSH && !c->keep_alive;

	if (c->state == CONN_LINGER || last)
		throw_away(c, bytes.n);
	else if (c->state <= CONN_BODY && uar_list_empty(&c->ready))
		read_on(c, bytes);
	else
		keep(c, bytes);
}

static void on_eof(struct uar_http_stream *c)
{
	bool pending = c->state == CONN_HEAD && !uar_list_empty(&c->ready);

	c->eof = true;
	if (c->state == CONN_FLUSH || pending) /* it may still read what it asked for */
		uar_http_conn_poll(c, false, c->writing);
	else
		drop(c);
}

static void on_readable(struct uar_http_stream *c)
{
	struct uar_http *h = c->server;
	ssize_t n = recv(c->fd, h->read_buf, sizeof h->read_buf, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		drop(c);
	} else if (n == 0) {
		on_eof(c);
	} else {
		h->stats.bytes_in += (size_t)n;
		take_bytes(c, uar_str_n(h->read_buf, (size_t)n));
	}
}

static void all_written(struct uar_http_stream *c)
{
	uar_http_conn_poll(c, c->reading, false);
	if (c->state == CONN_FLUSH)
		uar_http_conn_answered(c);
	else if (c->state != CONN_BODY)
		uar_http_set_due(c, DUE_NONE);
}

static void on_writable(struct uar_http_stream *c)
{
	bool progress = uar_http_out_flush(c);

	if (c->broken) {
		drop(c);
		return;
	}
	if (!c->out)
		all_written(c);
	else if (progress && c->state != CONN_BODY)
		uar_http_set_due(c, DUE_STALL);
	if (c->state == CONN_STREAM && c->flow.wants_room && uar_http_out_has_room(c)) {
		c->flow.wants_room = false;
		c->events.writable(c->events.ctx);
	}
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct uar_http_stream *c = poll->data;

	if (status < 0) {
		drop(c);
		return;
	}
	if (events & UV_WRITABLE && c->out)
		on_writable(c);
	if (events & UV_READABLE && c->reading && c->state != CONN_CLOSED)
		on_readable(c);
}

/* A stream's first bytes go out together: head, frames, perhaps the end. So do
 * its last. */
static void uncork(struct uar_http_stream *c)
{
	c->flow.corked = false;
	if (!c->out)
		return;
	on_writable(c);
	if (c->state == CONN_CLOSED || !c->out)
		return;
	uar_http_conn_poll(c, c->reading, true);
	uar_http_set_due(c, DUE_STALL);
}

void uar_http_conn_resume(struct uar_http_stream *c)
{
	if (c->broken) {
		drop(c);
	} else if (c->flow.corked) {
		uncork(c);
	} else if (c->state <= CONN_BODY) {
		uar_http_conn_poll(c, !c->eof, c->writing);
		read_on(c, UAR_STR(""));
	}
}

void uar_http_body_pull(struct uar_http_request *r, struct uar_buf *into)
{
	struct exchange *x = (struct exchange *)(void *)r;
	struct uar_http_stream *c = x->conn;

	uar_buf_clear(into);
	x->into = into;
	c->state = CONN_BODY;
	invite(c);
	uar_http_set_due(c, DUE_BODY);
	if (!c->running) /* else the reading loop goes on by itself */
		uar_http_make_ready(c);
}

void uar_http_conn_drain(struct uar_http_stream *c)
{
	if (c->running || !uar_list_empty(&c->ready))
		return; /* it will notice */
	if (c->state == CONN_HEAD)
		uar_http_conn_close(c);
	else if (c->state == CONN_BODY)
		refuse_request(c, UAR_EDRAINING, NULL);
}

void uar_http_conn_expire(struct uar_http_stream *c)
{
	struct uar_error error = { 0 };

	switch ((enum conn_state)c->state) {
	case CONN_HEAD:
		if (c->in.n == 0) {
			uar_http_conn_close(c);
			break;
		}
		uar_error_set(&error, UAR_ETIMEOUT, "the head did not arrive in time");
		uar_http_refuse(c, UAR_ETIMEOUT, &error);
		break;
	case CONN_BODY:
		uar_error_set(&error, UAR_ETIMEOUT, "the body did not arrive in time");
		refuse_request(c, UAR_ETIMEOUT, &error);
		break;
	case CONN_HANDLER:
	case CONN_FLUSH:
	case CONN_STREAM:
	case CONN_LINGER: drop(c); break;
	case CONN_CLOSED: break;
	}
}
