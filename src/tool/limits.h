/* limits.h - the rows of limits.def as constants. */
#ifndef UAR_TOOL_LIMITS_H
#define UAR_TOOL_LIMITS_H

enum uar_tool_limit {
#define L(NAME, VALUE, TEXT) UAR_LIMIT_##NAME = VALUE,
#include "tool/limits.def"
#undef L
};

#endif
