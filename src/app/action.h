/* action.h - answering what a run has asked for, as verbs do it. */
#ifndef UAR_APP_ACTION_H
#define UAR_APP_ACTION_H

#include "app/remote.h"

struct uar_action_answer {
	uar_str action_id;
	const char *decision; /* "allow", "allow_for_session", "deny", "submit", ... */
	uar_str values;	      /* JSON text, or empty */
	const char *reason;   /* NULL: none */
};
/* `a` needs fini also after an error. */
UAR_MUST_CHECK uar_err uar_action_respond(const struct uar_cli *cli,
					  const struct uar_action_answer *x,
					  struct uar_remote_answer *a, struct uar_error *error);

/* Asks the person at the terminal, if there is one, what the event of a run asks. */
void uar_action_inline(struct uar_cli *cli, const struct uar_json *event);

/* A question that a run asked at some time, found in the run's own stream. */
struct uar_action_past {
	const char *wanted;			/* its id; NULL: the only one */
	char action_id[UAR_LIMIT_ID_BYTES + 1]; /* empty: there is none, or not one alone */
	char decision[64], source[64];		/* empty: nobody has answered */
	size_t count;				/* what it has asked */
	struct uar_buf list;			/* a line for each of the first */
};
UAR_MUST_CHECK uar_err uar_action_past(struct uar_cli *cli, uar_str run_id,
				       struct uar_action_past *p, struct uar_error *error);

#endif
