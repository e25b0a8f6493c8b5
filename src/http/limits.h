/* limits.h - the rows of limits.def as constants. */
#ifndef UAR_HTTP_LIMITS_H
#define UAR_HTTP_LIMITS_H

enum uar_http_limit {
#define L(NAME, VALUE, TEXT) UAR_LIMIT_##NAME = VALUE,
#include "http/limits.def"
#undef L
};

#endif
