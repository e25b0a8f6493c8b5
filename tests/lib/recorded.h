/* recorded.h - runs that were recorded, and what each has to look like in a dialect.
 *
 * fixtures/ag_ui/NAME.jsonl has the events of a real run. With UAR_TEST_WRITE=1 the files that
 * are compared are written instead. */
#ifndef UAR_TEST_RECORDED_H
#define UAR_TEST_RECORDED_H

#include "event/event.h"

enum { RECORDED_MOST = 8 << 20 };

extern const char *const recorded_names[]; /* NULL behind the last */

struct recorded {
	struct uar_buf log;
	struct uar_arena arena; /* of the events; never reset */
	uar_str rest;
};

void recorded_open(struct recorded *r, const char *name);
bool recorded_next(struct recorded *r, struct uar_event *out); /* false: there are no more */
void recorded_close(struct recorded *r);
/* Is the file fixtures/FOLDER/NAME.ENDING this text, byte for byte? */
void recorded_compare(const char *folder, const char *name, const char *ending,
		      const struct uar_buf *got);

#endif
