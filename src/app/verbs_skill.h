/* verbs_skill.h - where skills lie, for the server and for `uar skill`. */
#ifndef UAR_APP_VERBS_SKILL_H
#define UAR_APP_VERBS_SKILL_H

#include "app/config.h"
#include "base/buf.h"

void uar_skills_dir(const struct uar_config *c, struct uar_buf *out);
/* Reads all of its folders: a line of `problems` for each that is wrong. */
void uar_skills_check(const struct uar_config *c, struct uar_buf *notes, struct uar_buf *problems);

#endif
