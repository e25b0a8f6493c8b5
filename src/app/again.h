/* again.h - how a server that leaves by itself was started, so that it can come back the same.
 *
 * Kept as one JSON object of server.json: "flags" and "env" hold the settings that came from
 * there, each as it would be written again; a secret is null there, for it is not kept. What
 * the configuration file says is read again at each start. */
#ifndef UAR_APP_AGAIN_H
#define UAR_APP_AGAIN_H

#include "app/cli.h"

/* Appends the object. Paths are made absolute: who starts it again may stand elsewhere. */
UAR_MUST_CHECK uar_err uar_again_put(const struct uar_config_set *set, struct uar_buf *out);

struct uar_again {
	const char *const *argv; /* of `uar serve`; both end with NULL */
	const char *const *env;
};
/* The command line and environment that start the last server of the data directory again;
 * without one, a server that leaves when it has been idle for `idle`. What the caller says
 * now comes before what the environment said then. `own`: the environment of then does not
 * count at all. UAR_ECONFIG: it had a secret that the caller does not have. */
UAR_MUST_CHECK uar_err uar_again_plan(const struct uar_cli *cli, const char *idle, bool own,
				      struct uar_arena *a, struct uar_again *out,
				      struct uar_error *error);

#endif
