/* dir_look.h - whether a program could work in a directory that somebody named.
 *
 * A directory may be on a disk that does not answer, so a worker thread looks. */
#ifndef UAR_WORK_DIR_LOOK_H
#define UAR_WORK_DIR_LOOK_H

#include "base/sched.h"
#include "event/agent.h"

struct dir_look {
	struct uar_work work;
	uar_err (*check)(uar_str dir, struct uar_error *error);
	/* On the loop; the job is freed when it returns. NULL: nobody wants to know. */
	void (*done)(struct dir_look *job);
	void *ctx;
	/* out */
	uar_err err;
	struct uar_error error;
	uar_str dir;
	char text[]; /* of it */
};
/* NULL: out of memory. */
struct dir_look *rt_dir_look_make(const struct uar_agents *host, uar_str dir);
/* Takes the job; on an error it is freed and `done` not called. */
UAR_MUST_CHECK uar_err rt_dir_look_begin(struct uar_sched *sched, struct dir_look *job);
/* `done` will not be called; NULL is fine. */
void rt_dir_look_forget(struct dir_look *job);

#endif
