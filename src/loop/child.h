/* child.h - a child process with its three streams, supervised.
 *
 * Between UAR and the command stands a supervisor (supervise.h): when the child
 * is over, or killed, or UAR is, no process that it started is left. Started by
 * posix_spawn, watched by pidfd; nothing here blocks but uar_child_destroy. */
#ifndef UAR_LOOP_CHILD_H
#define UAR_LOOP_CHILD_H

#include "base/str.h"
#include "loop/loop.h"

struct uar_child;

struct uar_child_options {
	const char *const *argv; /* found in PATH of `env` */
	const char *const *env;	 /* all of it, NULL-terminated */
	const char *cwd;	 /* NULL: the present one */
	/* Bytes as they come; borrowed. Fine to kill, pause or write inside, not to destroy;
	 * that is fine inside `exited`. */
	void (*output)(void *ctx, uar_str bytes);
	void (*errors)(void *ctx, uar_str bytes); /* standard error */
	/* No output follows, though it may live on; `exited` comes later. NULL is fine. */
	void (*output_ended)(void *ctx);
	/* The whole tree is gone and both streams are read to their end. Once. Status
	 * as a shell shows it: 128 + signal, 127 for a command that cannot be started, 126 if
	 * perhaps it can later. */
	void (*exited)(void *ctx, int status);
	void *ctx;
};
UAR_MUST_CHECK uar_err uar_child_start(struct uar_loop *l, const struct uar_child_options *o,
				       struct uar_child **out, struct uar_error *error);
/* UAR_EBUSY: UAR_LIMIT_CHILD_INPUT bytes wait already, nothing was taken. UAR_EEOF:
 * the child does not read any more. */
UAR_MUST_CHECK uar_err uar_child_write(struct uar_child *c, uar_str bytes);
/* Reads what is in the pipe of standard error by now and hands it to `errors`. What the
 * child wrote there before an output is then known before that output. */
void uar_child_read_errors(struct uar_child *c);
void uar_child_end_input(struct uar_child *c);		/* after what was written */
void uar_child_pause(struct uar_child *c, bool paused); /* stops reading its output */
void uar_child_kill(struct uar_child *c);		/* the whole tree; `exited` follows */
/* Kills it and waits for the last process; no callback follows. NULL is fine. */
void uar_child_destroy(struct uar_child *c);

#endif
