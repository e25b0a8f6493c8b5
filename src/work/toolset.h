/* toolset.h - which tools a run has: those of the registry that its agent may use. */
#ifndef UAR_WORK_TOOLSET_H
#define UAR_WORK_TOOLSET_H

#include "work/limits.h"
#include "work/work_int.h"
#include "tool/toolbox.h"

struct rounds;
struct skill_set;
struct toolset {
	struct uar_tools *registry; /* NULL: there are none */
	const struct uar_tool_policy *policy;
	struct uar_toolbox *box;	/* what the definition says besides; NULL: nothing */
	const struct uar_owner *owner;	/* whose run it is */
	const char *revision;		/* of the definition; NULL: it has none */
	bool agents;			/* the definition names agents that it may start */
	bool client;			/* the registry has tools of the run's client, too */
	const struct skill_set *skills; /* that take tools away; NULL: none */
	const struct rounds *rounds;	/* in which tools were found; NULL: none so far */
};

struct toolset rt_toolset_of(const struct live_run *r);
/* The tool that models call so; NULL: none. */
const struct uar_tool *rt_toolset_named(const struct toolset *s, uar_str model_name);
/* NULL policy: it may use none. */
bool rt_toolset_has(const struct toolset *s, const struct uar_tool *t);
/* Is there one that it may use and that the pattern names? */
bool rt_toolset_offers(const struct toolset *s, uar_str pattern);
/* Has somebody to allow each call? */
bool rt_toolset_asks(const struct toolset *s, const struct uar_tool *t);
/* Does the agent's own policy say so? */
bool rt_toolset_asks_by_policy(const struct toolset *s, const struct uar_tool *t);
/* Can it be called at all, whatever a policy says? */
bool rt_tool_is_ready(const struct uar_tool *t);
/* "allowed", "ask", "denied", "sandboxed" or "unavailable". */
const char *rt_toolset_policy(const struct toolset *s, const struct uar_tool *t);
/* Do the arguments fit the tool's schema, and what the definition narrows? As
 * uar_tools_ops.check. */
UAR_MUST_CHECK uar_err rt_toolset_check(const struct toolset *s, const struct uar_tool *t,
					uar_str args, struct uar_error *error);
/* Are the bundles whole that a run needs? */
UAR_MUST_CHECK uar_err rt_toolset_complete(const struct toolset *s, struct uar_error *error);
/* How many read-only ones may run together. */
size_t rt_toolset_at_once(const struct toolset *s);
/* tool_search.c */
/* Has it too many tools of MCP servers to tell of all of them? */
bool rt_toolset_is_lazy(const struct toolset *s);
/* Is it told of only after a search, and was none that found it? */
bool rt_toolset_holds_back(const struct toolset *s, const struct uar_tool *t);
/* Writes what the words of the arguments find. */
UAR_MUST_CHECK uar_err rt_toolset_search(const struct toolset *s, uar_str args,
					 struct uar_buf *out);
/* What the model is told of; at most UAR_LIMIT_TOOLS_TOLD. out NULL: counts them. */
size_t rt_toolset_tell(const struct toolset *s, struct uar_model_tool *out);
/* JSON array for tool.catalog.resolved, which lives until the next call; *out is empty when
 * there are no tools. */
UAR_MUST_CHECK uar_err rt_toolset_catalog(struct uar_workers *w, const struct toolset *s,
					  uar_str *out);

#endif
