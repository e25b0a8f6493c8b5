/* action_int.h - the row of an action, for action.c. core/ only. */
#ifndef UAR_CORE_ACTION_INT_H
#define UAR_CORE_ACTION_INT_H

#include "core/emit.h"

/* The question whose action.required was emitted last. */
void uar_core_action_asked(struct emit *e, const struct uar_ask *a);
/* The answer, whose events are those from `first` on. */
void uar_core_action_answered(struct emit *e, const struct uar_open_action *open,
			      const struct uar_answer *a, size_t first);

/* grant.c: does the answer give a permission for more than one call? */
bool uar_core_grants(const struct uar_open_action *open, const struct uar_answer *a);
void uar_core_grant(struct emit *e, const struct uar_open_action *open, const struct uar_answer *a,
		    uar_str action_id);

#endif
