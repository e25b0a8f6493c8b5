/* sizes.h - the rows of sizes.def as constants. */
#ifndef UAR_CORE_SIZES_H
#define UAR_CORE_SIZES_H

enum uar_core_size {
#define L(NAME, VALUE, TEXT) UAR_LIMIT_##NAME = VALUE,
#include "core/sizes.def"
#undef L
};

#endif
