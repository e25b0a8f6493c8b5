/* alloc.c - heap calls behind one hook. */
#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

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

void *uar_alloc(size_t n)
{
	return refused() ? NULL : malloc(n ? n : 1);
}

void *uar_zalloc(size_t n)
{
	return refused() ? NULL : calloc(1, n ? n : 1);
}

void *uar_realloc(void *p, size_t n)
{
	return refused() ? NULL : realloc(p, n);
}

void uar_free(void *p)
{
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
