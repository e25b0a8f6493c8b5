/* limits.h - the rows of limits.def as constants. */
#ifndef UAR_PLUGIN_LIMITS_H
#define UAR_PLUGIN_LIMITS_H

enum uar_plugin_limit {
#define L(NAME, VALUE, TEXT) UAR_LIMIT_##NAME = VALUE,
#include "plugin/limits.def"
#undef L
};

#endif
