/* limits.h - the rows of limits.def as constants. */
#ifndef UAR_SANDBOX_LIMITS_H
#define UAR_SANDBOX_LIMITS_H

enum uar_sandbox_limit {
#define L(NAME, VALUE, TEXT) UAR_LIMIT_##NAME = VALUE,
#include "sandbox/limits.def"
#undef L
};

#endif
