/* registry.h - one registry over several sources of tools, which may change while runs go on.
 *
 * A source is a struct uar_tools: the tools of the program, those of HTTP services, of an MCP
 * server, of a client. The registry copies what a source lists, so a source may build its list
 * anew whenever it likes and say so (uar_tool_registry_changed). A tool that stayed the same stays
 * in place; one that changed or left is gone from lists at once and from memory when nobody holds
 * it any more. Each change has a new generation number.
 *
 * The registry checks arguments by a tool's input schema before its source is asked, and
 * what comes back by its output schema. A tool whose schema cannot be used is listed as
 * unavailable.
 *
 * What a source has to do: list (`at`), start, cancel, withdraw, destroy. `check`, `generation`,
 * `hold` and `let_go` may be NULL. A request names the registry's copy of the tool: know it by its
 * tool_id. model_name is given by the registry. */
#ifndef UAR_TOOL_REGISTRY_H
#define UAR_TOOL_REGISTRY_H

#include "tool/tool.h"

/* `below`: another registry (this one's, of no other kind) that outlives it and whose tools it has,
 * too; NULL: none. */
UAR_MUST_CHECK uar_err uar_tool_registry_create(struct uar_sched *sched, struct uar_tools *below,
						struct uar_tools **out);
/* Takes the source and lists its tools. On an error the source stays the caller's. */
UAR_MUST_CHECK uar_err uar_tool_registry_add(struct uar_tools *registry, struct uar_tools *source,
					     struct uar_error *error);
/* Lists the tools of a source again. On an error (UAR_ENOMEM, UAR_ETOOBIG) the old list stays. */
UAR_MUST_CHECK uar_err uar_tool_registry_changed(struct uar_tools *registry,
						 struct uar_tools *source, struct uar_error *error);
/* Its tools are gone and it is destroyed; calls under way fail with category "dependency". */
void uar_tool_registry_remove(struct uar_tools *registry, struct uar_tools *source);

#endif
