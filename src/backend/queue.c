/* queue.c - events between a backend and a reader who may be slow.
 *
 * Memory is bounded: what does not fit goes on in an unlinked file, in order,
 * and comes back from there. Nothing is ever dropped. The caller holds the lock. */
#include "backend/int.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum {
	IO_BYTES = 65536,
	PUNCH_BYTES = 1 << 20, /* given back to the disk at a time */
	RECORD_MAX = UAA_MAX_TEXT + UAA_MAX_DATA + UAA_MAX_MESSAGE + UAA_MAX_CHANNEL + 64,
	ABSENT = 0x7FFFFFFF,
};

struct record {
	uint32_t kind;
	uint32_t len[4]; /* channel, text, message, data; ABSENT */
};

void uab_queue_init(struct uab_queue *q, uint64_t max_bytes, uint64_t max_spill)
{
	*q = (struct uab_queue){ .fd = -1, .max_bytes = max_bytes, .max_spill = max_spill };
	q->rbuf = uar_buf_make(2 * IO_BYTES + RECORD_MAX);
	q->wbuf = uar_buf_make(2 * IO_BYTES + RECORD_MAX);
}

static void clear_list(struct uaa_event **list)
{
	while (*list) {
		struct uaa_event *ev = *list;

		*list = ev->next;
		uaa_event_unref(ev);
	}
}

static void reset_spill(struct uab_queue *q)
{
	q->rd = q->wr = q->freed = q->spilled = 0;
	q->rpos = 0;
	uar_buf_clear(&q->rbuf);
	uar_buf_clear(&q->wbuf);
}

void uab_queue_clear(struct uab_queue *q)
{
	clear_list(&q->head);
	clear_list(&q->last);
	q->tail = NULL;
	q->bytes = 0;
	reset_spill(q);
	if (q->fd >= 0)
		close(q->fd);
	q->fd = -1;
}

void uab_queue_fini(struct uab_queue *q)
{
	uab_queue_clear(q);
	uar_buf_fini(&q->rbuf);
	uar_buf_fini(&q->wbuf);
}

bool uab_queue_empty(const struct uab_queue *q)
{
	return !q->head && !q->spilled && !q->last;
}

static bool open_spill(struct uab_queue *q)
{
	const char *dir = secure_getenv("TMPDIR");
	char path[512];

	if (q->fd >= 0)
		return true;
	if (!dir || !dir[0])
		dir = "/tmp";
	q->fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (q->fd >= 0)
		return true;
	snprintf(path, sizeof path, "%s/agent-api-XXXXXX", dir);
	q->fd = mkostemp(path, O_CLOEXEC);
	if (q->fd >= 0)
		unlink(path);
	return q->fd >= 0;
}

/* Bytes that reached the file; a full disk leaves the rest in the buffer. */
static bool flush_spill(struct uab_queue *q)
{
	while (q->wbuf.n) {
		ssize_t n = pwrite(q->fd, q->wbuf.p, q->wbuf.n, (off_t)q->wr);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		q->wr += (uint64_t)n;
		uar_buf_consume(&q->wbuf, (size_t)n);
	}
	return true;
}

static bool spill(struct uab_queue *q, const struct uaa_event *ev)
{
	const uaa_str f[4] = { ev->channel, ev->text, ev->message, ev->data };
	struct record r = { .kind = (uint32_t)ev->kind };
	size_t start = q->wbuf.n;

	if (!open_spill(q) || q->wr - q->rd + start + ev->size > q->max_spill)
		return false;
	if (start >= IO_BYTES && !flush_spill(q))
		return false;
	start = q->wbuf.n;
	for (int i = 0; i < 4; i++)
		r.len[i] = f[i].ptr ? (uint32_t)f[i].len : ABSENT;
	uar_buf_add(&q->wbuf, &r, sizeof r);
	for (int i = 0; i < 4; i++)
		if (f[i].ptr)
			uar_buf_add(&q->wbuf, f[i].ptr, f[i].len);
	if (q->wbuf.err) {
		q->wbuf.err = UAR_OK;
		q->wbuf.n = start;
		return false;
	}
	q->spilled++;
	return true;
}

