/* tool_loop_int.h - what tool_loop.c and tool_plan.c share. */
#ifndef UAR_WORK_TOOL_LOOP_INT_H
#define UAR_WORK_TOOL_LOOP_INT_H

#include "work/aside.h"
#include "tool/process.h"
#include "work/grants.h"
#include "work/limits.h"
#include "event/hook.h"
#include "work/permission.h"
#include "work/tool_loop.h"

enum { PLACES = UAR_LIMIT_TOOLS_AT_ONCE, PROMPT = 200 };

/* What is to be done with a call. */
enum plan {
	RUN,	   /* it is allowed and has not begun */
	RUN_AGAIN, /* it was cut off and may be repeated */
	ASK,	   /* somebody has to allow it */
	ASK_AGAIN, /* it was cut off and may have happened */
	ASK_FORM,  /* somebody has to give values */
	REFUSE,	   /* it begins and ends with a failure */
	GIVE_UP,   /* it was cut off and ends with a failure */
};

/* What the call runs in, and the process that it starts: as they are recorded. */
struct place_bound {
	struct uar_process_plan plan;
	char process_id[UAR_UUID_TEXT + 1]; /* empty: none */
};

struct place {
	struct tool_loop *loop;
	struct round_call *call; /* NULL: free */
	const struct uar_tool *tool;
	enum plan plan;
	struct uar_tool_call *at_work;
	bool ending;	     /* how it ended is known, and not yet durable */
	struct aside *aside; /* arguments or output on their way */
	bool by_hook;	     /* a hook refuses it */
	uar_str category;    /* of a refusal */
	struct uar_error why;
	uar_str input;	       /* what it is executed with: as the model wrote it, or with values */
	uar_str args;	       /* what events say of the arguments: JSON on one line, or */
	bool args_json;	       /* what the model wrote instead of it */
	struct uar_buf line;   /* holds them */
	struct uar_buf merged; /* holds the input, when values were given for it */
	struct uar_buf hidden; /* the input without secrets, when it has some */
	char args_digest[UAR_LIMIT_DIGEST + 1]; /* of the input, when it has to be allowed */
	struct uar_buf permission;		/* what was decided about it; empty: nothing was */
	struct uar_buf form;			/* JSON Schema of the values that are asked for */
	struct uar_buf title;			/* what they are asked for with */
	struct {
		struct uar_buf output;		    /* that is put aside */
		struct uar_buf held;		    /* the same while its parts are */
		char parts_blob[65];		    /* that has them; empty: there are none */
		struct uar_tool_hidden hidden_back; /* in what the tool gave back */
	};
	int64_t question;      /* that the tool at work asks; 0: none */
	struct sample *sample; /* what it asks the model; NULL: nothing */
	struct place_bound bound;
};

struct tool_loop {
	struct tool_loop_options o;
	struct toolset set;
	struct round *round;
	struct uar_task finished;
	struct grants_load *grants_load;
	struct grants *grants;
	struct place places[PLACES];
	size_t next, busy;
	size_t for_client; /* calls that wait for the others */
	bool alone;	   /* what runs does not bear company */
	bool asked;	   /* the run is about to be parked */
	bool leaving;
	bool hooking; /* hooks are called about the next call */
};

/* tool_loop.c: begins what can begin now. */
void rt_tool_loop_advance(struct tool_loop *l);
/* tool_permit.c. True: hooks are called about it first. */
bool rt_tool_loop_hooks(struct tool_loop *l, const struct round_call *c, enum uar_hook_point point);
/* llm_hooks.c: the same about calls that are over. */
bool rt_tool_loop_hooks_after(struct tool_loop *l);
/* tool_loop.c: reads what the call is to be executed with into `args`. */
UAR_MUST_CHECK uar_err rt_place_read_args(struct place *p);
void rt_place_clear(struct place *p);
/* The place of that call; NULL: it has none. */
struct place *rt_place_of(const struct tool_loop *l, uar_str call_id);
void rt_place_free(struct place *p); /* another call may have it */
/* tool_end.c: is it JSON that an event can carry as it is? Then *out_line has it on one line. */
bool rt_place_fits(uar_str json, bool object, size_t most, struct uar_buf *out_line);
/* What a tool at work tells (struct uar_tool_events); ctx is the place. */
void rt_place_progress(void *ctx, uar_str json);
void rt_place_told(void *ctx, const struct uar_tool_result *told);
void rt_place_done(void *ctx, const struct uar_tool_result *r); /* nothing is to be hidden */
/* How the call ended: it has a place until that is durable. */
void rt_place_send_over(struct place *p, const struct uar_tool_over *over);
void rt_place_send_failed(struct place *p, uar_str category, uar_str message, bool retryable);
/* tool_artifact.c: keeps what the arguments say and ends the call. */
void rt_place_make_artifact(struct place *p);
/* tool_ask.c: the run is parked when they are durable, and the loop with it. */
void rt_place_send_ask(struct place *p, uar_str args_blob);
/* more: as in struct uar_ask. */
void rt_place_send_form(struct place *p, uar_str schema_blob, uar_str more);
void rt_tool_hand_over(struct tool_loop *l);
/* tool_question.c: what a tool at work asks a person. */
void rt_place_ask(void *ctx, const struct uar_tool_question *q);
void rt_place_unask(void *ctx, bool settled);
/* The end is durable: the place is free, and the loop goes on. */
void rt_place_ended(struct place *p, const struct uar_tool_over *over);
/* tool_sibling.c */
/* Has a call of the round failed, and means that something for the others? */
bool rt_tool_loop_broke(const struct tool_loop *l);
/* Is the call cancelled for it (core/sibling.h)? */
bool rt_place_is_orphan(const struct place *p);
void rt_place_cancel_orphan(struct place *p); /* it has begun: it ends */
enum plan rt_place_refuse_orphan(struct place *p);
void rt_tool_loop_cancel_siblings(struct tool_loop *l); /* those at work */
/* tool_plan.c: finds the tool of the call, what it is executed with, and what is to be done. */
void rt_place_plan(struct place *p);
/* tool_permit.c: what is known of the call, for core to decide; the reason of a denial is told. */
struct permission_ask rt_place_permission(const struct place *p);
UAR_MUST_CHECK uar_err rt_place_decide(struct place *p, const struct permission_ask *a,
				       enum uar_permission_verdict *out);
/* What hooks made of the arguments takes their place. */
void rt_place_take_hooks(struct place *p);
/* Can nobody be asked? */
bool rt_place_unattended(const struct place *p);
/* processes.c: settles what the call is to run in. False: it cannot run, p->category and p->why
 * say so. */
bool rt_place_bind(struct place *p);
void rt_place_unbind(struct place *p);
/* Does it run together with others of its kind? */
bool rt_place_is_sociable(const struct place *p);

#endif
