/* limits.h - the rows of limits.def as constants. */
#ifndef UAR_FLOW_LIMITS_H
#define UAR_FLOW_LIMITS_H

enum uar_flow_limit {
#define L(NAME, VALUE, TEXT) UAR_LIMIT_##NAME = VALUE,
#include "flow/limits.def"
#undef L
};

#endif
