/* kb_int.h - what the routes of knowledge share. */
#ifndef UAR_GATE_KB_INT_H
#define UAR_GATE_KB_INT_H

#include "gate/gate_int.h"
#include "memory/know.h"

struct kb_call {
	struct uar_know_job job; /* first */
	struct call *c;
	struct uar_kb_place place; /* of the path's first parameter */
};
/* Of `size` bytes, the kb_call first. NULL: the call is answered. */
struct kb_call *gate_kb_call(struct call *c, size_t size);
void gate_kb_begin(struct kb_call *x); /* or answers why not */
bool gate_kb_failed(struct kb_call *x);
void gate_kb_answer(struct kb_call *x, int status, struct uar_buf *b, struct uar_jw *w);
UAR_MUST_CHECK uar_err gate_kb_mode(uar_str name, enum uar_kb_mode *out, struct uar_error *error);

#endif
