/* hook.h - hooks: the points at which programs of the operator are called. */
#ifndef UAR_EVENT_HOOK_H
#define UAR_EVENT_HOOK_H

#include "base/str.h"

enum uar_hook_point {
#define P(NAME, TEXT, DOC) UAR_HOOK_##NAME,
#include "event/hook.def"
	UAR_HOOK_COUNT
};
const char *uar_hook_point_name(enum uar_hook_point p); /* "pre_tool_use" */
enum uar_hook_point uar_hook_point_parse(uar_str name); /* UAR_HOOK_COUNT: there is none */

#endif
