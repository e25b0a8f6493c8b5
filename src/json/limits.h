/* limits.h - the rows of limits.def and sizes.def as constants. */
#ifndef UAR_JSON_LIMITS_H
#define UAR_JSON_LIMITS_H

#include "json/sizes.h"

enum uar_json_limit {
#define L(NAME, VALUE, TEXT) UAR_LIMIT_##NAME = VALUE,
#include "json/limits.def"
#undef L
};

#endif
