/* buf.c - the capped buffer. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/alloc.h"

struct uar_buf uar_buf_make(size_t max)
{
	return (struct uar_buf){ .max = max };
}

void uar_buf_fini(struct uar_buf *b)
{
	uar_free(b->p);
	*b = uar_buf_make(b->max);
}

void uar_buf_clear(struct uar_buf *b)
{
	b->n = 0;
	b->err = UAR_OK;
	if (b->p)
		b->p[0] = 0;
}

UAR_RARELY static char *grow(struct uar_buf *b, size_t n)
{
	size_t cap = b->cap ? b->cap * 2 : 256;
	char *p;

	if (b->err)
		return NULL;
	if (n > b->max || b->n > b->max - n) {
		b->err = UAR_ETOOBIG;
		return NULL;
	}
	if (cap < b->n + n + 1)
		cap = b->n + n + 1;
	if (cap > b->max + 1)
		cap = b->max + 1;
	p = uar_realloc(b->p, cap);
	if (!p) {
		b->err = UAR_ENOMEM;
		return NULL;
	}
	b->p = p;
	b->cap = cap;
	return p + b->n;
}

char *uar_buf_reserve(struct uar_buf *b, size_t n)
{
	return uar_buf_fits(b, n) ? b->p + b->n : grow(b, n);
}

void uar_buf_add(struct uar_buf *b, const void *p, size_t n)
{
	char *at = uar_buf_reserve(b, n);

	if (!at)
		return;
	if (n)
		memcpy(at, p, n);
	b->n += n;
	b->p[b->n] = 0;
}

void uar_buf_add_str(struct uar_buf *b, uar_str s)
{
	uar_buf_add(b, s.p, s.n);
}

void uar_buf_add_char(struct uar_buf *b, char c)
{
	uar_buf_add(b, &c, 1);
}

void uar_buf_add_u64(struct uar_buf *b, uint64_t v)
{
	char digits[UAR_U64_DIGITS], *end = digits + sizeof digits;
	size_t n = uar_digits(end, v);

	uar_buf_add(b, end - n, n);
}

void uar_buf_printf(struct uar_buf *b, const char *fmt, ...)
{
	va_list ap;
	int n;
	char *at;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	at = n < 0 ? NULL : uar_buf_reserve(b, (size_t)n);
	if (!at)
		return;
	va_start(ap, fmt);
	vsnprintf(at, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->n += (size_t)n;
}

void uar_buf_consume(struct uar_buf *b, size_t n)
{
	if (n == 0)
		return;
	if (n > b->n)
		n = b->n;
	memmove(b->p, b->p + n, b->n - n);
	b->n -= n;
	b->p[b->n] = 0;
}

uar_str uar_buf_str(const struct uar_buf *b)
{
	return uar_str_n(b->p ? b->p : "", b->n);
}

char *uar_buf_take(struct uar_buf *b, size_t *out_n)
{
	char *p = b->p;

	*out_n = b->n;
	*b = uar_buf_make(b->max);
	return p;
}
