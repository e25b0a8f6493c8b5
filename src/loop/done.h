/* done.h - what other threads have finished, on its way back to the loop.
 *
 * Threads push lists of tasks; one wake-up of the loop runs all that have
 * gathered, in order. */
#ifndef UAR_LOOP_DONE_H
#define UAR_LOOP_DONE_H

#include <pthread.h>

#include "base/sched.h"

struct uar_done {
	struct uar_sched *sched;
	pthread_mutex_t lock;
	struct uar_list finished; /* of uar_task.node */
	struct uar_task wake;
	bool posted; /* the wake-up is on its way */
};
struct uar_done *uar_done_create(struct uar_sched *sched); /* NULL: no memory */
void uar_done_destroy(struct uar_done *d); /* its threads have ended; calls nobody */
void uar_done_push(struct uar_done *d, struct uar_list *tasks); /* takes all of them */
void uar_done_take(struct uar_done *d, struct uar_list *out);	/* what nobody was told yet */

#endif
