/* limits.h - the rows of limits.def as constants. */
#ifndef UAR_WORK_LIMITS_H
#define UAR_WORK_LIMITS_H

enum uar_work_limit {
#define L(NAME, VALUE, TEXT) UAR_LIMIT_##NAME = VALUE,
#include "work/limits.def"
#undef L
};

#endif
