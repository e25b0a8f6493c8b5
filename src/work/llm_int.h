/* llm_int.h - the worker of llm.chat, for its own files: entry_llm.c prepares and calls,
 * llm_answer.c takes what is answered. */
#ifndef UAR_WORK_LLM_INT_H
#define UAR_WORK_LLM_INT_H

#include "work/agent_prompt.h"
#include "work/artifacts.h"
#include "work/aside.h"
#include "work/compaction.h"
#include "work/history.h"
#include "work/limits.h"
#include "work/recall.h"
#include "work/tool_loop.h"

/* What the client has sent with its message. */
struct client_side {
	struct uar_arena arena;
	struct uar_tools *tools; /* with those of the client; NULL: it has none */
};

struct definition_load;
struct held_end;
struct llm_hooks;
struct skill_load;
struct skill_set;
struct llm {
	struct worker base;
	struct input_load *input;
	struct history_load *load;
	struct past *past; /* NULL: nothing was said before */
	struct rounds_load *rounds_load;
	struct rounds *rounds;	  /* NULL: no tool was asked for so far */
	struct tool_loop *loop;	  /* NULL: none is at work */
	struct held_end *end;	  /* what its answer brings is being put aside */
	struct uar_blocks blocks; /* of the answer so far */
	struct uar_buf message;	  /* the user's text */
	struct uar_buf inputs;	  /* the others, when a blob holds them */
	struct uar_buf reasoning; /* the beginning of what the model reasons */
	struct client_side client;
	struct {
		struct aside *plan; /* calls of a workflow on their way to a blob */
		struct uar_buf plan_nodes, plan_index; /* what is sent with them */
		int64_t plan_us;
	};
	struct definition_load *definition;
	struct {
		struct skill_load *skill_load;
		struct skill_set *skills; /* NULL: none is active */
		size_t said;		  /* bytes of the message that the user wrote */
		bool chosen;		  /* skills were looked for */
	};
	struct uar_prompt_text text;  /* of an agent that has a definition */
	struct recall recall;	      /* what knowledge says of the message */
	struct uar_buf answer;	      /* its text, when that is looked at */
	char why[UAR_TEXT_REASON];    /* what is wrong with it */
	enum uar_call_role role;      /* of the call that is prepared, or under way */
	struct compaction compaction; /* SUMMARIZE */
	struct {
		struct uar_buf stage; /* what a call says that is no answer */
		struct {
			void (*done)(struct llm *w, uar_err e);
			size_t told; /* answers of candidates that the message has */
		} ensemble;
	};
	struct uar_model *model;
	struct uar_model_call *call;
	struct {
		struct llm_hooks *hooks; /* NULL: there are none */
		bool paused;
		bool leaving; /* the run is being cancelled */
	};
};

/* The run's worker when it is one of these; else NULL. */
struct llm *rt_llm_of(const struct live_run *r);

/* The run fails. */
void rt_llm_fail(struct llm *w, uar_err e, const char *why);
/* Events of the model's call; ctx is the worker. */
void rt_llm_on_text(void *ctx, uar_str delta);
void rt_llm_on_reasoning(void *ctx, uar_str delta);
void rt_llm_on_done(void *ctx, const struct uar_model_result *m);
void rt_llm_free_end(struct held_end *end); /* NULL is fine */
/* All inputs but the message, as JSON or empty. */
uar_str rt_llm_inputs(const struct llm *w);
/* flow.c: the run is one of workflow.run, and all calls that it has made are over. */
void rt_flow_go_on(struct llm *w);

#endif
