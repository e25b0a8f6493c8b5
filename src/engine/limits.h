/* limits.h - the rows of limits.def and sizes.def as constants. */
#ifndef UAR_ENGINE_LIMITS_H
#define UAR_ENGINE_LIMITS_H

#include "engine/sizes.h"

enum uar_engine_limit {
#define L(NAME, VALUE, TEXT) UAR_LIMIT_##NAME = VALUE,
#include "engine/limits.def"
#undef L
};

#endif
