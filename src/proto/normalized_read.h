/* normalized_read.h - a normalized event back to what the log would hold of it.
 *
 * For recordings that are shown without a run: what a dialect makes of them is what it would
 * make of the run. Members of the log that no dialect shows are left out. */
#ifndef UAR_PROTO_NORMALIZED_READ_H
#define UAR_PROTO_NORMALIZED_READ_H

#include "event/event.h"

enum { UAR_NORMALIZED_EVENTS = 2 }; /* of one line at most */

/* Line `number` of a recording: {"type", "data", "at_ms"}. Strings are of the line or of
 * `arena`. A type that no dialect shows gives none. */
UAR_MUST_CHECK uar_err uar_normalized_read(const struct uar_json *line, uint64_t number,
					   struct uar_arena *arena,
					   struct uar_event out[UAR_NORMALIZED_EVENTS],
					   size_t *out_count);

#endif
