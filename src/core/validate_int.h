/* validate_int.h - what validate*.c share. */
#ifndef UAR_CORE_VALIDATE_INT_H
#define UAR_CORE_VALIDATE_INT_H

#include "base/map.h"
#include "core/validate.h"

/* Tasks that commands have made, of all sessions: their rows come last. */
struct seen_tasks {
	struct uar_map map;
	struct seen_task *all;
};

/* Notes the status that the event leads its task to. UAR_ENOMEM is the only error. */
UAR_MUST_CHECK uar_err validate_task_event(struct seen_tasks *t, const struct uar_event *ev,
					   struct uar_arena *scratch);
/* The status that the events of the task have led to; NULL: none of them has come. */
const char *validate_task_status(const struct seen_tasks *t, const struct uar_row *row);
void validate_tasks_fini(struct seen_tasks *t);

#endif
