/* limits.h - the rows of limits.def as constants. */
#ifndef UAR_MODEL_LIMITS_H
#define UAR_MODEL_LIMITS_H

enum uar_model_limit {
#define L(NAME, VALUE, TEXT) UAR_LIMIT_##NAME = VALUE,
#include "model/limits.def"
#undef L
};

#endif
