/* limits.h - the rows of limits.def as constants. */
#ifndef UAR_BRIDGE_LIMITS_H
#define UAR_BRIDGE_LIMITS_H

enum uar_bridge_limit {
#define L(NAME, VALUE, TEXT) UAR_LIMIT_##NAME = VALUE,
#include "bridge/limits.def"
#undef L
};

#endif
