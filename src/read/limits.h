/* limits.h - the rows of limits.def as constants. */
#ifndef UAR_READ_LIMITS_H
#define UAR_READ_LIMITS_H

enum uar_read_limit {
#define L(NAME, VALUE, TEXT) UAR_LIMIT_##NAME = VALUE,
#include "read/limits.def"
#undef L
};

#endif
