/* cli_run.h - runs one command line inside a test and keeps what it printed. */
#ifndef UAR_TEST_CLI_RUN_H
#define UAR_TEST_CLI_RUN_H

#include <stdlib.h>

#include "app/cli.h"
#include "test.h"

struct run {
	char *out, *err;
	size_t out_n, err_n;
	int status;
	unsigned pauses; /* how often it would have waited */
};

static inline void count_pause(void *ctx, unsigned ms)
{
	unsigned *n = ctx;

	(void)ms;
	++*n;
}

/* The words end with NULL. What `cli` leaves open gets a plain value. */
static inline struct run uar_with(struct uar_cli cli, char *const *argv)
{
	static char *const env[] = { "HOME=/nonexistent", "TERM=xterm", NULL };
	struct run r = { 0 };
	int argc = 0;

	while (argv[argc])
		argc++;
	cli.clock = &uar_clock_system;
	cli.env = cli.env ? cli.env : env;
	cli.pause = count_pause;
	cli.pause_ctx = &r.pauses;
	cli.out = open_memstream(&r.out, &r.out_n);
	cli.err = open_memstream(&r.err, &r.err_n);
	r.status = uar_cli_main(&cli, argc, argv);
	fclose(cli.out);
	fclose(cli.err);
	return r;
}

#define RUN(...) uar_with((struct uar_cli){ .in = NULL }, (char *[16]){ "uar", ##__VA_ARGS__ })

static inline void over(struct run *r)
{
	free(r->out);
	free(r->err);
}

static inline bool has(const char *text, const char *part)
{
	bool found = strstr(text, part) != NULL;

	if (!found)
		printf("  not found in: %s\n", text);
	return found;
}

#endif
