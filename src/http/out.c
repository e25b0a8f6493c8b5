/* out.c - frames, and what waits for a reader that is slower than we are.
 *
 * The common case is one send() of bytes that all readers share. Only what the
 * kernel does not take is queued: a reference and an offset per frame. */
#include "http/http_int.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "http/limits.h"

enum { FRAME_COST = 64, IOV_MAX_FRAMES = 64, CHUNK_HEAD_MAX = 20 };

struct uar_frame {
	unsigned refs;
	unsigned prefix; /* bytes of the chunk's size line */
	size_t payload;	 /* bytes between that and the closing CRLF */
	size_t total;
	char bytes[];
};

struct out_queue {
	size_t bytes;  /* what it weighs against UAR_LIMIT_HTTP_WRITE_QUEUE */
	size_t offset; /* sent of the first frame */
	size_t first, n, cap;
	struct uar_frame *frames[];
};

/* --- frames ------------------------------------------------------------------- */

static struct uar_frame *frame_alloc(size_t total)
{
	struct uar_frame *f = uar_alloc(sizeof *f + total);

	if (f)
		*f = (struct uar_frame){ .refs = 1, .payload = total, .total = total };
	return f;
}

/* The size line of a chunk; its length. */
static unsigned chunk_head(size_t n, char out[static CHUNK_HEAD_MAX])
{
	unsigned digits = 1;

	while (digits < 16 && n >> (4 * digits))
		digits++;
	for (unsigned i = 0; i < digits; i++)
		out[i] = "0123456789abcdef"[n >> (4 * (digits - 1 - i)) & 15];
	memcpy(out + digits, "\r\n", 2);
	return digits + 2;
}

struct uar_frame *uar_frame_create(uar_str bytes)
{
	char head[CHUNK_HEAD_MAX];
	unsigned prefix = chunk_head(bytes.n, head);
	struct uar_frame *f;

	if (bytes.n == 0) /* a chunk of no bytes would end the body */
		return frame_alloc(0);
	f = frame_alloc(prefix + bytes.n + 2);
	if (!f)
		return NULL;
	f->prefix = prefix;
	f->payload = bytes.n;
	memcpy(f->bytes, head, prefix);
	memcpy(f->bytes + prefix, bytes.p, bytes.n);
	memcpy(f->bytes + prefix + bytes.n, "\r\n", 2);
	return f;
}

struct uar_frame *uar_http_last_chunk(void)
{
	struct uar_frame *f = frame_alloc(5);

	if (f)
		memcpy(f->bytes, "0\r\n\r\n", 5);
	return f;
}

struct uar_frame *uar_frame_ref(struct uar_frame *f)
{
	f->refs++;
	return f;
}

void uar_frame_unref(struct uar_frame *f)
{
	if (f && --f->refs == 0)
		uar_free(f);
}

/* What goes over this connection: HTTP/1.0 knows no chunks. */
static uar_str span(const struct uar_http_stream *c, const struct uar_frame *f)
{
	if (c->http10 || c->flow.bare)
		return uar_str_n(f->bytes + f->prefix, f->payload);
	return uar_str_n(f->bytes, f->total);
}

/* --- the queue ------------------------------------------------------------------ */

static size_t cost(const struct uar_frame *f)
{
	return f->total + FRAME_COST;
}

bool uar_http_out_full(const struct uar_http_stream *c)
{
	return c->out && c->out->bytes >= UAR_LIMIT_HTTP_WRITE_QUEUE;
}

bool uar_http_out_has_room(const struct uar_http_stream *c)
{
	return !c->out || c->out->bytes <= UAR_LIMIT_HTTP_WRITE_QUEUE / 2;
}

void uar_http_out_free(struct uar_http_stream *c)
{
	struct out_queue *q = c->out;

	for (; q && q->first < q->n; q->first++)
		uar_frame_unref(q->frames[q->first]);
	uar_free(q);
	c->out = NULL;
}

/* Room for one more frame. */
static struct out_queue *grow(struct out_queue *q)
{
	size_t cap = q ? q->cap * 2 : 16;
	struct out_queue *bigger;

	if (q && q->n < q->cap)
		return q;
	if (q && q->first >= q->cap / 2) {
		memmove(q->frames, q->frames + q->first, (q->n - q->first) * sizeof *q->frames);
		q->n -= q->first;
		q->first = 0;
		return q;
	}
	bigger = uar_realloc(q, sizeof *bigger + cap * sizeof *bigger->frames);
	if (!bigger)
		return NULL;
	if (!q)
		*bigger = (struct out_queue){ 0 };
	bigger->cap = cap;
	return bigger;
}

/* Takes its own reference. `sent` bytes of the frame are gone already; only the
 * first frame of a queue can have any. */
