/* agent.h - the port to agents that are programs of their own: what a run asks of
 * one, what it tells back. The runtime calls it; behind it stands whoever drives
 * the program.
 *
 * Callbacks fire from the loop, never inside the call that asked; `done` once,
 * after which the call is gone. Strings of callbacks are borrowed. */
#ifndef UAR_EVENT_AGENT_H
#define UAR_EVENT_AGENT_H

#include "base/arena.h"
#include "event/action.h"

/* What is declared about an agent. Strings end with 0 and live until the host's agents
 * change, which whoever owns the host brings about. */
struct uar_agent_info {
	uar_str agent_id, title, description;
	uar_str entry;		/* "backend.codex" */
	uar_str kind;		/* of the program behind it, "codex" */
	uar_str model;		/* empty: the program's own choice */
	int64_t timeout_us;	/* 0: the runtime's default */
	bool takes_working_dir; /* a run may name the directory */
	bool needs_working_dir; /* and must */
	bool can_resume, can_fork;
};

/* A step of one tool call. Counts that are not known are 0. */
enum uar_tool_step { UAR_TOOL_BEGINS, UAR_TOOL_GOES_ON, UAR_TOOL_ENDS, UAR_TOOL_BREAKS };
struct uar_tool_report {
	enum uar_tool_step step;
	uar_str call_id, name, kind; /* kind: "command_execution", "tool_use", ... */
	bool has_exit, denied;	     /* denied: it broke because somebody said no */
	int64_t exit_code;
	int64_t stdout_bytes, stderr_bytes, diff_bytes, result_bytes;
};

enum uar_note_kind {
	UAR_NOTE_PHASE,	       /* what it is doing; metadata may say more */
	UAR_NOTE_PLAN,	       /* its plan changed */
	UAR_NOTE_WARNING,      /* `code` names it */
	UAR_NOTE_LIMIT,	       /* a limit of its provider changed */
	UAR_NOTE_DENIED,       /* its own rules refused something */
	UAR_NOTE_TRUNCATED,    /* a part of its output is gone */
	UAR_NOTE_HOOK_STARTED, /* it calls a program of its user; `code` names the point */
	UAR_NOTE_HOOK_ENDED,
	UAR_NOTE_HOOK_FAILED,
	UAR_NOTE_ARTIFACT_ERROR, /* its preview reported an error; metadata may say more */
	UAR_NOTE_COUNT
};
struct uar_note {
	enum uar_note_kind kind;
	uar_str code, text;  /* text: one safe line */
	uar_str metadata;    /* JSON object, or empty */
	uar_str artifact_id; /* ARTIFACT_ERROR */
	int64_t bytes;	     /* TRUNCATED: of what is gone; 0: nobody counted */
	struct {
		uar_str id, outcome; /* "continue", "block" */
		int64_t duration_ms;
		/* Of a hook that UAR itself calls: */
		bool own, read_only, suppress, fail_open;
		uar_str handler;       /* what is called, without its secrets */
		uar_str call_id;       /* the call that it is about, or empty */
		uar_str model_request; /* likewise */
		uar_str changed;       /* JSON array of member names, or empty */
		uar_str refs;	       /* JSON object, or empty */
		int64_t timeout_ms;
	} hook; /* HOOK_* */
};

/* The program's own conversation, which a later run may continue. */
enum uar_agent_session { UAR_SESSION_NEW, UAR_SESSION_RESUME, UAR_SESSION_FORK };

struct uar_agents;     /* the host */
struct uar_agent_call; /* one run at its program; the host's */

struct uar_agent_request {
	uar_str agent_id;
	uar_str prompt;
	uar_str working_dir; /* empty: the definition's */
	enum uar_agent_session session;
	uar_str session_id; /* of RESUME and FORK */
};

enum uar_agent_how {
	UAR_AGENT_FINISHED,
	UAR_AGENT_BROKE,
	UAR_AGENT_STOPPED, /* it was cancelled and every process is gone */
};
struct uar_agent_end {
	enum uar_agent_how how;
	uar_str code, category, message; /* of a failure; safe to show */
	bool retryable;
	int64_t input_tokens, output_tokens; /* -1: not reported */
	bool has_cost;
	double cost_usd;
};

struct uar_agent_events {
	void (*text)(void *ctx, uar_str delta);
	void (*tool)(void *ctx, const struct uar_tool_report *t);
	void (*note)(void *ctx, const struct uar_note *n);
	void (*session)(void *ctx, uar_str session_id);
	void (*ask)(void *ctx, const struct uar_ask *a); /* number is not set */
	void (*done)(void *ctx, const struct uar_agent_end *end);
	void *ctx;
};

struct uar_agents_ops {
	uint32_t abi, size;
	/* NULL past the end. */
	const struct uar_agent_info *(*at)(struct uar_agents *h, size_t index);
	uar_err (*start)(struct uar_agents *h, const struct uar_agent_request *r,
			 const struct uar_agent_events *events, struct uar_agent_call **out,
			 struct uar_error *error);
	/* UAR_ENOTFOUND: it does not wait for that any more. */
	uar_err (*respond)(struct uar_agent_call *c, uar_str ask_id, enum uar_verdict verdict);
	/* Stops the program; `done` follows when every process is gone. */
	void (*cancel)(struct uar_agent_call *c);
	/* The same, but nobody listens any more: the call is gone for the caller. */
	void (*stop)(struct uar_agent_call *c);
	/* Holds events back. They wait outside of memory. */
	void (*pause)(struct uar_agent_call *c, bool paused);
	/* Can a program work there? It may block: any thread but the loop's. NULL: that shows
	 * when it starts. */
	uar_err (*check_dir)(uar_str dir, struct uar_error *error);
	/* Is the agent's program on this machine? UAR_ENOTFOUND with the reason. NULL: that shows
	 * when it starts. */
	uar_err (*check_program)(struct uar_agents *h, uar_str agent_id, struct uar_error *error);
	/* Does its program ask before it acts? NULL: it does. */
	bool (*asks)(struct uar_agents *h, uar_str agent_id);
};

struct uar_agents {
	const struct uar_agents_ops *ops;
};

#endif
