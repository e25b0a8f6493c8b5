/* definition_request.h - requests for runs of agents that have a definition. */
#ifndef UAR_WORK_DEFINITION_REQUEST_H
#define UAR_WORK_DEFINITION_REQUEST_H

#include "work/definitions.h"

/* Whether the inputs are what the definition wants: nothing exists that had to be undone. */
UAR_MUST_CHECK uar_err rt_definition_check(const struct uar_definition *d,
					   struct uar_run_create *op);
/* Keeps the definition's text as a blob, once; the run will name it. */
UAR_MUST_CHECK uar_err rt_definition_look(struct uar_workers *w, struct rt_request *q);

#endif
