/* sizes.h - the rows of sizes.def as constants. */
#ifndef UAR_HTTP_SIZES_H
#define UAR_HTTP_SIZES_H

enum uar_http_size {
#define L(NAME, VALUE, TEXT) UAR_LIMIT_##NAME = VALUE,
#include "http/sizes.def"
#undef L
};

#endif
