/* rand.h - randomness as a port, and UUIDv7 from it. */
#ifndef UAR_BASE_RAND_H
#define UAR_BASE_RAND_H

#include "base/clock.h"

struct uar_rand {
	void (*fill)(void *ctx, void *out, size_t n);
	void *ctx;
};

extern const struct uar_rand uar_rand_system; /* the kernel's generator, buffered per thread */

/* A generator that repeats itself from its seed; for simulation and tests only. */
struct uar_rand_seeded {
	uint64_t state;
};
struct uar_rand uar_rand_seed(struct uar_rand_seeded *s, uint64_t seed);

uint64_t uar_rand_u64(const struct uar_rand *r);
uint64_t uar_rand_below(const struct uar_rand *r, uint64_t bound); /* 0..bound-1 */

enum { UAR_UUID_TEXT = 36 };
/* Canonical UUIDv7 text: 36 bytes and a NUL. Values made by one `struct
 * uar_uuid` rise strictly, also inside one millisecond and when the clock steps back. */
struct uar_uuid {
	const struct uar_clock *clock;
	const struct uar_rand *rand;
	uint64_t last_ms;
	uint32_t counter;
};
void uar_uuid_init(struct uar_uuid *u, const struct uar_clock *clock, const struct uar_rand *rand);
void uar_uuid_next(struct uar_uuid *u, char out[UAR_UUID_TEXT + 1]);
bool uar_uuid_valid(uar_str s); /* canonical lower-case text of any version */

#endif
