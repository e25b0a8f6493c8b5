/* spill.h - a recorded event whose one long value is put aside.
 *
 * Content of an artifact, input, partial and final output of a tool may be longer
 * than an event. It becomes a blob; the event gets its beginning and its hash. */
#ifndef UAR_WORK_SPILL_H
#define UAR_WORK_SPILL_H

#include "work/work_int.h"

/* The value that does not fit, or NULL. */
const struct uar_json *rt_spill_of(const struct uar_json *event);
/* Its bytes: a string as it is, anything else as JSON. */
UAR_MUST_CHECK uar_err rt_spill_bytes(const struct uar_json *value, struct uar_buf *out);
/* The event with only the beginning of the value. */
UAR_MUST_CHECK uar_err rt_spill_shorten(const struct uar_json *event, const struct uar_json *value,
					uar_str bytes, struct uar_buf *out);

/* As much of a text as fits an event, escapes included. */
uar_str rt_spill_beginning(uar_str s);

/* The end of a text, as the fact of a long output repeats it. */
uar_str rt_spill_end(uar_str s);

/* A blob on its way. */
struct spill;
typedef void spill_done_fn(void *ctx, uar_err e, const struct uar_replay *r, uar_str line);
/* Stores the value; `done` fires later with what the command needs, unless cancelled. */
UAR_MUST_CHECK uar_err rt_spill_begin(struct uar_runtime *rt, const struct uar_json *event,
				      spill_done_fn *done, void *ctx, struct spill **out);
void rt_spill_cancel(struct spill *s); /* NULL is fine */

#endif
