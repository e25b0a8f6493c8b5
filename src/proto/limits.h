/* limits.h - the rows of limits.def as constants. */
#ifndef UAR_PROTO_LIMITS_H
#define UAR_PROTO_LIMITS_H

enum uar_proto_limit {
#define L(NAME, VALUE, TEXT) UAR_LIMIT_##NAME = VALUE,
#include "proto/limits.def"
#undef L
};

#endif