bool uab_queue_put(struct uab_queue *q, struct uaa_event *ev)
{
	bool fits = !q->head || q->bytes + ev->size <= q->max_bytes;

	if (!q->spilled && fits) {
		if (q->tail)
			q->tail->next = ev;
		else
			q->head = ev;
		q->tail = ev;
		q->bytes += ev->size;
		return true;
	}
	if (!spill(q, ev))
		return false;
	uaa_event_unref(ev);
	return true;
}

void uab_queue_force(struct uab_queue *q, struct uaa_event *ev)
{
	struct uaa_event **at = &q->last;

	while (*at)
		at = &(*at)->next;
	*at = ev;
}

/* What was read is given back: a reader who never catches up must not fill the
 * disk. Where the file system cannot, the bound on what waits still holds. */
static void give_back(struct uab_queue *q)
{
	if (q->rd - q->freed < PUNCH_BYTES)
		return;
	if (fallocate(q->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)q->freed,
		      (off_t)(q->rd - q->freed))) {
		/* nothing to be done about it */
	}
	q->freed = q->rd;
}

/* Makes `need` bytes available behind rpos. */
static bool fill(struct uab_queue *q, size_t need)
{
	uar_buf_consume(&q->rbuf, q->rpos);
	q->rpos = 0;
	while (q->rbuf.n < need) {
		char *at;
		ssize_t n;

		if (q->rd >= q->wr && !(q->wbuf.n && flush_spill(q)))
			return false;
		at = uar_buf_reserve(&q->rbuf, IO_BYTES);
		n = at ? pread(q->fd, at, IO_BYTES, (off_t)q->rd) : -1;
		if (n < 0 && at && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		q->rbuf.n += (size_t)n;
		q->rd += (uint64_t)n;
	}
	give_back(q);
	return true;
}

static uaa_str take_field(struct uab_queue *q, uint32_t len)
{
	uaa_str s = UAB_NONE;

	if (len == ABSENT)
		return s;
	s = (uaa_str){ q->rbuf.p + q->rpos, len };
	q->rpos += len;
	return s;
}

static struct uaa_event *unspill(struct uab_queue *q, const uaa_kind *agent)
{
	struct record r;
	size_t body = 0;
	uaa_event_spec s;

	if (q->rbuf.n - q->rpos < sizeof r && !fill(q, sizeof r))
		return NULL;
	memcpy(&r, q->rbuf.p + q->rpos, sizeof r);
	for (int i = 0; i < 4; i++)
		body += r.len[i] == ABSENT ? 0 : r.len[i];
	if (body > RECORD_MAX ||
	    (q->rbuf.n - q->rpos < sizeof r + body && !fill(q, sizeof r + body)))
		return NULL;
	q->rpos += sizeof r;
	s.kind = (uaa_event_kind)r.kind;
	s.channel = take_field(q, r.len[0]);
	s.text = take_field(q, r.len[1]);
	s.message = take_field(q, r.len[2]);
	s.data_json = take_field(q, r.len[3]);
	return uab_event_new(agent, &s);
}

static void after_unspill(struct uab_queue *q)
{
	if (--q->spilled)
		return;
	reset_spill(q);
	if (ftruncate(q->fd, 0)) {
		/* the space is given back when the run ends */
	}
}

struct uaa_event *uab_queue_get(struct uab_queue *q, const uaa_kind *agent)
{
	struct uaa_event *ev = q->head;

	if (ev) {
		q->head = ev->next;
		if (!q->head)
			q->tail = NULL;
		ev->next = NULL;
		q->bytes -= ev->size;
		return ev;
	}
	if (q->spilled) {
		ev = unspill(q, agent);
		if (ev)
			after_unspill(q);
		else
			q->broken = true;
		return ev;
	}
	ev = q->last;
	if (ev) {
		q->last = ev->next;
		ev->next = NULL;
	}
	return ev;
}

struct uaa_event *uab_queue_take(struct uab_queue *q, size_t *out_n)
{
	struct uaa_event *list = q->head;
	size_t n = 0;

	for (struct uaa_event *ev = list; ev; ev = ev->next)
		n++;
	q->head = q->tail = NULL;
	q->bytes = 0;
	*out_n = n;
	return list;
}
