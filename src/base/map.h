/* map.h - hash map from text to a pointer; the key lives inside the value.
 *
 * Keys are borrowed: they must stay in place while their entry is in the map.
 * Order of iteration is unspecified. Not for use across threads. */
#ifndef UAR_BASE_MAP_H
#define UAR_BASE_MAP_H

#include "base/str.h"

struct uar_map_slot {
	uint64_t hash;
	uar_str key;
	void *value; /* NULL: free; see map.c for removed ones */
};

struct uar_map {
	struct uar_map_slot *slots;
	size_t cap, used, removed;
	uint64_t seed;
};

void uar_map_init(struct uar_map *m, uint64_t seed);
void uar_map_fini(struct uar_map *m); /* values are the caller's */
void *uar_map_get(const struct uar_map *m, uar_str key);
/* UAR_EEXISTS when the key is there already. */
UAR_MUST_CHECK uar_err uar_map_put(struct uar_map *m, uar_str key, void *value);
/* Gives the entry of that key another value, in which the key lives from now on;
 * needs no memory. The old value, or NULL when there is no such entry. */
void *uar_map_replace(struct uar_map *m, uar_str key, void *value);
void *uar_map_remove(struct uar_map *m, uar_str key); /* the value, or NULL */
/* Iteration: start with *at = 0; NULL at the end. Removing the returned entry is safe. */
void *uar_map_next(const struct uar_map *m, size_t *at);

#endif
