/* kb_tools.h - a source of tools (tool/registry.h) over knowledge: internal:kb.* and
 * internal:memory.*. Each call sees what belongs to the owner of its caller, and of the collections
 * those that the caller's definition names, if it names any. */
#ifndef UAR_WORK_KB_TOOLS_H
#define UAR_WORK_KB_TOOLS_H

#include "tool/tool.h"

struct uar_knowledge;
/* `k` outlives the source. */
UAR_MUST_CHECK uar_err uar_kb_tools_create(struct uar_knowledge *k, struct uar_tools **out);

#endif
