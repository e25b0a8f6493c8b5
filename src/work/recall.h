/* recall.h - what knowledge has to say about the message of a run, before its model is called. */
#ifndef UAR_WORK_RECALL_H
#define UAR_WORK_RECALL_H

#include "agent/prompt.h"
#include "work/work_int.h"

struct uar_know_search;
struct recall {
	struct uar_know_search *search; /* under way, or its passages; NULL: none */
	bool waiting;
	void (*done)(void *ctx, uar_err e, const char *why);
	void *ctx;
	struct uar_prompt_piece *pieces; /* "[1] Title, page 2" and the passage */
	size_t count;
	struct uar_buf recalled, citations; /* JSON arrays for context.resolved */
	bool cite;			    /* an answer has to name a source */
};

/* Searches the collections that the agent's definition names. UAR_ESKIP: it names none. */
UAR_MUST_CHECK uar_err rt_recall_begin(struct live_run *r, uar_str message, struct recall *out);
/* The passages are needed no more; what an answer must cite is still known. */
void rt_recall_release(struct recall *c);
/* Does the answer name one of the passages by its number? */
bool rt_recall_is_cited(const struct recall *c, uar_str answer);

#endif
