/* process.h - the tools that run commands, and the processes that they start.
 *
 * Each command runs in a sandbox (sandbox/sandbox.h) below a supervisor: when the server, the
 * run or the command ends, nothing that it started is left. What happens to a process is told
 * to one listener, which records it. */
#ifndef UAR_TOOL_PROCESS_H
#define UAR_TOOL_PROCESS_H

#include "event/process.h"
#include "sandbox/sandbox.h"
#include "tool/tool.h"

struct uar_json;
struct uar_loop;
struct uar_processes;

struct uar_processes_options {
	struct uar_loop *loop;
	const char *dir;	      /* the workspace, which the fs.* tools see, too */
	enum uar_sandbox_mode widest; /* that a definition may ask for */
	bool network;		      /* it may ask for the network */
	int64_t memory_bytes;	      /* of each process at most; 0: any */
};
/* Of whose process it is. */
struct uar_process_owner {
	const struct uar_owner *owner;
	uar_str run_id;
};
struct uar_process_listener {
	/* Borrowed for the call. */
	void (*told)(void *ctx, const struct uar_process_owner *o,
		     const struct uar_process_news *news);
	void *ctx;
};
/* *out is a source of tools, which whoever takes it destroys. */
UAR_MUST_CHECK uar_err uar_processes_create(const struct uar_processes_options *o,
					    struct uar_processes **out, struct uar_error *error);
struct uar_tools *uar_processes_tools(struct uar_processes *p);
void uar_processes_listen(struct uar_processes *p, const struct uar_process_listener *l);

/* What a call is to run in, before it does. */
struct uar_process_ask {
	const struct uar_tool *tool;
	uar_str input;		       /* that the tool's schema accepted */
	const struct uar_json *policy; /* policy.sandbox of the definition; NULL: none */
};
struct uar_process_plan {
	struct uar_buf sandbox; /* members of sandbox.applied: the profile */
	struct uar_buf process; /* members of process.started */
};
/* UAR_ENOTIMPL: this machine cannot enforce it. UAR_EFORBIDDEN: the operator does not allow it, or
 * a path leads out of the workspace. UAR_ESKIP: the tool starts no process. */
UAR_MUST_CHECK uar_err uar_processes_plan(struct uar_processes *p,
					  const struct uar_process_ask *ask,
					  struct uar_process_plan *out, struct uar_error *error);
/* The fence of the fs.* tools, in the same form. */
UAR_MUST_CHECK uar_err uar_files_plan(const char *dir, struct uar_buf *out);

/* Is it alive, and of that owner? */
bool uar_processes_has(struct uar_processes *p, const struct uar_owner *owner, uar_str process_id);
/* Bytes for its standard input, which `end` closes. UAR_ENOTFOUND: it is not there any more. */
UAR_MUST_CHECK uar_err uar_processes_write(struct uar_processes *p, const struct uar_owner *owner,
					   uar_str process_id, uar_str bytes, bool end);
/* Asks it to end, and ends it when it does not. */
struct uar_process_stop {
	uar_str process_id, reason, by_type, by;
};
UAR_MUST_CHECK uar_err uar_processes_stop(struct uar_processes *p, const struct uar_owner *owner,
					  const struct uar_process_stop *stop);
/* The run is over, and so are its processes; nothing more is told of them. */
void uar_processes_leave(struct uar_processes *p, const struct uar_owner *owner, uar_str run_id);

#endif
