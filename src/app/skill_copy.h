/* skill_copy.h - folders of skills, written whole or not at all. */
#ifndef UAR_APP_SKILL_COPY_H
#define UAR_APP_SKILL_COPY_H

#include "base/err.h"
#include "base/str.h"
#include "skill/limits.h"

/* A folder of that name in the directory with this SKILL.md. UAR_EEXISTS: it is there. */
UAR_MUST_CHECK uar_err uar_skill_write_new(const char *dir, const char *name, uar_str text,
					   struct uar_error *error);
/* Copies the folder, or that of a SKILL.md file, under the skill's id, once its SKILL.md is right.
 * Only folders and regular files are taken. */
UAR_MUST_CHECK uar_err uar_skill_copy(const char *from, const char *dir,
				      char out_id[UAR_LIMIT_SKILL_ID + 1], struct uar_error *error);

#endif
