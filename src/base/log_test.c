/* log_test.c - the log when its reader stands still: a pipe, a socket, a terminal. */
#include "test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "base/log.h"

enum { FLOOD = 2000 };

/* How many lines there are, and how many more are said to be lost: a short line finds room
 * where a long one does not. */
static uint64_t accounted(const char *text)
{
	static const char lost[] = "\"log.lost\",\"lines\":\"";
	uint64_t lines = 0;

	for (uar_str rest = uar_str_c(text); rest.n && memchr(rest.p, '\n', rest.n);) {
		uar_str line = uar_str_cut(rest, '\n', &rest);
		const char *told;

		if (!uar_str_starts(line, UAR_STR("{")) || line.p[line.n - 1] != '}')
			continue;
		told = memmem(line.p, line.n, lost, sizeof lost - 1);
		lines += told ? strtoull(told + sizeof lost - 1, NULL, 10) : 1;
	}
	return lines;
}

/* Waits until so many are there. */
static void read_lines(int fd, uint64_t want)
{
	static char text[4 << 20];
	size_t n = 0;
	ssize_t got = 1;

	text[0] = 0;
	while (got > 0 && accounted(text) < want) {
		got = read(fd, text + n, sizeof text - 1 - n);
		n += got > 0 ? (size_t)got : 0;
		text[n] = 0;
	}
	CHECK_INT(accounted(text), want);
}

/* More than fits, then a reader, then one line more: nobody waits, nothing is lost unsaid. */
static void flood(int from, int to)
{
	char filling[1000];
	struct uar_log_out out;
	struct uar_log log = { .clock = &uar_clock_system, .json = true, .out = &out };
	int flags = fcntl(to, F_GETFL);
	uint64_t lost;

	memset(filling, 'x', sizeof filling);
	uar_log_out_init(&out, to);
	for (int i = 0; i < FLOOD; i++)
		uar_log(&log, UAR_LOG_INFO, "a.b", { "text", uar_str_n(filling, sizeof filling) });
	CHECK_INT(fcntl(to, F_GETFL), flags); /* others have it open, too */
	lost = out.lost;
	REQUIRE(lost > 0 && lost < FLOOD);
	read_lines(from, FLOOD - lost);
	uar_log(&log, UAR_LOG_INFO, "a.b", { "text", UAR_STR("again") });
	read_lines(from, lost + 1);
	CHECK_INT(out.lost, 0);
	uar_log_out_fini(&out);
	close(to);
	close(from);
}

TEST(a_log_that_nobody_reads_stops_nobody, "")
{
	struct termios raw;
	char name[64];
	int ends[2];

	REQUIRE(pipe(ends) == 0);
	flood(ends[0], ends[1]);
	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
	flood(ends[0], ends[1]);
	ends[0] = posix_openpt(O_RDWR | O_NOCTTY);
	REQUIRE(ends[0] >= 0 && grantpt(ends[0]) == 0 && unlockpt(ends[0]) == 0);
	REQUIRE(ptsname_r(ends[0], name, sizeof name) == 0);
	ends[1] = open(name, O_RDWR | O_NOCTTY);
	REQUIRE(tcgetattr(ends[1], &raw) == 0);
	cfmakeraw(&raw);
	REQUIRE(tcsetattr(ends[1], TCSANOW, &raw) == 0);
	flood(ends[0], ends[1]);
}

/* With no descriptor to be had the pipe cannot be opened again. */
TEST(a_pipe_that_cannot_be_opened_again_is_asked_first, "")
{
	struct rlimit was, none;
	int ends[2], next;

	REQUIRE(pipe(ends) == 0);
	next = dup(ends[0]);
	close(next);
	REQUIRE(getrlimit(RLIMIT_NOFILE, &was) == 0);
	none = was;
	none.rlim_cur = (rlim_t)next;
	REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
	flood(ends[0], ends[1]);
	CHECK(setrlimit(RLIMIT_NOFILE, &was) == 0);
}
