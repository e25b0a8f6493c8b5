/* aside.h - bytes that an event cannot carry, put into a blob before it is written. */
#ifndef UAR_WORK_ASIDE_H
#define UAR_WORK_ASIDE_H

#include "work/work_int.h"

struct aside;
typedef void aside_fn(void *ctx, uar_err e, uar_str sha256);
/* Takes a copy. `done` fires later, unless cancelled; a shortage is waited out. */
UAR_MUST_CHECK uar_err rt_aside_begin(struct uar_runtime *rt, uar_str bytes, aside_fn *done,
				      void *ctx, struct aside **out);
void rt_aside_cancel(struct aside *a); /* NULL is fine */

#endif
