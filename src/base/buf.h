/* buf.h - a byte buffer that grows to a maximum given at creation.
 *
 * The first error sticks: writers append freely and check `err` once. The
 * contents are always NUL-terminated when anything was written. */
#ifndef UAR_BASE_BUF_H
#define UAR_BASE_BUF_H

#include "base/str.h"

struct uar_buf {
	char *p;
	size_t n, cap, max;
	uar_err err; /* UAR_ENOMEM or UAR_ETOOBIG; nothing is appended after it */
};

struct uar_buf uar_buf_make(size_t max); /* allocates nothing yet */
void uar_buf_fini(struct uar_buf *b);	 /* the buffer may be used again */
void uar_buf_clear(struct uar_buf *b);	 /* empties and forgets the error, keeps the memory */
void uar_buf_add(struct uar_buf *b, const void *p, size_t n);
void uar_buf_add_str(struct uar_buf *b, uar_str s);
void uar_buf_add_char(struct uar_buf *b, char c);
void uar_buf_add_u64(struct uar_buf *b, uint64_t v);
void uar_buf_printf(struct uar_buf *b, const char *fmt, ...) UAR_PRINTF(2, 3);
/* Room for n more bytes at p + n, NULL (and err) when there is none; after
 * writing, the caller adds what it used to b->n. */
char *uar_buf_reserve(struct uar_buf *b, size_t n);
/* Is there room without growing? The usual case: no capacity is beyond the maximum. */
static inline bool uar_buf_fits(const struct uar_buf *b, size_t n)
{
	return !b->err && b->cap - b->n > n;
}
/* Drops the first n bytes. */
void uar_buf_consume(struct uar_buf *b, size_t n);
uar_str uar_buf_str(const struct uar_buf *b);
/* Moves the bytes out: the caller frees them with uar_free. NULL when empty. */
char *uar_buf_take(struct uar_buf *b, size_t *out_n);

#endif
