/* limits.h - the rows of limits.def as constants. */
#ifndef UAR_APP_LIMITS_H
#define UAR_APP_LIMITS_H

enum uar_app_limit {
#define L(NAME, VALUE, TEXT) UAR_LIMIT_##NAME = VALUE,
#include "app/limits.def"
#undef L
};

#endif
