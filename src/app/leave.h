/* leave.h - whoever leaves a run by Ctrl-C is told that it goes on, and how to come back.
 *
 * The program then dies by the signal, as it would have without a word. A signal that
 * the caller ignores stays ignored. */
#ifndef UAR_APP_LEAVE_H
#define UAR_APP_LEAVE_H

#include <pthread.h>
#include <signal.h>

#include "app/cli.h"

struct uar_leave {
	FILE *err;
	bool err_tty, watching;
	const char *run_id;
	int signals, stop; /* descriptors */
	pthread_t thread;
	sigset_t before;
};

/* run_id is borrowed until the end. What cannot be watched is not: signals do what they always do.
 */
void uar_leave_begin(struct uar_leave *l, const struct uar_cli *cli, const char *run_id);
void uar_leave_end(struct uar_leave *l);

#endif
