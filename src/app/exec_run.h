/* exec_run.h - a run at a terminal. */
#ifndef UAR_APP_EXEC_RUN_H
#define UAR_APP_EXEC_RUN_H

#include "app/cli.h"

/* Shows the run to its end and asks what it asks. The first Ctrl-C cancels it, the second leaves.
 * On a terminal the last line is what it cost.
 * Returns the exit status that the run's end means. */
int uar_exec_attach(struct uar_cli *cli, const char *run_id);

#endif
