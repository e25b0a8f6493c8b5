/* limits.h - the rows of limits.def as constants. */
#ifndef UAR_EVIDENCE_LIMITS_H
#define UAR_EVIDENCE_LIMITS_H

enum uar_evidence_limit {
#define L(NAME, VALUE, TEXT) UAR_LIMIT_##NAME = VALUE,
#include "evidence/limits.def"
#undef L
};

#endif
