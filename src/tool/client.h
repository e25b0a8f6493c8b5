/* client.h - tools that the client of a run executes: a source for the registry of that run.
 *
 * Nothing is started here. A call of such a tool is a question to the client, and its answer is
 * the result. */
#ifndef UAR_TOOL_CLIENT_H
#define UAR_TOOL_CLIENT_H

#include "json/json.h"
#include "tool/tool.h"

/* `list`: [{"name", "description", "parameters"}], as in event/client.h; copied. */
UAR_MUST_CHECK uar_err uar_client_tools_create(const struct uar_json *list, struct uar_tools **out);

#endif
