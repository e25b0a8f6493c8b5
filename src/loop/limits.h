/* limits.h - the rows of limits.def and sizes.def as constants. */
#ifndef UAR_LOOP_LIMITS_H
#define UAR_LOOP_LIMITS_H

#include "loop/sizes.h"

enum uar_loop_limit {
#define L(NAME, VALUE, TEXT) UAR_LIMIT_##NAME = VALUE,
#include "loop/limits.def"
#undef L
};

#endif
