/* main.c - hands the command line and the standard streams to the verbs. */
#include <unistd.h>

#include "app/cli.h"
#include "loop/supervise.h"

extern char **environ;

int main(int argc, char **argv)
{
	struct uar_cli cli = {
		.in = stdin,
		.out = stdout,
		.err = stderr,
		.in_tty = isatty(STDIN_FILENO),
		.out_tty = isatty(STDOUT_FILENO),
		.err_tty = isatty(STDERR_FILENO),
		.env = environ,
		.clock = &uar_clock_system,
	};

	uar_supervise(argc, argv);
	return uar_cli_main(&cli, argc, argv);
}
