/* fanout_int.h - what fanout*.c share. */
#ifndef UAR_ENGINE_FANOUT_INT_H
#define UAR_ENGINE_FANOUT_INT_H

#include "engine/control_int.h"
#include "engine/fanout.h"

/* Something that is done for a child, step by step; it frees itself. */
struct errand {
	struct rt_op under_way;
	struct uar_runtime *rt;
	struct uar_arena arena;
	struct uar_control in; /* the command of the step */
	struct uar_control_op op;
	struct uar_timer again;
	void (*step)(struct errand *e); /* what is repeated when it could not be done */
	bool job;			/* of an item; else of a subagent */
	uar_str parent_id;		/* subagent_id or job_id */
	uar_str turn_id, thread_id, run_id;
	struct {
		uar_str agent_id, message, parent_thread_id, budgets;
		bool cancel;
	} turn; /* what is submitted */
	struct uar_run_cancel_op stop;
	struct uar_runs_query run;
	struct uar_read read;
	struct uar_rows_query rows;
	struct uar_buf answer;
	int64_t answer_bytes;			 /* of all of it */
	char message_id[UAR_LIMIT_ID_BYTES + 1]; /* whose text is in `answer` */
	uar_str status, code, message;		 /* how the run ended */
	bool retryable;
};

/* NULL: no memory; the next start finds what was to be done. */
struct errand *rt_errand_make(struct uar_runtime *rt, const struct uar_owner *owner);
void rt_errand_end(struct errand *e);
/* Copies the strings. False: no memory, and the errand is over. */
bool rt_errand_keep(struct errand *e, uar_str *const *strings, size_t n);
/* Does e->step again, later. */
void rt_errand_again(struct errand *e, uar_err why);

/* fanout_close.c */
void rt_fanout_close_child(struct uar_runtime *rt, const struct uar_owner *owner, uar_str id);
void rt_fanout_cancel_job(struct uar_runtime *rt, const struct uar_owner *owner, uar_str id);
/* The child was closed, so its own children are, and its jobs. */
void rt_fanout_close_below(struct uar_runtime *rt, const struct uar_owner *owner,
			   uar_str child_session_id);

/* fanout_check.c: stops it when what has started it was stopped. */
void rt_fanout_check_child(struct uar_runtime *rt, const struct uar_owner *owner,
			   const struct uar_row *row, const struct uar_row_subagent *s);
void rt_fanout_check_job(struct uar_runtime *rt, const struct uar_owner *owner,
			 const struct uar_row *row, const struct uar_row_job *j);

/* fanout_wait.c */
void rt_fanout_rested(struct uar_runtime *rt, const struct uar_owner *owner, uar_str subagent_id);

#endif
