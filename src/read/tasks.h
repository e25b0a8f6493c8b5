/* tasks.h - tasks that were made by a command, read from their rows. */
#ifndef UAR_READ_TASKS_H
#define UAR_READ_TASKS_H

#include "read/read.h"

/* One task with its attempts and edges, or a list. It stays in place until done. */
struct uar_tasks_op {
	struct uar_owner owner;
	uar_str task_id; /* set: that task; else a list: */
	uar_str session_id, thread_id, parent_task_id, status, cursor;
	uint32_t limit;
	void (*done)(struct uar_tasks_op *op);
	void *ctx; /* the caller's */
	/* out; `json` belongs to the caller: uar_buf_fini */
	uar_err err;
	struct uar_error error;
	struct uar_buf json; /* {"task":{...}} or {"tasks":[...],"next_cursor":...} */
};
UAR_MUST_CHECK uar_err uar_read_tasks(struct uar_reader *rd, struct uar_tasks_op *op);

#endif
