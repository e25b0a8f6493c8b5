/* skill_int.h - what the files of skill/ share. */
#ifndef UAR_SKILL_SKILL_INT_H
#define UAR_SKILL_SKILL_INT_H

#include "json/regex.h"
#include "skill/embed.h"
#include "skill/skill.h"

/* Made once, when a skill is read. */
struct uar_skill_index {
	float (*vectors)[UAR_EMBED_DIMENSIONS]; /* in the skill's arena */
	size_t count;
	bool whole;		     /* the first is that of description and triggers */
	struct uar_regex **patterns; /* as many as the skill has; NULL: not made */
};

/* index.c: UAR_EINVALID for a pattern that is no regular expression. */
UAR_MUST_CHECK uar_err skill_index_make(struct uar_skill *s, struct uar_error *error);
void skill_index_free(struct uar_skill *s); /* none is fine */

#endif
