/* limits.h - the rows of limits.def and sizes.def as constants. */
#ifndef UAR_HTTP_LIMITS_H
#define UAR_HTTP_LIMITS_H

#include "http/sizes.h"

enum uar_http_limit {
#define L(NAME, VALUE, TEXT) UAR_LIMIT_##NAME = VALUE,
#include "http/limits.def"
#undef L
};

#endif
