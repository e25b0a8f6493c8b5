/* json_keys.c - a set of an object's keys in linear time, whatever the keys are.
 * SipHash-1-3 under a random key decides the slot, so collisions cannot be made
 * from outside. Small objects never come here: see json_parse.c. */
#include "json/json_int.h"

#include "base/alloc.h"
#include "base/rand.h"

struct uar_json_key_slot {
	uint64_t hash;
	const struct uar_json *member; /* NULL: free */
};

struct sip {
	uint64_t v0, v1, v2, v3;
};

static uint64_t rotl(uint64_t x, int b)
{
	return x << b | x >> (64 - b);
}

static void sip_round(struct sip *s)
{
	s->v0 += s->v1;
	s->v1 = rotl(s->v1, 13) ^ s->v0;
	s->v0 = rotl(s->v0, 32);
	s->v2 += s->v3;
	s->v3 = rotl(s->v3, 16) ^ s->v2;
	s->v0 += s->v3;
	s->v3 = rotl(s->v3, 21) ^ s->v0;
	s->v2 += s->v1;
	s->v1 = rotl(s->v1, 17) ^ s->v2;
	s->v2 = rotl(s->v2, 32);
}

static uint64_t sip_hash(const struct uar_json_keys *k, uar_str key)
{
	struct sip s = { k->k0 ^ 0x736f6d6570736575u, k->k1 ^ 0x646f72616e646f6du,
			 k->k0 ^ 0x6c7967656e657261u, k->k1 ^ 0x7465646279746573u };
	uint64_t m, tail = (uint64_t)key.n << 56;
	size_t i = 0;

	for (; i + 8 <= key.n; i += 8) {
		memcpy(&m, key.p + i, 8);
		s.v3 ^= m;
		sip_round(&s);
		s.v0 ^= m;
	}
	for (int shift = 0; i < key.n; i++, shift += 8)
		tail |= (uint64_t)(unsigned char)key.p[i] << shift;
	s.v3 ^= tail;
	sip_round(&s);
	s.v0 ^= tail;
	s.v2 ^= 0xff;
	for (int r = 0; r < 3; r++)
		sip_round(&s);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

void uar_json_keys_fini(struct uar_json_keys *keys)
{
	uar_free(keys->slots);
	*keys = (struct uar_json_keys){ 0 };
}

static struct uar_json_key_slot *slot_of(const struct uar_json_keys *keys, uar_str key,
					 uint64_t hash)
{
	for (size_t i = hash & (keys->cap - 1);; i = (i + 1) & (keys->cap - 1)) {
		struct uar_json_key_slot *s = &keys->slots[i];

		if (!s->member || (s->hash == hash && uar_str_eq(s->member->key, key)))
			return s;
	}
}

/* Empties the table at a size that keeps it at most half full. */
static uar_err prepare(struct uar_json_keys *keys, size_t count)
{
	size_t cap = 64;

	while (cap < count * 2)
		cap *= 2;
	if (keys->cap < cap) {
		uar_json_keys_fini(keys);
		keys->slots = uar_alloc(cap * sizeof *keys->slots);
		if (!keys->slots)
			return UAR_ENOMEM;
		uar_rand_system.fill(uar_rand_system.ctx, &keys->k0, sizeof keys->k0);
		uar_rand_system.fill(uar_rand_system.ctx, &keys->k1, sizeof keys->k1);
	}
	keys->cap = cap; /* only this much of a larger table is in use, and cleared */
	memset(keys->slots, 0, cap * sizeof *keys->slots);
	return UAR_OK;
}

uar_err uar_json_keys_load(struct uar_json_keys *keys, const struct uar_json *object,
			   const struct uar_json **out_second)
{
	uar_err e = prepare(keys, object->count);

	for (const struct uar_json *m = e ? NULL : object->first; m; m = m->next) {
		uint64_t hash = sip_hash(keys, m->key);
		struct uar_json_key_slot *s = slot_of(keys, m->key, hash);

		if (s->member) {
			*out_second = m;
			return UAR_EDUPKEY;
		}
		*s = (struct uar_json_key_slot){ hash, m };
	}
	return e;
}

/* The tree is read-only for everybody but its reader. */
static struct uar_json *own(const struct uar_json *j)
{
	return (struct uar_json *)(uintptr_t)j;
}

uar_err uar_json_keys_last(struct uar_json_keys *keys, struct uar_json *object)
{
	uar_err e = prepare(keys, object->count);
	const struct uar_json **link = &object->first;

	if (e)
		return e;
	for (const struct uar_json *m = object->first; m; m = m->next) {
		uint64_t hash = sip_hash(keys, m->key);
		struct uar_json_key_slot *s = slot_of(keys, m->key, hash);

		if (s->member)
			own(s->member)->key = UAR_STR_NONE; /* marks it; read keys have a place */
		*s = (struct uar_json_key_slot){ hash, m };
	}
	while (*link)
		if ((*link)->key.p) {
			link = &own(*link)->next;
		} else {
			*link = (*link)->next;
			object->count--;
		}
	return UAR_OK;
}

const struct uar_json *uar_json_keys_find(const struct uar_json_keys *keys, uar_str key)
{
	return keys->cap ? slot_of(keys, key, sip_hash(keys, key))->member : NULL;
}
