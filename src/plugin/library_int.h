/* library_int.h - plugins that are shared objects: their threads, and runs on them.
 *
 * The loop thread gives jobs to threads; a thread gives news of its job back
 * through one inbox, with one wake-up for however much there is. A thread that
 * does not come back is written off: its run is over, the thread and its job stay
 * until it does come back, and both are counted. */
#ifndef UAR_PLUGIN_LIBRARY_INT_H
#define UAR_PLUGIN_LIBRARY_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "plugin/plugin_int.h"
#include "uar/plugin.h"

/* As many threads as there are processors take the queue: waking one for each of many
 * short runs would cost more than the runs. When the queue stands still the runs at
 * work are slow ones, and others are woken or started in their place. */
struct library_pool {
	uint32_t threads, idle, lost; /* lost ones are among the threads */
	uint32_t called;	      /* woken or started, but not here yet */
	uint32_t running, slow;	      /* slow ones are running */
	uint32_t max, quick;	      /* threads at most; at work on short runs */
	size_t queued;
	uint64_t taken, seen; /* from the queue; when the timer last looked */
	uint32_t epoch;	      /* counts the times it stood still */
};

/* Freed by the last of its users: the plugin, and each thread. */
struct library {
	struct plugin *plugin; /* loop thread only; NULL: closed */
	struct uar_sched *sched;
	void *object;
	const struct uarp_plugin *api;
	struct uar_task task;	/* empties the inbox */
	struct uar_timer stall; /* looks after the queue */
	pthread_mutex_t lock;	/* guards what follows, and what jobs say is under it */
	pthread_cond_t work;	/* something is in the queue, or it is closed */
	pthread_cond_t quiet;	/* a thread has ended */
	struct uar_list queue, inbox;
	struct library_pool pool;
	uint32_t users;
	bool posted, closed;
	struct timespec until; /* once it is closed: waits for its threads no longer */
};

enum job_state { JOB_QUEUED, JOB_RUNNING, JOB_RETURNED };

/* A message that waits for the loop, then for its answer; on the thread's stack. */
struct job_mail {
	const struct uar_message *message; /* NULL: none */
	bool taken, answered;
	uar_err result;
};

struct job_report {
	bool pending;
	struct uar_progress progress; /* strings in the arena */
	struct uar_arena arena;
};

/* Items that a handler has named as the result. */
struct job_refs {
	struct uar_json *first, *last;
	uint32_t count;
};

struct job {
	struct uarp_run base; /* first: the port gets it back by a cast */
	struct library *library;
	struct uar_entry_call *call; /* loop thread only; NULL: nobody waits for it */
	uarp_entry_fn *fn;
	struct uar_arena arena; /* of whoever has the job */
	struct uarp_info info;
	const struct uar_json *args; /* NULL: not read yet */
	atomic_bool cancelled;
	const char *error; /* code of the last refusal */
	char export_id[UAR_LIMIT_ID_BYTES + 1];
	struct job_refs kept;
	uar_str result;		    /* JSON, or empty */
	struct uarp_failure failed; /* code NULL: did not say */
	struct uar_message end;	    /* how it ended */
	/* under the library's lock */
	struct uar_list queued, news;
	enum job_state state;
	bool lost;
	uint32_t epoch; /* of the pool, when it was taken */
	struct job_mail *mail;
	struct job_report report;
	char reason[256];
	pthread_cond_t told; /* an answer, or the cancel */
};

/* context.c: what a handler calls, on its thread */
extern const struct uarp_ops job_ops;
/* Runs the handler and reads how it ended into job->end. */
void job_execute(struct job *j);
/* Under the lock: there is news of the job. */
void library_post(struct library *l, struct job *j);
void job_free(struct job *j); /* NULL is fine */
/* The last user is gone. What was loaded is unloaded: no code of it runs any more. */
void library_free(struct library *l);

/* library_pool.c */
/* Under the lock: threads that are not lost. */
uint32_t pool_live(const struct library *l);
/* False: there is no thread, and none can be had. */
bool pool_submit(struct library *l, struct job *j);
/* The timer of a queue that has not moved since the last look: whoever is at work will take
 * longer. */
void pool_stalled(struct uar_timer *t);

#endif
