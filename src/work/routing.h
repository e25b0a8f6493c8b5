/* routing.h - what decides which model a run uses: the policy that applies to it, as the document
 * that core/route.h chooses from. */
#ifndef UAR_WORK_ROUTING_H
#define UAR_WORK_ROUTING_H

#include "core/route.h"
#include "model/policy.h"
#include "work/work_int.h"

/* What a run needs of its model. */
struct routing_needs {
	int64_t context_tokens; /* of the prompt, estimated */
	bool tools, images, files, structured, reasoning;
};

/* The policy that applies to the run, with the one model that its caller chose, if any. False: it
 * has none and uses the model that it began with. */
bool rt_routing_policy(const struct live_run *r, struct uar_model_policy *out);
/* Does a policy choose the models of the run? */
bool rt_is_routed(const struct live_run *r);
/* The next call writes the plan of a split route. */
bool rt_must_plan(const struct live_run *r);
/* Which role the next call has in an ensemble; EXECUTE: the route is none. */
enum uar_call_role rt_ensemble_role(const struct live_run *r);
/* Fills what a prepared call says of routing, prices and budgets; the document is written once in
 * a run and lives in `document`. */
UAR_MUST_CHECK uar_err rt_routing_prepare(const struct live_run *r,
					  const struct routing_needs *needs,
					  struct uar_buf *document, struct uar_prepared *out);
/* The model that the run uses now; NULL: its provider is not configured. */
struct uar_model *rt_model_of(const struct live_run *r);

#endif
