/* fanout.h - child agents and the items of jobs, for those who wait for them. */
#ifndef UAR_ENGINE_FANOUT_H
#define UAR_ENGINE_FANOUT_H

#include "core/control.h"
#include "engine/engine.h"

/* Waits until children are at rest: nothing of them is under way. It waits in memory, for a
 * connection or a tool call that does so as well; who asks again after a restart goes on waiting.
 */
struct uar_subagents_wait {
	struct uar_list node; /* the engine's */
	struct uar_owner owner;
	const uar_str *ids;
	size_t count;	     /* at most UAR_LIMIT_WAIT_SUBAGENTS */
	bool any;	     /* one of them is enough */
	int64_t timeout_us;  /* 0: looks once */
	size_t answer_bytes; /* of each answer; 0: all that is kept */
	void (*done)(struct uar_subagents_wait *w);
	void *ctx; /* the caller's */
	/* out */
	uar_err err; /* ENOTFOUND: there is no such child */
	struct uar_error error;
	struct uar_buf json; /* {"subagents":[...],"timed_out":false}; belongs to the caller */
	void *internal;
};
/* EBUSY: too many wait. It stays in place until done, or until it is left. */
UAR_MUST_CHECK uar_err uar_runtime_wait_subagents(struct uar_runtime *rt,
						  struct uar_subagents_wait *w);
void uar_runtime_leave_subagents(struct uar_subagents_wait *w); /* `done` is not called */

#endif
