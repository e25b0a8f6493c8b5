/* definitions.h - the definition that a run began with, in memory while its worker is there.
 *
 * A run names a revision. It is taken from the registry when that still has it, else from its
 * blob: an edit, a removed file or a restart changes nothing for the run. */
#ifndef UAR_WORK_DEFINITIONS_H
#define UAR_WORK_DEFINITIONS_H

#include "agent/registry.h"
#include "work/toolset.h"
#include "work/work_int.h"

struct definition_load;
typedef void definition_ready_fn(void *ctx, uar_err e, const struct uar_error *error);
/* Pins the definition of the run. UAR_OK: `ready` fires later, unless the load is cancelled
 * first. UAR_ESKIP: there is nothing to wait for; it is pinned, or the run has none. */
UAR_MUST_CHECK uar_err rt_definition_pin(struct live_run *r, definition_ready_fn *ready, void *ctx,
					 struct definition_load **out);
void rt_definition_cancel(struct definition_load *l); /* NULL is fine */
/* Gives back what was pinned for the run; nothing is fine. */
void rt_definition_unpin(struct live_run *r);
/* NULL: the run has none, or it is not pinned. */
const struct uar_definition *rt_definition(const struct live_run *r);
/* It is the operator's: secrets that have no grant may be sent. */
bool rt_definition_is_from_file(const struct live_run *r);
struct toolset rt_definition_toolset(const struct live_run *r);
/* Of a definition that no run has pinned; uar_toolbox_unref(out->set.box) gives them back, also
 * after an error. */
struct definition_tools {
	struct uar_tool_policy policy;
	struct toolset set;
};
UAR_MUST_CHECK uar_err rt_definition_tools(struct uar_workers *w, const struct uar_definition *d,
					   struct definition_tools *out, struct uar_error *error);
/* Can a run of it begin, as far as its tools are concerned? */
UAR_MUST_CHECK uar_err rt_definition_check_tools(struct uar_workers *w,
						 const struct uar_definition *d,
						 struct uar_error *error);
/* Its policy.provider; NULL: it has none, or names no model. */
const struct uar_model_policy *rt_definition_routing(const struct live_run *r);

void rt_definitions_init(struct uar_workers *w);
void rt_definitions_fini(struct uar_workers *w);
/* An entry with this revision, of whatever source; NULL: there is none. */
struct uar_registered *rt_definition_known(const struct uar_workers *w, uar_str revision);

#endif
