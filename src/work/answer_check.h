/* answer_check.h - whether the answer of a model is what the agent's definition asks for. */
#ifndef UAR_WORK_ANSWER_CHECK_H
#define UAR_WORK_ANSWER_CHECK_H

#include "work/llm_int.h"

/* Keeps the text when it is to be looked at. */
void rt_answer_feed(struct llm *w, uar_str delta);
/* The answer is complete. True: it is not what it should be, and *end says so: the call has
 * failed and is made again, once. After that what is wrong is recorded as a warning. */
UAR_MUST_CHECK bool rt_answer_rejects(struct llm *w, struct uar_model_end *end);
/* Is the call that is prepared, or under way, the one that repairs an answer? */
bool rt_answer_is_repaired(const struct llm *w);
/* What the call said; without the tools that it asks for when it repairs. */
struct uar_model_result rt_answer_without_calls(struct llm *w, const struct uar_model_result *m);
/* The same without another call: what is wrong is recorded as a warning. */
void rt_answer_flag(struct llm *w);
/* Drops blocks of types that the definition does not want as artifacts. */
void rt_answer_filter_blocks(struct llm *w);

#endif
