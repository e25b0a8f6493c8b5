/* limits.h - the rows of limits.def as constants. */
#ifndef UAR_SKILL_LIMITS_H
#define UAR_SKILL_LIMITS_H

enum uar_skill_limit {
#define L(NAME, VALUE, TEXT) UAR_LIMIT_##NAME = VALUE,
#include "skill/limits.def"
#undef L
};

#endif
