/* leap.h - the system's clock, which a test may let leap ahead: limits of a minute
 * are met at once and never by accident on a slow machine. */
#ifndef UAR_TEST_LEAP_H
#define UAR_TEST_LEAP_H

#include "base/sched.h"

struct leap {
	struct uar_clock clock;
	int64_t ahead_us, held_us; /* held_us: where it stands still, 0: it does not */
	struct uar_timer poke;
};

void leap_init(struct leap *l);
/* From here on it stands still but for leaps, and a microsecond for each look at it. */
void leap_hold(struct leap *l);
/* Time moves on; timers that are due now fire in the next turn. */
void leap_ahead(struct leap *l, struct uar_sched *s, int64_t us);

#endif
