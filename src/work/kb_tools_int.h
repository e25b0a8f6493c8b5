/* kb_tools_int.h - one call of a tool over knowledge. */
#ifndef UAR_WORK_KB_TOOLS_INT_H
#define UAR_WORK_KB_TOOLS_INT_H

#include "json/jw.h"
#include "memory/know.h"
#include "work/kb_tools.h"

/* The job is first: what the worker and the answer need lives as long as it does. */
struct uar_tool_call {
	struct uar_know_search search;
	struct uar_list node; /* of the source, while somebody waits */
	struct uar_tool_events events;
	const struct uar_json *input;
	struct uar_tool_caller caller; /* its strings are the job's */
	uar_str run_id;
	struct uar_buf out;
	bool read_only;
	bool searches; /* the job is a search */
	bool fetching; /* a page comes first */
	bool unheard;
	uar_str url; /* of the page */
	struct uar_kb_place place;
	struct uar_kb_document document;
	struct uar_kb_result result;
	struct uar_kb_relations relations;
	struct uar_kb_recall ask;
	struct uar_kb_memory memory;
	struct uar_kb_memories memories;
	int64_t count;
};

/* kb_tools_run.c: one of each row of kb_tools.def. It sets the job's `run` and `done`, or
 * `searches`, or `url`. */
typedef uar_err kb_tool_fn(struct uar_tool_call *c, struct uar_error *error);
#define T(FN, ...) kb_tool_fn kb_tool_##FN;
#include "work/kb_tools.def"
#undef T

/* Tells the caller what came of it and frees the call. */
void kb_tool_end(struct uar_tool_call *c, struct uar_jw *w);
void kb_tool_fail(struct uar_tool_call *c, uar_err e, const struct uar_error *error);

#endif
