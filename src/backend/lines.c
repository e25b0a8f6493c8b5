/* lines.c - lines out of bytes. LF alone ends a line: U+2028 and lone CR do not. */
#include "backend/child.h"

enum { KEEP_BYTES = 1 << 20 }; /* of memory between lines */

void uab_lines_init(struct uab_lines *l, size_t max)
{
	*l = (struct uab_lines){ .buf = uar_buf_make(max + 1), .max = max };
}

void uab_lines_fini(struct uab_lines *l)
{
	uar_buf_fini(&l->buf);
}

static void deliver(struct uab_lines *l, char *p, size_t n)
{
	if (n > l->max) {
		l->too_long(l->ctx, n);
		return;
	}
	if (n && p[n - 1] == '\r')
		n--;
	for (size_t i = 0; i < n; i++)
		if (p[i] != ' ' && p[i] != '\t') {
			l->line(l->ctx, p, n);
			return;
		}
}

/* The end of a line of which a part was kept or counted before. */
static void finish(struct uab_lines *l, char *p, size_t n)
{
	if (l->skipping) {
		l->too_long(l->ctx, l->skipping + n);
		l->skipping = 0;
		return;
	}
	if (l->buf.n + n > l->max) {
		l->too_long(l->ctx, (uint64_t)l->buf.n + n);
	} else {
		uar_buf_add(&l->buf, p, n);
		if (l->buf.err)
			l->too_long(l->ctx, (uint64_t)l->buf.n + n);
		else
			deliver(l, l->buf.p, l->buf.n);
	}
	if (l->buf.cap > KEEP_BYTES)
		uar_buf_fini(&l->buf);
	else
		uar_buf_clear(&l->buf);
}

static void keep(struct uab_lines *l, const char *p, size_t n)
{
	if (!l->skipping && l->buf.n + n <= l->max)
		uar_buf_add(&l->buf, p, n);
	else if (!l->skipping)
		l->buf.err = UAR_ETOOBIG;
	if (l->buf.err) { /* from here on only its length is of interest */
		l->skipping = l->buf.n;
		uar_buf_fini(&l->buf);
		l->skipping += n;
	} else if (l->skipping) {
		l->skipping += n;
	}
}

void uab_lines_feed(struct uab_lines *l, char *p, size_t n)
{
	while (n) {
		char *lf = memchr(p, '\n', n);
		size_t k = lf ? (size_t)(lf - p) : n;

		if (!lf) {
			keep(l, p, n);
			return;
		}
		if (l->buf.n == 0 && !l->skipping)
			deliver(l, p, k);
		else
			finish(l, p, k);
		p += k + 1;
		n -= k + 1;
	}
}

void uab_lines_end(struct uab_lines *l)
{
	if (l->buf.n || l->skipping)
		finish(l, NULL, 0);
}
