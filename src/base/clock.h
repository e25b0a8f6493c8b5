/* clock.h - time as a port: the wall clock for display, the monotonic for timers. */
#ifndef UAR_BASE_CLOCK_H
#define UAR_BASE_CLOCK_H

#include <stdint.h>

#include "base/buf.h"

struct uar_clock {
	int64_t (*wall_us)(void *ctx); /* microseconds since 1970 UTC */
	int64_t (*mono_us)(void *ctx); /* never goes back, starts anywhere */
	void *ctx;
};

extern const struct uar_clock uar_clock_system;

static inline int64_t uar_clock_wall(const struct uar_clock *c)
{
	return c->wall_us(c->ctx);
}

static inline int64_t uar_clock_mono(const struct uar_clock *c)
{
	return c->mono_us(c->ctx);
}

/* Is it in 1970 to 9999? What lies outside has no RFC 3339 form, or none that stores sort. */
bool uar_time_usable(int64_t wall_us);

enum { UAR_TIME_TEXT = 27 }; /* "2026-01-02T03:04:05.000006Z" */
/* RFC 3339 in UTC with microseconds; `out` gets 27 bytes and a NUL. */
void uar_time_format(int64_t wall_us, char out[UAR_TIME_TEXT + 1]);
/* Accepts RFC 3339 with any offset and 0..9 digits of fraction. */
UAR_MUST_CHECK uar_err uar_time_parse(uar_str text, int64_t *out_us);

#endif
