/* llm_hooks.h - the points of a model's run at which hooks are called. */
#ifndef UAR_WORK_LLM_HOOKS_H
#define UAR_WORK_LLM_HOOKS_H

#include "work/hooks_int.h"
#include "work/llm_int.h"

/* session_start and user_prompt_submit; `then` follows later. UAR_ESKIP: there are no hooks. */
UAR_MUST_CHECK uar_err rt_llm_hooks_begin(struct llm *w, void (*then)(struct llm *w));
/* What they made of the message, and what the model is told besides. */
UAR_MUST_CHECK uar_err rt_llm_hooks_prompt(struct llm *w);
/* post_tool_use and post_tool_failure of the last round. False: nothing is waited for. */
bool rt_llm_hooks_after(struct llm *w, void (*then)(struct llm *w));
/* What the model is told of the calls instead. */
UAR_MUST_CHECK uar_err rt_llm_hooks_tell(struct llm *w);
/* post_sampling and stop. True: the end of the answer waits, and is sent later. */
bool rt_llm_hooks_hold(struct llm *w, const struct uar_command *end);
void rt_llm_hooks_free(struct llm *w);

#endif
