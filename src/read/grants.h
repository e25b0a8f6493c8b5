/* grants.h - reads grants: permissions that were given for more than one call. */
#ifndef UAR_READ_GRANTS_H
#define UAR_READ_GRANTS_H

#include "read/read.h"

struct uar_grants_op {
	struct uar_owner owner;
	uar_str agent_id, conversation_id; /* one of them, or both empty: any */
	uar_str tool_id;		   /* empty: any */
	uar_str status;			   /* "active", "revoked", "any"; empty: active */
	uar_str cursor;			   /* `next_cursor` of the page before, or empty */
	uint32_t limit;
	void (*done)(struct uar_grants_op *op);
	void *ctx; /* the caller's */
	/* out */
	uar_err err;
	struct uar_error error;
	struct uar_buf json; /* {"grants": [...], "next_cursor"}; the caller frees it */
};
/* The newest first. */
UAR_MUST_CHECK uar_err uar_read_grants(struct uar_reader *rd, struct uar_grants_op *op,
				       struct uar_error *error);

#endif
