/* cli.h - runs one command line: finds the verb, its settings, and calls it.
 *
 * Exit status: 0 fine, 1 failed, 2 the command line is wrong, of a run that was waited
 * for also 3 canceled and 4 timeout. All output goes through the streams given here, so
 * that tests can read it. */
#ifndef UAR_APP_CLI_H
#define UAR_APP_CLI_H

#include <stdio.h>

#include "app/args.h"
#include "app/beside.h"
#include "base/clock.h"

enum { UAR_EXIT_OK, UAR_EXIT_FAILED, UAR_EXIT_USAGE, UAR_EXIT_CANCELED, UAR_EXIT_TIMEOUT };

struct uar_cli {
	FILE *in, *out, *err;
	bool in_tty, out_tty, err_tty;
	char *const *env;
	const struct uar_clock *clock;
	void (*pause)(void *ctx, unsigned ms); /* NULL: really wait */
	void *pause_ctx;
	const struct uar_beside *beside; /* of every wait for the server; NULL: nothing */
	/* filled by uar_cli_main for the verb */
	const char *program; /* as it was called */
	const struct uar_args *args;
	struct uar_config_set *config; /* NULL for a verb without settings */
	struct uar_error failure;      /* the first that was said; what --json prints of it */
	struct {
		int number; /* errno of its first failure */
		bool told;
	} output;
};

/* argv[0] is the program. */
int uar_cli_main(struct uar_cli *cli, int argc, char *const *argv);

/* "uar: ..." on the error stream; returns `status`. Unless that is UAR_EXIT_OK, which makes
 * it a mere note, --json also prints {"error", "code"} on the output, once the verb is over:
 * there `e` is named. */
int uar_cli_fail_as(struct uar_cli *cli, int status, uar_err e, const char *fmt, ...)
	UAR_PRINTF(4, 5);
/* The same for what has no code: it is not valid, or could not be done. */
int uar_cli_fail(struct uar_cli *cli, int status, const char *fmt, ...) UAR_PRINTF(3, 4);
/* If the output has just failed errno still has the reason, which uar_cli_main tells. */
void uar_cli_output_failed(struct uar_cli *cli);
/* With the reason of `error`, or the sentence of `e` when it has none. */
int uar_cli_fail_with(struct uar_cli *cli, int status, uar_err e, const struct uar_error *error);
/* Writes a finished listing; UAR_EXIT_FAILED when it or the stream failed. */
int uar_cli_write(struct uar_cli *cli, const struct uar_buf *text);
/* Colour is for people: a terminal, no $NO_COLOR, not a dumb one. */
bool uar_cli_colour(const struct uar_cli *cli, bool tty);

#define V(NAME, MIN, MAX, OPTIONS, SETTINGS, USAGE, DOC) int uar_verb_##NAME(struct uar_cli *cli);
#include "app/cli.def"
#undef V
/* The value of --args, {} without it: as given, of a file (@FILE), or of standard input (-). */
UAR_MUST_CHECK uar_err uar_cli_args_text(struct uar_cli *cli, struct uar_buf *out,
					 struct uar_error *error);

#endif
