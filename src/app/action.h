/* action.h - answering what a run has asked for, as verbs do it. */
#ifndef UAR_APP_ACTION_H
#define UAR_APP_ACTION_H

#include "app/remote.h"

struct uar_action_answer {
	uar_str action_id;
	const char *decision; /* "allow", "allow_for_session", "deny" */
	const char *reason;   /* NULL: none */
};
/* `a` needs fini also after an error. */
UAR_MUST_CHECK uar_err uar_action_respond(const struct uar_cli *cli,
					  const struct uar_action_answer *x,
					  struct uar_remote_answer *a, struct uar_error *error);

#endif
