/* limits.h - the rows of limits.def as constants. */
#ifndef UAR_STORE_LIMITS_H
#define UAR_STORE_LIMITS_H

enum uar_store_limit {
#define L(NAME, VALUE, TEXT) UAR_LIMIT_##NAME = VALUE,
#include "store/limits.def"
#undef L
};

#endif
