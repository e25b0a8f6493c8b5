/* arena.c - chunked bump allocation. */
#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/limits.h"

enum { ALIGN = 16 }; /* enough for any type */

struct uar_arena_chunk {
	struct uar_arena_chunk *next;
	size_t size, used;
	_Alignas(ALIGN) char data[];
};

void uar_arena_init(struct uar_arena *a, size_t max)
{
	*a = (struct uar_arena){ .max = max };
}

void uar_arena_fini(struct uar_arena *a)
{
	while (a->chunk) {
		struct uar_arena_chunk *next = a->chunk->next;

		uar_free(a->chunk);
		a->chunk = next;
	}
	a->used = 0;
}

void uar_arena_reset(struct uar_arena *a)
{
	struct uar_arena_chunk *keep = a->chunk;

	if (!keep)
		return;
	a->chunk = keep->next;
	uar_arena_fini(a);
	keep->next = NULL;
	keep->used = 0;
	a->chunk = keep;
	a->used = keep->size;
}

static struct uar_arena_chunk *grow(struct uar_arena *a, size_t need)
{
	size_t size = a->chunk ? a->chunk->size * 2 : UAR_LIMIT_ARENA_CHUNK;
	struct uar_arena_chunk *c;

	if (size > UAR_LIMIT_ARENA_CHUNK_MAX)
		size = UAR_LIMIT_ARENA_CHUNK_MAX;
	if (size < need)
		size = need;
	if (a->max && (size > a->max || a->used > a->max - size)) {
		size = need;
		if (size > a->max || a->used > a->max - size)
			return NULL;
	}
	c = uar_alloc(sizeof *c + size);
	if (!c)
		return NULL;
	c->next = a->chunk;
	c->size = size;
	c->used = 0;
	a->chunk = c;
	a->used += size;
	return c;
}

UAR_RARELY static char *take_new(struct uar_arena *a, size_t n)
{
	struct uar_arena_chunk *c = n > SIZE_MAX / 2 ? NULL : grow(a, n ? n : 1);

	if (!c)
		return NULL;
	c->used = n;
	return c->data;
}

char *uar_arena_bytes(struct uar_arena *a, size_t n)
{
	struct uar_arena_chunk *c = a->chunk;
	char *p;

	if (!c || n > c->size - c->used)
		return take_new(a, n);
	p = c->data + c->used;
	c->used += n;
	return p;
}

void *uar_arena_room(struct uar_arena *a, size_t n)
{
	struct uar_arena_chunk *c = a->chunk;

	if (c) {
		size_t gap = -c->used & (ALIGN - 1), left = c->size - c->used;

		c->used += gap < left ? gap : left;
	}
	return uar_arena_bytes(a, n);
}

void *uar_arena_alloc(struct uar_arena *a, size_t n)
{
	char *p = uar_arena_room(a, n);

	if (p)
		memset(p, 0, n);
	return p;
}

uar_str uar_arena_str(struct uar_arena *a, uar_str s)
{
	char *p = uar_arena_bytes(a, s.n + 1);

	if (!p)
		return UAR_STR_NONE;
	if (s.n)
		memcpy(p, s.p, s.n);
	p[s.n] = 0;
	return uar_str_n(p, s.n);
}

bool uar_arena_strs(struct uar_arena *a, uar_str *const *at, size_t n)
{
	size_t bytes = n;
	char *p;

	for (size_t i = 0; i < n; i++)
		bytes += at[i]->n;
	p = uar_arena_bytes(a, bytes);
	for (size_t i = 0; i < n && p; i++) {
		if (at[i]->n)
			memcpy(p, at[i]->p, at[i]->n);
		at[i]->p = p;
		p += at[i]->n;
		*p++ = 0;
	}
	return p != NULL;
}

uar_str uar_arena_printf(struct uar_arena *a, const char *fmt, ...)
{
	char first[256]; /* long enough for nearly all, and formatting is slow */
	va_list ap;
	int n;
	char *p;

	va_start(ap, fmt);
	n = vsnprintf(first, sizeof first, fmt, ap);
	va_end(ap);
	p = n < 0 ? NULL : uar_arena_bytes(a, (size_t)n + 1);
	if (!p)
		return UAR_STR_NONE;
	if ((size_t)n < sizeof first) {
		memcpy(p, first, (size_t)n + 1);
		return uar_str_n(p, (size_t)n);
	}
	va_start(ap, fmt);
	vsnprintf(p, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return uar_str_n(p, (size_t)n);
}
