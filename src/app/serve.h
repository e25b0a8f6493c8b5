/* serve.h - `uar serve`: the server's life from its settings to its exit status. */
#ifndef UAR_APP_SERVE_H
#define UAR_APP_SERVE_H

#include <stdio.h>

#include "app/config.h"

/* The set stays the caller's. `out` gets the link for people, or with `json` one
 * line {"url","token",...} for programs. */
int uar_app_serve(struct uar_config_set *config, bool json, FILE *out);

#endif
