/* map.c - open addressing with linear probing; removed slots are tombstones. */
#include "base/map.h"

#include "base/alloc.h"

static char tombstone; /* its address marks a removed slot */
#define REMOVED ((void *)&tombstone)

void uar_map_init(struct uar_map *m, uint64_t seed)
{
	*m = (struct uar_map){ .seed = seed };
}

void uar_map_fini(struct uar_map *m)
{
	uar_free(m->slots);
	uar_map_init(m, m->seed);
}

static struct uar_map_slot *find(const struct uar_map *m, uar_str key, uint64_t hash)
{
	if (m->cap == 0)
		return NULL;
	for (size_t i = hash & (m->cap - 1);; i = (i + 1) & (m->cap - 1)) {
		struct uar_map_slot *s = &m->slots[i];

		if (!s->value)
			return NULL;
		if (s->value != REMOVED && s->hash == hash && uar_str_eq(s->key, key))
			return s;
	}
}

static void place(struct uar_map *m, struct uar_map_slot slot)
{
	size_t i = slot.hash & (m->cap - 1);

	while (m->slots[i].value)
		i = (i + 1) & (m->cap - 1);
	m->slots[i] = slot;
	m->used++;
}

static uar_err resize(struct uar_map *m, size_t cap)
{
	struct uar_map old = *m;
	struct uar_map_slot *slots = uar_zalloc(cap * sizeof *slots);

	if (!slots)
		return UAR_ENOMEM;
	m->slots = slots;
	m->cap = cap;
	m->used = m->removed = 0;
	for (size_t i = 0; i < old.cap; i++)
		if (old.slots[i].value && old.slots[i].value != REMOVED)
			place(m, old.slots[i]);
	uar_free(old.slots);
	return UAR_OK;
}

void *uar_map_get(const struct uar_map *m, uar_str key)
{
	struct uar_map_slot *s = find(m, key, uar_str_hash(key, m->seed));

	return s ? s->value : NULL;
}

uar_err uar_map_put(struct uar_map *m, uar_str key, void *value)
{
	uint64_t hash = uar_str_hash(key, m->seed);

	if (find(m, key, hash))
		return UAR_EEXISTS;
	if ((m->used + m->removed + 1) * 4 > m->cap * 3) {
		size_t cap = m->cap ? m->cap : 8;
		uar_err e;

		while ((m->used + 1) * 2 > cap)
			cap *= 2;
		e = resize(m, cap);
		if (e)
			return e;
	}
	place(m, (struct uar_map_slot){ hash, key, value });
	return UAR_OK;
}

void *uar_map_replace(struct uar_map *m, uar_str key, void *value)
{
	struct uar_map_slot *s = find(m, key, uar_str_hash(key, m->seed));
	void *old;

	if (!s)
		return NULL;
	old = s->value;
	s->key = key;
	s->value = value;
	return old;
}

void *uar_map_remove(struct uar_map *m, uar_str key)
{
	struct uar_map_slot *s = find(m, key, uar_str_hash(key, m->seed));
	void *value;

	if (!s)
		return NULL;
	value = s->value;
	*s = (struct uar_map_slot){ .value = REMOVED };
	m->used--;
	m->removed++;
	return value;
}

void *uar_map_next(const struct uar_map *m, size_t *at)
{
	while (*at < m->cap) {
		void *value = m->slots[(*at)++].value;

		if (value && value != REMOVED)
			return value;
	}
	return NULL;
}
