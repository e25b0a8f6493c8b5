/* event_int.h - what the files of this room share. */
#ifndef UAR_EVENT_EVENT_INT_H
#define UAR_EVENT_EVENT_INT_H

#include "event/event.h"
#include "json/schema.h"

/* Shapes that the payload schemas refer to as "common.json". */
uar_str uar_event_schema_common(void);

/* The compiled payload schema of a standard class, made on first use and kept
 * for the life of the process. Thread-safe. */
UAR_MUST_CHECK uar_err uar_event_schema_get(enum uar_event_class cls, const struct uar_schema **out,
					    struct uar_error *error);
/* Drops what was compiled, so that a test can watch it being made again.
 * No other thread may be checking events. */
void uar_event_schema_forget(void);

#endif
