/* arena.h - memory that is given out piece by piece and freed at once.
 *
 * One arena per request, per engine step, per parsed document. The first chunk
 * is taken on first use, so an arena that is never used costs nothing. */
#ifndef UAR_BASE_ARENA_H
#define UAR_BASE_ARENA_H

#include "base/str.h"

struct uar_arena_chunk;
struct uar_arena {
	struct uar_arena_chunk *chunk; /* newest first */
	size_t max;		       /* bytes it may hold in all, 0 = no bound */
	size_t used;		       /* bytes held in all */
};

/* A bounded arena: at most `max` bytes of chunks; 0 for no bound. */
void uar_arena_init(struct uar_arena *a, size_t max);
void uar_arena_fini(struct uar_arena *a);
/* Forgets everything but keeps the newest chunk for the next use. */
void uar_arena_reset(struct uar_arena *a);

/* Zeroed, aligned for any type; NULL when out of memory or over the bound. */
void *uar_arena_alloc(struct uar_arena *a, size_t n);
/* The same without zeroing: for what is written whole. */
void *uar_arena_room(struct uar_arena *a, size_t n);
/* And without alignment: for bytes. */
char *uar_arena_bytes(struct uar_arena *a, size_t n);
/* A NUL-terminated copy. On failure .p is NULL (also for an empty s it is not). */
uar_str uar_arena_str(struct uar_arena *a, uar_str s);
/* The same of several at once: each is replaced by its copy, or none. */
UAR_MUST_CHECK bool uar_arena_strs(struct uar_arena *a, uar_str *const *at, size_t n);
uar_str uar_arena_printf(struct uar_arena *a, const char *fmt, ...) UAR_PRINTF(2, 3);

#endif
