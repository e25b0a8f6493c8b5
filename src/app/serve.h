/* serve.h - `uar serve`: the verb whose row the wiring adds to cli.def.
 *
 * A row V(serve, 0, 0, 0, ALL, "", "Run the server.") declares uar_verb_serve
 * in cli.h; it calls this with the settings that were loaded and returns its
 * exit status. On SIGHUP uar_config_reload gives the next set. */
#ifndef UAR_APP_SERVE_H
#define UAR_APP_SERVE_H

#include <stdio.h>

#include "app/config.h"

/* The set stays the caller's; `out` gets the line that says where it listens. */
int uar_app_serve(struct uar_config_set *config, FILE *out);

#endif
