/* rand.c - kernel randomness, a seeded generator, UUIDv7. */
#include "base/rand.h"

#include <endian.h>
#include <stdlib.h>
#include <sys/random.h>

static void kernel_fill(void *p, size_t n)
{
	char *at = p;

	while (n) {
		ssize_t got = getrandom(at, n, 0);

		if (got < 0)
			continue; /* EINTR is the only failure of a valid call */
		at += got;
		n -= (size_t)got;
	}
}

/* A system call for each id would cost more than the id: draw in blocks. */
static void system_fill(void *ctx, void *out, size_t n)
{
	static _Thread_local unsigned char pool[4096];
	static _Thread_local size_t left;

	(void)ctx;
	if (n > sizeof pool) {
		kernel_fill(out, n);
		return;
	}
	if (n > left) {
		kernel_fill(pool, sizeof pool);
		left = sizeof pool;
	}
	left -= n;
	memcpy(out, pool + left, n);
	memset(pool + left, 0, n); /* given out once, never kept */
}

const struct uar_rand uar_rand_system = { system_fill, NULL };

/* splitmix64 */
static uint64_t seeded_next(struct uar_rand_seeded *s)
{
	uint64_t z = s->state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static void seeded_fill(void *ctx, void *out, size_t n)
{
	unsigned char *p = out;

	while (n) {
		uint64_t v = seeded_next(ctx);
		size_t k = n < 8 ? n : 8;

		memcpy(p, &v, k);
		p += k;
		n -= k;
	}
}

struct uar_rand uar_rand_seed(struct uar_rand_seeded *s, uint64_t seed)
{
	s->state = seed;
	return (struct uar_rand){ seeded_fill, s };
}

uint64_t uar_rand_u64(const struct uar_rand *r)
{
	uint64_t v;

	r->fill(r->ctx, &v, sizeof v);
	return v;
}

uint64_t uar_rand_below(const struct uar_rand *r, uint64_t bound)
{
	uint64_t limit = UINT64_MAX - UINT64_MAX % bound, v;

	do {
		v = uar_rand_u64(r);
	} while (v >= limit);
	return v % bound;
}

void uar_uuid_init(struct uar_uuid *u, const struct uar_clock *clock, const struct uar_rand *rand)
{
	*u = (struct uar_uuid){ clock, rand, 0, 0 };
}

/* 48 bits of milliseconds, then 26 bits of counter (12 in rand_a, 14 at the top
 * of rand_b), then 48 random bits. */
static void next_tick(struct uar_uuid *u)
{
	uint64_t ms = (uint64_t)uar_clock_wall(u->clock) / 1000;

	if (ms > u->last_ms) {
		u->last_ms = ms;
		u->counter = (uint32_t)uar_rand_u64(u->rand) & 0x1ffffff;
	} else if (++u->counter > 0x3ffffff) {
		u->last_ms++;
		u->counter = 0;
	}
}

void uar_uuid_next(struct uar_uuid *u, char out[UAR_UUID_TEXT + 1])
{
	unsigned char raw[16];
	char digits[2 * sizeof raw + 1];
	uint64_t head;
	uint16_t middle;

	next_tick(u);
	head = htobe64(u->last_ms << 16 | 0x7000 | (u->counter >> 14 & 0x0fff));
	middle = htobe16((uint16_t)(0x8000 | (u->counter & 0x3fff)));
	memcpy(raw, &head, 8);
	memcpy(raw + 8, &middle, 2);
	u->rand->fill(u->rand->ctx, raw + 10, 6);
	uar_hex(raw, sizeof raw, digits);
	memcpy(out, digits, 8);
	memcpy(out + 9, digits + 8, 4);
	memcpy(out + 14, digits + 12, 4);
	memcpy(out + 19, digits + 16, 4);
	memcpy(out + 24, digits + 20, 12);
	out[8] = out[13] = out[18] = out[23] = '-';
	out[UAR_UUID_TEXT] = 0;
}

/* Are all eight bytes digits of lower hexadecimal? Adding to a byte below 0x80
 * sets its top bit when it is large enough, and never carries. */
static bool all_hex(uint64_t x)
{
	const uint64_t ones = UINT64_MAX / 255, top = ones * 0x80;
	uint64_t digit = (x + ones * (0x80 - '0')) & ~(x + ones * (0x80 - '9' - 1));
	uint64_t letter = (x + ones * (0x80 - 'a')) & ~(x + ones * (0x80 - 'f' - 1));

	return !(x & top) && ((digit | letter) & top) == top;
}

bool uar_uuid_valid(uar_str s)
{
	uint64_t part[4];
	char *groups = (char *)&part[2];

	if (s.n != UAR_UUID_TEXT || s.p[8] != '-' || s.p[13] != '-' || s.p[18] != '-' ||
	    s.p[23] != '-')
		return false;
	memcpy(&part[0], s.p, 8);
	memcpy(&part[1], s.p + 24, 8);
	memcpy(groups, s.p + 9, 4);
	memcpy(groups + 4, s.p + 14, 4);
	memcpy(groups + 8, s.p + 19, 4);
	memcpy(groups + 12, s.p + 32, 4);
	return all_hex(part[0]) && all_hex(part[1]) && all_hex(part[2]) && all_hex(part[3]);
}
