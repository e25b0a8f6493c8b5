/* sizes.h - the rows of sizes.def as constants. */
#ifndef UAR_STORE_SIZES_H
#define UAR_STORE_SIZES_H

enum uar_store_size {
#define L(NAME, VALUE, TEXT) UAR_LIMIT_##NAME = VALUE,
#include "store/sizes.def"
#undef L
};

#endif
