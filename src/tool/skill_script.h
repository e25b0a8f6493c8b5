/* skill_script.h - internal:skill.run: a script in the folder of a skill, once it is allowed. */
#ifndef UAR_TOOL_SKILL_SCRIPT_H
#define UAR_TOOL_SKILL_SCRIPT_H

#include "loop/loop.h"
#include "tool/tool.h"

/* A source of that one tool. The directory is copied. */
UAR_MUST_CHECK uar_err uar_skill_script_create(struct uar_loop *loop, const char *skills_dir,
					       struct uar_tools **out);

#endif
