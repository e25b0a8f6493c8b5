/* limits.h - the rows of limits.def and sizes.def as constants. */
#ifndef UAR_EVENT_LIMITS_H
#define UAR_EVENT_LIMITS_H

#include "event/sizes.h"

enum uar_event_limit {
#define L(NAME, VALUE, TEXT) UAR_LIMIT_##NAME = VALUE,
#include "event/limits.def"
#undef L
};

#endif
