/* fanout.h - child agents and jobs, read from their rows. */
#ifndef UAR_READ_FANOUT_H
#define UAR_READ_FANOUT_H

#include "read/read.h"

/* Each stays in place until done; `json` belongs to the caller: uar_buf_fini. */

/* The children of a session, and theirs, level by level. */
struct uar_subagents_op {
	struct uar_owner owner;
	uar_str session_id;
	uar_str thread_id; /* of the first level; empty: any */
	int64_t depth;	   /* levels; 0: all */
	void (*done)(struct uar_subagents_op *op);
	void *ctx; /* the caller's */
	uar_err err;
	struct uar_error error;
	struct uar_buf json;
};
UAR_MUST_CHECK uar_err uar_read_subagents(struct uar_reader *rd, struct uar_subagents_op *op);

/* One job with a page of its items, or a list. */
struct uar_jobs_op {
	struct uar_owner owner;
	uar_str job_id; /* set: that job; else a list: */
	uar_str session_id, thread_id, status;
	uar_str cursor;
	uint32_t limit;
	void (*done)(struct uar_jobs_op *op);
	void *ctx; /* the caller's */
	uar_err err;
	struct uar_error error;
	struct uar_buf json;
};
UAR_MUST_CHECK uar_err uar_read_jobs(struct uar_reader *rd, struct uar_jobs_op *op);

#endif
