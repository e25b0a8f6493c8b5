/* limits.h - the rows of limits.def as constants; other rooms have a header like this. */
#ifndef UAR_BASE_LIMITS_H
#define UAR_BASE_LIMITS_H

#include "base/sizes.h"

enum uar_limit {
#define L(NAME, VALUE, TEXT) UAR_LIMIT_##NAME = VALUE,
#include "base/limits.def"
#undef L
};

#endif
