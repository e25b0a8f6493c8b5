/* tool_loop.h - executes what the last round of a run asks for.
 *
 * That a tool is executed is durable before it is, and its end before the next one
 * begins or the model hears of it. Read-only tools run together, others alone and
 * in the model's order. When somebody has to be asked the run is parked, and the
 * loop ends with its worker: the next one finds the answer in the log. */
#ifndef UAR_WORK_TOOL_LOOP_H
#define UAR_WORK_TOOL_LOOP_H

#include "work/rounds.h"

struct tool_loop;
struct tool_loop_options {
	struct live_run *run;
	struct rounds *rounds;	 /* stay in place */
	void (*done)(void *ctx); /* every call is over; never inside begin */
	void *ctx;
};
UAR_MUST_CHECK uar_err rt_tool_loop_begin(const struct tool_loop_options *o,
					  struct tool_loop **out);
void rt_tool_loop_stop(struct tool_loop *l); /* tools at work are cancelled; NULL is fine */
/* Nothing new begins, and what only reads is cancelled. True: what changes the world has
 * begun; `done` fires when its end is durable. False: there is nothing to wait for. */
bool rt_tool_loop_leave(struct tool_loop *l);
/* Does a tool at work wait for an answer? NULL: none does. */
bool rt_tool_loop_asks(const struct tool_loop *l);
void rt_tool_loop_answer(struct tool_loop *l, const struct uar_answer *a);

/* entry_llm.c: the loop of the run's worker, which is told of commits; NULL: it has none. */
const struct rounds *rt_llm_rounds(const struct live_run *r); /* NULL: none so far */
struct tool_loop *rt_llm_tool_loop(const struct live_run *r);
/* The agent's registry with the tools of the run's client above it; NULL: it has none of those. */
struct uar_tools *rt_llm_tools(const struct live_run *r);

#endif
