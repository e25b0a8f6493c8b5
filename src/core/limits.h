/* limits.h - the rows of limits.def and sizes.def as constants. */
#ifndef UAR_CORE_LIMITS_H
#define UAR_CORE_LIMITS_H

#include "core/sizes.h"

enum uar_core_limit {
#define L(NAME, VALUE, TEXT) UAR_LIMIT_##NAME = VALUE,
#include "core/limits.def"
#undef L
};

#endif
