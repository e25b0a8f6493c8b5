/* sizes.h - the rows of sizes.def as constants. */
#ifndef UAR_LOOP_SIZES_H
#define UAR_LOOP_SIZES_H

enum uar_loop_size {
#define L(NAME, VALUE, TEXT) UAR_LIMIT_##NAME = VALUE,
#include "loop/sizes.def"
#undef L
};

#endif
