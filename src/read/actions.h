/* actions.h - reads actions: what was asked, what waits, what was answered. */
#ifndef UAR_READ_ACTIONS_H
#define UAR_READ_ACTIONS_H

#include "read/read.h"

struct uar_actions_op {
	struct uar_owner owner;
	uar_str session_id, run_id; /* empty: any */
	uar_str type;		    /* "form"; empty: any */
	uar_str status;		    /* "pending", "resolved", "any"; empty: pending */
	uar_str cursor;		    /* `next_cursor` of the page before, or empty */
	uint32_t limit;
	void (*done)(struct uar_actions_op *op);
	void *ctx; /* the caller's */
	/* out */
	uar_err err;
	struct uar_error error;
	struct uar_buf json; /* {"actions": [...], "next_cursor"}; the caller frees it */
};
/* Pending ones come the oldest first, others the newest. */
UAR_MUST_CHECK uar_err uar_read_actions(struct uar_reader *rd, struct uar_actions_op *op,
					struct uar_error *error);

#endif
