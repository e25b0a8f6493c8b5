/* limits.h - the rows of limits.def as constants. */
#ifndef UAR_ENGINE_LIMITS_H
#define UAR_ENGINE_LIMITS_H

enum uar_engine_limit {
#define L(NAME, VALUE, TEXT) UAR_LIMIT_##NAME = VALUE,
#include "engine/limits.def"
#undef L
};

#endif
