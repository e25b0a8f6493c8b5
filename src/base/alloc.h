/* alloc.h - the one door to the heap, so that tests can fail the nth call.
 *
 * Every room allocates through here or through an arena that does. */
#ifndef UAR_BASE_ALLOC_H
#define UAR_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

void *uar_alloc(size_t n);		     /* uninitialised; NULL when out of memory */
void *uar_zalloc(size_t n);		     /* zeroed */
void *uar_realloc(void *p, size_t n);	     /* like realloc; n > 0 */
void uar_free(void *p);			     /* NULL is fine */
char *uar_strdup_n(const char *p, size_t n); /* NUL-terminated copy */

/* From now on the calling thread keeps small pieces that it frees, up to a bound,
 * and hands them out again: what a loop takes and gives back in bursts is more than
 * malloc holds at hand. True: it began, and uar_alloc_keep_end has to follow on the
 * same thread; false: it does so already, or never will (no memory, a sanitizer
 * that wants to see every call). */
bool uar_alloc_keep(void);
void uar_alloc_keep_end(void);

/* Gives back to the system what this thread keeps and what malloc has free. */
void uar_alloc_release(void);
/* Can so many bytes be allocated, a large piece and many small ones? They are freed at once. */
bool uar_alloc_can(size_t bytes);

/* Asked before each allocation when set; a non-zero answer makes it fail.
 * Set it before threads start. Tests and fault runs only. */
typedef int uar_alloc_hook(void *ctx);
void uar_alloc_set_hook(uar_alloc_hook *hook, void *ctx);

#endif
