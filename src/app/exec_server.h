/* exec_server.h - a server for whoever needs one now: the running one of the data
 * directory, or one that is started for it and ends by itself. */
#ifndef UAR_APP_EXEC_SERVER_H
#define UAR_APP_EXEC_SERVER_H

#include "app/remote.h"

/* UAR_OK: uar_remote_find finds one that answers. A server that was named is never
 * started. One that cannot start is started once, and says why. It gets the flags of the
 * last one, and the caller's environment. */
UAR_MUST_CHECK uar_err uar_exec_server(struct uar_cli *cli, struct uar_error *error);
/* For verbs that look at runs: a directory whose last server leaves by itself, and is
 * gone, gets it again as it was, its environment included. */
UAR_MUST_CHECK uar_err uar_exec_server_again(struct uar_cli *cli, struct uar_error *error);
/* Does the server in use leave by itself, and come back when it is needed? */
bool uar_exec_server_passing(const struct uar_cli *cli);

#endif
