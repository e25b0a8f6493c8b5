/* alloc.c - heap calls behind one hook, and before them what a thread keeps.
 *
 * Every piece is malloc's own, whoever kept it meanwhile: it may come from one
 * thread and be freed by another. */
#include "base/alloc.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

static uar_alloc_hook *fail_hook;
static void *fail_ctx;

void uar_alloc_set_hook(uar_alloc_hook *hook, void *ctx)
{
	fail_ctx = ctx;
	fail_hook = hook;
}

static int refused(void)
{
	return fail_hook && fail_hook(fail_ctx);
}

/* --- pieces a thread keeps ------------------------------------------------------ */

/* Pieces of 16c + 8 bytes or a little more are of class c, as malloc makes them. */
enum {
	STEP = 16,
	OVER = 8,
	CLASSES = UAR_LIMIT_KEEP_PIECE / STEP + 1,
};

struct piece {
	struct piece *next;
};

struct keep {
	struct piece *first[CLASSES];
	uint16_t count[CLASSES];
	size_t bytes;
};

static _Thread_local struct keep *kept; /* NULL: this thread keeps nothing */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
	__has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif

bool uar_alloc_keep(void)
{
#ifdef SANITIZED
	return false;
#else
	if (!kept)
		return (kept = calloc(1, sizeof *kept)) != NULL;
	return false;
#endif
}

void uar_alloc_keep_end(void)
{
	struct keep *k = kept;

	kept = NULL;
	for (size_t c = 0; k && c < CLASSES; c++)
		while (k->first[c]) {
			struct piece *p = k->first[c];

			k->first[c] = p->next;
			free(p);
		}
	free(k);
}

/* A kept piece of at least n bytes, or NULL. */
static void *take_kept(size_t n)
{
	size_t c = n > OVER ? (n + STEP - OVER - 1) / STEP : 1;
	struct keep *k = kept;
	struct piece *p;

	if (!k || n > UAR_LIMIT_KEEP_PIECE || c >= CLASSES || !(p = k->first[c]))
		return NULL;
	k->first[c] = p->next;
	k->count[c]--;
	k->bytes -= c * STEP;
	return p;
}

static bool keep(void *p)
{
	size_t n = malloc_usable_size(p), c = (n - OVER) / STEP;
	struct keep *k = kept;
	struct piece *piece = p;

	if (c < CLASSES && k->first[c] == piece)
		abort(); /* it is freed twice, and two would own it; malloc would do so, too */
	if (n < STEP + OVER || c >= CLASSES || k->count[c] >= UAR_LIMIT_KEEP_EACH ||
	    k->bytes + c * STEP > UAR_LIMIT_KEEP_BYTES)
		return false;
	piece->next = k->first[c];
	k->first[c] = piece;
	k->count[c]++;
	k->bytes += c * STEP;
	return true;
}

void uar_alloc_release(void)
{
	if (kept) {
		uar_alloc_keep_end();
		(void)uar_alloc_keep();
	}
	(void)malloc_trim(0);
}

/* --- the door ----------------------------------------------------------------------- */

void *uar_alloc(size_t n)
{
	void *p;

	if (refused())
		return NULL;
	p = take_kept(n);
	return p ? p : malloc(n ? n : 1);
}

void *uar_zalloc(size_t n)
{
	void *p;

	if (refused())
		return NULL;
	p = take_kept(n);
	return p ? memset(p, 0, n) : calloc(1, n ? n : 1);
}

void *uar_realloc(void *p, size_t n)
{
	void *to;
	size_t have;

	if (refused())
		return NULL;
	to = take_kept(n);
	if (!to || !p)
		return to ? to : realloc(p, n);
	have = malloc_usable_size(p);
	memcpy(to, p, have < n ? have : n);
	uar_free(p);
	return to;
}

void uar_free(void *p)
{
	if (p && kept && keep(p))
		return;
	free(p);
}

char *uar_strdup_n(const char *p, size_t n)
{
	char *copy = uar_alloc(n + 1);

	if (!copy)
		return NULL;
	if (n)
		memcpy(copy, p, n);
	copy[n] = 0;
	return copy;
}

/* Small pieces come from holes in the heap, which may have room where no large piece has. */
bool uar_alloc_can(size_t bytes)
{
	enum { SMALL = 32768 };
	void *small[64] = { NULL };
	size_t left = bytes / 2, n = 0;
	void *large = uar_alloc(bytes - left);
	bool good = large != NULL;

	for (; good && left && n < sizeof small / sizeof *small; n++) {
		size_t piece = left < SMALL ? left : SMALL;

		small[n] = uar_alloc(piece);
		good = small[n] != NULL;
		left -= piece;
	}
	while (n)
		free(small[--n]);
	free(large);
	return good;
}
