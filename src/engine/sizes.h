/* sizes.h - the rows of sizes.def as constants. */
#ifndef UAR_ENGINE_SIZES_H
#define UAR_ENGINE_SIZES_H

enum uar_engine_size {
#define L(NAME, VALUE, TEXT) UAR_LIMIT_##NAME = VALUE,
#include "engine/sizes.def"
#undef L
};

#endif
