/* limits.h - the rows of limits.def as constants. */
#ifndef UAR_MAIL_LIMITS_H
#define UAR_MAIL_LIMITS_H

enum uar_mail_limit {
#define L(NAME, VALUE, TEXT) UAR_LIMIT_##NAME = VALUE,
#include "mail/limits.def"
#undef L
};

#endif
