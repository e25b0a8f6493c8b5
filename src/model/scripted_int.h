/* scripted_int.h - what "scripted-tools" does next; for files of model/ alone. */
#ifndef UAR_MODEL_SCRIPTED_INT_H
#define UAR_MODEL_SCRIPTED_INT_H

#include "base/arena.h"
#include "model/model.h"

/* A pure function of the conversation. */
struct uar_scripted_plan {
	struct uar_arena arena; /* of what follows */
	const struct uar_model_tool_call *calls;
	size_t call_count; /* 0: it answers */
	uar_str said;
	bool later; /* not the first round: there is nothing more to think about */
};

/* UAR_ENOMEM; the plan must be finished either way. */
UAR_MUST_CHECK uar_err uar_scripted_plan_make(struct uar_scripted_plan *p,
					      const struct uar_model_request *r);
void uar_scripted_plan_fini(struct uar_scripted_plan *p); /* zeroed is fine */

#endif
