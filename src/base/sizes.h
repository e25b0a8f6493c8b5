/* sizes.h - the rows of sizes.def as constants. */
#ifndef UAR_BASE_SIZES_H
#define UAR_BASE_SIZES_H

enum uar_base_size {
#define L(NAME, VALUE, TEXT) UAR_LIMIT_##NAME = VALUE,
#include "base/sizes.def"
#undef L
};

#endif
