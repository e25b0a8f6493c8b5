/* limits.h - the rows of limits.def as constants. */
#ifndef UAR_CORE_LIMITS_H
#define UAR_CORE_LIMITS_H

enum uar_core_limit {
#define L(NAME, VALUE, TEXT) UAR_LIMIT_##NAME = VALUE,
#include "core/limits.def"
#undef L
};

#endif
