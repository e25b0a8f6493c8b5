/* toolbox.h - what a definition says about tools in its member `tools`.
 *
 * Tools of its own (http, openapi), bundles that must be there, overrides that narrow what a tool
 * takes, guardrails that refuse a call or have somebody asked. Immutable and shared by the runs of
 * a revision: held by count. */
#ifndef UAR_TOOL_TOOLBOX_H
#define UAR_TOOL_TOOLBOX_H

#include "json/json.h"
#include "tool/secret.h"
#include "tool/tool.h"

struct uar_client;
struct uar_toolbox;
struct uar_toolbox_options {
	struct uar_sched *sched;
	struct uar_tools *tools_below;	   /* a registry that outlives the box; NULL: none */
	struct uar_client *client;	   /* NULL: HTTP tools are refused */
	const struct uar_secrets *secrets; /* outlives the box */
	const struct uar_json *tools;	   /* copied; NULL: it says nothing */
	uar_str agent_id;		   /* whose definition it is; copied */
	bool from_file;			   /* secrets without a grant may be sent */
};
/* error->where: a pointer into `tools`. */
UAR_MUST_CHECK uar_err uar_toolbox_create(const struct uar_toolbox_options *o,
					  struct uar_toolbox **out, struct uar_error *error);
void uar_toolbox_ref(struct uar_toolbox *b);
void uar_toolbox_unref(struct uar_toolbox *b); /* NULL is fine, as for all below */
/* Its own tools and those below. */
struct uar_tools *uar_toolbox_tools(const struct uar_toolbox *b);

/* What the model is told instead; the tool's own where nothing is overridden. */
uar_str uar_toolbox_description(const struct uar_toolbox *b, const struct uar_tool *t);
uar_str uar_toolbox_schema(struct uar_toolbox *b, const struct uar_tool *t);
/* Do the arguments fit what an override narrows? As uar_tools_ops.check. */
UAR_MUST_CHECK uar_err uar_toolbox_check(const struct uar_toolbox *b, const struct uar_tool *t,
					 uar_str input, struct uar_error *error);

enum uar_rail { UAR_RAIL_PASS, UAR_RAIL_ASK, UAR_RAIL_DENY };
/* How many calls of tools that the patterns name has the run begun? */
typedef size_t uar_rail_count_fn(void *ctx, const struct uar_json *patterns);
struct uar_rail_call {
	const struct uar_tool *tool;
	uar_str input;
	uar_rail_count_fn *count;
	void *ctx;
};
/* What the guardrails say about a call; *out_reason is theirs. */
enum uar_rail uar_toolbox_judge(const struct uar_toolbox *b, const struct uar_rail_call *c,
				uar_str *out_reason);
bool uar_tool_is_named(const struct uar_tool *t, const struct uar_json *patterns);

/* Is each tool of the required bundles there? `has` knows what the run would have. False:
 * *out_bundle and *out_pattern say which one is not. */
typedef bool uar_bundle_has_fn(void *ctx, uar_str pattern);
bool uar_toolbox_complete(const struct uar_toolbox *b, uar_bundle_has_fn *has, void *ctx,
			  uar_str *out_bundle, uar_str *out_pattern);
/* Has the definition pinned another version of it? */
bool uar_toolbox_unpinned(const struct uar_toolbox *b, const struct uar_tool *t);
/* Is it a tool of an MCP server that the definition names in `mcp`: one of its own, or one that is
 * for every agent? */
bool uar_toolbox_brings(const struct uar_toolbox *b, const struct uar_tool *t);
/* Does the definition mean a server of its own, and somebody else's took the name? */
bool uar_toolbox_lacks(const struct uar_toolbox *b, const struct uar_tool *t);
/* Is the tool in one of its bundles, or its own? */
/* Does the definition name the server of that tool, and not the tool? */
bool uar_toolbox_narrows(const struct uar_toolbox *b, const struct uar_tool *t);
bool uar_toolbox_offers(const struct uar_toolbox *b, const struct uar_tool *t);

#endif
