/* net_answer.c - the answer of a transfer, as libcurl reads it: its head, and its body in pieces
 * for the loop. All of it runs on the thread of the net, inside libcurl. */
#include "loop/net_int.h"

#include "base/alloc.h"
#include "loop/limits.h"

/* --- pieces ---------------------------------------------------------------------------------- */

/* A token of a model comes in a small piece, and the one that was read before takes it:
 * memory that one thread takes and another frees is dear. */
static struct uar_piece *open_piece(struct uar_transfer *t, size_t bytes)
{
	size_t cap = bytes > UAR_LIMIT_CLIENT_SPARE ? bytes : UAR_LIMIT_CLIENT_SPARE;
	struct uar_piece *p =
		cap == UAR_LIMIT_CLIENT_SPARE ? atomic_exchange(&t->spare, NULL) : NULL;

	if (!p)
		p = uar_alloc(sizeof *p + cap);
	if (!p)
		return NULL;
	*p = (struct uar_piece){ .task.fn = t->net->mail.piece, .of = t, .cap = cap };
	t->open = p;
	t->round = t->net->mail.round;
	atomic_fetch_add(&t->unread, uar_piece_size(p));
	uar_net_tell(t->net, &p->task);
	return p;
}

/* The piece that still takes bytes: none of an earlier round, which the loop has. */
static struct uar_piece *current(const struct uar_transfer *t)
{
	return t->open && t->round == t->net->mail.round ? t->open : NULL;
}

/* Mostly there is one piece a round, so the first is made for its bytes alone. */
static size_t next_cap(const struct uar_piece *p, size_t n)
{
	size_t cap = p ? p->cap * 4 : n;

	if (cap > UAR_LIMIT_CLIENT_PIECE)
		cap = UAR_LIMIT_CLIENT_PIECE;
	return cap > n ? cap : n;
}

static bool put(struct uar_transfer *t, const char *bytes, size_t n)
{
	struct uar_piece *p = current(t);

	if (!p || p->cap - p->n < n)
		p = open_piece(t, next_cap(p, n));
	if (!p)
		return false;
	memcpy(p->bytes + p->n, bytes, n);
	p->n += n;
	p->status = t->outcome.status; /* the piece may have been begun for the head */
	return true;
}

/* --- the head -------------------------------------------------------------------------------- */

static bool is_interim(struct uar_transfer *t)
{
	long status = 0;

	t->net->curl->easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	t->outcome.status = (int)status;
	return status < 200;
}

/* The lines are a piece of their own: the next bytes begin another one. */
static bool hand_over_head(struct uar_transfer *t)
{
	struct uar_piece *p;

	if (t->head.err)
		return false;
	if (t->head.n == 0)
		return true;
	p = open_piece(t, t->head.n);
	if (!p)
		return false;
	memcpy(p->bytes, t->head.p, t->head.n);
	p->n = t->head.n;
	p->head = true;
	p->status = t->outcome.status;
	t->open = NULL;
	return true;
}

/* A status line begins a head, an empty line ends it. libcurl hands over whole lines, those of
 * interim answers and trailers, too. */
static bool keep_header(struct uar_transfer *t, uar_str line)
{
	if (uar_str_starts(line, UAR_STR("HTTP/"))) {
		t->head_over = false;
		uar_buf_clear(&t->head);
		return true;
	}
	if (t->head_over)
		return true;
	if (line.n && line.p[0] != '\r' && line.p[0] != '\n') {
		uar_buf_add_str(&t->head, line);
		return !t->head.err;
	}
	if (is_interim(t)) {
		t->outcome.status = 0;
		return true;
	}
	t->head_over = true;
	return hand_over_head(t);
}

size_t uar_net_on_header(char *p, size_t size, size_t n, void *ctx)
{
	struct uar_transfer *t = ctx;

	n *= size;
	t->head_bytes += n;
	if (t->head_bytes > UAR_LIMIT_CLIENT_HEAD) {
		t->outcome.err = UAR_EHEADERS;
		uar_net_give_up(t);
		return 0;
	}
	if (t->hub == &t->net->shared && uar_str_starts(uar_str_n(p, n), UAR_STR("HTTP/1")))
		uar_net_learn(t->net, t->request.origin);
	if (t->wants_head && !keep_header(t, uar_str_n(p, n))) {
		t->outcome.err = UAR_ENOMEM;
		uar_net_give_up(t);
		return 0;
	}
	if (!current(t) && !t->head_over)
		(void)open_piece(t, 0); /* a sign of life, which may also get lost */
	return n;
}

/* --- the body -------------------------------------------------------------------------------- */

static size_t on_error_body(struct uar_transfer *t, const char *p, size_t n)
{
	struct uar_buf *body = &t->outcome.body;
	size_t room = body->max - body->n;

	uar_buf_add(body, p, n < room ? n : room);
	if (n > room)
		body->err = UAR_ETOOBIG;
	if (!body->err)
		return n;
	uar_net_give_up(t);
	return 0;
}

/* libcurl does not send a request again whose answer has begun: its copy is freed once all of it is
 * sent. The request of a model is long, and its answer takes long. */
static void forget_request(struct uar_transfer *t)
{
	curl_off_t sent = 0;

	t->net->curl->easy_getinfo(t->easy, CURLINFO_SIZE_UPLOAD_T, &sent);
	if ((size_t)sent < t->request.body.n)
		return;
	uar_free(t->body);
	t->body = NULL;
	t->request.body = UAR_STR("");
}

size_t uar_net_on_body(char *p, size_t size, size_t n, void *ctx)
{
	struct uar_transfer *t = ctx;
	long status = t->outcome.status;

	n *= size;
	if (!status)
		t->net->curl->easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	t->outcome.status = (int)status;
	if (status < 200 || status > 299)
		return on_error_body(t, p, n);
	if (t->body)
		forget_request(t);
	/* Nothing is read before this turn ends: this also gives each its share of it. */
	if (atomic_load(&t->unread) >= UAR_LIMIT_CLIENT_INBOX) {
		t->held = true;
		return CURL_WRITEFUNC_PAUSE;
	}
	if (put(t, p, n))
		return n;
	t->outcome.err = UAR_ENOMEM;
	uar_net_give_up(t);
	return 0;
}