static bool enqueue(struct uar_http_stream *c, struct uar_frame *f, size_t sent)
{
	struct out_queue *q = grow(c->out);

	if (!q)
		return false;
	if (q->first == q->n)
		q->offset = sent;
	q->frames[q->n++] = uar_frame_ref(f);
	q->bytes += cost(f);
	c->out = q;
	return true;
}

static void dequeue(struct out_queue *q)
{
	struct uar_frame *f = q->frames[q->first++];

	q->bytes -= cost(f);
	q->offset = 0;
	uar_frame_unref(f);
}

/* --- writing -------------------------------------------------------------------- */

static void broke(struct uar_http_stream *c)
{
	c->broken = true;
	uar_http_out_free(c);
	uar_http_make_ready(c);
}

/* Something waits now that did not before. A body that is still being read has
 * its own deadline. */
static void start_waiting(struct uar_http_stream *c)
{
	uar_http_conn_poll(c, c->reading, true);
	if (c->state != CONN_BODY)
		uar_http_set_due(c, DUE_STALL);
}

/* Bytes written; 0 when the kernel takes none now, -1 when it never will. */
static ssize_t send_some(struct uar_http_stream *c, struct iovec *iov, size_t n)
{
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = n };
	ssize_t sent;

	do
		sent = n == 1 ? send(c->fd, iov->iov_base, iov->iov_len,
				     MSG_NOSIGNAL | MSG_DONTWAIT)
			      : sendmsg(c->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (sent < 0 && errno == EINTR);
	if (sent >= 0) {
		c->server->stats.bytes_out += (size_t)sent;
		return sent;
	}
	return errno == EAGAIN || errno == ENOBUFS ? 0 : -1;
}

static void queue_copy(struct uar_http_stream *c, uar_str head, uar_str body)
{
	bool first = !c->out && !c->flow.corked;
	struct uar_frame *f = frame_alloc(head.n + body.n);
	bool ok = false;

	if (f) {
		if (head.n)
			memcpy(f->bytes, head.p, head.n);
		if (body.n)
			memcpy(f->bytes + head.n, body.p, body.n);
		ok = enqueue(c, f, 0);
	}
	uar_frame_unref(f);
	if (!ok)
		broke(c);
	else if (first)
		start_waiting(c);
}

void uar_http_out_cork(struct uar_http_stream *c, uar_str head)
{
	c->flow.corked = true;
	queue_copy(c, head, UAR_STR(""));
	uar_http_make_ready(c);
}

void uar_http_out_bytes(struct uar_http_stream *c, uar_str head, uar_str body)
{
	struct iovec iov[2] = { { (void *)(uintptr_t)head.p, head.n },
				{ (void *)(uintptr_t)body.p, body.n } };
	ssize_t sent;
	size_t of_head;

	if (c->broken)
		return;
	if (c->out) {
		queue_copy(c, head, body);
		return;
	}
	sent = send_some(c, iov, body.n ? 2 : 1);
	if (sent < 0) {
		broke(c);
		return;
	}
	if ((size_t)sent == head.n + body.n)
		return;
	of_head = (size_t)sent < head.n ? (size_t)sent : head.n;
	queue_copy(c, uar_str_from(head, of_head), uar_str_from(body, (size_t)sent - of_head));
}

void uar_http_out_frame(struct uar_http_stream *c, struct uar_frame *f)
{
	uar_str s = span(c, f);
	bool first = !c->out && !c->flow.corked;
	ssize_t sent = 0;

	if (c->broken || s.n == 0)
		return;
	if (first) {
		struct iovec iov = { (void *)(uintptr_t)s.p, s.n };

		sent = send_some(c, &iov, 1);
		if ((size_t)sent == s.n)
			return;
	}
	if (sent < 0 || !enqueue(c, f, (size_t)sent))
		broke(c);
	else if (first)
		start_waiting(c);
}

bool uar_http_out_flush(struct uar_http_stream *c)
{
	struct iovec iov[IOV_MAX_FRAMES];
	struct out_queue *q = c->out;
	size_t n = 0, done;
	ssize_t sent;

	for (size_t i = q->first; i < q->n && n < IOV_MAX_FRAMES; i++, n++) {
		uar_str s = uar_str_from(span(c, q->frames[i]), n == 0 ? q->offset : 0);

		iov[n] = (struct iovec){ (void *)(uintptr_t)s.p, s.n };
	}
	sent = send_some(c, iov, n);
	if (sent < 0) {
		broke(c);
		return false;
	}
	done = (size_t)sent;
	for (size_t i = 0; i < n && done >= iov[i].iov_len; i++) {
		done -= iov[i].iov_len;
		dequeue(q);
	}
	q->offset += done;
	if (q->first == q->n)
		uar_http_out_free(c);
	return sent > 0;
}
