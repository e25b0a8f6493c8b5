/* agent_prompt.h - what the model of a run is told. */
#ifndef UAR_WORK_AGENT_PROMPT_H
#define UAR_WORK_AGENT_PROMPT_H

#include "agent/prompt.h"
#include "work/prompt.h"
#include "work/work_int.h"

struct past;
struct recall;
struct rounds;
struct skill_set;
struct prompt_sources {
	struct live_run *run;
	struct past *past;     /* NULL: nothing was said before */
	struct rounds *rounds; /* NULL: no tool was asked for so far */
	uar_str message;
	uar_str inputs;			/* JSON object of the others, or empty */
	struct uar_arena *arena;	/* of what is read from the inputs */
	const struct skill_set *skills; /* NULL: none is active */
	const struct recall *recall;
};
/* The messages that the model is told: of an agent with a definition as that says, with its
 * sections in `text`, which is zeroed or finished before; else instructions, history, message. */
UAR_MUST_CHECK uar_err rt_agent_collect(const struct prompt_sources *from,
					struct uar_prompt_text *text, struct prompt *p);
/* What the answer must look like, for the request. */
struct uar_model_output rt_agent_output(const struct uar_definition *d, struct uar_buf *schema);

#endif
