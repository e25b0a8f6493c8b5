/* backend_permit.h - what the operator says of what an agent that is a program wants to do.
 *
 * Such a program has permissions of its own; UAR decides about what it asks for. Of that the
 * definition, the rules of the host and the mode each have a say, and the strictest holds. */
#ifndef UAR_WORK_BACKEND_PERMIT_H
#define UAR_WORK_BACKEND_PERMIT_H

#include "work/work_int.h"

/* Does the operator, or the run itself, say anything that the program has to keep to? */
bool rt_backend_governed(const struct live_run *r);
/* Decides about a question: a->verdict, and a->permission where anybody but the definition had a
 * say, which lies in `text`. */
void rt_backend_judge(const struct live_run *r, struct uar_ask *a, struct uar_buf *text);

#endif
