/* sizes.h - the rows of sizes.def as constants. */
#ifndef UAR_EVENT_SIZES_H
#define UAR_EVENT_SIZES_H

enum uar_event_size {
#define L(NAME, VALUE, TEXT) UAR_LIMIT_##NAME = VALUE,
#include "event/sizes.def"
#undef L
};

#endif
