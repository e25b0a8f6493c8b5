/* limits.h - the rows of limits.def as constants. */
#ifndef UAR_BACKEND_LIMITS_H
#define UAR_BACKEND_LIMITS_H

enum uar_backend_limit {
#define L(NAME, VALUE, TEXT) UAR_LIMIT_##NAME = VALUE,
#include "backend/limits.def"
#undef L
};

#endif
