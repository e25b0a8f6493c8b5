/* process_int.h - what the files of the process tools share. */
#ifndef UAR_TOOL_PROCESS_INT_H
#define UAR_TOOL_PROCESS_INT_H

#include "base/alloc.h"
#include "base/list.h"
#include "json/json.h"
#include "json/jw.h"
#include "loop/child.h"
#include "sandbox/command.h"
#include "sandbox/helper.h"
#include "tool/limits.h"
#include "tool/process.h"

enum process_tool { PROCESS_RUN, PROCESS_START, PROCESS_WRITE, PROCESS_READ, PROCESS_STOP };
enum { PROCESS_TOOLS = PROCESS_STOP + 1, PROCESS_ID = 36 };

/* What is kept of a stream, and what of it is not told yet. */
struct process_stream {
	const char *name;
	struct uar_buf head, tail, untold;
	int64_t total, told;
};

/* How it ended, as far as its helper says. */
struct process_end {
	bool known;
	int exit_code, signal;	/* -1: none */
	uar_str stage, failure; /* of one that did not run */
};

struct process {
	struct uar_list node;
	struct uar_processes *host;
	struct uar_child *child; /* NULL: it has ended */
	struct uar_arena arena;
	struct uar_owner owner;
	uar_str id, run_id;
	struct uar_tool_call *call; /* that waits for it; NULL: none */
	struct uar_buf frames;
	struct process_stream out, err;
	struct uar_timer flush, wall, grace;
	int64_t pieces;	  /* events of its output */
	bool interactive; /* process.start: it goes on behind its call */
	bool applied, timed_out, escalated, tty;
	bool quiet, left; /* nothing is told of it; it is freed when it ends */
	struct process_end end;
	struct uar_process_stop stopping; /* reason empty: nobody has asked */
	uar_str violation;		  /* the first one, in words */
};

struct uar_tool_call {
	struct uar_list node;
	struct uar_processes *host;
	enum process_tool tool;
	struct uar_tool_events events;
	struct process *p; /* that it waits for; NULL: none */
	struct uar_task task;
	struct uar_timer timer;
	int64_t progress_us;   /* when it told how far it is; 0: it did not */
	struct uar_buf result; /* JSON */
	char category[24];
	struct uar_error error;
};

struct uar_processes {
	struct uar_tools base; /* first: the ops get it back by a cast */
	struct uar_loop *loop;
	struct uar_tool tools[PROCESS_TOOLS];
	struct uar_list processes, calls;
	size_t count;
	struct uar_process_listener listener;
	enum uar_sandbox_mode widest;
	bool network;
	int64_t memory_bytes;
	char dir[UAR_LIMIT_SANDBOX_PATH];
};

/* process_child.c */
/* Starts the command of the input in the boundary `profile`; told through the listener. */
UAR_MUST_CHECK uar_err uar_process_start(struct uar_processes *h, const struct uar_tool_request *r,
					 struct process **out, struct uar_error *error);
void uar_process_free(struct process *p);
void uar_process_stop(struct process *p, const struct uar_process_stop *stop);
UAR_MUST_CHECK uar_err uar_process_write(struct process *p, uar_str bytes, bool end);
struct process *uar_process_find(struct uar_processes *h, const struct uar_owner *owner,
				 uar_str id);
void uar_process_tell(struct process *p, struct uar_process_news *news);
/* The members of a result that say how it stands. */
void uar_process_put(struct uar_jw *w, struct process *p, bool whole);
/* process.c: it has begun (or not), written or ended: who waits for it is answered. */
void uar_process_changed(struct process *p);
/* It goes on: the call that waits for it tells so, not more than once a second. */
void uar_process_progress(struct process *p);

#endif
