/* sizes.h - the rows of sizes.def as constants. */
#ifndef UAR_JSON_SIZES_H
#define UAR_JSON_SIZES_H

enum uar_json_size {
#define L(NAME, VALUE, TEXT) UAR_LIMIT_##NAME = VALUE,
#include "json/sizes.def"
#undef L
};

#endif
