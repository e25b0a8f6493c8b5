/* main.c - hands the command line and the standard streams to the verbs. */
#include <fcntl.h>
#include <unistd.h>

#include "app/cli.h"
#include "loop/supervise.h"
#include "sandbox/helper.h"

extern char **environ;

/* A stream that the caller has closed: what is opened later would take its number, and with it
 * lines of the log. To use it is an error as before. */
static bool hold_standard_streams(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
			return false;
	return true;
}

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

	if (!hold_standard_streams())
		return UAR_EXIT_FAILED;
	uar_supervise(argc, argv);
	uar_sandbox_help(argc, argv);
	return uar_cli_main(&cli, argc, argv);
}
