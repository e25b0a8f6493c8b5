/* exec_ask.h - the questions of a run, asked on the terminal one after the other.
 *
 * A question is over when it is answered here, or anywhere else. What was typed
 * before it was asked answers nothing; what is no clear answer is asked again. */
#ifndef UAR_APP_EXEC_ASK_H
#define UAR_APP_EXEC_ASK_H

#include <stdio.h>

#include "core/sizes.h"
#include "json/json.h"

struct uar_question {
	char action_id[UAR_LIMIT_ID_BYTES + 1];
	struct uar_buf text;  /* as it is shown */
	struct uar_buf whole; /* the input, not cut; or where it can be read */
	bool session;	      /* it can be allowed for longer than once */
};

struct uar_asker {
	int fd;	   /* to read from the terminal; -1: there is none */
	FILE *out; /* to write to it */
	struct uar_question open[UAR_LIMIT_OPEN_ACTIONS]; /* the first one is being asked */
	size_t count;
};

/* The terminal that controls us, else the one that is standard input and error. */
void uar_asker_open(struct uar_asker *a);
void uar_asker_fini(struct uar_asker *a);
/* `data` of a question that waits. UAR_ETOOBIG: more than can wait. */
UAR_MUST_CHECK uar_err uar_asker_add(struct uar_asker *a, const struct uar_json *data);
/* `data` of an answer from anywhere: what was asked here is taken back, with a word. */
void uar_asker_resolved(struct uar_asker *a, const struct uar_json *data);
/* Something else was printed in between. */
void uar_asker_repeat(struct uar_asker *a);
/* There is input, or the terminal is gone: the decision about open[0], or NULL when it
 * is asked again. */
const char *uar_asker_read(struct uar_asker *a);
/* open[0] is answered: the next one is asked. */
void uar_asker_next(struct uar_asker *a);
/* Nothing is asked any more. */
void uar_asker_drop(struct uar_asker *a, const char *why);

#endif
