/* hooks_int.h - what hooks.c and hooks_load.c share. */
#ifndef UAR_WORK_HOOKS_INT_H
#define UAR_WORK_HOOKS_INT_H

#include "work/aside.h"
#include "work/hooks.h"

enum hook_blob { HOOK_INPUT, HOOK_OUTPUT, HOOK_CONTEXT, HOOK_AUDIT, HOOK_BLOBS };

/* What the log says that a hook has answered. */
struct hook_fact {
	struct uar_list node;
	enum uar_hook_point point;
	enum uar_hook_outcome outcome;
	uar_str id, subject, reason;
	bool suppress;
	char blob[HOOK_BLOBS][65];
	uar_str text[HOOK_BLOBS]; /* of those; p NULL: not fetched */
};

struct hooks_load;
struct hooks {
	struct live_run *run;
	struct uar_arena arena;
	struct uar_list facts;
	bool first_run;
	struct hooks_load *load; /* NULL: it is read */
	/* The call under way. */
	struct {
		struct hook_ask ask;
		struct uar_arena arena; /* of it */
		size_t at;		/* of the setting */
		struct uar_hook_call *call;
		struct aside *aside;
		struct hook_fact *fact; /* that is being made */
		struct uar_hook_answer answer;
		int64_t started_us;
		enum hook_blob part;
		uar_str changed;
		void (*done)(void *ctx);
		void *ctx;
		bool busy;
	} now;
};

/* The fact is durable. */
struct hook_fact *rt_hooks_new_fact(struct hooks *h, enum uar_hook_point point, uar_str id,
				    uar_str subject);
void rt_hooks_load_cancel(struct hooks_load *l); /* NULL is fine */
/* entry_llm.c: those of the run's worker; NULL: it has none. */
struct hooks *rt_llm_hooks(const struct live_run *r);

#endif
