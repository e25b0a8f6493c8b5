/* helper.h - the process between the server and a sandboxed command.
 *
 * The server starts its own program again as the helper, below a supervisor (loop/supervise.h).
 * The helper starts the command inside its boundary, passes its streams on, is told by the
 * kernel of system calls that reach for the boundary, and reports all that in frames on its
 * standard output: a byte that says what, four bytes of length, the bytes. What the command
 * writes cannot look like a report. It reads frames on its standard input in the same form. */
#ifndef UAR_SANDBOX_HELPER_H
#define UAR_SANDBOX_HELPER_H

#include "base/buf.h"
#include "base/str.h"
#include "sandbox/limits.h"

/* argv[1] that makes a program a helper; then the profile as JSON, then the command. */
#define UAR_SANDBOX_WORD "__sandbox"

/* From the helper. */
enum uar_sandbox_report {
	UAR_REPORT_APPLIED = 'A',   /* the boundary stands and the command runs in it */
	UAR_REPORT_FAILED = 'F',    /* JSON {stage, error}: it does not run */
	UAR_REPORT_OUTPUT = 'o',    /* bytes */
	UAR_REPORT_ERRORS = 'e',    /* bytes of standard error */
	UAR_REPORT_VIOLATION = 'v', /* JSON {kind, target, attempted} */
	UAR_REPORT_EXIT = 'x',	    /* JSON {exit_code} or {signal}: the last one */
};
/* To the helper. */
enum uar_sandbox_order {
	UAR_ORDER_INPUT = 'd',	/* bytes for standard input */
	UAR_ORDER_END = 'q',	/* standard input ends */
	UAR_ORDER_SIGNAL = 's', /* one byte: the signal for the command's group */
};

enum { UAR_FRAME_HEAD = 5 };
/* Bytes of a frame, put into out. */
void uar_frame_write(struct uar_buf *out, char what, uar_str bytes);
/* The first whole frame of the bytes; 0: there is none yet, UAR_FRAME_BROKEN: they are none. Else
 * how many bytes it takes. */
#define UAR_FRAME_BROKEN ((size_t)-1)
size_t uar_frame_read(uar_str bytes, char *out_what, uar_str *out_bytes);

/* Does not return when argv asks for it. main() calls this before anything else. */
void uar_sandbox_help(int argc, char **argv);

#endif
