/* tool.h - the port to tools that UAR executes itself.
 *
 * A tool is a function from a JSON object to a JSON value, described by a row that
 * lists and models are shown. What a call may do to the world is declared: it
 * decides whether somebody is asked before it runs, and whether it may be repeated
 * when it is not known how far it came.
 *
 * Callbacks fire from the loop, never inside start; `done` exactly once and last, and
 * not at all after cancel. Strings of callbacks are borrowed. */
#ifndef UAR_TOOL_TOOL_H
#define UAR_TOOL_TOOL_H

#include "base/sched.h"
#include "base/str.h"
#include "event/limits.h"

enum uar_tool_effect {
	UAR_TOOL_READ_ONLY,  /* changes nothing: free to run and to repeat */
	UAR_TOOL_IDEMPOTENT, /* twice is as good as once, with the same key */
	UAR_TOOL_ONCE,	     /* must not be repeated without being asked for */
};

/* Strings end with 0 and live as long as the registry. */
struct uar_tool {
	uar_str tool_id;    /* "internal:time.now" */
	uar_str name;	    /* "time.now" */
	uar_str model_name; /* what models call it: [a-zA-Z0-9_-]+, unique */
	uar_str description, version;
	uar_str transport;		     /* "internal" */
	uar_str input_schema, output_schema; /* JSON Schema texts; output may be empty */
	uar_str tags;			     /* JSON array of strings */
	enum uar_tool_effect effect;
	bool destructive; /* what it undoes cannot be brought back */
	bool ask;	  /* somebody has to allow each call */
	int64_t timeout_us;
};

struct uar_tool_request {
	const struct uar_tool *tool;
	uar_str input;	/* JSON text that uar_tools_ops.check accepted; copied */
	uar_str key;	/* names the call: the same one again means the same effect */
	uar_str run_id; /* whose call it is; empty: nobody's. What hangs is counted by it */
};

struct uar_tool_result {
	bool ok;
	uar_str output;		   /* JSON text; empty: nothing */
	uar_str category, message; /* of a failure: failure_category of tool.failed */
	bool retryable;
};

struct uar_tool_events {
	void (*progress)(void *ctx, uar_str json); /* may be NULL */
	void (*done)(void *ctx, const struct uar_tool_result *result);
	void *ctx;
};

struct uar_tools;     /* a registry of them */
struct uar_tool_call; /* one under way */
struct uar_tools_ops {
	uint32_t abi, size;
	void (*destroy)(struct uar_tools *t); /* calls under way end without callbacks */
	const struct uar_tool *(*at)(struct uar_tools *t, size_t index); /* NULL past the end */
	/* Is it JSON, an object, and what the tool's schema asks for? error->where points into
	 * the input. UAR_EINVALID: not JSON; UAR_ESCHEMA: the schema refuses it. */
	uar_err (*check)(struct uar_tools *t, const struct uar_tool *tool, uar_str input,
			 struct uar_error *error);
	uar_err (*start)(struct uar_tools *t, const struct uar_tool_request *r,
			 const struct uar_tool_events *events, struct uar_tool_call **out,
			 struct uar_error *error);
	/* What is changing something on a worker is finished there, unheard; what has not begun
	 * to will not. */
	void (*cancel)(struct uar_tools *t, struct uar_tool_call *call);
	/* Cancels what has changed nothing so far, and it never will. False: it has, or is about
	 * to, and `done` will tell. */
	bool (*withdraw)(struct uar_tools *t, struct uar_tool_call *call);
};
struct uar_tools {
	const struct uar_tools_ops *ops;
};
void uar_tools_destroy(struct uar_tools *t);				      /* NULL is fine */
const struct uar_tool *uar_tools_find(struct uar_tools *t, uar_str tool_id);  /* NULL: unknown */
const struct uar_tool *uar_tools_by_model_name(struct uar_tools *t, uar_str); /* likewise */
/* Does a pattern of a policy name the tool? "internal:fs.*": '*' stands for any text. */
bool uar_tool_matches(const struct uar_tool *tool, uar_str pattern);
/* What models call the tool of that id: ':' becomes "__", whatever a name must not have
 * '_'. Of two ids that would be called the same the later one gets a number. */
void uar_tool_name_for_models(uar_str tool_id, bool (*taken)(void *ctx, uar_str name), void *ctx,
			      char out[UAR_LIMIT_TOOL_NAME + 1]);

/* The tools that are part of the program (docs/tools.md). */
struct uar_internal_tools_options {
	struct uar_sched *sched;
	const char *files_dir; /* what the fs.* tools see; NULL: there are none of them */
};
UAR_MUST_CHECK uar_err uar_internal_tools_create(const struct uar_internal_tools_options *o,
						 struct uar_tools **out, struct uar_error *error);

#endif
