/* limits.h - the rows of limits.def and sizes.def as constants. */
#ifndef UAR_STORE_LIMITS_H
#define UAR_STORE_LIMITS_H

#include "store/sizes.h"

enum uar_store_limit {
#define L(NAME, VALUE, TEXT) UAR_LIMIT_##NAME = VALUE,
#include "store/limits.def"
#undef L
};

#endif
