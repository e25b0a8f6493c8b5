/* process.h - the processes of a run that have not ended: a part of its state. */
#ifndef UAR_CORE_PROCESS_H
#define UAR_CORE_PROCESS_H

#include "core/sizes.h"
#include "event/event.h"

/* A process that has started and not ended. */
struct uar_open_process {
	char process_id[UAR_UUID_TEXT + 1];
	char call_id[UAR_LIMIT_ID_BYTES + 1]; /* of the tool call that started it */
	char step_id[UAR_UUID_TEXT + 1];
	char command[UAR_LIMIT_TEXT_PROMPT]; /* its summary, cut */
	char cwd[UAR_LIMIT_TEXT_REASON];
	char profile_id[32];
	int64_t started_us;
	int64_t index;	      /* next output's */
	int64_t output_bytes; /* that the log has */
	bool tty;
};

struct uar_run_processes {
	struct uar_open_process open[UAR_LIMIT_OPEN_PROCESSES];
	size_t open_count;
};
/* NULL: no such process is open. */
const struct uar_open_process *uar_process_open(const struct uar_run_processes *p, uar_str id);

#endif
