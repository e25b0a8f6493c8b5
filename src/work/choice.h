/* choice.h - the models that the caller of a run may choose from.
 *
 * An agent whose policy (or whose program) names models offers those that may answer; another one
 * any model of any provider. Who asks for a list and who checks a choice are told the same. */
#ifndef UAR_WORK_CHOICE_H
#define UAR_WORK_CHOICE_H

#include "work/work_int.h"

/* Puts the model that the request names into q->what; none: nothing. Call when q->what is the
 * agent's. error->where: "/options/model". */
UAR_MUST_CHECK uar_err rt_choice_take(const struct uar_workers *w, const struct uar_agent *a,
				      struct rt_request *q);

#endif
