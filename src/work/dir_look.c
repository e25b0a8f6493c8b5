/* dir_look.c - see dir_look.h. */
#include "work/dir_look.h"

#include "base/alloc.h"

static void work(struct uar_work *w)
{
	struct dir_look *j = UAR_OWNER(w, struct dir_look, work);

	j->err = j->check(j->dir, &j->error);
}

static void done(struct uar_work *w)
{
	struct dir_look *j = UAR_OWNER(w, struct dir_look, work);

	j->error.code = j->err;
	if (j->done)
		j->done(j);
	uar_free(j);
}

struct dir_look *rt_dir_look_make(const struct uar_agents *host, uar_str dir)
{
	struct dir_look *j = uar_alloc(sizeof *j + dir.n);

	if (!j)
		return NULL;
	memset(j, 0, sizeof *j);
	memcpy(j->text, dir.p, dir.n);
	j->dir = uar_str_n(j->text, dir.n);
	j->check = host->ops->check_dir;
	j->work.work = work;
	j->work.done = done;
	return j;
}

uar_err rt_dir_look_begin(struct uar_sched *sched, struct dir_look *job)
{
	uar_err e = uar_work_begin(sched, &job->work);

	if (e)
		uar_free(job);
	return e;
}

void rt_dir_look_forget(struct dir_look *job)
{
	if (job)
		job->done = NULL;
}
