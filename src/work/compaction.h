/* compaction.h - what a conversation said before is condensed when it fills the model's window. */
#ifndef UAR_WORK_COMPACTION_H
#define UAR_WORK_COMPACTION_H

#include "work/past.h"

/* One that is under way; zeroed before first use. */
struct compaction {
	struct uar_buf prompt; /* what is to be condensed; empty: nothing is */
	struct uar_buf facts;  /* JSON object: members of both of its events */
	int64_t tokens_before, tokens_condensed;
};
void rt_compaction_fini(struct compaction *c);

/* Tokens that the model of the run takes, the largest of those that may be chosen; 0: not known. */
int64_t rt_window_of(const struct live_run *r);
/* The prompt has so many tokens: prepares the condensing of what was said before when they fill
 * the window. False: there is nothing to do. When it cannot be done, the past is told in part. */
UAR_MUST_CHECK bool rt_compaction_begin(struct compaction *c, struct past *past,
					const struct live_run *r, int64_t tokens);
/* What its model is told. */
void rt_compaction_collect(const struct compaction *c, struct prompt *p);
/* The text to keep for later calls, and the members of the event that says so. */
UAR_MUST_CHECK uar_err rt_compaction_end(const struct compaction *c, uar_str summary,
					 struct uar_buf *text, struct uar_buf *facts);

#endif
