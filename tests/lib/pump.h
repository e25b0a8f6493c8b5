/* pump.h - a scheduler for tests: the test's own thread is the loop.
 *
 *	struct uar_pump p;
 *	uar_pump_init(&p);
 *	... something that posts to &p.sched ...
 *	uar_pump_until(&p, &flag);     turns until *flag is set, sleeping for
 *	                               other threads and timers in between
 *	uar_pump_fini(&p);
 */
#ifndef UAR_TEST_PUMP_H
#define UAR_TEST_PUMP_H

#include <pthread.h>

#include "base/sched.h"

struct uar_pump {
	struct uar_sched sched;
	struct uar_list tasks; /* of this thread */
	struct uar_timers timers;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct uar_list remote; /* from other threads */
};

void uar_pump_init(struct uar_pump *p);
void uar_pump_fini(struct uar_pump *p);
/* Runs what is ready now and due; false when there was nothing. */
bool uar_pump_turn(struct uar_pump *p);
/* Turns until *flag; sleeps while nothing is ready. */
void uar_pump_until(struct uar_pump *p, const bool *flag);
/* Turns until *count has reached `want`. */
void uar_pump_count(struct uar_pump *p, const size_t *count, size_t want);
/* For any scheduler of a test: the work is done at once and told later. */
uar_err uar_pump_work(struct uar_sched *s, struct uar_work *w);

#endif
