/* exec_server.h - a server for whoever needs one now: the running one of the data
 * directory, or one that is started for it and ends by itself. */
#ifndef UAR_APP_EXEC_SERVER_H
#define UAR_APP_EXEC_SERVER_H

#include "app/remote.h"

/* UAR_OK: uar_remote_find finds one that answers. */
UAR_MUST_CHECK uar_err uar_exec_server(struct uar_cli *cli, struct uar_error *error);

#endif
