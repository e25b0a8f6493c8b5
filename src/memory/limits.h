/* limits.h - the rows of limits.def as constants. */
#ifndef UAR_MEMORY_LIMITS_H
#define UAR_MEMORY_LIMITS_H

enum uar_memory_limit {
#define L(NAME, VALUE, TEXT) UAR_LIMIT_##NAME = VALUE,
#include "memory/limits.def"
#undef L
};

#endif
