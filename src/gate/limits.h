/* limits.h - the rows of limits.def as constants. */
#ifndef UAR_GATE_LIMITS_H
#define UAR_GATE_LIMITS_H

enum uar_gate_limit {
#define L(NAME, VALUE, TEXT) UAR_LIMIT_##NAME = VALUE,
#include "gate/limits.def"
#undef L
};

#endif
