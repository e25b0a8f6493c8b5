/* agent_api.c - events per second through libagent_api, from a child that writes as
 * fast as it can, against a bare loop that only reads and splits lines.
 *
 *	bench/agent_api [LINES]
 *
 * Both read the same child in one run. The bare loop is the limit: no parsing, no
 * events, no thread. run_ms is a whole run that says nothing, supervisor included. */
#include <agent_api/agent_api.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double cpu(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

struct measured {
	long lines;
	double seconds, cpu;
};

/* --- the child: this program again --- */

static int child(const char *count)
{
	static char block[1 << 16];
	long n = strtol(count, NULL, 10);
	size_t used = 0;

	for (long i = 0; i <= n; i++) {
		int k = snprintf(
			block + used, sizeof block - used,
			i < n ? "{\"type\":\"stream_event\",\"event\":{\"type\":"
				"\"content_block_delta\",\"index\":0,\"delta\":{\"type\":"
				"\"text_delta\",\"text\":\"word %ld of the answer \"}},"
				"\"session_id\":\"e72b2b9e-5467-4aee-88cf-f3889e6f1908\","
				"\"parent_tool_use_id\":null}\n"
			      : "{\"type\":\"result\",\"is_error\":false,\"num_turns\":%ld}\n",
			i);

		used += (size_t)k;
		if (used > sizeof block - 512 || i == n) {
			if (write(1, block, used) != (ssize_t)used)
				return 1;
			used = 0;
		}
	}
	return 0;
}

/* --- the limit --- */

static struct measured bare(const char *self, const char *count)
{
	static char buf[1 << 18];
	struct measured m = { 0 };
	double t = now(), c = cpu();
	int p[2];
	pid_t pid;
	ssize_t n;

	if (pipe(p))
		exit(1);
	pid = fork();
	if (pid == 0) {
		dup2(p[1], 1);
		close(p[0]);
		setenv("BENCH_CHILD", count, 1);
		execl(self, self, (char *)NULL);
		_exit(9);
	}
	close(p[1]);
	while ((n = read(p[0], buf, sizeof buf)) > 0)
		for (char *at = buf; (at = memchr(at, '\n', (size_t)(buf + n - at))); at++)
			m.lines++;
	close(p[0]);
	waitpid(pid, NULL, 0);
	m.seconds = now() - t;
	m.cpu = cpu() - c;
	return m;
}

/* --- the library --- */

static void on_event(void *ctx, const uaa_event *ev)
{
	(void)ev;
	++*(long *)ctx;
}

static struct measured library(const char *self, const char *count)
{
	uaa_env_pair env = { uaa_str_c("BENCH_CHILD"), uaa_str_c(count) };
	uaa_claude_code_config c = {
		.struct_size = sizeof c, .binary = uaa_str_c(self), .env = &env, .env_count = 1
	};
	struct measured m = { 0 };
	uaa_backend *b = uaa_claude_code_backend_new(&c);
	uaa_request *r = uaa_request_new();
	uaa_run *run = NULL;
	uaa_error *e = NULL;
	double t = now(), cp = cpu();

	uaa_request_set_prompt(r, uaa_str_c("go"));
	if (!b || uaa_backend_run(b, r, &run, &e) != UAA_OK ||
	    uaa_run_collect(run, on_event, &m.lines, NULL, &e) != UAA_OK) {
		fprintf(stderr, "bench: %s\n", e ? uaa_error_display(e).ptr : "no backend");
		exit(1);
	}
	m.seconds = now() - t;
	m.cpu = cpu() - cp;
	uaa_run_unref(run);
	uaa_request_unref(r);
	uaa_backend_unref(b);
	return m;
}

static double spawn_ms(const char *self)
{
	double t = now();

	for (int i = 0; i < 100; i++)
		library(self, "0");
	return (now() - t) * 10;
}

int main(int argc, char **argv)
{
	const char *count = argc > 1 ? argv[1] : "500000", *work = getenv("BENCH_CHILD");
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	struct measured limit, lib;

	if (work)
		return child(work);
	self[n > 0 ? n : 0] = 0;
	if (!getenv("AGENT_API_SUPERVISOR")) { /* build/bench/x -> build/agent-api-supervisor */
		char *cut = strstr(self, "/bench/");
		static char path[4200];

		snprintf(path, sizeof path, "%.*s/agent-api-supervisor",
			 cut ? (int)(cut - self) : 0, self);
		setenv("AGENT_API_SUPERVISOR", path, 1);
	}
	limit = bare(self, count);
	lib = library(self, count);
	printf("lines=%ld\nevents=%ld\nevents_per_s=%.0f\ncpu_ms_per_1000_events=%.4f\n"
	       "bare_lines_per_s=%.0f\nbare_cpu_ms_per_1000_lines=%.4f\nrun_ms=%.3f\n",
	       limit.lines, lib.lines, (double)lib.lines / lib.seconds,
	       lib.cpu * 1e6 / (double)lib.lines, (double)limit.lines / limit.seconds,
	       limit.cpu * 1e6 / (double)limit.lines, spawn_ms(self));
	return 0;
}
