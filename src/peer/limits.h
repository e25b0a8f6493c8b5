/* limits.h - the rows of limits.def as constants. */
#ifndef UAR_PEER_LIMITS_H
#define UAR_PEER_LIMITS_H

enum uar_peer_limit {
#define L(NAME, VALUE, TEXT) UAR_LIMIT_##NAME = VALUE,
#include "peer/limits.def"
#undef L
};

#endif
