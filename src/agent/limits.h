/* limits.h - the rows of limits.def as constants. */
#ifndef UAR_AGENT_LIMITS_H
#define UAR_AGENT_LIMITS_H

enum uar_agent_limit {
#define L(NAME, VALUE, TEXT) UAR_LIMIT_##NAME = VALUE,
#include "agent/limits.def"
#undef L
};

#endif
