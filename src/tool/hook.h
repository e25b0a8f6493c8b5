/* hook.h - hooks: programs and endpoints of the operator that are called at points of a run.
 *
 * A hook is told one JSON object and answers with one (core/hook_answer.h). A program gets an
 * environment that is made of names which the setting lists, and no shell. */
#ifndef UAR_TOOL_HOOK_H
#define UAR_TOOL_HOOK_H

#include "event/hook.h"
#include "tool/tool.h"

struct uar_client;
struct uar_loop;

struct uar_hooks;
struct uar_hook {
	struct uar_hooks *of;
	uar_str id;
	uint32_t points;	      /* bits 1 << point */
	const struct uar_json *tools; /* patterns; NULL: any */
	uar_str agents;		      /* a pattern; empty: any */
	uar_str handler;	      /* as events name it */
	int64_t timeout_us;
	bool read_only; /* it tells and does not decide: it may fail open */
	bool fail_open;
	bool wants_output; /* it is told what tools brought */
	bool optional;	   /* only definitions that name it have it */
	const struct uar_json *command, *env;
	uar_str url;
};

/* The setting `hooks`: {"NAME": {...}}. error->where points into it. */
UAR_MUST_CHECK uar_err uar_hooks_read(uar_str json, struct uar_hooks **out,
				      struct uar_error *error);
void uar_hooks_destroy(struct uar_hooks *h); /* no call is under way; NULL is fine */
const struct uar_hook *uar_hooks_at(const struct uar_hooks *h, size_t index); /* NULL: the end */
bool uar_hooks_have(const struct uar_hooks *h, enum uar_hook_point p);	      /* NULL: none */
/* Where they are executed. The client may be NULL when no hook has a URL. */
void uar_hooks_attach(struct uar_hooks *h, struct uar_loop *loop, struct uar_client *client);
bool uar_hooks_need_client(const struct uar_hooks *h);

/* Calls one. `done` fires later, once, unless cancelled: the bytes of the answer, or why there is
 * none. */
struct uar_hook_call;
typedef void uar_hook_done_fn(void *ctx, uar_err e, uar_str answer, const char *why);
UAR_MUST_CHECK uar_err uar_hook_start(const struct uar_hook *hook, uar_str input,
				      uar_hook_done_fn *done, void *ctx,
				      struct uar_hook_call **out);
void uar_hook_cancel(struct uar_hook_call *c); /* NULL is fine */

#endif
