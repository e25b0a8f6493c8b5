/* command.h - what a command line says, for people and for decisions: its commands, and whether
 * one of them destroys something. For display and caution alone; the sandbox is what holds. */
#ifndef UAR_SANDBOX_COMMAND_H
#define UAR_SANDBOX_COMMAND_H

#include "base/arena.h"
#include "sandbox/limits.h"

struct uar_command_line {
	uar_str parts[UAR_LIMIT_COMMAND_PARTS]; /* the simple commands, without secrets */
	size_t count;
	bool destructive; /* rm -rf, git push --force, dd, mkfs, ... */
	bool complex;	  /* substitutions or more parts than are listed: it may do more */
	uar_str summary;  /* the line on one line, cut and without secrets */
};
/* A line of the shell. */
UAR_MUST_CHECK uar_err uar_command_read_line(uar_str line, struct uar_arena *arena,
					     struct uar_command_line *out);
/* Words that are one command. */
UAR_MUST_CHECK uar_err uar_command_read_words(const uar_str *words, size_t count,
					      struct uar_arena *arena,
					      struct uar_command_line *out);

#endif
