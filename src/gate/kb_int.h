/* kb_int.h - what the routes of knowledge share. */
#ifndef UAR_GATE_KB_INT_H
#define UAR_GATE_KB_INT_H

#include "gate/gate_int.h"
#include "memory/know.h"

struct kb_call {
	struct uar_know_job job;   /* first */
	struct call *c;		   /* for the loop alone: a server that ends frees it first */
	struct uar_kb_place place; /* of the path's first parameter */
	uar_str id;		   /* its second one */
};
/* Of `size` bytes, the kb_call first. The memory of the call becomes the job's: its path and body
 * stay as long as a worker may read them. The call stays until the job is done, whether the peer
 * does or not. NULL: the call is answered. */
struct kb_call *gate_kb_call(struct call *c, size_t size);
/* As gate_query_str, but it stays as long as the job does. */
UAR_MUST_CHECK uar_err gate_kb_query(struct kb_call *x, const char *name, uar_str *out);
void gate_kb_begin(struct kb_call *x); /* or answers why not */
bool gate_kb_failed(struct kb_call *x);
void gate_kb_answer(struct kb_call *x, int status, struct uar_buf *b, struct uar_jw *w);
UAR_MUST_CHECK uar_err gate_kb_mode(uar_str name, enum uar_kb_mode *out, struct uar_error *error);

#endif
