/* memory_store.h - the store port in memory, and what tests and the simulation may do to it. */
#ifndef TESTS_MEMORY_STORE_H
#define TESTS_MEMORY_STORE_H

#include "store/store.h"

/* `dir` is not used. */
UAR_MUST_CHECK uar_err uar_store_memory_create(const struct uar_store_options *o,
					       struct uar_store **out, struct uar_error *error);

/* The next append that would be committed fails with `err` instead and leaves
 * no trace. UAR_ESYNC breaks the store, UAR_EDISKFULL fills it until a commit
 * succeeds; both as the real store does. UAR_EUNKNOWN breaks the store, too, but the
 * append is committed: it is found after a crash. UAR_OK takes the fault back. */
void uar_store_memory_fail_next(struct uar_store *s, uar_err err);
/* While held, appends wait and gather as they do behind a slow disk. */
void uar_store_memory_hold(struct uar_store *s, bool hold);
/* The process dies and starts again: of the appends that nobody was told about
 * the first `keep` are found committed, the rest never happened. No operation
 * that is under way calls back; the caller's structs are free again. Faults,
 * holds and drains are forgotten. */
void uar_store_memory_crash(struct uar_store *s, size_t keep);
size_t uar_store_memory_waiting(const struct uar_store *s); /* appends not yet committed */

#endif
