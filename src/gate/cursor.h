/* cursor.h - the ids of events in streams and pages: "NUMBER" in the first incarnation of a store,
 * "INCARNATION-NUMBER" in later ones. */
#ifndef UAR_GATE_CURSOR_H
#define UAR_GATE_CURSOR_H

#include "base/buf.h"
#include "base/err.h"
#include "proto/dialect.h"

void gate_cursor_put(struct uar_buf *out, uint64_t incarnation, uint64_t number);
/* UAR_ERESYNC: it is of another incarnation than that; UAR_ECURSOR: it is none. The number 0, the
 * beginning, is the same in all. */
UAR_MUST_CHECK uar_err gate_cursor_parse(uar_str text, uint64_t incarnation, uint64_t *out);
/* The same of a frame of a dialect, whose number may end with ".K". */
UAR_MUST_CHECK uar_err gate_cursor_parse_frame(uar_str text, uint64_t incarnation,
					       struct uar_cursor *out);

#endif
