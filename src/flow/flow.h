/* flow.h - workflows: graphs of nodes that are checked, and what a run of one does next.
 *
 * Pure functions. The state of a run is computed from its workflow, its inputs and the calls in its
 * log, each time from the beginning: the result is the same before and after a restart. */
#ifndef UAR_FLOW_FLOW_H
#define UAR_FLOW_FLOW_H

#include "flow/limits.h"
#include "json/jw.h"

/* --- types of nodes -------------------------------------------------------------------------- */

enum uar_flow_type {
#define N(TYPE, ...) UAR_FLOW_##TYPE,
#include "flow/node.def"
#undef N
	UAR_FLOW_TYPE_COUNT
};
/* What a port takes or gives. */
enum uar_flow_value {
	UAR_FLOW_NO, /* there is no such port */
	UAR_FLOW_ANY,
	UAR_FLOW_TEXT,
	UAR_FLOW_NUMBER,
	UAR_FLOW_BOOLEAN,
	UAR_FLOW_LIST,
	UAR_FLOW_OBJECT,
	UAR_FLOW_VALUE_COUNT
};
enum uar_flow_more { UAR_FLOW_MORE_NONE, UAR_FLOW_MORE_INPUTS, UAR_FLOW_MORE_ON_ERROR };
struct uar_flow_type_info {
	const char *name, *title, *group, *doc;
	const char *config; /* JSON Schema */
	enum uar_flow_more more;
	enum uar_flow_value in;
	struct {
		const char *name; /* NULL: there is none */
		enum uar_flow_value type;
	} out[2];
};
extern const struct uar_flow_type_info uar_flow_types[UAR_FLOW_TYPE_COUNT];
/* UAR_FLOW_TYPE_COUNT: there is none of that name. */
enum uar_flow_type uar_flow_type_parse(uar_str name);
/* The member "node_types" of an object. */
void uar_flow_write_types(struct uar_jw *w);

/* --- a document ----------------------------------------------------------------------------- */

struct uar_flow_node {
	uar_str id, title; /* title empty: none */
	enum uar_flow_type type;
	const struct uar_json *config; /* NULL: none */
};
struct uar_flow_edge {
	size_t from, to; /* places of nodes */
	uar_str port;	 /* of `from` */
};
/* Strings and trees are those of the definition. */
struct uar_flow {
	struct uar_flow_node nodes[UAR_LIMIT_FLOW_NODES];
	struct uar_flow_edge edges[UAR_LIMIT_FLOW_EDGES];
	size_t node_count, edge_count;
	size_t order[UAR_LIMIT_FLOW_NODES]; /* places of nodes; each is behind those before it */
	const struct uar_json *inputs;	    /* JSON Schema of the inputs of a run; NULL: none */
};

struct uar_flow_problem {
	bool warning;
	const char *code; /* "cycle" */
	int edge;	  /* place of the edge; -1: none */
	uar_str node;	  /* id of the node; empty: none */
	char pointer[UAR_LIMIT_ERROR_WHERE];
	char message[UAR_LIMIT_FLOW_PROBLEM_TEXT], next_step[UAR_LIMIT_FLOW_PROBLEM_TEXT];
};
struct uar_flow_problems {
	struct uar_flow_problem at[UAR_LIMIT_FLOW_PROBLEMS];
	size_t count, errors;
	bool no_memory; /* the check is not complete */
};
/* Adds a problem without text. NULL: the list is full. An error replaces a warning then, so that
 * a list with an error in it always counts one. */
struct uar_flow_problem *uar_flow_problem_add(struct uar_flow_problems *all, const char *code,
					      bool warning);
/* Checks the workflow of a definition, which may be any JSON value. *out is filled if there are no
 * errors; out may be NULL. */
void uar_flow_check(const struct uar_json *definition, struct uar_flow *out,
		    struct uar_flow_problems *problems);
/* The first error; UAR_OK: there is none. */
UAR_MUST_CHECK uar_err uar_flow_read(const struct uar_json *definition, struct uar_flow *out,
				     struct uar_error *error);
/* The members "good" and "problems" of an object. */
void uar_flow_write_problems(struct uar_jw *w, const struct uar_flow_problems *problems);
/* Ids of the tools that its nodes name, and of those that the engine needs, with a space between
 * two. */
void uar_flow_write_tools(const struct uar_json *definition, struct uar_buf *out);

/* --- a run ---------------------------------------------------------------------------------- */

enum uar_flow_status {
	UAR_FLOW_PENDING,
	UAR_FLOW_RUNNING,
	UAR_FLOW_WAITING, /* for a time */
	UAR_FLOW_COMPLETED,
	UAR_FLOW_FAILED,
	UAR_FLOW_SKIPPED, /* none of its incoming edges was taken */
	UAR_FLOW_STATUS_COUNT
};
const char *uar_flow_status_name(enum uar_flow_status s); /* "running" */

/* A call in the log, in order. Its key is that of the struct uar_flow_want it was made for. */
struct uar_flow_call {
	uar_str key;
	bool ended, failed;
	uar_str told; /* JSON: the result, or {"error":{"category","message"}} */
};

struct uar_flow_calls {
	const struct uar_flow_call *at;
	size_t count;
	size_t open_from; /* calls from this index on count as not ended */
};

/* A call that is to be made. */
struct uar_flow_want {
	uar_str key;	 /* "spawn:NODE", "call:NODE#2", "wait", "sleep:NODE" */
	uar_str tool_id; /* empty: nothing is called, the arguments are the result */
	uar_str args;	 /* JSON object */
};

struct uar_flow_state {
	enum uar_flow_status status;
	const char *took;	      /* the output that was taken; NULL: all of them, or none */
	const struct uar_json *value; /* its result; NULL: none */
	uar_str category, message;    /* of its failure, also if that was handled */
	size_t items, completed, failed, running; /* of a loop */
	int64_t until_us;			  /* WAITING */
};

enum uar_flow_verdict {
	UAR_FLOW_GOES_ON, /* make the wanted calls, or wait for those under way */
	UAR_FLOW_RESTS,	  /* until step.until_us */
	UAR_FLOW_DONE,
	UAR_FLOW_BROKE, /* the node step.culprit failed */
};
struct uar_flow_step {
	enum uar_flow_verdict verdict;
	struct uar_flow_state nodes[UAR_LIMIT_FLOW_NODES];
	struct uar_flow_want wants[UAR_LIMIT_FLOW_CALLS + 1];
	size_t want_count;
	size_t culprit;
	int64_t until_us;
	const struct uar_json *answer; /* of DONE; NULL: no output was reached */
};
struct uar_flow_ask {
	const struct uar_flow *flow;
	const struct uar_json *inputs; /* of the run, all of them, an object */
	struct uar_flow_calls calls;
	int64_t now_us;	 /* for waits alone */
	int64_t made_us; /* when the last calls were wanted; 0: none were */
};
/* Computes the state of a run and the calls to make next. The step lives in the arena. */
UAR_MUST_CHECK uar_err uar_flow_step(const struct uar_flow_ask *ask, struct uar_arena *arena,
				     struct uar_flow_step **out);
/* JSON array with one object for each node whose status changed, *out_count of them. before NULL:
 * this is the first step. */
UAR_MUST_CHECK uar_err uar_flow_write_changes(const struct uar_flow *f,
					      const struct uar_flow_step *before,
					      const struct uar_flow_step *after,
					      struct uar_buf *out, size_t *out_count);

#endif
