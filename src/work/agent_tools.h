/* agent_tools.h - a source of tools (tool/registry.h) with which agents start others:
 * internal:agent.*. An agent may start those that policy.agents of its definition names; each call
 * is a command of the control plane, by the owner of the run. */
#ifndef UAR_WORK_AGENT_TOOLS_H
#define UAR_WORK_AGENT_TOOLS_H

#include "tool/tool.h"

struct uar_runtime;
UAR_MUST_CHECK uar_err uar_agent_tools_create(struct uar_tools **out);
/* Before the first call; the engine is made after the tools. */
void uar_agent_tools_attach(struct uar_tools *t, struct uar_runtime *rt);

#endif
