/* skill_trial.h - which skills a message would activate, and why, without a run. */
#ifndef UAR_WORK_SKILL_TRIAL_H
#define UAR_WORK_SKILL_TRIAL_H

#include "engine/engine.h"
#include "json/jw.h"

struct uar_workers;
struct uar_registered;
struct uar_skill_book;

struct uar_skill_book *uar_workers_skills(const struct uar_workers *w); /* NULL: there is none */

struct uar_skill_trial {
	const struct uar_owner *owner;
	const struct uar_registered *agent; /* NULL: one without limits of its own */
	uar_str message;
};
/* Members of an object that is open: candidates with gates and scores, what is injected, tools. */
UAR_MUST_CHECK uar_err uar_workers_try_skills(struct uar_workers *w,
					      const struct uar_skill_trial *t, struct uar_jw *out,
					      struct uar_error *error);

#endif
