/* leap.h - the system's clock, which a test may let leap ahead: limits of a minute
 * are met at once and never by accident on a slow machine. */
#ifndef UAR_TEST_LEAP_H
#define UAR_TEST_LEAP_H

#include "base/sched.h"

struct leap {
	struct uar_clock clock;
	int64_t ahead_us;
	struct uar_timer poke;
};

void leap_init(struct leap *l);
/* Time moves on; timers that are due now fire in the next turn. */
void leap_ahead(struct leap *l, struct uar_sched *s, int64_t us);

#endif
