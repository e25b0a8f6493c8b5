/* push.h - facts about notifications of a task: where they go and how far they were taken.
 *
 * They stand in a session of their own, one for each task that has any. None has an address or a
 * secret in it. */
#ifndef UAR_CORE_PUSH_H
#define UAR_CORE_PUSH_H

#include "core/core.h"

struct uar_push_fact {
	const char *change; /* "set", "removed", "acknowledged", "ended", "dropped" */
	uar_str run_id;
	uar_str config_id;
	uint64_t sequence; /* acknowledged: so far */
	int64_t frame;
	uar_str reason; /* dropped; or empty */
};
/* Appends its facts to `out` and folds them into *s, which is a copy. */
UAR_MUST_CHECK uar_err uar_core_push(const struct uar_core_env *env, struct uar_session *s,
				     const struct uar_push_fact *f, struct uar_decision *out,
				     struct uar_error *error);

#endif
