/* hooks.h - the hooks of a run: which are called at a point, and what they have answered.
 *
 * That a hook is called is durable before it is, and its answer before it acts. The log is the
 * only memory of it: whoever goes on with the run reads the answers there and calls only the
 * hooks that have not given one. */
#ifndef UAR_WORK_HOOKS_H
#define UAR_WORK_HOOKS_H

#include "core/hook_answer.h"
#include "tool/hook.h"
#include "work/rounds.h"

struct hooks;
/* Are the hooks there that the definition of the run asks for? */
UAR_MUST_CHECK uar_err rt_hooks_check(const struct live_run *r, struct uar_error *error);
/* Is there a hook for runs of that agent? */
bool rt_hooks_wanted(const struct live_run *r);
/* Reads what was answered before. `ready` fires later. */
typedef void hooks_ready_fn(void *ctx, uar_err e);
UAR_MUST_CHECK uar_err rt_hooks_open(struct live_run *r, hooks_ready_fn *ready, void *ctx,
				     struct hooks **out);
void rt_hooks_close(struct hooks *h); /* nothing is told any more; NULL is fine */

struct hook_ask {
	enum uar_hook_point point;
	uar_str subject;	     /* a tool call or a model request; or empty */
	const struct uar_tool *tool; /* NULL: none, or one that is not known */
	uar_str tool_name, args;     /* of the call */
	uar_str output;		     /* as the model is told it, or its beginning */
	int64_t output_bytes;	     /* of the whole */
	bool ok;
};
/* Has a hook not answered yet that it concerns? h NULL: there are none. */
bool rt_hooks_pending(const struct hooks *h, const struct hook_ask *a);
/* Calls them in the order of the setting; `done` fires later, once. One at a time. */
UAR_MUST_CHECK uar_err rt_hooks_call(struct hooks *h, const struct hook_ask *a,
				     void (*done)(void *ctx), void *ctx);
bool rt_hooks_is_first_run(const struct hooks *h); /* of the session */

/* All answers about a subject together: the strictest outcome, and what the last one changed. */
struct hook_result {
	enum uar_hook_outcome outcome;
	uar_str hook_id, reason; /* of who said so */
	bool suppress;
	uar_str input_hook, input, input_blob; /* JSON; empty: nothing is changed */
	uar_str output;			       /* JSON; likewise */
	uar_str context;		       /* text; or empty */
};
/* Strings live as long as h, or in the arena. */
UAR_MUST_CHECK uar_err rt_hooks_result(const struct hooks *h, enum uar_hook_point point,
				       uar_str subject, struct uar_arena *arena,
				       struct hook_result *out);

#endif
