/* permit.h - can a tool be called at all, and which grants cover a call? permission.h says what is
 * decided about one that can. */
#ifndef UAR_CORE_PERMIT_H
#define UAR_CORE_PERMIT_H

#include "event/row.h"

struct uar_permit_facts {
	bool known;    /* there is such a tool */
	bool off;      /* it is switched off for everybody */
	bool surfaced; /* the agent's policy allows it and no rule of it denies it */
	bool ready;    /* what it needs is there */
	bool denied;   /* by a person, this very call */
};

enum uar_permit {
	UAR_PERMIT_ALLOWED,
	UAR_PERMIT_DENIED,	/* by a policy */
	UAR_PERMIT_REJECTED,	/* by a person */
	UAR_PERMIT_UNAVAILABLE, /* what it needs is missing */
	UAR_PERMIT_UNKNOWN,	/* there is no such tool */
};
enum uar_permit uar_core_permit(const struct uar_permit_facts *f);

/* Whose call a grant may cover. */
struct uar_grant_call {
	uar_str agent_id, thread_id, tool_id, tool_version;
	uar_str args_digest; /* of the arguments; empty: unknown, and only a grant for any covers it
			      */
};
bool uar_grant_covers(const struct uar_row_grant *g, const struct uar_grant_call *call);
/* Members of a grant's record. */
struct uar_jw;
void uar_grant_write(struct uar_jw *w, const struct uar_row_grant *g);

#endif
